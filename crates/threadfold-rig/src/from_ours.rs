//! Messages of threadfold as messages of rig, for requests for summaries.

use std::collections::HashMap;

use rig_core::message::{
    AssistantContent, AssistantMessage, CallId, Message, Text, ToolCall, ToolFunction, ToolName,
    ToolResult, ToolResultContent, UserContent,
};
use threadfold::{ContentBlock, Role, message, wire::text_of};

/// Returns the messages of a request for a summary. Reasoning and parts that only their provider
/// understands are left out; pictures and documents give way to a note.
pub(crate) fn messages(messages: &[message::Message]) -> Vec<Message> {
    let mut names: HashMap<&str, &str> = HashMap::new();
    let mut converted = Vec::with_capacity(messages.len());
    for message in messages {
        names.extend(message.tool_uses().map(|call| (call.id.as_str(), call.name.as_str())));
        match message.role {
            Role::System => {
                let texts: Vec<String> =
                    message.content.iter().filter_map(|block| words(message.role, block)).collect();
                converted.push(Message::system(texts.join("\n\n")));
            }
            Role::User => {
                let content: Vec<UserContent> =
                    message.content.iter().filter_map(|block| user(block, &names)).collect();
                converted.extend((!content.is_empty()).then_some(Message::User { content }));
            }
            Role::Assistant => {
                let content: Vec<AssistantContent> =
                    message.content.iter().filter_map(assistant).collect();
                let answer = || Message::Assistant(AssistantMessage::new(content.clone()));
                converted.extend((!content.is_empty()).then(answer));
            }
        }
    }
    converted
}

fn user(block: &ContentBlock, names: &HashMap<&str, &str>) -> Option<UserContent> {
    let ContentBlock::ToolResult(result) = block else {
        return words(Role::User, block).map(UserContent::text);
    };
    let name = names.get(result.tool_use_id.as_str()).copied().unwrap_or("tool");
    let texts: Vec<String> =
        result.content.iter().filter_map(|block| words(Role::User, block)).collect();
    Some(UserContent::ToolResult(ToolResult {
        call: CallId::from_wire(result.tool_use_id.to_string()),
        name: ToolName::new(name).ok()?,
        content: vec![ToolResultContent::Text(Text::new(texts.join("\n")))],
        is_error: result.is_error,
    }))
}

fn assistant(block: &ContentBlock) -> Option<AssistantContent> {
    if let ContentBlock::ToolUse(use_of) = block {
        return call(use_of).map(AssistantContent::ToolCall);
    }
    words(Role::Assistant, block).map(AssistantContent::text)
}

/// Returns a call; `None` if its tool has no name.
pub(crate) fn call(call: &message::ToolUse) -> Option<ToolCall> {
    let name = ToolName::new(call.name.to_string()).ok()?;
    let function = ToolFunction::parse(name, call.input.as_str());
    Some(ToolCall::from_wire(call.id.to_string(), function))
}

/// The text of a block: a note for a picture or a document, which a summary cannot show.
fn words(role: Role, block: &ContentBlock) -> Option<String> {
    match block {
        ContentBlock::Image(_) => Some("[a picture]".to_owned()),
        ContentBlock::Document(_) => Some("[a document]".to_owned()),
        ContentBlock::Checkpoint(_) => None,
        block => text_of(role, None, block).map(|text| text.to_string()),
    }
}
