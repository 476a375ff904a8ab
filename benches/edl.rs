//! Edit scripts against an implementation that copies the file on every edit.
//!
//! `cargo bench --bench edl` prints, for four ways to name what to edit, the time that a script of
//! 1,000 edits takes on files of growing size and scripts of growing length on a file of 1 MiB. Only
//! ratios within one run mean anything: `ratio` compares with the copying implementation, which finds
//! text with the same engine and differs only in how it edits; `growth` compares the last column with
//! the first, while the file (or the script) grew eightfold.
//!
//! Then come, for each way, files of 1, 10 and 50 MB in the table that `benches/README.md` explains,
//! held against a copy of the file.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a benchmark stops where something is not as it must be"
)]

use std::{
    fmt::Write,
    hint::black_box,
    time::{Duration, Instant},
};

use regex_automata::{Input, meta::Regex};
use threadfold::edl::{Script, Workspace};
use yardstick::{Row, Tables, is_test, memcpy_of, row};

mod yardstick;

const MIB: usize = 1 << 20;
const EDITS: usize = 1_000;
const ROUNDS: usize = 3;

/// How a script names what it edits.
#[derive(Clone, Copy)]
enum Way {
    /// By the number of the line, in scattered order.
    LineNumber,
    /// By the text of the line, which must be the only one in the file.
    WholeLine,
    /// By what comes next after the last edit.
    Next,
    /// All at once.
    Multiple,
}

fn main() {
    if !is_test() {
        beside_copying();
    }
    let sizes: &[usize] = if is_test() { &[100_000] } else { &[1_000_000, 10_000_000, 50_000_000] };
    for (way, name) in WAYS {
        println!("{EDITS} edits {name}");
        let mut tables = Tables::default();
        for size in sizes {
            let file = File::new(*size, EDITS);
            tables.print("bytes, and as text", *size, file.text.len(), rows(way, &file));
        }
    }
}

fn rows(way: Way, file: &File) -> Vec<Row> {
    let script = file.script(way);
    let parsed = Script::parse(&script).expect("a script");
    let workspace = || {
        let mut workspace = Workspace::new();
        workspace.insert("/file", file.text.as_str()).expect("a path");
        workspace
    };
    vec![
        memcpy_of(file.text.as_bytes(), 50),
        row("parse the script", 50, || (), |()| Script::parse(&script)),
        row("run it", 20, workspace, |mut workspace| {
            let report = parsed.run(&mut workspace);
            assert!(report.is_ok(), "{report}");
            (report, workspace)
        }),
    ]
}

fn beside_copying() {
    println!("{EDITS} edits on files of growing size: milliseconds, ours / copying");
    header(["0.25 MiB", "0.5 MiB", "1 MiB", "2 MiB"]);
    for (way, name) in WAYS {
        let cells = [MIB / 4, MIB / 2, MIB, 2 * MIB].map(|size| measure(way, size, EDITS));
        beside(name, &cells);
    }
    println!("\nscripts of growing length on a file of 1 MiB: milliseconds, ours / copying");
    header(["250 edits", "500 edits", "1000 edits", "2000 edits"]);
    for (way, name) in WAYS {
        beside(name, &[250, 500, 1_000, 2_000].map(|edits| measure(way, MIB, edits)));
    }
    println!();
}

const WAYS: [(Way, &str); 4] = [
    (Way::LineNumber, "by line number"),
    (Way::WholeLine, "by whole line"),
    (Way::Next, "by next match"),
    (Way::Multiple, "all in one command"),
];

fn header(columns: [&str; 4]) {
    let columns = columns.map(|it| format!("{it:>15}")).join("");
    println!("{:<20}{columns}{:>8}{:>10}", "", "ratio", "growth");
}

fn beside(name: &str, cells: &[(Duration, Duration); 4]) {
    let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
    let mut line = format!("{name:<20}");
    for (ours, copying) in cells {
        let cell = format!("{:.2} / {:.1}", milliseconds(*ours), milliseconds(*copying));
        write!(line, "{cell:>15}").expect("a string takes any text");
    }
    let [(first, _), _, (third, copied), (last, _)] = cells;
    let ratio = copied.as_secs_f64() / third.as_secs_f64();
    let growth = last.as_secs_f64() / first.as_secs_f64();
    println!("{line}{ratio:>7.0}x{growth:>9.1}x");
}

/// Returns the time that a script takes, and the time that copying takes for the same edits.
fn measure(way: Way, size: usize, edits: usize) -> (Duration, Duration) {
    let file = File::new(size, edits);
    let script = file.script(way);
    let mut results = (String::new(), String::new());
    let ours = best(|| {
        let mut workspace = Workspace::new();
        workspace.insert("/file", file.text.as_str()).expect("a path");
        let start = Instant::now();
        let report = Script::parse(&script).expect("a script").run(&mut workspace);
        let time = start.elapsed();
        assert!(report.is_ok(), "{report}");
        results.0 = workspace.text("/file").unwrap_or_default().to_owned();
        time
    });
    let copying = best(|| {
        let text = file.text.clone();
        let start = Instant::now();
        results.1 = black_box(file.copying(way, text));
        start.elapsed()
    });
    assert!(results.0 == results.1, "both must come to the same text");
    (ours, copying)
}

fn best(mut run: impl FnMut() -> Duration) -> Duration {
    (0..ROUNDS).map(|_| run()).min().unwrap_or_default()
}

/// A file of lines, and the lines to edit.
struct File {
    text: String,
    lines: usize,
    edits: Vec<usize>,
}

impl File {
    fn new(size: usize, edits: usize) -> Self {
        let line = |number: usize| format!("line {number:07} of a file that is being edited\n");
        let lines = size / line(0).len();
        let step = lines / edits;
        // Scattered, each line once: a stride without a common divisor visits all of them.
        let stride =
            ((edits * 5 / 8) | 1..).step_by(2).find(|it| gcd(*it, edits) == 1).unwrap_or(1);
        let edits: Vec<usize> = (0..edits).map(|it| it * stride % edits * step).collect();
        let mut text: String = (0..lines).map(line).collect();
        for number in &edits {
            let start = number * line(0).len();
            text.replace_range(start..start + 4, "MARK");
        }
        Self { text, lines, edits }
    }

    fn line(number: usize) -> String {
        format!("MARK {number:07} of a file that is being edited")
    }

    fn script(&self, way: Way) -> String {
        let mut script = "file /file\n".to_owned();
        match way {
            Way::LineNumber => self.edits.iter().for_each(|it| {
                script += &format!("select {} replace \"edited {it}\"\n", it + 1);
            }),
            Way::WholeLine => self.edits.iter().for_each(|it| {
                let line = Self::line(*it);
                script += &format!("select <<E\n{line}\nE\nreplace <<E\nedited {it}\nE\n");
            }),
            Way::Next => {
                script += "select bof\n";
                self.edits.iter().for_each(|_| script += "select_next /MARK/ replace \"edited\"\n");
            }
            Way::Multiple => script += "select_multiple /MARK/ replace \"edited\"\n",
        }
        script
    }

    /// Makes the same edits by copying the text around each.
    fn copying(&self, way: Way, mut text: String) -> String {
        let width = Self::line(0).len() + 1;
        let regex = Regex::new("MARK").expect("a pattern");
        // What each line has grown by so far would be a log; here every edit shortens in one way.
        let mut grown = vec![0_isize; self.lines + 1];
        let mut from = 0;
        for number in &self.edits {
            let (range, new) = match way {
                Way::LineNumber => {
                    let before: isize = grown.iter().take(*number).sum();
                    let start = (number * width).checked_add_signed(before).expect("a place");
                    (start..start + width - 1, format!("edited {number}"))
                }
                Way::WholeLine => {
                    let line =
                        Regex::new(&format!("\n{}\n", Self::line(*number))).expect("a pattern");
                    let mut found = line.find_iter(&text).map(|it| it.range());
                    let found = match found.next() {
                        Some(range) => range.start + 1..range.end - 1,
                        None => 0..width - 1,
                    };
                    (found, format!("edited {number}"))
                }
                Way::Next | Way::Multiple => {
                    let found = regex.find(Input::new(&text).range(from..)).expect("a mark");
                    from = found.start() + "edited".len();
                    (found.range(), "edited".to_owned())
                }
            };
            if let Some(grown) = grown.get_mut(*number) {
                let signed = |length: usize| isize::try_from(length).expect("a small length");
                *grown = signed(new.len()) - signed(range.len());
            }
            let (head, tail) = (&text[..range.start], &text[range.end..]);
            text = [head, &new, tail].concat();
        }
        text
    }
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}
