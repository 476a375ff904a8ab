//! Properties of edit scripts, checked against slow and simple reference models.

use std::ops::Range;

use proptest::{collection::vec, prelude::*, sample::select};
use regex_automata::{Input, meta::Regex, util::syntax::Config};
use threadfold_edl::{Script, Workspace};
use threadfold_testing::shared::fuzz::edl as fuzz_case;

use crate::support::tries::tries;

fn run(script: &str, text: &str) -> (Result<String, String>, Workspace) {
    let mut workspace = Workspace::new();
    workspace.insert("/a", text).expect("a path");
    let parsed = Script::parse(&format!("file /a\n{script}"));
    let report = parsed.unwrap_or_else(|error| panic!("{error}\n{script}")).run(&mut workspace);
    let failure = report.failures.first().map(|failure| failure.message.clone());
    let text = workspace.text("/a").unwrap_or_default().to_owned();
    (failure.map_or(Ok(text), Err), workspace)
}

/// A command that is mostly well formed.
fn command() -> impl Strategy<Value = String> {
    let opens = select(vec![
        "file /a",
        "file /b",
        "file /zz",
        "newfile /c",
        "newfile /a",
        "file `a b`",
        "# comment",
        "retain_first",
        "retain_last",
        "retain_nth 0",
        "retain_nth -1",
        "delete",
        "cut r",
    ]);
    let selectors = select(vec![
        "select",
        "select_multiple",
        "narrow",
        "narrow_multiple",
        "select_next",
        "select_prev",
        "extend_forward",
        "extend_back",
    ]);
    let patterns = select(vec![
        "/a/",
        "/\\w+/g",
        "/^.*$/m",
        "/[^a]*/s",
        "/(a|b)*c/",
        "/\\bé/u",
        "/x*/y",
        "/(a*)*$/",
        "/./",
        "/$/",
        "/(?:a?){20}a{20}/",
        "/[\\s\\S]*?b/",
        "/\\r?\\n/",
        "bof",
        "eof",
        "1",
        "2",
        "1:1",
        "2:0-3:1",
        "bof-eof",
        "3-1",
        "99",
        "<<E\na\nE",
        "<<E\n\nE",
        "<<E\r\nb\r\nE\r",
        "<<E\na\nb\nE",
    ]);
    let inserts = select(vec!["replace", "insert_before", "insert_after"]);
    let values = select(vec![
        "\"x\"",
        "\"\"",
        "\"a\\\"\"",
        "r",
        "_saved_1",
        "<<E\na\nb\nE",
        "<<E\r\né\r\nE\r",
        "<<'-'\n\n-",
    ]);
    prop_oneof![
        opens.prop_map(|open| format!("{open}\n")),
        (selectors, patterns).prop_map(|(selector, pattern)| format!("{selector} {pattern}\n")),
        (inserts, values).prop_map(|(insert, value)| format!("{insert} {value}\n")),
    ]
}

/// A piece of a file, or what may break a script.
fn junk() -> impl Strategy<Value = String> {
    let texts = select(vec![
        "a", "b", "é", "日本", "😀", "e\u{301}", "\n", "\r\n", "\r", " ", "\0", "a\nb\n",
        "\u{feff}", "\u{2028}", "/(?=a)/", "/[/", "<<E", "\"", "/", "`", "#", "\\", "replace",
        "select",
    ]);
    prop_oneof![4 => texts.prop_map(str::to_owned), 1 => any::<String>()]
}

/// A part of a script: one in ten is junk.
fn fragment() -> impl Strategy<Value = String> {
    prop_oneof![9 => command(), 1 => junk()]
}

/// A file with lines of all kinds.
fn lines() -> impl Strategy<Value = String> {
    let line =
        select(vec!["", "a", "ab", "b a", "日本語", "é😀", "e\u{301}x", "a long line of words"]);
    let end = select(vec!["\n", "\n", "\n", "\r\n"]);
    vec((line, end), 1..12)
        .prop_map(|lines| lines.into_iter().flat_map(|(line, end)| [line, end]).collect())
}

proptest! {
    #![proptest_config(tries(2_000))]

    #[test]
    fn any_bytes_run_within_bounds(bytes in vec(any::<u8>(), 0..200)) {
        fuzz_case::check(&bytes);
    }

    #[test]
    fn any_script_over_any_files_runs_within_bounds(
        script in vec(fragment(), 0..12),
        files in vec(vec(junk(), 0..9), 0..3),
    ) {
        let files: String = files.iter().map(|file| format!("\0{}", file.concat())).collect();
        fuzz_case::check(format!("file /a\n{}{files}", script.concat()).as_bytes());
    }

    #[test]
    fn a_failed_file_is_unchanged(edits in vec(command(), 0..8), text in lines()) {
        let script = format!("file /a\n{}\nfile /a select /no such text/", edits.concat());
        let mut workspace = Workspace::new();
        workspace.insert("/a", text.as_str()).expect("a path");
        let before = workspace.clone();
        if let Ok(script) = Script::parse(&script) {
            let report = script.run(&mut workspace);
            prop_assert!(!report.is_ok());
            prop_assert_eq!(workspace.text("/a"), before.text("/a"));
            prop_assert_eq!(workspace.version("/a"), before.version("/a"));
        }
    }

    #[test]
    fn the_inverse_of_a_replacement_restores_the_text(text in lines(), a: usize, b: usize) {
        let places = Places::of(&text);
        let (from, to) = places.range(a, b);
        let script = format!(
            "select {}-{} cut old insert_after \"<MARK>\" select /<MARK>/ replace old",
            places.name(from), places.name(to),
        );
        prop_assert_eq!(run(&script, &text).0, Ok(text));
    }

    #[test]
    fn positions_agree_with_a_log_of_all_edits(
        text in lines(),
        edits in vec((any::<usize>(), any::<usize>(), select(vec!["", "x", "longer", "é"])), 1..40),
    ) {
        let places = Places::of(&text);
        let mut model = Model { text: text.clone(), log: Vec::new() };
        let mut script = String::new();
        for (a, b, new) in edits {
            let (from, to) = places.range(a, b);
            let names = (places.name(from), places.name(to));
            let step = format!("select {}-{} replace \"{new}\"\n", names.0, names.1);
            if model.replace(places.0[from].0..places.0[to].0, new) {
                script.push_str(&step);
            } else {
                let (failed, _) = run(&format!("{script}{step}"), &text);
                prop_assert!(failed.is_err_and(|message| message.contains("lies inside text")));
            }
        }
        prop_assert_eq!(run(&script, &text).0, Ok(model.text));
    }
}

/// The positions of a text that a script can name, as byte, line and column.
struct Places(Vec<(usize, usize, usize)>);

impl Places {
    fn of(text: &str) -> Self {
        let mut places = Vec::new();
        let mut start = 0;
        for (index, line) in text.split('\n').enumerate() {
            let is_last = start + line.len() == text.len();
            let shown = if is_last { line } else { line.strip_suffix('\r').unwrap_or(line) };
            let borders = shown.char_indices().map(|(at, _)| at).chain([shown.len()]);
            places.extend(borders.enumerate().map(|(column, at)| (start + at, index + 1, column)));
            start += line.len() + 1;
        }
        Self(places)
    }

    fn range(&self, a: usize, b: usize) -> (usize, usize) {
        let (a, b) = (a % self.0.len(), b % self.0.len());
        (a.min(b), a.max(b))
    }

    fn name(&self, index: usize) -> String {
        let (_, line, column) = self.0[index];
        format!("{line}:{column}")
    }
}

/// A text and its edits: where each began, and where it ended before and after.
struct Model {
    text: String,
    log: Vec<(usize, usize, usize)>,
}

impl Model {
    fn now(&self, mut place: usize) -> Option<usize> {
        for (start, end, new_end) in &self.log {
            if place > *start && place < *end {
                return None;
            }
            if place > *start {
                place = place + new_end - end;
            }
        }
        Some(place)
    }

    fn replace(&mut self, range: Range<usize>, new: &str) -> bool {
        let (Some(start), Some(end)) = (self.now(range.start), self.now(range.end)) else {
            return false;
        };
        self.text.replace_range(start..end, new);
        self.log.push((start, end, start + new.len()));
        true
    }
}

/// Every match of an engine's pattern, JavaScript's way, on the text in one piece.
fn matches(pattern: &str, text: &str, sticky: bool) -> Vec<Range<usize>> {
    let syntax = Config::new().crlf(true);
    let regex = Regex::builder().syntax(syntax).build(pattern).expect("a pattern");
    let mut found = Vec::new();
    let mut from = 0;
    while from <= text.len() {
        let Some(range) = regex.find(Input::new(text).range(from..)).map(|it| it.range()) else {
            break;
        };
        if sticky && range.start != from {
            break;
        }
        from = if range.is_empty() { range.end + 1 } else { range.end };
        while !text.is_char_boundary(from) && from < text.len() {
            from += 1;
        }
        found.push(range);
    }
    found
}

/// Every position at which these whole lines occur, with their line feeds.
fn whole_lines(wanted: &str, text: &str) -> Vec<Range<usize>> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let plain = |line: &str| line.trim_end_matches('\n').trim_end_matches('\r').to_owned();
    let wanted: Vec<String> = wanted.split('\n').map(plain).collect();
    let (mut found, mut index, mut start) = (Vec::new(), 0, 0);
    while index < lines.len() {
        let window = lines.get(index..index + wanted.len()).unwrap_or_default();
        let is_match =
            !window.is_empty() && window.iter().map(|it| plain(it)).eq(wanted.iter().cloned());
        let step = if is_match { wanted.len() } else { 1 };
        let length: usize = lines[index..index + step].iter().map(|it| it.len()).sum();
        if is_match {
            found.push(start..start + length);
        }
        (index, start) = (index + step, start + length);
    }
    found
}

fn replaced(text: &str, ranges: &[Range<usize>], new: &str) -> String {
    let mut result = text.to_owned();
    for range in ranges.iter().rev() {
        result.replace_range(range.clone(), new);
    }
    result
}

proptest! {
    #![proptest_config(tries(24))]

    /// The text is several chunks long, its borders fall anywhere, and edits have cut it up.
    #[test]
    fn a_search_in_a_long_file_agrees_with_one_in_a_single_piece(
        shift in 0..60_usize,
        word in select(vec!["a bb\n", "é\n", "日本語 ab ", "a", "ab\r\n", "x a\n\ny\n"]),
        marks in vec((0..40_000_usize, select(vec!["Q", "QQ\n", "\nab\n", "é"])), 0..12),
    ) {
        let mut text = "#".repeat(shift) + &word.repeat(40_000 / word.len());
        // Marks are in the loaded text, and the script doubles them.
        for (at, mark) in &marks {
            let at = (0..=at % text.len()).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
            text.insert_str(at, mark);
        }
        let edit = "select_multiple /Q/ replace \"QQ\"";
        let edit = if text.contains('Q') { edit } else { "" };
        let edited = text.replace('Q', "QQ");
        let regexes = [
            ("/bb?\\s?/", r"bb?\s?"), ("/^a.*$/m", "(?m)^a.*$"), ("/\\b\\w/u", r"\b\w"), ("/QQ|$/m", "(?m)QQ|$"),
            ("/[^a]{1,9}b/", "[^a]{1,9}b"), ("/Q+\\s*/", r"Q+\s*"), ("/^/m", "(?m)^"), ("/語 ab 日?/", "語 ab 日?"),
            ("/\\w+/", "[0-9A-Za-z_]+"), ("/[#a]/y", "[#a]"), ("/[# a-z]+/y", "[# a-z]+"), ("/$/", "$"),
        ];
        let unlimited = threadfold_edl::Limits { matches: usize::MAX, ..Default::default() };
        let literals = ["a bb", "ab", "é\né", "QQ", "x a\n", "a bb\na bb\na bb"];
        let literal_cases = literals.map(|it| (format!("<<E\n{it}\nE\n"), whole_lines(it, &edited)));
        let regex_cases = regexes.map(|(script, pattern)| {
            (script.to_owned(), matches(pattern, &edited, script.ends_with("/y")))
        });
        for (pattern, expected) in regex_cases.into_iter().chain(literal_cases) {
            let mut workspace = Workspace::new();
            workspace.insert("/a", text.as_str()).expect("a path");
            let script = format!("file /a {edit} select_multiple {pattern} replace \"<>\"");
            let script = Script::parse(&script).expect("a script");
            let report = script.run_within(&mut workspace, &unlimited);
            prop_assert_eq!(report.is_ok(), !expected.is_empty(), "{} {}", pattern, report);
            if !expected.is_empty() {
                let expected = replaced(&edited, &expected, "<>");
                prop_assert!(workspace.text("/a") == Some(expected.as_str()), "{} differs", pattern);
            }
        }
    }
}
