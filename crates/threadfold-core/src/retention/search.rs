//! A search for facts in the thread after a compaction, which can report at any time.

use std::{
    borrow::Cow,
    cmp::Ordering,
    collections::{BTreeMap, HashSet, btree_map::Entry},
};

use super::{
    fact::Fact,
    files::Files,
    gather::{Gathered, Mention},
    index::{Phrases, Spelled},
    options::AuditOptions,
    positions::Positions,
    report::{KeptShare, Retention},
    statements::Statements,
};
use crate::{
    message::{Message, Role, Summary},
    prose::{FactClass, Kind, Speaker, passages, typed_items, without_emphasis},
};

/// Reads each text of a thread once, and reports which facts it has read so far.
#[derive(Clone, Debug)]
pub(super) struct Search<'a> {
    /// All facts except paths, the heaviest first, at most `max_facts`.
    singles: Vec<Found<'a>>,
    /// How many facts were cut from `singles`.
    more: usize,
    /// The spellings of paths. Which of them are one file also depends on the paths that are read.
    paths: Vec<Found<'a>>,
    messages: usize,
    max_facts: usize,
    /// How many facts were dropped while the thread was read.
    dropped: usize,
    too_long: usize,
    spelled: Spelled,
    phrases: Phrases,
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
    /// The index of its phrase in [`Phrases`].
    phrase: usize,
    /// Whether the user's later text replaced it.
    is_replaced: bool,
}

impl<'a> Search<'a> {
    /// Prepares a search for the facts of a thread of this many messages.
    pub(super) fn new(gathered: &'a Gathered, messages: usize, options: &'a AuditOptions) -> Self {
        let all = gathered.relevant(options);
        let all = all.map(|(class, key, mention)| Found::of(class, key, mention, messages));
        let (mut paths, mut singles): (Vec<_>, Vec<_>) =
            all.partition(|found| found.class == FactClass::Path);
        singles.sort_unstable_by(Found::heavier_first);
        let max_facts = options.max_facts;
        // Paths added later only push entries down, so truncating here is safe.
        let more = singles.len().saturating_sub(max_facts);
        singles.truncate(max_facts);
        let phrases = phrases(singles.iter_mut().chain(&mut paths));
        let Gathered { dropped, too_long, .. } = *gathered;
        let spelled = Spelled::default();
        Self { singles, more, paths, messages, max_facts, dropped, too_long, spelled, phrases }
    }

    /// Returns a search that counts replaced values as stale if they are read, and not as missing
    /// otherwise.
    pub(super) fn with_typed(mut self, typed: &Statements) -> Self {
        for found in self.singles.iter_mut().chain(&mut self.paths) {
            found.is_replaced = typed.is_replaced(found.text);
        }
        self
    }

    /// Reads a message of the thread.
    pub(super) fn read(&mut self, message: &Message) {
        passages(message, &mut |_, kind, text| self.read_text(kind, text));
    }

    /// Reads a text of a message.
    pub(super) fn read_text(&mut self, kind: Kind, text: &str) {
        self.spelled.read(kind, text);
        self.phrases.read(text);
        if kind == Kind::Summary {
            // In the list of the user's words, a label is above its statements.
            typed_items(text).iter().for_each(|item| self.phrases.read(&item.text));
        }
    }

    /// Reads a summary or an addendum.
    pub(super) fn read_summary(&mut self, text: &str) {
        self.read(&Message::summary(Role::User, Summary::new(text)));
    }

    /// Returns which facts were read so far, and which are missing.
    pub(super) fn retention(&self) -> Retention {
        // The paths of the summary decide too which spellings are one file, so the files are known only
        // now.
        let keys = self.paths.iter().map(|path| path.key);
        let files = Files::new(keys.chain(self.spelled.paths.iter().map(String::as_str)));
        let mut found = self.singles.clone();
        found.extend(self.merged(&files));
        found.sort_by(Found::heavier_first);
        let left_out = found.len().saturating_sub(self.max_facts) + self.more;
        let left_out = left_out.saturating_add(self.dropped);
        found.truncate(self.max_facts);
        let kept_files = KeptFiles::new(&self.spelled, &files);
        let mut retention = Retention { left_out, too_long: self.too_long, ..Retention::default() };
        for found in found {
            let is_kept = self.was_read(&found, &kept_files);
            if found.is_replaced {
                retention.stale += u64::from(is_kept);
                continue;
            }
            let recall = KeptShare::of(found.weight, is_kept);
            retention.overall.add(recall);
            retention.classes.entry(found.class).or_default().add(recall);
            if !is_kept {
                retention.missing.push(found.into_fact());
            }
        }
        retention
    }

    fn was_read(&self, found: &Found<'_>, kept_files: &KeptFiles<'_>) -> bool {
        (found.class == FactClass::Path && kept_files.contains(found.key))
            || (found.class == FactClass::Url && self.spelled.urls.contains(found.key))
            || self.phrases.was_read(found.phrase)
    }

    /// Returns one fact for each file, under its longest spelling. Among spellings of equal length,
    /// the one that sorts first wins.
    fn merged(&self, files: &Files<'_>) -> impl Iterator<Item = Found<'a>> {
        let mut of_files: BTreeMap<Option<usize>, Found<'a>> = BTreeMap::new();
        for found in &self.paths {
            match of_files.entry(files.file(found.key)) {
                Entry::Occupied(mut other) => other.get_mut().merge(found, self.messages),
                Entry::Vacant(vacant) => {
                    vacant.insert(found.clone());
                }
            }
        }
        of_files.into_values()
    }
}

/// Numbers the phrases of these facts. The phrase of a path or URL without a space is empty,
/// because [`Spelled`] finds it.
fn phrases<'f, 'a: 'f>(facts: impl Iterator<Item = &'f mut Found<'a>>) -> Phrases {
    let mut all = Vec::new();
    for found in facts {
        let is_word = matches!(found.class, FactClass::Url | FactClass::Path);
        // A short list leaves out the label of a demand.
        let text = match found.class == FactClass::Constraint {
            true => without_emphasis(found.text),
            false if is_word && !found.text.contains(' ') => "",
            false => found.text,
        };
        found.phrase = all.len();
        all.push((found.class, text));
    }
    Phrases::new(all)
}

impl<'a> Found<'a> {
    fn of(class: FactClass, key: &'a str, mention: &'a Mention, messages: usize) -> Self {
        let Mention { text, speaker, positions } = mention;
        let weight = Fact::weigh(*speaker, positions.count(), positions.last(), messages);
        let positions = Cow::Borrowed(positions);
        let (phrase, is_replaced) = (0, false);
        Self { class, key, text, speaker: *speaker, positions, weight, phrase, is_replaced }
    }

    /// Merges another spelling of the same file.
    fn merge(&mut self, other: &Self, messages: usize) {
        self.speaker = self.speaker.max(other.speaker);
        self.positions.to_mut().merge(&other.positions);
        let (count, last) = (self.positions.count(), self.positions.last());
        self.weight = Fact::weigh(self.speaker, count, last, messages);
        if (other.key.len(), self.key) > (self.key.len(), other.key) {
            (self.key, self.text) = (other.key, other.text);
            (self.phrase, self.is_replaced) = (other.phrase, other.is_replaced);
        }
    }

    fn heavier_first(one: &Self, other: &Self) -> Ordering {
        let by_weight = other.weight.cmp(&one.weight).then(one.class.cmp(&other.class));
        let by_position = by_weight.then(one.positions.first().cmp(&other.positions.first()));
        by_position.then_with(|| one.text.cmp(other.text))
    }

    fn into_fact(self) -> Fact {
        let Self { class, text, weight, speaker, positions, .. } = self;
        let positions = positions.into_owned().into_kept();
        Fact { class, text: text.into(), weight, speaker, positions }
    }
}

/// The files whose paths were read.
struct KeptFiles<'f> {
    files: &'f Files<'f>,
    /// Files that were read with at least one folder.
    located: HashSet<usize>,
    /// Files that were read in any spelling.
    named: HashSet<usize>,
}

impl<'f> KeptFiles<'f> {
    fn new(spelled: &Spelled, files: &'f Files<'f>) -> Self {
        let (mut located, mut named) = (HashSet::new(), HashSet::new());
        for key in &spelled.paths {
            let file = files.file(key);
            named.extend(file);
            located.extend(file.filter(|_| key.contains('/')));
        }
        Self { files, located, named }
    }

    fn contains(&self, key: &str) -> bool {
        let kept = if key.contains('/') { &self.located } else { &self.named };
        self.files.file(key).is_some_and(|file| kept.contains(&file))
    }
}
