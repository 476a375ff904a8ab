//! A run whose every request fits a window.

use super::{options::RunOptions, run::CompactionRun, step::RunStep};
use crate::strategy::run_error::RunError;
use crate::{
    message::{ContextWindow, Message},
    render::ChunkBudget,
    strategy::{brief::Brief, contract::StrategyError, rules, snapshot::Snapshot},
    tokens::{self, TokenCounter},
};

/// With less room than this for a chunk and the summary, in bytes, nothing is asked.
const MIN_ROOM: usize = 1_200;

/// The tokens of the results of an edit, and of what is said when something has to be put right.
const RESULTS: u64 = 120;

/// The run about these messages, with what the brief says.
pub(super) fn begun(
    messages: &[Message],
    thread: &Snapshot,
    brief: &Brief,
    options: RunOptions,
) -> Result<CompactionRun, RunError> {
    let run = CompactionRun::new(messages, brief.next_prompt.clone(), options)?;
    let run = match brief.reason.focus() {
        Some(focus) => run.with_focus(focus.clone()),
        None => run,
    };
    let rules = rules::told(thread);
    Ok(if rules.is_empty() { run } else { run.with_rules(rules) })
}

/// Returns the options with chunk, summary, answers and all beside them so small that a request with
/// all of them fits the window, where that is known: not every provider refuses what it cannot hold,
/// some cut it off.
///
/// # Errors
///
/// [`StrategyError::TooLong`] if the prompt leaves too little room.
pub(super) fn within_window(
    thread: &Snapshot,
    brief: &Brief,
    head: &[Message],
    options: RunOptions,
) -> Result<RunOptions, StrategyError> {
    let Some(window) = thread.window().map(ContextWindow::tokens) else { return Ok(options) };
    let counter = thread.counter();
    let answer = options.answer_tokens.min(window / 10).max(1);
    // An edit stays in the conversation when the model is asked again. A tenth stays free, because
    // counts are estimates.
    let said = answer.saturating_add(RESULTS);
    let usable = (window - window / 10).saturating_sub(answer.saturating_add(said));
    let fixed = |aside_bytes| -> Result<u64, StrategyError> {
        let options = RunOptions { aside_bytes, ..options.clone() };
        let run = begun(&[Message::user(".")], thread, brief, options)?;
        let RunStep::Call { request, .. } = run.step() else { return Ok(0) };
        Ok(counter.request(request))
    };
    // What comes with every request must leave most of the room to chunk and summary.
    let most = bytes(usable.saturating_sub(fixed(0)?), head, counter) / 8;
    let aside_bytes = options.aside_bytes.min(most);
    let fixed = fixed(aside_bytes)?;
    let room = bytes(usable.saturating_sub(fixed), head, counter);
    if room < MIN_ROOM {
        let tokens = fixed.saturating_add(answer.saturating_add(said));
        return Err(StrategyError::TooLong { tokens, window });
    }
    let most = room - room / 3;
    let chunks = if options.chunks.max() > most {
        ChunkBudget { target: most - most / 6, tolerance: most / 6 }
    } else {
        options.chunks
    };
    Ok(RunOptions {
        chunks,
        summary_bytes: options.summary_bytes.min(room / 3),
        conversation_bytes: options.conversation_bytes.min(bytes(said, head, counter)),
        aside_bytes,
        answer_tokens: answer,
        ..options
    })
}

/// Returns the bytes of so many tokens, by what the thread has for each.
pub(super) fn bytes(room: u64, thread: &[Message], counter: &dyn TokenCounter) -> usize {
    let each = (tokens::text_bytes(thread) / counter.messages(thread).max(1)).clamp(1, 3);
    usize::try_from(room.saturating_mul(each)).unwrap_or(usize::MAX)
}
