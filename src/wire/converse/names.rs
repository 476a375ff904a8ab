//! The ids of calls, the names of tools and the names of documents: which are legal, and what
//! becomes of the others.

use std::collections::{HashMap, HashSet};

use crate::{
    message::{ContentBlock, Message, Text, ToolSpec},
    wire::{contract::Change, notes::Notes},
};

/// The ids and names that are written in another form.
#[derive(Debug)]
pub(super) struct Names {
    ids: Renamed,
    tools: Renamed,
    documents: Renamed,
}

impl Names {
    /// Finds a new name for every one that the provider refuses. The same name gets the same new
    /// one everywhere, and no new one is another's.
    pub(super) fn rewrite(
        messages: &[(usize, Message)],
        tools: &[ToolSpec],
        notes: &mut Notes,
    ) -> Self {
        let calls = || blocks(messages).filter_map(|(at, block)| call(at, block));
        let declared = tools.iter().filter(|tool| tool.input_schema.is_object());
        let declared = declared.map(|tool| (None, &tool.name));
        let titles = blocks(messages).flat_map(|(at, block)| titles(at, block));
        let id_note = |from, to| Change::IdRewritten { from, to };
        let name_note = |from, to| Change::NameRewritten { from, to };
        Self {
            ids: Renamed::new(calls().map(|(at, id, _)| (at, id)), &IDS, notes, id_note),
            tools: Renamed::new(
                declared.chain(calls().map(|(at, _, name)| (at, name))),
                &TOOLS,
                notes,
                name_note,
            ),
            documents: Renamed::new(titles, &DOCUMENTS, notes, name_note),
        }
    }

    /// The id of a call in the form in which it is written.
    pub(super) fn id(&self, id: &Text) -> Text {
        self.ids.written(id)
    }

    /// The name of a tool in the form in which it is written.
    pub(super) fn tool(&self, name: &Text) -> Text {
        self.tools.written(name)
    }

    /// The name of a document in the form in which it is written.
    pub(super) fn document(&self, title: &Text) -> Text {
        self.documents.written(title)
    }
}

/// The rules of one kind of name.
struct Rules {
    most: usize,
    is_legal: fn(char) -> bool,
    /// What stands for a name of which nothing is left.
    nameless: &'static str,
    /// Whether white space may stand, but not twice in a row nor at an end.
    spaced: bool,
}

const IDS: Rules = Rules {
    most: 64,
    is_legal: |char| is_word(char) || matches!(char, '.' | ':'),
    nameless: "call",
    spaced: false,
};
const TOOLS: Rules = Rules { most: 64, is_legal: is_word, nameless: "tool", spaced: false };
const DOCUMENTS: Rules = Rules {
    most: 200,
    is_legal: |char| {
        char.is_ascii_alphanumeric() || matches!(char, ' ' | '-' | '(' | ')' | '[' | ']')
    },
    nameless: "document",
    spaced: true,
};

fn is_word(char: char) -> bool {
    char.is_ascii_alphanumeric() || matches!(char, '_' | '-')
}

impl Rules {
    fn accept(&self, name: &str) -> bool {
        (1..=self.most).contains(&name.len())
            && name.chars().all(self.is_legal)
            && !(self.spaced && (name.contains("  ") || name.trim() != name))
    }

    /// The name with a stand-in for what is refused, short enough for a number behind it.
    fn mend(&self, name: &str) -> String {
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
struct Renamed(HashMap<Text, Text>);

impl Renamed {
    fn new<'m>(
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

    fn written(&self, name: &Text) -> Text {
        self.0.get(name).unwrap_or(name).clone()
    }
}

fn blocks(messages: &[(usize, Message)]) -> impl Iterator<Item = (usize, &ContentBlock)> + Clone {
    messages.iter().flat_map(|(at, message)| message.content.iter().map(move |block| (*at, block)))
}

/// The id and the tool of a call.
fn call(at: usize, block: &ContentBlock) -> Option<(Option<usize>, &Text, &Text)> {
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

/// The title of a document, and those of the documents in a result.
fn titles(at: usize, block: &ContentBlock) -> impl Iterator<Item = (Option<usize>, &Text)> + Clone {
    fn title(block: &ContentBlock) -> Option<&Text> {
        if let ContentBlock::Document(document) = block { document.title.as_ref() } else { None }
    }
    let nested = if let ContentBlock::ToolResult(result) = block { &*result.content } else { &[] };
    title(block)
        .into_iter()
        .chain(nested.iter().filter_map(title))
        .map(move |name| (Some(at), name))
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
        let long = "x".repeat(70);
        let ids = ["a|b", "a_b", "a/b", "", "a.b:c", &long];
        let calls = Message::new(Role::Assistant, ids.map(call).into());
        let (messages, mut notes) = notes::prepare(&[calls], "c");
        let names = Names::rewrite(&messages, &[], &mut notes);
        let written = ids.map(|id| names.id(&id.into()).to_string());
        let short = "x".repeat(56);
        assert_eq!(written, ["a_b_2", "a_b", "a_b_3", "call", "a.b:c", &short]);
    }

    #[test]
    fn names_of_documents_keep_what_may_stand() {
        let rows = [
            ("Report (v2) [final]-1", "Report (v2) [final]-1"),
            ("report_v2.pdf", "report-v2-pdf"),
            (" a \t b ", "a b"),
            ("\u{e9}", "-"),
            ("", "document"),
        ];
        for (name, mended) in rows {
            assert_eq!(DOCUMENTS.mend(name), mended);
            assert!(DOCUMENTS.accept(mended));
        }
        assert!(!DOCUMENTS.accept("a  b") && !DOCUMENTS.accept(&"a".repeat(201)));
    }
}
