//! The command line.

use std::{ffi::OsString, path::PathBuf};

use lexopt::{Arg, Parser, ValueExt};
use threadfold::{CheckpointId, ContextWindow, Replacement};

use crate::input::Dialect;

const USAGE: &str = "usage: transcript [--format auto|anthropic|bedrock-converse|gemini|openai-chat|openai-responses] \
    [--strategy NAME] [--window TOKENS] [--replace FROM..TO=TEXT]... [--stamp SEED] [--out FORMAT] FILE";

/// What was asked for.
pub(crate) struct Options {
    pub(crate) file: PathBuf,
    /// `None`: find out.
    pub(crate) format: Option<Dialect>,
    pub(crate) out: Option<Dialect>,
    pub(crate) strategy: Option<String>,
    pub(crate) window: Option<ContextWindow>,
    pub(crate) replacements: Vec<Replacement>,
    pub(crate) stamp: Option<u64>,
}

impl Options {
    pub(crate) fn from_arguments() -> Result<Self, String> {
        let mut options = Self {
            file: PathBuf::new(),
            format: None,
            out: None,
            strategy: None,
            window: None,
            replacements: Vec::new(),
            stamp: None,
        };
        let mut parser = Parser::from_env();
        while let Some(argument) = parser.next().map_err(|error| error.to_string())? {
            options.take(argument.into(), &mut parser)?;
        }
        if options.file.as_os_str().is_empty() {
            return Err(USAGE.to_owned());
        }
        Ok(options)
    }

    fn take(&mut self, argument: Word, parser: &mut Parser) -> Result<(), String> {
        let name = match argument {
            Word::Value(file) if self.file.as_os_str().is_empty() => {
                self.file = file.into();
                return Ok(());
            }
            Word::Value(extra) => return Err(format!("one file at a time: {extra:?} is too much")),
            Word::Option(name) => name,
        };
        if name == "help" {
            return Err(USAGE.to_owned());
        }
        let value = parser.value().and_then(ValueExt::string);
        let value = value.map_err(|error| error.to_string())?;
        match name.as_str() {
            "format" if value == "auto" => self.format = None,
            "format" => self.format = Some(Dialect::named(&value)?),
            "out" => self.out = Some(Dialect::named(&value)?),
            "strategy" => self.strategy = Some(value),
            "window" => self.window = Some(ContextWindow::new(number("--window", &value)?)),
            "stamp" => self.stamp = Some(number("--stamp", &value)?),
            "replace" => self.replacements.push(replacement(&value)?),
            _ => {
                return Err(format!(
                    "there is no option --{name}; --help shows those that there are"
                ));
            }
        }
        Ok(())
    }
}

/// An argument that does not borrow the parser.
enum Word {
    Option(String),
    Value(OsString),
}

impl From<Arg<'_>> for Word {
    fn from(argument: Arg<'_>) -> Self {
        match argument {
            Arg::Long(name) => Self::Option(name.to_owned()),
            Arg::Short(name) => Self::Option(name.to_string()),
            Arg::Value(value) => Self::Value(value),
        }
    }
}

fn number(option: &str, value: &str) -> Result<u64, String> {
    value.parse().map_err(|_| format!("{option} needs a number, found {value:?}"))
}

/// Reads `FROM..TO=TEXT`; either side may be empty.
fn replacement(value: &str) -> Result<Replacement, String> {
    let refuse = || format!("--replace needs FROM..TO=TEXT, found {value:?}");
    let (range, summary) = value.split_once('=').ok_or_else(refuse)?;
    let (from, to) = range.split_once("..").ok_or_else(refuse)?;
    let id = |text: &str| -> Result<Option<CheckpointId>, String> {
        let id = (!text.is_empty()).then(|| text.parse());
        id.transpose().map_err(|error| format!("--replace {value:?}: {error}"))
    };
    let mut replacement = Replacement::new(summary);
    (replacement.from, replacement.to) = (id(from)?, id(to)?);
    Ok(replacement)
}
