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

use std::{net::SocketAddr, path::Path, sync::Arc, time::Duration};

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
    args::{ProxyArguments, ServingOptions},
    error::{Ended, Failure},
    files,
};

mod answer;
mod body;
mod client;
mod elements;
mod endpoint;
mod flush;
mod forward;
mod guard;
mod index;
mod keep;
mod keys;
mod lock;
mod minding;
mod notes;
mod page;
mod prepare;
pub(crate) mod prices;
mod quiet;
mod running;
mod server;
mod state;
mod stop;
mod tally;
mod threads;
mod trouble;
mod unstored;
pub(crate) mod views;

pub(crate) use endpoint::Vendor;
pub(crate) use forward::Upstream;
pub(crate) use keys::vendor_of;
pub(crate) use notes::Notes;
pub(crate) use running::Running;
pub use state::{Proxy, ProxyOptions};
pub use views::Views;

pub use crate::when_quiet::WhenQuiet;

/// How long work that is still running may hold the end of the program.
pub(crate) const GRACE: Duration = Duration::from_secs(2);

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

/// The servers that a proxy sends requests to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Upstreams {
    pub(crate) anthropic: String,
    pub(crate) openai: String,
    pub(crate) gemini: String,
}

pub(crate) fn run(arguments: ProxyArguments) -> Result<Ended, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let ended = runtime.block_on(serve(arguments));
    runtime.shutdown_timeout(GRACE);
    ended
}

async fn serve(arguments: ProxyArguments) -> Result<Ended, Failure> {
    let ProxyArguments { listen, anthropic, openai, gemini, serving } = arguments;
    let folder = serving.folder.clone();
    open_folder(&folder)?;
    let upstreams = Upstreams { anthropic, openai, gemini };
    let proxy = open(serving, upstreams, Notes::StandardError).await?;
    let (listener, address) = bind(listen).await?;
    let stop = stop::Stop::new()?;
    announce(address, &folder);
    let proxy = Arc::new(proxy);
    tokio::select! {
        () = Arc::clone(&proxy).serve(listener) => {}
        stopped = stop.asked() => stopped?,
    }
    proxy.store_soon().await;
    Ok(Ended::Done)
}

/// Opens the folder, and returns the proxy of these options. From now on a panic is noted by its
/// place only, because its message may quote a text of a thread.
pub(crate) async fn open(
    serving: ServingOptions,
    upstreams: Upstreams,
    notes: Notes,
) -> Result<Proxy, Failure> {
    let folder = &serving.folder;
    let notes = Arc::new(notes);
    let panics = Arc::clone(&notes);
    std::panic::set_hook(Box::new(move |panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        panics.line(&format!("panicked at {place}"));
    }));
    let database = folder.join("threads.db");
    let views = Views::open(&database)?;
    let store: Arc<dyn ThreadStore> = Arc::new(SqliteStore::open(&database)?);
    let options = ProxyOptions {
        anthropic: upstreams.anthropic,
        openai: upstreams.openai,
        gemini: upstreams.gemini,
        window: serving.window,
        policy: policy(serving.threshold),
        when_quiet: serving.when_quiet,
        strategy: strategy(&serving.strategy)?,
        model: serving.model.open_named().await?.map(Arc::from),
        shadow: serving.shadow,
        max_body: serving.max_body,
        max_threads: serving.max_threads,
        max_stored: serving.max_stored,
        patience: Duration::from_secs(serving.patience),
        stall: Duration::from_secs(120),
    };
    Ok(Proxy::new(options, store, views)?.noted_in(notes))
}

/// Creates the folder of a proxy if it is missing, and keeps Git from reading it: it holds texts of
/// threads, and an agent that commits all files would commit them.
pub(crate) fn open_folder(folder: &Path) -> Result<(), Failure> {
    files::check_stored(folder)?;
    let ignored = folder.join(".gitignore");
    let created = std::fs::create_dir_all(folder);
    let created = created.and_then(|()| match ignored.exists() {
        true => Ok(()),
        false => std::fs::write(&ignored, "*\n"),
    });
    created.map_err(|error| {
        let name = folder.display();
        format!("--folder {name}: {error}; name a folder that can be written").into()
    })
}

/// Binds the socket of a proxy, and returns its address with the port.
pub(crate) async fn bind(listen: SocketAddr) -> Result<(TcpListener, SocketAddr), Failure> {
    let bound = async {
        let listener = TcpListener::bind(listen).await?;
        let address = listener.local_addr()?;
        Ok((listener, address))
    };
    bound.await.map_err(|error: std::io::Error| format!("--listen {listen}: {error}").into())
}

fn announce(address: SocketAddr, folder: &Path) {
    eprintln!("threadfold: listening on http://{address}, threads in {}", folder.display());
    eprintln!("  ANTHROPIC_BASE_URL=http://{address}");
    eprintln!("  OPENAI_BASE_URL=http://{address}/v1");
    eprintln!("  GOOGLE_GEMINI_BASE_URL=http://{address}");
    eprintln!("  http://{address}/threadfold shows the threads; Ctrl-C stops");
}
