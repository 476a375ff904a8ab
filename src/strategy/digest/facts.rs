//! The contents of a digest.

use std::{
    cmp::Reverse,
    collections::{HashMap, HashSet},
};

use crate::message::steps;

/// The contents of a digest, in the order of the thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Facts {
    /// Number of messages that the digest replaces.
    pub(super) messages: usize,
    /// The first message that the user typed.
    pub(super) request: Quote,
    /// The beginnings of the user's later messages, in digests of earlier versions.
    pub(super) later: List<String>,
    /// Texts of earlier summaries other than digests.
    pub(super) earlier: Quote,
    /// Files named in tool inputs.
    pub(super) files: List<File>,
    /// Commands in tool inputs.
    pub(super) commands: List<Command>,
    /// First lines of failures.
    pub(super) errors: List<String>,
    /// The model's last text.
    pub(super) state: Quote,
}

/// A text or its beginning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Quote {
    pub(super) text: String,
    /// Number of bytes that are left out.
    pub(super) left_out: u64,
}

/// Items, and the number of those that are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct List<T> {
    pub(super) items: Vec<T>,
    pub(super) left_out: u64,
}

/// A file, and how often each tool got it as input, in order of first use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct File {
    pub(super) path: String,
    pub(super) tools: Vec<(String, u64)>,
}

/// A command, on one line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Command {
    pub(super) line: String,
    pub(super) failed: bool,
}

impl Facts {
    /// Adds the contents of a digest in the thread, which is older than the messages read later.
    pub(super) fn absorb(&mut self, older: Self) {
        self.messages = self.messages.saturating_add(older.messages);
        if self.request.text.is_empty() {
            self.request = older.request;
        }
        self.later.extend(older.later);
        self.earlier.join(older.earlier);
        self.files.extend(older.files);
        self.commands.extend(older.commands);
        self.errors.extend(older.errors);
        if !older.state.text.is_empty() {
            self.state = older.state;
        }
    }

    /// The first request if it is short enough to be quoted whole, else an empty text.
    pub(super) fn short_request(&self) -> &str {
        if self.request.text.len() < 1_000 { &self.request.text } else { "" }
    }

    /// Removes duplicates: the last mention of a line stays.
    pub(super) fn tidy(&mut self) {
        self.later.keep_last(String::as_str);
        self.errors.keep_last(String::as_str);
        self.commands.keep_last(|command| &command.line);
        self.files.merge();
    }
}

impl Quote {
    pub(super) fn whole(text: String) -> Self {
        Self { text, left_out: 0 }
    }

    /// Appends another text as a paragraph, unless it is the same.
    pub(super) fn join(&mut self, other: Self) {
        if other.text.is_empty() || self.text == other.text {
            return;
        }
        if !self.text.is_empty() {
            self.text.push_str("\n\n");
        }
        self.text.push_str(&other.text);
        self.left_out = self.left_out.saturating_add(other.left_out);
    }
}

impl<T> List<T> {
    /// Returns the list with a line for each item.
    pub(super) fn lines(&self, line: impl Fn(&T) -> String) -> List<String> {
        List { items: self.items.iter().map(line).collect(), left_out: self.left_out }
    }

    fn extend(&mut self, other: Self) {
        self.items.extend(other.items);
        self.left_out = self.left_out.saturating_add(other.left_out);
    }

    /// Removes later duplicates.
    fn keep_first(&mut self, key: impl Fn(&T) -> &str) {
        let mut seen = HashSet::new();
        self.items.retain(|item| seen.insert(key(item).to_owned()));
    }

    /// Removes earlier duplicates.
    fn keep_last(&mut self, key: impl Fn(&T) -> &str) {
        self.items.reverse();
        self.keep_first(key);
        self.items.reverse();
    }

    /// Keeps the last `count` items, and counts the others as left out.
    pub(super) fn keep_at_most(&mut self, count: usize) {
        let excess = self.items.len().saturating_sub(count);
        self.items.drain(..excess);
        self.left_out = self.left_out.saturating_add(excess as u64);
    }
}

impl List<File> {
    /// Merges files of one path. The most used come first; of equals, the last used.
    fn merge(&mut self) {
        let mut merged: HashMap<String, (usize, File)> = HashMap::new();
        for (order, File { path, tools }) in self.items.drain(..).enumerate() {
            let new = File { path: path.clone(), tools: Vec::new() };
            let (last_use, file) = merged.entry(path).or_insert((order, new));
            *last_use = order;
            // `add` also limits a first entry: a digest that a model wrote may name many tools.
            tools.into_iter().for_each(|(tool, count)| file.add(tool, count));
        }
        let mut merged: Vec<_> = merged.into_values().collect();
        merged.sort_by_key(|(last_use, file)| (Reverse(file.count()), Reverse(*last_use)));
        self.items = merged.into_iter().map(|(_, file)| file).collect();
    }
}

impl File {
    /// How often tools got it as input.
    pub(super) fn count(&self) -> u64 {
        self.tools.iter().map(|(_, count)| *count).fold(0, u64::saturating_add)
    }

    fn add(&mut self, tool: String, count: u64) {
        let same = self.tools.iter().position(|(name, _)| *steps::through(name) == tool);
        let last = (self.tools.len() >= TOOLS).then_some(TOOLS - 1);
        let is_last = self.tools.len() + 1 == TOOLS;
        match same.or(last).and_then(|index| self.tools.get_mut(index)) {
            Some((_, total)) => *total = total.saturating_add(count),
            None if is_last => self.tools.push((OTHERS.to_owned(), count)),
            None => self.tools.push((tool, count)),
        }
    }
}

/// Upper limit for the tools that a file lists.
const TOOLS: usize = 6;

/// Name of the last one, which counts all further tools.
const OTHERS: &str = "others";
