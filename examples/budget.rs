//! A host that limits what a conversation may spend, and refuses requests that exceed the budget.
//!
//! `cargo run --example budget`
//!
//! Every call is billed for the whole conversation again, so a chat that never fills its window may
//! still cost too much. A `TokenBudget` is the account: the host checks it before each request,
//! records the cost of each answer, and compacts when too little is left, so that later requests
//! cost less. The answers are scripted, with usage as a provider reports it. No network and no key
//! are needed.

#![allow(clippy::wildcard_enum_match_arm, reason = "it shows what is worth a line, and no more")]

use std::{error::Error, io, sync::Arc};

use futures::executor::block_on;
use threadfold::{
    ContextWindow, ModelAgent, Session, TokenCounter, Usage,
    log::TokenBudget,
    message::Text,
    model::{Clock, std_clock},
    session::{CompactionEvent, SessionEvent},
    strategy::Summarize,
    testing::{ExtractiveModel, ScriptedModel},
    tokens::ByteEstimate,
};
use threadfold_terminal::{Style, thousands};

/// The tokens that the conversation may spend before it is compacted.
const MAX_TOKENS: u64 = 5_000;

/// The assumed cost of an answer, in tokens, when a request is checked against the budget.
const ANSWER: u64 = 200;

const QUESTIONS: [(&str, usize); 9] = [
    ("The nightly build fails. Here is its log.", 12),
    ("And the one of the night before?", 12),
    ("Is it the same test?", 2),
    ("Here is the test. What does it wait for?", 14),
    ("I raised the timeout. Here is the new log.", 12),
    ("It fails again. Look closer.", 8),
    ("What did we change last week? Here is the list.", 10),
    ("Then revert that. Here is the log after it.", 12),
    ("Here are all the logs of this year. What fails most?", 900),
];

fn main() -> Result<(), Box<dyn Error>> {
    let style = Style::of(&io::stdout());
    let answers = QUESTIONS.map(|(question, _)| {
        format!("About \"{question}\": it is the test of the cache, which waits for a lock.")
    });
    // The window is never nearly full: the budget runs out first.
    let agent = ModelAgent::new(Arc::new(ScriptedModel::new(answers)))
        .with_window(ContextWindow::new(200_000));
    let summarize = Summarize { messages: 2, summary_tokens: 300, ..Summarize::default() };
    let mut session = Session::builder(agent)
        .strategy(Arc::new(summarize))
        .fast_model(Arc::new(ExtractiveModel))
        .build()?;
    let mut budget = TokenBudget {
        max_tokens: MAX_TOKENS,
        reserve_tokens: 250,
        warning_threshold: 0.7,
        ..TokenBudget::default()
    };

    println!("{}", style.heading("A conversation on a budget"));
    println!(
        "{} tokens may be spent, {} of them are a reserve. Each request sends the whole conversation.",
        thousands(MAX_TOKENS),
        thousands(budget.reserve_tokens)
    );
    for (number, (question, lines)) in QUESTIONS.into_iter().enumerate() {
        println!("\n{} {question}", style.bold(format!("question {}", number + 1)));
        let text = Text::from(format!("{question}\n{}", log_lines(lines)));
        if !admit(style, &mut session, &mut budget, &text)? {
            continue;
        }
        let cost = ask(&mut session, text)?;
        budget.record(cost);
        show(style, &budget, cost);
    }
    close(style, &budget);
    Ok(())
}

/// Whether a question fits the budget, now or after a compaction.
fn admit(
    style: Style,
    session: &mut Session,
    budget: &mut TokenBudget,
    text: &Text,
) -> Result<bool, Box<dyn Error>> {
    // No compaction helps a text that is larger than the whole budget.
    if ByteEstimate::TRIGGER.text(text) > MAX_TOKENS {
        println!("  {} the question alone is larger than the budget", style.red("refused:"));
        return Ok(false);
    }
    let size = |session: &Session| session.context_tokens() + ByteEstimate::TRIGGER.text(text);
    let needed = size(session) + ANSWER;
    let left = budget.available_tokens();
    if budget.can_request(needed) {
        println!("  may cost {}, {} are left", thousands(needed), thousands(left));
        return Ok(true);
    }
    println!(
        "  {} it may cost {}, and {} are left",
        style.red("not yet:"),
        thousands(needed),
        thousands(left)
    );
    compact(style, session, budget)?;
    let needed = size(session) + ANSWER;
    let admitted = budget.can_request(needed);
    let word = if admitted { style.green("now:") } else { style.red("refused:") };
    println!(
        "  {word} it may cost {}, and {} are left",
        thousands(needed),
        thousands(budget.available_tokens())
    );
    Ok(admitted)
}

/// Compacts the conversation and restarts the budget with the size of the remaining thread.
fn compact(
    style: Style,
    session: &mut Session,
    budget: &mut TokenBudget,
) -> Result<(), Box<dyn Error>> {
    let mut done = None;
    let mut events = session.compact(None);
    while let Some(event) = block_on(events.next()) {
        if let SessionEvent::Compaction(CompactionEvent::Completed { report, .. }) = event? {
            done = Some(report);
        }
    }
    drop(events);
    let Some(report) = done else { return Ok(()) };
    budget.after_compaction(std_clock().now(), Usage::new(session.context_tokens(), 0));
    println!(
        "  {} {} messages, {} tokens are now {} messages, {} tokens; the budget starts again",
        style.yellow("compacted:"),
        report.before.messages,
        thousands(report.before.tokens),
        report.after.messages,
        thousands(report.after.tokens),
    );
    Ok(())
}

/// Asks the question, and returns the usage that the provider reports.
fn ask(session: &mut Session, text: Text) -> Result<Usage, Box<dyn Error>> {
    let mut cost = Usage::default();
    let mut events = session.send(text);
    while let Some(event) = block_on(events.next()) {
        if let SessionEvent::TurnEnded { usage, .. } = event? {
            cost = usage;
        }
    }
    Ok(cost)
}

/// Prints the cost of an answer, the state of the budget, and its recommendation.
fn show(style: Style, budget: &TokenBudget, cost: Usage) {
    println!("  cost     {} in, {} out", thousands(cost.input), thousands(cost.output));
    println!("  {}", style.meter(budget.used.context_tokens(), MAX_TOKENS));
    let Some(warning) = budget.warning() else { return };
    let mut steps = Vec::new();
    if budget.should_summarize() {
        steps.push("sum up");
    }
    if budget.should_prune() {
        steps.push("cut down");
    }
    println!(
        "  {} {warning}: {}; the next request at most {}",
        style.yellow("warning:"),
        steps.join(", "),
        thousands(budget.max_request_size())
    );
}

fn close(style: Style, budget: &TokenBudget) {
    println!("{}", style.heading("The account"));
    println!(
        "{} tokens since the last compaction, {} of prompts and {} of answers; {} are left.",
        thousands(budget.used.context_tokens()),
        thousands(budget.used.input),
        thousands(budget.used.output),
        thousands(budget.available_tokens())
    );
    println!("{} answers were billed.", budget.responses);
}

/// Returns this many lines of a log.
fn log_lines(lines: usize) -> String {
    let line =
        |n: usize| format!("02:{:02}:{:02} cache::lock test waited {n} ms\n", n / 60 % 60, n % 60);
    (1..=lines).map(line).collect()
}
