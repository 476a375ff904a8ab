//! The server: limits, paths, and the handling of one request.

use std::{convert::Infallible, sync::Arc, time::Duration};

use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::{
    HeaderMap, Request, Response, StatusCode,
    body::{Bytes, Incoming},
    header::{CONTENT_ENCODING, CONTENT_TYPE, HOST, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use reqwest::Client;
use serde_json::json;
use threadfold::{auto::AutoCompactor, message::ModelError, store::ThreadStore};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task,
};
use tokio_io_timeout::TimeoutStream;

use super::{
    ProxyOptions,
    answer::Answer,
    endpoint::{Endpoint, Head},
    forward::{Body, Outgoing, Upstream, full, passed_on, response, words},
    page,
    prepare::Journey,
    threads::Threads,
    views::Views,
};
use crate::{error::Failure, input::Dialect};

/// The time limits for the head of a request, and for its body.
const HEAD_TIME: Duration = Duration::from_secs(15);
const BODY_TIME: Duration = Duration::from_secs(60);

/// The maximum number of connections.
const MAX_CONNECTIONS: usize = 1_024;

/// The maximum number of headers, and their maximum size together, in bytes.
const MAX_HEADERS: usize = 100;
const MAX_HEAD: usize = 64 * 1024;

/// The maximum number of threads in memory at once; other requests wait.
const MAX_READ: usize = 8;

/// A proxy that is ready to serve.
#[derive(Debug)]
pub struct Proxy {
    pub(super) options: ProxyOptions,
    pub(super) store: Arc<dyn ThreadStore>,
    pub(super) views: Views,
    pub(super) threads: Threads,
    /// The trigger for new threads.
    pub(super) fresh: AutoCompactor,
    client: Client,
    anthropic: Upstream,
    openai: Upstream,
    reading: Arc<Semaphore>,
}

impl Proxy {
    /// Returns a proxy with this store for threads and these views.
    ///
    /// # Errors
    ///
    /// A message about an invalid address or policy.
    pub fn new(
        options: ProxyOptions,
        store: Arc<dyn ThreadStore>,
        views: Views,
    ) -> Result<Self, String> {
        let client = Client::builder()
            // A redirect or a system proxy would send the key to another host.
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            // Another crate of the build may enable these features, but answers must pass
            // unchanged.
            .no_gzip()
            .no_brotli()
            .no_zstd()
            .no_deflate()
            .connect_timeout(Duration::from_secs(20))
            .build();
        Ok(Self {
            anthropic: Upstream::new(&options.anthropic)?,
            openai: Upstream::new(&options.openai)?,
            fresh: AutoCompactor::new(options.policy).map_err(|error| error.to_string())?,
            reading: Arc::new(Semaphore::new(MAX_READ)),
            threads: Threads::default(),
            client: client.map_err(words)?,
            store,
            views,
            options,
        })
    }

    /// Serves every connection of this socket. Dropping the future stops the server and all its
    /// answers.
    pub async fn serve(self: Arc<Self>, listener: TcpListener) {
        let connections = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let is_loopback = listener.local_addr().is_ok_and(|address| address.ip().is_loopback());
        let mut tasks = task::JoinSet::new();
        loop {
            let Ok(permit) = Arc::clone(&connections).acquire_owned().await else { return };
            let socket = tokio::select! {
                socket = listener.accept() => socket,
                Some(_) = tasks.join_next() => continue,
            };
            let Ok((socket, _)) = socket else {
                // The process probably has no free file handle, so wait.
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            };
            let proxy = Arc::clone(&self);
            tasks.spawn(async move {
                proxy.connection(socket, is_loopback).await;
                drop(permit);
            });
        }
    }

    async fn connection(self: Arc<Self>, socket: TcpStream, is_loopback: bool) {
        let _ = socket.set_nodelay(true);
        let stall = self.options.stall;
        let service = service_fn(move |request| {
            let proxy = Arc::clone(&self);
            async move { Ok::<_, Infallible>(proxy.answer(request, is_loopback).await) }
        });
        let mut server = http1::Builder::new();
        server
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIME)
            .max_headers(MAX_HEADERS)
            .max_buf_size(MAX_HEAD);
        // A client that reads nothing would hold its connection and the provider's forever.
        let mut socket = TimeoutStream::new(socket);
        socket.set_write_timeout(Some(stall));
        // Ignore the error: the client notices a broken connection itself.
        let _ = server.serve_connection(TokioIo::new(Box::pin(socket)), service).await;
    }

    async fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
        is_loopback: bool,
    ) -> Response<Body> {
        if is_loopback && !names_loopback(request.headers()) {
            // DNS rebinding: a page of another site reached the port under its own name.
            return refusal(
                StatusCode::FORBIDDEN,
                "this address only serves programs on this machine",
            );
        }
        let path = request.uri().path();
        if path == "/threadfold" || path.starts_with("/threadfold/") {
            return page::answer(&self, request.method(), path).await;
        }
        match self.pass(request).await {
            Ok(answer) => answer,
            Err((status, failure)) => refusal(status, failure.line()),
        }
    }

    /// Handles a request: read, prepare, send, and if it is refused for its length, compact and
    /// send again.
    async fn pass(
        self: &Arc<Self>,
        request: Request<Incoming>,
    ) -> Result<Response<Body>, (StatusCode, Failure)> {
        let (head, body) = request.into_parts();
        let body = read(body, self.options.max_body).await?;
        let path = head.uri.path();
        let endpoint = Endpoint::of(&head.method, path);
        let is_plain = !head.headers.contains_key(CONTENT_ENCODING);
        let compacts = matches!(endpoint, Endpoint::Answer(_)) && is_plain;
        let outgoing = Outgoing {
            method: head.method,
            path,
            query: head.uri.query(),
            headers: passed_on(&head.headers, compacts),
        };
        let is_anthropic = endpoint.dialect() == Some(Dialect::Anthropic)
            || outgoing.headers.contains_key("anthropic-version");
        let upstream = if is_anthropic { &self.anthropic } else { &self.openai };
        let Some(dialect) = endpoint.dialect().filter(|_| is_plain) else {
            let answer = outgoing.send(&self.client, upstream, body).await;
            return Ok(Answer::new(answer.map_err(unreachable)?, None).passed_back(None));
        };
        let journey = match serde_json::from_slice::<Head<'_>>(&body) {
            Ok(head) if !self.is_short(&head, &body) => self.begun(dialect, &body, compacts).await,
            Ok(_) | Err(_) => None,
        };
        if compacts {
            return self.exchange(&outgoing, upstream, dialect, body, journey).await;
        }
        let sent = journey.as_ref().and_then(Journey::body).unwrap_or(body);
        let answer = outgoing.send(&self.client, upstream, sent).await;
        Ok(Answer::new(answer.map_err(unreachable)?, None).passed_back(None))
    }

    /// Sends a request, and sends a smaller thread after a refusal for the length. If the provider
    /// refuses the smaller thread for another reason, the agent's own request is sent.
    async fn exchange(
        self: &Arc<Self>,
        outgoing: &Outgoing<'_>,
        upstream: &Upstream,
        dialect: Dialect,
        body: Bytes,
        mut journey: Option<Journey>,
    ) -> Result<Response<Body>, (StatusCode, Failure)> {
        let mut is_last = false;
        loop {
            // The thread is dropped while the provider answers; after a refusal it is read again.
            let (smaller, on_count) = match journey.take() {
                Some(journey) => (journey.body(), Some(journey.on_count(self))),
                None => (None, None),
            };
            let is_smaller = smaller.is_some();
            let sent = smaller.unwrap_or_else(|| body.clone());
            let answer = outgoing.send(&self.client, upstream, sent).await.map_err(unreachable)?;
            let mut answer = Answer::new(answer, Some(dialect));
            let Some(error) = answer.refusal().await.map_err(unreachable)? else {
                return Ok(answer.passed_back(on_count));
            };
            if is_smaller && !error.is_overflow() && answer.blames_the_request() {
                self.note(&format!("a smaller thread was refused: {}", error.message));
                is_last = true;
                continue;
            }
            if is_last || !error.is_overflow() {
                return Ok(answer.passed_back(None));
            }
            journey = self.asks_again(dialect, &body, error).await;
            if journey.is_none() {
                return Ok(answer.passed_back(None));
            }
        }
    }

    /// Returns the journey of a body. `None` after any failure: the body is then sent unchanged. It
    /// runs on a separate thread, so a strategy that panics or blocks does not affect other
    /// requests.
    async fn begun(
        self: &Arc<Self>,
        dialect: Dialect,
        body: &Bytes,
        compacts: bool,
    ) -> Option<Journey> {
        let (proxy, body) = (Arc::clone(self), body.clone());
        self.apart(async move { proxy.begin(dialect, &body, compacts).await }).await.flatten()
    }

    /// Returns the journey with a smaller thread, if the request was refused for its length.
    async fn asks_again(
        self: &Arc<Self>,
        dialect: Dialect,
        body: &Bytes,
        overflow: ModelError,
    ) -> Option<Journey> {
        if self.options.shadow {
            return None;
        }
        let mut journey = self.begun(dialect, body, true).await?;
        let proxy = Arc::clone(self);
        let again = self.apart(async move {
            let again = proxy.refused(&mut journey, &overflow.kind).await;
            Ok(again.then_some(journey))
        });
        again.await.flatten()
    }

    /// Runs blocking work on a separate thread. `None` if it fails or panics.
    async fn apart<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Failure>> + Send + 'static,
    ) -> Option<T> {
        let permit = Arc::clone(&self.reading).acquire_owned().await.ok()?;
        let runtime = tokio::runtime::Handle::current();
        let done = task::spawn_blocking(move || {
            let done = runtime.block_on(work);
            drop(permit);
            done
        });
        let done = done.await.map_err(Failure::from).flatten();
        done.inspect_err(|failure| self.note(&format!("passed through: {}", failure.line()))).ok()
    }

    /// Prints a line to standard error. It must hold no header and no text of a thread.
    pub(super) fn note(&self, line: &str) {
        eprintln!("threadfold: {}", crate::terminal::first_line(line, 300));
    }

    /// The size in tokens from which threads are examined, if `room` tokens are available.
    pub(super) fn threshold(&self, room: u64) -> u64 {
        use threadfold::auto::Threshold;
        match self.options.policy.threshold {
            Threshold::Fraction(share) => (room as f64 * share) as u64,
            Threshold::Tokens(tokens) => tokens.min(room),
            // These thresholds do not follow from the size of a request, so every thread is
            // examined.
            Threshold::Remaining(_) | Threshold::MessagesOver(_) | _ => 0,
        }
    }
}

async fn read(body: Incoming, most: usize) -> Result<Bytes, (StatusCode, Failure)> {
    let whole = tokio::time::timeout(BODY_TIME, Limited::new(body, most).collect());
    match whole.await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            let words = format!("the body has more than {most} bytes: see --max-body");
            Err((StatusCode::PAYLOAD_TOO_LARGE, words.into()))
        }
        Ok(Err(error)) => Err((StatusCode::BAD_REQUEST, error.into())),
        Err(late) => Err((StatusCode::REQUEST_TIMEOUT, late.into())),
    }
}

fn unreachable(failure: Failure) -> (StatusCode, Failure) {
    (StatusCode::BAD_GATEWAY, format!("the provider cannot be reached: {}", failure.line()).into())
}

/// An error of the proxy itself, in the form that all clients understand.
fn refusal(status: StatusCode, words: &str) -> Response<Body> {
    let error = json!({"type": "error", "error": {"type": "threadfold_proxy", "message": words}});
    let kind = (CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response(status, [kind].into_iter().collect(), full(error.to_string()))
}

fn names_loopback(headers: &HeaderMap) -> bool {
    let Some(host) = headers.get(HOST).and_then(|host| host.to_str().ok()) else { return false };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    matches!(name, "localhost" | "[::1]")
        || name.starts_with("127.") && name.parse::<std::net::Ipv4Addr>().is_ok()
}
