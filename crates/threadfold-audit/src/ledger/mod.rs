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
//! A sentence that the user typed: not in a fence, not quoted, not indented as code, not
//! between the tags of a host, no question (a tag such as `ok?` makes none), and no report of another person's words. Quoted text
//! may contain its own closing mark, so a fence and a pair of tags extend to the last mark that
//! closes them, and text after `The page says:` or `Here is the log:` extends to its last quotation
//! mark or the end of the text. A text that begins with `OBSERVATION:` or `Tool result:` is tool
//! output. Other pasted text cannot be recognised: a host that puts such text into a user message
//! marks the message [`untyped`](crate::message::Message::untyped). A sentence is a rule if
//!
//! - it is announced as a rule (`Please follow this rule: ...`), or is an item of a list whose
//!   heading announces rules or demands (`House rules:`, `## Rules`, `You must never:`); then the
//!   heading belongs to it;
//! - it contains `from now on`, `for this conversation`, `for the rest of`, `at all times`, `under no
//!   circumstances` or `I prefer`, and does not only state something (`from now on it's easy`);
//! - a clause begins with `never`, `always`, `only`, `no longer`, `prefer`, `avoid`, or forbids
//!   (`don't`, `do not`), unless it is about this moment (`yet`, `for now`, `today`) or remarks
//!   something (`never heard of it`);
//! - a subject other than `I`, `it`, `this`, `they` and the like `must`, `should always`, `should
//!   never`, `should only`, `may not`, or is `not allowed`, unless the sentence is a guess (`one
//!   would think`, `according to the guide`);
//! - it asks to `keep` or `leave` something as it is, to `answer`, `reply` or `respond` in some way, or
//!   to `end with` something;
//! - it only names what must not be (`no accents`, `no nuts in any dish`), or says what `every` thing
//!   of a kind `needs` or `gets`;
//! - it names a condition that recurs and what is to be done then (`When you name a branch, begin
//!   with the ticket`), says something of `every reply` or `all paragraphs`, ends with `only`, or
//!   gives the form of something that recurs (`write dates as year-month-day`);
//! - it lets only some people do something (`only Ada may sign`, `nobody but Ada signs`), or makes it
//!   wait for a consent (`ask me before you delete anything`, `get my approval before ordering`);
//! - it says how all things of a kind are (`prices always include tax`, `labels are always written in ink`),
//!   or orders something for a time that recurs (`keep the hatch shut at night`);
//! - it forbids something until something happens, not until an hour or a day (`don't ship it until
//!   customs clears it`);
//! - it keeps something within a limit (`keep the frame budget under 14 ms`);
//! - it is short and begins with `use`, without a word that ties it to the current task (`to`, `it`,
//!   `this`, `first`).
//!
//! A clause may follow `and` without punctuation, if the words before it are an order, or it says
//! `please`: `move the files and never touch the archive`. A request at the end of the sentence makes
//! the rule no question: `never restart the server, can you look at the log?`
//!
//! An aside before a colon or a comma is not read (`Oh, and before I forget: use tabs`), and words for this
//! moment count only in a clause that may be the demand (`never open it, and we can talk tomorrow`).
//!
//! In German, Spanish, Portuguese, French, Chinese and Japanese the words that demand, forbid,
//! permit and revoke are read as their English forms, which `english.txt` lists; so such a sentence
//! is a rule if it has the form of one above (`Lösche niemals Logs`, `不要在白天重启服务器`). Other demands
//! are kept as typed text.
//!
//! A preface (`For the rest of this week.`) makes the sentence after it a rule and belongs to it. A
//! demand without an object of its own (`Never raise without asking.`, `It must never leave the
//! house.`) is kept together with the sentence before it.
//!
//! Every other sentence is a one-time request: `please fix the bug`.
//!
//! # What revokes a rule
//!
//! Only a later sentence that the user typed, only a rule of the user, and only if the sentence is
//! unambiguous. In doubt both rules stay. Two sentences have the same topic if the base forms of
//! their words are equal without articles, prepositions, `please`, `now`, and the words that demand
//! or forbid.
//!
//! - The opposite on the same topic: `never use tabs`, `always use tabs`.
//! - Permission on the same topic (`you may`, `feel free to`, `tabs are fine again`), or release
//!   (`you don't have to`, `we no longer need`, `you can stop`, `the header is no longer needed`). If it
//!   can mean one rule only, that names one thing, it may leave out the verb (`red ink is fine again`),
//!   with `again`, `any more` or `from now on` what follows the thing (`while I'm out`), and with `any`
//!   all circumstances (`restarts are fine at any hour`). With `only` it is the new rule (`restarts are
//!   okay only on Sunday now`). A rule that lets only some people do something is revoked by a
//!   permission for everybody (`anyone may sign now`), and one that asks for a consent by a permission without
//!   it (`you can order parts without asking me`). `The server is okay again` lifts only a rule not to use it.
//! - The same demand with another value, if its verb has one value only: the language or form of an
//!   answer, the thing for a use, a name, the place of a deployment, the number of a limit (`answer in
//!   French`, `answer in German`; `use at most 3 retries`, `use at most 5 retries`). Two prohibitions
//!   both hold, unless they differ in the number of a limit.
//! - Another choice with the same verb and circumstances that names the old one (`use spaces instead
//!   of tabs`, `use spaces, not tabs`), or that says `instead`, `actually` or `I changed my mind`, if
//!   it can mean one rule only.
//! - Another value for the same subject, in a rule or in any other sentence: `The limit is $40`, `The
//!   limit is $60`. Prohibitions that name two things both hold.
//! - `Forget what I said about tabs`, `the ban on tabs is lifted`, `ignore the ten line limit`, if one
//!   rule contains all these words; `forget` with the words of a rule; `forget all my rules`.

mod announce;
mod asking;
mod consent;
mod correction;
mod english;
mod entry;
mod list;
mod meaning;
mod phrases;
mod rule;
mod rules;
mod standing;
mod terms;
mod typed;

#[doc(hidden)]
pub use list::{TITLE, titled, without_titled};
pub use rule::{Rule, RuleStatus};
pub use rules::Ledger;

pub(crate) use self::{
    announce::is_preface,
    correction::takes_back,
    standing::{is_rule, lacks_subject},
    typed::typed,
};
