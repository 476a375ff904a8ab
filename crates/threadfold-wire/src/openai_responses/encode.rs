//! Writing request bodies: the thread is made legal block by block, written as items, and the items
//! are put right among each other.

use super::{
    calls::Calls,
    marks::{CODEC, marked},
    normal::{self, Responses},
    order::{self, Ending, Item, Kind},
    params,
    write::Writer,
};
use crate::{
    contract::{EncodeOptions, Encoded},
    json::{Object, Tree},
    names,
    notes::{self, CONTINUE},
    openai::names_model,
    rules,
};
use threadfold_core::message::{ContentBlock, Message, Request, Text};

/// Returns the body of a request.
pub(super) fn request(request: &Request, options: &EncodeOptions) -> Encoded {
    let (mut messages, mut notes) = notes::prepare(&request.messages, CODEC);
    let at_rest = !names_model(request, options, CODEC);
    if !at_rest {
        notes::answer_open_calls(&mut messages, request.messages.len(), &mut notes);
    }
    let request = &*names::legal(request, &mut messages, (&names::TOOLS, false), &mut notes);
    let mut body = params::write(request, options, &mut notes);
    params::cut_chain(request, &mut body, &mut notes);
    let is_chained = params::is_chained(|key| {
        let Some(Tree::Raw(json)) = body.get(key) else { return None };
        Some(json.as_str())
    });
    let rules = Responses::new(&messages, options.traits.binds_reasoning);
    let system = rules::system(&rules, &request.system, &mut notes);
    let mut thread = rules::thread(&rules, messages, &mut notes);
    let calls = Calls::new(&mut thread, &mut notes);
    normal::note_unplaced_fields(&thread, &mut notes);
    let mut writer = Writer::new(calls);
    let first = system.first().and_then(instructions);
    let is_first_apart = usize::from(first.is_some());
    body.set_some("instructions", first);
    system.iter().skip(is_first_apart).for_each(|message| writer.message(0, message));
    let of_system = writer.items.len();
    writer.calls.begin();
    thread.iter().for_each(|(at, message)| writer.message(*at, message));
    let mut items = writer.items;
    order::settle(&mut items, Ending { is_chained, at_rest }, &mut notes);
    let of_thread = items.len().saturating_sub(of_system);
    if !is_chained && notes::is_emptied(&request.messages, of_thread, &mut notes) {
        let object = Object::default().with("role", "user").with("content", CONTINUE);
        items.push(Item::new(request.messages.len(), Kind::Said, object, None));
    }
    write_input(request, items, &mut body);
    Encoded { body: Tree::from(body).into_json(), adjustments: notes.finish() }
}

/// The text of a system message that is written as `instructions`: all but those that came as
/// items, or hold more than text.
fn instructions(message: &Message) -> Option<Text> {
    if marked(&message.extra, "~as").is_some_and(|form| form == "item") {
        return None;
    }
    let plain = |block: &ContentBlock| {
        let ContentBlock::Text(text) = block else { return None };
        Some(text.text.clone())
    };
    let texts: Option<Vec<Text>> = message.content.iter().map(plain).collect();
    Some(texts?.iter().map(Text::as_str).collect::<Vec<_>>().join("\n\n").into())
}

/// Writes the items: as one string if they came as one, and not at all if the body had no input.
fn write_input(request: &Request, items: Vec<Item>, body: &mut Object) {
    if items.is_empty() && marked(&request.extra, "~input").is_some() {
        return;
    }
    let input = as_string(request, &items);
    let array = || Tree::Array(items.into_iter().map(|item| item.body).collect());
    body.set("input", input.unwrap_or_else(array));
}

/// The input as one string, if it came as one.
fn as_string(request: &Request, items: &[Item]) -> Option<Tree> {
    let first = request.messages.first()?;
    let ([item], Some(_)) = (items, marked(&first.extra, "~input")) else { return None };
    let Tree::Object(object) = &item.body else { return None };
    let content = object.get("content").filter(|_| object.len() == 2)?;
    content.text().map(|_| content.clone())
}
