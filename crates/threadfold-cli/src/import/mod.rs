//! `import`: converts the stored log of an agent to a log of threadfold, or to a request body of
//! any dialect.
//!
//! Each log is converted to a request body of the dialect that is closest to its lines, which the
//! codec then reads. Every line is accounted for: it is part of the thread, or it is counted with
//! the reason why it is not. A line that cannot be read costs only itself; the report names it.

use std::{collections::HashSet, io::Write};

use serde_json::Value;
use threadfold::{
    EventLog, Request, WireFormat, legality,
    log::Event,
    message::ThreadId,
    model::{Clock, std_clock},
    wire::{DecodeLimits, DecodeOptions, EncodeOptions, WireError, without_halves},
};
use threadfold_terminal::thousands;

use crate::{
    args::{ImportOptions, StoredBy},
    error::{Ended, Failure},
    input::{self, Dialect},
    log_file::BYTE_ORDER_MARK,
    out,
};

mod calls;
mod claude_code;
mod codex;
mod lines;
mod pi;

use lines::{Carried, Imported};

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
    let is_store = input::is_store(&options.log);
    let bytes = if is_store { Vec::new() } else { input::bytes(&options.log)? };
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&bytes);
    if is_store || input::is_log(bytes) {
        return Err(format!(
            "{name}: a log or a store of threadfold; `compact`, `context`, `strategies`, `chunked`, `audit` and \
             `report` read it as it is"
        )
        .into());
    }
    let (mut lines, mut numbers) = (Vec::new(), Vec::new());
    let (mut unreadable, mut repeated, mut known) = (Unreadable::default(), 0, HashSet::new());
    let all = (1..).zip(bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii));
    for (number, line) in all.filter(|(_, line)| !line.is_empty()) {
        let Some(line) = record(line) else {
            unreadable.0.push(number);
            continue;
        };
        // An agent that resumes a thread may write its lines again.
        let id = lines::text(&line, "uuid");
        if !id.is_empty() && !known.insert(id.to_owned()) {
            repeated += 1;
            continue;
        }
        lines.push(line);
        numbers.push(number);
    }
    let count = lines.len() + unreadable.0.len() + repeated;
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
        let found = thousands(count as u64);
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
    if repeated > 0 {
        eprintln!("{repeated:>8}  repeated");
    }
    unreadable.report();
    for repair in repairs {
        eprintln!("repaired  message {}: {repair}", repair.message());
    }
    Ok(Ended::Done)
}

/// The record in a line. A computer that lost its power leaves zeros where a line was to be, and
/// programs in JavaScript write halves of characters.
fn record(line: &[u8]) -> Option<Value> {
    let (line, _) = without_halves(line);
    let start = line.iter().position(|byte| *byte != 0)?;
    let end = line.iter().rposition(|byte| *byte != 0)?;
    let value: Value = serde_json::from_slice(line.get(start..=end)?).ok()?;
    value.is_object().then_some(value)
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
