//! Writing request bodies.

use super::{
    calls::Calls,
    chain,
    draft::{Item, Kind},
    marks::{CODEC, marked},
    order::{self, Ending},
    params, write_answer, write_said,
    writer::Writer,
};
use crate::{
    contract::{EncodeOptions, Encoded},
    names,
    notes::{self, CONTINUE, Notes},
    openai::names_model,
    tree::{Object, Tree},
};
use threadfold_core::message::{ContentBlock, Message, Request, Role, Text, TextBlock};

/// Returns the body of a request.
pub(super) fn request(request: &Request, options: &EncodeOptions) -> Encoded {
    let (mut messages, mut notes) = notes::prepare(&request.messages, CODEC);
    let at_rest = !names_model(request, options, CODEC);
    if !at_rest {
        notes::answer_open_calls(&mut messages, request.messages.len(), &mut notes);
    }
    let request = &*names::legal(request, &mut messages, (&names::TOOLS, false), &mut notes);
    let mut body = params::write(request, options, &mut notes);
    chain::cut(request, &mut body, &mut notes);
    let is_chained = params::is_chained(|key| {
        let Some(Tree::Raw(json)) = body.get(key) else { return None };
        Some(json.as_str())
    });
    let (system, written) = items(request, &messages, options, &mut body, notes);
    let Writer { mut items, mut notes, .. } = written;
    order::settle(&mut items, Ending { is_chained, at_rest }, &mut notes);
    let of_thread = items.len().saturating_sub(system);
    if !is_chained && notes::is_emptied(&request.messages, of_thread, &mut notes) {
        let object = Object::default().with("role", "user").with("content", CONTINUE);
        items.push(Item::new(request.messages.len(), Kind::Said, object, None));
    }
    write_input(request, items, &mut body);
    Encoded { body: Tree::from(body).into_json(), adjustments: notes.finish() }
}

/// Writes the instructions, and the items of the system and the thread; the first are counted.
fn items(
    request: &Request,
    messages: &[(usize, Message)],
    options: &EncodeOptions,
    body: &mut Object,
    notes: Notes,
) -> (usize, Writer) {
    let mut writer = Writer {
        items: Vec::new(),
        calls: Calls::new(messages),
        notes,
        binds_reasoning: options.traits.binds_reasoning,
    };
    writer.notes.turn_to(None);
    let first = request.system.first();
    let first = first.and_then(|message| instructions(message, &mut writer.notes));
    let rest = usize::from(first.is_some());
    body.set_some("instructions", first);
    for message in request.system.iter().skip(rest) {
        write_said::write(0, message, &mut writer);
    }
    let system = writer.items.len();
    for (place, (at, message)) in messages.iter().enumerate() {
        writer.notes.turn_to(*at);
        match message.role {
            Role::User | Role::System => write_said::write(*at, message, &mut writer),
            Role::Assistant => write_answer::write(place, *at, message, &mut writer),
        }
    }
    (system, writer)
}

/// The text of a system message that is written as `instructions`: all but those that came as
/// items, or hold more than text.
fn instructions(message: &Message, notes: &mut Notes) -> Option<Text> {
    if marked(&message.extra, "~as").is_some_and(|form| form == "item") {
        return None;
    }
    let plain = |block: &ContentBlock| {
        let ContentBlock::Text(text) = block else { return None };
        (!text.text.is_blank()).then(|| text.clone())
    };
    let texts: Option<Vec<TextBlock>> = message.content.iter().map(plain).collect();
    let texts = texts.filter(|texts| !texts.is_empty())?;
    // A text has no fields: what others kept there is noted.
    let _ = notes.own_fields(&message.extra).count();
    texts.iter().for_each(|text| {
        let _ = notes.own_fields(&text.extra).count();
    });
    let texts: Vec<&str> = texts.iter().map(|text| text.text.as_str()).collect();
    Some(texts.join("\n\n").into())
}

/// Writes the items: as one string where they came so, and nothing where there was nothing.
fn write_input(request: &Request, items: Vec<Item>, body: &mut Object) {
    if items.is_empty() && marked(&request.extra, "~input").is_some() {
        return;
    }
    let input = as_string(request, &items);
    let array = || Tree::Array(items.into_iter().map(|item| item.body).collect());
    body.set("input", input.unwrap_or_else(array));
}

/// The input as the one string as which it came.
fn as_string(request: &Request, items: &[Item]) -> Option<Tree> {
    let first = request.messages.first()?;
    let ([item], Some(_)) = (items, marked(&first.extra, "~input")) else { return None };
    let Tree::Object(object) = &item.body else { return None };
    let content = object.get("content").filter(|_| object.len() == 2)?;
    let is_text = match content {
        Tree::Text(_) => true,
        Tree::Raw(json) => json.as_str().starts_with('"'),
        Tree::Null
        | Tree::Bool(_)
        | Tree::Number(_)
        | Tree::Word(_)
        | Tree::Array(_)
        | Tree::Object(_) => false,
    };
    is_text.then(|| content.clone())
}
