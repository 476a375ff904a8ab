//! Runs a course under a policy: every request is sent after the compactions that the policy
//! demands.

use std::sync::Arc;

use futures::executor::block_on;
use threadfold::{
    CompactionStrategy, ContextWindow, Message, TokenCounter,
    auto::{AutoCompactor, IdleStep, Input, Output, Pressure, Threshold},
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
    policy::{Away, Policy, strategy},
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
    provider: Provider,
    /// The tokens of a summary, or zero if no model writes one.
    summary: u64,
    outcome: Outcome,
}

/// Sends the requests of a course under a policy, and returns the cost and the kept facts.
///
/// # Errors
///
/// A text, if the library refuses a legal course.
pub(crate) fn replay(
    course: &Course,
    policy: &Policy,
    prices: Prices,
    summary: u64,
) -> Result<Outcome, String> {
    let mut replay = Replay::new(course, policy, prices, summary)?;
    let mut last = Timestamp(0);
    for (index, step) in course.steps.iter().enumerate() {
        if step.incoming.iter().any(Message::is_typed) && index > 0 {
            replay.wait(index, last, step);
        }
        last = step.at;
        for message in &step.incoming {
            replay.append(step.at, message)?;
        }
        replay.make_room(index, step)?;
        let prompt = replay.journal.thread().messages();
        replay.provider.ask(step.at, prompt, step.output());
        replay.outcome.is_too_long |= replay.pressure().tokens() > course.window;
        replay.append(step.at, &step.answer)?;
        if let Some(facts) = &step.facts {
            replay.outcome.measure(&facts.audit(replay.journal.thread().messages()));
        }
    }
    let Provider { billed, money, .. } = replay.provider;
    Ok(Outcome { billed, money, ..replay.outcome })
}

/// Returns the tokens that the strategy leaves of the thread before each request, if it compacts
/// before every one.
///
/// # Errors
///
/// As [`replay`].
pub(crate) fn sizes(course: &Course, policy: &Policy, prices: Prices) -> Result<Vec<u64>, String> {
    let mut replay = Replay::new(course, policy, prices, 0)?;
    let target = replay.auto.policy().target;
    let mut sizes = Vec::new();
    for step in &course.steps {
        for message in &step.incoming {
            replay.append(step.at, message)?;
        }
        let Threshold::Fraction(share) = target else { return Err("a share is wanted".to_owned()) };
        let target = (course.window as f64 * share) as u64;
        // Often there is too little to remove, and the thread stays as it is.
        let _ = replay.compact(&strategy(), replay.brief(step.at, Some(target)));
        sizes.push(replay.journal.thread().size().tokens);
        replay.append(step.at, &step.answer)?;
    }
    Ok(sizes)
}

impl<'a> Replay<'a> {
    fn new(
        course: &'a Course,
        policy: &'a Policy,
        prices: Prices,
        summary: u64,
    ) -> Result<Self, String> {
        let id = "cost".parse().map_err(|error: InvalidValue| error.to_string())?;
        Ok(Self {
            policy,
            prices,
            course,
            journal: Journal::new(EventLog::new(id)),
            auto: AutoCompactor::new(policy.auto).map_err(|error| error.to_string())?,
            provider: Provider::new(prices, course.overhead()),
            summary,
            outcome: Outcome::default(),
        })
    }

    /// Returns the brief of an automatic compaction.
    fn brief(&self, now: Timestamp, target: Option<u64>) -> Brief {
        // List as many facts as there is room for, under every policy.
        let retention = Some(RetentionPolicy { wanted: 100, ..RetentionPolicy::default() });
        let reason = CompactionReason::Threshold;
        Brief { reason, target, retention, now, ..Brief::default() }
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
            let output = self.auto.handle(step.at, Input::BeforeRequest(self.pressure()));
            let Some(Output::Compact { reason, target, .. }) = output else { return Ok(()) };
            self.compact_for(index, step.at, reason, target);
        }
    }

    /// Carries out a compaction of the trigger before this request.
    fn compact_for(
        &mut self,
        index: usize,
        now: Timestamp,
        reason: CompactionReason,
        target: Option<u64>,
    ) {
        let before = self.journal.thread().messages().clone();
        let done = self.compact(&strategy(), self.brief(now, target));
        if done {
            self.provider.summarise(now, &before, self.summary);
            self.outcome.left.push((index, self.left(&before)));
        }
        let input = if done { Input::Compacted { reason } } else { Input::Failed { reason } };
        self.auto.handle(now, input);
    }

    /// Does what the policy does while the user is away, from the last request to this one.
    fn wait(&mut self, index: usize, last: Timestamp, step: &Step) {
        self.auto.handle(last, Input::TurnEnded(self.pressure()));
        let (mut now, life) = (last, self.prices.cache_life_ms);
        match self.policy.away {
            Away::Nothing => {}
            Away::Compacts { after_ms, tokens } => {
                let at = Timestamp(last.0 + after_ms);
                if at < step.at && self.pressure().tokens() >= tokens {
                    self.compact_idle(index, at);
                }
            }
            Away::KeepsAlive { for_ms } => {
                let every = life - life / 10;
                let end = step.at.0.min(last.0 + for_ms + 1);
                while now.0 + every < end {
                    now = Timestamp(now.0 + every);
                    self.provider.keep_alive(now);
                    self.auto.kept_alive(now);
                }
            }
            Away::Priced => loop {
                match self.auto.idle(now, self.pressure()) {
                    IdleStep::Wait { ms } => now = Timestamp(now.0 + ms),
                    IdleStep::KeepAlive => {
                        self.provider.keep_alive(now);
                        self.auto.kept_alive(now);
                    }
                    IdleStep::Compact => return self.compact_idle(index, now),
                    IdleStep::LetGo | _ => return,
                }
                if now >= step.at {
                    return;
                }
            },
        }
    }

    /// Compacts as after a command of the user, with the reason `Idle`.
    fn compact_idle(&mut self, index: usize, now: Timestamp) {
        let target = self.auto.requested_target(self.pressure());
        self.compact_for(index, now, CompactionReason::Idle, target);
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
