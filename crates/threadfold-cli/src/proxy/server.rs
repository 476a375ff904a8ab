//! The server: limits, paths, and the way of one request.

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
use threadfold::{auto::AutoCompactor, store::ThreadStore, wire::classify_error};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task,
};

use super::{
    ProxyOptions,
    endpoint::{Endpoint, Head},
    forward::{Body, Outgoing, Upstream, full, passed_back, passed_on, whole},
    page,
    prepare::Journey,
    threads::Threads,
    views::Views,
};
use crate::{error::Failure, input::Dialect};

/// How long a client may take for the head of a request, and for its body.
const HEAD_TIME: Duration = Duration::from_secs(15);
const BODY_TIME: Duration = Duration::from_secs(60);

/// So many connections at once.
const MAX_CONNECTIONS: usize = 1_024;

/// So many headers, of so many bytes together.
const MAX_HEADERS: usize = 100;
const MAX_HEAD: usize = 64 * 1024;

/// So many threads are read at once; others wait, because each takes memory.
const MAX_READ: usize = 8;

/// No more of a refusal is read.
const MAX_REFUSAL: usize = 1024 * 1024;

/// A proxy that is ready to serve.
#[derive(Debug)]
pub struct Proxy {
    pub(super) options: ProxyOptions,
    pub(super) store: Arc<dyn ThreadStore>,
    pub(super) views: Views,
    pub(super) threads: Threads,
    /// The trigger of a thread that is new.
    pub(super) fresh: AutoCompactor,
    client: Client,
    anthropic: Upstream,
    openai: Upstream,
    reading: Arc<Semaphore>,
}

impl Proxy {
    /// Returns a proxy with its threads in this store and its views there.
    ///
    /// # Errors
    ///
    /// The words of what is wrong with an address or with the policy.
    pub fn new(
        options: ProxyOptions,
        store: Arc<dyn ThreadStore>,
        views: Views,
    ) -> Result<Self, String> {
        let built = || -> Result<Self, Failure> {
            let client = Client::builder()
                // Wherever a redirect or a proxy of the system leads, the key does not follow.
                .redirect(reqwest::redirect::Policy::none())
                .no_proxy()
                .connect_timeout(Duration::from_secs(20))
                .build()?;
            Ok(Self {
                anthropic: Upstream::new(&options.anthropic)?,
                openai: Upstream::new(&options.openai)?,
                fresh: AutoCompactor::new(options.policy)?,
                reading: Arc::new(Semaphore::new(MAX_READ)),
                threads: Threads::default(),
                client,
                store,
                views,
                options,
            })
        };
        built().map_err(|failure| failure.line().to_owned())
    }

    /// Serves every connection of this socket. Dropping the future stops it; answers that are on
    /// their way end with it.
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
                // No file handle is left, most likely. One will be.
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
        // A connection that breaks is the client's to know.
        let _ = server.serve_connection(TokioIo::new(socket), service).await;
    }

    async fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
        is_loopback: bool,
    ) -> Response<Body> {
        if is_loopback && !names_loopback(request.headers()) {
            // A page of another site that found the port by a name of its own.
            return refusal(StatusCode::FORBIDDEN, "this address is for programs of this machine");
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

    /// The way of a request: read, prepared, sent, perhaps compacted and sent again.
    async fn pass(
        self: &Arc<Self>,
        request: Request<Incoming>,
    ) -> Result<Response<Body>, (StatusCode, Failure)> {
        let (head, body) = request.into_parts();
        let body = read(body, self.options.max_body).await?;
        let path = head.uri.path();
        let endpoint = Endpoint::of(&head.method, path);
        let is_plain = !head.headers.contains_key(CONTENT_ENCODING);
        let outgoing = Outgoing {
            method: head.method,
            path,
            query: head.uri.query(),
            headers: passed_on(&head.headers),
        };
        let is_anthropic = endpoint.dialect() == Some(Dialect::Anthropic)
            || outgoing.headers.contains_key("anthropic-version");
        let upstream = if is_anthropic { &self.anthropic } else { &self.openai };
        let (Some(dialect), true) = (endpoint.dialect(), is_plain) else {
            let answer = outgoing.send(&self.client, upstream, body).await;
            return Ok(passed_back(answer.map_err(unreachable)?));
        };
        let compacts = matches!(endpoint, Endpoint::Answer(_));
        let mut journey = match serde_json::from_slice::<Head<'_>>(&body) {
            Ok(head) if !self.is_short(&head, &body) => self.begun(dialect, &body, compacts).await,
            Ok(_) | Err(_) => None,
        };
        loop {
            let sent = journey.as_ref().and_then(Journey::body).unwrap_or_else(|| body.clone());
            let answer = outgoing.send(&self.client, upstream, sent).await.map_err(unreachable)?;
            let status = answer.status();
            if !compacts || !status.is_client_error() {
                return Ok(passed_back(answer));
            }
            let headers = answer.headers().clone();
            let refused = refused_with(answer).await.map_err(unreachable)?;
            let again = self.asks_again(dialect, &body, journey.take(), status, &refused).await;
            match again {
                Some(again) => journey = Some(again),
                None => return Ok(whole(status, &headers, refused)),
            }
        }
    }

    /// The journey of a body; `None` if anything went wrong, and the body goes as it came. It runs
    /// on a thread of its own, so a strategy that panics or computes does no harm to other requests.
    async fn begun(
        self: &Arc<Self>,
        dialect: Dialect,
        body: &Bytes,
        compacts: bool,
    ) -> Option<Journey> {
        let (proxy, body) = (Arc::clone(self), body.clone());
        self.apart(async move { proxy.begin(dialect, &body, compacts).await }).await.flatten()
    }

    /// The journey with a smaller thread, if the request was refused for its length.
    async fn asks_again(
        self: &Arc<Self>,
        dialect: Dialect,
        body: &Bytes,
        journey: Option<Journey>,
        status: StatusCode,
        refused: &[u8],
    ) -> Option<Journey> {
        let error = classify_error(status.as_u16(), refused);
        if !error.is_overflow() || self.options.shadow {
            return None;
        }
        // A body that was passed by as short is read now.
        let journey = match journey {
            Some(journey) => Some(journey),
            None => self.begun(dialect, body, true).await,
        };
        let (proxy, mut journey) = (Arc::clone(self), journey?);
        let again = self.apart(async move {
            let again = proxy.refused(&mut journey, &error.kind).await;
            Ok(again.then_some(journey))
        });
        again.await.flatten()
    }

    /// Runs work that computes, apart from the sockets. `None` if it fails or panics.
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
        match done.await {
            Ok(Ok(done)) => Some(done),
            Ok(Err(failure)) => {
                self.note(&format!("passed through: {}", failure.line()));
                None
            }
            Err(panicked) => {
                self.note(&format!("passed through: {panicked}"));
                None
            }
        }
    }

    /// A line for the person who watches. It holds no header and no text of a thread.
    pub(super) fn note(&self, line: &str) {
        eprintln!("threadfold: {}", crate::terminal::first_line(line, 300));
    }

    /// The tokens from which on a thread is looked at, of so many that there is room for.
    pub(super) fn threshold(&self, room: u64) -> u64 {
        use threadfold::auto::Threshold;
        match self.options.policy.threshold {
            Threshold::Fraction(share) => (room as f64 * share) as u64,
            Threshold::Tokens(tokens) => tokens.min(room),
            // Every thread is looked at.
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

/// The body of a refusal.
async fn refused_with(mut answer: reqwest::Response) -> Result<Vec<u8>, Failure> {
    let mut body = Vec::new();
    while let Some(piece) = answer.chunk().await? {
        body.extend_from_slice(&piece);
        if body.len() > MAX_REFUSAL {
            break;
        }
    }
    Ok(body)
}

fn unreachable(failure: Failure) -> (StatusCode, Failure) {
    (StatusCode::BAD_GATEWAY, format!("the provider cannot be reached: {}", failure.line()).into())
}

/// An error of the proxy itself, in the form that all clients read.
fn refusal(status: StatusCode, words: &str) -> Response<Body> {
    let error = json!({"type": "error", "error": {"type": "threadfold_proxy", "message": words}});
    let mut response = Response::new(full(error.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
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
