//! The adapter for Ollama's native `/api/chat`, which has no codec. The chapter
//! `docs/guide/provider-adapter.md` shows this file, line by line.

use std::{
    collections::HashMap,
    fmt, io,
    sync::{Arc, Mutex, PoisonError},
};

use futures::{StreamExt, TryFutureExt, future::BoxFuture, stream::BoxStream};
use serde_json::{Value, json};
use threadfold::message::{ContentBlock, Delta, MediaSource, ModelError, ModelErrorKind};
use threadfold::message::{StopReason, Text, Thinking, ToolChoice, ToolUse, Usage};
use threadfold::model::{self, AnswerLimits, Clock, Framing};
use threadfold::wire::{AnswerBuilder, classify_error, error_within, text_of};
use threadfold::{Answer, ContextWindow, Message, Model, Request, Role, async_trait};

pub(crate) type Bytes = BoxStream<'static, io::Result<Vec<u8>>>;

/// Your HTTP client: posts a body to `/api/chat` and returns the status and the body of the answer.
pub(crate) trait Client: fmt::Debug + Send + Sync {
    fn post(&self, body: String) -> BoxFuture<'_, io::Result<(u16, Bytes)>>;
}

#[derive(Debug)]
pub(crate) struct Ollama {
    pub(crate) client: Arc<dyn Client>,
    /// `std_clock()`, or that of your runtime.
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) window: ContextWindow,
    /// The newest request that was answered: its newest message, its bytes, the server's count.
    pub(crate) answered: Mutex<Option<(usize, Message, usize, u64)>>,
}

#[async_trait]
impl Model for Ollama {
    async fn complete(&self, request: Request) -> Result<Answer, ModelError> {
        model::answer_of(self.stream(request)).await
    }

    fn stream(&self, request: Request) -> BoxStream<'_, Result<Delta, ModelError>> {
        self.ask(request).try_flatten_stream().boxed()
    }

    fn context_window(&self) -> Option<ContextWindow> {
        Some(self.window)
    }
}

impl Ollama {
    async fn ask(
        &self,
        request: Request,
    ) -> Result<BoxStream<'_, Result<Delta, ModelError>>, ModelError> {
        let body = body(&request, self.window);
        let sent = body.len();
        let (status, mut bytes) = self.client.post(body).await.map_err(broken)?;
        if status != 200 {
            let mut text = Vec::new();
            while let Some(piece) = bytes.next().await {
                text.extend(piece.map_err(broken)?);
            }
            return Err(classify_error(status, &text));
        }
        let clock = Arc::clone(&self.clock);
        let own = format!("call_{}_{}", clock.now().0, request.messages.len());
        let (reader, limits) = (Reader { own, ..Reader::default() }, AnswerLimits::default());
        let deltas = model::deltas_by(bytes, Framing::JsonLines, Box::new(reader), limits, clock);
        Ok(deltas.map(move |delta| self.whole(delta?, &request.messages, sent)).boxed())
    }

    /// A server that does not know `truncate` cuts a long prompt silently. Then a prompt that grew has
    /// too few tokens: of what was added, at most 16 bytes can be one token. What was compacted may
    /// have fewer: its prompt is shorter, or another message has the place of the newest one.
    fn whole(&self, delta: Delta, thread: &[Message], sent: usize) -> Result<Delta, ModelError> {
        let Delta::Answer { answer } = &delta else { return Ok(delta) };
        let (Some(usage), Some(newest)) = (answer.usage, thread.last()) else { return Ok(delta) };
        let mut answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        let now = (thread.len() - 1, newest.clone(), sent, usage.input);
        if let Some((at, before, bytes, tokens)) = answered.replace(now) {
            let stays = thread.get(at).is_some_and(|message| message.ptr_eq(&before));
            let least = tokens + (sent.saturating_sub(bytes) / 16) as u64;
            if stays && sent >= bytes && usage.input < least {
                let (limit, found) = (Some(usage.input), Some(least));
                let kind = ModelErrorKind::Overflow { limit, found, output: None };
                return Err(ModelError::new(kind, "the server cut the prompt").with_usage(usage));
            }
        }
        Ok(delta)
    }
}

fn broken(error: io::Error) -> ModelError {
    let kind = ModelErrorKind::Retryable { after: None };
    // A client's error says no more than "error decoding response body"; its sources say why.
    ModelError::new(kind, error.to_string()).with_source(error)
}

fn body(request: &Request, window: ContextWindow) -> String {
    let (mut messages, mut names) = (Vec::new(), HashMap::new());
    for message in request.system.iter().chain(request.messages.iter()) {
        write(message, &mut names, &mut messages);
    }
    // The API has no field that forbids calls.
    let may_call = request.tool_choice != Some(ToolChoice::None);
    let tools = request.tools.iter().filter(|_| may_call).map(|tool| {
        let parameters = tool.input_schema.to_value().unwrap_or_default();
        json!({"type": "function", "function": {"name": tool.name,
            "description": tool.description, "parameters": parameters}})
    });
    let options =
        json!({"num_ctx": window.tokens(), "num_predict": request.max_output.unwrap_or(1_024)});
    json!({"model": "qwen3", "messages": messages, "tools": tools.collect::<Vec<_>>(),
        "stream": true, "truncate": false, "shift": false, "options": options})
    .to_string()
}

/// Results become messages of the role `tool`; everything else of a message becomes one message.
fn write(message: &Message, names: &mut HashMap<Text, Text>, written: &mut Vec<Value>) {
    let (mut texts, mut thinking, mut images, mut calls) = (vec![], vec![], vec![], vec![]);
    for block in &message.content {
        match block {
            ContentBlock::ToolResult(result) => {
                let texts: Vec<&str> =
                    result.content.iter().filter_map(|it| Some(it.as_text()?.as_str())).collect();
                written.push(json!({"role": "tool", "tool_call_id": result.tool_use_id,
                    "tool_name": names.get(&result.tool_use_id), "content": texts.join("\n")}));
            }
            ContentBlock::ToolUse(call) => {
                names.insert(call.id.clone(), call.name.clone());
                let input: Value = serde_json::from_str(call.input.as_str()).unwrap_or_default();
                calls.push(
                    json!({"id": call.id, "function": {"name": call.name, "arguments": input}}),
                );
            }
            ContentBlock::Thinking(thought) => thinking.push(thought.text.as_str()),
            ContentBlock::Image(image) => match &image.source {
                MediaSource::Base64 { data, .. } => images.push(data),
                _ => texts.push("(an image that cannot be sent)".into()),
            },
            block => texts.extend(text_of(message.role, message.author.as_ref(), block)),
        }
    }
    if texts.is_empty() && images.is_empty() && calls.is_empty() {
        return;
    }
    let content = texts.iter().map(|text: &Text| text.as_str()).collect::<Vec<_>>().join("\n\n");
    let mut object = json!({"role": message.role, "content": content});
    let beside = [
        ("thinking", json!(thinking.join("\n\n"))),
        ("images", json!(images)),
        ("tool_calls", json!(calls)),
    ];
    for (key, value) in
        beside.into_iter().filter(|(_, value)| *value != json!("") && *value != json!([]))
    {
        object[key] = value;
    }
    written.push(object);
}

/// Reads an answer from its lines.
#[derive(Debug, Default)]
struct Reader {
    /// With what the ids of calls begin that the server gave none. No id may come twice in a thread.
    own: String,
    text: String,
    thinking: String,
    calls: Vec<ToolUse>,
    end: Option<(StopReason, Option<Usage>)>,
}

impl AnswerBuilder for Reader {
    fn handle(&mut self, _: &str, line: &str) -> Result<Vec<Delta>, ModelError> {
        if let Some(error) = error_within(line.as_bytes()) {
            return Err(error);
        }
        // A connection that breaks leaves half a line.
        let line: Value = serde_json::from_str(line).map_err(|_| ModelError::cut_short())?;
        let (message, mut deltas) = (&line["message"], Vec::new());
        if let Some(text) = message["thinking"].as_str().filter(|text| !text.is_empty()) {
            self.thinking.push_str(text);
            deltas.push(Delta::Thinking { text: text.into() });
        }
        if let Some(text) = message["content"].as_str().filter(|text| !text.is_empty()) {
            self.text.push_str(text);
            deltas.push(Delta::Text { text: text.into() });
        }
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            // Old servers give calls no id.
            let own = format!("{}_{}", self.own, self.calls.len());
            let id: Text = call["id"].as_str().map_or(own.into(), Text::from);
            let name: Text = call["function"]["name"].as_str().unwrap_or_default().into();
            let input = &call["function"]["arguments"];
            self.calls.push(ToolUse::new(id.clone(), name.clone(), input.clone()));
            deltas.push(Delta::ToolUse { id: id.clone(), name });
            deltas.push(Delta::ToolInput { id, text: input.to_string().into() });
        }
        if line["done"] == true {
            let reason = match line["done_reason"].as_str() {
                Some("length") => StopReason::MaxTokens,
                _ if !self.calls.is_empty() => StopReason::ToolUse,
                Some("stop") | None => StopReason::EndTurn,
                Some(other) => StopReason::Other(other.into()),
            };
            let count = |key: &str| line[key].as_u64();
            let usage = count("prompt_eval_count")
                .map(|input| Usage::new(input, count("eval_count").unwrap_or(0)));
            self.end = Some((reason, usage));
        }
        Ok(deltas)
    }

    fn is_complete(&self) -> bool {
        self.end.is_some()
    }

    fn finish(&mut self) -> Result<Answer, ModelError> {
        let (reason, usage) = self.end.take().ok_or_else(ModelError::cut_short)?;
        let thinking = Some(&self.thinking).filter(|text| !text.is_empty());
        let text = Some(&self.text).filter(|text| !text.is_empty());
        let mut content: Vec<ContentBlock> = Vec::new();
        content.extend(thinking.map(|text| Thinking::new(text.as_str(), None).into()));
        content.extend(text.map(|text| ContentBlock::text(text.as_str())));
        content.extend(self.calls.drain(..).map(ContentBlock::from));
        Ok(Answer::new(Message::new(Role::Assistant, content), reason, usage))
    }
}
