//! Writing request bodies.
//!
//! The thread is repaired, then written message by message, then the rules that look at several
//! messages are applied to what was written, then the parts are put together.

use super::{
    cache::Parts,
    draft::{self, Draft},
    forms,
    ids::{self, Ids},
    order::{self, Ending},
    params, prompt,
    target::{self, Head, Target},
    thread,
    write::Writer,
};
use crate::{
    message::{ContentBlock, Message, Request, StopReason},
    wire::{
        contract::{EncodeOptions, Encoded},
        foreign, names, notes,
        tree::Tree,
    },
};

/// Writes a request body, and says what had to be changed.
pub(super) fn request(request: &Request, options: &EncodeOptions) -> Encoded {
    let target = Target::new(request, options);
    let (mut messages, mut notes) = notes::prepare(&request.messages, forms::NAME);
    let prefill = target.traits.accepts_prefill && !params::thinks_manually(&request.extra);
    if !(prefill && target.model.is_none()) {
        notes::answer_open_calls(&mut messages, request.messages.len(), &mut notes);
    }
    let request = &*names::legal(request, &mut messages, (&ids::TOOLS, false), &mut notes);
    let ids = Ids::rewrite(&messages, &mut notes);
    let foreign_calls = foreign::server_calls(forms::NAME, &messages, forms::is_server_result);
    let binds_reasoning = target.traits.binds_reasoning;
    let mut writer = Writer { notes, ids, foreign_calls, binds_reasoning };
    writer.notes.turn_to(None);
    let mut system = prompt::write_system(&request.system, &mut writer);
    let mut tools = prompt::write_tools(&request.tools, &mut writer);
    let mut drafts = thread::write(&messages, &target, &mut writer);
    let ending = ending(request, &target, &messages, &writer, prefill);
    let notes = &mut writer.notes;
    order::results_first(&mut drafts, notes);
    order::end_well(&mut drafts, &ending, notes);
    order::begin_with_user(&mut drafts, ending.at, notes);
    Parts { tools: &mut tools, system: &mut system, drafts: &mut drafts }
        .mark(request.cache, notes);
    let head = target::write_head(request, &target, &tools, &drafts, notes);
    let body = assemble(request, head, Sections { system, tools, drafts }, &mut writer);
    Encoded { body: body.into_json(), adjustments: writer.notes.finish() }
}

fn ending(
    request: &Request,
    target: &Target,
    messages: &[(usize, Message)],
    writer: &Writer,
    prefill: bool,
) -> Ending {
    let last = messages.last().map(|(_, message)| message);
    let is_open = !notes::open_calls(messages).is_empty();
    Ending {
        at: request.messages.len(),
        stays: is_open || last.is_some_and(|last| is_paused(last, writer)),
        prefill,
        thoughtless: target.model.is_some() && params::does_not_think(&request.extra),
    }
}

/// Whether an answer waits to be sent back: the provider said so, or it ends with the provider's
/// own tool.
fn is_paused(last: &Message, writer: &Writer) -> bool {
    let call = match last.content.last() {
        Some(ContentBlock::ServerToolUse(call)) => Some(&call.id),
        Some(ContentBlock::ServerToolResult(result)) => Some(&result.tool_use_id),
        Some(_) | None => None,
    };
    let own_tool = call.is_some_and(|id| !writer.foreign_calls.contains(id));
    last.stop_reason == Some(StopReason::PauseTurn) || own_tool
}

/// The parts of a body in their written form.
struct Sections {
    system: Vec<Tree>,
    tools: Vec<Tree>,
    drafts: Vec<Draft>,
}

fn assemble(request: &Request, head: Head, sections: Sections, writer: &mut Writer) -> Tree {
    let Sections { system, tools, drafts } = sections;
    let Head { fields: mut body, left_out } = head;
    if !system.is_empty() {
        let as_string = request.system.iter().all(|message| forms::came_as_string(&message.extra));
        body.set("system", draft::content(system, as_string));
    } else if request.system.is_empty() {
        forms::set_spelled(&mut body, &request.extra, "system", forms::SYSTEM);
    }
    if !tools.is_empty() {
        body.set("tools", tools);
    } else if request.tools.is_empty() {
        forms::set_spelled(&mut body, &request.extra, "tools", forms::TOOLS);
    }
    body.set("messages", Tree::Array(drafts.into_iter().map(Draft::into_tree).collect()));
    let is_written = |key: &str| params::is_typed(key) || left_out == Some(key);
    let rest = writer.notes.own_fields(&request.extra);
    forms::add_rest(&mut body, rest.filter(|(key, _)| !is_written(key)));
    body.into()
}
