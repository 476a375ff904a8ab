//! The tokens of a script.
//!
//! The first characters of a token determine its kind: `/` begins a regular expression, `<<` a
//! heredoc, `"` a quoted string, a backtick a path, and anything else a word, which ends at white
//! space. Only after `file` and `newfile` does the parser ask for a path, so that `/notes.md` is
//! not read as a regular expression there.

use std::collections::BTreeMap;

use super::text::shorten;

/// A part of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Token<'a> {
    Regex {
        source: &'a str,
        flags: &'a str,
    },
    /// Text between backticks.
    Path(&'a str),
    /// The lines of a heredoc, joined by line feeds. The last line has none.
    Heredoc(String),
    Quoted(String),
    Word(&'a str),
}

impl Token<'_> {
    /// Returns the token as error messages name it.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Regex { source, flags } => format!("the regex `/{}/{flags}`", shorten(source)),
            Self::Path(text) => format!("a path in backticks ({})", shorten(text)),
            Self::Heredoc(_) => "a heredoc".to_owned(),
            Self::Quoted(text) => format!("the quoted string \"{}\"", shorten(text)),
            Self::Word(word) => quote(word),
        }
    }
}

/// Reads the tokens of a script one by one.
#[derive(Clone, Debug)]
pub(crate) struct Tokens<'a> {
    script: &'a str,
    rest: &'a str,
    /// The first byte of the last token, or of the wrong part of it.
    pub(crate) start: usize,
}

impl<'a> Tokens<'a> {
    pub(crate) fn new(script: &'a str) -> Self {
        Self { script, rest: script, start: 0 }
    }

    /// Reads the next token. `None` is the end of the script.
    pub(crate) fn next(&mut self) -> Result<Option<Token<'a>>, String> {
        Ok(match self.first() {
            None => None,
            Some('/') => Some(self.regex()?),
            Some('`') => Some(Token::Path(self.backticked()?)),
            Some('"') => Some(Token::Quoted(self.quoted()?)),
            Some('<') if self.rest.starts_with("<<") => Some(Token::Heredoc(self.heredoc()?)),
            Some(_) => Some(Token::Word(self.word())),
        })
    }

    /// Reads a path: text between backticks, or anything up to the next white space.
    pub(crate) fn path(&mut self) -> Result<Option<&'a str>, String> {
        match self.first() {
            None => Ok(None),
            Some('`') => self.backticked().map(Some),
            Some('"') => Err(expected("a path, bare or in backticks", "a quoted string")),
            Some(_) => Ok(Some(self.word())),
        }
    }

    /// Goes to the next token and returns its first character.
    fn first(&mut self) -> Option<char> {
        self.skip_space_and_comments();
        self.start = self.script.len() - self.rest.len();
        self.rest.chars().next()
    }

    fn skip_space_and_comments(&mut self) {
        self.rest = self.rest.trim_start_matches(is_space);
        while self.rest.starts_with('#') {
            self.take(self.rest.find('\n').unwrap_or(self.rest.len()));
            self.rest = self.rest.trim_start_matches(is_space);
        }
    }

    fn word(&mut self) -> &'a str {
        self.take(self.rest.find(is_space).unwrap_or(self.rest.len()))
    }

    fn regex(&mut self) -> Result<Token<'a>, String> {
        let source = self.delimited('/', "the regular expression")?;
        let end = self.rest.find(|it| !matches!(it, 'g' | 'i' | 'm' | 's' | 'u' | 'y'));
        Ok(Token::Regex { source, flags: self.take(end.unwrap_or(self.rest.len())) })
    }

    /// Reads a text between two delimiters on one line. Escapes are left as they are.
    fn delimited(&mut self, delimiter: char, name: &str) -> Result<&'a str, String> {
        self.take(1);
        let end = unescaped(self.rest, delimiter).ok_or_else(|| {
            let end = if self.rest.contains('\n') { "line" } else { "script" };
            unclosed(name, &format!("`{delimiter}`"), end)
        })?;
        let text = self.take(end);
        self.take(1);
        Ok(text)
    }

    fn backticked(&mut self) -> Result<&'a str, String> {
        self.take(1);
        let end = self.rest.find('`');
        let text = self.take(end.ok_or_else(|| unclosed("the path", "```", "script"))?);
        self.take(1);
        Ok(text)
    }

    fn quoted(&mut self) -> Result<String, String> {
        let source = self.delimited('"', "the quoted string")?;
        let mut text = String::with_capacity(source.len());
        let mut characters = source.char_indices();
        while let Some((at, character)) = characters.next() {
            // No source ends in a backslash: it would have escaped the closing quote.
            let escaped = if character == '\\' { characters.next() } else { None };
            match escaped {
                None => text.push(character),
                Some((_, escaped @ ('"' | '\\'))) => text.push(escaped),
                Some((_, found)) => {
                    self.start += 1 + at;
                    return Err(format!(
                        "a quoted string knows only the escapes `\\\"` and `\\\\`, found `\\{found}`; \
                         use a heredoc for text of several lines"
                    ));
                }
            }
        }
        Ok(text)
    }

    fn heredoc(&mut self) -> Result<String, String> {
        self.take(2);
        let opening = self.line();
        let (tag, after) = split_tag(opening).ok_or_else(|| {
            let is_blank = opening.trim().is_empty();
            let found = if is_blank { "the end of the line" } else { opening };
            expected("a heredoc tag such as `<<END` or `<<'END'`", &quote(found))
        })?;
        let stray = after.trim_start_matches(is_space);
        if !stray.is_empty() {
            self.start += 2 + opening.len() - stray.len();
            let found = quote(stray.trim_end_matches(is_space));
            return Err(expected("the end of the line after a heredoc tag", &found));
        }
        // In a script with CRLF line endings the carriage returns are not part of the heredoc's
        // text.
        let is_crlf = opening.ends_with('\r');
        let mut lines = Vec::new();
        while !self.rest.is_empty() {
            let line = self.line();
            let plain = line.strip_suffix('\r').unwrap_or(line);
            if plain == tag {
                return Ok(lines.join("\n"));
            }
            lines.push(if is_crlf { plain } else { line });
        }
        let closer = format!("a line that is exactly {}", quote(tag));
        Err(unclosed("the heredoc", &closer, "script"))
    }

    /// Takes the rest of a line including its line feed, and returns it without the line feed.
    fn line(&mut self) -> &'a str {
        let line = self.take(self.rest.find('\n').unwrap_or(self.rest.len()));
        self.take(1);
        line
    }

    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at_checked(bytes).unwrap_or((self.rest, ""));
        self.rest = rest;
        taken
    }
}

/// Returns, quoted, the first tags of heredocs that are alone on more than one line: such a heredoc
/// may have ended too early.
pub(crate) fn reused_tags(script: &str) -> Vec<String> {
    let openings = script.split("<<").skip(1).filter_map(|after| after.lines().next());
    let tags = openings.filter_map(split_tag).map(|(tag, _)| (tag, 0));
    let mut counts: BTreeMap<&str, usize> = tags.collect();
    for line in script.lines() {
        if let Some(count) = counts.get_mut(line) {
            *count += 1;
        }
    }
    let reused = counts.into_iter().filter(|(_, count)| *count > 1);
    reused.map(|(tag, _)| format!("`{tag}`")).take(5).collect()
}

/// Splits the line that opens a heredoc after its tag.
fn split_tag(opening: &str) -> Option<(&str, &str)> {
    let (tag, after) = match opening.strip_prefix('\'') {
        Some(quoted) => quoted.split_once('\'')?,
        None => {
            let end = opening.find(|it: char| !it.is_ascii_alphanumeric() && it != '_');
            opening.split_at(end.unwrap_or(opening.len()))
        }
    };
    (!tag.is_empty()).then_some((tag, after))
}

/// Returns the offset of the first delimiter that no backslash escapes, if it is on this line. An
/// escaped line feed does not end the line.
fn unescaped(text: &str, delimiter: char) -> Option<usize> {
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => {
                characters.next();
            }
            '\n' => return None,
            _ if character == delimiter => return Some(at),
            _ => {}
        }
    }
    None
}

/// Whether JavaScript's `\s` matches the character. That includes the byte-order mark.
fn is_space(character: char) -> bool {
    character.is_whitespace() || character == '\u{feff}'
}

fn unclosed(name: &str, closer: &str, end: &str) -> String {
    format!("{name} is not closed: expected {closer} before the end of the {end}")
}

pub(crate) fn expected(expected: &str, found: &str) -> String {
    format!("expected {expected}, found {found}")
}

/// Returns a word as error messages quote it.
pub(crate) fn quote(word: &str) -> String {
    format!("`{}`", shorten(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(script: &str) -> Result<Vec<Token<'_>>, String> {
        let mut tokens = Tokens::new(script);
        let mut read = Vec::new();
        while let Some(token) = tokens.next()? {
            read.push(token);
        }
        Ok(read)
    }

    fn heredoc(script: &str) -> Option<String> {
        let first = tokens(script).ok()?.into_iter().next()?;
        if let Token::Heredoc(text) = first { Some(text) } else { None }
    }

    #[test]
    fn the_first_characters_of_a_token_determine_its_kind() {
        let found = tokens("a#b /x\\/y/gi `p q` \"say \\\"\\\\\"next # gone\n<<E\nt\nE\n");
        let expected = vec![
            Token::Word("a#b"),
            Token::Regex { source: "x\\/y", flags: "gi" },
            Token::Path("p q"),
            Token::Quoted("say \"\\".to_owned()),
            Token::Word("next"),
            Token::Heredoc("t".to_owned()),
        ];
        assert_eq!(found, Ok(expected));
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
    fn carriage_returns_of_a_crlf_script_are_not_in_its_heredocs() {
        assert_eq!(heredoc("<<E\r\na\r\nb\r\nE\r\n").as_deref(), Some("a\nb"));
        assert_eq!(heredoc("<<E\na\r\nE\r\n").as_deref(), Some("a\r"));
    }

    #[test]
    fn an_unclosed_token_names_its_closing_text() {
        let closer = |script| {
            let message = tokens(script).expect_err("an open end");
            let (_, closer) =
                message.split_once("expected ").expect("the message names the closing text");
            closer.replace("before the end of the ", "")
        };
        assert_eq!(closer("/a\n/"), "`/` line");
        assert_eq!(closer("/a\\\nb"), "`/` line");
        assert_eq!(closer("`a\n"), "`` ` `` script".replace("`` ` ``", "```"));
        assert_eq!(closer("\"a"), "`\"` script");
        assert_eq!(closer("<<E\nE2"), "a line that is exactly `E` script");
    }

    #[test]
    fn tags_on_several_lines_of_their_own_are_found() {
        assert_eq!(reused_tags("<<E\nE\nE\n<<F\nF\n"), ["`E`"]);
    }
}
