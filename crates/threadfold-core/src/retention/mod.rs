//! What a compaction lost, told without a model.
//!
//! A summary is shorter than what it stands for, so something is lost. Some of it can be told by
//! its words: paths, commands, errors, names, what the user demanded. [`audit`] takes these facts
//! out of the removed messages and looks for each in what stands now; [`addendum`] writes the
//! missing ones down, and [`enrich`] does both as a [`RetentionPolicy`] asks.
//!
//! ```
//! use threadfold::{Message, retention::{AuditOptions, audit}};
//!
//! let before = [Message::user("Fix src/parse.rs. Never touch the lexer.")];
//! let after = [Message::assistant("src/parse.rs is to be fixed.")];
//! let retention = audit(&before, &after, &AuditOptions::default());
//! let table = "class       facts   kept      % weight %\n\
//!              constraint      1      0      0        0\n\
//!              path            1      1    100      100\n\
//!              overall         2      1     50       50\n";
//! assert_eq!(retention.to_string(), table);
//! ```
//!
//! It measures words, not meaning. What a summary says in other words counts as missing, and what
//! it says falsely with the same words counts as kept. So compare audits with one another, and do
//! not take 60 % for bad.

pub(crate) mod addendum;
mod audit;
mod automaton;
mod fact;
mod facts;
mod files;
mod gather;
mod index;
mod options;
mod policy;
mod positions;
mod report;
mod search;
mod without;

pub use addendum::{Addendum, addendum};
pub use audit::audit;
pub use fact::Fact;
pub use facts::Facts;
pub use options::AuditOptions;
pub use policy::{Enriched, RetentionPolicy, Shortfall, enrich};
pub use report::{Recall, Retention};

pub use crate::prose::{FactClass, Speaker};
