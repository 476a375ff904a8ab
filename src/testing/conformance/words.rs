//! The laws of word indexes, and that a search by an index finds what a search of the whole log does.

use super::{
    law::{Breach, Law},
    outcome::{named, same},
};
use crate::{
    log::{Event, LogId, LoggedEvent},
    message::{Message, Timestamp},
    store::{Indexed, IndexedMessage, ThreadStore},
};

/// The words of four messages.
const WORDS: [&[&str]; 4] = [
    &["lamp", "src", "parse", "rs", "src/parse.rs", "17.lamp"],
    &["gr\u{f6}\u{df}e", "\u{7aef}", "__x"],
    &["lamp", "std::fs", "a->b", "c\\d", "or", "lampe"],
    &[],
];

/// Tests the word index of an empty store, if it has one.
pub(super) async fn words_are_found(store: &dyn ThreadStore) -> Result<(), Breach> {
    let Some(index) = store.word_index() else { return Ok(()) };
    let (thread, other, law) = (named("t1")?, named("t1-")?, Law::WordsAreFound);
    let (ours, theirs) = (Some(LogId(7)), Some(LogId(8)));
    same(law, "an unknown thread", &Ok(None), &index.indexed(&thread, ours).await)?;
    for thread in [&thread, &other] {
        same(law, "events", &Ok(()), &store.append_to(thread, ours, 0, &events()).await)?;
    }
    let at = |events| Indexed { events, messages: events };
    same(law, "a new log", &Ok(Some(at(0))), &index.indexed(&thread, ours).await)?;
    same(law, "another log", &Ok(None), &index.indexed(&thread, theirs).await)?;
    for (what, thread, log, from, to, added) in [
        ("of another log", &thread, theirs, 0, 2, false),
        ("after a gap", &thread, ours, 1, 2, false),
        ("the first two", &thread, ours, 0, 2, true),
        ("the same again", &thread, ours, 0, 2, false),
        ("the next two", &thread, ours, 2, 4, true),
        ("another thread", &other, ours, 0, 1, true),
    ] {
        let messages = messages(from, to);
        let outcome = index.add(thread, log, at(from), at(to), &messages).await;
        same(law, what, &Ok(added), &outcome)?;
    }
    same(law, "four messages", &Ok(Some(at(4))), &index.indexed(&thread, ours).await)?;
    for (number, words) in (0..).zip(WORDS) {
        for word in words {
            let found = index.find(&thread, &[(*word).to_owned()]).await;
            let expected = if *word == "lamp" { vec![0, 2] } else { vec![number] };
            same(law, format!("{word:?}"), &Ok(expected), &found)?;
        }
    }
    for (words, expected) in [
        (&[][..], vec![]),
        (&["amp", "1"], vec![]),
        (&["\u{7aef}", "absent", "lamp"], vec![0, 1, 2]),
    ] {
        let words: Vec<String> = words.iter().map(ToString::to_string).collect();
        same(law, format!("{words:?}"), &Ok(expected), &index.find(&thread, &words).await)?;
    }
    let [first, _, third, _] = events();
    let read = index.read(&thread, &[0, 2, 9]).await;
    same(law, "messages 0, 2 and 9", &Ok(vec![(0, first), (2, third)]), &read)?;
    same(law, "deleting the log", &Ok(()), &store.delete(&thread).await)?;
    same(law, "another log", &Ok(()), &store.append_to(&thread, theirs, 0, &events()).await)?;
    same(law, "another log", &Ok(Some(at(0))), &index.indexed(&thread, theirs).await)?;
    let lamp = ["lamp".to_owned()];
    same(law, "another log", &Ok(vec![]), &index.find(&thread, &lamp).await)?;
    same(law, "the other thread", &Ok(vec![0]), &index.find(&other, &lamp).await)
}

fn messages(from: u64, to: u64) -> Vec<IndexedMessage> {
    let message = |(number, words): (u64, &[&str])| {
        let words = words.iter().map(ToString::to_string).collect();
        IndexedMessage { number, seq: number, words }
    };
    let range = (0..).zip(WORDS).filter(|(number, _)| (from..to).contains(number));
    range.map(message).collect()
}

fn events() -> [LoggedEvent; 4] {
    let mut seq = 0..;
    WORDS.map(|words| {
        let (seq, text) = (seq.next().unwrap_or_default(), words.join(" "));
        let event = Event::MessageAppended(Message::user(text));
        LoggedEvent { seq, at: Timestamp(seq), event }
    })
}

#[cfg(feature = "recall")]
pub use searches::searches;

#[cfg(feature = "recall")]
mod searches {
    use std::{collections::BTreeSet, fmt, sync::Arc};

    use super::{Breach, Law, named};
    use crate::{
        EventLog, Plan, ThreadStore,
        compact::{Insert, Splice},
        log::{CompactionRecord, Event, LogError, Taken},
        message::{CompactionReason, ContentBlock, Message, Role, Timestamp, ToolResult, ToolUse},
        recall::{Recall, RecallError, RecallRequest},
        store::Journal,
    };

    const SEARCHED: &[&str] = &["lamp", "the Keeper 1874", "parse_error", "fs", "a b", "KEEPER's"];

    const SAID: [&str; 7] = [
        "The lamp of the keeper is from 1874.",
        "Look into src/parse.rs, where parseError is.",
        "Nothing of note.",
        "std::fs reads it; so does a-b.",
        "Der Schl\u{fc}ssel geh\u{f6}rt dem keeper's Kind.",
        "The the the.",
        "Steps: 217, lamps: 1.",
    ];

    /// Tests a store with a word index, which is empty: a session finds the same removed messages by
    /// the index as a search of the whole log does, also after more messages came and a compaction
    /// was undone.
    ///
    /// # Errors
    ///
    /// The first [`Breach`].
    pub async fn searches(store: Arc<dyn ThreadStore>) -> Result<(), Breach> {
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
            for query in SEARCHED {
                compared += usize::from(agrees(&journal, query).await?);
            }
        }
        // Memory may hold the whole log after the undo.
        let (least, input) = (3 * SEARCHED.len(), "the searches by an index");
        if compared >= least {
            return Ok(());
        }
        Err(Law::SearchesAgree.breach(input, format!("at least {least}"), compared))
    }

    fn failed(error: impl fmt::Display) -> Breach {
        Law::SearchesAgree.breach("eight hundred messages", "no error", error)
    }

    /// Compares the two searches, if the log has a base.
    async fn agrees(journal: &Journal, query: &str) -> Result<bool, Breach> {
        let Some(taken) = journal.candidates(query).await.map_err(failed)? else {
            return Ok(false);
        };
        let whole = journal.whole().await.map_err(failed)?;
        let expected = found(&whole, &whole.taken().map_err(failed)?, query).map_err(failed)?;
        let found = found(&whole, &taken, query).map_err(failed)?;
        if expected == found && !found.is_empty() {
            return Ok(true);
        }
        Err(Law::SearchesAgree.breach(query, format!("{expected:?}"), format!("{found:?}")))
    }

    /// Appends two hundred messages, and replaces most of the thread.
    fn extend(journal: &mut Journal, round: u64) -> Result<(), LogError> {
        let now = Timestamp(round);
        for (turn, said) in (0_u64..100).zip(SAID.iter().cycle()) {
            let text = format!("{said} {}", "Filler of turn. ".repeat(10));
            journal.append(now, Event::MessageAppended(Message::user(text)))?;
            let answer = match turn % 50 {
                // A quote of a search is no answer to the next one.
                7 => {
                    let input = serde_json::json!({"query": "lamp keeper"});
                    let call = ToolUse::new(format!("c{round}-{turn}"), "recall", input);
                    Message::new(Role::Assistant, vec![call.into()])
                }
                _ => Message::assistant(format!("Answer {turn} of round {round}.")),
            };
            journal.append(now, Event::MessageAppended(answer))?;
            if turn % 50 == 7 {
                let result = ToolResult::new(
                    format!("c{round}-{turn}"),
                    vec![ContentBlock::text("The lamp, the keeper.")],
                );
                let message = Message::new(Role::User, vec![result.into()]);
                journal.append(now, Event::MessageAppended(message))?;
                let answer = Message::assistant("The lamp.");
                journal.append(now, Event::MessageAppended(answer))?;
            }
        }
        let len = journal.log().replay()?.len();
        let insert = vec![Insert::Message { message: Message::user("They talked of a lamp.") }];
        let plan = Plan::from_splices(len, vec![Splice { at: 0..len - 6, insert }]);
        let (id, reason) = (journal.log().next_compaction(), CompactionReason::default());
        let record = CompactionRecord::new(id, reason, "by-hand", plan);
        journal.append(now, Event::Compacted(Box::new(record)))?;
        Ok(())
    }

    /// The numbers of all messages that a search finds, page after page.
    fn found(log: &EventLog, taken: &[Taken], query: &str) -> Result<BTreeSet<u64>, RecallError> {
        let (mut numbers, mut next) = (BTreeSet::new(), Some(0));
        while let Some(offset) = next {
            let request = RecallRequest::Search { query: query.into(), offset };
            let page = Recall::of(log).begin_from(taken.to_vec(), &request)?.finish();
            numbers.extend(page.passages.iter().map(|passage| passage.number));
            next = page.next;
        }
        Ok(numbers)
    }
}
