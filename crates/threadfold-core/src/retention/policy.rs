//! How much a summary must keep, and what is done where it does not.

use serde::{Deserialize, Serialize};

use super::{
    addendum::{Addendum, addendum_up_to},
    facts::Facts,
    options::AuditOptions,
    report::Retention,
};
use crate::{
    message::{Message, Text},
    prose::FactClass,
    tokens::TokenCounter,
};

/// How much must be kept.
///
/// ```
/// use futures::executor::block_on;
/// use std::sync::Arc;
/// use threadfold::{ModelAgent, Session, retention::RetentionPolicy, strategy::Summarize};
/// use threadfold::testing::ScriptedModel;
///
/// let long = "I read it, and it is a parser. ".repeat(20);
/// let model = ScriptedModel::new([long.as_str(), "Yes.", "Parsing."]);
/// let none = RetentionPolicy { addendum_tokens: 0, minimum: 0, ..RetentionPolicy::default() };
/// let mut session = Session::builder(ModelAgent::new(Arc::new(model)))
///     .strategy(Arc::new(Summarize { messages: 1, user_messages: 0, ..Summarize::default() }))
///     .retention(none)
///     .build()?;
/// for text in ["Fix src/parse.rs.", "Go on.", "/compact"] {
///     block_on(async { session.send(text).await })?;
/// }
/// let record = session.log().standing().last().ok_or("it was compacted")?;
/// let retention = record.report.retention.as_deref().ok_or("it was audited")?;
/// assert_eq!(retention.missing[0].text, "src/parse.rs");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RetentionPolicy {
    /// How much of the weight of all facts must stand, in percent.
    pub minimum: u64,
    /// How much of the weight of each class an addendum brings back, in percent, as far as there is
    /// room. It is written where something below that is missing, so usually long before `minimum`.
    pub wanted: u64,
    /// How long an addendum may be, in tokens. 0 for none.
    pub addendum_tokens: u64,
    /// Whether every sentence in which the user demanded something must stand word for word.
    pub constraints_verbatim: bool,
    /// What is looked for.
    pub audit: AuditOptions,
}

impl Default for RetentionPolicy {
    /// At least 30 percent, 90 wanted, an addendum of 4,000 tokens, constraints word for word.
    fn default() -> Self {
        Self {
            minimum: 30,
            wanted: 90,
            addendum_tokens: 4_000,
            constraints_verbatim: true,
            audit: AuditOptions::default(),
        }
    }
}

/// What becomes of a summary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Enriched {
    /// It keeps what is wanted as it is, or enough, and no addendum has room.
    Enough {
        /// What it keeps.
        retention: Retention,
    },
    /// It keeps enough with an addendum.
    WithAddendum {
        /// The summary, a blank line, and the addendum.
        text: Text,
        /// What was added.
        addendum: Addendum,
        /// What the summary kept without it.
        without: Retention,
        /// What it keeps with it.
        retention: Retention,
    },
    /// It keeps too little even with the addendum that is allowed.
    TooLittle {
        /// The best there is: the summary with the addendum, if there is one.
        text: Text,
        /// Why that is not enough.
        reason: Shortfall,
        /// What it keeps.
        retention: Retention,
    },
}

/// Why a summary keeps too little.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Shortfall {
    /// Something that the user demanded is lost.
    #[error("{lost} sentences in which the user demanded something are lost")]
    Constraints {
        /// How many.
        lost: u64,
    },
    /// Too much of everything is lost.
    #[error("{found} % of what the facts weigh is kept, and {minimum} % is the least")]
    Recall {
        /// How much is kept, in percent.
        found: u64,
        /// How much must be.
        minimum: u64,
    },
}

/// Says whether a summary keeps enough of what a thread ever said, adding what is missing where
/// that helps.
///
/// `after` is what else stands when the summary has come into the thread; whether the summary is in
/// it too makes no difference. Where less stands than the policy wants, missing facts are added as
/// [`addendum`](super::addendum()) has it, up to its budget.
///
/// ```
/// use threadfold::Message;
/// use threadfold::retention::{AuditOptions, Enriched, Facts, RetentionPolicy, enrich};
/// use threadfold::tokens::ByteEstimate;
///
/// let before = [Message::user("Fix src/parse.rs. Never touch the lexer.")];
/// let facts = Facts::of(&before, AuditOptions::default());
/// let policy = RetentionPolicy::default();
/// let enriched = enrich("src/parse.rs is fixed.", &facts, &[], &policy, &ByteEstimate::TRIGGER);
/// let Enriched::WithAddendum { text, .. } = enriched else { panic!("{enriched:?}") };
/// assert!(text.ends_with("\n- Never touch the lexer.\n"));
/// ```
#[must_use]
pub fn enrich(
    summary: &str,
    facts: &Facts,
    after: &[Message],
    policy: &RetentionPolicy,
    counter: &dyn TokenCounter,
) -> Enriched {
    let mut search = facts.search();
    after.iter().for_each(|message| search.read(message));
    search.read_summary(summary);
    let without = search.retention();
    let room = policy.addendum_tokens;
    let Some(addendum) = addendum_up_to(policy.wanted, &without, room, counter) else {
        return match policy.shortfall(&without) {
            None => Enriched::Enough { retention: without },
            Some(reason) => {
                Enriched::TooLittle { text: summary.into(), reason, retention: without }
            }
        };
    };
    let text = Text::from(format!("{}\n\n{}", summary.trim_end(), addendum.text));
    search.read_summary(&addendum.text);
    let retention = search.retention();
    match policy.shortfall(&retention) {
        None => Enriched::WithAddendum { text, addendum, without, retention },
        Some(reason) => Enriched::TooLittle { text, reason, retention },
    }
}

impl RetentionPolicy {
    /// Returns what this policy misses, if it misses something.
    ///
    /// ```
    /// use threadfold::retention::{Retention, RetentionPolicy};
    ///
    /// assert_eq!(RetentionPolicy::default().shortfall(&Retention::default()), None);
    /// ```
    #[must_use]
    pub fn shortfall(&self, retention: &Retention) -> Option<Shortfall> {
        let demands = retention.of(FactClass::Constraint);
        let lost = demands.facts.saturating_sub(demands.kept);
        if self.constraints_verbatim && lost > 0 {
            return Some(Shortfall::Constraints { lost });
        }
        let (found, minimum) = (retention.overall.weight_percent(), self.minimum);
        (found < minimum).then_some(Shortfall::Recall { found, minimum })
    }
}
