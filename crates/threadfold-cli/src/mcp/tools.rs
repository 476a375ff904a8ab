//! The tools: their descriptions for a model, and their answers.

use serde_json::{Map, Value};
use threadfold::{
    EventLog,
    log::Event,
    message::ThreadId,
    recall::{self, NO_MATCH, Recall, RecallError},
};
use threadfold_terminal::{counted, first_line};

use crate::{
    audit,
    error::Failure,
    report,
    stored::{Stored, short},
    words::first_words,
};

pub(super) const THREADS: &str = "threads";
pub(super) const RECALL: &str = "recall";
pub(super) const SEARCH: &str = "search";
pub(super) const AUDIT: &str = "audit";

/// The maximum number of threads in one answer of `threads`.
const LISTED: usize = 20;

/// The maximum number of threads that one search covers, the newest first.
const SEARCHED: usize = 50;

/// The maximum length of an answer of `search` over all threads, and of one thread in it, in bytes.
const SEARCH_BYTES: usize = 16_000;
const MATCHES_BYTES: usize = 4_000;

/// An object of JSON.
type JsonObject = Map<String, Value>;

pub(super) fn specs() -> Vec<Value> {
    let mut tools: Vec<Value> = serde_json::from_str(TOOLS).unwrap_or_default();
    let library = recall::tool::spec().input_schema.to_value().unwrap_or_default();
    let fields = library.get("properties").and_then(Value::as_object).into_iter().flatten();
    // `recall` has the fields of the library, except that `search` is a tool of its own.
    let fields = fields.filter(|(field, _)| *field != "query");
    let recall = tools.iter_mut().find(|tool| tool.get("name").is_some_and(|name| name == RECALL));
    if let Some(properties) = recall.and_then(|tool| tool.pointer_mut("/inputSchema/properties"))
        && let Some(properties) = properties.as_object_mut()
    {
        properties.extend(fields.map(|(field, schema)| (field.clone(), schema.clone())));
    }
    tools
}

/// Refuses a field that the tool does not have.
pub(super) fn check(tool: &str, input: &JsonObject) -> Result<(), Failure> {
    let specs = specs();
    let spec = specs.iter().find(|spec| spec.get("name").is_some_and(|name| name == tool));
    let fields = spec.and_then(|spec| spec.pointer("/inputSchema/properties")?.as_object());
    let Some(fields) = fields else { return Ok(()) };
    let Some(unknown) = input.keys().find(|field| !fields.contains_key(*field)) else {
        return Ok(());
    };
    let unknown = first_line(unknown, 80);
    let fields: Vec<&str> = fields.keys().map(String::as_str).collect();
    Err(format!("{unknown:?} is not a field of {tool}; it has {}", fields.join(", ")).into())
}

/// The tools as the protocol lists them.
const TOOLS: &str = include_str!("tools.json");

pub(super) async fn threads(stored: &Stored, input: &JsonObject) -> Result<String, Failure> {
    let all = stored.list().await?;
    let offset = usize::try_from(offset(input)?)?;
    let mut text = format!("{}\n", counted(all.len() as u64, "thread"));
    for thread in all.iter().skip(offset).take(LISTED) {
        match stored.load(thread).await {
            Ok(log) => text.push_str(&line(short(&thread.1, &all), &log)),
            Err(failure) => text.push_str(&unread(short(&thread.1, &all), &failure)),
        }
    }
    let next = offset.saturating_add(LISTED);
    if next < all.len() {
        text.push_str(&format!("More: offset {next}.\n"));
    }
    Ok(text)
}

/// The number of threads to leave out. Models write numbers as text too.
fn offset(input: &JsonObject) -> Result<u64, RecallError> {
    let Some(value) = input.get("offset").filter(|value| !value.is_null()) else { return Ok(0) };
    let number = value.as_u64().or_else(|| value.as_str()?.trim().parse().ok());
    number.ok_or_else(|| RecallError::Type {
        field: "offset",
        expected: "a whole number from 0",
        found: first_line(&value.to_string(), 80),
    })
}

/// One line about a thread that cannot be read.
fn unread(id: &str, failure: &Failure) -> String {
    format!("{id}: {}\n", failure.line())
}

/// One line that describes a thread.
fn line(id: &str, log: &EventLog) -> String {
    let appended = log.events().iter().filter_map(|logged| {
        if let Event::MessageAppended(message) = &logged.event { Some(message) } else { None }
    });
    let typed = first_words(appended, 120);
    let at = log.events().last().map(|logged| logged.at.to_string()).unwrap_or_default();
    let compactions = counted(log.standing().count() as u64, "compaction");
    format!("{id}: {compactions}, last event {at}, begins with: {typed}\n")
}

pub(super) async fn recall(
    stored: &Stored,
    thread: Option<&str>,
    input: JsonObject,
) -> Result<String, Failure> {
    let log = stored.thread(thread).await?;
    Ok(Recall::of(&log).call(&Value::Object(input))?)
}

pub(super) async fn search(
    stored: &Stored,
    thread: Option<&str>,
    input: JsonObject,
) -> Result<String, Failure> {
    if !input.get("query").is_some_and(Value::is_string) {
        return Err("search needs a query".into());
    }
    if thread.is_some() {
        return recall(stored, thread, input).await;
    }
    everywhere(stored, &Value::Object(input)).await
}

/// The best matches of each thread, the newest threads first.
async fn everywhere(stored: &Stored, input: &Value) -> Result<String, Failure> {
    let all = stored.list().await?;
    let (mut text, mut unshown) = (String::new(), Vec::<&ThreadId>::new());
    let mut unread_lines = String::new();
    for thread in all.iter().take(SEARCHED) {
        let log = match stored.load(thread).await {
            Ok(log) => log,
            Err(failure) => {
                unread_lines += &unread(short(&thread.1, &all), &failure);
                continue;
            }
        };
        let found = Recall::of(&log).within(MATCHES_BYTES).call(input)?;
        if found == NO_MATCH {
            continue;
        }
        if text.len() + MATCHES_BYTES > SEARCH_BYTES {
            unshown.push(&thread.1);
            continue;
        }
        text.push_str(&format!("Thread {}. {found}\n", short(&thread.1, &all)));
    }
    if text.is_empty() {
        text = format!("{NO_MATCH}\n");
    }
    for thread in unshown {
        text.push_str(&format!(
            "Thread {} also has matches: search it with `thread`.\n",
            short(thread, &all)
        ));
    }
    text.push_str(&unread_lines);
    if let Some(rest) = all.len().checked_sub(SEARCHED).filter(|rest| *rest > 0) {
        text.push_str(&format!("{rest} older threads were not searched: name one.\n"));
    }
    Ok(text)
}

pub(super) async fn audit(stored: &Stored, thread: Option<&str>) -> Result<String, Failure> {
    let log = stored.thread(thread).await?;
    let retentions = report::retentions(&log);
    if retentions.is_empty() {
        return Ok(format!("The thread {} holds no compaction.", log.thread_id()));
    }
    Ok(retentions.iter().map(|(name, retention)| audit::text(name, retention)).collect())
}
