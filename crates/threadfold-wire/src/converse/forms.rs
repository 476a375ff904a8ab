//! The name of the codec, and how it remembers the forms in which fields came.
//!
//! A block is an object of one key here, and what it says stands in an object under that key. The
//! unknown fields of the inner object are the `extra` of the block under their own names; what
//! stands beside the key, which the dialect does not foresee, is one note. Texts have no inner
//! object, so theirs stand under their own names.
//!
//! | note | on | says |
//! |---|---|---|
//! | `~beside` | any block or tool but text | the fields beside the one key |
//! | `~name` | document | its name, which the documented rule refuses |
//! | `~form` | text | it looks like one of our tags but came as text, so it is written unchanged |
//! | `~json: ""` | text of a result | it came as JSON, not as text |
//! | `~content: []` | result | it came empty |
//! | `~status` | result | `success`, or another word, was spelled out |
//! | `~type` | server call or result | its `type` |
//! | `~format` | text document | it came without a `format` |
//! | `~schema` | tool | its schema, which came without a `type` |
//! | `~role: "system"` | message of the system role | it stood within the thread |
//! | `~answer` | message from a response | the fields of the response that a request has not |
//! | `~temperature`, `~toolChoice` | request | the text, where ours would differ |
//! | `~maxTokens` | request | the text, where ours would differ |
//! | `~system` | request | `null` or empty was spelled out |
//! | `~toolConfig`, `~inferenceConfig` | request | it came empty |
//!
//! A note counts only while the value is still what it was a note on. A wire field whose own name
//! begins with `~` is kept with a second one.

use crate::kit::*;

/// The name of the codec.
pub(super) const NAME: &str = "bedrock-converse";

/// Reads the inner object of a block or a tool, and notes the fields beside its key.
pub(super) fn within<'a>(inner: Raw<'a>, beside: &Fields<'_>) -> Option<Fields<'a>> {
    let mut inner = Fields::of(inner)?;
    if beside.left() > 0 {
        inner.note("~beside", beside.json());
    }
    Some(inner)
}

/// The keys that say what a block is. All are listed, so that a block with two of them is
/// recognized as malformed.
const KEYS: [&str; 14] = [
    "text",
    "image",
    "document",
    "video",
    "audio",
    "toolUse",
    "toolResult",
    "guardContent",
    "cachePoint",
    "reasoningContent",
    "citationsContent",
    "searchResult",
    "toolAddition",
    "toolRemoval",
];

/// The key of a cache point, which follows the part to cache.
pub(super) const CACHE_POINT: &str = "cachePoint";

/// The kind of a server result that came without a `type`.
pub(super) const RESULT: &str = "toolResult";

/// The one key of a block that says what it is; `None` if there is none, or more than one.
pub(super) fn key_of(fields: &Fields<'_>) -> Option<&'static str> {
    let set = fields.rest().filter(|(_, raw)| raw.get() != "null");
    let mut keys = set.filter_map(|(key, _)| KEYS.into_iter().find(|known| *known == key));
    let first = keys.next()?;
    keys.all(|other| other == first).then_some(first)
}
