//! Numbers, dates and times of day that are written in digits.

use super::{
    digit_groups::{DigitGroups, LONGEST, digits, is_beyond_latin, is_space, length, next_digit},
    quantity::{Day, Quantity, Spelled},
    quantity_date::{bare_hour, days, is_hour, is_ordinal, time},
    quantity_unit::{Factor, currency, unit},
};
use crate::message::slice;

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
        let after = slice(text, end..);
        let may_multiply = || Factor::may_begin(after.strip_prefix(is_space).unwrap_or(after));
        if wanted == Wanted::Yes || end > at || may_multiply() {
            at = end;
            let digits = DigitGroups::new(text, start..end);
            let text = slice(text, start..end + digits.glued.len());
            let is_whole = digits.is_word() && is_suffix(digits.glued);
            let readings = readings(&digits);
            // Another text may state only a part of the date.
            let parts = readings.iter().flat_map(|it| parts(it, text)).collect();
            visit(Spelled { text, readings, is_whole });
            visit(Spelled { text, readings: parts, is_whole: false });
        }
    }
}

/// Whether these letters may follow the digits of a quantity directly, or are none: `14th`, `5pm`,
/// `12ms`, `3k`.
fn is_suffix(word: &str) -> bool {
    let is_unit = || super::number::is_unit(word) || unit(word).is_some();
    word.is_empty()
        || is_unit()
        || is_ordinal(word)
        || is_hour(word)
        || Factor::of(word).is_some()
        || word.starts_with(is_beyond_latin)
}

/// Returns what the digits may mean.
fn readings(digits: &DigitGroups<'_>) -> Vec<Quantity> {
    if let Some(time) = time(digits) {
        return vec![Quantity::Time(time)];
    }
    let mut found: Vec<Quantity> = days(digits).into_iter().map(Quantity::Day).collect();
    // `3.14` may be a number or a day, and `2026-03-17` is only a day.
    if found.is_empty() || digits.groups.len() == 2 {
        read_numbers(digits, &mut found);
    }
    found
}

/// Adds the numbers that the digits may mean, and the hour if no unit follows.
fn read_numbers(digits: &DigitGroups<'_>, found: &mut Vec<Quantity>) {
    let factor = Factor::of(digits.next);
    let measured = factor.map_or(digits.next, |factor| factor.rest);
    let unit = currency(digits.before).or_else(|| unit(measured));
    for value in values(digits) {
        let product = factor.and_then(|factor| Some(decimal(&factor.times(&value)?, "")));
        found.extend(product.iter().flat_map(|product| Quantity::of_number(product, unit)));
        found.extend(Quantity::of_number(&value, unit));
    }
    if unit.is_none() {
        found.extend(bare_hour(digits).map(Quantity::Time));
    }
}

/// Returns the values that the digits may have, in decimal notation: 1500 and 1.5 for `1.500`.
fn values(digits: &DigitGroups<'_>) -> Vec<String> {
    let DigitGroups { groups, signs, .. } = digits;
    let [first, rest @ ..] = groups.as_slice() else { return Vec::new() };
    let is_same = signs.windows(2).all(|two| two.first() == two.last());
    let is_range = signs.iter().any(|sign| matches!(sign, '-' | '/' | ':'));
    let mut found = Vec::new();
    // `1,000,000`.
    if is_same && !is_range && first.len() < 4 && rest.iter().all(|group| group.len() == 3) {
        found.push(decimal(&groups.concat(), ""));
    }
    // `1,000.50`, `3.14`.
    if let ([thousands @ .., decimals], [.., '.' | ',']) = (rest, signs.as_slice())
        && (thousands.is_empty() || !is_same)
    {
        found.push(decimal(&format!("{first}{}", thousands.concat()), decimals));
    }
    if found.is_empty() && groups.concat().len() > 5 {
        // A telephone or order number is the same, however its digits are grouped.
        found.push(decimal(&groups.concat(), ""));
    }
    // `12 345` may be one number or two.
    if found.is_empty() || signs.iter().any(|sign| is_space(*sign)) {
        found.extend(groups.iter().map(|group| decimal(group, "")));
    }
    found
}

/// Returns a number without needless zeros.
fn decimal(whole: &str, decimals: &str) -> String {
    let (whole, decimals) = (whole.trim_start_matches('0'), decimals.trim_end_matches('0'));
    let whole = if whole.is_empty() { "0" } else { whole };
    if decimals.is_empty() { whole.to_owned() } else { format!("{whole}.{decimals}") }
}

/// Returns the quantities that a date also states: its month, its day in any month, and its year.
fn parts(date: &Quantity, text: &str) -> Vec<Quantity> {
    let Quantity::Day(Day { month, day }) = date else { return Vec::new() };
    let years = text.split(|c: char| !c.is_ascii_digit()).filter(|digits| digits.len() == 4);
    let day = day.to_string();
    let numbers = years.chain([day.as_str()]).flat_map(|it| Quantity::of_number(it, None));
    numbers.chain([Quantity::Month(*month)]).collect()
}

#[cfg(test)]
mod tests {
    use super::{super::quantity_words::word_quantities, *};
    use crate::message::steps;

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
            ["0.5k", "500"],
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
