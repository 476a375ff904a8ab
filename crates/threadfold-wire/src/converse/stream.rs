//! Assembling an answer from the events of its stream: the body of the whole answer, which is then
//! read like any other.

use std::collections::BTreeMap;

use super::read;
use crate::kit::*;

/// An answer that is being received.
#[derive(Debug, Default)]
pub(super) struct Response {
    role: Option<Json>,
    /// The blocks by their index. A map, because a hostile index may be huge.
    parts: BTreeMap<u64, Part>,
    /// The fields of the end event.
    end: Option<Object>,
    metadata: Option<Object>,
}

impl Assembly for Response {
    fn take(&mut self, event: StreamEvent<'_>, out: &mut Output) -> Taken {
        if !event.name.is_empty() {
            return self.named(event.name, event.data, out);
        }
        // SDKs put the name of the event into its data.
        let fields = Fields::parse(event.data);
        let named = fields.as_ref().and_then(|fields| fields.rest().next());
        named.map_or(Ok(()), |(name, raw)| self.named(name, raw.get(), out))
    }

    fn body(&mut self, _: bool) -> Option<Json> {
        let end = self.end.clone()?;
        let parts = std::mem::take(&mut self.parts);
        let content: Vec<Tree> = parts.into_values().map(Part::into_tree).collect();
        let role = self.role.take().map_or(Tree::Word("assistant"), Tree::Raw);
        let message = Object::of("role", role).with("content", content);
        let mut body = Object::of("output", Object::of("message", message));
        body.extend_unset(end);
        body.extend_unset(self.metadata.clone().unwrap_or_default());
        Some(body.into_json())
    }
}

impl Response {
    fn named(&mut self, name: &str, data: &str, out: &mut Output) -> Taken {
        if name.ends_with("Exception") {
            return Err(exception_error(name, data));
        }
        // `contentBlockStop` has no effect: the next block ends the one before.
        const KNOWN: [&str; 5] =
            ["messageStart", "contentBlockStart", "contentBlockDelta", "messageStop", "metadata"];
        if !KNOWN.contains(&name) {
            return Ok(());
        }
        let mut fields = Fields::parse(data).ok_or_else(|| holds("an event that is no object"))?;
        match name {
            "messageStart" => self.role = fields.take_json("role").or(self.role.take()),
            "contentBlockStart" => return self.begin(&fields, out),
            "contentBlockDelta" => return self.add(&fields, out),
            "messageStop" => self.end = Some(beside(fields)),
            _ => {
                out.usage = fields.get("usage").and_then(|raw| read::USAGE.read(raw));
                self.metadata = Some(beside(fields));
            }
        }
        out.is_complete = self.end.is_some() && self.metadata.is_some();
        Ok(())
    }

    fn begin(&mut self, event: &Fields<'_>, out: &mut Output) -> Taken {
        let start = event.get("start").ok_or_else(|| holds("a block without its start"))?;
        let part = Part::begin(start, out)?;
        match self.parts.insert(index(event)?, part) {
            None => Ok(()),
            Some(_) => Err(holds("a block that begins twice")),
        }
    }

    fn add(&mut self, event: &Fields<'_>, out: &mut Output) -> Taken {
        let delta = event.object("delta").ok_or_else(no_object)?;
        let index = index(event)?;
        let Some((kind, raw)) = delta.rest().next() else { return Ok(()) };
        if let Some(part) = self.parts.get_mut(&index) {
            return part.add(kind, raw, out);
        }
        let Some(mut part) = Part::of_delta(kind, raw)? else { return Ok(()) };
        part.add(kind, raw, out)?;
        self.parts.insert(index, part);
        Ok(())
    }
}

fn index(event: &Fields<'_>) -> Result<u64, ModelError> {
    let index = event.number("contentBlockIndex");
    index.ok_or_else(|| holds("a piece that does not say where it belongs"))
}

/// The fields of an event, without the padding that hides its length.
fn beside(mut fields: Fields<'_>) -> Object {
    fields.take("p");
    fields.tree()
}

/// Returns the error of an exception in the stream. Its name is its code.
fn exception_error(name: &str, data: &str) -> ModelError {
    let mut body = Object::of("type", name.to_owned());
    match Fields::parse(data) {
        Some(fields) => body.extend_unset(fields.tree()),
        None => body.set("message", data.to_owned()),
    }
    let mut error = provider_error(body.into_json().as_str());
    // By its documentation this exception is retryable; the event does not say so.
    if name == "modelStreamErrorException" && error.kind == ModelErrorKind::Other {
        error.kind = ModelErrorKind::Retryable { after: None };
    }
    error
}

/// The error of a stream with content that cannot be added to an answer.
fn holds(what: &str) -> ModelError {
    let kind = ModelErrorKind::Retryable { after: None };
    ModelError::new(kind, format!("the stream holds {what}"))
}

fn no_object() -> ModelError {
    holds("a piece that is no object")
}

/// A block that is being received.
#[derive(Debug, Default)]
struct Part {
    kind: Kind,
    /// The text so far: a text, the input of a call, or Base64 data.
    text: String,
    /// The other fields, from the start event and from the pieces. Texts and reasoning have no
    /// start event.
    fields: Merged,
    /// The id of a call that the host answers.
    call: Option<Text>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Text,
    Reasoning,
    Redacted,
    ToolUse,
    ToolResult,
    Image,
    /// An unknown kind. The start event holds the whole block.
    Other,
}

impl Part {
    /// Begins a block with its start event, and reports it.
    fn begin(start: Raw<'_>, out: &mut Output) -> Result<Self, ModelError> {
        let fields = Fields::of(start);
        let first = fields.as_ref().and_then(|fields| fields.rest().next());
        let (key, raw) = first.ok_or_else(|| holds("a block that does not say what it is"))?;
        let mut part = Self::default();
        let kind = match key {
            "toolUse" => Kind::ToolUse,
            "toolResult" => Kind::ToolResult,
            "image" => Kind::Image,
            _ => Kind::Other,
        };
        let Some(inner) = Fields::of(raw).filter(|_| kind != Kind::Other) else {
            part.kind = Kind::Other;
            part.fields.set(key, raw.json());
            return Ok(part);
        };
        part.kind = kind;
        part.fields.merge(&inner);
        if kind == Kind::ToolResult {
            part.fields.extend("content", Vec::new());
        }
        if kind != Kind::ToolUse {
            return Ok(part);
        }
        let named = inner.text("toolUseId").zip(inner.text("name"));
        let (id, name) = named.ok_or_else(|| holds("a call without id or name"))?;
        part.call = inner.text("type").is_none().then_some(id);
        part.call.iter().for_each(|id| out.call(id, name.clone()));
        Ok(part)
    }

    /// Begins a block of the kind that a piece belongs to; `None` for unknown kinds.
    fn of_delta(kind: &str, raw: Raw<'_>) -> Result<Option<Self>, ModelError> {
        let is_hidden = Fields::of(raw).is_some_and(|it| it.get("redactedContent").is_some());
        let kind = match kind {
            "text" | "citation" => Kind::Text,
            "reasoningContent" if is_hidden => Kind::Redacted,
            "reasoningContent" => Kind::Reasoning,
            "toolUse" | "toolResult" | "image" => {
                return Err(holds("a piece of a block that did not begin"));
            }
            _ => return Ok(None),
        };
        Ok(Some(Self { kind, ..Self::default() }))
    }

    /// Adds a piece, and reports it. Pieces of unknown kinds are ignored.
    fn add(&mut self, key: &str, raw: Raw<'_>, out: &mut Output) -> Taken {
        let other = || holds("a piece of another kind than its block");
        match (self.kind, key) {
            (Kind::Text, "text") => out.text(self.grow(text_of(raw)?)),
            (Kind::Text, "citation") => self.fields.extend("citations", vec![raw]),
            (Kind::ToolUse, "toolUse") => {
                let inner = Fields::of(raw).ok_or_else(no_object)?;
                let piece = inner.get("input").map(text_of).transpose()?.unwrap_or_default();
                let piece = self.grow(piece);
                self.call.iter().for_each(|id| out.input(id, piece.clone()));
            }
            (Kind::ToolResult, "toolResult") => {
                self.fields.extend("content", raw.items().ok_or_else(other)?);
            }
            (Kind::Image, "image") => {
                return self.add_picture(Fields::of(raw).ok_or_else(no_object)?);
            }
            (_, "reasoningContent") => {
                return self.add_reasoning(&Fields::of(raw).ok_or_else(no_object)?, out);
            }
            (_, "text" | "citation" | "toolUse" | "toolResult" | "image") => return Err(other()),
            (_, _) => {}
        }
        Ok(())
    }

    /// Adds a piece of a text, and returns it.
    fn grow(&mut self, piece: Text) -> Text {
        self.text.push_str(&piece);
        piece
    }

    fn add_reasoning(&mut self, piece: &Fields<'_>, out: &mut Output) -> Taken {
        let get = |key| piece.get(key).map(text_of).transpose();
        let (more, signed, hidden) = (get("text")?, get("signature")?, get("redactedContent")?);
        match (self.kind, hidden) {
            (Kind::Reasoning, None) => {
                signed.iter().for_each(|signed| self.fields.grow("signature", signed));
                out.thinking(self.grow(more.unwrap_or_default()));
                Ok(())
            }
            (Kind::Redacted, hidden) => append(&mut self.text, &hidden.unwrap_or_default())
                .ok_or_else(|| holds("reasoning that is not Base64")),
            (_, _) => Err(holds("a piece of reasoning in a block that is none")),
        }
    }

    /// Adds a piece of an image: more bytes, or another kind of source.
    fn add_picture(&mut self, mut piece: Fields<'_>) -> Taken {
        if let Some(more) = piece.object("source").and_then(|source| source.text("bytes")) {
            piece.take("source");
            let added = append(&mut self.text, &more);
            added.ok_or_else(|| holds("a picture that is not Base64"))?;
            self.fields.set("source", Object::of("bytes", "").into_json());
        }
        self.fields.merge(&piece);
        Ok(())
    }

    /// Returns the block as in a whole answer.
    fn into_tree(self) -> Tree {
        let Self { kind, text, fields, .. } = self;
        let fields = fields.object();
        let (key, inner) = match kind {
            Kind::Text if fields.len() == 0 => return Object::of("text", text).into(),
            Kind::Text => {
                let content = Tree::from_iter([Object::of("text", text)]);
                ("citationsContent", with_rest(Object::of("content", content), fields))
            }
            Kind::Reasoning => {
                let parts = with_rest(Object::of("text", text), fields);
                ("reasoningContent", Object::of("reasoningText", parts))
            }
            Kind::Redacted => ("reasoningContent", Object::of("redactedContent", text)),
            Kind::ToolUse => {
                let input = input(&text).unwrap_or_else(|| Object::default().into());
                ("toolUse", fields.with("input", input))
            }
            Kind::ToolResult => ("toolResult", fields),
            Kind::Image if text.is_empty() => ("image", fields),
            Kind::Image => ("image", fields.with("source", Object::of("bytes", text))),
            Kind::Other => return fields.into(),
        };
        Object::of(key, inner).into()
    }
}

fn with_rest(mut object: Object, rest: Object) -> Object {
    object.extend_unset(rest);
    object
}

fn text_of(raw: Raw<'_>) -> Result<Text, ModelError> {
    raw.text().ok_or_else(|| holds("a piece that is no text"))
}

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Appends a piece, so that the text encodes the bytes of both. Returns `None` and appends nothing
/// if the two must be encoded again and one is not Base64.
fn append(so_far: &mut String, piece: &str) -> Option<()> {
    if !so_far.ends_with('=') {
        so_far.push_str(piece);
        return Some(());
    }
    // Complete groups of four characters stay; only the bytes of the last, incomplete group are
    // encoded again.
    let full = so_far.len().checked_sub(4)?;
    let mut bytes = decode(so_far.get(full..)?)?;
    bytes.extend(decode(piece)?);
    so_far.truncate(full);
    so_far.push_str(&encode(&bytes));
    Some(())
}

fn decode(text: &str) -> Option<Vec<u8>> {
    let letters = text.trim_end_matches('=');
    let mut bytes = Vec::with_capacity(letters.len() / 4 * 3 + 2);
    let (mut bits, mut held) = (0_u32, 0_u32);
    for letter in letters.bytes() {
        let value = LETTERS.iter().position(|known| *known == letter)?;
        bits = (bits << 6) | u32::try_from(value).ok()?;
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push(u8::try_from((bits >> held) & 0xff).ok()?);
        }
    }
    Some(bytes)
}

fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let at = |index: usize| group.get(index).copied().map_or(0, u32::from);
        let bits = (at(0) << 16) | (at(1) << 8) | at(2);
        for letter in 0..4 {
            let value = (bits >> (18 - 6 * letter)) & 0x3f;
            let known = LETTERS.get(value as usize).filter(|_| letter <= group.len());
            text.push(known.map_or('=', |letter| char::from(*letter)));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_stand_for_the_bytes_of_all() {
        let bytes: Vec<u8> = (0..=255).collect();
        for cut in 0..bytes.len() {
            let (one, two) = bytes.split_at(cut);
            let mut joined = encode(one);
            append(&mut joined, &encode(two)).unwrap();
            assert_eq!(joined, encode(&bytes));
            assert_eq!(decode(&joined).unwrap(), bytes);
        }
    }

    #[test]
    fn what_is_no_base64_is_refused_where_it_matters() {
        let mut joined = "AA==".to_owned();
        assert_eq!(append(&mut joined, "?"), None);
        assert_eq!(joined, "AA==");
        assert_eq!(append(&mut "=".to_owned(), "AA=="), None);
        assert_eq!(append(&mut "\u{e9}\u{e9}\u{e9}=".to_owned(), "AA=="), None);
    }
}
