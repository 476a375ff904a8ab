//! Sizes a run so that each of its requests fits the context window.

use super::{options::Chunked, run::CompactionRun, step::RunStep};
use crate::{
    message::{ContextWindow, Message},
    render::ChunkBudget,
    strategy::{contract::StrategyError, rules, run_error::RunError, task::Task},
    tokens::{self, TokenCounter},
};

/// A run needs at least this many bytes for a chunk and the summary.
const MIN_ROOM: usize = 1_200;

/// Tokens of the results of an edit, and of the message that asks for a correction.
const RESULTS: u64 = 120;

/// Returns the run for these messages, with the focus and next prompt of the brief and the standing
/// rules of the thread.
pub(super) fn new_run(
    messages: &[Message],
    Task { thread, brief }: &Task,
    options: Chunked,
) -> Result<CompactionRun, RunError> {
    let run = CompactionRun::new(messages, brief.next_prompt.clone(), options)?;
    let run = match brief.reason.focus() {
        Some(focus) => run.with_focus(focus.clone()),
        None => run,
    };
    let rules = rules::for_model(thread);
    Ok(if rules.is_empty() { run } else { run.with_rules(rules) })
}

/// Returns the options with chunk, summary, answer and aside limits lowered until a request with
/// all of them fits the window, if the window is known. Providers are not relied on for this: some
/// truncate a long request instead of refusing it.
///
/// # Errors
///
/// [`StrategyError::TooLong`] if the prompt leaves too little room.
pub(super) fn within_window(
    task: &Task,
    head: &[Message],
    options: Chunked,
) -> Result<Chunked, StrategyError> {
    let window = task.thread.window().map(ContextWindow::tokens);
    let Some(window) = window else { return Ok(options) };
    let counter = task.thread.counter();
    let answer = options.answer_tokens.min(window / 10).max(1);
    // An edit stays in the conversation when the model is asked again.
    let conversation = answer.saturating_add(RESULTS);
    // A tenth stays free, because counts are estimates.
    let usable = (window - window / 10).saturating_sub(answer.saturating_add(conversation));
    // The asides come with every request and must leave most of the room to chunk and summary.
    let most =
        bytes(usable.saturating_sub(fixed_tokens(task, options.clone(), 0)?), head, counter) / 8;
    let aside_bytes = options.aside_bytes.min(most);
    let fixed = fixed_tokens(task, options.clone(), aside_bytes)?;
    let room = bytes(usable.saturating_sub(fixed), head, counter);
    if room < MIN_ROOM {
        let tokens = fixed.saturating_add(answer.saturating_add(conversation));
        return Err(StrategyError::TooLong { tokens, window });
    }
    let most = room - room / 3;
    let chunks = if options.chunks.max() > most {
        ChunkBudget { target: most - most / 6, tolerance: most / 6 }
    } else {
        options.chunks
    };
    Ok(Chunked {
        chunks,
        summary_bytes: options.summary_bytes.min(room / 3),
        conversation_bytes: options.conversation_bytes.min(bytes(conversation, head, counter)),
        aside_bytes,
        answer_tokens: answer,
        ..options
    })
}

/// Returns the tokens of a request without chunk and summary, with this limit on the asides.
fn fixed_tokens(task: &Task, options: Chunked, aside_bytes: usize) -> Result<u64, RunError> {
    let run = new_run(&[Message::user(".")], task, Chunked { aside_bytes, ..options })?;
    let RunStep::Call { request, .. } = run.step() else { return Ok(0) };
    Ok(task.thread.counter().request(request))
}

/// Returns the bytes of this many tokens, at the bytes per token of the thread (1 to 3).
pub(super) fn bytes(room: u64, thread: &[Message], counter: &dyn TokenCounter) -> usize {
    let tokens = counter.messages(thread).max(1);
    let bytes = tokens::text_bytes(thread).clamp(tokens, tokens.saturating_mul(3));
    let room = u128::from(room) * u128::from(bytes) / u128::from(tokens);
    usize::try_from(room).unwrap_or(usize::MAX)
}
