//! A request to a model, and its answer.
//!
//! There is one type of request: a codec decodes a body into a [`Request`], and a model takes the
//! same [`Request`], so no conversion between them can lose a field. [`Request::system`] is a list
//! of messages because a body of Chat Completions may begin with several.

use std::sync::Arc;
use std::{io, time::Duration};

use serde::{Deserialize, Serialize};

use super::{
    extra::Extra,
    fnv1a,
    message::Message,
    parts::StopReason,
    text::Text,
    tool::{ToolChoice, ToolSpec},
    usage::Usage,
    withheld::Withheld,
};

/// Everything that one model call needs, independent of any provider.
///
/// The codecs of `wire` turn it into a request body and back.
///
/// ```
/// use threadfold::{Message, Request};
///
/// let request = Request { max_output: Some(1_000), ..Request::new(vec![Message::user("hi")]) }
///     .with_system("Answer in one word.");
/// assert_eq!(request.system.len(), 1);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Request {
    /// System messages that precede the thread, in order; most requests have none or one. No
    /// compaction changes them.
    #[serde(skip_serializing_if = "is_empty")]
    pub system: Arc<Vec<Message>>,
    /// The thread.
    pub messages: Arc<Vec<Message>>,
    /// The tools that the model may call.
    #[serde(skip_serializing_if = "is_empty")]
    pub tools: Arc<Vec<ToolSpec>>,
    /// Which tools the model may or must call; `None` for the provider's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// The maximum length of the answer in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output: Option<u64>,
    /// The sampling temperature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// How long the host should wait for the answer. Never sent to a provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
    /// Whether the codec adds cache marks, for providers that need them (Anthropic, Bedrock): after
    /// the tools, the system prompt, the last message and, if there is room, the end of the
    /// previous request, where the provider looks up its cache. Marks that the messages have stay.
    #[serde(skip_serializing_if = "std::ops::Not::not", with = "cache_form")]
    pub cache: bool,
    /// Unknown wire fields, including the name of the model.
    #[serde(skip_serializing_if = "Extra::is_empty")]
    pub extra: Extra,
}

/// The answer of a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Answer {
    /// The answer as a message, ready to be appended to the thread.
    pub message: Message,
    /// The tokens of the call, if the provider reported them.
    pub usage: Option<Usage>,
    /// Why the model stopped.
    pub stop_reason: StopReason,
    /// The reasoning of the request that failed a check of the provider, if the provider reports
    /// it. A session shows it as a notice; the message keeps the report as it was received, so the
    /// log has it too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub withheld: Vec<Withheld>,
}

/// A piece of a streamed answer. The last one of a stream is the complete answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
// Externally tagged: with an internal tag, serde would buffer the answer, and raw JSON in it would
// lose its key order.
#[serde(rename_all = "snake_case")]
pub enum Delta {
    /// More text.
    Text {
        /// The piece.
        text: Text,
    },
    /// More reasoning.
    Thinking {
        /// The piece.
        text: Text,
    },
    /// A tool call starts.
    ToolUse {
        /// The id of the call.
        id: Text,
        /// The name of the tool.
        name: Text,
    },
    /// More of a tool call's input.
    ToolInput {
        /// The id of the call.
        id: Text,
        /// The piece, as JSON text.
        text: Text,
    },
    /// The answer is complete. No piece follows.
    Answer {
        /// The complete answer.
        answer: Answer,
    },
}

impl Request {
    /// Returns a request with these messages and otherwise default values.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use threadfold::{Message, Request, Thread};
    ///
    /// let thread: Thread = [Message::user("hi")].into_iter().collect();
    /// let request = Request::new(thread.messages().clone());
    /// assert!(Arc::ptr_eq(&request.messages, thread.messages()), "no message was copied");
    /// assert!(request.system.is_empty() && request.tools.is_empty());
    /// ```
    #[must_use]
    pub fn new(messages: impl Into<Arc<Vec<Message>>>) -> Self {
        Self { messages: messages.into(), ..Self::default() }
    }

    /// Returns the request with one more system message after those that it has.
    ///
    /// ```
    /// use threadfold::{Message, Request};
    ///
    /// let request = Request::new(vec![Message::user("hi")]).with_system("Be brief.");
    /// assert_eq!(request.system[..], [Message::system("Be brief.")]);
    /// ```
    #[must_use]
    pub fn with_system(mut self, text: impl Into<Text>) -> Self {
        Arc::make_mut(&mut self.system).push(Message::system(text));
        self
    }

    /// Returns a key of the request: a hash of its whole content, the same in every process.
    /// Requests with equal content have equal keys, so a host that repeats a call after a crash
    /// finds the answer that it stored under the key, or sends it as the idempotency key.
    ///
    /// Put the id of the thread before it: two threads may begin with the same request.
    ///
    /// ```
    /// use threadfold::{Message, Request};
    ///
    /// let request = Request::new(vec![Message::user("hi")]);
    /// assert_eq!(request.key(), 0x355f_66ad_f20f_26a4);
    /// assert_ne!(request.key(), request.with_system("Be brief.").key());
    /// ```
    #[must_use]
    pub fn key(&self) -> u64 {
        let mut hash = Fnv1a(fnv1a::START);
        let written = serde_json::to_writer(&mut hash, self);
        debug_assert!(written.is_ok(), "a request has a JSON form always");
        hash.0
    }
}

/// The FNV-1a hash of the bytes that are written into it.
struct Fnv1a(u64);

impl io::Write for Fnv1a {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = fnv1a::hash(self.0, bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The stored form of [`Request::cache`]: `"auto"` or `"off"`.
mod cache_form {
    use serde::{Deserialize, Deserializer, Serializer};

    #[derive(Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Form {
        Off,
        Auto,
    }

    pub(super) fn serialize<S: Serializer>(cache: &bool, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(if *cache { "auto" } else { "off" })
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(form: D) -> Result<bool, D::Error> {
        Form::deserialize(form).map(|form| match form {
            Form::Off => false,
            Form::Auto => true,
        })
    }
}

impl Answer {
    /// Returns an answer. Its usage and stop reason are also set on the message, so that the thread
    /// keeps them.
    ///
    /// ```
    /// use threadfold::{Answer, Message, Usage, message::StopReason};
    ///
    /// let answer = Answer::new(Message::assistant("yes"), StopReason::EndTurn, Some(Usage::new(9, 1)));
    /// assert_eq!(answer.message.usage, Some(Usage::new(9, 1)));
    /// ```
    #[must_use]
    pub fn new(mut message: Message, stop_reason: StopReason, usage: Option<Usage>) -> Self {
        let parts = message.make_mut();
        (parts.stop_reason, parts.usage) = (Some(stop_reason.clone()), usage);
        Self { message, usage, stop_reason, withheld: Vec::new() }
    }

    /// The text blocks of the answer, joined by blank lines. Reasoning and tool calls are left out.
    ///
    /// ```
    /// use threadfold::{Answer, Message, message::StopReason};
    ///
    /// let answer = Answer::new(Message::assistant("yes"), StopReason::EndTurn, None);
    /// assert_eq!(answer.text(), "yes");
    /// ```
    #[must_use]
    pub fn text(&self) -> String {
        let texts = self.message.content.iter().filter_map(|block| block.as_text());
        texts.map(Text::as_str).collect::<Vec<_>>().join("\n\n")
    }
}

fn is_empty<T>(items: &Arc<Vec<T>>) -> bool {
    items.is_empty()
}
