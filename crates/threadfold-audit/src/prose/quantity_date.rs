//! Times of day and days that are written in digits.

use super::{
    digit_groups::{DigitGroups, digits, is_space},
    quantity::{Day, Time},
    subject_words::{Grammar, number_of},
};
use crate::message::slice;

/// Returns the time that digits can only mean: `9:30`, `9.30 Uhr`, `16h45`.
pub(super) fn time(digits: &DigitGroups<'_>) -> Option<Time> {
    let DigitGroups { groups, signs, after, next, .. } = digits;
    let (hour, minutes) = match (groups.as_slice(), signs.as_slice()) {
        ([hour, minutes, ..], [':', ..]) => (hour, *minutes),
        ([hour, minutes], ['.']) if is_hour(next) => (hour, *minutes),
        ([hour], []) if is_hour(next) => (hour, minutes_after(after, next)),
        _ => return None,
    };
    let is_time = minutes.len() == 2 && minutes < "60";
    let minutes: u32 = minutes.parse().ok().filter(|_| is_time)?;
    Some(Time::new(hour_of_day(hour)?, minutes))
}

/// Returns the full hour that a number may mean: `from 10 to 18`.
pub(super) fn bare_hour(digits: &DigitGroups<'_>) -> Option<Time> {
    let [hour] = digits.groups.as_slice() else { return None };
    Some(Time::new(hour_of_day(hour)?, 0))
}

fn hour_of_day(digits: &str) -> Option<u32> {
    digits.parse().ok().filter(|hour| *hour < 25)
}

/// Whether a word after a number makes it an hour.
pub(super) fn is_hour(word: &str) -> bool {
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

/// Returns the days that digits may mean: one for `2026-03-17` and `March 3`, two for `3/4`.
pub(super) fn days(digits: &DigitGroups<'_>) -> Vec<Day> {
    let DigitGroups { before, groups, signs, after, .. } = digits;
    let day = |month: &str, day: &str| Day::new(month.parse().ok()?, day.parse().ok()?);
    let is_date = signs.iter().all(|sign| matches!(sign, '-' | '/' | '.'));
    let (one, other) = match (groups.as_slice(), signs.as_slice()) {
        ([year, month, date], _) if year.len() == 4 && is_date => {
            return day(month, date).into_iter().collect();
        }
        ([one, other, year], _) if matches!(year.len(), 2 | 4) && is_date => (one, other),
        ([one, other], ['/']) => (one, other),
        ([one, other], ['.']) if after.starts_with('.') => (one, other),
        ([date], _) => {
            let month = month_beside(before, after);
            return month.and_then(|it| Day::new(it, date.parse().ok()?)).into_iter().collect();
        }
        _ => return Vec::new(),
    };
    day(one, other).into_iter().chain(day(other, one)).collect()
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

/// Whether letters after digits make them an ordinal number: `14th`.
pub(super) fn is_ordinal(word: &str) -> bool {
    matches!(word, "st" | "nd" | "rd" | "th" | "er" | "\u{ba}" | "\u{aa}")
}
