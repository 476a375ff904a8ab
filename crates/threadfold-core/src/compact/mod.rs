//! Compaction of message vectors: pure functions over values.
//!
//! [`compact`] replaces ranges of a thread, named by checkpoints, with summaries. Every edit is a
//! [`Plan`]: checked completely before anything changes, stored as data, applied in one sweep that
//! copies no text. [`legality`] lists and repairs violations of the rules of all providers, and
//! finds positions where a thread may be cut. [`trim()`] shortens tool results.
//!
//! ```
//! use threadfold::{ContentBlock, Message, Replacement, compact};
//!
//! let mut question = Message::user("What is in a.txt?");
//! question.make_mut().content.push(ContentBlock::checkpoint("aaaaaa".parse()?));
//! let thread = [question, Message::assistant("Let me look."), Message::assistant("A poem.")];
//!
//! let summary = Replacement::new("a.txt holds a poem.").from("aaaaaa".parse()?);
//! let compacted = compact(&thread, &[summary])?;
//! assert_eq!(compacted.messages.len(), 2);
//! assert_eq!(compacted.removed, thread[1..]);
//! assert_eq!(compacted.report.before.messages, 3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod apply;
mod call;
mod calls;
mod cost;
mod edit;
mod edits;
mod extend;
pub mod legality;
mod plan;
mod position;
mod repair;
mod replacements;
mod report;
mod runs;
mod summarise;
mod trim;
mod violations;

pub use cost::{CacheLife, CompactionCost, Prices, PromptChange};
pub use edit::CompactError;
pub use edits::CompactOptions;
pub use plan::{Insert, Plan, Replaced, Splice};
pub use position::Position;
pub use replacements::Replacement;
pub use report::{CompactReport, Size, VoidReasoning};
pub use trim::{TrimToolResults, trim};

#[doc(hidden)]
pub use position::{CheckpointIndex, CheckpointPosition};
#[doc(hidden)]
pub use trim::{media_note, trim_after};

use crate::{message::Message, tokens::ByteEstimate};

/// A thread after a compaction, with the plan and the report.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Compacted {
    /// The thread after the compaction.
    pub messages: Vec<Message>,
    /// The messages that were removed.
    pub removed: Vec<Message>,
    /// The plan that was applied. Applied to the original thread, it returns the same messages.
    pub plan: Plan,
    /// What the compaction saved.
    pub report: CompactReport,
}

/// Returns the thread with each range replaced by its summary.
///
/// A range starts after its `from` checkpoint, or at the start of the thread, and ends after its
/// `to` checkpoint, or at the end of the thread. An assistant message with the summary replaces it;
/// a blank summary deletes it. From the message with the first `from` on, reminders and reasoning
/// are stripped from messages that stay, except the reasoning of an open tool loop; checkpoints
/// stay. Without ranges the thread stays unchanged. Token counts in the report are estimates
/// ([`ByteEstimate::TRIGGER`]).
///
/// ```
/// use threadfold::{ContentBlock, Message, Replacement, compact};
///
/// let mut question = Message::user("Where is the parser?");
/// question.make_mut().content.push(ContentBlock::checkpoint("aaaaaa".parse()?));
/// let thread = [question, Message::assistant("I look."), Message::assistant("In src/parse.rs.")];
///
/// let summary = Replacement::new("The parser is in src/parse.rs.").from("aaaaaa".parse()?);
/// let compacted = compact(&thread, &[summary])?;
/// assert_eq!(compacted.messages[0], thread[0]);
/// assert!(compacted.messages[1].is_summary());
///
/// let unknown = Replacement::new("Of nothing.").from("zzzzzz".parse()?);
/// let error = compact(&thread, &[unknown]).unwrap_err();
/// assert_eq!(error.to_string(), "replacement 0 names checkpoint zzzzzz, which is not in the thread");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// [`CompactError`] if a checkpoint is unknown or ambiguous, if a range is inverted or empty, if
/// ranges overlap, or if a range separates a call from its result or contains an open call.
pub fn compact(
    messages: &[Message],
    replacements: &[Replacement],
) -> Result<Compacted, CompactError> {
    let plan = Plan::new(messages, replacements, &CompactOptions::default())?;
    let before = Size::of(messages, &ByteEstimate::TRIGGER);
    let removed = plan.removed_from(messages);
    let messages = plan.after_unchecked(messages);
    let report = CompactReport::new(before, &messages, &plan, &ByteEstimate::TRIGGER);
    Ok(Compacted { messages, removed, plan, report })
}
