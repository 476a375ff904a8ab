//! Requests of recall, and their errors.

use serde_json::Value;

use crate::{
    log::LogError,
    message::{CheckpointId, InvalidValue, Text, markup::named_checkpoint, quoted},
};

/// The maximum bytes of a query.
pub const MAX_QUERY_BYTES: usize = 1_000;

/// The fields of the tool's input.
const FIELDS: [&str; 6] = ["from", "to", "message", "call", "query", "offset"];

/// A request for messages that compactions removed. The default requests all removed messages, from
/// the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RecallRequest {
    /// The messages of a range, in the order of the log. As in the tool `compact`, the range begins
    /// after `from` and ends with `to`. A checkpoint that occurs more than once gives the widest
    /// range.
    Range {
        /// The checkpoint after which the range begins; `None` for the start of the thread.
        from: Option<CheckpointId>,
        /// The checkpoint with which the range ends; `None` for the end of the thread.
        to: Option<CheckpointId>,
        /// The number of the first message to return, from an earlier answer.
        offset: u64,
    },
    /// One message.
    Message {
        /// Its number among all messages ever appended, from 0.
        number: u64,
        /// The offset in its text to begin at, in bytes.
        offset: u64,
    },
    /// The whole result of a tool call, of which the thread holds only a part.
    Call {
        /// The id of the call.
        id: Text,
        /// The byte of the result's text at which to begin.
        offset: u64,
    },
    /// The messages that contain words of a query, best first. It needs the feature `recall`.
    Search {
        /// The query.
        query: Text,
        /// The number of matches to skip.
        offset: u64,
    },
}

pub(super) type Result<T, E = RecallError> = std::result::Result<T, E>;

/// Why nothing can be recalled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecallError {
    /// A field has the wrong type.
    #[error("{field} must be {expected}, found {found}")]
    Type {
        /// The field.
        field: &'static str,
        /// The expected type.
        expected: &'static str,
        /// The beginning of the value.
        found: String,
    },
    /// The input has an unknown field.
    #[error(
        "{field:?} is not a field of recall; the fields are from, to, message, call, query and offset"
    )]
    Unknown {
        /// The beginning of the field's name.
        field: String,
    },
    /// A text is not a checkpoint id.
    #[error("{field}: {error}")]
    Checkpoint {
        /// The field.
        field: &'static str,
        /// The error of parsing the id.
        error: InvalidValue,
    },
    /// Two fields belong to different requests.
    #[error("{one} and {other} do not go together: name a range, a message, a call or a query")]
    Mixed {
        /// The first field.
        one: &'static str,
        /// The second field.
        other: &'static str,
    },
    /// A checkpoint is neither in the thread nor in the removed messages.
    #[error("checkpoint {id} is neither in the thread nor in the removed messages")]
    UnknownCheckpoint {
        /// The checkpoint.
        id: CheckpointId,
    },
    /// A range is empty or inverted.
    #[error("the range is empty: {to} does not come after {from}")]
    Inverted {
        /// The checkpoint after which it begins.
        from: CheckpointId,
        /// The checkpoint with which it ends.
        to: CheckpointId,
    },
    /// No result of this call was cut.
    #[error(
        "the result of call {id} was not shortened; it is in the thread, or a compaction removed it"
    )]
    UnknownCall {
        /// The id of the call.
        id: String,
    },
    /// A message was not removed by a compaction, or does not exist.
    #[error("message {number} was not removed by a compaction")]
    NotRemoved {
        /// The number of the message.
        number: u64,
    },
    /// An offset is at or after the end of a message, or of the whole result of a call.
    #[error("offset {offset} is not inside {whole}, which has {len} bytes")]
    Beyond {
        /// The offset in bytes.
        offset: u64,
        /// What was asked for: `message 17`, or `the result of call "c1"`.
        whole: String,
        /// Its length in bytes.
        len: usize,
    },
    /// The query contains no word.
    #[error("the query contains no letters or digits")]
    NoWords,
    /// The query is too long.
    #[error("the query has {found} bytes; the maximum is {MAX_QUERY_BYTES}. Name a few words")]
    QueryLength {
        /// The length of the query in bytes.
        found: usize,
    },
    /// The request is a query, and this build lacks the feature `recall`.
    #[error("recall by query is not available here: name a range or a message")]
    NoSearch,
    /// The log cannot be read.
    #[error(transparent)]
    Replay(#[from] LogError),
}

impl Default for RecallRequest {
    fn default() -> Self {
        Self::Range { from: None, to: None, offset: 0 }
    }
}

impl RecallRequest {
    /// Parses the JSON input of the tool: `{"from"?, "to"?, "offset"?}`, `{"message", "offset"?}`,
    /// `{"call", "offset"?}` or `{"query", "offset"?}`. A `null` counts as absent, and a checkpoint
    /// may also be written as its marker, `<checkpoint:a1b2c3>`. It does not check whether message
    /// and checkpoints exist.
    pub(crate) fn parse(input: &Value) -> Result<Self> {
        let object = input.as_object().ok_or_else(|| mismatch("input", "an object", input))?;
        if let Some(key) = object.keys().find(|key| !FIELDS.contains(&key.as_str())) {
            return Err(RecallError::Unknown { field: quoted(key) });
        }
        let offset = number(object, "offset")?.unwrap_or_default();
        if let Some(query) = value(object, "query") {
            check_alone(object, "query", &["from", "to", "message", "call"])?;
            let query = text("query", query)?;
            let found = query.len();
            return match found > MAX_QUERY_BYTES {
                true => Err(RecallError::QueryLength { found }),
                false => Ok(Self::Search { query: query.into(), offset }),
            };
        }
        if let Some(id) = value(object, "call") {
            check_alone(object, "call", &["from", "to", "message"])?;
            return Ok(Self::Call { id: text("call", id)?.into(), offset });
        }
        if let Some(number) = number(object, "message")? {
            check_alone(object, "message", &["from", "to"])?;
            return Ok(Self::Message { number, offset });
        }
        let (from, to) = (checkpoint(object, "from")?, checkpoint(object, "to")?);
        Ok(Self::Range { from, to, offset })
    }
}

type Fields = serde_json::Map<String, Value>;

/// Returns the value of a field, unless it is absent or `null`.
fn value<'f>(object: &'f Fields, field: &str) -> Option<&'f Value> {
    object.get(field).filter(|value| !value.is_null())
}

/// Checks that none of the other fields is present.
fn check_alone(object: &Fields, one: &'static str, others: &[&'static str]) -> Result<()> {
    let other = others.iter().find(|other| value(object, other).is_some());
    other.map_or(Ok(()), |other| Err(RecallError::Mixed { one, other }))
}

fn number(object: &Fields, field: &'static str) -> Result<Option<u64>> {
    let Some(value) = value(object, field) else { return Ok(None) };
    // Models write numbers as text too.
    let number = value.as_u64().or_else(|| value.as_str()?.trim().parse().ok());
    number.map(Some).ok_or_else(|| mismatch(field, "a whole number from 0", value))
}

fn text<'v>(field: &'static str, value: &'v Value) -> Result<&'v str> {
    value.as_str().ok_or_else(|| mismatch(field, "a string", value))
}

fn checkpoint(object: &Fields, field: &'static str) -> Result<Option<CheckpointId>> {
    let Some(value) = value(object, field) else { return Ok(None) };
    let id = named_checkpoint(text(field, value)?);
    id.map(Some).map_err(|error| RecallError::Checkpoint { field, error })
}

fn mismatch(field: &'static str, expected: &'static str, found: &Value) -> RecallError {
    RecallError::Type { field, expected, found: quoted(&found.to_string()) }
}
