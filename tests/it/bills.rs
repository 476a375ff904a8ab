//! The cost of threads by policy: a small run of the example `cost`.

use threadfold::compact::CacheLife;

use crate::support::examples::{
    cost::{
        self, Course, Pauses,
        policy::{KEPT_ALIVE, NEVER, OURS, THRESHOLD},
    },
    threads,
};

#[test]
fn the_planner_is_near_the_oracle_and_below_a_fixed_threshold() {
    let thread = threads::planted(1, 413);
    let courses = [Course::of(&thread.messages, 48_000, 1, Pauses::Short)];
    // `compare` fails if a policy is cheaper than the oracle.
    let table = cost::compare(&courses, true).unwrap();
    let (ours, fixed) = (table.of(OURS), table.of(THRESHOLD));
    assert!(ours.money * 100 <= table.oracle * 110, "{} of {}", ours.money, table.oracle);
    assert!(ours.money * 100 <= fixed.money * 95, "{} of {}", ours.money, fixed.money);
    // It compacts more often to smaller threads, which state a little less.
    let kept = |outcome: &cost::Outcome| [outcome.facts, outcome.paths].map(cost::Kept::per_mille);
    assert!(kept(&ours).iter().all(|kept| *kept >= 950), "{ours:?} {fixed:?}");
    assert!(!ours.is_too_long && table.of(NEVER).compactions > 0);
}

#[test]
fn with_pauses_of_days_the_planner_is_near_the_oracle_and_no_fixed_rule_is_much_cheaper() {
    let courses = [1, 2, 3].map(|seed| {
        let thread = threads::planted(seed, 240);
        Course::of(&thread.messages, 24_000, seed, Pauses::Days)
    });
    let lives = [CacheLife::FIVE_MINUTES, CacheLife::HOUR];
    for table in cost::compare_away(&courses, 0.1, &lives).unwrap() {
        let ours = table.of(OURS).money;
        assert!(ours * 100 <= table.oracle * 110, "{ours} of {}", table.oracle);
        for row in table.rows.iter().filter(|row| row.is_fixed) {
            let fixed = row.outcome.money;
            assert!(ours * 100 <= fixed * 102, "{ours}, and {fixed} of {}", row.policy);
        }
        // Neither to do nothing nor to send keep-alives without counting is cheaper.
        for blind in [NEVER, KEPT_ALIVE] {
            let blind = table.of(blind).money;
            assert!(ours < blind, "{ours} of {blind}");
        }
    }
}
