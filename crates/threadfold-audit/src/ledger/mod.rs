//! The user's standing rules: demands that apply to the rest of the thread, kept word for word.
//!
//! A [`Ledger`] reads the user's messages one by one and knows which rules are active: the rules of
//! the user and the host that were not revoked or replaced. It calls no model, so no summary can
//! lose a rule or invent one.
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
//! A rule is a sentence that the user typed. It is not in a fence, not quoted, not indented as
//! code, not between tags of a host, not a question (a tag such as `ok?` does not make it one) and
//! not a report of another person's words. Quoted text may contain its own closing mark, so a fence
//! and a pair of tags extend to the last mark that closes them, and text after `The page says:` or
//! `Here is the log:` extends to its last quotation mark or the end of the text. A text that begins
//! with `OBSERVATION:` or `Tool result:` is tool output. Other pasted text cannot be recognised: a
//! host that puts such text into a user message marks the message
//! [`untyped`](crate::message::Message::untyped). A sentence is a rule if
//!
//! - it is announced as a rule (`Please follow this rule: ...`), or is an item of a list whose
//!   heading announces rules or demands (`House rules:`, `## Rules`, `You must never:`); then the
//!   heading belongs to it;
//! - it contains `from now on`, `for this conversation`, `for the rest of`, `at all times`, `under
//!   no circumstances` or `I prefer`, and does not only state something (`from now on it's easy`);
//! - a clause begins with `never`, `always`, `only`, `no longer`, `prefer`, `avoid`, or forbids
//!   (`don't`, `do not`), unless it is about this moment (`yet`, `for now`, `today`) or remarks
//!   something (`never heard of it`);
//! - a subject other than `I`, `it`, `this`, `they` and the like `must`, `should always`, `should
//!   never`, `should only`, `may not`, or is `not allowed`, unless the sentence is a guess (`one
//!   would think`, `according to the guide`);
//! - it asks to `keep` or `leave` something as it is, to `answer`, `reply` or `respond` in some
//!   way, or to `end with` something;
//! - it only names what is unwanted (`no accents`, `no nuts in any dish`), or says what `every`
//!   thing of a kind `needs` or `gets`;
//! - it names a recurring condition and the action for it (`When you name a branch, begin with the
//!   ticket`), is about `every reply` or `all paragraphs`, ends with `only`, or gives the form of
//!   something that recurs (`write dates as year-month-day`);
//! - it permits something only to some people (`only Ada may sign`, `nobody but Ada signs`), or
//!   only after somebody's consent (`ask me before you delete anything`, `get my approval before
//!   ordering`);
//! - it describes all things of a kind (`prices always include tax`, `labels are always written in
//!   ink`), or orders something for a recurring time (`keep the hatch shut at night`);
//! - it forbids something until something happens, not until an hour or a day (`don't ship it until
//!   customs clears it`);
//! - it keeps something within a limit (`keep the frame budget under 14 ms`);
//! - it is short and begins with `use`, without a word that ties it to the current task (`to`,
//!   `it`, `this`, `first`).
//!
//! A clause may also follow `and` without punctuation, if the words before it are an order or the
//! clause says `please`: `move the files and never touch the archive`. A question at the end of the
//! sentence does not make the rule a question: `never restart the server, can you look at the log?`
//!
//! An aside before a colon or a comma is ignored (`Oh, and before I forget: use tabs`). Words for
//! the present moment matter only in the clause with the demand: `never open it, and we can talk
//! tomorrow` is a rule.
//!
//! In German, Spanish, Portuguese, French, Chinese and Japanese the words that demand, forbid,
//! permit and revoke are read as their English forms, which `english.txt` lists; so such a sentence
//! is a rule if it has the form of one above (`Lösche niemals Logs`, `不要在白天重启服务器`). Other demands
//! in these languages are kept as typed text.
//!
//! A preface (`For the rest of this week.`) makes the sentence after it a rule and belongs to it. A
//! demand without an object of its own (`Never raise without asking.`, `It must never leave the
//! house.`) is kept together with the sentence before it.
//!
//! Every other sentence is a one-time request: `please fix the bug`.
//!
//! # What revokes a rule
//!
//! Only a later sentence that the user typed can revoke a rule, only if it is unambiguous, and only
//! if the rule is the user's own. In doubt both rules stay. Two sentences have the same topic if
//! the base forms of their words are equal without articles, prepositions, `please`, `now`, and the
//! words that demand or forbid.
//!
//! - The opposite on the same topic: `never use tabs`, `always use tabs`.
//! - Permission on the same topic (`you may`, `feel free to`, `tabs are fine again`), or release
//!   (`you don't have to`, `we no longer need`, `you can stop`, `the header is no longer needed`).
//!   It may be shorter than the rule if it can mean only one rule and that rule names one thing: it
//!   may omit the verb (`red ink is fine again`); with `again`, `any more` or `from now on` also
//!   the words after the thing (`while I'm out`); with `any` all circumstances (`restarts are fine
//!   at any hour`). A permission with `only` becomes the new rule (`restarts are okay only on
//!   Sunday now`). A rule for some people is revoked by a permission for everybody (`anyone may
//!   sign now`), and a rule that requires a consent by a permission without it (`you can order
//!   parts without asking me`). `The server is okay again` revokes only a rule not to use it.
//! - The same demand with another value, if its verb can have only one value: the language or form
//!   of an answer, the thing to use, a name, the place of a deployment, the number of a limit
//!   (`answer in French`, `answer in German`; `use at most 3 retries`, `use at most 5 retries`).
//!   Two prohibitions are both valid, unless they differ only in the number of a limit.
//! - Another choice with the same verb and circumstances that names the old one (`use spaces
//!   instead of tabs`, `use spaces, not tabs`), or that says `instead`, `actually` or `I changed my
//!   mind`, if it can mean one rule only.
//! - Another value for the same subject, in a rule or in any other sentence: `The limit is $40`,
//!   `The limit is $60`. Prohibitions of two different things are both valid.
//! - `Forget what I said about tabs`, `the ban on tabs is lifted`, `ignore the ten line limit`, if
//!   one rule contains all these words; `forget` with the words of a rule; `forget all my rules`.

mod announce;
mod asking;
mod choice;
mod consent;
mod correction;
mod english;
mod entry;
mod forms;
mod list;
mod meaning;
mod phrases;
mod quotes;
mod rule;
mod rules;
mod standing;
mod terms;
mod typed;
mod values;
mod words;

#[doc(hidden)]
pub use list::{TITLE, counted, counts_more, titled, without_titled};
pub use quotes::{
    Found, Lifted, LiftedRule, QuotedChanges, QuotedRule, Quotes, Typed as TypedText,
};
pub use rule::{Rule, RuleStatus};
pub use rules::Ledger;

pub(crate) use self::{
    announce::is_preface,
    correction::takes_back,
    standing::{is_rule, lacks_subject},
    typed::typed,
};
