//! Extracts the contents of a digest from a thread, in one pass.

use std::collections::HashMap;

use super::{
    facts::{Command, Facts, File, Quote},
    read,
};
use crate::{
    ledger,
    prose::{
        FactClass, Kind, Span, Speaker, commands, first_failure, one_line, passages_of, plain,
        spans, without_typed,
    },
    strategy::{full_summary, kit::*},
};

/// Upper limit for the characters of a line.
const LINE: usize = 200;

/// Upper limit for the lines of one kind, whatever the budget.
const LINES: usize = 400;

/// Returns the contents of a digest of these messages. The user's text in messages for which
/// `stays` returns `true` is not extracted, because those messages stay beside the digest.
pub(super) fn gather(messages: &[Message], stays: impl Fn(usize) -> bool) -> Facts {
    let mut walk = Walk::default();
    // An earlier digest comes first, even if messages precede it: those were kept when the digest
    // was made, so they are newer than the messages that it replaced.
    for summary in messages.iter().flat_map(Message::summaries) {
        // Drop the list of rules after a digest: settling appends the current rules.
        let listless = without_typed(&ledger::without_titled(&summary.text));
        match read::read(&listless) {
            Some(older) => walk.facts.absorb(older),
            None => {
                let text = without_typed(&ledger::without_titled(&full_summary::text(summary)));
                walk.facts.earlier.join(Quote::whole(text.trim().to_owned()));
            }
        }
    }
    for (index, message) in messages.iter().enumerate() {
        walk.message(message, stays(index));
    }
    walk.finish()
}

#[derive(Default)]
struct Walk {
    facts: Facts,
    /// Calls of commands whose results have not been read yet: index of the command by call id.
    open: HashMap<Text, usize>,
    /// Commands in the model's texts, used if the agent calls no tools.
    in_text: Vec<Command>,
    /// How often the model wrote each text.
    texts: HashMap<Text, usize>,
}

impl Walk {
    fn message(&mut self, message: &Message, stays: bool) {
        let counts = usize::from(!message.is_summary() && !stays);
        self.facts.messages = self.facts.messages.saturating_add(counts);
        if message.is_typed() && !stays {
            self.typed_message(message);
        }
        for block in &message.content {
            if let ContentBlock::ToolUse(call) = block {
                self.call(call, block);
            } else if let ContentBlock::ToolResult(result) = block {
                self.result(result, block);
            } else if let ContentBlock::Text(block) = block
                && message.role == Role::Assistant
            {
                self.assistant_text(&block.text);
            }
        }
    }

    fn typed_message(&mut self, message: &Message) {
        let texts = message.texts();
        let texts: Vec<&str> =
            texts.map(|text| text.trim()).filter(|text| !text.is_empty()).collect();
        if self.facts.request.text.is_empty() {
            self.facts.request = Quote::whole(texts.join("\n\n"));
        }
    }

    fn assistant_text(&mut self, text: &Text) {
        if text.is_blank() {
            return;
        }
        let times = self.texts.entry(text.clone()).or_default();
        *times += 1;
        // A text that the model repeats says nothing about the state of the work.
        if *times < 3 {
            self.facts.state = Quote::whole(text.trim().to_owned());
        }
        commands(&plain(text), &mut |_, command| {
            self.in_text.push(Command { line: line(command, LINE), failed: false });
        });
    }

    fn call(&mut self, call: &ToolUse, block: &ContentBlock) {
        let tool = tool_name(&call.name);
        let before = self.facts.commands.items.len();
        passages_of(Speaker::Assistant, block, &mut |speaker, kind, text| {
            if kind != Kind::Output {
                spans(speaker, kind, text, &mut |span| self.input(&tool, text, span));
            }
        });
        let after = self.facts.commands.items.len();
        if after > before {
            self.open.insert(call.id.clone(), after - 1);
        } else {
            // Remove it: a later turn may reuse the id.
            self.open.remove(&call.id);
        }
    }

    /// Adds a file or a command that a tool got as input. `text` is the passage of the span.
    fn input(&mut self, tool: &str, text: &str, span: Span<'_>) {
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
            if failure.is_none() {
                failure = first_failure(text).map(|rest| line(first_lines(rest, 2), LINE));
            }
            first.get_or_insert_with(|| line(first_lines(text, 2), LINE));
        });
        let failed = failure.or(first.filter(|_| result.is_error));
        let command = self.open.remove(&result.tool_use_id);
        if let Some(command) = command.and_then(|index| self.facts.commands.items.get_mut(index)) {
            command.failed = result.is_error;
        }
        self.facts.errors.items.extend(failed.filter(|line| !line.is_empty()));
    }

    fn finish(self) -> Facts {
        let Self { mut facts, in_text, .. } = self;
        if facts.commands.items.is_empty() {
            facts.commands.items = in_text;
        }
        facts.tidy();
        for list in [&mut facts.later, &mut facts.errors] {
            list.keep_at_most(LINES);
        }
        facts.commands.keep_at_most(LINES);
        facts
    }
}

/// Returns a text on one line of at most this many characters.
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

/// Returns the first `count` lines of a text, from the first one that is not blank on.
fn first_lines(text: &str, count: usize) -> &str {
    let text = text.trim_start();
    let end = text.match_indices('\n').nth(count.saturating_sub(1)).map(|(at, _)| at);
    text.get(..steps::up_to(text, end).unwrap_or(text.len())).unwrap_or_default().trim_end()
}

/// The name of a tool, or `tool` if the model wrote something that is no name.
fn tool_name(name: &str) -> String {
    let is_valid = (1..=64).contains(&name.len())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c));
    if is_valid { name.to_owned() } else { "tool".to_owned() }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*, sample::select};

    use super::*;
    use crate::{
        message::{Json, Summary, steps},
        retention::{Fact, RetentionPolicy, Statements, audit},
        strategy::{digest::write, typed::Typed},
        tokens::ByteEstimate,
    };

    /// A text, with parts that a reader could take for a fact.
    fn any_text() -> impl Strategy<Value = String> {
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

    /// Rounds of a question, a call with a command and a path, its result, and an answer.
    fn thread() -> impl Strategy<Value = Vec<Message>> {
        let round = (any_text(), any_text(), any_text(), any_text(), any::<bool>());
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
        fn an_audit_finds_everything_that_a_digest_lists(thread in thread()) {
            let options = RetentionPolicy { tool_mentions: 1, ..RetentionPolicy::default() };
            let facts = gather(&thread, |_| false);
            let statements = Statements::of(&thread);
            let typed = Typed::all(statements.into());
            let text = write::write(&facts, &typed, u64::MAX, &ByteEstimate::new(1));
            let text = text.expect("room for all");
            let digest = Message::summary(Role::User, Summary::new(text.as_str()));
            let lost = audit(&thread, &[digest], &options).missing;
            for fact in &lost {
                prop_assert!(!lists(&facts, fact), "{fact:?} of:\n{text}");
            }
            // The reverse: an audit looks for everything that the digest lists.
            let all = audit(&thread, &[], &options).missing;
            let is_fact = |class: FactClass, listed: &str| {
                let listed = listed.trim_end_matches(" …");
                let texts = all.iter().filter(|fact| fact.class == class).map(|fact| &fact.text);
                texts.map(|text| line(text, usize::MAX)).any(|text| text.ends_with(listed))
            };
            for file in &facts.files.items {
                let name = file.path.trim_start_matches(['.', '/']);
                prop_assert!(is_fact(FactClass::Path, name), "{name}");
            }
            for command in &facts.commands.items {
                prop_assert!(is_fact(FactClass::Command, &command.line), "{}", command.line);
            }
        }
    }

    /// The contents of a summary in the form of a digest, and of one more message.
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
    fn counts_saturate_for_a_digest_with_the_largest_numbers() {
        let most = write::note(u64::MAX, "more");
        let facts = of_digest(&format!("## {}\n\n{most}{most}", write::LATER));
        assert_eq!((facts.messages, facts.later.left_out), (usize::MAX, u64::MAX));
    }

    #[test]
    fn merging_files_with_many_tools_takes_linear_work() {
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
