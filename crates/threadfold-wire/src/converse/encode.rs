//! Writing request bodies: the thread is made legal first, and written then.

use std::collections::BTreeSet;

use super::{
    forms::{self, NAME},
    names::{IDS, rewrite_titles},
    normal::{
        KINDS, cache_rules, mark_points, mark_tools, note_dropped, only_results,
        text_beside_documents,
    },
    params::{self, Forced, MODEL_FIELDS, THINKING, thinking_type},
    target::{Family, MODEL, Target, own_model},
    write,
};
use crate::{
    cache::Parts,
    contract::{Change, EncodeOptions, Encoded},
    json::{Fields, Object, Tree},
    names,
    normal::{self, Ending, Thread},
    notes::{self, Notes},
    params::{does_not_think, thinks_manually},
    rules::{self, foreign_server_calls},
};
use threadfold_core::message::{Json, Message, Request, Role, Text, ToolSpec};

/// Writes a request body, and says what had to be changed.
pub(super) fn request(request: &Request, options: &EncodeOptions) -> Encoded {
    let mut target = Target::new(request, options);
    let end = request.messages.len();
    let (mut messages, mut notes) = notes::prepare(&request.messages, NAME);
    notes::answer_open_calls(&mut messages, end, &mut notes);
    let request = &*names::legal(request, &mut messages, (&names::TOOLS, true), &mut notes);
    names::rewrite_ids(&mut messages, &IDS, &mut notes);
    rewrite_titles(&mut messages, &mut notes);
    target.foreign_calls = foreign_server_calls(NAME, &messages, |_| true);
    notes.turn_to(None);
    let mut system = rules::system(&target, &request.system, &mut notes);
    let cache = cache_rules(&target);
    system.iter_mut().for_each(|message| mark_points(message, &cache, &mut notes));
    let mut tools = normal::fit_tools(&request.tools, &mut notes);
    let lost_marks = mark_tools(&mut tools);
    declare_called(&mut tools, &messages, &mut notes);
    note_dropped(lost_marks, &mut notes);
    let mut thread = rules::thread(&target, messages, &mut notes);
    for (at, message) in &mut thread {
        notes.turn_to(*at);
        mark_points(message, &cache, &mut notes);
    }
    thread.retain(|(_, message)| !message.content.is_empty());
    normal::results_first(&mut thread, KINDS, &mut notes);
    only_results(&mut thread, &target, &mut notes);
    normal::merge_neighbours(&mut thread, &mut notes);
    text_beside_documents(&mut thread, &mut notes);
    let ending = Ending {
        at: end,
        stays: false,
        prefill: target.traits.accepts_prefill && !thinks_manually(thinking_type(&request.extra)),
        refuses_reasoning: target.family == Family::Claude
            && does_not_think(thinking_type(&request.extra)),
    };
    normal::fit_end(&mut thread, &ending, KINDS, &mut notes);
    let may_begin = |_: &Message| target.may_begin_with_answer();
    normal::begin_with_user(&mut thread, end, may_begin, &mut notes);
    Parts { tools: &mut tools, system: &mut system, thread: &mut thread, rules: cache }
        .mark(request.cache, &mut notes);
    let body = assemble(request, options, (&system, &tools, &thread), &mut notes);
    Encoded { body: body.into_json(), adjustments: notes.finish() }
}

/// Declares the tools that the thread calls if the request declares none: the provider demands
/// declarations.
fn declare_called(tools: &mut Vec<ToolSpec>, thread: &Thread, notes: &mut Notes) {
    if !tools.is_empty() {
        return;
    }
    let calls = thread.iter().flat_map(|(_, message)| message.tool_uses());
    let called: BTreeSet<&Text> = calls.map(|call| &call.name).collect();
    for name in called {
        notes.note(Change::ToolDeclared { name: name.clone() });
        let schema = Tree::from(Object::typed("object")).into_json();
        tools.push(ToolSpec::new(name.clone(), "", schema));
    }
}

fn assemble(
    request: &Request,
    options: &EncodeOptions,
    (system, tools, thread): (&[Message], &[ToolSpec], &Thread),
    notes: &mut Notes,
) -> Tree {
    let mut body = Object::default();
    notes.turn_to(None);
    // Over HTTP the address names the model; only bodies for SDKs hold the name.
    let named = options.model.as_ref().filter(|_| own_model(request).is_some());
    body.set_some(MODEL, named.cloned());
    let prompt = system.iter().flat_map(|message| write::blocks(Role::System, &message.content));
    let prompt: Vec<Tree> = prompt.collect();
    if !prompt.is_empty() {
        body.set("system", prompt);
    } else if request.system.is_empty() {
        body.set_some("system", request.extra.get(NAME, forms::SYSTEM).cloned());
    }
    let model_fields = model_fields(request, thread, notes);
    let messages = thread.iter().map(|(_, message)| write::message(message));
    body.set("messages", Tree::Array(messages.collect()));
    params::write(&mut body, request, notes);
    let tools = tools.iter().flat_map(write::tool).collect();
    params::write_tools(&mut body, request, tools, model_fields.forced, notes);
    let is_written = |key: &str| {
        matches!(key, "inferenceConfig" | "toolConfig")
            || (key == MODEL_FIELDS && model_fields.rewritten.is_some())
    };
    let rest = notes.own_fields(&request.extra).filter(|(key, _)| !is_written(key));
    forms::add_rest(&mut body, rest);
    body.set_some(MODEL_FIELDS, model_fields.rewritten.filter(|fields| fields.len() > 0));
    body.into()
}

/// What thinking with a fixed budget demands of the other parameters.
struct ModelFields {
    forced: Forced,
    /// The fields for the model where one of them had to be left out.
    rewritten: Option<Object>,
}

/// Thinking with a fixed budget cannot be combined with everything.
fn model_fields(request: &Request, thread: &Thread, notes: &mut Notes) -> ModelFields {
    let fields = request.extra.get(NAME, MODEL_FIELDS).map(Json::as_str);
    let fields = fields.and_then(Fields::parse);
    let Some(mut fields) = fields.filter(|_| thinks_manually(thinking_type(&request.extra))) else {
        return ModelFields { forced: Forced::May, rewritten: None };
    };
    if !normal::loop_has_no_reasoning(thread, KINDS) {
        return ModelFields { forced: Forced::MayNot, rewritten: None };
    }
    for key in THINKING {
        if fields.take(key).is_some() {
            notes.drop_parameter(key);
        }
    }
    ModelFields { forced: Forced::May, rewritten: Some(fields.tree()) }
}
