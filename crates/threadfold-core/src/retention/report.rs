//! The result of an audit.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

use super::{class::FactClass, fact::Fact};

/// The maximum number of missing facts, and of invented ones, in a shortened report.
const SHORTENED: usize = 12;

/// The result of an audit: which facts of the removed messages are still in the thread, and which
/// are missing.
///
/// [`Display`](fmt::Display) writes a table with one line for each class.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Retention {
    /// The kept share of all facts together.
    pub overall: KeptShare,
    /// The kept share of each class that has facts.
    pub classes: BTreeMap<FactClass, KeptShare>,
    /// The missing facts, the heaviest first.
    pub missing: Vec<Fact>,
    /// The number of facts that were left out because there were more than the policy's
    /// `max_facts`: those with the least weight.
    pub left_out: usize,
    /// The number of facts that were left out because they were longer than the policy's
    /// `max_fact_bytes`, repetitions included.
    pub too_long: usize,
    /// The facts that the summary states and the conversation does not: see
    /// `retention::invented`. A shortened report lists the first twelve.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub invented: Vec<Fact>,
}

/// How many facts there were and how many are kept, by number and by weight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct KeptShare {
    /// The number of facts.
    pub facts: u64,
    /// How many of them are kept.
    pub kept: u64,
    /// The sum of the weights of all facts.
    pub weight: u64,
    /// The sum of the weights of the kept facts.
    pub kept_weight: u64,
}

impl Retention {
    /// Returns the kept share of a class, which is all zeros for a class without facts.
    ///
    /// ```
    /// use threadfold::retention::{FactClass, KeptShare, Retention};
    ///
    /// assert_eq!(Retention::default().of(FactClass::Path), KeptShare::default());
    /// ```
    #[must_use]
    pub fn of(&self, class: FactClass) -> KeptShare {
        self.classes.get(&class).copied().unwrap_or_default()
    }

    /// Drops all missing facts except the twelve heaviest, and all invented ones except the first
    /// twelve. The numbers stay.
    ///
    /// ```
    /// use threadfold::{Message, retention::{RetentionPolicy, audit}};
    ///
    /// let paths: String = (0..30).map(|n| format!("src/part{n}.rs ")).collect();
    /// let lost = audit(&[Message::user(paths)], &[], &RetentionPolicy::default());
    /// assert_eq!(lost.missing.len(), 30);
    /// let short = lost.shortened();
    /// assert_eq!((short.missing.len(), short.overall.facts), (12, 30));
    /// ```
    #[must_use]
    pub fn shortened(mut self) -> Self {
        self.missing.truncate(SHORTENED);
        // A report stays in memory with its log, and a list of missing facts may have been long.
        self.missing.shrink_to_fit();
        self.invented.truncate(SHORTENED);
        self
    }

    /// Returns the report of a plan without the facts that the thread before it lacked: an earlier
    /// compaction has lost them. `before` is the report of the same facts in that thread. Only the
    /// shares are compared: a lost fact that the plan restores makes up for one that it loses.
    ///
    /// ```
    /// use threadfold::{Message, retention::{Facts, RetentionPolicy}};
    ///
    /// let [lost, said] = ["Fix src/lex.rs.", "Fix src/parse.rs."].map(Message::user);
    /// let facts = Facts::of(&[lost, said.clone()], &RetentionPolicy::default());
    /// let (before, after) = (facts.audit(std::slice::from_ref(&said)), facts.audit(&[said]));
    /// assert_eq!(after.overall.percent(), 50);
    /// assert_eq!(after.against(&before).overall.percent(), 100);
    /// ```
    #[must_use]
    pub fn against(mut self, before: &Self) -> Self {
        self.overall = self.overall.against(before.overall);
        for (class, share) in &mut self.classes {
            *share = share.against(before.of(*class));
        }
        self
    }
}

impl KeptShare {
    fn against(self, before: Self) -> Self {
        let (facts, weight) = (before.kept, before.kept_weight);
        let (kept, kept_weight) = (self.kept.min(facts), self.kept_weight.min(weight));
        Self { facts, kept, weight, kept_weight }
    }

    /// Returns the percentage of the facts that are kept, rounded down; 100 if there are no facts.
    ///
    /// ```
    /// use threadfold::retention::KeptShare;
    ///
    /// assert_eq!(KeptShare::default().percent(), 100);
    /// ```
    #[must_use]
    pub fn percent(&self) -> u64 {
        percent(self.kept, self.facts)
    }

    /// Returns the percentage of the weight that is kept, rounded down; 100 if there are no facts.
    ///
    /// ```
    /// use threadfold::retention::KeptShare;
    ///
    /// assert_eq!(KeptShare::default().weight_percent(), 100);
    /// ```
    #[must_use]
    pub fn weight_percent(&self) -> u64 {
        percent(self.kept_weight, self.weight)
    }

    /// Returns the share of one fact.
    #[doc(hidden)]
    #[must_use]
    pub fn of(weight: u32, is_kept: bool) -> Self {
        let weight = u64::from(weight);
        let (kept, kept_weight) = if is_kept { (1, weight) } else { (0, 0) };
        Self { facts: 1, kept, weight, kept_weight }
    }

    #[doc(hidden)]
    pub fn add(&mut self, other: Self) {
        self.facts += other.facts;
        self.kept += other.kept;
        self.weight += other.weight;
        self.kept_weight += other.kept_weight;
    }
}

fn percent(part: u64, whole: u64) -> u64 {
    part.saturating_mul(100).checked_div(whole).unwrap_or(100)
}

impl fmt::Display for Retention {
    /// Writes a header, a line for each class and one for all facts.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<10} {:>6} {:>6} {:>6} {:>8}", "class", "facts", "kept", "%", "weight %")?;
        for (class, share) in &self.classes {
            line(f, class.as_str(), share)?;
        }
        line(f, "overall", &self.overall)?;
        if !self.invented.is_empty() {
            let texts: Vec<&str> = self.invented.iter().map(|fact| fact.text.as_str()).collect();
            writeln!(f, "stated by no message: {}", texts.join(", "))?;
        }
        match self.left_out {
            0 => Ok(()),
            left_out => writeln!(f, "{left_out} more facts were not searched for"),
        }
    }
}

fn line(f: &mut fmt::Formatter<'_>, name: &str, share: &KeptShare) -> fmt::Result {
    let (percent, weight) = (share.percent(), share.weight_percent());
    writeln!(f, "{name:<10} {:>6} {:>6} {percent:>6} {weight:>8}", share.facts, share.kept)
}
