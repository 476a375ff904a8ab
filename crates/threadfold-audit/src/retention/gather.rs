//! Collects the facts of messages, each once, with its speaker and positions.

use std::collections::{BTreeMap, HashMap};

use super::{options::AuditOptions, positions::Positions};
use crate::{
    message::Message,
    prose::{FactClass, Property, Span, Speaker, key, one_line, passages, spans},
};
use threadfold_core::retention::Fact;

/// The collected facts, by class and key.
#[derive(Clone, Debug, Default)]
pub(super) struct Gathered {
    pub(super) found: BTreeMap<FactClass, HashMap<String, Mention>>,
    /// The number of facts in `found`.
    facts: usize,
    /// For each task that is done, by key: the index of the last message that states this.
    pub(super) done: HashMap<String, usize>,
    /// How many mentions were skipped because they were too long.
    pub(super) too_long: usize,
    /// How many times a fact was dropped because there were too many.
    pub(super) dropped: usize,
}

/// The text of a fact, its speaker and its positions.
#[derive(Clone, Debug)]
pub(super) struct Mention {
    pub(super) text: String,
    pub(super) speaker: Speaker,
    pub(super) positions: Positions,
}

impl Gathered {
    /// Adds the facts of the message with this index.
    pub(super) fn read(&mut self, index: usize, message: &Message, options: &AuditOptions) {
        passages(message, &mut |speaker, kind, text| {
            spans(speaker, kind, text, &mut |span| self.note(index, &span, options));
        });
    }

    /// Adds a fact that was read before.
    pub(super) fn insert(&mut self, class: FactClass, key: String, mention: Mention) {
        let replaced = self.found.entry(class).or_default().insert(key, mention);
        self.facts += usize::from(replaced.is_none());
    }

    /// Whether there is a fact with this key.
    pub(super) fn contains(&self, class: FactClass, key: &str) -> bool {
        self.found.get(&class).is_some_and(|found| found.contains_key(key))
    }

    /// Returns the number of facts, or of finished tasks if these are more.
    pub(super) fn len(&self) -> usize {
        self.facts.max(self.done.len())
    }

    /// Returns the facts that an audit looks for, with class and key. Left out are tasks that a
    /// later message states as done, and facts that only tools stated, in fewer than
    /// `tool_mentions` messages.
    pub(super) fn relevant<'a>(
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
            open && !(class.is(Property::Abundant) && mention.speaker == Speaker::Tool && seldom)
        })
    }

    /// Keeps the `most` heaviest facts of a thread of this many messages, and the finished tasks that
    /// were stated last, about as many.
    pub(super) fn prune(&mut self, messages: usize, most: usize) {
        let mut stated: Vec<usize> = self.done.values().copied().collect();
        stated.sort_unstable_by(|one, other| other.cmp(one));
        if let Some(newer) = stated.get(most) {
            self.done.retain(|_, at| *at > *newer);
        }
        let found = std::mem::take(&mut self.found).into_iter();
        let all = found.flat_map(|(class, found)| {
            found.into_iter().map(move |(key, mention)| {
                let Mention { speaker, positions, .. } = &mention;
                let (count, last) = (positions.count(), positions.last());
                (Fact::weigh(*speaker, count, last, messages), class, key, mention)
            })
        });
        let mut all: Vec<_> = all.collect();
        // Break ties by class and key, so that the same thread always keeps the same facts.
        all.sort_unstable_by(|(one, class, key, _), (other, other_class, other_key, _)| {
            other.cmp(one).then_with(|| (class, key).cmp(&(other_class, other_key)))
        });
        self.dropped = self.dropped.saturating_add(all.len().saturating_sub(most));
        all.truncate(most);
        self.facts = all.len();
        for (_, class, key, mention) in all {
            self.found.entry(class).or_default().insert(key, mention);
        }
    }

    /// Adds a fact of the message with this index.
    pub(super) fn note(&mut self, index: usize, span: &Span<'_>, options: &AuditOptions) {
        let Span { class, text, speaker, is_done } = *span;
        if text.len() > options.max_fact_bytes {
            self.too_long = self.too_long.saturating_add(1);
            return;
        }
        let key = key(class, text);
        if key.is_empty() {
            return;
        }
        if is_done {
            self.done.insert(key.into_owned(), index);
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
