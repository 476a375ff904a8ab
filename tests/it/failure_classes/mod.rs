//! The ways in which automatic compaction fails in agents, class by class, with tests that show
//! that it does not fail so here.
//!
//! Nearly all tests run whole sessions with the strategies that a host would choose. They check the
//! requests that the model received, the events and the log.

use std::{
    collections::HashSet,
    fmt, fs,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use futures::{FutureExt, StreamExt, executor::block_on, stream::BoxStream};
use serde_json::{Value, json};
use threadfold::{
    CompactionStrategy, ContentBlock, ContextWindow, Message, Model, ModelAgent, Request, Role,
    TokenCounter, Turn, Usage, WireFormat, async_trait,
    auto::{AutoPolicy, Threshold},
    legality,
    log::{CompactionRecord, Event},
    message::{
        CompactionReason, Delta, ModelErrorKind, StopReason, Summary, Text, ToolSpec, ToolUse,
    },
    model::{ModelError, Tool, ToolContext, ToolOutput},
    session::{
        COMPACT_CONTEXT, CompactionEvent, Reply, Session, SessionBuilder, SessionError,
        SessionEvent,
    },
    store::{Journal, MemoryStore},
    strategy::{Chunked, Digest, FoldBatches, KeepRecent, Ladder, Summarize, TrimToolResults},
    testing::{Answer, ExtractiveModel, ScriptedModel, TestClock},
    tokens::ByteEstimate,
    wire::{Dialect, EncodeOptions},
};

mod counts;
mod ends;
mod length;
mod loops;
mod outcome;
mod pairs;
mod secrets;
mod support;
mod tasks;

use crate::support::bench::{compactions, policy, wants_summary};
use support::*;

/// Each class of failure, and the tests of this file that show that it is designed out.
const CLASSES: &[(&str, &[&str])] = &[
    (
        "compactions in a loop that never come under the trigger",
        &[
            "compactions_that_do_not_bring_the_count_down_are_given_up_and_it_is_said",
            "a_system_prompt_over_the_threshold_starts_no_compaction_and_is_said_once",
            "a_summary_longer_than_what_it_replaces_is_not_asked_for_again_and_again",
            "a_request_that_its_strategy_does_not_make_fit_goes_out_all_the_same",
        ],
    ),
    (
        "the call that is to sum up is too long itself",
        &[
            "a_thread_too_long_for_its_summariser_is_read_in_pieces",
            "a_summariser_that_refuses_every_length_does_not_stop_the_turn",
            "a_long_prompt_does_not_make_the_call_too_long_that_sums_up_before_it",
            "what_a_refusal_says_of_the_window_is_known_to_whoever_sums_up",
        ],
    ),
    (
        "looking only when a turn is over",
        &[
            "a_turn_of_many_tools_is_compacted_before_it_is_too_long",
            "a_prompt_that_is_about_to_be_sent_counts",
        ],
    ),
    (
        "a wrong window, or a wrong count",
        &[
            "a_count_of_zero_is_no_measure",
            "a_count_that_adds_up_all_calls_does_not_compact_again_and_again",
            "a_count_larger_than_the_window_refuses_no_request",
            "a_count_at_the_edge_of_the_window_with_nothing_to_compact_refuses_no_request",
            "a_window_smaller_than_was_thought_is_learned_from_the_refusal",
        ],
    ),
    (
        "a second compaction right behind the first",
        &[
            "the_tokens_of_the_summary_call_are_not_taken_for_those_of_the_thread",
            "a_compaction_by_hand_is_not_followed_by_one_of_the_trigger",
            "a_thread_that_stays_over_the_threshold_is_not_compacted_again_before_it_was_counted",
        ],
    ),
    (
        "calls without results, results without calls, parallel results apart",
        &["no_strategy_parts_calls_from_their_results_or_parallel_results_from_each_other"],
    ),
    (
        "an old task taken up again, or finished work done again",
        &[
            "the_newest_message_of_the_user_comes_last_and_behind_the_end_of_the_summary",
            "the_summariser_is_asked_to_separate_what_is_done_from_what_is_open",
            "work_that_was_done_before_a_compaction_is_not_done_again",
        ],
    ),
    (
        "rules and corrections of the user lost",
        &[
            "what_the_user_typed_last_stays_word_for_word_under_every_strategy",
            "the_last_three_messages_of_the_user_outlive_a_summary",
            "a_rule_outlives_four_digests",
            "the_summariser_is_asked_to_keep_every_rule_of_the_user",
            "the_system_prompt_is_the_same_in_every_request",
        ],
    ),
    (
        "tools not offered any more, or called in prose",
        &[
            "the_tools_are_offered_after_a_compaction_as_they_were_before",
            "no_strategy_writes_calls_as_text_into_the_thread",
        ],
    ),
    (
        "a worse way of compacting that nobody notices",
        &[
            "the_rung_that_made_the_plan_is_reported_and_logged",
            "a_blank_summary_is_an_error_that_is_reported_and_logged",
            "a_piece_of_a_run_without_a_word_is_an_error",
        ],
    ),
    (
        "a cache lost to small or repeated edits",
        &[
            "below_the_threshold_no_message_is_ever_touched",
            "two_crossings_within_a_minute_are_one_compaction",
            "what_stands_before_the_first_edit_is_sent_byte_for_byte_as_before",
        ],
    ),
    (
        "secrets carried out of the thread, and on for ever",
        &["secrets_do_not_leave_the_thread", "errors_that_are_shown_hold_no_secrets"],
    ),
    (
        "an unattended run that ends without a word, or asks instead of going on",
        &[
            "after_a_compaction_among_tool_calls_the_model_is_asked_on",
            "please_continue_stands_only_where_nothing_else_asks_for_something",
            "a_finished_agent_is_not_started_again_by_a_compaction",
        ],
    ),
    (
        "compactions that compact themselves, requests refused without numbers, ends that are missing",
        &[
            "the_calls_of_a_compaction_are_never_compacted_themselves",
            "what_cannot_fit_is_refused_with_the_numbers_of_its_parts",
            "every_compaction_has_one_beginning_and_one_end_wherever_it_is_dropped",
            "every_compaction_that_fails_has_one_end_too",
        ],
    ),
];
#[test]
fn every_class_has_tests_that_are_there_and_every_test_has_its_class() {
    let source = sources();
    let mut named =
        HashSet::from(["every_class_has_tests_that_are_there_and_every_test_has_its_class"]);
    for (class, tests) in CLASSES {
        assert!(!tests.is_empty(), "{class}");
        for test in *tests {
            let there = source.contains(&format!("#[test]\nfn {test}("));
            assert!(there, "{class}: no {test}");
            assert!(named.insert(test), "{test} is named twice");
        }
    }
    let tests = source.split("\n#[test]\nfn ").skip(1).filter_map(|rest| rest.split('(').next());
    for test in tests {
        assert!(named.contains(test), "{test} stands for no class");
    }
}

/// The text of all files of this folder.
fn sources() -> String {
    let files = fs::read_dir("tests/it/failure_classes").unwrap();
    files.map(|file| fs::read_to_string(file.unwrap().path()).unwrap()).collect()
}
