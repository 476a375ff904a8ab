//! Taking the telling parts out of a thread, without a model.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde_json::Value;

use crate::message::{ContentBlock, Message, Role, ToolUse, steps};

/// What was found in a thread, each list in the order of the thread and without repetitions.
#[derive(Debug, Default)]
pub(super) struct Facts {
    /// What the user typed: the first sentences of each message.
    pub(super) requests: Vec<String>,
    /// Sentences of the user that demand, forbid or prefer.
    pub(super) rules: Vec<String>,
    /// Paths, with how often they came up and whether a tool wrote them.
    pub(super) files: Vec<(String, usize, bool)>,
    /// Commands that tools ran.
    pub(super) commands: Vec<String>,
    /// Lines that speak of failure.
    pub(super) errors: Vec<String>,
    /// The sentences of the model that say most, by how common their words are in the thread.
    pub(super) statements: Vec<String>,
    /// Summaries of before.
    pub(super) earlier: Vec<String>,
}

const RULE_WORDS: [&str; 12] = [
    "must",
    "never",
    "always",
    "don't",
    "do not",
    "only",
    "please",
    "prefer",
    "should",
    "make sure",
    "avoid",
    "instead of",
];
const WRITING: [&str; 6] = ["write", "edit", "create", "patch", "replace", "insert"];

impl Facts {
    /// Returns what is found in these messages.
    pub(super) fn of(messages: &[Message]) -> Self {
        let mut gathered = Gathered::default();
        for message in messages {
            for block in &message.content {
                gathered.read(message.role, block);
            }
        }
        gathered.finish()
    }
}

#[derive(Default)]
struct Gathered {
    requests: Distinct,
    rules: Distinct,
    commands: Distinct,
    errors: Distinct,
    earlier: Vec<String>,
    files: BTreeMap<String, (usize, bool, usize)>,
    sentences: Vec<String>,
    words: HashMap<String, usize>,
}

impl Gathered {
    fn read(&mut self, role: Role, block: &ContentBlock) {
        if let ContentBlock::Text(block) = block {
            match role {
                Role::User => self.read_user(&block.text),
                Role::Assistant => self.read_model(&block.text),
                Role::System => {}
            }
        } else if let ContentBlock::ToolUse(call) = block {
            self.read_call(call);
        } else if let ContentBlock::ToolResult(result) = block {
            for text in result.content.iter().filter_map(ContentBlock::as_text) {
                self.read_output(text);
            }
        } else if let ContentBlock::Summary(summary) = block {
            self.earlier.push(summary.text.to_string());
        }
    }

    fn read_user(&mut self, text: &str) {
        let sentences: Vec<&str> = sentences(text).collect();
        let opening = sentences.iter().take(2).copied().collect::<Vec<_>>().join(" ");
        self.requests.note(&opening);
        for sentence in sentences {
            let lower = sentence.to_lowercase();
            if RULE_WORDS.iter().any(|word| lower.contains(word)) {
                self.rules.note(sentence);
            }
        }
        self.read_output(text);
        self.find_paths(text, false);
    }

    fn read_model(&mut self, text: &str) {
        self.find_paths(text, false);
        let mut fenced = false;
        for line in text.lines() {
            if line.trim_start().starts_with("```") {
                fenced = !fenced;
            } else if fenced {
                self.commands.note(line.trim());
            } else {
                self.sentences.extend(sentences(line).map(str::to_owned));
            }
        }
        for word in words(text) {
            *self.words.entry(word).or_default() += 1;
        }
    }

    fn read_call(&mut self, call: &ToolUse) {
        let writes = WRITING.iter().any(|word| call.name.to_lowercase().contains(word));
        let input = call.input.json().ok().and_then(|json| json.to_value().ok());
        let Some(Value::Object(fields)) = input else { return };
        for (key, value) in &fields {
            let Some(text) = value.as_str() else { continue };
            if matches!(key.as_str(), "command" | "cmd") {
                let line = text.lines().next().unwrap_or_default();
                self.commands.note(line);
            }
            if text.len() < 400 {
                self.find_paths(text, writes && key.contains("path"));
            }
        }
    }

    fn read_output(&mut self, text: &str) {
        for line in steps::through(text).lines().filter(|line| line.len() < 300 && is_error(line)) {
            self.errors.note(line.trim());
        }
    }

    fn find_paths(&mut self, text: &str, written: bool) {
        for word in
            steps::through(text).split(|c: char| c.is_whitespace() || "\"'`()[]{}<>,;=".contains(c))
        {
            let word = word.trim_end_matches(['.', ':', '!', '?']);
            if is_path(word) {
                let order = self.files.len();
                let entry = self.files.entry(word.to_owned()).or_insert((0, false, order));
                entry.0 += 1;
                entry.1 |= written;
            }
        }
    }

    fn finish(self) -> Facts {
        let mut files: Vec<_> = self.files.into_iter().collect();
        files.sort_by_key(|(_, (count, written, order))| (!written, usize::MAX - count, *order));
        let file = |(path, (count, written, _))| (path, count, written);
        Facts {
            requests: self.requests.items,
            rules: self.rules.items,
            files: files.into_iter().map(file).collect(),
            commands: self.commands.items,
            errors: self.errors.items,
            statements: telling(&self.sentences, &self.words),
            earlier: self.earlier,
        }
    }
}

/// A list without repetitions.
#[derive(Default)]
struct Distinct {
    items: Vec<String>,
    seen: HashSet<String>,
}

impl Distinct {
    /// Adds a text, on one line, unless it is blank or has been noted.
    fn note(&mut self, text: &str) {
        let text: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if !text.is_empty() && self.seen.insert(text.clone()) {
            self.items.push(text);
        }
    }
}

/// The sentences that say most, in order: by the mean commonness of their words, short ones and
/// repeated ones left out.
fn telling(sentences: &[String], words_of_thread: &HashMap<String, usize>) -> Vec<String> {
    let mut scored: Vec<(usize, usize, &String)> = Vec::new();
    let mut seen = BTreeSet::new();
    for (order, sentence) in sentences.iter().enumerate() {
        let found: Vec<String> = words(sentence).collect();
        if found.len() < 5 || sentence.len() > 400 || !seen.insert(sentence) {
            continue;
        }
        let common: usize =
            found.iter().map(|word| words_of_thread.get(word).copied().unwrap_or(0)).sum();
        // Later sentences weigh a little more: they are nearer to where the work stands.
        scored.push((
            common * 100 / found.len() + order * 50 / sentences.len().max(1),
            order,
            sentence,
        ));
    }
    scored.sort_by_key(|(score, order, _)| (usize::MAX - score, *order));
    scored.truncate(24);
    scored.sort_by_key(|(_, order, _)| *order);
    scored.into_iter().map(|(_, _, sentence)| sentence.clone()).collect()
}

fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let lines = steps::through(text).lines();
    let lines = lines.map(|line| line.trim_start_matches(['#', '-', '*', '>', ' ']));
    let parts = lines.flat_map(|line| line.split_inclusive(". "));
    parts.map(str::trim).filter(|sentence| sentence.chars().any(char::is_alphabetic))
}

fn words(text: &str) -> impl Iterator<Item = String> {
    let words = steps::through(text).split(|c: char| !c.is_alphanumeric() && c != '_');
    words.filter(|word| word.chars().count() > 3).map(str::to_lowercase)
}

/// Endings of files that come up without a folder.
const ENDINGS: [&str; 28] = [
    "c", "cfg", "conf", "cpp", "css", "go", "h", "html", "ini", "java", "js", "json", "lock",
    "log", "md", "patch", "py", "rb", "rs", "sh", "sql", "toml", "ts", "tsx", "txt", "xml", "yaml",
    "yml",
];

fn is_path(word: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@".contains(c);
    if !(3..200).contains(&word.len()) || word.contains("//") || !word.chars().all(plain) {
        return false;
    }
    let (folder, name) = word.rsplit_once('/').unwrap_or(("", word));
    let ending = name.rsplit_once('.').map(|(stem, ending)| (!stem.is_empty(), ending));
    let known = ending.is_some_and(|(stem, ending)| stem && ENDINGS.contains(&ending));
    // Without an ending, only what is deep below the root can be told from a division.
    let deep = word.starts_with('/') && !name.is_empty() && folder.matches('/').count() > 1;
    known || deep
}

/// Whether a line speaks of failure, and is not code that could.
fn is_error(line: &str) -> bool {
    // Tools number the lines that they show.
    let lower = line.trim_start_matches(|c: char| c.is_whitespace() || c.is_ascii_digit());
    let lower = lower.to_lowercase();
    let said = ["panicked at", "traceback (most recent", "exception:", "permission denied"];
    let code = ["=>", "->", "{", "=0", "$", "use "].iter().any(|sign| lower.contains(sign));
    let failed =
        lower.contains(" failed") && !lower.contains(" 0 failed") && !lower.contains(" 0 of");
    lower.starts_with("error") || said.iter().any(|word| lower.contains(word)) || (failed && !code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_told_from_words() {
        for path in ["src/lib.rs", "a.txt", "/usr/local/bin", "Cargo.toml", "./x/y.py"] {
            assert!(is_path(path), "{path}");
        }
        for word in [
            "e.g",
            "1.5",
            "end.",
            "self.len",
            "w.flush",
            "/",
            "a/b",
            "/x/",
            "1.0.2",
            "https://a.b/c.d",
        ] {
            assert!(!is_path(word), "{word}");
        }
    }

    #[test]
    fn rules_commands_and_errors_are_found() {
        let facts = Facts::of(&[
            Message::user("Fix the parser. Never touch the lexer."),
            Message::assistant("Running it.\n```bash\ncargo test\n```"),
            Message::user("error[E0502]: cannot borrow"),
        ]);
        assert_eq!(facts.rules, ["Never touch the lexer."]);
        assert_eq!(facts.commands, ["cargo test"]);
        assert_eq!(facts.errors, ["error[E0502]: cannot borrow"]);
    }
}
