//! Failures on the wire, and the model errors that they become.

use std::time::Duration;

use genai::adapter::AdapterKind;
use threadfold::{
    Message, Model, Request,
    message::{ModelError, ModelErrorKind},
};

use crate::support::{
    server::{Reply, Server},
    streams,
};

async fn failure(adapter: AdapterKind, reply: Reply) -> ModelError {
    let server = Server::start(vec![reply]);
    let model = server.model(adapter, "some-model");
    model.complete(Request::new(vec![Message::user("hi")])).await.unwrap_err()
}

#[tokio::test]
async fn error_answers_are_classified_by_status_body_and_headers() {
    const CHAT: &str = r#"{"error":{"message":"This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.","type":"invalid_request_error","code":"context_length_exceeded"}}"#;
    const ANTHROPIC: &str = r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#;
    let overflow = |limit, found| ModelErrorKind::Overflow {
        limit: Some(limit),
        found: Some(found),
        output: None,
    };
    let after = |seconds| ModelErrorKind::Retryable { after: Some(Duration::from_secs(seconds)) };
    let (openai, anthropic) = (AdapterKind::OpenAI, AdapterKind::Anthropic);
    let slow = "retry-after: 7\r\n";
    let rows = [
        (openai, 400, "", CHAT, overflow(8_192, 9_000)),
        (anthropic, 400, "", ANTHROPIC, overflow(200_000, 210_000)),
        (openai, 401, "", r#"{"error":{"message":"bad key"}}"#, ModelErrorKind::Authentication),
        (anthropic, 429, slow, r#"{"error":{"type":"rate_limit_error"}}"#, after(7)),
        (openai, 429, slow, "slow down", after(7)),
        (openai, 500, "", "oops", ModelErrorKind::Retryable { after: None }),
        (anthropic, 404, "", r#"{"error":{"message":"no such model"}}"#, ModelErrorKind::Other),
    ];
    for (adapter, status, headers, body, kind) in rows {
        let error = failure(adapter, Reply::error(status, headers, body)).await;
        assert_eq!(error.kind, kind, "{status} {body}: {error}");
    }
}

#[tokio::test]
async fn errors_within_a_stream_are_classified_by_their_text() {
    let anthropic = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\
        \"message\":\"Overloaded\"}}\n\n";
    let chat =
        "data: {\"error\":{\"message\":\"too many\",\"code\":\"context_length_exceeded\"}}\n\n";
    let error = failure(AdapterKind::Anthropic, Reply::events(anthropic, 9)).await;
    assert!(error.is_retryable(), "{error}");
    let error = failure(AdapterKind::OpenAI, Reply::events(chat, 9)).await;
    assert!(error.is_overflow(), "{error}");
}

#[tokio::test]
async fn a_stream_that_is_cut_at_any_byte_is_no_answer() {
    let rows = [
        (AdapterKind::OpenAI, streams::CHAT, "data: [DONE]"),
        (AdapterKind::Anthropic, streams::ANTHROPIC, "event: message_stop"),
    ];
    for (adapter, body, last) in rows {
        let end = body.find(last).unwrap();
        let ends: Vec<usize> = body.match_indices("\n\n").map(|(at, _)| at + 2).collect();
        for at in ends.into_iter().filter(|at| *at <= end).chain([0]) {
            let error = failure(adapter, Reply::events(&body[..at], 999)).await;
            assert!(error.is_retryable(), "cut at {at}: {error}");
        }
    }
}

#[tokio::test]
async fn a_response_that_is_not_a_stream_is_an_error() {
    for (adapter, body) in [
        (AdapterKind::OpenAI, "data: {oops\n\n"),
        (AdapterKind::OpenAI, "<html>"),
        (AdapterKind::Anthropic, "event: content_block_start\ndata: 1\n\n"),
    ] {
        let error = failure(adapter, Reply::events(body, 5)).await;
        assert!(!error.is_overflow(), "{error}");
    }
}

#[tokio::test]
async fn an_unreachable_server_is_a_retryable_error() {
    let client = genai::Client::new().unwrap();
    let target = genai::ServiceTarget {
        endpoint: genai::resolver::Endpoint::from_static("http://127.0.0.1:1/v1/"),
        auth: genai::resolver::AuthData::from_single("key"),
        model: genai::ModelIden::new(AdapterKind::OpenAI, "some-model"),
    };
    let model = threadfold_genai::GenaiModel::new(client, target);
    let error = model.complete(Request::new(vec![Message::user("hi")])).await.unwrap_err();
    assert!(error.is_retryable(), "{error}");
    assert!(std::error::Error::source(&error).is_some());
}
