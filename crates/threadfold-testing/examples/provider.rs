//! A provider on loopback: the rulebooks of Anthropic, OpenAI and Gemini behind HTTP, with a small window and a
//! script of answers. The tests of the proxy with real agents and SDKs use it.
//!
//! ```text
//! cargo run -p threadfold-testing --example provider -- WINDOW [--steps N [--typed]] [--sum] [--in-stream] [--bodies FILE]
//! cargo run -p threadfold-testing --example provider -- WINDOW --summaries
//! ```
//!
//! It prints its port. With `--sum` the prompt and the tokens of the answer must fit the window together;
//! with `--in-stream` a refusal comes inside of a stream of status 200. With `--bodies` every tenth body
//! is appended to the file, so that the types of the SDKs can judge it too.
//!
//! Without `--steps`, a call of the tool `read` answers what the user typed, and a text answers the
//! result. With it the model is an agent's: it runs N commands of the agent's own shell, whose output it
//! knows, and ends with a text. If the newest output comes back with lines missing, it runs the same
//! command again, twice at most. With `--typed` the agent has no shell: its user runs the commands and
//! hands in their outputs, in order, and the model answers each with an edit of a file in the form of
//! aider. `GET /seen` states what was seen.
//!
//! With `--summaries` its model writes summaries instead, by picking sentences of the messages, and the API
//! is that of Anthropic alone.

#![allow(clippy::indexing_slicing, reason = "a JSON value has null where a field is missing")]

#[path = "provider/steps.rs"]
mod steps;

use std::{
    error::Error,
    fs::File,
    io::Write,
    net::TcpListener,
    sync::{Mutex, PoisonError},
    time::{SystemTime, UNIX_EPOCH},
};

use serde_json::{Value, json};
use steps::Steps;
use threadfold::{message::Timestamp, wire::Dialect};
use threadfold_testing::{
    rulebook::{
        Asked, BookOptions, Fit, HttpCall, Outcome, Refusal, Reply, ReplyBody, Rulebook, serve,
    },
    shared::serve_writer,
};

fn main() -> Result<(), Box<dyn Error>> {
    let (window, options) = options()?;
    let fit = if options.sum { Fit::Sum } else { Fit::Prompt };
    let refusal = if options.in_stream { Refusal::InStream } else { Refusal::Status };
    let book =
        |api| Rulebook::new(api, BookOptions { window, fit, refusal, ..BookOptions::default() });
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?.port());
    if options.summaries {
        serve_writer(&listener, Dialect::Anthropic, window)?;
        return Ok(());
    }
    let provider = Mutex::new(Provider {
        books: [Dialect::Anthropic, Dialect::OpenAiChat, Dialect::OpenAiResponses, Dialect::Gemini]
            .map(book),
        steps: Steps::new(options.steps, options.typed, window, options.sum),
        window,
        largest: 0,
        over: 0,
        bodies: options.bodies.map(File::create).transpose()?,
    });
    serve(&listener, move |method, call| {
        let mut provider = provider.lock().unwrap_or_else(PoisonError::into_inner);
        match method {
            "GET" if call.path == "/seen" => Reply {
                status: 200,
                headers: vec![("content-type".to_owned(), "application/json".to_owned())],
                body: ReplyBody::Json(provider.seen()),
            },
            "POST" => provider.answer(call),
            // Some agents look whether a server is there.
            _ => Reply {
                status: 200,
                headers: Vec::new(),
                body: ReplyBody::Json(json!({"data": []})),
            },
        }
    })?;
    Ok(())
}

#[derive(Default)]
struct Options {
    steps: u64,
    typed: bool,
    sum: bool,
    in_stream: bool,
    summaries: bool,
    bodies: Option<String>,
}

fn options() -> Result<(u64, Options), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let window = arguments.next().ok_or("usage: provider WINDOW [OPTION...]")?.parse()?;
    let mut options = Options::default();
    while let Some(name) = arguments.next() {
        match name.as_str() {
            "--steps" => options.steps = arguments.next().ok_or("how many steps?")?.parse()?,
            "--typed" => options.typed = true,
            "--sum" => options.sum = true,
            "--in-stream" => options.in_stream = true,
            "--summaries" => options.summaries = true,
            "--bodies" => options.bodies = arguments.next(),
            other => return Err(format!("there is no option {other}").into()),
        }
    }
    Ok((window, options))
}

struct Provider {
    books: [Rulebook; 4],
    steps: Steps,
    window: u64,
    /// The tokens of the largest request that was answered.
    largest: u64,
    /// Answered requests over 80 % of the window.
    over: u64,
    bodies: Option<File>,
}

impl Provider {
    fn answer(&mut self, call: &HttpCall<'_>) -> Reply {
        let path = call.path.split('?').next().unwrap_or_default();
        let place = match path {
            path if path.contains("/messages") => 0,
            path if path.contains("/responses") => 2,
            path if path.contains("/models/") => 3,
            _ => 1,
        };
        let Some(book) = self.books.get_mut(place) else {
            return Reply { status: 404, headers: Vec::new(), body: ReplyBody::Json(json!({})) };
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = Timestamp(u64::try_from(now.as_millis()).unwrap_or(u64::MAX));
        let steps = &mut self.steps;
        let reply = book.answer(call, now, &mut |asked: &Asked<'_>| steps.said(asked));
        let last = &book.seen().last;
        if last.outcome == Outcome::Answered {
            self.largest = self.largest.max(last.tokens);
            self.over += u64::from(last.tokens * 10 > self.window * 8);
            if let Some(file) = self.bodies.as_mut().filter(|_| book.seen().answered % 10 == 1) {
                let kind = ["anthropic", "openai", "responses", "gemini"]
                    .get(place)
                    .copied()
                    .unwrap_or_default();
                // A body that cannot be kept is not judged by the SDKs, and by the rules all the same.
                let _ = write!(file, "{kind} ").and_then(|()| file.write_all(call.body));
                let _ = file.write_all(b"\n");
            }
        }
        reply
    }

    fn seen(&self) -> Value {
        let sum = |of: fn(&Rulebook) -> u64| self.books.iter().map(of).sum::<u64>();
        let illegal = self.books.iter().flat_map(|book| &book.seen().violations);
        let illegal: Vec<String> = illegal.map(ToString::to_string).collect();
        let mut seen = json!({
            "answered": sum(|book| book.seen().answered), "refused": sum(|book| book.seen().overflows),
            "illegal": illegal, "largest": self.largest, "over": self.over,
        });
        if let (Some(seen), Value::Object(steps)) = (seen.as_object_mut(), self.steps.seen()) {
            seen.extend(steps);
        }
        seen
    }
}
