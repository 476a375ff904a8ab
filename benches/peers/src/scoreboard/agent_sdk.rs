//! `agent-sdk`: a summary by a model, and the newest messages.

use std::sync::Arc;

use agent_sdk::{
    context::{CompactionConfig, ContextCompactor, LlmContextCompactor},
    llm,
};
use futures::executor::block_on;
use threadfold::{Message, async_trait};

use super::case::{Case, Compacted, back, largest, size, summary};
use crate::theirs::history;

/// Answers with the summary of the prompt.
#[derive(Debug)]
struct Extracts;

pub(super) fn compact(case: &Case, target: u64) -> Option<Compacted> {
    let given = history(case.past());
    largest(given.len(), target, |recent| {
        let config = CompactionConfig::default()
            .with_retain_recent(recent)
            .with_min_messages(1)
            .with_max_retained_tail_tokens(usize::try_from(size(case.past())).ok()?);
        let compactor = LlmContextCompactor::new(Arc::new(Extracts), config);
        let done = block_on(compactor.compact_history(given.clone())).ok()?;
        Some(back(case.past(), &given, &done.messages, text))
    })
}

fn text(message: &llm::Message) -> String {
    match &message.content {
        llm::Content::Text(text) => text.clone(),
        llm::Content::Blocks(blocks) => {
            let texts = blocks.iter().filter_map(|block| match block {
                llm::ContentBlock::Text { text }
                | llm::ContentBlock::CompactionSummary { text, .. } => Some(text.as_str()),
                _ => None,
            });
            texts.collect()
        }
    }
}

#[async_trait]
impl llm::LlmProvider for Extracts {
    async fn chat(&self, request: llm::ChatRequest) -> anyhow::Result<llm::ChatOutcome> {
        let prompt: String = request.messages.iter().map(text).collect();
        Ok(llm::ChatOutcome::Success(llm::ChatResponse {
            id: "1".to_owned(),
            content: vec![llm::ContentBlock::Text { text: summary(vec![Message::user(prompt)]) }],
            model: "extracts".to_owned(),
            stop_reason: Some(llm::StopReason::EndTurn),
            usage: llm::Usage {
                served_speed: None,
                input_tokens: 0,
                output_tokens: 0,
                cached_input_tokens: 0,
                cache_creation_input_tokens: 0,
            },
        }))
    }

    fn model(&self) -> &'static str {
        "extracts"
    }

    fn provider(&self) -> &'static str {
        "extracts"
    }
}
