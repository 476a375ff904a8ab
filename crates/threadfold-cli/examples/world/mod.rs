//! The simulated world with everything that the repository has: two workers with leases, a host's
//! own loop, and the relay of the proxy, at the vendors' APIs in turn.

mod relay;

use serde_json::{Value, json};
use threadfold::wire::Dialect;
use threadfold_testing::{
    rulebook::Api,
    shared::simulation::{Actor, OWN_LOOP, Run, Vendor, WORKERS, Watch, run},
};

/// Runs the world of a seed.
pub(crate) fn play(seed: u64, watch: Option<Watch>) -> Run {
    let [first, second] = WORKERS;
    let cast: [Actor; 4] = [first, second, OWN_LOOP, relay::RELAY];
    run(seed, vendor(seed), &cast, watch)
}

/// The command that replays a seed.
pub(crate) fn command(seed: u64) -> String {
    format!("cargo run -q -p threadfold-cli --example world -- --replay {seed}")
}

/// The API of a seed.
fn vendor(seed: u64) -> Vendor {
    let adaptive = json!({"type": "adaptive"});
    match seed % 5 {
        0 => new(
            Api::Anthropic,
            "claude-opus-5-5",
            Dialect::Anthropic,
            json!({"thinking": adaptive}),
        ),
        1 => new(
            Api::Responses,
            "gpt-6.2-sol",
            Dialect::OpenAiResponses,
            json!({"store": false, "include": ["reasoning.encrypted_content"]}),
        ),
        2 => new(Api::Chat, "gpt-5.2", Dialect::OpenAiChat, json!({})),
        3 => new(Api::Gemini, "gemini-3-pro", Dialect::Gemini, json!({})),
        _ => new(
            Api::Converse,
            "anthropic.claude-opus-5-5-v1:0",
            Dialect::BedrockConverse,
            json!({"additionalModelRequestFields": {"thinking": adaptive}}),
        ),
    }
}

fn new(api: Api, model: &'static str, codec: Dialect, fields: Value) -> Vendor {
    Vendor { api, model, codec, fields: fields.as_object().cloned().unwrap_or_default() }
}
