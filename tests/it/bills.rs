//! The cost of threads by policy: a small run of the example `cost`.

use crate::support::examples::{
    cost::{self, Course, FIXED, OURS},
    threads,
};

#[test]
fn the_planner_is_near_the_oracle_and_below_a_fixed_threshold() {
    let thread = threads::planted(1, 413);
    let courses = [Course::of(&thread.messages, 48_000, 1)];
    // `compare` fails if a policy is cheaper than the oracle.
    let table = cost::compare(&courses, true).unwrap();
    let (ours, fixed) = (table.of(OURS), table.of(FIXED));
    assert!(ours.money * 100 <= table.oracle * 110, "{} of {}", ours.money, table.oracle);
    assert!(ours.money * 100 <= fixed.money * 95, "{} of {}", ours.money, fixed.money);
    // It compacts more often to smaller threads, which state a little less.
    let kept = |outcome: &cost::Outcome| [outcome.facts, outcome.paths].map(cost::Kept::per_mille);
    assert!(kept(&ours).iter().all(|kept| *kept >= 950), "{ours:?} {fixed:?}");
    assert!(!ours.is_too_long && table.of("never before overflow").compactions > 0);
}
