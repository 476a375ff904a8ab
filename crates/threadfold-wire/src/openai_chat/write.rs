//! Writing request bodies: the thread is made legal first and written then.

use std::borrow::Cow;

use super::{calls, marks::*, normal, normal::Chat, params};
use crate::kit::*;

/// Ids of calls may hold any characters, but at most 40.
const IDS: NameRules = NameRules { most: 40, renewal: Renewal::Shortened, ..names::TOOLS };

/// The ids that Mistral accepts: nine letters and digits.
const NINE: NameRules = NameRules {
    most: 9,
    is_legal: |char| char.is_ascii_alphanumeric(),
    renewal: Renewal::Hashed,
    ..names::TOOLS
};

/// Returns the body of a request.
pub(super) fn request(request: &Request, options: &EncodeOptions) -> Encoded {
    let end = request.messages.len();
    let at_rest = !names_model(request, options, CODEC);
    let (request, mut messages, mut notes) =
        names::begin(request, CODEC, (&names::TOOLS, false), at_rest);
    let ids = if options.needs_short_ids { &NINE } else { &IDS };
    names::rewrite_ids(&mut messages, ids, is_call, &mut notes);
    normal::drop_empty_calls(&mut messages, &mut notes);
    let mut body = params::write(&request, options, &mut notes);
    let chat = Chat {
        refuses_reasoning_fields: options.refuses_reasoning_fields,
        refuses_names: options.refuses_names,
    };
    let system = rules::system(&chat, &request.system, &mut notes);
    let mut thread = rules::thread(&chat, messages, &mut notes);
    normal::drop_lone_reasoning(&mut thread, &mut notes);
    let mut thread = normal::arrange(&thread, &mut notes);
    if !at_rest {
        normal::answer_last_call(&mut thread, end, &mut notes);
    }
    if notes::is_emptied(&request.messages, thread.len(), &mut notes) {
        thread.push((end, Message::user(CONTINUE)));
    }
    body.set("messages", self::messages(&system, &thread));
    Encoded { body: body.into_json(), adjustments: notes.finish() }
}

/// Returns the messages of a body.
pub(super) fn messages(system: &[Message], thread: &[(usize, Message)]) -> Vec<Tree> {
    let mut written = Vec::with_capacity(system.len() + thread.len());
    // The latest call, if it has the deprecated form and is the only one of its message.
    let mut deprecated = None;
    for message in system.iter().chain(thread.iter().map(|(_, message)| message)) {
        match message.role {
            Role::System => {
                let developer =
                    marked(&message.extra, mark::ROLE).is_some_and(|it| it == "developer");
                let role = if developer { "developer" } else { "system" };
                written.extend(without_results(role, message));
            }
            Role::User => {
                for block in &message.content {
                    if let ContentBlock::ToolResult(result) = block {
                        written.push(self::result(result, deprecated));
                    } else if let ContentBlock::Opaque(opaque) = block {
                        written.extend(message_field(opaque).map(|(_, it)| it.into()));
                    }
                }
                written.extend(without_results("user", message));
            }
            Role::Assistant => {
                let mut calls = message.tool_uses();
                if let Some(call) = calls.next() {
                    let is_alone = calls.next().is_none();
                    deprecated = Some(call).filter(|call| is_alone && calls::is_deprecated(call));
                }
                written.push(answer(message));
            }
        }
    }
    written
}

/// Returns the content of a message, without its results; `None` if there is none.
fn without_results(role: &'static str, message: &Message) -> Option<Tree> {
    let pieces = message.content.iter().filter_map(|block| piece(message.role, block)).collect();
    let form = marked(&message.extra, mark::CONTENT);
    let content = openai::content(pieces, form.as_deref(), "text")?;
    let mut fields = own_object(CODEC, &message.extra).with("role", role).with("content", content);
    let author = message.author.as_ref().filter(|_| message.role == Role::User);
    fields.set_some("name", author.map(|author| Text::from(author.as_str())));
    Some(fields.into())
}

fn answer(message: &Message) -> Tree {
    let (mut pieces, mut calls) = (Vec::new(), Vec::new());
    let mut thoughts: Vec<(Text, Text)> = Vec::new();
    let mut object = own_object(CODEC, &message.extra).with("role", "assistant");
    // Fields beside the content. A later one replaces an earlier one of its name.
    let mut beside: Vec<(Cow<'static, str>, Tree)> = Vec::new();
    let mut is_refused = false;
    let is_alone = message.tool_uses().count() == 1;
    for block in &message.content {
        if let ContentBlock::Thinking(it) = block
            && marked(&it.extra, mark::AS).is_some_and(|form| form == THINKING_PART)
        {
            let text = Tree::from(Object::typed("text").with("text", it.text.clone()));
            let fields = own_object(CODEC, &it.extra).with("type", "thinking");
            pieces.push(fields.with("thinking", vec![text]).into());
        } else if let ContentBlock::Thinking(it) = block {
            thoughts.extend(marked(&it.extra, mark::AS).map(|key| (key, it.text.clone())));
        } else if let ContentBlock::ToolUse(call) = block {
            if is_alone && calls::is_deprecated(call) {
                beside.push(("function_call".into(), calls::write_deprecated(call).into()));
            } else {
                calls.push(Tree::from(calls::write(call)));
            }
        } else if let ContentBlock::Text(text) = block
            && !is_refused
            && marked(&text.extra, mark::AS).is_some_and(|form| form == "refusal")
        {
            is_refused = true;
            beside.push(("refusal".into(), text.text.clone().into()));
        } else if let ContentBlock::Opaque(opaque) = block
            && let Some((name, value)) = message_field(opaque)
        {
            let value = if name == "audio" { audio(&value) } else { value.into() };
            is_refused |= name == "refusal";
            beside.push((name.to_string().into(), value));
        } else {
            pieces.extend(piece(Role::Assistant, block));
        }
    }
    let form = marked(&message.extra, mark::CONTENT);
    let is_excused = !beside.is_empty() || !calls.is_empty();
    let empty = match form.as_deref() {
        Some("absent") if is_excused => None,
        Some("empty_array") if is_excused => Some(Tree::Array(Vec::new())),
        Some("empty") => Some(Tree::Word("")),
        _ if is_excused => Some(Tree::Null),
        _ => Some(Tree::Word("")),
    };
    object.set_some("content", openai::content(pieces, form.as_deref(), "text").or(empty));
    for key in REASONING {
        let of_key = thoughts.iter().filter(|(field, _)| *field == key);
        let texts: Vec<&str> = of_key.map(|(_, text)| text.as_str()).collect();
        object.set_some(key, (!texts.is_empty()).then(|| texts.join("\n\n")));
    }
    // There are at most a few: the rules leave out opaque fields that another block sets.
    beside.into_iter().for_each(|(key, value)| object.set(key, value));
    object.set_some("tool_calls", (!calls.is_empty()).then_some(calls));
    object.into()
}

/// An answer holds the audio data; a request refers to them by id.
fn audio(value: &Json) -> Tree {
    let object = reopen(Some(value));
    match object.get("id").filter(|_| object.get("data").is_some()) {
        Some(id) => Object::of("id", id.clone()).into(),
        None => value.clone().into(),
    }
}

fn result(result: &ToolResult, deprecated: Option<&ToolUse>) -> Tree {
    let pieces = result.content.iter().filter_map(|block| piece(Role::User, block)).collect();
    let form = marked(&result.extra, mark::CONTENT);
    let content = openai::content(pieces, form.as_deref(), "text");
    let content = content.or_else(|| no_content(form.as_deref()));
    let deprecated = deprecated.filter(|call| call.id == result.tool_use_id);
    let role = if deprecated.is_some() { "function" } else { "tool" };
    let mut fields = own_object(CODEC, &result.extra).with("role", role);
    fields.set_some("content", content);
    if let Some(call) = deprecated {
        if !names::is_legal(fields.get("name"), &names::TOOLS) {
            fields.set("name", call.name.clone());
        }
        return fields.into();
    }
    // The id may have been absent, or a number.
    let unnamed = marked(&result.extra, mark::ID).is_some() || fields.get("tool_call_id").is_some();
    if !result.tool_use_id.is_empty() || !unnamed {
        fields.set("tool_call_id", result.tool_use_id.clone());
    }
    fields.into()
}

/// Returns a block as a piece of a content; `None` for a block that is written elsewhere.
fn piece(role: Role, block: &ContentBlock) -> Option<Tree> {
    if let Some((text, extra)) = wire_text(role, block) {
        if role == Role::Assistant && marked(extra, mark::AS).is_some_and(|it| it == "refusal_part")
        {
            let part = own_object(CODEC, extra).with("type", "refusal").with("refusal", text);
            return Some(part.into());
        }
        return Some(openai::text_piece(CODEC, "text", text, extra));
    }
    match block {
        ContentBlock::Image(image) => {
            let inner = reopen(image.extra.get(CODEC, "image_url"));
            let inner = inner.with("url", openai::address(&image.source)?);
            let fields = own_object(CODEC, &image.extra);
            Some(fields.with("type", "image_url").with("image_url", inner).into())
        }
        ContentBlock::Document(document) => Some(file(document)),
        ContentBlock::Opaque(opaque) => opaque_piece(opaque),
        // Texts are handled above; calls, results and reasoning have fields of their own.
        blocks!(text) | blocks!(reasoning) | blocks!(call) => None,
    }
}

fn file(document: &Document) -> Tree {
    let mut inner = reopen(document.extra.get(CODEC, "file"));
    openai::set_file(&mut inner, document);
    let fields = own_object(CODEC, &document.extra);
    fields.with("type", "file").with("file", inner).into()
}

fn opaque_piece(opaque: &Opaque) -> Option<Tree> {
    if message_field(opaque).is_some() {
        return None;
    }
    let value = opaque_value(opaque);
    let is_string = value.as_str().starts_with('"') && value == opaque.value;
    Some(if is_string { openai::whole(value) } else { value.into() })
}
