//! Whether a body may go on from what the provider stored.
//!
//! `previous_response_id` and `conversation` have the provider put before the input what it stored.
//! That is right for as long as the thread holds what came later, and wrong as soon as it holds the
//! same: when the answer that they name is one of its own, and when a part of it was compacted, for
//! the provider still has that part in full. Then the thread goes out alone.

use super::{
    marks::{CODEC, marked},
    params::CHAINS,
};
use crate::{
    contract::Change,
    fields::{Fields, text},
    notes::Notes,
    raw::Raw,
    tree::Object,
};
use threadfold_core::message::{ContentBlock, Json, Request, Text};

/// Leaves the parameters out that go on from what the thread holds itself.
pub(super) fn cut(request: &Request, body: &mut Object, notes: &mut Notes) {
    notes.turn_to(None);
    for name in CHAINS {
        let Some(json) = request.extra.get(CODEC, name).filter(|json| **json != Json::default())
        else {
            continue;
        };
        if is_compacted(request) || holds_answer(request, name, json) {
            body.remove(name);
            notes.note(Change::ParameterDropped { name: name.into() });
        }
    }
}

/// Whether a part of the thread was rewritten since it was read.
fn is_compacted(request: &Request) -> bool {
    request.messages.iter().any(|message| {
        let mut blocks = message.content.iter();
        let summed = |block: &ContentBlock| {
            matches!(block, ContentBlock::Summary(summary)
                if marked(&summary.extra, "~as").is_none())
        };
        message.prefix_rewritten || blocks.any(summed)
    })
}

/// Whether the thread holds an answer of the stored response or conversation.
fn holds_answer(request: &Request, name: &str, json: &Json) -> bool {
    let Some(wanted) = id_of(json) else { return false };
    let key = if name == "conversation" { name } else { "id" };
    let answers = request.messages.iter().filter_map(|message| {
        let said = message.extra.get(CODEC, "~response")?;
        id_of(&Fields::parse(said.as_str())?.take_json(key)?)
    });
    answers.into_iter().any(|id| id == wanted)
}

/// Reads an id that stands alone or in an object.
fn id_of(json: &Json) -> Option<Text> {
    text(Raw::of(json)).or_else(|| Fields::parse(json.as_str())?.take_text("id"))
}
