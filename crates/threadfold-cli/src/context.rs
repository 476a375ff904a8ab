//! `context`: the parts of a request and their tokens.

use std::{fmt::Display, io};

use serde_json::json;
use threadfold::{
    ContextWindow, Message, Request, TokenCounter,
    tokens::{BreakdownPart, ByteEstimate, breakdown},
};
use threadfold_terminal::{Style, first_line, outline, speaker, thousands};

use crate::{
    args::ContextOptions,
    error::{Ended, Failure},
    input::Body,
    out::say,
};

const COUNTER: ByteEstimate = ByteEstimate::TRIGGER;

/// One message of the request, with its index and size.
struct Heavy<'a> {
    index: usize,
    message: &'a Message,
    tokens: u64,
}

pub(crate) fn run(options: &ContextOptions) -> Result<Ended, Failure> {
    let body = Body::read(&options.file, None, options.thread.id())?;
    let parts = breakdown(&body.request, &COUNTER);
    let total = parts.iter().map(|part| part.tokens).sum();
    let known = body.model.as_deref().and_then(ContextWindow::for_model);
    let window = options.window.or(known.map(ContextWindow::tokens));
    let heavy = heaviest(&body.request, options.messages);
    if options.json {
        let messages = heavy.iter().map(|Heavy { index, message, tokens }| {
            json!({"index": index, "role": message.role, "tokens": tokens})
        });
        let messages: Vec<_> = messages.collect();
        let dollars = options.price.map(|price| cost(total, price));
        let whole = json!({
            "tokens": total, "window": window, "dollars": dollars,
            "parts": parts, "messages": messages,
        });
        say!("{whole}");
        return Ok(Ended::Done);
    }
    let style = Style::of(&io::stdout());
    say!("{}", style.heading(&options.file.display().to_string()));
    match window {
        Some(window) => say!("{}", style.meter(total, window)),
        None => say!("about {} tokens; --window sets the window to compare with", thousands(total)),
    }
    say!();
    // What is left of 80 columns.
    let room = if options.price.is_some() { 50 } else { 62 };
    for part in &parts {
        row(style, options.price, total, part.tokens, first_line(&name(part), room));
    }
    say!("{}", style.heading("The largest messages"));
    for Heavy { index, message, tokens } in heavy {
        let about = format!("{index:>5} {:<9} {}", speaker(message), outline(message, 60));
        let about = first_line(&about, room);
        row(style, options.price, total, tokens, about);
    }
    say!("\n{}", style.dim("Tokens are estimates, a third of the bytes."));
    Ok(Ended::Done)
}

fn heaviest(request: &Request, most: usize) -> Vec<Heavy<'_>> {
    let messages = request.messages.iter().enumerate();
    let mut heavy: Vec<Heavy<'_>> = messages
        .map(|(index, message)| Heavy { index, message, tokens: COUNTER.message(message) })
        .collect();
    heavy.sort_by_key(|heavy| (u64::MAX - heavy.tokens, heavy.index));
    heavy.truncate(most);
    heavy
}

fn row(style: Style, price: Option<f64>, total: u64, tokens: u64, about: impl Display) {
    let percent = tokens.saturating_mul(100) / total.max(1);
    let money = price.map(|price| format!(" {:>9.4} $", cost(tokens, price)));
    say!(
        "{} {}{}  {about}",
        style.cyan(format!("{:>10}", thousands(tokens))),
        style.dim(format!("{percent:>3} %")),
        money.unwrap_or_default()
    );
}

fn name(part: &BreakdownPart) -> String {
    let (kind, count) = (part.kind.label(), part.count);
    match &part.tool {
        Some(tool) => format!("{kind} {} ({count})", first_line(tool, 60)),
        None => format!("{kind} ({count})"),
    }
}

/// The cost in dollars of this many tokens, at a price for a million.
fn cost(tokens: u64, price: f64) -> f64 {
    tokens as f64 * price / 1e6
}
