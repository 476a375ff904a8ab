//! `import`: converts the stored log of an agent to a log of threadfold, or to a request body of
//! any dialect.
//!
//! Each log is converted to a request body of the dialect that is closest to its lines, which the
//! codec then reads. Every line is accounted for: it is part of the thread, or it is counted with
//! the reason why it is not. A line that cannot be read costs only itself; the report names it.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    io::Write,
};

use serde_json::{Map, Value};
use threadfold::{
    EventLog, Request, WireFormat, legality,
    log::Event,
    message::ThreadId,
    model::{Clock, std_clock},
    wire::{DecodeLimits, DecodeOptions, EncodeOptions, WireError},
};

use crate::{
    args::{ImportOptions, StoredBy},
    error::{Ended, Failure},
    input::{self, Dialect},
    out,
    terminal::thousands,
};

mod calls;
mod claude_code;
mod codex;
mod pi;

/// The content of an agent's log.
#[derive(Debug)]
struct Imported {
    /// A request body without the thread.
    body: Map<String, Value>,
    dialect: Dialect,
    /// The messages or items of the thread.
    messages: Vec<Carried>,
    left: Left,
}

/// A message or an item of the thread.
#[derive(Debug)]
struct Carried {
    value: Value,
    /// The positions of its lines in the log; none for a message that the agent's log implies.
    lines: Vec<usize>,
}

/// The number of lines outside the thread, by reason.
#[derive(Debug, Default)]
struct Left(BTreeMap<&'static str, usize>);

impl Left {
    fn out(&mut self, reason: &'static str) {
        *self.0.entry(reason).or_default() += 1;
    }
}

/// The lines that cannot be read, by their numbers in the file.
#[derive(Debug, Default)]
struct Unreadable(Vec<usize>);

impl Unreadable {
    /// The number of lines that the report names.
    const NAMED: usize = 8;

    fn report(mut self) {
        if self.0.is_empty() {
            return;
        }
        self.0.sort_unstable();
        let named: Vec<String> = self.0.iter().take(Self::NAMED).map(usize::to_string).collect();
        let more = if self.0.len() > Self::NAMED { ", ..." } else { "" };
        eprintln!("{:>8}  cannot be read (line {}{more})", self.0.len(), named.join(", "));
    }
}

pub(crate) fn run(options: &ImportOptions) -> Result<Ended, Failure> {
    let name = options.log.display();
    let text = input::text(&options.log)?;
    let (mut lines, mut numbers) = (Vec::new(), Vec::new());
    let mut unreadable = Unreadable::default();
    for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
        // A computer that lost its power leaves zeros where a line was to be.
        match serde_json::from_str::<Value>(line.trim_matches('\0')) {
            Ok(line @ Value::Object(_)) => {
                lines.push(line);
                numbers.push(number);
            }
            Ok(_) | Err(_) => unreadable.0.push(number),
        }
    }
    let count = lines.len() + unreadable.0.len();
    let by = options.agent.or_else(|| lines.iter().find_map(stored_by)).ok_or_else(|| {
        format!("{name}: this is no log of Claude Code, Codex or pi; --agent names one of them")
    })?;
    let mut imported = match by {
        StoredBy::ClaudeCode => claude_code::read(&lines),
        StoredBy::Codex => codex::read(&lines),
        StoredBy::Pi => pi::read(&lines),
    };
    // Agents do not log their system prompt completely.
    if let Some(path) = &options.system {
        let is_responses = imported.dialect == Dialect::OpenAiResponses;
        let field = if is_responses { "instructions" } else { "system" };
        imported.body.insert(field.to_owned(), input::text(path)?.into());
    }
    calls::name(&mut imported);
    let request = match decoded(&imported, &imported.messages) {
        Ok(request) => request,
        Err(_) => {
            let (readable, lost): (Vec<_>, Vec<_>) = std::mem::take(&mut imported.messages)
                .into_iter()
                .partition(|message| decoded(&imported, std::slice::from_ref(message)).is_ok());
            let lost = lost.iter().flat_map(|message| &message.lines);
            unreadable.0.extend(lost.filter_map(|line| numbers.get(*line)));
            imported.messages = readable;
            decoded(&imported, &imported.messages).map_err(|error| format!("{name}: {error}"))?
        }
    };
    if request.messages.is_empty() {
        let found = thousands(count);
        return Err(format!("{name}: no message of a thread in {found} lines").into());
    }
    let carried: usize = imported.messages.iter().map(|message| message.lines.len()).sum();
    let (messages, repairs) = legality::repair(request.messages.to_vec());
    let request = Request { messages: messages.into(), ..request };
    write(options, &request)?;
    eprintln!(
        "threadfold: {name}: {} of {} lines are the thread, {} messages",
        thousands(carried as u64),
        thousands(count as u64),
        request.messages.len()
    );
    for (reason, count) in &imported.left.0 {
        eprintln!("{count:>8}  {reason}");
    }
    unreadable.report();
    for repair in repairs {
        eprintln!("repaired  message {}: {repair}", repair.message());
    }
    Ok(Ended::Done)
}

/// Reads these messages with the codec of their dialect.
fn decoded(imported: &Imported, messages: &[Carried]) -> Result<Request, WireError> {
    let mut body = imported.body.clone();
    let is_responses = imported.dialect == Dialect::OpenAiResponses;
    let field = if is_responses { "input" } else { "messages" };
    let values = messages.iter().map(|message| message.value.clone()).collect();
    body.insert(field.to_owned(), Value::Array(values));
    // The log is the user's own file, so its length needs no limit.
    let limits = DecodeLimits { messages: usize::MAX, ..DecodeLimits::DEFAULT };
    let options = DecodeOptions { limits, ..DecodeOptions::default() };
    imported.dialect.decode(&Value::Object(body), &options)
}

fn write(options: &ImportOptions, request: &Request) -> Result<(), Failure> {
    let mut bytes = Vec::new();
    match options.to {
        Some(dialect) => {
            let options = EncodeOptions { accepts_prefill: true, ..EncodeOptions::default() };
            let encoded = dialect.encode(request, &options);
            writeln!(bytes, "{}", encoded.body)?;
            for adjustment in encoded.adjustments.iter().take(12) {
                eprintln!("adjusted  {adjustment}");
            }
        }
        None => {
            let mut log = EventLog::new(ThreadId::random());
            for message in request.messages.iter() {
                log.append(std_clock().now(), Event::MessageAppended(message.clone()))?;
            }
            log.write(&mut bytes)?;
        }
    }
    out::write(options.output.as_deref(), &bytes)
}

/// The agent that wrote a line.
fn stored_by(line: &Value) -> Option<StoredBy> {
    let kind = line.get("type")?.as_str()?;
    let (by, fields): (_, &[&str]) = match kind {
        "session_meta" | "response_item" | "turn_context" => (StoredBy::Codex, &["payload"]),
        "session" => (StoredBy::Pi, &["cwd"]),
        "message" if line.get("message").is_some() => (StoredBy::Pi, &["parentId"]),
        // The first form of Codex's logs has the items themselves.
        "message" => (StoredBy::Codex, &["role", "content"]),
        "user" | "assistant" => (StoredBy::ClaudeCode, &["message", "uuid"]),
        _ => return None,
    };
    fields.iter().all(|field| line.get(field).is_some()).then_some(by)
}

/// Returns the positions of an entry and of all its ancestors. `fields` are the names of the fields
/// that hold the id of an entry and of its parent. The parent of an entry that names one which is
/// not in the log, or that has no such field, is the last entry before it for which `may_precede`
/// holds. Each entry is visited once, because wrong parents may form a cycle.
fn branch(
    lines: &[Value],
    leaf: Option<usize>,
    (id, parent): (&str, &str),
    may_precede: impl Fn(&Value) -> bool,
) -> HashSet<usize> {
    let ids = lines.iter().enumerate().filter(|(_, line)| !text(line, id).is_empty());
    let by_id: HashMap<&str, usize> = ids.map(|(at, line)| (text(line, id), at)).collect();
    let (mut branch, mut next) = (HashSet::new(), leaf);
    while let Some(at) = next.filter(|at| branch.insert(*at)) {
        let before = || lines.get(..at)?.iter().rposition(&may_precede);
        let named = lines.get(at).and_then(|line| line.get(parent));
        next = match named.map(|named| named.as_str().unwrap_or_default()) {
            Some("") => None,
            Some(named) => by_id.get(named).copied().or_else(before),
            None => before(),
        };
    }
    branch
}

/// The text of a field; empty if there is none.
fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}
