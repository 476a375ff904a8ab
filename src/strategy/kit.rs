//! The parts from which strategies are built. Every file of a strategy imports them from here.
//!
//! | part | purpose |
//! |---|---|
//! | `contract`, `proposal`, `error`, `run_error` | strategies, their proposals and errors |
//! | `ask`, `guard` | how a strategy asks a model, and runs other strategies |
//! | `view`, `snapshot`, `brief` | the thread to compact, and the reason, target and limits of the compaction |
//! | `tail` | what stays of a thread |
//! | `typed` | what the user typed, as a list in a summary |
//! | `instructions` | the texts of the requests for a summary |
//! | `clip` | shortens texts |

pub(super) use super::{
    ask::*, brief::*, clip::*, contract::*, error::*, guard, guard::without_model, instructions,
    instructions::*, proposal::*, rejection::*, run_error::*, snapshot::*, tail, tail::*, typed::*,
    view::*,
};
pub(super) use crate::{compact::*, log::Rung, message::*, tokens::TokenCounter};
pub(super) use async_trait::async_trait;
