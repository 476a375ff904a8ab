//! `hindsight`: how much of what the agent needed next each strategy would have kept.

use std::{collections::BTreeMap, io};

use serde::Serialize;
use serde_json::json;
use threadfold::{
    CompactionStrategy, Message, Model, Request, StrategyRegistry,
    drive::{Models, propose},
    hindsight::{self, Hindsight},
    legality,
    retention::RetentionPolicy,
    strategy::{Brief, Snapshot},
    tokens::{ByteEstimate, TokenCounter},
};

use crate::{
    args::HindsightOptions,
    error::{Ended, Failure},
    input::Body,
    out::say,
    terminal::{Style, first_line},
};

/// The name under which dropping everything but the newest messages is listed.
const TAIL: &str = "naive tail";

/// How many names that are gone are quoted.
const QUOTED: usize = 8;

/// What one strategy keeps of one thread at one target.
#[derive(Serialize)]
struct Row {
    file: String,
    /// The share of the text before the cut.
    cut: f64,
    strategy: String,
    /// The target, as a share of the tokens before the cut.
    share: f64,
    /// The share of the needed names that is kept.
    kept: f64,
    /// The size that was used, as a share of the text before the cut.
    used: f64,
    /// The number of needed names.
    needed: usize,
    gone: Vec<String>,
}

pub(crate) async fn run(options: &HindsightOptions, model: &dyn Model) -> Result<Ended, Failure> {
    let registry = StrategyRegistry::default();
    let names: Vec<&str> = match options.strategy.is_empty() {
        true => registry.names().collect(),
        false => options.strategy.iter().map(String::as_str).collect(),
    };
    let named = options.model.name.as_ref().map(|_| model);
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
                    rows.extend(case.row(registry.get(name)?.as_ref(), *share, named).await);
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
    print(&rows, &options.share);
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
        model: Option<&dyn Model>,
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
        let models = Models { conversation: model, ..Models::default() };
        let driven = propose(strategy, &thread, &brief, models, &mut |_, _| {}).await.ok()?;
        let after = driven.plan.after(past).ok()?;
        let first = first.iter().map(hindsight::bytes).sum();
        Some(self.judged(strategy.name(), share, &after, first))
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
            share,
            kept: (needed - gone.len()) as f64 / needed as f64,
            used: bytes.saturating_sub(head) as f64 / self.hindsight.bytes.max(1) as f64,
            needed,
            gone,
        }
    }
}

fn print(rows: &[Row], shares: &[f64]) {
    let style = Style::of(&io::stdout());
    let threads = rows.iter().filter(|row| row.strategy == TAIL).count() / shares.len().max(1);
    say!("{}", style.heading("What the agent needed next, and how much of it is kept"));
    say!("{threads} cuts. In brackets the size that was used.\n");
    let head: String = shares.iter().map(|share| format!("{:>13}", percent(*share))).collect();
    say!("{}", style.bold(format!("{:<18}{head}", "target")));
    let mut names: Vec<&str> = Vec::new();
    for row in rows {
        if !names.contains(&row.strategy.as_str()) {
            names.push(&row.strategy);
        }
    }
    for name in names {
        let cells = shares.iter().map(|share| {
            let cell = rows.iter().filter(|row| row.strategy == name && row.share == *share);
            let cell: Vec<(f64, f64)> = cell.map(|row| (row.kept, row.used)).collect();
            match cell.len() {
                0 => format!("{:>13}", "-"),
                count => {
                    let mean = |of: fn(&(f64, f64)) -> f64| {
                        percent(cell.iter().map(of).sum::<f64>() / count as f64)
                    };
                    format!("{:>13}", format!("{} ({})", mean(|cell| cell.0), mean(|cell| cell.1)))
                }
            }
        });
        say!("{}{}", style.cyan(format!("{name:<18}")), cells.collect::<String>());
    }
    gone(rows, style);
}

/// Quotes what the strategies lose most often.
fn gone(rows: &[Row], style: Style) {
    let mut lost: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
    for row in rows {
        let lost = lost.entry(&row.strategy).or_default();
        for name in &row.gone {
            *lost.entry(name).or_default() += 1;
        }
    }
    say!("\nNeeded, and gone most often:");
    for (strategy, names) in lost {
        let mut names: Vec<(&str, usize)> = names.into_iter().collect();
        names.sort_by_key(|(name, count)| (std::cmp::Reverse(*count), *name));
        let quoted: Vec<&str> = names.iter().take(QUOTED).map(|(name, _)| *name).collect();
        let quoted = match quoted.is_empty() {
            true => "nothing".to_owned(),
            false => first_line(&quoted.join(", "), 100),
        };
        say!("  {} {quoted}", style.dim(format!("{strategy:<18}")));
    }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}
