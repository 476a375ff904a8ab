//! Reading request bodies: the contents, and what each part becomes.

use std::collections::{HashMap, VecDeque};

use super::{
    marks::{self, CODEC, Spelling, flag, has_mark},
    params,
    part::{self, Part},
    read_results::{self, Calls},
    tools,
};
use crate::{
    contract::{DecodeOptions, WireError},
    json::{Fields, Path, Raw, Scanned},
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
    let contents = fields.take_items("contents", Path::Body, "an array of contents")?;
    let path = Path::Field(&Path::Body, "contents");
    let (before, calls) = (Vec::with_capacity(contents.len()), Calls::default());
    let mut reader = Reader { options, origin: Origin::new(CODEC, None), before, calls };
    for (index, raw) in contents.into_iter().enumerate() {
        reader.content(raw, index, Path::Item(&path, index))?;
    }
    let system = system(&mut fields);
    let tools = fields.take_as("tools", tools::read_all);
    let request = Request {
        system: Vec::from_iter(system).into(),
        tools: tools.unwrap_or_default().into(),
        ..Request::new(reader.before)
    };
    Ok(params::read(fields, request))
}

/// Reads the system prompt, if it is a content that says something.
fn system(fields: &mut Fields<'_>) -> Option<Message> {
    let mut content = Fields::of(marks::SYSTEM.get(fields)?)?;
    let read = |raw: Raw<'_>| {
        let block = Part::read(raw).filter(|part| part.data == marks::TEXT).and_then(Part::block);
        let block = block.filter(|block| !block.is_reasoning());
        Some(block.unwrap_or_else(|| part::opaque(raw)))
    };
    let blocks = content.take_as("parts", |raw| raw.all(read))?;
    let mut spelling = Spelling::default();
    spelling.take(fields, marks::SYSTEM);
    let extra = spelling.keep(content);
    Some(MessageParts { extra, ..MessageParts::new(Role::System, blocks) }.into())
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
        let role = role(&mut fields, path)?;
        let path = Path::Field(&path, "parts");
        let parts = match fields.take("parts") {
            Some(raw) => raw.items().ok_or_else(|| path.mismatch("an array of parts", raw))?,
            None => Vec::new(),
        };
        let beside = self.before.last().is_some_and(|last| last.role == role);
        if beside {
            flag(&mut fields, "~beside");
        }
        let blocks = if role == Role::Assistant {
            if !beside {
                self.calls = Calls::default();
            }
            answer(parts, &mut self.calls, |number| format!("call_{index}_{number}").into())
        } else {
            let blocks = self.user(parts);
            if self.placed(&blocks) {
                flag(&mut fields, "~placed");
            }
            blocks
        };
        let extra = fields.keep(CODEC);
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
            // A user message holds no reasoning.
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

/// Whether the message holds calls or reasoning, which only models of this provider may get back.
fn is_made_here(message: &MessageParts) -> bool {
    let made =
        |block: &ContentBlock| block.is_reasoning() || matches!(block, ContentBlock::ToolUse(_));
    message.role == Role::Assistant && message.content.iter().any(made)
}

const ROLES: &str = "user or model";

fn role(fields: &mut Fields<'_>, path: Path<'_>) -> Result<Role, WireError> {
    let path = Path::Field(&path, "role");
    let Some(raw) = fields.take("role") else {
        fields.mark("~role", "absent");
        return Ok(Role::User);
    };
    if raw.get() == "null" {
        fields.mark("~role", "null");
        return Ok(Role::User);
    }
    match raw.word().as_deref() {
        Some("user") => Ok(Role::User),
        Some("model") => Ok(Role::Assistant),
        // In this dialect an empty text means that none is set.
        Some(old @ ("function" | "")) => {
            fields.mark("~role", old);
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
    fn read(&mut self, mut part: Part<'_>) -> Option<ContentBlock> {
        let inner = part.inner()?;
        let field = |key: &str| inner.text(key);
        let came = field("id").filter(|id| !id.is_empty());
        let value = Raw::json(part.value);
        part.rest.mark("~as", part.data.camel);
        let extra = part.spelling.keep(part.rest);
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
