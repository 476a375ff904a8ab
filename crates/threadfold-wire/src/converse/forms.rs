//! The name of the codec, and its marks.
//!
//! In this dialect a block is an object with one key, and its fields are in an object under that
//! key. Unknown fields of the inner object are in the `extra` of the block under their own names.
//! Fields beside the key, which the dialect does not define, are one mark. Texts have no inner
//! object, so the fields beside a text are in its `extra` under their own names.
//!
//! | mark | on | meaning |
//! |---|---|---|
//! | `~beside` | any block or tool but text | the fields beside the one key |
//! | `~name` | document | its name, if the documented rule refuses it |
//! | `~form` | text | it looks like one of this crate's tags but was read as text, so it is written unchanged |
//! | `~json: ""` | text of a result | it was JSON, not text |
//! | `~content: []` | result | it was empty |
//! | `~status` | result | `success`, or another status than `error`, was explicit |
//! | `~type` | server call or result | its `type` |
//! | `~picture` | image | the media type and the length of its data, or the length of its address |
//! | `~format` | text document | it had no `format` |
//! | `~schema` | tool | its schema, which had no `type` |
//! | `~role: "system"` | message of the system role | it was within the thread |
//! | `~response` | message from a response | the fields of the response that a request cannot hold |
//! | `~temperature`, `~toolChoice` | request | the JSON text, if this crate would write another one |
//! | `~maxTokens` | request | the JSON text, if this crate would write another one |
//! | `~system` | request | `null` or empty was explicit |
//! | `~toolConfig`, `~inferenceConfig` | request | it was empty |
//!
//! A mark has an effect only while the value is unchanged. A wire field whose own name begins with
//! `~` gets a second one.

use crate::kit::*;

/// The name of the codec.
pub(super) const NAME: &str = "bedrock-converse";

/// Reads the inner object of a block or a tool, and marks the fields beside its key.
pub(super) fn within<'a>(inner: Raw<'a>, beside: &Fields<'_>) -> Option<Fields<'a>> {
    let mut inner = Fields::of(inner)?;
    if beside.left() > 0 {
        inner.add(mark::BESIDE, beside.json());
    }
    Some(inner)
}

/// The keys that determine the type of a block. All are listed, so that a block with two of them is
/// recognised as malformed.
#[rustfmt::skip]
const KEYS: [&str; 14] = [
    "text", "image", "document", "video", "audio", "toolUse", "toolResult", "guardContent",
    "cachePoint", "reasoningContent", "citationsContent", "searchResult", "toolAddition",
    "toolRemoval",
];

/// The key of a cache point, which follows the cached part.
pub(super) const CACHE_POINT: &str = "cachePoint";

/// The kind of a server result without a `type`.
pub(super) const RESULT: &str = "toolResult";

/// The key that determines the type of a block; `None` if there is none, or more than one.
pub(super) fn key_of(fields: &Fields<'_>) -> Option<&'static str> {
    let set = fields.rest().filter(|(_, raw)| raw.get() != "null");
    let mut keys = set.filter_map(|(key, _)| KEYS.into_iter().find(|known| *known == key));
    let first = keys.next()?;
    keys.all(|other| other == first).then_some(first)
}
