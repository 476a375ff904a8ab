//! Reading what the model says and thinks.

use super::marks::{Field, books, keep, mark};
use crate::{
    extras::inner,
    fields::{Fields, is_text, items, text},
    raw::Raw,
};
use threadfold_core::message::{ContentBlock, Json, Text, TextBlock, Thinking};

/// Reads a message of the model: a block for each of its parts, the fields of the item on the
/// first. Nothing if there is no part, or one that cannot be read; the item is kept whole then.
pub(super) fn message(mut fields: Fields<'_>, mut own: Vec<Field>) -> Vec<ContentBlock> {
    fields.take("role");
    let Some(raw) = fields.take("content") else { return Vec::new() };
    // An empty object says that an item begins here, so that two messages do not become one.
    let empty = || ("~item", Json::from_compact("{}"));
    own.push(books(&mut fields).unwrap_or_else(empty));
    own.extend(inner("item", &fields));
    if is_text(raw) {
        own.push(mark("~content", "string"));
        let said = text(raw).filter(|text: &Text| !text.is_blank());
        let block = said.map(|text| TextBlock { text, extra: keep(&Fields::default(), own) });
        return block.into_iter().map(ContentBlock::from).collect();
    }
    let mut own = Some(own);
    let parts = items(raw).unwrap_or_default().into_iter().map(|raw| {
        let own = own.take().unwrap_or_else(|| vec![mark("~joins", "item")]);
        part(raw, own).map(ContentBlock::from)
    });
    parts.collect::<Option<Vec<ContentBlock>>>().unwrap_or_default()
}

/// Reads a part of what the model says.
fn part(raw: Raw<'_>, mut own: Vec<Field>) -> Option<TextBlock> {
    let mut fields = Fields::of(raw).filter(|fields| fields.get("item").is_none())?;
    let kind = fields.take_word("type")?;
    let key = match kind.as_ref() {
        "output_text" | "input_text" => "text",
        "refusal" => "refusal",
        _ => return None,
    };
    if kind != "output_text" {
        own.push(mark("~as", &kind));
    }
    if fields.get("annotations").is_some_and(|raw| raw.get() == "[]") {
        fields.take("annotations");
        own.push(mark("~annotations", "none"));
    }
    let text = fields.take_text(key).filter(|text| !text.is_blank())?;
    Some(TextBlock { text, extra: keep(&fields, own) })
}

/// Reads a reasoning item, and by what the item after it is known; `None` if it has no summary.
pub(super) fn reasoning(mut fields: Fields<'_>, next: Option<Text>) -> Option<ContentBlock> {
    let text = thought(fields.get("summary"), fields.get("content"))?;
    let signature = fields.take_text("encrypted_content");
    let mut own: Vec<Field> = books(&mut fields).into_iter().collect();
    own.extend(signature.is_some().then(|| mark("~signed", "yes")));
    own.extend(next.map(|next| mark("~next", &next)));
    Some(Thinking { extra: keep(&fields, own), ..Thinking::new(text, signature) }.into())
}

/// What can be read of a reasoning item: its summary, else its content.
pub(super) fn thought(summary: Option<Raw<'_>>, content: Option<Raw<'_>>) -> Option<Text> {
    let texts = |raw: Raw<'_>| -> Option<Vec<Text>> {
        let text = |raw: Raw<'_>| Fields::of(raw)?.take_text("text");
        Some(items(raw)?.into_iter().filter_map(text).collect())
    };
    let mut read = texts(summary?)?;
    if read.is_empty() {
        read = content.and_then(texts).unwrap_or_default();
    }
    let read: Vec<&str> = read.iter().map(Text::as_str).collect();
    Some(read.join("\n\n").into())
}
