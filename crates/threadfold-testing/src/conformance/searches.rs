//! The conformance suite for searches: with the word index of a store they find the same messages
//! as a search of the whole log.

use std::{fmt, sync::Arc};

use threadfold::{
    compact::{Insert, Plan, Splice},
    log::{CompactionRecord, Event, LogError},
    message::{CompactionReason, Message, Role, Timestamp, ToolResult, ToolUse},
    store::{Journal, ThreadStore},
};

use super::law::{Breach, Law, Result, named};

const QUERIES: &[&str] = &["lamp", "the Keeper 1874", "parse_error", "fs", "a b", "KEEPER's"];

const TEXTS: [&str; 7] = [
    "The lamp of the keeper is from 1874.",
    "Look into src/parse.rs, where parseError is.",
    "Nothing of note.",
    "std::fs reads it; so does a-b.",
    "Der Schl\u{fc}ssel geh\u{f6}rt dem keeper's Kind.",
    "The the the.",
    "Steps: 217, lamps: 1.",
];

/// Tests a word index: with it, a search finds the same removed messages as a search of the whole
/// log, even after more messages were appended and a compaction was undone. The store must be
/// empty.
///
/// # Errors
///
/// The first [`Breach`].
pub async fn searches(store: Arc<dyn ThreadStore>) -> Result<()> {
    let opened = Journal::open(store, named("t1")?).await;
    let (mut journal, mut compared) = (opened.map_err(failed)?, 0);
    for round in 0..4 {
        extend(&mut journal, round).map_err(failed)?;
        journal.flush().await.map_err(failed)?;
        if round == 2 {
            journal.read_whole().await.map_err(failed)?;
            let id = journal.log().standing().next_back().map(|record| record.id);
            let undone = journal.undo(Timestamp(9), id.unwrap_or_default());
            let _plan = undone.map_err(failed)?;
            journal.flush().await.map_err(failed)?;
        }
        for query in QUERIES {
            compared += usize::from(agrees(&journal, query).await?);
        }
    }
    // After the undo, memory may hold the whole log, and there is nothing to compare.
    let (least, input) = (3 * QUERIES.len(), "the searches by an index");
    if compared >= least {
        return Ok(());
    }
    Err(Law::SearchesAgree.breach(input, format!("at least {least}"), compared))
}

fn failed(error: impl fmt::Display) -> Breach {
    Law::SearchesAgree.breach("eight hundred messages", "no error", error)
}

/// Compares the two searches, if the log has a base.
async fn agrees(journal: &Journal, query: &str) -> Result<bool> {
    let Some(found) = journal.found_by_index(query).await.map_err(failed)? else {
        return Ok(false);
    };
    let expected = journal.found_in_log(query).await.map_err(failed)?;
    if expected == found && !found.is_empty() {
        return Ok(true);
    }
    Err(Law::SearchesAgree.breach(query, format!("{expected:?}"), format!("{found:?}")))
}

/// Appends two hundred messages, and replaces most of the thread.
fn extend(journal: &mut Journal, round: u64) -> Result<(), LogError> {
    let now = Timestamp(round);
    let mut messages = Vec::new();
    for (turn, said) in (0_u64..100).zip(TEXTS.iter().cycle()) {
        messages.push(Message::user(format!("{said} {}", "Filler of turn. ".repeat(10))));
        if turn % 50 != 7 {
            messages.push(Message::assistant(format!("Answer {turn} of round {round}.")));
            continue;
        }
        // A message that quotes a search must not be found by the next one.
        let id = format!("c{round}-{turn}");
        let input = serde_json::json!({"query": "lamp keeper"});
        let call = ToolUse::new(id.as_str(), "recall", input);
        let result = ToolResult::text(id.as_str(), "The lamp, the keeper.");
        messages.push(Message::new(Role::Assistant, vec![call.into()]));
        messages.push(Message::new(Role::User, vec![result.into()]));
        messages.push(Message::assistant("The lamp."));
    }
    for message in messages {
        journal.append(now, Event::MessageAppended(message))?;
    }
    let len = journal.log().replay()?.len();
    let insert = vec![Insert::Message { message: Message::user("They talked of a lamp.") }];
    let plan = Plan::from_splices(len, vec![Splice { at: 0..len - 6, insert }]);
    let (id, reason) = (journal.log().next_compaction(), CompactionReason::default());
    let record = CompactionRecord::new(id, reason, "by-hand", plan);
    journal.append(now, Event::Compacted(Box::new(record)))?;
    Ok(())
}
