//! Writing what messages and results hold.

use super::marks::{CODEC, Kept, kept, marked, wire_fields};
use crate::{
    notes::Notes,
    openai::{document_text, write_data_uri},
    openai_content::{Parts, Piece, address, drop_context, no_source},
};
use threadfold_core::message::{ContentBlock, Document, Extra, Image, MediaSource, Opaque, Role};

const PARTS: Parts = Parts { text: "input_text", image, document, opaque };

/// Returns a block as a piece of what the host, the user or a tool says; `None` for one that has
/// no form there, which is noted.
pub(super) fn piece(role: Role, block: &ContentBlock, notes: &mut Notes) -> Option<Piece> {
    PARTS.piece(role, block, notes)
}

/// Whether something came from another provider than this one, whose files are others.
fn is_foreign(extra: &Extra) -> bool {
    extra.codec().is_some_and(|codec| codec != CODEC && codec != "openai-chat")
}

fn image(_: Role, image: &Image, notes: &mut Notes) -> Option<Piece> {
    let (key, source) = match (&image.source, address(&image.source)) {
        (_, Some(address)) => ("image_url", address),
        (MediaSource::File { id }, None) if !is_foreign(&image.extra) => ("file_id", id.clone()),
        (_, None) => return no_source("image", notes),
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

fn document(_: Role, document: &Document, notes: &mut Notes) -> Option<Piece> {
    let (key, source) = match &document.source {
        MediaSource::Text { text, .. } => {
            return document_text(document, text, notes).map(Piece::Plain);
        }
        MediaSource::Base64 { media_type, data } => ("file_data", write_data_uri(media_type, data)),
        MediaSource::Url { url } => ("file_url", url.clone()),
        MediaSource::File { id } if !is_foreign(&document.extra) => ("file_id", id.clone()),
        MediaSource::File { .. } | MediaSource::Opaque { .. } => {
            return no_source("document", notes);
        }
    };
    drop_context(document, notes);
    let mut object = wire_fields(&document.extra, notes);
    object.set("type", "input_file");
    object.set(key, source);
    object.set_some("filename", document.title.clone());
    Some(Piece::Part(object.into()))
}

fn opaque(block: &Opaque, notes: &mut Notes) -> Option<Piece> {
    match kept(&block.value) {
        Kept::Part(json) if json.is_object() => Some(Piece::Part(json.into())),
        Kept::Part(json) => Some(Piece::Whole(json)),
        Kept::Item(..) => {
            notes.drop_block("opaque", "an item of its own cannot stand here");
            None
        }
    }
}
