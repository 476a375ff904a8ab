//! Logs that begin at a base in memory: they give the same answers as the whole log, can be
//! reopened unchanged, and read earlier events from the store when they are needed.

use std::{fs, sync::Arc};

use futures::executor::block_on;
use proptest::{collection::vec, prelude::*};
use serde_json::json;
use threadfold::{
    ContentBlock, EventLog, Message, ModelAgent, Plan, Session, Usage,
    compact::{Insert, Splice},
    log::{CompactionFailure, CompactionRecord, Event, LogError, LogId},
    message::{
        Batch, BatchId, CompactionId, CompactionReason, Json, ThreadId, Timestamp, ToolResult,
    },
    notes::Notes,
    recall::Recall,
    store::{Journal, JsonlStore, MemoryStore, StoreError, ThreadStore},
    strategy::KeepRecent,
    testing::{Scripted, ScriptedModel},
};
use threadfold_testing::shared::Folder;

use crate::support::{bench::calls, tries::tries};

fn id() -> ThreadId {
    "t".parse().unwrap()
}

/// What may happen to a thread.
#[derive(Clone, Copy, Debug)]
enum Step {
    Typed(usize),
    Answered(usize),
    Compacted(usize),
    Undone,
    Failed,
    Prompt,
    Rule,
    Noted,
    Host,
    Cut,
    Truncated,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..9_usize).prop_map(Step::Typed),
        8 => (0..9_usize).prop_map(Step::Answered),
        4 => (1..9_usize).prop_map(Step::Compacted),
        1 => Just(Step::Undone),
        1 => Just(Step::Failed),
        1 => Just(Step::Prompt),
        1 => Just(Step::Rule),
        3 => Just(Step::Noted),
        1 => Just(Step::Host),
        1 => Just(Step::Cut),
        1 => Just(Step::Truncated),
    ]
}

/// A text of some thousand bytes.
fn long(number: usize, size: usize) -> String {
    let rule = if number.is_multiple_of(5) {
        format!("Never touch src/{number}.rs. ")
    } else {
        String::new()
    };
    format!("{rule}See src/part{number}.rs. {}", "It reads on. ".repeat(size * 100))
}

/// The same after characters that are escaped in JSON, or that are beyond ASCII.
fn escaped(number: usize, size: usize) -> String {
    let part = "\"Café\" \\ cafe\u{301}, \u{131}s\u{131} 🦀\t\u{1}\n";
    format!("{part}端口{number} {}", long(number, size))
}

/// A log in a store whose events are dropped from memory, and the same log held whole.
struct Twins {
    store: Arc<dyn ThreadStore>,
    stored: Journal,
    whole: Journal,
}

impl Twins {
    fn both(&mut self, event: Event) {
        let at = Timestamp(self.whole.log().len());
        self.whole.append(at, event.clone()).unwrap();
        match self.stored.append(at, event.clone()) {
            Ok(_) => {}
            Err(LogError::NotHeld { base }) => {
                assert!(base > 0 && matches!(event, Event::Truncated { .. }));
                block_on(self.stored.read_whole()).unwrap();
                self.stored.append(at, event).unwrap();
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn take(&mut self, number: usize, step: Step) {
        let messages = self.whole.log().replay().len();
        let new = self.whole.log().next_compaction();
        match step {
            Step::Typed(size) => {
                self.both(Event::MessageAppended(Message::user(escaped(number, size))));
            }
            Step::Answered(size) => {
                let mut answer = Message::assistant(escaped(number, size));
                answer.make_mut().usage = (size > 3).then(|| Usage::new(size as u64, 7));
                self.both(Event::MessageAppended(answer));
            }
            Step::Compacted(kept) => {
                let insert = vec![Insert::from(Message::user(format!("In short: {number}.")))];
                let at = 0..messages.saturating_sub(kept);
                let plan = Plan::from_splices(messages, vec![Splice { at, insert }]);
                let mut record =
                    CompactionRecord::new(new, CompactionReason::Threshold, "by-hand", plan);
                let name = BatchId { compaction: new, index: 0 };
                record.batches = (!number.is_multiple_of(3))
                    .then(|| Batch::new(name, long(number, 9)))
                    .into_iter()
                    .collect();
                record.usage = Usage::new(5, 1);
                self.both(Event::Compacted(Box::new(record)));
            }
            Step::Undone => self.undo(),
            Step::Failed => {
                let reason = CompactionReason::Threshold;
                let failure = CompactionFailure::new(new, reason, "by-hand", "no model");
                self.both(Event::CompactionFailed(Box::new(failure)));
            }
            Step::Prompt => {
                let text = format!("Be brief, {number}.").into();
                self.both(Event::SystemPromptSet { text, by_user: true });
            }
            Step::Rule => {
                let text = format!("Always say {number}.").into();
                self.both(Event::RuleAdded { text });
            }
            Step::Noted => {
                let text =
                    if number.is_multiple_of(4) { String::new() } else { number.to_string() };
                let name = format!("note {}", number % 3).into();
                self.both(Event::NoteWritten { name, text: text.into() });
            }
            Step::Host => {
                let data = Json::from(json!({"n": number}));
                self.both(Event::Host { kind: "approved".into(), data });
            }
            Step::Cut => {
                let result = ToolResult::new(
                    format!("t{number}"),
                    vec![ContentBlock::text(long(number, 20))],
                );
                self.both(Event::ResultCut(Box::new(result)));
            }
            Step::Truncated => {
                let len = messages - messages.min(2);
                self.both(Event::Truncated { from: messages, len });
            }
        }
    }

    fn undo(&mut self) {
        let Some(latest) = self.whole.log().standing().next_back().map(|record| record.id) else {
            return;
        };
        let at = Timestamp(self.whole.log().len());
        if let Err(LogError::NotHeld { .. }) = self.stored.log().undo_plan(latest) {
            block_on(self.stored.read_whole()).unwrap();
        }
        let undone = self.whole.undo(at, latest);
        assert_eq!(self.stored.undo(at, latest), undone);
    }

    /// Checks that every answer of the log in memory equals that of the whole log, also after
    /// reopening it.
    fn check(&mut self) {
        let again = block_on(Journal::open(self.store.clone(), id())).unwrap();
        let whole = self.whole.log();
        for journal in [&self.stored, &again] {
            let log = journal.log();
            assert_eq!((log.len(), log.is_empty()), (whole.len(), whole.is_empty()));
            assert_eq!(log.replay(), whole.replay());
            assert!(log.sources().eq(whole.sources()));
            assert!(log.times().eq(whole.times()));
            assert_eq!(log.next_compaction(), whole.next_compaction());
            assert_eq!(log.billed(), whole.billed());
            let prompt = |log: &EventLog| log.user_prompt().cloned();
            assert_eq!(prompt(log), prompt(whole));
            assert_eq!(log.rules(None), whole.rules(None));
            assert_eq!(*log.notes(), notes(whole));
            let latest = |log: &EventLog| log.standing().next_back().cloned();
            assert_eq!(latest(log), latest(whole));
            let all = block_on(journal.whole()).unwrap();
            assert_eq!(*all, *whole);
            assert_eq!(all.batches().unwrap(), whole.batches().unwrap());
            for query in ["part12 CAFE", "on 端", "\u{131}s\u{131} short"] {
                let query = json!({"query": query});
                assert_eq!(Recall::of(&all).call(&query), Recall::of(whole).call(&query));
            }
            let is_whole = log.base() == 0;
            assert!(is_whole || matches!(log.batches(), Err(LogError::NotHeld { .. })));
        }
    }
}

/// The notes of a whole log, from its events: those of messages that were not truncated later.
fn notes(log: &EventLog) -> Notes {
    let (mut notes, mut before) = (Notes::default(), EventLog::new(id()));
    let latest = |log: &EventLog| log.originals().map(|(number, _)| number).last();
    let originals: Vec<usize> = log.originals().map(|(number, _)| number).collect();
    for logged in log.events() {
        if let Event::NoteWritten { name, text } = &logged.event
            && latest(&before).is_none_or(|message| originals.contains(&message))
        {
            // A note that is not there cannot be removed.
            let _ = notes.write(name, text);
        }
        before.append_logged(logged.clone()).unwrap();
    }
    notes
}

proptest! {
    #![proptest_config(tries(6))]

    #[test]
    fn a_log_with_a_base_answers_like_the_whole_log(steps in vec(step(), 1..80)) {
        let mut bases = 0;
        let folder = Folder::new();
        let files = JsonlStore::open(&*folder).unwrap().without_sync();
        for store in [Arc::new(MemoryStore::default()) as Arc<dyn ThreadStore>, Arc::new(files)] {
            let stored = block_on(Journal::open(store.clone(), id())).unwrap();
            let whole = Journal::new(EventLog::new(id()));
            let mut twins = Twins { store, stored, whole };
            for (number, step) in steps.iter().enumerate() {
                twins.take(number, *step);
                block_on(twins.stored.flush()).unwrap();
                if number % 9 == 0 || number + 1 == steps.len() {
                    twins.check();
                }
                bases += usize::from(twins.stored.log().base() > 0);
            }
        }
        prop_assert!(steps.len() < 70 || bases > 0, "no log ever began at a base");
    }
}

const TURNS: usize = 40;

/// A session of turns with a long tool result each, compacted every few turns.
fn session(store: Arc<dyn ThreadStore>) -> Session {
    let script = (0..2 * TURNS).map(|turn| match turn % 2 {
        0 => {
            Scripted::from(calls(&[("c", "quick", &format!("{{\"text\":\"{}\"}}", long(turn, 3)))]))
        }
        _ => Scripted::from("Done."),
    });
    let keep = KeepRecent { messages: 4, ..KeepRecent::default() };
    let agent = ModelAgent::new(Arc::new(ScriptedModel::new(script)));
    let quick = crate::support::bench::Echo { name: "quick", polls: 0 };
    let builder = Session::builder(agent).strategy(Arc::new(keep)).tool(Arc::new(quick));
    block_on(builder.thread(id()).store(store).recall_tool().open()).unwrap()
}

fn play(session: &mut Session) {
    for turn in 0..TURNS {
        block_on(async { session.send(format!("Turn {turn}. Never touch src/{turn}.rs.")).await })
            .unwrap();
        if turn % 4 == 3 {
            block_on(async { session.compact(None).await }).unwrap();
        }
    }
}

#[test]
fn a_long_session_holds_only_its_thread_and_the_latest_events() {
    let store = Arc::new(MemoryStore::default());
    let mut session = session(store.clone());
    play(&mut session);
    let stored = block_on(store.load(&id())).unwrap().log;
    assert_eq!(session.log().len(), stored.len());
    let bytes = |log: &EventLog| -> u64 {
        let message = |event: &Event| match event {
            Event::MessageAppended(message) => message.text_bytes(),
            _ => 0,
        };
        log.events().iter().map(|logged| message(&logged.event)).sum()
    };
    let thread: u64 = session.messages().iter().map(Message::text_bytes).sum();
    assert!(bytes(&stored) > 300_000, "{}", bytes(&stored));
    assert!(bytes(session.log()) < thread + 50_000, "{} and {thread}", bytes(session.log()));
    assert_eq!(session.rules().rules().count(), stored.rules(None).rules().count());
    assert_eq!(*block_on(session.whole_log()).unwrap(), stored);
}

#[test]
fn earlier_events_are_read_from_the_store_when_needed() {
    let store = Arc::new(MemoryStore::default());
    let mut session = session(store.clone());
    play(&mut session);
    let base = session.log().base();
    assert!(base > 0);
    let fork = block_on(session.fork("fork".parse().unwrap())).unwrap();
    let fork = fork.build().unwrap();
    assert_eq!((fork.log().base(), fork.messages()), (0, session.messages()));

    let before = session.messages().clone();
    let undone = block_on(session.undo_compaction(CompactionId(0))).unwrap();
    assert_eq!((undone.len(), undone.last()), (TURNS / 4, Some(&CompactionId(0))));
    assert_eq!(session.messages().len(), TURNS * 4);
    assert_eq!(session.log().replay(), session.messages()[..]);
    let unknown = block_on(session.undo_compaction(CompactionId(77))).unwrap_err();
    assert!(unknown.to_string().contains("not in the log"), "{unknown}");
    let first = block_on(session.redo_compaction(CompactionId(0))).unwrap();
    assert_eq!(first.report.before.messages, TURNS * 4);
    assert!(before.len() < session.messages().len());
    let stored = block_on(store.load(&id())).unwrap().log;
    assert_eq!(stored.replay(), session.messages()[..]);
}

#[test]
fn earlier_events_cannot_be_read_from_a_store_that_lost_the_log() {
    let store = Arc::new(MemoryStore::default());
    let mut session = session(store.clone());
    play(&mut session);
    block_on(store.delete(&id())).unwrap();
    let lost = block_on(session.whole_log()).unwrap_err();
    assert!(matches!(lost, threadfold::session::SessionError::Store(StoreError::Deleted { .. })));
    let other = Journal::new(EventLog::new(id())).kept_by(store.clone()).with_log_id(LogId(7));
    let mut other = other;
    for number in 0..1_000 {
        let event = Event::MessageAppended(Message::user(format!("{number}")));
        other.append(Timestamp(number), event).unwrap();
    }
    block_on(other.flush()).unwrap();
    let foreign = block_on(session.whole_log()).unwrap_err();
    assert!(matches!(
        foreign,
        threadfold::session::SessionError::Store(StoreError::OtherLog { .. })
    ));
    let mut anew = Vec::new();
    assert!(session.log().write(&mut anew).is_err(), "it is not whole");
}

#[test]
fn a_base_that_does_not_belong_or_cannot_be_read_is_ignored() {
    let folder = Folder::new();
    let store = || Arc::new(JsonlStore::open(&*folder).unwrap().without_sync());
    play(&mut session(store()));
    let (base, log) = (folder.join("t.base"), folder.join("t.jsonl"));
    let (kept, lines) = (fs::read_to_string(&base).unwrap(), fs::read(&log).unwrap());
    let opened = || block_on(Journal::open(store(), id())).unwrap();
    let whole = block_on(store().load(&id())).unwrap().log;
    assert!(opened().log().base() > 0);
    assert_eq!(*block_on(opened().whole()).unwrap(), whole);

    for broken in [
        String::new(),
        kept[..kept.rfind('\n').unwrap() / 2].to_owned(),
        kept.replace("\"format\":3", "\"format\":4"),
        kept.replace("\"thread\":\"t\"", "\"thread\":\"u\""),
        kept.replacen("\"id\":\"", "\"id\":\"f", 1),
    ] {
        assert_ne!(broken, kept);
        fs::write(&base, &broken).unwrap();
        assert_eq!(*opened().log(), whole, "{}", &broken[..broken.len().min(200)]);
    }
    fs::write(&base, &kept).unwrap();
    assert!(opened().log().base() > 0);
    // The end of the log is lost.
    let half = lines[..lines.len() / 2].iter().rposition(|byte| *byte == b'\n').unwrap();
    fs::write(&log, &lines[..=half]).unwrap();
    assert_eq!(opened().log().base(), 0);
    fs::write(&log, &lines).unwrap();
    block_on(store().delete(&id())).unwrap();
    assert!(!base.exists());
}

#[test]
fn earlier_facts_come_from_the_store_or_else_from_the_whole_log() {
    let folder = Folder::new();
    let store = || Arc::new(JsonlStore::open(&*folder).unwrap().without_sync());
    let mut first = session(store());
    play(&mut first);
    // The script is empty, so the turn fails; the typed text stays.
    let _ = block_on(async { first.send("And now?").await });
    drop(first);
    let retention = || {
        let mut session = session(store());
        assert!(session.log().base() > 0);
        let keep = KeepRecent { messages: 1, ..KeepRecent::default() };
        let preview = block_on(session.preview(Arc::new(keep)));
        preview.report().unwrap().retention.clone().unwrap()
    };
    let expected = retention();
    assert!(expected.overall.facts > TURNS as u64, "{expected}");
    let base = folder.join("t.base");
    let kept = fs::read_to_string(&base).unwrap();
    let facts = kept.rfind('\n').unwrap();
    for broken in [&kept[..facts], &kept[..=facts], &kept[..(facts + kept.len()) / 2]] {
        fs::write(&base, broken).unwrap();
        assert_eq!(retention(), expected);
    }
}
