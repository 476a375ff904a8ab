//! `rig-memory`: a window of tokens, and a template without a model for what is older.

use futures::executor::block_on;
use rig_core::message::{AssistantContent, Message as Theirs, UserContent};
use rig_memory::{
    CompactingMemory, ConversationMemory, HeuristicTokenCounter, InMemoryConversationMemory,
    TemplateCompactor, TokenWindowMemory,
};

use super::case::{Case, Compacted, back, largest, size};
use crate::rig::converted;

/// A tenth of the target is for the template's text.
pub(super) fn compact(case: &Case, target: u64) -> Option<Compacted> {
    let given: Vec<Theirs> = case.past().iter().map(converted).collect();
    let most = usize::try_from(size(case.past())).unwrap_or(usize::MAX);
    largest(most, target, |tokens| {
        let memory = CompactingMemory::new(
            InMemoryConversationMemory::new(),
            TokenWindowMemory::new(tokens, HeuristicTokenCounter::anthropic()),
            TemplateCompactor::new().with_max_bytes(usize::try_from(target / 10 * 3).ok()?),
        );
        block_on(memory.append(&"main".into(), given.clone())).ok()?;
        let left = block_on(memory.load(&"main".into())).ok()?;
        Some(back(case.past(), &given, &left, text))
    })
}

fn text(message: &Theirs) -> String {
    match message {
        Theirs::System { content } => content.clone(),
        Theirs::User { content } => content.iter().filter_map(asked).collect(),
        Theirs::Assistant(answer) => answer.content.iter().filter_map(answered).collect(),
    }
}

fn asked(content: &UserContent) -> Option<&str> {
    match content {
        UserContent::Text(text) => Some(text.text()),
        _ => None,
    }
}

fn answered(content: &AssistantContent) -> Option<&str> {
    match content {
        AssistantContent::Text(text) => Some(text.text()),
        _ => None,
    }
}
