//! The user's standing rules: sentences that apply to the rest of the thread, kept word for word.
//!
//! A [`Ledger`] lists the rules that are active. Two sources add one: the host, and a model that
//! quotes what the user typed. A question for a summary asks for such [`Quotes`]; code checks each
//! against the [typed text](TypedText) and keeps the user's own sentence. No grammar decides what a
//! rule is, so all languages are alike, and no text of a tool can become a rule.
//!
//! Without a model nothing is called a rule. What the user typed is then kept as
//! [statements](crate::retention), also word for word.
//!
//! A rule and a statement are two values. A rule has an origin (the host, or a quote with its
//! place), can be lifted, and comes before all statements where there is little room; a statement has
//! a place in an order and is left out first if it is long and common.
//!
//! A quote that a rung of a ladder got counts even if another rung makes the plan. Quotes and the
//! host's changes are in the log, so replay, fork and undo need nothing more. Rules are in the
//! thread, because a change of the system prompt would invalidate the provider's cache; a host can
//! choose the system prompt.
//!
//! ```
//! use threadfold::{Message, ledger::{Ledger, Moderators, Quotes, TypedText}};
//!
//! let mut typed = TypedText::default();
//! typed.read(0, &Message::user("Bitte hilf mir. Ich esse kein Fleisch."));
//! typed.read(1, &Message::user("Seit heute esse ich wieder Fisch."));
//!
//! let mut ledger = Ledger::default();
//! let (_, quotes) = Quotes::cut("<user_rules>\n- Ich esse kein Fleisch\n</user_rules>");
//! let everybody = Moderators::Everybody;
//! ledger.apply(&ledger.quoted(&quotes, &typed, &everybody));
//! assert_eq!(ledger.to_string(), "- Ich esse kein Fleisch.\n");
//!
//! // A statement is taken back only with a later sentence of the user.
//! let lifted = "<user_lifted>\n- Ich esse kein Fleisch. => Seit heute esse ich wieder Fisch.\n";
//! let (_, quotes) = Quotes::cut(lifted);
//! ledger.apply(&ledger.quoted(&quotes, &typed, &everybody));
//! assert_eq!(ledger.active().count(), 0);
//! ```
//!
//! # Several people
//!
//! If messages have [authors](crate::message::Author), a rule is its author's, and a list names the
//! author: `- ann said: Never push to main.` A quote that begins so counts only if this author typed
//! it. By default everybody can take back what anybody said. A host that names
//! [moderators](Moderators) leaves that to them; everybody else can then take back only what they
//! themselves said, and a text without an author takes back nothing.
//!
//! # What the user typed
//!
//! A message counts as far as a person typed it: not what is in a fence, quoted, indented as code or
//! between tags of a host, and not a report of another person's words (`The page says: ...`), which
//! extends to the end of its paragraph, or of the message if it begins on a line of its own. Quoted
//! text may contain its own closing mark, so a fence and a pair of tags extend to the last mark that
//! closes them. A text that begins with `OBSERVATION:` or `Tool result:` is tool output. Other pasted
//! text cannot be recognised: a host that puts such text into a user message marks the message
//! [`untyped`](crate::message::Message::untyped).

mod changes;
mod list;
mod moderators;
mod quotes;
mod rule;
mod rules;
mod typed;

pub use changes::{QuotedChanges, QuotedRule, TakenBack};
#[doc(hidden)]
pub use list::{TITLE, counted, counts_more, titled, without_titled};
pub use moderators::Moderators;
pub use quotes::{Found, Lifted, Quotes, Typed as TypedText};
pub use rule::{Rule, RuleStatus};
pub use rules::Ledger;

pub(crate) use typed::{Reports, typed};
