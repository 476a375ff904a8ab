//! Passes requests and answers on: bytes and headers are unchanged, except the headers of a single
//! connection.

use std::{
    error::Error,
    io, iter,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use hyper::{
    HeaderMap, Method, Request, Response, StatusCode, Uri,
    body::{Bytes, Incoming},
    header::{self, HeaderName, HeaderValue},
    http,
};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::{
    client::legacy::{self, connect::HttpConnector},
    rt::{TokioExecutor, TokioIo, TokioTimer},
};
use percent_encoding::percent_decode_str;
use threadfold::message::base64;
use tokio::net::TcpStream;
use tower_service::Service;
use url::Url;

use super::{
    endpoint::Vendor,
    keys::{self, Destination},
};

pub(super) type Failed = Box<dyn Error + Send + Sync>;
pub(super) type Body = UnsyncBoxBody<Bytes, Failed>;
pub(super) type Client = legacy::Client<Connector, Full<Bytes>>;

/// The time limit for connecting to a provider.
const CONNECT_TIME: Duration = Duration::from_secs(20);

/// How long a connection to a provider may be idle and still be used. Common servers close one after 60
/// seconds or more; a request that crosses such an end on the wire is lost, and is not sent again,
/// because the provider may have begun with it.
const IDLE: Duration = Duration::from_secs(50);

/// After so long without a byte a connection is probed, so often, before it is given up.
const PROBE: Duration = Duration::from_secs(15);
const PROBES: u32 = 3;

/// Headers that belong to a single connection, or that the HTTP client sets itself.
const NOT_PASSED: [HeaderName; 12] = [
    header::HOST,
    header::EXPECT,
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::TE,
    header::TRAILER,
    header::UPGRADE,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];

/// Headers that describe the body that came. With another body they would be wrong, and a provider that
/// takes the key for an earlier request would answer that one.
const OF_BODY: [HeaderName; 5] = [
    HeaderName::from_static("content-digest"),
    HeaderName::from_static("content-md5"),
    HeaderName::from_static("digest"),
    HeaderName::from_static("idempotency-key"),
    HeaderName::from_static("repr-digest"),
];

/// Returns the client of a proxy. It sends a request as it is: it follows no redirect and uses no proxy
/// of the system, which would send the key to another host, and unpacks no answer.
pub(super) fn client() -> Result<Client, String> {
    let mut sockets = HttpConnector::new();
    sockets.enforce_http(false);
    sockets.set_nodelay(true);
    sockets.set_keepalive(Some(PROBE));
    sockets.set_keepalive_interval(Some(PROBE));
    sockets.set_keepalive_retries(Some(PROBES));
    // The build may hold another provider of cryptography too, and rustls then chooses none.
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    let tls = HttpsConnectorBuilder::new().with_provider_and_platform_verifier(provider);
    let tls = tls.map_err(|error| words(&error))?.https_or_http().enable_http1();
    let mut client = legacy::Client::builder(TokioExecutor::new());
    client.pool_timer(TokioTimer::new()).pool_idle_timeout(IDLE);
    Ok(client.build(Connector(tls.wrap_connector(sockets))))
}

/// Connects to a server within a time limit.
#[derive(Clone, Debug)]
pub(super) struct Connector(HttpsConnector<HttpConnector>);

impl Service<Uri> for Connector {
    type Response = MaybeHttpsStream<TokioIo<TcpStream>>;
    type Error = Failed;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Failed>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failed>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let connected = tokio::time::timeout(CONNECT_TIME, self.0.call(to));
        Box::pin(async { connected.await? })
    }
}

/// A provider's server. Requests are sent to no other host.
#[derive(Clone, Debug)]
pub(crate) struct Upstream {
    url: Url,
    /// The user and the password of the address, for requests that state none.
    authorization: Option<HeaderValue>,
    /// Whose keys it takes.
    destination: Destination,
}

impl Upstream {
    /// Returns the upstream at this address, for the paths of this vendor. A host of another vendor
    /// takes that vendor's keys: some offer an endpoint in the dialect of another.
    pub(crate) fn new(url: &str, vendor: Vendor) -> Result<Self, String> {
        let parsed: Url = url.parse().map_err(|error| format!("{url}: {error}"))?;
        let host = parsed.host_str().filter(|_| matches!(parsed.scheme(), "http" | "https"));
        let Some(host) = host else {
            return Err(format!("{url}: the address of a server begins with http:// or https://"));
        };
        if let Some(fragment) = parsed.fragment() {
            return Err(format!(
                "{url}: the address has the fragment #{fragment}; expected none, because no server \
                 gets it"
            ));
        }
        let of_host = Vendor::of_host(host);
        let vendor = of_host.unwrap_or(vendor);
        let destination = Destination { vendor, is_own_host: of_host.is_some() };
        Ok(Self { authorization: authorization(&parsed), url: parsed, destination })
    }

    /// The address without user and password, as a key of what was learnt from this server.
    pub(crate) fn name(&self) -> String {
        format!("{}://{}{}", self.url.scheme(), self.authority(), self.url.path())
    }

    /// The host and the port to connect to.
    pub(crate) fn socket(&self) -> (String, u16) {
        let host = self.url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        (host, self.url.port_or_known_default().unwrap_or_default())
    }

    /// Whether the host belongs to a vendor, and is no gateway or local server.
    pub(crate) fn is_vendors(&self) -> bool {
        self.destination.is_own_host
    }

    /// Why a request must not be sent here: it carries a key of another vendor.
    pub(super) fn foreign_key(&self, headers: &HeaderMap, query: Option<&str>) -> Option<String> {
        keys::foreign(self.destination, headers, query)
    }

    /// The address of a path on this server, byte for byte. The query of the server's address, such as
    /// an `api-version`, is part of it, except what the request states itself.
    fn at(&self, path: &str, query: Option<&str>) -> Result<Uri, http::Error> {
        let base = self.url.path().trim_end_matches('/');
        // `https://api.openai.com/v1` and `https://api.openai.com` are both common.
        let root = match base.strip_suffix("/v1") {
            Some(root) if path.starts_with("/v1/") => root,
            _ => base,
        };
        let query = with_query_of(&self.url, query);
        let query = query.map(|query| format!("?{query}")).unwrap_or_default();
        let to = Uri::builder().scheme(self.url.scheme()).authority(self.authority());
        to.path_and_query(format!("{root}{path}{query}")).build()
    }

    /// The host, and the port if it is not the one of the scheme.
    fn authority(&self) -> String {
        let host = self.url.host_str().unwrap_or_default();
        let port = self.url.port().map(|port| format!(":{port}")).unwrap_or_default();
        format!("{host}{port}")
    }
}

/// What states the user and the password of an address, if it has them.
fn authorization(url: &Url) -> Option<HeaderValue> {
    if url.username().is_empty() && url.password().is_none() {
        return None;
    }
    let name = percent_decode_str(url.username());
    let password = percent_decode_str(url.password().unwrap_or_default());
    let both: Vec<u8> = name.chain([b':']).chain(password).collect();
    let mut value = HeaderValue::try_from(format!("Basic {}", base64::encode(&both))).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// The query of a request, and after it what the query of the server's address adds to it.
fn with_query_of(server: &Url, query: Option<&str>) -> Option<String> {
    let Some(address) = server.query() else { return query.map(str::to_owned) };
    let name = |pair: &str| pair.split('=').next().unwrap_or_default().to_owned();
    let own: Vec<&str> = query.into_iter().flat_map(|query| query.split('&')).collect();
    let stated: Vec<String> = own.iter().map(|pair| name(pair)).collect();
    let added = address.split('&').filter(|pair| !pair.is_empty() && !stated.contains(&name(pair)));
    let pairs: Vec<&str> = own.iter().copied().chain(added).collect();
    (!pairs.is_empty()).then(|| pairs.join("&"))
}

/// A request that may be sent more than once.
#[derive(Clone, Debug)]
pub(super) struct Outgoing {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) query: Option<String>,
    pub(super) headers: HeaderMap,
    /// The body that came.
    pub(super) body: Bytes,
}

impl Outgoing {
    /// Sends the request, with another body in place of its own if there is one. An error says what
    /// happened, for a person.
    pub(super) async fn send(
        &self,
        client: &Client,
        upstream: &Upstream,
        instead: Option<Bytes>,
    ) -> Result<Response<Incoming>, String> {
        let (host, port) = upstream.socket();
        let mut headers = self.headers.clone();
        if instead.is_some() {
            OF_BODY.iter().for_each(|name| drop(headers.remove(name)));
        }
        if let Some(own) = &upstream.authorization
            && !headers.contains_key(header::AUTHORIZATION)
        {
            headers.insert(header::AUTHORIZATION, own.clone());
        }
        let to = upstream.at(&self.path, self.query.as_deref());
        let to = to.map_err(|error| format!("{host}:{port}: {}", words(&error)))?;
        let body = instead.unwrap_or_else(|| self.body.clone());
        let mut request = Request::new(Full::new(body));
        (*request.method_mut(), *request.uri_mut()) = (self.method.clone(), to);
        *request.headers_mut() = headers;
        let response = client.request(request).await.map_err(|error| {
            let what = match (error.is_connect(), is_late(&error)) {
                (true, _) => "cannot be reached",
                (false, true) => "did not answer in time",
                (false, false) => "broke the connection off before it answered",
            };
            format!("{host}:{port} {what}: {}", words(&error))
        })?;
        // No request asks for another protocol, and the client would read what follows as one.
        match response.status().is_informational() {
            true => {
                Err(format!("{host}:{port} answers with status {}", response.status().as_u16()))
            }
            false => Ok(response),
        }
    }
}

/// The headers to pass to the provider. If the proxy reads the answer, they ask for an uncompressed
/// one.
pub(super) fn passed_on(headers: &HeaderMap, answer_is_read: bool) -> HeaderMap {
    let mut passed = without_connection(headers);
    if answer_is_read {
        passed.remove(header::ACCEPT_ENCODING);
    }
    passed
}

pub(super) fn without_connection(headers: &HeaderMap) -> HeaderMap {
    let named = headers.get_all(header::CONNECTION).iter().filter_map(|value| value.to_str().ok());
    let named: Vec<String> =
        named.flat_map(|value| value.split(',')).map(|name| name.trim().to_lowercase()).collect();
    let mut passed = headers.clone();
    for name in &NOT_PASSED {
        passed.remove(name);
    }
    for name in named {
        passed.remove(name);
    }
    passed
}

pub(super) fn full(body: impl Into<Bytes>) -> Body {
    Full::new(body.into()).map_err(|never| match never {}).boxed_unsync()
}

pub(super) fn response(status: StatusCode, headers: HeaderMap, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

/// Whether the system gave a connection up, because nothing came for too long.
fn is_late(error: &legacy::Error) -> bool {
    let mut errors = causes(error).filter_map(|cause| cause.downcast_ref::<io::Error>());
    errors.any(|error| error.kind() == io::ErrorKind::TimedOut)
}

/// The messages of an error and of its causes.
pub(super) fn words(error: &(dyn Error + 'static)) -> String {
    causes(error).map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    iter::successors(Some(error), |error| (*error).source())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_query_of_an_address_is_part_of_every_request() {
        let at = |url: &str, query: Option<&str>| {
            let upstream = Upstream::new(url, Vendor::OpenAi).unwrap();
            upstream.at("/v1/responses", query).unwrap().to_string()
        };
        let azure = "https://own.example/openai?api-version=2026-01-01&x=1";
        let of = "https://own.example/openai/v1/responses";
        assert_eq!(at(azure, None), format!("{of}?api-version=2026-01-01&x=1"));
        assert_eq!(at(azure, Some("a=b")), format!("{of}?a=b&api-version=2026-01-01&x=1"));
        // What the agent itself states counts.
        let own = "api-version=2027-01-01";
        assert_eq!(at(azure, Some(own)), format!("{of}?{own}&x=1"));
        assert_eq!(at("https://own.example/openai?", Some("a=%20b")), format!("{of}?a=%20b"));
        assert_eq!(at("https://own.example/openai", None), of);
    }

    #[test]
    fn the_user_of_an_address_is_stated_in_a_header() {
        let upstream = |url: &str| Upstream::new(url, Vendor::OpenAi).unwrap();
        let header = |url: &str| upstream(url).authorization;
        let plain = upstream("https://me:p%40ss@own.example:8443/base");
        let stated = plain.authorization.as_ref().unwrap();
        assert_eq!(stated, &format!("Basic {}", base64::encode(b"me:p@ss")));
        assert_eq!(plain.name(), "https://own.example:8443/base");
        let to = plain.at("/v1/files", None).unwrap();
        assert_eq!(to, "https://own.example:8443/base/v1/files");
        assert_eq!(header("https://me@own.example").unwrap(), "Basic bWU6");
        assert_eq!(header("https://own.example"), None);
    }

    #[test]
    fn an_address_with_a_fragment_is_refused() {
        let error = Upstream::new("https://own.example/v1#east", Vendor::OpenAi).unwrap_err();
        assert!(error.contains("#east") && error.contains("fragment"), "{error}");
    }
}
