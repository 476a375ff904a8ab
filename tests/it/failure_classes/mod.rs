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
    Answer, CompactionStrategy, ContentBlock, ContextWindow, Message, Model, ModelAgent, Request,
    Role, TokenCounter, Usage, async_trait,
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
    strategy::{Chunked, Digest, KeepRecent, Ladder, Rolling, Summarize, TrimToolResults},
    testing::{ExtractiveModel, Scripted, ScriptedModel},
    tokens::ByteEstimate,
    wire::{Dialect, EncodeOptions},
};
use threadfold_testing::TestClock;

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
            "compactions_that_do_not_lower_the_count_are_suspended_with_a_notice",
            "a_system_prompt_over_the_threshold_causes_one_notice_and_no_compaction",
            "a_summary_longer_than_its_source_is_not_requested_repeatedly",
            "a_request_that_the_strategy_cannot_make_fit_is_still_sent",
        ],
    ),
    (
        "the call that is to sum up is too long itself",
        &[
            "a_thread_too_long_for_its_summariser_is_summarised_in_chunks",
            "a_summariser_that_refuses_every_length_does_not_stop_the_turn",
            "a_long_prompt_does_not_make_the_summary_request_too_long",
            "a_window_learned_from_a_refusal_applies_to_summary_requests",
        ],
    ),
    (
        "looking only when a turn is over",
        &["a_turn_with_many_tool_calls_is_compacted_in_time", "the_prompt_to_be_sent_is_counted"],
    ),
    (
        "a wrong window, or a wrong count",
        &[
            "a_count_of_zero_is_no_measure",
            "a_count_that_sums_all_calls_does_not_cause_repeated_compactions",
            "a_count_larger_than_the_window_refuses_no_request",
            "a_count_at_the_edge_of_the_window_with_nothing_to_compact_refuses_no_request",
            "a_window_smaller_than_assumed_is_learned_from_the_refusal",
        ],
    ),
    (
        "a second compaction right behind the first",
        &[
            "the_usage_of_the_summary_call_is_not_counted_for_the_thread",
            "a_manual_compaction_is_not_followed_by_an_automatic_one",
            "a_thread_over_the_threshold_is_not_compacted_again_before_a_new_count",
        ],
    ),
    (
        "calls without results, results without calls, parallel results apart",
        &["no_strategy_separates_calls_from_results_or_parallel_results"],
    ),
    (
        "an old task taken up again, or finished work done again",
        &[
            "the_newest_message_of_the_user_comes_last_and_after_the_summary",
            "the_summariser_is_asked_to_separate_done_from_open_work",
            "work_done_before_a_compaction_is_not_repeated",
        ],
    ),
    (
        "rules and corrections of the user lost",
        &[
            "the_newest_typed_text_stays_word_for_word_with_every_strategy",
            "the_last_three_messages_of_the_user_survive_a_summary",
            "a_rule_survives_four_digests",
            "the_summariser_is_asked_to_keep_every_rule_of_the_user",
            "the_system_prompt_is_the_same_in_every_request",
        ],
    ),
    (
        "tools not offered any more, or called in prose",
        &[
            "the_tools_are_offered_unchanged_after_a_compaction",
            "no_strategy_writes_calls_as_text_into_the_thread",
        ],
    ),
    (
        "a worse way of compacting that nobody notices",
        &[
            "the_rung_that_made_the_plan_is_reported_and_logged",
            "a_blank_summary_is_an_error_that_is_reported_and_logged",
            "an_empty_answer_for_a_batch_leaves_an_extract_and_a_note",
        ],
    ),
    (
        "a cache lost to small or repeated edits",
        &[
            "below_the_threshold_no_message_is_changed",
            "crossing_the_threshold_twice_without_growth_causes_one_compaction",
            "messages_before_the_first_edit_are_sent_byte_for_byte_as_before",
        ],
    ),
    (
        "secrets carried out of the thread, and on for ever",
        &["secrets_do_not_leave_the_thread", "displayed_errors_contain_no_secrets"],
    ),
    (
        "an unattended run that ends without a word, or asks instead of going on",
        &[
            "after_a_compaction_between_tool_calls_the_turn_continues",
            "please_continue_is_added_only_if_nothing_else_asks_for_an_answer",
            "a_compaction_does_not_restart_a_finished_agent",
        ],
    ),
    (
        "compactions that compact themselves, requests refused without numbers, ends that are missing",
        &[
            "the_calls_of_a_compaction_are_never_compacted_themselves",
            "a_request_that_cannot_fit_is_refused_with_the_sizes_of_its_parts",
            "every_compaction_has_one_start_and_one_end_wherever_it_is_dropped",
            "every_failed_compaction_has_one_end",
        ],
    ),
];
#[test]
fn every_class_names_existing_tests_and_every_test_has_a_class() {
    let source = sources();
    let mut named = HashSet::from(["every_class_names_existing_tests_and_every_test_has_a_class"]);
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
        assert!(named.contains(test), "{test} is listed in no class");
    }
}

/// The text of all files of this folder.
fn sources() -> String {
    let files = fs::read_dir("tests/it/failure_classes").unwrap();
    files.map(|file| fs::read_to_string(file.unwrap().path()).unwrap()).collect()
}
