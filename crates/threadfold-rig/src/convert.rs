//! rig's messages as threadfold's, which are read and never sent, and new messages as rig's.

use std::collections::HashMap;

use rig_core::message::{
    AssistantContent, AssistantMessage, CallId, DocumentSourceKind, Image, Message, ToolName,
    ToolResultContent, UserContent,
};
use serde_json::Value;
use threadfold::{
    ContentBlock, Message as Ours, Role,
    message::{Json, Thinking, ToolResult, ToolUse, markup},
};

/// Returns a message as threadfold reads it: texts, calls, results and reasoning. Media stand as a
/// note of their size, because a summary cannot show them.
pub(crate) fn read(message: &Message) -> Ours {
    match message {
        Message::System { content } => Ours::system(content.as_str()),
        Message::User { content } => Ours::new(Role::User, content.iter().map(asked).collect()),
        Message::Assistant(answer) => {
            Ours::new(Role::Assistant, answer.content.iter().map(answered).collect())
        }
    }
}

fn asked(content: &UserContent) -> ContentBlock {
    match content {
        UserContent::Text(text) => ContentBlock::text(text.text.as_str()),
        UserContent::ToolResult(result) => {
            let content = result.content.iter().map(returned).collect();
            let id = result.call.wire();
            ToolResult { is_error: result.is_error, ..ToolResult::new(&*id, content) }.into()
        }
        UserContent::Image(image) => shown("image", &image.data),
        UserContent::Audio(audio) => shown("recording", &audio.data),
        UserContent::Video(video) => shown("video", &video.data),
        UserContent::Document(document) => match &document.data {
            DocumentSourceKind::String(text) => ContentBlock::text(text.as_str()),
            data => shown("document", data),
        },
    }
}

fn answered(content: &AssistantContent) -> ContentBlock {
    match content {
        AssistantContent::Text(text) => ContentBlock::text(text.text.as_str()),
        AssistantContent::ToolCall(call) => {
            let input = Json::from(Value::Object(call.function.arguments.clone()));
            ToolUse::new(&*call.id.wire(), call.function.name.as_str(), input).into()
        }
        AssistantContent::Reasoning(reasoning) => {
            Thinking::new(reasoning.text.as_str(), None).into()
        }
        AssistantContent::Image(Image { data, .. }) => shown("image", data),
        // An item of the provider, or a block of a later rig. Its size is not known.
        _ => ContentBlock::text("[an item of the provider]"),
    }
}

fn returned(content: &ToolResultContent) -> ContentBlock {
    match content {
        ToolResultContent::Text(text) => ContentBlock::text(text.text.as_str()),
        ToolResultContent::Image(image) => shown("image", &image.data),
        ToolResultContent::Json { value } => ContentBlock::text(value.to_string()),
    }
}

fn shown(kind: &str, data: &DocumentSourceKind) -> ContentBlock {
    match data {
        DocumentSourceKind::Url(url) => ContentBlock::text(format!("[{kind}: {url}]")),
        _ => ContentBlock::text(format!("[{kind}]")),
    }
}

/// Returns a message that a compaction wrote or shortened as one of rig. `names` has the tool of each
/// call, which rig's results state. `None` for a message without content.
pub(crate) fn write(message: &Ours, names: &HashMap<String, ToolName>) -> Option<Message> {
    match message.role {
        Role::System => {
            let texts: Vec<&str> = message.texts().map(|text| text.as_str()).collect();
            Some(Message::system(texts.join("\n\n")))
        }
        Role::User => {
            let content = message.content.iter().filter_map(|block| asked_again(block, names));
            let content: Vec<UserContent> = content.collect();
            (!content.is_empty()).then_some(Message::User { content })
        }
        Role::Assistant => {
            let content: Vec<AssistantContent> =
                message.content.iter().filter_map(answered_again).collect();
            (!content.is_empty()).then(|| Message::Assistant(AssistantMessage::new(content)))
        }
    }
}

fn asked_again(block: &ContentBlock, names: &HashMap<String, ToolName>) -> Option<UserContent> {
    match block {
        ContentBlock::ToolResult(result) => {
            let id = result.tool_use_id.as_str();
            let texts = result.content.iter().filter_map(|block| text(block, Role::User));
            let content = texts.map(ToolResultContent::text).collect();
            Some(UserContent::tool_result(CallId::from_wire(id), names.get(id)?.clone(), content))
        }
        block => text(block, Role::User).map(UserContent::text),
    }
}

fn answered_again(block: &ContentBlock) -> Option<AssistantContent> {
    match block {
        ContentBlock::ToolUse(call) => {
            let input = serde_json::from_str(call.input.as_str()).ok()?;
            let name = ToolName::new(call.name.as_str()).ok()?;
            Some(AssistantContent::tool_call(call.id.as_str(), name, input))
        }
        block => text(block, Role::Assistant).map(AssistantContent::text),
    }
}

/// The text of a block, as a provider without a form for the block gets it.
fn text(block: &ContentBlock, role: Role) -> Option<String> {
    match block {
        ContentBlock::Text(text) => Some(text.text.to_string()),
        ContentBlock::SystemReminder(reminder) => Some(markup::reminder(&reminder.text)),
        ContentBlock::ContextUpdate(update) => Some(markup::context_update(update)),
        ContentBlock::Summary(summary) => Some(markup::summary(role, summary).to_string()),
        ContentBlock::Image(_)
        | ContentBlock::Document(_)
        | ContentBlock::Thinking(_)
        | ContentBlock::RedactedThinking(_)
        | ContentBlock::ToolUse(_)
        | ContentBlock::ToolResult(_)
        | ContentBlock::ServerToolUse(_)
        | ContentBlock::ServerToolResult(_)
        | ContentBlock::Checkpoint(_)
        | ContentBlock::Opaque(_) => None,
    }
}

/// The tool of each call in an answer.
pub(crate) fn names(message: &Message) -> impl Iterator<Item = (String, ToolName)> {
    let content = match message {
        Message::Assistant(answer) => answer.content.as_slice(),
        Message::System { .. } | Message::User { .. } => &[],
    };
    content.iter().filter_map(|content| match content {
        AssistantContent::ToolCall(call) => {
            Some((call.id.wire().into_owned(), call.function.name.clone()))
        }
        _ => None,
    })
}
