//! Edit scripts: a small language in which a model says how files change.
//!
//! A model that rewrites a file to change a line of it pays for the whole file and is likely to lose
//! some of it. A script names the text to change and the change, nothing else:
//!
//! ```
//! use threadfold::edl::{Script, Workspace};
//!
//! let mut workspace = Workspace::new();
//! workspace.insert("/summary.md", "# Summary\n- parser: in progress\n")?;
//!
//! let script = Script::parse(
//!     r#"
//! file /summary.md
//! select /in progress/        # exactly one match, or the file fails
//! replace "done"
//! select eof
//! insert_after <<END
//! - writer: in progress
//! END
//! "#,
//! )?;
//! let report = script.run(&mut workspace);
//!
//! assert!(report.is_ok(), "{report}");
//! assert_eq!(
//!     workspace.text("/summary.md"),
//!     Some("# Summary\n- parser: done\n- writer: in progress\n"),
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A script is read whole before any of it runs: a [`ParseError`] means that nothing happened. When
//! it runs, a command that cannot be carried out fails its file and no other. The file is left as it
//! was, the texts that were meant for it are kept in registers, and [`Report::status`] says so.
//! Everything that a script can make grow has a limit in [`Limits`]; no script and no file makes a
//! run panic or go on for ever.
//!
//! `docs/edl.md` describes the language: grammar, patterns, selection, edits, failure.
//!
//! # How a run works
//!
//! A file under edit is one text. A command changes all of its ranges in one copy of that text; what
//! the copies and searches of a run read together is limited. Line numbers mean the file as it was
//! loaded; the sum of all edits since says where a place is now. A search within a span sees the text
//! around it, so `^`, `$` and `\b` mean what they say.
//!
//! # The pieces
//!
//! | file | what |
//! |---|---|
//! | `script` | [`Script`]: read, run, which files it opens |
//! | `scan`, `parse`, `command`, `words` | from text to commands |
//! | `parse_error`, `place` | [`ParseError`] and where it is |
//! | `translate`, `regex`, `pattern_error`, `lines_pattern` | patterns |
//! | `workspace`, `path`, `registers` | [`Workspace`]: files and registers |
//! | `run`, `run_error` | carrying out a script, [`RunError`] |
//! | `select`, `search`, `mutate` | selecting and changing text |
//! | `document`, `original`, `shifts` | a file under edit |
//! | `report`, `report_text`, `outline` | [`Report`], as data and as text |
//! | `limits` | [`Limits`] |
//! | [`tool`] | the tools `edl` and `get_file` for an agent |

#![forbid(unsafe_code)]

mod command;
mod document;
mod limits;
mod lines_pattern;
mod mutate;
mod original;
mod outline;
mod parse;
mod parse_error;
mod path;
mod pattern_error;
mod place;
mod regex;
mod registers;
mod report;
mod report_text;
mod run;
mod run_error;
mod scan;
mod script;
mod search;
mod select;
mod shifts;
pub mod tool;
mod translate;
mod words;
mod workspace;

pub use self::{
    document::EditCounts,
    limits::Limits,
    parse_error::{ParseError, ParseErrorKind},
    path::{EmptyPath, FilePath},
    pattern_error::RegexError,
    place::Place,
    report::{
        Failure, FileChange, LineColumn, Report, SavedRegister, SelectedRange, Selection, Status,
        TraceEntry, Warning,
    },
    run_error::RunError,
    script::{Access, Script},
    workspace::{File, Workspace},
};

/// The code of the README is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
