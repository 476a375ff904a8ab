//! `proxy`: a server between an agent and its provider. [`relay`](crate::relay) has the decisions;
//! this module has sockets, store and clock.
//!
//! After any failure the agent's own request is sent. Examples are a view that cannot be read, a
//! full disk, a strategy that panics, and a summary that takes too long.
//!
//! An agent never sees the refusal of a compacted thread: if the provider refuses it for another
//! reason than its length, the agent's own request is sent. While the provider answers, the proxy
//! holds the body and not the decoded thread, so 200 agents need only the memory of their bodies;
//! after a refusal the body is decoded again.

use std::{path::Path, sync::Arc, time::Duration};

use threadfold::{
    CompactionStrategy, StrategyRegistry,
    auto::{AutoPolicy, Threshold},
    message::InvalidValue,
    store::ThreadStore,
    strategy::{Ladder, Summarize},
};
use threadfold_sqlite::SqliteStore;
use tokio::net::TcpListener;

use crate::{
    args::ProxyArguments,
    error::{Ended, Failure},
    input,
};

mod answer;
mod body;
mod client;
mod compaction;
mod elements;
mod endpoint;
mod forward;
mod guard;
mod index;
mod keys;
mod page;
mod prepare;
mod prices;
mod server;
mod state;
mod threads;
mod trouble;
pub(crate) mod views;

pub use state::{Proxy, ProxyOptions};
pub use views::Views;

/// Returns the policy of a proxy. It uses estimates, because a proxy has no counts before it
/// decides.
#[must_use]
pub fn policy(threshold: f64) -> AutoPolicy {
    AutoPolicy {
        threshold: Threshold::Fraction(threshold),
        estimates_usage: true,
        ..AutoPolicy::default()
    }
}

/// Returns the strategy of this name for a proxy. Summaries are written by a model of the proxy, which
/// has neither the agent's tools nor its prompt cache, so it reads the thread as text.
///
/// # Errors
///
/// [`InvalidValue`] if there is no such strategy.
pub fn strategy(name: &str) -> Result<Arc<dyn CompactionStrategy>, InvalidValue> {
    let summarize = Summarize { as_text: true, ..Summarize::default() };
    Ok(match name {
        "summarize" => Arc::new(summarize),
        "ladder" => Arc::new(Ladder::of(summarize)),
        _ => Arc::clone(StrategyRegistry::default().get(name)?),
    })
}

pub(crate) fn run(arguments: ProxyArguments) -> Result<Ended, Failure> {
    // The message of a panic may quote a text of a thread.
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        eprintln!("threadfold: panicked at {place}");
    }));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(serve(arguments))
}

async fn serve(arguments: ProxyArguments) -> Result<Ended, Failure> {
    let folder = arguments.folder.clone();
    input::check_stored(&folder)?;
    let database = folder.join("threads.db");
    let views = Views::open(&database)?;
    let store: Arc<dyn ThreadStore> = Arc::new(SqliteStore::open(&database)?);
    let options = ProxyOptions {
        anthropic: arguments.anthropic,
        openai: arguments.openai,
        gemini: arguments.gemini,
        window: arguments.window,
        policy: policy(arguments.threshold),
        strategy: strategy(&arguments.strategy)?,
        model: arguments.model.open_named().await?.map(Arc::from),
        shadow: arguments.shadow,
        max_body: arguments.max_body,
        max_threads: arguments.max_threads,
        max_stored: arguments.max_stored,
        patience: Duration::from_secs(arguments.patience),
        stall: Duration::from_secs(120),
    };
    let listen = arguments.listen;
    let listener =
        TcpListener::bind(listen).await.map_err(|error| format!("--listen {listen}: {error}"))?;
    let address = listener.local_addr()?;
    let proxy = Arc::new(Proxy::new(options, store, views)?);
    announce(address, &folder);
    tokio::select! {
        () = proxy.serve(listener) => {}
        stopped = tokio::signal::ctrl_c() => stopped?,
    }
    Ok(Ended::Done)
}

fn announce(address: std::net::SocketAddr, folder: &Path) {
    eprintln!("threadfold: listening on http://{address}, threads in {}", folder.display());
    eprintln!("  ANTHROPIC_BASE_URL=http://{address}");
    eprintln!("  OPENAI_BASE_URL=http://{address}/v1");
    eprintln!("  GOOGLE_GEMINI_BASE_URL=http://{address}");
    eprintln!("  http://{address}/threadfold shows the threads; Ctrl-C stops");
}
