//! The facts of messages, each once, with who said it and where.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
};

use super::{
    chunk::Trust,
    class::FactClass,
    command, demand,
    fact::{Fact, Speaker},
    failure, link, number,
    options::AuditOptions,
    passage::{Kind, passages},
    path,
    positions::Positions,
    quote,
    scan::one_line,
    section,
    task::tasks,
    words::words,
};
use crate::message::{Message, steps};

/// What was found, by class and by what is compared.
#[derive(Clone, Debug, Default)]
pub(super) struct Gathered {
    found: BTreeMap<FactClass, HashMap<String, Mention>>,
    facts: usize,
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
    pub(super) positions: Positions,
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

    /// Forgets a fact.
    pub(super) fn remove(&mut self, class: FactClass, text: &str) {
        let found = self.found.get_mut(&class);
        if found.is_some_and(|found| found.remove(&*key(class, text)).is_some()) {
            self.facts = self.facts.saturating_sub(1);
        }
    }

    /// How many facts there are.
    pub(super) fn len(&self) -> usize {
        self.facts
    }

    /// The facts by class and key, but for tasks that were done later, and what only tools said too
    /// seldom.
    pub(super) fn tidy<'a>(
        &'a self,
        options: &'a AuditOptions,
    ) -> impl Iterator<Item = (FactClass, &'a str, &'a Mention)> {
        let all = self.found.iter().flat_map(|(class, found)| {
            found.iter().map(|(key, mention)| (*class, key.as_str(), mention))
        });
        all.filter(|(class, key, mention)| {
            let last = mention.positions.last();
            let open = *class != FactClass::Task || self.done.get(*key).is_none_or(|at| *at < last);
            let seldom = mention.positions.count() < options.tool_mentions;
            open && !(class.abounds() && mention.speaker == Speaker::Tool && seldom)
        })
    }

    /// Drops what weighs least in a thread of so many messages, but for so many facts.
    pub(super) fn prune(&mut self, messages: usize, most: usize) {
        if self.facts <= most {
            return;
        }
        let weight = |mention: &Mention| {
            let Mention { speaker, positions, .. } = mention;
            Fact::weigh(*speaker, positions.count(), positions.last(), messages)
        };
        let found = std::mem::take(&mut self.found).into_iter();
        let all = found.flat_map(|(class, found)| {
            found.into_iter().map(move |(key, mention)| (weight(&mention), class, key, mention))
        });
        let mut all: Vec<_> = all.collect();
        // Of the same weight, those that sort first stay, so that the same thread keeps the same.
        all.sort_unstable_by(|(one, class, key, _), (other, other_class, other_key, _)| {
            other.cmp(one).then_with(|| (class, key).cmp(&(other_class, other_key)))
        });
        self.dropped = self.dropped.saturating_add(all.len().saturating_sub(most));
        all.truncate(most);
        self.facts = all.len();
        for (_, class, key, mention) in all {
            self.found.entry(class).or_default().insert(key, mention);
        }
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
            self.done.insert(key(FactClass::Task, text).into_owned(), index);
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
        if text.len() > options.max_fact_bytes {
            self.too_long = self.too_long.saturating_add(1);
            return;
        }
        let key = key(class, text);
        if key.is_empty() {
            return;
        }
        let of_class = self.found.entry(class).or_default();
        if let Some(mention) = of_class.get_mut(&*key) {
            mention.speaker = mention.speaker.max(speaker);
            mention.positions.add(index);
        } else {
            let text = one_line(text).into_owned();
            let mention = Mention { text, speaker, positions: Positions::of(index) };
            of_class.insert(key.into_owned(), mention);
            self.facts += 1;
        }
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
    const WORD: &str = "heckpoint";
    // `contains` is many times faster than `match_indices`.
    let named = steps::through(text).contains(WORD).then_some(text);
    for (at, word) in named.iter().flat_map(|text| text.match_indices(WORD)) {
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
pub(super) fn key(class: FactClass, text: &str) -> Cow<'_, str> {
    match class {
        FactClass::Path => path::key(text),
        FactClass::Url => link::key(text).into(),
        FactClass::Version => text.trim_start_matches(['v', 'V']).into(),
        FactClass::Number if text.contains(char::is_whitespace) => {
            text.split_whitespace().collect()
        }
        FactClass::Number => text.into(),
        FactClass::Identifier | FactClass::Quote | FactClass::Checkpoint | FactClass::Command => {
            one_line(text)
        }
        FactClass::Constraint | FactClass::Task | FactClass::Error | FactClass::Hash => {
            one_line(text).to_lowercase().replace('\u{2019}', "'").into()
        }
    }
}
