//! Translates JavaScript's regular expressions into the notation of the engine.
//!
//! Scripts use JavaScript's notation, because models know it best. The engine's notation looks the
//! same but differs in details: an unescaped `{` or `]`, a `[` within a class, `\<`, `\/`, the
//! matches of `\w`, set operators in classes. So every part of a pattern is parsed by JavaScript's
//! rules and written in a form with the same meaning in the engine. Constructs that cannot be
//! searched for in linear time are errors.

use super::text::{abridge, slice};

/// A message about a pattern, and the byte of the pattern at which the mistake begins.
pub(crate) type Invalid = (usize, String);

/// Returns a pattern in the engine's notation.
///
/// With `unicode`, `\w`, `\d` and `\b` follow Unicode; otherwise they match ASCII only.
pub(crate) fn translate(pattern: &str, unicode: bool) -> Result<String, Invalid> {
    let written = String::new();
    let mut translator = Translator { pattern, rest: pattern, start: 0, unicode, written };
    translator.run().map_err(|message| (translator.start, message))?;
    Ok(translator.written)
}

struct Translator<'a> {
    pattern: &'a str,
    rest: &'a str,
    /// The first byte of the part that is being read, for errors.
    start: usize,
    unicode: bool,
    written: String,
}

/// An item of a class, or the meaning of an escape.
enum Item {
    Character(char),
    /// A set or an assertion in the engine's notation.
    Source(String),
}

impl Translator<'_> {
    fn run(&mut self) -> Result<(), String> {
        loop {
            self.start = self.offset();
            match self.next() {
                None => return Ok(()),
                Some('\\') => match self.escape(false)? {
                    Item::Character(character) => push_literal(&mut self.written, character),
                    Item::Source(source) => self.written.push_str(&source),
                },
                Some('[') => self.class()?,
                Some('(') => self.group()?,
                Some('{') => self.count(),
                Some(it @ (')' | '|' | '*' | '+' | '?' | '.' | '^' | '$')) => self.written.push(it),
                Some(literal) => push_literal(&mut self.written, literal),
            }
        }
    }

    /// Reads the text after an opening brace. Unless it is a count such as `3}`, `3,}` or `3,5}`,
    /// the brace is a literal.
    fn count(&mut self) {
        let least = digits(self.rest);
        let after = slice(self.rest, least..self.rest.len());
        let length = least + after.strip_prefix(',').map_or(0, |most| 1 + digits(most));
        match self.rest.split_at_checked(length + 1) {
            Some((count, rest)) if least > 0 && count.ends_with('}') => {
                self.written.push('{');
                self.written.push_str(count);
                self.rest = rest;
            }
            Some(_) | None => push_literal(&mut self.written, '{'),
        }
    }

    /// Reads the opening of a group. Groups never capture, because the script language has no use
    /// for captures.
    fn group(&mut self) -> Result<(), String> {
        let look_arounds = ["?=", "?!", "?<=", "?<!"];
        if let Some(found) = look_arounds.into_iter().find(|it| self.rest.starts_with(it)) {
            let advice = "is not supported; select a longer match and `narrow` it";
            return Err(format!("look-around `({found}` {advice}"));
        }
        let name = self.rest.strip_prefix("?<").and_then(|name| name.split_once('>'));
        if name.is_some() || !self.rest.starts_with('?') {
            self.rest = name.map_or(self.rest, |(_, after)| after);
            self.written.push_str("(?:");
            return Ok(());
        }
        let mut after = self.rest.char_indices().skip(1);
        let end = after.find(|(_, it)| !matches!(it, 'i' | 'm' | 's' | '-'));
        let Some((end, ':' | ')')) = end else {
            let found = abridge(slice(self.pattern, self.start..self.pattern.len()), 4);
            return Err(format!("a group cannot begin with `{found}`"));
        };
        let opening = format!("({}", self.take(end + 1));
        self.written.push_str(&opening);
        Ok(())
    }

    /// Reads a class after its opening bracket.
    fn class(&mut self) -> Result<(), String> {
        let class_start = self.start;
        let mut is_negated = self.rest.starts_with('^');
        self.take(usize::from(is_negated));
        let mut items = String::new();
        loop {
            self.start = self.offset();
            match self.next() {
                None => {
                    self.start = class_start;
                    return Err("the class has no closing `]`".to_owned());
                }
                Some(']') => break,
                Some(character) => match self.class_item(character)? {
                    Item::Source(set) => items.push_str(&set),
                    Item::Character(from) => self.class_range(from, &mut items)?,
                },
            }
        }
        // JavaScript's `[]` matches nothing and `[^]` every character. The engine has no empty
        // class.
        if items.is_empty() {
            is_negated = !is_negated;
            items.push_str(r"\x{0}-\x{10FFFF}");
        }
        self.written.push_str(&format!("[{}{items}]", if is_negated { "^" } else { "" }));
        Ok(())
    }

    /// Writes a character of a class, or the range that begins with it.
    fn class_range(&mut self, from: char, items: &mut String) -> Result<(), String> {
        push_literal(items, from);
        let is_range = self.rest.starts_with('-') && !self.rest.starts_with("-]");
        let after_dash = self.rest.chars().nth(1).filter(|_| is_range);
        let Some(character) = after_dash else { return Ok(()) };
        let range_start = self.start;
        self.start = self.offset() + 1;
        self.take(1 + character.len_utf8());
        match self.class_item(character)? {
            Item::Character(to) if from <= to => {
                items.push('-');
                push_literal(items, to);
                Ok(())
            }
            Item::Character(_) | Item::Source(_) => {
                self.start = range_start;
                let range = slice(self.pattern, range_start..self.offset());
                Err(format!("`{range}` is not a range of characters"))
            }
        }
    }

    fn class_item(&mut self, character: char) -> Result<Item, String> {
        if character == '\\' { self.escape(true) } else { Ok(Item::Character(character)) }
    }

    /// Reads an escape after its backslash.
    fn escape(&mut self, in_class: bool) -> Result<Item, String> {
        let Some(character) = self.next() else { return Err(no_meaning("")) };
        if let Some(source) = self.set_or_assertion(character, in_class) {
            return Ok(Item::Source(source.to_owned()));
        }
        Ok(Item::Character(match character {
            'p' | 'P' => return self.property(character),
            'b' => '\u{8}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            'f' => '\u{c}',
            '0' if !self.rest.starts_with(|next: char| next.is_ascii_digit()) => '\0',
            'x' | 'u' | 'c' => self.code(character)?,
            '1'..='9' | 'k' if !in_class => {
                return Err(format!("back-reference `\\{character}` is not supported"));
            }
            _ if character.is_ascii_alphanumeric() => {
                return Err(no_meaning(&character.to_string()));
            }
            literal => literal,
        }))
    }

    /// Returns the engine's form of an escape that JavaScript has too. The engine's own escapes
    /// follow Unicode.
    fn set_or_assertion(&self, character: char, in_class: bool) -> Option<&'static str> {
        Some(match (character, self.unicode) {
            ('b' | 'B', _) if in_class => return None,
            ('b', false) => r"(?-u:\b)",
            ('B', false) => r"(?-u:\B)",
            ('d', false) => "[0-9]",
            ('D', false) => "[^0-9]",
            ('w', false) => "[0-9A-Za-z_]",
            ('W', false) => "[^0-9A-Za-z_]",
            ('b', true) => r"\b",
            ('B', true) => r"\B",
            ('d', true) => r"\d",
            ('D', true) => r"\D",
            ('w', true) => r"\w",
            ('W', true) => r"\W",
            ('s', _) => r"\s",
            ('S', _) => r"\S",
            _ => return None,
        })
    }

    /// Reads the name of `\p{..}`. The engine checks whether the name exists.
    fn property(&mut self, letter: char) -> Result<Item, String> {
        let name = self.rest.strip_prefix('{').and_then(|rest| rest.split_once('}'));
        let name = name.filter(|(name, _)| {
            let is_plain = name.bytes().all(|it| it.is_ascii_alphanumeric() || b"_=".contains(&it));
            is_plain && !name.is_empty()
        });
        let (name, after) = name.ok_or_else(|| no_meaning(&letter.to_string()))?;
        self.rest = after;
        Ok(Item::Source(format!(r"\{letter}{{{name}}}")))
    }

    /// Reads a character given by its number, `\x41`, `\u0041` or `\u{41}`, or as `\cA`.
    fn code(&mut self, kind: char) -> Result<char, String> {
        let found = format!("{kind}{}", abridge(self.rest, 4));
        let number = match (kind, self.rest.strip_prefix('{')) {
            ('u', Some(braced)) => braced.split_once('}').and_then(|(digits, _)| {
                self.take(digits.len() + 2);
                hexadecimal(digits)
            }),
            ('c', _) => self.next().filter(char::is_ascii_alphabetic).map(|it| u32::from(it) % 32),
            _ => hexadecimal(self.take(if kind == 'x' { 2 } else { 4 })),
        };
        let character = self.with_low_surrogate(number).and_then(char::from_u32);
        character.ok_or_else(|| no_meaning(&found))
    }

    /// Completes a character that is written as two halves, such as `\uD83D\uDE00`.
    fn with_low_surrogate(&mut self, number: Option<u32>) -> Option<u32> {
        let Some(high @ 0xD800..=0xDBFF) = number else { return number };
        let low = self.rest.strip_prefix("\\u").and_then(|rest| rest.get(..4));
        let Some(low @ 0xDC00..=0xDFFF) = low.and_then(hexadecimal) else { return number };
        self.take(6);
        Some(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))
    }

    fn next(&mut self) -> Option<char> {
        let mut characters = self.rest.chars();
        let character = characters.next()?;
        self.rest = characters.as_str();
        Some(character)
    }

    /// Takes this many bytes, or nothing if fewer are left.
    fn take(&mut self, bytes: usize) -> &str {
        let (taken, rest) = self.rest.split_at_checked(bytes).unwrap_or(("", self.rest));
        self.rest = rest;
        taken
    }

    fn offset(&self) -> usize {
        self.pattern.len() - self.rest.len()
    }
}

/// Returns the number of digits at the start of a text.
fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

fn no_meaning(escape: &str) -> String {
    format!("`\\{escape}` has no meaning here")
}

fn hexadecimal(digits: &str) -> Option<u32> {
    let is_number = !digits.is_empty() && digits.chars().all(|it| it.is_ascii_hexdigit());
    if is_number { u32::from_str_radix(digits, 16).ok() } else { None }
}

/// Writes a character so that the engine reads it as itself.
fn push_literal(source: &mut String, character: char) {
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
        translate(pattern, false).unwrap_or_else(|(_, message)| message)
    }

    #[test]
    fn characters_with_a_meaning_in_the_engine_alone_are_escaped() {
        assert_eq!(source(r"a\/b"), r"a\x{2f}b");
        assert_eq!(source(r"\<x\>"), r"\x{3c}x\x{3e}");
        assert_eq!(source("f(x){ }"), r"f(?:x)\x{7b}\x{20}\x{7d}");
        assert_eq!(source("[[&&a]"), r"[\x{5b}\x{26}\x{26}a]");
        assert_eq!(source("[+--]"), r"[\x{2b}-\x{2d}]");
        assert_eq!(source("x]"), r"x\x{5d}");
    }

    #[test]
    fn counts_are_kept() {
        assert_eq!(source("a{2,3}b{4,}c{5}"), "a{2,3}b{4,}c{5}");
        assert_eq!(source("a{,3}"), r"a\x{7b}\x{2c}3\x{7d}");
    }

    #[test]
    fn numbers_stand_for_characters() {
        assert_eq!(source(r"\x41\u0042\u{43}\cJ"), "ABC\\x{a}");
        assert_eq!(source(r"\uD83D\uDE00"), "😀");
    }

    #[test]
    fn an_unsupported_construct_is_named_with_its_offset() {
        let error = |pattern| translate(pattern, false).expect_err("an unsupported construct");
        let (at, message) = error("ab(?<=x)");
        assert!(at == 2 && message.starts_with("look-around `(?<=` is not supported"), "{message}");
        for (pattern, at, message) in [
            (r"(a)\1", 3, r"back-reference `\1` is not supported"),
            ("a[b", 1, "the class has no closing `]`"),
            ("x[a-", 1, "the class has no closing `]`"),
            ("[z-a]", 1, "`z-a` is not a range of characters"),
            (r"[a-\d]", 1, r"`a-\d` is not a range of characters"),
            (r"\A", 0, r"`\A` has no meaning here"),
        ] {
            assert_eq!(error(pattern), (at, message.to_owned()));
        }
    }

    #[test]
    fn every_escape_keeps_its_meaning() {
        assert_eq!(source(r"\n\r\t\v\f\0"), r"\x{a}\x{d}\x{9}\x{b}\x{c}\x{0}");
        assert_eq!(source(r"[\b]\b\B"), r"[\x{8}](?-u:\b)(?-u:\B)");
        assert_eq!(source(r"[\d-x]"), r"[[0-9]\x{2d}x]");
        let (digit, word) = ("[0-9]", "[0-9A-Za-z_]");
        assert_eq!(source(r"\d\D"), format!("{digit}{}", digit.replace('[', "[^")));
        assert_eq!(source(r"\w\W"), format!("{word}{}", word.replace('[', "[^")));
        assert_eq!(source(r"\s\S\p{L}\P{Script=Greek}"), r"\s\S\p{L}\P{Script=Greek}");
        for pattern in [r"\d\w\S\b\B", r"\D", r"\W", r"\s", r"\p{L}"] {
            assert_eq!(translate(pattern, true).as_deref(), Ok(pattern));
        }
    }

    #[test]
    fn a_number_without_a_character_is_an_error() {
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
            let (found, message) = translate(pattern, false).expect_err("an unknown escape");
            assert!(found == at && message.ends_with("` has no meaning here"), "{message}");
        }
    }

    #[test]
    fn groups_keep_their_flags_and_lose_their_names() {
        assert_eq!(source("(?:a)(?<name>b)(?i:c)(?m-i)(d)"), "(?:a)(?:b)(?i:c)(?m-i)(?:d)");
        for construct in ["(?=", "(?!", "(?<=", "(?<!"] {
            let error = translate(&format!("é{construct}a)"), false).expect_err("look-around");
            assert!(error.0 == 2 && error.1.starts_with(&format!("look-around `{construct}`")));
        }
        for pattern in ["(?P<x>a)", "(?", "(?i", "(?x:a)", "(??i:a)", "(?<name"] {
            let (at, message) = translate(pattern, false).expect_err("an unknown group");
            assert!(at == 0 && message.starts_with("a group cannot begin with"), "{message}");
        }
    }

    #[test]
    fn a_brace_without_a_count_is_a_literal() {
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
    fn classes_match_the_same_as_in_javascript() {
        for (pattern, expected) in [
            ("[]", r"[^\x{0}-\x{10FFFF}]"),
            ("[^]", r"[\x{0}-\x{10FFFF}]"),
            ("[a-]", r"[a\x{2d}]"),
            ("[^a-a]", "[^a-a]"),
            ("[ -~]", r"[\x{20}-\x{7e}]"),
            (r"[\t-\r]", r"[\x{9}-\x{d}]"),
            (r"[^\t-\r]", r"[^\x{9}-\x{d}]"),
            (r"[\n]", r"[\x{a}]"),
            (r"[\nab]", r"[\x{a}ab]"),
            (r"[^\D]", "[^[^0-9]]"),
            (r"[\b-\n]", r"[\x{8}-\x{a}]"),
        ] {
            assert_eq!(source(pattern), expected);
        }
    }
}
