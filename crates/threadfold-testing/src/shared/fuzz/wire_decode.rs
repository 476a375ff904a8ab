//! One fuzz case of the codecs, shared by the fuzz target and by the bounded run in the tests.

#![allow(clippy::expect_used, reason = "a test stops where something is not as it must be")]

use std::sync::Arc;
use threadfold::{
    Plan, Request, legality,
    wire::{DecodeOptions, Dialect, EncodeOptions},
};

/// With every codec, reads bytes as a request body, as a response body and, after the first zero
/// byte, as a stored plan for the thread of the request; checks the invariants of each.
///
/// # Panics
///
/// If an invariant does not hold.
pub fn check(bytes: &[u8]) {
    let (body, plan) = match bytes.iter().position(|byte| *byte == 0) {
        Some(at) => (bytes.get(..at).unwrap_or_default(), bytes.get(at + 1..)),
        None => (bytes, None),
    };
    let plan = plan.and_then(|plan| serde_json::from_slice::<Plan>(plan).ok());
    let all = DecodeOptions {
        checkpoints: true,
        reminders: true,
        summaries: true,
        limits: threadfold::wire::DecodeLimits::DEFAULT,
    };
    for codec in Dialect::ALL {
        let _ = codec.decode_response(body);
        for recognise in [DecodeOptions::default(), all] {
            let read = codec.decode_slice(body, &recognise);
            if let Ok(mut request) = read {
                check_request(*codec, &request);
                let applied =
                    plan.as_ref().map(|plan| plan.apply(Arc::make_mut(&mut request.messages)));
                if applied.is_some_and(|applied| applied.is_ok()) {
                    check_request(*codec, &request);
                }
            }
        }
    }
}

/// Checks that a request that was read can be written by every codec, that the result is legal, and
/// that writing it again gives the same body.
fn check_request(own: Dialect, request: &Request) {
    for options in [EncodeOptions::default(), EncodeOptions::for_model("claude-opus-5-5")] {
        let options = EncodeOptions { model: None, ..options };
        for codec in Dialect::ALL {
            let body = codec.encode(request, &options).body;
            let read = codec.decode_slice(body.as_str().as_bytes(), &DecodeOptions::default());
            let (from, to) = (own.name(), codec.name());
            let read = read.unwrap_or_else(|error| panic!("{from} to {to}: {error}: {body}"));
            assert_eq!(legality::violations(&read.messages), [], "{from} to {to}: {body}");
            assert_eq!(codec.encode(&read, &options).body, body, "{from} to {to} is not stable");
        }
    }
}
