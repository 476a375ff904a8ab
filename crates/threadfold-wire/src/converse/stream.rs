//! Building an answer of the events of its stream: the body that the whole answer would have had,
//! which is then read as one.

use std::collections::BTreeMap;

use super::read;
use crate::kit::*;

/// An answer in the making.
#[derive(Debug, Default)]
pub(super) struct Response {
    role: Option<Json>,
    /// The blocks by their index. A map, because a hostile index may be huge.
    parts: BTreeMap<u64, Part>,
    /// The fields of the end event.
    end: Option<Object>,
    metadata: Option<Object>,
    usage: Usage,
}

impl Assembly for Response {
    fn take(&mut self, event: StreamEvent<'_>) -> Result<Vec<Delta>, ModelError> {
        let delta = if event.name.is_empty() {
            // SDKs put the name of the event into its data.
            let fields = Fields::parse(event.data);
            let named = fields.as_ref().and_then(|fields| fields.rest().next());
            named.map_or(Ok(None), |(name, raw)| self.named(name, raw.get()))
        } else {
            self.named(event.name, event.data)
        };
        Ok(delta?.into_iter().collect())
    }

    fn is_complete(&self) -> bool {
        self.end.is_some() && self.metadata.is_some()
    }

    /// The body that the whole answer would have had.
    fn body(&mut self) -> Option<Json> {
        let end = self.end.clone()?;
        let parts = std::mem::take(&mut self.parts);
        let content: Vec<Tree> = parts.into_values().map(Part::into_tree).collect();
        let role = self.role.take().map_or(Tree::Word("assistant"), Tree::Raw);
        let message = Object::default().with("role", role).with("content", content);
        let mut body = Object::default().with("output", Object::default().with("message", message));
        body.extend_unset(end);
        body.extend_unset(self.metadata.clone().unwrap_or_default());
        Some(Tree::from(body).into_json())
    }

    fn usage(&self) -> Option<Usage> {
        Some(self.usage)
    }
}

impl Response {
    fn named(&mut self, name: &str, data: &str) -> Result<Option<Delta>, ModelError> {
        let fields = || Fields::parse(data).ok_or(Unreadable("an event that is no object"));
        match name {
            "messageStart" => self.role = fields()?.take_json("role").or(self.role.take()),
            "contentBlockStart" => return self.begin(&fields()?),
            "contentBlockDelta" => return self.add(&fields()?),
            "messageStop" => self.end = Some(beside(fields()?)),
            "metadata" => {
                let fields = fields()?;
                let usage = fields.get("usage").and_then(|raw| read::USAGE.read(raw));
                self.usage = usage.unwrap_or(self.usage);
                self.metadata = Some(beside(fields));
            }
            exception if exception.ends_with("Exception") => {
                return Err(exception_error(exception, data));
            }
            // `contentBlockStop` adds nothing: the next block ends this one.
            _ => {}
        }
        Ok(None)
    }

    fn begin(&mut self, event: &Fields<'_>) -> Result<Option<Delta>, ModelError> {
        let start = event.get("start").ok_or(Unreadable("a block without its start"))?;
        let (part, begins) = Part::begin(start)?;
        match self.parts.insert(index(event)?, part) {
            None => Ok(begins),
            Some(_) => Err(Unreadable("a block that begins twice").into()),
        }
    }

    fn add(&mut self, event: &Fields<'_>) -> Result<Option<Delta>, ModelError> {
        let delta = event.object("delta");
        let delta = delta.ok_or(Unreadable("a piece that is no object"))?;
        let index = index(event)?;
        if let Some(part) = self.parts.get_mut(&index) {
            return Ok(part.add(&delta)?);
        }
        let Some(mut part) = Part::for_delta(&delta)? else { return Ok(None) };
        let added = part.add(&delta)?;
        self.parts.insert(index, part);
        Ok(added)
    }
}

fn index(event: &Fields<'_>) -> Result<u64, Unreadable> {
    let index = event.get("contentBlockIndex");
    let index = index.and_then(|raw| serde_json::from_str(raw.get()).ok());
    index.ok_or(Unreadable("a piece that does not say where it belongs"))
}

/// The fields of an event, without the padding that hides how long it is.
fn beside(mut fields: Fields<'_>) -> Object {
    fields.take("p");
    fields.tree()
}

/// Returns the error of an exception within the stream. Its name is its code.
fn exception_error(name: &str, data: &str) -> ModelError {
    let mut body = Object::default().with("type", name.to_owned());
    match Fields::parse(data) {
        Some(fields) => body.extend_unset(fields.tree()),
        None => body.set("message", data.to_owned()),
    }
    let mut error = classify_error(0, Tree::from(body).into_json().as_str().as_bytes());
    // The provider asks to try again, in its documentation and not in the event.
    if name == "modelStreamErrorException" && error.kind == ModelErrorKind::Other {
        error.kind = ModelErrorKind::Retryable { after: None };
    }
    error
}

/// A block in the making.
#[derive(Debug)]
enum Part {
    Text {
        text: String,
        citations: Vec<Tree>,
    },
    Reasoning {
        text: String,
        signature: Option<String>,
    },
    Redacted {
        data: String,
    },
    ToolUse {
        start: Object,
        id: Text,
        input: String,
        is_own: bool,
    },
    ToolResult {
        start: Object,
        items: Vec<Tree>,
    },
    Image {
        start: Object,
        bytes: Option<String>,
        rest: Object,
    },
    /// A block of a kind that is not known here.
    Other {
        kind: String,
        start: Json,
    },
}

/// Why a piece cannot be added to an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Unreadable(pub(super) &'static str);

impl From<Unreadable> for ModelError {
    fn from(Unreadable(what): Unreadable) -> Self {
        let kind = ModelErrorKind::Retryable { after: None };
        Self::new(kind, format!("the stream holds {what}"))
    }
}

impl Part {
    /// Begins a block from its start event, and returns what that adds to the answer. Texts and
    /// reasoning have no start event.
    fn begin(start: Raw<'_>) -> Result<(Self, Option<Delta>), Unreadable> {
        const START: Unreadable = Unreadable("a block that does not say what it is");
        let fields = Fields::of(start).ok_or(START)?;
        let (kind, raw) = fields.rest().next().ok_or(START)?;
        let inner = Fields::of(raw);
        let start = inner.as_ref().map(Fields::tree).unwrap_or_default();
        let part = match (kind, inner) {
            ("toolUse", Some(mut inner)) => {
                const CALL: Unreadable = Unreadable("a call without id or name");
                let id = inner.take_text("toolUseId").ok_or(CALL)?;
                let name = inner.take_text("name").ok_or(CALL)?;
                let is_own = inner.take_text("type").is_none();
                let begins = Delta::ToolUse { id: id.clone(), name };
                let part = Self::ToolUse { start, id, input: String::new(), is_own };
                return Ok((part, is_own.then_some(begins)));
            }
            ("toolResult", Some(_)) => Self::ToolResult { start, items: Vec::new() },
            ("image", Some(_)) => Self::Image { start, bytes: None, rest: Object::default() },
            _ => Self::Other { kind: kind.to_owned(), start: raw.json() },
        };
        Ok((part, None))
    }

    /// Begins a block of the kind that a piece belongs to; `None` for one of an unknown kind.
    fn for_delta(delta: &Fields<'_>) -> Result<Option<Self>, Unreadable> {
        let reasoning = |raw: Raw<'_>| {
            let redacts =
                Fields::of(raw).is_some_and(|fields| fields.get("redactedContent").is_some());
            if redacts {
                Self::Redacted { data: String::new() }
            } else {
                Self::Reasoning { text: String::new(), signature: None }
            }
        };
        let Some((kind, raw)) = delta.rest().next() else { return Ok(None) };
        match kind {
            "text" | "citation" => {
                Ok(Some(Self::Text { text: String::new(), citations: Vec::new() }))
            }
            "reasoningContent" => Ok(Some(reasoning(raw))),
            "toolUse" | "toolResult" | "image" => {
                Err(Unreadable("a piece of a block that did not begin"))
            }
            _ => Ok(None),
        }
    }

    /// Adds a piece, and returns what that adds to the answer. Pieces of unknown kinds add nothing.
    fn add(&mut self, delta: &Fields<'_>) -> Result<Option<Delta>, Unreadable> {
        const OTHER: Unreadable = Unreadable("a piece of another kind than its block");
        let Some((kind, raw)) = delta.rest().next() else { return Ok(None) };
        match (self, kind) {
            (Self::Text { text, .. }, "text") => {
                let piece = text_of(raw)?;
                text.push_str(&piece);
                Ok(reported(piece, |text| Delta::Text { text }))
            }
            (Self::Text { citations, .. }, "citation") => {
                citations.push(raw.json().into());
                Ok(None)
            }
            (Self::ToolUse { id, input, is_own, .. }, "toolUse") => {
                let piece = inner(raw)?.get("input").map(text_of).transpose()?.unwrap_or_default();
                input.push_str(&piece);
                let id = Some(id.clone()).filter(|_| *is_own);
                Ok(id.and_then(|id| reported(piece, |text| Delta::ToolInput { id, text })))
            }
            (Self::ToolResult { items, .. }, "toolResult") => {
                let pieces = raw.items().ok_or(OTHER)?;
                items.extend(pieces.into_iter().map(|piece| Tree::from(Raw::json(piece))));
                Ok(None)
            }
            (Self::Image { bytes, rest, .. }, "image") => add_picture(bytes, rest, inner(raw)?),
            (part, "reasoningContent") => part.add_reasoning(&inner(raw)?),
            (_, "text" | "citation" | "toolUse" | "toolResult" | "image") => Err(OTHER),
            (_, _) => Ok(None),
        }
    }

    fn add_reasoning(&mut self, piece: &Fields<'_>) -> Result<Option<Delta>, Unreadable> {
        let get = |key| piece.get(key).map(text_of).transpose();
        let (more, signed, hidden) = (get("text")?, get("signature")?, get("redactedContent")?);
        match (self, hidden) {
            (Self::Reasoning { text, signature }, None) => {
                let more = more.unwrap_or_default();
                text.push_str(&more);
                if let Some(signed) = signed {
                    signature.get_or_insert_default().push_str(&signed);
                }
                Ok(reported(more, |text| Delta::Thinking { text }))
            }
            (Self::Redacted { data }, hidden) => {
                let added = append(data, &hidden.unwrap_or_default());
                added.map(|()| None).ok_or(Unreadable("reasoning that is not Base64"))
            }
            (_, _) => Err(Unreadable("a piece of reasoning in a block that is none")),
        }
    }

    /// Returns the block as it stands in a whole answer.
    fn into_tree(self) -> Tree {
        let (kind, inner) = match self {
            Self::Text { text, citations } if citations.is_empty() => {
                return Object::default().with("text", text).into();
            }
            Self::Text { text, citations } => {
                let content = vec![Object::default().with("text", text).into()];
                let cited = Object::default().with("content", content).with("citations", citations);
                ("citationsContent".into(), cited.into())
            }
            Self::Reasoning { text, signature } => {
                let mut parts = Object::default().with("text", text);
                parts.set_some("signature", signature);
                ("reasoningContent".into(), Object::default().with("reasoningText", parts).into())
            }
            Self::Redacted { data } => {
                ("reasoningContent".into(), Object::default().with("redactedContent", data).into())
            }
            Self::ToolUse { start, input, .. } => {
                ("toolUse".into(), start.with("input", read_input(input)).into())
            }
            Self::ToolResult { start, items } => {
                ("toolResult".into(), start.with("content", items).into())
            }
            Self::Image { mut start, bytes, rest } => {
                start.set_some("source", bytes.map(|bytes| Object::default().with("bytes", bytes)));
                start.extend_unset(rest);
                ("image".into(), start.into())
            }
            Self::Other { kind, start } => (kind, Tree::Raw(start)),
        };
        Object::default().with(kind, inner).into()
    }
}

/// Adds a piece of a picture: more bytes, or another kind of source.
fn add_picture(
    bytes: &mut Option<String>,
    rest: &mut Object,
    mut piece: Fields<'_>,
) -> Result<Option<Delta>, Unreadable> {
    let mut source = piece.object("source");
    if let Some(more) = source.as_mut().and_then(|source| source.take_text("bytes")) {
        piece.take("source");
        let added = append(bytes.get_or_insert_default(), &more);
        added.ok_or(Unreadable("a picture that is not Base64"))?;
    }
    rest.extend_unset(piece.tree());
    Ok(None)
}

/// The input of a call. One that was cut off is kept as its text.
fn read_input(input: String) -> Tree {
    if input.trim().is_empty() {
        return Object::default().into();
    }
    Json::parse(&input).map_or_else(|_| input.into(), Tree::Raw)
}

fn inner(raw: Raw<'_>) -> Result<Fields<'_>, Unreadable> {
    Fields::of(raw).ok_or(Unreadable("a piece that is no object"))
}

fn text_of(raw: Raw<'_>) -> Result<Text, Unreadable> {
    raw.text().ok_or(Unreadable("a piece that is no text"))
}

/// What a piece adds to the answer, unless it is empty.
fn reported(piece: Text, delta: impl FnOnce(Text) -> Delta) -> Option<Delta> {
    if piece.is_empty() { None } else { Some(delta(piece)) }
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
            let value = usize::try_from((bits >> (18 - 6 * letter)) & 0x3f).unwrap_or_default();
            let known = LETTERS.get(value).filter(|_| letter <= group.len());
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
