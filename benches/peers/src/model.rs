//! The model of both crates. It answers at once and can record its requests.

use std::sync::{Mutex, PoisonError};

use agent_sdk::llm;
use threadfold::{
    Answer, Message, Model, Request, Usage, async_trait, message::StopReason, model::ModelError,
};

use yardstick::thread;

const SUMMARY: &str = "They parse lines, and the tests pass.";

/// The requests to a model.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Heard {
    /// The number of messages of the thread in the request, if they are separate messages.
    pub(crate) messages: usize,
    /// Bytes of text.
    pub(crate) bytes: usize,
}

/// Answers both crates with the same summary.
#[derive(Debug)]
pub(crate) struct AtOnce {
    turn: Answer,
    heard: Option<Mutex<Heard>>,
}

impl AtOnce {
    pub(crate) fn new() -> Self {
        let usage = Some(Usage::new(1_000, 10));
        let turn = Answer::new(Message::assistant(SUMMARY), StopReason::EndTurn, usage);
        Self { turn, heard: None }
    }

    /// Returns a model that records its requests. Recording takes time, so no timed row uses it.
    pub(crate) fn listening() -> Self {
        Self { heard: Some(Mutex::default()), ..Self::new() }
    }

    pub(crate) fn heard(&self) -> Heard {
        let heard = self.heard.as_ref().map(Mutex::lock);
        heard.map(|heard| *heard.unwrap_or_else(PoisonError::into_inner)).unwrap_or_default()
    }

    fn note(&self, note: impl FnOnce() -> Heard) {
        if let Some(heard) = &self.heard {
            *heard.lock().unwrap_or_else(PoisonError::into_inner) = note();
        }
    }
}

#[async_trait]
impl Model for AtOnce {
    async fn complete(&self, request: Request) -> Result<Answer, ModelError> {
        self.note(|| Heard {
            // The last message is the question.
            messages: request.messages.len() - 1,
            bytes: thread::size(&request.messages),
        });
        Ok(self.turn.clone())
    }
}

#[async_trait]
impl llm::LlmProvider for AtOnce {
    async fn chat(&self, request: llm::ChatRequest) -> anyhow::Result<llm::ChatOutcome> {
        self.note(|| {
            let prompts = request.messages.iter().map(|message| match &message.content {
                llm::Content::Text(text) => text.as_str(),
                llm::Content::Blocks(_) => "",
            });
            let prompt: String = prompts.collect();
            Heard { messages: prompt.matches("message_snapshot").count(), bytes: prompt.len() }
        });
        Ok(llm::ChatOutcome::Success(llm::ChatResponse {
            id: "1".to_owned(),
            content: vec![llm::ContentBlock::Text { text: SUMMARY.to_owned() }],
            model: "at-once".to_owned(),
            stop_reason: Some(llm::StopReason::EndTurn),
            usage: llm::Usage {
                served_speed: None,
                input_tokens: 1_000,
                output_tokens: 10,
                cached_input_tokens: 0,
                cache_creation_input_tokens: 0,
            },
        }))
    }

    fn model(&self) -> &'static str {
        "at-once"
    }

    fn provider(&self) -> &'static str {
        "at-once"
    }
}
