//! Numbers and times of day in words, and the names of weekdays and months.

use super::{
    quantity::{BARE, Quantity, Spelled, unit},
    subject_words::{Grammar, number_of},
    token::canonical,
};
use crate::message::{slice, steps};

/// Calls `visit` with each number of 10 or more that is written in words, and with each name of a
/// month or weekday.
pub(crate) fn word_quantities<'a>(text: &'a str, visit: &mut dyn FnMut(Spelled<'a>)) {
    let (mut number, mut start, mut end, mut at) = (Sum::default(), 0, 0, 0);
    let (mut clock, mut buffer) = (Clock::default(), String::new());
    for piece in steps::through(text).split_inclusive(|c: char| !c.is_alphanumeric()) {
        let word = piece.trim_end_matches(|c: char| !c.is_alphanumeric());
        let lower = canonical(word, true, &mut buffer);
        let does = Grammar::of(lower);
        let known = does.number(lower, Grammar::NUMBER);
        let time = clock.read(at, lower, known);
        // The hour and the minutes of a time in words are no numbers of their own.
        let is_time = time.is_some() || clock.is_open();
        if let Some((from, time)) = time {
            let text = slice(text, from..at + word.len());
            visit(Spelled { text, readings: vec![time], is_whole: true });
            start = at;
        }
        if is_time {
            number = Sum::default();
        }
        let summand = number.summand(lower, known).filter(|_| !is_time);
        let goes_on = match text.get(end..at) {
            Some(" " | "-") => summand.is_some() || number.takes(lower),
            Some(" and " | " und " | " y ") => summand.is_some(),
            _ => false,
        };
        if !goes_on {
            let follows = matches!(text.get(end..at), Some(" " | "-"));
            let unit = if follows { unit(word) } else { BARE };
            let number = std::mem::take(&mut number).spelled(text.get(start..end), unit);
            number.into_iter().for_each(&mut *visit);
            start = at;
        }
        if let Some(summand) = summand {
            number.add(summand);
            end = at + word.len();
        } else if let Some(day) = named_day(slice(text, ..at), word, lower, does) {
            visit(Spelled { text: word, readings: vec![day], is_whole: true });
        }
        at += piece.len();
    }
    number.spelled(text.get(start..end), BARE).into_iter().for_each(&mut *visit);
    unspaced_weekdays(text, visit);
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
fn named_day(before: &str, word: &str, lower: &str, does: Grammar) -> Option<Quantity> {
    const AMBIGUOUS: [&str; 11] =
        ["dec", "jan", "maj", "mai", "mar", "march", "mars", "may", "mon", "sat", "sun"];
    let named = if does.is(Grammar::MONTH) {
        Quantity::Month(does.number(lower, Grammar::MONTH)?)
    } else if does.is(Grammar::WEEKDAY) {
        Quantity::Weekday(does.number(lower, Grammar::WEEKDAY)?)
    } else {
        return None;
    };
    let has_capital = word.starts_with(char::is_uppercase);
    let is_sure = if AMBIGUOUS.contains(&lower) {
        has_capital && before.trim_end().ends_with(|c: char| c.is_alphanumeric() || c == ',')
    } else {
        has_capital || word.len() > 4
    };
    is_sure.then_some(named)
}

/// The words read so far of a time in words: `half past nine`, `ten to six`.
#[derive(Default)]
struct Clock {
    /// Where the last word began, and the minutes that it may mean.
    minutes: Option<(usize, u32)>,
    /// Where the time begins, and the minutes to add to its hour.
    before_hour: Option<(usize, u32)>,
    is_range: bool,
}

impl Clock {
    /// Reads the next word, which begins at byte `at` and may be a number. If it completes a time,
    /// returns the time and the byte at which it began.
    fn read(&mut self, at: usize, word: &str, number: Option<u32>) -> Option<(usize, Quantity)> {
        let number = if word == "one" { Some(1) } else { number };
        let minutes = self.minutes.take();
        if let Some((start, minutes)) = self.before_hour.take() {
            let hour = number.filter(|hour| *hour < 13)?;
            return Some((start, Quantity::Time((hour * 60 + minutes) % 720)));
        }
        match word {
            "past" => self.before_hour = minutes,
            // `From ten to six` and `two to three weeks` are no times.
            "to" if !self.is_range => {
                let minutes = minutes.filter(|(_, minutes)| minutes.is_multiple_of(5));
                self.before_hour = minutes.map(|(start, minutes)| (start, 720 - minutes));
            }
            "noon" | "midnight" => return Some((at, Quantity::Time(0))),
            "half" => self.minutes = Some((at, 30)),
            "quarter" => self.minutes = Some((at, 15)),
            _ => self.minutes = number.filter(|number| *number < 30).map(|number| (at, number)),
        }
        self.is_range =
            matches!(word, "from" | "between") || (self.is_range && self.minutes.is_some());
        None
    }

    /// Whether the next word is the hour.
    fn is_open(&self) -> bool {
        self.before_hour.is_some()
    }
}

/// The sum of the words read so far of a number in words: `two hundred thousand twenty`.
#[derive(Default)]
struct Sum {
    thousands: u64,
    rest: u64,
    /// Whether a word other than a power of ten was read: `thousands of them` states no number.
    counts: bool,
}

impl Sum {
    /// Returns the number that a word in lower case adds. `One` adds to a number only after tens:
    /// `twenty-one`.
    fn summand(&self, word: &str, number: Option<u32>) -> Option<u64> {
        let is_one = matches!(word, "one" | "un" | "uno" | "ett" | "jeden" | "bir");
        let after_tens = is_one && self.rest % 100 > 19;
        if after_tens { Some(1) } else { number.map(u64::from) }
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

    fn spelled(self, text: Option<&str>, unit: u32) -> Option<Spelled<'_>> {
        let number = self.thousands.saturating_add(self.rest);
        // Small numbers in words, as in `one of two`, are no quantities.
        let text = text.filter(|_| number > 9 || (number > 0 && unit != BARE))?;
        let mut readings = Quantity::of_number(&number.to_string(), unit).to_vec();
        // `At ten` may be an hour.
        let hour = u32::try_from(number).ok().filter(|hour| *hour < 13);
        readings.extend(hour.map(|hour| Quantity::Time(hour * 60 % 720)));
        Some(Spelled { text, readings, is_whole: self.counts && number > 9 })
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
}
