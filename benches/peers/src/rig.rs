//! The side of `rig-memory`.

use futures::executor::block_on;
use rig_core::message::{
    AssistantContent, AssistantMessage, CallId, Message as Theirs, ToolName, ToolResultContent,
    UserContent,
};
use rig_memory::{
    CompactingMemory, ConversationMemory, HeuristicTokenCounter, InMemoryConversationMemory,
    TemplateCompactor, TokenWindowMemory,
};
use threadfold::{ContentBlock, Message, Role};

use yardstick::{row, thread};

use crate::measured::Measured;

/// Loads a history that exceeds this many tokens: what does not fit is compacted into a summary
/// without a model, at most 64 KB of it.
pub(crate) fn compact(messages: &[Message], tokens: usize, repetitions: usize) -> Measured {
    let history: Vec<Theirs> = messages.iter().map(converted).collect();
    let own = || {
        let memory = CompactingMemory::new(
            InMemoryConversationMemory::new(),
            TokenWindowMemory::new(tokens, HeuristicTokenCounter::anthropic()),
            TemplateCompactor::new().with_max_bytes(64 * 1024),
        );
        block_on(memory.append(&"main".into(), history.clone())).expect("it is in memory");
        memory
    };
    let load = |memory: CompactingMemory<_, _, _>| {
        let left = block_on(memory.load(&"main".into())).expect("a summary");
        assert!(left.len() < history.len(), "it removes something: {}", left.len());
        (left, memory)
    };
    row("rig-memory: CompactingMemory::load", repetitions, own, load).into()
}

pub(crate) fn converted(message: &Message) -> Theirs {
    if message.role == Role::Assistant {
        let blocks = message.content.iter().filter_map(answered).collect();
        return Theirs::Assistant(AssistantMessage::new(blocks));
    }
    Theirs::User { content: message.content.iter().filter_map(asked).collect() }
}

fn answered(block: &ContentBlock) -> Option<AssistantContent> {
    Some(match block {
        ContentBlock::Text(text) => AssistantContent::text(text.text.as_str()),
        ContentBlock::Thinking(thinking) => AssistantContent::reasoning(thinking.text.as_str()),
        ContentBlock::ToolUse(call) => {
            let input = serde_json::from_str(call.input.as_str()).expect("JSON");
            AssistantContent::tool_call(call.id.as_str(), tool(), input)
        }
        _ => return None,
    })
}

fn asked(block: &ContentBlock) -> Option<UserContent> {
    Some(match block {
        ContentBlock::Text(text) => UserContent::text(text.text.as_str()),
        ContentBlock::SystemReminder(reminder) => UserContent::text(reminder.text.as_str()),
        ContentBlock::ToolResult(result) => {
            let texts = result.content.iter().flat_map(thread::texts);
            let call = CallId::from_wire(result.tool_use_id.as_str());
            UserContent::tool_result(call, tool(), texts.map(ToolResultContent::text).collect())
        }
        _ => return None,
    })
}

/// The name of every tool: only the sizes matter.
fn tool() -> ToolName {
    ToolName::new("read").expect("a name")
}
