//! The ids of calls and the names of tools: letters, digits, `_` and `-` only.

use crate::{
    message::{Message, Text},
    wire::{
        contract::Change,
        names::{self, Renamed, Rules, call, is_word},
        notes::Notes,
    },
};

const IDS: Rules = Rules {
    most: usize::MAX,
    is_legal: is_word,
    nameless: "call",
    spaced: false,
    begins_with_letter: false,
};

/// The names of tools: twice as long as elsewhere.
pub(super) const TOOLS: Rules = Rules { most: 128, ..names::TOOLS };

/// The ids that are written in another form.
#[derive(Debug, Default)]
pub(super) struct Ids(Renamed);

impl Ids {
    /// Finds a new id for every one that the provider refuses. The same id in a later turn gets
    /// the same new one, and no new one is the id of another call.
    pub(super) fn rewrite(messages: &[(usize, Message)], notes: &mut Notes) -> Self {
        let blocks = messages.iter().flat_map(|(at, message)| {
            message.content.iter().filter_map(move |block| call(*at, block))
        });
        let ids = blocks.map(|(at, id, _)| (at, id));
        Self(Renamed::new(ids, &IDS, notes, |from, to| Change::IdRewritten { from, to }))
    }

    /// The id in the form in which it is written.
    pub(super) fn written(&self, id: &Text) -> Text {
        self.0.written(id)
    }
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
