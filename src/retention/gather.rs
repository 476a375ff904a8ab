//! The facts of messages, each once, with who said it and where.

use std::collections::{BTreeSet, HashMap};

use super::{
    chunk::Trust,
    class::FactClass,
    command, demand,
    fact::{Fact, Speaker},
    failure, link, number,
    options::AuditOptions,
    passage::{Kind, passages},
    path, quote, section,
    task::tasks,
    words::words,
};
use crate::message::Message;

/// What was found, by class and by what is compared.
#[derive(Clone, Debug, Default)]
pub(super) struct Gathered {
    pub(super) found: HashMap<(FactClass, String), Mention>,
    /// Tasks that are done, and the last message that says so.
    done: HashMap<String, usize>,
    /// How many facts were too long.
    pub(super) too_long: usize,
    /// How many facts were dropped, because there were too many.
    pub(super) dropped: usize,
}

/// Where a fact was said.
#[derive(Clone, Debug)]
pub(super) struct Mention {
    pub(super) text: String,
    pub(super) speaker: Speaker,
    pub(super) positions: BTreeSet<usize>,
}

impl Gathered {
    /// Reads a message.
    pub(super) fn read(&mut self, index: usize, message: &Message, options: &AuditOptions) {
        passages(message, &mut |speaker, kind, text| {
            let mut note = |class: FactClass, text: &str| {
                let looks = class == FactClass::Command && command::only_looks(text);
                let speaker = if looks { Speaker::Tool } else { speaker };
                self.note(index, speaker, class, text, options);
            };
            match kind {
                Kind::Said => said(speaker, text, &mut note),
                Kind::Output => output(text, &mut note),
                Kind::Value => words(text, Trust::Prose, &mut note),
                Kind::Path => path::named(text, &mut note),
                Kind::Command => {
                    command::given(text, &mut note);
                    words(text, Trust::Little, &mut note);
                }
                Kind::Summary => {
                    said(Speaker::Assistant, text, &mut note);
                    for rule in section::constraints(text) {
                        self.note(index, Speaker::User, FactClass::Constraint, rule, options);
                    }
                }
                Kind::Task { done } => self.note_task(index, speaker, text, done, options),
                Kind::Mark => {}
            }
            if matches!(kind, Kind::Said | Kind::Output | Kind::Summary) {
                for task in tasks(text) {
                    self.note_task(index, speaker, task.text, task.done, options);
                }
            }
        });
    }

    /// Leaves out tasks that were done later, and what only tools said too seldom.
    pub(super) fn tidy(&mut self, options: &AuditOptions) {
        let done = std::mem::take(&mut self.done);
        self.found.retain(|(class, key), mention| {
            let last = mention.positions.last().copied().unwrap_or_default();
            let open = *class != FactClass::Task || done.get(key).is_none_or(|at| *at < last);
            let seldom = mention.positions.len() < options.tool_mentions;
            open && !(class.abounds() && mention.speaker == Speaker::Tool && seldom)
        });
    }

    /// Drops what weighs least in a thread of so many messages, but for so many facts.
    pub(super) fn prune(&mut self, messages: usize, most: usize) {
        if self.found.len() <= most {
            return;
        }
        let weight = |mention: &Mention| {
            let last = mention.positions.last().copied().unwrap_or_default();
            Fact::weigh(mention.speaker, mention.positions.len(), last, messages)
        };
        let mut all: Vec<_> = std::mem::take(&mut self.found).into_iter().collect();
        // Of the same weight, those that sort first stay, so that the same thread keeps the same.
        all.sort_by(|(key, one), (other_key, other)| {
            weight(other).cmp(&weight(one)).then_with(|| key.cmp(other_key))
        });
        self.dropped = self.dropped.saturating_add(all.len().saturating_sub(most));
        all.truncate(most);
        self.found = all.into_iter().collect();
        if self.done.len() > most {
            self.done.clear();
        }
    }

    fn note_task(
        &mut self,
        index: usize,
        speaker: Speaker,
        text: &str,
        done: bool,
        options: &AuditOptions,
    ) {
        if done {
            self.done.insert(key(FactClass::Task, text), index);
        } else {
            self.note(index, speaker, FactClass::Task, text, options);
        }
    }

    fn note(
        &mut self,
        index: usize,
        speaker: Speaker,
        class: FactClass,
        text: &str,
        options: &AuditOptions,
    ) {
        if text.len() > options.longest_fact {
            self.too_long = self.too_long.saturating_add(1);
            return;
        }
        let key = key(class, text);
        if key.is_empty() {
            return;
        }
        let fresh = || Mention { text: one_line(text), speaker, positions: BTreeSet::new() };
        let mention = self.found.entry((class, key)).or_insert_with(fresh);
        mention.speaker = mention.speaker.max(speaker);
        mention.positions.insert(index);
    }
}

fn said(speaker: Speaker, text: &str, note: &mut dyn FnMut(FactClass, &str)) {
    words(text, Trust::Prose, note);
    number::numbers(text, note);
    command::commands(text, note);
    failure::failures(text, note);
    quote::quotes(text, note);
    checkpoints(text, note);
    if speaker == Speaker::User {
        demand::demands(text, note);
    }
}

/// Quoted texts are left out: in code and data everything is quoted.
fn output(text: &str, note: &mut dyn FnMut(FactClass, &str)) {
    words(text, Trust::Little, note);
    number::numbers(text, note);
    failure::failures(text, note);
}

/// `checkpoint a1b2c3`, `<checkpoint:a1b2c3>`.
fn checkpoints(text: &str, note: &mut dyn FnMut(FactClass, &str)) {
    for (at, word) in text.match_indices("heckpoint") {
        let rest = text.get(at + word.len()..).unwrap_or_default();
        let name = rest.trim_start_matches([' ', ':', '`', '"']);
        let name = name.get(..6).filter(|_| rest.len() - name.len() < 4);
        let ends = |c: char| !c.is_alphanumeric();
        let whole = rest.len() - rest.trim_start_matches([' ', ':', '`', '"']).len() + 6;
        let next = rest.get(whole..).and_then(|rest| rest.chars().next());
        let told = name.filter(|name| name.bytes().any(|b| b.is_ascii_digit()));
        if let Some(name) = told.filter(|name| {
            name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
                && next.is_none_or(ends)
        }) {
            note(FactClass::Checkpoint, name);
        }
    }
}

/// A fact as it is compared with others of its class.
pub(super) fn key(class: FactClass, text: &str) -> String {
    match class {
        FactClass::Path => path::key(text),
        FactClass::Url => link::key(text),
        FactClass::Version => text.trim_start_matches(['v', 'V']).to_owned(),
        FactClass::Number => text.split_whitespace().collect(),
        FactClass::Identifier | FactClass::Quote | FactClass::Checkpoint | FactClass::Command => {
            one_line(text)
        }
        FactClass::Constraint | FactClass::Task | FactClass::Error | FactClass::Hash => {
            one_line(text).to_lowercase().replace('\u{2019}', "'")
        }
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
