//! Writing the content of messages and results.

use super::marks::{CODEC, marked, read_field, reopen, wire_fields};
use crate::{
    message::{
        ContentBlock, Document, Extra, Image, Json, MediaSource, Opaque, Role, Text, TextBlock,
        markup,
    },
    wire::{
        notes::Notes,
        openai::{document_text, write_data_uri},
        tree::{Object, Tree},
    },
};

/// One piece of a content.
#[derive(Debug)]
pub(super) enum Piece {
    /// Text without fields of its own, which may stand as a string.
    Plain(Text),
    /// A JSON string as it came.
    String(Json),
    /// A part.
    Part(Tree),
}

/// Returns a content of these pieces. The form is that in which it came; where there is none, one
/// plain text stands as a string. `None` if there are no pieces.
pub(super) fn content(pieces: Vec<Piece>, form: Option<&str>) -> Option<Tree> {
    let alone = pieces.len() == 1 && form != Some("array");
    match pieces.first()? {
        Piece::Plain(text) if alone => Some(text.clone().into()),
        Piece::String(json) if alone => Some(json.clone().into()),
        Piece::Plain(_) | Piece::String(_) | Piece::Part(_) => {
            Some(Tree::Array(pieces.into_iter().map(part).collect()))
        }
    }
}

/// Returns a block as a piece of a message of this role; `None` for one that has no form in a
/// content, which is noted.
pub(super) fn piece(role: Role, block: &ContentBlock, notes: &mut Notes) -> Option<Piece> {
    match block {
        ContentBlock::Text(block) => Some(text_block(role, block, notes)),
        ContentBlock::SystemReminder(block) => {
            Some(text(markup::reminder(&block.text).into(), &block.extra, notes))
        }
        ContentBlock::ContextUpdate(block) => {
            Some(text(markup::context_update(block).into(), &block.extra, notes))
        }
        ContentBlock::Checkpoint(block) => {
            Some(text(markup::checkpoint(block.id).into(), &block.extra, notes))
        }
        ContentBlock::Summary(block) => {
            Some(text(markup::summary(role, block), &block.extra, notes))
        }
        ContentBlock::Image(block) if role == Role::User => image(block, notes),
        ContentBlock::Image(_) => {
            notes.drop_block(block.kind(), "only user messages carry pictures");
            None
        }
        ContentBlock::Document(block) => document(role, block, notes),
        ContentBlock::Opaque(block) => opaque(block, notes),
        ContentBlock::Thinking(_)
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

/// The field of the message and its value, if a block of this codec is one.
pub(super) fn message_field(block: &Opaque) -> Option<(Text, Json)> {
    let own = block.codec == CODEC;
    own.then(|| read_field(&block.value)).flatten().filter(|(name, _)| name != "content")
}

/// Where a text stood, if it is a refusal: in a `refusal_part`, or in the field `refusal`.
pub(super) fn refusal_form(block: &TextBlock) -> Option<Text> {
    marked(&block.extra, "~as")
}

fn part(piece: Piece) -> Tree {
    match piece {
        Piece::Plain(text) => Object::typed("text").with("text", text).into(),
        Piece::String(json) => Object::typed("text").with("text", json).into(),
        Piece::Part(part) => part,
    }
}

fn text(text: Text, extra: &Extra, notes: &mut Notes) -> Piece {
    let fields = wire_fields(extra, notes);
    if fields == Object::default() {
        return Piece::Plain(text);
    }
    Piece::Part(fields.with("type", "text").with("text", text).into())
}

fn text_block(role: Role, block: &TextBlock, notes: &mut Notes) -> Piece {
    if role == Role::Assistant && refusal_form(block).is_some_and(|form| form == "refusal_part") {
        let fields = wire_fields(&block.extra, notes);
        return Piece::Part(
            fields.with("type", "refusal").with("refusal", block.text.clone()).into(),
        );
    }
    text(block.text.clone(), &block.extra, notes)
}

fn image(image: &Image, notes: &mut Notes) -> Option<Piece> {
    let url = match &image.source {
        MediaSource::Base64 { media_type, data } => write_data_uri(media_type, data),
        MediaSource::Url { url } => url.clone(),
        MediaSource::File { .. } | MediaSource::Text { .. } | MediaSource::Opaque { .. } => {
            notes.drop_block("image", "its source has no form in this dialect");
            return None;
        }
    };
    let fields = wire_fields(&image.extra, notes);
    let inner = reopen(image.extra.get(CODEC, "image_url")).with("url", url);
    Some(Piece::Part(fields.with("type", "image_url").with("image_url", inner).into()))
}

fn document(role: Role, document: &Document, notes: &mut Notes) -> Option<Piece> {
    let foreign = document.extra.codec().is_some_and(|codec| codec != CODEC);
    let inner = reopen(document.extra.get(CODEC, "file"));
    let mut inner = match &document.source {
        MediaSource::Text { text, .. } => {
            return document_text(document, text, notes).map(Piece::Plain);
        }
        MediaSource::Url { url } => return document_text(document, url, notes).map(Piece::Plain),
        MediaSource::Base64 { media_type, data } if role == Role::User => {
            inner.with("file_data", write_data_uri(media_type, data))
        }
        MediaSource::File { id } if role == Role::User && !foreign => {
            inner.with("file_id", id.clone())
        }
        MediaSource::Base64 { .. } | MediaSource::File { .. } | MediaSource::Opaque { .. } => {
            notes.drop_block("document", "its source has no form in this dialect");
            return None;
        }
    };
    if document.context.is_some() {
        notes.drop_block("document context", "the dialect has no form for it");
    }
    inner.set_some("filename", document.title.clone());
    let fields = wire_fields(&document.extra, notes);
    Some(Piece::Part(fields.with("type", "file").with("file", inner).into()))
}

fn opaque(block: &Opaque, notes: &mut Notes) -> Option<Piece> {
    if block.codec != CODEC {
        notes.drop_block("opaque", &format!("only {} understands it", block.codec));
        return None;
    }
    match read_field(&block.value) {
        Some((name, value)) if name == "content" => Some(Piece::Part(value.into())),
        Some((name, _)) => {
            notes.drop_block("opaque", &format!("{name} has no place in this message"));
            None
        }
        None if block.value.as_str().starts_with('"') => Some(Piece::String(block.value.clone())),
        None => Some(Piece::Part(block.value.clone().into())),
    }
}
