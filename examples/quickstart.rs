//! A long coding thread is compacted, offline, and shown before and after.
//!
//! `cargo run --example quickstart`
//!
//! The thread is a request body as an Anthropic client would send it. It is decoded, summarised by
//! a model that needs no network (it picks telling sentences; a real model writes better), checked,
//! applied, and encoded again, ready to send.

use std::{error::Error, io};

use futures::executor::block_on;
use terminal::{Style, outline, speaker, thousands};
use threadfold::{
    ContentBlock, ContextWindow, Message, ModelAgent, ProviderThread, Request, TokenCounter,
    compact::Plan,
    drive::{Models, propose},
    legality,
    strategy::{Brief, Snapshot, Summarize},
    testing::ExtractiveModel,
    wire::{AnthropicMessages, DecodeOptions, EncodeOptions, WireFormat},
};

mod terminal;

const THREAD: &[u8] = include_bytes!("data/coding-thread.json");
const WINDOW: ContextWindow = ContextWindow::new(40_000);

fn main() -> Result<(), Box<dyn Error>> {
    let style = Style::of(&io::stdout());

    // A request body comes in. Codecs keep every field, known or not.
    let request = AnthropicMessages.decode_slice(THREAD, &DecodeOptions::default())?;
    let mut agent = ModelAgent::new(std::sync::Arc::new(ExtractiveModel)).with_window(WINDOW);
    agent.thread_mut().extend(request.messages.iter().cloned());
    let before = request.messages.clone();
    show_before(style, &request, &agent);

    // A strategy proposes a plan; nothing has changed yet.
    let thread = Snapshot::of(agent.thread())
        .with_context(request.system.clone(), request.tools.clone())
        .with_window(Some(WINDOW));
    let brief = Brief { target: Some(WINDOW.tokens() / 2), ..Brief::default() };
    let model = agent.model().clone();
    let driven = block_on(propose(
        &Summarize { summary_tokens: 1_500, ..Summarize::default() },
        &thread,
        &brief,
        Models::one(&model),
        &mut |_| {},
    ))?;

    // The plan passed the acceptance check, so it is carried out.
    let plan = driven.proposal.plan;
    let removed = agent.apply(&plan)?;
    show_plan(style, &before, &plan, removed.messages.len());
    show_summary(style, &plan);

    // The next request, legal for its provider.
    let next = Request { messages: agent.messages().clone(), ..request };
    let encoded = AnthropicMessages.encode(&next, &EncodeOptions::default());
    show_next(style, &next, encoded.body.as_str().len(), encoded.adjustments.len());
    Ok(())
}

fn show_before(style: Style, request: &Request, agent: &ModelAgent) {
    let size = agent.thread().size();
    println!("{}", style.heading("The thread"));
    println!(
        "A coding agent has worked for a while: {} messages, {} bytes of text.",
        size.messages,
        thousands(size.bytes)
    );
    println!(
        "Its window holds {} tokens; what the next request needs is\n",
        thousands(WINDOW.tokens())
    );
    println!("  {}", style.meter(agent.thread().counter().request(request), WINDOW.tokens()));
    println!(
        "\n  {}",
        style.red("A few turns more, and the provider would refuse it as too long.")
    );
    println!("\nIt begins and ends like this:\n");
    let last = request.messages.len().saturating_sub(3);
    for (index, message) in request.messages.iter().enumerate() {
        match index {
            0..3 => line(style, index, message),
            3 => println!("  {}", style.dim("  ⋮")),
            _ if index >= last => line(style, index, message),
            _ => {}
        }
    }
}

fn line(style: Style, index: usize, message: &Message) {
    let index = style.dim(format!("{index:>4}"));
    println!(
        "  {index}  {:<9}  {}",
        style.cyan(format!("{:<9}", speaker(message))),
        outline(message, 58)
    );
}

/// One cell a message: what was summarised, what stays.
fn show_plan(style: Style, before: &[Message], plan: &Plan, removed: usize) {
    println!("{}", style.heading("The compaction"));
    println!(
        "{} of {} messages went into one summary. What stays is what it was, word for word:\n",
        removed,
        before.len()
    );
    let gone = |index: usize| plan.splices().iter().any(|splice| splice.at.contains(&index));
    for (row, chunk) in before.chunks(60).enumerate() {
        let cell = |(column, message): (usize, &Message)| {
            let mark = if message.is_typed() { "◆" } else { "■" };
            if gone(row * 60 + column) { style.dim("·") } else { style.green(mark) }
        };
        let cells: String = chunk.iter().enumerate().map(cell).collect();
        println!("  {} {cells}", style.dim(format!("{:>4}", row * 60)));
    }
    println!(
        "\n  {} summarised   {} stays   {} stays, typed by the user",
        style.dim("·"),
        style.green("■"),
        style.green("◆")
    );
}

fn show_summary(style: Style, plan: &Plan) {
    println!("{}", style.heading("The summary"));
    println!("{}", style.dim("Written by an extract of sentences, not by a language model:\n"));
    for block in plan.new_messages().flat_map(|message| &message.content) {
        let ContentBlock::Summary(summary) = block else { continue };
        for line in summary.text.lines() {
            println!("  {} {}", style.dim("│"), terminal::first_line(line, 96));
        }
    }
}

fn show_next(style: Style, next: &Request, bytes: usize, adjustments: usize) {
    println!("{}", style.heading("The next request"));
    for (index, message) in next.messages.iter().enumerate() {
        line(style, index, message);
    }
    let counter = threadfold::tokens::ByteEstimate::TRIGGER;
    println!("\n  {}", style.meter(counter.request(next), WINDOW.tokens()));
    let violations = legality::violations(&next.messages).len();
    println!(
        "\n  {} bytes of JSON, {violations} violations of any provider's rules, {adjustments} adjustments needed.",
        thousands(bytes as u64)
    );
    println!(
        "  Tokens are estimates: a third of the bytes, until a provider reports a real count."
    );
}
