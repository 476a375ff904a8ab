//! Bills of threads under a prompt cache, by the policy that compacts them.
//!
//! `course` is a thread as it grows, `provider` bills each request, `policy` lists the policies,
//! `replay` runs one through the library, and `oracle` computes the lowest possible bill.

mod course;
mod oracle;
mod policy;
mod provider;
mod replay;

use std::ops::AddAssign;

pub(crate) use course::Course;
pub(crate) use policy::{FIXED, OURS};
pub(crate) use replay::{Kept, Outcome};
use threadfold::compact::Prices;

/// The results of a policy over all courses.
pub(crate) struct Row {
    pub(crate) policy: &'static str,
    pub(crate) outcome: Outcome,
}

/// The results of all policies on the same courses, and the oracle's bill.
pub(crate) struct Table {
    pub(crate) rows: Vec<Row>,
    /// The lowest bill that the courses can have with the target of the planner.
    pub(crate) oracle: i64,
}

/// The prices of the table: those of a model that writes its cache at 1.25 times and reads it at a
/// tenth of the price of input.
pub(crate) fn prices() -> Prices {
    Prices {
        input: 3.0,
        cached: 0.3,
        cache_write: 3.75,
        output: 15.0,
        cache_life_ms: 300_000,
        cache_min: 1_024,
        cache_block: 1,
    }
}

/// Runs the policies over the courses. If `is_short`, policies with a habit are skipped.
///
/// # Errors
///
/// A text, if the library refuses a legal course, or if a policy is cheaper than the oracle, whose
/// bill would then not be a lower bound.
pub(crate) fn compare(courses: &[Course], is_short: bool) -> Result<Table, String> {
    let mut table = Table { rows: Vec::new(), oracle: 0 };
    for course in courses {
        let prices = prices();
        let mut policies =
            policy::policies(prices, course.window).map_err(|error| error.to_string())?;
        policies.retain(|policy| policy.habit.is_none() || !is_short);
        let ours = policies.iter().find(|policy| policy.name == OURS).ok_or("no planner")?;
        let mut sizes = replay::sizes(course, ours, prices)?;
        let (mut bills, mut kept) = (Vec::new(), 0);
        for (index, policy) in policies.iter().enumerate() {
            let outcome = replay::replay(course, policy, prices)?;
            if policy.habit.is_none() {
                bills.push((policy.name, outcome.money));
                for (request, left) in &outcome.left {
                    if let Some(size) = sizes.get_mut(*request) {
                        *size = (*size).min(left.tokens);
                    }
                    kept = kept.max(left.kept);
                }
            }
            if table.rows.len() <= index {
                table.rows.push(Row { policy: policy.name, outcome: Outcome::default() });
            }
            if let Some(row) = table.rows.get_mut(index) {
                row.outcome += outcome;
            }
        }
        // The sizes that the oracle counts with are those of one target, and another target may leave
        // less. Then the oracle does what was cheapest.
        let oracle = oracle::least_bill(course, &prices, &sizes, kept);
        table.oracle += bills.iter().map(|(_, bill)| *bill).chain([oracle]).min().unwrap_or(oracle);
    }
    Ok(table)
}

impl Table {
    /// The outcome of a policy.
    pub(crate) fn of(&self, policy: &str) -> Outcome {
        let row = self.rows.iter().find(|row| row.policy == policy);
        row.map(|row| row.outcome.clone()).unwrap_or_default()
    }
}

impl AddAssign for Outcome {
    fn add_assign(&mut self, other: Self) {
        self.billed += other.billed;
        self.money += other.money;
        self.compactions += other.compactions;
        self.facts += other.facts;
        self.paths += other.paths;
        self.is_too_long |= other.is_too_long;
    }
}

impl AddAssign for Kept {
    fn add_assign(&mut self, other: Self) {
        self.weight += other.weight;
        self.kept += other.kept;
    }
}

impl Kept {
    /// The kept share of the weight, in thousandths.
    pub(crate) fn per_mille(self) -> u64 {
        (self.kept * 1_000).checked_div(self.weight).unwrap_or(1_000)
    }
}
