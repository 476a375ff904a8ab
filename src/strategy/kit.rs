//! The parts from which strategies are built. Every file of a strategy imports them from here.
//!
//! | part | purpose |
//! |---|---|
//! | `contract`, `run_error` | attempts, their steps, proposals and errors |
//! | `attempt` | the common kinds of attempt |
//! | `panic_guard` | attempts that run the attempts of other strategies |
//! | `snapshot`, `brief`, `task` | the thread to compact, and the reason, target and limits of the compaction |
//! | `tail` | what stays of a thread |
//! | `typed` | what the user typed, as a list in a summary |
//! | `instructions` | the texts of the requests for a summary |
//! | `clip` | shortens texts |

pub(super) use super::{
    attempt, attempt::*, brief::*, clip::*, contract::*, instructions, instructions::*,
    panic_guard::*, rejection::*, run_error::*, snapshot::*, tail, tail::*, task::*, typed::*,
};
pub(super) use crate::{compact::*, log::Rung, message::*, tokens::TokenCounter};
