//! Legality: the results of repairs, and the positions where a thread may be cut.

use proptest::prelude::*;
use threadfold::{ContentBlock, Role, legality};
use threadfold_testing::generate::{junk_thread, legal_thread};

use super::plans::same_handles;
use crate::support::tries::tries;

proptest! {
    #![proptest_config(tries(400))]

    #[test]
    fn generated_threads_are_legal(thread in legal_thread(0..16)) {
        prop_assert_eq!(legality::violations(&thread), []);
    }

    #[test]
    fn repair_leaves_a_legal_thread_unchanged(thread in legal_thread(0..12)) {
        let (repaired, repairs) = legality::repair(thread.clone());
        prop_assert_eq!(repairs, []);
        prop_assert!(same_handles(&repaired, &thread));
    }

    #[test]
    fn a_repaired_thread_is_legal_and_needs_no_second_repair(thread in junk_thread(0..16)) {
        let (repaired, repairs) = legality::repair(thread.clone());
        prop_assert_eq!(legality::violations(&repaired), []);
        prop_assert_eq!(legality::repair(thread.clone()), (repaired.clone(), repairs.clone()));
        prop_assert_eq!(repairs.is_empty(), legality::violations(&thread).is_empty());
        for repair in &repairs {
            prop_assert!(repair.message() < thread.len(), "{repair}");
        }
        let (again, more) = legality::repair(repaired.clone());
        prop_assert_eq!(more, []);
        prop_assert!(same_handles(&again, &repaired));
    }

    #[test]
    fn repair_keeps_every_text_of_a_legal_thread_that_lost_messages(
        thread in legal_thread(1..10), gone in any::<prop::sample::Index>()
    ) {
        // An aborted turn or a lost line in a store leaves such a thread.
        let mut dirty = thread.clone();
        dirty.remove(gone.index(thread.len()));
        let (repaired, _) = legality::repair(dirty.clone());
        prop_assert_eq!(legality::violations(&repaired), []);
        let texts = |messages: &[threadfold::Message]| -> Vec<ContentBlock> {
            let blocks = messages.iter().flat_map(|message| message.content.iter());
            blocks.filter(|block| block.as_text().is_some()).cloned().collect()
        };
        prop_assert_eq!(texts(&repaired), texts(&dirty));
    }

    #[test]
    fn both_sides_of_every_cut_point_are_legal(thread in legal_thread(0..14)) {
        let points = legality::cut_points(&thread);
        prop_assert_eq!(points.first(), Some(&0));
        prop_assert!(points.is_sorted_by(|a, b| a < b));
        for point in points {
            let (left, right) = thread.split_at(point);
            prop_assert_eq!(legality::violations(left), []);
            prop_assert_eq!(legality::violations(right), []);
            prop_assert!(legality::open_calls(left).is_empty(), "calls are open across {point}");
            let first = right.first().and_then(|message| message.content.first());
            prop_assert!(!matches!(first, Some(ContentBlock::ToolResult(_))));
            let turn = |at: usize| thread.get(at).map(|message| message.role);
            let divides = point > 0 && turn(point - 1) == turn(point);
            let reasons = |messages: &[threadfold::Message]| {
                messages.iter().flat_map(|m| &m.content).any(ContentBlock::is_reasoning)
            };
            let start = left.iter().rposition(|message| Some(message.role) != turn(point));
            let before = &left[start.map_or(0, |at| at + 1)..];
            prop_assert!(!divides || !reasons(before), "reasoning is divided at {point}");
        }
    }

    #[test]
    fn every_question_has_a_cut_point_before_it(thread in legal_thread(0..14)) {
        let points = legality::cut_points(&thread);
        for at in 1..thread.len() {
            let answered = thread[at - 1].role == Role::Assistant && thread[at].role == Role::User;
            let mut turn = thread[at..].iter().take_while(|message| message.role == Role::User);
            let results = turn.any(|message| message.tool_results().next().is_some());
            if answered && !results && thread[at].is_typed() {
                prop_assert!(points.contains(&at), "no cut at {}", at);
            }
        }
    }
}
