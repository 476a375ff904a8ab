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
    /// The minimum percentage of the weight of the facts in a thread that its compaction must keep.
    pub minimum: u64,
    /// The percentage of the weight of each class that an addendum restores, within its budget. If
    /// a class is below it, an addendum is written.
    pub wanted: u64,
    /// The maximum tokens of an addendum. 0 for no addendum.
    pub addendum_tokens: u64,
    /// The percentage of the target that is reserved for the list of the user's typed text, word
    /// for word, before missing facts are listed. If room is left, the list gets more. 0 for no
    /// list.
    pub typed_percent: u64,
    /// The maximum number of facts that a summary may invent. A summary with more is treated like
    /// one that keeps too little. With `None`, invented facts are only reported.
    pub max_invented: Option<u64>,
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
    /// Requires 30 percent and restores up to 90 percent by an addendum of at most 4,000 tokens.
    /// A third of the target is for typed text. At most 4,000 facts
    /// of at most 600 bytes are considered; facts that only tools state must be in three messages.
    fn default() -> Self {
        let options = AuditOptions::default();
        Self {
            minimum: 30,
            wanted: 90,
            addendum_tokens: 4_000,
            typed_percent: 33,
            max_invented: None,
            max_fact_bytes: options.max_fact_bytes,
            max_facts: options.max_facts,
            tool_mentions: options.tool_mentions,
        }
    }
}

impl RetentionPolicy {
    /// The options that concern which facts are looked for.
    #[doc(hidden)]
    #[must_use]
    pub fn audit_options(&self) -> AuditOptions {
        let Self { max_fact_bytes, max_facts, tool_mentions, .. } = *self;
        AuditOptions { max_fact_bytes, max_facts, tool_mentions, ..AuditOptions::default() }
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
    /// The maximum number of statements of the user. Above twice this number, the least valuable are
    /// dropped and counted.
    pub max_statements: usize,
}

impl Default for AuditOptions {
    /// 600 bytes for a fact, 4,000 facts, three messages with a fact of tools, 1,000 statements.
    fn default() -> Self {
        Self { max_fact_bytes: 600, max_facts: 4_000, tool_mentions: 3, max_statements: 1_000 }
    }
}

impl AuditOptions {
    /// Returns the options with no more facts and statements than a compacted thread in a window of
    /// this many tokens could list, so that the cost of a compaction does not grow with the age of its
    /// thread.
    #[must_use]
    pub fn within(self, window: Option<u64>) -> Self {
        /// A listed fact or statement takes about eight tokens, and lists take at most a quarter of
        /// the window.
        const TOKENS: u64 = 32;
        /// Even a small window knows this many.
        const LEAST: usize = 100;
        let Some(window) = window else { return self };
        let most = usize::try_from(window / TOKENS).unwrap_or(usize::MAX).max(LEAST);
        Self {
            max_facts: self.max_facts.min(most),
            max_statements: self.max_statements.min(most),
            ..self
        }
    }
}
