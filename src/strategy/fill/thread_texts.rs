//! Reads the old part of a thread into sources: texts with their kind, step and failure.

use std::{
    borrow::{Borrow, Cow},
    collections::{HashMap, HashSet},
    hash::{Hash, Hasher},
    ops::Range,
};

use serde_json::Value;

use super::{
    earlier::{Details, Earlier, FROM_BEFORE, GAVE, YOU_SAID},
    shape,
};
use crate::{
    hindsight::names,
    ledger,
    message::{ContentBlock, Message, Role, Summary, Text, ToolResult, ToolUse, boundary_before},
    notes,
    prose::{first_failure, one_line, plain, without_typed},
    retention::Statements,
    strategy::full_summary,
};

/// What wrote a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The user.
    Typed,
    /// The model, in an answer.
    Answer,
    /// The model, as the input of a call.
    Call,
    /// A tool.
    Result,
    /// An earlier compaction.
    Earlier,
}

/// A text of the thread.
#[derive(Debug)]
pub(super) struct Source {
    /// The index of its message.
    pub(super) message: usize,
    pub(super) kind: Kind,
    pub(super) text: Text,
    /// For a call: the tool and its input on one line. For lines of an earlier digest: their heading.
    pub(super) outline: String,
    /// For a result: the index of its call's source.
    pub(super) call: Option<usize>,
    /// For a result that reports a failure: the line that does.
    pub(super) failure: Option<String>,
    /// For a text that the user typed: what was quoted or pasted in it.
    pub(super) given: String,
    /// The names in the text, in order.
    names: Vec<Named>,
}

/// A name in a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Named {
    /// The offset of the name in its text, in bytes.
    pub(super) at: usize,
    /// The number of the name in [`ThreadTexts::name`].
    pub(super) name: usize,
}

impl Source {
    fn new(message: usize, kind: Kind, text: Text) -> Self {
        let (outline, given, names) = (String::new(), String::new(), Vec::new());
        Self { message, kind, text, outline, call: None, failure: None, given, names }
    }

    /// The heading over lines of it: what it is, or of which call it is the result.
    pub(super) fn heading(&self, sources: &[Self]) -> String {
        let call = self.call.and_then(|call| sources.get(call));
        match (self.kind, call) {
            (Kind::Result, Some(call)) => {
                let call = clipped_inside(&call.outline, HEADING).replace('`', "'");
                format!("`{call}{GAVE}")
            }
            (Kind::Result, None) => "a tool gave:".to_owned(),
            (Kind::Call, _) => {
                let tool = self.outline.split_once(": ").map_or("a command", |(tool, _)| tool);
                format!("in a call of {}:", clipped(tool, 32))
            }
            (Kind::Answer, _) => YOU_SAID.to_owned(),
            (Kind::Typed, _) => "the user said:".to_owned(),
            (Kind::Earlier, _) if self.outline.is_empty() => FROM_BEFORE.to_owned(),
            (Kind::Earlier, _) => self.outline.clone(),
        }
    }

    /// The names in the text, in order.
    pub(super) fn names(&self) -> &[Named] {
        &self.names
    }

    /// Whether it is a call that only shows something, by the programs of all its commands or the name of
    /// its tool.
    pub(super) fn only_reads(&self) -> bool {
        const TOOLS: [&str; 8] =
            ["glob", "grep", "list", "ls", "read", "read_file", "search", "view"];
        let (tool, input) = self.outline.split_once(": ").unwrap_or(("", &self.outline));
        let input = input.replace("2>/dev/null", "").replace("2>&1", "");
        let mut commands = input.split(['|', ';', '&', '\n']).filter(|it| !it.trim().is_empty());
        (!input.contains('>') && commands.all(is_reader))
            || TOOLS.iter().any(|name| tool.eq_ignore_ascii_case(name))
    }
}

/// Whether a command only shows something.
fn is_reader(command: &str) -> bool {
    let mut words = command.split_whitespace();
    let program = words.next().unwrap_or_default();
    let changes = |word: &str| match program {
        "sed" => word == "--in-place" || (word.starts_with('-') && word.contains('i')),
        "find" => ["-delete", "-exec", "-execdir", "-ok"].contains(&word),
        _ => false,
    };
    (READERS.contains(&program) || LISTERS.contains(&program)) && !words.any(changes)
}

/// The programs that show what is in files, and those that show what else there is.
const READERS: [&str; 8] = ["awk", "cat", "grep", "head", "less", "rg", "sed", "tail"];
const LISTERS: [&str; 7] = ["cd", "find", "ls", "nl", "pwd", "tree", "wc"];

/// The texts of a thread in order, and their names. It is read once for all that compose a text, and
/// shares the texts with the messages.
#[derive(Debug)]
pub(crate) struct ThreadTexts {
    pub(super) sources: Vec<Source>,
    /// Summaries of earlier compactions, with their messages.
    pub(super) earlier: Vec<(usize, Earlier)>,
    /// The pictures and documents that the user sent, with their messages: a sentence each.
    pub(super) media: Vec<(usize, String)>,
    /// Lines that many results begin or end with, which say nothing.
    pub(super) usual: HashSet<String>,
    /// The distinct names in the order in which they first stand.
    names: Vec<Name>,
    /// The numbers of the names.
    numbers: HashMap<Name, usize>,
}

/// A name, which shares the text that it stands in.
#[derive(Clone, Debug)]
struct Name {
    text: Text,
    place: Range<usize>,
}

impl Name {
    fn as_str(&self) -> &str {
        self.text.get(self.place.clone()).unwrap_or_default()
    }
}

impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Name {}

impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

/// A set of names of a thread, by their numbers.
#[derive(Clone, Debug)]
pub(super) struct NameSet(Vec<bool>);

impl NameSet {
    pub(super) fn contains(&self, name: usize) -> bool {
        self.0.get(name).is_some_and(|is_in| *is_in)
    }

    /// Adds a name and returns whether it is new.
    pub(super) fn insert(&mut self, name: usize) -> bool {
        self.0.get_mut(name).is_some_and(|is_in| !std::mem::replace(is_in, true))
    }
}

impl ThreadTexts {
    /// Reads these messages.
    pub(crate) fn of(messages: &[Message]) -> Self {
        let results = shape::results(messages);
        let mut reader = Reader::default();
        for (index, message) in messages.iter().enumerate() {
            let is_result = |at: usize| results.get(at).copied().unwrap_or_default();
            reader.message(index, message, is_result(index), is_result(index + 1));
        }
        reader.outline_calls();
        reader.trust_readers();
        let Reader { mut sources, earlier, .. } = reader;
        let (mut all, mut numbers) = (Vec::new(), HashMap::new());
        for source in &mut sources {
            let start = source.text.as_ptr().addr();
            for text in named(&source.text) {
                let at = text.as_ptr().addr() - start;
                let number = numbers.get(text).copied().unwrap_or_else(|| {
                    let name = Name { text: source.text.clone(), place: at..at + text.len() };
                    numbers.insert(name.clone(), all.len());
                    all.push(name);
                    all.len() - 1
                });
                source.names.push(Named { at, name: number });
            }
        }
        let usual = usual_lines(&sources);
        let media = messages.iter().enumerate();
        let media = media.filter_map(|(index, message)| Some((index, sent_media(message)?)));
        Self { sources, earlier, media: media.collect(), usual, names: all, numbers }
    }

    /// The number of distinct names.
    pub(super) fn name_count(&self) -> usize {
        self.names.len()
    }

    /// The name with this number.
    pub(super) fn name(&self, number: usize) -> &str {
        self.names.get(number).map(Name::as_str).unwrap_or_default()
    }

    /// The numbers of the names in another text, as far as the thread has them.
    pub(super) fn names_in<'p>(&'p self, text: &'p str) -> impl Iterator<Item = usize> + 'p {
        named(text).filter_map(|name| self.numbers.get(name).copied())
    }

    /// The earlier summaries before a cut.
    pub(super) fn earlier(&self, cut: usize) -> Vec<&Earlier> {
        self.earlier.iter().filter(|(at, _)| *at < cut).map(|(_, earlier)| earlier).collect()
    }

    /// Whether the first text that the user typed before a cut is the task. An earlier digest that does
    /// not show the task left it as a message before itself.
    pub(super) fn begins_with_task(&self, cut: usize) -> bool {
        let first = self.before(cut).iter().find(|source| source.kind == Kind::Typed);
        let mut digests = self.earlier.iter().filter(|(at, it)| *at < cut && it.messages > 0);
        first.is_some_and(|first| {
            digests.all(|(at, digest)| digest.task.is_empty() && first.message < *at)
        })
    }

    /// The names in the texts of messages that stay.
    pub(super) fn names_of(&self, stays: impl Fn(usize) -> bool) -> NameSet {
        let mut set = NameSet(vec![false; self.names.len()]);
        let sources = self.sources.iter().filter(|source| stays(source.message));
        sources.flat_map(|source| source.names()).for_each(|named| {
            set.insert(named.name);
        });
        set
    }

    /// The steps before a cut, the last one first: calls with their results, and answers.
    pub(super) fn last_steps(&self, cut: usize) -> impl Iterator<Item = String> {
        let sources = self.before(cut);
        let answered: HashSet<usize> = sources.iter().filter_map(|source| source.call).collect();
        let steps = sources.iter().enumerate().rev().filter(move |(index, source)| {
            !matches!(source.kind, Kind::Typed | Kind::Earlier) && !answered.contains(index)
        });
        let steps = steps.filter(|(_, last)| !last.text.trim().is_empty());
        steps.map(|(_, last)| {
            let call = last.call.and_then(|call| sources.get(call));
            // A heading shows a short call whole.
            let call = call.filter(|call| after(&call.outline, HEADING).is_some());
            let text = call.map(|call| format!("{}\n\n", call.text)).unwrap_or_default();
            format!("{text}{}\n{}", last.heading(sources), plain(&last.text))
        })
    }

    /// The sources of messages before a cut.
    pub(super) fn before(&self, cut: usize) -> &[Source] {
        let end = self.sources.partition_point(|source| source.message < cut);
        self.sources.get(..end).unwrap_or_default()
    }
}

/// The names in a text, and the numbers with a separator, such as prices, versions and addresses, in
/// order. The digits of such a number are no names of their own.
fn named(text: &str) -> impl Iterator<Item = &str> {
    let (mut names, mut numbers) = (names(text).peekable(), numbers(text).peekable());
    let range = |part: &&str| (part.as_ptr().addr(), part.as_ptr().addr() + part.len());
    let mut passed = 0;
    std::iter::from_fn(move || {
        loop {
            let Some((start, end)) = names.peek().map(range) else { return numbers.next() };
            if start < passed {
                names.next();
                continue;
            }
            let Some((first, last)) = numbers.peek().map(range) else { return names.next() };
            if end <= first {
                return names.next();
            }
            let number = numbers.next();
            // A part of a path is no number.
            if last <= start || (first <= start && end <= last) {
                passed = last;
                return number;
            }
        }
    })
}

/// The numbers of four to 32 bytes with points or commas between digits.
fn numbers(text: &str) -> impl Iterator<Item = &str> {
    const BYTES: std::ops::RangeInclusive<usize> = 4..=32;
    let bytes = text.as_bytes();
    let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'.' | b',');
    let mut end = 0;
    text.match_indices(['.', ',']).filter_map(move |(at, _)| {
        let digit =
            |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
        if at < end || !digit(at.checked_sub(1)) || !digit(Some(at + 1)) {
            return None;
        }
        let start = at - bytes.get(end..at)?.iter().rev().take_while(|byte| is_part(byte)).count();
        end = at + bytes.get(at..)?.iter().take_while(|byte| is_part(byte)).count();
        let number = text.get(start..end)?.trim_matches(['.', ',']);
        let joins = |byte: Option<&u8>| {
            byte.is_some_and(|byte| byte.is_ascii_alphabetic() || b"_-/:".contains(byte))
        };
        let (before, after) = (start.checked_sub(1).and_then(|at| bytes.get(at)), bytes.get(end));
        (BYTES.contains(&number.len()) && !joins(before) && !joins(after)).then_some(number)
    })
}

#[derive(Default)]
struct Reader<'a> {
    sources: Vec<Source>,
    earlier: Vec<(usize, Earlier)>,
    /// The sources of calls by their ids.
    calls: HashMap<&'a str, usize>,
    /// The source of a command in an answer whose output follows as a user message.
    asked: Option<usize>,
    /// The calls with named arguments: the source, the tool, the arguments.
    inputs: Vec<(usize, &'a str, Arguments)>,
    /// The sources of results that the host marked as errors.
    errors: HashSet<usize>,
}

/// The arguments of a call with their names, in the order of the names.
type Arguments = Vec<(String, String)>;

impl<'a> Reader<'a> {
    fn message(&mut self, index: usize, message: &'a Message, is_result: bool, asks: bool) {
        let is_typed = message.is_typed() && !is_result;
        let is_said = is_typed || message.role == Role::System;
        let mut given = if is_said { given(&message.spoken()) } else { String::new() };
        for block in &message.content {
            match block {
                ContentBlock::Text(block) if is_result || message.untyped => {
                    let failure = failure(&block.text);
                    let source = Source::new(index, Kind::Result, plain_text(&block.text));
                    let call = self.asked.filter(|_| is_result);
                    self.sources.push(Source { call, failure, ..source });
                }
                ContentBlock::Text(block) if message.role == Role::Assistant => {
                    self.answer(index, &block.text, asks);
                }
                // What the host says is listed beside what the user typed.
                ContentBlock::Text(block) if message.role == Role::System => {
                    if self.sources.iter().any(|source| source.kind == Kind::Typed) {
                        let given = std::mem::take(&mut given);
                        let source = Source::new(index, Kind::Typed, block.text.clone());
                        self.sources.push(Source { given, ..source });
                    }
                }
                ContentBlock::Text(block) => {
                    let given = std::mem::take(&mut given);
                    let source = Source::new(index, Kind::Typed, block.text.clone());
                    self.sources.push(Source { given, ..source });
                }
                ContentBlock::ToolUse(call) => {
                    self.calls.insert(&call.id, self.sources.len());
                    self.call(index, call);
                }
                ContentBlock::ToolResult(result) => {
                    let call = self.calls.get(result.tool_use_id.as_str()).copied();
                    let text = result_text(result);
                    let first = || result.is_error.then(|| reason(&text));
                    self.errors.extend(result.is_error.then_some(self.sources.len()));
                    let failure = failure(&text).or_else(first);
                    let source = Source::new(index, Kind::Result, text);
                    self.sources.push(Source { call, failure, ..source });
                }
                ContentBlock::Summary(summary) => self.summary(index, summary),
                ContentBlock::Image(_)
                | ContentBlock::Document(_)
                | ContentBlock::Thinking(_)
                | ContentBlock::RedactedThinking(_)
                | ContentBlock::ServerToolUse(_)
                | ContentBlock::ServerToolResult(_)
                | ContentBlock::SystemReminder(_)
                | ContentBlock::ContextUpdate(_)
                | ContentBlock::Checkpoint(_)
                | ContentBlock::Opaque(_) => {}
            }
        }
    }

    fn call(&mut self, index: usize, call: &'a ToolUse) {
        let raw = call.input.as_str();
        let Ok(Value::Object(fields)) = serde_json::from_str::<Value>(raw) else {
            let line = one_line(&plain(raw)).into_owned();
            let outline = format!("{}: {}", call.name, clipped_inside(&line, WIDEST));
            let source = Source::new(index, Kind::Call, raw.into());
            self.sources.push(Source { outline, ..source });
            return;
        };
        let arguments = sorted(&fields).into_iter();
        let arguments: Arguments =
            arguments.map(|(name, value)| (name.clone(), value_text(value))).collect();
        let stays = |(name, _): &&(String, String)| !is_removed(name, &arguments);
        let arguments: Arguments = arguments.iter().filter(stays).cloned().collect();
        let values: Vec<&str> = arguments.iter().map(|(_, value)| value.as_str()).collect();
        let source = Source::new(index, Kind::Call, values.join("\n").into());
        self.inputs.push((self.sources.len(), &call.name, arguments));
        self.sources.push(source);
    }

    /// Writes the outlines of the calls, without arguments that most calls of a tool share: a time
    /// limit or a folder that never changes says nothing.
    fn outline_calls(&mut self) {
        let mut tools: HashMap<&str, usize> = HashMap::new();
        let mut counts: HashMap<(&str, &str, &str), usize> = HashMap::new();
        for (_, tool, arguments) in &self.inputs {
            *tools.entry(tool).or_default() += 1;
            for (name, value) in arguments {
                *counts.entry((tool, name, value)).or_default() += 1;
            }
        }
        for (source, tool, arguments) in &self.inputs {
            let all = tools.get(tool).copied().unwrap_or_default();
            let is_usual = |(name, value): &(String, String)| {
                let count = counts.get(&(*tool, name.as_str(), value.as_str())).copied();
                !is_file(name) && count.is_some_and(|count| count >= 4 && count * 2 > all)
            };
            let own = arguments.iter().filter(|argument| !is_usual(argument));
            if let Some(source) = self.sources.get_mut(*source) {
                source.outline = outline(tool, own.collect());
            }
        }
    }

    /// A command that shows a file has not failed because the file tells of a failure, unless the line
    /// begins with the name of the program.
    fn trust_readers(&mut self) {
        for index in 0..self.sources.len() {
            let source = self.sources.get(index);
            let call =
                source.and_then(|it| self.sources.get(it.call.filter(|_| it.failure.is_some())?));
            let program = call.map(|call| program(&call.outline)).unwrap_or_default();
            let Some(program) = READERS.iter().find(|reader| **reader == program) else { continue };
            if let Some(source) =
                self.sources.get_mut(index).filter(|_| !self.errors.contains(&index))
            {
                let is_own = |line: &String| line.starts_with(&format!("{program}: "));
                source.failure = source.failure.take().filter(is_own);
            }
        }
    }

    /// Reads an answer. If it asks for an output in its text, the command is a source of its own.
    fn answer(&mut self, index: usize, text: &Text, asks: bool) {
        let Some((said, command)) = asks.then(|| command(text)).flatten() else {
            self.sources.push(Source::new(index, Kind::Answer, text.clone()));
            return;
        };
        self.sources.push(Source::new(index, Kind::Answer, said.into()));
        self.asked = Some(self.sources.len());
        let outline = clipped_inside(&one_line(&plain(command)), WIDEST).into_owned();
        let source = Source::new(index, Kind::Call, command.into());
        self.sources.push(Source { outline, ..source });
    }

    /// Reads an earlier summary. Of a digest only the lines that no other section has are a source.
    fn summary(&mut self, index: usize, summary: &Summary) {
        let text =
            without_typed(&ledger::without_titled(&notes::without(&full_summary::text(summary))));
        let earlier = Earlier::read(&text);
        if earlier.messages == 0 {
            self.sources.push(Source::new(index, Kind::Earlier, text.into()));
        }
        for Details { heading, lines } in &earlier.details {
            let source = Source::new(index, Kind::Earlier, lines.as_str().into());
            self.sources.push(Source { outline: heading.clone(), ..source });
        }
        self.earlier.push((index, earlier));
    }
}

/// The lines of a message that no statement of the user has: what was quoted, fenced or pasted.
fn given(message: &Message) -> String {
    let own: String = Statements::typed(message).flat_map(|text| [text, "\n".to_owned()]).collect();
    let own: HashSet<&str> = own.lines().map(str::trim).collect();
    let texts = message.typed_content().filter_map(ContentBlock::as_text);
    let lines = texts.flat_map(|text| text.lines()).filter(|line| !own.contains(line.trim()));
    lines.collect::<Vec<_>>().join("\n")
}

/// Splits an answer into what it says and the command in its last fenced block.
fn command(text: &str) -> Option<(String, &str)> {
    const FENCE: &str = "```";
    let end = text.rfind(FENCE)?;
    let start = text.get(..end)?.rfind(FENCE)?;
    let inside = text.get(start + FENCE.len()..end)?;
    let command = inside.split_once('\n').map_or(inside, |(_, command)| command).trim();
    let (before, after) = (text.get(..start)?, text.get(end + FENCE.len()..)?);
    Some((format!("{}\n{}", before.trim(), after.trim()), command))
}

/// The text as [`plain`] returns it, shared if nothing is to be removed.
fn plain_text(text: &Text) -> Text {
    match plain(text) {
        Cow::Borrowed(_) => text.clone(),
        Cow::Owned(plain) => plain.into(),
    }
}

fn result_text(result: &ToolResult) -> Text {
    let text = joined_text(result);
    // Agents wrap an output of many lines in JSON, which hides the lines.
    if text.starts_with(['{', '['])
        && text.contains("\\n")
        && let Ok(value) = serde_json::from_str::<Value>(&text)
    {
        let mut lines = Vec::new();
        unwrap(&value, "", &mut lines);
        return lines.join("\n").into();
    }
    text
}

/// Lists the texts in a value, and the other values with their names.
fn unwrap(value: &Value, name: &str, lines: &mut Vec<String>) {
    match value {
        Value::String(text) if text.contains('\n') || name.is_empty() => lines.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| unwrap(item, "", lines)),
        Value::Object(fields) => {
            sorted(fields).into_iter().for_each(|(name, value)| unwrap(value, name, lines));
        }
        Value::String(_) | Value::Bool(_) | Value::Number(_) => {
            lines.push(format!("{name}: {}", value_text(value)));
        }
        Value::Null => {}
    }
}

fn joined_text(result: &ToolResult) -> Text {
    let mut texts = result.content.iter().filter_map(ContentBlock::as_text);
    match (texts.next(), texts.next()) {
        (None, _) => Text::default(),
        (Some(only), None) => plain_text(only),
        (Some(first), Some(second)) => {
            let rest = texts.map(|text| text.as_str());
            let all = [first.as_str(), second.as_str()].into_iter().chain(rest);
            all.collect::<Vec<_>>().join("\n").into()
        }
    }
}

/// The characters of the user's words beside a picture that are shown.
const MEDIA_WORDS: usize = 80;

/// What pictures and documents a message of the user has, with the words beside them.
fn sent_media(message: &Message) -> Option<String> {
    let (mut pictures, mut documents, mut words) = (0_usize, 0_usize, None);
    for block in message.typed_content() {
        pictures += usize::from(matches!(block, ContentBlock::Image(_)));
        documents += usize::from(matches!(block, ContentBlock::Document(_)));
        words = words.or(block.as_text());
    }
    let counted = |count: usize, what: &str| match count {
        0 => None,
        1 => Some(format!("a {what}")),
        count => Some(format!("{count} {what}s")),
    };
    let sent = [counted(pictures, "picture"), counted(documents, "document")];
    let sent: Vec<String> = sent.into_iter().flatten().collect();
    (!sent.is_empty()).then(|| {
        let words = words.map_or_else(String::new, |words| {
            format!(" with \"{}\"", clipped(&one_line(words), MEDIA_WORDS))
        });
        format!("The user sent {}{words}.", sent.join(" and "))
    })
}

/// The characters of a call in a heading.
const HEADING: usize = 90;

/// The characters of the widest line that shows a call.
pub(super) const WIDEST: usize = 1_200;

/// A call on one line: the tool, then the value of its only argument or each argument with its name.
fn outline(tool: &str, mut arguments: Vec<&(String, String)>) -> String {
    arguments.retain(|(_, value)| !value.is_empty());
    // A path or a number says what a text is for, so it comes first.
    arguments.sort_by_key(|(name, value)| (!is_file(name), value.len() > 200));
    let line = match arguments.as_slice() {
        [(_, only)] => clipped_inside(&one_line(&plain(only)), WIDEST).into_owned(),
        many => {
            let parts = many.iter().map(|(name, value)| {
                let value = one_line(&plain(value)).into_owned();
                let value = clipped(&value, 240);
                if is_file(name) { value.into_owned() } else { format!("{name}={value}") }
            });
            parts.collect::<Vec<_>>().join(", ")
        }
    };
    format!("{tool}: {line}")
}

/// The last command of a call's command line, without what its output is piped to.
pub(super) fn last_command(outline: &str) -> &str {
    let input = outline.split_once(": ").map_or(outline, |(_, input)| input);
    let last = input.rsplit("&&").next().and_then(|it| it.rsplit("; ").next()).unwrap_or(input);
    last.split(" | ").next().unwrap_or(last).trim()
}

/// The program of this command.
fn program(outline: &str) -> &str {
    last_command(outline).split_whitespace().next().unwrap_or_default()
}

/// Whether an argument of this name says which file a call is about. It says something however often it
/// was that one.
fn is_file(name: &str) -> bool {
    let name = name.to_lowercase();
    name.contains("path") || name.contains("file")
}

/// Whether an argument of this name is a text that a call removes, as an editor gets it beside the new
/// one: what is gone must not be read as what is there.
fn is_removed(name: &str, arguments: &Arguments) -> bool {
    let new = name.to_lowercase().strip_prefix("old").map(|rest| format!("new{rest}"));
    new.is_some_and(|new| arguments.iter().any(|(other, _)| other.to_lowercase() == new))
}

/// The fields by name: another crate may switch on that `serde_json` keeps their order.
pub(super) fn sorted(fields: &serde_json::Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut fields: Vec<_> = fields.iter().collect();
    fields.sort_by_key(|(name, _)| *name);
    fields
}

fn value_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        // A shell that gets its command as the last of its arguments.
        Value::Array(items) => match items.as_slice() {
            [Value::String(shell), Value::String(flag), Value::String(command)]
                if shell.ends_with("sh") && flag.starts_with('-') =>
            {
                command.clone()
            }
            items => items.iter().map(value_text).collect::<Vec<_>>().join(" "),
        },
        Value::Object(fields) => {
            let texts = sorted(fields).into_iter().map(|(_, value)| value_text(value));
            texts.collect::<Vec<_>>().join(" ")
        }
        Value::Null => String::new(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

/// The line of a result that reports a failure, from its last lines or its first ones. What stands
/// in between is mostly the text of a file.
fn failure(text: &str) -> Option<String> {
    const NEAR: usize = 1_500;
    if let Some(why) = json_object(text).as_ref().and_then(json_failure) {
        return Some(why);
    }
    let from = boundary_before(text, text.len().saturating_sub(NEAR));
    let (tail, head) = (text.get(from..)?, text.get(..boundary_before(text, NEAR / 3).min(from))?);
    let found =
        [tail, head].into_iter().find_map(|part| first_failure(&plain(part)).map(first_line));
    found.filter(|line| !line.is_empty())
}

/// The line of a text that is known to tell of a failure which most likely says why: the first one, or
/// the last one of a trace or of a long output.
fn reason(text: &str) -> String {
    const LONG: usize = 8;
    if let Some(why) = json_object(text).as_ref().and_then(json_reason) {
        return first_line(&why);
    }
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let is_long = text.starts_with("Traceback") || lines.clone().count() > LONG;
    match lines.next_back().filter(|_| is_long) {
        Some(last) => one_line(&plain(last)).into_owned(),
        None => first_line(text),
    }
}

/// The fields of a text that is an object of JSON.
pub(super) fn json_object(text: &str) -> Option<serde_json::Map<String, Value>> {
    text.starts_with('{').then(|| serde_json::from_str(text).ok()).flatten()
}

/// What an object says of a failure: `{"ok": false, "reason": "…"}`, `{"error": "…"}`.
fn json_failure(fields: &serde_json::Map<String, Value>) -> Option<String> {
    const SIGNS: [(&str, Sign); 12] = [
        ("error", Sign::Any),
        ("errors", Sign::Any),
        ("ok", Sign::False),
        ("success", Sign::False),
        ("succeeded", Sign::False),
        ("is_error", Sign::Any),
        ("failed", Sign::Any),
        ("exit_code", Sign::Any),
        ("returncode", Sign::Any),
        ("status", Sign::Word),
        ("state", Sign::Word),
        ("result", Sign::Word),
    ];
    SIGNS.iter().any(|(name, sign)| fields.get(*name).is_some_and(|it| sign.is_in(it))).then(|| {
        let whole = || value_text(&Value::from(fields.clone()));
        first_line(&json_reason(fields).unwrap_or_else(whole))
    })
}

/// The value of a field by which an object reports a failure.
enum Sign {
    /// Anything but nothing, `false` and zero.
    Any,
    False,
    /// A word for a failure.
    Word,
}

impl Sign {
    fn is_in(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::Any, Value::Bool(is)) => *is,
            (Self::Any, Value::Number(number)) => number.as_i64().is_some_and(|it| it != 0),
            (Self::Any, value) => !value_text(value).trim().is_empty(),
            (Self::False, value) => *value == false,
            (Self::Word, value) => {
                value.as_str().is_some_and(|it| ["error", "failed", "failure"].contains(&it))
            }
        }
    }
}

/// The text in which an object says why something failed.
fn json_reason(fields: &serde_json::Map<String, Value>) -> Option<String> {
    const TOLD: [&str; 6] = ["error", "errors", "message", "reason", "detail", "stderr"];
    let told = TOLD.iter().filter_map(|name| fields.get(*name));
    let mut told = told.filter(|value| !value.is_boolean() && !value.is_number()).map(value_text);
    told.find(|text| !text.trim().is_empty())
}

/// The first line of a text, and the next one if the first announces it.
fn first_line(text: &str) -> String {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let first = lines.next().unwrap_or_default();
    let announces = first.trim_end().ends_with(':') || first.starts_with("Exit code ");
    match lines.next().filter(|_| announces) {
        Some(next) => one_line(&plain(&format!("{first} {next}"))).into_owned(),
        None => one_line(&plain(first)).into_owned(),
    }
}

/// A text of at most this many characters; what is left out is marked.
pub(super) fn clipped(line: &str, most: usize) -> Cow<'_, str> {
    match after(line, most) {
        None => Cow::Borrowed(line),
        Some(end) => {
            let head = line.get(..end).unwrap_or_default();
            Cow::Owned(format!("{}…", head.trim_end()))
        }
    }
}

/// A command of at most this many characters: its beginning, which names the program, and its end,
/// which mostly names the file.
pub(super) fn clipped_inside(line: &str, most: usize) -> Cow<'_, str> {
    if after(line, most).is_none() {
        return Cow::Borrowed(line);
    }
    let ending = most / 2;
    let from = line.char_indices().rev().take(ending).last().map_or(line.len(), |(at, _)| at);
    let head = line.get(..after(line, most - ending).unwrap_or_default()).unwrap_or_default();
    let tail = line.get(from..).unwrap_or_default();
    Cow::Owned(format!("{}…{}", head.trim_end(), tail.trim_start()))
}

/// The offset after this many characters; `None` if a text has no more than these.
pub(super) fn after(text: &str, characters: usize) -> Option<usize> {
    // No text has more characters than bytes, and most have as many.
    let ascii = text.get(..characters).filter(|_| text.len() > characters);
    match ascii.filter(|head| head.is_ascii()) {
        Some(head) => Some(head.len()),
        None if text.len() <= characters => None,
        None => text.char_indices().nth(characters).map(|(at, _)| at),
    }
}

/// Lines that at least a third of all results begin or end with, or a third of those of one tool.
fn usual_lines(sources: &[Source]) -> HashSet<String> {
    const LONGEST: usize = 1_000;
    const ENDS: usize = 4;
    let mut counts: HashMap<(&str, &str), usize> = HashMap::new();
    let mut all: HashMap<&str, usize> = HashMap::new();
    for source in sources.iter().filter(|source| source.kind == Kind::Result) {
        let text = &source.text;
        let (first, last) = (text.lines().take(ENDS), text.lines().rev().take(ENDS));
        let lines = first.chain(last).map(str::trim);
        let lines: HashSet<&str> =
            lines.filter(|line| !line.is_empty() && line.len() < LONGEST).collect();
        let call = source.call.and_then(|call| sources.get(call));
        let tool = call.and_then(|call| call.outline.split_once(": ")).map(|(tool, _)| tool);
        for group in std::iter::once("").chain(tool) {
            *all.entry(group).or_default() += 1;
            for line in &lines {
                *counts.entry((group, line)).or_default() += 1;
            }
        }
    }
    let of = |group| all.get(group).copied().unwrap_or_default();
    let usual =
        counts.into_iter().filter(|((group, _), count)| *count >= 4 && *count * 3 >= of(*group));
    usual.map(|((_, line), _)| line.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_found_under_the_colours_of_a_terminal() {
        let text = "running\n\u{1b}[31merror[E0308]\u{1b}[0m: `i32` wanted";
        assert_eq!(failure(text).as_deref(), Some("error[E0308]: `i32` wanted"));
        assert_eq!(failure("All is well."), None);
    }
}
