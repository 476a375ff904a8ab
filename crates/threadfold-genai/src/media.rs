//! Converting texts, images and files of Chat Completions to parts of genai.

use genai::chat::ContentPart;
use serde_json::{Map, Value};
use threadfold::wire::Change;

use crate::{
    notes::{Notes, object, take_text},
    target::Dialect,
};

/// The codec name of Chat Completions.
pub(crate) const CODEC: &str = "openai-chat";

/// Returns a part of a content; `None` if genai has no form for it, which is reported.
pub(crate) fn part(
    mut fields: Map<String, Value>,
    dialect: Dialect,
    notes: &mut Notes,
) -> Option<ContentPart> {
    let kind = take_text(&mut fields, "type").unwrap_or_default();
    let part = match kind.as_str() {
        "text" => take_text(&mut fields, "text").map(ContentPart::Text),
        "refusal" => {
            notes.note(Change::BlockAsText { kind: "refusal".into() });
            take_text(&mut fields, "refusal").map(ContentPart::Text)
        }
        "image_url" => image(&mut fields, dialect, notes),
        "file" => file(&mut fields, dialect),
        _ => None,
    };
    if part.is_none() {
        notes.drop_block(&kind, "genai's adapter does not send it");
    } else {
        notes.drop_fields(CODEC, &fields);
    }
    part
}

fn image(
    fields: &mut Map<String, Value>,
    dialect: Dialect,
    notes: &mut Notes,
) -> Option<ContentPart> {
    let mut image = object(fields.remove("image_url")?);
    let url = take_text(&mut image, "url")?;
    let part = match data_uri(&url) {
        Some((media_type, data)) if dialect != Dialect::Text => {
            ContentPart::from_binary_base64(media_type, data, None)
        }
        Some(_) => return None,
        None if matches!(dialect, Dialect::Chat | Dialect::Responses) => {
            // Only the part before the slash is used, and it is not sent.
            ContentPart::from_binary_url("image/jpeg", url, None)
        }
        None => {
            notes.note(Change::BlockAsText { kind: "image".into() });
            ContentPart::Text(url)
        }
    };
    notes.drop_fields(CODEC, &image);
    Some(part)
}

fn file(fields: &mut Map<String, Value>, dialect: Dialect) -> Option<ContentPart> {
    if matches!(dialect, Dialect::Ollama | Dialect::Text) {
        return None;
    }
    let mut file = object(fields.remove("file")?);
    let data = take_text(&mut file, "file_data")?;
    let (media_type, data) = data_uri(&data)?;
    Some(ContentPart::from_binary_base64(media_type, data, take_text(&mut file, "filename")))
}

/// Returns the media type and the Base64 data of a data URI.
fn data_uri(url: &str) -> Option<(&str, &str)> {
    url.strip_prefix("data:")?.split_once(";base64,")
}
