//! Real threads through every strategy, and through a run that is killed and resumed.
//!
//! The threads are those of `testdata/threads` and of the folder that `THREADFOLD_TRANSCRIPTS` names.

use futures::executor::block_on;
use serde_json::Value;
use threadfold::{
    Message, Model, Request, StrategyRegistry,
    drive::{Models, propose},
    legality,
    render::{ChunkBudget, RenderOptions},
    strategy::{Brief, Chunked, CompactionRun, RunStep, Snapshot},
    testing::ExtractiveModel,
    wire::{DecodeOptions, EncodeOptions},
};

use crate::support::recorded::{FORMATS, requests};

#[test]
fn every_strategy_leaves_every_thread_ready_to_send() {
    let options = EncodeOptions { accepts_prefill: true, ..EncodeOptions::default() };
    for (name, format, request) in requests() {
        let thread = Snapshot::of_request(&request);
        for strategy in StrategyRegistry::default().names() {
            let registry = StrategyRegistry::default();
            let (strategy, brief) = (registry.get(strategy).unwrap(), Brief::default());
            let models = Models::one(&ExtractiveModel);
            let proposal =
                block_on(propose(strategy.as_ref(), &thread, &brief, models, &mut |_, _| {}));
            let Ok(proposal) = proposal else { continue };
            let messages = thread.accept(&proposal.plan, &brief).unwrap();
            assert_eq!(legality::violations(&messages), [], "{name}, {}", strategy.name());
            let next = Request { messages: messages.into(), ..request.clone() };
            for (_, other) in FORMATS {
                let encoded = other.encode(&next, &options);
                let body = encoded.body.as_str().as_bytes();
                let again = other.decode_slice(body, &DecodeOptions::default()).unwrap();
                assert_eq!(legality::violations(&again.messages), []);
                let stable = other.encode(&again, &options);
                assert_eq!(stable.body, encoded.body, "{name}, {}", strategy.name());
                assert_eq!(stable.adjustments, [], "{name}, {}", strategy.name());
            }
            // Unchanged blocks are written as they came.
            let kept = format.encode(&next, &options).body.to_value().unwrap();
            let came = format.encode(&request, &options).body.to_value().unwrap();
            let last = |body: &Value| {
                let messages =
                    ["messages", "input", "contents"].iter().find_map(|key| body[*key].as_array());
                messages.unwrap().last().cloned()
            };
            if strategy.name() != "chunked" {
                assert_eq!(last(&kept), last(&came), "{name}, {}", strategy.name());
            }
        }
    }
}

/// All threads in one, repeated to more than 250 KB.
fn long_thread() -> Vec<Message> {
    let threads: Vec<Message> =
        requests().into_iter().flat_map(|(_, _, request)| request.messages.to_vec()).collect();
    let mut thread = threads.clone();
    while threadfold::tokens::text_bytes(&thread) < 250_000 {
        thread.extend(threads.iter().cloned());
    }
    thread
}

fn run(thread: &[Message]) -> CompactionRun {
    let chunks = ChunkBudget { target: 60_000, tolerance: 12_000 };
    let options = Chunked { chunks, render: RenderOptions::default(), ..Chunked::default() };
    CompactionRun::new(thread, None, options).unwrap()
}

/// Lets the extractive model answer until this many chunks are done; returns the calls made.
fn work(run: &mut CompactionRun, chunks: usize) -> usize {
    let mut calls = 0;
    while let RunStep::Call { request, chunk, .. } = run.step() {
        if chunk >= chunks {
            break;
        }
        let turn = block_on(ExtractiveModel.complete(request.clone())).unwrap();
        run.handle(Ok(turn)).unwrap();
        calls += 1;
    }
    calls
}

#[test]
fn a_killed_and_resumed_run_ends_like_an_uninterrupted_one() {
    let thread = long_thread();
    let mut whole = run(&thread);
    let calls = work(&mut whole, usize::MAX);
    assert!(whole.steps().len() >= 4, "{} chunks", whole.steps().len());
    assert_eq!(calls, whole.steps().len(), "an edit for each chunk");

    let mut killed = run(&thread);
    let before = work(&mut killed, 2);
    let stored = serde_json::to_string(&killed).unwrap();
    drop(killed);
    let mut resumed: CompactionRun = serde_json::from_str(&stored).unwrap();
    let after = work(&mut resumed, usize::MAX);
    assert_eq!(before + after, calls, "no call is made twice");
    assert_eq!(resumed.summary(), whole.summary());
    assert_eq!(resumed, whole);
    assert!(matches!(resumed.step(), RunStep::Done { .. }));
}
