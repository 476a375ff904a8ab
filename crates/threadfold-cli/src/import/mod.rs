//! `import`: converts the stored log of an agent to a log of threadfold, or to a request body of
//! any dialect.
//!
//! A log is lines of JSON, or one document of it ([`documents`]); what is said here of lines holds for
//! the entries of a document.
//!
//! Each log is converted to a request body of the dialect that is closest to its lines, which the
//! codec then reads. Every line is accounted for: it is part of the thread, or it is counted with
//! the reason why it is not. A line that cannot be read costs only itself; the report names it.

use std::{collections::HashSet, io::Write, path::Path};

use serde_json::Value;
use threadfold::{
    EventLog, Message, Request,
    legality::{self, Repair},
    log::Event,
    message::ThreadId,
    model::{Clock, std_clock},
    wire::{
        DecodeLimits, DecodeOptions, Dialect, EncodeOptions, WireError, find_body, recognised,
        without_halves,
    },
};
use threadfold_terminal::thousands;

use crate::{
    args::{ImportOptions, StoredBy},
    error::{Ended, Failure},
    files, out,
};

mod calls;
mod chat;
mod claude_code;
mod codex;
mod documents;
mod gemini;
mod lines;
mod open_hands;
mod opencode;
mod pi;

use lines::{Carried, Imported, Left, with_accounts};

/// The entries that cannot be read, by their numbers in the file.
#[derive(Debug)]
struct Unreadable {
    /// What the numbers count.
    unit: &'static str,
    numbers: Vec<usize>,
}

impl Unreadable {
    /// The number of lines that the report names.
    const NAMED: usize = 8;

    fn report(mut self) {
        let Self { unit, numbers } = &mut self;
        if numbers.is_empty() {
            return;
        }
        numbers.sort_unstable();
        let named: Vec<String> = numbers.iter().take(Self::NAMED).map(usize::to_string).collect();
        let more = if numbers.len() > Self::NAMED { ", ..." } else { "" };
        eprintln!("{:>8}  cannot be read ({unit} {}{more})", numbers.len(), named.join(", "));
    }
}

pub(crate) fn run(options: &ImportOptions) -> Result<Ended, Failure> {
    let name = options.log.display();
    let is_store = files::is_store(&options.log);
    let bytes = if is_store { Vec::new() } else { files::bytes(&options.log)? };
    let bytes = files::bytes_without_mark(&bytes);
    if is_store || files::is_log(bytes) {
        return Err(format!(
            "{name}: a log or a store of threadfold; `compact`, `context`, `strategies`, `chunked`, `audit` and \
             `report` read it as it is"
        )
        .into());
    }
    let found = Found::read(bytes, options.agent);
    let found = found.ok_or_else(|| match find_body(bytes, None) {
        Ok(_) => format!(
            "{name}: a request body; `compact`, `context`, `strategies` and `hindsight` read it as it is"
        ),
        Err(_) => format!(
            "{name}: this is the log of no known agent; --agent names one, and `threadfold import \
             --help` says where each stores its logs"
        ),
    })?;
    let unit = found.unit;
    let count = found.count();
    let thread = thread(found, options.system.as_deref(), &name.to_string())?;
    let Thread { request, carried, left, repeated, unreadable, repairs, .. } = thread;
    write(options, &request)?;
    eprintln!(
        "threadfold: {name}: {} of {} {unit} are the thread, {} messages",
        thousands(carried as u64),
        thousands(count as u64),
        request.messages.len()
    );
    for (reason, count) in &left.0 {
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

/// The entries of an agent's log.
#[derive(Debug)]
pub(crate) struct Found {
    by: StoredBy,
    entries: Vec<Value>,
    /// The number of each entry in the file.
    numbers: Vec<usize>,
    /// What an entry is: a line, or an entry of a document.
    unit: &'static str,
    repeated: usize,
    /// Entries of other threads.
    others: usize,
    unreadable: Unreadable,
}

/// A thread from an agent's log, and what is not part of it.
#[derive(Debug)]
pub(crate) struct Thread {
    pub(crate) request: Request,
    pub(crate) dialect: Dialect,
    pub(crate) model: Option<String>,
    carried: usize,
    left: Left,
    repeated: usize,
    unreadable: Unreadable,
    repairs: Vec<Repair>,
}

/// Returns the entries of a file without byte order mark, if it is the log of an agent.
pub(crate) fn of_agent(bytes: &[u8]) -> Option<Found> {
    Found::read(bytes, None)
}

impl Found {
    /// Reads the log of this agent; `None` if none is named and no agent is recognised.
    fn read(bytes: &[u8], agent: Option<StoredBy>) -> Option<Self> {
        if let Some(document) = serde_json::from_slice(bytes).ok().and_then(documents::entries) {
            let documents::Document { by, entries, others } = document;
            let numbers = (1..=entries.len()).collect();
            let unreadable = Unreadable { unit: "entry", numbers: Vec::new() };
            let by = agent.unwrap_or(by);
            return Some(Self {
                by,
                entries,
                numbers,
                unit: "entries",
                repeated: 0,
                others,
                unreadable,
            });
        }
        let (mut entries, mut numbers) = (Vec::new(), Vec::new());
        let mut unreadable = Unreadable { unit: "line", numbers: Vec::new() };
        let (mut repeated, mut known) = (0, HashSet::new());
        let all = (1..).zip(bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii));
        for (number, line) in all.filter(|(_, line)| !line.is_empty()) {
            let Some(line) = record(line) else {
                unreadable.numbers.push(number);
                continue;
            };
            // An agent that resumes a thread may write its lines again.
            let id = lines::text(&line, "uuid");
            if !id.is_empty() && !known.insert(id.to_owned()) {
                repeated += 1;
                continue;
            }
            entries.push(line);
            numbers.push(number);
        }
        let by = agent.or_else(|| entries.iter().find_map(stored_by))?;
        Some(Self { by, entries, numbers, unit: "lines", repeated, others: 0, unreadable })
    }

    /// The name of the agent.
    pub(crate) fn agent(&self) -> &'static str {
        self.by.name()
    }

    fn count(&self) -> usize {
        self.entries.len() + self.unreadable.numbers.len() + self.repeated + self.others
    }
}

/// Returns the thread of a log, legal and complete. `system` is the file of the system prompt.
pub(crate) fn thread(found: Found, system: Option<&Path>, name: &str) -> Result<Thread, Failure> {
    let count = found.count();
    let Found { by, entries, numbers, unit, repeated, others, mut unreadable } = found;
    let mut imported = match by {
        StoredBy::ClaudeCode => claude_code::read(&entries),
        StoredBy::Codex => codex::read(&entries),
        StoredBy::Pi => pi::read(&entries),
        StoredBy::GeminiCli => gemini::read_cli(&entries),
        StoredBy::QwenCode => gemini::read_qwen(&entries),
        StoredBy::OpenCode => opencode::read(&entries),
        StoredBy::SweAgent => chat::read_swe(&entries),
        StoredBy::MiniSweAgent => chat::read_mini(&entries),
        StoredBy::OpenHands => open_hands::read(&entries),
        StoredBy::Adk => gemini::read_adk(&entries),
        StoredBy::Inspect => chat::read_inspect(&entries),
    };
    for _ in 0..others {
        imported.left.out("a message of another sample");
    }
    // Agents do not log their system prompt completely.
    if let Some(path) = system {
        imported.set_system(files::text(path)?);
    }
    calls::name(&mut imported);
    let request = match decoded(&imported, &imported.messages) {
        Ok(request) => request,
        Err(_) => {
            let (readable, lost): (Vec<_>, Vec<_>) = std::mem::take(&mut imported.messages)
                .into_iter()
                .partition(|message| decoded(&imported, std::slice::from_ref(message)).is_ok());
            let lost = lost.iter().flat_map(|message| &message.lines);
            unreadable.numbers.extend(lost.filter_map(|line| numbers.get(*line)));
            imported.messages = readable;
            decoded(&imported, &imported.messages).map_err(|error| format!("{name}: {error}"))?
        }
    };
    if request.messages.is_empty() {
        let found = thousands(count as u64);
        return Err(format!("{name}: no message of a thread in {found} {unit}").into());
    }
    let carried: usize = imported.messages.iter().map(|message| message.lines.len()).sum();
    let messages: Vec<Message> = request.messages.iter().cloned().map(with_accounts).collect();
    let messages = recognised(&messages).unwrap_or(messages);
    let (messages, repairs) = legality::repair(messages);
    let request = Request { messages: messages.into(), ..request };
    let model = imported.body.get("model").and_then(Value::as_str).map(str::to_owned);
    let Imported { dialect, left, .. } = imported;
    Ok(Thread { request, dialect, model, carried, left, repeated, unreadable, repairs })
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
    let field = match imported.dialect {
        Dialect::OpenAiResponses => "input",
        Dialect::Gemini => "contents",
        Dialect::Anthropic | Dialect::BedrockConverse | Dialect::OpenAiChat | _ => "messages",
    };
    let values = messages.iter().map(|message| message.value.clone()).collect();
    body.insert(field.to_owned(), Value::Array(values));
    if imported.dialect == Dialect::Gemini {
        // The path of a request names the model in this dialect, and not its body.
        body.remove("model");
    }
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
        "user" | "assistant" if line.get("message").is_some_and(|it| it.get("parts").is_some()) => {
            (StoredBy::QwenCode, &["uuid"])
        }
        "user" | "assistant" if line.get("message").is_some() => (StoredBy::ClaudeCode, &["uuid"]),
        "user" | "gemini" => (StoredBy::GeminiCli, &["id", "content"]),
        _ => return None,
    };
    fields.iter().all(|field| line.get(field).is_some()).then_some(by)
}
