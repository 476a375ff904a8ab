//! From the text of a script to its tokens.
//!
//! The first characters of a token say what it is: `/` a regular expression, `<<` a heredoc, `"` a
//! quoted string, a backtick a path, anything else a word up to the next white space. After `file`
//! and `newfile` a path is read in a way of its own, so that `/notes.md` is no regular expression.

use super::{
    parse_error::ParseErrorKind,
    words::{QUOTE_CHARACTERS, abridge},
};

/// A token and the byte where it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub(crate) start: usize,
    pub(crate) kind: TokenKind<'a>,
}

/// What a token is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind<'a> {
    Regex {
        source: &'a str,
        flags: &'a str,
    },
    /// Text between backticks.
    Literal(&'a str),
    /// The lines of a heredoc, joined by line feeds, without the last one's.
    Heredoc(String),
    Quoted(String),
    Word(&'a str),
}

/// An error and the byte where it is.
pub(crate) type Misplaced = (usize, ParseErrorKind);

/// Reads tokens off a script.
#[derive(Clone, Debug)]
pub(crate) struct Scanner<'a> {
    script: &'a str,
    rest: &'a str,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(script: &'a str) -> Self {
        Self { script, rest: script }
    }

    /// The byte after what has been read.
    pub(crate) fn offset(&self) -> usize {
        self.script.len() - self.rest.len()
    }

    /// Reads the next token, or `None` at the end of the script.
    pub(crate) fn token(&mut self) -> Result<Option<Token<'a>>, Misplaced> {
        self.skip_trivia();
        let start = self.offset();
        let Some(first) = self.rest.chars().next() else { return Ok(None) };
        let kind = match first {
            '/' => self.regex(start)?,
            '`' => TokenKind::Literal(self.literal(start)?),
            '"' => self.quoted(start)?,
            '<' if self.rest.starts_with("<<") => self.heredoc(start)?,
            _ => TokenKind::Word(self.word()),
        };
        Ok(Some(Token { start, kind }))
    }

    /// Reads a path: text between backticks, or anything up to the next white space.
    pub(crate) fn path(&mut self) -> Result<Option<(usize, &'a str)>, Misplaced> {
        self.skip_trivia();
        let start = self.offset();
        match self.rest.chars().next() {
            None => Ok(None),
            Some('`') => Ok(Some((start, self.literal(start)?))),
            Some('"') => Err((start, expected("a path, bare or in backticks", "a quoted string"))),
            Some(_) => Ok(Some((start, self.word()))),
        }
    }

    /// Skips white space and comments.
    fn skip_trivia(&mut self) {
        loop {
            self.rest = self.rest.trim_start_matches(is_space);
            if !self.rest.starts_with('#') {
                return;
            }
            self.rest = self.rest.find('\n').and_then(|at| self.rest.get(at..)).unwrap_or_default();
        }
    }

    fn word(&mut self) -> &'a str {
        let end = self.rest.find(is_space).unwrap_or(self.rest.len());
        self.take(end)
    }

    fn regex(&mut self, start: usize) -> Result<TokenKind<'a>, Misplaced> {
        self.take(1);
        let end = unescaped(self.rest, '/').ok_or_else(|| {
            let end = if self.rest.contains('\n') { "line" } else { "script" };
            (start, unclosed("the regular expression", "/", end))
        })?;
        let source = self.take(end);
        self.take(1);
        let is_flag = |it: char| matches!(it, 'g' | 'i' | 'm' | 's' | 'u' | 'y');
        let end = self.rest.find(|it| !is_flag(it)).unwrap_or(self.rest.len());
        Ok(TokenKind::Regex { source, flags: self.take(end) })
    }

    fn literal(&mut self, start: usize) -> Result<&'a str, Misplaced> {
        self.take(1);
        let end = self.rest.find('`').ok_or((start, unclosed("the path", "`", "script")))?;
        let literal = self.take(end);
        self.take(1);
        Ok(literal)
    }

    fn quoted(&mut self, start: usize) -> Result<TokenKind<'a>, Misplaced> {
        self.take(1);
        let end = unescaped(self.rest, '"').ok_or_else(|| {
            let end = if self.rest.contains('\n') { "line" } else { "script" };
            (start, unclosed("the quoted string", "\"", end))
        })?;
        let from = self.offset();
        let source = self.take(end);
        self.take(1);
        let mut text = String::with_capacity(source.len());
        let mut characters = source.char_indices();
        while let Some((_, character)) = characters.next() {
            match (character, character == '\\') {
                (_, false) => text.push(character),
                (_, true) => match characters.next() {
                    Some((_, escaped @ ('"' | '\\'))) => text.push(escaped),
                    Some((at, found)) => {
                        return Err((from + at - 1, ParseErrorKind::Escape { found }));
                    }
                    None => {}
                },
            }
        }
        Ok(TokenKind::Quoted(text))
    }

    fn heredoc(&mut self, start: usize) -> Result<TokenKind<'a>, Misplaced> {
        self.take(2);
        let (opening, _) = self.rest.split_once('\n').unwrap_or((self.rest, ""));
        let (tag, after) = split_tag(opening).ok_or_else(|| {
            let found = if opening.trim().is_empty() { "the end of the line" } else { opening };
            (start, expected("a heredoc tag such as `<<END` or `<<'END'`", &quote(found)))
        })?;
        if let Some(stray) = Some(after.trim_matches(is_space)).filter(|it| !it.is_empty()) {
            let at = start + 2 + opening.len() - after.trim_start_matches(is_space).len();
            return Err((at, expected("the end of the line after a heredoc tag", &quote(stray))));
        }
        self.take((opening.len() + 1).min(self.rest.len()));
        // In a script whose lines end in CRLF, a carriage return is no part of the text.
        let is_crlf = opening.ends_with('\r');
        let mut lines = Vec::new();
        while !self.rest.is_empty() {
            let line = self.take(self.rest.find('\n').unwrap_or(self.rest.len()));
            self.take(self.rest.len().min(1));
            let plain = line.strip_suffix('\r').unwrap_or(line);
            if plain == tag {
                return Ok(TokenKind::Heredoc(lines.join("\n")));
            }
            lines.push(if is_crlf { plain } else { line });
        }
        let closer = format!("a line that is exactly `{}`", abridge(tag, QUOTE_CHARACTERS));
        Err((start, ParseErrorKind::Unclosed { what: "the heredoc", closer, end: "script" }))
    }

    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at_checked(bytes).unwrap_or((self.rest, ""));
        self.rest = rest;
        taken
    }
}

/// Returns the tags of a script's heredocs that stand more than once on a line of their own.
pub(crate) fn reused_tags(script: &str) -> Vec<String> {
    let openings = script.split("<<").skip(1);
    let mut tags: Vec<&str> = openings
        .filter_map(|after| split_tag(after.lines().next().unwrap_or_default()))
        .map(|(tag, _)| tag)
        .collect();
    tags.sort_unstable();
    tags.dedup();
    let mut counts = vec![0_usize; tags.len()];
    for line in script.lines() {
        if let Ok(index) = tags.binary_search(&line)
            && let Some(count) = counts.get_mut(index)
        {
            *count += 1;
        }
    }
    let reused = tags.into_iter().zip(counts).filter(|(_, count)| *count > 1);
    reused.map(|(tag, _)| tag.to_owned()).take(5).collect()
}

/// Splits a tag off the rest of the line that opens a heredoc.
fn split_tag(opening: &str) -> Option<(&str, &str)> {
    let (tag, after) = match opening.strip_prefix('\'') {
        Some(quoted) => quoted.split_once('\'')?,
        None => {
            let is_tag = |it: char| it.is_ascii_alphanumeric() || it == '_';
            opening.split_at(opening.find(|it| !is_tag(it)).unwrap_or(opening.len()))
        }
    };
    (!tag.is_empty()).then_some((tag, after))
}

/// Returns where a closing character stands on this line without a backslash before it. A backslash
/// takes the next character with it, even a line feed.
fn unescaped(text: &str, closer: char) -> Option<usize> {
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => {
                characters.next();
            }
            '\n' => return None,
            _ if character == closer => return Some(at),
            _ => {}
        }
    }
    None
}

/// JavaScript's white space, which includes the byte-order mark.
fn is_space(character: char) -> bool {
    character.is_whitespace() || character == '\u{feff}'
}

fn unclosed(what: &'static str, closer: &str, end: &'static str) -> ParseErrorKind {
    ParseErrorKind::Unclosed { what, closer: format!("`{closer}`"), end }
}

/// Something else was due.
pub(crate) fn expected(expected: &str, found: &str) -> ParseErrorKind {
    ParseErrorKind::Expected { expected: expected.to_owned(), found: found.to_owned() }
}

/// Returns a word as messages show it.
pub(crate) fn quote(word: &str) -> String {
    format!("`{}`", abridge(word, QUOTE_CHARACTERS))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(script: &str) -> Result<Vec<TokenKind<'_>>, Misplaced> {
        let mut scanner = Scanner::new(script);
        let mut kinds = Vec::new();
        while let Some(token) = scanner.token()? {
            kinds.push(token.kind);
        }
        Ok(kinds)
    }

    fn heredoc(script: &str) -> Option<String> {
        let first = kinds(script).ok()?.into_iter().next()?;
        if let TokenKind::Heredoc(text) = first { Some(text) } else { None }
    }

    #[test]
    fn tokens_are_told_by_how_they_begin() {
        let tokens = kinds("a#b /x\\/y/gi `p q` \"say \\\"\\\\\"next # gone\n<<E\nt\nE\n");
        let expected = vec![
            TokenKind::Word("a#b"),
            TokenKind::Regex { source: "x\\/y", flags: "gi" },
            TokenKind::Literal("p q"),
            TokenKind::Quoted("say \"\\".to_owned()),
            TokenKind::Word("next"),
            TokenKind::Heredoc("t".to_owned()),
        ];
        assert_eq!(tokens, Ok(expected));
    }

    #[test]
    fn a_heredoc_ends_at_the_line_that_is_its_tag() {
        assert_eq!(heredoc("<<E\na\n E\nE x\nE").as_deref(), Some("a\n E\nE x"));
        assert_eq!(heredoc("<<E\nE").as_deref(), Some(""));
        assert_eq!(heredoc("<<E\n\nE").as_deref(), Some(""));
        assert_eq!(heredoc("<<E\n\n\nE").as_deref(), Some("\n"));
        assert_eq!(heredoc("<<'a b' \nx\na b\n").as_deref(), Some("x"));
        assert_eq!(heredoc("<<E\nx\n"), None);
    }

    #[test]
    fn a_crlf_script_ends_its_heredocs_and_keeps_its_returns_to_itself() {
        assert_eq!(heredoc("<<E\r\na\r\nb\r\nE\r\n").as_deref(), Some("a\nb"));
        assert_eq!(heredoc("<<E\na\r\nE\r\n").as_deref(), Some("a\r"));
    }

    #[test]
    fn what_is_not_closed_says_what_would_close_it() {
        let closer = |script| match kinds(script) {
            Err((_, ParseErrorKind::Unclosed { closer, end, .. })) => format!("{closer} {end}"),
            other => format!("{other:?}"),
        };
        assert_eq!(closer("/a\n/"), "`/` line");
        assert_eq!(closer("/a\\\nb"), "`/` line");
        assert_eq!(closer("`a\n"), "`` ` `` script".replace("`` ` ``", "```"));
        assert_eq!(closer("\"a"), "`\"` script");
        assert_eq!(closer("<<E\nE2"), "a line that is exactly `E` script");
    }

    #[test]
    fn tags_on_several_lines_of_their_own_are_found() {
        assert_eq!(reused_tags("<<E\nE\nE\n<<F\nF\n"), ["E"]);
    }
}
