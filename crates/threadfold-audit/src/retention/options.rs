//! How much a summary must keep, and which facts an audit looks for.

use serde::{Deserialize, Serialize};

/// How much a summary must keep.
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
    /// The minimum percentage of the weight of all facts that must be kept.
    pub minimum: u64,
    /// The percentage of the weight of each class up to which an addendum lists missing facts,
    /// within its budget. An addendum is written whenever a class is below it.
    pub wanted: u64,
    /// The maximum tokens of an addendum. 0 for no addendum.
    pub addendum_tokens: u64,
    /// Whether every sentence in which the user demanded something must be kept word for word.
    pub constraints_verbatim: bool,
    /// The percentage of the target that the user's typed text gets before missing facts are
    /// listed, word for word. More of it is listed if there is room. 0 for no list.
    pub typed_percent: u64,
    /// The maximum number of facts that a summary may invent; with more it counts as keeping too
    /// little. `None` only reports them.
    pub max_invented: Option<u64>,
    /// Whether sentences of a summary that state invented facts are removed. The removed facts are
    /// reported, and their number is not limited.
    pub strikes_invented: bool,
    /// The maximum bytes of a fact. Longer ones are left out and counted.
    pub max_fact_bytes: usize,
    /// The maximum number of facts. If there are more, those with the least weight are left out and
    /// counted.
    pub max_facts: usize,
    /// The minimum number of messages in which a name, number or quote must occur if only tools
    /// state it, because files and logs contain many facts that do not matter. 1 includes all.
    pub tool_mentions: usize,
}

impl Default for RetentionPolicy {
    /// At least 30 percent, 90 percent wanted, an addendum of 4,000 tokens, constraints verbatim, a
    /// third for typed text. Facts of at most 600 bytes, 4,000 of them; those of tools alone if three
    /// messages state them.
    fn default() -> Self {
        let options = AuditOptions::default();
        Self {
            minimum: 30,
            wanted: 90,
            addendum_tokens: 4_000,
            constraints_verbatim: true,
            typed_percent: 33,
            max_invented: None,
            strikes_invented: false,
            max_fact_bytes: options.max_fact_bytes,
            max_facts: options.max_facts,
            tool_mentions: options.tool_mentions,
        }
    }
}

impl RetentionPolicy {
    /// Which facts are looked for.
    #[doc(hidden)]
    #[must_use]
    pub fn audit_options(&self) -> AuditOptions {
        let Self { max_fact_bytes, max_facts, tool_mentions, .. } = *self;
        AuditOptions { max_fact_bytes, max_facts, tool_mentions }
    }
}

/// Which facts an audit looks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[doc(hidden)]
pub struct AuditOptions {
    /// The maximum bytes of a fact. Longer ones are left out and counted.
    pub max_fact_bytes: usize,
    /// The maximum number of facts. If there are more, those with the least weight are left out and
    /// counted.
    pub max_facts: usize,
    /// The minimum number of messages in which a name, number or quote must occur if only tools
    /// state it, because files and logs contain many facts that do not matter. 1 includes all.
    pub tool_mentions: usize,
}

impl Default for AuditOptions {
    /// 600 bytes, 4,000 facts, three messages.
    fn default() -> Self {
        Self { max_fact_bytes: 600, max_facts: 4_000, tool_mentions: 3 }
    }
}
