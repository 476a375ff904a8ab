//! The work for quiet threads: what is decided about each at its time, and what is done.

use std::{sync::Arc, time::Duration};

use threadfold::{
    auto::{AutoPolicy, IdleStep, Pressure, is_likely},
    compact::{CacheLife, Prices},
    message::Timestamp,
};
use threadfold_terminal::thousands;
use tokio::task;

use super::{
    answer::{Answer, OnEnd},
    endpoint::{Arrived, Asked},
    forward::{Outgoing, Upstream},
    lock::locked,
    prepare::{Attempt, Exchange},
    prices,
    quiet::{Again, Due, QuietThread},
    server::Lane,
    state::Proxy,
    threads::Key,
    trouble::{self, Trouble},
};
use crate::when_quiet::WhenQuiet;

/// The time limit for a keep-alive, whose answer has 16 tokens.
const KEEP_ALIVE_TIME: Duration = Duration::from_secs(20);

impl Proxy {
    /// Works for the watched threads, each at its time.
    pub(super) async fn mind_quiet_threads(self: Arc<Self>) {
        let mut works = task::JoinSet::new();
        loop {
            let now = self.clock.now();
            for due in self.quiet.take_due(now) {
                works.spawn(Arc::clone(&self).work_for(due));
            }
            let next = self.quiet.next();
            let wait = async {
                match next {
                    Some(until) => {
                        let ms = until.0.saturating_sub(now.0);
                        self.clock.sleep(Duration::from_millis(ms)).await;
                    }
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = wait => {}
                () = self.quiet.changed.notified() => {}
                Some(_) = works.join_next() => {}
            }
        }
    }

    /// Does what is due for a thread, in a lane of its own, until the thread goes on.
    async fn work_for(self: Arc<Self>, due: Due) {
        let Due { root, number, thread, cancelled } = due;
        let proxy = Arc::clone(&self);
        let work = self.apart(Lane::Quiet, async move {
            tokio::select! {
                biased;
                _ = cancelled => Ok(None),
                next = proxy.attend(number, &thread) => next,
            }
        });
        match work.await.flatten() {
            Some(until) => self.quiet.wait(root, number, until),
            None => drop(self.quiet.end(root, number)),
        }
    }

    /// Decides about a thread and does what is due. Returns when to decide again.
    async fn attend(
        self: &Arc<Self>,
        number: u64,
        thread: &QuietThread,
    ) -> Result<Option<Timestamp>, Trouble> {
        let QuietThread { arrived, again } = thread;
        let Some(mut exchange) = self.begin(arrived, Attempt::Idle { number })? else {
            return Ok(None);
        };
        let now = self.clock.now();
        match exchange.idle(now) {
            IdleStep::Wait { ms } => return Ok(Some(Timestamp(now.0.saturating_add(ms)))),
            IdleStep::KeepAlive if self.options.shadow => {
                let tokens = thousands(exchange.tokens());
                self.note(&format!("would send a prompt of about {tokens} tokens again"));
            }
            IdleStep::KeepAlive => {
                let Some(again) = again else { return Ok(None) };
                return self.keep_alive(&mut exchange, &arrived.asked, again).await;
            }
            IdleStep::Compact => self.compact_quiet(&mut exchange).await,
            // Nothing pays any more.
            IdleStep::LetGo | _ => {}
        }
        Ok(None)
    }

    /// Sends the last request again for a tiny answer.
    async fn keep_alive(
        &self,
        exchange: &mut Exchange,
        asked: &Asked,
        again: &Again,
    ) -> Result<Option<Timestamp>, Trouble> {
        let Some(request) = exchange.kept_alive() else { return Ok(None) };
        let body = exchange.encoded(&request);
        let at = self.clock.now();
        let sent = async {
            let answer = again.outgoing.send(&self.client, &again.upstream, Some(body)).await?;
            let status = answer.status().as_u16();
            // Some providers refuse with status 200.
            match Answer::new(answer, Some(asked)).read_whole().await? {
                None => Ok(()),
                Some(error) => Err(format!("status {status}, {}", trouble::kind(&error.kind))),
            }
        };
        let sent = tokio::time::timeout(KEEP_ALIVE_TIME, sent).await;
        sent.map_err(|_| "a keep-alive took too long")?
            .map_err(|words| Trouble::new(format!("a keep-alive failed: {words}")))?;
        locked(&self.tally).kept_alive += 1;
        let tokens = thousands(exchange.tokens());
        self.note(&format!("a prompt of about {tokens} tokens was sent again to keep its cache"));
        Ok(self.kept_alive(exchange, at))
    }

    /// The policy of a thread: with the prices of its model if anything is done for quiet threads.
    /// They decide only about that, so a request below the threshold still passes unchanged.
    pub(super) fn policy_for(&self, model: &str, body: &[u8]) -> AutoPolicy {
        let policy = self.options.policy;
        if self.options.when_quiet == WhenQuiet::Nothing {
            return AutoPolicy { prices: None, ..policy };
        }
        AutoPolicy {
            prices: self.prices_of(model).and_then(|prices| cached_by(prices, model, body)),
            early: false,
            keep_alive: self.options.when_quiet == WhenQuiet::KeepAlive,
            // Without a model no summary is paid.
            summary_tokens: if self.options.model.is_some() { policy.summary_tokens } else { 0 },
            ..policy
        }
    }

    /// The prices of a model: those of the policy, or the published ones.
    pub(super) fn prices_of(&self, model: &str) -> Option<Prices> {
        self.options.policy.prices.or_else(|| prices::of(model))
    }

    /// Returns what is called when the answer has passed: the thread learns the provider's count, and
    /// is watched if something may pay before its cache dies.
    pub(super) fn on_end(
        self: &Arc<Self>,
        exchange: &Exchange,
        arrived: &Arrived,
        outgoing: &Outgoing,
        upstream: &Upstream,
    ) -> OnEnd {
        let (proxy, key, estimated) = (Arc::clone(self), exchange.key(), exchange.estimate());
        let (name, model) = (arrived.upstream.clone(), exchange.model().to_owned());
        let watched = self.options.when_quiet != WhenQuiet::Nothing;
        let watched = watched.then(|| {
            let again = (self.options.when_quiet == WhenQuiet::KeepAlive)
                .then(|| Again { outgoing: outgoing.clone(), upstream: upstream.clone() });
            (exchange.pressure(), QuietThread { arrived: arrived.clone(), again })
        });
        Box::new(move |reported| {
            if let Some(reported) = reported {
                proxy.threads.learn(key, estimated, reported);
                if is_likely(estimated, reported) {
                    proxy.views.answered(&name, &model, reported);
                }
            }
            if let Some((pressure, thread)) = watched
                && let Some(until) = proxy.pays_at(key, pressure)
            {
                proxy.quiet.watch(key.root, thread, until);
            }
        })
    }

    /// When something pays for the cache of a thread that stays quiet; `None` if nothing does.
    fn pays_at(&self, key: Key, pressure: Pressure) -> Option<Timestamp> {
        let now = self.clock.now();
        let auto = self.threads.trigger(key)?;
        let until = match auto.idle(now, pressure) {
            IdleStep::Wait { ms } => Timestamp(now.0.saturating_add(ms)),
            IdleStep::KeepAlive | IdleStep::Compact | IdleStep::LetGo | _ => now,
        };
        match auto.idle(until, pressure) {
            IdleStep::KeepAlive | IdleStep::Compact => Some(until),
            IdleStep::Wait { .. } | IdleStep::LetGo | _ => None,
        }
    }
}

/// The prices with the life of the cache that this body asks for. `None` if it asks for none, or for
/// one of a day.
fn cached_by(prices: Prices, model: &str, body: &[u8]) -> Option<Prices> {
    let body = std::str::from_utf8(body).unwrap_or_default();
    // In a text of the thread, quotes are escaped.
    let has = |words: &str| body.contains(words);
    if model.contains("claude") {
        // Anthropic caches only what is marked.
        return match has("\"cache_control\"") {
            true if has("\"ttl\":\"1h\"") || has("\"ttl\": \"1h\"") => {
                Some(prices.with_life(CacheLife::HOUR))
            }
            true => Some(prices),
            false => None,
        };
    }
    (!has("\"prompt_cache_retention\"")).then_some(prices)
}
