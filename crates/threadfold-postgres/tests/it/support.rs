//! Code that several tests share: servers, databases, events, child processes.

use std::{
    env,
    fmt::Display,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::{
        LazyLock,
        atomic::{AtomicUsize, Ordering},
    },
};

use threadfold::{
    Message,
    log::{Event, LoggedEvent},
    message::{ThreadId, Timestamp},
    store::{StoreError, ThreadStore},
};
use threadfold_postgres::PostgresStore;
use tokio::runtime::Runtime;
use tokio_postgres::NoTls;

/// The environment variable by which a test knows that it runs as a child process. Its value is the
/// task.
pub(crate) const CHILD: &str = "THREADFOLD_POSTGRES_CHILD";

/// A running server. It stops when this value is dropped or the process ends, because the script
/// stops it at the end of its input.
pub(crate) struct Server {
    address: String,
    /// The folder with `root.crt`, the authority of the server's certificate, if there is one.
    #[cfg_attr(not(feature = "tls"), expect(dead_code, reason = "only encryption needs it"))]
    pub(crate) folder: String,
    process: Child,
    /// `None` only during the drop.
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Server {
    /// Starts a server; `None` if this machine cannot start one.
    pub(crate) fn start() -> Option<Self> {
        Self::with_fsync("off")
    }

    /// Starts a server with this setting for `fsync`.
    pub(crate) fn with_fsync(fsync: &str) -> Option<Self> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/postgres");
        let mut command = Command::new("bash");
        command.arg(script).arg("serve").stdin(Stdio::piped()).stdout(Stdio::piped());
        command.env("POSTGRES_FSYNC", fsync);
        let mut process = command.stderr(Stdio::piped()).spawn().unwrap();
        let (input, output) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        let (mut output, mut line) = (BufReader::new(output), String::new());
        output.read_line(&mut line).unwrap();
        if let Some((address, folder)) = line.trim_end().split_once(' ') {
            let (address, folder) = (address.to_owned(), folder.to_owned());
            return Some(Self { address, folder, process, input: Some(input), output });
        }
        let output = process.wait_with_output().unwrap();
        let why = String::from_utf8_lossy(&output.stderr);
        assert!(env::var("THREADFOLD_REQUIRE_POSTGRES").is_err(), "{why}");
        eprintln!("skipped: {}", why.trim_end());
        None
    }

    /// Returns the address of a new database.
    pub(crate) fn database(&self) -> String {
        self.database_with("")
    }

    pub(crate) fn database_with(&self, options: &str) -> String {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("test{}", COUNT.fetch_add(1, Ordering::Relaxed));
        execute(&self.address, &format!("CREATE DATABASE {name} {options}"));
        self.address.strip_suffix("postgres").unwrap().to_owned() + &name
    }

    /// Kills the server, and starts it again.
    pub(crate) fn crash(&mut self) {
        self.input.as_mut().unwrap().write_all(b"crash\n").unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        assert_eq!(line, "started\n");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.process.wait();
    }
}

/// The server that the tests of this process share.
pub(crate) fn server() -> Option<&'static Server> {
    static SERVER: LazyLock<Option<Server>> = LazyLock::new(Server::start);
    SERVER.as_ref()
}

/// The runtime of all connections.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());

/// Runs a future. It may be called by a future that [`suite`] runs.
pub(crate) fn run<F: Future>(future: F) -> F::Output {
    RUNTIME.block_on(future)
}

/// Runs a suite, whose function that makes stores blocks.
pub(crate) fn suite<E: Display>(suite: impl Future<Output = Result<(), E>>) {
    let _runtime = RUNTIME.enter();
    futures::executor::block_on(suite).unwrap_or_else(|breach| panic!("{breach}"));
}

pub(crate) fn open(address: &str) -> PostgresStore {
    run(PostgresStore::open(address)).unwrap()
}

/// Carries out statements by a connection of their own.
pub(crate) fn execute(address: &str, statements: &str) {
    run(async {
        let (client, connection) = tokio_postgres::connect(address, NoTls).await.unwrap();
        let connection = tokio::spawn(connection);
        client.batch_execute(statements).await.unwrap();
        drop(client);
        connection.await.unwrap().unwrap();
    });
}

/// Returns the first column of all rows.
pub(crate) fn rows(address: &str, query: &str) -> Vec<String> {
    run(async {
        let (client, connection) = tokio_postgres::connect(address, NoTls).await.unwrap();
        tokio::spawn(connection);
        let rows = client.query(query, &[]).await.unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    })
}

pub(crate) fn id(name: &str) -> ThreadId {
    name.parse().unwrap()
}

pub(crate) fn said(seq: u64, text: impl Into<String>) -> LoggedEvent {
    let event = Event::MessageAppended(Message::user(text.into()));
    LoggedEvent { seq, at: Timestamp(seq), event }
}

pub(crate) fn append(
    store: &PostgresStore,
    thread: &str,
    events: &[LoggedEvent],
) -> Result<(), StoreError> {
    run(store.append(&id(thread), None, events[0].seq, events))
}

/// The texts of a stored log.
pub(crate) fn texts(store: &PostgresStore, thread: &str) -> Vec<String> {
    let log = run(store.load(&id(thread))).unwrap().log;
    let text = |event: &LoggedEvent| {
        let Event::MessageAppended(message) = &event.event else { panic!("{event:?}") };
        let texts = message.content.iter().filter_map(|block| block.as_text());
        texts.map(ToString::to_string).collect()
    };
    log.events().iter().map(text).collect()
}

/// Runs one test of this program in a process of its own, with `input` as the value of [`CHILD`].
pub(crate) fn child(test: &str, input: &str) -> Child {
    child_with(test, input, &[])
}

/// Like [`child`], with further environment variables.
pub(crate) fn child_with(test: &str, input: &str, variables: &[(&str, &str)]) -> Child {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "--nocapture", test]).env(CHILD, input);
    command.envs(variables.iter().copied());
    command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
}
