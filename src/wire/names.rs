//! Names and ids that a provider refuses, and what becomes of them.

use std::collections::{HashMap, HashSet};

use super::{contract::Change, notes::Notes};
use crate::message::{ContentBlock, Text};

/// The rules of one kind of name.
pub(super) struct Rules {
    /// How many bytes a name may have.
    pub(super) most: usize,
    pub(super) is_legal: fn(char) -> bool,
    /// What stands for a name of which nothing is left.
    pub(super) nameless: &'static str,
    /// Whether white space may stand, but not twice in a row nor at an end.
    pub(super) spaced: bool,
}

/// Whether a character may stand in every name.
pub(super) fn is_word(char: char) -> bool {
    char.is_ascii_alphanumeric() || matches!(char, '_' | '-')
}

impl Rules {
    pub(super) fn accept(&self, name: &str) -> bool {
        (1..=self.most).contains(&name.len())
            && name.chars().all(self.is_legal)
            && !(self.spaced && (name.contains("  ") || name.trim() != name))
    }

    /// The name with a stand-in for what is refused, short enough for a number behind it.
    pub(super) fn mend(&self, name: &str) -> String {
        const NUMBER: usize = 8;
        let stand_in = if self.spaced { '-' } else { '_' };
        let mend = |char: char| match char {
            char if (self.is_legal)(char) => char,
            char if self.spaced && char.is_whitespace() => ' ',
            _ => stand_in,
        };
        let mut mended = String::new();
        for char in name.chars().map(mend) {
            if !(self.spaced && char == ' ' && (mended.is_empty() || mended.ends_with(' '))) {
                mended.push(char);
            }
            if mended.len() >= self.most - NUMBER {
                break;
            }
        }
        mended.truncate(mended.trim_end().len());
        if mended.is_empty() {
            mended.push_str(self.nameless);
        }
        mended
    }
}

/// Names of one kind, and what became of those that are refused.
#[derive(Debug, Default)]
pub(super) struct Renamed(HashMap<Text, Text>);

impl Renamed {
    /// Finds a new name for every one that the rules refuse. The same name gets the same new one
    /// everywhere, and no new one is another's. Each comes with the message that it stands in.
    pub(super) fn new<'m>(
        names: impl Iterator<Item = (Option<usize>, &'m Text)> + Clone,
        rules: &Rules,
        notes: &mut Notes,
        note: fn(Text, Text) -> Change,
    ) -> Self {
        let mut renamed = HashMap::new();
        let refused = names.clone().filter(|(_, name)| !rules.accept(name));
        if refused.clone().next().is_none() {
            return Self(renamed);
        }
        let mut taken: HashSet<Text> = names.map(|(_, name)| name.clone()).collect();
        // The number is remembered for each base, so that many names with one base stay linear.
        let mut numbers: HashMap<String, usize> = HashMap::new();
        for (at, name) in refused {
            if renamed.contains_key(name) {
                continue;
            }
            let base = rules.mend(name);
            let mut to = Text::from(base.as_str());
            let number = numbers.entry(base.clone()).or_insert(1);
            let mark = if rules.spaced { '-' } else { '_' };
            while !taken.insert(to.clone()) {
                *number += 1;
                to = format!("{base}{mark}{number}").into();
            }
            notes.turn_to(at);
            notes.note(note(name.clone(), to.clone()));
            renamed.insert(name.clone(), to);
        }
        Self(renamed)
    }

    /// The name in the form in which it is written.
    pub(super) fn written(&self, name: &Text) -> Text {
        self.0.get(name).unwrap_or(name).clone()
    }
}

/// The id and the tool of a call.
pub(super) fn call(at: usize, block: &ContentBlock) -> Option<(Option<usize>, &Text, &Text)> {
    match block {
        ContentBlock::ToolUse(call) => Some((Some(at), &call.id, &call.name)),
        ContentBlock::ServerToolUse(call) => Some((Some(at), &call.id, &call.name)),
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
    }
}
