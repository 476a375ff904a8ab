//! Compaction of message vectors: pure functions over values.
//!
//! [`compact`] replaces ranges of a thread, named by checkpoints, with summaries. Every edit
//! is a [`Plan`]: checked whole before anything moves, stored as data, applied in one sweep that
//! copies no text. [`legality`] lists what no provider accepts, repairs it, and says where a thread
//! may be cut. [`trim()`] shortens tool results.
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
//! assert_eq!(compacted.removed.messages, thread[1..]);
//! assert_eq!(compacted.report.before.messages, 3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod apply;
mod call;
mod calls;
mod edit;
mod edits;
mod extend;
pub mod legality;
mod plan;
mod position;
mod repair;
mod replacements;
mod report;
mod trim;
mod turns;
mod violations;

pub use apply::Removed;
pub use edit::{CompactError, Edit};
pub use edits::{CompactOptions, Strip};
pub use plan::{Insert, Plan, Splice};
pub use position::Position;
pub use replacements::{CompactInput, Replacement};
pub use report::{CompactReport, Size};
pub use trim::{TrimOptions, Trimmed, trim};

#[doc(hidden)]
pub use position::{Place, Places};
#[doc(hidden)]
pub use trim::trim_after;

use crate::{message::Message, tokens::ByteEstimate};

/// A thread after a compaction, and everything that is known of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Compacted {
    /// The thread.
    pub messages: Vec<Message>,
    /// What went.
    pub removed: Removed,
    /// How it was done: applied to the thread before, it gives the thread again.
    pub plan: Plan,
    /// What it saved.
    pub report: CompactReport,
}

/// Returns the thread with each range replaced by its summary.
///
/// A range runs from just after its `from` marker to just after its `to` marker; without `from`
/// from the start, without `to` to the end. It is replaced by one assistant message that holds the
/// summary; a blank summary deletes it. From the message that holds the first `from` onward,
/// reminders and reasoning are stripped, but for the reasoning of an open tool loop; checkpoints
/// stay. No ranges: the thread as it is. The tokens of the report are estimates
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
/// [`CompactError`]: a checkpoint that is unknown or ambiguous, a range that is inverted or empty,
/// ranges that overlap, a range that divides a call from its result or holds an open call.
pub fn compact(
    messages: &[Message],
    replacements: &[Replacement],
) -> Result<Compacted, CompactError> {
    let plan = Plan::new(messages, replacements, &CompactOptions::default())?;
    let before = Size::of(messages, &ByteEstimate::TRIGGER);
    let removed = plan.taken_from(messages);
    let messages = plan.made_of(messages);
    let report = CompactReport::new(before, &messages, &plan, &ByteEstimate::TRIGGER);
    Ok(Compacted { messages, removed, plan, report })
}
