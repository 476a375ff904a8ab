//! The texts of a message, each with its speaker and its kind.

use std::{borrow::Cow, cell::LazyCell, collections::HashMap};

use serde_json::{Map, Value};

use super::class::Speaker;
use crate::message::{ContentBlock, Document, MediaSource, Message, Role, fnv1a, slice, steps};

/// The kind of a text in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Prose.
    Said,
    /// Tool output, a document, or the content of a file that the model writes.
    Output,
    /// A short value in the input of a tool call.
    Value,
    /// A value in the input of a tool call whose field name marks it as a path.
    Path,
    /// A command line in the input of a tool call.
    Command,
    /// A task in the input of a tool call, done or not.
    Task { done: bool },
    /// The summary of an earlier compaction.
    Summary,
    /// A checkpoint or a reminder. It holds no facts of its own.
    Mark,
}

/// A callback that receives each text of a message, with its speaker and kind.
type Visit<'v> = &'v mut (dyn FnMut(Speaker, Kind, &str) + 'v);

/// Calls `visit` with every text of a message, in order, without terminal colours.
pub fn passages(message: &Message, visit: Visit<'_>) {
    let speaker = match message.role {
        Role::User if message.untyped => Speaker::Tool,
        Role::User => Speaker::User,
        Role::System | Role::Assistant => Speaker::Assistant,
    };
    for block in &message.content {
        passages_of(speaker, block, visit);
    }
}

/// Calls `visit` with every text of a block, in order, without terminal colours.
pub fn passages_of(speaker: Speaker, block: &ContentBlock, visit: Visit<'_>) {
    of_block(speaker, block, &mut |speaker, kind, text| visit(speaker, kind, &plain(text)));
}

/// Returns a hash of a message's speaker, author and texts, cut to the bits that every JSON reader
/// keeps. It is stored, so it must never change.
pub fn fingerprint(message: &Message) -> u64 {
    let author = message.author.as_ref().map_or("", |author| author.as_str());
    let mut hash = fnv1a::hash(fnv1a::START, author.as_bytes());
    passages(message, &mut |speaker, _, text| {
        hash = fnv1a::hash(fnv1a::hash(hash, &[0xff, speaker as u8]), text.as_bytes());
    });
    hash & ((1 << 53) - 1)
}

fn of_block(speaker: Speaker, block: &ContentBlock, visit: Visit<'_>) {
    match block {
        ContentBlock::Text(block) if speaker == Speaker::User => of_user(&block.text, visit),
        ContentBlock::Text(block) if speaker == Speaker::Tool => match structured(&block.text) {
            // JSON output is visited string by string, because line breaks are escaped in its text.
            Some(value) => of_structured(&value, visit),
            None => visit(speaker, Kind::Output, &block.text),
        },
        ContentBlock::Text(block) => visit(speaker, Kind::Said, &block.text),
        ContentBlock::Document(document) => of_document(document, visit),
        ContentBlock::ToolUse(call) => of_input(call.input.as_str(), visit),
        ContentBlock::ToolResult(result) => {
            for block in &result.content {
                of_block(Speaker::Tool, block, visit);
            }
        }
        ContentBlock::ServerToolUse(call) => of_input(call.input.as_str(), visit),
        ContentBlock::ServerToolResult(result) => {
            if let Ok(value) = result.content.to_value() {
                of_structured(&value, visit);
            }
        }
        ContentBlock::ContextUpdate(update) => {
            for path in &update.paths {
                visit(Speaker::Tool, Kind::Path, path);
            }
            visit(Speaker::Tool, Kind::Output, &update.text);
        }
        ContentBlock::Summary(summary) => visit(Speaker::Assistant, Kind::Summary, &summary.text),
        ContentBlock::SystemReminder(block) => visit(Speaker::Tool, Kind::Mark, &block.text),
        ContentBlock::Checkpoint(mark) => visit(Speaker::Tool, Kind::Mark, mark.id.as_str()),
        ContentBlock::Image(_)
        | ContentBlock::Thinking(_)
        | ContentBlock::RedactedThinking(_)
        | ContentBlock::Opaque(_) => {}
    }
}

/// Tags around tool output and notices: hosts of agents without tool calls put output into user
/// messages, and many put notices of their own there.
const MACHINE: &str =
    "output stdout stderr result returncode observation environment reminder notification";

/// Splits a user's text into typed text and the output between tags that begin a line. Output may
/// contain its own closing tag, so it extends to the last one.
fn of_user(text: &str, visit: Visit<'_>) {
    let closings = closings(text);
    let mut start = 0;
    while let Some((at, name)) = text.get(start..).and_then(next_machine_tag) {
        let at = start + at;
        // Without a closing tag the end of the output is unknown, so the rest counts as typed.
        let Some(last) = closings.get(name).filter(|last| **last > at) else { break };
        let end = slice(text, *last..).find('>').map_or(text.len(), |end| last + end + 1);
        visit(Speaker::User, Kind::Said, slice(text, start..at));
        visit(Speaker::Tool, Kind::Output, slice(text, at..end));
        start = end;
    }
    visit(Speaker::User, Kind::Said, slice(text, start..));
}

/// Returns the byte offset and name of the next tag around output that begins a line or the given text.
fn next_machine_tag(text: &str) -> Option<(usize, &str)> {
    let is_machine = |name: &&str| MACHINE.split(' ').any(|word| name.contains(word));
    let mut at = 0;
    loop {
        // The end of the line is searched for only if no tag begins here, because a line may
        // contain many tags.
        let tag = text.get(at..)?.trim_start();
        let start = text.len() - tag.len();
        if let Some(name) = tag.strip_prefix('<').and_then(tag_name).filter(is_machine) {
            return Some((start, name));
        }
        at = start + steps::up_to(tag, tag.find('\n'))? + 1;
    }
}

/// Returns the byte offset of the last closing tag of each name.
pub(crate) fn closings(text: &str) -> HashMap<&str, usize> {
    let closed = steps::through(text).match_indices("</").filter_map(|(at, mark)| {
        let rest = slice(text, at + mark.len()..);
        let name = tag_name(rest)?;
        slice(rest, name.len()..).trim_start().starts_with('>').then_some((name, at))
    });
    closed.collect()
}

/// Returns the name of the tag whose `<` or `</` was just before this text.
pub(crate) fn tag_name(text: &str) -> Option<&str> {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || "_-:.".contains(c)))?;
    let name = text.get(..end).filter(|name| name.len() <= 60)?;
    let next = slice(text, end..);
    let whole = next.starts_with('>') || next.starts_with(char::is_whitespace);
    (whole && name.starts_with(|c: char| c.is_ascii_alphabetic())).then_some(name)
}

/// Parses a text that is a JSON object or array.
fn structured(text: &str) -> Option<Value> {
    let opens = text.trim_start().starts_with(['{', '[']);
    opens.then(|| serde_json::from_str(text).ok())?
}

fn of_document(document: &Document, visit: Visit<'_>) {
    for text in document.title.iter().chain(&document.context) {
        visit(Speaker::Tool, Kind::Output, text);
    }
    if let MediaSource::Text { text, .. } = &document.source {
        visit(Speaker::Tool, Kind::Output, text);
    }
}

/// Visits the strings in the JSON output of a tool.
fn of_structured(value: &Value, visit: Visit<'_>) {
    let mut values = vec![value];
    while let Some(value) = values.pop() {
        match value {
            Value::String(text) => visit(Speaker::Tool, Kind::Output, text),
            Value::Array(items) => values.extend(items.iter().rev()),
            Value::Object(fields) => values.extend(fields.values().rev()),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

/// Visits the strings in the input of a tool call. Input that does not parse is one text.
fn of_input(input: &str, visit: Visit<'_>) {
    match serde_json::from_str::<Value>(input) {
        Ok(value) => of_value("", &value, visit),
        Err(_) => visit(Speaker::Tool, Kind::Output, input),
    }
}

const COMMANDS: [&str; 4] = ["command", "cmd", "commands", "script"];
const PATHS: [&str; 4] = ["path", "file", "dir", "folder"];
const TASKS: [&str; 5] = ["content", "step", "title", "task", "description"];
const STATES: [&str; 2] = ["status", "state"];
/// A value longer than this, in bytes, counts as the content of a file.
const SHORT: usize = 400;

fn of_value(field: &str, value: &Value, visit: Visit<'_>) {
    match value {
        Value::String(text) => {
            let kind = kind_of(field, text);
            let is_body = kind == Kind::Output;
            visit(if is_body { Speaker::Tool } else { Speaker::Assistant }, kind, text);
        }
        Value::Array(items) if is_command(field) => {
            visit(Speaker::Assistant, Kind::Command, &command_line(items));
        }
        Value::Array(items) => items.iter().for_each(|item| of_value(field, item, visit)),
        Value::Object(fields) => {
            // An object with a text and a state is an item of a tool's task list.
            if let (Some(task), Some(state)) = (text_of(fields, &TASKS), text_of(fields, &STATES)) {
                let done = ["done", "complete", "cancel", "closed"];
                let done = done.iter().any(|word| state.to_ascii_lowercase().starts_with(word));
                return visit(Speaker::Assistant, Kind::Task { done }, task);
            }
            let has_path = LazyCell::new(|| {
                let mut texts = fields.iter().filter_map(|(field, it)| Some((field, it.as_str()?)));
                texts.any(|(field, text)| kind_of(field, text) == Kind::Path)
            });
            for (field, value) in fields {
                // A single word next to a path is the name of an editor's action, not a shell
                // command.
                let word = value.as_str().filter(|text| !text.contains(' '));
                match word.filter(|_| is_command(field) && *has_path) {
                    Some(verb) => visit(Speaker::Assistant, Kind::Value, verb),
                    None => of_value(field, value, visit),
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns the first of these fields that is a text.
fn text_of<'v>(fields: &'v Map<String, Value>, names: &[&str]) -> Option<&'v str> {
    names.iter().find_map(|name| fields.get(*name)?.as_str())
}

fn is_command(field: &str) -> bool {
    COMMANDS.iter().any(|command| command.eq_ignore_ascii_case(field))
}

fn kind_of(field: &str, text: &str) -> Kind {
    /// Parts of the names of fields whose value is content of a file.
    const BODIES: [&str; 6] = ["content", "string", "text", "patch", "diff", "code"];
    let field = field.to_ascii_lowercase();
    let is_one_of = |words: &[&str]| words.iter().any(|word| field.contains(word));
    if is_command(&field) {
        Kind::Command
    } else if text.len() > SHORT || is_one_of(&BODIES) || text.contains('\n') {
        Kind::Output
    } else if is_one_of(&PATHS)
        && !text.contains(|c: char| c.is_control() || "*?<>|\"{}$;=`".contains(c))
    {
        Kind::Path
    } else {
        Kind::Value
    }
}

/// Returns the command in a list of arguments: the argument of `sh -c`, or all of them.
fn command_line(items: &[Value]) -> String {
    let words: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
    match words.as_slice() {
        [_, flag, line] if matches!(*flag, "-c" | "-lc" | "-ic" | "/c") => (*line).to_owned(),
        words => words.join(" "),
    }
}

/// Returns a text without the escape sequences of terminals, and with a space in place of every
/// other control character that is not white space.
pub fn plain(text: &str) -> Cow<'_, str> {
    // 0xc2 begins the control characters beyond ASCII. Without a branch for each byte the compiler
    // compares many bytes at once, which is ten times as fast as testing each character.
    let may_control = steps::through(text).bytes().fold(false, |any, byte| {
        any | (byte < b' ') & !(9..=13).contains(&byte) | (byte == 0x7f) | (byte == 0xc2)
    });
    if !may_control || !text.contains(is_control) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(next) = chars.next() {
        if next != '\u{1b}' {
            out.push(if is_control(next) { ' ' } else { next });
        } else if chars.as_str().starts_with('[') {
            chars.next();
            let _ = chars.by_ref().find(char::is_ascii_alphabetic);
        }
    }
    Cow::Owned(out)
}

fn is_control(c: char) -> bool {
    c.is_control() && !c.is_whitespace()
}
