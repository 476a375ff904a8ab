//! Answers as they arrive over the wire, in both dialects, and how they are sent back.

use futures::StreamExt;
use genai::adapter::AdapterKind;
use serde_json::Value;
use threadfold::{
    Answer, ContentBlock, Message, Model, Request, Role, Usage,
    message::{
        Delta, Extra, Json, Origin, RedactedThinking, StopReason, Thinking, ToolInput, ToolResult,
        ToolSpec, ToolUse,
    },
    wire::{DecodeOptions, Dialect},
};
use threadfold_testing::conformance;

use crate::support::{
    server::{Reply, Server},
    streams,
};

fn input() -> Json {
    Json::parse(r#"{"z":1.0,"a":1e2}"#).unwrap()
}

fn usage() -> Usage {
    Usage { cache_read: 60, cache_write: 20, ..Usage::new(90, 9) }
}

fn turn(content: Vec<ContentBlock>, provider: &str, model: &str, usage: Usage) -> Answer {
    let mut message = Message::new(Role::Assistant, content);
    message.make_mut().origin = Some(Origin::new(provider, Some(model.into())));
    Answer::new(message, StopReason::ToolUse, Some(usage))
}

fn anthropic_turn() -> Answer {
    let content = vec![
        Thinking::new("Hm.", Some("c2ln/+==".into())).into(),
        RedactedThinking::new("ZGF0YQ==").into(),
        ContentBlock::text("Grüße 🎉"),
        ToolUse::new("toolu_1", "read", input()).into(),
        ToolUse::new("toolu_2", "list", Json::parse("{}").unwrap()).into(),
    ];
    turn(content, "anthropic-messages", "claude-opus-4-6", usage())
}

fn chat_turn() -> Answer {
    let mut thought = Thinking::new("Hm.", None);
    let name = Json::parse("\"reasoning_content\"").unwrap();
    thought.extra = Extra::new("openai-chat", [("~as", name)]);
    let content = vec![
        thought.into(),
        ContentBlock::text("Grüße, Welt 🎉"),
        ToolUse::new("call_1", "read", ToolInput::from_text(input().as_str())).into(),
        ToolUse::new("call_2", "read", ToolInput::from_text("{}")).into(),
    ];
    let usage = Usage { cache_read: 64, ..Usage::new(90, 9) };
    turn(content, "openai-chat", "some-model", usage)
}

fn question() -> Request {
    let spec = |name: &str| ToolSpec::new(name, "Reads.", serde_json::json!({"type": "object"}));
    let tools = vec![spec("read"), spec("list")].into();
    Request { tools, max_output: Some(900), ..Request::new(vec![Message::user("hi")]) }
        .with_system("Be kind.")
}

async fn pieces(server: &Server, adapter: AdapterKind, model: &'static str) -> Vec<Delta> {
    let model = server.model(adapter, model);
    model.stream(question()).map(|delta| delta.unwrap()).collect().await
}

#[tokio::test]
async fn anthropic_answers_are_complete_for_every_division_of_their_bytes() {
    for size in [1, 2, 3, 7, 64, 100_000] {
        let server = Server::start(vec![Reply::events(streams::ANTHROPIC, size)]);
        let deltas = pieces(&server, AdapterKind::Anthropic, "claude-opus-4-6").await;
        let last = Delta::Answer { answer: anthropic_turn() };
        assert_eq!(deltas.last(), Some(&last), "in pieces of {size}");
        assert_eq!(deltas[0], Delta::Thinking { text: "Hm.".into() });
        assert_eq!(deltas[1], Delta::Text { text: "Grüße 🎉".into() });
        let called = Delta::ToolUse { id: "toolu_1".into(), name: "read".into() };
        assert_eq!(deltas[2], called);
        let more = |text: &str| Delta::ToolInput { id: "toolu_1".into(), text: text.into() };
        assert_eq!(deltas[3..5], [more("{\"z\":1.0,"), more("\"a\":1e2}")]);
    }
}

#[tokio::test]
async fn chat_answers_are_complete_for_every_division_of_their_bytes() {
    for size in [1, 2, 3, 7, 64, 100_000] {
        let server = Server::start(vec![Reply::events(streams::CHAT, size)]);
        let deltas = pieces(&server, AdapterKind::OpenAI, "some-model").await;
        let last = Delta::Answer { answer: chat_turn() };
        assert_eq!(deltas.last(), Some(&last), "in pieces of {size}");
        let texts = deltas.iter().filter(|delta| matches!(delta, Delta::Text { .. })).count();
        assert_eq!(texts, 2);
    }
}

/// The thread after an answer, with a failed result and a result that is a picture.
fn answered(answer: Answer) -> Request {
    let ids: Vec<_> = answer.message.tool_uses().map(|call| call.id.clone()).collect();
    let results = vec![
        ToolResult::error(ids[0].clone(), "gone").into(),
        ToolResult::text(ids[1].clone(), "found").into(),
        ContentBlock::text("And now?"),
        ContentBlock::checkpoint("aaaaaa".parse().unwrap()),
    ];
    let messages = vec![Message::user("hi"), answer.message, Message::new(Role::User, results)];
    Request { messages: messages.into(), ..question() }
}

#[tokio::test]
async fn reasoning_calls_and_results_are_sent_back_to_anthropic_unchanged() {
    let server = Server::start(vec![Reply::events(streams::ANTHROPIC, 99)]);
    let request = answered(anthropic_turn());
    server
        .model(AdapterKind::Anthropic, "claude-opus-4-6")
        .complete(request.clone())
        .await
        .unwrap();
    let body = server.bodies().remove(0);
    let read = Dialect::Anthropic.decode_slice(body.as_bytes(), &DecodeOptions::default()).unwrap();
    let contents = |request: &Request| {
        let messages = request.messages.iter();
        messages.map(|message| message.content.clone()).collect::<Vec<_>>()
    };
    let (mut sent, mut thread) = (contents(&read), contents(&request));
    // genai stores JSON trees, which keep values but not the spelling of numbers.
    for content in [&mut sent[1], &mut thread[1]] {
        let ContentBlock::ToolUse(call) = &mut content[3] else { panic!() };
        let value = call.input.json().unwrap().to_value().unwrap();
        assert_eq!((value["z"].as_f64(), value["a"].as_f64()), (Some(1.0), Some(100.0)));
        call.input = Json::default().into();
    }
    assert_eq!(sent, thread);
    assert_eq!(
        read.tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(),
        ["read", "list"]
    );
    assert_eq!(
        (read.system[0].content.clone(), read.max_output),
        (vec![ContentBlock::text("Be kind.")], Some(900))
    );
    assert_eq!(server.body()["stream"], true);
}

#[tokio::test]
async fn results_of_parallel_calls_are_adjacent_in_chat_completions() {
    let server = Server::start(vec![Reply::events(streams::CHAT, 99)]);
    let request = answered(chat_turn());
    server.model(AdapterKind::OpenAI, "some-model").complete(request).await.unwrap();
    let body = server.body();
    let roles: Vec<&str> = body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "tool", "user"]);
    assert_eq!(body["messages"][2]["reasoning_content"], "Hm.");
    assert_eq!(body["messages"][3]["content"], "Error: gone");
    assert_eq!(body["messages"][5]["content"], "And now?\n\n<checkpoint:aaaaaa>");
    assert_eq!(body["stream_options"]["include_usage"], true);
    let read = Dialect::OpenAiChat.decode(&body, &DecodeOptions::default()).unwrap();
    assert_eq!(threadfold::legality::violations(&read.messages), []);
}

#[tokio::test]
async fn reasoning_of_one_provider_is_not_sent_to_another_and_this_is_reported() {
    let server = Server::start(vec![Reply::events(streams::CHAT, 99)]);
    let heard = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let told = heard.clone();
    let model = server.model(AdapterKind::OpenAI, "some-model").on_adjusted(move |adjustments| {
        told.lock().unwrap().extend(adjustments.iter().map(ToString::to_string));
    });
    model.complete(answered(anthropic_turn())).await.unwrap();
    let body = server.bodies().remove(0);
    assert!(!body.contains("c2ln") && !body.contains("ZGF0YQ"), "{body}");
    let heard = heard.lock().unwrap();
    assert_eq!(
        heard.iter().filter(|note| note.contains("reasoning left out")).count(),
        2,
        "{heard:?}"
    );
}

#[tokio::test]
async fn both_dialects_pass_the_conformance_suite_of_models() {
    let rows = [
        (AdapterKind::OpenAI, "some-model", streams::CHAT),
        (AdapterKind::Anthropic, "claude-opus-4-6", streams::ANTHROPIC),
    ];
    for (adapter, name, body) in rows {
        let server = Server::start(vec![Reply::events(body, 11)]);
        conformance::model(&server.model(adapter, name)).await.unwrap();
    }
}

#[tokio::test]
async fn dropping_a_stream_closes_the_connection() {
    let endless = streams::CHAT.lines().nth(2).unwrap();
    let body = format!("{endless}\n\n").repeat(200_000);
    let server = Server::start(vec![Reply::events(&body, 4_096)]);
    let model = server.model(AdapterKind::OpenAI, "some-model");
    let mut stream = model.stream(question());
    assert!(stream.next().await.unwrap().is_ok());
    drop(stream);
    for _ in 0..200 {
        if *server.client_left.lock().unwrap() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("the server could still write");
}

#[tokio::test]
async fn tools_with_a_name_that_genai_reserves_are_sent_unchanged() {
    let server = Server::start(vec![Reply::events(streams::ANTHROPIC, 99)]);
    let spec = ToolSpec::new("web_search", "Ours.", serde_json::json!({"type": "object"}));
    let request = Request { tools: vec![spec].into(), ..question() };
    server.model(AdapterKind::Anthropic, "claude-opus-4-6").complete(request).await.unwrap();
    let tools: Value = server.body()["tools"].clone();
    assert_eq!(tools[0]["description"], "Ours.");
    assert_eq!(tools[0].get("type"), None);
}
