//! Chooses needed facts: names that the rest of the compacted thread lacks, each with the line that
//! it stands in.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap, HashMap},
    ops::Range,
};

use super::{
    earlier::MARKS,
    thread_texts::{Kind, NameSet, Named, Source, ThreadTexts},
    weights::{Features, value},
};
use crate::{
    message::{boundary_before, fnv1a},
    prose::{one_line, plain},
    tokens::TokenCounter,
};

/// The characters of a line on each side of a name, if the line is longer.
const AROUND: usize = 80;

/// What a number with a separator is worth beside a name of the same features: there are many.
const FIGURE: f64 = 0.5;

/// Whether a name is a number with a separator.
fn is_figure(name: &str) -> bool {
    name.contains(['.', ',']) && name.bytes().all(|it| matches!(it, b'0'..=b'9' | b'.' | b','))
}

/// A name, what is known of it, and where it stands best.
struct Found {
    features: Features,
    /// The source and the offset of the name in it.
    at: (usize, usize),
    /// The last source that counted for it, so that a text counts once.
    counted: usize,
    /// Whether it stands anywhere but in what the user typed.
    is_shown: bool,
}

/// The lines before a cut that may be needed. They depend on nothing that a text shows, so they are
/// found once for all texts with this cut.
#[derive(Debug)]
pub(super) struct Needed {
    cut: usize,
    /// For each name, how likely it is needed; 0 if only the user typed it.
    values: Vec<f64>,
    /// For each name, its line.
    line_of: Vec<Option<usize>>,
    lines: Vec<Line>,
    names: Vec<usize>,
}

/// A line that may be needed.
#[derive(Debug)]
struct Line {
    place: Place,
    /// The range of its distinct names in [`Needed::names`].
    names: Range<usize>,
    /// The same for lines that differ in their words alone, as the rows of a table do.
    form: u64,
}

impl Needed {
    pub(super) fn of(past: &ThreadTexts, cut: usize) -> Self {
        let sources = past.before(cut);
        let found = found(past, sources);
        let mut needed = Self {
            cut,
            values: vec![0.0; found.len()],
            line_of: vec![None; found.len()],
            lines: Vec::new(),
            names: Vec::new(),
        };
        let mut known: HashMap<Place, usize> = HashMap::new();
        for (name, found) in found.iter().enumerate().filter(|(_, found)| found.is_shown) {
            if let Some(value_of) = needed.values.get_mut(name) {
                let part = if is_figure(past.name(name)) { FIGURE } else { 1.0 };
                *value_of = value(&found.features) * part;
            }
            let Some(place) = found.place(past.name(name), sources) else { continue };
            let line = *known.entry(place).or_insert_with(|| needed.add_line(place, past));
            if let Some(line_of) = needed.line_of.get_mut(name) {
                *line_of = Some(line);
            }
        }
        needed
    }

    pub(super) fn cut(&self) -> usize {
        self.cut
    }

    fn add_line(&mut self, place: Place, past: &ThreadTexts) -> usize {
        let (start, sources) = (self.names.len(), past.before(self.cut));
        let mut add = |name: usize| {
            if !self.names.iter().skip(start).any(|other| *other == name) {
                self.names.push(name);
            }
        };
        match place.names(sources) {
            Some(names) => names.iter().for_each(|named| add(named.name)),
            // A border within a word makes other names.
            None => past.names_in(place.text(sources)).for_each(add),
        }
        let form = form(place.text(sources));
        self.lines.push(Line { place, names: start..self.names.len(), form });
        self.lines.len() - 1
    }

    /// What all names of a line are worth for each byte that nothing shows yet. Of lines of one form
    /// each further one is worth less: the rows of a table are not all needed.
    fn worth(&self, line: usize, covered: &NameSet, forms: &HashMap<u64, u32>) -> f64 {
        let Some(Line { place, names, form }) = self.lines.get(line) else { return 0.0 };
        let names = self.names.get(names.clone()).unwrap_or_default();
        let new = names.iter().filter(|name| !covered.contains(**name));
        // In the order of the text: a sum of floats depends on its order.
        let sum: f64 = new.filter_map(|name| self.values.get(*name)).sum();
        // The real price is counted for the chosen lines only.
        let shown = forms.get(form).copied().unwrap_or_default();
        sum / (place.end - place.start + HEADING_BYTES) as f64 / f64::from(1 + shown / 4).sqrt()
    }

    /// Writes lines with names that `known` lacks, in at most `budget` tokens, the most valuable for
    /// their tokens first, listed in the order of the thread.
    pub(super) fn write(
        &self,
        past: &ThreadTexts,
        known: NameSet,
        budget: u64,
        counter: &dyn TokenCounter,
    ) -> String {
        /// So many lines in a row that do not fit show that the room is used: the others are worth
        /// less.
        const MISSES: usize = 64;
        let sources = past.before(self.cut);
        let unknown = self.line_of.iter().enumerate().filter(|(name, _)| !known.contains(*name));
        let mut lines: Vec<usize> = unknown.filter_map(|(_, line)| *line).collect();
        lines.sort_unstable();
        lines.dedup();
        let (mut covered, mut forms) = (known, HashMap::new());
        // The best line first; of equals, the first in the thread. Bits of floats that are not
        // negative have the order of the floats.
        let wanted = lines.into_iter().filter_map(|line| {
            let place = self.lines.get(line)?.place;
            Some((self.worth(line, &covered, &forms).to_bits(), Reverse(place), line))
        });
        let mut wanted: BinaryHeap<(u64, Reverse<Place>, usize)> = wanted.collect();
        let mut shown = Shown { sources, places: BTreeMap::new(), left: budget, counter };
        let mut misses = 0;
        while misses < MISSES
            && let Some((_, Reverse(place), line)) = wanted.pop()
        {
            // Lines that were chosen in the meantime may show some of its names, or have its form.
            let worth = self.worth(line, &covered, &forms);
            if worth <= 0.0 {
                continue;
            }
            let now = (worth.to_bits(), Reverse(place), line);
            if wanted.peek().is_some_and(|next| now < *next) {
                wanted.push(now);
            } else if let Some(joined) = shown.add(place) {
                misses = 0;
                if let Some(Line { form, .. }) = self.lines.get(line) {
                    *forms.entry(*form).or_default() += 1;
                }
                // What was shown before was read before: only the borders make other names.
                let new = joined.around(place, sources);
                let heading = sources.get(place.source).map(|source| source.heading(sources));
                let texts = [new.text(sources), heading.as_deref().unwrap_or_default()];
                for name in texts.into_iter().flat_map(|text| past.names_in(text)) {
                    covered.insert(name);
                }
            } else {
                misses += 1;
            }
        }
        shown.written()
    }
}

/// The part of a heading that a line pays, before it is known whether it needs one.
const HEADING_BYTES: usize = 24;

/// A part of a line of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Place {
    source: usize,
    start: usize,
    end: usize,
}

impl Place {
    /// The parts of it that another place of its source does not have.
    fn without(self, other: Self) -> impl Iterator<Item = Self> {
        let before = Self { end: self.end.min(other.start), ..self };
        let after = Self { start: self.start.max(other.end), ..self };
        [before, after].into_iter().filter(|part| part.start < part.end)
    }

    /// The part of it that another place within it may have changed: that place, and what is near it.
    fn around(self, other: Self, sources: &[Source]) -> Self {
        /// The bytes on each side in which a name may go on.
        const NEAR: usize = 512;
        let text = sources.get(self.source).map_or("", |source| &source.text);
        let start = boundary_before(text, other.start.saturating_sub(NEAR));
        let end = boundary_before(text, other.end.saturating_add(NEAR));
        Self { start: self.start.max(start), end: self.end.min(end), ..self }
    }

    /// Whether a line break is between it and another place of its source.
    fn is_cut_off(self, other: Self, sources: &[Source]) -> bool {
        let gap = Self { start: self.end.min(other.end), end: self.start.max(other.start), ..self };
        gap.start < gap.end && gap.text(sources).contains('\n')
    }

    /// The names in it; `None` if it may begin or end within a word.
    fn names<'s>(&self, sources: &'s [Source]) -> Option<&'s [Named]> {
        let source = sources.get(self.source)?;
        let (before, after) = (source.text.get(..self.start)?, source.text.get(self.end..)?);
        let (before, after) = (before.chars().next_back(), after.chars().next());
        [before, after].into_iter().flatten().all(char::is_whitespace).then_some(())?;
        let names = source.names();
        let at = |offset: usize| names.partition_point(|named| named.at < offset);
        names.get(at(self.start)..at(self.end))
    }

    fn text<'s>(&self, sources: &'s [Source]) -> &'s str {
        let source = sources.get(self.source);
        source.and_then(|source| source.text.get(self.start..self.end)).unwrap_or_default()
    }

    fn line(&self, sources: &[Source]) -> String {
        let mut line = one_line(&plain(self.text(sources))).into_owned();
        let whole = sources.get(self.source).map_or("", |source| &source.text);
        let (before, after) = (whole.get(..self.start), whole.get(self.end..));
        let (before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
        // What is cut off is marked, or the rest reads as a whole path or record.
        // A line may be the whole text, so it is looked at up to the first character that says so.
        let begins = before.chars().rev().take_while(|c| *c != '\n').all(char::is_whitespace);
        let ends = after.chars().take_while(|c| *c != '\n').all(char::is_whitespace);
        if !begins {
            line.insert(0, '…');
        } else if line.starts_with(MARKS) {
            line.insert(0, ' ');
        }
        if !ends {
            line.push('…');
        }
        line
    }
}

/// The lines that were chosen.
struct Shown<'s> {
    sources: &'s [Source],
    /// The chosen places by source and start, without overlaps.
    places: BTreeMap<(usize, usize), Place>,
    /// The tokens that are left.
    left: u64,
    counter: &'s dyn TokenCounter,
}

impl Shown<'_> {
    /// Adds a place, and returns it joined with those that it touches; `None` if it does not fit.
    fn add(&mut self, place: Place) -> Option<Place> {
        /// Places this close are one.
        const NEAR: usize = 12;
        let Self { sources, counter, .. } = *self;
        let own = |from, to| self.places.range((place.source, from)..=(place.source, to));
        let near = own(0, place.end.saturating_add(NEAR)).map(|(_, other)| *other).rev();
        let near = near.take_while(|other| other.end.saturating_add(NEAR) >= place.start);
        let near: Vec<Place> = near.filter(|other| !other.is_cut_off(place, sources)).collect();
        // Only what is new is counted, so that a long line costs no more than its bytes.
        let (mut joined, mut new) = (place, vec![place]);
        for other in &near {
            let (start, end) = (joined.start.min(other.start), joined.end.max(other.end));
            joined = Place { start, end, ..joined };
            new = new.into_iter().flat_map(|part| part.without(*other)).collect();
        }
        let heading = match own(0, usize::MAX).next() {
            Some(_) => 0,
            None => counter.text(&heading(sources.get(place.source)?.heading(sources))),
        };
        let lines = new.iter().map(|part| counter.text(&part.line(sources)).saturating_add(1));
        let cost = lines.fold(heading, u64::saturating_add);
        self.left = self.left.checked_sub(cost)?;
        for other in near {
            self.places.remove(&(other.source, other.start));
        }
        self.places.insert((joined.source, joined.start), joined);
        Some(joined)
    }

    fn written(&self) -> String {
        let (mut text, mut last) = (String::new(), None);
        for ((index, _), place) in &self.places {
            let Some(source) = self.sources.get(*index) else { continue };
            if last.replace(index) != Some(index) {
                text.push_str(&heading(source.heading(self.sources)));
            }
            text.push_str("  ");
            text.push_str(&place.line(self.sources));
            text.push('\n');
        }
        text
    }
}

/// The line of a heading.
fn heading(text: String) -> String {
    format!("- {text}\n")
}

/// The form of a line: its signs, and one letter for each word between them.
fn form(line: &str) -> u64 {
    let (mut hash, mut in_word) = (fnv1a::START, false);
    for c in line.trim().chars() {
        let is_word = c.is_alphanumeric() || c == '_';
        if !(is_word && in_word) {
            let mut buffer = [0; 4];
            let sign = if is_word { 'w' } else { c };
            hash = fnv1a::hash(hash, sign.encode_utf8(&mut buffer).as_bytes());
        }
        in_word = is_word;
    }
    hash
}

/// For each name of the thread, what these sources show of it.
fn found(past: &ThreadTexts, sources: &[Source]) -> Vec<Found> {
    let bytes: usize = sources.iter().map(|source| source.text.len()).sum();
    let mut passed = 0_usize;
    let unseen = |number: usize| {
        let name = past.name(number);
        let is_number = name.bytes().all(|it| matches!(it, b'0'..=b'9' | b'.' | b','));
        let is_path = !is_number && name.contains(['/', '.']);
        let features = Features { is_path, is_number, ..Features::default() };
        Found { features, at: (0, 0), counted: usize::MAX, is_shown: false }
    };
    let mut found: Vec<Found> = (0..past.name_count()).map(unseen).collect();
    for (index, source) in sources.iter().enumerate() {
        passed += source.text.len();
        let place = passed as f64 / bytes.max(1) as f64;
        for named in source.names() {
            if let Some(found) = found.get_mut(named.name).filter(|found| found.counted != index) {
                let at = (index, named.at);
                if found.counted == usize::MAX {
                    found.at = at;
                }
                found.count(index, at, source, place, sources);
            }
        }
    }
    found
}

impl Found {
    /// The line in which the name stands, shortened around the name.
    fn place(&self, name: &str, sources: &[Source]) -> Option<Place> {
        let (source, at) = self.at;
        let text: &str = &sources.get(source)?.text;
        let name_end = at + name.len();
        let (before, after) = (text.get(..at)?, text.get(name_end..)?);
        // A line may be the whole text, so it is looked at only as far as it matters.
        let near = boundary_before(before, at.saturating_sub(AROUND + 1));
        let from = before.get(near..)?.rfind('\n').map_or(near, |break_at| near + break_at + 1);
        let start = match at - from > AROUND {
            true => {
                let near = boundary_before(text, at - AROUND);
                let word = text.get(near..at)?.find(char::is_whitespace);
                near + word.filter(|word| *word < AROUND / 2).unwrap_or(0)
            }
            false => from,
        };
        let near = after.get(..boundary_before(after, AROUND + 4))?;
        let until = near.find('\n').unwrap_or(near.len());
        let end = match until > AROUND {
            true => {
                let near = boundary_before(after, AROUND);
                let word = after.get(..near)?.rfind(char::is_whitespace);
                word.filter(|word| *word > AROUND / 2).unwrap_or(near)
            }
            false => until,
        };
        Some(Place { source, start, end: name_end + end })
    }

    /// Counts a text that has the name.
    fn count(
        &mut self,
        index: usize,
        at: (usize, usize),
        source: &Source,
        place: f64,
        sources: &[Source],
    ) {
        self.counted = index;
        let features = &mut self.features;
        features.last = place;
        if source.kind == Kind::Typed {
            // What the user typed is listed elsewhere, without what a later sentence replaced.
            features.typed = true;
            return;
        }
        self.is_shown = true;
        let own = match source.kind {
            Kind::Call => {
                features.calls += 1;
                true
            }
            Kind::Answer => {
                features.answers += 1;
                true
            }
            Kind::Typed | Kind::Result | Kind::Earlier => {
                features.results += 1;
                features.failed |= source.failure.is_some();
                false
            }
        };
        if own {
            features.last_own = place;
        }
        // The newest place shows how things stand; the agent's own words say what they are for.
        let was_own = sources.get(self.at.0).is_some_and(|source| source.kind == Kind::Call);
        if own || !was_own {
            self.at = at;
        }
    }
}

/// The names of a thread, and what is known of each: the input of the fit of the weights.
pub(crate) fn facts(messages: &[crate::message::Message]) -> Vec<(String, Vec<f64>)> {
    let past = ThreadTexts::of(messages);
    let found = found(&past, past.before(messages.len()));
    let numbers = found.iter().map(|found| found.features.numbers().to_vec());
    let all = (0..).map(|number| past.name(number).to_owned()).zip(numbers);
    all.filter(|(name, _)| !is_figure(name)).collect()
}
