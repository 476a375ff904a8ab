//! The state of a proxy, which its server, its pages and the preparation of requests share.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use threadfold::{
    CompactionStrategy, Model,
    auto::{AutoCompactor, AutoPolicy, Threshold},
    model::Clock,
    store::ThreadStore,
};
use threadfold_http::TokioClock;
use tokio::sync::Semaphore;

use super::{
    endpoint::Vendor,
    forward::{self, Client, Upstream},
    lock::locked,
    notes::Notes,
    prices,
    quiet::Quiet,
    tally::Counts,
    threads::Threads,
    unstored::Unstored,
    views::Views,
};
use crate::when_quiet::WhenQuiet;

/// The maximum number of threads in memory at once to be read; other requests wait.
const MAX_READ: usize = 8;

/// The maximum number of compactions at once with a model, which mostly wait for it. Without one, as many
/// as there are processors.
const MAX_ASKING: usize = 16;

/// The maximum number of quiet threads that are compacted or kept alive at once.
const MAX_QUIET: usize = 2;

/// The maximum number of pages that are made at once.
const MAX_PAGES: usize = 2;

/// The options of a proxy.
#[derive(Debug)]
pub struct ProxyOptions {
    /// The server for requests in the Anthropic dialect, such as `https://api.anthropic.com`.
    pub anthropic: String,
    /// The server for OpenAI's dialects, and for requests that belong to no vendor.
    pub openai: String,
    /// The server for requests in the dialect of Gemini.
    pub gemini: String,
    /// The window in tokens; `None` uses the published window of the model.
    pub window: Option<u64>,
    /// When to compact. Its prices, if it has any, hold for all models while an agent is quiet;
    /// without them each model has its published ones.
    pub policy: AutoPolicy,
    /// What to do while an agent is quiet, shortly before the provider's prompt cache dies.
    pub when_quiet: WhenQuiet,
    /// How to compact.
    pub strategy: Arc<dyn CompactionStrategy>,
    /// The model that writes summaries.
    pub model: Option<Arc<dyn Model>>,
    /// Whether to report compactions without carrying them out.
    pub shadow: bool,
    /// The maximum size of a request body, in bytes.
    pub max_body: usize,
    /// The maximum time of a compaction.
    pub patience: Duration,
    /// The maximum number of threads in the folder. The thread whose last compaction is the oldest
    /// goes first.
    pub max_threads: usize,
    /// The maximum size of the threads in the folder, in bytes.
    pub max_stored: u64,
    /// The time after which the connection of a client that reads nothing of its answer is closed.
    pub stall: Duration,
}

/// A proxy that is ready to serve.
#[derive(Debug)]
pub struct Proxy {
    pub(super) options: ProxyOptions,
    pub(super) store: Arc<dyn ThreadStore>,
    pub(super) views: Views,
    /// What waits to be stored.
    pub(super) unstored: Unstored,
    pub(super) threads: Threads,
    /// The trigger for new threads.
    pub(super) fresh: AutoCompactor,
    pub(super) client: Client,
    pub(super) anthropic: Upstream,
    pub(super) openai: Upstream,
    pub(super) google: Upstream,
    /// The lane of requests that are read and sent on.
    pub(super) reading: Arc<Semaphore>,
    /// The lane of compactions, so that no other request waits for one.
    pub(super) compacting: Arc<Semaphore>,
    /// The lane of work for quiet threads, so that no request waits for it.
    pub(super) quieting: Arc<Semaphore>,
    /// The lane of pages, so that they take no thread of the runtime.
    pub(super) showing: Arc<Semaphore>,
    pub(super) quiet: Quiet,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) notes: Arc<Notes>,
    /// What was done since the start.
    pub(super) tally: Mutex<Counts>,
}

impl Proxy {
    /// Returns a proxy with this store for threads and these views.
    ///
    /// # Errors
    ///
    /// A message about an invalid address or policy.
    pub fn new(
        options: ProxyOptions,
        store: Arc<dyn ThreadStore>,
        views: Views,
    ) -> Result<Self, String> {
        let upstream = |url: &str, vendor: Vendor| {
            let named = |error| format!("{}: {error}", vendor.option());
            Upstream::new(url, vendor).map_err(named)
        };
        Ok(Self {
            anthropic: upstream(&options.anthropic, Vendor::Anthropic)?,
            openai: upstream(&options.openai, Vendor::OpenAi)?,
            google: upstream(&options.gemini, Vendor::Google)?,
            fresh: AutoCompactor::new(options.policy).map_err(|error| error.to_string())?,
            reading: Arc::new(Semaphore::new(MAX_READ)),
            compacting: Arc::new(Semaphore::new(compactions(options.model.is_some()))),
            quieting: Arc::new(Semaphore::new(MAX_QUIET)),
            showing: Arc::new(Semaphore::new(MAX_PAGES)),
            quiet: Quiet::default(),
            clock: Arc::new(TokioClock),
            threads: Threads::default(),
            client: forward::client()?,
            notes: Arc::new(Notes::StandardError),
            tally: Mutex::default(),
            unstored: Unstored::default(),
            store,
            views,
            options,
        })
    }

    /// Returns the proxy with another clock; without it, that of the system. It decides when the
    /// prompt caches of quiet threads die.
    #[must_use]
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// Sets where the lines about requests go; without it, to standard error.
    pub(crate) fn noted_in(self, notes: Arc<Notes>) -> Self {
        Self { notes, ..self }
    }

    /// What was done since the start.
    pub(crate) fn counts(&self) -> Counts {
        *locked(&self.tally)
    }

    /// Writes a line about a request. It must hold no header and no text of a thread or a
    /// provider: see [`Trouble`](super::trouble::Trouble).
    pub(super) fn note(&self, line: &str) {
        self.notes.line(line);
    }

    /// The size in tokens from which threads of this model are examined, if `room` tokens are
    /// available.
    pub(super) fn threshold(&self, model: &str, room: u64) -> u64 {
        let threshold = self.soft_threshold(room);
        match self.options.when_quiet {
            WhenQuiet::Compact | WhenQuiet::KeepAlive if self.prices_of(model).is_some() => {
                threshold.min(prices::CACHE_MIN)
            }
            WhenQuiet::Nothing | WhenQuiet::Compact | WhenQuiet::KeepAlive => threshold,
        }
    }

    fn soft_threshold(&self, room: u64) -> u64 {
        match self.options.policy.threshold {
            Threshold::Fraction(share) => (room as f64 * share) as u64,
            Threshold::Tokens(tokens) => tokens.min(room),
            // These thresholds do not follow from the size of a request, so every thread is
            // examined.
            Threshold::Remaining(_) | Threshold::MessagesOver(_) | _ => 0,
        }
    }
}

/// How many compactions run at once.
fn compactions(asks_a_model: bool) -> usize {
    match asks_a_model {
        true => MAX_ASKING,
        false => std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
    }
}
