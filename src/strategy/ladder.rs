//! `ladder`: tries strategies in order until one is accepted.
//!
//! A rung that fails, or whose plan the acceptance check rejects, costs only its model calls; the
//! next one begins on the same thread. The proposal, or the error if every rung failed, lists each
//! rung with its failure and its usage. If no rung meets the target, the ladder proposes the
//! smallest otherwise acceptable plan, and the rung that made it keeps its failure. The caller
//! decides whether that plan fits ([`Snapshot::settle_within`]).

use std::{ops::ControlFlow, sync::Arc};

use async_trait::async_trait;

use super::{
    ask::Ask,
    chunked::Chunked,
    contract::CompactionStrategy,
    digest::Digest,
    error::{Result, StrategyError},
    guard,
    native::Native,
    proposal::Proposal,
    rejection::Rejection,
    summarize::Summarize,
    view::View,
};
use crate::log::Rung;

/// Tries strategies in order until one is accepted.
///
/// If none meets the target of the brief, it proposes the smallest plan that is otherwise
/// acceptable, and every rung has a failure.
///
/// ```
/// use std::sync::Arc;
/// use threadfold::{Message, strategy::*};
///
/// let thread = Snapshot::new(vec![
///     Message::user("An old question."),
///     Message::assistant("An old answer."),
///     Message::user("A new question."),
/// ]);
/// // The first rung finds nothing to remove, the second does.
/// let patient = KeepRecent { messages: 9, ..KeepRecent::default() };
/// let strict = KeepRecent { messages: 1, ..KeepRecent::default() };
/// let ladder = Ladder::new([Arc::new(patient) as Arc<dyn CompactionStrategy>, Arc::new(strict)]);
/// let proposal = without_model(&ladder, &View::new(thread, Brief::default()))?;
/// assert_eq!(proposal.rungs.len(), 2);
/// # Ok::<(), StrategyError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Ladder {
    pub(super) rungs: Vec<Arc<dyn CompactionStrategy>>,
    pub(super) too_long: Option<Arc<dyn CompactionStrategy>>,
    /// The first rung if the provider binds reasoning.
    pub(super) bound: Option<Arc<dyn CompactionStrategy>>,
}

impl Ladder {
    /// Returns a ladder that tries these rungs in order. A ladder without rungs fails.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use threadfold::{Message, strategy::*};
    ///
    /// let rungs: [Arc<dyn CompactionStrategy>; 2] = [
    ///     Arc::new(Summarize::default()),
    ///     Arc::new(KeepRecent { messages: 1, ..KeepRecent::default() }),
    /// ];
    /// let (asked, answer) = (Message::user("Where is the parser?"), Message::assistant("There."));
    /// let thread = Snapshot::new(vec![asked, answer, Message::user("How long is it?")]);
    /// // The last rung needs no model.
    /// let proposal = without_model(&Ladder::new(rungs), &View::new(thread, Brief::default()))?;
    /// let names: Vec<&str> = proposal.rungs.iter().map(|rung| rung.strategy.as_str()).collect();
    /// assert_eq!(names, ["summarize", "keep-recent"]);
    /// # Ok::<(), StrategyError>(())
    /// ```
    pub fn new(rungs: impl IntoIterator<Item = Arc<dyn CompactionStrategy>>) -> Self {
        Self { rungs: rungs.into_iter().collect(), too_long: None, bound: None }
    }

    /// Returns the default ladder with these options of its summary.
    ///
    /// ```
    /// use threadfold::strategy::{CompactionStrategy, Ladder, Summarize};
    ///
    /// let ladder = Ladder::of(Summarize { as_text: true, ..Summarize::default() });
    /// assert_eq!(ladder.name(), "ladder");
    /// ```
    pub fn of(summarize: Summarize) -> Self {
        let rungs: [Arc<dyn CompactionStrategy>; 2] =
            [Arc::new(summarize), Arc::new(Digest::default())];
        let ladder = Self::new(rungs).with_too_long(Arc::new(Chunked::default()));
        Self { bound: Some(Arc::new(Native::default())), ..ladder }
    }

    /// Returns the ladder with a strategy that is tried once, after the first rung whose request
    /// exceeds the model's window.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use futures::executor::block_on;
    /// use threadfold::{ContextWindow, Message, message::*, strategy::*};
    ///
    /// let rungs: [Arc<dyn CompactionStrategy>; 1] =
    ///     [Arc::new(Summarize { messages: 1, user_messages: 0, ..Summarize::default() })];
    /// let ladder = Ladder::new(rungs).with_too_long(Arc::new(Chunked::default()));
    /// let long = Message::assistant("A long story. ".repeat(4_000));
    /// let thread = vec![Message::user("Tell me."), long, Message::user("And then?")];
    /// let thread = Snapshot::new(thread).with_window(Some(ContextWindow::new(16_000)));
    /// let mut total = 0;
    /// let mut model = |call: &ModelCall| {
    ///     total = call.total;
    ///     Err(ModelError::new(ModelErrorKind::Authentication, "no key"))
    /// };
    /// let view = View::new(thread, Brief::default());
    /// assert!(block_on(ladder.propose(&view, &mut Ask::new(&mut model))).is_err());
    /// // It asked about the first of several chunks.
    /// assert!(total > 1);
    /// ```
    pub fn with_too_long(self, strategy: Arc<dyn CompactionStrategy>) -> Self {
        Self { too_long: Some(strategy), ..self }
    }
}

impl Default for Ladder {
    /// [`Summarize`], then [`Digest`], which needs no model and fills the target. If the provider
    /// [binds reasoning](field@super::Brief::binds_reasoning), [`Native`] is the first rung: it alone
    /// keeps the reasoning of the messages that stay. If the request of a rung exceeds the model's
    /// window, [`Chunked`] is tried next.
    fn default() -> Self {
        Self::of(Summarize::default())
    }
}

#[async_trait]
impl CompactionStrategy for Ladder {
    fn name(&self) -> &str {
        "ladder"
    }

    async fn propose(&self, view: &View, ask: &mut Ask<'_>) -> Result<Proposal> {
        let bound = self.bound.as_ref().filter(|_| view.brief.binds_reasoning);
        let mut climb = Climb {
            view,
            untried: self.rungs.iter().rev().chain(bound).cloned().collect(),
            too_long: self.too_long.clone(),
            tried: Vec::new(),
            best: None,
            smallest: None,
        };
        while let Some(strategy) = climb.untried.pop() {
            let seen = view.quoting(ask.quotes());
            let (rung, outcome) = guard::run(strategy.as_ref(), &seen, ask).await;
            if let ControlFlow::Break(end) = climb.after(rung, outcome) {
                return end;
            }
        }
        climb.ended()
    }
}

/// The state of a ladder that tries its rungs.
#[derive(Debug)]
struct Climb<'a> {
    view: &'a View,
    /// Untried rungs, the next one last.
    untried: Vec<Arc<dyn CompactionStrategy>>,
    too_long: Option<Arc<dyn CompactionStrategy>>,
    tried: Vec<Rung<StrategyError>>,
    /// Of the proposals that keep too few facts, the one that keeps most, and the index of its
    /// rung.
    best: Option<(Proposal, usize)>,
    /// The smallest proposal that misses only the target, with its tokens.
    smallest: Option<(Proposal, u64)>,
}

/// Whether the ladder continues with its next rung, or how it ends.
type Next = ControlFlow<Result<Proposal>>;

impl Climb<'_> {
    /// Takes the outcome of the strategy in `rung`.
    fn after(&mut self, rung: Rung<StrategyError>, outcome: Result<Proposal>) -> Next {
        let proposal = match outcome {
            Ok(proposal) => proposal,
            Err(error) => return self.failed(rung, error),
        };
        let settled = match self.view.thread.settle(proposal.clone(), &self.view.brief) {
            Ok(settled) => settled,
            Err(rejection) => return self.rejected(rung, proposal, rejection),
        };
        let failure = settled.shortfall.clone().map(StrategyError::KeepsTooLittle);
        let is_enough = failure.is_none();
        let index = self.record_rungs(rung, &settled.rungs, failure);
        if is_enough {
            return ControlFlow::Break(Ok(self.end(settled, index)));
        }
        let weight = kept_weight(&settled);
        if self.best.as_ref().is_none_or(|(best, _)| kept_weight(best) < weight) {
            self.best = Some((settled, index));
        }
        ControlFlow::Continue(())
    }

    /// Handles a rung whose proposal is rejected. If it misses only the target, it may be the
    /// smallest proposal. It then gets no addendum yet, because only the caller knows how many
    /// tokens fit.
    fn rejected(
        &mut self,
        rung: Rung<StrategyError>,
        proposal: Proposal,
        rejection: Rejection,
    ) -> Next {
        let Rejection::OverTarget { after, .. } = rejection else {
            return self.failed(rung, rejection.into());
        };
        let View { thread, brief } = self.view;
        let without_limit = None;
        if let Err(rejection) = thread.settle_within(proposal.clone(), brief, without_limit) {
            return self.failed(rung, rejection.into());
        }
        self.record_rungs(rung, &proposal.rungs, Some(rejection.into()));
        if self.smallest.as_ref().is_none_or(|(_, least)| after < *least) {
            self.smallest = Some((proposal, after));
        }
        ControlFlow::Continue(())
    }

    /// Handles a rung that failed, or whose plan is not acceptable at any size.
    fn failed(&mut self, rung: Rung<StrategyError>, error: StrategyError) -> Next {
        if self.is_already_compacted(&error) {
            return ControlFlow::Break(Err(error));
        }
        if error.is_too_long() {
            self.untried.extend(self.too_long.take());
        }
        self.tried.push(Rung { failure: Some(error), ..rung });
        ControlFlow::Continue(())
    }

    /// Records a rung that proposed a plan and returns the index of the rung that made it. A nested
    /// ladder reports its own rungs, with their failures and usage.
    fn record_rungs(
        &mut self,
        rung: Rung<StrategyError>,
        nested: &[Rung<StrategyError>],
        failure: Option<StrategyError>,
    ) -> usize {
        let first = self.tried.len();
        self.tried.extend(if nested.is_empty() { vec![rung] } else { nested.to_vec() });
        // If all nested rungs failed, the nested ladder itself reported the missed target.
        let mut added = self.tried.iter_mut().enumerate().skip(first);
        let Some((index, rung)) = added.find(|(_, rung)| rung.failure.is_none()) else {
            return first;
        };
        rung.failure = failure;
        index
    }

    /// Returns this proposal, made by the rung at this index, with all rungs.
    fn end(&mut self, proposal: Proposal, rung: usize) -> Proposal {
        let mut rungs = std::mem::take(&mut self.tried);
        if let Some(rung) = rungs.get_mut(rung) {
            rung.failure = None;
        }
        Proposal { rungs, ..proposal }
    }

    /// Whether a rung found nothing to remove in a thread that was compacted before and is within
    /// its target. Later rungs would remove what the last compaction chose to keep.
    fn is_already_compacted(&self, error: &StrategyError) -> bool {
        matches!(error, StrategyError::NothingToCompact { .. })
            && self.tried.is_empty()
            && self.view.missed_target().is_none()
            && self.view.thread.messages().iter().any(|message| message.is_summary())
    }

    /// Proposes the plan that keeps most, else the smallest plan over the target, else fails.
    fn ended(mut self) -> Result<Proposal> {
        if let Some((proposal, rung)) = self.best.take() {
            return Ok(self.end(proposal, rung));
        }
        let rungs = self.tried;
        match self.smallest {
            Some((proposal, _)) => Ok(Proposal { rungs, ..proposal }),
            None => Err(StrategyError::NoRung { rungs }),
        }
    }
}

/// The weight of kept facts.
fn kept_weight(proposal: &Proposal) -> u64 {
    proposal.retention.as_ref().map_or(0, |retention| retention.overall.kept_weight)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        compact::{Insert, Plan, Splice, TrimToolResults},
        message::{
            Answer, ContextWindow, Message, ModelError, ModelErrorKind, Role, StopReason, Summary,
            Text, Usage,
        },
        retention::RetentionPolicy,
        strategy::{Brief, KeepRecent, ModelCall, Snapshot},
        testing::{Scripted, answers, asked},
    };

    /// What a ladder proposes with these answers.
    fn proposed(
        ladder: &Ladder,
        thread: Snapshot,
        brief: &Brief,
        script: impl IntoIterator<Item = Scripted>,
    ) -> Result<Proposal> {
        asked(ladder, &View::new(thread, brief.clone()), answers(script)).1
    }

    const NONE: [Scripted; 0] = [];

    fn blank() -> Scripted {
        let usage = Some(Usage::new(90, 1));
        Scripted::Answer(Answer::new(Message::assistant(" "), StopReason::EndTurn, usage))
    }

    fn thread() -> Snapshot {
        let turn = |number: usize| {
            [
                Message::user(format!("question {number} about a thing of some length")),
                Message::assistant(format!(
                    "answer {number} that goes into quite some detail, and then some more"
                )),
            ]
        };
        Snapshot::new((0..8).flat_map(turn).collect::<Vec<_>>())
    }

    /// A thread that exceeds the window, though a chunk of it fits.
    fn too_long() -> Snapshot {
        let messages =
            |number: usize| Message::assistant(format!("{number} {}", "words ".repeat(2_000)));
        let window = Some(ContextWindow::new(40_000));
        Snapshot::new((0..40).map(messages).collect::<Vec<_>>()).with_window(window)
    }

    fn two() -> Ladder {
        let keep = KeepRecent { messages: 4, ..KeepRecent::default() };
        Ladder::new([Arc::new(Summarize::default()) as Arc<dyn CompactionStrategy>, Arc::new(keep)])
    }

    fn names(rungs: &[Rung<StrategyError>]) -> Vec<(&str, bool)> {
        rungs.iter().map(|rung| (rung.strategy.as_str(), rung.failure.is_none())).collect()
    }

    #[test]
    fn the_next_rung_is_tried_when_one_fails_and_what_it_cost_is_kept() {
        let proposal = proposed(&two(), thread(), &Brief::default(), [blank()]).unwrap();
        assert_eq!(names(&proposal.rungs), [("summarize", false), ("keep-recent", true)]);
        let [failed, done] = proposal.rungs.as_slice() else { panic!("{:?}", proposal.rungs) };
        assert_eq!((failed.usage, failed.calls), (Usage::new(90, 1), 1));
        assert_eq!((done.usage, done.calls), (Usage::default(), 0));
    }

    #[test]
    fn a_plan_that_is_refused_is_not_the_end() {
        let inflated = Scripted::from("word ".repeat(5_000).as_str());
        let proposal = proposed(&two(), thread(), &Brief::default(), [inflated]).unwrap();
        let failure = proposal.rungs[0].failure.as_ref().unwrap();
        assert!(matches!(failure, StrategyError::Rejected(_)), "{failure}");
    }

    #[test]
    fn when_no_rung_does_it_the_error_says_why_each_did_not() {
        let rungs: [Arc<dyn CompactionStrategy>; 2] =
            [Arc::new(Summarize::default()), Arc::new(TrimToolResults::default())];
        let out = Scripted::Error(ModelError::new(ModelErrorKind::Other, "the lamp is out"));
        let ladder = Ladder::new(rungs);
        let error = proposed(&ladder, thread(), &Brief::default(), [out]).unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with("every strategy of the ladder failed: summarize: "), "{text}");
        assert!(text.contains("the lamp is out; trim-tool-results: "), "{text}");
    }

    /// Keeps this many messages of the end after a summary of this text.
    #[derive(Debug)]
    struct Leaves(&'static str, usize, &'static str);

    #[async_trait]
    impl CompactionStrategy for Leaves {
        fn name(&self) -> &str {
            self.0
        }

        async fn propose(&self, view: &View, _: &mut Ask<'_>) -> Result<Proposal> {
            let len = view.thread.messages().len();
            let message = Message::summary(Role::User, Summary::new(self.2));
            let at = 0..len.saturating_sub(self.1);
            let splice = Splice { at, insert: vec![Insert::Message { message }] };
            Ok(Plan::from_splices(len, vec![splice]).into())
        }
    }

    fn of(rungs: Vec<Leaves>) -> Ladder {
        Ladder::new(rungs.into_iter().map(|rung| Arc::new(rung) as Arc<dyn CompactionStrategy>))
    }

    #[test]
    fn where_no_rung_meets_the_target_the_smallest_is_proposed_with_its_failure() {
        let brief = Brief { target: Some(10), ..Brief::default() };
        let rungs =
            || of(vec![Leaves("a", 8, "So."), Leaves("b", 2, "So."), Leaves("c", 6, "So.")]);
        let nested = Ladder::new([Arc::new(rungs()) as Arc<dyn CompactionStrategy>]);
        for ladder in [rungs(), nested] {
            let proposal = proposed(&ladder, thread(), &brief, []).unwrap();
            assert_eq!(proposal.plan.messages_after(), 3);
            assert_eq!(names(&proposal.rungs), [("a", false), ("b", false), ("c", false)]);
            let reason = proposal.rungs[1].failure.as_ref().unwrap().to_string();
            assert!(reason.ends_with("the target is 10"), "{reason}");
            let refused = thread().settle(proposal.clone(), &brief).unwrap_err();
            assert!(matches!(refused, Rejection::OverTarget { .. }));
            assert!(thread().settle_within(proposal.clone(), &brief, Some(200)).is_ok());
        }
    }

    #[test]
    fn what_keeps_too_little_but_meets_the_target_goes_before_what_is_too_large() {
        let keep =
            RetentionPolicy { addendum_tokens: 0, minimum: 100, ..RetentionPolicy::default() };
        let brief = Brief { target: Some(100), retention: Some(keep), ..Brief::default() };
        let ladder = of(vec![Leaves("large", 8, "So."), Leaves("small", 1, "So.")]);
        let mut messages = vec![Message::user("Read src/b.rs.")];
        messages.extend_from_slice(thread().messages());
        messages.push(Message::user("Read src/a.rs."));
        let thread = Snapshot::new(messages);
        let proposal = proposed(&ladder, thread, &brief, []).unwrap();
        assert_eq!(names(&proposal.rungs), [("large", false), ("small", true)]);
    }

    #[test]
    fn of_rungs_that_keep_as_little_the_first_is_proposed() {
        let keep =
            RetentionPolicy { addendum_tokens: 0, minimum: 100, ..RetentionPolicy::default() };
        let brief = Brief { retention: Some(keep), ..Brief::default() };
        let mut messages = vec![Message::user("Read src/b.rs.")];
        messages.extend_from_slice(thread().messages());
        let thread = Snapshot::new(messages);
        let ladder = of(vec![Leaves("first", 2, "So."), Leaves("second", 2, "So.")]);
        let proposal = proposed(&ladder, thread, &brief, []).unwrap();
        assert_eq!(names(&proposal.rungs), [("first", true), ("second", false)]);
    }

    #[test]
    fn a_thread_too_long_for_the_model_is_read_in_pieces_instead() {
        let within = |tokens| thread().with_window(Some(ContextWindow::new(tokens)));
        assert_eq!(first_asked(&Ladder::default(), within(6_000), answers(NONE)).1, 1);
        let (tried, chunks) = first_asked(&Ladder::default(), too_long(), answers(NONE));
        assert_eq!(tried[0], "summarize");
        assert!(chunks > 1, "{chunks}");
    }

    /// The names of the rungs that were tried, and the calls that the first one asks for.
    fn first_asked(
        ladder: &Ladder,
        thread: Snapshot,
        answer: impl FnMut(&ModelCall) -> Result<Answer, ModelError> + Send,
    ) -> (Vec<Text>, usize) {
        let (calls, outcome) = asked(ladder, &View::new(thread, Brief::default()), answer);
        let rungs = match outcome {
            Ok(proposal) => proposal.rungs,
            Err(StrategyError::NoRung { rungs }) => rungs,
            Err(error) => panic!("{error}"),
        };
        (rungs.into_iter().map(|rung| rung.strategy).collect(), calls[0].total)
    }

    #[test]
    fn a_model_that_refuses_the_length_has_it_read_in_pieces_too() {
        let overflow = ModelErrorKind::Overflow { limit: Some(100), found: None, output: None };
        let overflow = Scripted::Error(ModelError::new(overflow, "prompt is too long"));
        let (tried, _) = first_asked(&Ladder::default(), thread(), answers([overflow]));
        assert_eq!(tried[..2], ["summarize", "chunked"]);
    }

    #[test]
    fn a_ladder_on_a_rung_keeps_what_it_tried_and_what_that_cost() {
        let outer = Ladder::new([
            Arc::new(Ladder::new([])) as Arc<dyn CompactionStrategy>,
            Arc::new(two()),
        ]);
        let proposal = proposed(&outer, thread(), &Brief::default(), [blank()]).unwrap();
        let tried = [("ladder", false), ("summarize", false), ("keep-recent", true)];
        assert_eq!(names(&proposal.rungs), tried);
        let usage: Usage = proposal.rungs.iter().map(|rung| rung.usage).sum();
        assert_eq!((usage, proposal.rungs[1].calls), (Usage::new(90, 1), 1));
    }

    #[test]
    fn a_thread_too_long_for_every_rung_of_a_ladder_on_a_rung_is_read_in_pieces() {
        let inner = Ladder::new([Arc::new(Summarize::default()) as Arc<dyn CompactionStrategy>]);
        let outer = Ladder::new([Arc::new(inner) as Arc<dyn CompactionStrategy>])
            .with_too_long(Arc::new(Chunked::default()));
        let (tried, chunks) = first_asked(&outer, too_long(), answers(NONE));
        assert_eq!(tried, ["ladder", "chunked"]);
        assert!(chunks > 1, "{chunks}");
    }

    #[test]
    fn a_ladder_without_rungs_fails() {
        let none = proposed(&Ladder::new([]), thread(), &Brief::default(), []);
        assert!(matches!(none, Err(StrategyError::NoRung { .. })));
    }
}
