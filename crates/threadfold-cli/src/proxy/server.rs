//! The server: limits, paths, and the handling of one request.

use std::{convert::Infallible, sync::Arc, time::Duration};

use hyper::{
    HeaderMap, Request, Response, StatusCode,
    body::{Bytes, Incoming},
    header::{ALLOW, CONTENT_ENCODING, CONTENT_TYPE, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::json;
use threadfold::{
    auto::MAX_SENDS,
    message::{ModelError, ModelErrorKind},
};
use threadfold_terminal::thousands;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Mutex, Notify, Semaphore},
    task,
};
use tokio_io_timeout::TimeoutStream;

use super::{
    answer::Answer,
    body, client,
    endpoint::{Arrived, Asked, Endpoint, Head, Route, Vendor},
    flush::{Flushed, Flushing},
    forward::{Body, Outgoing, Upstream, full, passed_on, response},
    guard::{self, MAX_HEAD, MAX_HEADERS, Reached},
    keys,
    lock::locked,
    page,
    prepare::{Attempt, Exchange, Waiting},
    running::{BEAT, Running},
    state::Proxy,
    trouble::{self, Trouble},
};
use crate::when_quiet::WhenQuiet;

/// The time limit for the head of a request.
const HEAD_TIME: Duration = Duration::from_secs(15);

/// The maximum number of connections.
const MAX_CONNECTIONS: usize = 1_024;

/// The methods that are passed on.
const ALLOWED: HeaderValue =
    HeaderValue::from_static("GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");

/// Where the work of a request is done, so that no request waits for a compaction of another thread.
#[derive(Clone, Copy)]
pub(super) enum Lane {
    Reading,
    Compacting,
    /// Work for threads whose agent is quiet.
    Quiet,
    /// Pages, which read the database and whole logs.
    Page,
}

/// A request that was read in the lane for that.
enum Begun {
    /// It can be sent.
    Ready(Box<Exchange>),
    /// It is compacted first, in the other lane, by one request of its thread at a time.
    Due(Arc<Mutex<()>>),
}

impl Proxy {
    /// Serves every connection of this socket. Dropping the future stops the server and all its
    /// answers.
    pub async fn serve(self: Arc<Self>, listener: TcpListener) {
        let connections = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let is_loopback = listener.local_addr().is_ok_and(|address| address.ip().is_loopback());
        let mut tasks = task::JoinSet::new();
        if let Ok(address) = listener.local_addr() {
            tasks.spawn(Arc::clone(&self).beat(address.to_string()));
        }
        if self.options.when_quiet != WhenQuiet::Nothing {
            tasks.spawn(Arc::clone(&self).mind_quiet_threads());
        }
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

    /// Writes again and again what was done, for commands that look at the folder.
    async fn beat(self: Arc<Self>, address: String) {
        let mut running = Running::new(address, self.clock.now());
        let mut is_first = true;
        loop {
            if running.beats(self.counts(), self.clock.now()) || is_first {
                let (proxy, row) = (Arc::clone(&self), running.clone());
                // After a panic the next beat writes.
                let _ = task::spawn_blocking(move || proxy.views.runs(&row)).await;
            }
            self.look_for_database();
            if !self.unstored.is_empty() {
                self.store_soon().await;
            }
            is_first = false;
            tokio::time::sleep(BEAT).await;
        }
    }

    async fn connection(self: Arc<Self>, socket: TcpStream, listens_on_loopback: bool) {
        let is_local = socket.peer_addr().is_ok_and(|peer| peer.ip().to_canonical().is_loopback());
        let reached = Reached { listens_on_loopback, is_local };
        let _ = socket.set_nodelay(true);
        let stall = self.options.stall;
        let flushed = Arc::new(Notify::new());
        let flushes = Arc::clone(&flushed);
        let service = service_fn(move |request| {
            let (proxy, flushed) = (Arc::clone(&self), Arc::clone(&flushed));
            async move {
                let answer = proxy.answer(request, reached).await;
                Ok::<_, Infallible>(answer.map(|body| Flushed::new(body, flushed)))
            }
        });
        let mut server = http1::Builder::new();
        server
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIME)
            // A client that closes its side is taken for gone, which ends the provider's work for it.
            // Whether it only has sent all cannot be told before something is written to it.
            .half_close(false)
            // Heads up to this size are read, so that their refusal can be stated.
            .max_buf_size(2 * MAX_HEAD)
            .max_headers(2 * MAX_HEADERS);
        // A client that reads nothing would hold its connection and the provider's forever.
        let mut socket = TimeoutStream::new(socket);
        socket.set_write_timeout(Some(stall));
        let socket = Flushing::new(TokioIo::new(Box::pin(socket)), flushes);
        // Ignore the error: the client notices a broken connection itself.
        let _ = server.serve_connection(socket, service).await;
    }

    async fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
        reached: Reached,
    ) -> Response<Body> {
        let (method, uri) = (request.method(), request.uri());
        if let Err((status, words)) =
            guard::check(method, uri, request.version(), request.headers(), reached)
        {
            return refusal(status, words);
        }
        let path = uri.path();
        if path == "*" {
            return options_of_the_server();
        }
        if path == "/threadfold" || path.starts_with("/threadfold/") {
            let (proxy, method, path) = (Arc::clone(&self), method.clone(), path.to_owned());
            let page = async move { Ok(page::answer(&proxy, &method, &path).await) };
            let failed = || refusal(StatusCode::INTERNAL_SERVER_ERROR, "the page failed");
            return self.apart(Lane::Page, page).await.unwrap_or_else(failed);
        }
        match self.pass(request).await {
            Ok(answer) => answer,
            Err((status, words)) => refusal(status, &words),
        }
    }

    /// Handles a request: read, prepare, send, and if it is refused for its length, compact and
    /// send again.
    async fn pass(
        self: &Arc<Self>,
        request: Request<Incoming>,
    ) -> Result<Response<Body>, (StatusCode, String)> {
        let (head, body) = request.into_parts();
        let (path, query) = (head.uri.path(), head.uri.query());
        // A client that is refused before it sent its body may not read the refusal.
        let body = body::read(body, self.options.max_body).await?;
        let Route { vendor, endpoint } = Route::of(&head.method, path);
        let upstream = self.upstream(vendor.or_else(|| keys::vendor(&head.headers, query)));
        if let Some(words) = upstream.foreign_key(&head.headers, query) {
            return Err((StatusCode::FORBIDDEN, words));
        }
        if endpoint != Endpoint::Other && !guard::is_json(&head.headers) {
            let words = "expected the content type application/json";
            return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, words.to_owned()));
        }
        let coding = coding(&head.headers);
        let is_plain = coding.is_none();
        let compacts = matches!(endpoint, Endpoint::Answer(_)) && is_plain;
        let headers = passed_on(&head.headers, compacts);
        let (path, query) = (path.to_owned(), query.map(str::to_owned));
        let outgoing = Outgoing { method: head.method, path, query, headers, body: body.clone() };
        let asked = match endpoint {
            Endpoint::Answer(asked) | Endpoint::Count(asked) if is_plain => {
                Asked { client: client::name(&head.headers), ..asked }
            }
            Endpoint::Answer(_) | Endpoint::Count(_) | Endpoint::Other => {
                if let Some(coding) = coding.filter(|_| endpoint != Endpoint::Other) {
                    let trouble = format!("its content encoding is {coding}, which is not read");
                    self.note_unread(&body, &Trouble::new(trouble));
                }
                let answer = outgoing.send(&self.client, upstream, None).await;
                let answer = Answer::new(answer.map_err(bad_gateway)?, None);
                return Ok(answer.passed_back(&outgoing.method, None));
            }
        };
        let arrived = Arrived { asked, upstream: upstream.name(), body };
        let Arrived { asked, upstream: name, body } = &arrived;
        let read = Head::read(body, asked.model.as_deref());
        if let Some(field) =
            read.as_ref().ok().and_then(Head::kept_by_provider).filter(|_| compacts)
        {
            let words = format!("the provider stores the beginning of its thread ({field})");
            self.note_unread(body, &Trouble::new(words));
        }
        let exchange = match read {
            Ok(head) if !self.is_short(name, &head, body) => self.begun(&arrived, compacts).await,
            Ok(_) => None,
            Err(trouble) => {
                self.note_unread(body, &trouble);
                None
            }
        };
        if compacts {
            return self.run_exchange(&outgoing, upstream, arrived, exchange).await;
        }
        let instead = exchange.as_ref().and_then(Exchange::body);
        let is_shortened = exchange.as_ref().is_some_and(Exchange::is_shortened);
        let answer = outgoing.send(&self.client, upstream, instead).await;
        let mut answer = Answer::new(answer.map_err(bad_gateway)?, None);
        if is_shortened && answer.blames_the_request() {
            let status = answer.status().as_u16();
            self.note(&format!("a smaller thread was not counted: status {status}"));
            let own = outgoing.send(&self.client, upstream, None).await;
            answer = Answer::new(own.map_err(bad_gateway)?, None);
        }
        Ok(answer.passed_back(&outgoing.method, None))
    }

    /// The upstream of a vendor. Requests that belong to none go to `--openai`, which may be a local
    /// server with paths of its own.
    fn upstream(&self, vendor: Option<Vendor>) -> &Upstream {
        match vendor {
            Some(Vendor::Anthropic) => &self.anthropic,
            Some(Vendor::Google) => &self.google,
            Some(Vendor::OpenAi) | None => &self.openai,
        }
    }

    /// Sends a request, and sends a smaller thread after a refusal for the length, or one without
    /// reasoning if that is bound to other messages, at most [`MAX_SENDS`] times in all. If the
    /// provider refuses the smaller thread for another reason, the agent's own request is sent. What
    /// was compacted for a refusal is kept only if the provider accepts it; otherwise the agent gets
    /// the first refusal.
    async fn run_exchange(
        self: &Arc<Self>,
        outgoing: &Outgoing,
        upstream: &Upstream,
        arrived: Arrived,
        mut exchange: Option<Exchange>,
    ) -> Result<Response<Body>, (StatusCode, String)> {
        let Arrived { asked, upstream: name, .. } = &arrived;
        let (mut first, mut is_last, mut was_long) = (None, false, false);
        let mut sends = 0;
        locked(&self.tally).requests += 1;
        loop {
            sends += 1;
            // The thread is dropped while the provider answers; after a refusal it is read again.
            let (smaller, on_end, waiting) = match exchange.take() {
                Some(exchange) => {
                    let on_end = self.on_end(&exchange, &arrived, outgoing, upstream);
                    (exchange.body(), Some(on_end), Some(exchange.waiting()))
                }
                None => (None, None, None),
            };
            let saved = waiting.as_ref().and_then(Waiting::saved);
            let is_shortened = waiting.as_ref().is_some_and(|waiting| waiting.is_shortened);
            let answer = outgoing.send(&self.client, upstream, smaller).await;
            let answer = answer.map_err(bad_gateway)?;
            let mut answer = Answer::new(answer, Some(asked));
            let Some(error) = answer.refusal().await.map_err(bad_gateway)? else {
                let tokens = saved.as_ref().map_or(0, |(_, tokens)| *tokens);
                locked(&self.tally).answered(tokens, was_long);
                if let Some(waiting) = &waiting
                    && let Some((_, link)) = waiting.void
                {
                    self.threads.refuses_reasoning(waiting.key, link);
                }
                if let Some(waiting) = waiting.filter(|waiting| waiting.was_refused) {
                    let (proxy, name) = (Arc::clone(self), name.clone());
                    self.apart(Lane::Reading, async move { proxy.accepted(&name, waiting).await })
                        .await;
                }
                if let Some((thread, tokens)) = saved {
                    self.views.saved(&thread, tokens);
                }
                return Ok(answer.passed_back(&outgoing.method, on_end));
            };
            let goes_on = !is_last && sends < MAX_SENDS;
            let is_overflow = error.is_overflow();
            let is_void = error.kind == ModelErrorKind::VoidReasoning;
            was_long |= is_overflow;
            let is_refused_again = !goes_on && is_overflow && first.is_some();
            let is_curable = is_overflow || is_void;
            if goes_on && is_shortened && !is_curable && answer.blames_the_request() {
                let (status, kind) = (answer.status().as_u16(), trouble::kind(&error.kind));
                self.note(&format!("a smaller thread was refused: status {status}, {kind}"));
                is_last = true;
                if let Some(own) = waiting.and_then(Waiting::own) {
                    exchange = self.reread(&arrived, own).await;
                }
                continue;
            }
            if goes_on && is_void {
                self.note(
                    "reasoning is bound to other messages than the agent sends, so the request is \
                     sent again without reasoning",
                );
            }
            if goes_on && is_curable {
                exchange = self.asks_again(&arrived, waiting, error).await;
            }
            if is_refused_again {
                self.note(&format!(
                    "not compacted: the provider refused the request {sends} times, so what was \
                     compacted for it is taken back"
                ));
            }
            if exchange.is_none() {
                if was_long {
                    locked(&self.tally).refused += 1;
                }
                return Ok(first.unwrap_or(answer).passed_back(&outgoing.method, None));
            }
            first = first.or(Some(answer));
        }
    }

    /// Returns the exchange of a request. `None` after any failure: the body is then sent unchanged.
    ///
    /// A thread that is due is dropped, and read again in the lane of compactions: while it waits
    /// there, only its body is in memory.
    async fn begun(self: &Arc<Self>, arrived: &Arrived, compacts: bool) -> Option<Exchange> {
        let (proxy, read) = (Arc::clone(self), arrived.clone());
        let begun = self.apart(Lane::Reading, async move {
            let attempt = if compacts { Attempt::First } else { Attempt::CountTokens };
            let Some(mut exchange) = proxy.read(&read, attempt) else { return Ok(None) };
            if compacts && proxy.is_due(&exchange) {
                return Ok(Some(Begun::Due(exchange.lock())));
            }
            if compacts {
                proxy.go_on(&mut exchange).await;
            }
            Ok(Some(Begun::Ready(Box::new(exchange))))
        });
        let lock = match begun.await.flatten()? {
            Begun::Ready(exchange) => return Some(*exchange),
            Begun::Due(lock) => lock,
        };
        let (proxy, read) = (Arc::clone(self), arrived.clone());
        self.compacting(lock, async move {
            // What another request of the thread has made until now is found below.
            let mut exchange = proxy.read(&read, Attempt::First);
            if let Some(exchange) = &mut exchange {
                proxy.go_on(exchange).await;
            }
            Ok(exchange)
        })
        .await
    }

    /// Returns the exchange with a smaller thread, if the request was refused for its length, or with
    /// one without reasoning.
    async fn asks_again(
        self: &Arc<Self>,
        arrived: &Arrived,
        waiting: Option<Waiting>,
        overflow: ModelError,
    ) -> Option<Exchange> {
        if self.options.shadow {
            return None;
        }
        // Nothing is compacted for reasoning that is refused.
        let compacts = overflow.kind != ModelErrorKind::VoidReasoning;
        let lock = match &waiting {
            _ if !compacts => None,
            Some(waiting) => Some(waiting.lock()),
            None => Some(self.lock_of(arrived).await?),
        };
        let (proxy, read) = (Arc::clone(self), arrived.clone());
        let again = async move {
            let attempt = Attempt::AfterRefusal(waiting.map(Box::new));
            let Some(mut exchange) = proxy.read(&read, attempt) else { return Ok(None) };
            let again = proxy.refused(&mut exchange, &overflow.kind).await;
            Ok(again.then_some(exchange))
        };
        match lock {
            Some(lock) => self.compacting(lock, again).await,
            None => self.apart(Lane::Reading, again).await.flatten(),
        }
    }

    /// The exchange of a request, with what waited while it was sent.
    async fn reread(self: &Arc<Self>, arrived: &Arrived, waiting: Waiting) -> Option<Exchange> {
        let (proxy, read) = (Arc::clone(self), arrived.clone());
        let attempt = Attempt::AfterRefusal(Some(Box::new(waiting)));
        self.apart(Lane::Reading, async move { Ok(proxy.read(&read, attempt)) }).await.flatten()
    }

    /// The lock of the thread of a request that was sent unread.
    async fn lock_of(self: &Arc<Self>, arrived: &Arrived) -> Option<Arc<Mutex<()>>> {
        let (proxy, read) = (Arc::clone(self), arrived.clone());
        let lock = self.apart(Lane::Reading, async move {
            let exchange = proxy.read(&read, Attempt::AfterRefusal(None));
            Ok(exchange.map(|exchange| exchange.lock()))
        });
        lock.await.flatten()
    }

    /// Runs a compaction of the thread that has this lock. The lock is taken before a place in the
    /// lane, so the requests of one thread wait for each other without a place, and no place waits
    /// for a lock.
    async fn compacting(
        &self,
        lock: Arc<Mutex<()>>,
        work: impl Future<Output = Result<Option<Exchange>, Trouble>> + Send + 'static,
    ) -> Option<Exchange> {
        let one_at_a_time = lock.lock_owned().await;
        let compacted = self.apart(Lane::Compacting, async move {
            let done = work.await;
            drop(one_at_a_time);
            done
        });
        compacted.await.flatten()
    }

    fn read(&self, arrived: &Arrived, attempt: Attempt) -> Option<Exchange> {
        let begun = self.begin(arrived, attempt);
        begun.inspect_err(|trouble| self.note_unread(&arrived.body, trouble)).ok().flatten()
    }

    /// Runs work on a separate thread as soon as its lane has room, so a strategy that panics or blocks
    /// does not affect other requests. `None` if it fails or panics.
    pub(super) async fn apart<T: Send + 'static>(
        &self,
        lane: Lane,
        work: impl Future<Output = Result<T, Trouble>> + Send + 'static,
    ) -> Option<T> {
        let lane = match lane {
            Lane::Reading => &self.reading,
            Lane::Compacting => &self.compacting,
            Lane::Quiet => &self.quieting,
            Lane::Page => &self.showing,
        };
        let permit = Arc::clone(lane).acquire_owned().await.ok()?;
        let runtime = tokio::runtime::Handle::current();
        let done = task::spawn_blocking(move || {
            let done = runtime.block_on(work);
            drop(permit);
            done
        });
        let done = done.await.map_err(Trouble::from).flatten();
        done.inspect_err(|trouble| self.note(&format!("passed through: {trouble}"))).ok()
    }

    /// Prints why a body is passed on as it came.
    fn note_unread(&self, body: &Bytes, trouble: &Trouble) {
        let bytes = thousands(body.len() as u64);
        self.note(&format!("passed through: a body of {bytes} bytes: {trouble}"));
    }
}

/// The encoding of a body, if it has one. Only a known name is repeated in a log.
fn coding(headers: &HeaderMap) -> Option<&'static str> {
    const KNOWN: [&str; 7] = ["br", "compress", "deflate", "gzip", "x-compress", "x-gzip", "zstd"];
    let codings = headers.get_all(CONTENT_ENCODING).into_iter();
    let codings = codings.flat_map(|coding| coding.to_str().unwrap_or("unknown").split(','));
    let is_plain = |coding: &str| coding.is_empty() || coding.eq_ignore_ascii_case("identity");
    let coding = codings.map(str::trim).find(|coding| !is_plain(coding))?;
    let known = KNOWN.into_iter().find(|known| known.eq_ignore_ascii_case(coding));
    Some(known.unwrap_or("unknown"))
}

fn bad_gateway(words: String) -> (StatusCode, String) {
    (StatusCode::BAD_GATEWAY, words)
}

/// The answer to `OPTIONS *`, which asks about this server and not about a path.
fn options_of_the_server() -> Response<Body> {
    response(StatusCode::NO_CONTENT, [(ALLOW, ALLOWED)].into_iter().collect(), full(""))
}

/// An error of the proxy itself, in the form that all clients understand.
fn refusal(status: StatusCode, words: &str) -> Response<Body> {
    let error = json!({"type": "error", "error": {"type": "threadfold_proxy", "message": words}});
    let kind = (CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let allowed = (status == StatusCode::METHOD_NOT_ALLOWED).then_some((ALLOW, ALLOWED));
    response(status, [kind].into_iter().chain(allowed).collect(), full(error.to_string()))
}
