//! Fits a request of the crate `async-openai` into a window, by hand.
//!
//! `cargo run -p threadfold-http --example async_openai`
//!
//! The request goes through its JSON, which both crates read and write without loss. For another
//! crate with types of its own, such as `genai`, the function is the same. It runs offline.

use std::error::Error;

use async_openai::types::chat::CreateChatCompletionRequest;
use futures::executor::block_on;
use serde_json::{Value, json};
use threadfold::{
    Compactor,
    drive::Models,
    legality,
    wire::{DecodeOptions, Dialect, EncodeOptions},
};

/// Compacts the messages of a request to this many tokens, and prints what is no longer there.
fn fit(
    asked: &CreateChatCompletionRequest,
    tokens: u64,
) -> Result<CreateChatCompletionRequest, Box<dyn Error>> {
    let body = serde_json::to_vec(asked)?;
    let mut request = Dialect::OpenAiChat.decode_slice(&body, &DecodeOptions::default())?;
    let mut compactor = Compactor::default();
    let done = block_on(compactor.compact_request(&mut request, tokens, Models::default()))?;
    println!("{}", done.report);
    for fact in done.report.retention.iter().flat_map(|kept| &kept.missing) {
        println!("gone: {}", fact.text);
    }
    let encoded = Dialect::OpenAiChat.encode(&request, &EncodeOptions::default());
    Ok(serde_json::from_str(encoded.body.as_str())?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let long: CreateChatCompletionRequest = serde_json::from_value(request())?;
    let short = fit(&long, 600)?;
    println!("{} messages before, {} after", long.messages.len(), short.messages.len());
    // What the provider gets: the model and the tools as they were, every call with its result.
    assert_eq!((&short.model, &short.tools), (&long.model, &long.tools));
    let body = serde_json::to_vec(&short)?;
    let sent = Dialect::OpenAiChat.decode_slice(&body, &DecodeOptions::default())?;
    assert_eq!(legality::violations(&sent.messages), []);
    assert!(
        sent.messages.iter().flat_map(|message| message.texts()).any(|text| text.contains(RULE))
    );
    Ok(())
}

const RULE: &str = "Never edit files under vendor/.";

/// A thread of 41 messages: an agent reads twenty files.
fn request() -> Value {
    let asked = json!({"role": "user", "content": format!("Find who opens port 8080. {RULE}")});
    let rounds = (0..20).flat_map(|number| {
        let arguments = json!({"path": format!("src/part_{number}.rs")}).to_string();
        let function = json!({"name": "read", "arguments": arguments});
        let call =
            json!({"id": format!("call_{number}"), "type": "function", "function": function});
        let output = format!("fn part_{number}() {{ listen({}) }}\n", 8_060 + number).repeat(12);
        [
            json!({"role": "assistant", "content": null, "tool_calls": [call]}),
            json!({"role": "tool", "tool_call_id": format!("call_{number}"), "content": output}),
        ]
    });
    let messages: Vec<Value> = [asked].into_iter().chain(rounds).collect();
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    let function = json!({"name": "read", "description": "Reads a file.", "parameters": schema});
    let tools = json!([{"type": "function", "function": function}]);
    json!({"model": "gpt-5.2", "messages": messages, "tools": tools})
}
