//! The side of `agent-sdk`.

use std::sync::Arc;

use agent_sdk::{
    context::{
        CompactionConfig, CompactionResult, ContextCompactor, LlmContextCompactor, TokenEstimator,
    },
    llm,
};
use futures::executor::block_on;
use threadfold::{ContentBlock, Message, Role};

use yardstick::{row, thread};

use crate::{
    measured::{Asked, Measured, TAIL},
    model::AtOnce,
};

/// Converts the thread to the peer's messages. A checkpoint has no counterpart there.
pub(crate) fn history(messages: &[Message]) -> Vec<llm::Message> {
    messages.iter().map(converted).collect()
}

/// The check that the peer's loop runs before each model call.
pub(crate) fn turn(history: &[llm::Message], repetitions: usize) -> Measured {
    let compactor = compactor(AtOnce::new());
    let full = |()| compactor.needs_compaction(history);
    row("agent-sdk: needs_compaction", repetitions, || (), full).into()
}

/// A walk over the whole history.
pub(crate) fn walk(history: &[llm::Message], repetitions: usize) -> Measured {
    let walk = |()| TokenEstimator::estimate_history(history);
    row("agent-sdk: estimate_history", repetitions, || (), walk).into()
}

/// Compacts a history that it owns, and drops the removed messages.
pub(crate) fn compact(history: &[llm::Message], repetitions: usize) -> Measured {
    let compactor = compactor(AtOnce::new());
    let work = |history| compacted(&compactor, history);
    row("agent-sdk: compact_history", repetitions, || history.to_vec(), work).into()
}

/// The same with the peer's default settings.
pub(crate) fn compact_default(history: &[llm::Message], repetitions: usize) -> Measured {
    let model = Arc::new(AtOnce::new());
    let compactor = LlmContextCompactor::new(model, CompactionConfig::default());
    let work = |history| block_on(compactor.compact_history(history)).expect("a summary");
    row("agent-sdk: compact_history", repetitions, || history.to_vec(), work).into()
}

/// The part of that time that is spent on dropping.
pub(crate) fn dropping(history: &[llm::Message], repetitions: usize) -> Measured {
    let old = || history[..history.len() - TAIL].to_vec();
    row("agent-sdk: ... dropping what goes", repetitions, old, drop).into()
}

/// Returns the request to the model and the remaining history.
pub(crate) fn asked(name: &'static str, history: &[llm::Message]) -> Asked {
    let model = Arc::new(AtOnce::listening());
    let compactor = LlmContextCompactor::new(Arc::clone(&model), config());
    let result = compacted(&compactor, history.to_vec());
    Asked {
        name,
        heard: model.heard(),
        tokens: result.original_tokens as u64,
        messages_after: result.new_count,
        tokens_after: result.new_tokens as u64,
    }
}

fn compactor(model: AtOnce) -> LlmContextCompactor<AtOnce> {
    LlmContextCompactor::new(Arc::new(model), config())
}

fn config() -> CompactionConfig {
    CompactionConfig::default().with_retain_recent(TAIL)
}

fn compacted(
    compactor: &LlmContextCompactor<AtOnce>,
    history: Vec<llm::Message>,
) -> CompactionResult {
    let result = block_on(compactor.compact_history(history)).expect("a summary");
    assert!(result.new_count < 2 * TAIL, "it keeps a tail: {}", result.new_count);
    result
}

fn converted(message: &Message) -> llm::Message {
    let role = if message.role == Role::Assistant { llm::Role::Assistant } else { llm::Role::User };
    let blocks = message.content.iter().filter_map(block).collect();
    llm::Message { role, content: llm::Content::Blocks(blocks) }
}

fn block(block: &ContentBlock) -> Option<llm::ContentBlock> {
    Some(match block {
        ContentBlock::Text(text) => llm::ContentBlock::Text { text: text.text.to_string() },
        ContentBlock::SystemReminder(reminder) => {
            llm::ContentBlock::Text { text: reminder.text.to_string() }
        }
        ContentBlock::Thinking(thinking) => llm::ContentBlock::Thinking {
            thinking: thinking.text.to_string(),
            signature: thinking.signature.as_ref().map(ToString::to_string),
        },
        ContentBlock::ToolUse(call) => llm::ContentBlock::ToolUse {
            id: call.id.to_string(),
            name: call.name.to_string(),
            input: serde_json::from_str(call.input.as_str()).expect("JSON"),
            thought_signature: None,
        },
        ContentBlock::ToolResult(result) => llm::ContentBlock::ToolResult {
            tool_use_id: result.tool_use_id.to_string(),
            content: result.content.iter().flat_map(thread::texts).collect(),
            artifact: None,
            is_error: None,
        },
        _ => return None,
    })
}
