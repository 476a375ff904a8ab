//! The journaled steps: everything that a turn needs from the outside world.
//!
//! A step runs until its result is in the engine's journal, and never again. If the worker dies
//! before that, the step is repeated, so every call carries a key that is the same in every
//! attempt.

use std::{
    fmt,
    future::Future,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use restate_sdk::prelude::*;
use serde::{Serialize, de::DeserializeOwned};
use threadfold::{
    Answer, Request,
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
    /// As for every step: [`TerminalError`] if the invocation was cancelled.
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

    /// Asks the model. A failure that may pass is left to the engine, which repeats the step later;
    /// any other failure is an answer, like a turn. `purpose` becomes part of the step's name.
    ///
    /// # Errors
    ///
    /// As [`begin`](Self::begin).
    pub async fn ask(
        &mut self,
        purpose: &str,
        request: Request,
    ) -> Result<Result<Answer, ModelError>, TerminalError> {
        // After a replay the request has the same content, and after every answer another one.
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

    /// Calls a tool. The key has the positions of the call's message in the log and of the call in
    /// the message, because ids of calls may repeat and may contain characters that a header cannot
    /// hold.
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

    /// Waits with the engine's timer, which also runs while no worker does.
    ///
    /// # Errors
    ///
    /// As [`begin`](Self::begin).
    pub async fn wait(&self, time: Duration) -> Result<(), TerminalError> {
        if time.is_zero() { Ok(()) } else { self.context.sleep(time).await }
    }

    /// Runs one step. The time at its end is journaled with its result.
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
