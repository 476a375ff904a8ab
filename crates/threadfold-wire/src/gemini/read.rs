//! Reading request bodies and answers: contents and parts.

use super::{marks::*, params, part, part::*, tools};
use crate::kit::*;

/// Reads a request body.
pub(super) fn request(mut fields: Fields<'_>, options: &DecodeOptions) -> Result<Request> {
    camel_case(&mut fields);
    let contents = fields.take_items("contents", Path::Body, "an array of contents")?;
    let path = Path::Field(&Path::Body, "contents");
    let (before, calls) = (Vec::with_capacity(contents.len()), Calls::default());
    let mut reader = Reader { options, before, calls };
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

/// Reads the system prompt, if it is a content with parts.
fn system(fields: &mut Fields<'_>) -> Option<Message> {
    let mut content = fields.object("systemInstruction")?;
    let parts = content.take_as("parts", |raw| raw.items().filter(|parts| !parts.is_empty()))?;
    let blocks = part::read_all(parts, |part| part.block().filter(|it| it.as_text().is_some()));
    fields.take("systemInstruction");
    Some(
        MessageParts { extra: content.keep(CODEC), ..MessageParts::new(Role::System, blocks) }
            .into(),
    )
}

/// Reads the parts of one content of the model. Its calls are added to `calls`, to be paired with
/// results.
pub(super) fn blocks(
    parts: Vec<Raw<'_>>,
    calls: &mut Calls,
    made_up: impl Fn(usize) -> Text,
) -> Vec<ContentBlock> {
    let mut of_provider = Calls::default();
    let mut number = 0;
    part::read_all(parts, |part| {
        if part.data == "functionCall" {
            let call = part.call(|| made_up(number))?;
            number += 1;
            let has_id = !has_mark(&call.extra, mark::NO_ID) && !has_mark(&call.extra, mark::ID);
            calls.add(call.id.clone(), call.name.clone(), has_id);
            return Some(call.into());
        }
        if SERVER_DATA.contains(&part.data) {
            return of_server(part, &mut of_provider);
        }
        part.block()
    })
}

/// The messages read so far.
struct Reader<'o> {
    options: &'o DecodeOptions,
    before: Vec<Message>,
    calls: Calls,
}

impl Reader<'_> {
    fn content(&mut self, raw: Raw<'_>, index: usize, path: Path<'_>) -> Result<()> {
        let mut fields = Fields::read(raw, path)?;
        let role = role(&mut fields, path)?;
        let path = Path::Field(&path, "parts");
        let parts = match fields.take("parts") {
            Some(raw) => raw.items().ok_or_else(|| path.mismatch("an array of parts", raw))?,
            None => Vec::new(),
        };
        let beside = self.before.last().is_some_and(|last| last.role == role);
        if beside {
            fields.flag(mark::BESIDE);
        }
        let blocks = if role == Role::Assistant {
            if !beside {
                self.calls = Calls::default();
            }
            blocks(parts, &mut self.calls, |number| format!("call_{index}_{number}").into())
        } else {
            let blocks = self.user(parts);
            if self.placed(&blocks) {
                fields.flag(mark::PLACED);
            }
            blocks
        };
        // Mark the origin: only models of this provider may get these calls and this reasoning
        // back.
        let is_made_here = role == Role::Assistant
            && blocks.iter().any(|block| block.is_reasoning() || is_call(block));
        let origin = is_made_here.then(|| Origin::new(CODEC, None));
        let parts = MessageParts { extra: fields.keep(CODEC), ..MessageParts::new(role, blocks) };
        self.before.push(MessageParts { origin, ..parts }.into());
        Ok(())
    }

    fn user(&mut self, parts: Vec<Raw<'_>>) -> Vec<ContentBlock> {
        let mut blocks = part::read_all(parts, |part| {
            if part.data == "functionResponse" {
                return Some(part::result(part, &mut self.calls)?.into());
            }
            // A user message holds no reasoning.
            part.block().filter(|block| !block.is_reasoning())
        });
        recognise(CODEC, &mut blocks, *self.options);
        blocks
    }

    /// Whether a user content has results after or beside other parts.
    fn placed(&self, blocks: &[ContentBlock]) -> bool {
        let mut turn = self.before.iter().rev().take_while(|message| message.role == Role::User);
        blocks.iter().any(is_result)
            && (!blocks.iter().all(is_result)
                || turn.next().is_some_and(|before| {
                    has_mark(&before.extra, mark::PLACED) || !before.content.iter().all(is_result)
                }))
    }
}

/// Removes the role from a content and reads it. Marks a role of the user that is not spelled
/// `user`: in this dialect an empty text means an unset field.
fn role(fields: &mut Fields<'_>, path: Path<'_>) -> Result<Role> {
    let Some(raw) = fields.take("role") else {
        fields.add_word(mark::ROLE, "absent");
        return Ok(Role::User);
    };
    match raw.get() {
        r#""model""# => return Ok(Role::Assistant),
        r#""user""# => {}
        r#""function""# | r#""""# | "null" => fields.add(mark::ROLE, raw.json()),
        _ => return Err(Path::Field(&path, "role").mismatch("user or model", raw)),
    }
    Ok(Role::User)
}

/// Reads one of the provider's own calls, or the result of one of `calls`, the earlier calls of the
/// same content. The data are kept whole. A result without a call becomes opaque.
fn of_server(mut part: Part<'_>, calls: &mut Calls) -> Option<ContentBlock> {
    let inner = part.inner()?;
    let given_id = inner.text("id").filter(|id| !id.is_empty());
    let value = Raw::json(part.value);
    part.rest.add_word(mark::AS, part.data);
    let extra = part.rest.keep(CODEC);
    let is_code = ["executableCode", "codeExecutionResult"].contains(&part.data);
    // The result of a tool has the id of its call. The result of code has none.
    let tool = if is_code { "code".into() } else { given_id.clone().unwrap_or_default() };
    if ["executableCode", "toolCall"].contains(&part.data) {
        let id = given_id.unwrap_or_else(|| format!("server_{}", calls.count() + 1).into());
        calls.add(id.clone(), tool, true);
        let kind = if is_code { Some("code_execution".into()) } else { inner.text("toolType") };
        let name = kind.unwrap_or_else(|| "tool".into());
        return Some(ServerToolUse { extra, ..ServerToolUse::new(id, name, value) }.into());
    }
    let (id, _) = calls.next(&Key::Named(tool))?;
    Some(ServerToolResult { extra, ..ServerToolResult::new(id, part.data, value) }.into())
}

/// Reads a response body: its first candidate.
pub(super) fn answer(mut fields: Fields<'_>) -> Result<Answer> {
    let refused = is_blocked(&fields);
    let path = Path::Field(&Path::Body, "candidates");
    let candidates = fields.take_any_items("candidates", Path::Body, "an array of candidates")?;
    let path = Path::Item(&path, 0);
    let first = candidates.iter().find(|raw| is_first(**raw)).or_else(|| candidates.first());
    let mut candidate = match first {
        Some(raw) => Fields::read(*raw, path)?,
        None if refused => Fields::default(),
        None => return Err(path.missing("a candidate")),
    };
    let usage = fields.get("usageMetadata").and_then(|raw| USAGE.read(raw));
    let id = fields.text_or_empty("responseId");
    let (content, mut rest) = content(&mut candidate, &id, path)?;
    rest.take("role");
    let stop_reason = stop_reason(candidate.text("finishReason"), refused, &content);
    // The other fields of the body are kept with the message and never sent back.
    let beside = fields.tree().with("candidate", candidate.tree());
    rest.add(mark::RESPONSE, beside.into_json());
    let origin = Some(Origin::new(CODEC, fields.text("modelVersion")));
    let parts = MessageParts::new(Role::Assistant, content);
    let message = MessageParts { origin, extra: rest.keep(CODEC), ..parts }.into();
    Ok(Answer::new(message, stop_reason, usage))
}

/// The id for a call that was read without one.
pub(super) fn made_up_id(response: &str, number: usize) -> Text {
    const MAX: usize = 30;
    let kept = response.chars().filter(|char| char.is_ascii_alphanumeric() || "-_".contains(*char));
    let kept: String = kept.take(MAX).collect();
    if kept.is_empty() { format!("call_{number}") } else { format!("call_{number}_{kept}") }.into()
}

/// Whether a candidate is the one to read: number 0, which may be omitted.
pub(super) fn is_first(candidate: Raw<'_>) -> bool {
    let index = Fields::of(candidate).and_then(|fields| fields.get("index"));
    index.is_none_or(|index| matches!(index.get(), "0" | "null"))
}

/// Whether the prompt was refused.
pub(super) fn is_blocked(fields: &Fields<'_>) -> bool {
    let feedback = fields.object("promptFeedback");
    let reason = feedback.and_then(|feedback| feedback.text("blockReason"));
    reason.is_some_and(|reason| reason != "BLOCK_REASON_UNSPECIFIED")
}

/// The fields of the usage. The provider counts reasoning apart from the answer, and the output of
/// its own tools apart from the prompt.
pub(super) const USAGE: Counts = Counts {
    input: &["promptTokenCount", "toolUsePromptTokenCount"],
    output: &["candidatesTokenCount", "thoughtsTokenCount"],
    cache_read: &["cachedContentTokenCount"],
    reasoning: "thoughtsTokenCount",
    ..Counts::NONE
};

/// Reads the content of a candidate, if there is one: its blocks and its other fields.
fn content<'a>(
    candidate: &mut Fields<'a>,
    id: &str,
    path: Path<'_>,
) -> Result<(Vec<ContentBlock>, Fields<'a>)> {
    let path = Path::Field(&path, "content");
    let mut content = match candidate.take_value("content") {
        Some(raw) => Fields::read(raw, path)?,
        None => Fields::default(),
    };
    let parts = content.take_any_items("parts", path, "an array of parts")?;
    let mut blocks = self::blocks(parts, &mut Calls::default(), |number| made_up_id(id, number));
    blocks.retain(says_something);
    Ok((blocks, content))
}

/// Whether a block may be in a request. Streams end with an empty text, which may not.
fn says_something(block: &ContentBlock) -> bool {
    if let ContentBlock::Thinking(thinking) = block {
        return !thinking.text.is_empty() || thinking.signature.is_some();
    }
    block.as_text().is_none_or(|text| !text.is_empty())
}

/// The reasons for which the provider ends an answer of which it disapproves.
#[rustfmt::skip]
const REFUSALS: [&str; 9] = [
    "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR",
    "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION",
];

/// The stop reason. The provider also sends `STOP` for answers with calls.
fn stop_reason(finish: Option<Text>, refused: bool, content: &[ContentBlock]) -> StopReason {
    match finish.as_deref() {
        None if refused => StopReason::Refusal,
        Some("STOP" | "FINISH_REASON_UNSPECIFIED") | None => messages::ended(CODEC, content),
        Some("MAX_TOKENS") => StopReason::MaxTokens,
        Some(reason) if REFUSALS.contains(&reason) => StopReason::Refusal,
        Some(other) => StopReason::Other(other.into()),
    }
}
