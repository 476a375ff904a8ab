//! What of a thread this dialect takes, and how the messages of a turn stand.

use super::{
    calls,
    marks::{CODEC, REASONING, marked, message_field, refusal_form},
};
use crate::{
    contract::Change,
    extras::without,
    normal::{self, Thread, fit, note_lost_fields, take_media},
    notes::{Fitted, Notes},
    openai::{fit_call, say_failure},
    raw::Raw,
    rules::{FittedSource, Medium, Rules},
};
use threadfold_core::message::{
    ContentBlock, MediaSource, Message, Opaque, Role, Text, ToolResult, ToolUse,
};

/// The rules for the blocks of a thread.
#[derive(Debug)]
pub(super) struct Chat;

impl Rules for Chat {
    fn source(&self, source: &MediaSource, medium: Medium, reader: Option<&str>) -> FittedSource {
        const NONE: FittedSource = Err("its source has no form in this dialect");
        let is_own = reader.is_none_or(|reader| reader == CODEC);
        match (source, medium) {
            (MediaSource::Base64 { .. }, _) | (MediaSource::Url { .. }, Medium::Image) => Ok(None),
            (MediaSource::File { .. }, Medium::Document) if is_own => Ok(None),
            (MediaSource::Url { .. } | MediaSource::File { .. }, _) => NONE,
            (MediaSource::Text { .. } | MediaSource::Opaque { .. }, _) => NONE,
        }
    }

    /// Documents are texts or files.
    fn text_of<'s>(&self, _: Role, source: &'s MediaSource) -> Option<&'s Text> {
        match source {
            MediaSource::Text { text, .. } | MediaSource::Url { url: text } => Some(text),
            MediaSource::Base64 { .. } | MediaSource::File { .. } | MediaSource::Opaque { .. } => {
                None
            }
        }
    }

    /// Reasoning goes back to the server that sent it, in the field that it came in.
    fn reasoning_fault(&self, _: &Message, block: &ContentBlock) -> Option<&'static str> {
        let ContentBlock::Thinking(thinking) = block else {
            return Some("it is encrypted for another provider");
        };
        let key = marked(&thinking.extra, "~as").filter(|_| thinking.signature.is_none());
        let is_own = key.is_some_and(|key| REASONING.contains(&key.as_str()));
        (!is_own).then_some("it comes from another provider")
    }

    fn call(&self, call: &ToolUse, notes: &mut Notes) -> Option<ToolUse> {
        if calls::kept_whole(call).is_some() { None } else { fit_call(call, notes) }
    }

    fn result(&self, result: &mut ToolResult, _: &mut Notes) -> bool {
        say_failure(CODEC, result)
    }

    fn opaque_fault(&self, role: Option<Role>, opaque: &Opaque) -> Option<&'static str> {
        let (name, _) = message_field(opaque)?;
        let is_in_place = match role {
            Some(Role::Assistant) => name != "message",
            Some(Role::User) => name == "message",
            Some(Role::System) | None => false,
        };
        (!is_in_place).then_some("it has no place in this message")
    }
}

/// Takes the fields away that say that there is no call, which the provider refuses.
pub(super) fn drop_empty_calls(thread: &mut Thread, notes: &mut Notes) {
    for (at, message) in thread {
        for key in ["tool_calls", "function_call"] {
            let Some(field) = message.extra.get(CODEC, key) else { continue };
            let is_empty = match key {
                "tool_calls" => field.as_str() == "[]",
                _ => calls::is_of_nothing(Raw::of(field)),
            };
            if is_empty && message.role == Role::Assistant {
                notes.turn_to(*at);
                notes.note(Change::FieldsDropped { codec: CODEC.into(), fields: vec![key.into()] });
                let parts = message.make_mut();
                parts.extra = without(CODEC, &parts.extra, key);
            }
        }
    }
}

/// Puts the messages of each turn into the order that the provider demands: results come directly
/// after the one message that calls.
pub(super) fn arrange(thread: &Thread, notes: &mut Notes) -> Thread {
    let mut arranged = Vec::with_capacity(thread.len());
    for run in thread.chunk_by(|(_, before), (_, after)| before.role == after.role) {
        match run.first().map_or(Role::System, |(_, message)| message.role) {
            Role::System => arranged.extend(run.iter().cloned()),
            Role::User => arrange_user(run, &mut arranged, notes),
            Role::Assistant => arrange_answers(run, &mut arranged, notes),
        }
    }
    arranged
}

/// Results come first, in a message of their own, then the pictures and files in them, which only
/// users may send, then the rest.
fn arrange_user(run: &[(usize, Message)], arranged: &mut Thread, notes: &mut Notes) {
    let Some((first, _)) = run.iter().find(|(_, it)| it.tool_results().next().is_some()) else {
        arranged.extend(run.iter().cloned());
        return;
    };
    let (mut results, mut media, mut rest) = (Vec::new(), Vec::new(), Thread::new());
    for (at, message) in run {
        notes.turn_to(*at);
        let mut others = Vec::new();
        for block in &message.content {
            let ContentBlock::ToolResult(result) = block else {
                others.push(block.clone());
                continue;
            };
            if !(others.is_empty() && rest.is_empty()) {
                notes.moved("tool_result", "results come right behind their calls");
            }
            let source = format!("call {}", result.tool_use_id);
            let taken = take_media(result, &source, "results are text only", notes);
            let (result, moved) = taken.unwrap_or_else(|| (result.clone(), Vec::new()));
            results.push(result.into());
            media.extend(moved);
        }
        if !others.is_empty() {
            rest.push((*at, message.with_content(others)));
        } else {
            note_lost_fields(message, notes);
        }
    }
    arranged.push((*first, Message::new(Role::User, results)));
    if !media.is_empty() {
        arranged.push((*first, Message::new(Role::User, media)));
    }
    arranged.extend(rest);
}

/// Merges from the first message that calls to the end of the run. Messages of text only may stand
/// side by side.
fn arrange_answers(run: &[(usize, Message)], arranged: &mut Thread, notes: &mut Notes) {
    let mut calls = run.iter().flat_map(|(_, message)| message.tool_uses());
    let first = calls.next();
    if first.is_some_and(calls::is_deprecated) && calls.next().is_none() {
        arranged.extend(run.iter().map(|(at, it)| (*at, lone_fields(*at, it, notes))));
        return;
    }
    for (at, message) in run {
        notes.turn_to(*at);
        let after_call =
            message.content.iter().skip_while(|it| !matches!(it, ContentBlock::ToolUse(_)));
        for block in after_call.filter(|block| is_content(block)) {
            notes.moved(block.kind(), "content stands before calls");
        }
    }
    let calling = run.iter().position(|(_, it)| it.tool_uses().next().is_some());
    let (apart, merged) = run.split_at(calling.unwrap_or(run.len()));
    let merged = normal::merge(merged, notes);
    let all = apart.iter().cloned().chain(merged);
    arranged.extend(all.map(|(at, it)| (at, lone_fields(at, &it, notes))));
}

/// Leaves out fields of a message that stand in it twice.
fn lone_fields(at: usize, message: &Message, notes: &mut Notes) -> Message {
    notes.turn_to(at);
    let mut taken: Vec<Text> = Vec::new();
    let has_deprecated = message.tool_uses().any(calls::is_deprecated);
    if has_deprecated && message.tool_uses().count() == 1 {
        taken.push("function_call".into());
    }
    let rule = |block: &ContentBlock| -> Fitted {
        let ContentBlock::Opaque(opaque) = block else { return Ok(None) };
        let Some((name, _)) = message_field(opaque) else { return Ok(None) };
        if taken.contains(&name) {
            return Err(notes.leave_out("opaque", "the message has one already"));
        }
        taken.push(name);
        Ok(None)
    };
    let changed = fit(&message.content, rule);
    changed.map_or_else(|| message.clone(), |content| message.with_content(content))
}

/// Whether a block stands in the content of an answer, not in a field of its own.
fn is_content(block: &ContentBlock) -> bool {
    match block {
        ContentBlock::Text(text) => refusal_form(text).is_none(),
        ContentBlock::Opaque(opaque) => message_field(opaque).is_none(),
        ContentBlock::Thinking(_)
        | ContentBlock::RedactedThinking(_)
        | ContentBlock::ToolUse(_)
        | ContentBlock::ToolResult(_)
        | ContentBlock::ServerToolUse(_)
        | ContentBlock::ServerToolResult(_) => false,
        ContentBlock::Image(_)
        | ContentBlock::Document(_)
        | ContentBlock::SystemReminder(_)
        | ContentBlock::ContextUpdate(_)
        | ContentBlock::Checkpoint(_)
        | ContentBlock::Summary(_) => true,
    }
}
