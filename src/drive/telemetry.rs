//! Names for telemetry: what a trace says of a compaction.
//!
//! With the feature `tracing`, [`drive::compact`](super::compact) and the compactions of a
//! [`Session`](crate::session::Session) are one span each, [`SPAN`], at level `INFO` with the target
//! [`TARGET`]. It is open from the beginning of the attempt to the last write of the store, and every
//! model is asked inside it, so spans of a provider's client are its children. What finds nothing to
//! compact is no compaction and has no span.
//!
//! | event of the session | in the trace | attributes |
//! |---|---|---|
//! | [`Started`] | the span opens | [`OPERATION_NAME`], [`CONVERSATION_ID`], [`COMPACTION_ID`], [`STRATEGY`], [`REASON`], [`MESSAGES_BEFORE`], [`TOKENS_BEFORE`] |
//! | [`Progress`], [`SummaryDelta`] | nothing; a model's client tells of its calls | |
//! | [`Completed`] | the span closes | [`OUTCOME`] `completed`, [`MESSAGES_AFTER`], [`TOKENS_AFTER`], [`CALLS`], [`INPUT_TOKENS`], [`OUTPUT_TOKENS`] |
//! | [`Failed`] | the span closes | [`OUTCOME`] `failed`, [`ERROR_TYPE`], [`CALLS`], [`INPUT_TOKENS`], [`OUTPUT_TOKENS`] |
//! | [`Cancelled`] | the span closes, when the future is dropped | [`OUTCOME`] `cancelled` |
//!
//! The names that begin with `gen_ai.` are those of OpenTelemetry's conventions for generative AI,
//! which are still in development; the others are this crate's own. No text of the thread, of a
//! person's focus or of an error is in any attribute.
//!
//! [`Started`]: crate::session::CompactionEvent::Started
//! [`Progress`]: crate::session::CompactionEvent::Progress
//! [`SummaryDelta`]: crate::session::CompactionEvent::SummaryDelta
//! [`Completed`]: crate::session::CompactionEvent::Completed
//! [`Failed`]: crate::session::CompactionEvent::Failed
//! [`Cancelled`]: crate::session::CompactionEvent::Cancelled

/// The name of the span.
pub const SPAN: &str = "compaction";

/// The target of the span.
pub const TARGET: &str = "threadfold";

/// What is done, `compact` for a compaction. The conventions have no value for it yet.
pub const OPERATION_NAME: &str = "gen_ai.operation.name";

/// The thread.
pub const CONVERSATION_ID: &str = "gen_ai.conversation.id";

/// Tokens of prompts, those that came from a cache included.
pub const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";

/// Tokens of answers.
pub const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";

/// Whether the context of a call is a compacted view. For the host's own spans, of the calls of the
/// model behind a compaction: set it to true there and never to false, because without it is unknown.
pub const CONVERSATION_COMPACTED: &str = "gen_ai.conversation.compacted";

/// What kind of error it was, in a word such as `overflow`; never its text.
pub const ERROR_TYPE: &str = "error.type";

/// The number of the compaction in the log.
pub const COMPACTION_ID: &str = "threadfold.compaction.id";

/// The strategy.
pub const STRATEGY: &str = "threadfold.compaction.strategy";

/// The kind of reason, as
/// [`CompactionReason::as_str`](crate::message::CompactionReason::as_str) has it.
pub const REASON: &str = "threadfold.compaction.reason";

/// Messages of the thread before.
pub const MESSAGES_BEFORE: &str = "threadfold.compaction.messages_before";

/// Messages of the thread after.
pub const MESSAGES_AFTER: &str = "threadfold.compaction.messages_after";

/// Tokens of the thread before, as its counter estimates them.
pub const TOKENS_BEFORE: &str = "threadfold.compaction.tokens_before";

/// Tokens of the thread after, as its counter estimates them.
pub const TOKENS_AFTER: &str = "threadfold.compaction.tokens_after";

/// How many calls of a model there were.
pub const CALLS: &str = "threadfold.compaction.calls";

/// How it ended: `completed`, `failed` or `cancelled`.
pub const OUTCOME: &str = "threadfold.compaction.outcome";
