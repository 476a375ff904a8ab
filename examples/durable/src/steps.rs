//! The journaled steps: all that a turn asks of the world.
//!
//! A step runs until its result is in the engine's journal, and never again. A worker that dies before
//! that repeats the step, so every call carries a key that is the same in every attempt.

use std::{
    fmt,
    future::Future,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use restate_sdk::prelude::*;
use serde::{Serialize, de::DeserializeOwned};
use threadfold::{
    Request, Turn,
    message::{ModelError, Timestamp, ToolResult, ToolUse},
};

use crate::remote::Remote;

/// The steps of one invocation.
pub struct Steps<'a, 'ctx> {
    context: &'a ObjectContext<'ctx>,
    remote: Remote,
    now: Timestamp,
}

impl<'a, 'ctx> Steps<'a, 'ctx> {
    /// Returns the steps of this invocation. The first one reads the clock.
    ///
    /// # Errors
    ///
    /// As every step: [`TerminalError`] if the invocation was cancelled.
    pub async fn begin(
        context: &'a ObjectContext<'ctx>,
        remote: Remote,
    ) -> Result<Self, TerminalError> {
        let mut steps = Self { context, remote, now: Timestamp(0) };
        steps.step("begin".to_owned(), async { Ok(()) }).await?;
        Ok(steps)
    }

    /// The time at which the last step ended.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Asks the model. A failure that may pass is left to the engine, which repeats the step after a
    /// while; any other one is an answer like a turn. The name of the step says what it is for.
    ///
    /// # Errors
    ///
    /// As [`begin`](Self::begin).
    pub async fn ask(
        &mut self,
        purpose: &str,
        request: Request,
    ) -> Result<Result<Turn, ModelError>, TerminalError> {
        // The content of the request is the same after a replay, and another one for every answer.
        let key = format!("{}/{purpose}/{:016x}", self.context.key(), request.key());
        let (remote, name) = (self.remote.clone(), key.clone());
        let asked = async move {
            match remote.complete(&key, &request).await? {
                Err(error) if error.is_retryable() => Err(error.into()),
                answer => Ok(answer),
            }
        };
        self.step(name, asked).await
    }

    /// Calls a tool. The place of the call is that of its message in the log and its own in there:
    /// ids of calls may come again, and hold what no header takes.
    ///
    /// # Errors
    ///
    /// As [`begin`](Self::begin).
    pub async fn call(
        &mut self,
        (message, index): (u64, usize),
        call: ToolUse,
    ) -> Result<ToolResult, TerminalError> {
        let key = format!("{}/tool/{message}/{index}", self.context.key());
        let (remote, name) = (self.remote.clone(), key.clone());
        self.step(name, async move { Ok(remote.call(&key, &call).await?) }).await
    }

    /// Waits by the engine's timer, which goes on while no worker lives.
    ///
    /// # Errors
    ///
    /// As [`begin`](Self::begin).
    pub async fn wait(&self, time: Duration) -> Result<(), TerminalError> {
        if time.is_zero() { Ok(()) } else { self.context.sleep(time).await }
    }

    /// Runs one step. The time of its end is journaled with its result.
    async fn step<T, W>(&mut self, name: String, work: W) -> Result<T, TerminalError>
    where
        T: Serialize + DeserializeOwned + 'static,
        W: Future<Output = HandlerResult<T>> + Send + 'ctx,
    {
        let timed = move || async move {
            let result = work.await?;
            Ok(Json((clock(), result)))
        };
        let Json((now, result)) = self.context.run(timed).name(name).await?;
        self.now = now;
        Ok(result)
    }
}

impl fmt::Debug for Steps<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Steps").field("now", &self.now).finish_non_exhaustive()
    }
}

fn clock() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
