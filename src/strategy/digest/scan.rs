//! Plain scanning of texts: lines, sentences that demand, paths, failures. No patterns, no model.

use crate::message::steps;

/// Returns a text on one line of at most so many characters: white space in one, no escape
/// sequences of terminals, no backticks, which would end the quote that it stands in.
pub(super) fn one_line(text: &str, most: usize) -> String {
    let mut line = String::new();
    let mut count = 0;
    steps::through(text);
    let mut space = false;
    let mut chars = text.chars();
    while let Some(next) = chars.next() {
        if next == '\u{1b}' {
            skip_escape(&mut chars);
        } else if next.is_whitespace() || next.is_control() {
            space = !line.is_empty();
        } else {
            let wanted = count + 1 + usize::from(space);
            if wanted > most {
                line.push('…');
                return line;
            }
            if space {
                line.push(' ');
            }
            line.push(if next == '`' { '\'' } else { next });
            (count, space) = (wanted, false);
        }
    }
    line
}

/// Skips the rest of `ESC [ 3 1 m` and its like.
fn skip_escape(chars: &mut std::str::Chars<'_>) {
    if !chars.as_str().starts_with('[') {
        return;
    }
    chars.next();
    for next in chars.by_ref() {
        if next.is_ascii_alphabetic() {
            return;
        }
    }
}

/// Words by which people demand and forbid. `not` does behind some other words only.
const DEMANDS: [&str; 12] = [
    "must",
    "mustn't",
    "never",
    "always",
    "don't",
    "dont",
    "should",
    "shouldn't",
    "shall",
    "avoid",
    "prefer",
    "ensure",
];

/// Words that forbid together with a `not` behind them.
const BEFORE_NOT: [&str; 3] = ["do", "may", "can"];

/// Who stands before a `do not` that tells of something and forbids nothing.
const TELLERS: [&str; 7] = ["i", "we", "they", "you", "it", "that", "who"];

/// Signs of code and markup, in which words demand nothing.
const CODE: [&str; 12] = ["{", "}", ";", "</", "==", "=>", "->", "::", "|", "()", "://", "> "];

/// Returns the sentences of a text that demand or forbid something, as they stand. What stands in
/// fences, and what looks like code, does not count.
pub(super) fn rules(text: &str) -> impl Iterator<Item = &str> {
    let mut fenced = false;
    let outside = steps::through(text).lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    });
    let lines = outside.map(|line| line.trim_start_matches(['#', '-', '*', '>', ' ', '\t']));
    lines.flat_map(sentences).filter(|sentence| is_rule(sentence))
}

fn sentences(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        let ends = |pair: &[u8]| matches!(pair, [b'.' | b'!' | b'?', b' ']);
        let end = steps::up_to(rest, rest.as_bytes().windows(2).position(ends));
        let end = end.map_or(rest.len(), |at| at + 2);
        let (sentence, after) = rest.split_at_checked(end).filter(|_| end > 0)?;
        rest = after;
        Some(sentence.trim())
    })
}

fn is_rule(sentence: &str) -> bool {
    let fits = (10..=300).contains(&sentence.len());
    let starts = sentence.chars().next().is_some_and(char::is_alphanumeric);
    if !fits || !starts || sentence.ends_with(['?', ':']) {
        return false;
    }
    let plain = !CODE.iter().any(|sign| sentence.contains(sign));
    let words =
        steps::through(sentence).split(|c: char| !c.is_alphanumeric() && c != '\'' && c != '’');
    let words = words.map(|word| word.to_ascii_lowercase().replace('’', "'"));
    let (mut before, mut two_before) = (String::new(), String::new());
    let mut demands = words.filter(|word| !word.is_empty()).map(|word| {
        let tells = |who: &String| TELLERS.contains(&who.as_str());
        let forbids = word == "not" && BEFORE_NOT.contains(&before.as_str()) && !tells(&two_before);
        let told = word.starts_with("don") && tells(&before);
        let demands = forbids || (DEMANDS.contains(&word.as_str()) && !told);
        two_before = std::mem::replace(&mut before, word);
        demands
    });
    plain && demands.any(|demands| demands)
}

/// Endings of files that come up without a folder.
const ENDINGS: [&str; 34] = [
    "c", "cfg", "conf", "cpp", "cs", "css", "csv", "go", "h", "hpp", "html", "ini", "java", "js",
    "json", "jsx", "kt", "lock", "log", "md", "patch", "php", "py", "rb", "rs", "sh", "sql",
    "swift", "toml", "ts", "tsx", "txt", "yaml", "yml",
];

/// Whether a word is the path of a file: it has a known ending, or an ending and a folder, or
/// stands deep below the root.
pub(super) fn is_path(word: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || "/\\._-+@~:[]()".contains(c);
    let fits = (3..=260).contains(&word.len()) && word.chars().all(plain);
    if !fits || word.starts_with('-') || word.contains("//") {
        return false;
    }
    let folders = |c: char| c == '/' || c == '\\';
    let (folder, name) = word.rsplit_once(folders).unwrap_or(("", word));
    let ending = name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty() || !folder.is_empty());
    let ending = ending.map_or("", |(_, ending)| ending);
    let letters = (1..=8).contains(&ending.len())
        && ending.chars().all(char::is_alphanumeric)
        && ending.chars().any(char::is_alphabetic);
    let known = ENDINGS.contains(&ending) && !folder.contains(':');
    let rooted = ["/", "./", "../", "~/"].iter().any(|root| word.starts_with(root));
    let deep = rooted && !name.is_empty() && folder.matches(folders).count() > 1;
    let drive = matches!(word.as_bytes(), [_, b':', b'/' | b'\\', ..]) && !name.is_empty();
    known || (letters && word.contains(folders) && !folder.contains(':')) || deep || drive
}

/// Whether a value is a path, told by the name of its field where that speaks of one.
pub(super) fn is_path_in(field: &str, value: &str) -> bool {
    if is_path(value) {
        return true;
    }
    let field = field.to_ascii_lowercase();
    let named = ["path", "file", "dir", "folder"].iter().any(|word| field.contains(word));
    let odd = |c: char| c.is_control() || "*?<>|\"{}$;=`".contains(c);
    named
        && (2..=260).contains(&value.len())
        && value.contains(['/', '\\', '.'])
        && value.chars().any(char::is_alphanumeric)
        && !value.contains("://")
        && !value.contains(odd)
}

/// Returns the paths in a command.
pub(super) fn paths_in(command: &str) -> impl Iterator<Item = &str> {
    let words = steps::through(command)
        .split(|c: char| c.is_whitespace() || "\"'`()[]{}<>|;&=,$*".contains(c));
    words.map(|word| word.trim_end_matches(['.', ':'])).filter(|word| is_path(word))
}

/// How lines begin that tell of a failure.
const FAILURES: [&str; 12] = [
    "error:",
    "error[",
    "error ",
    "Error:",
    "ERROR",
    "fatal:",
    "FAILED",
    "FAIL ",
    "Traceback (most",
    "panic:",
    "Exception",
    "E   ",
];

/// Returns the first line of a text that tells of a failure, and the next.
pub(super) fn failure(text: &str) -> Option<&str> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let start = uncoloured(steps::through(line));
        let named = start.split_whitespace().next().unwrap_or_default();
        let raised = named.ends_with("Error:") || named.ends_with("Exception:");
        if raised || FAILURES.iter().any(|words| start.starts_with(words)) {
            return text.get(at..).map(|rest| first_lines(rest, 2));
        }
        at += line.len();
    }
    None
}

/// Returns a line without the white space and the colours that it begins with.
fn uncoloured(line: &str) -> &str {
    let mut rest = line.trim_start();
    while let Some(escape) = rest.strip_prefix('\u{1b}') {
        let mut chars = escape.chars();
        skip_escape(&mut chars);
        rest = chars.as_str().trim_start();
    }
    rest
}

/// Returns the first lines of a text that are not blank, from the first such line on.
pub(super) fn first_lines(text: &str, count: usize) -> &str {
    let text = text.trim_start();
    let end = text.match_indices('\n').nth(count.saturating_sub(1)).map(|(at, _)| at);
    text.get(..steps::up_to(text, end).unwrap_or(text.len())).unwrap_or_default().trim_end()
}

/// Returns the commands in the fenced blocks of a shell, each as it stands.
pub(super) fn shell_blocks(text: &str) -> impl Iterator<Item = &str> {
    const SHELLS: [&str; 5] = ["bash", "sh", "shell", "zsh", "console"];
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            let at = steps::up_to(rest, rest.find("```"))?;
            let (info, body) = rest.get(at + 3..)?.split_once('\n')?;
            steps::through(info);
            let end = steps::up_to(body, body.find("```")).unwrap_or(body.len());
            rest = body.get(end..)?.trim_start_matches('`');
            let block = body.get(..end)?.trim();
            if SHELLS.contains(&info.trim()) && !block.is_empty() {
                return Some(block);
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_on_one_line_holds_no_control_and_no_backtick() {
        assert_eq!(one_line(" a\n\u{1b}[1;31mred\u{1b}[0m\t`b`\u{7}", 80), "a red 'b'");
        assert_eq!(one_line("漢字 漢字", 4), "漢字 漢…");
    }

    #[test]
    fn paths_are_told_from_words() {
        let paths = ["src/lib.rs", "a.txt", "/usr/local/bin", "./x/y.py", "C:\\a\\b", "/a/.env"];
        for path in paths {
            assert!(is_path(path), "{path}");
        }
        let words = ["e.g", "1.5", "self.len", "/", "a/b", "application/json", "2024/05/15", "-i"];
        for word in words.into_iter().chain(["https://a.b/c.d", "s/a/b/", "and/or", "x:1.5/2.5"]) {
            assert!(!is_path(word), "{word}");
        }
        assert!(is_path_in("file_path", "My Documents/a b"));
        assert!(!is_path_in("file_text", "fn main() {}"));
    }

    #[test]
    fn rules_are_sentences_that_demand() {
        let text = "Fix the parser. Never touch the lexer! It is not slow. I don't know why. We can not say.\n```\nmust not\n```\n\
                    - Please don't push.\nif (must) { return; }\nShould I go on?";
        let found: Vec<&str> = rules(text).collect();
        assert_eq!(found, ["Never touch the lexer!", "Please don't push."]);
    }

    #[test]
    fn a_failure_is_its_line_and_the_next() {
        let text = "running\nerror[E0502]: cannot borrow\n --> src/a.rs:1\nmore";
        assert_eq!(failure(text), Some("error[E0502]: cannot borrow\n --> src/a.rs:1"));
        assert_eq!(failure("ValueError: no\n"), Some("ValueError: no"));
        assert_eq!(failure("a\n \u{1b}[31m\u{1b}[1mFAIL\u{1b}[0m x"), None);
        assert_eq!(failure("\u{1b}[31mError: x"), Some("\u{1b}[31mError: x"));
        assert_eq!(failure("no errors at all"), None);
    }
}
