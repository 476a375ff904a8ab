//! Billed tokens and the size of the context, over whole logs and with live threads.

use std::sync::Arc;

use proptest::{collection::vec, prelude::*, sample::Index};
use threadfold::{
    EventLog, Message, Plan, Replacement, Role, Thread, Usage,
    auto::Pressure,
    compact::{CompactOptions, Insert, Position, Splice},
    log::{self, CompactionFailure, CompactionRecord, Event, LoggedEvent},
    message::{CompactionId, CompactionReason, Json, Timestamp, ToolResult},
    tokens::{ByteEstimate, Calibrated, TokenCounter},
};

/// A thread and its log, as a host keeps them.
#[derive(Debug, Default)]
struct Life {
    thread: Thread,
    events: Vec<LoggedEvent>,
    /// The compactions that can be undone: the id, the plan, and the removed messages.
    standing: Vec<(CompactionId, Plan, Vec<Message>)>,
}

impl Life {
    fn log(&mut self, event: Event) {
        let seq = self.events.len() as u64;
        self.events.push(LoggedEvent { seq, at: Timestamp(seq), event });
    }

    fn push(&mut self, message: Message) {
        self.thread.push(message.clone());
        self.log(Event::MessageAppended(message));
    }

    fn truncate(&mut self, len: usize) {
        let from = self.thread.messages().len();
        self.thread.truncate(len);
        self.standing.clear();
        self.log(Event::Truncated { from, len: len.min(from) });
    }

    fn compact(&mut self, plan: Plan, usage: Usage) {
        let id = CompactionId(self.events.len() as u64);
        let removed = self.thread.apply(&plan).unwrap();
        if !plan.is_empty() {
            self.standing.push((id, plan.clone(), removed));
        }
        let mut record = CompactionRecord::new(id, CompactionReason::Threshold, "test", plan);
        record.usage = usage;
        self.log(Event::Compacted(Box::new(record)));
    }

    /// Replaces this many messages from the start.
    fn compact_first(&mut self, count: usize, summary: Message, usage: Usage) {
        let range = Position::before(0)..Position::before(count);
        let edits = vec![(range, vec![summary])];
        let plan =
            Plan::from_edits(self.thread.messages(), edits, &CompactOptions::default()).unwrap();
        self.compact(plan, usage);
    }

    fn undo(&mut self) {
        let Some((id, plan, removed)) = self.standing.pop() else { return };
        let mut removed = removed.into_iter();
        let (mut came, mut went) = (0, 0);
        let mut splices = Vec::new();
        for splice in plan.splices() {
            let start = splice.at.start + came - went;
            let back = removed.by_ref().take(splice.at.len());
            let insert = back.map(|message| Insert::Message { message }).collect();
            (came, went) = (came + splice.insert.len(), went + splice.at.len());
            splices.push(Splice { at: start..start + splice.insert.len(), insert });
        }
        let back = Plan::from_splices(self.thread.messages().len(), splices);
        self.thread.apply(&back).unwrap();
        self.log(Event::CompactionUndone { id });
    }

    fn fail(&mut self, usage: Usage) {
        let id = CompactionId(self.events.len() as u64);
        let mut failure = CompactionFailure::new(id, CompactionReason::Threshold, "test", "no");
        failure.usage = usage;
        self.log(Event::CompactionFailed(Box::new(failure)));
    }

    /// The log of the events.
    fn logged(&self) -> EventLog {
        let mut log = EventLog::new("main".parse().unwrap());
        for event in &self.events {
            log.append_logged(event.clone()).unwrap();
        }
        log
    }

    /// The pressure of the thread, and of a thread made from the log.
    fn context(&self) -> [Pressure; 2] {
        let messages = self.thread.messages();
        let counter = self.thread.counter();
        let restored = Thread::restored(messages.clone(), &self.logged(), Arc::clone(counter));
        assert_eq!((restored.size(), restored.messages()), (self.thread.size(), messages));
        [Pressure::of(&self.thread), Pressure::of(&restored)]
    }

    fn assert_context(&self, reported: Option<u64>, since: u64) {
        let [live, restored] = self.context();
        assert_eq!(live, restored);
        assert_eq!((live.reported, live.since), (reported, since));
        assert_eq!(live.thread, tokens(self.thread.messages()));
    }
}

fn answer(usage: Usage) -> Message {
    let mut message = Message::assistant("answer");
    message.make_mut().usage = Some(usage);
    message
}

fn result(usage: Usage) -> Message {
    let mut result = ToolResult::new("t1", Vec::new());
    result.usage = Some(Box::new(usage));
    Message::new(Role::User, vec![result.into()])
}

fn tokens(messages: &[Message]) -> u64 {
    ByteEstimate::TRIGGER.messages(messages)
}

#[test]
fn every_answer_and_every_tool_that_asked_a_model_is_billed() {
    let mut life = Life::default();
    life.push(Message::user("hi"));
    life.push(answer(Usage::new(100, 50)));
    life.push(answer(Usage::new(200, 75)));
    let total = log::total_usage(&life.events);
    assert_eq!((total.thread, total.events), (Usage::new(300, 125), 2));
    assert_eq!(total.total().context_tokens(), 425);

    let mut tools = Life::default();
    let mut two = result(Usage::new(40, 20));
    two.make_mut().content.extend(result(Usage::new(10, 5)).content.clone());
    tools.push(two);
    tools.push(Message::assistant("no usage"));
    tools.push(answer(Usage::default()));
    let total = log::total_usage(&tools.events);
    assert_eq!(
        (total.thread, total.compaction, total.events),
        (Usage::new(50, 25), Usage::default(), 1)
    );
}

#[test]
fn billed_tokens_stay_billed_after_undo_truncation_and_failure() {
    let mut life = Life::default();
    life.push(answer(Usage::new(1_000, 500)));
    life.push(answer(Usage {
        cache_read: 700,
        cache_write: 90,
        reasoning: 9,
        ..Usage::new(800, 400)
    }));
    life.compact_first(2, answer(Usage::new(300, 200)), Usage::new(1_900, 60));
    life.push(answer(Usage::new(150, 100)));
    life.undo();
    life.fail(Usage::new(2_000, 5));
    life.truncate(0);
    life.push(answer(Usage::new(u64::MAX, 150)));
    let total = log::total_usage(&life.events);
    let thread =
        Usage { cache_read: 700, cache_write: 90, reasoning: 9, ..Usage::new(u64::MAX, 1_150) };
    assert_eq!((total.thread, total.compaction), (thread, Usage::new(3_900, 65)));
    assert_eq!(total.events, 6);
    assert_eq!(total.total().context_tokens(), u64::MAX);
}

/// A sum that begins at the last compaction and includes the usage in kept messages is neither the
/// billed total nor the size of the context. So the crate has two separate numbers.
#[test]
fn a_compaction_changes_the_context_and_not_the_bill() {
    struct Row {
        before: &'static [(u64, u64)],
        /// The usage in the message that the compaction inserts, if it inserts one.
        kept: Option<(u64, u64)>,
        after: &'static [(u64, u64)],
        billed: Usage,
        events: usize,
        reported: Option<u64>,
    }
    let rows = [
        // Such a sum is 650 and 450 of three messages.
        Row {
            before: &[(1_000, 500), (800, 400)],
            kept: Some((300, 200)),
            after: &[(150, 100), (200, 150)],
            billed: Usage::new(2_150, 1_150),
            events: 4,
            reported: Some(350),
        },
        // Such a sum is 200 and 100, of a message that was only kept.
        Row {
            before: &[(1_000, 500)],
            kept: Some((200, 100)),
            after: &[],
            billed: Usage::new(1_000, 500),
            events: 1,
            reported: None,
        },
        // Such a sum is 100 and 50: the last call is right, and the bill is not.
        Row {
            before: &[(1_000, 500)],
            kept: None,
            after: &[(100, 50)],
            billed: Usage::new(1_100, 550),
            events: 2,
            reported: Some(150),
        },
    ];
    for Row { before, kept, after, billed, events, reported } in rows {
        let mut life = Life::default();
        before.iter().for_each(|(input, output)| life.push(answer(Usage::new(*input, *output))));
        let summary = kept.map(|(input, output)| answer(Usage::new(input, output)));
        let edit =
            (Position::before(0)..Position::before(before.len()), summary.into_iter().collect());
        let options = CompactOptions::default();
        let plan = Plan::from_edits(life.thread.messages(), vec![edit], &options).unwrap();
        life.compact(plan, Usage::default());
        after.iter().for_each(|(input, output)| life.push(answer(Usage::new(*input, *output))));
        let total = log::total_usage(&life.events);
        assert_eq!((total.thread, total.events), (billed, events));
        life.assert_context(reported, 0);
    }
}

#[test]
fn the_context_depends_on_the_last_of_two_compactions() {
    let mut life = Life::default();
    for round in 0..2 {
        life.push(Message::user("a question of some length"));
        life.push(answer(Usage::new(500, 100)));
        life.compact_first(1, answer(Usage::new(150, 75)), Usage::new(10, round));
    }
    // The sum of the kept and the new ones would be 250 and 125.
    life.push(answer(Usage::new(100, 50)));
    life.assert_context(Some(150), 0);
    assert_eq!(log::total_usage(&life.events).compaction, Usage::new(20, 1));
}

#[test]
fn the_last_call_gives_the_context_and_later_messages_are_pending() {
    let mut life = Life::default();
    life.assert_context(None, 0);
    life.push(Message::user("hi there"));
    life.assert_context(None, 3 + 4);
    // 14,000 and then 14,300 tokens are a context of 14,300, not of 28,300.
    life.push(answer(Usage::new(13_900, 100)));
    life.push(answer(Usage::new(14_100, 200)));
    life.assert_context(Some(14_300), 0);
    life.push(result(Usage::new(900, 90)));
    life.push(Message::user("go on"));
    life.assert_context(Some(14_300), (1 + 4) + (2 + 4));
    life.log(Event::Host { kind: "approval".into(), data: Json::default() });
    life.fail(Usage::new(5, 5));
    life.assert_context(Some(14_300), 11);
    assert_eq!(Pressure::of(&life.thread).tokens(), 14_311);
}

#[test]
fn a_usage_of_zeros_is_no_count() {
    let mut life = Life::default();
    life.push(answer(Usage::default()));
    life.assert_context(None, 2 + 4);
    assert_eq!(Pressure::of(&life.thread).tokens(), 6);
    life.push(answer(Usage::new(0, 40)));
    life.push(answer(Usage { cache_read: 9, ..Usage::default() }));
    life.assert_context(Some(40), 6);
    // Only the model's own messages state the usage of a call.
    let mut message = Message::user("forty");
    message.make_mut().usage = Some(Usage::new(1, 1));
    life.push(message);
    life.assert_context(Some(40), 6 + 6);
}

#[test]
fn the_usage_of_kept_answers_is_stale_after_every_rewrite() {
    let mut life = Life::default();
    life.push(Message::user("a question of some length"));
    life.push(answer(Usage::new(170_000, 1_000)));
    life.push(Message::user("and on"));
    life.compact_first(1, Message::assistant("short"), Usage::new(9_000, 10));
    life.assert_context(None, 0);
    life.push(Message::user("more"));
    life.assert_context(None, 6);
    life.push(answer(Usage::new(3_000, 10)));
    life.assert_context(Some(3_010), 0);
    life.undo();
    life.assert_context(None, 0);
    life.push(answer(Usage::new(171_000, 10)));
    life.truncate(2);
    life.assert_context(None, 0);
}

#[test]
fn a_change_without_effect_keeps_the_count() {
    let mut life = Life::default();
    life.push(answer(Usage::new(10, 5)));
    life.truncate(1);
    life.truncate(7);
    let nothing = life.thread.plan(&[], &CompactOptions::default()).unwrap();
    life.compact(nothing, Usage::new(3, 3));
    life.assert_context(Some(15), 0);
    let all = life.thread.plan(&[Replacement::new("all")], &CompactOptions::default()).unwrap();
    life.compact(all, Usage::default());
    life.assert_context(None, 0);
}

#[test]
fn messages_that_do_not_belong_to_the_log_cause_no_panic() {
    let mut life = Life::default();
    life.push(answer(Usage::new(10, 5)));
    life.truncate(0);
    (0..5).for_each(|_| life.push(Message::user("hi")));
    let messages = vec![Message::user("hi")];
    let counter = Arc::clone(life.thread.counter());
    let pressure = Pressure::of(&Thread::restored(messages, &life.logged(), counter));
    assert_eq!((pressure.reported, pressure.since, pressure.thread), (None, 5, 5));
}

#[test]
fn the_largest_counts_do_not_overflow() {
    let (reported, since) = (Some(u64::MAX), u64::MAX);
    let full = Pressure { reported, since, overhead: u64::MAX, thread: 1, ..Pressure::default() };
    assert_eq!((full.tokens(), full.estimate()), (u64::MAX, u64::MAX));
}

#[test]
fn a_learned_ratio_scales_estimates_and_not_reports() {
    let mut ratio = Calibrated::default();
    for _ in 0..30 {
        ratio.learn(9_000, 10_000);
    }
    let reported = Pressure { reported: Some(5_000), since: 900, ..Pressure::default() };
    assert_eq!(reported.calibrated(&ratio).tokens(), 5_000 + 999);
    let estimated = Pressure { thread: 9_900, ..Pressure::default() };
    assert_eq!(estimated.calibrated(&ratio).tokens(), 9_989 + 999);
}

#[derive(Clone, Debug)]
enum Step {
    Push(Message),
    Compact(Index, Index, Option<Message>),
    Truncate(Index),
    Undo,
    Fail,
}

fn message() -> impl Strategy<Value = Message> {
    let usage = prop_oneof![
        2 => (0_u64..200_000, 0_u64..9).prop_map(|(input, output)| Some(Usage::new(input, output))),
        1 => Just(Some(Usage::default())),
        2 => Just(None),
    ];
    let said = ("[a-z ]{1,40}", prop::bool::ANY, usage).prop_map(|(text, model, usage)| {
        let mut message = if model { Message::assistant(text) } else { Message::user(text) };
        message.make_mut().usage = usage;
        message
    });
    prop_oneof![5 => said, 1 => (0_u64..50).prop_map(|input| result(Usage::new(input, 1)))]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => message().prop_map(Step::Push),
        2 => (any::<Index>(), any::<Index>(), prop::option::of(message()))
            .prop_map(|(from, to, insert)| Step::Compact(from, to, insert)),
        1 => any::<Index>().prop_map(Step::Truncate),
        1 => Just(Step::Undo),
        1 => Just(Step::Fail),
    ]
}

proptest! {
    #[test]
    fn a_thread_and_its_log_agree_on_the_context(steps in vec(step(), 0..40)) {
        let mut life = Life::default();
        for step in steps {
            let len = life.thread.messages().len();
            match step {
                Step::Push(message) => life.push(message),
                Step::Compact(from, to, insert) => {
                    let (from, to) = (from.index(len + 1), to.index(len + 1));
                    let range = Position::before(from.min(to))..Position::before(from.max(to));
                    let edits = vec![(range, insert.into_iter().collect())];
                    let options = CompactOptions::default();
                    // A range of results without their calls may be refused.
                    if let Ok(plan) = Plan::from_edits(life.thread.messages(), edits, &options) {
                        life.compact(plan, Usage::new(7, 1));
                    }
                }
                Step::Truncate(to) => life.truncate(to.index(len + 2)),
                Step::Undo => life.undo(),
                Step::Fail => life.fail(Usage::new(7, 1)),
            }
            let [live, restored] = life.context();
            prop_assert_eq!(live, restored);
            prop_assert!(live.pending <= life.thread.size().tokens);
        }
    }
}
