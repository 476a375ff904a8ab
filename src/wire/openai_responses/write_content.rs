//! Writing what messages and results hold.

use super::marks::{CODEC, Kept, kept, marked, wire_fields};
use crate::{
    message::{
        ContentBlock, Document, Extra, Image, Json, MediaSource, Opaque, Role, Text, TextBlock,
    },
    wire::{
        notes::Notes,
        openai::{document_text, write_data_uri},
        texts::wire_text,
        tree::{Object, Tree},
    },
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

/// Returns a block as a piece of what the host, the user or a tool says; `None` for one that has
/// no form there, which is noted.
pub(super) fn piece(role: Role, block: &ContentBlock, notes: &mut Notes) -> Option<Piece> {
    if let Some((text, extra)) = wire_text(role, block) {
        // What an answer's texts know of their item means nothing elsewhere.
        let fields = wire_fields(extra, notes);
        return Some(if fields == Object::default() {
            Piece::Plain(text)
        } else {
            Piece::Part(fields.with("type", "input_text").with("text", text).into())
        });
    }
    match block {
        ContentBlock::Image(block) => image(block, notes),
        ContentBlock::Document(block) => document(block, notes),
        ContentBlock::Opaque(block) => opaque(block, notes),
        ContentBlock::Text(TextBlock { .. })
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

/// Whether something came from another provider than this one, whose files are others.
fn is_foreign(extra: &Extra) -> bool {
    extra.codec().is_some_and(|codec| codec != CODEC && codec != "openai-chat")
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

fn image(image: &Image, notes: &mut Notes) -> Option<Piece> {
    let (key, source) = match &image.source {
        MediaSource::Base64 { media_type, data } => ("image_url", write_data_uri(media_type, data)),
        MediaSource::Url { url } => ("image_url", url.clone()),
        MediaSource::File { id } if !is_foreign(&image.extra) => ("file_id", id.clone()),
        MediaSource::File { .. } | MediaSource::Text { .. } | MediaSource::Opaque { .. } => {
            notes.drop_block("image", "its source has no form in this dialect");
            return None;
        }
    };
    let mut object = wire_fields(&image.extra, notes);
    let came_without = marked(&image.extra, "~detail").is_some();
    if object.get("detail").is_none() && !came_without {
        object.set("detail", "auto");
    }
    object.set("type", "input_image");
    object.set(key, source);
    Some(Piece::Part(object.into()))
}

fn document(document: &Document, notes: &mut Notes) -> Option<Piece> {
    let (key, source) = match &document.source {
        MediaSource::Text { text, .. } => {
            return document_text(document, text, notes).map(Piece::Plain);
        }
        MediaSource::Base64 { media_type, data } => ("file_data", write_data_uri(media_type, data)),
        MediaSource::Url { url } => ("file_url", url.clone()),
        MediaSource::File { id } if !is_foreign(&document.extra) => ("file_id", id.clone()),
        MediaSource::File { .. } | MediaSource::Opaque { .. } => {
            notes.drop_block("document", "its source has no form in this dialect");
            return None;
        }
    };
    if document.context.is_some() {
        notes.drop_block("document context", "the dialect has no form for it");
    }
    let mut object = wire_fields(&document.extra, notes);
    object.set("type", "input_file");
    object.set(key, source);
    object.set_some("filename", document.title.clone());
    Some(Piece::Part(object.into()))
}

fn opaque(block: &Opaque, notes: &mut Notes) -> Option<Piece> {
    if block.codec != CODEC {
        notes.drop_block("opaque", &format!("only {} understands it", block.codec));
        return None;
    }
    match kept(&block.value) {
        Kept::Part(json) if json.is_object() => Some(Piece::Part(json.into())),
        Kept::Part(json) => Some(Piece::Whole(json)),
        Kept::Item(..) => {
            notes.drop_block("opaque", "an item of its own cannot stand here");
            None
        }
    }
}
