//! Two processes over one Postgres database: a user's next request may reach either.

use std::{
    env,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::Path,
    process::{Child, ChildStdin, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use threadfold::{EventLog, Message, Role, ThreadStore, legality, log::Event};
use threadfold_postgres::PostgresStore;

const USERS: usize = 50;
const TURNS: usize = 8;

/// The turn in which the user sends a text to each of the two processes at once.
const BOTH: usize = 3;

/// The turn in which the user leaves in the middle of the answer, and continues at the other
/// process.
const LEAVES: usize = 5;

/// The database server, which is stopped when this is dropped.
struct Postgres {
    address: String,
    /// The script stops the server when its input ends. `None` if the caller started the server.
    _script: Option<(Child, ChildStdin)>,
}

impl Postgres {
    /// Returns the server that the environment names, or starts one; `None` if that is not
    /// possible.
    fn start() -> Option<Self> {
        if let Ok(address) = env::var("THREADFOLD_POSTGRES") {
            return Some(Self { address, _script: None });
        }
        let script = Path::new(env!("CARGO_MANIFEST_DIR"));
        let script = script.join("../../crates/threadfold-postgres/tests/postgres");
        let mut command = Command::new("bash");
        command.arg(script).arg("serve").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut script = command.spawn().unwrap();
        let (input, mut line) = (script.stdin.take().unwrap(), String::new());
        BufReader::new(script.stdout.take().unwrap()).read_line(&mut line).unwrap();
        match line.split_once(' ') {
            Some((address, _)) => {
                Some(Self { address: address.to_owned(), _script: Some((script, input)) })
            }
            None => {
                assert!(env::var("THREADFOLD_REQUIRE_POSTGRES").is_err(), "no Postgres server");
                eprintln!("skipped: no Postgres server");
                None
            }
        }
    }
}

/// A process of the server. It is killed when this is dropped.
struct Process {
    child: Child,
    /// The host and the port.
    at: String,
}

impl Process {
    fn start(postgres: &Postgres) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_server"));
        command.args(["--address", "127.0.0.1:0", "--pause", "2", "--postgres", &postgres.address]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let (mut output, mut line) = (BufReader::new(child.stdout.take().unwrap()), String::new());
        output.read_line(&mut line).unwrap();
        let address = line.strip_prefix("http://").unwrap().split(' ').next().unwrap();
        Self { at: address.to_owned(), child }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a request without reading its answer. HTTP/1.0 has no chunks, and the connection closes
/// with the answer.
fn request(at: &str, method: &str, path: &str, body: &str) -> TcpStream {
    let mut socket = TcpStream::connect(at).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.0\r\nhost: test\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n{body}"
    );
    socket.write_all(head.as_bytes()).unwrap();
    socket
}

fn answer(mut socket: TcpStream) -> String {
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    answer
}

fn send(at: &str, thread: &str, text: &str) -> TcpStream {
    let body = serde_json::json!({ "text": text }).to_string();
    request(at, "POST", &format!("/threads/{thread}/turns"), &body)
}

fn ends(answer: &str) {
    assert!(answer.contains("\"type\":\"turn_ended\""), "{answer}");
    assert!(!answer.contains("\"type\":\"failed\""), "{answer}");
}

/// Reads until a piece of the answer has arrived, and closes the connection.
fn leave(mut socket: TcpStream) {
    let (mut read, mut piece) = (Vec::new(), [0; 256]);
    while !String::from_utf8_lossy(&read).contains("text_delta") {
        let count = socket.read(&mut piece).unwrap();
        assert!(count > 0, "{}", String::from_utf8_lossy(&read));
        read.extend_from_slice(&piece[..count]);
    }
}

/// Plays a user whose requests alternate between the two processes, and returns the sent texts.
fn play(thread: &str, number: usize, servers: &[Process; 2]) -> Vec<String> {
    let mut sent = Vec::new();
    for turn in 0..TURNS {
        let (here, there) =
            (&servers[(number + turn) % 2].at, &servers[(number + turn + 1) % 2].at);
        // Long enough for the thread to be compacted.
        let text = format!("{thread} turn {turn} {}", "and what came before ".repeat(12));
        if turn == BOTH {
            let other = format!("{text} elsewhere");
            let both = [send(here, thread, &text), send(there, thread, &other)];
            both.map(answer).iter().for_each(|answer| ends(answer));
            sent.push(other);
        } else if turn == LEAVES {
            leave(send(here, thread, &text));
            ends(&answer(request(there, "POST", &format!("/threads/{thread}/continue"), "{}")));
        } else {
            ends(&answer(send(here, thread, &text)));
        }
        sent.push(text);
    }
    sent
}

fn text(message: &Message) -> String {
    message.content.iter().filter_map(|block| block.as_text()).map(|text| text.as_str()).collect()
}

/// Checks that each text is in the log once and has its answer before the next one.
fn check(log: &EventLog, mut sent: Vec<String>) {
    let messages = log.events().iter().filter_map(|logged| match &logged.event {
        Event::MessageAppended(message) => Some(message),
        _ => None,
    });
    let messages: Vec<&Message> = messages.collect();
    let thread = log.thread_id();
    for pair in messages.chunks(2) {
        let roles: Vec<_> = pair.iter().map(|message| message.role).collect();
        assert_eq!(roles, [Role::User, Role::Assistant], "{thread}: {messages:?}");
    }
    let mut typed: Vec<_> = messages.iter().step_by(2).map(|message| text(message)).collect();
    typed.sort();
    sent.sort();
    assert_eq!(typed, sent, "{thread}");
    assert_eq!(legality::violations(&log.replay()), [], "{thread}");
    assert!(log.standing().count() > 0, "{thread} was never compacted");
}

#[test]
fn fifty_users_on_two_processes_lose_and_duplicate_nothing() {
    let Some(postgres) = Postgres::start() else { return };
    let mut servers = [Process::start(&postgres), Process::start(&postgres)];
    let name = |number| format!("two-{}-u{number}", std::process::id());
    let stories: Vec<(String, Vec<String>)> = thread::scope(|scope| {
        let users = (0..USERS).map(|number| {
            let servers = &servers;
            scope.spawn(move || (name(number), play(&name(number), number, servers)))
        });
        let users: Vec<_> = users.collect();
        users.into_iter().map(|user| user.join().unwrap()).collect()
    });

    let runtime = tokio::runtime::Runtime::new().unwrap();
    let store = runtime.block_on(PostgresStore::open(&postgres.address)).unwrap();
    for (thread, sent) in stories {
        let log = runtime.block_on(store.load(&thread.parse().unwrap())).unwrap().log;
        check(&log, sent);
    }

    // A process that is killed within a turn keeps its lease until it expires.
    let thread = name(USERS);
    let text = format!("{thread} turn 0");
    let socket = send(&servers[0].at, &thread, &text);
    leave_killed(&mut servers[0], socket);
    let since = Instant::now();
    ends(&answer(request(&servers[1].at, "POST", &format!("/threads/{thread}/continue"), "{}")));
    println!("{:.1} s until the other process had the thread", since.elapsed().as_secs_f32());
    let log = runtime.block_on(store.load(&thread.parse().unwrap())).unwrap().log;
    assert_eq!(log.replay().len(), 2);
}

fn leave_killed(server: &mut Process, socket: TcpStream) {
    let open = socket.try_clone().unwrap();
    leave(socket);
    server.child.kill().unwrap();
    drop(open);
}
