//! Messages of threadfold as messages of goose, for requests for summaries.

use goose_provider_types::conversation::message::{Message, MessageContent};
use rmcp::model::{CallToolRequestParams, CallToolResult, ContentBlock as GooseBlock};
use serde_json::{Map, Value};
use threadfold::{ContentBlock, Role, message, wire::text_of};

/// Returns the messages of a request for a summary. Reasoning and parts that only their provider
/// understands are left out; pictures and documents give way to a note.
pub(crate) fn messages(messages: &[message::Message]) -> Vec<Message> {
    let converted = messages.iter().filter_map(|message| {
        let content: Vec<MessageContent> =
            message.content.iter().filter_map(|block| content(message.role, block)).collect();
        let from = match message.role {
            Role::Assistant => Message::assistant(),
            Role::User | Role::System => Message::user(),
        };
        (!content.is_empty()).then(|| Message { content, ..from })
    });
    converted.collect()
}

/// Returns the texts of the system prompt.
pub(crate) fn system(messages: &[message::Message]) -> String {
    let blocks = messages.iter().flat_map(|message| &message.content);
    blocks.filter_map(|block| words(Role::System, block)).collect::<Vec<_>>().join("\n\n")
}

fn content(role: Role, block: &ContentBlock) -> Option<MessageContent> {
    match block {
        ContentBlock::ToolUse(of) => Some(call(of)),
        ContentBlock::ToolResult(result) => {
            let texts = result.content.iter().filter_map(|block| words(role, block));
            let texts = texts.map(GooseBlock::text).collect();
            let result_of = match result.is_error {
                true => CallToolResult::error(texts),
                false => CallToolResult::success(texts),
            };
            Some(MessageContent::tool_response(result.tool_use_id.as_str(), Ok(result_of)))
        }
        block => words(role, block).map(MessageContent::text),
    }
}

/// Returns a call.
pub(crate) fn call(call: &message::ToolUse) -> MessageContent {
    let arguments = match serde_json::from_str(call.input.as_str()) {
        Ok(Value::Object(arguments)) => arguments,
        _ => Map::new(),
    };
    let params = CallToolRequestParams::new(call.name.to_string()).with_arguments(arguments);
    MessageContent::tool_request(call.id.as_str(), Ok(params))
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
