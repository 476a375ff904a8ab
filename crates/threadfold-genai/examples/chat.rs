//! A chat in the terminal with any model that genai supports. The chat may become longer than the
//! model's window.
//!
//! `ANTHROPIC_API_KEY=... cargo run -p threadfold-genai --example chat -- claude-opus-4-6 200000`

#![allow(clippy::wildcard_enum_match_arm, reason = "it shows what is worth a line, and no more")]

use std::{
    env,
    error::Error,
    io::{self, BufRead, Write},
    sync::Arc,
};

use threadfold::{ContextWindow, ModelAgent, Session, session::SessionEvent};
use threadfold_genai::GenaiModel;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let (Some(name), Some(window)) = (arguments.next(), arguments.next()) else {
        return Err("usage: chat MODEL WINDOW_IN_TOKENS".into());
    };
    let model = GenaiModel::new(genai::Client::new()?, name).on_adjusted(|adjustments| {
        for adjustment in adjustments {
            eprintln!("({adjustment})");
        }
    });
    let window = ContextWindow::new(window.parse()?);
    let mut session =
        Session::builder(ModelAgent::new(Arc::new(model)).with_window(window)).build()?;
    for line in io::stdin().lock().lines() {
        let mut events = session.send(line?);
        while let Some(event) = events.next().await {
            match event? {
                SessionEvent::TextDelta { text } => print!("{text}"),
                SessionEvent::Compaction(event) => eprintln!("({event:?})"),
                _ => {}
            }
            io::stdout().flush()?;
        }
        println!();
    }
    Ok(())
}
