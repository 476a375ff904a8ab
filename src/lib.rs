//! threadfold keeps the thread of a long-running LLM agent inside the model's context window.
//!
//! Start here: a [`Session`] holds the thread, runs the model and its tools, compacts the thread
//! before the window is full, and writes everything to a log.
//!
//! ```
//! use std::sync::Arc;
//!
//! use threadfold::{ContextWindow, ModelAgent, Session, testing::ScriptedModel};
//!
//! // A host brings its own `Model`. This one answers from a script.
//! let model = Arc::new(ScriptedModel::new(["Two and two is four."]));
//! let agent = ModelAgent::new(model).with_window(ContextWindow::new(200_000));
//! let mut session = Session::builder(agent).system("Be brief.").build()?;
//!
//! let reply = futures::executor::block_on(async { session.send("Two and two?").await })?;
//! assert_eq!(reply.text, "Two and two is four.");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A compaction never separates a tool call from its result, and never removes the user's newest
//! text; only the agent's own tool `compact` may put a summary in its place. It never changes what
//! the model has not read, unless that alone does not fit. Its plan is checked before anything
//! changes, and it can be undone. The [`guide`] begins with a [first
//! session](guide::getting_started) and has a chapter for each further question.
//!
//! # Three ways to compact
//!
//! | you have | use |
//! |---|---|
//! | a vector of messages, and summaries that you wrote | [`compact()`]: replaces ranges between checkpoints with them |
//! | a loop and a message vector of your own | [`Compactor`]: it keeps rules and facts, and a strategy writes the summaries; [`foreign`] for messages of your own type |
//! | no loop yet, or one that a session may replace | [`Session`]: it compacts on its own, and on `/compact` |
//!
//! # What a host plugs in
//!
//! | you bring | implement or choose |
//! |---|---|
//! | a provider, tools | [`model`]; [`wire`] reads and writes the bodies, [`model::deltas_of`] the streams |
//! | another way to compact | [`strategy`] |
//! | a tokenizer | [`tokens`] |
//! | another time to compact | [`auto::AutoPolicy`] |
//! | a user interface | [`session::SessionEvent`], [`session::CompactionDisplay`], [`session::api`] for web pages, [`session::acp`] for editors |
//! | tracing | [`drive::telemetry`] |
//!
//! # Where to find it
//!
//! | about | in |
//! |---|---|
//! | messages, blocks, requests, answers | [`message`] |
//! | the events of a thread, what was spent | [`log`] |
//! | what makes a thread legal | [`legality`] |
//! | the user's standing rules | [`ledger`] |
//! | the events and errors of a compaction | [`compaction`] |
//! | what a compaction lost | [`retention`] |
//! | removed messages | [`recall`] |
//! | what the agent notes for itself | [`notes`] |
//! | a thread as text | [`render`](mod@render) |
//! | edit scripts for models | [`edl`] |
//! | tests of what you built | the crate `threadfold-testing`; models for them in `testing`, with the feature of that name |
//!
//! # For those who build their own
//!
//! A host with a loop or an engine of its own drives these machines itself. They have neither async
//! nor a clock.
//!
//! | machine | decides |
//! |---|---|
//! | [`auto`] | when to compact |
//! | [`turn`] | whether to call the model or tools |
//!
//! [`mod@drive`] carries out and awaits the steps of these machines: [`drive::compact`] changes a
//! thread, a log and a store together. `ARCHITECTURE.md` lists which module may depend on which.
//!
//! | feature | adds |
//! |---|---|
//! | `anthropic`, `openai-chat` | the codecs of these dialects; on by default |
//! | `patterns` | regular expressions in edit scripts, with which a model edits the summary of [`strategy::Chunked`]; on by default |
//! | `openai-responses`, `gemini`, `bedrock-converse` | the codecs of these dialects |
//! | `testing` | scripted, hostile and extractive models; `threadfold-testing` has suites for adapters |
//! | `recall` | search by words for recall, ranked with BM25 |
//! | `tracing` | one span for each compaction; [`drive::telemetry`] has the names |
//! | `tiktoken` | `tokens::o200k`: exact counts for OpenAI's models |
//!
//! # What it does not do
//!
//! It opens no connection, holds no key and spawns no task. Time and waiting come
//! from a [`model::Clock`], which a host can replace; only a
//! [`JsonlStore`](store::JsonlStore) touches files. Token counts are estimates until the host
//! brings a [`TokenCounter`].

#![forbid(unsafe_code)]

#[macro_use]
mod options;

pub mod auto;
pub mod compaction;
pub mod compactor;
pub mod drive;
pub mod foreign;
pub mod hindsight;
pub mod log;
pub mod model;
pub mod notes;
pub mod recall;
pub mod session;
pub mod store;
pub mod strategy;
mod sync;
#[cfg(feature = "testing")]
pub mod testing;

pub mod turn;

pub use async_trait::async_trait;
pub use compactor::Compactor;
pub use log::{EventLog, Thread};
pub use model::{Agent, Model, ModelAgent, ProviderThread};
pub use session::Session;
pub use store::ThreadStore;
pub use strategy::{CompactionStrategy, StrategyRegistry};
pub(crate) use threadfold_audit::prose;
#[doc(inline)]
pub use threadfold_audit::{ledger, retention};
pub use threadfold_core::{
    Answer, CheckpointId, CompactReport, Compacted, ContentBlock, ContextWindow, Message, Plan,
    Replacement, Request, Role, TokenCounter, Usage,
};
#[doc(inline)]
pub use threadfold_core::{compact, legality, message, render, tokens};
#[doc(inline)]
pub use threadfold_edl as edl;
#[doc(inline)]
pub use threadfold_wire as wire;

/// The guide: one chapter for each question, code first.
///
/// | chapter | you want to |
/// |---|---|
/// | [Getting started](guide::getting_started) | run a session that never overflows, and give it tools |
/// | [A provider adapter](guide::provider_adapter) | connect your provider, also one whose dialect the crate does not know |
/// | [Strategy and policy](guide::strategy_and_policy) | decide how and when to compact, or let the agent decide |
/// | [What a compaction did, and what it lost](guide::what_was_lost) | show and trace compactions, restore what they lost, undo them |
/// | [Persistence and resume](guide::persistence) | store threads, resume them, and let one worker at a time write |
/// | [In a server, and on a durable engine](guide::in_a_server) | serve many users, survive clients that leave, and repeat no answered call |
/// | [A loop of your own](guide::your_own_loop) | use your own loop and your own messages, or replace a compaction that you wrote |
/// | [Why not ...?](guide::design) | know why it is built like this |
/// | [Comparison](guide::comparison) | know what others do, and do better |
///
/// This module has no code. Its chapters are documentation, and their examples run with the tests.
#[cfg(any(doc, doctest))]
pub mod guide {
    #[doc = include_str!("../docs/guide/getting-started.md")]
    ///
    /// In this chapter: [`Session`](crate::Session), [`ModelAgent`](crate::ModelAgent),
    /// [`ContextWindow`](crate::ContextWindow), [`SessionEvent`](crate::session::SessionEvent),
    /// [`Tool`](crate::model::Tool).
    pub mod getting_started {}

    #[doc = include_str!("../docs/guide/provider-adapter.md")]
    ///
    /// In this chapter: [`Model`](crate::Model), [`Dialect`](crate::wire::Dialect),
    /// [`deltas_of`](crate::model::deltas_of), [`classify_error`](crate::wire::classify_error),
    /// [`ProviderThread`](crate::ProviderThread), [`Agent`](crate::Agent),
    /// [`text_of`](crate::wire::text_of), [`deltas_by`](crate::model::deltas_by),
    /// [`AnswerBuilder`](crate::wire::AnswerBuilder).
    pub mod provider_adapter {}

    #[doc = include_str!("../docs/guide/strategy-and-policy.md")]
    ///
    /// In this chapter: [`strategy`](crate::strategy),
    /// [`StrategyRegistry`](crate::StrategyRegistry), [`AutoPolicy`](crate::auto::AutoPolicy),
    /// [`Replacement`](crate::Replacement), [`compact`](crate::compact()),
    /// [`CompactionStrategy`](crate::CompactionStrategy), [`Plan`](crate::Plan),
    /// [`Ask`](crate::strategy::Ask).
    pub mod strategy_and_policy {}

    #[doc = include_str!("../docs/guide/what-was-lost.md")]
    ///
    /// In this chapter: [`SessionEvent`](crate::session::SessionEvent),
    /// [`CompactionDisplay`](crate::session::CompactionDisplay), [`api`](crate::session::api),
    /// [`acp`](crate::session::acp), [`telemetry`](crate::drive::telemetry),
    /// [`retention`](crate::retention), [`ledger`](crate::ledger), [`recall`](mod@crate::recall).
    pub mod what_was_lost {}

    #[doc = include_str!("../docs/guide/persistence.md")]
    ///
    /// In this chapter: [`ThreadStore`](crate::ThreadStore),
    /// [`JsonlStore`](crate::store::JsonlStore), [`EventLog`](crate::EventLog),
    /// [`LeaseStore`](crate::store::LeaseStore).
    pub mod persistence {}

    #[doc = include_str!("../docs/guide/in-a-server.md")]
    ///
    /// In this chapter: [`Events`](crate::session::Events),
    /// [`SessionHandle`](crate::session::SessionHandle), [`Clock`](crate::model::Clock),
    /// [`TurnMachine`](crate::turn::TurnMachine), [`AutoCompactor`](crate::auto::AutoCompactor),
    /// [`Conversation`](crate::drive::Conversation), [`Request::key`](crate::Request::key).
    pub mod in_a_server {}

    #[doc = include_str!("../docs/guide/your-own-loop.md")]
    ///
    /// In this chapter: [`Compactor`](crate::Compactor), [`Brief`](crate::strategy::Brief),
    /// [`drive::compact`](crate::drive::compact()), [`ModelError`](crate::model::ModelError),
    /// [`legality`](crate::legality), [`Dialect`](crate::wire::Dialect).
    pub mod your_own_loop {}

    #[doc = include_str!("../docs/design.md")]
    pub mod design {}

    #[doc = include_str!("../docs/comparison.md")]
    pub mod comparison {}
}
