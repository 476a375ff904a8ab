//! Bills of threads under a prompt cache, by the policy that compacts them.
//!
//! `course` is a thread as it grows, with the user's pauses, `provider` bills each request, `policy`
//! lists the policies, `replay` runs one through the library, and `oracle` computes the lowest
//! possible bill.

mod course;
mod oracle;
pub(crate) mod policy;
mod provider;
mod replay;

use std::ops::AddAssign;

pub(crate) use course::{Course, Pauses};
use policy::{OURS, Policy};

pub(crate) use replay::{Kept, Outcome};
use threadfold::compact::{CacheLife, Prices};

/// The results of a policy over all courses.
pub(crate) struct Row {
    pub(crate) policy: &'static str,
    /// Whether the policy is a rule with fixed numbers, which knows no prices.
    pub(crate) is_fixed: bool,
    pub(crate) outcome: Outcome,
}

/// The results of all policies on the same courses, and the oracle's bill.
pub(crate) struct Table {
    pub(crate) rows: Vec<Row>,
    /// The lowest bill that the courses can have with the target of the planner.
    pub(crate) oracle: i64,
}

/// Where the prices come from.
pub(crate) const SOURCE: &str = "Anthropic's pricing page for Claude Sonnet 4.5 (October 2025), and \
    its page \"Prompt caching\" (November 2026)";

/// The prices of the tables, in dollars for a million tokens, with a cache of five minutes:
/// [`SOURCE`] states where they come from.
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

/// Runs the policies with habits over the courses, and a fixed threshold. If `is_short`, policies
/// with a habit are skipped.
///
/// # Errors
///
/// As [`table`].
pub(crate) fn compare(courses: &[Course], is_short: bool) -> Result<Table, String> {
    let policies = |window| {
        let mut policies = policy::policies(prices(), window);
        policies.retain(|policy| policy.habit.is_none() || !is_short);
        policies
    };
    table(courses, &sizes(courses, &policies)?, prices(), 0, &policies)
}

/// Runs the policies for users who are away at times, for each of these lives of a cache.
/// Compactions leave this share of the window, and a model writes their summaries.
///
/// # Errors
///
/// As [`table`].
pub(crate) fn compare_away(
    courses: &[Course],
    share: f64,
    lives: &[CacheLife],
) -> Result<Vec<Table>, String> {
    let policies = |prices| move |window| policy::away(prices, window, share);
    let sizes = sizes(courses, &policies(prices()))?;
    let tables = lives.iter().map(|life| {
        let prices = prices().with_life(*life);
        table(courses, &sizes, prices, policy::SUMMARY, &policies(prices))
    });
    tables.collect()
}

/// The policies for a window.
type Policies<'a> = &'a dyn Fn(u64) -> Vec<Policy>;

/// Returns the smallest sizes that the compactions of the planner reach in each course.
fn sizes(courses: &[Course], policies: Policies<'_>) -> Result<Vec<Vec<u64>>, String> {
    let sizes = courses.iter().map(|course| {
        let policies = policies(course.window);
        let ours = policies.iter().find(|policy| policy.name == OURS).ok_or("no planner")?;
        replay::sizes(course, ours, prices())
    });
    sizes.collect()
}

/// Runs these policies over the courses, each in its window. `sizes` are those of [`sizes`], and
/// `summary` is the number of tokens that a model writes for each compaction, or zero.
///
/// # Errors
///
/// A text, if the library refuses a legal course, or if a policy is cheaper than the oracle, whose
/// bill would then not be a lower bound.
fn table(
    courses: &[Course],
    sizes: &[Vec<u64>],
    prices: Prices,
    summary: u64,
    policies: Policies<'_>,
) -> Result<Table, String> {
    let mut table = Table { rows: Vec::new(), oracle: 0 };
    for (course, sizes) in courses.iter().zip(sizes) {
        let (mut sizes, mut bills, mut kept) = (sizes.clone(), Vec::new(), 0);
        for (index, policy) in policies(course.window).iter().enumerate() {
            let outcome = replay::replay(course, policy, prices, summary)?;
            if policy.habit.is_none() {
                bills.push(outcome.money);
                for (request, left) in &outcome.left {
                    if let Some(size) = sizes.get_mut(*request) {
                        *size = (*size).min(left.tokens);
                    }
                    kept = kept.max(left.kept);
                }
            }
            if table.rows.len() <= index {
                let is_fixed = policy.auto.prices.is_none();
                let outcome = Outcome::default();
                table.rows.push(Row { policy: policy.name, is_fixed, outcome });
            }
            if let Some(row) = table.rows.get_mut(index) {
                row.outcome += outcome;
            }
        }
        // The sizes that the oracle counts with are those of one target, and another target may leave
        // less. Then the oracle does what was cheapest.
        let oracle = oracle::least_bill(course, &prices, &sizes, kept, summary);
        table.oracle += bills.into_iter().chain([oracle]).min().unwrap_or(oracle);
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
