//! The scoreboard: how much of what an agent needed next each crate keeps of the same threads.
//!
//! Each thread is cut where 75 % of it have passed ([`Hindsight`]), and what is before the cut is
//! compacted to 20, 30 and 50 % of its size. Where a crate has no target but a number of messages
//! or of tokens to keep, the largest number whose result fits the target is searched for it. One
//! extractive model writes the summaries of all.

mod agent_sdk;
mod agentkit;
mod case;
mod goose;
mod ours;
mod rig;
mod threads;

use std::time::Duration;

use threadfold::legality;

use case::{Case, Compacted, Contender, size};

/// The sizes that a compaction may fill.
const SHARES: [f64; 3] = [0.2, 0.3, 0.5];

/// Where the threads are cut.
const CUT: f64 = 0.75;

/// What one contender did with one thread.
struct Outcome {
    kept: f64,
    used: f64,
    is_legal: bool,
    /// The share of the compacted thread that a prompt cache of the thread before it does not have.
    fresh: f64,
    time: Duration,
}

/// Prints the table.
pub(crate) fn print() {
    let cases: Vec<Case> = threads::all().into_iter().filter_map(|it| Case::of(it, CUT)).collect();
    let rows: Vec<Row> = contenders().into_iter().map(|it| Row::of(it, &cases)).collect();
    println!("{} threads, cut where 75 % have passed.", cases.len());
    println!(
        "kept: of the names that the agent needed afterwards, mean of the threads, in percent."
    );
    println!("Compared are the threads that every contender makes as small as asked, without the");
    println!(
        "contenders that fail at most threads. In brackets the size used. Sizes are estimated tokens."
    );
    println!("failed: threads that it cannot make that small, of all, in all columns.");
    println!("illegal: results that providers refuse: calls without their results, and the like.");
    println!("ms: one compaction, with the model, which answers in the same process.");
    println!("fresh: share of the result that is not at its old place in a prompt cache.");
    println!();
    let head = SHARES.map(|share| format!("{:>12}", format!("{:.0} %", 100.0 * share))).concat();
    println!("{:<42}{head}{:>8}{:>9}{:>7}{:>8}", "target", "failed", "illegal", "fresh", "ms");
    let compared = SHARES.map(|share| format!("{:>12}", compared(&rows, share).len())).concat();
    println!("{:<42}{compared}", "threads compared");
    for row in &rows {
        row.print(&rows);
    }
}

fn contenders() -> Vec<Contender> {
    let mut all = ours::contenders();
    all.extend([
        Contender { name: "rig-memory 0.44: token window, template", compact: rig::compact },
        Contender { name: "agent-sdk 0.18: summary and newest", compact: agent_sdk::compact },
        Contender { name: "agentkit-compaction 0.11: summary", compact: agentkit::summarise },
        Contender { name: "agentkit-compaction 0.11: keep recent", compact: agentkit::keep_recent },
        Contender { name: "goose-context-management: summary alone", compact: goose::compact },
    ]);
    all
}

impl Outcome {
    fn of(case: &Case, contender: &Contender, share: f64) -> Option<Self> {
        let (whole, head) = (size(case.past()), size(case.head()));
        let target = head + (share * (whole - head) as f64) as u64;
        let Compacted { messages: after, time } = (contender.compact)(case, target)?;
        let needed = case.hindsight.needed.len();
        let gone = case.hindsight.missing(&after).len();
        let same = after.iter().zip(case.past()).take_while(|(one, other)| one == other).count();
        Some(Self {
            kept: (needed - gone) as f64 / needed as f64,
            used: size(&after).saturating_sub(head) as f64 / (whole - head).max(1) as f64,
            is_legal: legality::violations(&after).is_empty(),
            fresh: size(&after[same..]) as f64 / size(&after).max(1) as f64,
            time,
        })
    }
}

/// What one contender did with each thread, for each size.
struct Row {
    name: &'static str,
    outcomes: [Vec<Option<Outcome>>; SHARES.len()],
}

impl Row {
    fn of(contender: Contender, cases: &[Case]) -> Self {
        let of_share =
            |share| cases.iter().map(|case| Outcome::of(case, &contender, share)).collect();
        Self { name: contender.name, outcomes: SHARES.map(of_share) }
    }

    fn print(&self, rows: &[Self]) {
        let mut cells = String::new();
        for (share, outcomes) in self.outcomes.iter().enumerate() {
            let compared = compared(rows, SHARES[share]);
            let of_cell: Vec<&Outcome> =
                compared.iter().filter_map(|case| outcomes[*case].as_ref()).collect();
            let (kept, used) = (mean(&of_cell, |it| it.kept), mean(&of_cell, |it| it.used));
            let cell = format!("{:.0} ({:.0})", 100.0 * kept, 100.0 * used);
            let is_whole = !of_cell.is_empty() && of_cell.len() == compared.len();
            cells += &format!("{:>12}", if is_whole { cell } else { "-".to_owned() });
        }
        let all = || self.outcomes.iter().flatten();
        let done: Vec<&Outcome> = all().flatten().collect();
        let failed = all().count() - done.len();
        let illegal = done.iter().filter(|it| !it.is_legal).count();
        let fresh = 100.0 * mean(&done, |it| it.fresh);
        let time = 1e3 * mean(&done, |it| it.time.as_secs_f64());
        println!("{:<42}{cells}{failed:>8}{illegal:>9}{fresh:>7.0}{time:>8.2}", self.name);
    }

    /// Whether it can make most threads as small as asked, at each size.
    fn is_able(&self) -> bool {
        self.outcomes.iter().all(|it| it.iter().flatten().count() * 2 > it.len())
    }
}

/// The threads that every able contender makes as small as this.
fn compared(rows: &[Row], share: f64) -> Vec<usize> {
    let Some(at) = SHARES.iter().position(|it| *it == share) else { return Vec::new() };
    let able: Vec<&Row> = rows.iter().filter(|row| row.is_able()).collect();
    let cases = able.first().map_or(0, |row| row.outcomes[at].len());
    (0..cases).filter(|case| able.iter().all(|row| row.outcomes[at][*case].is_some())).collect()
}

fn mean(outcomes: &[&Outcome], value: impl Fn(&Outcome) -> f64) -> f64 {
    outcomes.iter().map(|it| value(it)).sum::<f64>() / outcomes.len().max(1) as f64
}
