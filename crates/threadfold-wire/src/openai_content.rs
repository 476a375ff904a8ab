//! What messages and results hold, in both dialects of OpenAI: one string or a list of parts.

use super::{
    extras::wire_fields,
    notes::Notes,
    openai::{FAILED, failed, write_data_uri},
    texts::wire_text,
    tree::{Object, Tree},
};
use threadfold_core::message::{
    ContentBlock, Document, Image, Json, MediaSource, Opaque, Role, Text,
};

/// One piece of a content.
#[derive(Debug)]
pub(super) enum Piece {
    /// Text without fields of its own, which may stand as a string.
    Plain(Text),
    /// A whole content as it came: a string, or the output of a call in a form of its own.
    Whole(Json),
    /// A part.
    Part(Tree),
}

/// How a dialect writes the pieces of a content.
#[derive(Debug)]
pub(super) struct Parts {
    /// The type of a part that is a text.
    pub(super) text: &'static str,
    pub(super) image: fn(Role, &Image, &mut Notes) -> Option<Piece>,
    pub(super) document: fn(Role, &Document, &mut Notes) -> Option<Piece>,
    /// An opaque block of this dialect.
    pub(super) opaque: fn(&Opaque, &mut Notes) -> Option<Piece>,
}

impl Parts {
    /// Returns a block as a piece of a message of this role; `None` for one that has no form in a
    /// content, which is noted.
    pub(super) fn piece(
        &self,
        role: Role,
        block: &ContentBlock,
        notes: &mut Notes,
    ) -> Option<Piece> {
        if let Some((text, extra)) = wire_text(role, block) {
            let fields = wire_fields(extra, notes);
            if fields == Object::default() {
                return Some(Piece::Plain(text));
            }
            return Some(Piece::Part(fields.with("type", self.text).with("text", text).into()));
        }
        match block {
            ContentBlock::Image(image) => (self.image)(role, image, notes),
            ContentBlock::Document(document) => (self.document)(role, document, notes),
            ContentBlock::Opaque(opaque) if opaque.codec == notes.codec() => {
                (self.opaque)(opaque, notes)
            }
            ContentBlock::Opaque(opaque) => {
                notes.drop_block("opaque", &format!("only {} understands it", opaque.codec));
                None
            }
            ContentBlock::Text(_)
            | ContentBlock::SystemReminder(_)
            | ContentBlock::ContextUpdate(_)
            | ContentBlock::Checkpoint(_)
            | ContentBlock::Summary(_)
            | ContentBlock::Thinking(_)
            | ContentBlock::RedactedThinking(_)
            | ContentBlock::ToolUse(_)
            | ContentBlock::ToolResult(_)
            | ContentBlock::ServerToolUse(_)
            | ContentBlock::ServerToolResult(_) => {
                notes.drop_block(block.kind(), "the dialect has no form for it here");
                None
            }
        }
    }
}

/// Returns a content of these pieces, texts among them as parts of this type. The form is that in
/// which it came; where there is none, one plain text stands as a string. `None` without pieces.
pub(super) fn content(pieces: Vec<Piece>, form: Option<&str>, kind: &'static str) -> Option<Tree> {
    let alone = pieces.len() == 1 && form != Some("array");
    match pieces.first()? {
        Piece::Plain(text) if alone => Some(text.clone().into()),
        Piece::Whole(json) if alone => Some(json.clone().into()),
        Piece::Part(whole) if alone && form == Some("whole") => Some(whole.clone()),
        Piece::Plain(_) | Piece::Whole(_) | Piece::Part(_) => {
            Some(Tree::Array(pieces.into_iter().map(|piece| part(piece, kind)).collect()))
        }
    }
}

fn part(piece: Piece, kind: &'static str) -> Tree {
    match piece {
        Piece::Plain(text) => Object::typed(kind).with("text", text).into(),
        Piece::Whole(json) if json.as_str().starts_with('"') => {
            Object::typed(kind).with("text", json).into()
        }
        Piece::Whole(json) => json.into(),
        Piece::Part(part) => part,
    }
}

/// The content of a result that says nothing, in the form in which it came.
pub(super) fn no_content(form: Option<&str>) -> Option<Tree> {
    match form {
        Some("absent") => None,
        Some("null") => Some(Tree::Null),
        Some("empty_array") => Some(Tree::Array(Vec::new())),
        Some(_) | None => Some(Tree::Word("")),
    }
}

/// Says in the text that the tool failed.
pub(super) fn mark_error(pieces: &mut Vec<Piece>) {
    match pieces.first_mut() {
        Some(Piece::Plain(text)) => *text = failed(text),
        Some(Piece::Whole(_) | Piece::Part(_)) | None => {
            pieces.insert(0, Piece::Plain(FAILED.into()));
        }
    }
}

/// The address of a picture or a document: the data themselves, or where they are.
pub(super) fn address(source: &MediaSource) -> Option<Text> {
    match source {
        MediaSource::Base64 { media_type, data } => Some(write_data_uri(media_type, data)),
        MediaSource::Url { url } => Some(url.clone()),
        MediaSource::File { .. } | MediaSource::Text { .. } | MediaSource::Opaque { .. } => None,
    }
}

/// Notes that a medium is left out, because its source has no form.
pub(super) fn no_source<T>(kind: &str, notes: &mut Notes) -> Option<T> {
    notes.drop_block(kind, "its source has no form in this dialect");
    None
}

/// Notes that what the model is told about a document is left out.
pub(super) fn drop_context(document: &Document, notes: &mut Notes) {
    if document.context.is_some() {
        notes.drop_block("document context", "the dialect has no form for it");
    }
}
