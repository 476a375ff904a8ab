//! What a digest holds.

use std::collections::{HashMap, HashSet};

use crate::message::steps;

/// What is taken out of a thread, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Facts {
    /// How many messages it stands for.
    pub(super) messages: usize,
    /// What the user typed first.
    pub(super) request: Quote,
    /// How later messages of the user begin.
    pub(super) later: List<String>,
    /// Sentences of the user that demand or forbid.
    pub(super) rules: List<String>,
    /// What other summaries said.
    pub(super) earlier: Quote,
    /// Files that tools were given.
    pub(super) files: List<File>,
    /// Commands that tools were given.
    pub(super) commands: List<Command>,
    /// What failed.
    pub(super) errors: List<String>,
    /// What the model said last.
    pub(super) state: Quote,
}

/// A text, or the beginning of one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Quote {
    pub(super) text: String,
    /// How many bytes of it are not here.
    pub(super) left_out: u64,
}

/// Items, and how many there were that are not here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct List<T> {
    pub(super) items: Vec<T>,
    pub(super) left_out: u64,
}

/// A file and the tools that were given it, in order of their first use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct File {
    pub(super) path: String,
    pub(super) tools: Vec<(String, u64)>,
}

/// A command, on one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Command {
    pub(super) line: String,
    pub(super) failed: bool,
}

impl<T> Default for List<T> {
    fn default() -> Self {
        Self { items: Vec::new(), left_out: 0 }
    }
}

impl Facts {
    /// Adds what another digest holds, which is older than everything that comes after.
    pub(super) fn absorb(&mut self, older: Self) {
        self.messages = self.messages.saturating_add(older.messages);
        if self.request.text.is_empty() {
            self.request = older.request;
        }
        self.later.extend(older.later);
        self.rules.extend(older.rules);
        self.earlier.join(older.earlier);
        self.files.extend(older.files);
        self.commands.extend(older.commands);
        self.errors.extend(older.errors);
        if !older.state.text.is_empty() {
            self.state = older.state;
        }
    }

    /// Puts together what came twice: of lines the last mention stays, of rules the first; a request
    /// that is nothing but a rule stands among these.
    pub(super) fn tidy(&mut self) {
        self.rules.keep_first(String::as_str);
        let rules: HashSet<&String> = self.rules.items.iter().collect();
        self.later.items.retain(|line| !rules.contains(line));
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

    /// Puts another text behind this one, unless it is here already.
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
    fn extend(&mut self, other: Self) {
        self.items.extend(other.items);
        self.left_out = self.left_out.saturating_add(other.left_out);
    }

    /// Drops items that came before.
    fn keep_first(&mut self, key: impl Fn(&T) -> &str) {
        let mut seen = HashSet::new();
        self.items.retain(|item| seen.insert(key(item).to_owned()));
    }

    /// Drops items that come again.
    fn keep_last(&mut self, key: impl Fn(&T) -> &str) {
        self.items.reverse();
        self.keep_first(key);
        self.items.reverse();
    }

    /// Keeps the last items, and counts the others.
    pub(super) fn keep_at_most(&mut self, count: usize) {
        let excess = self.items.len().saturating_sub(count);
        self.items.drain(..excess);
        self.left_out = self.left_out.saturating_add(excess as u64);
    }
}

impl List<File> {
    /// Makes one of files of one path; those used most come first, of others those used last.
    fn merge(&mut self) {
        let mut places: HashMap<String, usize> = HashMap::new();
        let mut merged: Vec<(usize, File)> = Vec::new();
        for (order, File { path, tools }) in std::mem::take(&mut self.items).into_iter().enumerate()
        {
            let place = *places.entry(path.clone()).or_insert(merged.len());
            if place == merged.len() {
                merged.push((order, File { path, tools: Vec::new() }));
            }
            if let Some((last, known)) = merged.get_mut(place) {
                *last = order;
                // Also of the first: a digest that a model wrote may name any number.
                tools.into_iter().for_each(|(tool, count)| known.add(tool, count));
            }
        }
        merged.sort_by_key(|(last, file)| (u64::MAX - file.count(), usize::MAX - last));
        self.items = merged.into_iter().map(|(_, file)| file).collect();
    }
}

impl File {
    /// How often it was given to tools.
    pub(super) fn count(&self) -> u64 {
        self.tools.iter().map(|(_, count)| *count).fold(0, u64::saturating_add)
    }

    fn add(&mut self, tool: String, count: u64) {
        let same = |(name, _): &(String, u64)| *steps::through(name) == tool;
        let known = self.tools.iter().position(same);
        // A handful of tools says enough; the others count as one.
        let last = (self.tools.len() >= TOOLS).then_some(TOOLS - 1);
        let opens_others = self.tools.len() + 1 == TOOLS;
        match known.or(last).and_then(|place| self.tools.get_mut(place)) {
            Some((_, known)) => *known = known.saturating_add(count),
            None if opens_others => self.tools.push((OTHERS.to_owned(), count)),
            None => self.tools.push((tool, count)),
        }
    }
}

/// How many tools a file names.
const TOOLS: usize = 6;

/// What the last of them is called.
const OTHERS: &str = "others";
