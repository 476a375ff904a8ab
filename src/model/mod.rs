//! The traits that hosts implement.
//!
//! | whose provider | implements |
//! |---|---|
//! | answers requests and keeps nothing | [`Model`]: one required method |
//! | keeps the conversation on its side | [`ProviderThread`] and [`Agent`] |
//! | has a runtime with a timer of its own | [`Sleeper`]: how to wait between tries |
//!
//! [`deltas_of`] reads the answer of a provider from the bytes of its HTTP response, and
//! [`deltas_within`] bounds its time too ([`AnswerLimits`]).
//! [`ModelAgent`] makes an agent of any model, and [`AgentModel`] a model of any agent.

mod agent;
mod clock;
mod deltas;
mod limits;
#[expect(clippy::module_inception, reason = "the folder is the edge, the file its main trait")]
mod model;
mod sleep;
mod tool;

pub use agent::{Agent, AgentModel, ModelAgent, ProviderThread, rewrite};
pub use clock::{Clock, StdClock};
pub use deltas::{deltas_of, deltas_within};
pub use limits::{AnswerLimitError, AnswerLimits};
pub use model::{Model, turn_of};
pub use sleep::{Sleeper, StdSleeper};
pub use tool::{Tool, ToolContext, ToolFailure, ToolOutput};

pub use crate::message::{ModelError, ModelErrorKind};

pub(crate) use model::cut_short;
