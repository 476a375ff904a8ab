//! `import`: converts the stored log of an agent to a log of threadfold, or to a request body of
//! any dialect.
//!
//! Each log is converted to a request body of the dialect that is closest to its lines, which the
//! codec then reads. Every line is accounted for: it is part of the thread, or it is counted with
//! the reason why it is not.

use std::io::Write;

use serde_json::Value;
use threadfold::{
    EventLog, Request, WireFormat, legality,
    log::Event,
    message::ThreadId,
    model::{Clock, std_clock},
    wire::{DecodeOptions, EncodeOptions},
};

use crate::{
    args::{ImportOptions, StoredBy},
    error::{Ended, Failure},
    input::{self, Dialect},
    out,
    terminal::thousands,
};

mod claude_code;
mod codex;
mod lines;
mod pi;

use lines::Left;

pub(crate) fn run(options: &ImportOptions) -> Result<Ended, Failure> {
    let name = options.log.display();
    let is_store = input::is_store(&options.log);
    let text = if is_store { String::new() } else { input::text(&options.log)? };
    if is_store || input::is_log(text.as_bytes()) {
        return Err(format!(
            "{name}: a log or a store of threadfold; `compact`, `context`, `strategies`, `chunked`, `audit` and \
             `report` read it as it is"
        )
        .into());
    }
    let mut lines = Vec::new();
    let (mut count, mut left) = (0, Left::default());
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        count += 1;
        match serde_json::from_str::<Value>(line) {
            Ok(line) => lines.push(line),
            // Probably the last line of a program that was killed.
            Err(_) => left.out("not JSON"),
        }
    }
    let by = options.agent.or_else(|| lines.iter().find_map(stored_by)).ok_or_else(|| {
        format!("{name}: this is no log of Claude Code, Codex or pi; --agent names one of them")
    })?;
    let mut imported = match by {
        StoredBy::ClaudeCode => claude_code::read(&lines, left),
        StoredBy::Codex => codex::read(&lines, left),
        StoredBy::Pi => pi::read(&lines, left),
    };
    // Agents do not log their system prompt completely.
    if let Some(path) = &options.system
        && let Some(body) = imported.body.as_object_mut()
    {
        let is_responses = imported.dialect == Dialect::OpenAiResponses;
        let field = if is_responses { "instructions" } else { "system" };
        body.insert(field.to_owned(), input::text(path)?.into());
    }
    let format = imported.dialect;
    let request = format
        .decode_slice(imported.body.to_string().as_bytes(), &DecodeOptions::default())
        .map_err(|error| format!("{name}: {error}"))?;
    let (messages, repairs) = legality::repair(request.messages.to_vec());
    let request = Request { messages: messages.into(), ..request };
    write(options, &request)?;
    eprintln!(
        "threadfold: {name}: {} of {} lines are the thread, {} messages",
        thousands(imported.carried as u64),
        thousands(count),
        request.messages.len()
    );
    for (reason, count) in &imported.left.0 {
        eprintln!("{count:>8}  {reason}");
    }
    for repair in repairs {
        eprintln!("repaired  message {}: {repair}", repair.message());
    }
    Ok(Ended::Done)
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
        "message" => (StoredBy::Pi, &["message", "parentId"]),
        "user" | "assistant" => (StoredBy::ClaudeCode, &["message", "uuid"]),
        _ => return None,
    };
    fields.iter().all(|field| line.get(field).is_some()).then_some(by)
}
