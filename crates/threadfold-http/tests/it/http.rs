//! The adapter of the example `http` over sockets: a server in the test answers as a provider
//! would, and the tests check the requests that it received.

use std::{
    error::Error,
    io::{Read, Write},
    iter,
    net::{TcpListener, TcpStream},
    sync::{
        Arc,
        mpsc::{self, Receiver, TryRecvError},
    },
    thread,
    time::{Duration, Instant},
};

use futures::StreamExt;
use serde_json::{Value, json};
use threadfold::{
    Agent, Answer, ContextWindow, Message, Model, ModelAgent, Request, Session, async_trait,
    legality,
    message::{Delta, ModelError, ModelErrorKind, ToolChoice, ToolSpec, ToolUse},
    model::{AnswerLimits, Tool, ToolContext, ToolOutput},
    session::{CompactionEvent, SessionEvent},
    strategy::Summarize,
    wire::{self, AnthropicVersion, DecodeOptions},
};
use threadfold_testing::shared::cases;

use threadfold_http::{Dialect, HttpModel, HttpOptions, Key};

use crate::runtime::run;

pub(crate) const KEY: &str = "sk-test-4f1d9c";

const BOTH: [Dialect; 2] = [Dialect::Anthropic, Dialect::Compatible];

/// What a server does with a connection after reading its request.
pub(crate) type Response = Box<dyn FnOnce(&mut TcpStream) + Send>;

/// A server that answers each request with the next of its answers, and then closes its socket.
pub(crate) struct Server {
    url: String,
    received: Receiver<Received>,
}

/// A received request.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Server {
    pub(crate) fn new(answers: impl IntoIterator<Item = Response>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (sender, received) = mpsc::channel();
        let answers: Vec<Response> = answers.into_iter().collect();
        thread::spawn(move || {
            for answer in answers {
                let (mut socket, _) = listener.accept().unwrap();
                socket.set_nodelay(true).unwrap();
                socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
                sender.send(read_request(&mut socket)).unwrap();
                answer(&mut socket);
            }
        });
        Self { url, received }
    }

    pub(crate) fn model(&self, dialect: Dialect) -> HttpModel {
        HttpModel::new(self.options(dialect)).unwrap()
    }

    pub(crate) fn options(&self, dialect: Dialect) -> HttpOptions {
        let base_url = match dialect {
            Dialect::Anthropic => format!("{}/", self.url),
            Dialect::Gemini | Dialect::Bedrock => self.url.clone(),
            _ => format!("{}/v1", self.url),
        };
        HttpOptions {
            dialect,
            base_url,
            model: "m-1".into(),
            anthropic_version: AnthropicVersion::V2026_10_21,
            prefix_mismatch: None,
            window: None,
            key: Key::new(&format!(" {KEY}\n")),
            max_output: 256,
            tries: 3,
            first_wait: Duration::from_millis(5),
            max_wait: Duration::from_secs(5),
            silence: Duration::from_secs(20),
            limits: AnswerLimits::default(),
        }
    }

    /// All requests so far, in order.
    pub(crate) fn received(&self) -> Vec<Received> {
        self.received.try_iter().collect()
    }
}

fn read_request(socket: &mut TcpStream) -> Received {
    let (mut bytes, mut piece) = (Vec::new(), [0; 4_096]);
    loop {
        let count = socket.read(&mut piece).unwrap();
        assert!(count > 0, "the request ended too early");
        bytes.extend_from_slice(&piece[..count]);
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let length = head.to_lowercase();
        let length = length.split("content-length: ").nth(1);
        let length = length.map_or("0", |length| length.lines().next().unwrap());
        let length: usize = length.parse().unwrap();
        if bytes.len() == end + 4 + length {
            let body = String::from_utf8(bytes.split_off(end + 4)).unwrap();
            return Received { head, body };
        }
    }
}

/// An answer in one piece.
fn whole(status: &str, headers: &str, body: impl Into<String>) -> Response {
    let body = body.into();
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n");
    let answer = format!("{head}{headers}\r\n{body}");
    Box::new(move |socket| socket.write_all(answer.as_bytes()).unwrap())
}

/// A JSON body of this status.
pub(crate) fn body(status: &str, body: Value) -> Response {
    whole(status, "content-type: application/json\r\n", body.to_string())
}

/// The first half of a JSON body. Then the connection ends.
pub(crate) fn half(body: Value) -> Response {
    let body = body.to_string();
    let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: application/json\r\n";
    let head = format!("{head}content-length: {}\r\n\r\n", body.len());
    let sent = [head.as_bytes(), &body.as_bytes()[..body.len() / 2]].concat();
    Box::new(move |socket| socket.write_all(&sent).unwrap())
}

/// Sends the beginning of a streamed answer, in chunks of this many bytes, and no end.
fn begin(socket: &mut TcpStream, stream: &str, size: usize) {
    let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\
        content-type: text/event-stream; charset=utf-8\r\n\r\n";
    socket.write_all(head.as_bytes()).unwrap();
    for chunk in stream.as_bytes().chunks(size) {
        let mut bytes = format!("{:x}\r\n", chunk.len()).into_bytes();
        bytes.extend_from_slice(chunk);
        bytes.extend_from_slice(b"\r\n");
        socket.write_all(&bytes).unwrap();
    }
}

/// A streamed answer.
pub(crate) fn streamed(stream: impl Into<String>, size: usize) -> Response {
    let stream = stream.into();
    Box::new(move |socket| {
        begin(socket, &stream, size);
        // A client that has read the end of the answer may close the connection before the end of
        // the body.
        let _ = socket.write_all(b"0\r\n\r\n");
    })
}

/// Returns the events of an answer with this text.
fn events(dialect: Dialect, text: &str) -> String {
    match dialect {
        Dialect::Anthropic => {
            let usage = json!({"input_tokens": 7, "output_tokens": 1});
            let message = json!({"id": "msg_1", "type": "message", "role": "assistant",
                "model": "m-1", "content": [], "stop_reason": null, "usage": usage});
            let events = [
                json!({"type": "message_start", "message": message}),
                json!({"type": "content_block_start", "index": 0,
                    "content_block": {"type": "text", "text": ""}}),
                json!({"type": "content_block_delta", "index": 0,
                    "delta": {"type": "text_delta", "text": text}}),
                json!({"type": "content_block_stop", "index": 0}),
                json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"},
                    "usage": {"output_tokens": 3}}),
                json!({"type": "message_stop"}),
            ];
            let event = |event: &Value| format!("data: {event}\n\n");
            events.iter().map(event).collect()
        }
        _ => {
            let chunk = |delta: Value, reason: Value| {
                let choice = json!({"index": 0, "delta": delta, "finish_reason": reason});
                format!("data: {}\n\n", json!({"id": "c1", "choices": [choice]}))
            };
            let first = chunk(json!({"role": "assistant", "content": text}), Value::Null);
            format!("{first}{}data: [DONE]\n\n", chunk(json!({}), json!("stop")))
        }
    }
}

/// Returns the events of an answer that calls this tool with an empty input.
fn call_events(dialect: Dialect, name: &str) -> String {
    match dialect {
        Dialect::Anthropic => {
            let call = json!({"type": "tool_use", "id": "toolu_1", "name": name, "input": {}});
            let message = json!({"id": "msg_1", "type": "message", "role": "assistant",
                "model": "m-1", "content": [], "stop_reason": null,
                "usage": {"input_tokens": 7, "output_tokens": 1}});
            let events = [
                json!({"type": "message_start", "message": message}),
                json!({"type": "content_block_start", "index": 0, "content_block": call}),
                json!({"type": "content_block_stop", "index": 0}),
                json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"},
                    "usage": {"output_tokens": 3}}),
                json!({"type": "message_stop"}),
            ];
            events.iter().map(|event| format!("data: {event}\n\n")).collect()
        }
        _ => {
            let call = json!({"index": 0, "id": "toolu_1", "type": "function",
                "function": {"name": name, "arguments": "{}"}});
            let delta = json!({"role": "assistant", "tool_calls": [call]});
            let choice = json!({"index": 0, "delta": delta, "finish_reason": "tool_calls"});
            format!("data: {}\n\ndata: [DONE]\n\n", json!({"id": "c1", "choices": [choice]}))
        }
    }
}

/// Returns the events of an answer up to the one with the text.
fn events_until(dialect: Dialect, text: &str) -> String {
    let all = events(dialect, text);
    let said = all.find(text).unwrap();
    let end = all[said..].find("\n\n").unwrap();
    all[..said + end + 2].to_owned()
}

pub(crate) fn codec(dialect: Dialect) -> wire::Dialect {
    match dialect {
        Dialect::Anthropic => wire::Dialect::Anthropic,
        Dialect::OpenAi | Dialect::Compatible => wire::Dialect::OpenAiChat,
        Dialect::Responses => wire::Dialect::OpenAiResponses,
        Dialect::Gemini => wire::Dialect::Gemini,
        Dialect::Bedrock => wire::Dialect::BedrockConverse,
    }
}

pub(crate) fn ask() -> Request {
    Request::new(vec![Message::user("hi")])
}

/// Returns the deltas of an answer, and its end.
pub(crate) fn deltas_and_turn(
    model: &HttpModel,
    request: Request,
) -> (Vec<Delta>, Result<Answer, ModelError>) {
    let mut items: Vec<_> = run(model.stream(request).collect());
    let last = match items.pop().expect("an end") {
        Ok(Delta::Answer { answer }) => Ok(answer),
        Ok(delta) => panic!("ends with {delta:?}"),
        Err(error) => Err(error),
    };
    (items.into_iter().map(|item| item.expect("nothing follows an error")).collect(), last)
}

fn fails(model: &HttpModel) -> ModelError {
    deltas_and_turn(model, ask()).1.unwrap_err()
}

fn retryable(after: Option<u64>) -> ModelErrorKind {
    ModelErrorKind::Retryable { after: after.map(Duration::from_millis) }
}

#[test]
fn an_answer_is_read_however_it_is_divided() {
    for (dialect, folder) in BOTH.into_iter().zip(["anthropic", "openai-chat"]) {
        let cases = cases::read(format!("../../testdata/streams/{folder}")).unwrap();
        let cases = cases.iter().filter(|case| case.section("response").is_some());
        for (case, size) in cases.zip([1, 2, 7, 61].into_iter().cycle()) {
            let stream = case.section("stream").unwrap();
            let server = Server::new([streamed(stream, size)]);
            let (deltas, turn) = deltas_and_turn(&server.model(dialect), ask());
            let response = case.section("response").unwrap().as_bytes();
            assert_eq!(turn.unwrap(), codec(dialect).decode_response(response).unwrap());
            let bytes = futures::stream::iter([Ok::<_, std::io::Error>(stream)]);
            let whole: Vec<_> = run(threadfold::model::deltas_of(bytes, codec(dialect)).collect());
            let whole: Vec<Delta> = whole.into_iter().map(Result::unwrap).collect();
            assert_eq!(deltas, whole[..whole.len() - 1], "{}", case.name);
        }
    }
}

#[test]
fn a_request_has_the_path_and_headers_of_its_provider() {
    let rows = [
        (
            Dialect::Anthropic,
            "POST /v1/messages HTTP/1.1",
            [format!("x-api-key: {KEY}"), "anthropic-version: 2026-10-21".to_owned()],
            r#"{"model":"m-1","max_tokens":256,"messages":[{"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}]}],"stream":true}"#,
        ),
        (
            Dialect::OpenAi,
            "POST /v1/chat/completions HTTP/1.1",
            [format!("authorization: Bearer {KEY}"), "content-type: application/json".to_owned()],
            r#"{"stream":true,"stream_options":{"include_usage":true},"model":"m-1","max_completion_tokens":256,"messages":[{"role":"user","content":"hi"}]}"#,
        ),
        (
            Dialect::Compatible,
            "POST /v1/chat/completions HTTP/1.1",
            [format!("authorization: Bearer {KEY}"), "content-type: application/json".to_owned()],
            r#"{"stream":true,"stream_options":{"include_usage":true},"max_tokens":256,"model":"m-1","max_completion_tokens":256,"messages":[{"role":"user","content":"hi"}]}"#,
        ),
    ];
    for (dialect, line, headers, sent) in rows {
        let server = Server::new([streamed(events(dialect, "yes"), 99)]);
        let (_, turn) = deltas_and_turn(&server.model(dialect), ask());
        assert_eq!(turn.unwrap().text(), "yes");
        let received = server.received().remove(0);
        assert_eq!(received.head.lines().next(), Some(line));
        for header in &headers {
            assert!(
                received.head.lines().any(|line| line == header),
                "{header}\n{}",
                received.head
            );
        }
        assert_eq!(received.body, sent);
    }
}

#[test]
fn the_request_overrides_the_options_of_the_adapter() {
    for dialect in [Dialect::Anthropic, Dialect::OpenAi, Dialect::Compatible] {
        let came = match dialect {
            Dialect::Anthropic => json!({"model": "other", "max_tokens": 9, "stream": false,
                "metadata": {"user_id": "u"}, "messages": [{"role": "user", "content": "hi"}]}),
            _ => json!({"model": "other", "max_completion_tokens": 9, "stream": false,
                "user": "u", "messages": [{"role": "user", "content": "hi"}]}),
        };
        let request = codec(dialect).decode(&came, &DecodeOptions::default()).unwrap();
        let tool = ToolSpec::new("look", "Looks.", json!({"type": "object"}));
        let request = Request {
            tools: vec![tool].into(),
            tool_choice: Some(ToolChoice::Tool("look".into())),
            ..request
        };
        let server = Server::new([streamed(events(dialect, "yes"), 99)]);
        deltas_and_turn(&server.model(dialect), request).1.unwrap();
        let sent: Value = serde_json::from_str(&server.received().remove(0).body).unwrap();
        let limit = match dialect {
            Dialect::OpenAi => "max_completion_tokens",
            _ => "max_tokens",
        };
        assert_eq!(
            (&sent["stream"], &sent["model"], &sent[limit]),
            (&json!(true), &json!("m-1"), &json!(9))
        );
        let user = sent.get("user").unwrap_or(&sent["metadata"]["user_id"]);
        assert_eq!((user, sent["tools"].as_array().unwrap().len()), (&json!("u"), 1));
        assert!(sent["tool_choice"].to_string().contains("look"), "{sent}");
    }
}

#[test]
fn every_refusal_maps_to_its_kind() {
    let anthropic = |kind: &str, message: &str| json!({"type": "error", "error": {"type": kind, "message": message}});
    let openai = |code: Value, message: &str| json!({"error": {"message": message, "type": "invalid_request_error", "code": code}});
    let overflow = |limit, found, output| ModelErrorKind::Overflow {
        limit: Some(limit),
        found: Some(found),
        output,
    };
    let rows: Vec<(Dialect, &str, Value, ModelErrorKind)> = vec![
        (
            Dialect::Anthropic,
            "401 Unauthorized",
            anthropic("authentication_error", "invalid x-api-key"),
            ModelErrorKind::Authentication,
        ),
        (
            Dialect::Anthropic,
            "429 Too Many Requests",
            anthropic("rate_limit_error", "slow down"),
            retryable(None),
        ),
        (
            Dialect::Anthropic,
            "500 Internal Server Error",
            anthropic("api_error", "Internal server error"),
            retryable(None),
        ),
        (Dialect::Anthropic, "529 ", anthropic("overloaded_error", "Overloaded"), retryable(None)),
        (
            Dialect::Anthropic,
            "404 Not Found",
            anthropic("not_found_error", "model: m-1"),
            ModelErrorKind::Other,
        ),
        (
            Dialect::Anthropic,
            "400 Bad Request",
            anthropic("invalid_request_error", "prompt is too long: 210 tokens > 200 maximum"),
            overflow(200, 210, None),
        ),
        (
            Dialect::Compatible,
            "401 Unauthorized",
            openai(json!("invalid_api_key"), "Incorrect API key provided"),
            ModelErrorKind::Authentication,
        ),
        (
            Dialect::Compatible,
            "429 Too Many Requests",
            openai(json!("rate_limit_exceeded"), "slow down"),
            retryable(None),
        ),
        (
            Dialect::Compatible,
            "503 Service Unavailable",
            openai(Value::Null, "Loading model"),
            retryable(None),
        ),
        (
            Dialect::Compatible,
            "400 Bad Request",
            openai(
                json!("context_length_exceeded"),
                "This model's maximum context length is 200 tokens. However, you requested 210 tokens (190 in the messages, 20 in the completion).",
            ),
            overflow(200, 190, Some(20)),
        ),
        // Status 200, but no answer.
        (
            Dialect::Compatible,
            "200 OK",
            openai(json!("context_length_exceeded"), "maximum context length is 200 tokens"),
            ModelErrorKind::Overflow { limit: Some(200), found: None, output: None },
        ),
        (Dialect::Anthropic, "200 OK", json!([1, 2]), ModelErrorKind::Other),
    ];
    for (dialect, status, json, kind) in rows {
        let server = Server::new([body(status, json)]);
        let model = HttpModel::new(HttpOptions { tries: 1, ..server.options(dialect) }).unwrap();
        let error = fails(&model);
        assert_eq!(error.kind, kind, "{dialect:?} {status}: {error}");
        assert!(!error.message.is_blank(), "{dialect:?} {status}");
    }
}

#[test]
fn an_error_describes_a_response_that_is_not_an_answer() {
    let rows = [
        (
            "200 OK",
            "content-type: application/json\r\n",
            "{\"id\": ",
            ModelErrorKind::Other,
            "not JSON",
        ),
        (
            "200 OK",
            "content-type: text/html\r\n",
            "<p>Sign in",
            ModelErrorKind::Other,
            "<p>Sign in",
        ),
        ("502 Bad Gateway", "", "", retryable(None), "502 Bad Gateway"),
        ("304 Not Modified", "", "", ModelErrorKind::Other, "304 Not Modified"),
        (
            "429 Too Many Requests",
            "retry-after: 7\r\n",
            "slow down",
            retryable(Some(7_000)),
            "slow down",
        ),
    ];
    for (status, headers, text, kind, words) in rows {
        let server = Server::new([whole(status, headers, text)]);
        let options = server.options(Dialect::Anthropic);
        let error = fails(&HttpModel::new(HttpOptions { tries: 1, ..options }).unwrap());
        assert_eq!(error.kind, kind, "{status}: {error}");
        assert!(error.message.contains(words), "{error}");
    }
}

#[test]
fn an_answer_in_one_body_is_read_too() {
    for (dialect, folder) in BOTH.into_iter().zip(["anthropic", "openai-chat"]) {
        let case = cases::read(format!("../../testdata/streams/{folder}")).unwrap();
        let case = case.iter().find(|case| case.name == "text").unwrap();
        let response = case.section("response").unwrap();
        let server = Server::new([whole("200 OK", "content-type: application/json\r\n", response)]);
        let answer = deltas_and_turn(&server.model(dialect), ask()).1.unwrap();
        assert_eq!(answer, codec(dialect).decode_response(response.as_bytes()).unwrap());
    }
}

#[test]
fn an_incomplete_answer_is_reported_and_not_retried() {
    for dialect in BOTH {
        let first = events_until(dialect, "half");
        let unread = format!("{first}data: {{\"type\":\n\n");
        let cut: Response = Box::new(move |socket| begin(socket, &first, 40));
        for answer in [cut, streamed(unread, 40)] {
            let server = Server::new([answer, streamed(events(dialect, "again"), 99)]);
            let (deltas, last) = deltas_and_turn(&server.model(dialect), ask());
            assert_eq!(deltas, [Delta::Text { text: "half".into() }]);
            assert_eq!(last.unwrap_err().kind, retryable(None));
            assert_eq!(server.received().len(), 1);
        }
    }
}

#[test]
fn a_retryable_refusal_is_retried_after_the_stated_wait() {
    for dialect in BOTH {
        let overloaded = "data: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\
            \"message\":\"Overloaded\"}}\n\n";
        let server = Server::new([
            whole("429 Too Many Requests", "retry-after-ms: 150\r\n", "slow down"),
            // The answer began, but no delta of it was delivered.
            streamed(overloaded, 99),
            streamed(events(dialect, "yes"), 99),
        ]);
        let before = Instant::now();
        let (deltas, turn) = deltas_and_turn(&server.model(dialect), ask());
        assert_eq!(deltas, [Delta::Text { text: "yes".into() }]);
        assert_eq!(turn.unwrap().text(), "yes");
        assert!(before.elapsed() >= Duration::from_millis(150));
        let received = server.received();
        assert_eq!(received.len(), 3);
        assert!(received.iter().all(|request| request.body == received[0].body));
    }
}

#[test]
fn retries_are_limited_and_useless_retries_are_omitted() {
    let overloaded = || whole("529 ", "", "Overloaded");
    let rows: [(fn() -> Response, usize); 4] = [
        (|| whole("529 ", "", "Overloaded"), 3),
        (|| whole("401 Unauthorized", "", "no"), 1),
        (|| whole("400 Bad Request", "", "prompt is too long: 9 tokens > 8 maximum"), 1),
        (|| whole("429 Too Many Requests", "retry-after: 3600\r\n", "come back tomorrow"), 1),
    ];
    for (answer, count) in rows {
        let server = Server::new(iter::repeat_with(answer).take(3).chain([overloaded()]));
        let error = fails(&server.model(Dialect::Anthropic));
        assert_eq!(server.received().len(), count, "{error}");
    }
}

#[test]
fn the_error_for_an_unreachable_server_omits_its_address() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let server = Server::new([]);
    let base_url = format!("http://name:{KEY}@127.0.0.1:{port}");
    let options = HttpOptions { base_url, ..server.options(Dialect::Anthropic) };
    let error = fails(&HttpModel::new(options).unwrap());
    assert_eq!(error.kind, retryable(None));
    assert!(error.message.to_lowercase().contains("refused"), "{error}");
    assert!(!format!("{error:?}").contains(KEY), "{error:?}");
}

#[test]
fn a_slow_server_hits_the_timeout_of_the_request() {
    for told_first in [false, true] {
        let slow: Response = Box::new(move |socket| {
            if told_first {
                begin(socket, &events_until(Dialect::Anthropic, "half"), 500);
            }
            thread::sleep(Duration::from_secs(10));
        });
        let server = Server::new([slow, streamed(events(Dialect::Anthropic, "late"), 99)]);
        let before = Instant::now();
        let request = Request { timeout: Some(Duration::from_millis(300)), ..ask() };
        let error = deltas_and_turn(&server.model(Dialect::Anthropic), request).1.unwrap_err();
        assert_eq!(error.kind, retryable(None), "{error}");
        assert!(before.elapsed() < Duration::from_secs(5));
        assert_eq!(server.received().len(), 1);
    }
}

#[test]
fn a_server_that_stops_sending_hits_the_timeout() {
    let silent: Response = Box::new(|socket| {
        begin(socket, &events_until(Dialect::Compatible, "half")[..40], 40);
        thread::sleep(Duration::from_secs(10));
    });
    let server = Server::new([silent]);
    let (silence, tries) = (Duration::from_millis(300), 1);
    let options = HttpOptions { silence, tries, ..server.options(Dialect::Compatible) };
    let before = Instant::now();
    assert_eq!(fails(&HttpModel::new(options).unwrap()).kind, retryable(None));
    assert!(before.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_redirect_does_not_get_the_key() {
    for status in ["301 Moved Permanently", "307 Temporary Redirect", "308 Permanent Redirect"] {
        let elsewhere = Server::new([streamed(events(Dialect::Anthropic, "thanks"), 99)]);
        let location = format!("location: {}/v1/messages\r\n", elsewhere.url);
        let server = Server::new([whole(status, &location, "")]);
        let error = fails(&server.model(Dialect::Anthropic));
        assert_eq!(error.kind, ModelErrorKind::Other);
        assert!(error.message.contains(status), "{error}");
        assert_eq!(elsewhere.received.try_recv().unwrap_err(), TryRecvError::Empty);
    }
}

#[test]
fn the_key_is_never_printed_even_if_the_server_repeats_it() {
    let says = format!("Incorrect API key provided: {KEY}");
    for dialect in BOTH {
        let json =
            json!({"type": "error", "error": {"type": "authentication_error", "message": says}});
        let answers: [fn(Value) -> Response; 3] = [
            |json| body("401 Unauthorized", json),
            |json| body("200 OK", json),
            |json| streamed(format!("data: {json}\n\n"), 99),
        ];
        for answer in answers {
            let server = Server::new([answer(json.clone())]);
            let model = server.model(dialect);
            let error = fails(&model);
            assert!(error.message.contains("***"), "{error}");
            let causes = iter::successors(error.source(), |cause| (*cause).source());
            let causes: String = causes.map(|cause| format!("{cause} {cause:?}")).collect();
            let all =
                format!("{error} {error:?} {causes} {model:?} {:#?}", server.options(dialect));
            assert!(!all.contains(KEY), "{all}");
            assert!(server.received()[0].head.contains(KEY));
        }
    }
}

#[test]
fn a_key_that_is_invalid_in_a_header_is_refused_and_not_printed() {
    let server = Server::new([]);
    let key = Key::new(&format!("{KEY}\n{KEY}"));
    let options = HttpOptions { key, ..server.options(Dialect::Anthropic) };
    let error = HttpModel::new(options).unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Authentication);
    assert!(!format!("{error:?}").contains(KEY));
    assert!(Key::new(" \n").is_none());
}

/// A method and a path, and the answer to such a request.
type Route = (&'static str, Value);

/// Returns the window that a server with only these routes states, and the number of its requests.
fn asked_for_its_window(paths: &[Route]) -> (Option<u64>, Vec<String>) {
    let all = [
        "GET /props",
        "GET /v1/models",
        "GET /api/v0/models",
        "GET /model/info",
        "POST /api/show",
        "POST /api/generate",
        "GET /api/ps",
    ];
    let answer = |path: &&str| match paths.iter().find(|(known, _)| known == path) {
        Some((_, json)) => body("200 OK", json.clone()),
        None => body("404 Not Found", json!({"error": "not found"})),
    };
    let server = Server::new(all.iter().map(answer));
    let window = run(server.model(Dialect::Compatible).window_of_server());
    let path = |request: Received| {
        let line = request.head.lines().next().unwrap().to_owned();
        line.trim_end_matches(" HTTP/1.1").to_owned()
    };
    let asked = server.received().into_iter().map(path).collect();
    (window.map(ContextWindow::tokens), asked)
}

#[test]
fn a_local_server_is_asked_for_its_window_until_it_answers() {
    let props = json!({"default_generation_settings": {"n_ctx": 8_192}});
    let vllm = json!({"data": [{"id": "m-1", "max_model_len": 40_960}]});
    let lm_studio = json!({"data": [{"id": "m-1", "loaded_context_length": 4_096}]});
    let list = json!({"data": [{"id": "m-1", "object": "model"}]});
    let litellm = json!({"data": [
        {"model_name": "m-1", "model_info": {"max_input_tokens": 200_000}}]});
    let show = |parameters: &str| {
        json!({"parameters": parameters,
        "model_info": {"llama.context_length": 131_072}})
    };
    let ps = json!({"models": [{"name": "m-1", "context_length": 16_384}]});
    let loaded = json!({"done": true, "done_reason": "load"});
    let rows: [(&[Route], Option<u64>, usize); 8] = [
        (&[("GET /props", props)], Some(8_192), 1),
        (&[("GET /v1/models", vllm)], Some(40_960), 2),
        (&[("GET /v1/models", list.clone()), ("GET /api/v0/models", lm_studio)], Some(4_096), 3),
        (&[("GET /v1/models", list.clone()), ("GET /model/info", litellm)], Some(200_000), 4),
        (&[("POST /api/show", show("num_ctx 32768"))], Some(32_768), 5),
        (
            &[("POST /api/show", show("")), ("POST /api/generate", loaded), ("GET /api/ps", ps)],
            Some(16_384),
            7,
        ),
        // A server without model management has no loaded model.
        (&[("GET /v1/models", list)], None, 5),
        (&[], None, 5),
    ];
    for (paths, window, count) in rows {
        let (found, asked) = asked_for_its_window(paths);
        assert_eq!((found, asked.len()), (window, count), "{paths:?}: {asked:?}");
    }
}

#[test]
fn a_vendor_is_not_asked_for_its_window_and_an_absent_server_has_none() {
    for dialect in [Dialect::Anthropic, Dialect::OpenAi] {
        let server = Server::new([]);
        assert_eq!(run(server.model(dialect).window_of_server()), None);
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
    drop(listener);
    let options = Server::new([]).options(Dialect::Compatible);
    let model = HttpModel::new(HttpOptions { base_url, ..options }).unwrap();
    assert_eq!(run(model.window_of_server()), None);
}

#[test]
fn an_agent_has_the_window_that_the_adapter_was_given_or_the_published_one() {
    let server = Server::new([]);
    let window = |model: &str, window: Option<u64>| {
        let window = window.map(ContextWindow::new);
        let options = server.options(Dialect::Compatible);
        let options = HttpOptions { model: model.into(), window, ..options };
        let agent = ModelAgent::new(Arc::new(HttpModel::new(options).unwrap()));
        agent.context_window().map(ContextWindow::tokens)
    };
    assert_eq!(window("qwen3:4b", None), None);
    assert_eq!(window("qwen3:4b", Some(8_192)), Some(8_192));
    assert_eq!(window("anthropic/claude-sonnet-4.5", None), Some(200_000));
}

#[test]
fn a_dropped_stream_closes_the_connection() {
    let (sender, closed) = mpsc::channel();
    let endless: Response = Box::new(move |socket| {
        begin(socket, &events_until(Dialect::Compatible, "once upon a time"), 99);
        // The client sends nothing until it closes the connection.
        let end = socket.read(&mut [0; 9]);
        sender.send(end.is_ok_and(|count| count == 0)).unwrap();
    });
    let server = Server::new([endless]);
    let model = server.model(Dialect::Compatible);
    run(async {
        let mut deltas = model.stream(ask());
        assert!(matches!(deltas.next().await, Some(Ok(Delta::Text { .. }))));
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!(closed.try_recv(), Err(TryRecvError::Empty));
        drop(deltas);
        for _ in 0..500 {
            tokio::time::sleep(Duration::from_millis(10)).await;
            if let Ok(closed) = closed.try_recv() {
                assert!(closed);
                return;
            }
        }
        panic!("the connection is still open");
    });
}

#[test]
fn a_session_continues_after_its_thread_was_refused_as_too_long() {
    for dialect in BOTH {
        let refusal = match dialect {
            Dialect::Anthropic => {
                json!({"type": "error", "error": {"type": "invalid_request_error",
                "message": "prompt is too long: 17600 tokens > 16000 maximum"}})
            }
            _ => json!({"error": {"message": "too long", "code": "context_length_exceeded"}}),
        };
        let server = Server::new([
            body("400 Bad Request", refusal),
            streamed(events(dialect, "They spoke of bread."), 99),
            streamed(events(dialect, "Of bread, I think."), 99),
        ]);
        let turn = |n: usize| {
            let words = "Flour, water, salt and time. ".repeat(80);
            [
                Message::user(format!("Part {n}? {words}")),
                Message::assistant(format!("{n}: {words}")),
            ]
        };
        let thread: Vec<Message> = (0..6).flat_map(turn).collect();
        let agent = ModelAgent::new(Arc::new(server.model(dialect)));
        let summarize =
            Summarize { messages: 2, summary_tokens: 200, user_tokens: 50, ..Summarize::default() };
        let builder = Session::builder(agent).messages(thread);
        let mut session = builder.strategy(Arc::new(summarize)).build().unwrap();
        let (mut text, mut ends) = (String::new(), Vec::new());
        run(async {
            let mut events = session.send("What was it about?");
            while let Some(event) = events.next().await {
                match event.unwrap() {
                    SessionEvent::TextDelta { text: piece } => text.push_str(&piece),
                    SessionEvent::Compaction(CompactionEvent::Completed { report, .. }) => {
                        ends.push(report)
                    }
                    _ => {}
                }
            }
        });
        assert_eq!((text.as_str(), ends.len()), ("Of bread, I think.", 1));
        let received = server.received();
        let requests: Vec<Request> = received
            .iter()
            .map(|request| {
                let body = request.body.as_bytes();
                codec(dialect).decode_slice(body, &DecodeOptions::default()).unwrap()
            })
            .collect();
        assert_eq!(requests.len(), 3);
        for request in &requests {
            assert_eq!(legality::violations(&request.messages), []);
        }
        let (refused, accepted) = (&received[0].body, &received[2].body);
        // The compaction fills its target, half of the thread; the frame of the body comes on top.
        assert!(accepted.len() < refused.len() / 20 * 11, "{} {}", accepted.len(), refused.len());
        assert!(
            accepted.contains("They spoke of bread.") && accepted.contains("What was it about?")
        );
        // An answer of 200 tokens is asked for, or what fits beside the prompt in the window that a
        // refusal states.
        let most = requests[1].max_output.unwrap();
        match dialect {
            Dialect::Anthropic => assert!((25..200).contains(&most), "{most}"),
            _ => assert_eq!(most, 200),
        }
    }
}

/// Sends this chunk again and again in a body of this type, with a wait between two, until the
/// client stops reading.
fn endless(kind: &'static str, chunk: String, wait: Duration) -> Response {
    Box::new(move |socket| {
        let head = format!(
            "HTTP/1.1 200 OK\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\
             content-type: {kind}\r\n\r\n"
        );
        let chunk = format!("{:x}\r\n{chunk}\r\n", chunk.len());
        let mut written = socket.write_all(head.as_bytes());
        while written.is_ok() {
            written = socket.write_all(chunk.as_bytes());
            thread::sleep(wait);
        }
    })
}

/// Returns how an answer ends under these limits, and the deltas before the end.
fn within(answer: Response, limits: AnswerLimits) -> (Vec<Delta>, Result<Answer, ModelError>) {
    let server = Server::new([answer]);
    let options = HttpOptions { tries: 1, limits, ..server.options(Dialect::Compatible) };
    deltas_and_turn(&HttpModel::new(options).unwrap(), ask())
}

#[test]
fn an_endless_stream_of_events_is_cut_off() {
    let text = json!({"choices": [{"index": 0, "delta": {"content": "x".repeat(8_000)}}]});
    let wait = Duration::ZERO;
    let answer = endless("text/event-stream", format!("data: {text}\n\n"), wait);
    let limits = AnswerLimits { bytes: 1 << 20, ..AnswerLimits::default() };
    let (deltas, end) = within(answer, limits);
    let error = end.unwrap_err();
    assert_eq!(error.message, "the answer has more than 1048576 bytes");
    assert_eq!(error.kind, ModelErrorKind::Other);
    assert!((100..=131).contains(&deltas.len()), "{}", deltas.len());
}

#[test]
fn an_endless_event_is_cut_off() {
    let answer = endless("text/event-stream", "data: x\n".repeat(500), Duration::ZERO);
    let limits = AnswerLimits { event_bytes: 1 << 16, ..AnswerLimits::default() };
    let error = within(answer, limits).1.unwrap_err();
    assert_eq!(error.message, "an event of the stream has more than 65536 bytes");
}

#[test]
fn comments_do_not_extend_the_timeout() {
    let pause = Duration::from_millis(5);
    let quiet = Duration::from_millis(200);
    let comments = || endless("text/event-stream", ": wait\n\n".into(), pause);
    let began = Instant::now();
    let limits = AnswerLimits { idle: Some(quiet), ..AnswerLimits::default() };
    let error = within(comments(), limits).1.unwrap_err();
    assert_eq!(error.message, "no event of the answer came for 0.2 s");
    assert_eq!(error.kind, retryable(None));
    let limits = AnswerLimits { total: Some(quiet), ..AnswerLimits::default() };
    let error = within(comments(), limits).1.unwrap_err();
    assert_eq!(error.message, "the answer was not complete after 0.2 s");
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[test]
fn an_answer_in_small_pieces_hits_the_total_limit() {
    let (total, pause) = (Duration::from_millis(200), Duration::from_millis(5));
    let limits = AnswerLimits { total: Some(total), ..AnswerLimits::default() };
    for kind in ["text/event-stream", "application/json"] {
        let chunk = "data: {\"choices\":[]}\n\n";
        let answer = endless(kind, chunk.into(), pause);
        let error = within(answer, limits).1.unwrap_err();
        assert_eq!(error.message, "the answer was not complete after 0.2 s", "{kind}");
    }
}

#[test]
fn events_within_the_timeout_are_read() {
    let whole = events(Dialect::Compatible, "hello");
    let answer: Response = Box::new(move |socket| {
        begin(socket, "", 1);
        for event in whole.split_inclusive("\n\n") {
            thread::sleep(Duration::from_millis(450));
            let _ = socket.write_all(format!("{:x}\r\n{event}\r\n", event.len()).as_bytes());
        }
        let _ = socket.write_all(b"0\r\n\r\n");
    });
    let limits = AnswerLimits { idle: Some(Duration::from_secs(1)), ..AnswerLimits::default() };
    assert_eq!(within(answer, limits).1.unwrap().text(), "hello");
}

#[test]
fn media_types_are_case_insensitive() {
    let message = json!({"role": "assistant", "content": "hello"});
    let answer = json!({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]});
    for kind in ["Application/JSON", "application/json; charset=utf-8", " APPLICATION/JSON"] {
        let headers = format!("content-type: {kind}\r\n");
        let server = Server::new([whole("200 OK", &headers, answer.to_string())]);
        let (_, turn) = deltas_and_turn(&server.model(Dialect::Compatible), ask());
        assert_eq!(turn.unwrap().text(), "hello", "{kind}");
    }
}

/// A tool that returns its own name.
#[derive(Debug)]
struct Named(&'static str);

#[async_trait]
impl Tool for Named {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new(self.0, "Says its name.", json!({"type": "object"}))
    }

    async fn call(
        &self,
        _: &ToolUse,
        _: &ToolContext<'_>,
    ) -> Result<ToolOutput, Box<dyn std::error::Error + Send + Sync>> {
        Ok(format!("I am {:?}.", self.0).into())
    }
}

#[test]
fn a_renamed_tool_is_called_under_its_declared_name() {
    let tools = [("a b", "a_b"), ("multi_tool_use.parallel", "multi_tool_use_parallel")];
    for (dialect, (name, written)) in
        BOTH.into_iter().flat_map(|dialect| tools.map(|tool| (dialect, tool)))
    {
        let server = Server::new([
            streamed(call_events(dialect, written), 9),
            streamed(events(dialect, "So it is."), 99),
        ]);
        let agent = ModelAgent::new(Arc::new(server.model(dialect)));
        let tool: Arc<dyn Tool> = Arc::new(Named(name));
        let mut session = Session::builder(agent).tool(tool).build().unwrap();
        let reply = run(async { session.send("Who are you?").await }).unwrap();
        assert_eq!(reply.text, "So it is.");
        let called: Vec<_> = session.messages().iter().flat_map(Message::tool_uses).collect();
        assert_eq!(called.iter().map(|call| call.name.as_str()).collect::<Vec<_>>(), [name]);

        let received = server.received();
        assert_eq!(received.len(), 2);
        assert!(received[1].body.contains(&format!("I am {name:?}.").replace('"', "\\\"")));
        for Received { body, .. } in received {
            assert!(body.contains(&format!(r#""name":"{written}""#)), "{body}");
            assert!(!body.contains(&format!(r#""name":"{name}""#)), "{body}");
        }
    }
}

#[test]
fn deltas_have_the_declared_names_of_tools() {
    for dialect in BOTH {
        let server = Server::new([streamed(call_events(dialect, "a_b"), 9)]);
        let mut request = ask();
        Arc::make_mut(&mut request.tools).push(Named("a b").spec());
        let (deltas, turn) = deltas_and_turn(&server.model(dialect), request);
        assert_eq!(deltas[0], Delta::ToolUse { id: "toolu_1".into(), name: "a b".into() });
        assert_eq!(turn.unwrap().message.tool_uses().next().unwrap().name, "a b");
    }
}
