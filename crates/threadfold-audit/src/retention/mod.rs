//! Measures what a compaction lost, without a model.
//!
//! A summary is shorter than the messages it replaces, so something is lost. Some of the losses can
//! be recognised by words: paths, commands, errors, names, numbers. [`audit`] extracts
//! these facts from the removed messages and searches the new thread for each; [`addendum`] lists
//! the missing ones, and [`enrich`] does both under a [`RetentionPolicy`].
//!
//! ```
//! use threadfold::{Message, retention::{RetentionPolicy, audit}};
//!
//! let before = [Message::user("Fix src/parse.rs. It takes 250 ms.")];
//! let after = [Message::assistant("src/parse.rs is to be fixed.")];
//! let retention = audit(&before, &after, &RetentionPolicy::default());
//! let table = "class       facts   kept      % weight %\n\
//!              path            1      1    100      100\n\
//!              number          1      0      0        0\n\
//!              overall         2      1     50       50\n";
//! assert_eq!(retention.to_string(), table);
//! ```
//!
//! An audit measures words, not meaning. A fact in other words counts as missing, and a false
//! sentence with the same words counts as kept. So a single percentage means little: compare audits
//! with each other.
//!
//! A session compares with all messages that were ever in its thread, not only with the thread
//! before the compaction. So a summary can restore facts that an earlier one lost, and drift over
//! generations is visible. An audit asks no model, so it always gives the same result.

pub(crate) mod addendum;
mod audit;
mod automaton;
mod facts;
mod files;
mod form;
mod gather;
mod index;
mod invented;
mod options;
mod pasted;
mod policy;
mod positions;
mod search;
mod statements;

pub use addendum::addendum;
pub use audit::audit;
pub use facts::Facts;
pub use invented::invented;
#[doc(hidden)]
pub use options::AuditOptions;
pub use options::RetentionPolicy;
#[doc(hidden)]
pub use policy::Beside;
pub use policy::enrich;
#[doc(hidden)]
pub use statements::{Listing, Statement, Statements, headed};

pub use threadfold_core::retention::{Fact, FactClass, KeptShare, Retention};
