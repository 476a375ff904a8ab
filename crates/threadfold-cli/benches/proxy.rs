//! What the proxy adds to a request, and what it needs for many agents at once, on loopback.
//!
//! ```text
//! cargo bench -p threadfold-cli --bench proxy
//! ```
//!
//! Prints medians of requests of 1 MB straight to a server that reads them and answers, and through
//! the program: once below the threshold, once with a view. Then 200 agents send 1 MB each at once,
//! each its own thread, and the most memory that the program held is printed (Linux).

use std::{
    convert::Infallible,
    error::Error,
    fs,
    io::{BufRead, BufReader},
    net::SocketAddr,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use http_body_util::{BodyExt, Full};
use hyper::{
    Request, Response, body::Bytes, body::Incoming, server::conn::http1, service::service_fn,
};
use hyper_util::rt::TokioIo;
use reqwest::Client;
use serde_json::json;
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
    let passing = Proxy::start(server, "4000000", &folder.join("passing"))?;
    let folding = Proxy::start(server, "100000", &folder.join("folding"))?;
    let client = Client::builder().no_proxy().build()?;
    let body = Bytes::from(body("main"));
    println!("a request of {} bytes, median and 95th percentile of {ROUNDS}", body.len());
    let rows = [("direct", server), ("through", passing.address), ("with a view", folding.address)];
    for (name, address) in rows {
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
    for (name, proxy) in [("through", &passing), ("with a view", &folding)] {
        let before = proxy.peak();
        for round in ["first", "next"] {
            let begun = Instant::now();
            let mut asked = tokio::task::JoinSet::new();
            for agent in 0..AGENTS {
                let (client, address) = (client.clone(), proxy.address);
                let body = Bytes::from(self::body(&format!("agent {agent}")));
                asked.spawn(async move { ask(&client, address, body).await });
            }
            let answers = asked.join_all().await;
            let answered = answers.into_iter().filter(|answer| answer.is_ok()).count();
            let (time, memory) = (millis(begun.elapsed()), proxy.peak());
            println!(
                "{answered} of {AGENTS} agents at once, {name}, {round} requests: {time:.0} ms, \
                 the proxy has at most {memory} MB ({before} MB before)"
            );
        }
    }
    drop((passing, folding));
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
    let request = client.post(format!("http://{address}/v1/messages"));
    let answer = request.header("content-type", "application/json").body(body).send().await?;
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

/// The program, as a process of its own.
struct Proxy {
    process: Child,
    address: SocketAddr,
}

impl Proxy {
    fn start(upstream: SocketAddr, window: &str, folder: &std::path::Path) -> Result<Self> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_threadfold"));
        command.args(["proxy", "--listen", "127.0.0.1:0", "--window", window, "--folder"]);
        command.arg(folder).args(["--anthropic", &format!("http://{upstream}")]);
        let mut process = command.stderr(Stdio::piped()).spawn()?;
        let mut lines = BufReader::new(process.stderr.take().ok_or("no pipe")?).lines();
        let line = lines.next().ok_or("the proxy ended")??;
        let url = line.split(['/', ',']).find_map(|word| word.parse().ok());
        // Its lines are about compactions.
        std::thread::spawn(move || lines.for_each(drop));
        Ok(Self { process, address: url.ok_or(line)? })
    }

    /// The most memory that the process held, in MB; 0 where the system does not say.
    fn peak(&self) -> u64 {
        let status = format!("/proc/{}/status", self.process.id());
        let status = fs::read_to_string(status).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        kilobytes.unwrap_or(0) / 1024
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
