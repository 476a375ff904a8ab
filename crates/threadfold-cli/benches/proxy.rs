//! What the proxy adds to a request, and what it needs for many agents at once, on loopback.
//!
//! ```text
//! cargo bench -p threadfold-cli --bench proxy
//! ```
//!
//! Prints medians of requests of 1 MB straight to a server that reads them and answers, and through
//! the proxy: once below the threshold, once with a view. Then 200 agents send 1 MB each at once, and
//! the most memory that the process held is printed (Linux).

use std::{
    convert::Infallible,
    error::Error,
    fs,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use http_body_util::{BodyExt, Full};
use hyper::{
    Request, Response, body::Bytes, body::Incoming, server::conn::http1, service::service_fn,
};
use hyper_util::rt::TokioIo;
use reqwest::Client;
use serde_json::json;
use threadfold::strategy::Ladder;
use threadfold_cli::proxy::{Proxy, ProxyOptions, Views, policy};
use threadfold_sqlite::SqliteStore;
use tokio::net::TcpListener;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const ROUNDS: usize = 101;
const AGENTS: usize = 200;

fn main() -> Result<()> {
    // Cargo asks for tests too; there are none.
    if std::env::args().any(|argument| argument == "--test") {
        return Ok(());
    }
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(measure())
}

async fn measure() -> Result<()> {
    let server = upstream().await?;
    let folder = std::env::temp_dir().join(format!("threadfold-bench-{}", std::process::id()));
    let passing = proxy(server, 4_000_000, &folder.join("passing")).await?;
    let folding = proxy(server, 100_000, &folder.join("folding")).await?;
    let client = Client::builder().no_proxy().build()?;
    let body = Bytes::from(body("main"));
    println!("a request of {} bytes, median and 95th percentile of {ROUNDS}", body.len());
    for (name, address) in [("direct", server), ("through", passing), ("with a view", folding)] {
        // The first request with a view pays for the compaction.
        ask(&client, address, body.clone()).await?;
        let mut times = Vec::new();
        for _ in 0..ROUNDS {
            let begun = Instant::now();
            ask(&client, address, body.clone()).await?;
            times.push(begun.elapsed());
        }
        times.sort();
        let at = |share: usize| times.get(times.len() * share / 100).copied().unwrap_or_default();
        println!("{name:>12}  {:>7.2} ms {:>7.2} ms", millis(at(50)), millis(at(95)));
    }
    let before = peak();
    for (name, address) in [("through", passing), ("with a view", folding)] {
        let begun = Instant::now();
        let mut asked = tokio::task::JoinSet::new();
        for _ in 0..AGENTS {
            let (client, body) = (client.clone(), body.clone());
            asked.spawn(async move { ask(&client, address, body).await });
        }
        let answered = asked.join_all().await.into_iter().filter(|answer| answer.is_ok()).count();
        let (time, memory) = (millis(begun.elapsed()), peak());
        println!(
            "{answered} of {AGENTS} agents at once, {name}: {time:.0} ms, at most {memory} MB"
        );
    }
    println!("(client, server and both proxies are one process; {before} MB before the agents)");
    fs::remove_dir_all(folder)?;
    Ok(())
}

/// A thread of a coding agent, about 1 MB.
fn body(name: &str) -> String {
    let mut messages =
        vec![json!({"role": "user", "content": format!("Fix the parser of {name}.")})];
    for number in 0..250 {
        let id = format!("toolu_{number}");
        messages.push(json!({"role": "assistant", "content": [
            {"type": "text", "text": format!("I read part {number} now.")},
            {"type": "tool_use", "id": id, "name": "read", "input": {"path": format!("src/{number}.rs")}}]}));
        let text = format!("line {number} of a file with words in it\n").repeat(95);
        messages.push(json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": id, "content": text}]}));
    }
    json!({"model": "m", "max_tokens": 1000, "messages": messages}).to_string()
}

async fn ask(client: &Client, address: SocketAddr, body: Bytes) -> Result<()> {
    let answer = client.post(format!("http://{address}/v1/messages")).body(body).send().await?;
    answer.error_for_status()?.bytes().await?;
    Ok(())
}

async fn upstream() -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let service = service_fn(|request: Request<Incoming>| async {
                // An answer before the end of the body would break the connection.
                let mut body = request.into_body();
                while body.frame().await.is_some() {}
                Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(b"{}"))))
            });
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(socket), service));
        }
    });
    Ok(address)
}

async fn proxy(upstream: SocketAddr, window: u64, folder: &std::path::Path) -> Result<SocketAddr> {
    let url = format!("http://{upstream}");
    let options = ProxyOptions {
        anthropic: url.clone(),
        openai: url,
        window: Some(window),
        policy: policy(0.8),
        strategy: Arc::new(Ladder::default()),
        model: None,
        shadow: false,
        max_body: 8 * 1024 * 1024,
        patience: Duration::from_secs(120),
    };
    let store = Arc::new(SqliteStore::open(folder.join("threads.db"))?);
    let proxy = Arc::new(Proxy::new(options, store, Views::open(&folder.join("views.db"))?)?);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(proxy.serve(listener));
    Ok(address)
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// The most memory that this process held, in MB; 0 where the system does not say.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) / 1024
}
