//! The routes, and what happens to a turn when its client leaves.

use std::convert::Infallible;

use axum::{
    Json, Router,
    extract::{DefaultBodyLimit, Path, State},
    http::{HeaderName, HeaderValue, StatusCode, header},
    response::{
        IntoResponse, Response,
        sse::{Event, KeepAlive, Sse},
    },
    routing::{get, post},
};
use futures::{Stream, StreamExt};
use serde::{Deserialize, Serialize};
use threadfold::{
    Message, Role,
    message::ThreadId,
    session::{SessionError, api::TokenUsageSummary},
};

use crate::threads::{Begun, Seen, Threads, TurnEvent};

/// The maximum bytes of a request body.
const MOST_BYTES: usize = 64 * 1024;

/// The page loads only from this server and connects only to it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Returns the routes of a server over these threads.
///
/// | route | does |
/// |---|---|
/// | `GET /` | the page |
/// | `GET /threads/{thread}` | the messages, whether a turn is running, and its answer so far |
/// | `POST /threads/{thread}/turns` | begins a turn; its events are server-sent. 202 if the text is queued |
/// | `POST /threads/{thread}/continue` | continues a turn that broke off; its events are server-sent |
/// | `POST /threads/{thread}/abort` | aborts the running turn |
///
/// If the client leaves, axum drops the stream of events, and with it the turn: the request to the
/// model is cancelled, and running tools are dropped. What was stored stays.
pub fn router(threads: Threads) -> Router {
    Router::new()
        .route(
            "/",
            get(|| async { page("text/html; charset=utf-8", include_str!("page/chat.html")) }),
        )
        .route("/chat.js", get(|| async { page("text/javascript", include_str!("page/chat.js")) }))
        .route("/chat.css", get(|| async { page("text/css", include_str!("page/chat.css")) }))
        .route("/threads/{thread}", get(show))
        .route("/threads/{thread}/turns", post(send))
        .route("/threads/{thread}/continue", post(go_on))
        .route("/threads/{thread}/abort", post(abort))
        .layer(DefaultBodyLimit::max(MOST_BYTES))
        .with_state(threads)
}

/// The body of a new turn. Only JSON is accepted, because forms of other sites cannot send it.
#[derive(Debug, Deserialize)]
struct Sent {
    text: String,
}

/// A thread for the page.
#[derive(Debug, Serialize)]
struct Shown {
    busy: bool,
    /// Whether the last turn broke off.
    unfinished: bool,
    messages: Vec<ShownMessage>,
    answer: Option<String>,
    usage: Option<TokenUsageSummary>,
}

#[derive(Debug, Serialize)]
struct ShownMessage {
    from: &'static str,
    text: String,
}

/// An error with its status.
struct Failure(StatusCode, String);

async fn show(
    State(threads): State<Threads>,
    Path(thread): Path<String>,
) -> Result<Json<Shown>, Failure> {
    let Seen { messages, busy, answer, usage } = threads.seen(&named(&thread)?).await?;
    let unfinished = !busy && messages.last().is_some_and(is_unfinished);
    let messages = messages.iter().filter_map(ShownMessage::of).collect();
    Ok(Json(Shown { busy, unfinished, messages, answer, usage }))
}

async fn send(
    State(threads): State<Threads>,
    Path(thread): Path<String>,
    Json(Sent { text }): Json<Sent>,
) -> Result<Response, Failure> {
    if text.trim().is_empty() {
        return Err(Failure(StatusCode::BAD_REQUEST, "a text is needed".to_owned()));
    }
    Ok(answer(threads.send(&named(&thread)?, text).await?))
}

async fn go_on(
    State(threads): State<Threads>,
    Path(thread): Path<String>,
) -> Result<Response, Failure> {
    Ok(answer(threads.go_on(&named(&thread)?).await?))
}

fn answer(begun: Begun) -> Response {
    match begun {
        Begun::Running => StatusCode::ACCEPTED.into_response(),
        Begun::Answer(events) => {
            let events = Sse::new(server_sent(events));
            // A client that disappeared silently is noticed at the next write.
            events.keep_alive(KeepAlive::default()).into_response()
        }
    }
}

/// Whether a thread that ends with this message waits for an answer.
fn is_unfinished(last: &Message) -> bool {
    last.role != Role::Assistant || last.tool_uses().next().is_some()
}

async fn abort(
    State(threads): State<Threads>,
    Path(thread): Path<String>,
) -> Result<StatusCode, Failure> {
    threads.abort(&named(&thread)?);
    Ok(StatusCode::NO_CONTENT)
}

/// Returns the events of a turn as server-sent events: the JSON of each, and an error as an event
/// of its own.
fn server_sent(
    events: impl Stream<Item = TurnEvent>,
) -> impl Stream<Item = Result<Event, Infallible>> {
    events.map(|event| {
        let sent = match &event {
            Ok(event) => serde_json::to_string(event),
            Err(error) => {
                let words = error.to_string();
                serde_json::to_string(&serde_json::json!({"type": "failed", "text": words}))
            }
        };
        // Events consist of texts and numbers, which always serialize.
        Ok(Event::default().data(sent.unwrap_or_default()))
    })
}

fn named(thread: &str) -> Result<ThreadId, Failure> {
    thread.parse().map_err(|error| Failure(StatusCode::BAD_REQUEST, format!("{error}")))
}

fn page(kind: &'static str, text: &'static str) -> Response {
    let headers: [(HeaderName, HeaderValue); 3] = [
        (header::CONTENT_TYPE, HeaderValue::from_static(kind)),
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    ];
    (headers, text).into_response()
}

impl ShownMessage {
    /// Returns a message for the page; `None` if it has nothing to show.
    fn of(message: &Message) -> Option<Self> {
        let from = match message.role {
            _ if message.is_summary() => "summary",
            Role::User if message.is_typed() => "user",
            Role::Assistant => "assistant",
            Role::User | Role::System => return None,
        };
        let texts = message.content.iter().filter_map(|block| block.as_text());
        let text: String = match from {
            "summary" => "(earlier messages were summarised)".to_owned(),
            _ => texts.map(|text| text.as_str()).collect(),
        };
        Some(Self { from, text }).filter(|shown| !shown.text.trim().is_empty())
    }
}

impl From<SessionError> for Failure {
    fn from(error: SessionError) -> Self {
        Self(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        (self.0, self.1).into_response()
    }
}
