//! The tests as one program, so that shared code is compiled and linked once.
//!
//! Each file is a module named after its subject, and `cargo test --test it NAME::` runs it alone.
//! All tests run in one process, on several threads, so a test must not change the environment, the
//! current folder or the panic hook; allocations are counted per thread.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests and their helpers may panic"
)]
#![allow(clippy::wildcard_enum_match_arm, reason = "a test looks for one thing")]

mod adversarial;
mod ages;
mod architecture;
mod asked_twice;
mod at_rest;
mod auto;
mod bases;
mod beside;
mod bills;
mod bodies;
mod bound_reasoning;
mod changes;
mod checklists;
mod chunked;
mod chunked_full;
mod clear_results;
mod codec_laws;
mod compact_tool;
mod compactions;
mod compactor;
mod conformance;
mod conformance_suites;
mod cost;
mod cost_trigger;
mod counters;
mod crossing;
mod digest;
mod digest_again;
mod digest_tells;
mod displays;
mod edits;
mod edl_properties;
mod event_log;
mod examples;
mod failure_classes;
mod flows;
mod foreign;
mod frames;
mod fuzz_bounded;
mod hindsight;
mod idle;
mod interface;
mod interrupted;
mod invariants;
mod learning;
mod leases;
mod ledger;
mod legality;
mod media;
mod mixed;
mod names;
mod native;
mod native_thread;
mod nesting;
mod notes;
mod ollama;
mod other_languages;
mod own_strategy;
mod own_words;
mod people;
mod pins;
mod points;
mod promises;
mod prompts;
mod properties;
mod prose;
mod quoted;
mod quotes;
mod rare;
mod reading_steps;
mod recall;
mod recall_bar;
mod rendering;
mod replies;
mod retention;
mod retention_bar;
mod rolling;
mod rulebook;
mod rules;
mod secrets;
mod segments;
mod sessions;
mod simulation;
mod spans;
mod statements;
mod store_identity;
mod stores;
mod strategy_suite;
mod streams;
mod support;
mod tags;
mod tails;
mod transcripts;
mod trim;
mod trouble;
mod turn_cost;
mod usage;
mod wire_anthropic;
mod wire_converse;
mod wire_errors;
mod wire_gemini;
mod wire_openai_chat;
mod wire_openai_responses;
