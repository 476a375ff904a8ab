//! Writing request bodies: the thread is made legal first and written then.

use super::{compaction, forms, forms::NAME, media, params, params::thinking_type, version};
use crate::kit::*;

/// The rule for names of tools, which may be twice as long as in other dialects.
const TOOLS: NameRules = NameRules { most: 128, ..names::TOOLS };

const IDS: NameRules = NameRules { most: usize::MAX, nameless: "call", ..names::TOOLS };

/// Writes a request body, and reports the changes.
pub(super) fn request(request: &Request, options: &EncodeOptions) -> Encoded {
    let claude = Claude(Target::new((NAME, "model"), request, options));
    let names_model = names_model(request, options, NAME);
    let prefill = options.accepts_prefill && !thinks_manually(thinking_type(&request.extra));
    let at_rest = prefill && !names_model;
    let (mut request, mut messages, mut notes) =
        names::begin(request, NAME, (&TOOLS, false), at_rest);
    names::rewrite_ids(&mut messages, &IDS, |_| true, &mut notes);
    names::distinguish_ids(&mut messages, IDS.most, &mut notes);
    let ending = Ending {
        at: request.messages.len(),
        stays: !notes::open_calls(&messages).is_empty()
            || is_paused(&messages, &claude)
            || compaction::on_demand(&request.extra).is_some(),
        prefill,
        refuses_reasoning: names_model && does_not_think(thinking_type(&request.extra)),
    };
    notes.turn_to(None);
    version::fit_request(&mut request, options, &mut notes);
    let mut system = rules::system(&claude, &request.system, &mut notes);
    let mut tools = fit_tools(&request.tools, &mut notes);
    let mut thread = rules::thread(&claude, messages, &mut notes);
    compaction::as_returned(&mut thread, options);
    version::fit_thread(&mut thread, options, &mut notes);
    rules::drop_unanswered(&mut thread, ending.stays || prefill, &mut notes);
    results_first(&mut thread, Kinds::USUAL, &mut notes);
    fit_end(&mut thread, &ending, Kinds::USUAL, &mut notes);
    compaction::lead_with_newest(&mut thread, options, &mut notes);
    begin_with_user(&mut thread, ending.at, begins_with_compaction, &mut notes);
    unmark_reasoning(&mut thread, &mut notes);
    let parts = (&mut *tools, &mut *system, &mut thread);
    cache::fit(parts, &CACHE, request.cache, &mut notes);
    let body = assemble(&request, options, (&system, &tools, &thread), &mut notes);
    Encoded { body: body.into_json(), adjustments: notes.finish() }
}

/// Whether the provider paused the last answer: its stop reason is a pause, or it ends with the
/// provider's own tool.
fn is_paused(messages: &Thread, claude: &Claude) -> bool {
    let Some((_, last)) = messages.last() else { return false };
    let call = match last.content.last() {
        Some(ContentBlock::ServerToolUse(call)) => Some(&call.id),
        Some(ContentBlock::ServerToolResult(result)) => Some(&result.tool_use_id),
        Some(_) | None => None,
    };
    let foreign = call.map(|_| foreign_server_calls(claude, messages, NAME));
    let own_tool = call.zip(foreign).is_some_and(|(id, foreign)| !foreign.contains(id));
    last.stop_reason == Some(StopReason::PauseTurn) || own_tool
}

/// Whether a message begins with the provider's own compaction. Such an answer may be the first
/// message.
fn begins_with_compaction(message: &Message) -> bool {
    let Some(ContentBlock::Opaque(opaque)) = message.content.first() else { return false };
    let kind = Fields::parse(opaque.value.as_str()).and_then(|mut fields| fields.take_text("type"));
    kind.is_some_and(|kind| kind == "compaction")
}

/// Assembles the body: the known parameters, the parts of the request, and all other parameters.
fn assemble(
    request: &Request,
    options: &EncodeOptions,
    (system, tools, thread): (&[Message], &[ToolSpec], &Thread),
    notes: &mut Notes,
) -> Tree {
    let mut body = Object::default();
    notes.turn_to(None);
    // Always write the model first, whether the options or the request name it, so that equal
    // requests have equal bodies.
    let own = request.extra.get(NAME, "model").filter(|own| **own != Json::default());
    let model = options.model.clone().map(Tree::Text);
    body.set_some("model", model.or_else(|| own.cloned().map(Tree::Raw)));
    params::MAX_OUTPUT.set(&mut body, &request.extra, request.max_output.as_ref(), notes);
    // A limit that is not a number was read from a body and is written unchanged with the other
    // fields, so do not add a default.
    let has_limit =
        request.extra.get(NAME, "max_tokens").is_some_and(|limit| *limit != Json::default());
    if names_model(request, options, NAME) && !has_limit && body.get("max_tokens").is_none() {
        body.set("max_tokens", MAX_OUTPUT);
        notes.note(Change::MaxOutputSet { tokens: MAX_OUTPUT });
    }
    params::write(&mut body, request, tools, notes);
    let drops_thinking = fit_thinking(request, thread, &mut body, notes);
    body.set_some("system", self::system(system));
    if request.system.is_empty() {
        forms::set_spelled(&mut body, &request.extra, mark::SYSTEM);
    }
    if !tools.is_empty() {
        body.set("tools", Tree::Array(tools.iter().map(tool).collect()));
    } else if request.tools.is_empty() {
        forms::set_spelled(&mut body, &request.extra, mark::TOOLS);
    }
    let messages = thread.iter().map(|(_, it)| message(it));
    body.set("messages", Tree::Array(messages.collect()));
    let rest = notes.own_fields(&request.extra).filter(|(key, _)| {
        *key != params::TOOL_CHOICE.key() && !(drops_thinking && *key == "thinking")
    });
    add_rest(&mut body, rest);
    version::bind(&mut body, &request.extra, options);
    body.into()
}

/// Makes thinking with a fixed budget legal: it may not force a tool, and the provider refuses it
/// if a tool loop or an answer at the end has no reasoning. Returns whether it has to be left out.
fn fit_thinking(request: &Request, thread: &Thread, body: &mut Object, notes: &mut Notes) -> bool {
    if !thinks_manually(thinking_type(&request.extra)) {
        return false;
    }
    let goes = loop_has_no_reasoning(thread, Kinds::USUAL);
    let forces = matches!(request.tool_choice, Some(ToolChoice::Required | ToolChoice::Tool(_)));
    if goes {
        notes.drop_parameter("thinking");
    } else if forces && body.get("tool_choice").is_some() {
        notes.drop_parameter("tool_choice");
        body.set("tool_choice", Object::typed("auto"));
    }
    goes
}

/// The limit if the request has none, because the dialect demands one.
const MAX_OUTPUT: u64 = 4096;

const CACHE: CacheRules = CacheRules {
    key: "cache_control",
    kind: "ephemeral",
    within: None,
    takes: |block| !block.is_reasoning() && !matches!(block, ContentBlock::Opaque(_)),
    of_user: false,
    marks: (true, true),
};

/// Removes cache marks from reasoning, because the provider refuses them.
fn unmark_reasoning(thread: &mut Thread, notes: &mut Notes) {
    for (at, message) in thread {
        let reasoning = message.content.iter().filter(|block| block.is_reasoning());
        let marks = reasoning.filter_map(|block| cache::mark(block, NAME, CACHE.key));
        let count = marks.count();
        if count > 0 {
            notes.turn_to(*at).note(Change::CacheMarksDropped { count });
            let content = message.make_mut().content.iter_mut();
            let reasoning = content.filter(|block| block.is_reasoning());
            reasoning.for_each(|block| cache::set(block, NAME, CACHE.key, None));
        }
    }
}

/// The rules for the blocks of a thread that this model gets.
struct Claude(Target);

impl Rules for Claude {
    fn source(&self, source: &MediaSource, medium: Medium, reader: Option<&str>) -> FittedSource {
        media::SOURCES.fit(source, medium, reader)
    }

    /// Models with a larger window accept more.
    fn pictures(&self, count: usize) -> Pictures {
        const WINDOW: u64 = 200_000;
        let model = self.0.name.as_ref().filter(|_| count > Pictures::CLAUDE.most);
        let window = model.and_then(|model| ContextWindow::for_model(model));
        let is_larger = window.is_some_and(|window| window.tokens() > WINDOW);
        Pictures { most: if is_larger { 600 } else { 100 }, ..Pictures::CLAUDE }
    }

    fn reasoning_fault(&self, message: &Message, block: &ContentBlock) -> Option<&'static str> {
        self.0.reasoning_fault(message, block, true)
    }

    fn keeps_system(&self, message: &Message, before: Option<Role>) -> bool {
        self.0.keeps_system(message, before)
    }

    /// Every call, and the results of known types.
    fn knows_server_call(&self, block: &ContentBlock) -> bool {
        let ContentBlock::ServerToolResult(result) = block else { return true };
        forms::is_server_result(&result.kind)
    }

    fn takes_context(&self) -> bool {
        true
    }
}

pub(super) fn message(message: &Message) -> Tree {
    let blocks = blocks(message.role, &message.content);
    let content = content(blocks, forms::was_string(&message.extra));
    let object = Object::of("role", message.role.as_str()).with("content", content);
    finish(object, &message.extra)
}

/// Returns the system prompt, if there is one.
pub(super) fn system(system: &[Message]) -> Option<Tree> {
    let mut bodies = Vec::new();
    system.iter().for_each(|message| bodies.extend(blocks(Role::System, &message.content)));
    let as_string = system.iter().all(|message| forms::was_string(&message.extra));
    (!bodies.is_empty()).then(|| content(bodies, as_string))
}

pub(super) fn tool(tool: &ToolSpec) -> Tree {
    let mut object = Object::default();
    if tool.input_schema.is_object() {
        object.set("name", tool.name.clone());
        object.set_unless_empty("description", &tool.description);
        forms::set_spelled(&mut object, &tool.extra, mark::DESCRIPTION);
        object.set("input_schema", typed_schema(tool, NAME, mark::INPUT_SCHEMA));
    }
    finish(object, &tool.extra)
}

fn blocks(role: Role, blocks: &[ContentBlock]) -> Vec<Tree> {
    blocks.iter().map(|it| block(role, it)).collect()
}

fn block(role: Role, block: &ContentBlock) -> Tree {
    let (object, extra) = match block {
        blocks!(text) => {
            let Some((text, extra)) = wire_text(role, block) else { return Tree::Null };
            (Object::typed("text").with("text", text), extra)
        }
        ContentBlock::Image(image) => {
            (Object::typed("image").with("source", media::write(&image.source)), &image.extra)
        }
        ContentBlock::Document(document) => {
            let source = media::write(&document.source);
            let mut object = Object::typed("document").with("source", source);
            object.set_some("title", document.title.clone());
            object.set_some("context", document.context.clone());
            forms::set_spelled(&mut object, &document.extra, mark::TITLE);
            forms::set_spelled(&mut object, &document.extra, mark::CONTEXT);
            (object, &document.extra)
        }
        ContentBlock::Thinking(thinking) => {
            let mut object = Object::typed("thinking").with("thinking", thinking.text.clone());
            object.set_some("signature", thinking.signature.clone());
            (object, &thinking.extra)
        }
        ContentBlock::RedactedThinking(redacted) => {
            let object = Object::typed("redacted_thinking").with("data", redacted.data.clone());
            (object, &redacted.extra)
        }
        ContentBlock::ToolUse(call) => {
            let input = (&call.input).into();
            (call_of("tool_use".into(), &call.id, &call.name, input), &call.extra)
        }
        ContentBlock::ServerToolUse(call) => {
            let kind = call.extra.get(NAME, mark::TYPE).cloned().map(Tree::Raw);
            let kind = kind.unwrap_or(Tree::Word("server_tool_use"));
            (call_of(kind, &call.id, &call.name, call.input.clone().into()), &call.extra)
        }
        ContentBlock::ToolResult(result) => (tool_result(result), &result.extra),
        ContentBlock::ServerToolResult(result) => {
            let mut object = Object::of("type", result.kind.clone());
            object.set("tool_use_id", result.tool_use_id.clone());
            let had_none = result.extra.get(NAME, mark::CONTENT).is_some();
            if result.content != Json::default() || !had_none {
                object.set("content", result.content.clone());
            }
            (object, &result.extra)
        }
        ContentBlock::Opaque(opaque) => return opaque.value.clone().into(),
    };
    finish(object, extra)
}

fn call_of(kind: Tree, id: &Text, name: &Text, input: Tree) -> Object {
    let object = Object::of("type", kind).with("id", id.clone());
    object.with("name", name.clone()).with("input", input)
}

fn tool_result(result: &ToolResult) -> Object {
    let mut object = Object::typed("tool_result").with("tool_use_id", result.tool_use_id.clone());
    let bodies = blocks(Role::User, &result.content);
    if !bodies.is_empty() {
        object.set("content", content(bodies, forms::was_string(&result.extra)));
    }
    if result.is_error {
        object.set("is_error", true);
    }
    forms::set_spelled(&mut object, &result.extra, mark::IS_ERROR);
    object
}

/// Returns blocks as a content: one string if it was read as one and can still be one, else a list.
fn content(bodies: Vec<Tree>, as_string: bool) -> Tree {
    match bodies.as_slice() {
        [Tree::Object(object)] if as_string && object.len() == 2 => match object.get("text") {
            Some(text) => text.clone(),
            None => Tree::Array(bodies),
        },
        _ => Tree::Array(bodies),
    }
}

fn finish(mut object: Object, extra: &Extra) -> Tree {
    add_rest(&mut object, extra.of(NAME));
    object.into()
}
