//! A host over Ollama's native API, for which the crate has no codec.
//!
//! `cargo run --example ollama`
//!
//! The server is in the same process: it streams lines of JSON, breaks answers off, drops
//! connections, fails, and counts the tokens of each prompt itself. The chapter on providers without
//! a codec explains the adapter.

#![allow(clippy::wildcard_enum_match_arm, reason = "an adapter has one way for the rest")]
#![allow(clippy::indexing_slicing, reason = "a JSON value without the key is null")]

use std::{error::Error, sync::Arc};

use threadfold::ContextWindow;

#[path = "ollama/mod.rs"]
mod ollama;

use ollama::{
    host,
    server::{Outcome, Server},
};

fn main() -> Result<(), Box<dyn Error>> {
    let window = ContextWindow::new(8_000);
    let server = Arc::new(Server { has_faults: true, ..Server::new(window.tokens()) });
    let session = host::talk(&server, window, 150)?;
    let seen = server.lock();
    let count = |is: fn(&host::Seen) -> bool| seen.iter().filter(|seen| is(seen)).count();
    println!("150 turns in a window of {} tokens, by the server's own count:", window.tokens());
    println!("{:>6} requests, {} of them for summaries", seen.len(), count(|it| it.is_summary));
    println!("{:>6} over the window", count(|it| it.tokens > it.window));
    println!("{:>6} prompts cut", count(|it| it.outcome == Outcome::PromptCut));
    println!("{:>6} answers cut", count(|it| it.outcome == Outcome::AnswerCut));
    println!("{:>6} requests dropped", count(|it| it.outcome == Outcome::Dropped));
    println!("{:>6} requests failed", count(|it| it.outcome == Outcome::Failed));
    let ruled = |seen: &&host::Seen| host::RULES.iter().all(|rule| seen.body.contains(rule));
    println!("{:>6} requests with both rules", seen.iter().filter(ruled).count());
    println!(
        "{:>6} messages in the thread, {} events in the log",
        session.messages().len(),
        session.log().len()
    );
    Ok(())
}
