//! Compactions of a session: when, and how they are told.

use std::{pin::pin, sync::Arc};

use futures::{
    FutureExt, StreamExt,
    channel::mpsc,
    future::{self, BoxFuture, Either},
};

use super::{
    error::SessionError,
    event::{CompactionEvent, SessionEvent, notice_line},
    events::Emit,
    session::{Begun, Session},
};
use crate::{
    auto::{Input, Output, Pressure},
    drive::{
        self, CompactionError, CompactionSpan, Conversation, Done, DriveError, DriveEvent, Driven,
        Models, logged_snapshot,
    },
    log::{CompactionFailure, ContextCount, Event},
    message::{
        CompactionId, CompactionReason, ContentBlock, Delta, Message, Text, Timestamp, Turn,
    },
    model::AgentModel,
    strategy::{Attempt, Brief, Snapshot, Step},
};

/// What is left of a long tool result at least, when nothing else helps.
const TRIMMED_TOKENS: u64 = 120;

/// Where a request is about to go out.
#[derive(Clone, Copy)]
pub(super) enum Before<'a> {
    /// A prompt is appended first.
    Prompt(&'a Message),
    /// The agent goes on with what is there.
    Continuing,
}

/// What happens during a compaction, without its frame.
enum Piece {
    Progress { done: usize, total: usize },
    Summary(Text),
}

impl Session {
    /// The tokens that the next request would have: what the provider counted last and an estimate
    /// of what came since, or an estimate of all.
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use std::sync::Arc;
    /// use threadfold::{Message, ModelAgent, Session, Turn, Usage, message::StopReason};
    /// use threadfold::testing::ScriptedModel;
    ///
    /// let answer = Message::assistant("Hello!");
    /// let turn = Turn::new(answer, StopReason::EndTurn, Some(Usage::new(900, 100)));
    /// let agent = ModelAgent::new(Arc::new(ScriptedModel::new([turn])));
    /// let mut session = Session::builder(agent).system("Be brief.").build()?;
    /// assert_eq!(session.context_tokens(), 7, "nobody counted yet");
    /// block_on(async { session.send("Hi.").await })?;
    /// assert_eq!(session.context_tokens(), 1_000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn context_tokens(&self) -> u64 {
        self.pressure(0).tokens()
    }

    /// Learns how the provider counts, from what it said of the request that it just answered.
    pub(super) fn learn(&mut self, turn: &Turn) {
        let Some(usage) = turn.usage else { return };
        let estimated = self.agent.thread().size().tokens.saturating_add(self.overhead());
        // What cannot be of this request teaches nothing.
        let _ = self.ratio.learn(estimated, usage.input);
    }

    /// How full the context is, with so many tokens to come, by the count of the provider.
    pub(super) fn pressure(&self, pending: u64) -> Pressure {
        let thread = self.agent.thread();
        let usage = thread.context_usage();
        let reported = match usage.counted {
            ContextCount::Reported(tokens) => Some(tokens),
            ContextCount::Estimated(_) | ContextCount::Unknown => None,
        };
        Pressure {
            window: self.agent.context_window(),
            reported,
            since: usage.pending,
            thread: thread.size().tokens,
            overhead: self.overhead(),
            pending,
            newest: self.newest(),
        }
        .calibrated(&self.ratio)
    }

    /// Estimated tokens at the end of the thread that no compaction can take: what was typed last,
    /// or a call and its results, of which the first lines stay where it has to be.
    fn newest(&self) -> u64 {
        let thread = self.agent.thread();
        let counter = thread.counter();
        let mut tokens = 0_u64;
        for (place, message) in thread.messages().iter().enumerate().rev() {
            let whole = thread.tokens_of(place);
            // Results stand behind their calls, which stay with them.
            if message.tool_results().next().is_none() {
                return tokens.saturating_add(whole);
            }
            let results = message.content.iter().filter(|block| is_result(block));
            let goes = results.map(|result| counter.block(result).saturating_sub(TRIMMED_TOKENS));
            let least = whole.saturating_sub(goes.fold(0, u64::saturating_add));
            tokens = tokens.saturating_add(least);
        }
        tokens
    }

    /// Does what has to be done before a request goes out: compacts ahead of need, compacts what
    /// the window cannot hold, or refuses it. Returns the time behind that.
    pub(super) async fn guard(
        &mut self,
        before: Before<'_>,
        mut now: Timestamp,
        emit: &mut Emit,
    ) -> Result<Timestamp, SessionError> {
        let mut tried = None;
        loop {
            let next = match before {
                Before::Prompt(prompt) => Some(prompt),
                Before::Continuing => None,
            };
            let counter = self.agent.thread().counter();
            let pending = next.map_or(0, |prompt| counter.message(prompt));
            let pressure = self.pressure(pending);
            let input = match before {
                // Everything before the prompt may go.
                Before::Prompt(_) => Input::BeforeSend(Pressure { newest: 0, ..pressure }),
                Before::Continuing => Input::BeforeContinue(pressure),
            };
            match self.auto.handle(now, input) {
                None => return Ok(now),
                Some(Output::Notify(notice)) => {
                    emit.event(SessionEvent::Notice { text: notice_line(&notice).into() }).await;
                    return Ok(self.clock.now());
                }
                Some(Output::CannotFit { floor, tokens, limit }) => {
                    return Err(SessionError::CannotFit { floor, tokens, limit, tried });
                }
                Some(Output::Compact { reason, target }) => {
                    let needed = reason != CompactionReason::Threshold;
                    let done = self.compact_for(reason, target, next.cloned(), emit).await?;
                    now = self.clock.now();
                    tried = done.err().map(|error| error.to_string().into());
                    if !needed {
                        return Ok(now);
                    }
                }
            }
        }
    }

    /// Compacts once, with all of its events, and tells the machine how it went. The outer result
    /// is that of the session, the inner one that of the compaction.
    ///
    /// On the heap by itself, because every turn would carry the room for it along.
    pub(super) fn compact_for<'a>(
        &'a mut self,
        reason: CompactionReason,
        target: Option<u64>,
        next_prompt: Option<Message>,
        emit: &'a mut Emit,
    ) -> BoxFuture<'a, Result<Result<Done, CompactionError>, SessionError>> {
        // Strategies go by the thread's own counter.
        let target = target.map(|target| self.ratio.scale_down(target));
        self.carry_out(reason, target, next_prompt, emit).boxed()
    }

    async fn carry_out(
        &mut self,
        reason: CompactionReason,
        target: Option<u64>,
        next_prompt: Option<Message>,
        emit: &mut Emit,
    ) -> Result<Result<Done, CompactionError>, SessionError> {
        let id = self.next_compaction();
        let now = self.clock.now();
        let retention = self.retention.clone();
        let brief = Brief { compaction: Some(id), reason, next_prompt, target, retention, now };
        let snapshot = self.snapshot_for(&brief);
        let mut attempt = self.strategy.begin(&snapshot, &self.told(&brief));
        if let Step::Failed(error) = attempt.step()
            && error.is_nothing_to_compact()
        {
            // What does nothing is no compaction: it has no number, no events, and is not logged.
            let error = DriveError::new(error.clone());
            let notice = self.auto.handle(now, Input::Failed { reason: brief.reason });
            tell(notice, emit).await;
            return Ok(Err(error.into()));
        }
        let strategy: Text = self.strategy.name().into();
        let span = CompactionSpan::begin(self.agent.thread(), self.thread_id(), &strategy, &brief);
        let begun = self.begin_compaction(id, &brief, strategy, emit).await;
        let outcome = span.run(self.drive(attempt.as_mut(), id, emit)).await;
        let outcome = outcome.and_then(|driven| driven.accepted(&snapshot, &brief));
        let mut conversation = self.conversation();
        let finish = conversation.finish_in(&span, &begun.strategy, &brief, outcome);
        let done = span.run(finish).await;
        drop(span);
        let words = done.as_ref().err().map(ToString::to_string).unwrap_or_default();
        self.end_compaction(begun, words, emit).await;
        match done {
            // What was done is done; that it could not be stored is the session's trouble.
            Err(CompactionError::Store(error)) => Err(error.into()),
            done => Ok(done),
        }
    }

    /// Tells how a compaction ended, as the log has it: a store that failed behind the commit does
    /// not undo it. The end is kept until it was told.
    pub(super) async fn end_compaction(&mut self, begun: Begun, words: String, emit: &mut Emit) {
        let (id, thread, at) = (begun.id, self.thread_id().clone(), self.clock.now());
        let (event, input) = match self.journal.log().compaction(id) {
            Some(record) => {
                let (report, usage) = (record.report.clone(), record.usage);
                let mut rungs = record.rungs.clone();
                for failure in rungs.iter_mut().filter_map(|rung| rung.failure.as_mut()) {
                    *failure = self.line(failure.to_string());
                }
                let event = CompactionEvent::Completed { id, thread, at, report, usage, rungs };
                (event, Input::Compacted { reason: begun.reason.clone() })
            }
            None => {
                let event = CompactionEvent::Failed { id, thread, at, error: self.line(words) };
                (event, Input::Failed { reason: begun.reason.clone() })
            }
        };
        let notice = self.auto.handle(at, input);
        self.tell_end(begun, event, emit).await;
        tell(notice, emit).await;
    }

    async fn tell_end(&mut self, begun: Begun, event: CompactionEvent, emit: &mut Emit) {
        self.begun = Some(Begun { end: Some(event.clone()), ..begun });
        emit.event(SessionEvent::Compaction(event)).await;
        self.begun = None;
    }

    pub(super) async fn begin_compaction(
        &mut self,
        id: CompactionId,
        brief: &Brief,
        strategy: Text,
        emit: &mut Emit,
    ) -> Begun {
        let reason = brief.reason.clone();
        let begun = Begun { id, reason: reason.clone(), strategy: strategy.clone(), end: None };
        self.begun = Some(begun.clone());
        let (thread, at) = (self.thread_id().clone(), brief.now);
        let started = CompactionEvent::Started { id, thread, at, reason, strategy };
        emit.event(SessionEvent::Compaction(started)).await;
        begun
    }

    /// Drives an attempt and tells what happens meanwhile.
    async fn drive(
        &self,
        attempt: &mut dyn Attempt,
        id: CompactionId,
        emit: &mut Emit,
    ) -> Result<Driven, DriveError> {
        let conversation = AgentModel(self.agent.as_ref());
        let models = Models {
            conversation: Some(&conversation),
            fast: self.fast.as_deref(),
            sleeper: Some(self.sleeper.as_ref()),
        };
        let (sender, mut pieces) = mpsc::unbounded();
        let mut observe = move |event: DriveEvent<'_>| {
            // The receiver lives as long as this does.
            let _ = piece(event).map(|piece| sender.unbounded_send(piece));
        };
        let mut driving = pin!(drive::drive(attempt, models, &mut observe).fuse());
        let outcome = loop {
            // What was told is passed on before the work goes on.
            let told = match future::select(pieces.next(), &mut driving).await {
                Either::Left((told, _)) => told,
                Either::Right((outcome, _)) => break outcome,
            };
            if let Some(piece) = told {
                emit.event(SessionEvent::Compaction(piece.event(id))).await;
            }
        };
        while let Ok(piece) = pieces.try_recv() {
            emit.event(SessionEvent::Compaction(piece.event(id))).await;
        }
        outcome
    }

    /// What a compaction changes, together.
    pub(super) fn conversation(&mut self) -> Conversation<'_> {
        let conversation = Conversation::new(self.agent.as_mut(), &mut self.journal);
        match &self.archive {
            Some(archive) => conversation.with_archive(archive.as_ref()),
            None => conversation,
        }
    }

    /// What a strategy sees of the session now.
    pub(super) fn snapshot(&self) -> Snapshot {
        let snapshot = logged_snapshot(self.agent.thread(), self.journal.log())
            .with_context(self.system_prompt(), self.specs.clone())
            .with_rules(Arc::new(self.rules().clone()))
            .with_window(self.auto.window(self.agent.context_window()));
        match &self.redactor {
            Some(redactor) => snapshot.redacted(redactor.as_ref()),
            None => snapshot,
        }
    }

    /// The snapshot, with the facts of everything that was said if the brief asks for retention.
    pub(super) fn snapshot_for(&mut self, brief: &Brief) -> Snapshot {
        self.read_rules();
        let snapshot = self.snapshot();
        let Some(policy) = &brief.retention else { return snapshot };
        let (log, redactor) = (self.journal.log(), self.redactor.as_deref());
        snapshot.with_facts(self.facts.of(log, &policy.audit, redactor))
    }

    /// What a strategy is told beside it.
    pub(super) fn told(&self, brief: &Brief) -> Brief {
        self.redactor.as_deref().map_or(brief.clone(), |redactor| brief.redacted(redactor))
    }

    /// A line that may be shown anywhere.
    pub(super) fn line(&self, line: String) -> Text {
        match &self.redactor {
            Some(redactor) => redactor.redact(&line).into_owned().into(),
            None => line.into(),
        }
    }

    /// Tells the end of a compaction whose stream was dropped before it did, and notes it.
    pub(super) async fn end_begun(&mut self, emit: &mut Emit) -> Result<(), SessionError> {
        let Some(begun) = self.begun.clone() else { return Ok(()) };
        let (id, last) = (begun.id, self.shared.told());
        if last == Some((id, true)) {
            // It was told, and the stream dropped right behind.
            self.begun = None;
            return Ok(());
        }
        if let Some(event) = begun.end.clone() {
            self.tell_end(begun, event, emit).await;
            return Ok(());
        }
        let (reason, strategy) = (begun.reason.clone(), begun.strategy.clone());
        if last != Some((id, false)) {
            // Nobody heard of its beginning, so nobody waits for its end.
            self.begun = None;
            let _ = self.auto.handle(self.clock.now(), Input::Failed { reason });
            return Ok(());
        }
        if self.journal.log().is_ended(id) {
            // It came to its end in the log before the stream was dropped.
            self.end_compaction(begun, "it came to nothing".into(), emit).await;
            return Ok(());
        }
        let (thread, at) = (self.thread_id().clone(), self.clock.now());
        let failure = CompactionFailure::new(id, reason.clone(), strategy, "cancelled");
        self.journal.append(at, Event::CompactionFailed(Box::new(failure)))?;
        let notice = self.auto.handle(at, Input::Failed { reason });
        self.tell_end(begun, CompactionEvent::Cancelled { id, thread, at }, emit).await;
        tell(notice, emit).await;
        Ok(())
    }
}

impl Piece {
    fn event(self, id: CompactionId) -> CompactionEvent {
        match self {
            Self::Progress { done, total } => CompactionEvent::Progress { id, done, total },
            Self::Summary(text) => CompactionEvent::SummaryDelta { id, text },
        }
    }
}

fn piece(event: DriveEvent<'_>) -> Option<Piece> {
    match event {
        DriveEvent::Called { progress, .. } => {
            Some(Piece::Progress { done: progress.done, total: progress.total })
        }
        DriveEvent::Delta(Delta::Text { text }) => Some(Piece::Summary(text.clone())),
        DriveEvent::Delta(
            Delta::Thinking { .. }
            | Delta::ToolUse { .. }
            | Delta::ToolInput { .. }
            | Delta::Turn { .. },
        ) => None,
    }
}

fn is_result(block: &ContentBlock) -> bool {
    matches!(block, ContentBlock::ToolResult(_))
}

/// Passes on what the machine wants told.
pub(super) async fn tell(output: Option<Output>, emit: &mut Emit) {
    if let Some(Output::Notify(notice)) = output {
        emit.event(SessionEvent::Notice { text: notice_line(&notice).into() }).await;
    }
}
