//! The simulated world with everything that the repository has: two workers with leases, a host's
//! own loop, and the relay of the proxy, at the vendors' APIs in turn.

mod relay;

use serde_json::{Value, json};
use threadfold::wire::Dialect;
use threadfold_testing::shared::simulation::{Actor, OWN_LOOP, Run, Vendor, WORKERS, Watch, run};

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
        0 => new(Dialect::Anthropic, "claude-opus-5-5", json!({"thinking": adaptive})),
        1 => new(
            Dialect::OpenAiResponses,
            "gpt-6.2-sol",
            json!({"store": false, "include": ["reasoning.encrypted_content"]}),
        ),
        2 => new(Dialect::OpenAiChat, "gpt-5.2", json!({})),
        3 => new(Dialect::Gemini, "gemini-3-pro", json!({})),
        _ => new(
            Dialect::BedrockConverse,
            "anthropic.claude-opus-5-5-v1:0",
            json!({"additionalModelRequestFields": {"thinking": adaptive}}),
        ),
    }
}

fn new(dialect: Dialect, model: &'static str, fields: Value) -> Vendor {
    Vendor { dialect, model, fields: fields.as_object().cloned().unwrap_or_default() }
}
