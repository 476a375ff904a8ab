//! The quantities of a summary that are still to be found in a thread.

use std::collections::{BTreeSet, HashSet};

use super::small_set::SmallSet;
use crate::prose::{
    Day, FactClass, Number, Quantity, Speaker, Spelled, Unit, Wanted, quantities, word_quantities,
};

/// The quantities of a summary that no text has stated so far.
#[derive(Debug, Default)]
pub(super) struct Quantities {
    wanted: Vec<Stated>,
    index: Index,
}

/// A fast test that rules out most digits of a thread: they begin no wanted quantity.
#[derive(Debug, Default)]
struct Index {
    /// The first digits of the numbers in the next two sets.
    firsts: SmallSet,
    /// The numbers that the first group of digits may have in a spelling of these quantities.
    starts: BTreeSet<u128>,
    /// The numbers of the spellings that consist of digits only.
    wholes: BTreeSet<u128>,
    /// Whether a wanted quantity is a day, because its date may begin with any year.
    has_days: bool,
    /// Whether a wanted quantity may be spelled in words.
    has_words: bool,
    /// The number of quantities when the index was made.
    made_for: usize,
}

/// A quantity of a summary.
#[derive(Debug)]
struct Stated {
    text: String,
    readings: Vec<Quantity>,
    /// Whether the quantity is a fact that is also searched for word for word.
    is_fact: bool,
}

impl Quantities {
    /// Returns the quantities of a text that are words of their own, and those of its facts.
    /// Numbers below ten are left out, because a summary counts things itself.
    pub(super) fn of<'a>(text: &str, facts: impl Iterator<Item = &'a str>) -> Self {
        let mut all = Self::default();
        let mut texts = HashSet::new();
        let mut found = Vec::new();
        quantities(text, &|_| Wanted::Yes, &mut |spelled| found.push(spelled));
        word_quantities(text, &mut |spelled| found.push(spelled));
        for spelled in found {
            let is_wanted = spelled.is_whole && !is_small(&spelled);
            // The same digits may have two meanings, such as a day and a dose.
            let stated = is_wanted.then(|| Stated::new(spelled, false));
            all.wanted
                .extend(stated.filter(|it| texts.insert((it.text.clone(), it.readings.clone()))));
        }
        for fact in facts {
            quantities(fact, &|_| Wanted::Yes, &mut |spelled| {
                if spelled.is_whole {
                    all.wanted.push(Stated { text: fact.to_owned(), ..Stated::new(spelled, true) });
                }
            });
        }
        all.index = Index::of(&all.wanted);
        all
    }

    pub(super) fn is_empty(&self) -> bool {
        self.wanted.is_empty()
    }

    /// Removes the quantities that a text of this speaker states.
    pub(super) fn remove_read(&mut self, speaker: Speaker, text: &str) {
        if self.wanted.is_empty() {
            return;
        }
        let mut read = HashSet::new();
        quantities(text, &|digits| self.index.wants(digits), &mut |spelled| {
            // Tools print so many numbers that a number without a unit does not confirm one with a
            // unit.
            let sure = |it: &Quantity| {
                speaker != Speaker::Tool
                    || it.number().is_none_or(|number| number.unit != Unit::Missing)
            };
            read.extend(spelled.readings.into_iter().filter(sure));
        });
        // Reading words takes several times as long as reading digits. So they are read only in the
        // user's texts, which are few, and if the summary spells a quantity in words, which it may
        // have copied from any text.
        if self.index.has_words || speaker == Speaker::User {
            word_quantities(text, &mut |spelled| read.extend(spelled.readings));
        }
        if !read.is_empty() {
            self.wanted
                .retain(|wanted| !wanted.readings.iter().any(|reading| read.contains(reading)));
            if is_worth(self.wanted.len(), self.index.made_for) {
                self.index = Index::of(&self.wanted);
            }
        }
    }

    /// Whether a text with this fact was read, in any spelling.
    pub(super) fn were_read(&self, fact: &str) -> bool {
        !self.wanted.iter().any(|wanted| wanted.is_fact && wanted.text == fact)
    }

    /// Returns the groups of digits in the quantities that are words of their own.
    pub(super) fn groups(&self) -> HashSet<&str> {
        let own = self.wanted.iter().filter(|wanted| !wanted.is_fact);
        own.flat_map(|wanted| wanted.text.split(|c: char| !c.is_ascii_digit())).collect()
    }

    /// Returns the class and text of each quantity that no text stated and that is not a fact.
    pub(super) fn into_texts(self) -> impl Iterator<Item = (FactClass, String)> {
        let own = self.wanted.into_iter().filter(|wanted| !wanted.is_fact);
        own.map(|Stated { text, readings, .. }| {
            let is_name =
                matches!(readings.first(), Some(Quantity::Weekday(_) | Quantity::Month(_)));
            (if is_name { FactClass::Identifier } else { FactClass::Number }, text)
        })
    }
}

impl Index {
    fn of(wanted: &[Stated]) -> Self {
        let mut texts = wanted.iter().map(|wanted| &wanted.text);
        let readings = wanted.iter().flat_map(|wanted| &wanted.readings);
        let starts: BTreeSet<u128> = readings.clone().flat_map(starts).collect();
        let wholes: BTreeSet<u128> = readings.clone().flat_map(wholes).collect();
        let firsts = starts.iter().chain(&wholes).map(|number| first_digit(&number.to_string()));
        Self {
            firsts: firsts.collect(),
            starts,
            wholes,
            has_days: readings
                .clone()
                .any(|it| matches!(it, Quantity::Day(..) | Quantity::Month(_))),
            // `2 h` may be spelled `two hours`.
            has_words: texts.any(|text| !text.contains(|c: char| c.is_ascii_digit()))
                || readings
                    .clone()
                    .any(|it| it.has_unit() && it.number().is_some_and(|it| it.value.len() < 2)),
            made_for: wanted.len(),
        }
    }

    /// Whether a quantity is wanted that begins with these digits.
    fn wants(&self, digits: &str) -> Wanted {
        // The cheapest test is first: few digits of a thread pass it.
        if !self.firsts.contains(first_digit(digits)) && !self.has_days {
            return Wanted::No;
        }
        let Ok(digits) = digits.parse() else { return Wanted::No };
        if self.wholes.contains(&digits) {
            return Wanted::Yes;
        }
        let is_start =
            self.starts.contains(&digits) || (self.has_days && (1_000..10_000).contains(&digits));
        if is_start { Wanted::IfLonger } else { Wanted::No }
    }
}

/// Returns the first digit that is not zero, as a character, or zero.
fn first_digit(digits: &str) -> usize {
    usize::from(digits.bytes().find(|digit| *digit != b'0').unwrap_or(b'0'))
}

/// Whether a new index should be made, of the entries that are still wanted. A smaller index is
/// faster, but the time to make it grows with its entries.
pub(super) fn is_worth(wanted: usize, made_for: usize) -> bool {
    wanted < made_for && (made_for <= 64 || wanted * 2 <= made_for)
}

/// Whether a quantity is a number below ten: `5`, but not the day `5th`.
fn is_small(spelled: &Spelled<'_>) -> bool {
    spelled.text.len() < 2
        && spelled.readings.iter().any(|reading| matches!(reading, Quantity::Number(..)))
}

impl Stated {
    fn new(spelled: Spelled<'_>, is_fact: bool) -> Self {
        let Spelled { text, mut readings, .. } = spelled;
        // A number of more than two groups is a telephone number.
        if text.split_whitespace().count() > 2 {
            readings.truncate(2);
        }
        // A number with another unit is another quantity.
        if readings.iter().any(Quantity::has_unit) {
            readings.retain(Quantity::has_unit);
            // `45,000 dollars` may mean 45 dollars, but a bare `45` does not state it.
            let number = readings.first().and_then(Quantity::number).cloned();
            let bare = number.map(|number| Number { unit: Unit::Missing, ..number });
            readings.extend(bare.map(Quantity::Number));
        }
        Self { text: text.to_owned(), readings, is_fact }
    }
}

/// Returns the numbers of those spellings of a quantity that consist of digits only.
fn wholes(reading: &Quantity) -> Vec<u128> {
    let numbers = match reading {
        Quantity::Number(number) => return number.value.parse().into_iter().collect(),
        Quantity::Time(time) => time.hours().to_vec(),
        Quantity::Day(Day { month, day }) => vec![*month, *day],
        Quantity::Month(month) => vec![*month],
        Quantity::Weekday(_) => Vec::new(),
    };
    numbers.into_iter().map(u128::from).collect()
}

/// Returns the numbers of the first digits of all spellings of a quantity.
fn starts(reading: &Quantity) -> Vec<u128> {
    let Some(Number { value, .. }) = reading.number() else { return wholes(reading) };
    let whole = value.split('.').next().unwrap_or(value);
    (1..=whole.len()).filter_map(|end| whole.get(..end)?.parse().ok()).collect()
}
