//! Writing request bodies: the thread is made legal first, and written then.

use super::{
    compaction,
    forms::{self, NAME},
    params::{self, thinking_type},
    target::{self, Head, Target},
    write,
};
use crate::{
    cache::Parts,
    contract::{EncodeOptions, Encoded},
    json::{Fields, Tree},
    names,
    normal::{self, Ending, Kinds, Thread},
    notes::{self, Notes},
    params::{does_not_think, thinks_manually},
    rules::{self, Rules, foreign_server_calls},
};
use threadfold_core::message::{ContentBlock, Message, Request, StopReason, ToolSpec};

/// The names of tools may be twice as long as in other dialects.
const TOOLS: names::Rules = names::Rules { most: 128, ..names::TOOLS };

const IDS: names::Rules = names::Rules { most: usize::MAX, nameless: "call", ..names::TOOLS };

/// Writes a request body, and says what had to be changed.
pub(super) fn request(request: &Request, options: &EncodeOptions) -> Encoded {
    let mut target = Target::new(request, options);
    let (mut messages, mut notes) = notes::prepare(&request.messages, NAME);
    let prefill = target.traits.accepts_prefill && !thinks_manually(thinking_type(&request.extra));
    if !(prefill && target.model.is_none()) {
        notes::answer_open_calls(&mut messages, request.messages.len(), &mut notes);
    }
    let request = &*names::legal(request, &mut messages, (&TOOLS, false), &mut notes);
    names::rewrite_ids(&mut messages, &IDS, &mut notes);
    target.foreign_calls = foreign_server_calls(NAME, &messages, is_known_result);
    let ending = Ending {
        at: request.messages.len(),
        stays: !notes::open_calls(&messages).is_empty()
            || is_paused(&messages, &target)
            || compaction::on_demand(&request.extra).is_some(),
        prefill,
        refuses_reasoning: target.model.is_some() && does_not_think(thinking_type(&request.extra)),
    };
    notes.turn_to(None);
    let mut system = rules::system(&target, &request.system, &mut notes);
    let mut tools = normal::fit_tools(&request.tools, &mut notes);
    let mut thread = rules::thread(&target, messages, &mut notes);
    normal::results_first(&mut thread, Kinds::USUAL, &mut notes);
    normal::fit_end(&mut thread, &ending, Kinds::USUAL, &mut notes);
    compaction::settle(&mut thread, &mut notes);
    normal::begin_with_user(&mut thread, ending.at, begins_with_compaction, &mut notes);
    target::unmark_reasoning(&mut thread, &mut notes);
    let rules = target::CACHE;
    Parts { tools: &mut tools, system: &mut system, thread: &mut thread, rules }
        .mark(request.cache, &mut notes);
    let head = target::write_head(request, &target, &tools, &thread, &mut notes);
    let body = assemble(request, head, (&system, &tools, &thread), &mut notes);
    Encoded { body: body.into_json(), adjustments: notes.finish() }
}

/// Whether a block is no result of a server tool, or one of a type that this provider knows.
fn is_known_result(block: &ContentBlock) -> bool {
    let ContentBlock::ServerToolResult(result) = block else { return true };
    forms::is_server_result(&result.kind)
}

/// Whether the provider paused the answer: its stop reason says so, or it ends with the provider's
/// own tool.
fn is_paused(messages: &Thread, target: &Target) -> bool {
    let Some((_, last)) = messages.last() else { return false };
    let call = match last.content.last() {
        Some(ContentBlock::ServerToolUse(call)) => Some(&call.id),
        Some(ContentBlock::ServerToolResult(result)) => Some(&result.tool_use_id),
        Some(_) | None => None,
    };
    let own_tool = call.is_some_and(|id| target.takes_server_call(id));
    last.stop_reason == Some(StopReason::PauseTurn) || own_tool
}

/// Whether a message begins with the provider's own compaction. Such an answer may be the first
/// message.
fn begins_with_compaction(message: &Message) -> bool {
    let Some(ContentBlock::Opaque(opaque)) = message.content.first() else { return false };
    let kind = Fields::parse(opaque.value.as_str()).and_then(|mut fields| fields.take_text("type"));
    kind.is_some_and(|kind| kind == "compaction")
}

/// Puts the body together.
fn assemble(
    request: &Request,
    head: Head,
    (system, tools, thread): (&[Message], &[ToolSpec], &Thread),
    notes: &mut Notes,
) -> Tree {
    let Head { fields: mut body, left_out } = head;
    body.set_some("system", write::system(system));
    if request.system.is_empty() {
        forms::set_spelled(&mut body, &request.extra, "system", forms::SYSTEM);
    }
    if !tools.is_empty() {
        body.set("tools", Tree::Array(tools.iter().map(write::tool).collect()));
    } else if request.tools.is_empty() {
        forms::set_spelled(&mut body, &request.extra, "tools", forms::TOOLS);
    }
    let messages = thread.iter().map(|(_, message)| write::message(message));
    body.set("messages", Tree::Array(messages.collect()));
    let is_written = |key: &str| params::is_typed(key) || left_out == Some(key);
    let rest = notes.own_fields(&request.extra);
    forms::add_rest(&mut body, rest.filter(|(key, _)| !is_written(key)));
    body.into()
}
