//! Keeps the agents of [rig](https://docs.rs/rig-agent) inside their context window.
//!
//! rig sends the whole history with every model call, and has no compaction in its agent. A
//! [`Folding`] is a hook that runs before each call, those between tools included. When the history
//! has grown to the threshold, it replaces the old part of what is *sent* by a summary; the history
//! that rig stores and returns stays whole.
//!
//! ```
//! use rig_agent::{AgentBuilder, test_utils::{MockCompletionModel, MockTurn}};
//! use threadfold::ContextWindow;
//! use threadfold_rig::Folding;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let model = MockCompletionModel::from_turns([MockTurn::text("Hello!")]);
//! let agent = AgentBuilder::new(model)
//!     .add_hook(Folding::new(ContextWindow::new(200_000)))
//!     .build();
//! assert_eq!(agent.prompt("Hi.").await?.output(), "Hello!");
//! # Ok(())
//! # }
//! ```
//!
//! Messages that are kept are the values of rig's history, with their provider items, citations and
//! reasoning. A call is kept or removed together with its results, what the model has not read is
//! kept as it is, and the user's words are kept as long as they have room. Without a model the
//! summary is an extract; [`Folding::with_model`] takes any completion model of rig.
//!
//! | file | content |
//! |---|---|
//! | `convert` | rig's messages as threadfold's, and summaries as rig's |
//! | `view` | what is sent in place of a history, as data |
//! | `model` | a completion model of rig that writes summaries |
//! | `folding` | the hook |

mod convert;
mod folding;
mod model;
mod view;

pub use folding::Folding;
