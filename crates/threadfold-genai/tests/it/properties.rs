//! Requests that genai sends for generated threads: they are legal, and nothing is lost without a
//! report.

use genai::adapter::AdapterKind;
use proptest::{prelude::*, test_runner::TestRunner};
use serde_json::Value;
use threadfold::{
    ContentBlock, Message, Model, Request, legality,
    wire::{Adjustment, DecodeOptions, Dialect},
};
use threadfold_genai::{Target, to_genai};
use threadfold_testing::generate::{junk_thread, legal_thread};

use crate::support::{
    server::{Reply, Server},
    streams,
};

/// Collects the strings of a body, and those in the arguments of calls.
fn strings(value: &Value, into: &mut String) {
    match value {
        Value::String(text) => {
            into.push_str(text);
            into.push('\n');
            if let Ok(inner @ (Value::Object(_) | Value::Array(_))) = serde_json::from_str(text) {
                strings(&inner, into);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| strings(value, into)),
        Value::Object(fields) => fields.values().for_each(|value| strings(value, into)),
        _ => {}
    }
}

/// The texts of a block that the model must receive again.
fn texts(block: &ContentBlock) -> Vec<String> {
    match block {
        ContentBlock::Text(block) => vec![block.text.to_string()],
        ContentBlock::Thinking(block) => {
            let signature = block.signature.iter().map(ToString::to_string);
            signature.chain([block.text.to_string()]).collect()
        }
        ContentBlock::RedactedThinking(block) => vec![block.data.to_string()],
        ContentBlock::ToolUse(call) => {
            let mut inner = String::new();
            if let Ok(value) = serde_json::from_str(call.input.as_str()) {
                strings(&value, &mut inner);
            }
            inner.lines().map(str::to_owned).chain([call.name.to_string()]).collect()
        }
        ContentBlock::ToolResult(result) => result.content.iter().flat_map(texts).collect(),
        ContentBlock::SystemReminder(block) => vec![block.text.to_string()],
        ContentBlock::Summary(block) => vec![block.text.to_string()],
        _ => Vec::new(),
    }
}

/// A text without the backslash that prevents it from being read as one of threadfold's tags.
fn without_escapes(text: &str) -> String {
    text.replace("<\\", "<").replace("</\\", "</")
}

fn nothing_is_lost_silently(thread: &[Message], body: &Value, adjustments: &[Adjustment]) {
    let mut sent = String::new();
    strings(body, &mut sent);
    let sent = without_escapes(&sent);
    for (index, message) in thread.iter().enumerate() {
        let told = adjustments.iter().any(|told| told.message.is_none_or(|at| at == index));
        for text in message.content.iter().flat_map(texts).filter(|text| !text.trim().is_empty()) {
            let text = without_escapes(&text);
            assert!(told || sent.contains(text.trim()), "{text:?} of message {index} is lost");
        }
    }
}

fn check_sent_request(
    adapter: AdapterKind,
    name: &'static str,
    answer: &str,
    codec: Dialect,
    threads: impl Strategy<Value = Vec<Message>>,
) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let server = Server::start(vec![Reply::events(answer, 9_999)]);
    let model = server.model(adapter, name);
    let config = ProptestConfig { cases: 40, failure_persistence: None, ..Default::default() };
    TestRunner::new(config)
        .run(&threads, |thread| {
            let request = Request::new(thread.clone());
            let converted = to_genai(&request, &Target::new(adapter, name)).unwrap();
            if converted.request.messages.is_empty() {
                return Ok(());
            }
            runtime.block_on(model.complete(request)).unwrap();
            let body = server.body();
            let read = codec.decode(&body, &DecodeOptions::default()).unwrap();
            prop_assert_eq!(legality::violations(&read.messages), []);
            prop_assert_eq!(
                legality::open_calls(&read.messages),
                Vec::<threadfold::message::Text>::new()
            );
            nothing_is_lost_silently(&thread, &body, &converted.adjustments);
            Ok(())
        })
        .unwrap();
}

#[test]
fn anthropic_receives_legal_and_complete_threads() {
    let (adapter, model) = (AdapterKind::Anthropic, "claude-opus-4-6");
    let (answer, codec) = (streams::ANTHROPIC, Dialect::Anthropic);
    check_sent_request(adapter, model, answer, codec, legal_thread(1..20));
    check_sent_request(adapter, model, answer, codec, junk_thread(1..20));
}

#[test]
fn chat_completions_receives_legal_and_complete_threads() {
    let (adapter, model) = (AdapterKind::OpenAI, "some-model");
    let (answer, codec) = (streams::CHAT, Dialect::OpenAiChat);
    check_sent_request(adapter, model, answer, codec, legal_thread(1..20));
    check_sent_request(adapter, model, answer, codec, junk_thread(1..20));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..Default::default() })]

    /// Checked in genai's own types, for the adapters without a test server.
    #[test]
    fn every_result_follows_its_call(thread in legal_thread(1..20)) {
        use genai::chat::ChatRole;
        let adapters = [
            AdapterKind::OpenAIResp, AdapterKind::Gemini, AdapterKind::BedrockApi,
            AdapterKind::Ollama, AdapterKind::Cohere,
        ];
        for adapter in adapters {
            let target = Target::new(adapter, "some-model");
            let converted = to_genai(&Request::new(thread.clone()), &target).unwrap();
            let mut open: Vec<String> = Vec::new();
            for message in &converted.request.messages {
                let results: Vec<&str> =
                    message.content.tool_responses().iter().map(|one| one.call_id.as_str()).collect();
                for id in results {
                    let at = open.iter().position(|call| call == id);
                    prop_assert!(at.is_some(), "{} answers nothing", id);
                    open.remove(at.unwrap());
                }
                if message.role == ChatRole::Assistant {
                    prop_assert!(open.is_empty(), "{:?} are not answered", open);
                    open.extend(message.content.tool_calls().iter().map(|call| call.call_id.clone()));
                }
            }
            prop_assert!(open.is_empty(), "{:?} are not answered", open);
            let body = serde_json::to_value(&converted.request).unwrap();
            nothing_is_lost_silently(&thread, &body, &converted.adjustments);
        }
    }
}
