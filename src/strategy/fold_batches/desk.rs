//! The requests: what the summariser is told and shown.

use std::time::Duration;

use super::{chunks::Piece, clip, options::FoldBatches};
use crate::strategy::run_error::RunError;
use crate::{
    message::{ContentBlock, Message, Messages, Request, Text},
    strategy::{
        brief::Brief,
        clip::{ASIDE_TOKENS, clip},
        snapshot::Snapshot,
        tagged::tagged,
    },
    tokens::TokenCounter,
};

const SYSTEM: &str = include_str!("../prompts/fold_system.md");
const SO_FAR: &str = include_str!("../prompts/fold_so_far.md");
const DIRECTIVE: &str = include_str!("../prompts/fold.md");

/// The account so far is held to so many times what one account may have.
const SO_FAR_ACCOUNTS: u64 = 8;
/// No piece is made smaller than this.
pub(super) const MIN_TOKENS: u64 = 1_000;

/// Writes requests that fit the window.
#[derive(Debug)]
pub(super) struct Desk {
    options: FoldBatches,
    directive: Message,
    /// How many tokens the account so far may have.
    so_far: u64,
    /// How many tokens of messages one request may show, where the window is known.
    pub(super) room: Option<u64>,
}

impl Desk {
    /// Returns the desk for one attempt.
    ///
    /// # Errors
    ///
    /// [`RunError::NoRoom`] if a chunk would not fit the window.
    pub(super) fn new(
        options: FoldBatches,
        thread: &Snapshot,
        brief: &Brief,
    ) -> Result<Self, RunError> {
        let counter = thread.counter();
        let directive = Message::user(directive(brief, counter));
        let so_far = options.summary_tokens.saturating_mul(SO_FAR_ACCOUNTS);
        let mut desk = Self { options, directive, so_far, room: None };
        let Some(window) = thread.window() else { return Ok(desk) };
        let window = window.tokens();
        // The frame of the account so far is a fixed part too.
        let empty = desk.request(&["."], &Piece::default(), counter);
        let fixed = counter.request(&empty).saturating_add(desk.options.summary_tokens);
        // A tenth stays free, because counts are estimates.
        let free = (window - window / 10).saturating_sub(fixed);
        desk.so_far = desk.so_far.min(free / 3);
        let room = free.saturating_sub(desk.so_far);
        if room < MIN_TOKENS {
            return Err(RunError::NoRoom { window, fixed });
        }
        desk.room = Some(room);
        Ok(desk)
    }

    /// Returns the request for an account of a piece, in the light of the accounts so far.
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
            system: Messages::from(system),
            max_output: Some(self.options.summary_tokens),
            temperature: Some(0.0),
            timeout: self.options.timeout_ms.map(Duration::from_millis),
            ..Request::new(messages)
        }
    }
}

/// What is asked of every stretch, with what the user wants attended to and asks next.
fn directive(brief: &Brief, counter: &dyn TokenCounter) -> String {
    let mut text = DIRECTIVE.trim_end().to_owned();
    let mut aside = |label: &str, said: &str| {
        text.push_str("\n\n");
        text.push_str(label);
        text.push('\n');
        text.push_str(&clip(said, ASIDE_TOKENS, counter));
    };
    if let Some(focus) = brief.reason.focus() {
        aside("The user asks you to pay special attention to this:", focus);
    }
    let next = brief.next_prompt.iter().flat_map(|prompt| &prompt.content);
    let next: Vec<&str> = next.filter_map(ContentBlock::as_text).map(Text::as_str).collect();
    if !next.is_empty() {
        let label = "When all stretches are done the user will ask this; do not answer it now:";
        aside(label, &next.join("\n"));
    }
    text
}
