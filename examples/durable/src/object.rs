//! The virtual object: one thread, its turns one after another.
#![expect(missing_docs, reason = "the macro writes a client without documentation")]

use restate_sdk::prelude::*;

use crate::{live::Live, remote::Remote, steps::Steps, turn::OpenTurn};

/// The key of the log in the state of the object.
const LOG: &str = "log";

/// The threads, each a virtual object under its id.
#[derive(Debug)]
pub struct Threads {
    remote: Remote,
}

impl Threads {
    /// Returns the threads with this client of model and tools.
    #[must_use]
    pub fn new(remote: Remote) -> Self {
        Self { remote }
    }
}

#[object(name = "Thread")]
impl Threads {
    /// Takes a text of the user and returns the answer.
    #[handler]
    async fn say(&self, ctx: ObjectContext<'_>, text: String) -> HandlerResult<String> {
        let stored = ctx.get::<String>(LOG).await?;
        let live = Live::read(ctx.key().parse().terminal()?, stored.as_deref()).terminal()?;
        let steps = Steps::begin(&ctx, self.remote.clone()).await?;
        let mut turn = OpenTurn::new(live, steps).terminal()?;
        let answer = turn.run(text).await;
        // This also runs after an error, which then ends the turn: failures that may pass are
        // retried by the engine before the handler gets here.
        let live = turn.close().terminal()?;
        ctx.set(LOG, live.text().terminal()?);
        answer
    }

    /// Returns the log as of the end of the last turn.
    #[handler]
    async fn log(&self, ctx: SharedObjectContext<'_>) -> HandlerResult<String> {
        Ok(ctx.get::<String>(LOG).await?.unwrap_or_default())
    }
}
