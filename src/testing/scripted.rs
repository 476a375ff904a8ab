//! A model that answers from a script, which may misbehave as models and networks do, and records
//! its requests.

use std::{collections::VecDeque, sync::Arc};

use async_trait::async_trait;
use futures::{
    Stream, StreamExt,
    stream::{self, BoxStream},
};

use crate::{
    message::{
        Answer, ContentBlock, Delta, Json, Message, ModelError, ModelErrorKind, Request, Role,
        StopReason, Text, ToolUse, Usage,
    },
    model::{self, Model},
    sync::Lock,
    tokens::{ByteEstimate, TokenCounter},
};

/// Answers from a script, in order, and records every request.
///
/// Clones share script and record, so that a test can keep one while a session owns another. After
/// the last answer every call fails.
///
/// ```
/// use futures::executor::block_on;
/// use threadfold::{Message, Request, model::Model, testing::ScriptedModel};
///
/// let model = ScriptedModel::new(["hello"]);
/// let answer = block_on(model.complete(Request::new(vec![Message::user("hi")])))?;
/// assert_eq!(answer.text(), "hello");
/// assert_eq!(model.requests()[0].messages[0], Message::user("hi"));
/// # Ok::<(), threadfold::model::ModelError>(())
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct ScriptedModel {
    script: Arc<Lock<VecDeque<Scripted>>>,
    repeats: bool,
    requests: Arc<Lock<Vec<Request>>>,
}

/// One answer of a script: a given answer or error, or a way in which models
/// [misbehave](Self::misbehaving).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Scripted {
    /// A whole answer. If it has no usage, it gets an estimate.
    Answer(Answer),
    /// A failed call.
    Error(ModelError),
    /// The first half of the deltas of an answer, after which the stream ends.
    Cut(Answer),
    /// An answer whose stream is pending a hundred times before each delta.
    Slow(Answer),
    /// Fails because the request exceeds the window.
    Overflow,
    /// An answer of white space only.
    Blank,
    /// An answer without blocks.
    Empty,
    /// Calls a tool instead of writing text.
    CallsTool,
    /// Fails permanently.
    Fails,
    /// Fails with a retryable error.
    Overloaded,
    /// Stops at the output limit.
    Truncated,
    /// Stops with a refusal.
    Refuses,
    /// About a megabyte of text.
    Inflates,
}

impl Scripted {
    /// Returns all ways in which a model or its network misbehaves.
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use threadfold::{Request, model::Model, testing::{Scripted, ScriptedModel}};
    ///
    /// for way in Scripted::misbehaving() {
    ///     let model = ScriptedModel::repeating([way.clone()]);
    ///     let answer = block_on(model.complete(Request::default()));
    ///     // The code under test must survive the answer, and what follows it.
    ///     assert_eq!(answer.is_err_and(|error| error.is_overflow()), matches!(way, Scripted::Overflow));
    /// }
    /// ```
    #[must_use]
    pub fn misbehaving() -> Vec<Self> {
        let [cut, slow] = ["this will not be said to its end", "slowly said"];
        vec![
            Self::Overflow,
            Self::Blank,
            Self::Empty,
            Self::CallsTool,
            Self::Cut(answer_of(Message::assistant(cut))),
            Self::Fails,
            Self::Overloaded,
            Self::Truncated,
            Self::Refuses,
            Self::Slow(answer_of(Message::assistant(slow))),
            Self::Inflates,
        ]
    }

    /// Returns the answer or the error, without the faults of its stream.
    fn outcome(self) -> Result<Answer, ModelError> {
        let failed = |kind| Err(ModelError::new(kind, "hostile"));
        let said = |text: &str, stop| Ok(Answer::new(Message::assistant(text), stop, None));
        match self {
            Self::Answer(answer) | Self::Slow(answer) | Self::Cut(answer) => Ok(answer),
            Self::Error(error) => Err(error),
            Self::Overflow => {
                failed(ModelErrorKind::Overflow { limit: Some(1_000), found: None, output: None })
            }
            Self::Fails => failed(ModelErrorKind::Other),
            Self::Overloaded => failed(ModelErrorKind::Retryable { after: None }),
            Self::Empty => Ok(answer_of(Message::new(Role::Assistant, Vec::new()))),
            Self::CallsTool => {
                let call = ToolUse::new("hostile", "rm", Json::default());
                Ok(answer_of(Message::new(Role::Assistant, vec![call.into()])))
            }
            Self::Blank => said(" \n\t ", StopReason::EndTurn),
            Self::Truncated => said("This is only the first half of an", StopReason::MaxTokens),
            Self::Refuses => said("no", StopReason::Refusal),
            Self::Inflates => said(&"word ".repeat(200_000), StopReason::EndTurn),
        }
    }
}

impl From<&str> for Scripted {
    fn from(text: &str) -> Self {
        Message::assistant(text).into()
    }
}

impl From<String> for Scripted {
    fn from(text: String) -> Self {
        text.as_str().into()
    }
}

impl From<Message> for Scripted {
    /// The stop reason is [`StopReason::ToolUse`] if the message calls tools.
    fn from(message: Message) -> Self {
        answer_of(message).into()
    }
}

impl From<Answer> for Scripted {
    fn from(answer: Answer) -> Self {
        Self::Answer(answer)
    }
}

impl From<ModelError> for Scripted {
    fn from(error: ModelError) -> Self {
        Self::Error(error)
    }
}

impl ScriptedModel {
    /// Returns a model with these answers.
    pub fn new<A: Into<Scripted>>(script: impl IntoIterator<Item = A>) -> Self {
        let script = script.into_iter().map(Into::into).collect();
        Self { script: Arc::new(Lock::new(script)), ..Self::default() }
    }

    /// Returns a model that repeats these answers without end.
    pub fn repeating<A: Into<Scripted>>(script: impl IntoIterator<Item = A>) -> Self {
        Self { repeats: true, ..Self::new(script) }
    }

    /// The recorded requests, in order.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().clone()
    }

    /// Number of answers left. A model that repeats its answers always has all of them.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.script.lock().len()
    }

    fn next(&self, request: &Request) -> Scripted {
        self.requests.lock().push(request.clone());
        let mut script = self.script.lock();
        let answer = script.pop_front();
        if self.repeats {
            script.extend(answer.clone());
        }
        let Some(answer) = answer else {
            return ModelError::new(ModelErrorKind::Other, "the script is over").into();
        };
        if matches!(answer, Scripted::Cut(_) | Scripted::Slow(_)) {
            return answer;
        }
        match answer.outcome() {
            Ok(answer) if answer.usage.is_none() => estimated(request, answer).into(),
            Ok(answer) => answer.into(),
            Err(error) => error.into(),
        }
    }
}

#[async_trait]
impl Model for ScriptedModel {
    async fn complete(&self, request: Request) -> Result<Answer, ModelError> {
        model::answer_of(self.stream(request)).await
    }

    fn stream(&self, request: Request) -> BoxStream<'_, Result<Delta, ModelError>> {
        // Counts as a call only when polled, like a real model.
        let answer = stream::once(async move { self.next(&request) });
        answer.map(stream_of).flatten().boxed()
    }
}

/// Number of pending polls of a slow answer before each delta.
const SLOW_POLLS: usize = 100;

fn stream_of(answer: Scripted) -> impl Stream<Item = Result<Delta, ModelError>> {
    let delay = if matches!(answer, Scripted::Slow(_)) { SLOW_POLLS } else { 0 };
    stream::iter(deltas(answer)).then(move |delta| async move {
        for _ in 0..delay {
            model::yield_now().await;
        }
        delta
    })
}

/// The items of the stream of an answer.
pub(super) fn deltas(answer: Scripted) -> Vec<Result<Delta, ModelError>> {
    let is_cut = matches!(answer, Scripted::Cut(_));
    match answer.outcome() {
        Ok(answer) if is_cut => {
            let half = pieces(&answer).count().div_ceil(2);
            pieces(&answer).take(half).map(Ok).collect()
        }
        Ok(answer) => {
            let mut deltas: Vec<_> = pieces(&answer).map(Ok).collect();
            deltas.push(Ok(Delta::Answer { answer }));
            deltas
        }
        Err(error) => vec![Err(error)],
    }
}

/// The answer with an estimate of its usage, in the message too.
pub(super) fn estimated(request: &Request, answer: Answer) -> Answer {
    let counter = ByteEstimate::TRIGGER;
    let usage = Usage::new(counter.request(request), counter.message(&answer.message));
    let mut estimated = Answer::new(answer.message, answer.stop_reason, Some(usage));
    estimated.withheld = answer.withheld;
    estimated
}

/// The answer with this message. Its stop reason depends on whether the message calls tools.
pub(super) fn answer_of(message: Message) -> Answer {
    let calls = message.tool_uses().next().is_some();
    let stop_reason = if calls { StopReason::ToolUse } else { StopReason::EndTurn };
    Answer::new(message, stop_reason, None)
}

/// Approximate size of a delta in bytes, of a text that has no more than [`PIECES`] of them.
const PIECE: usize = 24;

/// The most deltas of a text. Those of a longer text are larger.
const PIECES: usize = 250;

/// Returns the deltas of an answer, in order, without the final [`Delta::Answer`].
fn pieces(answer: &Answer) -> impl Iterator<Item = Delta> {
    answer.message.content.iter().flat_map(|block| {
        if let ContentBlock::Text(block) = block {
            split(&block.text).map(|text| Delta::Text { text }).collect()
        } else if let ContentBlock::Thinking(thinking) = block {
            split(&thinking.text).map(|text| Delta::Thinking { text }).collect()
        } else if let ContentBlock::ToolUse(call) = block {
            let begin = Delta::ToolUse { id: call.id.clone(), name: call.name.clone() };
            let input = split(call.input.as_str())
                .map(|text| Delta::ToolInput { id: call.id.clone(), text });
            std::iter::once(begin).chain(input).collect()
        } else {
            Vec::new()
        }
    })
}

/// Cuts a text after white space if possible, and never within a character.
fn split(text: &str) -> impl Iterator<Item = Text> {
    let least = PIECE.max(text.len() / PIECES);
    let mut rest = text;
    std::iter::from_fn(move || {
        let long = rest.char_indices().skip_while(|(at, _)| *at < least);
        let mut ends = long.filter(|(at, c)| c.is_whitespace() || *at >= 4 * least);
        let end = ends.next().map_or(rest.len(), |(at, c)| at + c.len_utf8());
        let (piece, left) = rest.split_at_checked(end)?;
        rest = left;
        (!piece.is_empty()).then(|| Text::from(piece))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pieces_joined_are_the_text() {
        for text in ["", "a", "ein Satz mit Wörtern und mehr Wörtern", &"漢".repeat(300), "\n\n  "]
        {
            let joined: String = split(text).map(|piece| piece.to_string()).collect();
            assert_eq!(joined, text);
        }
    }
}
