//! Runs a course under a policy: every request is sent after the compactions that the policy
//! demands.

use std::sync::Arc;

use futures::executor::block_on;
use threadfold::{
    CompactionStrategy, ContextWindow, Message, TokenCounter,
    auto::{AutoCompactor, Input, Output, Pressure, Threshold},
    compact::Prices,
    drive::{self, Conversation, Models},
    log::{Event, EventLog},
    message::{CompactionReason, Delta, InvalidValue, Timestamp},
    retention::{FactClass, KeptShare, Retention, RetentionPolicy},
    store::Journal,
    strategy::Brief,
    tokens::ByteEstimate,
};

use super::{
    course::{Course, Step},
    policy::{Policy, strategy},
    provider::Provider,
};

/// The result of a course.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) billed: threadfold::Usage,
    pub(crate) money: i64,
    pub(crate) compactions: u64,
    /// The weights of all facts and of the kept ones, summed over the measurements.
    pub(crate) facts: Kept,
    /// The same for the user's demands, and for paths.
    pub(crate) paths: Kept,
    /// What the trigger's compactions left of the thread, each with the index of the next request.
    pub(crate) left: Vec<(usize, Left)>,
    /// Whether a request was larger than the window.
    pub(crate) is_too_long: bool,
}

/// What a compaction leaves of a thread, in tokens.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Left {
    pub(crate) tokens: u64,
    /// The tokens of these before the first edit.
    pub(crate) kept: u64,
}

/// The total weight and the kept weight.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Kept {
    pub(crate) weight: u64,
    pub(crate) kept: u64,
}

/// A thread during a course.
struct Replay<'a> {
    policy: &'a Policy,
    prices: Prices,
    course: &'a Course,
    journal: Journal,
    auto: AutoCompactor,
    outcome: Outcome,
}

/// Sends the requests of a course under a policy, and returns the cost and the kept facts.
///
/// # Errors
///
/// A text, if the library refuses a legal course.
pub(crate) fn replay(course: &Course, policy: &Policy, prices: Prices) -> Result<Outcome, String> {
    let mut replay = Replay::new(course, policy, prices)?;
    let mut provider = Provider::new(prices, course.overhead());
    for (index, step) in course.steps.iter().enumerate() {
        for message in &step.incoming {
            replay.append(step.at, message)?;
        }
        replay.make_room(index, step)?;
        provider.ask(step.at, replay.journal.thread().messages(), step.output());
        replay.outcome.is_too_long |= replay.pressure().tokens() > course.window;
        replay.append(step.at, &step.answer)?;
        if let Some(facts) = &step.facts {
            replay.outcome.measure(&facts.audit(replay.journal.thread().messages()));
        }
    }
    Ok(Outcome { billed: provider.billed, money: provider.money, ..replay.outcome })
}

/// Returns the tokens that the strategy leaves of the thread before each request, if it compacts
/// before every one.
///
/// # Errors
///
/// As [`replay`].
pub(crate) fn sizes(course: &Course, policy: &Policy, prices: Prices) -> Result<Vec<u64>, String> {
    let mut replay = Replay::new(course, policy, prices)?;
    let target = replay.auto.policy().target;
    let mut sizes = Vec::new();
    for step in &course.steps {
        for message in &step.incoming {
            replay.append(step.at, message)?;
        }
        let Threshold::Fraction(share) = target else { return Err("a share is wanted".to_owned()) };
        let target = (course.window as f64 * share) as u64;
        // Often there is too little to remove, and the thread stays as it is.
        let _ = replay.compact(&strategy(), replay.brief(step, Some(target)));
        sizes.push(replay.journal.thread().size().tokens);
        replay.append(step.at, &step.answer)?;
    }
    Ok(sizes)
}

impl<'a> Replay<'a> {
    fn new(course: &'a Course, policy: &'a Policy, prices: Prices) -> Result<Self, String> {
        let id = "cost".parse().map_err(|error: InvalidValue| error.to_string())?;
        Ok(Self {
            policy,
            prices,
            course,
            journal: Journal::new(EventLog::new(id)),
            auto: AutoCompactor::new(policy.auto).map_err(|error| error.to_string())?,
            outcome: Outcome::default(),
        })
    }

    /// Returns the brief of an automatic compaction.
    fn brief(&self, step: &Step, target: Option<u64>) -> Brief {
        // List as many facts as there is room for, under every policy.
        let retention = Some(RetentionPolicy { wanted: 100, ..RetentionPolicy::default() });
        let reason = CompactionReason::Threshold;
        Brief { reason, target, retention, now: step.at, ..Brief::default() }
    }

    fn append(&mut self, at: Timestamp, message: &Message) -> Result<(), String> {
        let event = Event::MessageAppended(message.clone());
        self.journal.append(at, event).map_err(|error| error.to_string())?;
        Ok(())
    }

    /// Runs the habit of the policy, and then the automatic compactions that are due.
    fn make_room(&mut self, index: usize, step: &Step) -> Result<(), String> {
        let is_typed = step.incoming.iter().any(Message::is_typed);
        if let Some(habit) = &self.policy.habit
            && (habit.each_request || is_typed)
        {
            let strategy = Arc::clone(&habit.strategy);
            // Often there is nothing to compact.
            let _ = self.compact(strategy.as_ref(), Brief { now: step.at, ..Brief::default() });
        }
        loop {
            let output = self.auto.handle(step.at, Input::BeforeContinue(self.pressure()));
            let Some(Output::Compact { reason, target, .. }) = output else { return Ok(()) };
            let before = self.journal.thread().messages().clone();
            let done = self.compact(&strategy(), self.brief(step, target));
            if done {
                self.outcome.left.push((index, self.left(&before)));
            }
            let input = if done { Input::Compacted { reason } } else { Input::Failed { reason } };
            self.auto.handle(step.at, input);
        }
    }

    /// Returns how much of these messages is left.
    fn left(&self, before: &[Message]) -> Left {
        let after = self.journal.thread().messages();
        let same = before.iter().zip(after.iter()).take_while(|(one, other)| one == other).count();
        let kept = ByteEstimate::TRIGGER.messages(after.get(..same).unwrap_or_default());
        Left { tokens: self.journal.thread().size().tokens, kept }
    }

    /// Compacts the thread, and returns whether it succeeded.
    fn compact(&mut self, strategy: &dyn CompactionStrategy, brief: Brief) -> bool {
        let mut conversation = Conversation::new(&mut self.journal)
            .with_window(Some(ContextWindow::new(self.course.window)))
            .with_prices(Some(self.prices));
        let models = Models::default();
        let watch = &mut |_: &threadfold::strategy::ModelCall, _: Option<&Delta>| {};
        let done = drive::compact(&mut conversation, strategy, &brief, models, watch);
        let is_done = block_on(done).is_ok();
        self.outcome.compactions += u64::from(is_done);
        is_done
    }

    fn pressure(&self) -> Pressure {
        let thread = self.journal.thread();
        let typed = thread.messages().iter().rev().find(|message| message.is_typed());
        Pressure {
            window: Some(ContextWindow::new(self.course.window)),
            thread: thread.size().tokens,
            overhead: self.course.overhead(),
            newest: typed.map_or(0, |message| ByteEstimate::TRIGGER.message(message)),
            ..Pressure::default()
        }
    }
}

impl Outcome {
    fn measure(&mut self, retention: &Retention) {
        self.facts.add(retention.overall);
        self.paths.add(retention.of(FactClass::Path));
    }
}

impl Kept {
    fn add(&mut self, recall: KeptShare) {
        self.weight += recall.weight;
        self.kept += recall.kept_weight;
    }
}
