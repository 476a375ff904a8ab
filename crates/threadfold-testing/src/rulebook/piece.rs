//! A prompt as the vendor's caches and checks see it: pieces in order.

use serde_json::{Map, Value};

use super::numbers::hash_of;

/// The bytes of JSON that count as a token.
pub(super) const BYTES_PER_TOKEN: u64 = 4;

/// How long a cache entry lives after its last use, in milliseconds.
pub(super) type Life = u64;

pub(super) const MINUTE: Life = 60_000;

/// A block, an item, a tool, or a part of the system prompt.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    /// Where it is in the request, in the form of the vendor's messages.
    pub(super) path: String,
    pub(super) place: Place,
    /// The hash of its content and its role, without cache marks.
    pub(super) hash: u64,
    pub(super) tokens: u64,
    pub(super) kind: Kind,
    /// It ends a prefix that is to be cached.
    pub(super) mark: Option<Life>,
}

/// Who a piece belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Tools, system prompt, and other fields before the thread.
    Head,
    System,
    User,
    Assistant,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Content,
    /// Content that no reasoning is bound to.
    Aside,
    /// Reasoning, by its signature or id.
    Reasoning(String),
    /// A compaction of the vendor, by its signature or encrypted content.
    Compaction(String),
}

impl Piece {
    /// A piece of this content.
    pub(super) fn new(path: String, place: Place, value: &Value) -> Self {
        let mut value = value.clone();
        let mark = match value.as_object_mut().and_then(|fields| fields.remove("cache_control")) {
            Some(Value::Object(mark)) => Some(life_of(&mark)),
            _ => None,
        };
        let tokens = tokens_of(&value);
        let hash = hash_of(&Value::Array(vec![Value::from(place as u8), value]));
        Self { path, place, hash, tokens, kind: Kind::Content, mark }
    }
}

fn life_of(mark: &Map<String, Value>) -> Life {
    if mark.get("ttl").and_then(Value::as_str) == Some("1h") { 60 * MINUTE } else { 5 * MINUTE }
}

/// What a value counts: four bytes of JSON are a token.
pub(super) fn tokens_of(value: &Value) -> u64 {
    tokens_in(value.to_string().len())
}

pub(super) fn tokens_in(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX).div_ceil(BYTES_PER_TOKEN)
}
