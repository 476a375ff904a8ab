//! Limits of a run with which its requests fit the context window.

use super::{
    data::Chunked,
    prompt::{Prompts, Writer},
};
use crate::{
    message::{ContextWindow, Message},
    render::ChunkBudget,
    strategy::{
        error::{Result, StrategyError},
        view::View,
    },
    tokens::{self, TokenCounter},
};

/// A run needs at least this many bytes for a chunk and the summary.
const MIN_ROOM: usize = 1_200;

/// Tokens of the results of an edit, and of the message that asks for a correction.
const RESULTS: u64 = 120;

/// The shortest chunk.
const SHORTEST: &str = "# user:\n\n.\n\n";

impl Prompts {
    /// Returns the prompts with chunk, summary, answer and aside limits lowered until a request with
    /// all of them fits the window, if the window is known. Providers are not relied on for this:
    /// some truncate a long request instead of refusing it.
    ///
    /// # Errors
    ///
    /// [`StrategyError::TooLong`] if the prompt leaves too little room.
    pub(crate) fn within_window(self, view: &View, head: &[Message]) -> Result<Self> {
        let Some(window) = view.thread.window().map(ContextWindow::tokens) else { return Ok(self) };
        let counter = view.thread.counter();
        let answer = self.options.answer_tokens.min(window / 10).max(1);
        let conversation = match self.writer {
            // If the model is asked again, its edit is part of the request.
            Writer::Edits => answer.saturating_add(RESULTS),
            Writer::Accounts { .. } => 0,
        };
        // A tenth stays free, because counts are estimates.
        let usable = (window - window / 10).saturating_sub(answer.saturating_add(conversation));
        // Every request repeats the asides, which must leave most of the room to chunk and summary.
        let most = bytes(usable.saturating_sub(self.fixed_tokens(0, counter)), head, counter) / 8;
        let aside_bytes = self.options.aside_bytes.min(most);
        let fixed = self.fixed_tokens(aside_bytes, counter);
        let room = bytes(usable.saturating_sub(fixed), head, counter);
        if room < MIN_ROOM {
            let tokens = fixed.saturating_add(answer.saturating_add(conversation));
            return Err(StrategyError::TooLong { tokens, window });
        }
        let most = room - room / 3;
        let chunks = if self.options.chunks.max() > most {
            ChunkBudget { target: most - most / 6, tolerance: most / 6 }
        } else {
            self.options.chunks
        };
        let conversation = bytes(conversation, head, counter);
        let options = Chunked {
            chunks,
            summary_bytes: self.options.summary_bytes.min(room / 3),
            conversation_bytes: self.options.conversation_bytes.min(conversation),
            aside_bytes,
            answer_tokens: answer,
            ..self.options
        };
        Ok(Self { options, ..self })
    }

    /// Returns the tokens of a request without chunk and summary, with this limit on the asides.
    fn fixed_tokens(&self, aside_bytes: usize, counter: &dyn TokenCounter) -> u64 {
        let options = Chunked { aside_bytes, ..self.options.clone() };
        let prompts = Self { options, ..self.clone() };
        counter.request(&prompts.request((1, 1), "", SHORTEST))
    }
}

/// Returns the bytes of this many tokens, at the bytes per token of the thread (1 to 3).
pub(super) fn bytes(room: u64, thread: &[Message], counter: &dyn TokenCounter) -> usize {
    let tokens = counter.messages(thread).max(1);
    let bytes = tokens::text_bytes(thread).clamp(tokens, tokens.saturating_mul(3));
    let room = u128::from(room) * u128::from(bytes) / u128::from(tokens);
    usize::try_from(room).unwrap_or(usize::MAX)
}
