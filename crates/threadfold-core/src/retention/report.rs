//! What an audit found.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

use super::fact::Fact;
use crate::prose::FactClass;

/// So many of the missing facts are named in a report.
const NAMED: usize = 12;

/// What of the facts in removed messages still stands, and what is missing.
///
/// [`Display`](fmt::Display) writes a short table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Retention {
    /// All facts together.
    pub overall: Recall,
    /// The facts of each class that there are any of.
    pub classes: BTreeMap<FactClass, Recall>,
    /// What is missing, what weighs most first.
    pub missing: Vec<Fact>,
    /// How many facts were not looked for, because there were too many. They weigh least.
    pub left_out: usize,
    /// How many facts were not looked for, because they were too long; again where said again.
    pub too_long: usize,
}

/// How many facts there were and how many stand, counted and weighed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Recall {
    /// How many there were.
    pub facts: u64,
    /// How many of them stand.
    pub kept: u64,
    /// What they weigh together.
    pub weight: u64,
    /// What those weigh that stand.
    pub kept_weight: u64,
}

impl Retention {
    /// Returns the recall of a class; of one without facts, that of nothing.
    ///
    /// ```
    /// use threadfold::retention::{FactClass, Recall, Retention};
    ///
    /// assert_eq!(Retention::default().of(FactClass::Path), Recall::default());
    /// ```
    #[must_use]
    pub fn of(&self, class: FactClass) -> Recall {
        self.classes.get(&class).copied().unwrap_or_default()
    }

    /// Returns the same with only the twelve missing facts that weigh most, as reports have it. The
    /// numbers stay.
    ///
    /// ```
    /// use threadfold::{Message, retention::{AuditOptions, audit}};
    ///
    /// let paths: String = (0..30).map(|n| format!("src/part{n}.rs ")).collect();
    /// let lost = audit(&[Message::user(paths)], &[], &AuditOptions::default());
    /// assert_eq!(lost.missing.len(), 30);
    /// let short = lost.shortened();
    /// assert_eq!((short.missing.len(), short.overall.facts), (12, 30));
    /// ```
    #[must_use]
    pub fn shortened(mut self) -> Self {
        self.missing.truncate(NAMED);
        self.missing.shrink_to_fit();
        self
    }
}

impl Recall {
    /// Returns how many of a hundred facts stand, rounded down; 100 of none.
    ///
    /// ```
    /// use threadfold::retention::Recall;
    ///
    /// assert_eq!(Recall::default().percent(), 100);
    /// ```
    #[must_use]
    pub fn percent(&self) -> u64 {
        percent(self.kept, self.facts)
    }

    /// Returns how much of the weight stands, in percent rounded down; 100 of none.
    ///
    /// ```
    /// use threadfold::retention::Recall;
    ///
    /// assert_eq!(Recall::default().weight_percent(), 100);
    /// ```
    #[must_use]
    pub fn weight_percent(&self) -> u64 {
        percent(self.kept_weight, self.weight)
    }

    /// That of one fact.
    pub(super) fn of(weight: u32, stands: bool) -> Self {
        let weight = u64::from(weight);
        let (kept, kept_weight) = if stands { (1, weight) } else { (0, 0) };
        Self { facts: 1, kept, weight, kept_weight }
    }

    pub(super) fn add(&mut self, other: Self) {
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
    /// Writes a head, a line for each class and one for all together.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<10} {:>6} {:>6} {:>6} {:>8}", "class", "facts", "kept", "%", "weight %")?;
        for (class, recall) in &self.classes {
            line(f, class.as_str(), recall)?;
        }
        line(f, "overall", &self.overall)?;
        match self.left_out {
            0 => Ok(()),
            left_out => writeln!(f, "{left_out} more were not looked for"),
        }
    }
}

fn line(f: &mut fmt::Formatter<'_>, name: &str, recall: &Recall) -> fmt::Result {
    let (percent, weight) = (recall.percent(), recall.weight_percent());
    writeln!(f, "{name:<10} {:>6} {:>6} {percent:>6} {weight:>8}", recall.facts, recall.kept)
}
