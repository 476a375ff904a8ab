//! What each strategy keeps, as rows and as tables.

use serde::Serialize;

/// The name under which dropping everything but the newest messages is listed.
pub(super) const TAIL: &str = "naive tail";

/// What one strategy keeps of one thread at one target.
#[derive(Serialize)]
pub(super) struct Row {
    pub(super) file: String,
    /// The share of the text before the cut.
    pub(super) cut: f64,
    pub(super) strategy: String,
    /// Who wrote summaries, if a model was there to write them.
    pub(super) model: Option<String>,
    /// The target, as a share of the tokens before the cut.
    pub(super) share: f64,
    /// The share of the needed names that is kept.
    pub(super) kept: f64,
    /// The size that was used, as a share of the text before the cut.
    pub(super) used: f64,
    /// The number of needed names.
    pub(super) needed: usize,
    pub(super) gone: Vec<String>,
}

/// The rows with the same writer of summaries.
pub(super) struct Table<'a> {
    pub(super) title: String,
    pub(super) rows: Vec<&'a Row>,
    pub(super) names: Vec<&'a str>,
    pub(super) shares: Vec<f64>,
    pub(super) cuts: usize,
}

/// The mean over all cuts.
pub(super) struct Cell {
    pub(super) kept: f64,
    pub(super) used: f64,
}

impl<'a> Table<'a> {
    /// The table without a model, and one for each model. A table without other rows than the naive
    /// tail is left out.
    pub(super) fn all(rows: &'a [Row], shares: &[f64]) -> Vec<Self> {
        let mut models: Vec<Option<&str>> = vec![None];
        for row in rows {
            if !models.contains(&row.model.as_deref()) {
                models.push(row.model.as_deref());
            }
        }
        let tables = models.into_iter().map(|model| {
            let is_own = |row: &&Row| row.strategy == TAIL || row.model.as_deref() == model;
            let rows: Vec<&Row> = rows.iter().filter(is_own).collect();
            let mut names: Vec<&str> = Vec::new();
            for row in &rows {
                if !names.contains(&row.strategy.as_str()) {
                    names.push(&row.strategy);
                }
            }
            let title = match model {
                None => "Without a model".to_owned(),
                Some(model) => format!("With {model}"),
            };
            let tails = rows.iter().filter(|row| row.strategy == TAIL).count();
            let cuts = tails / shares.len().max(1);
            Self { title, rows, names, shares: shares.to_vec(), cuts }
        });
        tables.filter(|table| table.names.len() > 1).collect()
    }

    /// The mean of a strategy at a target; `None` if it does not reach it in half of the cuts.
    pub(super) fn cell(&self, name: &str, share: f64) -> Option<Cell> {
        let rows = self.rows.iter().filter(|row| row.strategy == name && row.share == share);
        let (kept, used): (Vec<f64>, Vec<f64>) = rows.map(|row| (row.kept, row.used)).unzip();
        let mean = |of: Vec<f64>| of.iter().sum::<f64>() / of.len() as f64;
        (!kept.is_empty() && kept.len() * 2 >= self.cuts)
            .then(|| Cell { kept: mean(kept), used: mean(used) })
    }
}

pub(super) fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}
