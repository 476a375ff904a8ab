//! The blocks of an answer, as they grow with the events of its stream.

use super::blobs;
use crate::json::{Fields, Object, Raw, Tree};
use threadfold_core::message::{Delta, Json, ModelError, ModelErrorKind, Text};

/// A block in the making.
#[derive(Debug)]
pub(super) enum Part {
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
pub(super) struct Unreadable(pub(super) &'static str);

impl From<Unreadable> for ModelError {
    fn from(Unreadable(what): Unreadable) -> Self {
        let kind = ModelErrorKind::Retryable { after: None };
        Self::new(kind, format!("the stream holds {what}"))
    }
}

impl Part {
    /// Begins a block from its start event, and returns what that adds to the answer. Texts and
    /// reasoning have no start event.
    pub(super) fn begin(start: Raw<'_>) -> Result<(Self, Option<Delta>), Unreadable> {
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
    pub(super) fn for_delta(delta: &Fields<'_>) -> Result<Option<Self>, Unreadable> {
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
    pub(super) fn add(&mut self, delta: &Fields<'_>) -> Result<Option<Delta>, Unreadable> {
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
                let added = blobs::append(data, &hidden.unwrap_or_default());
                added.map(|()| None).ok_or(Unreadable("reasoning that is not Base64"))
            }
            (_, _) => Err(Unreadable("a piece of reasoning in a block that is none")),
        }
    }

    /// Returns the block as it stands in a whole answer.
    pub(super) fn into_tree(self) -> Tree {
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
        let added = blobs::append(bytes.get_or_insert_default(), &more);
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
