//! Values in a statement: recognised by their form, in any language.

use super::{
    stem::{is_mark, is_unspaced},
    subject_words::Grammar,
};
use crate::message::slice;

/// The form of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Form {
    Amount,
    Date,
    Time,
    Number,
    Hash,
    Address,
    Path,
    Code,
    Name,
    /// Several words in quotation marks.
    Quoted,
}

impl Form {
    /// Whether a value of this form can identify a thing.
    pub(super) fn identifies(self) -> bool {
        match self {
            Self::Amount | Self::Date | Self::Time | Self::Number => false,
            Self::Hash | Self::Address | Self::Path | Self::Code | Self::Name | Self::Quoted => {
                true
            }
        }
    }
}

/// A word or a value of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// The text, without the marks around it.
    pub(super) text: String,
    /// The form, if it is a value.
    pub(super) form: Option<Form>,
    /// The punctuation mark after the piece, if it ends a clause.
    pub(super) end: Option<char>,
}

/// Whether a word is the name of a month in German, with marks around it.
pub(super) fn is_german_month(word: &str) -> bool {
    #[rustfmt::skip]
    const MONTHS: [&str; 12] = [
        "Januar", "Februar", "März", "April", "Mai", "Juni", "Juli", "August", "September",
        "Oktober", "November", "Dezember",
    ];
    MONTHS.contains(&word.trim_matches(is_mark))
}

/// A part of a text between spaces, with its grammatical functions.
#[derive(Clone, Copy)]
struct Token<'a> {
    text: &'a str,
    does: Grammar,
}

impl<'a> Token<'a> {
    fn new(text: &'a str) -> Self {
        let bare = text.trim_matches(is_mark);
        let has_capital = bare.contains(char::is_uppercase);
        let does = if has_capital { Grammar::of(&bare.to_lowercase()) } else { Grammar::of(bare) };
        Self { text, does }
    }

    fn bare(self) -> &'a str {
        self.text.trim_matches(is_mark)
    }

    fn is(self, does: Grammar) -> bool {
        self.does.is(does)
    }

    /// Whether a mark separates it from the next token.
    fn ends(self) -> bool {
        self.text.ends_with([',', ';', ':'])
    }
}

const QUOTES: [char; 6] = ['"', '\u{201c}', '\u{201d}', '\u{201e}', '\u{ab}', '\u{bb}'];

/// Returns the words and values among the first `most` words of a text.
pub(super) fn pieces(text: &str, most: usize) -> Vec<Piece> {
    let texts = text.split_whitespace().take(most).flat_map(by_script);
    let tokens: Vec<Token<'_>> = texts.map(Token::new).collect();
    let mut pieces: Vec<Piece> = Vec::with_capacity(tokens.len());
    let (mut at, mut is_first, mut before) = (0, true, Grammar::default());
    while let Some(token) = tokens.get(at) {
        let rest = tokens.get(at..).unwrap_or_default();
        // The full stop of `Dr.` does not end the sentence, so the capital after it shows a name.
        let is_short = token.text.ends_with('.') && token.is(Grammar::SHORT_FORM);
        // Values of several words are tried first: `three hundred dollars` is one amount.
        let (form, length) = match compound(rest) {
            Some((form, length)) => (Some(form), length),
            None if is_short => (None, 1),
            None => (form(rest, is_first, before), 1),
        };
        let whole = rest.get(..length).unwrap_or_default();
        let Some(last) = whole.last() else { break };
        let texts: Vec<&str> = whole.iter().map(|token| token.text).collect();
        let text = texts.join(" ").trim_matches(is_mark).to_owned();
        let end = last.text.chars().next_back().filter(|c| ends_clause(*c) && !is_short);
        is_first = end.is_some_and(ends_sentence);
        before = if is_first { Grammar::default() } else { last.does };
        pieces.push(Piece { text, form, end });
        at += length;
    }
    pieces
}

fn ends_sentence(c: char) -> bool {
    matches!(c, '.' | '!' | '?' | '\u{3002}' | '\u{ff01}' | '\u{ff1f}')
}

fn ends_clause(c: char) -> bool {
    ends_sentence(c)
        || matches!(c, ';' | ',' | ':' | '\u{ff0c}' | '\u{ff1b}' | '\u{ff1a}' | '\u{3001}')
}

/// Divides a token where a script without spaces begins or ends. A unit stays with the number
/// before it.
fn by_script(token: &str) -> Vec<&str> {
    if token.is_ascii() || !token.contains(is_unspaced) {
        return vec![token];
    }
    let (mut parts, mut start, mut before) = (Vec::new(), 0, None);
    let mut has_digit = false;
    for (at, c) in token.char_indices() {
        let is_unit = has_digit && is_unit(c);
        let is_other = !is_unspaced(c) || is_unit;
        let divides = before.is_some_and(|before| before != is_other && !is_mark(c));
        let after_mark = token.get(start..at).is_some_and(|part| part.ends_with(is_mark));
        if divides || (after_mark && ends_clause_before(token, at)) {
            parts.push(slice(token, start..at));
            (start, has_digit) = (at, false);
        }
        has_digit = (has_digit && is_unit) || c.is_ascii_digit() || (has_digit && is_other);
        before = if is_mark(c) { before } else { Some(is_other) };
    }
    parts.push(slice(token, start..));
    parts
}

fn ends_clause_before(token: &str, at: usize) -> bool {
    let mark = token.get(..at).and_then(|part| part.chars().next_back());
    mark.is_some_and(|mark| !mark.is_ascii() && ends_clause(mark))
}

/// Units of dates, times and amounts.
fn is_unit(c: char) -> bool {
    matches!(c, '年' | '月' | '日' | '号' | '点' | '时' | '時') || matches!(c, '分' | '元' | '円')
}

/// Returns the form and the number of tokens of a value of several tokens.
fn compound(tokens: &[Token<'_>]) -> Option<(Form, usize)> {
    const QUOTED: usize = 8;
    if tokens.first()?.text.starts_with(QUOTES) {
        let closes = |token: &Token<'_>| token.text.chars().skip(1).any(|c| QUOTES.contains(&c));
        let last = tokens.iter().take(QUOTED).position(closes).filter(|last| *last > 0);
        return last.map(|last| (Form::Quoted, last + 1));
    }
    match tokens {
        [first, ..] if first.ends() => return None,
        [day, month, ..] if month.is(Grammar::MONTH) && is_day(day.bare()) => {
            return Some((Form::Date, 2));
        }
        [day, of, month, ..]
            if matches!(of.bare(), "de" | "of")
                && month.is(Grammar::MONTH)
                && is_day(day.bare()) =>
        {
            return Some((Form::Date, 3));
        }
        [month, day, ..]
            if month.is(Grammar::MONTH) && (is_day(day.bare()) || is_year(day.bare())) =>
        {
            return Some((Form::Date, 2));
        }
        _ => {}
    }
    let (mut count, mut is_over) = (0, false);
    for token in tokens.iter().take(6).take_while(|token| token.is(Grammar::NUMBER)) {
        if is_over {
            break;
        }
        (count, is_over) = (count + 1, token.ends());
    }
    let is_money = !is_over && tokens.get(count).is_some_and(|next| next.is(Grammar::CURRENCY));
    (count > 0).then_some((if is_money { Form::Amount } else { Form::Number }, count))
}

fn is_year(word: &str) -> bool {
    word.parse::<u16>().is_ok_and(|year| (1900..2200).contains(&year))
}

fn is_day(word: &str) -> bool {
    let ordinals = ["st", "nd", "rd", "th", "er"];
    let number = ordinals.iter().find_map(|end| word.strip_suffix(end)).unwrap_or(word);
    number.parse::<u8>().is_ok_and(|day| (1..=31).contains(&day))
}

/// Returns the form of the first token, or `None` for a word.
fn form(tokens: &[Token<'_>], is_first: bool, before: Grammar) -> Option<Form> {
    let token = tokens.first()?;
    let word = token.bare();
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let letters = word.chars().filter(|c| c.is_alphabetic()).count();
    let upper = word.chars().next().is_some_and(char::is_uppercase);
    let next = tokens.get(1).map_or(Grammar::default(), |next| next.does);
    if word.starts_with(['$', '\u{20ac}', '\u{a3}', '\u{a5}']) && digits > 0 {
        return Some(Form::Amount);
    }
    if word.contains("://") || (word.contains('@') && word.contains('.') && !word.starts_with('@'))
    {
        return Some(Form::Address);
    }
    if word.contains('/') && letters > 0 && !word.starts_with('/') | (digits + letters > 1) {
        return Some(Form::Path);
    }
    // Without a digit only the shape is left: a dot inside the word, or a capital within a
    // sentence. After a German article every noun has a capital, and so have `Euro` and `Uhr`.
    if digits == 0 {
        let dotted = word.contains('.') && letters > 3 && !word.contains("..");
        let is_noun = before.is(Grammar::ARTICLE) || token.is(Grammar::UNIT);
        let name = upper && !is_first && letters > 1 && !is_noun;
        if token.is(Grammar::WEEKDAY) && (name || letters > 4) {
            return Some(Form::Date);
        }
        return if dotted { Some(Form::Path) } else { name.then_some(Form::Name) };
    }
    if word.contains(is_unspaced) {
        return Some(if word.contains(['月', '日', '号', '年']) {
            Form::Date
        } else if word.contains(['点', '时', '時']) {
            Form::Time
        } else {
            Form::Amount
        });
    }
    // With digits and signs only, the number of digits and the signs between them decide:
    // `2026-03-17` is a date, `9:30` a time, `8443` a number.
    if letters == 0 {
        let money = word.ends_with(['$', '\u{20ac}', '\u{a3}', '%']) || next.is(Grammar::CURRENCY);
        return Some(match digits {
            _ if money => Form::Amount,
            _ if next.is(Grammar::TIME_UNIT) => Form::Time,
            4..=8 if has_only(word, "-/") && word.contains(['-', '/']) => Form::Date,
            6..=8 if has_only(word, "-./") && word.contains(['-', '.', '/']) => Form::Date,
            _ if has_only(word, ":") && word.contains(':') => Form::Time,
            7.. if has_only(word, "") => Form::Hash,
            _ => Form::Number,
        });
    }
    // Git shortens the hash of a commit to no less than seven digits.
    let hex = word.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    if hex && word.len() >= 7 {
        return Some(Form::Hash);
    }
    // `12ms` is a number with its unit, `a4-7` is a code.
    let measured = word.starts_with(|c: char| c.is_ascii_digit()) && letters < 4;
    Some(if measured { Form::Number } else { Form::Code })
}

/// Whether a word consists of digits and these signs.
fn has_only(word: &str, signs: &str) -> bool {
    word.chars().all(|c| c.is_ascii_digit() || signs.contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Vec<(Form, String)> {
        let all = pieces(text, 100).into_iter();
        all.filter_map(|piece| Some((piece.form?, piece.text))).collect()
    }

    #[test]
    fn values_are_found_by_their_form() {
        let rows = [
            ("It costs $30 or 40 euros.", vec![(Form::Amount, "$30"), (Form::Amount, "40")]),
            ("Keep it under three hundred dollars.", vec![(Form::Amount, "three hundred")]),
            ("It is due on March 17.", vec![(Form::Date, "March 17")]),
            ("El plazo es el 3 de marzo.", vec![(Form::Date, "3 de marzo")]),
            (
                "Der Termin ist am 17. M\u{e4}rz um 9:30.",
                vec![(Form::Date, "17. M\u{e4}rz"), (Form::Time, "9:30")],
            ),
            (
                "\u{4f1a}\u{8bae}\u{6539}\u{5230}3\u{6708}17\u{65e5}\u{3002}",
                vec![(Form::Date, "3\u{6708}17\u{65e5}")],
            ),
            ("\u{7aef}\u{53e3}\u{662f}8443\u{3002}", vec![(Form::Number, "8443")]),
            (
                "Ask Dr. Kent at kent@clinic.org.",
                vec![(Form::Name, "Kent"), (Form::Address, "kent@clinic.org")],
            ),
        ];
        for (text, expected) in rows {
            let expected: Vec<_> =
                expected.into_iter().map(|(form, value)| (form, value.to_owned())).collect();
            assert_eq!(values(text), expected, "{text}");
        }
    }
}
