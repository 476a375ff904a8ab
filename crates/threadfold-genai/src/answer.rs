//! Converting events of genai's stream to deltas.

use genai::chat::{ChatStreamEvent, StreamEnd, ToolCall};
use serde_json::Value;
use threadfold::{
    Answer, ContentBlock,
    message::{Delta, Json, Text, ToolInput},
};

use crate::{
    from_genai::answer_from_genai,
    target::{Dialect, Target},
};

/// An answer that is being received.
#[derive(Debug)]
pub(crate) struct Streamed {
    target: Target,
    /// The calls so far, each with its input so far. genai repeats that input with every piece, and
    /// finally parses it as JSON, which changes the text of numbers.
    calls: Vec<(Text, String)>,
}

impl Streamed {
    pub(crate) fn new(target: Target) -> Self {
        Self { target, calls: Vec::new() }
    }

    pub(crate) fn handle(&mut self, event: ChatStreamEvent) -> Vec<Delta> {
        match event {
            ChatStreamEvent::Chunk(chunk) => vec![Delta::Text { text: chunk.content.into() }],
            ChatStreamEvent::ReasoningChunk(chunk) => {
                vec![Delta::Thinking { text: chunk.content.into() }]
            }
            ChatStreamEvent::ToolCallChunk(chunk) => self.call(chunk.tool_call),
            ChatStreamEvent::End(end) => vec![Delta::Answer { answer: self.turn(end) }],
            ChatStreamEvent::Start
            | ChatStreamEvent::ThoughtSignatureChunk(_)
            | ChatStreamEvent::Heartbeat => Vec::new(),
        }
    }

    fn call(&mut self, call: ToolCall) -> Vec<Delta> {
        let mut deltas = Vec::new();
        let id = Text::from(call.call_id);
        let so_far = match call.fn_arguments {
            Value::String(text) => text,
            Value::Null => String::new(),
            arguments
            @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                arguments.to_string()
            }
        };
        let at = self.calls.iter().rposition(|(known, _)| *known == id);
        let at = at.unwrap_or_else(|| {
            deltas.push(Delta::ToolUse { id: id.clone(), name: call.fn_name.into() });
            self.calls.push((id.clone(), String::new()));
            self.calls.len() - 1
        });
        let Some((_, known)) = self.calls.get_mut(at) else { return deltas };
        if let Some(more) = so_far.get(known.len()..).filter(|more| !more.is_empty()) {
            deltas.push(Delta::ToolInput { id, text: more.into() });
            known.push_str(more);
        }
        deltas
    }

    fn turn(&mut self, end: StreamEnd) -> Answer {
        let mut turn = answer_from_genai(end, &self.target);
        for block in &mut turn.message.make_mut().content {
            let ContentBlock::ToolUse(call) = block else { continue };
            let came = self.calls.iter().find(|(id, _)| *id == call.id);
            let Some((_, text)) = came.filter(|(_, text)| !text.trim().is_empty()) else {
                continue;
            };
            match Json::parse(text) {
                Ok(json) if self.target.dialect == Dialect::Anthropic => {
                    call.input = ToolInput::Json(json);
                }
                Ok(_) | Err(_) => call.input = ToolInput::from_text(text.as_str()),
            }
        }
        turn
    }
}
