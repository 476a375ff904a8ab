//! Renders messages as plain text for the summarising model.

use super::options::FoldBatches;
use crate::{
    message::{ContentBlock, Message, Role, Text},
    render::{RenderOptions, render},
};

/// Marks a system message, which is sent as a user message.
const SYSTEM: &str = "[system message]";
/// Ends a message that the thread keeps.
const KEPT: &str = "[This message stays in the conversation, word for word.]";

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PlainOptions {
    /// Whether the thread keeps the message.
    pub(super) kept: bool,
    /// Whether calls and results have their ids.
    pub(super) tool_ids: bool,
}

/// Returns the message with text blocks only, or `None` if it has nothing to show. Calls, results,
/// images and other blocks are rendered under a heading with their kind. Reasoning, reminders and
/// checkpoints are omitted, and so are summaries, which become batches unchanged.
pub(super) fn plain(
    message: &Message,
    PlainOptions { kept, tool_ids }: PlainOptions,
    options: &FoldBatches,
) -> Option<Message> {
    let options = RenderOptions {
        tool_ids,
        tool_result_cap: options.tool_result_cap,
        tool_input_cap: options.tool_input_cap,
        ..RenderOptions::default()
    };
    let texts = message.content.iter().filter_map(|block| text_of(message.role, block, &options));
    let mut content: Vec<ContentBlock> = texts.map(ContentBlock::text).collect();
    if content.is_empty() {
        return None;
    }
    if kept {
        content.push(ContentBlock::text(KEPT));
    }
    Some(match message.role {
        Role::User | Role::Assistant => Message::new(message.role, content),
        Role::System => {
            content.insert(0, ContentBlock::text(SYSTEM));
            Message::new(Role::User, content)
        }
    })
}

/// The text of a block; `None` if it is blank or omitted.
fn text_of(role: Role, block: &ContentBlock, options: &RenderOptions) -> Option<Text> {
    if matches!(block, ContentBlock::Summary(_)) {
        return None;
    }
    let text = match block.as_text() {
        Some(text) => text.clone(),
        None => {
            let rendered = render(&[Message::new(role, vec![block.clone()])], options);
            // The first heading is the role, which the message has already.
            let (_, under_heading) = rendered.text().split_once("\n\n")?;
            under_heading.trim_end().into()
        }
    };
    (!text.is_blank()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Json, Thinking, ToolResult, ToolUse};

    fn written(message: &Message) -> Option<(Role, Vec<String>)> {
        let plain = plain(message, PlainOptions::default(), &FoldBatches::default())?;
        let texts = plain.content.iter().filter_map(ContentBlock::as_text);
        Some((plain.role, texts.map(ToString::to_string).collect()))
    }

    #[test]
    fn calls_and_results_are_named_and_keep_their_roles() {
        let call = ToolUse::new("t1", "read", Json::parse(r#"{"path":"a.txt"}"#).unwrap());
        let content =
            vec![Thinking::new("hm", None).into(), ContentBlock::text("Reading."), call.into()];
        let call = "## tool_use: read\n\n```json\n{\"path\":\"a.txt\"}\n```";
        let expected = (Role::Assistant, vec!["Reading.".to_owned(), call.to_owned()]);
        assert_eq!(written(&Message::new(Role::Assistant, content)), Some(expected));
        let result = Message::new(Role::User, vec![ToolResult::error("t1", "gone").into()]);
        let expected = (Role::User, vec!["## tool_result (error)\n\n```\ngone\n```".to_owned()]);
        assert_eq!(written(&result), Some(expected));
    }

    #[test]
    fn a_message_with_nothing_to_show_is_none() {
        let content = vec![
            ContentBlock::reminder("be brief"),
            ContentBlock::checkpoint("aaaaaa".parse().unwrap()),
        ];
        assert_eq!(written(&Message::new(Role::User, content)), None);
    }

    #[test]
    fn a_system_message_becomes_a_marked_user_message() {
        let expected = (Role::User, vec![SYSTEM.to_owned(), "Answer in verse.".to_owned()]);
        assert_eq!(written(&Message::system("Answer in verse.")), Some(expected));
    }
}
