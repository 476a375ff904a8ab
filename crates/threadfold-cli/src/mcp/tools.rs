//! The tools: their descriptions for a model, and their answers.

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};
use threadfold::{
    EventLog,
    log::Event,
    message::ThreadId,
    recall::{self, NO_MATCH, Recall},
};

use super::stored::Stored;
use crate::{audit, error::Failure, report, terminal::outline};

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

pub(super) fn specs() -> Vec<Tool> {
    let id = json!({"type": "string",
        "description": "Id of the thread, from `threads`. Leave it out if there is only one."});
    let offset = json!({"type": "integer", "minimum": 0,
        "description": "Where to go on, as the answer before said. Leave it out to begin."});
    let query = json!({"type": "string", "description": "A few words that were used then."});
    let mut recalled = object(json!({}));
    if let Ok(schema) = recall::tool::spec().input_schema.to_value() {
        recalled = schema;
    }
    if let Some(fields) = recalled.get_mut("properties").and_then(Value::as_object_mut) {
        fields.remove("query");
        fields.insert("thread".to_owned(), id.clone());
    }
    vec![
        tool(
            THREADS,
            "Lists the stored threads, the latest compaction first: id, size, what the user typed first.",
            object(json!({"offset": offset})),
        ),
        tool(
            RECALL,
            "Reads messages that were compacted away, word for word: all of a thread, a range between \
             two checkpoints, or one message by its number. The answer says how to get the rest.",
            recalled,
        ),
        tool(
            SEARCH,
            "Looks for words in messages that were compacted away, in one thread or in the latest ones: \
             names of functions, paths, error codes, numbers. Each match has a number, with which \
             `recall` reads the whole message.",
            json!({"type": "object", "required": ["query"], "additionalProperties": false,
                "properties": {"query": query, "thread": id, "offset": offset}}),
        ),
        tool(
            AUDIT,
            "Says what each compaction of a thread kept and lost: paths, commands, errors, numbers, \
             demands of the user.",
            object(json!({"thread": id})),
        ),
    ]
}

fn object(properties: Value) -> Value {
    json!({"type": "object", "properties": properties, "additionalProperties": false})
}

fn tool(name: &'static str, about: &'static str, schema: Value) -> Tool {
    let schema = if let Value::Object(schema) = schema { schema } else { JsonObject::new() };
    Tool::new(name, about, schema).with_annotations(ToolAnnotations::new().read_only(true))
}

pub(super) async fn threads(stored: &Stored, input: &JsonObject) -> Result<String, Failure> {
    let all = stored.list().await?;
    let offset = input.get("offset").and_then(Value::as_u64).unwrap_or(0);
    let offset = usize::try_from(offset)?;
    let mut text = format!("{} threads\n", all.len());
    for thread in all.iter().skip(offset).take(LISTED) {
        match stored.load(thread).await {
            Ok(log) => text.push_str(&line(&log)),
            Err(failure) => text.push_str(&format!("{}: {}\n", thread.1, failure.line())),
        }
    }
    let next = offset.saturating_add(LISTED);
    if next < all.len() {
        text.push_str(&format!("More: offset {next}.\n"));
    }
    Ok(text)
}

/// One line that describes a thread.
fn line(log: &EventLog) -> String {
    let typed = log.iter().find_map(|logged| {
        let Event::MessageAppended(message) = &logged.event else { return None };
        message.is_typed().then(|| outline(message, 120))
    });
    let typed = typed.unwrap_or_default();
    let at = log.events().last().map(|logged| logged.at.to_string()).unwrap_or_default();
    let (id, compactions) = (log.thread_id(), log.standing().count());
    format!("{id}: {compactions} compactions, last event {at}, begins with: {typed}\n")
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
    for thread in all.iter().take(SEARCHED) {
        let log = stored.load(thread).await?;
        let found = Recall::of(&log).within(MATCHES_BYTES).call(input)?;
        if found == NO_MATCH {
            continue;
        }
        if text.len() + MATCHES_BYTES > SEARCH_BYTES {
            unshown.push(&thread.1);
            continue;
        }
        text.push_str(&format!("Thread {}. {found}\n", thread.1));
    }
    if text.is_empty() {
        text = format!("{NO_MATCH}\n");
    }
    for thread in unshown {
        text.push_str(&format!("Thread {thread} also has matches: search it with `thread`.\n"));
    }
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
