//! Threads whose agent is quiet: what is done shortly before the provider's prompt cache of them
//! dies.
//!
//! After each answer the trigger of the thread decides, by the prices of the model, whether anything
//! would pay before the cache dies. Only then the thread is watched: its last body stays in memory
//! until then, and one task waits for the earliest of all watched threads. So the number of watched
//! threads and of their bytes is bounded, and none is watched for longer than one life of its cache,
//! except while it is kept alive.
//!
//! | state | input | next state |
//! |---|---|---|
//! | | an answer was passed on, and something may pay | waiting |
//! | waiting | its time has come | working |
//! | working | not yet due, or kept alive | waiting |
//! | working | compacted, let go, or failed | |
//! | waiting, working | the next request of the thread | |
//!
//! Leaving `working` by a request cancels the work: a compaction that is not committed leaves no
//! trace, and a view that was prepared is dropped. A view that was stored is used by the next request
//! of the thread if that begins with the messages which the view replaces, like any other view.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use clap::ValueEnum;
use futures::channel::oneshot;
use threadfold::{
    auto::{self, AutoPolicy, IdleStep, Pressure},
    compact::{CacheLife, Prices},
    message::{Request, Timestamp},
    wire::{EncodeOptions, WireFormat},
};
use threadfold_terminal::thousands;
use tokio::{sync::Notify, task};

use super::{
    answer::OnEnd,
    forward::{Outgoing, Upstream},
    prepare::{Arrived, Begins, Journey},
    prices,
    server::Lane,
    state::Proxy,
    threads::is_likely,
    trouble::Trouble,
};
use crate::relay::Link;

/// The maximum number of watched threads, and of the bytes of their bodies. Further ones are not
/// watched.
const MAX_WATCHED: usize = 256;
const MAX_BYTES: usize = 256 * 1024 * 1024;

/// The time limit for a keep-alive, whose answer has 16 tokens.
const KEEP_ALIVE_TIME: Duration = Duration::from_secs(20);

/// What a proxy does while an agent is quiet, shortly before the provider's prompt cache dies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum WhenQuiet {
    /// Nothing
    #[default]
    Nothing,
    /// Compact the thread in the background if that costs less than writing its prompt anew
    Compact,
    /// Also send the last request again for an answer of 16 tokens, with the agent's own key; each
    /// time is billed by the provider
    KeepAlive,
}

/// The watched threads, by their first link.
#[derive(Debug, Default)]
pub(super) struct Quiet {
    threads: Mutex<Watches>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Watches {
    by_root: HashMap<Link, Watch>,
    /// The number of the last watch.
    last: u64,
}

#[derive(Debug)]
struct Watch {
    number: u64,
    thread: Arc<QuietThread>,
    state: State,
}

#[derive(Debug)]
enum State {
    Waiting {
        until: Timestamp,
    },
    /// Dropping the sender cancels the work.
    Working {
        _cancels: oneshot::Sender<()>,
    },
}

/// The last request of a thread.
#[derive(Debug)]
pub(super) struct QuietThread {
    arrived: Arrived,
    /// How to send it again; `None` if it must not be.
    again: Option<Again>,
}

/// Where the last request was sent, with its headers and so with its key.
#[derive(Debug)]
struct Again {
    outgoing: Outgoing,
    upstream: Upstream,
}

/// The work for a thread whose time has come.
struct Due {
    root: Link,
    number: u64,
    thread: Arc<QuietThread>,
    cancelled: oneshot::Receiver<()>,
}

impl Quiet {
    /// Watches a thread until this time.
    fn watch(&self, root: Link, thread: QuietThread, until: Timestamp) {
        let mut threads = self.lock();
        let others = threads.by_root.iter().filter(|(other, _)| **other != root);
        let (count, bytes) = others.fold((0, 0_usize), |(count, bytes), (_, watch)| {
            (count + 1, bytes.saturating_add(watch.thread.arrived.body.len()))
        });
        let is_full = bytes.saturating_add(thread.arrived.body.len()) > MAX_BYTES;
        if count >= MAX_WATCHED || is_full {
            return;
        }
        threads.last += 1;
        let number = threads.last;
        let watch = Watch { number, thread: Arc::new(thread), state: State::Waiting { until } };
        threads.by_root.insert(root, watch);
        drop(threads);
        self.changed.notify_one();
    }

    /// The next request of a thread has come, so it is watched no more.
    pub(super) fn went_on(&self, root: Link) {
        self.lock().by_root.remove(&root);
    }

    /// Ends this watch. Returns `false` if the thread went on before.
    pub(super) fn end(&self, root: Link, number: u64) -> bool {
        let mut threads = self.lock();
        let is_quiet = threads.by_root.get(&root).is_some_and(|watch| watch.number == number);
        is_quiet && threads.by_root.remove(&root).is_some()
    }

    /// Whether this watch goes on.
    pub(super) fn is_watching(&self, root: Link, number: u64) -> bool {
        self.lock().by_root.get(&root).is_some_and(|watch| watch.number == number)
    }

    /// Waits on with this watch, if the thread did not go on.
    fn wait(&self, root: Link, number: u64, until: Timestamp) {
        let mut threads = self.lock();
        if let Some(watch) = threads.by_root.get_mut(&root).filter(|watch| watch.number == number) {
            watch.state = State::Waiting { until };
        }
        drop(threads);
        self.changed.notify_one();
    }

    /// The time of the next work.
    fn next(&self) -> Option<Timestamp> {
        let threads = self.lock();
        let waiting = threads.by_root.values().filter_map(|watch| match watch.state {
            State::Waiting { until } => Some(until),
            State::Working { .. } => None,
        });
        waiting.min()
    }

    /// Begins the work for all threads whose time has come.
    fn take_due(&self, now: Timestamp) -> Vec<Due> {
        let mut threads = self.lock();
        let due = threads
            .by_root
            .iter_mut()
            .filter(|(_, watch)| matches!(watch.state, State::Waiting { until } if until <= now));
        let begun = due.map(|(root, watch)| {
            let (cancels, cancelled) = oneshot::channel();
            watch.state = State::Working { _cancels: cancels };
            Due { root: *root, number: watch.number, thread: Arc::clone(&watch.thread), cancelled }
        });
        begun.collect()
    }

    fn lock(&self) -> MutexGuard<'_, Watches> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

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
        &self,
        number: u64,
        thread: &QuietThread,
    ) -> Result<Option<Timestamp>, Trouble> {
        let QuietThread { arrived, again } = thread;
        let Some(mut journey) = self.begin(arrived, Begins::Quiet { number })? else {
            return Ok(None);
        };
        let now = self.clock.now();
        match journey.idle(now) {
            IdleStep::Wait { ms } => return Ok(Some(Timestamp(now.0.saturating_add(ms)))),
            IdleStep::KeepAlive => {
                let Some(again) = again else { return Ok(None) };
                return self.keep_alive(&mut journey, arrived, again).await;
            }
            IdleStep::Compact => self.compact_quiet(&mut journey).await,
            // Nothing pays any more.
            _ => {}
        }
        Ok(None)
    }

    /// Sends the last request again for a tiny answer.
    async fn keep_alive(
        &self,
        journey: &mut Journey,
        arrived: &Arrived,
        again: &Again,
    ) -> Result<Option<Timestamp>, Trouble> {
        let Some(request) = journey.kept_alive() else { return Ok(None) };
        let options = EncodeOptions { model: None, ..EncodeOptions::for_model(journey.model()) };
        let body = arrived.asked.dialect.encode(&request, &options).body.as_str().to_owned();
        let at = self.clock.now();
        let sent = async {
            let answer = again.outgoing.send(&self.client, &again.upstream, body.into()).await?;
            let status = answer.status();
            answer.bytes().await.map_err(super::forward::words)?;
            match status.is_success() {
                true => Ok(()),
                false => Err(format!("status {}", status.as_u16())),
            }
        };
        let sent = tokio::time::timeout(KEEP_ALIVE_TIME, sent).await;
        sent.map_err(|_| "a keep-alive took too long")?
            .map_err(|words| Trouble::new(format!("a keep-alive failed: {words}")))?;
        self.tally.kept_alive();
        let tokens = thousands(journey.tokens());
        self.note(&format!("a prompt of about {tokens} tokens was sent again to keep its cache"));
        Ok(self.kept_alive(journey, at))
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
        journey: &Journey,
        arrived: &Arrived,
        outgoing: &Outgoing,
        upstream: &Upstream,
    ) -> OnEnd {
        let (proxy, root, estimated) = (Arc::clone(self), journey.root(), journey.estimate());
        let (name, model) = (arrived.upstream.clone(), journey.model().to_owned());
        let watched = self.options.when_quiet != WhenQuiet::Nothing;
        let watched = watched.then(|| {
            let again = (self.options.when_quiet == WhenQuiet::KeepAlive)
                .then(|| Again { outgoing: outgoing.clone(), upstream: upstream.clone() });
            (journey.pressure(), QuietThread { arrived: arrived.clone(), again })
        });
        Box::new(move |reported| {
            if let Some(reported) = reported {
                proxy.threads.learn(root, estimated, reported);
                if is_likely(estimated, reported) {
                    proxy.views.answered(&name, &model, reported);
                }
            }
            if let Some((pressure, thread)) = watched
                && let Some(until) = proxy.pays_at(root, pressure)
            {
                proxy.quiet.watch(root, thread, until);
            }
        })
    }

    /// When something pays for the cache of a thread that stays quiet; `None` if nothing does.
    fn pays_at(&self, root: Link, pressure: Pressure) -> Option<Timestamp> {
        let now = self.clock.now();
        let auto = self.threads.trigger(root)?;
        let until = match auto.idle(now, pressure) {
            IdleStep::Wait { ms } => Timestamp(now.0.saturating_add(ms)),
            _ => now,
        };
        match auto.idle(until, pressure) {
            IdleStep::KeepAlive | IdleStep::Compact => Some(until),
            _ => None,
        }
    }
}

/// Returns the request that keeps the cache of this one alive. `None` if its reasoning has a budget,
/// which must be below the tokens of the answer: another budget would be another prompt.
pub(super) fn keep_alive(request: Request) -> Option<Request> {
    let has_budget = request.extra.fields().any(|(name, json)| {
        name == "thinking" && json.to_value().is_ok_and(|value| value["budget_tokens"].is_u64())
    });
    (!has_budget).then(|| auto::keep_alive(request))
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
