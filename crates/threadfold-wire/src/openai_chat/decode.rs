//! Reading request bodies: the roles, and what each message becomes.

use std::borrow::Cow;

use super::{
    calls,
    marks::{CODEC, REASONING, opaque_field},
    params,
    read_content::{Speaker, take_content},
};
use crate::{
    contract::{DecodeOptions, WireError},
    json::{self, Fields, Path, Raw, Scanned},
    texts::recognise,
};
use threadfold_core::message::{
    ContentBlock, Json, Message, MessageParts, Request, Role, Text, TextBlock, Thinking, ToolResult,
};

/// Reads a request body.
pub(super) fn request(body: &[u8], options: &DecodeOptions) -> Result<Request, WireError> {
    let scanned = Scanned::new(body);
    let mut fields = Fields::body(&scanned)?;
    let messages = fields.take_items("messages", Path::Body, "an array of messages")?;
    let path = Path::Field(&Path::Body, "messages");
    let mut reader = Reader { options, system: Vec::new(), thread: Vec::new(), asked: None };
    for (index, raw) in messages.iter().enumerate() {
        reader.message(*raw, messages.get(index + 1).copied(), Path::Item(&path, index))?;
    }
    // Results are added to their message one by one; its size is computed once, at the end.
    Ok(params::read(fields, reader.system, reader.thread))
}

/// Reads an assistant message. The deprecated `function_call` becomes a call with this id, or an
/// opaque block where there is none.
pub(super) fn assistant(
    mut fields: Fields<'_>,
    function_call_id: Option<Text>,
    path: Path<'_>,
) -> Result<Message, WireError> {
    let said = take_content(&mut fields, Speaker::Assistant, path)?;
    let mut blocks = reasoning(&mut fields);
    if blocks.is_empty() {
        blocks = said;
    } else {
        blocks.extend(said);
    }
    let refusal =
        fields.take_as("refusal", |raw| raw.text().filter(|text: &Text| !text.is_blank()));
    if let Some(text) = refusal {
        let extra = json::marked(CODEC, "~as", Json::text("refusal"));
        blocks.push(TextBlock { text, extra }.into());
    }
    blocks.extend(fields.take_object("audio").map(|raw| opaque_field("audio", raw)));
    let calls = fields.take_as("tool_calls", calls::read_all);
    let id = function_call_id.filter(|_| calls.is_none());
    blocks.extend(calls.into_iter().flatten().map(ContentBlock::from));
    let function_call = fields.get("function_call").filter(|raw| !calls::is_empty_call(*raw));
    if let Some(raw) = function_call.and_then(|_| fields.take_object("function_call")) {
        let call = id.and_then(|id| calls::read_deprecated(raw, id));
        blocks.push(call.map_or_else(|| opaque_field("function_call", raw), ContentBlock::from));
    }
    let extra = fields.keep(CODEC);
    Ok(MessageParts { extra, ..MessageParts::new(Role::Assistant, blocks) }.into())
}

/// What was read so far.
struct Reader<'o> {
    options: &'o DecodeOptions,
    system: Vec<Message>,
    thread: Vec<Message>,
    /// What the message before this one expects next.
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
        if role == "developer" {
            fields.mark("~role", "developer");
        }
        let blocks = take_content(&mut fields, Speaker::System, path)?;
        let extra = fields.keep(CODEC);
        let message = MessageParts { extra, ..MessageParts::new(Role::System, blocks) }.into();
        let leading = self.thread.is_empty();
        if leading { &mut self.system } else { &mut self.thread }.push(message);
        Ok(())
    }

    fn user(&mut self, mut fields: Fields<'_>, path: Path<'_>) -> Result<(), WireError> {
        let mut blocks = take_content(&mut fields, Speaker::User, path)?;
        let last = blocks.len().checked_sub(1);
        recognise(CODEC, &mut blocks, self.options.recognise, last);
        let extra = fields.keep(CODEC);
        self.thread.push(MessageParts { extra, ..MessageParts::new(Role::User, blocks) }.into());
        Ok(())
    }

    fn assistant(
        &mut self,
        fields: Fields<'_>,
        next: Option<Raw<'_>>,
        path: Path<'_>,
    ) -> Result<(), WireError> {
        // A call without an id can only be paired with a message directly after it. A `tool` message
        // there answers nothing else: it is the result, or goes.
        let calls = fields
            .get("function_call")
            .is_some_and(|raw| raw.get().starts_with('{') && !calls::is_empty_call(raw));
        let is_paired = calls && next.is_none_or(is_result);
        let id = is_paired.then(|| format!("function_call_{}", self.thread.len()).into());
        let message = assistant(fields, id.clone(), path)?;
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
        let id = match (&asked, fields.take_text("tool_call_id")) {
            (_, Some(id)) => id,
            (Some(Asked::Function(id)), None) => id.clone(),
            (Some(Asked::MoreResults) | None, None) => {
                fields.mark("~id", "absent");
                Text::default()
            }
        };
        let block = result(id, fields, path)?;
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
        mut fields: Fields<'_>,
        asked: Option<Asked>,
        path: Path<'_>,
    ) -> Result<(), WireError> {
        fields.mark("~as", "function");
        let block = match asked {
            Some(Asked::Function(id)) => result(id, fields, path)?,
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
    raw.word().ok_or_else(|| path.mismatch(ROLES, raw))
}

fn is_result(raw: Raw<'_>) -> bool {
    let fields = Fields::of(raw);
    let role = fields.and_then(|fields| fields.word("role"));
    role.is_some_and(|role| ["function", "tool"].contains(&&*role))
}

fn result(id: Text, mut fields: Fields<'_>, path: Path<'_>) -> Result<ContentBlock, WireError> {
    let blocks = take_content(&mut fields, Speaker::Tool, path)?;
    Ok(ToolResult { extra: fields.keep(CODEC), ..ToolResult::new(id, blocks) }.into())
}

/// Takes out the reasoning that compatible servers put beside the content. It has no signature; its
/// mark is the name of its field.
fn reasoning(fields: &mut Fields<'_>) -> Vec<ContentBlock> {
    let read = |key| {
        let text = fields.take_as(key, |raw| raw.text().filter(|text| !text.is_empty()))?;
        let extra = json::marked(CODEC, "~as", Json::text(key));
        Some(Thinking { extra, ..Thinking::new(text, None) }.into())
    };
    REASONING.into_iter().filter_map(read).collect()
}
