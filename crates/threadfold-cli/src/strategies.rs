//! `strategies`: compares all strategies on one thread: size, cost and lost facts.

use std::io;

use serde::Serialize;
use serde_json::json;
use threadfold::{
    CompactionStrategy, Message, Request, StrategyRegistry, Usage,
    compact::Size,
    drive::{CompactionError, Models, propose},
    legality,
    log::Rung,
    retention::{FactClass, KeptShare, Retention, RetentionPolicy, audit},
    strategy::{Brief, Snapshot, StrategyError},
    tokens::ByteEstimate,
};
use threadfold_terminal::{Style, counted, first_line, thousands, wrapped};

use crate::{
    args::StrategiesOptions,
    error::{Ended, Failure},
    input::Body,
    out::{Waiting, say},
};

/// The columns of a strategy's name: the longest is `trim-tool-results`.
const NAME: usize = 17;

/// The result of a strategy.
#[derive(Serialize)]
struct Row<'a> {
    strategy: &'a str,
    after: Size,
    calls: usize,
    usage: Usage,
    retention: Retention,
    #[serde(skip)]
    rungs: Vec<Rung<StrategyError>>,
}

pub(crate) async fn run(options: &StrategiesOptions, models: Models<'_>) -> Result<Ended, Failure> {
    let request = Body::read(&options.file, None, options.thread.id())?.request;
    let (messages, _) = legality::repair(request.messages.to_vec());
    let before = Size::of(&messages, &ByteEstimate::TRIGGER);
    let target = options.target.unwrap_or(before.tokens / 2);
    let style = Style::of(&io::stdout());
    if !options.json {
        head(style, &first_line(&options.file.display().to_string(), 60), before, target);
    }
    let thread = Snapshot::of_request(&Request { messages: messages.into(), ..request });
    let retention = Some(RetentionPolicy::default());
    let brief = Brief { target: Some(target), retention, ..Brief::default() };
    let registry = StrategyRegistry::default();
    let (mut reasons, mut rows) = (Vec::new(), Vec::new());
    for name in registry.names() {
        // A strategy can take seconds with a model.
        let waiting = Waiting::on(format_args!("trying {name}"));
        let row = tried(registry.get(name)?.as_ref(), &thread, &brief, models).await;
        drop(waiting);
        match row {
            _ if options.json => rows.push(row.map_or_else(
                |failed| json!({"strategy": name, "failure": failed.to_string()}),
                |row| json!(row),
            )),
            Ok(row) => {
                row.print(style, before);
                reasons.extend(row.rungs.iter().map(|rung| (name, reason(rung))));
            }
            Err(failed) => {
                let nothing = style.yellow(format!("{:<43}", "as it was"));
                let calls = thousands(failed.calls as u64);
                say!("{} {nothing}{calls:>6}", style.cyan(format!("{name:<NAME$}")));
                reasons.push((name, failed.to_string()));
            }
        }
    }
    if options.json {
        say!("{}", json!({"before": before, "target": target, "strategies": rows}));
        return Ok(Ended::Done);
    }
    say!();
    for (name, reason) in &reasons {
        for (at, line) in wrapped(&first_line(reason, 400), 78 - NAME).iter().enumerate() {
            let name = if at == 0 { *name } else { "" };
            say!(" {} {line}", style.dim(format!("{name:<NAME$}")));
        }
    }
    let legend = "facts, paths, cmds: how many of them are no longer stated word for word.";
    say!(
        "\n  {}\n  {}",
        style.dim(legend),
        style.dim("Tokens are estimates, a third of the bytes.")
    );
    Ok(Ended::Done)
}

async fn tried<'a>(
    strategy: &'a dyn CompactionStrategy,
    thread: &Snapshot,
    brief: &Brief,
    models: Models<'_>,
) -> Result<Row<'a>, CompactionError> {
    let proposal = propose(strategy, thread, brief, models, &mut |_, _| {}).await?;
    let before = thread.messages();
    let after: Vec<Message> = proposal.plan.after(before)?;
    Ok(Row {
        strategy: strategy.name(),
        after: Size::of(&after, &ByteEstimate::TRIGGER),
        calls: proposal.calls,
        usage: proposal.usage,
        retention: audit(before, &after, &RetentionPolicy::default()),
        rungs: proposal.rungs,
    })
}

/// Why a rung failed, or that it succeeded.
fn reason(rung: &Rung<StrategyError>) -> String {
    match &rung.failure {
        Some(failure) => format!("{}: {failure}", rung.strategy),
        None => format!("{} succeeded", rung.strategy),
    }
}

fn head(style: Style, name: &str, before: Size, target: u64) {
    let (tokens, target) = (thousands(before.tokens), thousands(target));
    say!("{}", style.heading("Every strategy on one thread"));
    let messages = counted(before.messages as u64, "message");
    say!("{name}\n{messages}, about {tokens} tokens. The target is {target}.\n");
    let head = cells(["messages", "tokens", "saved", "facts", "paths", "cmds", "calls", "tokens"]);
    let below = cells(["left", "left", "", "lost", "lost", "lost", "", "spent"]);
    say!(
        "{}\n{}",
        style.bold(format!("{:<NAME$}{head}", "strategy")),
        style.dim(format!("{:<NAME$}{below}", ""))
    );
}

impl Row<'_> {
    fn print(&self, style: Style, before: Size) {
        let saved = before.tokens.saturating_sub(self.after.tokens);
        let cells = cells([
            &thousands(self.after.messages as u64),
            &thousands(self.after.tokens),
            &format!("{} %", saved.saturating_mul(100) / before.tokens.max(1)),
            &lost(self.retention.overall),
            &lost(self.retention.of(FactClass::Path)),
            &lost(self.retention.of(FactClass::Command)),
            &thousands(self.calls as u64),
            &thousands(self.usage.context_tokens()),
        ]);
        say!("{}{cells}", style.cyan(format!("{:<NAME$}", self.strategy)));
    }
}

fn lost(share: KeptShare) -> String {
    thousands(share.facts.saturating_sub(share.kept))
}

fn cells([messages, tokens, saved, facts, paths, commands, calls, spent]: [&str; 8]) -> String {
    format!(
        " {messages:>8} {tokens:>9} {saved:>5} {facts:>6} {paths:>5} {commands:>5} {calls:>5} {spent:>9}"
    )
}
