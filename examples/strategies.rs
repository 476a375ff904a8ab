//! One transcript, every strategy side by side: what each leaves, keeps, costs and loses.
//!
//! ```text
//! cargo run -q --example strategies -- [--target TOKENS] [FILE]
//! ```
//!
//! FILE is a request body in the Anthropic or the Chat Completions dialect; without one it is a
//! thread of a coding agent that comes with the crate. The target is half of the thread unless it
//! is said. Summaries are written by the offline extractive model, which picks telling sentences:
//! a real model writes better ones.

use std::{
    collections::{HashMap, HashSet},
    fs, io,
    path::PathBuf,
    process::ExitCode,
};

use futures::executor::block_on;
use input::Dialect;
use lexopt::{Arg, Parser, ValueExt};
use terminal::{Style, first_line, thousands};
use threadfold::{
    CompactionStrategy, ContentBlock, Message, Request, StrategyRegistry,
    compact::Size,
    drive::{DriveError, Driven, Models, propose},
    legality,
    render::{RenderOptions, render},
    strategy::{Brief, Snapshot},
    testing::ExtractiveModel,
    tokens::{self, ByteEstimate},
    wire::DecodeOptions,
};

#[path = "transcript/input.rs"]
mod input;
mod terminal;

const THREAD: &[u8] = include_bytes!("data/coding-thread.json");

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("strategies: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let (file, target) = arguments()?;
    let bytes = match &file {
        Some(file) => fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?,
        None => THREAD.to_vec(),
    };
    let input = input::read(&bytes, None)?;
    let request = Dialect::format(input.dialect)
        .decode_slice(input.body.as_bytes(), &DecodeOptions::default())
        .map_err(|error| error.to_string())?;
    let (messages, _) = legality::repair(request.messages.to_vec());
    let before = Size::of(&messages, &ByteEstimate::TRIGGER);
    let target = target.unwrap_or(before.tokens / 2);
    let table = Table { style: Style::of(&io::stdout()), facts: Facts::of(&messages), before };
    let name = file.map_or("a coding agent's thread".into(), |file| file.display().to_string());
    table.head(&name, target);

    let thread = Snapshot::of_request(&Request { messages: messages.into(), ..request });
    let brief = Brief { target: Some(target), ..Brief::default() };
    let registry = StrategyRegistry::default();
    let mut reasons = Vec::new();
    for name in registry.names() {
        let strategy = registry.get(name).map_err(|error| error.to_string())?;
        match tried(strategy.as_ref(), &thread, &brief) {
            Ok((driven, after)) => {
                table.row(name, &driven, &after);
                reasons.extend(rungs(name, &driven));
            }
            Err(failed) => {
                table.blank(name, failed.calls);
                reasons.push((name.to_owned(), failed.to_string()));
            }
        }
    }
    table.foot(&reasons);
    Ok(())
}

fn arguments() -> Result<(Option<PathBuf>, Option<u64>), String> {
    const USAGE: &str = "usage: strategies [--target TOKENS] [FILE]";
    let (mut file, mut target) = (None, None);
    let mut parser = Parser::from_env();
    while let Some(argument) = parser.next().map_err(|error| error.to_string())? {
        match argument {
            Arg::Long("target") => {
                let tokens = parser.value().and_then(|value| value.parse());
                target = Some(tokens.map_err(|error| error.to_string())?);
            }
            Arg::Value(path) if file.is_none() => file = Some(path.into()),
            Arg::Value(_) | Arg::Long(_) | Arg::Short(_) => return Err(USAGE.to_owned()),
        }
    }
    Ok((file, target))
}

fn tried(
    strategy: &dyn CompactionStrategy,
    thread: &Snapshot,
    brief: &Brief,
) -> Result<(Driven, Vec<Message>), DriveError> {
    let models = Models::one(&ExtractiveModel);
    let driven = block_on(propose(strategy, thread, brief, models, &mut |_| {}))?;
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
            *blocks.entry(json(block)).or_default() += 1;
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
            typed: typed.map(json).collect(),
            paths: words.filter(path).map(str::to_owned).collect(),
        }
    }

    /// The bytes of text in blocks that are still there as they were.
    fn kept(&self, after: &[Message]) -> u64 {
        let mut left = self.blocks.clone();
        let blocks = after.iter().flat_map(|message| &message.content).filter(|block| {
            left.get_mut(&json(block)).is_some_and(|count| {
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

fn json(block: &ContentBlock) -> String {
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
        println!("{}", self.style.heading("Every strategy on one thread"));
        println!(
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
        println!("{}\n{}", self.style.bold(head), self.style.dim(below));
    }

    fn row(&self, name: &str, driven: &Driven, after: &[Message]) {
        let size = Size::of(after, &ByteEstimate::TRIGGER);
        let facts = Facts::of(after);
        let saved = percent(self.before.tokens.saturating_sub(size.tokens), self.before.tokens);
        let kept = percent(self.facts.kept(after), self.before.bytes);
        let files = self.facts.paths.intersection(&facts.paths).count();
        let typed = self.facts.typed.iter().filter(|text| facts.typed.contains(text)).count();
        println!(
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
        println!("{} {nothing} {:>34}", self.style.cyan(format!("{name:<18}")), calls);
    }

    fn foot(&self, reasons: &[(String, String)]) {
        println!();
        for (name, reason) in reasons {
            println!("  {} {}", self.style.dim(format!("{name:<18}")), first_line(reason, 76));
        }
        println!(
            "\n  {}",
            self.style.dim(
                "files: paths still named; typed: messages of the user still there word for word."
            )
        );
        println!(
            "  {}",
            self.style
                .dim("Tokens are estimates, a third of the bytes. Nothing was sent anywhere.")
        );
    }
}

fn percent(part: u64, whole: u64) -> String {
    format!("{} %", part.saturating_mul(100) / whole.max(1))
}
