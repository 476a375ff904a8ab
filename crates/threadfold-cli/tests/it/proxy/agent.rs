//! An agent that sends its whole thread each time and never compacts it.

use std::sync::Arc;
use threadfold::{
    ContentBlock, Message, Request, Role, Turn, WireFormat,
    message::{ToolResult, ToolSpec},
    wire::{EncodeOptions, SseParser},
};

pub(crate) struct Agent {
    client: reqwest::Client,
    url: String,
    codec: &'static dyn WireFormat,
    pub(crate) messages: Vec<Message>,
    streams: bool,
}

impl Agent {
    pub(crate) fn new(
        server: &str,
        (path, codec): (&str, &'static dyn WireFormat),
        streams: bool,
    ) -> Self {
        let client = super::client();
        Self { client, url: format!("{server}{path}"), codec, messages: Vec::new(), streams }
    }

    /// Goes on with another server.
    pub(crate) fn moved_to(&mut self, server: &str) {
        let path = self.url.rfind("/v1/").map_or("", |at| &self.url[at..]);
        self.url = format!("{server}{path}");
    }

    /// Types a text and runs the calls of the model until it answers.
    pub(crate) async fn turn(&mut self, number: usize) -> Result<(), String> {
        let text = format!("Go on with part {number}. {}", "Read it with care. ".repeat(8));
        self.messages.push(Message::user(text));
        loop {
            let turn = self.ask().await?;
            let calls: Vec<_> = turn.message.tool_uses().cloned().collect();
            self.messages.push(turn.message);
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
        let schema = serde_json::json!({"type": "object",
            "properties": {"path": {"type": "string"}}});
        Arc::make_mut(&mut request.tools).push(ToolSpec::new("read", "Reads a file.", schema));
        let options = EncodeOptions::for_model("unheard-of");
        let body = self.codec.encode(&request, &options).body.as_str().to_owned();
        let stream = format!("{{\"stream\":{},", self.streams);
        body.replacen('{', &stream, 1)
    }

    pub(crate) async fn ask(&self) -> Result<Turn, String> {
        let request = self.client.post(&self.url).body(self.body());
        let request = request.header("x-api-key", "sk-secret").header("x-own", "kept");
        let answer = request.send().await.map_err(|error| error.to_string())?;
        let status = answer.status();
        let body = answer.bytes().await.map_err(|error| error.to_string())?;
        if !status.is_success() {
            return Err(format!("{status}: {}", String::from_utf8_lossy(&body)));
        }
        if !self.streams {
            return self.codec.decode_response(&body).map_err(|error| error.to_string());
        }
        let (mut parser, mut builder) = (SseParser::default(), self.codec.turn_builder());
        parser.push(&body);
        while let Some(event) = parser.next_event().map_err(|error| error.to_string())? {
            builder.handle(&event.0, &event.1).map_err(|error| error.to_string())?;
        }
        builder.finish().map_err(|error| error.to_string())
    }
}
