//! Reading the messages that compactions removed.
//!
//! Nothing is deleted from a log, so an agent can read the messages that a summary replaces.
//! [`Recall`] finds them by a range of checkpoints, by the number of a message, or, with the
//! feature `recall`, by words, ranked with BM25. An answer is bounded in bytes and states how to
//! get the rest. [`tool`] describes it to a model;
//! [`SessionBuilder::recall_tool`](crate::session::SessionBuilder::recall_tool) adds it to a
//! session.
//!
//! ```
//! use threadfold::{Message, Plan, compact::{Insert, Splice}};
//! use threadfold::log::{CompactionRecord, Event, EventLog};
//! use threadfold::message::{CompactionReason, Timestamp};
//! use threadfold::recall::Recall;
//!
//! let mut log = EventLog::new("main".parse()?);
//! log.append(Timestamp(0), Event::MessageAppended(Message::user("The port is 8443.")))?;
//! let insert = vec![Insert::Message { message: Message::user("A port was named.") }];
//! let plan = Plan::from_splices(1, vec![Splice { at: 0..1, insert }]);
//! let id = log.next_compaction();
//! let record = CompactionRecord::new(id, CompactionReason::default(), "mine", plan);
//! log.append(Timestamp(1), Event::Compacted(Box::new(record)))?;
//!
//! let recalled = Recall::of(&log).call(&serde_json::json!({}))?;
//! assert!(recalled.ends_with("The port is 8443.\n\n"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What an answer contains
//!
//! - The messages as appended, through any number of summaries of summaries, without those that an
//!   undo restored or that were truncated. A message of which a part is still in the thread comes
//!   without that part.
//! - Messages are [rendered](crate::render), so their texts cannot imitate headings. Images and
//!   documents become placeholders; reasoning and reminders are left out.
//! - Text that a [`Redactor`](crate::message::Redactor) removes is neither shown nor searched.
//! - Nothing is cached between two calls. The time of a search is linear in the removed messages.
//!   [`Recall::begin`] searches in steps, and a session lets other tasks run between them.
//!
//! # How words match
//!
//! Words are runs of letters, digits and `_`, in any case, with or without accents. The words of a
//! path, a version or a name in code (`src/parse.rs`, `std::fs`) also count together as one word,
//! and the parts of `parse_error` and `ParseError` also count alone. There is no stemming and no
//! list of stop words. A message is ranked by its own words and by those of its stretch, about
//! 4,000 bytes of neighbouring messages.

mod answer;
mod passage;
mod request;
#[cfg(feature = "recall")]
mod search;
#[cfg(feature = "recall")]
mod shapes;
pub mod tool;

pub(crate) use answer::Steps;
pub use answer::{MAX_BYTES, MIN_BYTES, Recall};
pub use passage::NO_MATCH;
pub(crate) use request::RecallRequest;
pub use request::{MAX_QUERY_BYTES, RecallError};
