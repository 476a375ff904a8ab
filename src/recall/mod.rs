//! Reading what was compacted away.
//!
//! Nothing is deleted from a log, so an agent can have the words back that a summary stands for.
//! [`Recall`] finds them in a log: by a range of checkpoints, by the number of a message, or, with
//! the feature `recall`, by words, ranked with BM25. What comes is bounded in size and says how to
//! go on. [`tool`] offers it to a model;
//! [`SessionBuilder::recall_tool`](crate::session::SessionBuilder::recall_tool) in a session.
//!
//! ```
//! use threadfold::{Message, Plan, compact::{Insert, Splice}};
//! use threadfold::log::{CompactionRecord, Event, EventLog};
//! use threadfold::message::{CompactionReason, Timestamp};
//! use threadfold::recall::{Recall, RecallRequest};
//!
//! let mut log = EventLog::new("main".parse()?);
//! log.append(Timestamp(0), Event::MessageAppended(Message::user("The port is 8443.")))?;
//! let insert = vec![Insert::Message { message: Message::user("A port was named.") }];
//! let plan = Plan::from_splices(1, vec![Splice { at: 0..1, insert }]);
//! let id = log.next_compaction();
//! let record = CompactionRecord::new(id, CompactionReason::default(), "mine", plan);
//! log.append(Timestamp(1), Event::Compacted(Box::new(record)))?;
//!
//! let recalled = Recall::of(&log).answer(&RecallRequest::default())?;
//! assert_eq!(recalled.passages[0].text, "The port is 8443.\n\n");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What is told
//!
//! - The messages as they came, through any number of summaries of summaries. What stands in the
//!   thread is not told, nor what was undone or dropped from its end: see [`EventLog::taken`].
//! - Messages are [rendered](crate::render), so their texts cannot pass for headings: pictures and
//!   documents are placeholders, reasoning and reminders are left out.
//! - What a [`Redactor`](crate::message::Redactor) takes out is neither told nor searched.
//! - Nothing is kept between two calls. A search looks through all that was compacted away, in a time
//!   that grows with its length.
//!
//! # How words match
//!
//! Words are runs of letters, digits and `_`, in any case. Those that stand together in a path, a
//! version or a name of code (`src/parse.rs`, `std::fs`) also count as one, and so do the parts of
//! `parse_error` and `ParseError`. Nothing is stemmed and no word is left out.
//!
//! [`EventLog::taken`]: crate::log::EventLog::taken

mod answer;
mod passage;
mod request;
#[cfg(feature = "recall")]
mod search;
pub mod tool;
#[cfg(feature = "recall")]
mod words;

pub use answer::{MAX_BYTES, MIN_BYTES, Recall};
pub use passage::{Passage, Recalled};
pub use request::{MAX_QUERY_BYTES, RecallError, RecallRequest};
