//! Names and ids that a provider refuses, and what becomes of them.
//!
//! A model may call a tool by a name that its own provider refuses in the next request, and hosts
//! name tools as they like. So every dialect has one rule for names, and a request is rewritten by
//! it before anything of it is written. Different names stay different, so that a written name
//! stands for one declared tool.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
};

use super::{contract::Change, notes::Notes, tree::Tree};
use crate::message::{ContentBlock, Message, Request, Text, ToolChoice, ToolSpec};

/// The rules of one kind of name.
pub(super) struct Rules {
    /// How many bytes a name may have.
    pub(super) most: usize,
    pub(super) is_legal: fn(char) -> bool,
    /// What stands for a name of which nothing is left.
    pub(super) nameless: &'static str,
    /// Whether white space may stand, but not twice in a row nor at an end.
    pub(super) spaced: bool,
    /// Whether a letter or `_` must stand first.
    pub(super) begins_with_letter: bool,
}

/// The names of tools in most dialects.
pub(super) const TOOLS: Rules = Rules {
    most: 64,
    is_legal: is_word,
    nameless: "tool",
    spaced: false,
    begins_with_letter: false,
};

/// Whether a character may stand in every name.
pub(super) fn is_word(char: char) -> bool {
    char.is_ascii_alphanumeric() || matches!(char, '_' | '-')
}

fn begins(char: char) -> bool {
    char.is_ascii_alphabetic() || char == '_'
}

impl Rules {
    pub(super) fn accept(&self, name: &str) -> bool {
        (1..=self.most).contains(&name.len())
            && name.chars().all(self.is_legal)
            && !(self.spaced && (name.contains("  ") || name.trim() != name))
            && !(self.begins_with_letter && !name.starts_with(begins))
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
        if self.begins_with_letter && !name.is_empty() && !name.starts_with(begins) {
            mended.push(stand_in);
        }
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

/// Gives every tool, and every call of one, a name that these rules accept: in the messages, which
/// are changed, and in the request, which is returned. A tool that only a provider has keeps its
/// name, and so do calls that a provider answers itself, but where `of_servers` says otherwise.
pub(super) fn legal<'r>(
    request: &'r Request,
    messages: &mut [(usize, Message)],
    (rules, of_servers): (&Rules, bool),
    notes: &mut Notes,
) -> Cow<'r, Request> {
    // One that only a provider has is kept whole, with its name.
    let is_function = |tool: &&ToolSpec| {
        tool.input_schema.is_object() || tool.extra.is_empty() || rules.accept(&tool.name)
    };
    let tools = request.tools.iter().filter(is_function).map(|tool| &tool.name);
    let calls = messages.iter().flat_map(|(at, message)| {
        let blocks = message.content.iter();
        blocks.filter_map(move |block| Some((Some(*at), called(block, of_servers)?)))
    });
    let name_note = |from, to| Change::NameRewritten { from, to };
    // Tools first, whatever the thread calls: a model that was shown a new name has called it by
    // that, and both must stay the same in the next request.
    let declared = tools.clone().map(|name| (None, name));
    let of_tools = Renamed::new(declared, rules, notes, name_note);
    let written: Vec<Text> = tools.map(|name| of_tools.written(name)).collect();
    let calls = calls.filter(|(_, name)| !of_tools.0.contains_key(*name));
    let names = written.iter().map(|name| (None, name)).chain(calls);
    let mut renamed = Renamed::new(names, rules, notes, name_note);
    renamed.0.extend(of_tools.0);
    if renamed.0.is_empty() {
        return Cow::Borrowed(request);
    }
    for (_, message) in messages {
        let is_renamed = |block: &ContentBlock| {
            called(block, of_servers).is_some_and(|name| renamed.0.contains_key(name))
        };
        if message.content.iter().any(is_renamed) {
            message.change(|parts| {
                parts.content.iter_mut().for_each(|block| renamed.rename(block, of_servers));
            });
        }
    }
    let mut request = request.clone();
    for tool in request.tools.make_mut() {
        tool.name = renamed.written(&tool.name);
    }
    if let Some(ToolChoice::Tool(name)) = &mut request.tool_choice {
        *name = renamed.written(name);
    }
    Cow::Owned(request)
}

impl Renamed {
    fn rename(&self, block: &mut ContentBlock, of_servers: bool) {
        if let ContentBlock::ToolUse(call) = block {
            call.name = self.written(&call.name);
        } else if let ContentBlock::ServerToolUse(call) = block
            && of_servers
        {
            call.name = self.written(&call.name);
        }
    }
}

/// Whether a written field is a name that these rules accept.
pub(super) fn is_legal(field: Option<&Tree>, rules: &Rules) -> bool {
    match field {
        Some(Tree::Text(name)) => rules.accept(name),
        Some(Tree::Raw(json)) => {
            serde_json::from_str(json.as_str()).is_ok_and(|name: Text| rules.accept(&name))
        }
        Some(
            Tree::Null
            | Tree::Bool(_)
            | Tree::Number(_)
            | Tree::Word(_)
            | Tree::Array(_)
            | Tree::Object(_),
        )
        | None => false,
    }
}

/// The tool that a block calls.
fn called(block: &ContentBlock, of_servers: bool) -> Option<&Text> {
    let is_host = !matches!(block, ContentBlock::ServerToolUse(_));
    call(0, block).filter(|_| is_host || of_servers).map(|(_, _, name)| name)
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
