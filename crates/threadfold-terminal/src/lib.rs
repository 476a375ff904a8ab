//! Messages of a thread in lines of a terminal: coloured on a terminal, plain elsewhere, and safe
//! whatever a model, a tool or a server wrote.

#![forbid(unsafe_code)]

use std::{env, fmt::Display, io::IsTerminal};

use threadfold_core::{ContentBlock, Message, Role};

/// Colours, if the output is a terminal and `NO_COLOR` is not set. The default has none.
///
/// ```
/// use threadfold_terminal::Style;
///
/// assert_eq!(Style::default().bold("plain"), "plain");
/// assert!(Style::default().meter(8_000, 10_000).ends_with(" 80 %  8,000 of 10,000 tokens"));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Style {
    colours: bool,
}

impl Style {
    /// Returns the style of a stream, such as standard output.
    #[must_use]
    pub fn of(stream: &impl IsTerminal) -> Self {
        Self { colours: stream.is_terminal() && env::var_os("NO_COLOR").is_none() }
    }

    /// Returns the text, in bold.
    #[must_use]
    pub fn bold(self, text: impl Display) -> String {
        self.paint("1", text)
    }

    /// Returns the text, dimmed.
    #[must_use]
    pub fn dim(self, text: impl Display) -> String {
        self.paint("2", text)
    }

    /// Returns the text, in green.
    #[must_use]
    pub fn green(self, text: impl Display) -> String {
        self.paint("32", text)
    }

    /// Returns the text, in yellow.
    #[must_use]
    pub fn yellow(self, text: impl Display) -> String {
        self.paint("33", text)
    }

    /// Returns the text, in red.
    #[must_use]
    pub fn red(self, text: impl Display) -> String {
        self.paint("31", text)
    }

    /// Returns the text, in cyan.
    #[must_use]
    pub fn cyan(self, text: impl Display) -> String {
        self.paint("36", text)
    }

    fn paint(self, code: &str, text: impl Display) -> String {
        if self.colours { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_string() }
    }

    /// Returns a heading above a rule.
    #[must_use]
    pub fn heading(self, text: &str) -> String {
        let rule = "─".repeat(76usize.saturating_sub(text.chars().count()));
        format!("\n{} {}", self.bold(text), self.dim(rule))
    }

    /// Returns how full the window is, as a bar of 40 cells and a number.
    #[must_use]
    pub fn meter(self, tokens: u64, window: u64) -> String {
        let cells = (tokens.saturating_mul(40) / window.max(1)).min(40) as usize;
        let bar = format!("{}{}", "█".repeat(cells), "░".repeat(40 - cells));
        let percent = tokens.saturating_mul(100) / window.max(1);
        let bar = match percent {
            80.. => self.red(bar),
            60..80 => self.yellow(bar),
            _ => self.green(bar),
        };
        format!("{bar} {percent:>3} %  {} of {} tokens", thousands(tokens), thousands(window))
    }
}

/// Returns a text of a model, a tool or a server that is safe for a terminal: without control
/// characters (colours, the cursor, the title, the clipboard) and without characters that change
/// the direction of text. Line feeds and tabs stay. Each character is judged alone, so pieces of a
/// text can be passed.
///
/// ```
/// assert_eq!(threadfold_terminal::plain("\x1b[31mred\x1b[0m\n"), "[31mred[0m\n");
/// ```
#[must_use]
pub fn plain(text: &str) -> String {
    let turns = |c| matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let stays = |c: &char| matches!(c, '\n' | '\t') || !(c.is_control() || turns(*c));
    text.chars().filter(stays).collect()
}

/// Returns a number with separators.
///
/// ```
/// assert_eq!(threadfold_terminal::thousands(12_345), "12,345");
/// ```
#[must_use]
pub fn thousands(number: u64) -> String {
    threadfold_core::message::thousands(number)
}

/// Returns a count with its noun, whose plural has an `s`.
///
/// ```
/// assert_eq!(threadfold_terminal::counted(1, "call"), "1 call");
/// assert_eq!(threadfold_terminal::counted(1_200, "call"), "1,200 calls");
/// ```
#[must_use]
pub fn counted(count: u64, noun: &str) -> String {
    format!("{} {noun}{}", thousands(count), if count == 1 { "" } else { "s" })
}

/// Returns a text on lines of at most this many characters, which are divided at blanks; a longer word
/// has a line of its own.
///
/// ```
/// assert_eq!(threadfold_terminal::wrapped("one two three", 8), ["one two", "three"]);
/// ```
#[must_use]
pub fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines = Vec::<String>::new();
    let mut room = 0;
    for word in text.split_whitespace() {
        let width = word.chars().count();
        match lines.last_mut() {
            Some(line) if width < room => {
                line.push(' ');
                line.push_str(word);
                room -= width + 1;
            }
            _ => {
                lines.push(word.to_owned());
                room = columns.saturating_sub(width);
            }
        }
    }
    lines
}

/// Returns the first line of a text, [safe for a terminal](plain) and cut to this many characters.
///
/// ```
/// assert_eq!(threadfold_terminal::first_line("one line\nand another", 20), "one line…");
/// ```
#[must_use]
pub fn first_line(text: &str, most: usize) -> String {
    let text = plain(text);
    let line = text.trim().lines().next().unwrap_or_default();
    if line.chars().count() <= most && line.len() == text.trim().len() {
        return line.to_owned();
    }
    line.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// Returns a message in one line of at most this many characters: the kinds of its blocks, and its
/// beginning.
///
/// ```
/// use threadfold::Message;
///
/// assert_eq!(threadfold_terminal::outline(&Message::user("Where is it?"), 8), "Where i…");
/// ```
#[must_use]
pub fn outline(message: &Message, most: usize) -> String {
    let marker = |block: &&ContentBlock| matches!(block, ContentBlock::Checkpoint(_));
    let parts = message.content.iter().filter(|block| !marker(block)).map(|block| {
        if let ContentBlock::ToolUse(call) = block {
            format!("{}({})", plain(&call.name), first_line(call.input.as_str(), 44))
        } else if let ContentBlock::ToolResult(result) = block {
            let text = result.content.first().and_then(ContentBlock::as_text);
            let mark = if result.is_error { "✗" } else { "→" };
            format!("{mark} {}", first_line(text.map_or("", |text| text), 50))
        } else if let ContentBlock::Summary(summary) = block {
            let bytes = thousands(summary.text.len() as u64);
            format!("[{bytes} bytes] {}", first_line(&summary.text, most))
        } else if let ContentBlock::SystemReminder(note) = block {
            first_line(&note.text, most)
        } else if let Some(text) = block.as_text() {
            first_line(text, most)
        } else {
            format!("[{}]", block.kind())
        }
    });
    first_line(&parts.collect::<Vec<_>>().join("  "), most)
}

/// Returns who speaks, in at most nine characters. A person's words differ from tool results and
/// summaries.
///
/// ```
/// use threadfold::Message;
///
/// assert_eq!(threadfold_terminal::speaker(&Message::assistant("There.")), "assistant");
/// ```
#[must_use]
pub fn speaker(message: &Message) -> &'static str {
    match message.role {
        _ if message.is_summary() => "summary",
        Role::System => "system",
        Role::User if message.is_typed() => "user",
        Role::User if message.tool_results().next().is_some() => "results",
        Role::User => "note",
        Role::Assistant => "assistant",
    }
}

/// Compiles and runs the code of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_for_the_terminal_does_not_control_it() {
        let rows = [
            ("plain \u{e4}\n\tand more \u{1f600}", "plain \u{e4}\n\tand more \u{1f600}"),
            ("\x1b[31mred\x1b[0m", "[31mred[0m"),
            ("\x1b]52;c;cm0gLXJm\x07", "]52;c;cm0gLXJm"),
            ("kept\roverwritten\x08\x7f", "keptoverwritten"),
            ("\u{9b}2J\u{202e}txt.exe\u{2066}", "2Jtxt.exe"),
        ];
        for (text, expected) in rows {
            assert_eq!(plain(text), expected);
            let first = first_line(text, 100);
            assert!(!first.contains(|c: char| c.is_control() && c != '\t'), "{first:?}");
        }
    }
}
