//! An agent that sends its whole thread each time and never compacts it.

use std::sync::Arc;
use threadfold::{
    Answer, ContentBlock, Message, Request, Role,
    message::{ToolResult, ToolSpec},
    wire::{Dialect, EncodeOptions, SseParser},
};

pub(crate) struct Agent {
    client: reqwest::Client,
    url: String,
    codec: Dialect,
    pub(crate) messages: Vec<Message>,
    streams: bool,
    pub(crate) tools: Vec<ToolSpec>,
    /// Whether it takes a stream without its last event for whole.
    pub(crate) is_lenient: bool,
}

impl Agent {
    pub(crate) fn new(server: &str, (path, codec): (&str, Dialect), streams: bool) -> Self {
        let client = super::client();
        let schema = serde_json::json!({"type": "object",
            "properties": {"path": {"type": "string"}}});
        Self {
            client,
            url: format!("{server}{path}"),
            codec,
            messages: Vec::new(),
            streams,
            tools: vec![ToolSpec::new("read", "Reads a file.", schema)],
            is_lenient: false,
        }
    }

    /// Goes on with another server.
    pub(crate) fn moved_to(&mut self, server: &str) {
        let path = self.url.rfind("/v1").map_or("", |at| &self.url[at..]);
        self.url = format!("{server}{path}");
    }

    /// Types a text and runs the calls of the model until it answers.
    pub(crate) async fn turn(&mut self, number: usize) -> Result<(), String> {
        let text = format!("Go on with part {number}. {}", "Read it with care. ".repeat(8));
        self.messages.push(Message::user(text));
        loop {
            let answer = self.ask().await?;
            let calls: Vec<_> = answer.message.tool_uses().cloned().collect();
            self.messages.push(answer.message);
            if calls.is_empty() {
                return Ok(());
            }
            let results = calls.iter().map(|call| {
                let text = format!("src/part_{number}.rs: {}", "fn part() {}\n".repeat(16));
                ContentBlock::from(ToolResult::text(call.id.clone(), text))
            });
            self.messages.push(Message::new(Role::User, results.collect()));
        }
    }

    pub(crate) fn body(&self) -> String {
        let mut request = Request::new(self.messages.clone()).with_system("You are careful.");
        request.max_output = Some(256);
        request.tools = Arc::new(self.tools.clone());
        let options = EncodeOptions::for_model("unheard-of");
        let body = self.codec.encode(&request, &options).body.as_str().to_owned();
        if self.codec.name() == "gemini" {
            // Its path says whether the answer is a stream.
            return body;
        }
        let stream = format!("{{\"stream\":{},", self.streams);
        body.replacen('{', &stream, 1)
    }

    /// A request with the headers that a client of this dialect sends.
    pub(crate) fn post(&self, url: &str) -> reqwest::RequestBuilder {
        let (header, key) = match self.codec.name() {
            "anthropic-messages" => ("x-api-key", "sk-secret"),
            "gemini" => ("x-goog-api-key", "AIza-secret"),
            _ => ("authorization", "Bearer sk-secret"),
        };
        let request = self.client.post(url).header("content-type", "application/json");
        request.header(header, key)
    }

    pub(crate) async fn ask(&self) -> Result<Answer, String> {
        let request = self.post(&self.url).body(self.body()).header("x-own", "kept");
        let answer = request.send().await.map_err(|error| error.to_string())?;
        let status = answer.status();
        let is_array =
            self.streams && answer.headers()["content-type"].as_bytes() == b"application/json";
        let body = answer.bytes().await.map_err(|error| error.to_string())?;
        if !status.is_success() {
            return Err(format!("{status}: {}", String::from_utf8_lossy(&body)));
        }
        if !self.streams {
            return self.codec.decode_response(&body).map_err(|error| error.to_string());
        }
        let (mut parser, mut builder) = (SseParser::default(), self.codec.answer_builder());
        if is_array {
            let events: Vec<serde_json::Value> = serde_json::from_slice(&body).unwrap();
            for event in events {
                builder.handle("", &event.to_string()).map_err(|error| error.to_string())?;
            }
        }
        parser.push(if is_array { &[] } else { &body });
        while let Some(event) = parser.next_event().map_err(|error| error.to_string())? {
            builder.handle(&event.0, &event.1).map_err(|error| error.to_string())?;
        }
        if self.is_lenient {
            let _ = builder.handle("", "[DONE]");
        }
        builder.finish().map_err(|error| error.to_string())
    }
}
