//! Edit scripts over files of growing size.
//!
//! `cargo bench --bench edl` prints the time of a script of 100 edits on files of 10 KB, 100 KB and
//! 1 MB, for four ways to select the text, in the table that `benches/README.md` explains, relative
//! to a copy of the file. An edit copies the file from the edited position on.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a benchmark stops where something is not as it must be"
)]

use threadfold_edl::{Script, Workspace};
use yardstick::{Row, Tables, is_test, memcpy_of, row};

const EDITS: usize = 100;

/// How a script selects the text to edit.
#[derive(Clone, Copy)]
enum Way {
    /// By the number of the line, in scattered order.
    LineNumber,
    /// By the text of the line, which must be the only one in the file.
    WholeLine,
    /// By the next match after the last edit.
    Next,
    /// All at once.
    Multiple,
}

const WAYS: [(Way, &str); 4] = [
    (Way::LineNumber, "by line number"),
    (Way::WholeLine, "by whole line"),
    (Way::Next, "by next match"),
    (Way::Multiple, "all in one command"),
];

fn main() {
    let sizes: &[usize] = if is_test() { &[10_000] } else { &[10_000, 100_000, 1_000_000] };
    for (way, name) in WAYS {
        println!("{EDITS} edits {name}");
        let mut tables = Tables::default();
        for size in sizes {
            let file = File::new(*size);
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

/// A file of lines, and the lines to edit.
struct File {
    text: String,
    edits: Vec<usize>,
}

impl File {
    fn new(size: usize) -> Self {
        let lines = size / line("line", 0).len();
        let step = lines / EDITS;
        // Scattered, each line once: a stride without a common divisor visits all of them.
        let edits: Vec<usize> = (0..EDITS).map(|it| it * 63 % EDITS * step).collect();
        let word = |number: usize| if edits.contains(&number) { "MARK" } else { "line" };
        let text = (0..lines).map(|number| line(word(number), number)).collect();
        Self { text, edits }
    }

    fn script(&self, way: Way) -> String {
        let edits = self.edits.iter();
        let commands: String = match way {
            Way::LineNumber => {
                edits.map(|it| format!("select {} replace \"edited {it}\"\n", it + 1)).collect()
            }
            Way::WholeLine => {
                let edit = |it| {
                    let line = line("MARK", it);
                    format!("select <<E\n{line}E\nreplace <<E\nedited {it}\nE\n")
                };
                edits.map(|it| edit(*it)).collect()
            }
            Way::Next => {
                let next = edits.map(|_| "select_next /MARK/ replace \"edited\"\n");
                format!("select bof\n{}", next.collect::<String>())
            }
            Way::Multiple => "select_multiple /MARK/ replace \"edited\"\n".to_owned(),
        };
        format!("file /file\n{commands}")
    }
}

fn line(word: &str, number: usize) -> String {
    format!("{word} {number:07} of a file that is being edited\n")
}
