//! The quantities of a summary that are still to be found in a thread.

use std::collections::HashSet;

use crate::prose::{FactClass, Quantity, Speaker, Spelled, quantities, word_quantities};

/// The quantities of a summary that no text has stated so far.
#[derive(Debug, Default)]
pub(super) struct Quantities {
    wanted: Vec<Wanted>,
    /// The first digits that the spellings of these quantities may have.
    starts: HashSet<String>,
    /// Whether one is a day, whose date may begin with any year.
    has_days: bool,
    /// Whether one is spelled in words.
    has_words: bool,
    /// The digits of the spellings that have digits alone.
    wholes: HashSet<String>,
}

/// A quantity of a summary.
#[derive(Debug)]
struct Wanted {
    text: String,
    readings: Vec<Quantity>,
    /// Whether it is a fact that is also looked for word for word.
    is_fact: bool,
}

impl Quantities {
    /// Returns the quantities of a text that are words of their own, and those of its facts. Numbers below
    /// ten are left out: a summary counts itself.
    pub(super) fn of<'a>(text: &str, facts: impl Iterator<Item = &'a str>) -> Self {
        let mut all = Self::default();
        let mut texts = HashSet::new();
        let mut found = Vec::new();
        quantities(text, &|_, _| true, &mut |spelled| found.push(spelled));
        word_quantities(text, &mut |spelled| found.push(spelled));
        for spelled in found {
            if spelled.is_whole && !is_small(&spelled) && texts.insert(spelled.text) {
                all.wanted.push(Wanted::new(spelled, false));
            }
        }
        for fact in facts {
            quantities(fact, &|_, _| true, &mut |spelled| {
                if spelled.is_whole {
                    all.wanted.push(Wanted { text: fact.to_owned(), ..Wanted::new(spelled, true) });
                }
            });
        }
        let mut readings = all.wanted.iter().flat_map(|wanted| &wanted.readings);
        all.has_days =
            readings.any(|reading| matches!(reading, Quantity::Day(..) | Quantity::Month(_)));
        let mut texts = all.wanted.iter().map(|wanted| &wanted.text);
        all.has_words = texts.any(|text| !text.contains(|c: char| c.is_ascii_digit()));
        let readings = all.wanted.iter().flat_map(|wanted| &wanted.readings);
        all.wholes = readings.clone().flat_map(wholes).collect();
        all.starts = readings.flat_map(starts).collect();
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
        quantities(text, &|digits, goes_on| self.may_start(digits, goes_on), &mut |spelled| {
            read.extend(spelled.readings)
        });
        // To read words takes several times as long as to read digits. The user's are few, and what a
        // summary spells in words may be copied from any text.
        if self.has_words || speaker == Speaker::User {
            word_quantities(text, &mut |spelled| read.extend(spelled.readings));
        }
        if !read.is_empty() {
            self.wanted
                .retain(|wanted| !wanted.readings.iter().any(|reading| read.contains(reading)));
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

    /// Returns the class and the text of each quantity that is no fact and was not read.
    pub(super) fn into_texts(self) -> impl Iterator<Item = (FactClass, String)> {
        let own = self.wanted.into_iter().filter(|wanted| !wanted.is_fact);
        own.map(|Wanted { text, readings, .. }| {
            let is_name =
                matches!(readings.first(), Some(Quantity::Weekday(_) | Quantity::Month(_)));
            (if is_name { FactClass::Identifier } else { FactClass::Number }, text)
        })
    }

    /// Whether a wanted quantity may begin with these digits, or be these if they do not go on.
    fn may_start(&self, digits: &str, goes_on: bool) -> bool {
        let digits = digits.trim_start_matches('0');
        let is_start = self.starts.contains(digits) || (self.has_days && digits.len() == 4);
        digits.is_empty() || self.wholes.contains(digits) || (goes_on && is_start)
    }
}

/// Whether a quantity is a number below ten, and no day: `5`, but not `5th`.
fn is_small(spelled: &Spelled<'_>) -> bool {
    spelled.text.len() < 2
        && spelled.readings.iter().any(|reading| matches!(reading, Quantity::Number(..)))
}

impl Wanted {
    fn new(spelled: Spelled<'_>, is_fact: bool) -> Self {
        let Spelled { text, mut readings, .. } = spelled;
        // With another unit it is another quantity.
        if readings.iter().any(Quantity::has_unit) {
            readings.retain(Quantity::has_unit);
        }
        Self { text: text.to_owned(), readings, is_fact }
    }
}

/// Returns the digits of the spellings of a quantity that have digits alone, without zeros at the start.
fn wholes(reading: &Quantity) -> Vec<String> {
    match reading {
        Quantity::Number(digits, _) => vec![digits.trim_start_matches('0').to_owned()],
        Quantity::Time(minutes) => {
            let hour = minutes / 60;
            [hour, hour + 12, hour + 24].iter().map(u32::to_string).collect()
        }
        Quantity::Day(month, day) => [month, day].map(u32::to_string).to_vec(),
        Quantity::Month(month) => vec![month.to_string()],
        Quantity::Weekday(_) => Vec::new(),
    }
}

/// Returns the first digits of all spellings of a quantity, without zeros at the start.
fn starts(reading: &Quantity) -> Vec<String> {
    let Quantity::Number(digits, _) = reading else { return wholes(reading) };
    let whole = digits.split('.').next().unwrap_or(digits).trim_start_matches('0');
    (1..=whole.len()).filter_map(|end| Some(whole.get(..end)?.to_owned())).collect()
}
