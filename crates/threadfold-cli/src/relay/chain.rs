//! Identifying a thread by a hash of each message with all messages before it.

use std::{fmt, str::FromStr};

use threadfold::{
    message::{ContentBlock, Extra, InvalidValue, Message},
    wire::extra_mut,
};

/// Fields that do not identify a message: the cache mark, and whether a text was a string or a list
/// with one text. Clients move the mark from request to request, which requires the list form.
const FORM: [&str; 2] = ["cache_control", "~content"];

/// The hash of a message and of all messages before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Link([u8; 32]);

/// The links of a thread. If two threads share a link, their messages up to it are equal.
///
/// ```
/// use threadfold::Message;
/// use threadfold_cli::relay::Chain;
/// # fn sha256(bytes: &[u8]) -> [u8; 32] {
/// #     let mut hash = [0; 32];
/// #     bytes.iter().enumerate().for_each(|(at, byte)| hash[at % 32] ^= byte.rotate_left(at as u32));
/// #     hash
/// # }
///
/// let mut thread = vec![Message::user("Hi."), Message::assistant("Hello.")];
/// let before = Chain::of("anthropic-messages", &thread, &sha256);
/// thread.push(Message::user("Read a.txt."));
/// let after = Chain::of("anthropic-messages", &thread, &sha256);
/// assert_eq!((before.len(), after.len()), (2, 3));
/// assert_eq!(before.after(2), after.after(2));
/// thread[0] = Message::user("Hello?");
/// assert_ne!(Chain::of("anthropic-messages", &thread, &sha256).after(2), after.after(2));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain(Vec<Link>);

impl Chain {
    /// Returns the chain of these messages, as the codec of a dialect read them. Cache marks do not
    /// count.
    ///
    /// `hash` must be cryptographic: with two messages of one hash an attacker could get the
    /// summary of one thread sent in another.
    #[must_use]
    pub fn of(dialect: &str, messages: &[Message], hash: &dyn Fn(&[u8]) -> [u8; 32]) -> Self {
        let mut last = hash(dialect.as_bytes());
        let links = messages.iter().map(|message| {
            let mut bytes = last.to_vec();
            bytes.extend(canonical(message));
            last = hash(&bytes);
            Link(last)
        });
        Self(links.collect())
    }

    /// The number of messages.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// `true` if there are no messages.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the link after this many messages; `None` for zero, and beyond the end of the
    /// thread.
    ///
    /// ```
    /// use threadfold::Message;
    /// use threadfold_cli::relay::Chain;
    ///
    /// let chain = Chain::of("openai-chat", &[Message::user("Hi.")], &|_| [7; 32]);
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
    /// let chain = Chain::of("openai-chat", &thread, &|_| [7; 32]);
    /// let counts: Vec<usize> = chain.longest_first().map(|(count, _)| count).collect();
    /// assert_eq!(counts, [2, 1]);
    /// ```
    pub fn longest_first(&self) -> impl Iterator<Item = (usize, Link)> + '_ {
        self.0.iter().enumerate().rev().map(|(index, link)| (index + 1, *link))
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
        let refused = InvalidValue::new("a link", "it has 64 hexadecimal digits", text);
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
fn canonical(message: &Message) -> Vec<u8> {
    let mut message = message.clone();
    let parts = message.make_mut();
    strip_fields(&mut parts.extra);
    parts.content.iter_mut().for_each(strip);
    // These values always serialize. If one did not, the text of the error would be hashed, which
    // equals no message.
    serde_json::to_vec(&message).unwrap_or_else(|error| error.to_string().into_bytes())
}

fn strip(block: &mut ContentBlock) {
    if let Some(extra) = extra_mut(block) {
        strip_fields(extra);
    }
    if let ContentBlock::ToolResult(result) = block {
        result.content.iter_mut().for_each(strip);
    }
}

fn strip_fields(extra: &mut Extra) {
    let Some(codec) = extra.codec() else { return };
    if extra.fields().any(|(key, _)| FORM.contains(&key)) {
        let fields = extra.fields().filter(|(key, _)| !FORM.contains(key));
        *extra = Extra::new(codec, fields.map(|(key, json)| (key, json.clone())));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use threadfold::wire::{DecodeOptions, WireFormat};

    fn simple(bytes: &[u8]) -> [u8; 32] {
        let mut hash = [0_u8; 32];
        for (index, byte) in bytes.iter().enumerate() {
            let cell = &mut hash[index % 32];
            *cell = cell.wrapping_mul(31).wrapping_add(*byte);
        }
        hash
    }

    fn chain(body: &str) -> Chain {
        let codec = threadfold::wire::Dialect::Anthropic;
        let request = codec.decode_slice(body.as_bytes(), &DecodeOptions::default()).unwrap();
        Chain::of(codec.name(), &request.messages, &simple)
    }

    #[test]
    fn marks_of_the_cache_do_not_count() {
        let marked = r#"{"messages":[{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]}]}"#;
        let bare = r#"{"messages":[{"role":"user","content":[{"type":"text","text":"a"}]}]}"#;
        let short = r#"{"messages":[{"role":"user","content":"a"}]}"#;
        assert_eq!(chain(marked), chain(bare));
        assert_eq!(chain(marked), chain(short));
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
        let link = Link(simple(b"x"));
        assert_eq!(link.to_string().parse(), Ok(link));
        assert!("zz".parse::<Link>().is_err());
        assert!("é".repeat(32).parse::<Link>().is_err());
    }
}
