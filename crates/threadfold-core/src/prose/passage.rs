//! What is said in a message: its texts, one by one, with who says them and as what.

use std::{
    borrow::Cow,
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::message::{ContentBlock, Document, MediaSource, Message, Role, ToolInput, steps};

/// Who says something, those who count most last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Speaker {
    /// A tool or a document; and the model where it writes files.
    Tool,
    /// The model, and the host.
    Assistant,
    /// The user.
    User,
}

impl Speaker {
    /// What a word of this speaker counts.
    pub(crate) fn factor(self) -> u32 {
        match self {
            Self::Tool => 1,
            Self::Assistant => 3,
            Self::User => 8,
        }
    }
}

/// As what a text is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// In words.
    Said,
    /// What a tool gave, a document, or what the model writes into files.
    Output,
    /// A short value that a tool is given.
    Value,
    /// A value that is the path of something, by the name of its field.
    Path,
    /// A command line.
    Command,
    /// A task that a tool is told of, done or not.
    Task { done: bool },
    /// The summary of an earlier compaction.
    Summary,
    /// A marker or a hint of the host: nothing that is said, but it stands in the thread.
    Mark,
}

/// Passes on every text of a message, in order, without the colours of terminals.
pub fn passages(message: &Message, tell: &mut dyn FnMut(Speaker, Kind, &str)) {
    let speaker = match message.role {
        Role::User if message.untyped => Speaker::Tool,
        Role::User => Speaker::User,
        Role::System | Role::Assistant => Speaker::Assistant,
    };
    for block in &message.content {
        passages_of(speaker, block, tell);
    }
}

/// Passes on every text of a block, in order, without the colours of terminals.
pub fn passages_of(
    speaker: Speaker,
    block: &ContentBlock,
    tell: &mut dyn FnMut(Speaker, Kind, &str),
) {
    of_block(speaker, block, &mut |speaker, kind, text| tell(speaker, kind, &plain(text)));
}

/// Returns a number that is the same for messages that say the same.
pub fn fingerprint(message: &Message) -> u64 {
    let mut hasher = DefaultHasher::new();
    message.role.hash(&mut hasher);
    passages(message, &mut |_, kind, text| (kind, text).hash(&mut hasher));
    hasher.finish()
}

fn of_block(speaker: Speaker, block: &ContentBlock, tell: &mut dyn FnMut(Speaker, Kind, &str)) {
    match block {
        ContentBlock::Text(block) if speaker == Speaker::User => of_user(&block.text, tell),
        ContentBlock::Text(block) if speaker == Speaker::Tool => {
            tell(speaker, Kind::Output, &block.text);
        }
        ContentBlock::Text(block) => tell(speaker, Kind::Said, &block.text),
        ContentBlock::Document(document) => of_document(document, tell),
        ContentBlock::ToolUse(call) => of_input(&call.input, tell),
        ContentBlock::ToolResult(result) => {
            for block in &result.content {
                of_result(block, tell);
            }
        }
        ContentBlock::ServerToolUse(call) => match call.input.to_value() {
            Ok(value) => of_value("", &value, tell),
            Err(_) => tell(Speaker::Tool, Kind::Output, call.input.as_str()),
        },
        ContentBlock::ServerToolResult(result) => of_given(&result.content.to_value().ok(), tell),
        ContentBlock::ContextUpdate(update) => {
            for path in &update.paths {
                tell(Speaker::Tool, Kind::Path, path);
            }
            tell(Speaker::Tool, Kind::Output, &update.text);
        }
        ContentBlock::Summary(summary) => tell(Speaker::Assistant, Kind::Summary, &summary.text),
        ContentBlock::SystemReminder(block) => tell(Speaker::Tool, Kind::Mark, &block.text),
        ContentBlock::Checkpoint(mark) => tell(Speaker::Tool, Kind::Mark, mark.id.as_str()),
        ContentBlock::Image(_)
        | ContentBlock::Thinking(_)
        | ContentBlock::RedactedThinking(_)
        | ContentBlock::Opaque(_) => {}
    }
}

/// What stands in tags of these names was not typed: agents without tool calls are answered so.
const MACHINE: [&str; 7] =
    ["output", "stdout", "stderr", "result", "returncode", "observation", "environment"];

/// What a user message says, and what a host put into it between tags that begin a line. What stands
/// within may hold the tag that closes it, so it goes on to the last one.
fn of_user(text: &str, tell: &mut dyn FnMut(Speaker, Kind, &str)) {
    let closed = steps::through(text).match_indices("</");
    let closed = closed.filter_map(|(at, mark)| Some((machine(text.get(at + mark.len()..)?)?, at)));
    let closings: HashMap<&str, usize> = closed.collect();
    let mut start = 0;
    while let Some((at, name)) = text.get(start..).and_then(next_machine_tag) {
        let at = start + at;
        // Without an end, nobody can tell what is whose.
        let Some(last) = closings.get(name).filter(|last| **last > at) else { break };
        let end = last + "</>".len() + name.len();
        tell(Speaker::User, Kind::Said, text.get(start..at).unwrap_or_default());
        tell(Speaker::Tool, Kind::Output, text.get(at..end).unwrap_or_default());
        start = end;
    }
    tell(Speaker::User, Kind::Said, text.get(start..).unwrap_or_default());
}

/// The next tag of a machine that begins a line or what is left of one: where, and its name.
fn next_machine_tag(text: &str) -> Option<(usize, &str)> {
    let mut at = 0;
    loop {
        // The end of a line is looked for where no tag begins it: there may be many tags on one.
        let tag = text.get(at..)?.trim_start();
        let start = text.len() - tag.len();
        if let Some(name) = tag.strip_prefix('<').and_then(machine) {
            return Some((start, name));
        }
        at = start + steps::up_to(tag, tag.find('\n'))? + 1;
    }
}

/// The name of the machine whose tag a text goes on with.
fn machine(text: &str) -> Option<&str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let end = steps::up_to(text, text.find(|c| !plain(c)))?;
    let (name, rest) = text.split_at_checked(end)?;
    let known = name.len() < 40 && MACHINE.iter().any(|word| name.contains(word));
    (known && rest.starts_with('>')).then_some(name)
}

/// What is in a result: texts and documents. Nothing in it is said by anybody else.
fn of_result(block: &ContentBlock, tell: &mut dyn FnMut(Speaker, Kind, &str)) {
    match block {
        ContentBlock::Text(block) => match structured(&block.text) {
            // Tools that answer with JSON hide line breaks in it.
            Some(value) => of_given(&Some(value), tell),
            None => tell(Speaker::Tool, Kind::Output, &block.text),
        },
        ContentBlock::Document(document) => of_document(document, tell),
        ContentBlock::Image(_)
        | ContentBlock::Thinking(_)
        | ContentBlock::RedactedThinking(_)
        | ContentBlock::ToolUse(_)
        | ContentBlock::ToolResult(_)
        | ContentBlock::ServerToolUse(_)
        | ContentBlock::ServerToolResult(_)
        | ContentBlock::SystemReminder(_)
        | ContentBlock::ContextUpdate(_)
        | ContentBlock::Checkpoint(_)
        | ContentBlock::Summary(_)
        | ContentBlock::Opaque(_) => {}
    }
}

/// An object or array of JSON.
fn structured(text: &str) -> Option<Value> {
    let opens = text.trim_start().starts_with(['{', '[']);
    opens.then(|| serde_json::from_str(text).ok())?
}

fn of_document(document: &Document, tell: &mut dyn FnMut(Speaker, Kind, &str)) {
    for text in document.title.iter().chain(&document.context) {
        tell(Speaker::Tool, Kind::Output, text);
    }
    if let MediaSource::Text { text, .. } = &document.source {
        tell(Speaker::Tool, Kind::Output, text);
    }
}

/// The texts in what a tool gave.
fn of_given(value: &Option<Value>, tell: &mut dyn FnMut(Speaker, Kind, &str)) {
    let mut values: Vec<&Value> = value.iter().collect();
    while let Some(value) = values.pop() {
        match value {
            Value::String(text) => tell(Speaker::Tool, Kind::Output, text),
            Value::Array(items) => values.extend(items.iter().rev()),
            Value::Object(fields) => values.extend(fields.values().rev()),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

/// The texts in what a tool is given. What is no JSON, or nests too deep, is one text.
fn of_input(input: &ToolInput, tell: &mut dyn FnMut(Speaker, Kind, &str)) {
    match serde_json::from_str::<Value>(input.as_str()) {
        Ok(value) => of_value("", &value, tell),
        Err(_) => tell(Speaker::Tool, Kind::Output, input.as_str()),
    }
}

const COMMANDS: [&str; 4] = ["command", "cmd", "commands", "script"];
const PATHS: [&str; 4] = ["path", "file", "dir", "folder"];
const TASKS: [&str; 5] = ["content", "step", "title", "task", "description"];
const STATES: [&str; 2] = ["status", "state"];
/// Values that are longer are what goes into a file.
const SHORT: usize = 400;

fn of_value(field: &str, value: &Value, tell: &mut dyn FnMut(Speaker, Kind, &str)) {
    match value {
        Value::String(text) => {
            let speaker = if is_body(field, text) { Speaker::Tool } else { Speaker::Assistant };
            tell(speaker, kind_of(field, text), text);
        }
        Value::Array(items) if COMMANDS.contains(&field) => {
            tell(Speaker::Assistant, Kind::Command, &command_line(items));
        }
        Value::Array(items) => items.iter().for_each(|item| of_value(field, item, tell)),
        Value::Object(fields) => {
            let text = |names: &[&str]| names.iter().find_map(|name| fields.get(*name)?.as_str());
            if let (Some(task), Some(state)) = (text(&TASKS), text(&STATES)) {
                let done = ["done", "complete", "cancel", "closed"];
                let done = done.iter().any(|word| state.to_ascii_lowercase().starts_with(word));
                return tell(Speaker::Assistant, Kind::Task { done }, task);
            }
            let has_path = fields.iter().any(|(field, value)| {
                value.as_str().is_some_and(|text| kind_of(field, text) == Kind::Path)
            });
            for (field, value) in fields {
                // One word beside a path is the verb of an editor, not a command of a shell.
                let verb = value.as_str().filter(|text| {
                    has_path && !text.contains(' ') && kind_of(field, text) == Kind::Command
                });
                match verb {
                    Some(verb) => tell(Speaker::Assistant, Kind::Value, verb),
                    None => of_value(field, value, tell),
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Whether a value is what goes into a file, or comes out of it.
fn is_body(field: &str, text: &str) -> bool {
    let named = ["content", "string", "text", "patch", "diff", "code"];
    let named = named.iter().any(|word| field.contains(word));
    let command = COMMANDS.contains(&field);
    !command && (text.len() > SHORT || named || text.contains('\n'))
}

fn kind_of(field: &str, text: &str) -> Kind {
    let field = field.to_ascii_lowercase();
    let odd = |c: char| c.is_control() || "*?<>|\"{}$;=`".contains(c);
    if COMMANDS.contains(&field.as_str()) {
        Kind::Command
    } else if is_body(&field, text) {
        Kind::Output
    } else if PATHS.iter().any(|word| field.contains(word)) && !text.contains(odd) {
        Kind::Path
    } else {
        Kind::Value
    }
}

/// The command in a list of arguments: what a shell is given, or all of them.
fn command_line(items: &[Value]) -> String {
    let words: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
    match words.as_slice() {
        [_, flag, line] if matches!(*flag, "-c" | "-lc" | "-ic" | "/c") => (*line).to_owned(),
        words => words.join(" "),
    }
}

/// Returns a text without the sequences by which terminals colour it, and with a space for every
/// other character that controls something and is no white space.
pub fn plain(text: &str) -> Cow<'_, str> {
    let controls = |c: char| c.is_control() && !c.is_whitespace();
    if !steps::through(text).contains(controls) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(next) = chars.next() {
        if next != '\u{1b}' {
            out.push(if controls(next) { ' ' } else { next });
        } else if chars.as_str().starts_with('[') {
            chars.next();
            let _ = chars.by_ref().find(char::is_ascii_alphabetic);
        }
    }
    Cow::Owned(out)
}
