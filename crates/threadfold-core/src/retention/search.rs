//! A search for facts in what stands after a compaction, which can be asked at any time.

use std::{
    borrow::Cow,
    cmp::Ordering,
    collections::{BTreeMap, HashSet},
};

use super::{
    fact::Fact,
    files::Files,
    gather::{Gathered, Mention},
    index::{Phrases, Spelled},
    options::AuditOptions,
    positions::Positions,
    report::{Recall, Retention},
};
use crate::{
    message::{Message, Role, Summary},
    prose::{FactClass, Speaker, passages},
};

/// Reads what stands, each text once, and says what of the facts was in it so far.
#[derive(Debug)]
pub(super) struct Search<'a> {
    /// All but paths, the heaviest first, and no more than are asked for.
    singles: Vec<Found<'a>>,
    /// How many more there are.
    more: usize,
    paths: Vec<Spelling<'a>>,
    messages: usize,
    most: usize,
    /// How many facts were dropped before, and how many were too long.
    lost: (usize, usize),
    spelled: Spelled,
    phrases: Phrases,
}

/// A fact, and by what it is looked for.
#[derive(Clone, Debug)]
struct Found<'a> {
    class: FactClass,
    key: &'a str,
    text: &'a str,
    speaker: Speaker,
    positions: Cow<'a, Positions>,
    weight: u32,
    /// The number of its phrase.
    phrase: usize,
}

/// A spelling of a path. Which of them are one file depends on what is read.
#[derive(Debug)]
struct Spelling<'a> {
    key: &'a str,
    mention: &'a Mention,
    phrase: usize,
}

impl<'a> Search<'a> {
    /// Makes ready to look for the facts of a thread of so many messages.
    pub(super) fn new(gathered: &'a Gathered, messages: usize, options: &'a AuditOptions) -> Self {
        let (mut singles, mut paths) = (Vec::new(), Vec::new());
        for (class, key, mention) in gathered.tidy(options) {
            if class == FactClass::Path {
                paths.push(Spelling { key, mention, phrase: 0 });
            } else {
                singles.push(Found::of(class, key, mention, messages));
            }
        }
        singles.sort_unstable_by(Found::heavier_first);
        // However paths are put together, nothing behind so many can be among the first so many.
        let more = singles.len().saturating_sub(options.max_facts);
        singles.truncate(options.max_facts);
        let phrases = phrases(&mut singles, &mut paths);
        let (spelled, most) = (Spelled::default(), options.max_facts);
        let lost = (gathered.dropped, gathered.too_long);
        Self { singles, more, paths, messages, most, lost, spelled, phrases }
    }

    /// Reads a message.
    pub(super) fn read(&mut self, message: &Message) {
        let Self { spelled, phrases, .. } = self;
        passages(message, &mut |_, kind, text| {
            spelled.read(kind, text);
            phrases.read(text);
        });
    }

    /// Reads a summary, or what is added to one.
    pub(super) fn read_summary(&mut self, text: &str) {
        self.read(&Message::summary(Role::User, Summary::new(text)));
    }

    /// Returns what stands in what was read so far, and what is missing.
    pub(super) fn retention(&self) -> Retention {
        let keys = self.paths.iter().map(|path| path.key);
        let files = Files::new(keys.chain(self.spelled.paths.iter().map(String::as_str)));
        let mut found = self.singles.clone();
        found.extend(self.merged(&files));
        found.sort_by(Found::heavier_first);
        let left_out = found.len().saturating_sub(self.most) + self.more;
        found.truncate(self.most);
        let standing = Standing::new(self, &files);
        let (lost, too_long) = self.lost;
        let left_out = left_out.saturating_add(lost);
        let mut retention = Retention { left_out, too_long, ..Retention::default() };
        for found in found {
            let stands = standing.has(&found);
            let recall = Recall::of(found.weight, stands);
            retention.overall.add(recall);
            retention.classes.entry(found.class).or_default().add(recall);
            if !stands {
                retention.missing.push(found.into_fact());
            }
        }
        retention
    }

    /// One fact for each file, however it was spelled: under the longest spelling, and of two as
    /// long the one that sorts first.
    fn merged(&self, files: &Files<'_>) -> impl Iterator<Item = Found<'a>> {
        let mut of_files: BTreeMap<Option<usize>, Found<'a>> = BTreeMap::new();
        for Spelling { key, mention, phrase } in &self.paths {
            let mut found = Found::of(FactClass::Path, key, mention, self.messages);
            found.phrase = *phrase;
            match of_files.get_mut(&files.file(key)) {
                Some(known) => known.merge(found, self.messages),
                None => {
                    of_files.insert(files.file(key), found);
                }
            }
        }
        of_files.into_values()
    }
}

/// Numbers the phrases of these. Paths and addresses without a space are found by their spelling.
fn phrases(singles: &mut [Found<'_>], paths: &mut [Spelling<'_>]) -> Phrases {
    let (mut all, mut numbers) = (Vec::new(), 0..);
    for found in singles {
        let is_word = found.class == FactClass::Url && !found.text.contains(' ');
        found.phrase = numbers.next().unwrap_or(usize::MAX);
        all.push((found.class, if is_word { "" } else { found.text }));
    }
    for path in paths {
        let text = path.mention.text.as_str();
        path.phrase = numbers.next().unwrap_or(usize::MAX);
        all.push((FactClass::Path, if text.contains(' ') { text } else { "" }));
    }
    Phrases::new(all)
}

impl<'a> Found<'a> {
    fn of(class: FactClass, key: &'a str, mention: &'a Mention, messages: usize) -> Self {
        let Mention { text, speaker, positions } = mention;
        let weight = Fact::weigh(*speaker, positions.count(), positions.last(), messages);
        let positions = Cow::Borrowed(positions);
        Self { class, key, text, speaker: *speaker, positions, weight, phrase: 0 }
    }

    /// Takes in another spelling.
    fn merge(&mut self, other: Self, messages: usize) {
        self.speaker = self.speaker.max(other.speaker);
        self.positions.to_mut().merge(&other.positions);
        let (count, last) = (self.positions.count(), self.positions.last());
        self.weight = Fact::weigh(self.speaker, count, last, messages);
        if (other.key.len(), self.key) > (self.key.len(), other.key) {
            (self.key, self.text, self.phrase) = (other.key, other.text, other.phrase);
        }
    }

    fn heavier_first(one: &Self, other: &Self) -> Ordering {
        let order = |found: &Self| (u32::MAX - found.weight, found.class, found.positions.first());
        order(one).cmp(&order(other)).then_with(|| one.text.cmp(other.text))
    }

    fn into_fact(self) -> Fact {
        let Self { class, text, weight, speaker, positions, .. } = self;
        let positions = positions.into_owned().into_kept();
        Fact { class, text: text.into(), weight, speaker, positions }
    }
}

/// What was read, by files.
struct Standing<'s> {
    search: &'s Search<'s>,
    files: &'s Files<'s>,
    /// Files of which more than the name was read.
    located: HashSet<usize>,
    named: HashSet<usize>,
}

impl<'s> Standing<'s> {
    fn new(search: &'s Search<'s>, files: &'s Files<'s>) -> Self {
        let file = |key: &String| files.file(key);
        let paths = &search.spelled.paths;
        let located = paths.iter().filter(|key| key.contains('/')).filter_map(file).collect();
        let named = paths.iter().filter_map(file).collect();
        Self { search, files, located, named }
    }

    fn has(&self, found: &Found<'_>) -> bool {
        let on = |files: &HashSet<usize>| {
            self.files.file(found.key).is_some_and(|file| files.contains(&file))
        };
        let bare = !found.key.contains('/');
        let path =
            found.class == FactClass::Path && (on(&self.located) || (bare && on(&self.named)));
        let url = found.class == FactClass::Url && self.search.spelled.urls.contains(found.key);
        path || url || self.search.phrases.was_read(found.phrase)
    }
}
