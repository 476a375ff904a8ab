//! The rules of this dialect for blocks and for the order of messages in a turn.

use std::collections::HashSet;

use super::{calls, marks::*};
use crate::kit::*;
use threadfold_core::legality::{NO_RESULT, Repair};

/// The rules for the blocks of a thread.
#[derive(Debug)]
pub(super) struct Chat {
    /// Whether the model refuses reasoning beside the content.
    pub(super) refuses_reasoning_fields: bool,
    /// Whether the server refuses or drops the names of users.
    pub(super) refuses_names: bool,
}

impl Rules for Chat {
    fn source(&self, source: &MediaSource, medium: Medium, reader: Option<&str>) -> FittedSource {
        let is_own = reader.is_none_or(|reader| reader == CODEC);
        openai::fit_source(source, is_own && medium == Medium::Document)
    }

    fn takes_author(&self) -> bool {
        !self.refuses_names
    }

    /// Documents with text or an address are written as text, because this dialect has only files.
    fn writes_as_text(&self, _: Role, source: &MediaSource) -> bool {
        matches!(source, MediaSource::Text { .. } | MediaSource::Url { .. })
    }

    /// Reasoning is sent back to the server that made it, in the field in which it was read.
    fn reasoning_fault(&self, _: &Message, block: &ContentBlock) -> Option<&'static str> {
        let ContentBlock::Thinking(thinking) = block else {
            return Some("it is encrypted for another provider");
        };
        let key = marked(&thinking.extra, mark::AS).filter(|_| thinking.signature.is_none());
        match key {
            Some(key) if key == THINKING_PART => None,
            Some(key) if REASONING.contains(&key.as_str()) => {
                self.refuses_reasoning_fields.then_some("the model refuses the field")
            }
            Some(_) | None => Some("it comes from another provider"),
        }
    }

    fn call(&self, call: &mut ToolUse, notes: &mut Notes) {
        if let Some(function) = calls::as_function(call) {
            notes.note(Change::CallRewritten { id: call.id.clone() });
            *call = function;
        }
        if calls::kept_whole(call).is_none() {
            openai::fit_call(call, notes);
        }
    }

    fn result(&self, result: &mut ToolResult, _: &mut Notes) {
        write_failure(CODEC, result);
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

/// Removes opaque `function_call` and `tool_calls` fields without a call, because the provider
/// refuses them.
pub(super) fn drop_empty_calls(thread: &mut Thread, notes: &mut Notes) {
    for (at, message) in thread {
        for key in ["tool_calls", "function_call"] {
            let Some(field) = message.extra.get(CODEC, key) else { continue };
            let is_empty = match key {
                "tool_calls" => field.as_str() == "[]",
                _ => calls::is_empty_call(Raw::of(field)),
            };
            if is_empty && message.role == Role::Assistant {
                notes.turn_to(*at).drop_fields([key]);
                set_field(&mut message.make_mut().extra, CODEC, key, None);
            }
        }
    }
}

/// Removes the answers that have only reasoning: providers refuse an answer without content and
/// calls.
pub(super) fn drop_lone_reasoning(thread: &mut Thread, notes: &mut Notes) {
    thread.retain_mut(|(at, message)| {
        let is_lone = message.role == Role::Assistant
            && message.content.iter().all(|block| matches!(block, blocks!(reasoning)));
        !is_lone || notes.turn_to(*at).drop_reasoning("the answer has nothing else")
    });
}

/// Answers an opaque deprecated call at the end. It was read as a field because other messages
/// followed it. If those are left out, the provider treats it as an open call.
pub(super) fn answer_last_call(thread: &mut Thread, end: usize, notes: &mut Notes) {
    let Some((_, last)) = thread.last_mut() else { return };
    if last.role != Role::Assistant || last.tool_uses().next().is_some() {
        return;
    }
    let id: Text = "function_call_open".into();
    let call = last.content.iter().enumerate().find_map(|(at, block)| {
        let ContentBlock::Opaque(opaque) = block else { return None };
        let (_, value) = message_field(opaque).filter(|(name, _)| *name == *"function_call")?;
        let raw = Raw::of(&value);
        let call = calls::read_deprecated(raw, id.clone()).filter(|_| !calls::is_empty_call(raw));
        Some((at, call?))
    });
    let Some((at, mut call)) = call else { return };
    if !names::TOOLS.accept(&call.name) {
        let to = Text::from(names::TOOLS.mend(&call.name));
        let from = std::mem::replace(&mut call.name, to.clone());
        notes.note(Change::NameRewritten { from, to });
    }
    if let Some(block) = last.make_mut().content.get_mut(at) {
        *block = call.into();
    }
    let mut result = ToolResult::error(id.clone(), NO_RESULT);
    write_failure(CODEC, &mut result);
    notes.note(Change::Repaired { repair: Repair::ResultAdded { message: end, id } });
    thread.push((end, Message::new(Role::User, vec![result.into()])));
}

/// Orders the messages of each turn as the provider demands: results directly follow the message
/// that has all of their calls.
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

/// Puts the results first, in a message of their own. Then follow their images and files, because
/// only a user message may hold these, and then the other blocks.
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
            let (mut result, source) = (result.clone(), format!("call {}", result.tool_use_id));
            media.extend(take_media(&mut result, &source, "results are text only", notes));
            results.push(result.into());
        }
        if !others.is_empty() {
            rest.push((*at, message.with_content(others)));
        } else {
            // Each result becomes a message, so no message remains that could hold these fields.
            notes.report_lost(&message.extra);
        }
    }
    arranged.push((*first, Message::new(Role::User, results)));
    if !media.is_empty() {
        arranged.push((*first, Message::new(Role::User, media)));
    }
    arranged.extend(rest);
}

/// Merges the messages from the first one with a call to the end of the run. Messages of text only
/// may be adjacent.
fn arrange_answers(run: &[(usize, Message)], arranged: &mut Thread, notes: &mut Notes) {
    let mut calls = run.iter().flat_map(|(_, message)| message.tool_uses());
    let first = calls.next();
    if first.is_some_and(calls::is_deprecated) && calls.next().is_none() {
        arranged.extend(run.iter().map(|(at, it)| (*at, lone_fields(*at, it.clone(), notes))));
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
    let merged = merge(merged, notes);
    let all = apart.iter().cloned().chain(merged);
    arranged.extend(all.map(|(at, it)| (at, lone_fields(at, it, notes))));
}

/// Leaves out opaque fields of a message that an earlier block sets already.
fn lone_fields(at: usize, mut message: Message, notes: &mut Notes) -> Message {
    notes.turn_to(at);
    let mut taken: HashSet<Text> = HashSet::new();
    let has_deprecated = message.tool_uses().any(calls::is_deprecated);
    if has_deprecated && message.tool_uses().count() == 1 {
        taken.insert("function_call".into());
    }
    fit_blocks(&mut message, |block| {
        let ContentBlock::Opaque(opaque) = block else { return true };
        let is_taken = message_field(opaque).is_some_and(|(name, _)| !taken.insert(name));
        !is_taken || notes.drop_block("opaque", "the message has one already")
    });
    message
}

/// Whether a block is written into the content of an answer, not into a field of its own.
fn is_content(block: &ContentBlock) -> bool {
    match block {
        ContentBlock::Text(text) if marked(&text.extra, mark::AS).is_some() => false,
        ContentBlock::Opaque(opaque) => message_field(opaque).is_none(),
        blocks!(reasoning) | blocks!(call) => false,
        blocks!(text) | blocks!(media) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notes;
    use threadfold_core::message::Json;

    #[test]
    fn of_many_fields_each_stands_once() {
        const COUNT: usize = 20_000;
        let field = |number: usize| {
            let value = format!(r#"{{"~field":"field_{}","value":{number}}}"#, number % COUNT);
            Opaque::new(CODEC, Json::parse(&value).unwrap()).into()
        };
        let content: Vec<ContentBlock> = (0..COUNT + 1).map(field).collect();
        let (_, mut notes) = notes::prepare(&[], CODEC);
        let answer = Message::new(Role::Assistant, content.clone());
        let arranged = arrange(&vec![(0, answer)], &mut notes);
        assert_eq!(arranged[0].1.content, content[..COUNT]);
        let reasons: Vec<String> = notes.finish().iter().map(ToString::to_string).collect();
        assert_eq!(reasons, ["message 0: opaque left out: the message has one already"]);
    }
}
