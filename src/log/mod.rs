//! What is known of a thread over time.
//!
//! [`Thread`] is the live projection: the messages that the model sees next, with an index that
//! answers in constant time what is asked on every turn. [`stamp`] puts checkpoints into a thread
//! that came without.

mod budget;
mod event;
mod thread;
mod usage;

pub use budget::{
    BudgetError, BudgetLimits, BudgetStatus, BudgetWarning, Recommendations, TokenBudget,
};
pub use event::{
    CompactionFailure, CompactionRecord, CompactionUndone, Event, HostEvent, LocalNotice,
    LoggedEvent, PromptAuthor, RungReport, SystemPrompt, Truncated, UnreadEvent,
};
pub use thread::{Thread, stamp};
pub use usage::{ContextCount, ContextUsage, TotalUsage, context_usage, total_usage};
