//! Reading request bodies and answers: roles and messages.

use std::borrow::Cow;

use super::{calls, marks::*, params};
use crate::kit::*;

/// Reads a request body.
pub(super) fn request(mut fields: Fields<'_>, options: &DecodeOptions) -> Result<Request> {
    let messages = fields.take_items("messages", Path::Body, "an array of messages")?;
    let path = Path::Field(&Path::Body, "messages");
    let mut reader = Reader { options, system: Vec::new(), thread: Vec::new(), continuation: None };
    for (index, raw) in messages.iter().enumerate() {
        reader.message(*raw, messages.get(index + 1).copied(), Path::Item(&path, index))?;
    }
    Ok(params::read(fields, reader.system, reader.thread))
}

/// Reads an assistant message. The deprecated `function_call` becomes a call with this id, or an
/// opaque block if there is no id.
pub(super) fn assistant(
    mut fields: Fields<'_>,
    function_call_id: Option<Text>,
    path: Path<'_>,
) -> Result<Message> {
    let said = take_content(&mut fields, By::Assistant, path)?;
    let mut blocks = reasoning(&mut fields);
    if blocks.is_empty() {
        blocks = said;
    } else {
        blocks.extend(said);
    }
    let refusal =
        fields.take_as("refusal", |raw| raw.text().filter(|text: &Text| !text.is_blank()));
    if let Some(text) = refusal {
        let extra = Extra::default().with(CODEC, mark::AS, Json::text("refusal"));
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
    Ok(message(Role::Assistant, blocks, fields))
}

/// The messages read so far.
struct Reader<'o> {
    options: &'o DecodeOptions,
    system: Vec<Message>,
    thread: Vec<Message>,
    /// How the next message may continue the previous one, if it may.
    continuation: Option<Continuation>,
}

/// How the next message may continue the previous one.
enum Continuation {
    /// The previous message is a tool message: another one joins it.
    MoreResults,
    /// The previous message has the deprecated `function_call`, whose id is this.
    Function(Text),
}

impl Reader<'_> {
    fn message(&mut self, raw: Raw<'_>, next: Option<Raw<'_>>, path: Path<'_>) -> Result<()> {
        let mut fields = Fields::read(raw, path)?;
        let continuation = self.continuation.take();
        let role = role(&mut fields, path)?;
        match role.as_ref() {
            "system" | "developer" => {
                if role == "developer" {
                    fields.add_word(mark::ROLE, "developer");
                }
                let blocks = take_content(&mut fields, By::System, path)?;
                let is_leading = self.thread.is_empty();
                let before = if is_leading { &mut self.system } else { &mut self.thread };
                before.push(message(Role::System, blocks, fields));
            }
            "user" => {
                let mut blocks = take_content(&mut fields, By::User, path)?;
                recognise(CODEC, &mut blocks, *self.options);
                let author = fields.take_as("name", |raw| raw.text()?.parse().ok());
                self.thread.push(message(Role::User, blocks, fields).by_author(author));
            }
            "assistant" => {
                let id = self.function_call_id(&fields, next);
                let message = assistant(fields, id.clone(), path)?;
                let is_paired = message.tool_uses().any(calls::is_deprecated);
                self.continuation = id.filter(|_| is_paired).map(Continuation::Function);
                self.thread.push(message);
            }
            "tool" => self.tool(fields, continuation, path)?,
            "function" => {
                fields.add_word(mark::AS, "function");
                // The deprecated result follows its call. Any other one becomes opaque.
                let block = match continuation {
                    Some(Continuation::Function(id)) => result(id, fields, path)?,
                    Some(Continuation::MoreResults) | None => opaque_field("message", raw),
                };
                self.thread.push(Message::new(Role::User, vec![block]));
            }
            _ => {
                let found = format!("{:?}", role.chars().take(40).collect::<String>());
                let path = Path::Field(&path, "role").to_string();
                return Err(WireError::Shape { path, expected: ROLES, found });
            }
        }
        Ok(())
    }

    /// The id for the deprecated call of an assistant message. Such a call has no id, so it can
    /// only be paired with the directly following message; `None` if that is not a result. A `tool`
    /// message at this position counts as the result, because it can answer no other call.
    fn function_call_id(&self, fields: &Fields<'_>, next: Option<Raw<'_>>) -> Option<Text> {
        let call = fields.get("function_call");
        let call = call.filter(|raw| raw.is_object() && !calls::is_empty_call(*raw));
        let is_paired = call.is_some() && next.is_none_or(is_result);
        is_paired.then(|| format!("function_call_{}", self.thread.len()).into())
    }

    /// Consecutive tool messages become one user message of results.
    fn tool(
        &mut self,
        mut fields: Fields<'_>,
        continuation: Option<Continuation>,
        path: Path<'_>,
    ) -> Result<()> {
        let id = match (&continuation, fields.take_text("tool_call_id")) {
            (_, Some(id)) => id,
            (Some(Continuation::Function(id)), None) => id.clone(),
            (Some(Continuation::MoreResults) | None, None) => {
                fields.add_word(mark::ID, "absent");
                Text::default()
            }
        };
        let block = result(id, fields, path)?;
        self.continuation = Some(Continuation::MoreResults);
        match (continuation, self.thread.last_mut()) {
            (Some(Continuation::MoreResults), Some(last)) => last.make_mut().content.push(block),
            _ => self.thread.push(Message::new(Role::User, vec![block])),
        }
        Ok(())
    }
}

/// Returns a message with the remaining fields as its `extra`.
fn message(role: Role, blocks: Vec<ContentBlock>, fields: Fields<'_>) -> Message {
    MessageParts { extra: fields.keep(CODEC), ..MessageParts::new(role, blocks) }.into()
}

const ROLES: &str = "system, developer, user, assistant, tool or function";

fn role<'a>(fields: &mut Fields<'a>, path: Path<'_>) -> Result<Cow<'a, str>> {
    let path = Path::Field(&path, "role");
    let raw = fields.take("role").ok_or_else(|| path.missing(ROLES))?;
    raw.word().ok_or_else(|| path.mismatch(ROLES, raw))
}

fn is_result(raw: Raw<'_>) -> bool {
    let fields = Fields::of(raw);
    let role = fields.and_then(|fields| fields.word("role"));
    role.is_some_and(|role| ["function", "tool"].contains(&&*role))
}

fn result(id: Text, mut fields: Fields<'_>, path: Path<'_>) -> Result<ContentBlock> {
    let blocks = take_content(&mut fields, By::Tool, path)?;
    Ok(ToolResult { extra: fields.keep(CODEC), ..ToolResult::new(id, blocks) }.into())
}

/// Removes the reasoning that compatible servers put beside the content. It has no signature; its
/// mark is the name of its field.
fn reasoning(fields: &mut Fields<'_>) -> Vec<ContentBlock> {
    let thoughts = REASONING.into_iter().filter_map(|key| {
        let text = fields.take_as(key, |raw| raw.text().filter(|text| !text.is_empty()))?;
        let extra = Extra::default().with(CODEC, mark::AS, Json::text(key));
        Some(Thinking { extra, ..Thinking::new(text, None) }.into())
    });
    thoughts.collect()
}

const CONTENTS: Contents = Contents {
    codec: CODEC,
    text: "text",
    part,
    opaque_string: |raw| Opaque::new(CODEC, raw.json()).into(),
    opaque_part,
};

/// Removes the content from a message and reads it: a string, an array of parts, or nothing where
/// that is allowed. Marks its form on the message.
fn take_content(message: &mut Fields<'_>, by: By, path: Path<'_>) -> Result<Vec<ContentBlock>> {
    const EXPECTED: &str = "a string or an array";
    let path = Path::Field(&path, "content");
    let may_lack = matches!(by, By::Assistant | By::Tool);
    let (blocks, form) = match message.take("content") {
        None if may_lack => (Vec::new(), Some("absent")),
        None => return Err(path.missing(EXPECTED)),
        // An assistant message with calls only usually has `null`.
        Some(raw) if raw.get() == "null" && may_lack => {
            (Vec::new(), (by == By::Tool).then_some("null"))
        }
        Some(raw) if raw.is_text() => CONTENTS.string(raw, by),
        Some(raw) => {
            let parts = raw.items().ok_or_else(|| path.mismatch(EXPECTED, raw))?;
            CONTENTS.array(parts, by)
        }
    };
    if let Some(form) = form {
        message.add_word(mark::CONTENT, form);
    }
    Ok(blocks)
}

/// Reads a part that is no text; `None` if it is unknown.
fn part(kind: &str, mut fields: Fields<'_>, speaker: By) -> Option<ContentBlock> {
    let takes_media = matches!(speaker, By::User | By::Tool);
    match kind {
        "refusal" if speaker == By::Assistant => {
            let text = fields.take_text("refusal").filter(|text| !text.is_blank())?;
            fields.add_word(mark::AS, "refusal_part");
            Some(TextBlock { text, extra: fields.keep(CODEC) }.into())
        }
        "thinking" if speaker == By::Assistant => {
            let text = fields.take_as("thinking", one_text)?;
            fields.add_word(mark::AS, THINKING_PART);
            Some(Thinking { extra: fields.keep(CODEC), ..Thinking::new(text, None) }.into())
        }
        "image_url" if takes_media => image(fields),
        "file" if takes_media => document(fields),
        _ => None,
    }
}

/// Reads Mistral's reasoning, a list of texts, if it has one text without other fields.
fn one_text(list: Raw<'_>) -> Option<Text> {
    let items = list.items().filter(|items| items.len() == 1)?;
    let mut fields = items.into_iter().next().and_then(Fields::of)?;
    let is_plain = fields.take_word("type").is_some_and(|kind| kind == "text");
    let text = fields.take_text("text").filter(|text| !text.is_empty())?;
    (is_plain && fields.left() == 0).then_some(text)
}

fn image(mut fields: Fields<'_>) -> Option<ContentBlock> {
    let mut image = Fields::of(fields.take("image_url")?)?;
    let url = image.take_text("url")?;
    let source = openai::data_uri(&url).unwrap_or(MediaSource::Url { url });
    fields.add_inner("image_url", &image);
    pictures::mark(&mut fields, &source);
    Some(Image { source, extra: fields.keep(CODEC) }.into())
}

fn document(mut fields: Fields<'_>) -> Option<ContentBlock> {
    let mut file = Fields::of(fields.take("file")?)?;
    let (source, title) = openai::take_file(&mut file, None)?;
    fields.add_inner("file", &file);
    Some(Document { source, title, context: None, extra: fields.keep(CODEC) }.into())
}

/// Reads a `chat.completion` body: its first choice.
pub(super) fn answer(mut fields: Fields<'_>) -> Result<Answer> {
    let choices = Path::Field(&Path::Body, "choices");
    let path = Path::Item(&choices, 0);
    let all = fields.take_items("choices", Path::Body, "an array of choices")?;
    let first = all.first().ok_or_else(|| path.missing("a choice"))?;
    let mut choice = Fields::read(*first, path)?;
    let reason = choice.text("finish_reason").filter(|reason| !reason.is_empty());
    check_finish(reason.as_deref(), path)?;
    let path = Path::Field(&path, "message");
    let raw = choice.take("message").ok_or_else(|| path.missing("a message"))?;
    let mut message = Fields::read(raw, path)?;
    message.take("role");

    let id = format!("function_call_{}", fields.text_or_empty("id"));
    let usage = fields.get("usage").and_then(|raw| USAGE.read(raw));
    let model = fields.text("model");
    // The other fields of the body are kept with the message and never sent back.
    let beside = fields.tree().with("choice", choice.tree());
    message.add(mark::RESPONSE, beside.into_json());
    let mut message = assistant(message, Some(id.into()), path)?;
    message.make_mut().origin = Some(Origin::new(CODEC, model));
    let stop_reason = stop_reason(reason, &message.content);
    Ok(Answer::new(message, stop_reason, usage))
}

/// Refuses an answer that its server reports as failed: what it holds is a part of an answer.
fn check_finish(reason: Option<&str>, path: Path<'_>) -> Result<()> {
    // DeepSeek says `insufficient_system_resource`, SGLang `abort`.
    const FAILED: [&str; 6] =
        ["error", "network_error", "other", "unknown", "insufficient_system_resource", "abort"];
    match reason.filter(|reason| FAILED.contains(reason)) {
        Some(reason) => Err(WireError::Shape {
            path: Path::Field(&path, "finish_reason").to_string(),
            expected: "the finish reason of a whole answer",
            found: format!("{reason:?}"),
        }),
        None => Ok(()),
    }
}

/// The stop reason. Some servers send `stop` for answers with calls, or for refusals.
fn stop_reason(finish: Option<Text>, content: &[ContentBlock]) -> StopReason {
    match finish.as_deref() {
        Some("length") => StopReason::MaxTokens,
        // GLM says `sensitive`.
        Some("content_filter" | "sensitive") => StopReason::Refusal,
        Some("tool_calls" | "function_call") => StopReason::ToolUse,
        Some("stop") | None => messages::ended(CODEC, content),
        Some(other) => StopReason::Other(other.into()),
    }
}

/// The fields of the usage.
pub(super) const USAGE: Counts = Counts {
    input: &["prompt_tokens"],
    output: &["completion_tokens"],
    // DeepSeek and Kimi have fields of their own.
    cache_read: &[
        "prompt_tokens_details.cached_tokens",
        "prompt_cache_hit_tokens",
        "cached_tokens",
    ],
    cache_write: "prompt_tokens_details.cache_write_tokens",
    reasoning: "completion_tokens_details.reasoning_tokens",
};
