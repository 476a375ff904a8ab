//! Plans: what stays, what is removed, what is refused.

use proptest::{collection::vec, prelude::*, sample::Index};
use std::sync::Arc;
use threadfold::{
    ContentBlock, Message, Plan, Thread, compact,
    compact::{CompactOptions, Insert, Size},
    legality,
    tokens::ByteEstimate,
};
use threadfold_testing::generate::{junk_thread, legal_thread};

use super::{Picks, edits, model, options, picks, ranges, replacements};
use crate::support::tries::tries;

proptest! {
    #![proptest_config(tries(300))]

    #[test]
    fn replacing_ranges_agrees_with_the_reference_implementation(
        thread in legal_thread(0..12), picks in picks(), options in options()
    ) {
        let ranges = ranges(&thread, &picks);
        let asked: Vec<_> = ranges.iter().map(|(replacement, _)| replacement.clone()).collect();
        let mut after = thread.clone();
        let Ok(plan) = Plan::new(&thread, &asked, &options) else { return Ok(()) };
        let removed = plan.apply(&mut after).unwrap();

        let inserted = ranges.iter().map(|(replacement, range)| {
            let summary = threadfold::message::Summary::new(replacement.summary.clone());
            let blank = replacement.summary.is_blank();
            let message = Message::summary(threadfold::Role::Assistant, summary);
            (range.clone(), if blank { vec![] } else { vec![message] })
        });
        let expected = model::compact(&thread, &inserted.collect::<Vec<_>>(), &options);
        prop_assert_eq!(&after, &expected);
        prop_assert_eq!(legality::violations(&after), []);
        accounts(&plan, &thread, &after, &removed)?;
    }

    #[test]
    fn edits_that_pass_leave_a_legal_thread(
        thread in legal_thread(0..10), picks in picks(), options in options()
    ) {
        let asked = edits(&thread, &picks);
        let mut after = thread.clone();
        let Ok(plan) = Plan::from_edits(&thread, asked.clone(), &options) else { return Ok(()) };
        let removed = plan.apply(&mut after).unwrap();
        prop_assert_eq!(legality::violations(&after), []);
        accounts(&plan, &thread, &after, &removed)?;
        // An empty range divides no message, so only ranges that remove something are compared.
        // The model does not know that reminders stay in what the model has not read.
        let unread = &thread[legality::unread_from(&thread)..];
        let reminds = unread.iter().flat_map(|message| &message.content);
        let reminds = reminds.clone().any(|block| matches!(block, ContentBlock::SystemReminder(_)));
        if !reminds && asked.iter().all(|(range, _)| range.start < range.end) {
            prop_assert_eq!(after, model::compact(&thread, &asked, &options));
        }
    }

    #[test]
    fn a_stored_plan_gives_the_same_thread(
        thread in legal_thread(1..10), picks in picks(), again in any::<Index>()
    ) {
        let mut asked = edits(&thread, &picks);
        if let Some((_, insert)) = asked.first_mut() {
            // Calls with their inputs must come back from the store as they were.
            insert.push(thread[again.index(thread.len())].clone());
        }
        let Ok(plan) = Plan::from_edits(&thread, asked, &CompactOptions::default()) else {
            return Ok(());
        };
        let stored = serde_json::to_string(&plan).unwrap();
        let read: Plan = serde_json::from_str(&stored).unwrap();
        prop_assert_eq!(&read, &plan);
        let (mut now, mut later) = (thread.clone(), thread);
        prop_assert_eq!(plan.apply(&mut now), read.apply(&mut later));
        prop_assert_eq!(now, later);
    }

    #[test]
    fn replacing_ranges_at_once_equals_replacing_them_from_the_last_to_the_first(thread in legal_thread(0..12), picks in picks()) {
        // The open calls may differ in between, so nothing is stripped.
        let options = CompactOptions {
            strip_reminders: false,
            strip_thinking: false,
            ..CompactOptions::default()
        };
        let asked = replacements(&thread, &picks);
        let Ok(plan) = Plan::new(&thread, &asked, &options) else { return Ok(()) };
        let mut at_once = thread.clone();
        plan.apply(&mut at_once).unwrap();
        let mut one_by_one = thread;
        for range in asked.iter().rev() {
            // A range may hold a call whose result is in another range.
            let range = std::slice::from_ref(range);
            let Ok(plan) = Plan::new(&one_by_one, range, &options) else { return Ok(()) };
            plan.apply(&mut one_by_one).unwrap();
        }
        prop_assert_eq!(at_once, one_by_one);
    }

    #[test]
    fn a_plan_does_not_depend_on_the_order_of_its_ranges(
        thread in legal_thread(0..12), picks in picks()
    ) {
        let asked = replacements(&thread, &picks);
        let backwards: Vec<_> = asked.iter().rev().cloned().collect();
        let (one, other) = (compact(&thread, &asked), compact(&thread, &backwards));
        prop_assert_eq!(one.is_ok(), other.is_ok());
        if let (Ok(one), Ok(other)) = (one, other) {
            prop_assert_eq!(one, other);
        }
    }

    #[test]
    fn compacting_nothing_is_identity(thread in legal_thread(0..12)) {
        let compacted = compact(&thread, &[]).unwrap();
        prop_assert!(compacted.plan.is_empty());
        prop_assert!(same_handles(&compacted.messages, &thread));
        prop_assert_eq!(compacted.report.before, compacted.report.after);
        prop_assert_eq!(compacted.report.tokens_saved(), 0);
    }

    #[test]
    fn junk_never_panics(thread in junk_thread(0..10), picks in picks(), options in options()) {
        let _ = legality::cut_points(&thread);
        let _ = legality::open_loop(&thread).map(|at| assert!(at <= thread.len()));
        for violation in legality::violations(&thread) {
            prop_assert!(violation.message() < thread.len(), "{violation}");
        }
        if let Err(error) = compact(&thread, &replacements(&thread, &picks)) {
            prop_assert!(!error.to_string().is_empty());
        }
        let mut after = thread.clone();
        if let Ok(plan) = Plan::from_edits(&thread, edits(&thread, &picks), &options) {
            let removed = plan.apply(&mut after).unwrap();
            accounts(&plan, &thread, &after, &removed)?;
        }
    }

    #[test]
    fn the_index_of_a_thread_equals_one_built_from_its_messages(
        start in legal_thread(0..6), works in vec((0_u8..4, picks(), legal_thread(0..4)), 1..8)
    ) {
        let mut thread: Thread = start.into_iter().collect();
        for (work, picks, more) in works {
            let before = thread.messages().clone();
            let appends = carry_out(&mut thread, work, &picks, more);
            let prefix = before.len() <= thread.messages().len()
                && same_handles(&thread.messages()[..before.len()], &before);
            prop_assert!(prefix || !appends, "work {work} is no append");
            indexed(&thread)?;
        }
    }

    #[test]
    fn a_hostile_stored_plan_is_refused_or_fits(
        thread in legal_thread(0..6), version in prop_oneof![9 => Just(1_u64), 1 => any::<u64>()],
        before in prop_oneof![4 => Just(None), 1 => any::<u32>().prop_map(Some)],
        splices in vec(hostile_splice(), 0..4)
    ) {
        let before = before.map_or(thread.len() as u64, u64::from);
        let stored = serde_json::json!({ "version": version, "before": before, "splices": splices });
        let Ok(plan) = serde_json::from_value::<Plan>(stored) else { return Ok(()) };
        let _ = (plan.messages_after(), plan.first_touched(), plan.new_messages().count());
        let mut live: Thread = thread.into_iter().collect();
        let untouched = live.messages().clone();
        match live.apply(&plan) {
            Ok(_) => prop_assert_eq!(live.size().messages, plan.messages_after()),
            Err(error) => {
                prop_assert!(Arc::ptr_eq(live.messages(), &untouched), "{error}");
                let mut messages = untouched.to_vec();
                prop_assert_eq!(plan.apply(&mut messages), Err(error));
                prop_assert!(same_handles(&messages, &untouched));
            }
        }
        indexed(&live)?;
    }
}

/// Changes a thread in one way; returns whether the change was an append.
fn carry_out(thread: &mut Thread, work: u8, picks: &Picks, more: Vec<Message>) -> bool {
    match work {
        0 => thread.extend(more),
        1 => thread.truncate(picks[0].0.index(thread.messages().len() + 2)),
        2 => {
            let asked = replacements(thread.messages(), picks);
            let fresh = Plan::new(thread.messages(), &asked, &CompactOptions::default());
            let plan = thread.plan(&asked, &CompactOptions::default());
            assert_eq!(plan, fresh, "index and scan find the same places");
            let _ = plan.map(|plan| thread.apply(&plan).unwrap());
        }
        _ => {
            let asked = edits(thread.messages(), picks);
            let plan = Plan::from_edits(thread.messages(), asked, &CompactOptions::default());
            let _ = plan.map(|plan| thread.apply(&plan).unwrap());
        }
    }
    work == 0
}

fn indexed(thread: &Thread) -> Result<(), TestCaseError> {
    let messages = thread.messages();
    let fresh: Thread = messages.iter().cloned().collect();
    prop_assert_eq!(thread.size(), fresh.size());
    prop_assert_eq!(thread.size(), Size::of(messages, &ByteEstimate::TRIGGER));
    prop_assert_eq!(thread.open_calls(), legality::open_calls(messages));
    prop_assert_eq!(fresh.open_calls(), legality::open_calls(messages));
    for (id, place) in super::checkpoints(messages) {
        let once =
            super::checkpoints(messages).iter().filter(|(other, _)| *other == id).count() == 1;
        prop_assert_eq!(thread.checkpoint(id), once.then_some(place));
        prop_assert_eq!(fresh.checkpoint(id), thread.checkpoint(id));
    }
    Ok(())
}

/// Checks that messages before the first splice are unchanged, and that every message stays or is
/// among the removed ones.
fn accounts(
    plan: &Plan,
    before: &[Message],
    after: &[Message],
    removed: &[Message],
) -> Result<(), TestCaseError> {
    let first = plan.first_touched();
    prop_assert!(same_handles(&after[..first], &before[..first]), "the head was touched");
    prop_assert_eq!(after.len(), plan.messages_after());
    let (mut removed, mut kept) = (removed.iter(), after.iter());
    let mut next = 0;
    for splice in plan.splices() {
        let stay = &before[next..splice.at.start];
        prop_assert!(stay.iter().all(|message| kept.next().is_some_and(|m| m.ptr_eq(message))));
        let go = &before[splice.at.clone()];
        prop_assert!(go.iter().all(|message| removed.next().is_some_and(|m| m.ptr_eq(message))));
        for insert in &splice.insert {
            let came = kept.next().unwrap();
            match insert {
                Insert::Message { message } => prop_assert!(came.ptr_eq(message)),
                Insert::Part { message, blocks } => {
                    let old = &before[*message];
                    let same = blocks.iter().zip(&came.content);
                    prop_assert!(same.clone().count() == blocks.len());
                    for (block, content) in same {
                        prop_assert_eq!(content, &old.content[*block as usize]);
                    }
                }
            }
        }
        next = splice.at.end;
    }
    let rest = &before[next..];
    prop_assert!(rest.iter().all(|message| kept.next().is_some_and(|m| m.ptr_eq(message))));
    prop_assert!(kept.next().is_none() && removed.next().is_none());
    Ok(())
}

pub(crate) fn same_handles(one: &[Message], other: &[Message]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| one.ptr_eq(other))
}

fn hostile_splice() -> impl Strategy<Value = serde_json::Value> {
    let number = || prop_oneof![4 => 0_u64..6, 1 => Just(u64::MAX), 1 => Just(u64::MAX / 2), 1 => any::<u64>()];
    let block = prop_oneof![9 => 0_u64..4, 1 => any::<u64>()];
    let part = (number(), vec(block, 0..3)).prop_map(
        |(message, blocks)| serde_json::json!({ "part": { "message": message, "blocks": blocks } }),
    );
    let hello = serde_json::json!({ "message": { "message": Message::user("hi") } });
    let insert = prop_oneof![2 => part, 1 => Just(hello)];
    (number(), number(), vec(insert, 0..3)).prop_map(|(start, end, insert)| {
        serde_json::json!({ "at": { "start": start, "end": end }, "insert": insert })
    })
}
