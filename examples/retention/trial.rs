//! One strategy with one writer on one thread: five compactions while the thread grows.

use std::{
    collections::BTreeMap,
    ops::{AddAssign, Range},
    sync::Arc,
};

use futures::executor::block_on;
use threadfold::{
    CompactionStrategy, Message, Model, Usage,
    drive::{self, Conversation, Models},
    legality,
    log::{Event, EventLog, total_usage},
    message::{Delta, InvalidValue, Timestamp},
    retention::{FactClass, Facts, KeptShare, RetentionPolicy},
    store::Journal,
    strategy::{Brief, ModelCall},
    tokens::{ByteEstimate, TokenCounter},
};

use super::threads::Recorded;

/// The number of compactions of a thread.
pub(crate) const ROUNDS: usize = 5;

/// The classes that are shown, and all together.
pub(crate) const CLASSES: [Option<FactClass>; 4] =
    [Some(FactClass::Path), Some(FactClass::Command), Some(FactClass::Error), None];

/// The share of each of [`CLASSES`] that the default strategy with its addendum must keep, in
/// percent.
pub(crate) const ASKED: [Option<u64>; CLASSES.len()] = [Some(80), Some(80), Some(80), None];

/// A thread in as many parts as there are compactions, each with the facts of all messages so far.
pub(crate) struct Course {
    parts: Vec<(Vec<Message>, Facts)>,
}

/// The strategy, the writer and the policy of a trial.
pub(crate) struct Trial<'a> {
    pub(crate) strategy: &'a dyn CompactionStrategy,
    pub(crate) model: Arc<dyn Model>,
    pub(crate) retention: Option<&'a RetentionPolicy>,
}

/// The state after a compaction, or after a failed one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Round {
    /// How many compactions met their target, and how many there were.
    pub(crate) met: (usize, usize),
    /// The tokens of all messages so far, and of the present thread.
    pub(crate) said: u64,
    pub(crate) left: u64,
    /// The tokens that the models of all compactions read and wrote, including failed ones.
    pub(crate) billed: Usage,
    /// The weight of all facts and of the kept ones, for each of [`CLASSES`].
    pub(crate) weights: [(u64, u64); CLASSES.len()],
    /// How many plans each strategy made. Plans of rungs count under the rung's name.
    pub(crate) made_by: BTreeMap<String, usize>,
    /// The reasons of failed compactions.
    pub(crate) failures: Vec<String>,
}

impl Course {
    pub(crate) fn of(thread: &Recorded, audit: &RetentionPolicy) -> Self {
        let mut facts = Facts::new(audit);
        let parts = parts(&thread.messages).into_iter().map(|range| {
            let part = thread.messages.get(range).unwrap_or_default();
            part.iter().for_each(|message| facts.read(message));
            (part.to_vec(), facts.clone())
        });
        Self { parts: parts.collect() }
    }

    /// Returns the state after each compaction.
    pub(crate) fn run(&self, trial: &Trial<'_>) -> Result<Vec<Round>, String> {
        let id = "retention".parse().map_err(|error: InvalidValue| error.to_string())?;
        let mut journal = Journal::new(EventLog::new(id));
        let (mut rounds, mut round) = (Vec::new(), Round::default());
        for (part, facts) in &self.parts {
            for message in part {
                let event = Event::MessageAppended(message.clone());
                journal.append(Timestamp(0), event).map_err(|error| error.to_string())?;
            }
            round.said += ByteEstimate::TRIGGER.messages(part);
            let thread = journal.thread();
            let target = target(thread.size().tokens, thread.messages());
            match trial.compact(&mut journal, target) {
                Ok(()) => *round.made_by.entry(maker(journal.log())).or_default() += 1,
                Err(reason) => round.failures.push(reason),
            }
            let thread = journal.thread();
            round.left = thread.size().tokens;
            round.billed = total_usage(journal.log().events()).compaction;
            round.met.0 += usize::from(round.left <= target);
            round.met.1 += 1;
            round.weights = weights(facts, thread.messages());
            rounds.push(round.clone());
        }
        Ok(rounds)
    }
}

impl Trial<'_> {
    fn compact(&self, journal: &mut Journal, target: u64) -> Result<(), String> {
        let retention = self.retention.cloned();
        let brief = Brief { target: Some(target), retention, ..Brief::default() };
        let model = Arc::clone(&self.model);
        let mut conversation = Conversation::new(journal);
        let models = Models::one(model.as_ref());
        let watch = &mut |_: &ModelCall, _: Option<&Delta>| {};
        let done = drive::compact(&mut conversation, self.strategy, &brief, models, watch);
        block_on(done).map(drop).map_err(|error| error.to_string())
    }
}

/// Returns the strategy that made the latest plan; for a ladder, the rung.
fn maker(log: &EventLog) -> String {
    let record = log.standing().last();
    let rung = record.and_then(|record| record.rungs.iter().find(|rung| rung.failure.is_none()));
    let name = rung.map(|rung| &rung.strategy).or(record.map(|record| &record.strategy));
    name.map_or(String::new(), ToString::to_string)
}

/// Returns five ranges of about as many messages, between which no call is open.
fn parts(messages: &[Message]) -> Vec<Range<usize>> {
    let points = legality::cut_points(messages);
    let mut start = 0;
    let parts = (1..=ROUNDS).map(|part| {
        let wanted = messages.len() * part / ROUNDS;
        let end = match part {
            ROUNDS => messages.len(),
            _ => points.iter().copied().find(|point| *point >= wanted).unwrap_or(messages.len()),
        };
        std::mem::replace(&mut start, end)..end
    });
    parts.collect()
}

/// Returns half of the tokens without those that always stay, plus these: the user's newest text, and
/// what comes after the last place within the thread where it can be cut. That is what the model has
/// not read, with its call, or a tool loop whose reasoning must not be divided.
fn target(tokens: u64, messages: &[Message]) -> u64 {
    let cuts = legality::cut_points(messages);
    let last = legality::unread_from(messages).min(messages.len().saturating_sub(1));
    let cut = cuts.into_iter().rev().find(|cut| *cut <= last).unwrap_or_default();
    let typed = messages.iter().rposition(|message| message.is_typed());
    let typed = typed.filter(|typed| *typed < cut).and_then(|typed| messages.get(typed));
    let stays = ByteEstimate::TRIGGER.messages(messages.get(cut..).unwrap_or_default())
        + typed.map_or(0, |message| ByteEstimate::TRIGGER.message(message));
    stays + tokens.saturating_sub(stays) / 2
}

fn weights(facts: &Facts, messages: &[Message]) -> [(u64, u64); CLASSES.len()] {
    let retention = facts.audit(messages);
    let recall = |class: Option<FactClass>| -> KeptShare {
        class.map_or(retention.overall, |class| retention.of(class))
    };
    CLASSES.map(|class| (recall(class).weight, recall(class).kept_weight))
}

impl Round {
    /// The kept share of the weight of each of [`CLASSES`], in percent rounded down; `None` if
    /// there were no such facts.
    pub(crate) fn percents(&self) -> [Option<u64>; CLASSES.len()] {
        self.weights.map(|(weight, kept)| (kept * 100).checked_div(weight))
    }

    /// Whether every target was met and the [`ASKED`] shares are kept.
    pub(crate) fn holds(&self) -> bool {
        let enough = |(found, asked): (Option<u64>, Option<u64>)| {
            found.zip(asked).is_none_or(|(found, asked)| found >= asked)
        };
        self.met.0 == self.met.1 && self.percents().into_iter().zip(ASKED).all(enough)
    }

    /// The share of all tokens that is no longer sent, in percent.
    pub(crate) fn saved(&self) -> u64 {
        (self.said.saturating_sub(self.left) * 100).checked_div(self.said).unwrap_or(0)
    }
}

impl AddAssign<Round> for Round {
    fn add_assign(&mut self, other: Round) {
        self.met = (self.met.0 + other.met.0, self.met.1 + other.met.1);
        self.said += other.said;
        self.left += other.left;
        self.billed += other.billed;
        for (sum, weights) in self.weights.iter_mut().zip(other.weights) {
            *sum = (sum.0 + weights.0, sum.1 + weights.1);
        }
        for (name, count) in other.made_by {
            *self.made_by.entry(name).or_default() += count;
        }
        self.failures.extend(other.failures);
    }
}
