//! The approximate size of a rendering, to allocate its buffer once.

use super::options::RenderOptions;
use crate::message::{ContentBlock, MediaSource, Message, ToolResult};

/// The approximate bytes of a block's heading and fences.
const FRAME: usize = 64;

/// Returns the approximate size of a rendering in bytes, from the lengths of its texts.
pub(super) fn estimated_bytes(messages: &[Message], options: &RenderOptions) -> usize {
    let blocks = messages.iter().flat_map(|message| &message.content);
    let texts = blocks.map(|block| FRAME.saturating_add(block_bytes(block, options)));
    texts.fold(messages.len().saturating_mul(16), usize::saturating_add)
}

fn block_bytes(block: &ContentBlock, options: &RenderOptions) -> usize {
    let shown = |yes: bool, length: usize| if yes { length } else { 0 };
    let capped = |length: usize, cap: Option<usize>| length.min(cap.unwrap_or(length));
    match block {
        ContentBlock::Text(block) => block.text.len(),
        ContentBlock::Summary(summary) => summary.text.len(),
        ContentBlock::Thinking(thinking) => shown(options.thinking, thinking.text.len()),
        ContentBlock::SystemReminder(block) => shown(options.reminders, block.text.len()),
        ContentBlock::ContextUpdate(update) => shown(options.context_texts, update.text.len()),
        ContentBlock::Document(document) => {
            let MediaSource::Text { text, .. } = &document.source else { return 0 };
            capped(shown(options.document_texts, text.len()), options.tool_result_cap)
        }
        ContentBlock::ToolUse(call) => capped(call.input.as_str().len(), options.tool_input_cap),
        ContentBlock::ServerToolUse(call) => {
            capped(call.input.as_str().len(), options.tool_input_cap)
        }
        ContentBlock::ToolResult(result) => capped(result_bytes(result), options.tool_result_cap),
        // Mostly encrypted or binary data, which is not rendered.
        ContentBlock::ServerToolResult(_)
        | ContentBlock::Image(_)
        | ContentBlock::RedactedThinking(_)
        | ContentBlock::Checkpoint(_)
        | ContentBlock::Opaque(_) => 0,
    }
}

fn result_bytes(result: &ToolResult) -> usize {
    let texts = result.content.iter().filter_map(ContentBlock::as_text);
    texts.map(|text| text.len()).fold(0, usize::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{
        ContextUpdate, Document, Image, Json, Role, SystemReminder, Thinking, ToolUse,
    };

    /// Asserts the estimate for a message with only this block, without its frame.
    fn room(block: impl Into<ContentBlock>, options: &RenderOptions) -> usize {
        let message = Message::new(Role::User, vec![block.into()]);
        estimated_bytes(&[message], options) - FRAME - 16
    }

    #[test]
    fn room_is_made_for_what_is_shown() {
        let text = "x".repeat(1_000);
        let input = Json::parse(&format!("[\"{text}\"]")).unwrap();
        let all = RenderOptions {
            thinking: true,
            reminders: true,
            context_texts: true,
            document_texts: true,
            ..RenderOptions::default()
        };
        let capped =
            RenderOptions { tool_result_cap: Some(300), tool_input_cap: Some(200), ..all.clone() };
        let source =
            |text: &str| MediaSource::Text { media_type: "text/plain".into(), text: text.into() };
        let blocks: [(ContentBlock, [usize; 3]); 8] = [
            (ContentBlock::text(text.as_str()), [1_000; 3]),
            (Thinking::new(text.as_str(), None).into(), [0, 1_000, 1_000]),
            (SystemReminder::new(text.as_str()).into(), [0, 1_000, 1_000]),
            (ContextUpdate::new(vec![], text.as_str()).into(), [0, 1_000, 1_000]),
            (Document::new(source(&text)).into(), [0, 1_000, 300]),
            (ToolUse::new("t", "f", input).into(), [1_004, 1_004, 200]),
            (ToolResult::text("t", text.as_str()).into(), [1_000, 1_000, 300]),
            (Image::new(source(&text)).into(), [0; 3]),
        ];
        for (block, expected) in blocks {
            let options = [&RenderOptions::default(), &all, &capped];
            assert_eq!(options.map(|options| room(block.clone(), options)), expected, "{block:?}");
        }
    }
}
