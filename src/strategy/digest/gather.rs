//! Taking the facts out of a thread, in one walk.

use std::collections::HashMap;

use super::{
    facts::{Command, Facts, File, Quote},
    read,
};
use crate::{
    ledger,
    message::{ContentBlock, Message, Role, Summary, Text, ToolResult, ToolUse, steps},
    prose::{
        FactClass, Kind, Span, Speaker, first_failure, one_line, passages, passages_of, plain,
        spans,
    },
    strategy::whole,
};

/// How many characters of a line are kept.
const LINE: usize = 200;

/// How many characters of a rule are kept: as many bytes as an audit looks for.
const RULE: usize = 600;

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
        // What stays need not be told.
        if message.is_typed() && !stays {
            self.typed(message);
        }
        for block in &message.content {
            if let ContentBlock::ToolUse(call) = block {
                self.call(call, block);
            } else if let ContentBlock::ToolResult(result) = block {
                self.result(result, block);
            } else if let ContentBlock::Text(block) = block
                && message.role == Role::Assistant
            {
                self.said(&block.text);
            }
        }
    }

    fn typed(&mut self, message: &Message) {
        let rules = &mut self.facts.rules.items;
        let mut tell = |span: Span<'_>| {
            if span.class == FactClass::Constraint {
                rules.push(line(span.text, RULE));
            }
        };
        passages(message, &mut |speaker, kind, text| spans(speaker, kind, text, &mut tell));
        let texts = message.content.iter().filter_map(ContentBlock::as_text);
        let texts: Vec<&str> =
            texts.map(|text| text.trim()).filter(|text| !text.is_empty()).collect();
        if self.facts.request.text.is_empty() {
            self.facts.request = Quote::whole(texts.join("\n\n"));
        } else if let Some(text) = texts.into_iter().find(|text| !text.starts_with('<')) {
            // What begins with a tag was put together by a host, but the first message is the task.
            self.facts.later.items.push(line(text, LINE));
        }
    }

    fn said(&mut self, text: &Text) {
        if text.is_blank() {
            return;
        }
        self.facts.state = Quote::whole(text.trim().to_owned());
        let mut tell = |span: Span<'_>| {
            if span.class == FactClass::Command {
                self.written.push(Command { line: line(span.text, LINE), failed: false });
            }
        };
        spans(Speaker::Assistant, Kind::Said, &plain(text), &mut tell);
    }

    fn call(&mut self, call: &ToolUse, block: &ContentBlock) {
        let tool = tool_name(&call.name);
        let before = self.facts.commands.items.len();
        passages_of(Speaker::Assistant, block, &mut |speaker, kind, text| {
            if kind != Kind::Output {
                spans(speaker, kind, text, &mut |span| self.given(&tool, text, span));
            }
        });
        let after = self.facts.commands.items.len();
        if after > before {
            self.waiting.insert(call.id.clone(), after - 1);
        } else {
            // An id may come again.
            self.waiting.remove(&call.id);
        }
    }

    /// Takes a file or a command that a tool was given, which stands in this text.
    fn given(&mut self, tool: &str, text: &str, span: Span<'_>) {
        if span.class == FactClass::Path {
            let path = line(span.text, 2 * LINE);
            self.facts.files.items.push(File { path, tools: vec![(tool.to_owned(), 1)] });
        } else if span.class == FactClass::Command {
            let more = if span.text.len() < text.trim().len() { " …" } else { "" };
            let line = line(span.text, LINE) + more;
            self.facts.commands.items.push(Command { line, failed: false });
        }
    }

    fn result(&mut self, result: &ToolResult, block: &ContentBlock) {
        let (mut failure, mut first) = (None, None);
        passages_of(Speaker::Tool, block, &mut |_, _, text| {
            let found = || first_failure(text).map(|rest| line(first_lines(rest, 2), LINE));
            failure = failure.take().or_else(found);
            first.get_or_insert_with(|| line(first_lines(text, 2), LINE));
        });
        let failed = failure.or(first.filter(|_| result.is_error));
        let place = self.waiting.remove(&result.tool_use_id);
        let command = place.and_then(|place| self.facts.commands.items.get_mut(place));
        if let Some(command) = command {
            command.failed = result.is_error;
        }
        self.facts.errors.items.extend(failed.filter(|line| !line.is_empty()));
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

/// Returns a text on one line of at most so many characters.
fn line(text: &str, most: usize) -> String {
    let plain = plain(text);
    let words = one_line(&plain);
    let mut line: String = words.chars().take(most).collect();
    if line.len() < words.len() {
        line.truncate(line.trim_end().len());
        line.push('…');
    }
    line
}

/// Returns the first lines of a text that are not blank, from the first such line on.
fn first_lines(text: &str, count: usize) -> &str {
    let text = text.trim_start();
    let end = text.match_indices('\n').nth(count.saturating_sub(1)).map(|(at, _)| at);
    text.get(..steps::up_to(text, end).unwrap_or(text.len())).unwrap_or_default().trim_end()
}

/// The name of a tool, if it looks like one.
fn tool_name(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    let fits = (1..=64).contains(&name.len()) && name.chars().all(plain);
    if fits { name.to_owned() } else { "tool".to_owned() }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*, sample::select};

    use super::*;
    use crate::{
        message::{Json, steps},
        retention::{AuditOptions, Fact, audit},
        strategy::digest::write,
        tokens::ByteEstimate,
    };

    /// What somebody may say, among it what a reader could take for a fact.
    fn said() -> impl Strategy<Value = String> {
        let parts = select(vec![
            "Never touch the lexer.",
            "Always use `tabs`, please!",
            "You must keep \u{201c}both\u{201d} names.",
            "We don't know why.",
            "- Please don't push to main",
            "if (must) { return; }",
            "See src/a.rs:12, docs/guide.md and C:\\a\\b.txt.",
            "It is in `./src/a.rs`, a/b and application/json.",
            "error[E0502]: cannot borrow `x`",
            "FAILED tests/a.py::b",
            "ValueError: no such drawer",
            "\u{1b}[31mError: it broke\u{1b}[0m",
            "panicked at src/b.rs:3",
            "cargo test --all",
            "make",
            "cat src/c.rs | head",
            "echo `date`",
            "``a`` `b",
            "it cost $344, 12 ms and 40 %",
            "a\u{7}b \u{fc}ber \u{6f22}\u{5b57}",
            "```bash\ncargo build --release\n```",
        ]);
        let ends = select(vec![" ", "\n", "\n\n", ". "]);
        let part = prop_oneof![8 => parts.prop_map(str::to_owned), 1 => "\\PC{0,40}"];
        vec((part, ends), 1..6).prop_map(|parts| {
            parts.into_iter().flat_map(|(part, end)| [part, end.into()]).collect()
        })
    }

    /// A user who asks, a call with a command and a path, its result, and what the model says.
    fn thread() -> impl Strategy<Value = Vec<Message>> {
        let round = (said(), said(), said(), said(), any::<bool>());
        let round = round.prop_map(|(asked, command, output, answer, is_error)| {
            let input = serde_json::json!({ "command": command, "file_path": "src/d/e f.rs" });
            let call = ToolUse::new("t1", "Bash", Json::from(input));
            let mut result = ToolResult::text("t1", output);
            result.is_error = is_error;
            vec![
                Message::user(format!("Well. {asked}")),
                Message::new(Role::Assistant, vec![call.into()]),
                Message::new(Role::User, vec![result.into()]),
                Message::assistant(format!("So. {answer}")),
            ]
        });
        vec(round, 1..4).prop_map(|rounds| rounds.concat())
    }

    fn lists(facts: &Facts, fact: &Fact) -> bool {
        let shown = line(&fact.text, usize::MAX);
        match fact.class {
            FactClass::Constraint => facts.rules.items.contains(&shown),
            FactClass::Path => facts.files.items.iter().any(|file| file.path == shown),
            FactClass::Command => {
                let is_it = |it: &Command| it.line.trim_end_matches(" …") == shown;
                facts.commands.items.iter().any(is_it)
            }
            FactClass::Error => facts.errors.items.iter().any(|line| line.starts_with(&shown)),
            FactClass::Task
            | FactClass::Url
            | FactClass::Identifier
            | FactClass::Version
            | FactClass::Hash
            | FactClass::Number
            | FactClass::Quote
            | FactClass::Checkpoint => false,
        }
    }

    proptest! {
        #[test]
        fn what_a_digest_lists_no_audit_misses(thread in thread()) {
            let options = AuditOptions { tool_mentions: 1, ..AuditOptions::default() };
            let facts = gather(&thread, |_| false);
            let text = write::write(&facts, u64::MAX, &ByteEstimate::new(1)).expect("room for all");
            let digest = Message::summary(Role::User, Summary::new(text.as_str()));
            let lost = audit(&thread, &[digest], &options).missing;
            for fact in &lost {
                prop_assert!(!lists(&facts, fact), "{fact:?} of:\n{text}");
                prop_assert!(fact.class != FactClass::Constraint, "{fact:?} of:\n{text}");
            }
            // And it lists nothing that an audit would not look for.
            let all = audit(&thread, &[], &options).missing;
            let is_fact = |class: FactClass, listed: &str| {
                let listed = listed.trim_end_matches(" …");
                let texts = all.iter().filter(|fact| fact.class == class).map(|fact| &fact.text);
                texts.map(|text| line(text, usize::MAX)).any(|text| text.ends_with(listed))
            };
            for rule in &facts.rules.items {
                prop_assert!(is_fact(FactClass::Constraint, rule), "{rule}");
            }
            for file in &facts.files.items {
                let name = file.path.trim_start_matches(['.', '/']);
                prop_assert!(is_fact(FactClass::Path, name), "{name}");
            }
            for command in &facts.commands.items {
                prop_assert!(is_fact(FactClass::Command, &command.line), "{}", command.line);
            }
        }
    }

    /// The facts of a summary that a model wrote as a digest is written, and of one more message.
    fn of_digest(body: &str) -> Facts {
        let text = format!("{}\n\n{body}", write::opening(usize::MAX, true));
        let digest = Message::summary(Role::User, Summary::new(text));
        gather(&[digest, Message::assistant("Done.")], |_| false)
    }

    #[test]
    fn a_text_on_one_line_holds_no_control() {
        assert_eq!(line(" a\n\u{1b}[1;31mred\u{1b}[0m\t`b`\u{7}", 80), "a red `b`");
        assert_eq!(line("漢字 漢字", 4), "漢字 漢…");
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
