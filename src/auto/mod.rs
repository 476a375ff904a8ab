//! When to compact without being asked.
//!
//! [`AutoCompactor`] is a machine: before every request it takes how full the context is, after every
//! compaction what came of it, and says what to do. It has no clock; the time is an argument.
//!
//! Two checks stand apart. The **soft trigger** follows an [`AutoPolicy`]: it fires at the threshold,
//! before a prompt and inside a tool loop alike, and is quiet after a success until the context grew
//! by a share of the window or a time passed. The **hard check** stands before every request, whatever
//! the policy says: what the window cannot hold is compacted now, or refused with numbers.
//!
//! ```
//! use threadfold::{ContextWindow, message::Timestamp};
//! use threadfold::auto::{AutoCompactor, AutoPolicy, Input, Output, Pressure};
//!
//! let mut auto = AutoCompactor::new(AutoPolicy::default())?;
//! let window = Some(ContextWindow::new(200_000));
//! let calm = Pressure { window, reported: Some(159_999), ..Pressure::default() };
//! assert_eq!(auto.handle(Timestamp(0), Input::BeforeSend(calm)), None);
//! let full = Pressure { reported: Some(160_000), ..calm };
//! let output = auto.handle(Timestamp(1), Input::BeforeSend(full));
//! assert!(matches!(output, Some(Output::Compact { .. })));
//! # Ok::<(), threadfold::message::InvalidValue>(())
//! ```

mod compactor;
mod learned;
mod planner;
mod policy;
mod pressure;
mod trigger;

pub use compactor::{AutoCompactor, Input, Notice, Output};
pub use policy::{AutoPolicy, Target, Threshold, UnknownUsage};
pub use pressure::Pressure;
