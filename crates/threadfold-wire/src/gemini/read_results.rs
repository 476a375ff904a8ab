//! Reading `functionResponse` parts.

use super::{
    calls::Calls,
    marks::{self, Field, flag, mark},
    part::{self, Part},
};
use crate::{
    fields::{Fields, is_text, items, text, word},
    raw::Raw,
};
use threadfold_core::message::{ContentBlock, Text, ToolResult};

/// Reads a result. Where it names no call, the calls of the turn before say which one it answers.
pub(super) fn result(part: Part<'_>, calls: &mut Calls) -> Option<ToolResult> {
    let mut inner = part.inner()?;
    let mut own = Vec::new();
    let came = inner.take_word("id");
    let name = inner.get("name").and_then(word).unwrap_or_default();
    let wanted = came.as_deref().filter(|id| !id.is_empty());
    let answered = calls.answer(wanted, &name);
    // A result of no call is taken out of the thread later; it keeps what it says.
    let (id, of_call) = answered.map_or_else(
        || (came.as_deref().unwrap_or_default().into(), None),
        |(id, of_call)| (id, Some(of_call)),
    );
    if of_call.is_some_and(|of_call| of_call == *name) {
        inner.take("name");
    }
    match &came {
        Some(came) if id == **came => {}
        Some(came) => own.push(mark("~id", came)),
        None => own.push(flag("~no_id")),
    }
    let said = inner.get("response").and_then(|raw| response(raw, &mut own));
    if said.is_some() {
        inner.take("response");
    }
    let (mut content, is_error) = said.unwrap_or_default();
    if let Some(media) = inner.get("parts").and_then(parts) {
        inner.take("parts");
        own.push(flag("~parts"));
        content.extend(media);
    }
    let extra = part.extra(&inner, own);
    Some(ToolResult { is_error, extra, ..ToolResult::new(id, content) })
}

/// Reads a response: the text under `output` or `error`, or else the whole of it as JSON text.
fn response(raw: Raw<'_>, own: &mut Vec<Field>) -> Option<(Vec<ContentBlock>, bool)> {
    let fields = Fields::of(raw)?;
    let mut all = fields.rest();
    if let (Some((key, value)), None) = (all.next(), all.next())
        && let Some(said) = text(value).filter(|_| ["output", "error"].contains(&key))
        && is_text(value)
    {
        let content = if said.is_empty() { Vec::new() } else { vec![ContentBlock::text(said)] };
        return Some((content, key == "error"));
    }
    own.push(mark("~as", "response"));
    let whole = raw.json();
    Some((vec![ContentBlock::text(Text::from(whole.as_str()))], says_error(&fields)))
}

/// Whether a response says that the function failed.
pub(super) fn says_error(fields: &Fields<'_>) -> bool {
    fields.get("error").is_some_and(|raw| raw.get() != "null")
}

fn parts(raw: Raw<'_>) -> Option<Vec<ContentBlock>> {
    let parts = items(raw).filter(|parts| !parts.is_empty())?;
    let read = |raw: Raw<'_>| {
        let part = Part::read(raw).filter(|part| part.data != marks::TEXT);
        part.and_then(Part::block).unwrap_or_else(|| part::opaque(raw))
    };
    Some(parts.into_iter().map(read).collect())
}
