//! A live thread and its log in parallel: they agree after every step.

use std::ops::Range;
use std::sync::Arc;

use proptest::{collection::vec, prelude::*, sample::Index};
use threadfold::{
    Message, Plan, Role, Thread,
    auto::Pressure,
    compact::{CompactOptions, Position},
    legality,
    log::{CompactionFailure, CompactionRecord, Event, EventLog, LogError},
    message::{CheckpointId, CompactionId, CompactionReason, ContentBlock, Summary, Timestamp},
};
use threadfold_testing::generate::{junk_thread, legal_thread};

use crate::support::tries::tries;

#[derive(Clone, Debug)]
enum Work {
    Push(Vec<Message>),
    Compact(Vec<(Index, Index, bool)>, CompactOptions),
    Truncate(Index),
    Undo,
    Fail,
}

fn work() -> impl Strategy<Value = Work> {
    let options =
        any::<[bool; 3]>().prop_map(|[strip_reminders, strip_thinking, keep_open_loop]| {
            CompactOptions { strip_reminders, strip_thinking, keep_open_loop, compaction: None }
        });
    let edits = vec((any::<Index>(), any::<Index>(), any::<bool>()), 0..4);
    prop_oneof![
        3 => legal_thread(1..4).prop_map(Work::Push),
        1 => junk_thread(1..3).prop_map(Work::Push),
        4 => (edits, options).prop_map(|(edits, options)| Work::Compact(edits, options)),
        1 => any::<Index>().prop_map(Work::Truncate),
        3 => Just(Work::Undo),
        1 => Just(Work::Fail),
    ]
}

/// A thread, its log, and the expected state, computed in a simple and slow way.
struct Session {
    thread: Thread,
    log: EventLog,
    standing: Vec<Standing>,
}

struct Standing {
    id: CompactionId,
    before: Vec<Message>,
    after: usize,
    changed: bool,
    reached: bool,
}

impl Session {
    fn new() -> Self {
        let log = EventLog::new("main".parse().unwrap());
        Self { thread: Thread::default(), log, standing: Vec::new() }
    }

    fn append(&mut self, event: Event) {
        let at = Timestamp(self.log.len());
        self.log.append(at, event).unwrap();
    }

    fn carry_out(&mut self, work: Work) {
        match work {
            Work::Push(messages) => messages.into_iter().for_each(|message| {
                self.thread.push(message.clone());
                self.append(Event::MessageAppended(message));
            }),
            Work::Compact(edits, options) => self.compact(&edits, options),
            Work::Truncate(at) => {
                let from = self.thread.messages().len();
                let len = at.index(from + 1);
                self.thread.truncate(len);
                self.append(Event::Truncated { from, len });
                if let Some(top) = self.standing.last_mut() {
                    top.reached |= len < top.after;
                }
            }
            Work::Undo => self.undo(),
            Work::Fail => {
                let id = self.log.next_compaction();
                let failure = CompactionFailure::new(id, CompactionReason::Threshold, "s", "x");
                self.append(Event::CompactionFailed(Box::new(failure)));
            }
        }
    }

    fn compact(&mut self, picks: &[(Index, Index, bool)], options: CompactOptions) {
        let before = self.thread.messages().to_vec();
        let edits = edits(&before, picks);
        let Ok(plan) = Plan::from_edits(&before, edits, &options) else { return };
        let id = self.log.next_compaction();
        let record = CompactionRecord::new(id, CompactionReason::Threshold, "s", plan.clone());
        self.thread.apply(&plan).unwrap();
        self.append(Event::Compacted(Box::new(record)));
        let (after, changed) = (self.thread.messages().len(), !plan.is_empty());
        self.standing.push(Standing { id, before, after, changed, reached: false });
    }

    fn undo(&mut self) {
        let Some(top) = self.standing.pop() else { return };
        let Standing { id, before, after, changed, reached } = top;
        if reached {
            assert_eq!(self.log.undo(Timestamp(0), id), Err(LogError::TruncatedCompaction { id }));
            self.standing.push(Standing { id, before, after, changed, reached });
            return;
        }
        let since = self.thread.messages().iter().skip(after).cloned();
        let since: Vec<Message> =
            if changed { since.map(marked).collect() } else { since.collect() };
        let expected = [before, since].concat();
        let plan = self.log.undo(Timestamp(0), id).unwrap();
        self.thread.apply(&plan).unwrap();
        assert_eq!(self.thread.messages()[..], expected);
    }
}

/// Messages after a rewrite are marked if they hold reasoning.
fn marked(mut message: Message) -> Message {
    let signed = message.content.iter().any(ContentBlock::is_reasoning);
    if message.role == Role::Assistant && signed && !message.prefix_rewritten {
        message.prefix_rewritten = true;
    }
    message
}

/// Edits between positions at which the thread may be cut, and sometimes inside a message.
fn edits(
    thread: &[Message],
    picks: &[(Index, Index, bool)],
) -> Vec<(Range<Position>, Vec<Message>)> {
    let mut places: Vec<Position> =
        legality::cut_points(thread).into_iter().map(Position::before).collect();
    for (message, content) in thread.iter().enumerate().filter(|(index, _)| index % 3 == 0) {
        places.extend((1..content.content.len()).map(|block| Position { message, block }));
    }
    places.extend([Position::before(0), Position::before(thread.len())]);
    places.sort();
    let mut pairs: Vec<_> = picks
        .iter()
        .map(|(a, b, brief)| (a.index(places.len()), b.index(places.len().min(9)), *brief))
        .collect();
    pairs.sort();
    let mut next = 0;
    let edit = |(from, length, brief): (usize, usize, bool)| {
        let from = from.max(next);
        next = (from + length).min(places.len() - 1);
        let summary = Message::summary(Role::User, Summary::new("It went well."));
        let insert = if brief { vec![summary] } else { Vec::new() };
        (places[from]..places[next], insert)
    };
    pairs.into_iter().map(edit).collect()
}

fn says_the_same(session: &Session) {
    let Session { thread, log, .. } = session;
    let replayed = log.replay();
    assert_eq!(replayed, thread.messages()[..]);
    assert_eq!(log.skipped(), []);
    let ids: Vec<CompactionId> = log.standing().map(|record| record.id).collect();
    assert_eq!(ids, session.standing.iter().map(|standing| standing.id).collect::<Vec<_>>());
    let counter = Arc::clone(thread.counter());
    let restored = Thread::restored(replayed.clone(), log, counter);
    assert_eq!((restored.size(), restored.open_calls()), (thread.size(), thread.open_calls()));
    assert_eq!(Pressure::of(&restored), Pressure::of(thread));
    for id in thread.messages().iter().flat_map(|message| &message.content).filter_map(checkpoint) {
        assert_eq!(restored.checkpoint(id), thread.checkpoint(id));
    }
    for (message, source) in replayed.iter().zip(log.sources()) {
        comes_from(log, message, source);
    }
    if let [.., below, top] = session.standing.as_slice() {
        let refused = LogError::CoveredCompaction { id: below.id, by: top.id };
        assert_eq!(log.undo_plan(below.id), Err(refused));
    }
}

fn checkpoint(block: &ContentBlock) -> Option<CheckpointId> {
    if let ContentBlock::Checkpoint(checkpoint) = block { Some(checkpoint.id) } else { None }
}

/// The source of a message holds it, or all blocks of it in order.
fn comes_from(log: &EventLog, message: &Message, (seq, id): (u64, Option<CompactionId>)) {
    match (id, &log.events()[seq as usize].event) {
        (None, Event::MessageAppended(came)) => within(message, came),
        (Some(id), Event::Compacted(record)) => {
            assert_eq!(record.id, id);
            assert!(record.plan.new_messages().any(|new| is_within(message, new)), "{message:?}");
        }
        (id, event) => panic!("{id:?} is {event:?}"),
    }
}

fn within(message: &Message, came: &Message) {
    assert!(is_within(message, came), "{message:?} is no part of {came:?}");
}

fn is_within(message: &Message, came: &Message) -> bool {
    let mut rest = came.content.iter();
    message.role == came.role && message.content.iter().all(|block| rest.any(|it| it == block))
}

fn stored(log: &EventLog) -> Vec<u8> {
    let mut stored = Vec::new();
    log.write(&mut stored).unwrap();
    stored
}

proptest! {
    #![proptest_config(tries(200))]

    #[test]
    fn the_log_replays_to_the_live_thread(works in vec(work(), 1..24)) {
        let mut session = Session::new();
        for work in works {
            session.carry_out(work);
            says_the_same(&session);
        }
        let bytes = stored(&session.log);
        let read = EventLog::read(bytes.as_slice()).unwrap();
        prop_assert_eq!(&read.log, &session.log);
        prop_assert_eq!(stored(&read.log), bytes);
        session.log = read.log;
        says_the_same(&session);
        // A log that was read continues at its end.
        session.carry_out(Work::Push(vec![Message::user("more")]));
        session.carry_out(Work::Undo);
        says_the_same(&session);
    }

    #[test]
    fn a_refused_event_leaves_the_log_unchanged(works in vec(work(), 1..12), wrong in 1_usize..5) {
        let mut session = Session::new();
        works.into_iter().for_each(|work| session.carry_out(work));
        let (before, found) = (session.log.clone(), session.thread.messages().len());
        let (from, log) = (found + wrong, &mut session.log);
        let refused = log.append(Timestamp(0), Event::Truncated { from, len: 0 });
        prop_assert_eq!(refused, Err(LogError::Truncated { from, len: 0, found }));
        let (id, plan) = (log.next_compaction(), Plan::from_splices(from, Vec::new()));
        let record = CompactionRecord::new(id, CompactionReason::default(), "s", plan);
        let refused = log.append(Timestamp(0), Event::Compacted(Box::new(record)));
        prop_assert!(matches!(refused, Err(LogError::Plan(_))));
        prop_assert_eq!(log.undo(Timestamp(0), id), Err(LogError::UnknownCompaction { id }));
        prop_assert_eq!(&*log, &before);
        says_the_same(&session);
    }
}
