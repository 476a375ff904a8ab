//! Passes requests and answers on: bytes and headers are unchanged, except the headers of a single
//! connection.

use std::{error::Error, iter};

use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use hyper::{
    HeaderMap, Method, Response, StatusCode,
    body::Bytes,
    header::{self, HeaderName},
};
use reqwest::{Client, Url};

use crate::error::Failure;

pub(super) type Failed = Box<dyn Error + Send + Sync>;
pub(super) type Body = UnsyncBoxBody<Bytes, Failed>;

/// Headers that belong to a single connection, or that the HTTP client sets itself.
const NOT_PASSED: [HeaderName; 11] = [
    header::HOST,
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

/// A provider's server. Requests are sent to no other host.
#[derive(Clone, Debug)]
pub(super) struct Upstream(Url);

impl Upstream {
    pub(super) fn new(url: &str) -> Result<Self, String> {
        let parsed: Url = url.parse().map_err(|error| format!("{url}: {error}"))?;
        if !matches!(parsed.scheme(), "http" | "https") || parsed.host_str().is_none() {
            return Err(format!("{url}: the address of a server begins with http:// or https://"));
        }
        Ok(Self(parsed))
    }

    /// The address of a path on this server.
    fn at(&self, path: &str, query: Option<&str>) -> Option<Url> {
        let mut url = self.0.clone();
        let base = url.path().trim_end_matches('/').to_owned();
        // `https://api.openai.com/v1` and `https://api.openai.com` are both common.
        let path = match base.strip_suffix("/v1") {
            Some(base) if path.starts_with("/v1/") => format!("{base}{path}"),
            _ => format!("{base}{path}"),
        };
        // Setting the path of a URL cannot change its host.
        url.set_path(&path);
        url.set_query(query);
        (url.host_str() == self.0.host_str()).then_some(url)
    }
}

/// A request that may be sent more than once.
#[derive(Debug)]
pub(super) struct Outgoing<'a> {
    pub(super) method: Method,
    pub(super) path: &'a str,
    pub(super) query: Option<&'a str>,
    pub(super) headers: HeaderMap,
}

impl Outgoing<'_> {
    pub(super) async fn send(
        &self,
        client: &Client,
        upstream: &Upstream,
        body: Bytes,
    ) -> Result<reqwest::Response, Failure> {
        let url = upstream.at(self.path, self.query).ok_or("this path would change the host")?;
        let request = client.request(self.method.clone(), url).headers(self.headers.clone());
        request.body(body).send().await.map_err(|error| words(error).into())
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

/// The messages of an error and of its causes, without the address, which may hold a secret.
pub(super) fn words(error: reqwest::Error) -> String {
    let error = error.without_url();
    let causes = iter::successors(Some(&error as &dyn Error), |error| (*error).source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
