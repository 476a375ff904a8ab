//! The ids of calls: letters, digits, `_` and `-` only.

use std::collections::{HashMap, HashSet};

use crate::{
    message::{ContentBlock, Message, Text},
    wire::{contract::Change, notes::Notes},
};

/// The ids that are written in another form.
#[derive(Debug, Default)]
pub(super) struct Ids(HashMap<Text, Text>);

impl Ids {
    /// Finds a new id for every one that the provider refuses. The same id in a later turn gets
    /// the same new one, and no new one is the id of another call.
    pub(super) fn rewrite(messages: &[(usize, Message)], notes: &mut Notes) -> Self {
        let illegal = |id: &Text| !is_legal(id);
        let calls = || messages.iter().flat_map(|(at, message)| call_ids(*at, message));
        let mut rewritten = HashMap::new();
        if !calls().any(|(_, id)| illegal(id)) {
            return Self(rewritten);
        }
        let mut taken: HashSet<Text> = calls().map(|(_, id)| id.clone()).collect();
        let mut numbers = HashMap::new();
        for (at, id) in calls().filter(|(_, id)| illegal(id)) {
            if rewritten.contains_key(id) {
                continue;
            }
            let to = unused(id, &mut taken, &mut numbers);
            notes.turn_to(at);
            notes.note(Change::IdRewritten { from: id.clone(), to: to.clone() });
            rewritten.insert(id.clone(), to);
        }
        Self(rewritten)
    }

    /// The id in the form in which it is written.
    pub(super) fn written(&self, id: &Text) -> Text {
        self.0.get(id).unwrap_or(id).clone()
    }
}

fn call_ids(at: usize, message: &Message) -> impl Iterator<Item = (usize, &Text)> {
    message.content.iter().filter_map(move |block| match block {
        ContentBlock::ToolUse(call) => Some((at, &call.id)),
        ContentBlock::ServerToolUse(call) => Some((at, &call.id)),
        ContentBlock::Text(_)
        | ContentBlock::Image(_)
        | ContentBlock::Document(_)
        | ContentBlock::Thinking(_)
        | ContentBlock::RedactedThinking(_)
        | ContentBlock::ToolResult(_)
        | ContentBlock::ServerToolResult(_)
        | ContentBlock::SystemReminder(_)
        | ContentBlock::ContextUpdate(_)
        | ContentBlock::Checkpoint(_)
        | ContentBlock::Summary(_)
        | ContentBlock::Opaque(_) => None,
    })
}

fn is_legal(id: &str) -> bool {
    !id.is_empty() && id.chars().all(is_legal_char)
}

fn is_legal_char(char: char) -> bool {
    char.is_ascii_alphanumeric() || matches!(char, '_' | '-')
}

/// Returns the id with `_` for what is refused, and a number if that is taken.
fn unused(id: &str, taken: &mut HashSet<Text>, numbers: &mut HashMap<String, usize>) -> Text {
    let mut base: String = id.chars().map(|c| if is_legal_char(c) { c } else { '_' }).collect();
    if base.is_empty() {
        base.push_str("call");
    }
    let mut candidate = Text::from(base.as_str());
    // The number is remembered for each base, so that many ids with one base stay linear.
    let number = numbers.entry(base.clone()).or_insert(1);
    while !taken.insert(candidate.clone()) {
        *number += 1;
        candidate = format!("{base}_{number}").into();
    }
    candidate
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        message::{Json, Role, ToolUse},
        wire::notes,
    };

    #[test]
    fn a_new_id_is_nobody_elses() {
        let call = |id: &str| ToolUse::new(id, "read", Json::parse("{}").unwrap()).into();
        let ids = ["a.b", "a_b", "a:b", ""];
        let calls = Message::new(Role::Assistant, ids.map(call).into());
        let (messages, mut notes) = notes::prepare(&[calls], "c");
        let rewritten = Ids::rewrite(&messages, &mut notes);
        let written = ids.map(|id| rewritten.written(&id.into()).to_string());
        assert_eq!(written, ["a_b_2", "a_b", "a_b_3", "call"]);
    }
}
