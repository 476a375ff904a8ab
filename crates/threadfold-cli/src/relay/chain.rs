//! Identifying a thread by a hash of each message with all messages before it.
//!
//! A message is hashed as the codec read it. A branch or an edited message changes the hashes from
//! there on. Cache marks are not hashed, because clients move them from request to request.

use std::{fmt, str::FromStr};

use aws_lc_rs::digest::{Context, SHA256};
use threadfold::{
    message::{ContentBlock, Extra, InvalidValue, Json, Message},
    wire::extra_mut,
};

/// The cache mark of a block.
const MARK: &str = "cache_control";

/// Fields that are ignored when messages are compared. Clients move cache marks from request to
/// request, and so switch between a string and a list with one text.
const FORM: [&str; 2] = [MARK, "~content"];

/// The hash of a message and of all messages before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Link([u8; 32]);

/// The links of a thread. If two threads share a link, their messages up to it are equal.
///
/// ```
/// use threadfold::Message;
/// use threadfold_cli::relay::Chain;
///
/// let mut thread = vec![Message::user("Hi."), Message::assistant("Hello.")];
/// let before = Chain::of("anthropic-messages", &thread);
/// thread.push(Message::user("Read a.txt."));
/// let after = Chain::of("anthropic-messages", &thread);
/// assert_eq!(before.after(2), after.after(2));
/// thread[0] = Message::user("Hello?");
/// assert_ne!(Chain::of("anthropic-messages", &thread).after(2), after.after(2));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain(Vec<Link>);

impl Chain {
    /// Returns the chain of these messages, as the codec of a dialect read them. Cache marks do not
    /// count.
    ///
    /// The hash is cryptographic (SHA-256), because an attacker who finds two messages with the
    /// same hash could have the summary of one thread sent in another.
    #[must_use]
    pub fn of(dialect: &str, messages: &[Message]) -> Self {
        let mut last = sha256(&[dialect.as_bytes()]);
        let links = messages.iter().map(|message| {
            last = sha256(&[&last, &canonical(message)]);
            Link(last)
        });
        Self(links.collect())
    }

    /// Returns the link after this many messages; `None` for zero, and beyond the end of the
    /// thread.
    ///
    /// ```
    /// use threadfold::Message;
    /// use threadfold_cli::relay::Chain;
    ///
    /// let chain = Chain::of("openai-chat", &[Message::user("Hi.")]);
    /// assert!(chain.after(0).is_none() && chain.after(1).is_some() && chain.after(2).is_none());
    /// ```
    #[must_use]
    pub fn after(&self, messages: usize) -> Option<Link> {
        self.0.get(messages.checked_sub(1)?).copied()
    }

    /// The links, each with its number of messages, the longest first. This is the order in which
    /// to look for a [`View`](super::View).
    ///
    /// ```
    /// use threadfold::Message;
    /// use threadfold_cli::relay::Chain;
    ///
    /// let thread = [Message::user("Hi."), Message::assistant("Hello.")];
    /// let chain = Chain::of("openai-chat", &thread);
    /// let counts: Vec<usize> = chain.longest_first().map(|(count, _)| count).collect();
    /// assert_eq!(counts, [2, 1]);
    /// ```
    pub fn longest_first(&self) -> impl Iterator<Item = (usize, Link)> + '_ {
        self.0.iter().enumerate().rev().map(|(index, link)| (index + 1, *link))
    }
}

impl Link {
    /// The hash of two names.
    pub(crate) fn of_names(one: &str, other: &str) -> Self {
        Self(sha256(&[one.len().to_string().as_bytes(), b" ", one.as_bytes(), other.as_bytes()]))
    }
}

impl fmt::Display for Link {
    /// Writes 64 hexadecimal digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Link({self})")
    }
}

impl FromStr for Link {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        let refused = InvalidValue::new("a link", "expected 64 hexadecimal digits", text);
        let digits: Option<Vec<u32>> = text.chars().map(|char| char.to_digit(16)).collect();
        let Some(digits) = digits.filter(|digits| digits.len() == 64) else { return Err(refused) };
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
            *byte = pair.iter().fold(0, |byte, digit| byte << 4 | *digit as u8);
        }
        Ok(Self(bytes))
    }
}

/// Returns the message as JSON, without fields that do not identify it.
pub(super) fn canonical(message: &Message) -> Vec<u8> {
    let message = without(message, &FORM).unwrap_or_else(|| message.clone());
    // Serialization of these values cannot fail. If it did, the hashed text of the error would
    // match no message.
    serde_json::to_vec(&message).unwrap_or_else(|error| error.to_string().into_bytes())
}

/// Returns the messages without cache marks.
pub(super) fn all_unmarked(messages: &[Message]) -> Vec<Message> {
    let bare = |message: &Message| unmarked(message).unwrap_or_else(|| message.clone());
    messages.iter().map(bare).collect()
}

/// Returns the message without its cache marks; `None` if it has none.
pub(super) fn unmarked(message: &Message) -> Option<Message> {
    without(message, &[MARK])
}

/// Returns the message without these fields; `None` if it has none of them.
fn without(message: &Message, keys: &[&str]) -> Option<Message> {
    let mut bare = message.clone();
    let parts = bare.make_mut();
    let mut had = strip_fields(&mut parts.extra, keys);
    for block in &mut parts.content {
        had |= strip(block, keys);
    }
    had.then_some(bare)
}

/// Returns the hash of these parts in a row.
fn sha256(parts: &[&[u8]]) -> [u8; 32] {
    let mut context = Context::new(&SHA256);
    parts.iter().for_each(|part| context.update(part));
    // A SHA-256 has 32 bytes.
    context.finish().as_ref().try_into().unwrap_or_default()
}

/// Removes these fields. Returns whether there was one.
fn strip(block: &mut ContentBlock, keys: &[&str]) -> bool {
    if let ContentBlock::Opaque(opaque) = block {
        return strip_json(&mut opaque.value, keys);
    }
    let mut had = extra_mut(block).is_some_and(|extra| strip_fields(extra, keys));
    if let ContentBlock::ToolResult(result) = block {
        for block in &mut result.content {
            had |= strip(block, keys);
        }
    }
    had
}

fn strip_fields(extra: &mut Extra, keys: &[&str]) -> bool {
    let Some(codec) = extra.codec() else { return false };
    let had = extra.fields().any(|(key, _)| keys.contains(&key));
    if had {
        let fields = extra.fields().filter(|(key, _)| !keys.contains(key));
        *extra = Extra::new(codec, fields.map(|(key, json)| (key, json.clone())));
    }
    had
}

/// Removes the fields of a block that no codec reads.
fn strip_json(json: &mut Json, keys: &[&str]) -> bool {
    if !keys.iter().any(|key| json.as_str().contains(key)) {
        return false;
    }
    let Ok(mut value) = json.to_value() else { return false };
    let Some(fields) = value.as_object_mut() else { return false };
    let before = fields.len();
    fields.retain(|key, _| !keys.contains(&key.as_str()));
    let had = fields.len() < before;
    if had {
        *json = Json::from(&value);
    }
    had
}

#[cfg(test)]
mod tests {
    use super::*;
    use threadfold::wire::DecodeOptions;

    fn chain(body: &str) -> Chain {
        let codec = threadfold::wire::Dialect::Anthropic;
        let request = codec.decode_slice(body.as_bytes(), &DecodeOptions::default()).unwrap();
        Chain::of(codec.name(), &request.messages)
    }

    #[test]
    fn marks_of_the_cache_do_not_count() {
        let marked = r#"{"messages":[{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]}]}"#;
        let bare = r#"{"messages":[{"role":"user","content":[{"type":"text","text":"a"}]}]}"#;
        let short = r#"{"messages":[{"role":"user","content":"a"}]}"#;
        assert_eq!(chain(marked), chain(bare));
        assert_eq!(chain(marked), chain(short));
        let unknown = r#"{"messages":[{"role":"user","content":[{"type":"new","x":1.5,"cache_control":{"type":"ephemeral"}}]}]}"#;
        let moved = unknown.replace(r#","cache_control":{"type":"ephemeral"}"#, "");
        assert_eq!(chain(unknown), chain(&moved));
        assert_ne!(chain(unknown), chain(&moved.replace("1.5", "2")));
    }

    #[test]
    fn what_a_model_wrote_counts() {
        let call = |input: &str| {
            chain(&format!(
                r#"{{"messages":[{{"role":"assistant","content":[{{"type":"tool_use","id":"t","name":"f","input":{input}}}]}}]}}"#
            ))
        };
        assert_ne!(call(r#"{"extra":{"a":{"cache_control":1}}}"#), call(r#"{"extra":{"a":{}}}"#));
    }

    #[test]
    fn a_link_is_read_as_it_is_written() {
        let link = Link(sha256(&[b"x"]));
        assert_eq!(link.to_string().parse(), Ok(link));
        assert!("zz".parse::<Link>().is_err());
        assert!("é".repeat(32).parse::<Link>().is_err());
    }
}
