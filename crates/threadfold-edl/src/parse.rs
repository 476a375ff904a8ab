//! From tokens to commands.
//!
//! ```text
//! script   = { command }
//! command  = "file" path | "newfile" path | selector pattern
//!          | "retain_first" | "retain_last" | "retain_nth" integer
//!          | ("replace" | "insert_before" | "insert_after") value | "delete" | "cut" register
//! pattern  = regex | heredoc | position | position "-" position
//! position = "bof" | "eof" | LINE | LINE ":" | LINE ":" COLUMN
//! value    = heredoc | quoted | register
//! ```

use std::{collections::HashMap, sync::Arc};

use super::{
    command::{Action, Command, Mutate, Open, Pattern, Position, Retain, Select, Selector, Value},
    limits::Limits,
    lines_pattern::LinesPattern,
    parse_error::{ParseError, ParseErrorKind},
    path::FilePath,
    pattern_error::RegexError,
    place::PlaceFinder,
    regex::Regex,
    scan::{Misplaced, Scanner, TokenKind, expected, quote, reused_tags},
    words::{QUOTE_CHARACTERS, abridge},
};

/// Reads a script.
pub(crate) fn parse(script: &str, limits: &Limits) -> Result<Vec<Command>, ParseError> {
    if script.len() > limits.script_bytes {
        let kind =
            ParseErrorKind::ScriptTooLong { found: script.len(), limit: limits.script_bytes };
        let place = PlaceFinder::new(script).place(0);
        return Err(ParseError { place, kind, reused_tags: Vec::new() });
    }
    commands(script, limits).map_err(|(offset, kind)| ParseError {
        place: PlaceFinder::new(script).place(offset),
        kind,
        reused_tags: reused_tags(script),
    })
}

fn commands<'a>(script: &'a str, limits: &'a Limits) -> Result<Vec<Command>, Misplaced> {
    let mut parser =
        Parser { scanner: Scanner::new(script), limits, regexes: HashMap::new(), regexes_bytes: 0 };
    let mut places = PlaceFinder::new(script);
    let mut commands = Vec::new();
    while let Some((start, action)) = parser.command()? {
        let is_open = matches!(action, Action::Open(_));
        if commands.is_empty() && !is_open {
            return Err((start, ParseErrorKind::NoFile { command: action.to_string() }));
        }
        if commands.len() == limits.commands {
            return Err((start, ParseErrorKind::TooManyCommands { limit: limits.commands }));
        }
        commands.push(Command { place: places.place(start), action });
    }
    Ok(commands)
}

struct Parser<'a> {
    scanner: Scanner<'a>,
    limits: &'a Limits,
    /// What has been compiled, by source and flags. The same expression is compiled once.
    regexes: HashMap<(&'a str, &'a str), Arc<Regex>>,
    regexes_bytes: usize,
}

impl<'a> Parser<'a> {
    fn command(&mut self) -> Result<Option<(usize, Action)>, Misplaced> {
        let Some(token) = self.scanner.token()? else { return Ok(None) };
        let TokenKind::Word(word) = token.kind else {
            return Err((token.start, expected("a command", &describe(&token.kind))));
        };
        let action = match word {
            "file" => Action::Open(Open { path: self.path(word)?, is_new: false }),
            "newfile" => Action::Open(Open { path: self.path(word)?, is_new: true }),
            "retain_first" => Action::Retain(Retain::First),
            "retain_last" => Action::Retain(Retain::Last),
            "retain_nth" => Action::Retain(Retain::Nth(self.integer()?)),
            "replace" => Action::Mutate(Mutate::Replace(self.value(word)?)),
            "insert_before" => Action::Mutate(Mutate::InsertBefore(self.value(word)?)),
            "insert_after" => Action::Mutate(Mutate::InsertAfter(self.value(word)?)),
            "delete" => Action::Mutate(Mutate::Delete),
            "cut" => Action::Mutate(Mutate::Cut { register: self.register()? }),
            _ => match selector(word) {
                Some(selector) => Action::Select(Select { selector, pattern: self.pattern(word)? }),
                None => return Err((token.start, unknown(word))),
            },
        };
        Ok(Some((token.start, action)))
    }

    fn path(&mut self, command: &str) -> Result<FilePath, Misplaced> {
        let Some((start, path)) = self.scanner.path()? else {
            let due = format!("a path after `{command}`");
            return Err((self.scanner.offset(), expected(&due, END)));
        };
        path.parse().map_err(|_| (start, ParseErrorKind::EmptyPath { path: path.to_owned() }))
    }

    fn pattern(&mut self, command: &str) -> Result<Pattern, Misplaced> {
        let due = format!(
            "a pattern after `{command}` (/regex/, heredoc, line, line:column, bof, eof or a range)"
        );
        let (start, kind) = self.argument(&due)?;
        match kind {
            TokenKind::Regex { source, flags } => {
                let regex = self.regex(source, flags).map_err(|(at, error)| {
                    let pattern = abridge(source, QUOTE_CHARACTERS);
                    (start + 1 + at, ParseErrorKind::Regex { pattern, error })
                })?;
                Ok(Pattern::Regex(regex))
            }
            TokenKind::Heredoc(lines) => Ok(Pattern::Lines(Box::new(LinesPattern::new(&lines)))),
            TokenKind::Word(word) => {
                let pattern = positions(word).map_err(|kind| (start, kind))?;
                pattern.ok_or_else(|| (start, expected(&due, &quote(word))))
            }
            TokenKind::Quoted(_) => {
                let found = "a quoted string; use a heredoc for whole lines, a regex within a line";
                Err((start, expected(&due, found)))
            }
            TokenKind::Literal(_) => Err((start, expected(&due, &describe(&kind)))),
        }
    }

    fn regex(
        &mut self,
        source: &'a str,
        flags: &'a str,
    ) -> Result<Arc<Regex>, (usize, RegexError)> {
        if let Some(regex) = self.regexes.get(&(source, flags)) {
            return Ok(Arc::clone(regex));
        }
        let regex = Arc::new(Regex::new(source, flags, self.limits.regex_bytes)?);
        self.regexes_bytes = self.regexes_bytes.saturating_add(regex.size());
        let limit = self.limits.all_regexes_bytes;
        if self.regexes_bytes > limit {
            return Err((0, RegexError::AllTooLarge { limit }));
        }
        self.regexes.insert((source, flags), Arc::clone(&regex));
        Ok(regex)
    }

    fn value(&mut self, command: &str) -> Result<Value, Misplaced> {
        let due = format!("a heredoc, a quoted string or a register after `{command}`");
        let (start, kind) = self.argument(&due)?;
        match kind {
            TokenKind::Heredoc(lines) => Ok(Value::Lines(lines)),
            TokenKind::Quoted(text) => Ok(Value::Quoted(text)),
            TokenKind::Word(word) => Ok(Value::Register(register(start, word)?)),
            TokenKind::Regex { .. } | TokenKind::Literal(_) => {
                Err((start, expected(&due, &describe(&kind))))
            }
        }
    }

    fn register(&mut self) -> Result<String, Misplaced> {
        let due = "the name of a register after `cut`";
        let (start, kind) = self.argument(due)?;
        match kind {
            TokenKind::Word(word) => register(start, word),
            TokenKind::Regex { .. }
            | TokenKind::Literal(_)
            | TokenKind::Heredoc(_)
            | TokenKind::Quoted(_) => Err((start, expected(due, &describe(&kind)))),
        }
    }

    fn integer(&mut self) -> Result<i64, Misplaced> {
        let due = "a whole number after `retain_nth`";
        let (start, kind) = self.argument(due)?;
        match kind {
            TokenKind::Word(word) => {
                word.parse().map_err(|_| (start, ParseErrorKind::Number { word: shorten(word) }))
            }
            TokenKind::Regex { .. }
            | TokenKind::Literal(_)
            | TokenKind::Heredoc(_)
            | TokenKind::Quoted(_) => Err((start, expected(due, &describe(&kind)))),
        }
    }

    fn argument(&mut self, due: &str) -> Result<(usize, TokenKind<'a>), Misplaced> {
        match self.scanner.token()? {
            Some(token) => Ok((token.start, token.kind)),
            None => Err((self.scanner.offset(), expected(due, END))),
        }
    }
}

const END: &str = "the end of the script";

fn selector(word: &str) -> Option<Selector> {
    Some(match word {
        "select" => Selector::Select,
        "select_multiple" => Selector::SelectMultiple,
        "narrow" => Selector::Narrow,
        "narrow_multiple" => Selector::NarrowMultiple,
        "select_next" => Selector::SelectNext,
        "select_prev" => Selector::SelectPrev,
        "extend_forward" => Selector::ExtendForward,
        "extend_back" => Selector::ExtendBack,
        _ => return None,
    })
}

/// Reads a position or a range of them, which is one word, split at its first dash.
fn positions(word: &str) -> Result<Option<Pattern>, ParseErrorKind> {
    if let Some((from, to)) = word.split_once('-')
        && let (Some(from), Some(to)) = (position(from)?, position(to)?)
    {
        return Ok(Some(Pattern::Range(from, to)));
    }
    Ok(position(word)?.map(Pattern::Position))
}

fn position(word: &str) -> Result<Option<Position>, ParseErrorKind> {
    let (line, column) = word.split_once(':').unwrap_or((word, ""));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    let number =
        |text: &str| text.parse().map_err(|_| ParseErrorKind::Number { word: shorten(text) });
    Ok(match word {
        "bof" => Some(Position::Start),
        "eof" => Some(Position::End),
        _ if is_number(line) && column.is_empty() => Some(Position::Line(number(line)?)),
        _ if is_number(line) && is_number(column) => {
            Some(Position::Column { line: number(line)?, column: number(column)? })
        }
        _ => None,
    })
}

/// Checks the name of a register: one that reads as a position would be mistaken for one.
fn register(start: usize, word: &str) -> Result<String, Misplaced> {
    let is_position = |part: &str| position(part).map_or(true, |it| it.is_some());
    if word.split('-').all(is_position) {
        return Err((start, ParseErrorKind::PositionAsRegister { word: shorten(word) }));
    }
    Ok(word.to_owned())
}

fn unknown(word: &str) -> ParseErrorKind {
    ParseErrorKind::UnknownCommand { word: shorten(word) }
}

fn shorten(word: &str) -> String {
    abridge(word, QUOTE_CHARACTERS)
}

fn describe(kind: &TokenKind<'_>) -> String {
    match kind {
        TokenKind::Regex { source, flags } => format!("the regex `/{}/{flags}`", shorten(source)),
        TokenKind::Literal(text) => format!("a path in backticks ({})", shorten(text)),
        TokenKind::Heredoc(_) => "a heredoc".to_owned(),
        TokenKind::Quoted(text) => format!("the quoted string \"{}\"", shorten(text)),
        TokenKind::Word(word) => quote(word),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::COMMANDS;

    fn actions(script: &str) -> Vec<String> {
        let commands = parse(script, &Limits::default());
        commands.expect("a script").iter().map(|it| it.action.to_string()).collect()
    }

    fn error(script: &str) -> String {
        parse(script, &Limits::default()).expect_err("not a script").to_string()
    }

    #[test]
    fn every_command_is_read() {
        let arguments = |command: &str| match command {
            "file" | "newfile" => "/a",
            "retain_nth" => "-1",
            "replace" | "insert_before" | "insert_after" | "cut" => "register",
            "retain_first" | "retain_last" | "delete" => "",
            _ => "/x/",
        };
        let script: Vec<String> =
            COMMANDS.iter().map(|it| format!("{it} {}", arguments(it)).trim().to_owned()).collect();
        assert_eq!(actions(&script.join(" ")), script);
    }

    #[test]
    fn patterns_are_read() {
        let script = "file a select bof-eof select 3 select 3: select 1:2-3:4 select eof";
        let expected = ["bof-eof", "3", "3", "1:2-3:4", "eof"].map(|it| format!("select {it}"));
        assert_eq!(actions(script).get(1..), Some(expected.as_slice()));
    }

    #[test]
    fn errors_say_where_and_what() {
        assert!(error("file a\nselect foo").starts_with("line 2, column 8: expected a pattern"));
        assert!(error("file a\n zap").starts_with("line 2, column 2: unknown command `zap`"));
        assert!(error("file a select /x/zz").contains("unknown command `zz`"));
        assert!(error("file a select \"x\"").contains("use a heredoc for whole lines"));
        assert!(error("file a select /é(?=x)/").starts_with("line 1, column 17: regular"));
        assert!(error("file a retain_nth 1.5").contains("whole number, found `1.5`"));
        assert!(error("file a select 99999999999999999999").contains("whole number"));
        assert!(error("file a replace 2-3").contains("reads as a position"));
        assert!(error("file a cut bof").contains("reads as a position"));
        assert!(error("file").contains("expected a path after `file`, found the end"));
        assert!(error("file \"a\"").contains("bare or in backticks"));
        assert!(error("delete").contains("before any `file`"));
        assert!(error("file a replace<<E\nx\nE").contains("unknown command `replace<<E`"));
    }

    #[test]
    fn a_script_may_be_as_long_as_its_limits() {
        let kind = |script: &str| {
            let limits = Limits { script_bytes: 13, ..Limits::default() };
            parse(script, &limits).map(|commands| commands.len()).map_err(|it| it.kind)
        };
        assert_eq!(kind("file a delete"), Ok(2));
        let too_long = ParseErrorKind::ScriptTooLong { found: 14, limit: 13 };
        assert_eq!(kind("file a delete "), Err(too_long));
    }

    #[test]
    fn one_angle_bracket_begins_a_word() {
        assert_eq!(actions("file a replace <x"), ["file a", "replace <x"]);
    }

    #[test]
    fn the_memory_of_all_expressions_together_has_a_limit() {
        let parsed = |script: &str, all_regexes_bytes| {
            parse(script, &Limits { all_regexes_bytes, ..Limits::default() }).is_ok()
        };
        let size = Regex::new("[a-c]+", "", Limits::default().regex_bytes).unwrap().size();
        let other = Regex::new("[d-f]+", "", Limits::default().regex_bytes).unwrap().size();
        let (once, again, both) = (
            "file /a select /[a-c]+/",
            "file /a select /[a-c]+/ select /[a-c]+/",
            "file /a select /[a-c]+/ select /[d-f]+/",
        );
        assert!(size > 100 && other > 100);
        assert!(parsed(once, size) && !parsed(once, size - 1));
        assert!(parsed(again, size));
        assert!(parsed(both, size + other) && !parsed(both, size + other - 1));
    }
}
