//! From the regular expressions of scripts, which are JavaScript's, to those of the engine.
//!
//! The two differ in small things that would change what a script matches: an unescaped `{` or `]`,
//! a `[` within a class, `\<`, `\/`, what `\w` holds, set operators in classes. Rather than hope
//! that a pattern avoids them, this walks it once and writes every part in a form that means the
//! same to the engine. On the way it finds what no search in linear time can do, and whether a
//! match can hold a line break, which tells the search how far it must look ahead.

use super::{pattern_error::RegexError, words::abridge};

/// A pattern as the engine reads it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Translation {
    pub(crate) source: String,
    /// No match holds a line feed. `false` means that one may.
    pub(crate) within_line: bool,
}

/// What was found wrong, and at which byte of the pattern.
pub(crate) type Misplaced = (usize, RegexError);

/// Rewrites a pattern.
///
/// With `unicode`, `\w`, `\d` and `\b` follow Unicode; without it they are ASCII's.
pub(crate) fn translate(
    pattern: &str,
    unicode: bool,
    dot_all: bool,
) -> Result<Translation, Misplaced> {
    let written = Translation { source: String::new(), within_line: !dot_all };
    let mut translator = Translator { pattern, rest: pattern, unicode, written };
    while let Some(character) = translator.next() {
        translator.part(character)?;
    }
    Ok(translator.written)
}

struct Translator<'a> {
    pattern: &'a str,
    rest: &'a str,
    unicode: bool,
    written: Translation,
}

/// What an escape stands for.
enum Escaped {
    Character(char),
    /// A set, written so that it stands alone and within a class.
    Set {
        source: String,
        holds_newline: bool,
    },
    Assertion(&'static str),
}

impl Translator<'_> {
    fn part(&mut self, character: char) -> Result<(), Misplaced> {
        match character {
            '\\' => match self.escape(false)? {
                Escaped::Character(character) => self.literal(character),
                Escaped::Set { source, holds_newline } => {
                    self.written.within_line &= !holds_newline;
                    self.written.source.push_str(&source);
                }
                Escaped::Assertion(source) => self.written.source.push_str(source),
            },
            '[' => self.class()?,
            '(' => self.group()?,
            '{' => self.count(),
            ')' | '|' | '*' | '+' | '?' | '.' | '^' | '$' => self.written.source.push(character),
            literal => self.literal(literal),
        }
        Ok(())
    }

    fn literal(&mut self, character: char) {
        self.written.within_line &= character != '\n';
        push_character(&mut self.written.source, character);
    }

    /// Reads what follows a brace: a count such as `3}`, `3,}` or `3,5}`, or else it is itself.
    fn count(&mut self) {
        let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
        let least = digits(self.rest);
        let after = self.rest.get(least..).unwrap_or_default();
        let most = after.strip_prefix(',').map_or(0, |most| 1 + digits(most));
        let length = least + most;
        match self.rest.split_at_checked(length + 1) {
            Some((count, rest)) if least > 0 && count.ends_with('}') => {
                self.written.source.push('{');
                self.written.source.push_str(count);
                self.rest = rest;
            }
            Some(_) | None => self.literal('{'),
        }
    }

    /// Reads a group up to its first part. Groups never capture: nothing could ask for the text.
    fn group(&mut self) -> Result<(), Misplaced> {
        let start = self.offset() - 1;
        let Some(rest) = self.rest.strip_prefix('?') else {
            self.written.source.push_str("(?:");
            return Ok(());
        };
        if let Some(construct) =
            ["?=", "?!", "?<=", "?<!"].into_iter().find(|it| self.rest.starts_with(it))
        {
            return Err((start, RegexError::LookAround { construct: format!("({construct}") }));
        }
        if let Some((_, after)) = rest.strip_prefix('<').and_then(|name| name.split_once('>')) {
            self.rest = after;
            self.written.source.push_str("(?:");
            return Ok(());
        }
        let flags: String =
            rest.chars().take_while(|it| matches!(it, 'i' | 'm' | 's' | '-')).collect();
        let after = rest.get(flags.len()..).unwrap_or_default();
        let Some(end @ (':' | ')')) = after.chars().next() else {
            let found = abridge(self.pattern.get(start..).unwrap_or_default(), 4);
            return Err((start, RegexError::UnknownGroup { found }));
        };
        self.written.within_line &= !flags.contains('s');
        self.written.source.push_str(&format!("(?{flags}{end}"));
        self.rest = after.get(1..).unwrap_or_default();
        Ok(())
    }

    /// Reads a class, whose opening bracket has been read.
    fn class(&mut self) -> Result<(), Misplaced> {
        let start = self.offset() - 1;
        let negated = self.skip('^');
        let mut source = String::new();
        let mut holds_newline = false;
        loop {
            let item_start = self.offset();
            let Some(character) = self.next() else {
                return Err((start, RegexError::UnclosedClass));
            };
            if character == ']' {
                break;
            }
            let item = self.class_item(character)?;
            holds_newline |= self.class_part(item, item_start, &mut source)?;
        }
        self.written.within_line &= holds_newline == negated;
        self.written.source.push_str(&match (source.is_empty(), negated) {
            (true, true) => r"[\x{0}-\x{10FFFF}]".to_owned(),
            (true, false) => r"[^\x{0}-\x{10FFFF}]".to_owned(),
            (false, true) => format!("[^{source}]"),
            (false, false) => format!("[{source}]"),
        });
        Ok(())
    }

    /// Writes an item, or the range that it begins, and says whether it holds a line feed.
    fn class_part(
        &mut self,
        item: Escaped,
        item_start: usize,
        source: &mut String,
    ) -> Result<bool, Misplaced> {
        let from = match item {
            Escaped::Set { source: set, holds_newline } => {
                source.push_str(&set);
                return Ok(holds_newline);
            }
            Escaped::Character(character) => character,
            Escaped::Assertion(_) => return Ok(false),
        };
        push_character(source, from);
        let is_range = self.rest.starts_with('-') && !self.rest.starts_with("-]");
        if !is_range || self.rest == "-" {
            return Ok(from == '\n');
        }
        self.skip('-');
        let Some(character) = self.next() else { return Ok(false) };
        match self.class_item(character)? {
            Escaped::Character(to) if from <= to => {
                source.push('-');
                push_character(source, to);
                Ok((from..=to).contains(&'\n'))
            }
            Escaped::Character(_) | Escaped::Set { .. } | Escaped::Assertion(_) => {
                let range = self.pattern.get(item_start..self.offset()).unwrap_or_default();
                Err((item_start, RegexError::ClassRange { range: range.to_owned() }))
            }
        }
    }

    fn class_item(&mut self, character: char) -> Result<Escaped, Misplaced> {
        if character == '\\' { self.escape(true) } else { Ok(Escaped::Character(character)) }
    }

    /// Reads an escape, whose backslash has been read.
    fn escape(&mut self, in_class: bool) -> Result<Escaped, Misplaced> {
        let start = self.offset() - 1;
        let Some(character) = self.next() else {
            return Err((start, RegexError::UnknownEscape { found: String::new() }));
        };
        if let Some(set) = self.set(character) {
            return Ok(set);
        }
        let character = match character {
            'b' if in_class => '\u{8}',
            'b' => return Ok(Escaped::Assertion(if self.unicode { r"\b" } else { r"(?-u:\b)" })),
            'B' if !in_class => {
                return Ok(Escaped::Assertion(if self.unicode { r"\B" } else { r"(?-u:\B)" }));
            }
            'p' | 'P' => return self.property(start, character),
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            'f' => '\u{c}',
            '0' if !self.rest.starts_with(|next: char| next.is_ascii_digit()) => '\0',
            'x' | 'u' | 'c' => self.code(start, character)?,
            '1'..='9' | 'k' if !in_class => {
                return Err((
                    start,
                    RegexError::BackReference { reference: format!("\\{character}") },
                ));
            }
            _ if character.is_ascii_alphanumeric() => {
                let found = character.to_string();
                return Err((start, RegexError::UnknownEscape { found }));
            }
            itself => itself,
        };
        Ok(Escaped::Character(character))
    }

    fn set(&self, character: char) -> Option<Escaped> {
        let (source, holds_newline) = match (character, self.unicode) {
            ('d', false) => ("[0-9]", false),
            ('D', false) => ("[^0-9]", true),
            ('w', false) => ("[0-9A-Za-z_]", false),
            ('W', false) => ("[^0-9A-Za-z_]", true),
            ('d', true) => (r"\d", false),
            ('D', true) => (r"\D", true),
            ('w', true) => (r"\w", false),
            ('W', true) => (r"\W", true),
            ('s', _) => (r"\s", true),
            ('S', _) => (r"\S", false),
            _ => return None,
        };
        Some(Escaped::Set { source: source.to_owned(), holds_newline })
    }

    /// Reads `\p{..}`. Whether the engine knows the property is for it to say.
    fn property(&mut self, start: usize, letter: char) -> Result<Escaped, Misplaced> {
        let name = self.rest.strip_prefix('{').and_then(|rest| rest.split_once('}'));
        let plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '=');
        match name {
            Some((name, after)) if !name.is_empty() && name.chars().all(plain) => {
                self.rest = after;
                Ok(Escaped::Set { source: format!(r"\{letter}{{{name}}}"), holds_newline: true })
            }
            _ => Err((start, RegexError::UnknownEscape { found: letter.to_string() })),
        }
    }

    /// Reads a character given by its number: `\x41`, `\u0041`, `\u{41}`, or by its letter: `\cA`.
    fn code(&mut self, start: usize, kind: char) -> Result<char, Misplaced> {
        let found = || format!("{kind}{}", abridge(self.rest, 4));
        let unknown = (start, RegexError::UnknownEscape { found: found() });
        let (number, after) = match (kind, self.rest.strip_prefix('{')) {
            ('u', Some(braced)) => {
                let (digits, after) = braced.split_once('}').unwrap_or_default();
                (hexadecimal(digits), after)
            }
            ('c', _) => {
                let letter = self.rest.chars().next().filter(char::is_ascii_alphabetic);
                let after = self.rest.get(1..).unwrap_or_default();
                (letter.map(|letter| u32::from(letter) % 32), after)
            }
            _ => {
                let length = if kind == 'x' { 2 } else { 4 };
                let digits = self.rest.get(..length).unwrap_or_default();
                (hexadecimal(digits), self.rest.get(length..).unwrap_or_default())
            }
        };
        let (number, after) = with_low_surrogate(number, after);
        let character = number.and_then(char::from_u32).ok_or(unknown)?;
        self.rest = after;
        Ok(character)
    }

    fn next(&mut self) -> Option<char> {
        let mut characters = self.rest.chars();
        let character = characters.next()?;
        self.rest = characters.as_str();
        Some(character)
    }

    fn skip(&mut self, character: char) -> bool {
        let rest = self.rest.strip_prefix(character);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn offset(&self) -> usize {
        self.pattern.len() - self.rest.len()
    }
}

/// Joins the two halves of a character that is written as `\uD83D\uDE00`.
fn with_low_surrogate(number: Option<u32>, after: &str) -> (Option<u32>, &str) {
    let Some(high @ 0xD800..=0xDBFF) = number else { return (number, after) };
    let low = after.strip_prefix("\\u").and_then(|rest| rest.get(..4)).and_then(hexadecimal);
    let Some(low @ 0xDC00..=0xDFFF) = low else { return (number, after) };
    let joined = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
    (Some(joined), after.get(6..).unwrap_or_default())
}

fn hexadecimal(digits: &str) -> Option<u32> {
    let plain = !digits.is_empty() && digits.chars().all(|it| it.is_ascii_hexdigit());
    plain.then(|| u32::from_str_radix(digits, 16).ok()).flatten()
}

fn push_character(source: &mut String, character: char) {
    if character.is_ascii_alphanumeric() || !character.is_ascii() {
        source.push(character);
    } else {
        source.push_str(&format!("\\x{{{:x}}}", u32::from(character)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(pattern: &str) -> String {
        translate(pattern, false, false)
            .map(|it| it.source)
            .unwrap_or_else(|(_, it)| it.to_string())
    }

    fn within_line(pattern: &str) -> bool {
        translate(pattern, false, false).is_ok_and(|it| it.within_line)
    }

    #[test]
    fn what_means_something_else_to_the_engine_is_written_as_a_code() {
        assert_eq!(source(r"a\/b"), r"a\x{2f}b");
        assert_eq!(source(r"\<x\>"), r"\x{3c}x\x{3e}");
        assert_eq!(source("f(x){ }"), r"f(?:x)\x{7b}\x{20}\x{7d}");
        assert_eq!(source("[[&&a]"), r"[\x{5b}\x{26}\x{26}a]");
        assert_eq!(source("[+--]"), r"[\x{2b}-\x{2d}]");
        assert_eq!(source("x]"), r"x\x{5d}");
    }

    #[test]
    fn counts_stay_counts() {
        assert_eq!(source("a{2,3}b{4,}c{5}"), "a{2,3}b{4,}c{5}");
        assert_eq!(source("a{,3}"), r"a\x{7b}\x{2c}3\x{7d}");
    }

    #[test]
    fn codes_name_characters() {
        assert_eq!(source(r"\x41\u0042\u{43}\cJ"), "ABC\\x{a}");
        assert_eq!(source(r"\uD83D\uDE00"), "😀");
    }

    #[test]
    fn a_match_that_cannot_hold_a_line_feed_is_known() {
        for pattern in [r"^# .*$", r"\w+\S", "[a-z]*", r"[^\n]*", r"[^\s]"] {
            assert!(within_line(pattern), "{pattern}");
        }
        for pattern in [r"a\n", r"\s", "[^a]", r"\D", "[\\x00-z]", "(?s:.)", r"\u000a", "[^]"] {
            assert!(!within_line(pattern), "{pattern}");
        }
    }

    #[test]
    fn what_cannot_be_done_is_named_with_its_offset() {
        let error = |pattern| translate(pattern, false, false).err();
        let construct = "(?<=".to_owned();
        assert_eq!(error("ab(?<=x)"), Some((2, RegexError::LookAround { construct })));
        let reference = "\\1".to_owned();
        assert_eq!(error(r"(a)\1"), Some((3, RegexError::BackReference { reference })));
        assert_eq!(error("a[b"), Some((1, RegexError::UnclosedClass)));
        let range = "z-a".to_owned();
        assert_eq!(error("[z-a]"), Some((1, RegexError::ClassRange { range })));
        let found = "A".to_owned();
        assert_eq!(error(r"\A"), Some((0, RegexError::UnknownEscape { found })));
    }

    fn unicode(pattern: &str) -> Option<(String, bool)> {
        translate(pattern, true, false).ok().map(|it| (it.source, it.within_line))
    }

    #[test]
    fn every_escape_means_what_javascript_means() {
        assert_eq!(source(r"\n\r\t\v\f\0"), r"\x{a}\x{d}\x{9}\x{b}\x{c}\x{0}");
        assert_eq!(source(r"[\b]\b\B"), r"[\x{8}](?-u:\b)(?-u:\B)");
        assert_eq!(source(r"[\d-x]"), r"[[0-9]\x{2d}x]");
        let (digit, word) = ("[0-9]", "[0-9A-Za-z_]");
        assert_eq!(source(r"\d\D"), format!("{digit}{}", digit.replace('[', "[^")));
        assert_eq!(source(r"\w\W"), format!("{word}{}", word.replace('[', "[^")));
        assert_eq!(source(r"\s\S\p{L}\P{Script=Greek}"), r"\s\S\p{L}\P{Script=Greek}");
        assert_eq!(unicode(r"\d\w\S\b\B"), Some((r"\d\w\S\b\B".to_owned(), true)));
        for set in [r"\D", r"\W", r"\s", r"\p{L}"] {
            assert_eq!(unicode(set), Some((set.to_owned(), false)));
        }
    }

    #[test]
    fn a_code_that_names_no_character_is_no_escape() {
        assert_eq!(source(r"\uD800\uDC00\uDBFF\uDFFF"), "\u{10000}\u{10FFFF}");
        assert_eq!(source(r"\u{1F600}\cj\x7f"), "😀\\x{a}\\x{7f}");
        let codes = [
            r"\x4",
            r"\xg0",
            r"\x+4",
            r"\u+041",
            r"\u{+41}",
            r"\u12",
            r"\u{110000}",
            r"\u{}",
            r"\u{41",
            r"\c1",
            r"\c",
        ];
        let halves = [r"\uD83D", r"\uD83Dx", r"\uD83D\u0041", r"\uDE00", r"\uD83D\uE000"];
        let others = [r"\01", r"\q", r"[\B]", r"[\1]", r"\p{}", r"\pL", r"\p{a-b}", r"\p{L", "\\"];
        for pattern in [&codes[..], &halves, &others].concat() {
            let at = usize::from(pattern.starts_with('['));
            let error = translate(pattern, false, false).err();
            let is_unknown =
                matches!(&error, Some((found, RegexError::UnknownEscape { .. })) if *found == at);
            assert!(is_unknown, "{pattern}: {error:?}");
        }
    }

    #[test]
    fn groups_keep_their_flags_and_lose_their_names() {
        assert_eq!(source("(?:a)(?<name>b)(?i:c)(?m-i)(d)"), "(?:a)(?:b)(?i:c)(?m-i)(?:d)");
        assert!(within_line("(?im:.)(?<s>a)") && !within_line("(?s)."));
        for construct in ["(?=", "(?!", "(?<=", "(?<!"] {
            let error = translate(&format!("é{construct}a)"), false, false).err();
            let construct = construct.to_owned();
            assert_eq!(error, Some((2, RegexError::LookAround { construct })));
        }
        for pattern in ["(?P<x>a)", "(?", "(?i", "(?x:a)", "(?<name"] {
            let error = translate(pattern, false, false).err();
            assert!(matches!(error, Some((0, RegexError::UnknownGroup { .. }))), "{pattern}");
        }
    }

    #[test]
    fn a_brace_that_counts_nothing_is_itself() {
        for (pattern, expected) in [
            ("a{2", r"a\x{7b}2"),
            ("a{2,", r"a\x{7b}2\x{2c}"),
            ("a{2,x}", r"a\x{7b}2\x{2c}x\x{7d}"),
            ("a{}", r"a\x{7b}\x{7d}"),
            ("{", r"\x{7b}"),
            ("a{12,345}b", "a{12,345}b"),
        ] {
            assert_eq!(source(pattern), expected, "{pattern}");
        }
    }

    #[test]
    fn classes_hold_what_they_hold_in_javascript() {
        for (pattern, expected, is_within_line) in [
            ("[]", r"[^\x{0}-\x{10FFFF}]", true),
            ("[^]", r"[\x{0}-\x{10FFFF}]", false),
            ("[a-]", r"[a\x{2d}]", true),
            ("[^a-a]", "[^a-a]", false),
            ("[ -~]", r"[\x{20}-\x{7e}]", true),
            (r"[\t-\r]", r"[\x{9}-\x{d}]", false),
            (r"[^\t-\r]", r"[^\x{9}-\x{d}]", true),
            (r"[\n]", r"[\x{a}]", false),
            (r"[\nab]", r"[\x{a}ab]", false),
            (r"[^\D]", "[^[^0-9]]", true),
            (r"[\b-\n]", r"[\x{8}-\x{a}]", false),
        ] {
            assert_eq!(
                (source(pattern).as_str(), within_line(pattern)),
                (expected, is_within_line)
            );
        }
        assert_eq!(translate("x[a-", false, false), Err((1, RegexError::UnclosedClass)));
        let range = r"a-\d".to_owned();
        assert_eq!(translate(r"[a-\d]", false, false), Err((1, RegexError::ClassRange { range })));
    }

    #[test]
    fn with_dot_all_a_dot_holds_a_line_feed() {
        assert_eq!(translate("a.", false, true).map(|it| it.within_line), Ok(false));
    }
}
