//! Extracts the most informative parts of a thread, without a model.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
};

use crate::{
    message::{ContentBlock, Message, Role},
    prose::{
        FactClass, Kind, Span, Speaker, one_line, paragraphs, passages_of, sentences, spans, tokens,
    },
};

/// What was found in a thread. Each list is in the order of the thread and without duplicates.
#[derive(Default)]
pub(super) struct Findings {
    /// The first two sentences of each message of the user.
    pub(super) requests: Distinct,
    /// Sentences in which the user demands or forbids something, or states a preference.
    pub(super) rules: Distinct,
    /// Commands that tools ran.
    pub(super) commands: Distinct,
    /// Lines that report a failure.
    pub(super) errors: Distinct,
    /// Texts of earlier summaries.
    pub(super) earlier: Vec<String>,
    /// Of each path, the number of its mentions, whether a tool wrote it, and the rank of its first
    /// mention.
    files: BTreeMap<String, (usize, bool, usize)>,
    /// The model's sentences.
    sentences: Vec<String>,
    /// How often each of the model's words occurs.
    words: HashMap<String, usize>,
}

/// A tool whose name contains one of these words writes the paths in its input.
const WRITING: [&str; 6] = ["write", "edit", "create", "patch", "replace", "insert"];

impl Findings {
    /// Returns what is found in these messages.
    pub(super) fn of(messages: &[Message]) -> Self {
        let mut findings = Self::default();
        for message in messages {
            message.content.iter().for_each(|block| findings.read(message.role, block));
        }
        findings
    }

    /// Returns a line for each path: first the paths that a tool wrote, then the most mentioned.
    pub(super) fn files(&self) -> impl Iterator<Item = String> {
        let mut files: Vec<_> = self.files.iter().collect();
        files.sort_by_key(|(_, (count, written, order))| (!written, Reverse(*count), *order));
        files.into_iter().map(|(path, (count, written, _))| {
            format!("{path} ({}, {count}x)", if *written { "changed" } else { "seen" })
        })
    }

    /// Returns the 24 sentences of the model whose words are most common in the thread on average,
    /// in order. Skips short, very long and repeated ones.
    pub(super) fn statements(&self) -> Vec<String> {
        let mut scored: Vec<(usize, usize, &String)> = Vec::new();
        let mut seen = BTreeSet::new();
        for (order, sentence) in self.sentences.iter().enumerate() {
            let found: Vec<String> = words(sentence).collect();
            if found.len() < 5 || sentence.len() > 400 || !seen.insert(sentence) {
                continue;
            }
            let sum: usize = found.iter().filter_map(|word| self.words.get(word)).sum();
            // Later sentences weigh a little more: they describe the current state.
            let score = sum * 100 / found.len() + order * 50 / self.sentences.len().max(1);
            scored.push((score, order, sentence));
        }
        scored.sort_by_key(|(score, order, _)| (Reverse(*score), *order));
        scored.truncate(24);
        scored.sort_by_key(|(_, order, _)| *order);
        scored.into_iter().map(|(_, _, sentence)| sentence.clone()).collect()
    }

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
                // The content of a written file is not part of the conversation.
                (_, Kind::Output) if call.is_some() => return,
                (Speaker::User, Kind::Said) => self.read_request(text),
                (Speaker::Assistant, Kind::Said) => self.read_statements(text),
                (Speaker::User | Speaker::Assistant | Speaker::Tool, _) => {}
            }
            let written = writes && kind == Kind::Path;
            spans(speaker, kind, text, &mut |span| self.read_span(kind, written, span));
        });
    }

    fn read_request(&mut self, text: &str) {
        let paragraphs = paragraphs(text);
        let opening = paragraphs.iter().flat_map(|paragraph| sentences(paragraph)).take(2);
        self.requests.add(&opening.collect::<Vec<_>>().join(" "));
    }

    fn read_statements(&mut self, text: &str) {
        for paragraph in paragraphs(text) {
            self.sentences.extend(sentences(&paragraph).map(str::to_owned));
        }
        for word in words(text) {
            *self.words.entry(word).or_default() += 1;
        }
    }

    fn read_span(&mut self, kind: Kind, written: bool, span: Span<'_>) {
        match span.class {
            FactClass::Constraint => self.rules.add(span.text),
            FactClass::Command => self.commands.add(span.text),
            // A bare error code is part of a line that is added.
            FactClass::Error if span.text.contains(' ') => self.errors.add(span.text),
            FactClass::Path if kind != Kind::Output => {
                let order = self.files.len();
                let path = span.text.to_owned();
                let (count, was_written, _) = self.files.entry(path).or_insert((0, false, order));
                *count += 1;
                *was_written |= written;
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
}

/// A list without duplicates.
#[derive(Default)]
pub(super) struct Distinct {
    pub(super) items: Vec<String>,
    seen: HashSet<String>,
}

impl Distinct {
    /// Adds a text, on one line, unless it is blank or in the list.
    fn add(&mut self, text: &str) {
        let text = one_line(text).into_owned();
        if !text.is_empty() && self.seen.insert(text.clone()) {
            self.items.push(text);
        }
    }
}

/// The words of more than three characters, in lower case.
fn words(text: &str) -> impl Iterator<Item = String> {
    let words = tokens(text).map(|token| token.text);
    words.filter(|word| word.chars().count() > 3).map(str::to_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_commands_and_errors_are_found() {
        let findings = Findings::of(&[
            Message::user("Fix the parser. Never touch the lexer."),
            Message::assistant("Running it.\n```bash\ncargo test\n```"),
            Message::user("error[E0502]: cannot borrow"),
        ]);
        assert_eq!(findings.rules.items, ["Never touch the lexer."]);
        assert_eq!(findings.commands.items, ["cargo test"]);
        assert_eq!(findings.errors.items, ["error[E0502]: cannot borrow"]);
    }
}
