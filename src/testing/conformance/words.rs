//! The conformance suite for word indexes.

use super::law::{Breach, Law, named, same};
use crate::{
    log::{Event, LogId, LoggedEvent},
    message::{Message, Timestamp},
    store::ThreadStore,
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
    let at = |events: u64| (events, events);
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
        let outcome = index.add(thread, log, from..to, from, &messages).await;
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

fn messages(from: u64, to: u64) -> Vec<(u64, Vec<String>)> {
    let message =
        |(seq, words): (u64, &[&str])| (seq, words.iter().map(ToString::to_string).collect());
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
