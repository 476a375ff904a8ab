//! `hindsight`: how much of what the agent needed next each strategy would have kept.

mod page;
mod table;

use std::{collections::BTreeMap, io};

use serde_json::json;
use threadfold::{
    CompactionStrategy, Message, Request, StrategyRegistry,
    drive::{Models, propose},
    hindsight::{self, Hindsight},
    legality,
    retention::RetentionPolicy,
    strategy::{Brief, Snapshot},
    testing::ExtractiveModel,
    tokens::{ByteEstimate, TokenCounter},
};
use threadfold_terminal::{Style, counted, first_line};

use table::{Cell, Row, TAIL, Table, percent};

use crate::{
    args::HindsightOptions,
    error::{Ended, Failure},
    input::Body,
    out::{self, say},
};

/// Who writes summaries if no model is named, so that strategies can be compared offline.
const EXTRACTS: &str = "a model that picks sentences";

/// How many names that are gone are quoted.
const QUOTED: usize = 8;

pub(crate) async fn run(options: &HindsightOptions, models: Models<'_>) -> Result<Ended, Failure> {
    let registry = StrategyRegistry::default();
    let names: Vec<&str> = match options.strategy.is_empty() {
        true => registry.names().collect(),
        false => options.strategy.iter().map(String::as_str).collect(),
    };
    let writer = match options.model.name.as_deref() {
        Some(name) => (name, models),
        None => (EXTRACTS, Models::one(&ExtractiveModel)),
    };
    let mut rows = Vec::new();
    for file in &options.files {
        let mut request = Body::read(file, options.from, options.thread.id())?.request;
        let (messages, _) = legality::repair(request.messages.to_vec());
        request.messages = messages.into();
        for part in &options.cut {
            let Some(hindsight) = Hindsight::of(&request, *part) else { continue };
            let file = file.display().to_string();
            if options.facts {
                facts(&file, *part, &request, &hindsight);
                continue;
            }
            let case = Case { file, part: *part, request: &request, hindsight };
            for share in &options.share {
                rows.push(case.tail(*share));
                for name in &names {
                    let strategy = registry.get(name)?.as_ref();
                    for writer in [None, Some(writer)] {
                        rows.extend(case.row(strategy, *share, writer).await);
                    }
                }
            }
        }
    }
    if options.facts {
        return Ok(Ended::Done);
    }
    if rows.is_empty() {
        eprintln!(
            "threadfold: no thread is long enough to be cut and to need five names afterwards"
        );
        return Ok(Ended::Unchanged);
    }
    if options.json {
        for row in &rows {
            say!("{}", serde_json::to_string(row)?);
        }
        return Ok(Ended::Done);
    }
    let tables = Table::all(&rows, &options.share);
    match &options.page {
        Some(file) => {
            out::write(Some(file), page::page(&tables).as_bytes())?;
            let cuts = tables.first().map_or(0, |table| table.cuts);
            say!("{}: {}", file.display(), counted(cuts as u64, "cut"));
        }
        None => print(&tables),
    }
    Ok(Ended::Done)
}

/// Writes the names between head and cut that the head does not have, for `weights.py`.
fn facts(file: &str, part: f64, request: &Request, hindsight: &Hindsight) {
    let (head, past) = request.messages.split_at(hindsight.head);
    let past = past.get(..hindsight.cut - hindsight.head).unwrap_or_default();
    let head = head.iter().chain(request.system.iter()).flat_map(Message::texts);
    let head: Vec<&str> = head.flat_map(|text| hindsight::names(text)).collect();
    for (name, features) in threadfold::strategy::facts(past) {
        if head.contains(&name.as_str()) {
            continue;
        }
        let needed = hindsight.needed.iter().any(|it| **it == *name);
        let row = json!({"file": file, "cut": part, "name": name, "needed": needed, "features": features});
        say!("{row}");
    }
}

/// A thread that is cut at one place.
struct Case<'a> {
    file: String,
    part: f64,
    request: &'a Request,
    hindsight: Hindsight,
}

impl Case<'_> {
    /// What the newest messages alone keep.
    fn tail(&self, share: f64) -> Row {
        let first = self.hindsight.newest(&self.request.messages, share);
        let tail = self.request.messages.get(first..self.hindsight.cut).unwrap_or_default();
        self.judged(TAIL, share, tail, 0)
    }

    /// What a strategy keeps, if it can make the thread smaller.
    async fn row(
        &self,
        strategy: &dyn CompactionStrategy,
        share: f64,
        writer: Option<(&str, Models<'_>)>,
    ) -> Option<Row> {
        let Hindsight { head, cut, .. } = self.hindsight;
        let counter = ByteEstimate::TRIGGER;
        let (past, first) = (self.request.messages.get(..cut)?, self.request.messages.get(..head)?);
        let (whole, first_tokens) = (counter.messages(past), counter.messages(first));
        let target = first_tokens + (share * whole.saturating_sub(first_tokens) as f64) as u64;
        let thread = Request { messages: past.to_vec().into(), ..self.request.clone() };
        let thread = Snapshot::of_request(&thread);
        let retention = Some(RetentionPolicy::default());
        let brief = Brief { target: Some(target), retention, ..Brief::default() };
        let models = writer.map_or_else(Models::default, |it| it.1);
        let proposal = propose(strategy, &thread, &brief, models, &mut |_, _| {}).await.ok()?;
        if writer.is_some() && proposal.calls == 0 {
            // Without a question to the model it is the row without a model again.
            return None;
        }
        let after = proposal.plan.after(past).ok()?;
        let first = first.iter().map(hindsight::bytes).sum();
        let model = writer.map(|it| it.0.to_owned());
        Some(Row { model, ..self.judged(strategy.name(), share, &after, first) })
    }

    fn judged(&self, strategy: &str, share: f64, kept: &[Message], head: usize) -> Row {
        let needed = self.hindsight.needed.len();
        let gone: Vec<String> =
            self.hindsight.missing(kept).into_iter().map(str::to_owned).collect();
        let bytes: usize = kept.iter().map(hindsight::bytes).sum();
        Row {
            file: self.file.clone(),
            cut: self.part,
            strategy: strategy.to_owned(),
            model: None,
            share,
            kept: (needed - gone.len()) as f64 / needed as f64,
            used: bytes.saturating_sub(head) as f64 / self.hindsight.bytes.max(1) as f64,
            needed,
            gone,
        }
    }
}

fn print(tables: &[Table<'_>]) {
    let style = Style::of(&io::stdout());
    say!("{}", style.heading("What the agent needed next, and how much of it is kept"));
    let cuts = tables.first().map_or(0, |table| table.cuts);
    say!(
        "{}. In brackets the size that was used; - if most cuts do not",
        counted(cuts as u64, "cut")
    );
    say!("reach the target.");
    for table in tables {
        let head = table.shares.iter().map(|share| format!("{:>13}", percent(*share)));
        let head = head.collect::<String>();
        say!("\n{}\n{}", table.title, style.bold(format!("{:<18}{head}", "target")));
        for name in &table.names {
            let cells = table.shares.iter().map(|share| match table.cell(name, *share) {
                None => format!("{:>13}", "-"),
                Some(Cell { kept, used }) => {
                    format!("{:>13}", format!("{} ({})", percent(kept), percent(used)))
                }
            });
            say!("{}{}", style.cyan(format!("{name:<18}")), cells.collect::<String>());
        }
    }
    if let Some(table) = tables.first() {
        gone(&table.rows, style);
    }
}

/// Quotes what the strategies lose most often.
fn gone(rows: &[&Row], style: Style) {
    let mut lost: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
    for row in rows {
        let lost = lost.entry(&row.strategy).or_default();
        for name in &row.gone {
            *lost.entry(name).or_default() += 1;
        }
    }
    say!("\nNeeded, and gone most often without a model:");
    for (strategy, names) in lost {
        let mut names: Vec<(&str, usize)> = names.into_iter().collect();
        names.sort_by_key(|(name, count)| (std::cmp::Reverse(*count), *name));
        let quoted: Vec<&str> = names.iter().take(QUOTED).map(|(name, _)| *name).collect();
        let quoted = match quoted.is_empty() {
            true => "nothing".to_owned(),
            false => first_line(&quoted.join(", "), 56),
        };
        say!("  {} {quoted}", style.dim(format!("{strategy:<18}")));
    }
}
