//! Numbers and times of day in words, and the names of weekdays and months.

use super::{
    quantity::{Quantity, Spelled, Time},
    quantity_unit::unit,
    subject_words::{Grammar, number_of},
    token::canonical,
};
use crate::message::{slice, steps};

/// Calls `visit` with each number of 10 or more that is written in words, and with each name of a
/// month or weekday.
pub(crate) fn word_quantities<'a>(text: &'a str, visit: &mut dyn FnMut(Spelled<'a>)) {
    let mut clock = Clock::default();
    let mut numeral = Numeral { text, sum: Sum::default(), start: 0, end: 0 };
    let (mut start, mut buffer) = (0, String::new());
    for piece in steps::through(text).split_inclusive(|c: char| !c.is_alphanumeric()) {
        let spelled = piece.trim_end_matches(|c: char| !c.is_alphanumeric());
        let lower = canonical(spelled, true, &mut buffer);
        let does = Grammar::of(lower);
        let number = does.number(lower, Grammar::NUMBER);
        let word = Word { start, end: start + spelled.len(), text: spelled, lower, does, number };
        // The clock reads each word first, because the words of a time are no numbers of their own.
        let is_time = clock.read(text, &word, visit);
        if is_time {
            numeral.restart(start);
        }
        let is_number = !is_time && numeral.read(&word, visit);
        if !is_number && let Some(day) = named_day(slice(text, ..start), &word) {
            visit(Spelled { text: spelled, readings: vec![day], is_whole: true });
        }
        start += piece.len();
    }
    numeral.finish(None, visit);
    unspaced_weekdays(text, visit);
}

/// A word of a text, which has no letters between two marks or spaces.
struct Word<'a, 'b> {
    /// Its range in the text, in bytes.
    start: usize,
    end: usize,
    text: &'a str,
    lower: &'b str,
    does: Grammar,
    /// The number that it stands for. `One` stands for none, because it is often a pronoun.
    number: Option<u32>,
}

/// Calls `visit` with each name of a weekday in scripts without spaces: `\u{6728}\u{66dc}`,
/// `\u{661f}\u{671f}\u{4e94}`. `\u{6bcf}\u{5468}\u{4e00}\u{6b21}`, once a week, has none.
fn unspaced_weekdays<'a>(text: &'a str, visit: &mut dyn FnMut(Spelled<'a>)) {
    let marks = text.match_indices(['曜', '期', '周', '週']).filter(|_| !text.is_ascii());
    for (at, mark) in marks {
        let start = slice(text, ..at).char_indices().next_back().map_or(at, |(start, _)| start);
        let next = slice(text, at + mark.len()..).chars().next().map_or(0, char::len_utf8);
        let (end, whole) = (at + mark.len() + next, at + mark.len());
        let names = [start..end, start..whole, at..end].map(|range| slice(text, range));
        let name = names.into_iter().find(|name| Grammar::of(name).is(Grammar::WEEKDAY));
        let name = name.filter(|_| !slice(text, end..).starts_with('次'));
        let day = name.and_then(|name| number_of(name, Grammar::WEEKDAY)).map(Quantity::Weekday);
        if let Some((text, day)) = name.zip(day) {
            visit(Spelled { text, readings: vec![day], is_whole: true });
        }
    }
}

/// Returns the weekday or month that a word names after this text. Some names have another meaning
/// in lower case or at the start of a sentence: `May I go?`
fn named_day(before: &str, word: &Word<'_, '_>) -> Option<Quantity> {
    const AMBIGUOUS: [&str; 11] =
        ["dec", "jan", "maj", "mai", "mar", "march", "mars", "may", "mon", "sat", "sun"];
    let Word { text, lower, does, .. } = *word;
    let named = if does.is(Grammar::MONTH) {
        Quantity::Month(does.number(lower, Grammar::MONTH)?)
    } else if does.is(Grammar::WEEKDAY) {
        Quantity::Weekday(does.number(lower, Grammar::WEEKDAY)?)
    } else {
        return None;
    };
    let has_capital = text.starts_with(char::is_uppercase);
    let is_sure = if AMBIGUOUS.contains(&lower) {
        has_capital && before.trim_end().ends_with(|c: char| c.is_alphanumeric() || c == ',')
    } else {
        has_capital || text.len() > 4
    };
    is_sure.then_some(named)
}

/// Reads times in words: `half past nine`, `ten to six`. Its state is what the words so far may
/// begin.
#[derive(Clone, Copy, Default)]
enum Clock {
    /// No time.
    #[default]
    Idle,
    /// A range after `from` or `between`. `From ten to six` is no time.
    Range,
    /// The last word began at this byte and may be the minutes of a time.
    Minutes { from: usize, minutes: u32, in_range: bool },
    /// The last word was `past` or `to` after the minutes, so the next word may be the hour. These
    /// minutes are added to it; `ten to six` is 11 hours and 50 minutes after six on a clock with
    /// twelve hours.
    Hour { from: usize, added: u32 },
}

impl Clock {
    /// Reads the next word, and visits the time if the word completes one. Returns whether the word
    /// belongs to a time: it is the hour, or it is between the minutes and the hour.
    fn read<'a>(
        &mut self,
        text: &'a str,
        word: &Word<'_, '_>,
        visit: &mut dyn FnMut(Spelled<'a>),
    ) -> bool {
        let number = if word.lower == "one" { Some(1) } else { word.number };
        let in_range = matches!(*self, Self::Range | Self::Minutes { in_range: true, .. });
        let minutes = |minutes| Self::Minutes { from: word.start, minutes, in_range };
        let (next, time) = match (*self, word.lower) {
            (Self::Hour { from, added }, _) => {
                let hour = number.filter(|hour| *hour < 13);
                (Self::Idle, hour.map(|hour| (from, Time::new(hour, added))))
            }
            (Self::Minutes { from, minutes, .. }, "past") => {
                (Self::Hour { from, added: minutes }, None)
            }
            // `Two to three weeks` is no time.
            (Self::Minutes { from, minutes, in_range: false }, "to")
                if minutes.is_multiple_of(5) =>
            {
                (Self::Hour { from, added: Time::HALF_DAY - minutes }, None)
            }
            (_, "noon" | "midnight") => {
                let next = if in_range { Self::Range } else { Self::Idle };
                (next, Some((word.start, Time::new(0, 0))))
            }
            (_, "from" | "between") => (Self::Range, None),
            (_, "half") => (minutes(30), None),
            (_, "quarter") => (minutes(15), None),
            _ => (number.filter(|it| *it < 30).map_or(Self::Idle, minutes), None),
        };
        *self = next;
        if let Some((from, time)) = time {
            let text = slice(text, from..word.end);
            visit(Spelled { text, readings: vec![Quantity::Time(time)], is_whole: true });
        }
        time.is_some() || matches!(next, Self::Hour { .. })
    }
}

/// Reads numbers in words: `two hundred thousand twenty`.
struct Numeral<'a> {
    text: &'a str,
    sum: Sum,
    /// The range of the words of the sum in the text, in bytes.
    start: usize,
    end: usize,
}

impl<'a> Numeral<'a> {
    /// Reads the next word, and visits the number before it if the word does not continue it.
    /// Returns whether the word adds to a number.
    fn read(&mut self, word: &Word<'_, '_>, visit: &mut dyn FnMut(Spelled<'a>)) -> bool {
        let gap = self.text.get(self.end..word.start);
        let follows = matches!(gap, Some(" " | "-"));
        let summand = self.sum.summand(word);
        let goes_on = match summand {
            Some(_) if self.sum == Sum::default() => false,
            Some(_) => follows || matches!(gap, Some(" and " | " und " | " y ")),
            None => follows && self.sum.takes(word.lower),
        };
        if !goes_on {
            self.finish(if follows { unit(word.text) } else { None }, visit);
            self.restart(word.start);
        }
        if let Some(summand) = summand {
            self.sum.add(summand);
            self.end = word.end;
        }
        summand.is_some()
    }

    /// Forgets the words so far. A number may begin at this byte.
    fn restart(&mut self, start: usize) {
        self.sum = Sum::default();
        self.start = start;
    }

    /// Visits the number that the words so far state, with the unit after it.
    fn finish(&self, unit: Option<u32>, visit: &mut dyn FnMut(Spelled<'a>)) {
        let number = self.sum.thousands.saturating_add(self.sum.rest);
        // Small numbers in words, as in `one of two`, are no quantities.
        let is_quantity = number > 9 || (number > 0 && unit.is_some());
        let Some(text) = self.text.get(self.start..self.end).filter(|_| is_quantity) else {
            return;
        };
        let mut readings = Quantity::of_number(&number.to_string(), unit).to_vec();
        // `At ten` may be an hour.
        let hour = u32::try_from(number).ok().filter(|hour| *hour < 13);
        readings.extend(hour.map(|hour| Quantity::Time(Time::new(hour, 0))));
        visit(Spelled { text, readings, is_whole: self.sum.counts && number > 9 });
    }
}

/// The sum of the words of a number.
#[derive(Default, PartialEq)]
struct Sum {
    /// The words up to the last `thousand` or `million`, and the words after it.
    thousands: u64,
    rest: u64,
    /// Whether a word other than a power of ten was read: `thousands of them` states no number.
    counts: bool,
}

impl Sum {
    /// Returns the number that a word adds. `One` adds to a number only after tens: `twenty-one`.
    fn summand(&self, word: &Word<'_, '_>) -> Option<u64> {
        let is_one = matches!(word.lower, "one" | "un" | "uno" | "ett" | "jeden" | "bir");
        let after_tens = is_one && self.rest % 100 > 19;
        if after_tens { Some(1) } else { word.number.map(u64::from) }
    }

    /// Whether a word joins the next number to this one: `two hundred and five`.
    fn takes(&self, word: &str) -> bool {
        self.rest > 0 && self.rest.is_multiple_of(100) && matches!(word, "and" | "und" | "y")
    }

    fn add(&mut self, number: u64) {
        self.counts |= number < 100;
        match number {
            100 => self.rest = self.rest.max(1).saturating_mul(100),
            1_000.. => {
                self.thousands =
                    self.rest.max(1).saturating_mul(number).saturating_add(self.thousands);
                self.rest = 0;
            }
            _ => self.rest = self.rest.saturating_add(number),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_minutes_of_a_time_in_words_are_no_number() {
        let mut texts = Vec::new();
        word_quantities(
            "at ten past six, a quarter to eleven, two to three of twelve",
            &mut |it| texts.push(it.text),
        );
        assert_eq!(texts, ["ten past six", "quarter to eleven", "twelve"]);
    }

    #[test]
    fn a_number_does_not_begin_with_the_word_before_it() {
        let mut texts = Vec::new();
        word_quantities("twenty and thirty, two hundred and five", &mut |it| texts.push(it.text));
        assert_eq!(texts, ["twenty", "thirty", "two hundred and five"]);
    }
}
