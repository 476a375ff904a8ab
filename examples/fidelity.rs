//! A bridge for benchmarks in other languages: reads a session as JSON lines, compacts it on
//! request, and prints the remaining text.
//!
//! ```text
//! cargo run -q --example fidelity -- [--strategy NAME] [--writer NUMBER] [--quotes]
//! ```
//!
//! Each line of the input is one of:
//!
//! | line | effect |
//! |---|---|
//! | `{"role": "user", "text": "..."}` | appends a message of the user, or of the model |
//! | `{"characters": 900}` | compacts to this many characters and prints the thread |
//! | `{"reset": true}` | begins a new session |
//! | `{"earlier": "...", "later": "..."}` | tells the model that the user takes the earlier sentence back with the later one |
//!
//! The thread is printed as one JSON string on one line, with the role of each message in brackets.
//! `tests/fidelity/run.py` drives it. The writers are those of the example `retention`. With
//! `--quotes`, the model also answers which earlier sentences the user took back, as far as it reads
//! both in the question.

#![allow(clippy::wildcard_enum_match_arm, reason = "only texts and summaries are printed")]

use std::{
    io::{self, BufRead, Write},
    process::ExitCode,
    sync::{Arc, Mutex},
};

use futures::executor::block_on;
use lexopt::{Arg, Parser, ValueExt};
use serde::Deserialize;
use threadfold::{
    CompactionStrategy, Message, Model, Request, StrategyRegistry, async_trait,
    drive::{self, Conversation, Models},
    log::{Event, EventLog},
    message::{Answer, ContentBlock, Delta, InvalidValue, ModelError, Role, Timestamp},
    retention::RetentionPolicy,
    store::Journal,
    strategy::{Brief, ModelCall},
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
    TakenBack {
        earlier: String,
        later: String,
    },
}

fn run() -> Result<(), String> {
    let Options { strategy, writer, quotes } = options(Parser::from_env())?;
    let mut session = Session::new(writer, quotes)?;
    for line in io::stdin().lock().lines() {
        let line = line.map_err(|error| error.to_string())?;
        let line = serde_json::from_str(&line).map_err(|error| error.to_string())?;
        let answer = match line {
            Line::Say { role, text } => {
                session.append(message(&role, &text))?;
                continue;
            }
            Line::Reset { .. } => {
                session = Session::new(writer, quotes)?;
                continue;
            }
            Line::TakenBack { earlier, later } => {
                session
                    .taken_back
                    .lock()
                    .map_err(|error| error.to_string())?
                    .push((earlier, later));
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

struct Options {
    strategy: Arc<dyn CompactionStrategy>,
    writer: &'static Writer,
    quotes: bool,
}

fn options(mut parser: Parser) -> Result<Options, String> {
    const USAGE: &str = "usage: fidelity [--strategy NAME] [--writer NUMBER] [--quotes]";
    let registry = StrategyRegistry::default();
    let (mut strategy, mut writer, mut quotes) = ("ladder".to_owned(), WRITERS.first(), false);
    while let Some(argument) = parser.next().map_err(|error| error.to_string())? {
        let name = if let Arg::Long(name) = argument { name.to_owned() } else { String::new() };
        if name == "quotes" {
            quotes = true;
            continue;
        }
        let value = parser.value().and_then(|value| value.string()).map_err(|_| USAGE)?;
        match name.as_str() {
            "strategy" => strategy = value,
            "writer" => writer = value.parse().ok().and_then(|at: usize| WRITERS.get(at)),
            _ => return Err(USAGE.to_owned()),
        }
    }
    let strategy = registry.get(&strategy).map_err(|error| error.to_string())?;
    Ok(Options { strategy: Arc::clone(strategy), writer: writer.ok_or(USAGE)?, quotes })
}

fn message(role: &str, text: &str) -> Message {
    let role = if role == "user" { Role::User } else { Role::Assistant };
    Message::new(role, vec![ContentBlock::text(text)])
}

/// Pairs of an earlier sentence and the later one that takes it back.
type Pairs = Arc<Mutex<Vec<(String, String)>>>;

/// A model that writes like another one, and quotes what the user took back.
#[derive(Debug)]
struct Quoting {
    writer: Arc<dyn Model>,
    taken_back: Pairs,
}

#[async_trait]
impl Model for Quoting {
    async fn complete(&self, request: Request) -> Result<Answer, ModelError> {
        let read: String = request.messages.iter().map(printed).collect();
        let turn = self.writer.complete(request).await?;
        if !read.contains("<user_lifted>") {
            return Ok(turn);
        }
        let pairs = self.taken_back.lock().map(|pairs| pairs.clone()).unwrap_or_default();
        let lines = pairs.iter().filter(|(earlier, later)| {
            read.contains(earlier.as_str()) && read.contains(later.as_str())
        });
        let lines: String =
            lines.map(|(earlier, later)| format!("- {earlier} => {later}\n")).collect();
        let text = format!("{}\n<user_lifted>\n{lines}</user_lifted>", turn.text());
        Ok(Answer::new(Message::assistant(text), turn.stop_reason.clone(), turn.usage))
    }
}

struct Session {
    model: Arc<dyn Model>,
    taken_back: Pairs,
    journal: Journal,
}

impl Session {
    fn new(writer: &Writer, quotes: bool) -> Result<Self, String> {
        let id = "fidelity".parse().map_err(|error: InvalidValue| error.to_string())?;
        let (writer, taken_back) = ((writer.make)(), Pairs::default());
        let model: Arc<dyn Model> = match quotes {
            true => Arc::new(Quoting { writer, taken_back: Arc::clone(&taken_back) }),
            false => writer,
        };
        Ok(Self {
            model,
            taken_back,
            journal: Journal::new(EventLog::new(id)).with_counter(Arc::new(Printed)),
        })
    }

    fn append(&mut self, message: Message) -> Result<(), String> {
        let event = Event::MessageAppended(message);
        self.journal.append(Timestamp(0), event).map_err(|error| error.to_string())?;
        Ok(())
    }

    /// Compacts to this many characters, and returns the printed rest. A thread that is already
    /// this small stays as it is.
    fn compact(&mut self, strategy: &dyn CompactionStrategy, characters: u64) -> String {
        if self.journal.thread().size().tokens > characters {
            let retention = Some(RetentionPolicy::default());
            let brief = Brief { target: Some(characters), retention, ..Brief::default() };
            let mut conversation = Conversation::new(&mut self.journal);
            let models = Models::one(self.model.as_ref());
            let watch = &mut |_: &ModelCall, _: Option<&Delta>| {};
            let done = drive::compact(&mut conversation, strategy, &brief, models, watch);
            if let Err(error) = block_on(done) {
                eprintln!("fidelity: {error}");
            }
        }
        self.journal.thread().messages().iter().map(printed).collect()
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
