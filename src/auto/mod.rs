//! Automatic compaction: when to compact without a request.
//!
//! [`AutoCompactor`] is a state machine. Its inputs are the pressure before every request and the
//! result of every compaction; its output is the driver's next action. It has no clock; the time is
//! an argument.
//!
//! There are two checks. The **soft trigger** follows an [`AutoPolicy`]: it fires at the threshold,
//! before a prompt and inside a tool loop alike. After a success it pauses until the context has
//! grown by a share of the window, and a compaction that did not help is not repeated for the same
//! thread. The **hard check** runs before every request, whatever the policy is, repeated ones
//! included: a thread that exceeds the window is compacted at once, or the request is refused with
//! its sizes.
//!
//! A target can be reached by construction: it is above the size that no compaction can remove,
//! below the trigger, and within the window. A configured target below that size is replaced by the
//! middle of this range. Compactions are counted for each request, so a long turn does not run out
//! of them and a broken one ends.
//!
//! After a provider's **refusal**, the machine decides how far to believe it. A request is sent at
//! most [`MAX_SENDS`] times; if the last refusal stands, everything is taken back.
//!
//! | refusal | what follows |
//! |---|---|
//! | it states a limit that the request exceeded | the limit is learnt, and the thread compacted to it |
//! | it states none, or one that the request did not exceed | the thread is compacted to half of its size |
//! | as above, but a request of this length was answered a short while ago, or it is at most a quarter of a known window and a summary would make it smaller | the same request is sent again |
//! | the second one without its own count, after the thread was halved, in a known window | the compactions are undone |
//! | the third one | the compactions are undone |
//! | it states none, and what can be removed is no longer than a summary of it | the refusal is passed on |
//! | no compaction can help | the refusal is passed on |
//!
//! While the user is **away**, the provider's cache of the prompt dies. With prices,
//! [`AutoCompactor::idle`] decides whether to keep it alive, to compact shortly before its death, or
//! to let it go: see [`Idle`].
//!
//! ```
//! use threadfold::{ContextWindow, message::Timestamp};
//! use threadfold::auto::{AutoCompactor, AutoPolicy, Input, Output, Pressure};
//!
//! let mut auto = AutoCompactor::new(AutoPolicy::default())?;
//! let window = Some(ContextWindow::new(200_000));
//! let calm = Pressure { window, reported: Some(159_999), ..Pressure::default() };
//! assert_eq!(auto.handle(Timestamp(0), Input::BeforeRequest(calm)), None);
//! let full = Pressure { reported: Some(160_000), ..calm };
//! let output = auto.handle(Timestamp(1), Input::BeforeRequest(full));
//! assert!(matches!(output, Some(Output::Compact { .. })));
//! # Ok::<(), threadfold::message::InvalidValue>(())
//! ```

mod breaker;
mod compactor;
mod cost;
mod event;
mod idle;
mod policy;
mod pressure;
mod trigger;

pub use compactor::{AutoCompactor, MAX_SENDS};
pub use event::{Input, Output, Refusal};
pub use idle::{Idle, IdleStep, keep_alive};
pub use policy::{AutoPolicy, Threshold};
pub use pressure::{Pressure, is_likely};
