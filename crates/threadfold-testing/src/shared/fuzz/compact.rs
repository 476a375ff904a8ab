//! One fuzz case of compaction, shared by the fuzz target and by the bounded run in the tests.

#![allow(clippy::expect_used, reason = "a test stops where something is not as it must be")]

use std::ops::Range;
use std::sync::Arc;
use threadfold::{
    CheckpointId, ContentBlock, Message, Plan, Replacement, Role, Thread,
    compact::{CompactOptions, Position},
    legality,
    message::{
        Json, RedactedThinking, ServerToolResult, ServerToolUse, Summary, Text, Thinking,
        ToolResult, ToolUse,
    },
};

/// Reads bytes as a thread, its ranges and its edits, and, after the first zero byte, as a stored
/// plan and as the input of the `compact` tool; runs all of it and checks the invariants.
///
/// # Panics
///
/// If an invariant does not hold.
pub fn check(bytes: &[u8]) {
    let (numbers, json) = match bytes.iter().position(|byte| *byte == 0) {
        Some(at) => (bytes.get(..at), bytes.get(at + 1..)),
        None => (Some(bytes), None),
    };
    let mut dice = Dice(numbers.unwrap_or_default());
    let thread = dice.thread();
    check_repair(&thread);
    let options = dice.options();
    let ranges: Vec<Replacement> = (0..=dice.below(3)).map(|_| dice.range()).collect();
    let edits: Vec<(Range<Position>, Vec<Message>)> =
        (0..=dice.below(3)).map(|_| dice.edit(&thread)).collect();
    let replaced = Plan::new(&thread, &ranges, &options).ok();
    let edited = Plan::from_edits(&thread, edits, &options).ok();
    for plan in replaced.iter().chain(&edited) {
        check_plan(plan, &thread, true);
    }
    let value = serde_json::from_slice(json.unwrap_or_default()).unwrap_or_default();
    if let Ok(ranges) = Replacement::parse_all(&value) {
        let plan = Plan::new(&thread, &ranges, &options);
        plan.iter().for_each(|plan| check_plan(plan, &thread, true));
    }
    let stored = json.and_then(|json| serde_json::from_slice::<Plan>(json).ok());
    stored.iter().for_each(|plan| check_plan(plan, &thread, false));
}

fn check_repair(thread: &[Message]) {
    let legal = legality::violations(thread).is_empty();
    let (repaired, repairs) = legality::repair(thread.to_vec());
    assert_eq!(legality::violations(&repaired), []);
    assert_eq!(repairs.is_empty(), legal);
    assert_eq!(legality::repair(repaired.clone()), (repaired.clone(), Vec::new()));
    for at in legality::cut_points(&repaired) {
        let (left, right) = repaired.split_at(at);
        assert_eq!(legality::violations(left), [], "left of {at}");
        assert_eq!(legality::violations(right), [], "right of {at}");
    }
}

/// Applies a plan. One that this crate made fits, and leaves a legal thread legal.
fn check_plan(plan: &Plan, thread: &[Message], ours: bool) {
    let stored = serde_json::to_string(plan).expect("a plan has a stored form");
    assert_eq!(serde_json::from_str::<Plan>(&stored).ok().as_ref(), Some(plan));
    let mut live: Thread = thread.iter().cloned().collect();
    let before = live.messages().clone();
    match live.apply(plan) {
        Ok(removed) => {
            let head = plan.first_touched();
            let same = before.iter().zip(live.messages().iter()).take(head);
            assert!(same.clone().count() == head && { same }.all(|(old, new)| old.ptr_eq(new)));
            assert_eq!(live.size().messages, plan.messages_after());
            assert!(removed.len() <= thread.len());
            let fresh: Thread = live.messages().iter().cloned().collect();
            assert_eq!(live.size(), fresh.size());
            assert_eq!(live.open_calls(), fresh.open_calls());
        }
        Err(error) => {
            assert!(!ours, "our own plan is refused: {error}");
            assert!(Arc::ptr_eq(live.messages(), &before), "a refused plan changed the thread");
        }
    }
    if ours && legality::violations(thread).is_empty() {
        assert_eq!(legality::violations(live.messages()), [], "{plan:?}");
    }
}

/// Bytes as choices. When they are used up, every choice is the first.
struct Dice<'a>(&'a [u8]);

impl Dice<'_> {
    fn below(&mut self, end: usize) -> usize {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        usize::from(*first) % end.max(1)
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        let choice = self.below(choices.len());
        *choices.get(choice).expect("there are choices")
    }

    /// A thread, either unchanged or repaired.
    fn thread(&mut self) -> Vec<Message> {
        let legal = self.below(4) > 0;
        let messages = (0..self.below(16)).map(|_| {
            let role =
                self.of(&[Role::User, Role::Assistant, Role::User, Role::Assistant, Role::System]);
            let blocks = (0..=self.below(4)).map(|_| self.block(role)).collect();
            Message::new(role, blocks)
        });
        let messages = messages.collect();
        if legal { legality::repair(messages).0 } else { messages }
    }

    /// A block: mostly one that the role may send.
    fn block(&mut self, role: Role) -> ContentBlock {
        let id = self.of(&["t0", "t1", "t2", "t3"]);
        let json = || Json::parse("{\"z\":1.0,\"a\":2}").expect("JSON");
        match (role, self.below(8)) {
            (Role::Assistant, 0 | 1) | (Role::User, 7) => ToolUse::new(id, "run", json()).into(),
            (Role::User, 0 | 1) | (Role::Assistant, 7) => ToolResult::text(id, "done").into(),
            (Role::Assistant, 2) => Thinking::new("hm", Some("sig".into())).into(),
            (Role::Assistant, 3) => RedactedThinking::new("xx").into(),
            (Role::Assistant, 4) => ServerToolUse::new(id, "search", json()).into(),
            (Role::Assistant, 5) => ServerToolResult::new(id, "search_result", json()).into(),
            (Role::User, 2 | 3) => ContentBlock::checkpoint(self.id()),
            (Role::User, 4) => ContentBlock::reminder("be brief"),
            _ => ContentBlock::text(self.of(&["hello", "漢字 🦀", " ", ""])),
        }
    }

    fn id(&mut self) -> CheckpointId {
        let text = self.of(&["aaaaaa", "bbbbbb", "cccccc", "dddddd", "eeeeee", "ffffff"]);
        text.parse().expect("an id")
    }

    fn options(&mut self) -> CompactOptions {
        let mut flag = || self.below(2) == 0;
        CompactOptions {
            strip_reminders: flag(),
            strip_thinking: flag(),
            keep_open_loop: flag(),
            compaction: None,
        }
    }

    fn range(&mut self) -> Replacement {
        let mut range = Replacement::new(self.of(&["It went well.", "", "\n"]));
        range.from = (self.below(4) > 0).then(|| self.id());
        range.to = (self.below(4) > 0).then(|| self.id());
        range
    }

    /// An edit somewhere in the thread, or a little outside of it.
    fn edit(&mut self, thread: &[Message]) -> (Range<Position>, Vec<Message>) {
        let mut place = || Position { message: self.below(thread.len() + 2), block: self.below(5) };
        let (one, other) = (place(), place());
        let role = self.of(&[Role::User, Role::Assistant, Role::System]);
        let text = Text::from(self.of(&["It went well.", "They called tools."]));
        let summary = Message::summary(role, Summary::new(text));
        let insert = if self.below(2) == 0 { vec![summary] } else { Vec::new() };
        let swapped = self.below(8) == 7;
        let range = if swapped { one..other } else { one.min(other)..one.max(other) };
        (range, insert)
    }
}
