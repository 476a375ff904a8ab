//! The requests to the summarising model.

use std::sync::Arc;
use std::time::Duration;

use super::{chunks::Piece, clip, options::FoldBatches};
use crate::{
    message::{Message, Request},
    strategy::{
        instructions::{VALUES, asides, fill, sections, tagged},
        run_error::RunError,
        task::Task,
    },
    tokens::TokenCounter,
};

const SYSTEM: &str = include_str!("../prompts/fold_system.md");
const SO_FAR: &str = include_str!("../prompts/fold_so_far.md");
const DIRECTIVE: &str = include_str!("../prompts/fold.md");
/// The built-in sections: what an account of a stretch preserves.
const SECTIONS: &str = include_str!("../prompts/fold_sections.md");
const NEXT: &str = "When all stretches are done the user will ask this; do not answer it now:";

/// Upper limit for the summary so far, as a multiple of the limit for one batch.
const SO_FAR_BATCHES: u64 = 8;
/// Pieces of at most this many tokens are not made smaller.
pub(super) const MIN_TOKENS: u64 = 1_000;

/// Writes requests that fit the window.
#[derive(Debug)]
pub(super) struct RequestWriter {
    options: FoldBatches,
    directive: Message,
    /// Upper limit for the tokens of the summary so far.
    so_far: u64,
    /// Upper limit for the tokens of a piece, if the window is known.
    pub(super) room: Option<u64>,
}

impl RequestWriter {
    /// Returns the writer for one attempt.
    ///
    /// # Errors
    ///
    /// [`RunError::NoRoom`] if a chunk would not fit the window.
    pub(super) fn new(options: FoldBatches, task: &Task) -> Result<Self, RunError> {
        let counter = task.thread.counter();
        let values = [("sections", &*sections(&options.sections, SECTIONS)), ("values", VALUES)];
        let directive = fill(DIRECTIVE, &values) + &asides(task, "", NEXT);
        let directive = Message::user(directive);
        let so_far = options.summary_tokens.saturating_mul(SO_FAR_BATCHES);
        let mut writer = Self { options, directive, so_far, room: None };
        let Some(window) = task.thread.window() else { return Ok(writer) };
        let window = window.tokens();
        // With one character as the summary so far, its frame is counted too.
        let empty = writer.request(&["."], &Piece::default(), counter);
        let fixed = counter.request(&empty).saturating_add(writer.options.summary_tokens);
        // A tenth stays free, because counts are estimates.
        let free = (window - window / 10).saturating_sub(fixed);
        writer.so_far = writer.so_far.min(free / 3);
        let room = free.saturating_sub(writer.so_far);
        if room < MIN_TOKENS {
            return Err(RunError::NoRoom { window, fixed });
        }
        writer.room = Some(room);
        Ok(writer)
    }

    /// Returns the request to summarise a piece. `so_far` are the summaries of everything before.
    pub(super) fn request(
        &self,
        so_far: &[&str],
        piece: &Piece,
        counter: &dyn TokenCounter,
    ) -> Request {
        let prompt = self.options.prompt.clone().unwrap_or_else(|| SYSTEM.trim_end().into());
        let mut system = vec![Message::system(prompt)];
        if let Some(so_far) = self.options.so_far(so_far, self.so_far, counter) {
            let framed = tagged("summary-so-far", &so_far);
            system.push(Message::system(format!("{}\n\n{framed}", SO_FAR.trim_end())));
        }
        let most = [piece.most, self.room].into_iter().flatten().min().unwrap_or(u64::MAX);
        let mut messages = clip::fit(&piece.messages(), most, counter);
        messages.push(self.directive.clone());
        Request {
            system: Arc::new(system),
            max_output: Some(self.options.summary_tokens),
            temperature: Some(0.0),
            timeout: self.options.timeout_ms.map(Duration::from_millis),
            ..Request::new(messages)
        }
    }
}
