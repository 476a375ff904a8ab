//! Taking the facts out of a thread, in one walk.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::{
    facts::{Command, Facts, File, Quote},
    read, scan,
};
use crate::{
    ledger,
    message::{ContentBlock, Message, Role, Summary, Text, ToolResult, ToolUse},
    strategy::whole,
};

/// How many characters of a line are kept.
const LINE: usize = 200;

/// How many lines of one kind are kept before a budget is asked for.
const LINES: usize = 400;

/// Returns the facts of these messages. What the user typed in those that `stays` names is not
/// taken: the messages themselves are still there.
pub(super) fn gather(messages: &[Message], stays: impl Fn(usize) -> bool) -> Facts {
    let mut walk = Walk::default();
    // What a digest holds is older than all that stands beside it: what the user typed and stayed
    // before the digest came later than what the digest begins with.
    for summary in messages.iter().flat_map(|message| &message.content).filter_map(summary) {
        // Rules are put behind every digest anew, as they are then.
        match read::read(&ledger::without_titled(&summary.text)) {
            Some(older) => walk.facts.absorb(older),
            None => {
                let text = ledger::without_titled(&whole::text(summary));
                walk.facts.earlier.join(Quote::whole(text.trim().to_owned()));
            }
        }
    }
    for (index, message) in messages.iter().enumerate() {
        walk.message(message, stays(index));
    }
    walk.finish()
}

fn summary(block: &ContentBlock) -> Option<&Summary> {
    if let ContentBlock::Summary(summary) = block { Some(summary) } else { None }
}

#[derive(Default)]
struct Walk {
    facts: Facts,
    /// The calls that ran commands and are not answered yet, by id, and which commands.
    waiting: HashMap<Text, usize>,
    /// Commands in texts of the model, for agents that call no tools.
    written: Vec<Command>,
}

impl Walk {
    fn message(&mut self, message: &Message, stays: bool) {
        let summarises = message.content.iter().any(|block| summary(block).is_some());
        let counts = usize::from(!summarises && !stays);
        self.facts.messages = self.facts.messages.saturating_add(counts);
        let texts = || message.content.iter().filter_map(ContentBlock::as_text);
        match message.role {
            // What stays need not be told.
            Role::User if message.is_typed() && !stays => self.typed(texts()),
            Role::Assistant => texts().for_each(|text| self.said(text)),
            Role::User | Role::System => {}
        }
        for call in message.tool_uses() {
            self.call(call);
        }
        for result in message.tool_results() {
            self.result(result);
        }
    }

    fn typed<'t>(&mut self, texts: impl Iterator<Item = &'t Text>) {
        let texts: Vec<&str> =
            texts.map(|text| text.trim()).filter(|text| !text.is_empty()).collect();
        // What begins with a tag was put together by a host, but the first message is the task.
        let first = self.facts.request.text.is_empty();
        let by_hand = |text: &&str| !text.starts_with('<');
        for text in texts.iter().copied().filter(|text| first || by_hand(text)) {
            let rules = scan::rules(text).map(|rule| scan::one_line(rule, 2 * LINE));
            self.facts.rules.items.extend(rules);
        }
        if first {
            self.facts.request = Quote::whole(texts.join("\n\n"));
        } else if let Some(text) = texts.into_iter().find(by_hand) {
            self.facts.later.items.push(scan::one_line(text, LINE));
        }
    }

    fn said(&mut self, text: &Text) {
        if text.is_blank() {
            return;
        }
        self.facts.state = Quote::whole(text.trim().to_owned());
        let command = |text| Command { line: command_line(text), failed: false };
        self.written.extend(scan::shell_blocks(text).map(command));
    }

    fn call(&mut self, call: &ToolUse) {
        let input = call.input.json().ok().and_then(|json| json.to_value().ok());
        let before = self.facts.commands.items.len();
        if let Some(input) = input {
            self.value(&tool_name(&call.name), "", &input);
        }
        let after = self.facts.commands.items.len();
        if after > before {
            self.waiting.insert(call.id.clone(), after - 1);
        } else {
            // An id may come again.
            self.waiting.remove(&call.id);
        }
    }

    /// Walks through an input for whatever looks like a path or stands where commands do.
    fn value(&mut self, tool: &str, field: &str, value: &Value) {
        match value {
            Value::Object(fields) => self.object(tool, fields),
            Value::Array(values) => {
                values.iter().for_each(|value| self.value(tool, field, value));
            }
            Value::String(text) if scan::is_path_in(field, text.trim()) => {
                self.file(tool, text.trim());
            }
            Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn object(&mut self, tool: &str, fields: &Map<String, Value>) {
        let of_file = fields.iter().any(|(field, value)| {
            value.as_str().is_some_and(|value| scan::is_path_in(field, value.trim()))
        });
        for (field, value) in fields {
            let named = matches!(field.as_str(), "command" | "cmd" | "commands");
            // What stands beside a path is the verb of an editor, not a command of a shell.
            match command_text(value).filter(|_| named && !of_file) {
                Some(command) => self.command(tool, command),
                None => self.value(tool, field, value),
            }
        }
    }

    fn command(&mut self, tool: &str, command: &str) {
        for path in scan::paths_in(command) {
            self.file(tool, path);
        }
        let line = command_line(command);
        if !line.is_empty() {
            self.facts.commands.items.push(Command { line, failed: false });
        }
    }

    fn file(&mut self, tool: &str, path: &str) {
        let path = scan::one_line(path, 2 * LINE);
        self.facts.files.items.push(File { path, tools: vec![(tool.to_owned(), 1)] });
    }

    fn result(&mut self, result: &ToolResult) {
        let texts = || result.content.iter().filter_map(ContentBlock::as_text);
        let named = texts().find_map(|text| scan::failure(text));
        let first = texts().next().filter(|_| result.is_error);
        let failure = named.or(first.map(|text| scan::first_lines(text, 2)));
        let place = self.waiting.remove(&result.tool_use_id);
        let command = place.and_then(|place| self.facts.commands.items.get_mut(place));
        if let Some(command) = command {
            command.failed = result.is_error;
        }
        let line = failure.map(|failure| scan::one_line(failure, LINE)).unwrap_or_default();
        if !line.is_empty() {
            self.facts.errors.items.push(line);
        }
    }

    fn finish(self) -> Facts {
        let Self { mut facts, written, .. } = self;
        if facts.commands.items.is_empty() {
            facts.commands.items = written;
        }
        facts.tidy();
        for list in [&mut facts.later, &mut facts.rules, &mut facts.errors] {
            list.keep_at_most(LINES);
        }
        facts.commands.keep_at_most(LINES);
        facts
    }
}

/// The command in a value: a text, or the words of one.
fn command_text(value: &Value) -> Option<&str> {
    let words = value.as_array();
    // `["bash", "-lc", "ls"]` runs its last word.
    words.map_or(Some(value), |words| words.last())?.as_str()
}

/// The first line of a command, and a sign if there are more.
fn command_line(command: &str) -> String {
    let command = command.trim();
    let first = scan::first_lines(command, 1);
    let more = if first.len() < command.len() { " …" } else { "" };
    scan::one_line(first, LINE) + more
}

/// The name of a tool, if it looks like one.
fn tool_name(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    let fits = (1..=64).contains(&name.len()) && name.chars().all(plain);
    if fits { name.to_owned() } else { "tool".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{message::steps, strategy::digest::write};

    /// The facts of a summary that a model wrote as a digest is written, and of one more message.
    fn of_digest(body: &str) -> Facts {
        let text = format!("{}\n\n{body}", write::opening(usize::MAX, true));
        let digest = Message::summary(Role::User, Summary::new(text));
        gather(&[digest, Message::assistant("Done.")], |_| false)
    }

    #[test]
    fn a_digest_that_claims_all_that_can_be_counted_is_counted_no_further() {
        let most = write::note(u64::MAX, "more");
        let facts = of_digest(&format!("## {}\n\n{most}{most}", write::LATER));
        assert_eq!((facts.messages, facts.later.left_out), (usize::MAX, u64::MAX));
    }

    #[test]
    fn files_with_many_tools_are_put_together_in_work_that_grows_as_they_do() {
        let of = |count: usize| {
            let tools: Vec<String> = (0..count).map(|tool| format!("tool{tool} 1")).collect();
            let line = format!("- `/a.rs`: {}\n", tools.join(", "));
            let body = format!("## {}\n\n{line}{line}", write::FILES);
            let work = || assert_eq!(of_digest(&body).files.items.len(), 1);
            steps::steps(u64::MAX, work)
        };
        let (small, large) = (of(100), of(800));
        assert!(large <= small * 9, "{small} steps, then {large}");
    }
}
