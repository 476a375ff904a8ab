//! One compaction as a state machine.

use super::{
    error::{CompactionError, Result},
    event::CompactionEvent,
};
use crate::{
    compact::{CompactError, CompactReport},
    log::{CompactionFailure, CompactionRecord, Rung},
    message::{
        CompactionId, CompactionReason, InvalidValue, Message, Redactor, Text, ThreadId, Timestamp,
        Usage, redact::redacted_text,
    },
    strategy::{Brief, Proposal, Rejection, Snapshot, StrategyError},
};

/// One compaction, from its start to its end.
///
/// | stage | the driver | input | next stage |
/// |---|---|---|---|
/// | [`Proposing`](Stage::Proposing) | makes a proposal | [`proposed`](Self::proposed), accepted | `Accepted` |
/// | `Proposing` | makes a proposal | [`proposed`](Self::proposed), an error | `Failing` |
/// | [`Accepted`](Stage::Accepted) | commits it | [`committed`](Self::committed), applied | `Committed` |
/// | `Accepted` | commits it | [`committed`](Self::committed), an error | `Failing` |
/// | [`Committed`](Stage::Committed) | stores the log | [`stored`](Self::stored) | `Ended`, `Completed` |
/// | [`Failing`](Stage::Failing) | logs the failure | [`failure_logged`](Self::failure_logged) | `Ended`, `Failed` or `Cancelled` |
/// | `Proposing`, `Accepted` | | [`interrupted`](Self::interrupted) | `Failing` |
/// | `Committed`, `Failing`, `Ended` | | [`interrupted`](Self::interrupted) | unchanged |
///
/// Before the commit the thread is unchanged. After it the compaction cannot fail: if the store
/// cannot be written, the compaction stays in thread and log.
#[derive(Debug)]
pub(crate) struct Compaction {
    pub(crate) id: CompactionId,
    thread: ThreadId,
    strategy: Text,
    /// Why the thread is compacted.
    pub(crate) reason: CompactionReason,
    /// Whether the conversation's provider binds reasoning to the messages before it.
    pub(crate) binds_reasoning: bool,
    began: Timestamp,
    /// The time of the record and of the end event. It is the start time until a driver with a
    /// clock sets a later one after a long await.
    pub(crate) now: Timestamp,
    /// The tokens of the strategy; zero until it ended.
    usage: Usage,
    /// The redacted reports of the rungs that the strategy tried; empty until it ended.
    rungs: Vec<Rung>,
    /// The logged record; `None` before the commit, and if the compaction failed.
    record: Option<Box<CompactionRecord>>,
    stage: Stage,
}

/// How far a compaction is, and with it what its driver does next.
#[derive(Debug)]
pub(crate) enum Stage {
    /// A proposal that passes the acceptance check is to be made.
    Proposing,
    /// The plan is to be applied to both thread and log, or to neither, without an await in between.
    Accepted(Box<Proposal>),
    /// The log is to be written to the store.
    Committed,
    /// This failure is to be appended to the log.
    Failing(Box<CompactionFailure>, Ending),
    /// The compaction has ended, with this event.
    Ended(Box<CompactionEvent>),
}

/// The end of a compaction that was not carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Failed,
    Cancelled,
}

impl Compaction {
    /// Returns a compaction that begins at `brief.now`, with the reason of the brief. The brief
    /// must be redacted, because its texts go into the events and the log.
    pub(crate) fn begin(
        id: CompactionId,
        thread: ThreadId,
        strategy: impl Into<Text>,
        brief: &Brief,
    ) -> Self {
        let (reason, strategy) = (brief.reason.clone(), strategy.into());
        Self {
            id,
            thread,
            strategy,
            reason,
            binds_reasoning: brief.binds_reasoning,
            began: brief.now,
            now: brief.now,
            usage: Usage::default(),
            rungs: Vec::new(),
            record: None,
            stage: Stage::Proposing,
        }
    }

    /// The start event.
    pub(crate) fn started(&self) -> CompactionEvent {
        CompactionEvent::Started {
            id: self.id,
            thread: self.thread.clone(),
            at: self.began,
            reason: self.reason.clone(),
            strategy: self.strategy.clone(),
        }
    }

    /// The end event; `None` before the end.
    pub(crate) fn end(&self) -> Option<&CompactionEvent> {
        if let Stage::Ended(event) = &self.stage { Some(event) } else { None }
    }

    /// The logged record; `None` before the commit, and if the compaction failed.
    pub(crate) fn record(&self) -> Option<&CompactionRecord> {
        self.record.as_deref()
    }

    /// How far the compaction is.
    pub(crate) fn stage(&self) -> &Stage {
        &self.stage
    }

    /// Counts the tokens of a call, which are lost if the driver is dropped before the strategy ends.
    pub(crate) fn spent(&mut self, usage: Usage) {
        self.usage += usage;
    }

    /// Takes an accepted proposal, or the error of the strategy. Texts of errors are redacted before
    /// they are shown and stored.
    ///
    /// # Errors
    ///
    /// [`InvalidValue`] unless the stage is [`Stage::Proposing`].
    pub(crate) fn proposed(
        &mut self,
        outcome: Result<Proposal>,
        redactor: Option<&dyn Redactor>,
    ) -> Result<(), InvalidValue> {
        let Stage::Proposing = self.stage else { return Err(self.unexpected()) };
        let (usage, tried): (_, &[Rung<StrategyError>]) = match &outcome {
            Ok(proposal) => (proposal.usage, &proposal.rungs),
            Err(error) => match error.strategy() {
                Some(StrategyError::NoRung { rungs }) => (error.usage, rungs),
                Some(_) | None => (error.usage, &[]),
            },
        };
        (self.usage, self.rungs) = (usage, reports(tried, redactor));
        self.stage = match outcome {
            Ok(proposal) => Stage::Accepted(Box::new(proposal)),
            Err(error) => {
                let words = redacted_by(error.to_string().into(), redactor);
                self.failing(words, Ending::Failed)
            }
        };
        Ok(())
    }

    /// Returns the record for the log, with the plan and the batches.
    ///
    /// # Errors
    ///
    /// [`InvalidValue`] unless the stage is [`Stage::Accepted`].
    pub(crate) fn new_record(
        &self,
        report: CompactReport,
    ) -> Result<CompactionRecord, InvalidValue> {
        let Stage::Accepted(proposal) = &self.stage else { return Err(self.unexpected()) };
        Ok(CompactionRecord {
            id: self.id,
            reason: self.reason.clone(),
            strategy: self.strategy.clone(),
            plan: proposal.plan.clone(),
            report,
            counted: None,
            usage: self.usage,
            calls: proposal.calls,
            rungs: self.rungs.clone(),
            batches: proposal.batches.clone(),
            quoted: proposal.quoted.clone(),
        })
    }

    /// Takes the record of the applied plan, or the text of the error.
    ///
    /// # Errors
    ///
    /// [`InvalidValue`].
    pub(crate) fn committed(
        &mut self,
        outcome: Result<CompactionRecord, Text>,
    ) -> Result<(), InvalidValue> {
        let Stage::Accepted(_) = self.stage else { return Err(self.unexpected()) };
        self.stage = match outcome {
            Ok(record) => {
                self.record = Some(Box::new(record));
                Stage::Committed
            }
            Err(words) => self.failing(words, Ending::Failed),
        };
        Ok(())
    }

    /// Records that the write to the store ended, with or without success: the next write stores
    /// missing events.
    ///
    /// # Errors
    ///
    /// [`InvalidValue`].
    pub(crate) fn stored(&mut self) -> Result<(), InvalidValue> {
        let (Stage::Committed, Some(record)) = (&self.stage, &self.record) else {
            return Err(self.unexpected());
        };
        let event = CompactionEvent::Completed {
            id: self.id,
            thread: self.thread.clone(),
            at: self.now,
            report: record.report.clone(),
            usage: record.usage,
            rungs: record.rungs.clone(),
        };
        self.stage = Stage::Ended(Box::new(event));
        Ok(())
    }

    /// Records that the failure is in the log.
    ///
    /// # Errors
    ///
    /// [`InvalidValue`].
    pub(crate) fn failure_logged(&mut self) -> Result<(), InvalidValue> {
        let Stage::Failing(failure, ending) = &self.stage else { return Err(self.unexpected()) };
        let (id, thread, at) = (self.id, self.thread.clone(), self.now);
        let event = match ending {
            Ending::Failed => {
                CompactionEvent::Failed { id, thread, at, error: failure.error.clone() }
            }
            Ending::Cancelled => CompactionEvent::Cancelled { id, thread, at },
        };
        self.stage = Stage::Ended(Box::new(event));
        Ok(())
    }

    /// Records that the driver was dropped. Before the commit this cancels the compaction. After it
    /// the compaction remains in effect, and the driver continues at the same stage.
    pub(crate) fn interrupted(&mut self) {
        match self.stage {
            Stage::Proposing | Stage::Accepted(_) => {
                self.stage = self.failing("cancelled".into(), Ending::Cancelled);
            }
            Stage::Committed | Stage::Failing(..) | Stage::Ended(_) => {}
        }
    }

    /// Returns the stage of a failure, with the tokens that were spent.
    fn failing(&self, words: Text, ending: Ending) -> Stage {
        let (reason, strategy) = (self.reason.clone(), self.strategy.clone());
        let (usage, rungs) = (self.usage, self.rungs.clone());
        let failure = CompactionFailure::new(self.id, reason, strategy, words);
        Stage::Failing(Box::new(CompactionFailure { usage, rungs, ..failure }), ending)
    }

    pub(crate) fn unexpected(&self) -> InvalidValue {
        let state = match &self.stage {
            Stage::Proposing => "proposing",
            Stage::Accepted(_) => "accepted",
            Stage::Committed => "committed",
            Stage::Failing(..) => "failing",
            Stage::Ended(_) => "over",
        };
        InvalidValue::unexpected("this input", format!("the compaction is {state}"))
    }
}

fn reports(rungs: &[Rung<StrategyError>], redactor: Option<&dyn Redactor>) -> Vec<Rung> {
    let mut reports: Vec<Rung> = rungs.iter().map(Rung::report).collect();
    for failure in reports.iter_mut().filter_map(|report| report.failure.as_mut()) {
        *failure = redacted_by(failure.clone(), redactor);
    }
    reports
}

/// Returns the text, redacted if there is a redactor.
pub(crate) fn redacted_by(text: Text, redactor: Option<&dyn Redactor>) -> Text {
    redactor.map_or_else(|| text.clone(), |redactor| redacted_text(&text, redactor))
}

/// Returns the outcome of a strategy with redacted error texts: its own, those of its rungs, and
/// those in its notes. They need redaction, because providers quote requests in their errors.
pub(crate) fn redacted(
    mut outcome: Result<Proposal>,
    redactor: Option<&dyn Redactor>,
) -> Result<Proposal> {
    match (&mut outcome, redactor) {
        (_, None) => {}
        (Ok(proposal), Some(redactor)) => proposal.redact(redactor),
        (Err(failed), Some(redactor)) => failed.redact(redactor),
    }
    outcome
}

// Not beside the struct, because a strategy knows no error of a compaction.
impl Proposal {
    /// Returns the proposal if its plan passes the acceptance check.
    ///
    /// ```
    /// use threadfold::{Message, Plan, Replacement, compact::CompactOptions};
    /// use threadfold::strategy::{Brief, Proposal, Snapshot};
    ///
    /// let thread = Snapshot::new(vec![Message::assistant("Hello!"), Message::user("Fix the parser.")]);
    /// // Of the whole thread, so what the user asked for would be gone.
    /// let all = Replacement::new("Hi.");
    /// let plan = Plan::new(thread.messages(), &[all], &CompactOptions::default())?;
    /// let error = Proposal::new(plan).accepted(&thread, &Brief::default()).unwrap_err();
    /// assert_eq!(error.to_string(), "rejected: the last message that the user typed would be gone");
    /// # Ok::<(), threadfold::compact::CompactError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`CompactionError`], with the tokens that were spent, if it does not.
    pub fn accepted(self, thread: &Snapshot, brief: &Brief) -> Result<Self> {
        let (usage, calls) = (self.usage, self.calls);
        let settled = match brief.limit {
            Some(limit) => thread.settle_within(self, brief, Some(limit)),
            None => thread.settle(self, brief),
        };
        settled.map_err(|rejection| CompactionError::new(rejection).after(usage, calls))
    }

    /// Returns the proposal, which was made for the `earlier` messages, for the present thread, which
    /// begins with these; an error if it does not.
    pub(crate) fn extended(mut self, earlier: &[Message], present: &[Message]) -> Result<Self> {
        let pairs = earlier.iter().zip(present);
        let same = pairs.take_while(|(one, other)| one.ptr_eq(other) || one == other).count();
        if same < earlier.len() {
            let rewritten = CompactError::Rewritten { message: same };
            return Err(self.failed(Rejection::from(rewritten)));
        }
        self.plan = self.plan.extended(present);
        Ok(self)
    }

    /// Returns the error of a compaction whose proposal could not be used.
    pub(crate) fn failed(&self, error: impl Into<StrategyError>) -> CompactionError {
        CompactionError::new(error).after(self.usage, self.calls)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        compact::{Plan, Splice},
        message::{Batch, BatchId, ModelError},
        strategy::Proposal,
    };

    const STATES: [&str; 5] = ["proposing", "accepted", "committed", "failing", "over"];

    type Take = fn(&mut Compaction) -> Result<(), InvalidValue>;

    fn proposal() -> Proposal {
        let splice = Splice { at: 0..1, insert: Vec::new() };
        let mut proposal = Proposal::new(Plan::from_splices(2, vec![splice]));
        proposal.rungs = vec![Rung {
            strategy: "digest".into(),
            failure: Some(StrategyError::NeedsModel),
            usage: Usage::default(),
            calls: 0,
        }];
        let batches = vec![Batch::new(BatchId::default(), "It was read.")];
        Proposal { usage: Usage::new(9, 4), calls: 2, batches, ..proposal }
    }

    fn record(compaction: &Compaction) -> CompactionRecord {
        let plan = || {
            CompactionRecord::new(CompactionId(3), CompactionReason::default(), "", proposal().plan)
        };
        compaction.new_record(CompactReport::default()).unwrap_or_else(|_| plan())
    }

    /// A compaction in the state of this name.
    fn at(state: &str) -> Compaction {
        let brief = Brief { now: Timestamp(1), ..Brief::default() };
        let thread = "main".parse().unwrap();
        let mut compaction = Compaction::begin(CompactionId(3), thread, "own", &brief);
        let mut inputs: Vec<Take> =
            vec![|compaction| compaction.proposed(Ok(proposal()), None), |compaction| {
                compaction.committed(Ok(record(compaction)))
            }];
        match state {
            "proposing" => inputs.truncate(0),
            "accepted" => inputs.truncate(1),
            "failing" => inputs = vec![|compaction| compaction.proposed(Err(refused()), None)],
            "over" => inputs.push(Compaction::stored),
            _ => {}
        }
        inputs.into_iter().for_each(|input| input(&mut compaction).unwrap());
        assert_eq!(state_of(&compaction), state);
        compaction
    }

    fn state_of(compaction: &Compaction) -> String {
        let state = compaction.unexpected().rule;
        state.strip_prefix("the compaction is ").unwrap().to_owned()
    }

    fn refused() -> CompactionError {
        let error = ModelError::new(crate::message::ModelErrorKind::Other, "hunter2");
        let error = StrategyError::Model(Box::new(error));
        CompactionError::new(error).after(Usage::new(5, 0), 1)
    }

    #[test]
    fn every_input_leads_where_the_table_says_or_is_refused_and_changes_nothing() {
        let rows: [(&str, Take, &str); 7] = [
            ("proposing", |c| c.proposed(Ok(proposal()), None), "accepted"),
            ("proposing", |c| c.proposed(Err(refused()), None), "failing"),
            ("accepted", |c| c.committed(Ok(record(c))), "committed"),
            ("accepted", |c| c.committed(Err("stale".into())), "failing"),
            ("accepted", |c| c.new_record(CompactReport::default()).map(|_| ()), "accepted"),
            ("committed", Compaction::stored, "over"),
            ("failing", Compaction::failure_logged, "over"),
        ];
        for (from, take, to) in rows {
            for state in STATES {
                let mut compaction = at(state);
                let taken = take(&mut compaction);
                let (expected, next) = match state == from {
                    true => (Ok(()), to),
                    false => (Err(compaction.unexpected()), state),
                };
                assert_eq!(
                    (taken, state_of(&compaction).as_str()),
                    (expected, next),
                    "{from} to {to}"
                );
            }
        }
    }

    #[test]
    fn an_interruption_cancels_before_the_commit_and_loses_nothing_after_it() {
        for state in STATES {
            let mut compaction = at(state);
            compaction.interrupted();
            let cancels = ["proposing", "accepted"].contains(&state);
            assert_eq!(state_of(&compaction), if cancels { "failing" } else { state });
            if !cancels {
                continue;
            }
            let Stage::Failing(failure, _) = compaction.stage() else { panic!("{compaction:?}") };
            let spent = if state == "proposing" { Usage::default() } else { Usage::new(9, 4) };
            assert_eq!((failure.error.as_str(), failure.usage), ("cancelled", spent), "{state}");
            assert_eq!(failure.rungs.len(), usize::from(state != "proposing"));
            compaction.failure_logged().unwrap();
            assert!(matches!(compaction.end(), Some(CompactionEvent::Cancelled { .. })));
        }
    }

    #[test]
    fn steps_events_and_record_say_what_happened() {
        let mut compaction = at("accepted");
        assert_eq!(compaction.record(), None);
        assert!(matches!(compaction.stage(), Stage::Accepted(proposal) if proposal.calls == 2));
        let record = compaction.new_record(CompactReport::default()).unwrap();
        assert_eq!(
            (record.id, record.batches.len(), record.usage),
            (CompactionId(3), 1, Usage::new(9, 4))
        );
        assert_eq!((record.rungs.len(), record.strategy.as_str()), (1, "own"));
        compaction.now = Timestamp(8);
        compaction.committed(Ok(record)).unwrap();
        assert!(matches!(compaction.stage(), Stage::Committed));
        compaction.stored().unwrap();
        assert_eq!(
            compaction.record().map(|record| (record.id, record.calls)),
            Some((CompactionId(3), 2))
        );
        let Some(CompactionEvent::Completed { at, rungs, usage, .. }) = compaction.end() else {
            panic!("{compaction:?}")
        };
        assert_eq!((*at, rungs.len(), *usage), (Timestamp(8), 1, Usage::new(9, 4)));
        let CompactionEvent::Started { at, id, .. } = compaction.started() else { panic!() };
        assert_eq!((at, id, compaction.id), (Timestamp(1), CompactionId(3), CompactionId(3)));
        assert!(matches!(compaction.stage(), Stage::Ended(_)));
        assert_eq!(compaction.reason, CompactionReason::default());
    }

    #[test]
    fn words_of_failures_pass_the_redactor() {
        #[derive(Debug)]
        struct Hides;
        impl Redactor for Hides {
            fn redact<'a>(&self, text: &'a str) -> std::borrow::Cow<'a, str> {
                text.replace("hunter2", "[word]").replace("needs a model", "[need]").into()
            }
        }
        let mut failing = at("proposing");
        failing.proposed(Err(refused()), Some(&Hides)).unwrap();
        let Stage::Failing(failure, _) = failing.stage() else { panic!("{failing:?}") };
        assert!(failure.error.ends_with("[word]"), "{}", failure.error);
        assert_eq!(failure.usage, Usage::new(5, 0));
        let mut tried = at("proposing");
        let rungs = proposal().rungs;
        let error = CompactionError::new(StrategyError::NoRung { rungs });
        tried.proposed(Err(error), Some(&Hides)).unwrap();
        let Stage::Failing(failure, _) = tried.stage() else { panic!("{tried:?}") };
        assert!(failure.rungs[0].failure.as_ref().is_some_and(|words| words.contains("[need]")));
        tried.failure_logged().unwrap();
        assert!(matches!(tried.end(), Some(CompactionEvent::Failed { at: Timestamp(1), .. })));
    }
}
