//! The user's standing rules: what holds for the rest of the thread, kept word for word.
//!
//! A [`Ledger`] reads what the user typed, message by message, and knows which rules hold now: what
//! was forbidden or demanded for good, by the user or by the host, without what was taken back
//! since. No model is asked, so no summary can lose a rule or make one up.
//!
//! ```
//! use threadfold::{Message, ledger::Ledger};
//!
//! let mut ledger = Ledger::default();
//! ledger.read(0, &Message::user("Fix the parser, please. Never touch the lexer."));
//! ledger.read(1, &Message::user("Always use tabs."));
//! ledger.read(2, &Message::user("Actually, use spaces instead."));
//! assert_eq!(ledger.to_string(), "- Never touch the lexer.\n- Actually, use spaces instead.\n");
//! ledger.read(3, &Message::user("You may touch the lexer now."));
//! assert_eq!(ledger.to_string(), "- Actually, use spaces instead.\n");
//! ```
//!
//! # What is a rule
//!
//! An English sentence that the user typed: not in a fence, not quoted, not indented as code, not
//! between the tags of a host, no question, and not what somebody else is said to have said. What is
//! quoted may hold the mark that ends it, so a fence and a pair of tags go on to the last mark that
//! closes them, and what follows `The page says:` or `Here is the log:` to its last quotation mark or
//! the end of the text. A whole text that begins with `OBSERVATION:` or `Tool result:` is the output
//! of a tool. Nothing tells other pasted text from typed text: a host that puts such text into a
//! message of the user marks it [`untyped`](crate::Message::untyped). A sentence is a rule if
//!
//! - a part of it begins with `never`, `always`, `only`, `no longer`, `prefer`, or forbids (`don't`,
//!   `do not`), unless that is about this one moment (`yet`, `for now`, `don't worry`);
//! - somebody but `I`, `it`, `this`, `they` and the like `must`, `should always`, `should never`,
//!   `should only`, `may not`, or is `not allowed`;
//! - it says `from now on`, `going forward`, `for the rest of`, `at all times`, `under no
//!   circumstances`, `I prefer`;
//! - it asks to `keep` or `leave` something as it is;
//! - it is short and begins with `use`, without a word that ties it to the task at hand (`to`, `it`,
//!   `this`, `first`).
//!
//! Everything else is a request for once: `please fix the bug`.
//!
//! # What takes a rule back
//!
//! Only what the user typed later (nothing quoted), only rules of the user, and only where it is plain. In doubt
//! both stay. Two sentences are about the same thing if the same words are left in the same order
//! without articles, `please`, `now`, and the words that demand or forbid.
//!
//! - The opposite about the same thing: `never use tabs`, `always use tabs`.
//! - Another limit: `use at most 3 retries`, `use at most 5 retries`.
//! - Leave to do the same thing (`you may`, `feel free to`, `it's fine to`), or to leave it (`you
//!   don't have to`, `no need to`, `you no longer need to`).
//! - Another choice with the same verb and circumstances that names the old one (`use spaces instead
//!   of tabs`, `use spaces, not tabs`), or that says `instead`, `actually`, `I changed my mind`, where
//!   there is only one rule that it can mean.
//! - `Forget what I said about tabs`, where one rule names all of that; `forget` with the words of a
//!   rule; `forget all my rules`.

mod correction;
mod list;
mod meaning;
mod rule;
mod rules;
mod standing;
mod typed;

#[doc(hidden)]
pub use list::{TITLE, titled, without_titled};
pub use rule::{Rule, RuleId, RuleSource, RuleStatus};
pub use rules::Ledger;
