//! The facts of messages, each once, with who said it and where.

use std::collections::{BTreeMap, HashMap};

use super::{fact::Fact, options::AuditOptions, positions::Positions};
use crate::{
    message::Message,
    prose::{FactClass, Span, Speaker, key, one_line, passages, spans},
};

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
            spans(speaker, kind, text, &mut |span| self.note(index, &span, options));
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

    fn note(&mut self, index: usize, span: &Span<'_>, options: &AuditOptions) {
        let Span { class, text, speaker, is_done } = *span;
        if is_done {
            self.done.insert(key(class, text).into_owned(), index);
            return;
        }
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
