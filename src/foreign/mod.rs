//! Compaction of a host's own messages, without converting them.
//!
//! A host implements [`HostMessage`] for its type: the role, and the [`Part`]s with their texts,
//! calls and results. The crate reads each message once into a *shadow*, a [`Message`] with one
//! block for each part, and plans on the shadows. The result is a [`HostPlan`]: ranges of messages
//! that stay, and descriptions of the few new ones. The kept messages are the same values as
//! before, with everything in them that this crate does not know.
//!
//! | you want | use |
//! |---|---|
//! | compactions that keep rules and facts | [`Compactor::observe_host`](crate::Compactor::observe_host), [`Compactor::plan_host`](crate::Compactor::plan_host) |
//! | to carry a plan out, and to undo it | [`HostPlan::apply`], [`Applied::undo`] |
//! | [legality](crate::legality), cut points, a strategy of your own | [`shadows`], then any function of this crate, then [`HostPlan::new`] |
//!
//! A shadow shares a text that the host has as `Arc<str>` and copies any other once, when the
//! message is first observed. Later observations compare the bytes of old messages and copy
//! nothing; `cargo bench --bench foreign` prints the cost.
//!
//! ```
//! use futures::executor::block_on;
//! use threadfold::foreign::{HostMessage, NewMessage, NewPart, Part};
//! use threadfold::{Compactor, Role, legality, testing::ExtractiveModel};
//!
//! /// The messages of this host. Nothing in them is made for compaction.
//! enum Line {
//!     User(String),
//!     Answer { text: String, calls: Vec<(String, String)>, signature: u64 },
//!     Output { call: String, text: String },
//! }
//!
//! impl HostMessage for Line {
//!     fn role(&self) -> Role {
//!         if let Line::Answer { .. } = self { Role::Assistant } else { Role::User }
//!     }
//!
//!     fn parts(&self) -> Vec<Part<'_>> {
//!         match self {
//!             Line::User(text) => vec![Part::text(text)],
//!             Line::Answer { text, calls, .. } => {
//!                 let calls = calls.iter().map(|(id, path)| Part::call(id, "read", path));
//!                 [Part::text(text)].into_iter().chain(calls).collect()
//!             }
//!             Line::Output { call, text } => vec![Part::result(call, text)],
//!         }
//!     }
//! }
//!
//! /// Makes the few messages of a plan that are new.
//! fn line(new: &NewMessage, _old: &[Line]) -> Line {
//!     match &new.parts[..] {
//!         [NewPart::Result(result)] => Line::Output { call: result.id.to_string(), text: result.text() },
//!         _ if new.role == Role::User => Line::User(new.text()),
//!         _ => Line::Answer { text: new.text(), calls: Vec::new(), signature: 0 },
//!     }
//! }
//!
//! let mut thread = vec![Line::User("Read all files.".to_owned())];
//! for n in 0..9_u64 {
//!     let call = (format!("call_{n}"), format!("{{\"path\":\"{n}.rs\"}}"));
//!     thread.push(Line::Answer { text: "Next.".into(), calls: vec![call], signature: n });
//!     thread.push(Line::Output { call: format!("call_{n}"), text: "fn parse() {} ".repeat(60) });
//! }
//!
//! let mut compactor = Compactor::default();
//! let planned = block_on(compactor.plan_host(&thread, 900, &ExtractiveModel))?;
//! let applied = planned.plan.apply(&mut thread, line)?;
//! assert_eq!(thread.len(), planned.plan.messages_after());
//! assert_eq!(legality::violations(&threadfold::foreign::shadows(&thread)), []);
//!
//! // The last compaction can be undone: the removed messages are the same values again.
//! applied.undo(&mut thread)?;
//! assert_eq!(thread.len(), 19);
//! assert!(matches!(thread[1], Line::Answer { signature: 0, .. }));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Message`]: crate::Message

mod applied;
mod host_message;
mod host_plan;
mod new_message;
mod shadow;
mod words;

pub use applied::Applied;
pub use host_message::{HostMessage, Part};
pub use host_plan::{HostPlan, Piece};
pub use new_message::{NewMessage, NewPart, NewResult, ResultPart};
pub(crate) use shadow::is_shadow_of;
pub use shadow::{shadow, shadows};
pub use words::Words;
