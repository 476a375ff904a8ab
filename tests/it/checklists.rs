//! The features of two systems that this crate unites, row by row, each with the test that shows
//! it.
//!
//! The rows are the features that a re-implementation must have. A row whose test no longer exists
//! fails.

use std::fs;

/// A file, and a test in it that verifies the feature; in a file of cases, a script.
struct By(&'static str, &'static str);

/// Threads as logs of events, with token accounting and a registry of strategies.
const EVENT_SOURCED_THREADS: &[(&str, &[By])] = &[
    (
        "append-only log, complete history, derived view",
        &[
            By("tests/it/event_log/live.rs", "the_log_replays_to_the_live_thread"),
            By("tests/it/compactions.rs", "a_compaction_changes_thread_log_and_store_together"),
        ],
    ),
    (
        "every kind of event with its payload; only messages reach the model",
        &[
            By("tests/it/event_log/stored.rs", "every_kind_of_event_round_trips_with_its_time"),
            By("tests/it/compactions.rs", "only_messages_are_sent_and_no_other_events_of_the_log"),
        ],
    ),
    (
        "the latest compaction wins, malformed ones fall back, double and nameless results go",
        &[By("tests/it/event_log/files.rs", "every_case_replays_to_its_expected_thread")],
    ),
    (
        "strategies by name; errors for unknown strategies; an unknown thread is an empty log",
        &[
            By("src/strategy/registry.rs", "a_wrong_setting_says_what_is_wrong"),
            By("tests/it/stores.rs", "our_stores_conform"),
        ],
    ),
    (
        "trim: three lines, per text block, the rest untouched, an exact count",
        &[
            By("tests/it/trim.rs", "trim_passes_its_cases"),
            By("tests/it/trim.rs", "everything_except_the_text_of_results_stays"),
        ],
    ),
    (
        "summarize: a tail of one's choice, order, pairs, short threads left alone",
        &[
            By(
                "src/strategy/summarize.rs",
                "the_summary_comes_after_the_kept_user_messages_and_before_the_tail",
            ),
            By("src/strategy/summarize.rs", "a_short_thread_is_left_alone"),
            By("tests/it/invariants.rs", "the_invariants_hold_on_generated_threads"),
        ],
    ),
    (
        "summarize: the summary reaches the provider; what happens when it fails is defined",
        &[
            By("tests/it/flows.rs", "the_summary_is_in_the_next_request_and_the_raw_text_is_not"),
            By("tests/it/compactions.rs", "the_record_of_a_ladder_names_the_successful_rung"),
        ],
    ),
    (
        "strategies see the working view; the second compaction includes the first summary",
        &[By(
            "tests/it/compactions.rs",
            "later_compactions_see_the_summary_and_never_the_raw_originals",
        )],
    ),
    (
        "commits are whole or nothing; what does nothing writes nothing",
        &[
            By("tests/it/compactions.rs", "a_failure_adds_one_event_and_changes_nothing_else"),
            By("tests/it/compactions.rs", "trimming_is_recorded_in_log_and_store"),
        ],
    ),
    (
        "usage per event; the context is the last call, then an estimate, never a stale count",
        &[
            By(
                "tests/it/usage.rs",
                "the_last_call_gives_the_context_and_later_messages_are_pending",
            ),
            By("tests/it/usage.rs", "the_usage_of_kept_answers_is_stale_after_every_rewrite"),
        ],
    ),
    (
        "budget: status and recommendations at every boundary",
        &[
            By("src/log/budget.rs", "the_limit_is_near_at_the_threshold"),
            By("src/log/budget.rs", "above_the_threshold_the_percentages_decide"),
            By("src/log/budget.rs", "a_budget_of_nothing_is_spent"),
        ],
    ),
    (
        "auto: a share of the real window, rest, once a crossing, before sending, on overflow",
        &[
            By("tests/it/auto.rs", "the_trigger_passes_its_boundaries"),
            By(
                "testdata/auto/requests-of-one-turn.txt",
                "after a success it rests until the context has grown by a quarter of the window",
            ),
            By("testdata/auto/refusals.txt", "a provider that refuses is believed"),
        ],
    ),
    (
        "auto: a failure never breaks the turn; before sending and on overflow",
        &[
            By(
                "tests/it/sessions.rs",
                "a_compaction_that_fails_before_it_is_needed_does_not_end_the_turn",
            ),
            By(
                "tests/it/sessions.rs",
                "the_thread_is_compacted_before_a_prompt_that_would_not_fit",
            ),
            By(
                "tests/it/sessions.rs",
                "after_a_refusal_for_length_the_thread_is_compacted_and_sent_again",
            ),
        ],
    ),
    (
        "the command: the exact word, intercepted, with start and end on every path",
        &[
            By("src/session/send.rs", "only_the_word_itself_is_a_command"),
            By("tests/it/sessions.rs", "the_command_compacts_and_asks_the_model_nothing_else"),
            By("tests/it/sessions.rs", "a_command_without_an_effect_reports_so_for_every_cause"),
        ],
    ),
    (
        "an observer apart from the engine; numbers safe for zero",
        &[
            By("tests/it/flows.rs", "the_driver_receives_the_summary_while_it_is_written"),
            By(
                "crates/threadfold-core/src/compact/report.rs",
                "an_empty_thread_causes_no_division_by_zero",
            ),
        ],
    ),
    (
        "every event comes back from its stored form, times too",
        &[By("tests/it/event_log/stored.rs", "every_kind_of_event_round_trips_with_its_time")],
    ),
];

/// Batches that are folded with the earlier ones as context, kept in the log, and shown by their ends.
const FOLDED_BATCHES: &[(&str, &[By])] = &[
    (
        "every setting with its default, checked",
        &[
            By("tests/it/rolling.rs", "options_that_make_no_sense_are_refused_before_a_call"),
            By("tests/it/rolling.rs", "settings_are_read_from_a_file_and_unknown_ones_are_refused"),
        ],
    ),
    (
        "a trigger with overhead, a strict comparison, any window",
        &[
            By("tests/it/auto.rs", "the_trigger_passes_its_boundaries"),
            By(
                "testdata/auto/overhead-of-four-characters.txt",
                "overhead over the budget makes no summary with every message",
            ),
        ],
    ),
    (
        "the split: earlier batches out, recent messages stay, pairs closed",
        &[
            By("tests/it/rolling.rs", "runs_pass_their_cases"),
            By("tests/it/rolling.rs", "calls_stay_with_their_results"),
            By("tests/it/rolling.rs", "chunks_do_not_divide_calls_from_their_results"),
        ],
    ),
    (
        "chunks by count and by tokens, no message divided",
        &[
            By("tests/it/rolling.rs", "chunks_have_the_configured_number_of_messages"),
            By(
                "tests/it/rolling.rs",
                "chunks_have_the_configured_tokens_and_no_message_is_divided",
            ),
        ],
    ),
    (
        "requests in roles, temperature 0, an output limit, a timeout",
        &[
            By(
                "tests/it/rolling.rs",
                "the_first_request_has_a_prompt_the_messages_under_their_roles_and_the_directive",
            ),
            By(
                "tests/it/rolling.rs",
                "a_configured_prompt_is_used_word_for_word_and_a_timeout_is_passed_on_or_left_out",
            ),
        ],
    ),
    (
        "depth, times and count of every batch; names that cannot collide; lists by thread",
        &[
            By(
                "tests/it/rolling.rs",
                "of_twenty_messages_fifteen_become_two_batches_and_five_stay",
            ),
            By("tests/it/rolling.rs", "ids_stay_unique_if_no_log_numbers_compactions"),
            By("src/log/batches.rs", "batches_are_listed_by_time_and_then_by_name"),
        ],
    ),
    (
        "batches summed up again, without a moment at which their sources are lost",
        &[
            By(
                "tests/it/rolling.rs",
                "if_the_view_has_no_room_two_batches_are_summarised_into_one",
            ),
            By(
                "tests/it/rolling.rs",
                "batches_that_are_summed_up_are_replaced_by_one_that_names_them",
            ),
        ],
    ),
    (
        "the view: deterministic, with headings and omission, replacing the one before",
        &[
            By("tests/it/rolling.rs", "the_view_passes_its_cases"),
            By("tests/it/rolling.rs", "later_compactions_see_the_batches_and_no_earlier_messages"),
        ],
    ),
    (
        "batches and messages in one step; swapped whole; a failure changes nothing",
        &[
            By(
                "tests/it/interrupted.rs",
                "a_compaction_dropped_at_any_await_leaves_a_consistent_state",
            ),
            By("tests/it/compactions.rs", "a_failure_adds_one_event_and_changes_nothing_else"),
        ],
    ),
    (
        "retries with halves and floors, waits that a test can see, a breaker that closes again",
        &[
            By("tests/it/rolling.rs", "a_retryable_failure_is_retried_with_half_of_the_chunk"),
            By("tests/it/rolling.rs", "a_short_chunk_is_not_divided_for_a_timeout"),
            By("src/auto/breaker.rs", "pauses_grow_up_to_the_longest_and_a_success_ends_them"),
        ],
    ),
    (
        "scores as they were, for choosing; time for folding",
        &[
            By("tests/it/rolling.rs", "a_message_is_scored_by_role_age_and_content"),
            By(
                "tests/it/rolling.rs",
                "with_a_target_the_least_important_messages_are_removed_and_the_order_stays",
            ),
        ],
    ),
    (
        "batches are searched by thread, the omitted and the replaced ones too",
        &[
            By("src/log/batches.rs", "more_words_come_first_and_then_the_latest"),
            By(
                "src/log/batches.rs",
                "a_batch_is_replaced_only_by_a_standing_one_that_is_not_itself",
            ),
        ],
    ),
    (
        "the tool without parameters: numbers, zeros, the history of the next request, failures",
        &[
            By(
                "tests/it/sessions.rs",
                "the_model_can_request_a_compaction_in_the_middle_of_its_work",
            ),
            By("tests/it/sessions.rs", "within_the_budget_the_tool_does_nothing_and_reports_zeros"),
            By("tests/it/sessions.rs", "the_tool_reports_why_it_failed"),
        ],
    ),
    (
        "the last resort keeps earlier summaries, what the user typed last, order and pairs",
        &[
            By("tests/it/digest.rs", "texts_of_other_summaries_are_quoted_once"),
            By("tests/it/digest.rs", "an_end_that_is_too_long_is_trimmed"),
            By("tests/it/invariants.rs", "the_invariants_hold_on_real_transcripts"),
        ],
    ),
    (
        "every criterion has its test or its reason",
        &[By("tests/it/rolling.rs", "every_criterion_names_an_existing_test")],
    ),
];

#[test]
fn every_row_names_an_existing_test() {
    for (row, shown) in EVENT_SOURCED_THREADS.iter().chain(FOLDED_BATCHES) {
        for By(file, test) in *shown {
            let source = fs::read_to_string(file).unwrap();
            let is_case = file.starts_with("testdata/");
            let named =
                if is_case { format!("--- script {test}\n") } else { format!("fn {test}(") };
            assert!(source.contains(&named), "{row}: no {test} in {file}");
        }
    }
}
