//! Writing the content of messages and results.

use super::marks::{CODEC, marked, read_field, reopen, wire_fields};
use crate::{
    notes::Notes,
    openai::{document_text, write_data_uri},
    openai_content::{self, Parts, Piece, address, drop_context, no_source},
    tree::Tree,
};
use threadfold_core::message::{
    ContentBlock, Document, Image, Json, MediaSource, Opaque, Role, Text, TextBlock,
};

const PARTS: Parts = Parts { text: "text", image, document, opaque };

/// Returns a content of these pieces in the form in which it came. `None` if there are no pieces.
pub(super) fn content(pieces: Vec<Piece>, form: Option<&str>) -> Option<Tree> {
    openai_content::content(pieces, form, PARTS.text)
}

/// Returns a block as a piece of a message of this role; `None` for one that has no form in a
/// content, which is noted.
pub(super) fn piece(role: Role, block: &ContentBlock, notes: &mut Notes) -> Option<Piece> {
    if let ContentBlock::Text(text) = block
        && role == Role::Assistant
        && refusal_form(text).is_some_and(|form| form == "refusal_part")
    {
        let fields = wire_fields(&text.extra, notes);
        let part = fields.with("type", "refusal").with("refusal", text.text.clone());
        return Some(Piece::Part(part.into()));
    }
    PARTS.piece(role, block, notes)
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

fn image(role: Role, image: &Image, notes: &mut Notes) -> Option<Piece> {
    if role != Role::User {
        notes.drop_block("image", "only user messages carry pictures");
        return None;
    }
    let Some(url) = address(&image.source) else { return no_source("image", notes) };
    let fields = wire_fields(&image.extra, notes);
    let inner = reopen(image.extra.get(CODEC, "image_url")).with("url", url);
    Some(Piece::Part(fields.with("type", "image_url").with("image_url", inner).into()))
}

fn document(role: Role, document: &Document, notes: &mut Notes) -> Option<Piece> {
    let foreign = document.extra.codec().is_some_and(|codec| codec != CODEC);
    let inner = reopen(document.extra.get(CODEC, "file"));
    let mut inner = match &document.source {
        MediaSource::Text { text, .. } | MediaSource::Url { url: text } => {
            return document_text(document, text, notes).map(Piece::Plain);
        }
        MediaSource::Base64 { media_type, data } if role == Role::User => {
            inner.with("file_data", write_data_uri(media_type, data))
        }
        MediaSource::File { id } if role == Role::User && !foreign => {
            inner.with("file_id", id.clone())
        }
        MediaSource::Base64 { .. } | MediaSource::File { .. } | MediaSource::Opaque { .. } => {
            return no_source("document", notes);
        }
    };
    drop_context(document, notes);
    inner.set_some("filename", document.title.clone());
    let fields = wire_fields(&document.extra, notes);
    Some(Piece::Part(fields.with("type", "file").with("file", inner).into()))
}

fn opaque(block: &Opaque, notes: &mut Notes) -> Option<Piece> {
    match read_field(&block.value) {
        Some((name, value)) if name == "content" => Some(Piece::Part(value.into())),
        Some((name, _)) => {
            notes.drop_block("opaque", &format!("{name} has no place in this message"));
            None
        }
        None if block.value.as_str().starts_with('"') => Some(Piece::Whole(block.value.clone())),
        None => Some(Piece::Part(block.value.clone().into())),
    }
}
