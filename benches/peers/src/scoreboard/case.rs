//! A thread that is cut where its agent went on, and what all contenders share.

use std::time::{Duration, Instant};

use futures::FutureExt;
use threadfold::{
    Message, Model, Request,
    hindsight::Hindsight,
    legality,
    testing::ExtractiveModel,
    tokens::{ByteEstimate, TokenCounter},
};

/// The answer of the model may have this many tokens.
const SUMMARY_TOKENS: u64 = 2_000;

/// A thread that is cut where its agent went on.
pub(crate) struct Case {
    pub(crate) messages: Vec<Message>,
    pub(crate) hindsight: Hindsight,
}

/// A way to make a thread smaller.
pub(crate) struct Contender {
    pub(crate) name: &'static str,
    /// Compacts the past of a case to this many tokens; `None` if it cannot.
    pub(crate) compact: fn(&Case, u64) -> Option<Compacted>,
}

/// The messages that are left, and the time of the compaction that made them.
pub(crate) struct Compacted {
    pub(crate) messages: Vec<Message>,
    pub(crate) time: Duration,
}

impl Case {
    pub(crate) fn of(messages: Vec<Message>, cut: f64) -> Option<Self> {
        let (messages, _) = legality::repair(messages);
        let hindsight = Hindsight::of(&Request::new(messages.clone()), cut)?;
        Some(Self { messages, hindsight })
    }

    /// The messages before the cut.
    pub(crate) fn past(&self) -> &[Message] {
        &self.messages[..self.hindsight.cut]
    }

    /// The messages up to the first one that the user typed.
    pub(crate) fn head(&self) -> &[Message] {
        &self.messages[..self.hindsight.head]
    }
}

/// Tokens of the messages, as all contenders are measured.
pub(crate) fn size(messages: &[Message]) -> u64 {
    ByteEstimate::TRIGGER.messages(messages)
}

/// The summary of a text by the one model that writes all of them.
pub(crate) fn summary(old: Vec<Message>) -> String {
    let mut messages = old;
    messages.push(Message::user("Summarise the conversation."));
    let request = Request { max_output: Some(SUMMARY_TOKENS), ..Request::new(messages) };
    // The crates ask within a future that runs already.
    let answer = ExtractiveModel.complete(request).now_or_never();
    answer.expect("it waits for nobody").expect("an answer").text()
}

/// Measures the time of one compaction.
pub(crate) fn timed(compacted: impl FnOnce() -> Option<Vec<Message>>) -> Option<Compacted> {
    let begun = Instant::now();
    let messages = compacted()?;
    Some(Compacted { messages, time: begun.elapsed() })
}

/// The result with the largest number from 0 to `most` that fits the target; the result must grow
/// with the number.
pub(crate) fn largest(
    most: usize,
    target: u64,
    compacted: impl Fn(usize) -> Option<Vec<Message>>,
) -> Option<Compacted> {
    let (mut low, mut high, mut best) = (0, most, None);
    while low <= high {
        let middle = low.midpoint(high);
        match timed(|| compacted(middle)).filter(|it| size(&it.messages) <= target) {
            Some(done) => (best, low) = (Some(done), middle + 1),
            None if middle == 0 => break,
            None => high = middle - 1,
        }
    }
    best
}

/// The messages of a result of another crate: ours where it is one that was given, a user message
/// with its text where it is new.
pub(crate) fn back<T: PartialEq>(
    past: &[Message],
    given: &[T],
    result: &[T],
    text: impl Fn(&T) -> String,
) -> Vec<Message> {
    let mut from = 0;
    let found = result.iter().map(|one| {
        let rest = given.iter().enumerate().skip(from);
        match rest.into_iter().find(|(_, other)| *other == one) {
            Some((index, _)) => {
                from = index + 1;
                past[index].clone()
            }
            None => Message::user(text(one)),
        }
    });
    found.collect()
}
