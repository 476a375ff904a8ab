//! Items of an input.

use serde_json::{Value, json};

use super::super::{
    piece::{Kind, Piece, Place},
    vendor::{items, texts, word},
};

/// The type of an item. A message may have none.
pub(super) fn kind_of(item: &Value) -> &str {
    match word(item, "type") {
        "" if item.get("role").is_some() => "message",
        kind => kind,
    }
}

/// An item with an id and nothing else refers to a stored one.
pub(super) fn is_bare_reference(item: &Value) -> bool {
    let fields = item.as_object();
    fields.is_some_and(|fields| {
        fields.get("id").is_some_and(Value::is_string)
            && fields.iter().all(|(key, value)| key == "id" || value.is_null())
    })
}

/// The piece of an item. What a server adds to an item, such as ids and states, is no part of its
/// content.
pub(super) fn piece(path: &str, item: &Value) -> Piece {
    let role = word(item, "role");
    let kind = kind_of(item);
    let place = match (kind, role) {
        ("message", "assistant") => Place::Assistant,
        ("message", "system" | "developer") => Place::System,
        ("message", _) => Place::User,
        (kind, _) if kind.ends_with("_output") => Place::User,
        _ => Place::Assistant,
    };
    let content = match kind {
        "message" => json!({"message": parts(item.get("content"))}),
        _ => {
            let mut item = item.clone();
            if let Some(fields) = item.as_object_mut() {
                fields.remove("id");
                fields.remove("status");
            }
            item
        }
    };
    let mut piece = Piece::new(path.to_owned(), place, &content);
    let encrypted = word(item, "encrypted_content");
    match kind {
        "reasoning" => {
            let key = if encrypted.is_empty() { word(item, "id") } else { encrypted };
            piece.kind = Kind::Reasoning(key.to_owned());
        }
        "compaction" => piece.kind = Kind::Compaction(encrypted.to_owned()),
        _ => {}
    }
    piece
}

/// The content of a message: texts as such, everything else whole.
fn parts(content: Option<&Value>) -> Vec<Value> {
    if let Some(Value::String(text)) = content {
        return vec![json!(text)];
    }
    let parts = items(content).map(|part| match part.get("text") {
        Some(text) => text.clone(),
        None => part.clone(),
    });
    parts.collect()
}

/// Whether a request asks for encrypted reasoning.
pub(super) fn wants_encrypted(body: &Value) -> bool {
    texts(body.get("include")).any(|word| word == "reasoning.encrypted_content")
}
