//! A provider on loopback: it answers by a script, has a small window, and refuses what is illegal.

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
};

use http_body_util::{BodyExt, Full};
use hyper::{
    Request, Response,
    body::{Bytes, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use threadfold::{
    TokenCounter, legality,
    message::Message,
    tokens::ByteEstimate,
    wire::{DecodeOptions, Dialect},
};
use tokio::{net::TcpListener, task::JoinHandle};

/// The path of each dialect.
pub(crate) const DIALECTS: [(&str, Dialect); 3] = [
    ("/v1/messages", Dialect::Anthropic),
    ("/v1/chat/completions", Dialect::OpenAiChat),
    ("/v1/responses", Dialect::OpenAiResponses),
];

/// The paths of Gemini: an answer in one body, a stream of events, and a stream as an array.
pub(crate) const GEMINI: [(&str, Dialect); 3] = [
    ("/v1beta/models/gemini-0:generateContent", Dialect::Gemini),
    ("/v1beta/models/gemini-0:streamGenerateContent?alt=sse", Dialect::Gemini),
    ("/v1beta/models/gemini-0:streamGenerateContent", Dialect::Gemini),
];

pub(crate) struct Upstream {
    pub(crate) address: SocketAddr,
    pub(crate) seen: Arc<Seen>,
    task: JoinHandle<()>,
}

/// What the provider saw.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    window: AtomicU64,
    /// It counts a token for so many bytes, and says so in its answers.
    pub(crate) bytes_per_token: AtomicU64,
    pub(crate) reports: AtomicBool,
    /// It refuses with status 200, in the stream.
    pub(crate) refuses_in_streams: AtomicBool,
    /// It refuses with this status; 0 is 400.
    pub(crate) refuses_with: AtomicUsize,
    /// It refuses this many further requests, whatever their size, with these words.
    pub(crate) lies: AtomicUsize,
    pub(crate) lie: Mutex<&'static str>,
    /// The sizes of all bodies with a thread.
    pub(crate) sizes: Mutex<Vec<usize>>,
    /// Its streams end without their last event.
    pub(crate) never_says_done: AtomicBool,
    /// It declares its streams as plain text.
    pub(crate) says_plain: AtomicBool,
    /// It refuses every other body.
    pub(crate) only: Mutex<Option<String>>,
    pub(crate) answered: AtomicUsize,
    pub(crate) refused: AtomicUsize,
    pub(crate) illegal: Mutex<Vec<String>>,
    /// The path, the headers and the body of the last request.
    pub(crate) last: Mutex<(String, String, Bytes)>,
}

impl Upstream {
    pub(crate) async fn start(window: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Seen {
            window: window.into(),
            bytes_per_token: 3.into(),
            lie: Mutex::new("prompt is too long"),
            ..Seen::default()
        });
        let (state, mut connections) = (Arc::clone(&seen), tokio::task::JoinSet::new());
        let task = tokio::spawn(async move {
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                let seen = Arc::clone(&state);
                connections.spawn(async move {
                    let service = service_fn(|request| {
                        let seen = Arc::clone(&seen);
                        async move { Ok::<_, Infallible>(seen.answer(request).await) }
                    });
                    let socket = TokioIo::new(socket);
                    let _ = http1::Builder::new().serve_connection(socket, service).await;
                });
            }
        });
        Self { address, seen, task }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Seen {
    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let path = request.uri().path().to_owned();
        let is_sse = request.uri().query() == Some("alt=sse");
        let headers = format!("{:?}", request.headers());
        let packs = headers.contains("gzip");
        let body = request.into_body().collect().await.unwrap().to_bytes();
        *self.last.lock().unwrap() = (path.clone(), headers, body.clone());
        let of_path = path.trim_end_matches("/count_tokens");
        let known = DIALECTS.iter().chain(&GEMINI);
        let path_of = |known: &str| known.split('?').next() == Some(of_path);
        let Some((_, codec)) = known.into_iter().find(|(known, _)| path_of(known)) else {
            let mut reply = reply(200, "application/json", "{\"unknown\":true}");
            if packs {
                reply.headers_mut().insert("content-encoding", "gzip".parse().unwrap());
            }
            return reply;
        };
        let request = match codec.decode_slice(&body, &DecodeOptions::default()) {
            Ok(request) => request,
            Err(error) => return self.illegal(error.to_string()),
        };
        if self.only.lock().unwrap().as_ref().is_some_and(|only| only.as_bytes() != body) {
            return self.illegal("this thread is refused".to_owned());
        }
        let bytes = self.bytes_per_token.load(Ordering::Relaxed);
        let tokens = ByteEstimate::new(bytes).request(&request);
        if path.ends_with("/count_tokens") {
            return reply(200, "application/json", &json!({"input_tokens": tokens}).to_string());
        }
        if let Some(violation) = legality::violations(&request.messages).first() {
            return self.illegal(violation.to_string());
        }
        self.sizes.lock().unwrap().push(body.len());
        if self.lies.load(Ordering::Relaxed) > 0 {
            self.lies.fetch_sub(1, Ordering::Relaxed);
            self.refused.fetch_add(1, Ordering::Relaxed);
            let error = json!({"type": "error", "error": {"type": "invalid_request_error",
                "message": *self.lie.lock().unwrap()}});
            return reply(400, "application/json", &error.to_string());
        }
        let window = self.window.load(Ordering::Relaxed);
        let streams = String::from_utf8_lossy(&body).contains("\"stream\":true")
            || path.ends_with(":streamGenerateContent");
        let says_plain = self.says_plain.load(Ordering::Relaxed);
        let kind = match codec.name() == "gemini" && !is_sse {
            true => "application/json",
            false if says_plain => "text/plain",
            false => "text/event-stream",
        };
        if tokens > window {
            self.refused.fetch_add(1, Ordering::Relaxed);
            if streams && self.refuses_in_streams.load(Ordering::Relaxed) {
                let stream = refusing_stream(codec.name(), tokens, window);
                return reply(200, kind, &if_array(&stream, kind));
            }
            let error = too_long(codec.name(), tokens, window);
            // Google's streams have their errors in an array too.
            let is_array = streams && codec.name() == "gemini" && !is_sse;
            let error = if is_array { format!("[{error}]") } else { error };
            let status = self.refuses_with.load(Ordering::Relaxed);
            return reply(
                if status == 0 { 400 } else { status as u16 },
                "application/json",
                &error,
            );
        }
        let number = self.answered.fetch_add(1, Ordering::Relaxed);
        let prompt = if self.reports.load(Ordering::Relaxed) { tokens } else { 7 };
        let script = Script::of(number, prompt, request.messages.last().unwrap());
        match streams {
            true => {
                let mut stream = script.stream(codec.name());
                if self.never_says_done.load(Ordering::Relaxed) {
                    stream = stream.replace("data: [DONE]\n\n", "");
                }
                reply(200, kind, &if_array(&stream, kind))
            }
            false => reply(200, "application/json", &script.whole(codec.name()).to_string()),
        }
    }

    fn illegal(&self, words: String) -> Response<Full<Bytes>> {
        self.illegal.lock().unwrap().push(words.clone());
        reply(400, "application/json", &json!({"error": {"message": words}}).to_string())
    }
}

fn reply(status: u16, kind: &str, body: &str) -> Response<Full<Bytes>> {
    let reply = Response::builder().status(status).header("content-type", kind);
    reply.body(Full::new(Bytes::from(body.to_owned()))).unwrap()
}

fn too_long(codec: &str, tokens: u64, window: u64) -> String {
    let error = match codec {
        "anthropic-messages" => json!({"type": "error", "error": {"type": "invalid_request_error",
            "message": format!("prompt is too long: {tokens} tokens > {window} maximum")}}),
        "gemini" => json!({"error": {"code": 400, "status": "INVALID_ARGUMENT", "message": format!(
            "The input token count ({tokens}) exceeds the maximum number of tokens allowed ({window}).")}}),
        _ => json!({"error": {"code": "context_length_exceeded", "type": "invalid_request_error",
            "message": format!("This model's maximum context length is {window} tokens. However, \
                your messages resulted in {tokens} tokens.")}}),
    };
    error.to_string()
}

/// The beginning of a stream, and then the refusal.
fn refusing_stream(codec: &str, tokens: u64, window: u64) -> String {
    let error = too_long(codec, tokens, window);
    match codec {
        "anthropic-messages" => {
            let message = json!({"type": "message_start", "message": {"id": "msg_1", "role": "assistant",
                "content": [], "usage": {"input_tokens": 0, "output_tokens": 0}}});
            format!("event: message_start\ndata: {message}\n\nevent: error\ndata: {error}\n\n")
        }
        "openai-chat" | "gemini" => format!("data: {error}\n\n"),
        _ => {
            let error: Value = error.parse().unwrap();
            let created = json!({"type": "response.created",
                "response": {"id": "resp_1", "status": "in_progress", "output": []}});
            let failed = json!({"type": "response.failed",
                "response": {"id": "resp_1", "status": "failed", "error": error["error"]}});
            format!(
                "event: response.created\ndata: {created}\n\n\
                event: response.failed\ndata: {failed}\n\n"
            )
        }
    }
}

/// The events of a stream as the array that Gemini sends without `alt=sse`.
fn if_array(stream: &str, kind: &str) -> String {
    if kind != "application/json" {
        return stream.to_owned();
    }
    let events: Vec<&str> = stream.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
    format!("[{}]", events.join("\n,\r\n"))
}

/// One answer: a call for what the user typed, a text for the result of a call.
struct Script {
    number: usize,
    /// The tokens of the prompt.
    prompt: u64,
    text: Option<String>,
}

impl Script {
    fn of(number: usize, prompt: u64, last: &Message) -> Self {
        let has_result = last.tool_results().next().is_some();
        let text = format!("Part {number} is done. {}", "It was read and understood. ".repeat(8));
        Self { number, prompt, text: has_result.then_some(text) }
    }

    fn id(&self) -> String {
        format!("call_{}", self.number)
    }

    fn input(&self) -> Value {
        json!({"path": format!("src/part_{}.rs", self.number)})
    }

    fn whole(&self, codec: &str) -> Value {
        let (id, input) = (self.id(), self.input());
        match (codec, &self.text) {
            ("anthropic-messages", text) => {
                let (block, reason) = match text {
                    Some(text) => (json!({"type": "text", "text": text}), "end_turn"),
                    None => (
                        json!({"type": "tool_use", "id": id, "name": "read", "input": input}),
                        "tool_use",
                    ),
                };
                json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "m",
                    "content": [block], "stop_reason": reason,
                    "usage": {"input_tokens": self.prompt, "output_tokens": 1}})
            }
            ("openai-chat", text) => {
                let (message, reason) = match text {
                    Some(text) => (json!({"role": "assistant", "content": text}), "stop"),
                    None => {
                        let call = json!({"id": id, "type": "function",
                            "function": {"name": "read", "arguments": input.to_string()}});
                        (
                            json!({"role": "assistant", "content": null, "tool_calls": [call]}),
                            "tool_calls",
                        )
                    }
                };
                json!({"id": "c1", "choices": [
                    {"index": 0, "message": message, "finish_reason": reason}],
                    "usage": {"prompt_tokens": self.prompt, "completion_tokens": 1}})
            }
            ("gemini", text) => {
                let part = match text {
                    Some(text) => json!({"text": text}),
                    None => json!({"functionCall": {"name": "read", "args": input}}),
                };
                json!({"candidates": [{"content": {"role": "model", "parts": [part]},
                    "finishReason": "STOP", "index": 0}],
                    "usageMetadata": {"promptTokenCount": self.prompt, "candidatesTokenCount": 1}})
            }
            (_, text) => json!({"id": "resp_1", "object": "response", "status": "completed",
                "output": [self.item(text.as_deref())],
                "usage": {"input_tokens": self.prompt, "output_tokens": 1}}),
        }
    }

    /// The output item of the Responses dialect.
    fn item(&self, text: Option<&str>) -> Value {
        match text {
            Some(text) => json!({"id": "msg_1", "type": "message", "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": text, "annotations": []}]}),
            None => json!({"id": format!("fc_{}", self.number), "type": "function_call",
                "status": "completed", "call_id": self.id(), "name": "read",
                "arguments": self.input().to_string()}),
        }
    }

    fn stream(&self, codec: &str) -> String {
        let whole = self.whole(codec);
        let events = match codec {
            "anthropic-messages" => {
                let block = &whole["content"][0];
                let (start, delta) = match &self.text {
                    Some(text) => (
                        json!({"type": "text", "text": ""}),
                        json!({"type": "text_delta", "text": text}),
                    ),
                    None => {
                        let mut start = block.clone();
                        start["input"] = json!({});
                        let input = self.input().to_string();
                        (start, json!({"type": "input_json_delta", "partial_json": input}))
                    }
                };
                let mut message = whole.clone();
                (message["content"], message["stop_reason"]) = (json!([]), Value::Null);
                vec![
                    json!({"type": "message_start", "message": message}),
                    json!({"type": "content_block_start", "index": 0, "content_block": start}),
                    json!({"type": "content_block_delta", "index": 0, "delta": delta}),
                    json!({"type": "content_block_stop", "index": 0}),
                    json!({"type": "message_delta", "delta": {"stop_reason": whole["stop_reason"]},
                        "usage": {"output_tokens": 3}}),
                    json!({"type": "message_stop"}),
                ]
            }
            "openai-chat" => {
                let choice = &whole["choices"][0];
                let mut delta = choice["message"].clone();
                if let Some(calls) = delta["tool_calls"].as_array_mut() {
                    calls[0]["index"] = json!(0);
                }
                let reason = &choice["finish_reason"];
                vec![json!({"id": "c1", "object": "chat.completion.chunk", "choices": [
                    {"index": 0, "delta": delta, "finish_reason": reason}],
                    "usage": whole["usage"]})]
            }
            "gemini" => vec![whole],
            _ => {
                let item = &whole["output"][0];
                vec![
                    json!({"type": "response.output_item.added", "output_index": 0, "item": item}),
                    json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
                    json!({"type": "response.completed", "response": whole}),
                ]
            }
        };
        let mut stream = String::new();
        for event in events {
            if let Some(kind) = event["type"].as_str() {
                stream.push_str(&format!("event: {kind}\n"));
            }
            stream.push_str(&format!("data: {event}\n\n"));
        }
        if codec == "openai-chat" {
            stream.push_str("data: [DONE]\n\n");
        }
        stream
    }
}
