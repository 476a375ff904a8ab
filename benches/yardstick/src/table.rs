//! The table that a bench prints: time, ratios to the yardsticks of the same run, memory.

use super::clock::{Cost, Spread, exponent, is_test, milliseconds, time};

/// The measurements of one operation.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub name: &'static str,
    pub spread: Spread,
    pub cost: Cost,
    /// If the row is a yardstick: the name of the column with the ratios of the other rows to it.
    pub yardstick: Option<&'static str>,
}

/// Times the work, and counts its allocations in one more run.
pub fn row<I, O>(
    name: &'static str,
    repetitions: usize,
    mut make: impl FnMut() -> I,
    mut work: impl FnMut(I) -> O,
) -> Row {
    let spread = time(repetitions, &mut make, &mut work);
    Row { name, spread, cost: Cost::of(make(), work), yardstick: None }
}

impl Row {
    /// Returns the row as a yardstick, whose ratios are in a column of this name.
    pub fn yardstick(self, column: &'static str) -> Self {
        Self { yardstick: Some(column), ..self }
    }
}

/// The number of rounds over all rows. If the machine becomes slower, this slows a row and its
/// yardstick alike.
pub const ROUNDS: usize = 3;

/// Measures all rows in rounds, with this many repetitions in total.
pub fn rounds(repetitions: usize, mut rows: impl FnMut(usize) -> Vec<Row>) -> Vec<Row> {
    let count = if is_test() { 1 } else { ROUNDS };
    merged((0..count).map(|_| rows(repetitions.div_ceil(count))).collect())
}

/// Merges the rows of several rounds: the shortest time, the median of the medians, the longest.
pub fn merged(rounds: Vec<Vec<Row>>) -> Vec<Row> {
    let first = rounds.first().cloned().unwrap_or_default();
    let spreads = |index: usize| rounds.iter().map(move |rows| rows[index].spread);
    let merged = first.into_iter().enumerate().map(|(index, row)| {
        let mut middles: Vec<_> = spreads(index).map(|spread| spread.middle).collect();
        middles.sort();
        let spread = spreads(index).fold(row.spread, |all, spread| Spread {
            least: all.least.min(spread.least),
            middle: middles[middles.len() / 2],
            most: all.most.max(spread.most),
        });
        Row { spread, ..row }
    });
    merged.collect()
}

/// The tables of growing sizes. Each one compares with the one before it.
#[derive(Debug, Default)]
pub struct Tables {
    before: Vec<(usize, Spread)>,
}

impl Tables {
    /// Prints the rows of one size: `count` units with `bytes` bytes of text, to which the peaks of
    /// memory are compared.
    pub fn print(&mut self, unit: &str, count: usize, bytes: usize, rows: Vec<Row>) {
        println!("{count} {unit}, {bytes} bytes");
        let yardsticks: Vec<(&str, Spread)> =
            rows.iter().filter_map(|row| Some((row.yardstick?, row.spread))).collect();
        heading(&yardsticks);
        for (index, row) in rows.iter().enumerate() {
            let growth = self.before.get(index).map(|small| exponent(*small, (count, row.spread)));
            line(row, &yardsticks, growth, count, bytes);
        }
        println!();
        self.before = rows.into_iter().map(|row| (count, row.spread)).collect();
    }
}

fn heading(yardsticks: &[(&str, Spread)]) {
    let ratios: String =
        yardsticks.iter().map(|(name, _)| format!(" {:>10}", format!("x {name}"))).collect();
    println!(
        "{:<34} {:>9} {:>9} {:>9}{ratios} {:>9} {:>9} {:>9}",
        "operation", "least ms", "middle ms", "most ms", "exponent", "allocs/1", "peak/text"
    );
}

fn line(row: &Row, yardsticks: &[(&str, Spread)], growth: Option<f64>, count: usize, bytes: usize) {
    let ratios: String =
        yardsticks.iter().map(|(_, yard)| format!(" {:>10.4}", row.spread.over(*yard))).collect();
    println!(
        "{:<34} {:>9} {:>9} {:>9}{ratios} {:>9} {:>9.3} {:>9.4}",
        row.name,
        milliseconds(row.spread.least),
        milliseconds(row.spread.middle),
        milliseconds(row.spread.most),
        growth.map(|growth| format!("{growth:.2}")).unwrap_or_default(),
        row.cost.allocations as f64 / count.max(1) as f64,
        row.cost.peak as f64 / bytes.max(1) as f64,
    );
}
