//! Names of the tracing span of a compaction and of its attributes.
//!
//! With the feature `tracing`, each call of [`drive::compact`](crate::drive::compact) and each
//! compaction of a [`Session`](crate::session::Session) has one span, [`SPAN`], at level `INFO`
//! with the target [`TARGET`]. It is open from the first call of a model, or from the outcome
//! if there is none, to the last write of the store. Model calls run inside it, so spans of a
//! provider's client are its children. A strategy that finds nothing to compact has no span.
//!
//! | session event | span | attributes |
//! |---|---|---|
//! | [`Started`] | the span opens | [`OPERATION_NAME`], [`CONVERSATION_ID`], [`COMPACTION_ID`], [`STRATEGY`], [`REASON`], [`MESSAGES_BEFORE`], [`TOKENS_BEFORE`]; with prices [`PREVIOUS_GAIN`] |
//! | [`Progress`], [`SummaryDelta`] | no change; the model's client reports its calls | |
//! | [`Completed`] | the span closes | [`OUTCOME`] `completed`, [`MESSAGES_AFTER`], [`TOKENS_AFTER`], [`CALLS`], [`INPUT_TOKENS`], [`OUTPUT_TOKENS`]; with prices [`TOKENS_REBILLED`], [`COST`], [`SAVED_PER_REQUEST`] |
//! | [`Failed`] | the span closes | [`OUTCOME`] `failed`, [`ERROR_TYPE`], [`CALLS`], [`INPUT_TOKENS`], [`OUTPUT_TOKENS`] |
//! | [`Cancelled`] | the span closes, when the future is dropped | [`OUTCOME`] `cancelled` |
//!
//! Names that begin with `gen_ai.` are from OpenTelemetry's semantic conventions for generative AI,
//! which are not stable yet; the others are specific to this crate. No attribute holds text of the
//! thread, of the user's instructions or of an error.
//!
//! [`Started`]: crate::session::CompactionEvent::Started
//! [`Progress`]: crate::session::CompactionEvent::Progress
//! [`SummaryDelta`]: crate::session::CompactionEvent::SummaryDelta
//! [`Completed`]: crate::session::CompactionEvent::Completed
//! [`Failed`]: crate::session::CompactionEvent::Failed
//! [`Cancelled`]: crate::session::CompactionEvent::Cancelled

/// Name of the span.
pub const SPAN: &str = "compaction";

/// Target of the span.
pub const TARGET: &str = "threadfold";

/// The operation: `compact`. The conventions have no value for compactions yet.
pub const OPERATION_NAME: &str = "gen_ai.operation.name";

/// Id of the thread.
pub const CONVERSATION_ID: &str = "gen_ai.conversation.id";

/// Tokens of all prompts, including cached ones.
pub const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";

/// Tokens of all answers.
pub const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";

/// Kind of the error, a constant such as `overflow`; never its text.
pub const ERROR_TYPE: &str = "error.type";

/// Id of the compaction in the log.
pub const COMPACTION_ID: &str = "threadfold.compaction.id";

/// Name of the strategy.
pub const STRATEGY: &str = "threadfold.compaction.strategy";

/// Why the thread is compacted: the value of
/// [`CompactionReason::as_str`](crate::message::CompactionReason::as_str).
pub const REASON: &str = "threadfold.compaction.reason";

/// Number of messages before the compaction.
pub const MESSAGES_BEFORE: &str = "threadfold.compaction.messages_before";

/// Number of messages after the compaction.
pub const MESSAGES_AFTER: &str = "threadfold.compaction.messages_after";

/// Tokens before the compaction, by the thread's counter.
pub const TOKENS_BEFORE: &str = "threadfold.compaction.tokens_before";

/// Tokens after the compaction, by the thread's counter.
pub const TOKENS_AFTER: &str = "threadfold.compaction.tokens_after";

/// Tokens that the next request bills anew, as estimated.
pub const TOKENS_REBILLED: &str = "threadfold.compaction.tokens_rebilled";

/// Estimated one-time cost of the compaction: its model calls, and the higher price of the next
/// request. In millionths of the currency of the prices.
pub const COST: &str = "threadfold.compaction.cost_micros";

/// Estimated saving of every later request, in millionths of the currency.
pub const SAVED_PER_REQUEST: &str = "threadfold.compaction.saved_per_request_micros";

/// Saving of the previous compaction in millionths of the currency, by the usage that the provider
/// reported since ([`EventLog::net_gain`](crate::EventLog::net_gain)).
pub const PREVIOUS_GAIN: &str = "threadfold.compaction.previous_gain_micros";

/// Number of model calls.
pub const CALLS: &str = "threadfold.compaction.calls";

/// Outcome: `completed`, `failed` or `cancelled`.
pub const OUTCOME: &str = "threadfold.compaction.outcome";
