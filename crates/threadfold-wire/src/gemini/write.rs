//! Writing request bodies: the thread is made legal first and written then.

use std::collections::HashMap;

use super::{marks::*, media, normal, normal::Gemini, params, part, tools};
use crate::kit::*;

/// Returns the body of a request.
pub(super) fn request(request: &Request, options: &EncodeOptions) -> Encoded {
    let model = options.model.clone().or_else(|| marked(&request.extra, "model"));
    let at_rest = options.accepts_prefill && model.is_none();
    let end = request.messages.len();
    let (request, messages, mut notes) =
        names::begin(request, CODEC, (&part::TOOLS, false), at_rest);
    let system = rules::system(&Gemini, &request.system, &mut notes);
    let mut thread = rules::thread(&Gemini, messages, &mut notes);
    normal::spread_media(&mut thread, &mut notes);
    let demanded = model.as_deref().is_some_and(normal::are_demanded);
    normal::sign(&mut thread, demanded, &mut notes);
    let mut thread = normal::arrange(&thread, &mut notes);
    let stays = options.accepts_prefill;
    let ending = Ending { at: end, stays, prefill: false, refuses_reasoning: false };
    fit_end(&mut thread, &ending, Kinds::USUAL, &mut notes);
    begin_with_user(&mut thread, end, |_| false, &mut notes);

    let functions = request.tools.iter().filter(|tool| tools::is_function(tool));
    let functions: Vec<Text> = functions.map(|tool| tool.name.clone()).collect();
    let mut body = params::write(&request, options, &functions, &mut notes);
    write_system(&system, &mut body);
    body.set("contents", Tree::Array(contents(&thread)));
    let tools = tools::write_all(&request.tools, &mut notes);
    if !tools.is_empty() {
        body.set("tools", tools);
    }
    respell(&mut body, &request.extra);
    Encoded { body: body.into_json(), adjustments: notes.finish() }
}

/// Writes the system messages as one prompt, with the fields of the first.
fn write_system(system: &[Message], body: &mut Object) {
    let Some(first) = system.first() else { return };
    let blocks = system.iter().flat_map(|message| &message.content);
    let parts: Vec<Tree> = blocks.filter_map(|block| self::part(Role::System, block)).collect();
    let prompt = own_object(CODEC, &first.extra).with("parts", parts);
    body.set("systemInstruction", prompt);
}

/// The latest call of each id.
type Calls<'t> = HashMap<&'t Text, &'t ToolUse>;

/// Returns the contents of a thread.
pub(super) fn contents(thread: &[(usize, Message)]) -> Vec<Tree> {
    let mut calls = Calls::new();
    let mut written = Vec::with_capacity(thread.len());
    for (_, message) in thread {
        calls.extend(message.tool_uses().map(|call| (&call.id, call)));
        written.push(content(message, &calls));
    }
    written
}

fn content(message: &Message, calls: &Calls<'_>) -> Tree {
    let mut object = Object::default();
    object.set_some("role", role(message));
    let mut parts = Vec::with_capacity(message.content.len());
    for block in &message.content {
        if let ContentBlock::ToolResult(result) = block {
            parts.push(self::result(result, calls.get(&result.tool_use_id).copied()));
        } else {
            parts.extend(part(message.role, block));
        }
    }
    object.set("parts", parts);
    object.extend_unset(own_object(CODEC, &message.extra));
    object.into()
}

/// The role of a message, in the form in which it was read.
fn role(message: &Message) -> Option<Tree> {
    if message.role == Role::Assistant {
        return Some(Tree::Word("model"));
    }
    let mut blocks = message.content.iter();
    let Some(role) = message.extra.get(CODEC, mark::ROLE) else { return Some(Tree::Word("user")) };
    match role.as_str() {
        r#""absent""# => None,
        // The old role `function` is only for results.
        r#""function""#
            if !blocks.all(|it| is_result(it) || matches!(it, ContentBlock::Opaque(_))) =>
        {
            Some(Tree::Word("user"))
        }
        _ => Some(role.clone().into()),
    }
}

/// Returns a block as a part; `None` for a result.
pub(super) fn part(role: Role, block: &ContentBlock) -> Option<Tree> {
    let (data, extra) = match block {
        blocks!(text) => {
            let (text, extra) = wire_text(role, block)?;
            (Object::of("text", text), extra)
        }
        ContentBlock::Image(Image { source, extra }) => {
            let (key, data) = media::write(source, extra, "image/jpeg");
            return Some(finish(key, data, extra));
        }
        ContentBlock::Document(Document { source, title, extra, .. }) => {
            let (key, mut data) = media::write(source, extra, "application/pdf");
            data.set_some("displayName", title.clone());
            return Some(finish(key, data, extra));
        }
        ContentBlock::Thinking(thinking) => (thought(thinking), &thinking.extra),
        ContentBlock::ToolUse(call) => return Some(self::call(call)),
        ContentBlock::ServerToolUse(call) => (server(&call.extra, &call.input)?, &call.extra),
        ContentBlock::ServerToolResult(result) => {
            (server(&result.extra, &result.content)?, &result.extra)
        }
        ContentBlock::Opaque(opaque) => return Some(opaque.value.clone().into()),
        ContentBlock::RedactedThinking(_) | ContentBlock::ToolResult(_) => return None,
    };
    Some(beside(data, extra))
}

fn thought(thinking: &Thinking) -> Object {
    let mut object = Object::of("text", thinking.text.clone());
    if marked(&thinking.extra, mark::AS).is_none_or(|form| form != "text") {
        object.set("thought", true);
    }
    object.set_some("thoughtSignature", thinking.signature.clone());
    object
}

fn server(extra: &Extra, value: &Json) -> Option<Object> {
    Some(Object::of(server_data(extra)?, value.clone()))
}

fn call(call: &ToolUse) -> Tree {
    let mut data = reopen(call.extra.get(CODEC, "functionCall"));
    if let Some(id_as_read) = call.extra.get(CODEC, mark::ID) {
        data.set("id", id_as_read.clone());
    } else if !normal::is_unnamed(&call.id, &call.extra) {
        data.set("id", call.id.clone());
    }
    data.set("name", call.name.clone());
    let input = call.input.json().unwrap_or_else(|_| part::no_args());
    // A call that was read without arguments is written without them.
    if !(has_mark(&call.extra, mark::ARGS) && input == part::no_args()) {
        data.set("args", input);
    }
    finish("functionCall", data, &call.extra)
}

/// Returns the result of this call. It gets an id if the call has one.
fn result(result: &ToolResult, call: Option<&ToolUse>) -> Tree {
    let mut data = reopen(result.extra.get(CODEC, "functionResponse"));
    let unnamed = call.is_some_and(|call| normal::is_unnamed(&call.id, &call.extra));
    if let Some(id_as_read) = result.extra.get(CODEC, mark::ID) {
        data.set("id", id_as_read.clone());
    } else if !unnamed && !has_mark(&result.extra, mark::NO_ID) && data.get("id").is_none() {
        data.set("id", result.tool_use_id.clone());
    }
    if !names::is_legal(data.get("name"), &part::TOOLS) {
        // Removed first, so that its position does not depend on whether it existed.
        data.remove("name");
        data.set("name", call.map_or(&result.tool_use_id, |call| &call.name).clone());
    }
    let texts = result.content.iter().filter_map(|it| wire_text(Role::User, it));
    let texts: Vec<Text> = texts.map(|(text, _)| text).collect();
    if data.get("response").is_none() || !texts.is_empty() {
        data.set("response", response(result, &texts));
    }
    let others = result.content.iter().filter(|it| wire_text(Role::User, it).is_none());
    let parts: Vec<Tree> = others.filter_map(|block| part(Role::User, block)).collect();
    data.set_some("parts", (!parts.is_empty()).then_some(parts));
    finish("functionResponse", data, &result.extra)
}

/// The response of a result: the object that was read, or the text under the key for success or
/// failure.
fn response(result: &ToolResult, texts: &[Text]) -> Tree {
    let whole = marked(&result.extra, mark::AS).is_some_and(|form| form == "response");
    if let Some(json) = texts.first().filter(|_| whole && texts.len() == 1).and_then(object)
        && Fields::parse(json.as_str())
            .is_some_and(|fields| part::says_error(&fields) == result.is_error)
    {
        return json.into();
    }
    let key = if result.is_error { "error" } else { "output" };
    Object::of(key, texts.join("\n\n")).into()
}

fn object(text: &Text) -> Option<Json> {
    Json::parse(text).ok().filter(Json::is_object)
}
