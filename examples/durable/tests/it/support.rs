//! An engine, the offline model, and a worker that can be killed.

use std::{
    collections::HashSet,
    env,
    future::Future,
    io::{BufRead, BufReader},
    net::{SocketAddr, TcpListener, TcpStream},
    path::Path,
    process::{self, Child, Command, Stdio},
    sync::atomic::{AtomicU16, Ordering},
    thread,
    time::{Duration, Instant},
};

use durable::service::Service;
use reqwest::{Client, Response};
use serde_json::{Value, json};
use threadfold::EventLog;

/// The maximum delay of an answer of the model or a tool.
pub(crate) const DELAY: Duration = Duration::from_millis(30);

/// The test fails if an event has not happened after this time.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Bench {
    pub(crate) worker: Worker,
    pub(crate) service: Service,
    engine: Engine,
    client: Client,
}

/// Starts all three; `None` if no engine can run here.
pub(crate) async fn bench() -> Option<Bench> {
    bench_with(Service::new(DELAY)).await
}

pub(crate) async fn bench_with(service: Service) -> Option<Bench> {
    let engine = Engine::start()?;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let model = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(service.clone().serve(listener));
    let mut worker = Worker { address: free(), model, process: None };
    worker.start();
    let bench = Bench { worker, service, engine, client: Client::new() };
    let deployment = json!({"uri": format!("http://{}", bench.worker.address)});
    bench.post(format!("{}/deployments", bench.engine.admin), deployment).await.unwrap();
    Some(bench)
}

impl Bench {
    /// Sends a text to a thread and returns the answer, or the text of the error.
    pub(crate) fn say(
        &self,
        thread: &str,
        text: &str,
    ) -> impl Future<Output = Result<String, String>> + use<> {
        let post = self.post(format!("{}/Thread/{thread}/say", self.engine.ingress), json!(text));
        async { Ok(post.await?.json().await.unwrap()) }
    }

    /// Sends a text to a thread and cancels the turn after this many calls of model and tools.
    pub(crate) async fn cancel(&self, thread: &str, text: &str, calls: usize) {
        let before = self.service.progress().1;
        let say = format!("{}/Thread/{thread}/say/send", self.engine.ingress);
        let sent: Value = self.post(say, json!(text)).await.unwrap().json().await.unwrap();
        until(|| self.service.progress().1 >= before + calls).await;
        let id = sent["invocationId"].as_str().unwrap();
        let cancel = format!("{}/invocations/{id}/cancel", self.engine.admin);
        assert!(self.client.patch(cancel).send().await.unwrap().status().is_success());
    }

    pub(crate) async fn log(&self, thread: &str) -> EventLog {
        let log = self.client.post(format!("{}/Thread/{thread}/log", self.engine.ingress));
        let text: String = log.send().await.unwrap().json().await.unwrap();
        EventLog::read(text.as_bytes()).unwrap().log
    }

    /// The names of the steps whose results the engine has.
    pub(crate) async fn acknowledged(&self) -> HashSet<String> {
        let query = "SELECT entry_type, name FROM sys_journal ORDER BY id, index";
        let query =
            self.client.post(format!("{}/query", self.engine.admin)).json(&json!({"query": query}));
        let rows = query.header("accept", "application/json").send().await.unwrap();
        let rows: Value = rows.json().await.unwrap();
        let rows = rows["rows"].as_array().unwrap();
        // One step runs at a time, so its result is the next entry.
        let pairs = rows.iter().zip(rows.iter().skip(1));
        let ended = pairs.filter(|(step, result)| {
            step["entry_type"] == "Command: Run" && result["entry_type"] == "Notification: Run"
        });
        ended.map(|(step, _)| step["name"].as_str().unwrap().to_owned()).collect()
    }

    fn post(
        &self,
        url: String,
        body: Value,
    ) -> impl Future<Output = Result<Response, String>> + use<> {
        let sent = self.client.post(url).json(&body).send();
        async {
            let response = sent.await.unwrap();
            if response.status().is_success() {
                return Ok(response);
            }
            Err(response.text().await.unwrap())
        }
    }
}

/// A process that runs the handlers.
pub(crate) struct Worker {
    address: SocketAddr,
    model: String,
    process: Option<Child>,
}

impl Worker {
    pub(crate) fn start(&mut self) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_durable"));
        let listen = self.address.to_string();
        command.args(["worker", "--listen", &listen, "--model", &self.model]);
        self.process = Some(command.spawn().unwrap());
        while TcpStream::connect(self.address).is_err() {
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Ends the process as a power failure would: no destructor runs.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.kill();
    }
}

/// An engine, which the script stops when its input ends: when this is dropped or the process ends.
struct Engine {
    ingress: String,
    admin: String,
    script: Child,
}

impl Engine {
    fn start() -> Option<Self> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/engine");
        let mut command = Command::new("bash");
        command.arg(script).arg("serve").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut script = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(script.stdout.take().unwrap()).read_line(&mut line).unwrap();
        if let Some((ingress, admin)) = line.trim_end().split_once(' ') {
            let (ingress, admin) = (ingress.to_owned(), admin.to_owned());
            return Some(Self { ingress, admin, script });
        }
        let output = script.wait_with_output().unwrap();
        let why = String::from_utf8_lossy(&output.stderr);
        assert!(env::var("THREADFOLD_REQUIRE_RESTATE").is_err(), "{why}");
        eprintln!("skipped: {}", why.trim_end());
        None
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        drop(self.script.stdin.take());
        let _ = self.script.wait();
    }
}

/// Waits for a condition, up to a minute.
pub(crate) async fn until(condition: impl Fn() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < PATIENCE, "nothing happens any more");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Returns an address that was free just now, below the ports of outgoing connections: one of these
/// could take the port of a worker that was killed before it is started again.
fn free() -> SocketAddr {
    static TAKEN: AtomicU16 = AtomicU16::new(0);
    let first = u16::try_from(process::id() % 500).unwrap() * 16;
    let mut ports =
        std::iter::repeat_with(|| 10_000 + first + TAKEN.fetch_add(1, Ordering::Relaxed));
    ports
        .find_map(|port| TcpListener::bind(("127.0.0.1", port)).ok())
        .unwrap()
        .local_addr()
        .unwrap()
}
