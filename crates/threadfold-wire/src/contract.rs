//! What a codec returns: bodies with the adjustments that made them valid, and errors.

use std::fmt;

use serde::{Deserialize, Serialize};
use threadfold_core::{legality::Repair, message::*};

/// A request body, and the changes that made it valid.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct Encoded {
    /// The body.
    pub body: Json,
    /// What was changed or left out, in the order of the thread. Empty for a decoded request that
    /// the host did not change, unless its body had what no provider accepts.
    pub adjustments: Vec<Adjustment>,
}

impl Encoded {
    /// Returns the name that the host declared for a tool, given the name in an answer. The two
    /// differ if the dialect refuses the declared name. [`as_declared`] applies this to whole
    /// answers. No two tools of a request have the same written name.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use threadfold::{Message, Request, message::ToolSpec};
    /// use threadfold::wire::{EncodeOptions, Dialect};
    ///
    /// let mut request = Request::new(vec![Message::user("Read a.txt.")]);
    /// let schema = serde_json::json!({"type": "object"});
    /// std::sync::Arc::make_mut(&mut request.tools).push(ToolSpec::new("fs.read", "Reads a file.", schema));
    /// let encoded = Dialect::OpenAiChat.encode(&request, &EncodeOptions::default());
    /// assert!(encoded.body.as_str().contains(r#""name":"fs_read""#));
    /// assert_eq!(encoded.declared_name("fs_read"), "fs.read");
    /// assert_eq!(encoded.declared_name("write"), "write");
    /// ```
    #[must_use]
    pub fn declared_name<'n>(&'n self, written: &'n str) -> &'n str {
        declared_name(&self.adjustments, written).map_or(written, Text::as_str)
    }
}

/// Returns a piece of an answer with the tool names that the host declared, given the request's
/// [`Encoded::adjustments`]. Adapters must pass every piece through it; otherwise the host cannot
/// find a tool that was renamed because the provider refuses its declared name.
///
/// ```
/// use std::sync::Arc;
/// use threadfold::{Message, Request, message::{Delta, ToolSpec}};
/// use threadfold::wire::{self, EncodeOptions, Dialect};
///
/// let mut request = Request::new(vec![Message::user("Read a.txt.")]);
/// let schema = serde_json::json!({"type": "object"});
/// std::sync::Arc::make_mut(&mut request.tools).push(ToolSpec::new("fs.read", "Reads a file.", schema));
/// let encoded = Dialect::OpenAiChat.encode(&request, &EncodeOptions::default());
/// let called = Delta::ToolUse { id: "c1".into(), name: "fs_read".into() };
/// let called = wire::as_declared(called, &encoded.adjustments);
/// assert_eq!(called, Delta::ToolUse { id: "c1".into(), name: "fs.read".into() });
/// ```
#[must_use]
pub fn as_declared(mut piece: Delta, adjustments: &[Adjustment]) -> Delta {
    match &mut piece {
        Delta::ToolUse { name, .. } => rename(name, adjustments),
        Delta::Answer { answer } => {
            for block in &mut answer.message.make_mut().content {
                if let ContentBlock::ToolUse(call) = block {
                    rename(&mut call.name, adjustments);
                }
            }
        }
        Delta::Text { .. } | Delta::Thinking { .. } | Delta::ToolInput { .. } => {}
    }
    piece
}

/// Replaces the written name of a tool by the declared one.
fn rename(name: &mut Text, adjustments: &[Adjustment]) {
    if let Some(declared) = declared_name(adjustments, name) {
        *name = declared.clone();
    }
}

/// The declared name of a tool, by its written name.
fn declared_name<'a>(adjustments: &'a [Adjustment], written: &str) -> Option<&'a Text> {
    adjustments.iter().find_map(|adjustment| {
        // Renamed documents belong to a message, renamed tools to the request.
        let Adjustment { message: None, change: Change::NameRewritten { from, to } } = adjustment
        else {
            return None;
        };
        (*to == written).then_some(from)
    })
}

/// Why a body or a stream could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// It is not JSON.
    #[error("not JSON: {reason}")]
    NotJson {
        /// The parser's message, with line and column.
        reason: String,
    },
    /// No dialect has this name, or its feature is not enabled.
    #[error("there is no dialect {found:?}; there are {known}")]
    UnknownDialect {
        /// The name.
        found: String,
        /// The names of all dialects of this build.
        known: String,
    },
    /// It is JSON, but of another shape.
    #[error("{path}: expected {expected}, found {found}")]
    Shape {
        /// The path, such as `messages[3].content`; `body` for the whole.
        path: String,
        /// The expected value.
        expected: &'static str,
        /// The beginning of the value found.
        found: String,
    },
    /// The body has more bytes than [`DecodeLimits`](crate::DecodeLimits) allows.
    #[error("the body has {found} bytes; the limit is {limit}")]
    TooLarge {
        /// Its size in bytes.
        found: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// The body has more messages than [`DecodeLimits`](crate::DecodeLimits) allows.
    #[error("the body has {found} messages; the limit is {limit}")]
    TooManyMessages {
        /// The number of its messages.
        found: usize,
        /// The limit.
        limit: usize,
    },
    /// The body nests deeper than [`DecodeLimits`](crate::DecodeLimits) allows.
    #[error("the body nests {found} levels deep; the limit is {limit}")]
    TooDeep {
        /// The number of its levels.
        found: usize,
        /// The limit.
        limit: usize,
    },
    /// One event, or one line, of a stream is larger than allowed.
    #[error("an event of the stream has more than {limit} bytes")]
    EventTooLarge {
        /// The limit in bytes.
        limit: usize,
    },
}

pub(crate) type Result<T, E = WireError> = std::result::Result<T, E>;

/// One change that encoding made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Adjustment {
    /// The index of the message in the request; `None` if the change concerns the request as a
    /// whole.
    pub message: Option<usize>,
    /// The change.
    pub change: Change,
}

/// A change that made a request valid for its provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Change {
    /// A thread that every provider refuses was repaired.
    Repaired {
        /// The repair.
        repair: Repair,
    },
    /// A block was left out, because the dialect has no form for it or the provider refuses it. A
    /// picture that the provider would refuse is replaced by a text that names it.
    BlockDropped {
        /// The kind of the block.
        kind: Text,
        /// The reason.
        reason: Text,
    },
    /// A block was written as text, because the dialect has no form for it.
    BlockAsText {
        /// The kind of the block.
        kind: Text,
    },
    /// A block was moved to another position or message.
    BlockMoved {
        /// The kind of the block.
        kind: Text,
        /// The reason.
        reason: Text,
    },
    /// Fields that another codec read were left out.
    FieldsDropped {
        /// The codec that read them.
        codec: Text,
        /// Their names.
        fields: Vec<Text>,
    },
    /// Reasoning was left out, because the provider would refuse it.
    ReasoningDropped {
        /// The reason.
        reason: Text,
    },
    /// The id of a call was rewritten, in the call and in its result.
    IdRewritten {
        /// The id before.
        from: Text,
        /// The id now.
        to: Text,
    },
    /// The name of a tool or a document was rewritten everywhere, or the media type of a picture
    /// was corrected to that of its data. For a declared tool the change concerns the request as a
    /// whole, and [`Encoded::declared_name`] finds the declared name.
    NameRewritten {
        /// The name before.
        from: Text,
        /// The name now.
        to: Text,
    },
    /// An input that is not a JSON object was wrapped in one, under the key `input`.
    InputWrapped {
        /// The id of the call.
        id: Text,
    },
    /// A call that was read in a form that providers refuse was written in the dialect's form.
    CallRewritten {
        /// The id of the call.
        id: Text,
    },
    /// The body that was read had halves of characters (unpaired surrogates), which no text can
    /// hold. Each was read as U+FFFD.
    CharactersReplaced {
        /// The number of halves.
        count: u64,
    },
    /// A call without a signature got the documented placeholder, because the dialect demands one.
    CallSigned {
        /// The id of the call.
        id: Text,
    },
    /// Adjacent messages of one role were merged.
    Merged,
    /// A short user message was inserted, because the dialect demands one there.
    UserInserted,
    /// A short text was inserted, because the dialect demands one there.
    TextInserted,
    /// A system message within the thread was written as a user message or moved to the front.
    SystemMoved,
    /// A tool that the thread calls was declared, with a schema that accepts anything.
    ToolDeclared {
        /// The name of the tool.
        name: Text,
    },
    /// A request parameter was left out, because the dialect has no form for it or the provider
    /// would refuse it.
    ParameterDropped {
        /// The name of the parameter.
        name: Text,
    },
    /// A limit on the answer was set, because the dialect demands one.
    MaxOutputSet {
        /// The limit in tokens.
        tokens: u64,
    },
    /// Cache marks over the dialect's limit were left out, from the first on.
    CacheMarksDropped {
        /// The number of marks.
        count: usize,
    },
}

impl Adjustment {
    /// Returns a change that concerns one message.
    ///
    /// ```
    /// use threadfold::wire::{Adjustment, Change};
    ///
    /// let merged = Adjustment::at(3, Change::Merged);
    /// assert_eq!(merged.to_string(), "message 3: merged with the message before it");
    /// ```
    #[must_use]
    pub fn at(message: usize, change: Change) -> Self {
        Self { message: Some(message), change }
    }

    /// Returns a change that concerns the request as a whole.
    ///
    /// ```
    /// use threadfold::wire::{Adjustment, Change};
    ///
    /// let limited = Adjustment::whole(Change::MaxOutputSet { tokens: 4_096 });
    /// assert_eq!(limited.to_string(), "request: output limited to 4096 tokens");
    /// ```
    #[must_use]
    pub fn whole(change: Change) -> Self {
        Self { message: None, change }
    }
}

impl fmt::Display for Adjustment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.message {
            Some(message) => write!(f, "message {message}: {}", self.change),
            None => write!(f, "request: {}", self.change),
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // `write_str` of pieces compiles to a fraction of the code of format strings.
        let mut say = |pieces: &[&str]| pieces.iter().try_for_each(|piece| f.write_str(piece));
        match self {
            Self::Repaired { repair } => write!(f, "{repair}"),
            Self::BlockDropped { kind, reason } => say(&[kind, " left out: ", reason]),
            Self::BlockAsText { kind } => say(&[kind, " written as text"]),
            Self::BlockMoved { kind, reason } => say(&[kind, " moved: ", reason]),
            Self::FieldsDropped { codec, fields } => {
                say(&["fields of ", codec, " left out: ", &fields.join(", ")])
            }
            Self::ReasoningDropped { reason } => say(&["reasoning left out: ", reason]),
            Self::IdRewritten { from, to } => say(&["call id ", from, " rewritten as ", to]),
            Self::NameRewritten { from, to } => say(&["name ", from, " rewritten as ", to]),
            Self::InputWrapped { id } => say(&["input of call ", id, " wrapped in an object"]),
            Self::CallRewritten { id } => say(&["call ", id, " rewritten in the dialect's form"]),
            Self::CharactersReplaced { count } => {
                write!(f, "{count} halves of characters read as U+FFFD")
            }
            Self::CallSigned { id } => say(&["call ", id, " signed as not the provider's own"]),
            Self::Merged => say(&["merged with the message before it"]),
            Self::UserInserted => say(&["a user message put in before it"]),
            Self::TextInserted => say(&["a text put in"]),
            Self::SystemMoved => say(&["system message moved"]),
            Self::ToolDeclared { name } => say(&["tool ", name, " declared"]),
            Self::ParameterDropped { name } => say(&["parameter ", name, " left out"]),
            Self::MaxOutputSet { tokens } => write!(f, "output limited to {tokens} tokens"),
            Self::CacheMarksDropped { count } => write!(f, "{count} cache marks left out"),
        }
    }
}
