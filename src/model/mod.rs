//! The traits that hosts implement.
//!
//! | for | implement |
//! |---|---|
//! | a provider without state | [`Model`]: one required method |
//! | a provider that keeps the conversation on its side | [`ProviderThread`] and [`Agent`] |
//! | a runtime with its own timer | [`Clock`]: the wait before a retry |
//!
//! [`deltas_of`] decodes an answer from the bytes of its HTTP response, and [`deltas_within`] also
//! limits its time ([`AnswerLimits`]); [`deltas_by`] does so for a provider without a codec.
//! [`ModelAgent`] turns a model into an agent, and
//! [`model_of`] an agent into a model.

mod agent;
mod clock;
mod deltas;
mod forward;
#[expect(clippy::module_inception, reason = "the folder is the edge, the file its main trait")]
mod model;
mod tool;

pub use agent::{Agent, ModelAgent, ProviderThread, model_of};
pub(crate) use agent::{AgentModel, announce};
pub use clock::{Clock, std_clock};
pub(crate) use clock::{StdClock, yield_now};
pub use deltas::{AnswerLimits, Framing, deltas_by, deltas_of, deltas_within};
pub(crate) use forward::for_pointers;
pub use model::{Model, answer_of};
pub use tool::{Tool, ToolContext, ToolOutput};

pub use crate::message::{ModelError, ModelErrorKind};

pub(crate) use tool::Tools;
