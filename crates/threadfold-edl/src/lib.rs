//! Edit scripts: a small language in which a model states how files change.
//!
//! A model that rewrites a file to change one line pays for the whole file and is likely to lose
//! some of it. A script names only the text to change and the change:
//!
//! ```
//! use threadfold_edl::{Script, Workspace};
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
//! A script is parsed as a whole before it runs, so after a [`ParseError`] nothing has changed. A
//! command that cannot be carried out ([`EditError`]) fails its file: the file stays unchanged, the
//! texts meant for it are kept in registers, and the other files get their changes.
//! [`Report::is_ok`] is `false` if any file failed. Everything that a script can make grow has a
//! limit in [`Limits`]: no script makes a run panic or run forever.
//!
//! The crate reads and writes no files. A host puts texts into a [`Workspace`] and takes them out.
//! [`tool`] has the tools `edl` and `get_file` for an agent. `docs/edl.md` describes the language.
//!
//! # Where to find things
//!
//! | step | files |
//! |---|---|
//! | read a script: text, tokens, commands | `script`, `token`, `parse`, `command` |
//! | compile its patterns | `regex`, `javascript` (the notation), `whole_lines` (heredocs) |
//! | run it over a workspace | `run`, `workspace`, `registers`, `limits` |
//! | select text | `select`, `search` |
//! | change text | `document`, `position_map` (line numbers after edits) |
//! | report the result | `report`, `report_text`, `error` |
//!
//! Line numbers in a script refer to the file as it was loaded. A regular expression is searched
//! for in a part of a file and sees the rest, so that `^`, `$` and `\b` match where a reader
//! expects it.

#![forbid(unsafe_code)]

mod command;
mod document;
mod error;
#[cfg(feature = "patterns")]
mod javascript;
mod limits;
mod lookahead;
mod parse;
mod position_map;
#[cfg_attr(not(feature = "patterns"), path = "regex_absent.rs")]
mod regex;
mod registers;
mod report;
mod report_text;
mod run;
mod script;
mod search;
mod select;
mod text;
mod token;
pub mod tool;
mod whole_lines;
mod workspace;

pub use self::{
    error::{EditError, ParseError},
    limits::Limits,
    report::{Failure, FileChange, Report},
    script::Script,
    workspace::Workspace,
};

/// Compiles and runs the code of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
