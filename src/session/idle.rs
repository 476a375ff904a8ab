//! What a session does while the user is away: keep the provider's cache alive, or compact shortly
//! before it dies.
//!
//! [`AutoCompactor::idle`](crate::auto::AutoCompactor::idle) decides, by the prices of the policy.
//! The session waits, by the clock of its builder, and carries the decisions out. A compaction is
//! prepared as in the background and then adopted, so a future that is dropped because the user is
//! back leaves the thread as it was.

use std::{sync::Arc, time::Duration};

use super::{error::Result, events::Emit, session::Session};
use crate::{
    auto::{self, IdleStep, Input},
    log::{CompactionRecord, Event},
    message::{CompactionReason, Usage},
    model::{AgentModel, Model},
};

/// What a session did while the user was away.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Idled {
    /// How often the last prompt was sent again to keep the cache alive.
    pub keep_alives: u32,
    /// The tokens that the provider billed for that. They are part of
    /// [`EventLog::billed`](crate::log::EventLog::billed).
    pub usage: Usage,
    /// The compaction, if the thread was compacted.
    pub compaction: Option<CompactionRecord>,
}

impl Session {
    /// Does what pays for the provider's cache of the prompt while the user is away, for at most
    /// this time: sends the last prompt again for a tiny answer shortly before the cache dies,
    /// compacts instead if that is cheaper, with the reason
    /// [`Idle`](crate::message::CompactionReason::Idle), or lets the cache die. See
    /// [`Idle`](crate::auto::Idle) for the rule. It returns when nothing more is to be done, or when
    /// the time is over; with a time of zero it does not wait, for hosts with a timer of their own.
    ///
    /// Without [prices](crate::auto::AutoPolicy::prices) in the policy it returns at once.
    ///
    /// The future may be dropped at any point, and should be when the user is back. Before the
    /// commit of a compaction nothing has changed, and after it the next turn writes the store. The
    /// events of the compaction are the first ones of the next stream. A request that was dropped is
    /// billed by the provider without being in the log.
    ///
    /// ```
    /// use futures::{executor::block_on, future::{BoxFuture, ready}};
    /// use std::{sync::{Arc, atomic::{AtomicU64, Ordering::Relaxed}}, time::Duration};
    /// use threadfold::{ContextWindow, ModelAgent, Session, auto::AutoPolicy, message::Timestamp};
    /// use threadfold::{model::Clock, strategy::Digest, testing::ScriptedModel};
    ///
    /// /// A clock whose waits end at once.
    /// #[derive(Debug, Default)]
    /// struct Skipping(AtomicU64);
    ///
    /// impl Clock for Skipping {
    ///     fn now(&self) -> Timestamp {
    ///         Timestamp(self.0.load(Relaxed))
    ///     }
    ///
    ///     fn sleep(&self, time: Duration) -> BoxFuture<'_, ()> {
    ///         self.0.fetch_add(time.as_millis() as u64, Relaxed);
    ///         Box::pin(ready(()))
    ///     }
    /// }
    ///
    /// let policy: AutoPolicy = serde_json::from_str(
    ///     r#"{"summary_tokens": 0, "target": {"fraction": 0.2},
    ///         "prices": {"input": 3, "cached": 0.3, "cache_write": 3.75, "output": 15}}"#,
    /// )?;
    /// let long = "The parser reads tokens from the lexer, line by line. ".repeat(800);
    /// let model = Arc::new(ScriptedModel::new([long.as_str(), "It is long.", ".", ".", "."]));
    /// let agent = ModelAgent::new(model.clone()).with_window(ContextWindow::new(40_000));
    /// let builder = Session::builder(agent).strategy(Arc::new(Digest::default())).policy(policy);
    /// let mut session = builder.clock(Arc::new(Skipping::default())).build()?;
    /// block_on(async { session.send("Explain the parser.").await })?;
    /// block_on(async { session.send("How long is it?").await })?;
    ///
    /// // The user is away for a night.
    /// let idled = block_on(session.idle_for(Duration::from_secs(8 * 3_600)))?;
    /// assert_eq!(idled.keep_alives as usize, model.requests().len() - 2);
    /// let report = idled.compaction.ok_or("it pays to compact")?.report;
    /// assert!(report.after.tokens < report.before.tokens);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// - [`SessionError::Model`](super::SessionError::Model) if a keep-alive failed.
    /// - [`SessionError::Compaction`](super::SessionError::Compaction) if the compaction failed. That
    ///   there was nothing to compact is no error.
    /// - [`SessionError::Store`](super::SessionError::Store) if the store could not be written.
    pub async fn idle_for(&mut self, time: Duration) -> Result<Idled> {
        let (start, mut waited) = (self.now(), Duration::ZERO);
        let mut idled = Idled::default();
        loop {
            let now = self.now();
            match self.auto.idle(now, self.pressure(0)) {
                IdleStep::Wait { ms } => {
                    // A clock may stand still.
                    let passed = Duration::from_millis(now.0.saturating_sub(start.0)).max(waited);
                    let left = time.saturating_sub(passed);
                    let wait = Duration::from_millis(ms);
                    self.settings.clock.sleep(wait.min(left)).await;
                    if left < wait {
                        return Ok(idled);
                    }
                    waited = waited.saturating_add(wait);
                }
                IdleStep::KeepAlive => {
                    idled.usage += self.keep_alive().await?;
                    idled.keep_alives = idled.keep_alives.saturating_add(1);
                }
                IdleStep::Compact => {
                    idled.compaction = self.compact_idle().await?;
                    return Ok(idled);
                }
                IdleStep::LetGo => return Ok(idled),
            }
        }
    }

    /// Sends the last prompt again for a tiny answer, and returns what was billed.
    async fn keep_alive(&mut self) -> Result<Usage> {
        let at = self.now();
        let answer =
            AgentModel(self.agent.as_ref()).complete(auto::keep_alive(self.request())).await?;
        let usage = answer.usage.unwrap_or_default();
        self.auto.kept_alive(at);
        self.journal.append(at, Event::Spent { usage })?;
        self.journal.flush().await?;
        Ok(usage)
    }

    /// Prepares a compaction and adopts it; `None` if there was nothing to compact.
    async fn compact_idle(&mut self) -> Result<Option<CompactionRecord>> {
        let prepared = self.prepare_for(CompactionReason::Idle, |_, _| {}).await;
        match self.adopt(prepared).await {
            Ok(record) => Ok(Some(record)),
            Err(error) if error.is_nothing_to_compact() => {
                let failed = Input::Failed { reason: CompactionReason::Idle };
                let now = self.now();
                let notice = self.auto.handle(now, failed);
                let mut emit = Emit { shared: Arc::clone(&self.shared), defers: true };
                emit.notice_of(notice).await;
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }
}
