//! A long coding thread continues in a nearly full window, offline.
//!
//! `cargo run --example quickstart`
//!
//! The thread is a request body as an Anthropic client would send it. It becomes the thread of a
//! session, and the user sends one more text. Before this text is sent the session compacts,
//! because the window is nearly full. No network is needed: the summary is an extract of
//! informative sentences, where a real model would write a better one, and the model that answers
//! only quotes its request.

#![allow(clippy::wildcard_enum_match_arm, reason = "it shows what is worth a line, and no more")]

use std::{
    error::Error,
    io,
    sync::{Arc, Mutex, PoisonError},
};

use futures::executor::block_on;
use threadfold::{
    Answer, ContentBlock, ContextWindow, Message, Model, ModelAgent, Plan, Request, Session,
    TokenCounter, async_trait,
    auto::AutoPolicy,
    legality,
    message::{StopReason, ToolSpec, ToolUse},
    model::{ModelError, ModelErrorKind, Tool, ToolContext, ToolOutput},
    session::{CompactionEvent, SessionEvent},
    strategy::Summarize,
    testing::ExtractiveModel,
    tokens::ByteEstimate,
    wire::{DecodeOptions, Dialect, EncodeOptions},
};
use threadfold_terminal::{Style, outline, speaker, thousands};

const THREAD: &[u8] = include_bytes!("data/coding-thread.json");
const WINDOW: ContextWindow = ContextWindow::new(40_000);

fn main() -> Result<(), Box<dyn Error>> {
    let style = Style::of(&io::stdout());

    // Decode a request body. Codecs keep every field, known or not.
    let request = Dialect::Anthropic.decode_slice(THREAD, &DecodeOptions::default())?;
    show_before(style, &request);

    // Everything before the user's last text is the thread of the agent. The session does the rest.
    let (prompt, before) = request.messages.split_last().ok_or("the thread is empty")?;
    let model = Arc::new(Quoting::default());
    let mut session = session(&request, before, &model)?;

    println!("{}", style.heading("The turn"));
    println!("{} {}\n", style.bold("user     "), outline(prompt, 80));
    let mut events = session.send_message(prompt.clone());
    while let Some(event) = block_on(events.next()) {
        show_event(style, event?);
    }
    drop(events);

    let compaction = session.log().standing().last().ok_or("nothing was compacted")?;
    show_plan(style, before, &compaction.plan);
    show_summary(style, &compaction.plan);
    show_received(style, &model.received())
}

/// Returns a session over the thread, with everything that a compaction needs.
fn session(
    request: &Request,
    before: &[Message],
    model: &Arc<Quoting>,
) -> Result<Session, Box<dyn Error>> {
    let agent = ModelAgent::new(Arc::clone(model) as Arc<dyn Model>).with_window(WINDOW);
    let system = request.system.iter().flat_map(|message| &message.content);
    let system: String =
        system.filter_map(ContentBlock::as_text).map(|text| text.as_str()).collect();
    let mut builder = Session::builder(agent)
        .messages(before.iter().cloned())
        .system(system)
        .strategy(Arc::new(Summarize { summary_tokens: 1_500, ..Summarize::default() }))
        // No provider has counted this thread yet, so the trigger uses the estimate.
        .policy(AutoPolicy { estimates_usage: true, ..AutoPolicy::default() });
    for spec in request.tools.iter() {
        builder = builder.tool(Arc::new(Declared(spec.clone())));
    }
    Ok(builder.build()?)
}

fn show_before(style: Style, request: &Request) {
    println!("{}", style.heading("The thread"));
    println!(
        "A coding agent has worked for a while: {} messages. Its window holds {} tokens. With \
         what\nthe user says now, the next request would have\n",
        request.messages.len(),
        thousands(WINDOW.tokens())
    );
    println!("  {}", style.meter(ByteEstimate::TRIGGER.request(request), WINDOW.tokens()));
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
    let speaker = style.cyan(format!("{:<9}", speaker(message)));
    println!("  {index}  {speaker}  {}", outline(message, 58));
}

fn show_event(style: Style, event: SessionEvent) {
    match event {
        SessionEvent::Compaction(CompactionEvent::Started { strategy, .. }) => {
            println!("{} the window is nearly full: {strategy}\n", style.yellow("compact  "));
        }
        SessionEvent::Compaction(CompactionEvent::Completed { report, .. }) => {
            println!("  {}", style.meter(report.before.tokens, WINDOW.tokens()));
            println!("  {}\n", style.meter(report.after.tokens, WINDOW.tokens()));
        }
        SessionEvent::TextDelta { text } => {
            println!(
                "{} {}",
                style.bold("assistant"),
                threadfold_terminal::plain(&text).replace('\n', "\n          ")
            );
        }
        _ => {}
    }
}

/// Prints one cell per message: summarised, or kept.
fn show_plan(style: Style, before: &[Message], plan: &Plan) {
    println!("{}", style.heading("What the compaction did"));
    let gone = |index: usize| plan.splices().iter().any(|splice| splice.at.contains(&index));
    println!(
        "{} of {} messages went into one summary. What stays is what it was, word for word:\n",
        (0..before.len()).filter(|index| gone(*index)).count(),
        before.len()
    );
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
            let indent = line.len() - line.trim_start().len();
            let text = threadfold_terminal::first_line(line, 96);
            println!("  {} {:indent$}{text}", style.dim("│"), "");
        }
    }
}

fn show_received(style: Style, request: &Request) -> Result<(), Box<dyn Error>> {
    println!("{}", style.heading("The request, as the model received it"));
    for (index, message) in request.messages.iter().enumerate() {
        line(style, index, message);
    }
    println!("\n  {}", style.meter(ByteEstimate::TRIGGER.request(request), WINDOW.tokens()));
    let encoded = Dialect::Anthropic.encode(request, &EncodeOptions::default());
    println!(
        "\n  {} bytes of JSON, {} violations of any provider's rules, {} adjustments needed.",
        thousands(encoded.body.as_str().len().try_into()?),
        legality::violations(&request.messages).len(),
        encoded.adjustments.len()
    );
    println!(
        "  Tokens are estimates: a third of the bytes, until a provider reports a real count."
    );
    Ok(())
}

/// A model that summarises by an extract, answers every other request with quotes from it, and
/// records the request, so that the example can print it.
#[derive(Debug, Default)]
struct Quoting(Mutex<Request>);

impl Quoting {
    fn received(&self) -> Request {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[async_trait]
impl Model for Quoting {
    async fn complete(&self, request: Request) -> Result<Answer, ModelError> {
        // Only requests for a summary have an output limit.
        if request.max_output.is_some() {
            return ExtractiveModel.complete(request).await;
        }
        let blocks = request.messages.iter().flat_map(|message| &message.content);
        let lines = blocks.flat_map(|block| match block {
            ContentBlock::Summary(summary) => summary.text.lines().collect(),
            _ => Vec::new(),
        });
        let found: Vec<&str> = lines.filter(|line| line.contains("of 200")).collect();
        // The user asks for these counts. A summary without them is a defect, so the example fails.
        if found.is_empty() {
            return Err(ModelError::new(
                ModelErrorKind::Other,
                "the summary does not say how many runs failed",
            ));
        }
        let answer = format!("In the summary that I was sent I find:\n{}", found.join("\n"));
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = request;
        Ok(Answer::new(Message::assistant(answer), StopReason::EndTurn, None))
    }
}

/// A tool that the thread declares. This example never calls it.
#[derive(Debug)]
struct Declared(ToolSpec);

#[async_trait]
impl Tool for Declared {
    fn spec(&self) -> ToolSpec {
        self.0.clone()
    }

    async fn call(
        &self,
        _: &ToolUse,
        _: &ToolContext<'_>,
    ) -> Result<ToolOutput, Box<dyn std::error::Error + Send + Sync>> {
        Err("this example carries nothing out".into())
    }
}
