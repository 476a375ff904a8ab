//! `strategies`: one thread, every strategy side by side: what each leaves, keeps, costs and loses.

use std::{
    collections::{HashMap, HashSet},
    io,
};

use serde_json::{Value, json};
use threadfold::{
    CompactionStrategy, ContentBlock, Message, Model, Request, StrategyRegistry,
    compact::Size,
    drive::{CompactionError, Driven, Models, propose},
    legality,
    render::{RenderOptions, render},
    strategy::{Brief, Snapshot},
    tokens::{self, ByteEstimate},
};

use crate::{
    args::StrategiesOptions,
    error::{Ended, Failure},
    input::Body,
    models::block_on,
    out::say,
    terminal::{Style, first_line, thousands},
};

pub(crate) fn run(options: &StrategiesOptions) -> Result<Ended, Failure> {
    block_on(async {
        let model = options.model.open().await?;
        compare(options, model.as_ref()).await
    })
}

async fn compare(options: &StrategiesOptions, model: &dyn Model) -> Result<Ended, Failure> {
    let request = Body::read(&options.file, None)?.request;
    let (messages, _) = legality::repair(request.messages.to_vec());
    let before = Size::of(&messages, &ByteEstimate::TRIGGER);
    let target = options.target.unwrap_or(before.tokens / 2);
    let facts = Facts::of(&messages);
    let table = Table { style: Style::of(&io::stdout()), facts, before };
    if !options.json {
        table.head(&options.file.display().to_string(), target);
    }
    let thread = Snapshot::of_request(&Request { messages: messages.into(), ..request });
    let brief = Brief { target: Some(target), ..Brief::default() };
    let registry = StrategyRegistry::default();
    let (mut reasons, mut rows) = (Vec::new(), Vec::new());
    for name in registry.names() {
        let strategy = registry.get(name)?;
        match tried(strategy.as_ref(), &thread, &brief, model).await {
            Ok((driven, after)) if options.json => rows.push(table.json(name, &driven, &after)),
            Ok((driven, after)) => {
                table.row(name, &driven, &after);
                reasons.extend(rungs(name, &driven));
            }
            Err(failed) if options.json => {
                rows.push(json!({"strategy": name, "failure": failed.to_string()}));
            }
            Err(failed) => {
                table.blank(name, failed.calls);
                reasons.push((name.to_owned(), failed.to_string()));
            }
        }
    }
    match options.json {
        true => say!("{}", json!({"before": before, "target": target, "strategies": rows})),
        false => table.foot(&reasons),
    }
    Ok(Ended::Done)
}

async fn tried(
    strategy: &dyn CompactionStrategy,
    thread: &Snapshot,
    brief: &Brief,
    model: &dyn Model,
) -> Result<(Driven, Vec<Message>), CompactionError> {
    let driven = propose(strategy, thread, brief, Models::one(model), &mut |_| {}).await?;
    let mut after = thread.messages().to_vec();
    // It was accepted for this thread, so it fits.
    let _ = driven.proposal.plan.apply(&mut after);
    Ok((driven, after))
}

/// Why the rungs before the one that did it came to nothing.
fn rungs(name: &str, driven: &Driven) -> Vec<(String, String)> {
    let rungs = driven.proposal.rungs.iter();
    let line = |rung: &threadfold::strategy::Rung| match &rung.failure {
        Some(failure) => format!("{}: {failure}", rung.strategy),
        None => format!("{} did it", rung.strategy),
    };
    rungs.map(|rung| (name.to_owned(), line(rung))).collect()
}

/// What can be told to be there or not, without a model.
struct Facts {
    /// Every block, as JSON, and how often it is there.
    blocks: HashMap<String, usize>,
    /// What the user typed.
    typed: Vec<String>,
    /// Words that look like the path of a file.
    paths: HashSet<String>,
}

impl Facts {
    fn of(messages: &[Message]) -> Self {
        let mut blocks = HashMap::new();
        for block in messages.iter().flat_map(|message| &message.content) {
            *blocks.entry(as_json(block)).or_default() += 1;
        }
        let typed = messages.iter().flat_map(|message| {
            message.typed_blocks().filter_map(|block| message.content.get(block))
        });
        let text = render(messages, &RenderOptions::default());
        let cut = |c: char| c.is_whitespace() || "\"'`()[]{}<>,;:*".contains(c);
        let words = text.text().split(cut).map(|word| word.trim_end_matches('.'));
        let path = |word: &&str| {
            let ends = word.rsplit_once('.').is_some_and(|(_, end)| {
                (1..=5).contains(&end.len()) && end.chars().all(char::is_alphanumeric)
            });
            word.contains('/') && ends && !word.contains("//") && !word.contains('\\')
        };
        Self {
            blocks,
            typed: typed.map(as_json).collect(),
            paths: words.filter(path).map(str::to_owned).collect(),
        }
    }

    /// The bytes of text in blocks that are still there as they were.
    fn kept(&self, after: &[Message]) -> u64 {
        let mut left = self.blocks.clone();
        let blocks = after.iter().flat_map(|message| &message.content).filter(|block| {
            left.get_mut(&as_json(block)).is_some_and(|count| {
                let there = *count > 0;
                *count = count.saturating_sub(1);
                there
            })
        });
        let one = |block: &ContentBlock| {
            tokens::text_bytes(&[Message::new(threadfold::Role::User, vec![block.clone()])])
        };
        blocks.map(one).sum()
    }
}

fn as_json(block: &ContentBlock) -> String {
    serde_json::to_string(block).unwrap_or_default()
}

struct Table {
    style: Style,
    facts: Facts,
    before: Size,
}

impl Table {
    fn head(&self, name: &str, target: u64) {
        let Size { messages, tokens, .. } = self.before;
        say!("{}", self.style.heading("Every strategy on one thread"));
        say!(
            "{}: {messages} messages, about {} tokens. The target is {}.\n",
            first_line(name, 60),
            thousands(tokens),
            thousands(target)
        );
        let head = format!(
            "{:<18} {:>8} {:>9} {:>6} {:>9} {:>6} {:>10} {:>11} {:>9}",
            "strategy",
            "messages",
            "tokens",
            "saved",
            "verbatim",
            "calls",
            "tokens",
            "files",
            "typed"
        );
        let below = format!(
            "{:<18} {:>8} {:>9} {:>6} {:>9} {:>6} {:>10} {:>11} {:>9}",
            "", "left", "left", "", "kept", "", "spent", "named", "kept"
        );
        say!("{}\n{}", self.style.bold(head), self.style.dim(below));
    }

    fn json(&self, name: &str, driven: &Driven, after: &[Message]) -> Value {
        let facts = Facts::of(after);
        json!({
            "strategy": name,
            "after": Size::of(after, &ByteEstimate::TRIGGER),
            "bytes_kept": self.facts.kept(after),
            "calls": driven.calls,
            "usage": driven.usage,
            "paths": {
                "before": self.facts.paths.len(),
                "named": self.facts.paths.intersection(&facts.paths).count(),
            },
        })
    }

    fn row(&self, name: &str, driven: &Driven, after: &[Message]) {
        let size = Size::of(after, &ByteEstimate::TRIGGER);
        let facts = Facts::of(after);
        let saved = percent(self.before.tokens.saturating_sub(size.tokens), self.before.tokens);
        let kept = percent(self.facts.kept(after), self.before.bytes);
        let files = self.facts.paths.intersection(&facts.paths).count();
        let typed = self.facts.typed.iter().filter(|text| facts.typed.contains(text)).count();
        say!(
            "{} {:>8} {:>9} {:>6} {:>9} {:>6} {:>10} {:>11} {:>9}",
            self.style.cyan(format!("{name:<18}")),
            size.messages,
            thousands(size.tokens),
            saved,
            kept,
            driven.calls,
            thousands(driven.usage.context_tokens()),
            format!("{files} of {}", self.facts.paths.len()),
            format!("{typed} of {}", self.facts.typed.len()),
        );
    }

    fn blank(&self, name: &str, calls: usize) {
        let nothing = self.style.yellow(format!("{:>8}", "as it was"));
        say!("{} {nothing} {:>34}", self.style.cyan(format!("{name:<18}")), calls);
    }

    fn foot(&self, reasons: &[(String, String)]) {
        say!();
        for (name, reason) in reasons {
            say!("  {} {}", self.style.dim(format!("{name:<18}")), first_line(reason, 76));
        }
        say!(
            "\n  {}",
            self.style.dim(
                "files: paths still named; typed: messages of the user still there word for word."
            )
        );
        say!("  {}", self.style.dim("Tokens are estimates, a third of the bytes."));
    }
}

fn percent(part: u64, whole: u64) -> String {
    format!("{} %", part.saturating_mul(100) / whole.max(1))
}
