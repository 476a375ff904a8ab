//! Reading request bodies: the roles, and what each message becomes.

use std::borrow::Cow;

use super::{
    calls,
    marks::{CODEC, Field, REASONING, keep, mark, opaque_field},
    params,
    read_content::{Content, Speaker, content},
};
use crate::{
    contract::{DecodeOptions, WireError},
    fields::{Fields, Path, items, text, word},
    raw::{Raw, Scanned},
    texts::recognise,
};
use threadfold_core::message::{
    ContentBlock, Message, MessageParts, Request, Role, Text, TextBlock, Thinking, ToolResult,
};

/// Reads a request body.
pub(super) fn request(body: &[u8], options: &DecodeOptions) -> Result<Request, WireError> {
    let scanned = Scanned::new(body);
    let mut fields = Fields::body(&scanned)?;
    let path = Path::Field(&Path::Body, "messages");
    let raw = fields.take("messages").ok_or_else(|| path.missing("an array of messages"))?;
    let messages = items(raw).ok_or_else(|| path.mismatch("an array of messages", raw))?;
    let mut reader = Reader { options, system: Vec::new(), thread: Vec::new(), asked: None };
    for (index, raw) in messages.iter().enumerate() {
        reader.message(*raw, messages.get(index + 1).copied(), Path::Item(&path, index))?;
    }
    // Results that join a message change it again and again: it is settled once.
    Ok(params::read(fields, reader.system, reader.thread))
}

/// Reads an assistant message. The deprecated `function_call` becomes a call with this id, or an
/// opaque block where there is none. The message gets these marks.
pub(super) fn assistant(
    mut fields: Fields<'_>,
    function_call_id: Option<Text>,
    mut own: Vec<Field>,
    path: Path<'_>,
) -> Result<Message, WireError> {
    let path = Path::Field(&path, "content");
    let Content { blocks: said, form } = content(fields.take("content"), Speaker::Assistant, path)?;
    own.extend(form);
    let mut blocks = reasoning(&mut fields);
    if blocks.is_empty() {
        blocks = said;
    } else {
        blocks.extend(said);
    }
    if let Some(text) = fields.get("refusal").and_then(text).filter(|text| !text.is_blank()) {
        fields.take("refusal");
        let extra = keep(&Fields::default(), vec![mark("~as", "refusal")]);
        blocks.push(TextBlock { text, extra }.into());
    }
    blocks.extend(take_object(&mut fields, "audio").map(|raw| opaque_field("audio", raw)));
    let calls = fields.get("tool_calls").and_then(calls::read_all);
    if calls.is_some() {
        fields.take("tool_calls");
    }
    let id = function_call_id.filter(|_| calls.is_none());
    blocks.extend(calls.into_iter().flatten().map(ContentBlock::from));
    let function_call = fields.get("function_call").filter(|raw| !calls::is_of_nothing(*raw));
    if let Some(raw) = function_call.and_then(|_| take_object(&mut fields, "function_call")) {
        let call = id.and_then(|id| calls::read_deprecated(raw, id));
        blocks.push(call.map_or_else(|| opaque_field("function_call", raw), ContentBlock::from));
    }
    let extra = keep(&fields, own);
    Ok(MessageParts { extra, ..MessageParts::new(Role::Assistant, blocks) }.into())
}

/// What was read so far.
struct Reader<'o> {
    options: &'o DecodeOptions,
    system: Vec<Message>,
    thread: Vec<Message>,
    /// What the message before this one has asked for.
    asked: Option<Asked>,
}

/// What the next message may answer or go on with.
enum Asked {
    /// The message before is a tool message: another one joins it.
    MoreResults,
    /// The message before calls with the deprecated `function_call`, under this id.
    Function(Text),
}

impl Reader<'_> {
    fn message(
        &mut self,
        raw: Raw<'_>,
        next: Option<Raw<'_>>,
        path: Path<'_>,
    ) -> Result<(), WireError> {
        let mut fields = Fields::read(raw, path)?;
        let asked = self.asked.take();
        let role = role(&mut fields, path)?;
        match role.as_ref() {
            "system" | "developer" => self.system(role, fields, path),
            "user" => self.user(fields, path),
            "assistant" => self.assistant(fields, next, path),
            "tool" => self.tool(fields, asked, path),
            "function" => self.function(raw, fields, asked, path),
            _ => {
                let found = format!("{:?}", role.chars().take(40).collect::<String>());
                let path = Path::Field(&path, "role").to_string();
                Err(WireError::Shape { path, expected: ROLES, found })
            }
        }
    }

    fn system(
        &mut self,
        role: Cow<'_, str>,
        mut fields: Fields<'_>,
        path: Path<'_>,
    ) -> Result<(), WireError> {
        let path = Path::Field(&path, "content");
        let Content { blocks, form } = content(fields.take("content"), Speaker::System, path)?;
        let word = (role == "developer").then(|| mark("~role", "developer"));
        let extra = keep(&fields, word.into_iter().chain(form).collect());
        let message = MessageParts { extra, ..MessageParts::new(Role::System, blocks) }.into();
        let leading = self.thread.is_empty();
        if leading { &mut self.system } else { &mut self.thread }.push(message);
        Ok(())
    }

    fn user(&mut self, mut fields: Fields<'_>, path: Path<'_>) -> Result<(), WireError> {
        let path = Path::Field(&path, "content");
        let Content { mut blocks, form } = content(fields.take("content"), Speaker::User, path)?;
        let last = blocks.len().checked_sub(1);
        recognise(CODEC, &mut blocks, self.options.recognise, last);
        let extra = keep(&fields, form.into_iter().collect());
        self.thread.push(MessageParts { extra, ..MessageParts::new(Role::User, blocks) }.into());
        Ok(())
    }

    fn assistant(
        &mut self,
        fields: Fields<'_>,
        next: Option<Raw<'_>>,
        path: Path<'_>,
    ) -> Result<(), WireError> {
        // A call without an id can only be paired with a `function` message directly after it.
        let calls = fields
            .get("function_call")
            .is_some_and(|raw| raw.get().starts_with('{') && !calls::is_of_nothing(raw));
        let is_paired = calls && next.is_none_or(is_function);
        let id = is_paired.then(|| format!("function_call_{}", self.thread.len()).into());
        let message = assistant(fields, id.clone(), Vec::new(), path)?;
        let paired = message.tool_uses().any(calls::is_deprecated);
        self.asked = id.filter(|_| paired).map(Asked::Function);
        self.thread.push(message);
        Ok(())
    }

    /// Tool messages in a row become one user message of results.
    fn tool(
        &mut self,
        mut fields: Fields<'_>,
        asked: Option<Asked>,
        path: Path<'_>,
    ) -> Result<(), WireError> {
        let mut own = Vec::new();
        if fields.get("tool_call_id").is_none() {
            own.push(mark("~id", "absent"));
        }
        let id = fields.take_text("tool_call_id").unwrap_or_default();
        let block = result(id, fields, own, path)?;
        self.asked = Some(Asked::MoreResults);
        match (asked, self.thread.last_mut()) {
            (Some(Asked::MoreResults), Some(last)) => last.make_mut().content.push(block),
            _ => self.thread.push(Message::new(Role::User, vec![block])),
        }
        Ok(())
    }

    /// The deprecated `function` message: a result where it follows its call, else kept whole.
    fn function(
        &mut self,
        raw: Raw<'_>,
        fields: Fields<'_>,
        asked: Option<Asked>,
        path: Path<'_>,
    ) -> Result<(), WireError> {
        let block = match asked {
            Some(Asked::Function(id)) => result(id, fields, vec![mark("~as", "function")], path)?,
            Some(Asked::MoreResults) | None => opaque_field("message", raw),
        };
        self.thread.push(Message::new(Role::User, vec![block]));
        Ok(())
    }
}

const ROLES: &str = "system, developer, user, assistant, tool or function";

fn role<'a>(fields: &mut Fields<'a>, path: Path<'_>) -> Result<Cow<'a, str>, WireError> {
    let path = Path::Field(&path, "role");
    let raw = fields.take("role").ok_or_else(|| path.missing(ROLES))?;
    word(raw).ok_or_else(|| path.mismatch(ROLES, raw))
}

fn is_function(raw: Raw<'_>) -> bool {
    let fields = Fields::of(raw);
    let role = fields.and_then(|fields| fields.get("role").and_then(word));
    role.is_some_and(|role| role == "function")
}

fn result(
    id: Text,
    mut fields: Fields<'_>,
    mut own: Vec<Field>,
    path: Path<'_>,
) -> Result<ContentBlock, WireError> {
    let path = Path::Field(&path, "content");
    let Content { blocks, form } = content(fields.take("content"), Speaker::Tool, path)?;
    own.extend(form);
    Ok(ToolResult { extra: keep(&fields, own), ..ToolResult::new(id, blocks) }.into())
}

/// Takes out the reasoning that compatible servers put beside the content. It has no signature; its
/// mark says under which name it goes back.
fn reasoning(fields: &mut Fields<'_>) -> Vec<ContentBlock> {
    let mut thoughts = Vec::new();
    for key in REASONING {
        if let Some(text) = fields.get(key).and_then(text).filter(|text| !text.is_empty()) {
            fields.take(key);
            let extra = keep(&Fields::default(), vec![mark("~as", key)]);
            thoughts.push(Thinking { extra, ..Thinking::new(text, None) }.into());
        }
    }
    thoughts
}

fn take_object<'a>(fields: &mut Fields<'a>, key: &str) -> Option<Raw<'a>> {
    fields.get(key).filter(|raw| raw.get().starts_with('{'))?;
    fields.take(key)
}
