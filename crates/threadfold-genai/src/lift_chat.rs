//! Converting a body of Chat Completions to genai's types.

use genai::chat::{
    ChatMessage, ChatRequest, ChatRole, ContentPart, MessageContent, ToolCall, ToolResponse,
};
use serde_json::{Map, Value, json};
use threadfold::{message::Text, wire::Change};

use crate::{
    media::{self, CODEC},
    notes::{Notes, array, object, take_text, text},
    target::Dialect,
};

pub(crate) fn request(messages: Vec<Value>, dialect: Dialect, notes: &mut Notes) -> ChatRequest {
    let mut lifted = Lifted { dialect, notes, names: Vec::new(), messages: Vec::new() };
    for message in messages {
        lifted.add(object(message));
    }
    let Lifted { mut messages, .. } = lifted;
    let leading = messages.iter().take_while(|message| message.role == ChatRole::System).count();
    let system =
        messages.drain(..leading).filter_map(|message| message.content.into_joined_texts());
    let system: Vec<String> = system.collect();
    let system = (!system.is_empty()).then(|| system.join("\n\n"));
    if !matches!(dialect, Dialect::Chat | Dialect::Responses) {
        system_to_user(&mut messages, notes);
    }
    if dialect.alternates() {
        messages = alternating(messages, notes);
    }
    ChatRequest { system, messages, ..ChatRequest::default() }
}

/// Turns system messages into user messages, because some adapters would move all system messages
/// to the front.
fn system_to_user(messages: &mut [ChatMessage], notes: &mut Notes) {
    for message in messages.iter_mut().filter(|message| message.role == ChatRole::System) {
        message.role = ChatRole::User;
        notes.note(Change::SystemMoved);
    }
}

/// The text of a user message that is added where the provider requires one.
const GO_ON: &str = "Continue.";

/// Makes user and assistant messages alternate, with a user message first and last.
fn alternating(messages: Vec<ChatMessage>, notes: &mut Notes) -> Vec<ChatMessage> {
    let mut merged: Vec<ChatMessage> = Vec::new();
    for mut message in messages {
        if message.role == ChatRole::Tool {
            message.role = ChatRole::User;
        }
        match merged.last_mut() {
            Some(last) if last.role == message.role => {
                last.content.extend(message.content.into_parts());
            }
            Some(_) | None => merged.push(message),
        }
    }
    if merged.first().is_some_and(|message| message.role == ChatRole::Assistant) {
        merged.insert(0, ChatMessage::user(GO_ON));
        notes.note(Change::UserInserted);
    }
    if merged.last().is_some_and(|message| message.role == ChatRole::Assistant) {
        merged.push(ChatMessage::user(GO_ON));
        notes.note(Change::UserInserted);
    }
    merged
}

/// The messages converted so far.
struct Lifted<'n> {
    dialect: Dialect,
    notes: &'n mut Notes,
    /// The id and tool name of each call so far: Gemini needs the name of the tool in a result.
    names: Vec<(String, String)>,
    messages: Vec<ChatMessage>,
}

impl Lifted<'_> {
    fn add(&mut self, mut fields: Map<String, Value>) {
        let role = take_text(&mut fields, "role").unwrap_or_default();
        match role.as_str() {
            "system" | "developer" => self.say(ChatRole::System, &mut fields),
            "user" => self.say(ChatRole::User, &mut fields),
            "assistant" => self.answer(&mut fields),
            "tool" => self.result(&mut fields),
            other => {
                self.notes.drop_block(other, "genai has no form for it");
                fields.clear();
            }
        }
        self.notes.drop_fields(CODEC, &fields);
    }

    fn say(&mut self, role: ChatRole, fields: &mut Map<String, Value>) {
        let parts = self.content(fields.remove("content"));
        if !parts.is_empty() {
            self.messages.push(ChatMessage::new(role, MessageContent::from_parts(parts)));
        }
    }

    fn content(&mut self, content: Option<Value>) -> Vec<ContentPart> {
        if let Some(Value::String(text)) = content {
            return if text.is_empty() { Vec::new() } else { vec![ContentPart::Text(text)] };
        }
        let parts = array(content).into_iter();
        parts.filter_map(|part| media::part(object(part), self.dialect, self.notes)).collect()
    }

    fn answer(&mut self, fields: &mut Map<String, Value>) {
        let mut parts = self.reasoning(fields);
        parts.extend(self.content(fields.remove("content")));
        for call in array(fields.remove("tool_calls")) {
            parts.extend(self.call(object(call)).map(ContentPart::ToolCall));
        }
        if fields.remove("function_call").is_some() {
            self.notes.drop_block("function_call", "genai has no form for it");
        }
        if let Some(text) = take_text(fields, "refusal") {
            parts.push(ContentPart::Text(text));
            self.notes.note(Change::BlockAsText { kind: "refusal".into() });
        }
        fields.retain(|_, value| !value.is_null());
        if !parts.is_empty() {
            self.messages.push(ChatMessage::assistant(MessageContent::from_parts(parts)));
        }
    }

    /// Returns the reasoning that the provider accepts back. genai writes it as
    /// `reasoning_content`, and sends `reasoning_details` unchanged.
    fn reasoning(&mut self, fields: &mut Map<String, Value>) -> Vec<ContentPart> {
        let texts = ["reasoning_content", "reasoning"];
        let mut parts: Vec<ContentPart> = texts
            .iter()
            .filter_map(|key| take_text(fields, key))
            .map(ContentPart::ReasoningContent)
            .collect();
        let details = fields.get("reasoning_details").and_then(Value::as_array);
        let are_known = details.is_some_and(|details| {
            let mut kinds = details.iter().map(|detail| text(detail, "type"));
            kinds.all(|kind| kind.is_some_and(|kind| kind.starts_with("reasoning.")))
        });
        if are_known {
            let details = array(fields.remove("reasoning_details")).into_iter();
            parts.extend(details.map(|detail| ContentPart::from_custom(detail, None)));
        }
        if self.dialect != Dialect::Chat && !parts.is_empty() {
            let reason = "genai's adapter does not send it back";
            self.notes.note(Change::ReasoningDropped { reason: reason.into() });
            parts.clear();
        }
        parts
    }

    fn call(&mut self, mut fields: Map<String, Value>) -> Option<ToolCall> {
        let kind = take_text(&mut fields, "type");
        let id = take_text(&mut fields, "id").unwrap_or_default();
        if kind.as_deref() != Some("function") {
            let kind = kind.unwrap_or_else(|| "tool_use".to_owned());
            self.notes.drop_block(&kind, "genai has no form for it");
            return None;
        }
        let mut function = fields.remove("function").map(object).unwrap_or_default();
        let name = take_text(&mut function, "name").unwrap_or_default();
        let arguments = take_text(&mut function, "arguments").unwrap_or_default();
        self.notes.drop_fields(CODEC, &fields);
        self.notes.drop_fields(CODEC, &function);
        let arguments = self.arguments(&id, arguments);
        self.names.push((id.clone(), name.clone()));
        let thought_signatures = None;
        Some(ToolCall { call_id: id, fn_name: name, fn_arguments: arguments, thought_signatures })
    }

    /// Returns the arguments as a JSON tree, because genai would quote a text again.
    fn arguments(&mut self, id: &str, text: String) -> Value {
        if text.trim().is_empty() {
            return json!({});
        }
        match serde_json::from_str(&text) {
            Ok(Value::Object(arguments)) => Value::Object(arguments),
            _ => {
                self.notes.note(Change::InputWrapped { id: Text::from(id) });
                json!({ "input": text })
            }
        }
    }

    fn result(&mut self, fields: &mut Map<String, Value>) {
        let id = take_text(fields, "tool_call_id").unwrap_or_default();
        let content = match fields.remove("content") {
            Some(Value::String(text)) => text,
            content => {
                let parts = self.content(content);
                let texts = parts.into_iter().filter_map(ContentPart::into_text);
                texts.collect::<Vec<_>>().join("\n\n")
            }
        };
        let called = self.names.iter().rev().find(|(call, _)| *call == id);
        let fn_name = called.map(|(_, name)| name.clone());
        let response = ToolResponse { call_id: id, fn_name, content };
        let together = self.dialect != Dialect::Ollama && self.dialect != Dialect::Text;
        match self.messages.last_mut() {
            Some(last) if together && last.role == ChatRole::Tool => last.content.push(response),
            Some(_) | None => self.messages.push(ChatMessage::tool(response)),
        }
    }
}
