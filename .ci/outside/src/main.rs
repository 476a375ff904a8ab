//! The first program of a stranger: a model of their own, a database, and a thread that outgrows its
//! window.

use std::sync::Arc;

use futures::executor::block_on;
use threadfold::{
    Answer, ContextWindow, Message, Model, ModelAgent, Request, Session, async_trait,
    message::StopReason,
    model::ModelError,
    store::ThreadStore,
    tokens::{ByteEstimate, TokenCounter},
};
use threadfold_postgres::PostgresStore;
use threadfold_sqlite::SqliteStore;

// Whoever has many machines takes the other database. Nothing here starts its server.
const _: fn(PostgresStore) -> Arc<dyn ThreadStore> = |store| Arc::new(store);

#[derive(Debug)]
struct Wordy;

#[async_trait]
impl Model for Wordy {
    async fn complete(&self, request: Request) -> Result<Answer, ModelError> {
        let tokens = ByteEstimate::TRIGGER.request(&request);
        assert!(tokens <= 4_000, "{tokens} tokens do not fit the window");
        let text = format!("{} messages. {}", request.messages.len(), "Well. ".repeat(60));
        Ok(Answer::new(Message::assistant(text), StopReason::EndTurn, None))
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let agent = ModelAgent::new(Arc::new(Wordy)).with_window(ContextWindow::new(4_000));
    let folder = std::env::temp_dir().join(format!("outside-{}", std::process::id()));
    let store = Arc::new(SqliteStore::open(folder.join("threads.db"))?);
    let mut session = block_on(Session::builder(agent).store(store).open())?;
    for turn in 0..60 {
        block_on(async { session.send(format!("Question {turn}: why?")).await })?;
    }
    let compactions = session.log().standing().count();
    println!("60 turns, {compactions} compactions, {} tokens", session.context_tokens());
    assert!(compactions > 0, "nothing was compacted");
    drop(session);
    std::fs::remove_dir_all(folder)?;
    Ok(())
}
