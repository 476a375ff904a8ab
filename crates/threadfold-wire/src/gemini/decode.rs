//! Reading request bodies: the contents, and what each part becomes.

use std::collections::{HashMap, VecDeque};

use super::{
    calls::Calls,
    marks::{self, CODEC, Field, Spelling, flag, has_mark, keep, mark},
    params,
    part::{self, Part},
    read_results, tools,
};
use crate::{
    contract::{DecodeOptions, WireError},
    fields::{Fields, Path, items, text, word},
    raw::{Raw, Scanned},
    texts::recognise,
};
use threadfold_core::message::{
    ContentBlock, Message, MessageParts, Origin, Request, Role, ServerToolResult, ServerToolUse,
    Text,
};

/// Reads a request body.
pub(super) fn request(body: &[u8], options: &DecodeOptions) -> Result<Request, WireError> {
    let scanned = Scanned::new(body);
    let mut fields = Fields::body(&scanned)?;
    let path = Path::Field(&Path::Body, "contents");
    let raw = fields.take("contents").ok_or_else(|| path.missing("an array of contents"))?;
    let contents = items(raw).ok_or_else(|| path.mismatch("an array of contents", raw))?;
    let (before, calls) = (Vec::with_capacity(contents.len()), Calls::default());
    let mut reader = Reader { options, origin: Origin::new(CODEC, None), before, calls };
    for (index, raw) in contents.into_iter().enumerate() {
        reader.content(raw, index, Path::Item(&path, index))?;
    }
    let system = system(&mut fields);
    let tools = fields.get("tools").and_then(tools::read_all);
    if tools.is_some() {
        fields.take("tools");
    }
    let request = Request {
        system: Vec::from_iter(system).into(),
        tools: tools.unwrap_or_default().into(),
        ..Request::new(reader.before)
    };
    Ok(params::read(fields, request))
}

/// Reads the system prompt, if it is a content that says something.
fn system(fields: &mut Fields<'_>) -> Option<Message> {
    let key = marks::SYSTEM.in_fields(fields)?;
    let mut content = Fields::of(fields.get(key)?)?;
    let parts = content.get("parts").and_then(items).filter(|parts| !parts.is_empty())?;
    let mut spelling = Spelling::default();
    spelling.take(fields, marks::SYSTEM);
    content.take("parts");
    let blocks = parts.into_iter().map(|raw| {
        let block = Part::read(raw).filter(|part| part.data == marks::TEXT).and_then(Part::block);
        block.filter(|block| !block.is_reasoning()).unwrap_or_else(|| part::opaque(raw))
    });
    let extra = keep(&content, &spelling, Vec::new());
    let parts = MessageParts::new(Role::System, blocks.collect());
    Some(MessageParts { extra, ..parts }.into())
}

/// Reads the parts of one content of the model. The calls are added to those that wait.
pub(super) fn answer(
    parts: Vec<Raw<'_>>,
    calls: &mut Calls,
    made_up: impl Fn(usize) -> Text,
) -> Vec<ContentBlock> {
    let mut servers = Servers::default();
    let mut number = 0;
    let mut read = |raw: Raw<'_>| {
        let part = Part::read(raw)?;
        if part.data == marks::FUNCTION_CALL {
            let call = part.call(|| made_up(number))?;
            number += 1;
            let came = !has_mark(&call.extra, "~no_id") && !has_mark(&call.extra, "~id");
            calls.add(call.id.clone(), call.name.clone(), came);
            return Some(call.into());
        }
        if marks::SERVER_DATA.contains(&part.data) {
            return servers.read(part);
        }
        part.block()
    };
    parts.into_iter().map(|raw| read(raw).unwrap_or_else(|| part::opaque(raw))).collect()
}

/// What was read so far.
struct Reader<'o> {
    options: &'o DecodeOptions,
    origin: Origin,
    before: Vec<Message>,
    calls: Calls,
}

impl Reader<'_> {
    fn content(&mut self, raw: Raw<'_>, index: usize, path: Path<'_>) -> Result<(), WireError> {
        let mut fields = Fields::read(raw, path)?;
        let mut own = Vec::new();
        let role = role(&mut fields, &mut own, path)?;
        let path = Path::Field(&path, "parts");
        let parts = match fields.take("parts") {
            Some(raw) => items(raw).ok_or_else(|| path.mismatch("an array of parts", raw))?,
            None => Vec::new(),
        };
        let beside = self.before.last().is_some_and(|last| last.role == role);
        own.extend(beside.then(|| flag("~beside")));
        let blocks = if role == Role::Assistant {
            if !beside {
                self.calls = Calls::default();
            }
            answer(parts, &mut self.calls, |number| format!("call_{index}_{number}").into())
        } else {
            let blocks = self.user(parts);
            own.extend(self.placed(&blocks).then(|| flag("~placed")));
            blocks
        };
        let extra = keep(&fields, &Spelling::default(), own);
        let mut message = MessageParts { extra, ..MessageParts::new(role, blocks) };
        message.origin = is_made_here(&message).then(|| self.origin.clone());
        self.before.push(message.into());
        Ok(())
    }

    fn user(&mut self, parts: Vec<Raw<'_>>) -> Vec<ContentBlock> {
        let mut read = |raw: Raw<'_>| {
            let part = Part::read(raw)?;
            if part.data == marks::FUNCTION_RESPONSE {
                return Some(read_results::result(part, &mut self.calls)?.into());
            }
            // A person neither thinks nor signs for the model.
            part.block().filter(|block| !block.is_reasoning())
        };
        let mut blocks: Vec<ContentBlock> =
            parts.into_iter().map(|raw| read(raw).unwrap_or_else(|| part::opaque(raw))).collect();
        let last = blocks.len().checked_sub(1);
        recognise(CODEC, &mut blocks, self.options.recognise, last);
        blocks
    }

    /// Whether results stand after or beside other parts of the user's turn.
    fn placed(&self, blocks: &[ContentBlock]) -> bool {
        let is_result = |block: &ContentBlock| matches!(block, ContentBlock::ToolResult(_));
        let mut turn = self.before.iter().rev().take_while(|message| message.role == Role::User);
        blocks.iter().any(is_result)
            && (!blocks.iter().all(is_result)
                || turn.next().is_some_and(|before| {
                    has_mark(&before.extra, "~placed") || !before.content.iter().all(is_result)
                }))
    }
}

/// The model that answered is one of this provider. What it made goes back there only.
fn is_made_here(message: &MessageParts) -> bool {
    let made =
        |block: &ContentBlock| block.is_reasoning() || matches!(block, ContentBlock::ToolUse(_));
    message.role == Role::Assistant && message.content.iter().any(made)
}

const ROLES: &str = "user or model";

fn role(fields: &mut Fields<'_>, own: &mut Vec<Field>, path: Path<'_>) -> Result<Role, WireError> {
    let path = Path::Field(&path, "role");
    let Some(raw) = fields.take("role") else {
        own.push(mark("~role", "absent"));
        return Ok(Role::User);
    };
    if raw.get() == "null" {
        own.push(mark("~role", "null"));
        return Ok(Role::User);
    }
    match word(raw).as_deref() {
        Some("user") => Ok(Role::User),
        Some("model") => Ok(Role::Assistant),
        // Empty is what an unset text reads as in this dialect.
        Some(old @ ("function" | "")) => {
            own.push(mark("~role", old));
            Ok(Role::User)
        }
        Some(_) | None => Err(path.mismatch(ROLES, raw)),
    }
}

/// The provider's own calls of one content that wait for their results.
#[derive(Default)]
struct Servers {
    count: usize,
    waiting: HashMap<Text, VecDeque<Text>>,
}

impl Servers {
    /// Reads a call of the provider's own tools, or the result of one before it. Their data stays
    /// whole. A result without a call is opaque.
    fn read(&mut self, part: Part<'_>) -> Option<ContentBlock> {
        let inner = part.inner()?;
        let field = |key: &str| inner.get(key).and_then(text);
        let came = field("id").filter(|id| !id.is_empty());
        let value = Raw::json(part.value);
        let own = vec![mark("~as", part.data.camel)];
        let extra = keep(&part.rest, &part.spelling, own);
        let is_code = [marks::EXECUTABLE_CODE, marks::CODE_RESULT].contains(&part.data);
        let tool = if is_code { "code".into() } else { came.clone().unwrap_or_default() };
        if [marks::EXECUTABLE_CODE, marks::TOOL_CALL].contains(&part.data) {
            self.count += 1;
            let id = came.unwrap_or_else(|| format!("server_{}", self.count).into());
            self.waiting.entry(tool).or_default().push_back(id.clone());
            let name = if is_code { Some("code_execution".into()) } else { None };
            let name = name.or_else(|| field("toolType").or_else(|| field("tool_type")));
            let name = name.unwrap_or_else(|| "tool".into());
            return Some(ServerToolUse { extra, ..ServerToolUse::new(id, name, value) }.into());
        }
        let id = self.waiting.get_mut(&tool)?.pop_front()?;
        Some(ServerToolResult { extra, ..ServerToolResult::new(id, part.data.camel, value) }.into())
    }
}
