//! A session whose provider holds the thread: after the first request only what is new is sent, and
//! the whole again after a compaction, after the provider forgot the thread, and after a crash.
//!
//! `cargo run -p threadfold-http --example held_thread`
//!
//! The provider is a stub in the same process that enforces the rules of Anthropic and of OpenAI
//! Responses; no network and no key are needed. Its clock is turned forward by hand.

use std::{
    error::Error,
    io::{self, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
};

use serde_json::{Value, json};
use threadfold::{
    Session, async_trait, legality,
    message::{Timestamp, ToolSpec, ToolUse},
    model::{Tool, ToolContext, ToolOutput},
    store::MemoryStore,
    strategy::KeepRecent,
    wire,
};
use threadfold_http::{Dialect, HeldThread, HttpModel, HttpOptions, Key};
use threadfold_testing::rulebook::{Asked, BookOptions, HttpCall, Outcome, Rulebook, Said};

fn main() -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    for (name, seen) in [
        ("Anthropic", runtime.block_on(converse(Dialect::Anthropic))?),
        ("OpenAI Responses", runtime.block_on(converse(Dialect::Responses))?),
    ] {
        println!("{name}");
        for Request { after, sent, form, outcome } in seen {
            println!("  {after:<38} {sent:>2} sent, {form:<8} {outcome:?}");
        }
    }
    Ok(())
}

/// A request as the provider got it.
#[derive(Debug)]
pub(crate) struct Request {
    /// What happened before it.
    pub(crate) after: &'static str,
    /// The messages or items in it.
    pub(crate) sent: usize,
    /// `whole` or `continued`.
    pub(crate) form: &'static str,
    pub(crate) outcome: Outcome,
}

/// Has a conversation in this dialect and returns all requests.
pub(crate) async fn converse(dialect: Dialect) -> Result<Vec<Request>, Box<dyn Error>> {
    let provider = Provider::start(dialect)?;
    let store = Arc::new(MemoryStore::default());
    let open = async || {
        let keep = KeepRecent { messages: 2, ..KeepRecent::default() };
        let agent = HeldThread::new(provider.model()?);
        let builder = Session::builder(agent).system("Be brief.").tool(Arc::new(Look));
        let builder = builder.strategy(Arc::new(keep)).store(store.clone());
        Ok::<_, Box<dyn Error>>(builder.thread("holder".parse()?).open().await?)
    };
    let mut session = open().await?;
    for (after, text) in [
        ("a new thread", "One?"),
        ("a turn", "Two?"),
        ("a turn, and a call of a tool", "Look at it."),
        ("a compaction", "/compact"),
        ("a compaction", "Three?"),
        ("a turn", "Four?"),
    ] {
        provider.lock().after = after;
        session.send(text).await?;
    }
    // The provider forgets the thread.
    provider.pause(40 * 24 * 3_600_000);
    session.send("Five?").await?;
    // The process dies while an answer is on its way: what is in the store is all that is left.
    provider.lock().after = "a crash";
    drop(session);
    let mut session = open().await?;
    session.send("Six?").await?;
    provider.lock().after = "a turn";
    session.send("Seven?").await?;
    assert_eq!(legality::violations(session.messages()), []);
    let mut state = provider.lock();
    assert_eq!(state.book.seen().violations, []);
    Ok(std::mem::take(&mut state.requests))
}

/// A tool that looks at nothing in particular.
#[derive(Debug)]
struct Look;

#[async_trait]
impl Tool for Look {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new("look", "Looks.", json!({"type": "object", "properties": {}}))
    }

    async fn call(
        &self,
        _: &ToolUse,
        _: &ToolContext<'_>,
    ) -> Result<ToolOutput, Box<dyn Error + Send + Sync>> {
        Ok(ToolOutput::from("A fold."))
    }
}

/// A provider on a local socket.
struct Provider {
    dialect: Dialect,
    address: String,
    state: Arc<Mutex<State>>,
}

struct State {
    book: Rulebook,
    now: u64,
    after: &'static str,
    requests: Vec<Request>,
}

impl Provider {
    fn start(dialect: Dialect) -> io::Result<Self> {
        let is_anthropic = dialect == Dialect::Anthropic;
        let of_book =
            if is_anthropic { wire::Dialect::Anthropic } else { wire::Dialect::OpenAiResponses };
        let book = Rulebook::new(of_book, BookOptions::default());
        let state = State { book, now: 0, after: "", requests: Vec::new() };
        let state = Arc::new(Mutex::new(state));
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = format!("http://{}", listener.local_addr()?);
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                // A client that leaves is no failure of the server.
                let _ = serve(socket, &shared);
            }
        });
        Ok(Self { dialect, address, state })
    }

    fn model(&self) -> Result<HttpModel, Box<dyn Error>> {
        let (model, base_url) = if self.dialect == Dialect::Anthropic {
            ("claude-opus-5-5", self.address.clone())
        } else {
            ("gpt-6.2-sol", format!("{}/v1", self.address))
        };
        let key = Key::new("a key");
        Ok(HttpModel::new(HttpOptions { base_url, key, ..HttpOptions::new(self.dialect, model) })?)
    }

    /// Turns the clock of the provider forward by this many milliseconds.
    fn pause(&self, time: u64) {
        let mut state = self.lock();
        (state.after, state.now) = ("a long pause", state.now + time);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Answers the request on a socket by the rules.
fn serve(mut socket: TcpStream, state: &Mutex<State>) -> io::Result<()> {
    let (head, body) = read(&mut socket)?;
    let mut lines = head.lines();
    let path = lines.next().and_then(|line| line.split(' ').nth(1)).unwrap_or_default();
    let headers: Vec<(&str, &str)> = lines.filter_map(|line| line.split_once(": ")).collect();
    let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
    let state = &mut *state;
    let call = HttpCall { path, headers: &headers, body: &body };
    let reply = state.book.answer(&call, Timestamp(state.now), &mut script);
    let body: Value = serde_json::from_slice(&body)?;
    let items = body.get("messages").or_else(|| body.get("input")).and_then(Value::as_array);
    let continues = body.pointer("/thread/previous_message_id").is_some()
        || body.get("previous_response_id").is_some();
    state.requests.push(Request {
        after: state.after,
        sent: items.map_or(0, Vec::len),
        form: if continues { "continued" } else { "whole" },
        outcome: state.book.seen().last.outcome,
    });
    let bytes = reply.bytes();
    let mut head = format!(
        "HTTP/1.1 {} x\r\nconnection: close\r\ncontent-length: {}\r\n",
        reply.status,
        bytes.len()
    );
    for (name, value) in &reply.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    socket.write_all(head.as_bytes())?;
    socket.write_all(b"\r\n")?;
    socket.write_all(&bytes)
}

/// Calls the tool if the user asks for it, and answers otherwise.
fn script(asked: &Asked<'_>) -> Said {
    let list = asked.body.get("messages").or_else(|| asked.body.get("input"));
    let last = list.and_then(Value::as_array).and_then(|items| items.last());
    match last.is_some_and(|last| last.to_string().contains("Look at it.")) {
        true => Said::call("look", json!({})),
        false => Said::text("Yes.").after("They ask for a word."),
    }
}

/// Reads a request: its head and its body.
fn read(socket: &mut TcpStream) -> io::Result<(String, Vec<u8>)> {
    let (mut bytes, mut piece) = (Vec::new(), [0; 4_096]);
    loop {
        let count = socket.read(&mut piece)?;
        bytes.extend(piece.iter().take(count));
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            continue;
        };
        let head = String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).into_owned();
        let mut lengths = head.lines().filter_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length")
                .then(|| value.trim().parse::<usize>().ok())?
        });
        if bytes.len() >= end + 4 + lengths.next().unwrap_or(0) {
            let body = bytes.split_off(end + 4);
            return Ok((head, body));
        }
    }
}
