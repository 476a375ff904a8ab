//! A bridge for benchmarks in other languages: reads a session as JSON lines, compacts it on
//! request, and prints the remaining text.
//!
//! ```text
//! cargo run -q --example fidelity -- [--strategy NAME] [--writer NUMBER]
//! ```
//!
//! Each line of the input is one of:
//!
//! | line | effect |
//! |---|---|
//! | `{"role": "user", "text": "..."}` | appends a message of the user, or of the model |
//! | `{"characters": 900}` | compacts to this many characters and prints the thread |
//! | `{"reset": true}` | begins a new session |
//!
//! The thread is printed as one JSON string on one line, with the role of each message in brackets.
//! `tests/fidelity/run.py` drives it. The writers are those of the example `retention`.

#![allow(clippy::wildcard_enum_match_arm, reason = "only texts and summaries are printed")]

use std::{
    io::{self, BufRead, Write},
    process::ExitCode,
    sync::Arc,
};

use futures::executor::block_on;
use lexopt::{Arg, Parser, ValueExt};
use serde::Deserialize;
use threadfold::{
    CompactionStrategy, Message, Model, StrategyRegistry, Thread,
    drive::{self, Conversation, Models},
    log::{Event, EventLog},
    message::{ContentBlock, Delta, InvalidValue, Role, Timestamp},
    retention::RetentionPolicy,
    store::Journal,
    strategy::{Brief, Step},
    tokens::TokenCounter,
};
use writers::{WRITERS, Writer};

#[allow(dead_code, reason = "only the table of `retention` names its writers")]
#[path = "retention/writers.rs"]
mod writers;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("fidelity: {error}");
            ExitCode::FAILURE
        }
    }
}

/// A line of the input.
#[derive(Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum Line {
    Say {
        role: String,
        text: String,
    },
    Compact {
        characters: u64,
    },
    Reset {
        #[serde(rename = "reset")]
        _wanted: bool,
    },
}

fn run() -> Result<(), String> {
    let (strategy, writer) = options(Parser::from_env())?;
    let mut session = Session::new(writer)?;
    for line in io::stdin().lock().lines() {
        let line = line.map_err(|error| error.to_string())?;
        let line = serde_json::from_str(&line).map_err(|error| error.to_string())?;
        let answer = match line {
            Line::Say { role, text } => {
                session.append(message(&role, &text))?;
                continue;
            }
            Line::Reset { .. } => {
                session = Session::new(writer)?;
                continue;
            }
            Line::Compact { characters } => session.compact(strategy.as_ref(), characters),
        };
        let answer = serde_json::to_string(&answer).map_err(|error| error.to_string())?;
        let mut out = io::stdout().lock();
        writeln!(out, "{answer}").and_then(|()| out.flush()).map_err(|error| error.to_string())?;
    }
    Ok(())
}

fn options(mut parser: Parser) -> Result<(Arc<dyn CompactionStrategy>, &'static Writer), String> {
    const USAGE: &str = "usage: fidelity [--strategy NAME] [--writer NUMBER]";
    let registry = StrategyRegistry::default();
    let (mut strategy, mut writer) = ("ladder".to_owned(), WRITERS.first());
    while let Some(argument) = parser.next().map_err(|error| error.to_string())? {
        let name = if let Arg::Long(name) = argument { name.to_owned() } else { String::new() };
        let value = parser.value().and_then(|value| value.string()).map_err(|_| USAGE)?;
        match name.as_str() {
            "strategy" => strategy = value,
            "writer" => writer = value.parse().ok().and_then(|at: usize| WRITERS.get(at)),
            _ => return Err(USAGE.to_owned()),
        }
    }
    let strategy = registry.get(&strategy).map_err(|error| error.to_string())?;
    Ok((Arc::clone(strategy), writer.ok_or(USAGE)?))
}

fn message(role: &str, text: &str) -> Message {
    let role = if role == "user" { Role::User } else { Role::Assistant };
    Message::new(role, vec![ContentBlock::text(text)])
}

struct Session {
    model: Arc<dyn Model>,
    thread: Thread,
    journal: Journal,
}

impl Session {
    fn new(writer: &Writer) -> Result<Self, String> {
        let id = "fidelity".parse().map_err(|error: InvalidValue| error.to_string())?;
        Ok(Self {
            model: (writer.make)(),
            thread: Thread::new(Arc::new(Printed)),
            journal: Journal::new(EventLog::new(id)),
        })
    }

    fn append(&mut self, message: Message) -> Result<(), String> {
        let event = Event::MessageAppended(message.clone());
        self.journal.append(Timestamp(0), event).map_err(|error| error.to_string())?;
        self.thread.push(message);
        Ok(())
    }

    /// Compacts to this many characters, and returns the printed rest. A thread that is already
    /// this small stays as it is.
    fn compact(&mut self, strategy: &dyn CompactionStrategy, characters: u64) -> String {
        if self.thread.size().tokens > characters {
            let retention = Some(RetentionPolicy::default());
            let brief = Brief { target: Some(characters), retention, ..Brief::default() };
            let mut conversation = Conversation::new(&mut self.thread, &mut self.journal);
            let models = Models::one(self.model.as_ref());
            let watch = &mut |_: Step<'_>, _: Option<&Delta>| {};
            let done = drive::compact(&mut conversation, strategy, &brief, models, watch);
            if let Err(error) = block_on(done) {
                eprintln!("fidelity: {error}");
            }
        }
        self.thread.messages().iter().map(printed).collect()
    }
}

/// Counts each printed character as a token, so that a target is a length of text.
#[derive(Debug)]
struct Printed;

impl TokenCounter for Printed {
    fn text(&self, text: &str) -> u64 {
        text.chars().count() as u64
    }

    fn message(&self, message: &Message) -> u64 {
        self.text(&printed(message))
    }
}

fn printed(message: &Message) -> String {
    let text = |block: &ContentBlock| match block {
        ContentBlock::Summary(summary) => Some(summary.text.to_string()),
        other => other.as_text().map(ToString::to_string),
    };
    let texts: Vec<String> = message.content.iter().filter_map(text).collect();
    format!("[{}] {}\n", message.role.as_str(), texts.join("\n"))
}
