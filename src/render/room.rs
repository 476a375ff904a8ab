//! How large a rendering will be, about, so that its buffer does not have to grow.

use super::options::RenderOptions;
use crate::message::{ContentBlock, MediaSource, Message, ToolResult};

/// What headings and fences of a block take, about.
const FRAME: usize = 64;

/// Returns about how many bytes the messages will need, from the lengths of their texts.
pub(super) fn needed(messages: &[Message], options: &RenderOptions) -> usize {
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
        // Most of it is encrypted or binary.
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
