//! A search for facts in the thread after a compaction, which can report at any time.

use std::{
    borrow::Cow,
    cmp::Ordering,
    collections::{BTreeMap, HashSet, btree_map::Entry},
    sync::Arc,
};

use super::{
    files::Files,
    gather::{Gathered, Mention},
    index::{Phrases, Spelled},
    options::AuditOptions,
    positions::Positions,
};
use crate::{
    message::{Message, Role, Summary},
    prose::{FactClass, Kind, Speaker, passages, read_named, typed_items},
};
use threadfold_core::retention::{Fact, KeptShare, Retention};

/// Reads each text of a thread once, and reports which facts it has read so far. A clone is cheap.
#[derive(Clone, Debug)]
pub(super) struct Search<'a> {
    wanted: Arc<Wanted<'a>>,
    spelled: Spelled,
    phrases: Phrases,
}

/// What a search looks for.
#[derive(Debug)]
struct Wanted<'a> {
    /// The facts, the heaviest first. All spellings of a file are one fact.
    facts: Vec<Found<'a>>,
    files: Files<'a>,
    /// The number of facts that are not searched for, because there are too many.
    left_out: usize,
    too_long: usize,
}

/// A fact to look for.
#[derive(Clone, Debug)]
struct Found<'a> {
    class: FactClass,
    key: &'a str,
    text: &'a str,
    speaker: Speaker,
    positions: Cow<'a, Positions>,
    weight: u32,
    file: Option<usize>,
    /// Whether a message that stays states it; of a file, `Search::spelled` knows.
    stays: bool,
}

impl<'a> Search<'a> {
    /// Prepares a search for the facts of a thread of this many messages. Those of the messages with
    /// these indices stay, and are not looked for.
    pub(super) fn new(
        gathered: &'a Gathered,
        messages: usize,
        options: &'a AuditOptions,
        stay: &HashSet<usize>,
    ) -> Self {
        let all = gathered
            .relevant(options)
            .map(|(class, key, mention)| Found::of(class, key, mention, messages, stay));
        let (paths, mut facts): (Vec<_>, Vec<_>) =
            all.partition(|found| found.class == FactClass::Path);
        let files = Files::new(paths.iter().map(|path| path.key));
        let mut spelled = Spelled::default();
        for path in paths.iter().filter(|path| path.stays) {
            spelled.note(&files, path.class, path.key);
        }
        facts.extend(merged(paths, &files, messages));
        facts.sort_unstable_by(Found::heavier_first);
        let left_out = facts.len().saturating_sub(options.max_facts);
        facts.truncate(options.max_facts);
        let phrases = Phrases::new(facts.iter().map(Found::phrase));
        let (too_long, left_out) = (gathered.too_long, left_out.saturating_add(gathered.dropped));
        let wanted = Arc::new(Wanted { facts, files, left_out, too_long });
        Self { wanted, spelled, phrases }
    }

    /// Reads a message of the thread.
    pub(super) fn read(&mut self, message: &Message) {
        passages(message, &mut |_, kind, text| {
            self.spelled.read(&self.wanted.files, kind, text);
            self.phrases.read(text);
            if kind == Kind::Summary {
                // In the list of the user's words, the name of an author precedes the statement.
                typed_items(text).iter().for_each(|item| self.phrases.read(read_named(item).1));
            }
        });
    }

    /// Reads a summary or an addendum.
    pub(super) fn read_summary(&mut self, text: &str) {
        self.read(&Message::summary(Role::User, Summary::new(text)));
    }

    /// Returns which facts were read so far, and which are missing.
    pub(super) fn retention(&self) -> Retention {
        let Wanted { facts, left_out, too_long, .. } = &*self.wanted;
        let mut retention = Retention::default();
        (retention.left_out, retention.too_long) = (*left_out, *too_long);
        for (number, found) in facts.iter().enumerate() {
            let is_kept = self.was_read(number, found);
            let share = KeptShare::of(found.weight, is_kept);
            retention.overall.add(share);
            retention.classes.entry(found.class).or_default().add(share);
            if !is_kept {
                retention.missing.push(found.to_fact());
            }
        }
        retention
    }

    fn was_read(&self, number: usize, found: &Found<'_>) -> bool {
        let Found { class, key, file, stays, .. } = *found;
        stays || self.spelled.has(class, key, file) || self.phrases.was_read(number)
    }
}

/// Returns one fact for each file, under its longest spelling. Among spellings of equal length, the
/// one that sorts first wins.
fn merged<'a>(
    paths: Vec<Found<'a>>,
    files: &Files<'_>,
    messages: usize,
) -> impl Iterator<Item = Found<'a>> {
    let mut of_files: BTreeMap<Option<usize>, Found<'a>> = BTreeMap::new();
    for path in paths {
        let file = files.file(path.key);
        match of_files.entry(file) {
            Entry::Occupied(mut other) => other.get_mut().merge(&path, messages),
            Entry::Vacant(vacant) => {
                vacant.insert(Found { file, stays: false, ..path });
            }
        }
    }
    of_files.into_values()
}

impl<'a> Found<'a> {
    fn of(
        class: FactClass,
        key: &'a str,
        mention: &'a Mention,
        messages: usize,
        stay: &HashSet<usize>,
    ) -> Self {
        let Mention { text, speaker, positions } = mention;
        let weight = Fact::weigh(*speaker, positions.count(), positions.last(), messages);
        let (stays, positions) = (positions.any(stay), Cow::Borrowed(positions));
        Self { class, key, text, speaker: *speaker, positions, weight, file: None, stays }
    }

    /// Returns the class and the words to look for. A path or URL without a space has none, because
    /// [`Spelled`] finds it.
    fn phrase(&self) -> (FactClass, &'a str) {
        let is_word = matches!(self.class, FactClass::Url | FactClass::Path);
        let is_spelled = is_word && !self.text.contains(' ');
        (self.class, if is_spelled || self.stays { "" } else { self.text })
    }

    /// Merges another spelling of the same file.
    fn merge(&mut self, other: &Self, messages: usize) {
        self.speaker = self.speaker.max(other.speaker);
        self.positions.to_mut().merge(&other.positions);
        let (count, last) = (self.positions.count(), self.positions.last());
        self.weight = Fact::weigh(self.speaker, count, last, messages);
        if (other.key.len(), self.key) > (self.key.len(), other.key) {
            (self.key, self.text) = (other.key, other.text);
        }
    }

    fn heavier_first(one: &Self, other: &Self) -> Ordering {
        let by_weight = other.weight.cmp(&one.weight).then(one.class.cmp(&other.class));
        let by_position = by_weight.then(one.positions.first().cmp(&other.positions.first()));
        by_position.then_with(|| one.text.cmp(other.text))
    }

    fn to_fact(&self) -> Fact {
        let Self { class, text, weight, speaker, ref positions, .. } = *self;
        let positions = positions.clone().into_owned().into_kept();
        Fact::new(class, text.into(), weight, speaker, positions)
    }
}
