//! Assembling an answer from the events of its stream: the body of the whole answer, which is then
//! read like any other.

use std::collections::BTreeMap;

use super::read;
use crate::kit::*;

/// An answer that is being received.
#[derive(Debug, Default)]
pub(super) struct Response {
    role: Option<Json>,
    /// The blocks by their index. A map and not a vector, because a hostile index may be huge.
    parts: BTreeMap<u64, Part>,
    /// The fields of the end event.
    end: Option<Object>,
    metadata: Option<Object>,
}

impl Assembly for Response {
    fn take(&mut self, name: &str, data: &str, out: &mut Output) -> Taken {
        if !name.is_empty() {
            return self.named(name, data, out);
        }
        // SDKs put the name of the event into its data.
        let fields = Fields::parse(data);
        let named = fields.as_ref().and_then(|fields| fields.rest().next());
        named.map_or(Ok(()), |(name, raw)| self.named(name, raw.get(), out))
    }

    fn body(&mut self, _: bool) -> Option<Json> {
        let end = self.end.clone()?;
        let parts = std::mem::take(&mut self.parts);
        let content: Vec<Tree> = parts.into_values().map(Part::into_tree).collect();
        let role = self.role.take().map_or(Tree::Word("assistant"), Tree::Raw);
        let message = Object::of("role", role).with("content", content);
        let body = Object::of("output", Object::of("message", message)).and(end);
        Some(body.and(self.metadata.clone().unwrap_or_default()).into_json())
    }
}

impl Response {
    fn named(&mut self, name: &str, data: &str, out: &mut Output) -> Taken {
        if name.ends_with("Exception") {
            return Err(exception_error(name, data));
        }
        match name {
            "messageStart" => self.role = event(data)?.take_json("role").or(self.role.take()),
            "contentBlockStart" => return self.begin(&event(data)?, out),
            "contentBlockDelta" => return self.add(&event(data)?, out),
            "messageStop" => self.end = Some(beside(event(data)?)),
            "metadata" => {
                let fields = event(data)?;
                out.usage = fields.get("usage").and_then(|raw| read::USAGE.read(raw));
                self.metadata = Some(beside(fields));
            }
            // `contentBlockStop` has no effect either, because the next block ends the previous
            // one.
            _ => return Ok(()),
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
        let delta = event.object("delta").ok_or_else(|| holds(NO_OBJECT))?;
        let index = index(event)?;
        let Some((key, raw)) = delta.rest().next() else { return Ok(()) };
        let Some(kind) = kind_of_piece(key, raw) else { return Ok(()) };
        if BEGUN.contains(&kind) && !self.parts.contains_key(&index) {
            return Err(holds("a piece of a block that did not begin"));
        }
        let part = self.parts.entry(index);
        part.or_insert_with(|| Part { kind, ..Part::default() }).add(kind, key, raw, out)
    }
}

fn event(data: &str) -> Result<Fields<'_>, ModelError> {
    Fields::parse(data).ok_or_else(|| holds("an event that is no object"))
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
    // This exception is documented as retryable, although the event does not state it.
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

const OTHER_KIND: &str = "a piece of another kind than its block";
const NO_OBJECT: &str = "a piece that is no object";

/// The kinds of blocks that have a start event. Texts and reasoning have none.
const BEGUN: [&str; 3] = ["toolUse", "toolResult", "image"];

/// The kind of the block that a piece belongs to; `None` for pieces of unknown kinds.
fn kind_of_piece(key: &str, raw: Raw<'_>) -> Option<&'static str> {
    match key {
        "text" | "citation" => Some("text"),
        "reasoningContent" => {
            let is_hidden = Fields::of(raw).is_some_and(|piece| piece.get(REDACTED).is_some());
            Some(if is_hidden { REDACTED } else { "reasoningContent" })
        }
        _ => BEGUN.into_iter().find(|kind| *kind == key),
    }
}

/// The key of encrypted reasoning, which is also its kind.
const REDACTED: &str = "redactedContent";

/// A block that is being received.
#[derive(Debug, Default)]
struct Part {
    /// The key of the block; empty for an unknown kind, whose start event holds the whole block.
    kind: &'static str,
    /// The text so far: a text, the input of a call, or Base64 data.
    text: String,
    /// The other fields, from the start event and from the pieces.
    fields: Merged,
    /// The id of a call that the host answers.
    call: Option<Text>,
}

impl Part {
    /// Begins a block with its start event, and reports it.
    fn begin(start: Raw<'_>, out: &mut Output) -> Result<Self, ModelError> {
        let fields = Fields::of(start);
        let first = fields.as_ref().and_then(|fields| fields.rest().next());
        let (key, raw) = first.ok_or_else(|| holds("a block that does not say what it is"))?;
        let mut part = Self::default();
        let known = BEGUN.into_iter().find(|kind| *kind == key);
        let Some((kind, inner)) = known.zip(Fields::of(raw)) else {
            part.fields.set(key, raw.json());
            return Ok(part);
        };
        part.kind = kind;
        part.fields.merge(&inner);
        if kind == "toolResult" {
            part.fields.extend("content", Vec::new());
        } else if kind == "toolUse" {
            let named = inner.text("toolUseId").zip(inner.text("name"));
            let (id, name) = named.ok_or_else(|| holds("a call without id or name"))?;
            part.call = inner.text("type").is_none().then_some(id);
            part.call.iter().for_each(|id| out.call(id, name.clone()));
        }
        Ok(part)
    }

    /// Adds a piece of a block of this kind, and reports it.
    fn add(&mut self, kind: &str, key: &str, raw: Raw<'_>, out: &mut Output) -> Taken {
        // An empty piece of encrypted reasoning counts as `reasoningContent`, so accept it too.
        if self.kind != kind && (self.kind, kind) != (REDACTED, "reasoningContent") {
            return Err(holds(OTHER_KIND));
        }
        match key {
            "text" => out.text(self.grow(text_of(raw)?)),
            "citation" => self.fields.extend("citations", vec![raw]),
            "toolResult" => {
                self.fields.extend("content", raw.items().ok_or_else(|| holds(OTHER_KIND))?)
            }
            _ => return self.add_fields(Fields::of(raw).ok_or_else(|| holds(NO_OBJECT))?, out),
        }
        Ok(())
    }

    /// Adds a piece that is an object.
    fn add_fields(&mut self, piece: Fields<'_>, out: &mut Output) -> Taken {
        match self.kind {
            "image" => return self.add_picture(piece),
            "toolUse" => {
                let input = piece.get("input").map(text_of).transpose()?;
                let input = self.grow(input.unwrap_or_default());
                self.call.iter().for_each(|id| out.input(id, input.clone()));
            }
            REDACTED => {
                let hidden = piece.get(REDACTED).map(text_of).transpose()?;
                let added = append(&mut self.text, &hidden.unwrap_or_default());
                added.ok_or_else(|| holds("reasoning that is not Base64"))?;
            }
            _ => {
                let signed = piece.get("signature").map(text_of).transpose()?;
                signed.iter().for_each(|signed| self.fields.grow("signature", signed));
                let more = piece.get("text").map(text_of).transpose()?;
                out.thinking(self.grow(more.unwrap_or_default()));
            }
        }
        Ok(())
    }

    /// Adds a piece of a text, and returns it.
    fn grow(&mut self, piece: Text) -> Text {
        self.text.push_str(&piece);
        piece
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
            "text" if fields.len() == 0 => return Object::of("text", text).into(),
            "text" => {
                let content = Tree::from_iter([Object::of("text", text)]);
                ("citationsContent", Object::of("content", content).and(fields))
            }
            "reasoningContent" => {
                (kind, Object::of("reasoningText", Object::of("text", text).and(fields)))
            }
            REDACTED => ("reasoningContent", Object::of(REDACTED, text)),
            "toolUse" => {
                let input = input(&text).unwrap_or_else(|| Object::default().into());
                (kind, fields.with("input", input))
            }
            "image" if !text.is_empty() => (kind, fields.with("source", Object::of("bytes", text))),
            "" => return fields.into(),
            _ => (kind, fields),
        };
        Object::of(key, inner).into()
    }
}

fn text_of(raw: Raw<'_>) -> Result<Text, ModelError> {
    raw.text().ok_or_else(|| holds("a piece that is no text"))
}

/// Appends a piece of Base64, so that the text encodes the bytes of both. Returns `None` and
/// appends nothing if bytes must be encoded again and one of the texts is not Base64.
fn append(so_far: &mut String, piece: &str) -> Option<()> {
    if !so_far.ends_with('=') {
        so_far.push_str(piece);
        return Some(());
    }
    // Complete groups of four characters stay; only the bytes of the last, incomplete group are
    // encoded again.
    let full = so_far.len().checked_sub(4)?;
    let mut bytes = base64::decode(so_far.get(full..)?)?;
    bytes.extend(base64::decode(piece)?);
    so_far.truncate(full);
    so_far.push_str(&base64::encode(&bytes));
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_stand_for_the_bytes_of_all() {
        let bytes: Vec<u8> = (0..=255).collect();
        for cut in 0..bytes.len() {
            let (one, two) = bytes.split_at(cut);
            let mut joined = base64::encode(one);
            append(&mut joined, &base64::encode(two)).unwrap();
            assert_eq!(joined, base64::encode(&bytes));
            assert_eq!(base64::decode(&joined).unwrap(), bytes);
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
