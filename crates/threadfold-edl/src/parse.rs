//! Parses tokens into commands.
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

use std::{collections::HashMap, str::FromStr, sync::Arc};

use super::{
    command::{Action, Area, Command, Pattern, Position, Selector, Side, Take, Value},
    error::{Mistake, ParseError},
    limits::Limits,
    regex::Regex,
    text::{end_position, shorten, slice},
    token::{Token, Tokens, expected, quote, reused_tags},
    whole_lines::LinesPattern,
    workspace::normalize,
};

/// Every command, in the order in which the documentation lists them.
const COMMANDS: &str = "file, newfile, select, select_multiple, narrow, narrow_multiple, \
    retain_first, retain_last, retain_nth, select_next, select_prev, extend_forward, extend_back, \
    replace, insert_before, insert_after, delete, cut";

const SELECTORS: [Selector; 8] = [
    selector("select", Area::File, Take::Only),
    selector("select_multiple", Area::File, Take::All),
    selector("narrow", Area::Selection, Take::Only),
    selector("narrow_multiple", Area::Selection, Take::All),
    selector("select_next", Area::After, Take::First),
    selector("select_prev", Area::Before, Take::Last),
    Selector { extends: true, ..selector("extend_forward", Area::After, Take::First) },
    Selector { extends: true, ..selector("extend_back", Area::Before, Take::Last) },
];

const fn selector(word: &'static str, area: Area, take: Take) -> Selector {
    Selector { word, area, take, extends: false }
}

/// Reads a script.
pub(crate) fn parse(script: &str, limits: &Limits) -> Result<Vec<Command>, ParseError> {
    let mut parser =
        Parser { tokens: Tokens::new(script), limits, regexes: HashMap::new(), regexes_bytes: 0 };
    parser.commands(script).map_err(|Mistake { is_limit, mut message }| {
        let (lines, characters) = end_position(slice(script, 0..parser.tokens.start));
        let tags = if is_limit { Vec::new() } else { reused_tags(script) };
        if !tags.is_empty() {
            message.push_str(&format!(
                "\nnote: a heredoc ends at the first line that is its tag, and {} stands more than \
                 once on a line of its own; if a text contains that line, choose a tag that it does \
                 not contain",
                tags.join(", ")
            ));
        }
        ParseError { line: lines + 1, column: characters + 1, message }
    })
}

/// Reads commands from tokens. The position of a mistake is the start of the last token.
struct Parser<'a> {
    tokens: Tokens<'a>,
    limits: &'a Limits,
    /// The compiled expressions, by source and flags. Equal ones are compiled once.
    regexes: HashMap<(&'a str, &'a str), Arc<Regex>>,
    regexes_bytes: usize,
}

impl<'a> Parser<'a> {
    fn commands(&mut self, script: &str) -> Result<Vec<Command>, Mistake> {
        let (found, limit) = (script.len(), self.limits.script_bytes);
        if found > limit {
            let message = format!("the script has {found} bytes, the limit is {limit}");
            return Err(Mistake { is_limit: true, message });
        }
        let mut commands = Vec::new();
        let (mut position, mut counted_to) = ((1, 1), 0);
        while let Some(token) = self.tokens.next()? {
            let start = self.tokens.start;
            let (source, action) = self.command(&token)?;
            if let Err(mistake) = self.check(&commands, &source, &action) {
                self.tokens.start = start;
                return Err(mistake);
            }
            // Counting continues from the last command, because counting from the start each time
            // would take quadratic time.
            let (lines, characters) = end_position(slice(script, counted_to..start));
            let before = if lines == 0 { position.1 } else { 1 };
            (position, counted_to) = ((position.0 + lines, before + characters), start);
            commands.push(Command { position, source, action });
        }
        Ok(commands)
    }

    /// Checks that a command may follow those before it.
    fn check(&self, before: &[Command], source: &str, action: &Action) -> Result<(), Mistake> {
        if before.is_empty() && !matches!(action, Action::Open { .. }) {
            let message = format!(
                "`{source}` stands before any `file` or `newfile`, so there is no text to work on"
            );
            return Err(message.into());
        }
        let limit = self.limits.commands;
        if before.len() == limit {
            let message = format!("the script has more than {limit} commands");
            return Err(Mistake { is_limit: true, message });
        }
        Ok(())
    }

    /// Reads a command, and returns it together with its text for reports.
    fn command(&mut self, token: &Token<'a>) -> Result<(String, Action), Mistake> {
        let Token::Word(word) = token else {
            return Err(expected("a command", &token.describe()).into());
        };
        let (argument, action) = match *word {
            "file" | "newfile" => {
                let path = self.path(word)?;
                (path.clone(), Action::Open { path, is_new: *word == "newfile" })
            }
            "retain_first" => (String::new(), Action::Retain(0)),
            "retain_last" => (String::new(), Action::Retain(-1)),
            "retain_nth" => {
                let index = self.word("a whole number after `retain_nth`")?;
                let index: i64 = number(index)?;
                (index.to_string(), Action::Retain(index))
            }
            "replace" => self.put(word, Side::Instead)?,
            "insert_before" => self.put(word, Side::Before)?,
            "insert_after" => self.put(word, Side::After)?,
            "delete" => (String::new(), Action::Delete),
            "cut" => {
                let name = register(self.word("the name of a register after `cut`")?)?;
                (shorten(&name), Action::Cut(name))
            }
            _ => {
                let Some(selector) = SELECTORS.into_iter().find(|it| it.word == *word) else {
                    let message =
                        format!("unknown command {}, expected one of: {COMMANDS}", quote(word));
                    return Err(message.into());
                };
                let pattern = self.pattern(word)?;
                (pattern.to_string(), Action::Select(selector, pattern))
            }
        };
        let separator = if argument.is_empty() { "" } else { " " };
        Ok((format!("{word}{separator}{argument}"), action))
    }

    fn path(&mut self, command: &str) -> Result<String, String> {
        let Some(path) = self.tokens.path()? else {
            return Err(expected(&format!("a path after `{command}`"), END));
        };
        normalize(path).map_err(|error| error.to_string())
    }

    fn pattern(&mut self, command: &str) -> Result<Pattern, Mistake> {
        let due = format!(
            "a pattern after `{command}` (/regex/, heredoc, line, line:column, bof, eof or a range)"
        );
        let token = self.argument(&due)?;
        let found = match &token {
            Token::Regex { source, flags } => return self.regex(source, flags).map(Pattern::Regex),
            Token::Heredoc(lines) => return Ok(Pattern::Lines(LinesPattern::new(lines))),
            Token::Word(word) => match positions(word)? {
                Some(pattern) => return Ok(pattern),
                None => quote(word),
            },
            Token::Quoted(_) => {
                "a quoted string; use a heredoc for whole lines, a regex within a line".to_owned()
            }
            Token::Path(_) => token.describe(),
        };
        Err(expected(&due, &found).into())
    }

    fn regex(&mut self, source: &'a str, flags: &'a str) -> Result<Arc<Regex>, Mistake> {
        // Scripts repeat an expression for each file, and compiling one takes longer than a search.
        if let Some(regex) = self.regexes.get(&(source, flags)) {
            return Ok(Arc::clone(regex));
        }
        let limit = self.limits.all_regexes_bytes;
        let compiled = Regex::new(source, flags, self.limits.regex_bytes).and_then(|regex| {
            self.regexes_bytes = self.regexes_bytes.saturating_add(regex.size());
            if self.regexes_bytes <= limit {
                return Ok(Arc::new(regex));
            }
            Err((0, format!("the script's expressions need more than {limit} bytes together")))
        });
        let regex = compiled.map_err(|(at, message)| {
            self.tokens.start += 1 + at;
            let message = format!("regular expression `/{}/`: {message}", shorten(source));
            Mistake::from(message)
        })?;
        self.regexes.insert((source, flags), Arc::clone(&regex));
        Ok(regex)
    }

    fn put(&mut self, command: &str, side: Side) -> Result<(String, Action), String> {
        let due = format!("a heredoc, a quoted string or a register after `{command}`");
        let token = self.argument(&due)?;
        let value = match token {
            Token::Heredoc(lines) => Value::Lines(lines),
            Token::Quoted(text) => Value::Quoted(text),
            Token::Word(word) => Value::Register(register(word)?),
            Token::Regex { .. } | Token::Path(_) => return Err(expected(&due, &token.describe())),
        };
        Ok((value.to_string(), Action::Put(side, value)))
    }

    fn word(&mut self, due: &str) -> Result<&'a str, String> {
        match self.argument(due)? {
            Token::Word(word) => Ok(word),
            token @ (Token::Regex { .. }
            | Token::Path(_)
            | Token::Heredoc(_)
            | Token::Quoted(_)) => Err(expected(due, &token.describe())),
        }
    }

    fn argument(&mut self, due: &str) -> Result<Token<'a>, String> {
        self.tokens.next()?.ok_or_else(|| expected(due, END))
    }
}

const END: &str = "the end of the script";

/// Reads a position or a range. Fails if a number is too large.
fn positions(word: &str) -> Result<Option<Pattern>, String> {
    if let Some((from, to)) = word.split_once('-')
        && let (Some(from), Some(to)) = (position(from)?, position(to)?)
    {
        return Ok(Some(Pattern::Positions(from, Some(to))));
    }
    Ok(position(word)?.map(|position| Pattern::Positions(position, None)))
}

fn position(word: &str) -> Result<Option<Position>, String> {
    Ok(match (word, word.split_once(':').unwrap_or((word, ""))) {
        ("bof", _) => Some(Position::Start),
        ("eof", _) => Some(Position::End),
        (_, (line, "")) if is_number(line) => Some(Position::Line(number(line)?)),
        (_, (line, column)) if is_number(line) && is_number(column) => {
            Some(Position::Column { line: number(line)?, column: number(column)? })
        }
        _ => None,
    })
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit())
}

fn number<N: FromStr>(word: &str) -> Result<N, String> {
    word.parse().map_err(|_| format!("expected a whole number, found {}", quote(word)))
}

/// Checks the name of a register. A name that reads as a position would be taken for one.
fn register(word: &str) -> Result<String, String> {
    // A number that is too large reads as a position too.
    if word.split('-').any(|part| position(part) == Ok(None)) {
        return Ok(word.to_owned());
    }
    Err(format!(
        "{} reads as a position and cannot name a register; \
         `replace`, `insert_before` and `insert_after` act on what is selected",
        quote(word)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn actions(script: &str) -> Vec<String> {
        let commands = parse(script, &Limits::default());
        commands.expect("a script").iter().map(|it| it.source.clone()).collect()
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
        let script: Vec<String> = COMMANDS
            .split(", ")
            .map(|it| format!("{it} {}", arguments(it)).trim().to_owned())
            .collect();
        assert_eq!(script.len(), 18);
        assert_eq!(actions(&script.join(" ")), script);
    }

    #[test]
    fn patterns_are_read() {
        let script = "file a select bof-eof select 3 select 3: select 1:2-3:4 select eof";
        let expected = ["bof-eof", "3", "3", "1:2-3:4", "eof"].map(|it| format!("select {it}"));
        assert_eq!(actions(script).get(1..), Some(expected.as_slice()));
    }

    #[test]
    fn errors_state_the_position_and_the_mistake() {
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
    fn a_script_may_reach_its_length_limit() {
        let parsed = |script: &str| {
            let limits = Limits { script_bytes: 13, ..Limits::default() };
            parse(script, &limits).map(|commands| commands.len())
        };
        assert_eq!(parsed("file a delete"), Ok(2));
        let message = "the script has 14 bytes, the limit is 13".to_owned();
        let too_long = ParseError { line: 1, column: 1, message };
        assert_eq!(parsed("file a delete "), Err(too_long));
    }

    #[test]
    fn commands_know_their_lines_and_columns() {
        let commands = parse("file a # é\n  delete é\n\ndelete delete", &Limits::default());
        let message = commands.expect_err("an unknown command").to_string();
        assert!(message.starts_with("line 2, column 10: unknown command `é`"), "{message}");
        let commands = parse("file é delete\n  delete\n\ndelete delete", &Limits::default());
        let positions: Vec<_> = commands.expect("a script").iter().map(|it| it.position).collect();
        assert_eq!(positions, [(1, 1), (1, 8), (2, 3), (4, 1), (4, 8)]);
    }

    #[test]
    fn an_error_names_tags_that_may_have_ended_a_heredoc_early() {
        let error = error("file a replace <<END\nx\nEND\nmore\nEND\n");
        assert!(
            error.starts_with("line 4, column 1: unknown command `more`, expected one of: file")
        );
        assert!(error.contains("\nnote: ") && error.contains("`END` stands more than once"));
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
