//! The notifications of a host and their time: adopted compactions, failed and aborted turns.

use std::{io, sync::Arc};

use futures::executor::block_on;
use threadfold::{
    Message, ThreadStore, async_trait,
    auto::{AutoPolicy, Threshold},
    log::{Event, LogId, LoggedEvent},
    message::{StopReason, ThreadId},
    session::{CompactionEvent, SessionError, SessionEvent, api},
    store::{Loaded, MemoryStore, StoreError},
    strategy::{KeepRecent, TrimToolResults},
    testing::Scripted,
};

use super::provider::{Provider, Read, lines, reading, unreported};
use crate::support::{
    bench::{bench, compactions, events, say},
    examples::simulation::hosts::AlwaysFails,
};

const WINDOW: u64 = 20_000;

#[test]
fn an_adopted_compaction_is_reported_once_by_the_next_stream() {
    let provider = Provider::new(|_, _| Message::assistant(lines(600)));
    let mut session = provider.session(Some(WINDOW), |builder| builder);
    for turn in 0..10 {
        say(&mut session, format!("Part {turn}, please.")).unwrap();
    }
    let job = session.prepare_compaction();
    let done = block_on(async { session.adopt(job.await).await }).unwrap();
    assert!(!session.handle().is_busy());

    let first = events(&mut session, "Go on.");
    let second = events(&mut session, "And then?");
    let reported = compactions(&first);
    let [CompactionEvent::Started { id, .. }, CompactionEvent::Completed { id: ended, report, .. }] =
        &reported[..]
    else {
        panic!("{first:#?}")
    };
    assert_eq!((*id, *ended, report), (done.id, done.id, &done.report));
    let comes_first = |event: &Result<SessionEvent, SessionError>| {
        matches!(event, Ok(SessionEvent::Compaction(_)))
    };
    assert!(first[..2].iter().all(comes_first), "{first:#?}");
    assert_eq!(compactions(&second), []);
    let page: Vec<_> = reported.iter().filter_map(api::compaction_event).collect();
    let kinds: Vec<_> = page.iter().map(|json| json.to_value().unwrap()["type"].clone()).collect();
    assert_eq!(kinds, ["COMPACTION_START", "COMPACTION_COMPLETE"]);
}

#[test]
fn successively_adopted_compactions_are_all_reported() {
    let provider = Provider::new(|_, _| Message::assistant(lines(600)));
    let mut session = provider.session(Some(WINDOW), |builder| builder);
    for _ in 0..2 {
        for turn in 0..10 {
            say(&mut session, format!("Part {turn}, please.")).unwrap();
        }
        let keep = KeepRecent { messages: 4, ..KeepRecent::default() };
        let first = block_on(session.preview(Arc::new(keep)));
        block_on(session.adopt(first)).unwrap();
        let keep = KeepRecent { messages: 2, ..KeepRecent::default() };
        let second = block_on(session.preview(Arc::new(keep)));
        block_on(session.adopt(second)).unwrap();
        let reported = events(&mut session, "Go on.");
        let ends = compactions(&reported).iter().filter(|event| event.is_end()).count();
        assert_eq!((ends, unreported(&reported)), (2, Vec::new()), "{reported:#?}");
    }
}

#[test]
fn a_prepared_compaction_is_reported_and_logged_only_if_it_fails() {
    let provider = Provider::new(|_, _| Message::assistant("Fine."));
    let mut session = provider.session(Some(WINDOW), |builder| builder);
    say(&mut session, "Hi.").unwrap();
    let before = session.log().len();
    let nothing = block_on(session.preview(Arc::new(TrimToolResults::default())));
    assert!(block_on(session.adopt(nothing)).unwrap_err().is_nothing_to_compact());
    assert_eq!(session.log().len(), before);
    let failed = block_on(session.preview(Arc::new(AlwaysFails)));
    assert!(!block_on(session.adopt(failed)).unwrap_err().is_nothing_to_compact());
    let last = &session.log().events().last().unwrap().event;
    assert!(matches!(last, Event::CompactionFailed(_)), "{last:?}");
    let reported = compactions(&events(&mut session, "Go on."));
    let [CompactionEvent::Started { .. }, CompactionEvent::Failed { .. }] = &reported[..] else {
        panic!("{reported:?}")
    };
}

/// A store that fails when results of tools are stored.
#[derive(Debug, Default)]
struct NoResults(MemoryStore);

#[async_trait]
impl ThreadStore for NoResults {
    async fn append(
        &self,
        thread: &ThreadId,
        _: Option<LogId>,
        expected_len: u64,
        events: &[LoggedEvent],
    ) -> Result<(), StoreError> {
        let has_results = |logged: &LoggedEvent| matches!(&logged.event, Event::MessageAppended(it) if it.tool_results().next().is_some());
        if events.iter().any(has_results) {
            return Err(StoreError::medium("a store", io::Error::other("it is full")));
        }
        self.0.append(thread, None, expected_len, events).await
    }

    async fn load(&self, thread: &ThreadId) -> Result<Loaded, StoreError> {
        self.0.load(thread).await
    }

    async fn list(&self) -> Result<Vec<ThreadId>, StoreError> {
        self.0.list().await
    }

    async fn delete(&self, thread: &ThreadId) -> Result<(), StoreError> {
        self.0.delete(thread).await
    }
}

#[test]
fn a_turn_that_failed_is_not_compacted_at_its_end() {
    let policy = AutoPolicy {
        after_turn: true,
        threshold: Threshold::Tokens(5_000),
        ..AutoPolicy::default()
    };
    let provider = Provider::new(|_, place| match place {
        4 => reading(place),
        _ => Message::assistant(lines(800)),
    });
    let mut session = provider.session(Some(WINDOW), |builder| {
        builder.policy(policy).store(Arc::new(NoResults::default())).tool(Arc::new(Read(3_000)))
    });
    for turn in 0..4 {
        say(&mut session, format!("Part {turn}, please.")).unwrap();
    }
    let reported = events(&mut session, "Read it.");
    assert!(matches!(reported.last(), Some(Err(SessionError::Store(_)))), "{reported:?}");
    assert!(session.context_tokens() > 5_000);
    assert_eq!(compactions(&reported), []);
}

#[test]
fn a_successful_turn_is_compacted_at_its_end_if_the_host_says_so() {
    let policy = AutoPolicy {
        after_turn: true,
        threshold: Threshold::Tokens(5_000),
        ..AutoPolicy::default()
    };
    let provider = Provider::new(|_, _| Message::assistant(lines(1_200)));
    let mut session = provider.session(Some(WINDOW), |builder| builder.policy(policy));
    let mut reported = Vec::new();
    for turn in 0..5 {
        reported.extend(events(&mut session, &format!("Part {turn}, please.")));
    }
    let last = compactions(&reported).last().cloned();
    assert!(matches!(last, Some(CompactionEvent::Completed { .. })), "{reported:#?}");
    assert!(
        matches!(reported.last(), Some(Ok(SessionEvent::Compaction(_)))),
        "the turn ended before"
    );
    assert_eq!(unreported(&reported), Vec::<String>::new());
}

#[test]
fn an_abort_without_a_running_turn_does_not_end_the_next_turn() {
    let mut bench = bench(["Once.", "Fine."].map(Scripted::from), |builder| builder);
    let handle = bench.session.handle();
    let mut stream = bench.session.send("Go.");
    assert!(block_on(stream.next()).is_some());
    handle.abort();
    drop(stream);
    assert!(!handle.is_busy());
    let reply = say(&mut bench.session, "Again.").unwrap();
    assert_eq!((reply.text.as_str(), reply.stop_reason), ("Fine.", Some(StopReason::EndTurn)));
}
