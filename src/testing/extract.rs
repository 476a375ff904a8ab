//! Taking the telling parts out of a thread, without a model.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use crate::{
    message::{ContentBlock, Message, Role},
    prose::{
        FactClass, Kind, Span, Speaker, one_line, paragraphs, passages_of, sentences, spans, tokens,
    },
};

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
        if let ContentBlock::Summary(summary) = block {
            self.earlier.push(summary.text.to_string());
            return;
        }
        let call = if let ContentBlock::ToolUse(call) = block { Some(call) } else { None };
        let tool = call.map(|call| call.name.to_lowercase()).unwrap_or_default();
        let writes = WRITING.iter().any(|word| tool.contains(word));
        let speaker = if role == Role::User { Speaker::User } else { Speaker::Assistant };
        passages_of(speaker, block, &mut |speaker, kind, text| {
            match (speaker, kind) {
                // What goes into a file is nothing that was said.
                (_, Kind::Output) if call.is_some() => return,
                (Speaker::User, Kind::Said) => self.read_request(text),
                (Speaker::Assistant, Kind::Said) => self.read_statements(text),
                (Speaker::User | Speaker::Assistant | Speaker::Tool, _) => {}
            }
            let written = writes && kind == Kind::Path;
            spans(speaker, kind, text, &mut |span| self.note(kind, written, span));
        });
    }

    fn read_request(&mut self, text: &str) {
        let paragraphs = paragraphs(text);
        let opening = paragraphs.iter().flat_map(|paragraph| sentences(paragraph)).take(2);
        self.requests.note(&opening.collect::<Vec<_>>().join(" "));
    }

    fn read_statements(&mut self, text: &str) {
        for paragraph in paragraphs(text) {
            self.sentences.extend(sentences(&paragraph).map(str::to_owned));
        }
        for word in words(text) {
            *self.words.entry(word).or_default() += 1;
        }
    }

    fn note(&mut self, kind: Kind, written: bool, span: Span<'_>) {
        match span.class {
            FactClass::Constraint => self.rules.note(span.text),
            FactClass::Command => self.commands.note(span.text),
            // A code stands in a line that is noted.
            FactClass::Error if span.text.contains(' ') => self.errors.note(span.text),
            FactClass::Path if kind != Kind::Output => {
                let order = self.files.len();
                let entry = self.files.entry(span.text.to_owned()).or_insert((0, false, order));
                entry.0 += 1;
                entry.1 |= written;
            }
            FactClass::Error
            | FactClass::Path
            | FactClass::Task
            | FactClass::Url
            | FactClass::Identifier
            | FactClass::Version
            | FactClass::Hash
            | FactClass::Number
            | FactClass::Quote
            | FactClass::Checkpoint => {}
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
        let text = one_line(text).into_owned();
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

/// The words that may say something, in lower case.
fn words(text: &str) -> impl Iterator<Item = String> {
    let words = tokens(text).map(|token| token.text);
    words.filter(|word| word.chars().count() > 3).map(str::to_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;

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
