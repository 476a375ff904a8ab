//! What is sent in place of a history.

use std::collections::HashMap;

use rig_core::message::{AssistantContent, Message, ToolName};
use threadfold::{Compactor, ContentBlock, Message as Ours, Usage};

use crate::convert;

/// What is sent in place of the first messages of one history, and how threadfold reads it.
#[derive(Clone, Debug, Default)]
pub(crate) struct View {
    /// The state of compactions: rules, facts, the ratio of estimated to reported tokens.
    pub(crate) compactor: Compactor,
    /// The messages of the view, as threadfold reads them.
    pub(crate) messages: Vec<Ours>,
    /// Where each of them comes from.
    entries: Vec<Entry>,
    /// The number of messages of the history that are read, and the last of them.
    read: usize,
    last: Option<Message>,
    /// The tool of each call.
    names: HashMap<String, ToolName>,
}

/// A message of a view.
#[derive(Clone, Debug)]
enum Entry {
    /// This message of the history, as it is.
    Kept(usize),
    /// A message that a compaction wrote or shortened.
    New(Message),
}

impl View {
    /// The view of a history of which nothing is read.
    pub(crate) fn new(compactor: Compactor) -> Self {
        Self { compactor, ..Self::default() }
    }

    /// Whether a history continues the one of this view.
    pub(crate) fn is_of(&self, history: &[Message]) -> bool {
        let last = self.read.checked_sub(1).and_then(|last| history.get(last));
        last.is_some() && last == self.last.as_ref()
    }

    /// The number of messages of the history that are read.
    pub(crate) fn read(&self) -> usize {
        self.read
    }

    /// Reads the messages that were added to the history. Takes the usage of answers among them from
    /// `reported`, so that the compactor learns how the provider counts.
    pub(crate) fn add(
        &mut self,
        history: &[Message],
        reported: &mut Vec<(Vec<AssistantContent>, Usage)>,
    ) {
        for (index, message) in history.iter().enumerate().skip(self.read) {
            self.names.extend(convert::names(message));
            let mut read = convert::read(message);
            if let Message::Assistant(answer) = message
                && let Some(at) = reported.iter().position(|(said, _)| *said == answer.content)
            {
                read.make_mut().usage = Some(reported.swap_remove(at).1);
            }
            self.messages.push(read);
            self.entries.push(Entry::Kept(index));
        }
        self.read = history.len();
        self.last = history.last().cloned();
    }

    /// Takes the messages that a compaction left of those of the view.
    pub(crate) fn replace(&mut self, messages: Vec<Ours>) {
        let mut old = self.messages.iter().zip(&self.entries);
        let mut entries = Vec::with_capacity(messages.len());
        let mut left = Vec::with_capacity(messages.len());
        for message in messages {
            let mut rest = old.clone();
            let entry = match rest.find(|(before, _)| is_same(before, &message)) {
                Some((_, entry)) => {
                    old = rest;
                    Some(entry.clone())
                }
                None => convert::write(&message, &self.names).map(Entry::New),
            };
            if let Some(entry) = entry {
                entries.push(entry);
                left.push(message);
            }
        }
        (self.messages, self.entries) = (left, entries);
    }

    /// The messages to send; `None` if they are the history itself.
    pub(crate) fn sent(&self, history: &[Message]) -> Option<Vec<Message>> {
        if self.entries.len() == history.len() {
            return None;
        }
        let messages = self.entries.iter().map(|entry| match entry {
            Entry::Kept(index) => history.get(*index).cloned(),
            Entry::New(message) => Some(message.clone()),
        });
        messages.collect()
    }
}

/// Whether two messages say the same. A compaction may add checkpoints, which are not sent.
fn is_same(one: &Ours, other: &Ours) -> bool {
    let blocks = |message: &'_ Ours| -> Vec<ContentBlock> {
        let said = message.content.iter().filter(|it| !matches!(it, ContentBlock::Checkpoint(_)));
        said.cloned().collect()
    };
    one.ptr_eq(other) || (one.role == other.role && blocks(one) == blocks(other))
}
