//! Numbers, dates and times of day, compared by value: `3,000` is `3000`, `5 pm` is `17:00`.
//!
//! The same digits may have several readings: `1.500` is 1500 or one and a half, `3/4` a day in
//! March or in April. Two spellings state the same quantity if they have a reading in common.

use std::ops::Range;

use super::{
    stem::is_unspaced,
    subject_words::{Grammar, number_of},
};
use crate::message::{slice, steps};

/// The maximum bytes of a quantity. A longer sequence of digits is a key or a hash.
const LONGEST: usize = 32;

/// A reading of a number, a date or a time of day.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Quantity {
    /// The digits, with a point before decimals, and the number of the unit, [`BARE`] or
    /// [`UNKNOWN`].
    Number(String, u32),
    /// The minutes after midnight or noon, because `5:30` may be in the afternoon.
    Time(u32),
    /// The month and the day.
    Day(u32, u32),
    /// The number of a month in the year.
    Month(u32),
    /// The number of a day in the week, from Monday on.
    Weekday(u32),
}

/// The unit of a number that has none, such as a count.
pub(super) const BARE: u32 = 0;

/// The unit of a number whose unit is not known, so that it may be any.
pub(crate) const UNKNOWN: u32 = u32::MAX;

impl Quantity {
    /// Returns the readings of a number with a unit, or with none.
    pub(super) fn of_number(number: &str, unit: u32) -> [Self; 2] {
        let unit = if unit == BARE { UNKNOWN } else { unit };
        [unit, BARE].map(|unit| Self::Number(number.to_owned(), unit))
    }

    pub(crate) fn number(&self) -> Option<&str> {
        if let Self::Number(number, _) = self { Some(number) } else { None }
    }

    pub(crate) fn has_unit(&self) -> bool {
        matches!(self, Self::Number(_, unit) if !matches!(*unit, BARE | UNKNOWN))
    }
}

/// A spelling of a quantity in a text.
#[derive(Debug)]
pub(crate) struct Spelled<'a> {
    pub(crate) text: &'a str,
    pub(crate) readings: Vec<Quantity>,
    /// Whether the quantity is a word of its own, not part of a path, a name or a version.
    pub(crate) is_whole: bool,
}

/// Whether a quantity that begins with given digits is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    No,
    /// Only if a sign with more digits follows, or a word such as `million`.
    IfLonger,
    Yes,
}

/// Calls `visit` with each quantity that is written in digits. `wanted` is asked first, with its
/// first digits, because most quantities of a thread are not wanted and take long to read.
pub(crate) fn quantities<'a>(
    text: &'a str,
    wanted: &dyn Fn(&str) -> Wanted,
    visit: &mut dyn FnMut(Spelled<'a>),
) {
    let mut at = 0;
    while let Some(start) = next_digit(text, at) {
        at = start + digits(slice(text, start..));
        if at - start > LONGEST {
            continue;
        }
        let wanted = wanted(slice(text, start..at));
        if wanted == Wanted::No {
            continue;
        }
        let end = start + length(slice(text, start..));
        if wanted == Wanted::Yes || end > at || multiplies(slice(text, end..)) {
            at = end;
            let spelled = Place { text, run: start..at }.spelled();
            // Another text may state only a part of the date.
            let parts: Vec<Quantity> =
                spelled.readings.iter().flat_map(|it| parts(it, spelled.text)).collect();
            let text = spelled.text;
            visit(spelled);
            visit(Spelled { text, readings: parts, is_whole: false });
        }
    }
}

/// Whether the text after digits may begin with a factor: `3k`, `1 million`.
fn multiplies(after: &str) -> bool {
    let after = after.strip_prefix(is_space).unwrap_or(after);
    let next = after.chars().next();
    next.is_some_and(|c| matches!(c.to_ascii_lowercase(), 'd' | 'k' | 'm' | 't') || !c.is_ascii())
}

/// Returns the quantities that a date also states: its month, its day in any month, and its year.
fn parts(date: &Quantity, text: &str) -> Vec<Quantity> {
    let Quantity::Day(month, day) = date else { return Vec::new() };
    let years = text.split(|c: char| !c.is_ascii_digit()).filter(|digits| digits.len() == 4);
    let day = day.to_string();
    let numbers = years.chain([day.as_str()]).flat_map(|it| Quantity::of_number(it, BARE));
    numbers.chain([Quantity::Month(*month)]).collect()
}

fn next_digit(text: &str, at: usize) -> Option<usize> {
    let rest = text.as_bytes().get(at..)?;
    // Without a branch for each byte, the processor tests several bytes at once.
    let has_none =
        |bytes: &&[u8; 16]| !bytes.iter().fold(false, |any, byte| any | byte.is_ascii_digit());
    let skipped = 16 * rest.as_chunks().0.iter().take_while(has_none).count();
    let found = rest.iter().skip(skipped).position(u8::is_ascii_digit);
    Some(at + steps::up_to(text.get(at..)?, found.map(|found| skipped + found))?)
}

fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

/// Returns the length in bytes of the digits at the start, which a sign or a space may divide into
/// groups. A group after a space has three digits, or four as in telephone numbers.
fn length(text: &str) -> usize {
    let mut end = digits(text);
    let mut group = end;
    while let Some(c) = slice(text, end..).chars().next().filter(|_| end < LONGEST) {
        let next = digits(slice(text, end + c.len_utf8()..));
        if !(is_sign(c) && next > 0 || is_space(c) && matches!(next, 3 | 4) && group <= 4) {
            break;
        }
        (end, group) = (end + c.len_utf8() + next, next);
    }
    end
}

fn is_sign(c: char) -> bool {
    matches!(c, '.' | ',' | ':' | '/' | '-' | '_' | '\'' | '\u{2019}')
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\u{a0}' | '\u{202f}')
}

/// A group of digits in a text, with the text around it.
struct Place<'a> {
    text: &'a str,
    run: Range<usize>,
}

impl<'a> Place<'a> {
    fn before(&self) -> &'a str {
        slice(self.text, ..self.run.start)
    }

    fn after(&self) -> &'a str {
        slice(self.text, self.run.end..)
    }

    /// Returns the word after the digits and the length of the space before it. The word is empty
    /// if a mark follows.
    fn next(&self) -> (&'a str, usize) {
        let after = self.after();
        let rest = after.trim_start_matches(is_space);
        // `A 30-second break`.
        let joined = rest.strip_prefix('-').filter(|rest| rest.starts_with(char::is_alphabetic));
        let rest = joined.unwrap_or(rest);
        (first_word(rest), after.len() - rest.len())
    }

    fn spelled(self) -> Spelled<'a> {
        let Self { text, ref run } = self;
        let (next, space) = self.next();
        let glued = if space == 0 { next } else { "" };
        let end = run.end + glued.len();
        let is_ending = glued.is_empty() || is_unit(glued) || glued.starts_with(is_beyond_latin);
        let is_word = begins(self.before()) && is_ending && ends(slice(text, end..));
        let is_whole = is_word && !is_item(self.before(), self.after());
        Spelled { text: slice(text, run.start..end), readings: self.readings(), is_whole }
    }

    fn readings(&self) -> Vec<Quantity> {
        let run = slice(self.text, self.run.clone());
        let groups: Vec<&str> = run.split(|c: char| !c.is_ascii_digit()).collect();
        let signs: Vec<char> = run.chars().filter(|c| !c.is_ascii_digit()).collect();
        if let Some(time) = self.time(&groups, &signs) {
            return vec![time];
        }
        let mut found = self.days(&groups, &signs);
        // `3.14` may be a number or a day, and `2026-03-17` is only a day.
        if found.is_empty() || groups.len() == 2 {
            let (next, _) = self.next();
            let factor = factor(next);
            let measured = factor.map_or(next, |(_, measured)| measured);
            let unit = currency(self.before()).unwrap_or_else(|| unit(measured));
            for number in numbers(&groups, &signs) {
                let whole = factor.and_then(|(zeros, _)| multiplied(&number, zeros));
                found.extend(whole.iter().flat_map(|whole| Quantity::of_number(whole, unit)));
                found.extend(Quantity::of_number(&number, unit));
            }
            found.extend(self.bare_hour(&groups).filter(|_| unit == BARE));
        }
        found
    }

    fn time(&self, groups: &[&str], signs: &[char]) -> Option<Quantity> {
        let (next, _) = self.next();
        let minutes = match (groups, signs) {
            ([_, minutes, ..], [':', ..]) => *minutes,
            ([_, minutes], ['.']) if is_hour(next) => *minutes,
            ([_], []) if is_hour(next) => minutes_after(self.after(), next),
            _ => return None,
        };
        let hour: u32 = groups.first()?.parse().ok()?;
        let is_time = minutes.len() == 2 && hour < 25 && minutes < "60";
        if !is_time {
            return None;
        }
        Some(Quantity::Time((hour * 60 + minutes.parse::<u32>().ok()?) % 720))
    }

    /// Returns the number as an hour, if it may be one: `from 10 to 18`.
    fn bare_hour(&self, groups: &[&str]) -> Option<Quantity> {
        let [hour] = groups else { return None };
        let hour: u32 = hour.parse().ok().filter(|hour| *hour < 25)?;
        Some(Quantity::Time(hour * 60 % 720))
    }

    fn days(&self, groups: &[&str], signs: &[char]) -> Vec<Quantity> {
        let is_date = signs.iter().all(|sign| matches!(sign, '-' | '/' | '.'));
        let (one, other) = match groups {
            [year, month, day] if year.len() == 4 && is_date => {
                return day_of(month, day).into_iter().collect();
            }
            [one, other, year] if matches!(year.len(), 2 | 4) && is_date => (one, other),
            [one, other] if signs == ['/'] || (signs == ['.'] && self.after().starts_with('.')) => {
                (one, other)
            }
            [day] => {
                let month = month_beside(self.before(), self.after());
                return month
                    .and_then(|month| day_of(&month.to_string(), day))
                    .into_iter()
                    .collect();
            }
            _ => return Vec::new(),
        };
        day_of(one, other).into_iter().chain(day_of(other, one)).collect()
    }
}

/// Whether a character belongs to a script that writes particles directly after digits.
fn is_beyond_latin(c: char) -> bool {
    c > '\u{2e7f}' && c.is_alphabetic()
}

/// Whether a word may begin after this text.
fn begins(before: &str) -> bool {
    let before = before.chars().next_back();
    before.is_none_or(|c| is_beyond_latin(c) || !(c.is_alphanumeric() || "._-/:#,@\\+".contains(c)))
}

/// Whether a word may end before this text.
fn ends(after: &str) -> bool {
    let mut rest = after.chars();
    let next = rest.next();
    let follows = rest.next().is_some_and(char::is_alphanumeric);
    next.is_none_or(|c| !("_/\\@=(".contains(c) || (".:-".contains(c) && follows)))
}

/// Whether digits between these texts count the items of a list: `12. Run the tests`.
fn is_item(before: &str, after: &str) -> bool {
    let starts = before.trim_end_matches([' ', '*', '#']);
    (starts.is_empty() || starts.ends_with('\n'))
        && [". ", ") "].iter().any(|end| after.starts_with(end))
}

/// Returns the word or the sign of a unit at the start of a text, or an empty one.
fn first_word(text: &str) -> &str {
    let mut chars = text.char_indices();
    let is_sign = chars.next().is_some_and(|(_, c)| "%$\u{20ac}\u{a3}\u{a5}".contains(c));
    let end =
        if is_sign { chars.next() } else { text.char_indices().find(|(_, c)| !c.is_alphabetic()) };
    slice(text, ..end.map_or(text.len(), |(at, _)| at))
}

/// Returns the day, if the month and the day are valid.
fn day_of(month: &str, day: &str) -> Option<Quantity> {
    let (month, day) = (month.parse().ok()?, day.parse().ok()?);
    ((1..=12).contains(&month) && (1..=31).contains(&day)).then_some(Quantity::Day(month, day))
}

/// Returns the number of the month before or after the digits of a day: `March 3`, `3 de marzo`,
/// `3rd of March`, `3\u{6708}17\u{65e5}`.
fn month_beside(before: &str, after: &str) -> Option<u32> {
    const MOST: usize = 4;
    let before = before.trim_end_matches(is_space);
    if let Some(before) = before.strip_suffix(['\u{6708}', '\u{c6d4}']) {
        let digits = before.bytes().rev().take_while(u8::is_ascii_digit).count();
        return slice(before, before.len() - digits..).parse().ok();
    }
    let last = before.split(|c: char| !c.is_alphabetic()).next_back()?;
    let mut next = after.split(|c: char| !c.is_alphabetic()).take(MOST);
    let is_between =
        |word: &&str| word.is_empty() || is_ordinal(word) || matches!(*word, "de" | "of");
    month_of(last).or_else(|| next.find(|word| !is_between(word)).and_then(month_of))
}

fn month_of(word: &str) -> Option<u32> {
    number_of(&word.to_lowercase(), Grammar::MONTH)
}

fn is_ordinal(word: &str) -> bool {
    matches!(word, "st" | "nd" | "rd" | "th" | "er" | "\u{ba}" | "\u{aa}")
}

/// Whether a word after a number makes it an hour.
fn is_hour(word: &str) -> bool {
    let is_hour = |c| matches!(c, '\u{70b9}' | '\u{65f6}' | '\u{6642}' | '\u{c2dc}');
    word == "h"
        || word.starts_with(is_hour)
        || Grammar::of(&word.to_lowercase()).is(Grammar::TIME_UNIT)
}

/// Returns the minutes after the word for the hour: `16h45`.
fn minutes_after<'a>(after: &'a str, hour: &str) -> &'a str {
    let rest = after.trim_start_matches(is_space);
    let rest = rest.trim_start_matches(|c| hour.starts_with(c)).trim_start_matches(is_space);
    if rest.starts_with('\u{534a}') {
        return "30";
    }
    if digits(rest) == 2 { slice(rest, ..2) } else { "00" }
}

/// Returns the numbers that these groups of digits may mean, with a point before decimals.
fn numbers(groups: &[&str], signs: &[char]) -> Vec<String> {
    let [first, rest @ ..] = groups else { return Vec::new() };
    let same = signs.windows(2).all(|two| two.first() == two.last());
    let is_range = signs.iter().any(|sign| matches!(sign, '-' | '/' | ':'));
    let mut found = Vec::new();
    if same && !is_range && first.len() < 4 && rest.iter().all(|group| group.len() == 3) {
        found.push(groups.concat());
    }
    if let ([decimals], ['.' | ',']) = (rest, signs) {
        found
            .push(format!("{first}.{decimals}").trim_end_matches('0').trim_end_matches('.').into());
    } else if let ([thousands @ .., decimals], [.., '.' | ',']) = (rest, signs)
        && !same
    {
        let whole = format!("{first}{}", thousands.concat());
        found
            .push(format!("{whole}.{decimals}").trim_end_matches('0').trim_end_matches('.').into());
    }
    if found.is_empty() && groups.concat().len() > 5 {
        // A telephone or order number is the same, however its digits are grouped.
        found.push(groups.concat());
    }
    if found.is_empty() || signs.iter().any(|sign| is_space(*sign)) {
        found.extend(groups.iter().map(|group| group.to_string()));
    }
    for number in &mut found {
        let zeros = number.bytes().take_while(|byte| *byte == b'0').count();
        let is_decimal = slice(number, zeros..).starts_with('.');
        number.drain(..zeros.saturating_sub(usize::from(is_decimal || zeros == number.len())));
    }
    found
}

/// Returns a number multiplied by a factor with this many zeros: `3k`, `1.5 million`.
fn multiplied(number: &str, zeros: usize) -> Option<String> {
    let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
    (decimals.len() <= zeros).then(|| format!("{whole}{decimals:0<zeros$}"))
}

/// Returns the zeros of the factor that a word begins with, and the rest of the word.
fn factor(word: &str) -> Option<(usize, &str)> {
    // In a script without spaces, the unit follows: `180\u{4e07}\u{5186}`.
    let first = word.chars().next().filter(|c| is_unspaced(*c)).map_or(word.len(), char::len_utf8);
    let (power, rest) = word.split_at_checked(first)?;
    let zeros = match power.to_lowercase().as_str() {
        "k" | "tsd" => 3,
        "m" | "mio" | "mn" => 6,
        power => {
            number_of(power, Grammar::NUMBER).filter(|power| *power >= 1_000)?.ilog10() as usize
        }
    };
    Some((zeros, rest))
}

/// Whether a word may follow the digits of a quantity directly: `14th`, `5pm`, `12ms`, `3k`.
fn is_unit(word: &str) -> bool {
    let is_known = super::number::is_unit(word) || unit(word) != BARE;
    is_known || is_ordinal(word) || is_hour(word) || factor(word).is_some()
}

fn currency(before: &str) -> Option<u32> {
    let (at, sign) = before.char_indices().next_back()?;
    let is_sign = matches!(sign, '$' | '\u{20ac}' | '\u{a3}' | '\u{a5}');
    is_sign.then(|| unit(slice(before, at..)))
}

/// Returns the number that stands for a unit of measure or a currency, or [`BARE`] for any other
/// word. Nouns for counted things are not units, so that `12 files` equals `12 changed files`. In a
/// script without spaces, a word may begin with the unit.
pub(super) fn unit(word: &str) -> u32 {
    let lower = word.to_lowercase();
    let ends = lower.char_indices().skip(1).map(|(at, _)| at).take(8);
    let ends = ends.filter(|_| word.starts_with(is_unspaced)).collect::<Vec<_>>().into_iter();
    let mut starts = [lower.len()].into_iter().chain(ends.rev()).map(|end| slice(&lower, ..end));
    starts.find_map(|start| number_of(start, Grammar::MEASURE)).unwrap_or(BARE)
}

#[cfg(test)]
mod tests {
    use super::{super::quantity_words::word_quantities, *};

    fn readings(text: &str) -> Vec<Quantity> {
        let mut found = Vec::new();
        quantities(text, &|_| Wanted::Yes, &mut |spelled| found.extend(spelled.readings));
        word_quantities(text, &mut |spelled| found.extend(spelled.readings));
        found
    }

    #[test]
    fn spellings_of_one_quantity_have_a_reading_in_common() {
        let rows = [
            ["3,000 rows", "3000"],
            ["3.000", "3 000"],
            ["3k", "three thousand"],
            ["1.5 million", "1,500,000"],
            ["0.50", "0,5"],
            ["12 days", "twelve days"],
            ["zwanzig", "20"],
            ["21", "twenty-one"],
            ["$1,200", "1200 dollars"],
            ["90 sec", "90 seconds"],
            ["a 90-second talk", "90 s"],
            ["180\u{4e07}\u{5186}\u{3067}\u{3059}", "1,800,000\u{5186}"],
            ["10\u{6642}\u{534a}", "10:30"],
            ["5 pm", "17:00"],
            ["16h45", "4:45 PM"],
            ["9.30 Uhr", "09:30"],
            ["\u{4e0b}\u{5348}5\u{70b9}", "17:00"],
            ["half past nine", "09:30"],
            ["ten to six", "5:50"],
            ["noon", "12:00"],
            ["March 3", "2026-03-03"],
            ["the 3rd of March", "3. M\u{e4}rz"],
            ["3 de marzo", "3/3"],
            ["3\u{6708}17\u{65e5}", "17.03.2026"],
            ["555-0199", "555 0199"],
            ["the 14th", "14"],
        ];
        for [one, other] in rows {
            let (one_is, other_is) = (readings(one), readings(other));
            let shares = one_is.iter().any(|reading| other_is.contains(reading));
            assert!(shares, "{one} {one_is:?}, {other} {other_is:?}");
        }
    }

    #[test]
    fn another_value_or_unit_is_another_quantity() {
        let rows = [
            ["3,000", "3,001"],
            ["16:45", "16:54"],
            ["thirteen", "thirty"],
            ["555-0199", "555-0198"],
            ["1.25", "1.26"],
        ];
        for [one, other] in rows {
            let (one_is, other_is) = (readings(one), readings(other));
            let shares = one_is.iter().any(|reading| other_is.contains(reading));
            assert!(!shares, "{one} {one_is:?}, {other} {other_is:?}");
        }
        let units =
            ["15 ms", "15 s", "15 mg", "15 ml", "15\u{4e07}\u{5186}", "15\u{4e07}\u{30c9}\u{30eb}"];
        let units = units.map(|text| readings(text).into_iter().find(Quantity::has_unit).unwrap());
        assert_eq!(units.iter().collect::<std::collections::HashSet<_>>().len(), 6, "{units:?}");
    }

    #[test]
    fn any_text_is_read_in_linear_time() {
        let texts =
            ["1", "1 ", "1,", "1   ", "* 1. ", "3:0", "May 1 of de ", "twenty ", "half past "];
        for part in texts {
            let of = |count: usize| {
                let text = part.repeat(count);
                steps::steps(u64::MAX, || {
                    quantities(&text, &|_| Wanted::Yes, &mut |_| steps::round());
                    word_quantities(&text, &mut |_| steps::round());
                })
            };
            let (some, more) = (of(2_000), of(4_000));
            assert!(more * 10 <= some * 22, "{part}: {some} {more}");
        }
    }

    #[test]
    fn numbers_in_paths_names_and_versions_are_no_quantities() {
        let text = "See src/p12.rs, v1.25, T45, #42, a-17, 12_a, 13/x, localhost:80.\n14. Then 15.";
        let mut whole = Vec::new();
        quantities(text, &|_| Wanted::Yes, &mut |spelled| {
            whole.extend(spelled.is_whole.then_some(spelled.text));
        });
        assert_eq!(whole, ["15"]);
    }
}
