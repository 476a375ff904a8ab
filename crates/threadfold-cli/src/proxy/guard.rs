//! Requests that no agent sends: of a page in the user's browser, with a path that leaves its
//! upstream, with too large a head.

use std::net::Ipv4Addr;

use hyper::{
    HeaderMap, Method, StatusCode, Uri, Version,
    header::{CONTENT_TYPE, HOST, ORIGIN},
};

/// The maximum size of the head of a request, in bytes: its first line and its headers.
pub(super) const MAX_HEAD: usize = 64 * 1024;

/// The maximum number of headers.
pub(super) const MAX_HEADERS: usize = 100;

/// A request that is refused, and why.
pub(super) type Refused = (StatusCode, &'static str);

/// How a request reached the proxy.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reached {
    /// The proxy listens on loopback only, so it is reached by a name of loopback.
    pub(super) listens_on_loopback: bool,
    /// The connection is from loopback, whatever the proxy listens on.
    pub(super) is_local: bool,
}

/// Checks what does not depend on the endpoint.
pub(super) fn check(
    method: &Method,
    uri: &Uri,
    version: Version,
    headers: &HeaderMap,
    reached: Reached,
) -> Result<(), Refused> {
    let forbidden = |words| Err((StatusCode::FORBIDDEN, words));
    if size(method, uri, headers) > MAX_HEAD {
        let words = "the first line and the headers have more than 65536 bytes";
        return Err((StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, words));
    }
    if headers.len() > MAX_HEADERS {
        let words = "there are more than 100 headers";
        return Err((StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, words));
    }
    if matches!(*method, Method::CONNECT | Method::TRACE) {
        let words = "this server opens no tunnel and returns no request";
        return Err((StatusCode::METHOD_NOT_ALLOWED, words));
    }
    if uri.path() == "*" && *method != Method::OPTIONS {
        return Err((StatusCode::BAD_REQUEST, "expected a path; * is for OPTIONS"));
    }
    if headers.get_all(HOST).iter().count() > 1
        || (version == Version::HTTP_11 && !headers.contains_key(HOST))
    {
        return Err((StatusCode::BAD_REQUEST, "expected one Host header"));
    }
    if (reached.listens_on_loopback || reached.is_local) && !names_loopback(uri, headers) {
        // DNS rebinding: a page of another site reached the port under its own name.
        return forbidden(match headers.contains_key(HOST) || uri.authority().is_some() {
            true => "the Host header names another machine; expected localhost, 127.0.0.1 or [::1]",
            false => "there is no Host header; expected localhost, 127.0.0.1 or [::1]",
        });
    }
    if is_of_another_site(headers) {
        return forbidden("a page of another site sent this request; expected a program");
    }
    if leaves_root(uri.path()) {
        let words =
            "the path has a segment . or .., or a backslash; expected the path that it leads to";
        return Err((StatusCode::BAD_REQUEST, words));
    }
    Ok(())
}

/// Whether the body is declared as JSON. A page of another site cannot declare that without asking
/// first, and that question is refused.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let mut kinds = headers.get_all(CONTENT_TYPE).iter().map(|kind| kind.to_str().unwrap_or(""));
    let is_json = |kind: &str| {
        let essence = kind.split(';').next().unwrap_or_default().trim();
        essence.eq_ignore_ascii_case("application/json")
    };
    kinds.next().is_some_and(is_json) && kinds.next().is_none()
}

/// The size of the head as HTTP/1.1 writes it.
fn size(method: &Method, uri: &Uri, headers: &HeaderMap) -> usize {
    let line = method.as_str().len() + target_len(uri) + " HTTP/1.1\r\n ".len();
    let headers = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4);
    headers.fold(line + 2, usize::saturating_add)
}

fn target_len(uri: &Uri) -> usize {
    let authority = uri.authority().map_or(0, |authority| authority.as_str().len() + 8);
    authority + uri.path_and_query().map_or(1, |path| path.as_str().len())
}

/// Whether the request names this machine, in its Host header and in its target.
fn names_loopback(uri: &Uri, headers: &HeaderMap) -> bool {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let target = uri.authority().map(|authority| authority.as_str());
    (host.is_some() || target.is_some()) && host.into_iter().chain(target).all(is_loopback)
}

fn is_loopback(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    name.eq_ignore_ascii_case("localhost")
        || name == "[::1]"
        || name.starts_with("127.") && name.parse::<Ipv4Addr>().is_ok()
}

/// Whether a page of another origin sent the request, for example one of another port. Browsers
/// state the origin of each request that could change something.
fn is_of_another_site(headers: &HeaderMap) -> bool {
    let sites = headers.get_all("sec-fetch-site");
    let is_foreign_site =
        sites.iter().any(|site| !matches!(site.as_bytes(), b"none" | b"same-origin"));
    let host = headers.get(HOST).map(|host| host.as_bytes());
    let is_own = |origin: &[u8]| {
        origin
            .strip_prefix(b"http://")
            .zip(host)
            .is_some_and(|(name, host)| name.eq_ignore_ascii_case(host))
    };
    is_foreign_site || headers.get_all(ORIGIN).iter().any(|origin| !is_own(origin.as_bytes()))
}

/// Whether a path could lead out of the upstream's base path, as written or decoded.
fn leaves_root(path: &str) -> bool {
    let lower = path.to_ascii_lowercase();
    let decoded = lower.replace("%2e", ".").replace("%2f", "/").replace("%5c", "\\");
    decoded.contains('\\') || decoded.split('/').any(|segment| matches!(segment, "." | ".."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(target: &str, pairs: &[(&'static str, &'static str)]) -> Option<u16> {
        status_from(Reached { listens_on_loopback: true, is_local: true }, target, pairs)
    }

    fn status_from(
        reached: Reached,
        target: &str,
        pairs: &[(&'static str, &'static str)],
    ) -> Option<u16> {
        let headers =
            pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        let headers: HeaderMap = headers.collect();
        let uri = target.parse().unwrap();
        let checked = check(&Method::POST, &uri, Version::HTTP_11, &headers, reached);
        checked.err().map(|(status, _)| status.as_u16())
    }

    #[test]
    fn pages_of_other_origins_are_refused() {
        let own = ("host", "127.0.0.1:8787");
        let rows = [
            (vec![own], None),
            (vec![own, ("sec-fetch-site", "none")], None),
            (
                vec![own, ("sec-fetch-site", "same-origin"), ("origin", "http://127.0.0.1:8787")],
                None,
            ),
            (vec![("host", "LocalHost:8787")], None),
            (vec![own, ("sec-fetch-site", "same-site")], Some(403)),
            (vec![own, ("sec-fetch-site", "cross-site")], Some(403)),
            (vec![own, ("origin", "https://evil.test")], Some(403)),
            (vec![own, ("origin", "http://localhost:3000")], Some(403)),
            (vec![own, ("origin", "http://localhost:8787")], Some(403)),
            (vec![own, ("origin", "https://127.0.0.1:8787")], Some(403)),
            (vec![own, ("origin", "null")], Some(403)),
            (vec![own, ("origin", "")], Some(403)),
            (vec![("host", "evil.test:8787")], Some(403)),
            (vec![("host", "127.0.0.1.evil.test")], Some(403)),
            (vec![("host", "localhost:8787:evil")], Some(403)),
            (vec![], Some(400)),
        ];
        for (pairs, expected) in rows {
            assert_eq!(status("/v1/messages", &pairs), expected, "{pairs:?}");
        }
        assert_eq!(status("http://evil.test/v1/messages", &[own]), Some(403));
        let local = Reached { listens_on_loopback: true, is_local: true };
        let (uri, none) = ("/v1/messages".parse().unwrap(), HeaderMap::new());
        let (status, words) =
            check(&Method::POST, &uri, Version::HTTP_10, &none, local).unwrap_err();
        assert!(status == 403 && words.starts_with("there is no Host header"), "{words}");
    }

    #[test]
    fn an_address_of_the_network_is_no_gap_for_pages() {
        let target = "/v1/messages";
        let named = ("host", "box.test:8787");
        let rebound = [("host", "evil.test:8787"), ("origin", "http://evil.test:8787")];
        let foreign = [named, ("origin", "https://evil.test")];
        for (is_local, own) in [(true, Some(403)), (false, None)] {
            let reached = Reached { listens_on_loopback: false, is_local };
            assert_eq!(status_from(reached, target, &rebound[..1]), own);
            assert_eq!(status_from(reached, target, &rebound), own);
            assert_eq!(status_from(reached, target, &[named]), own);
            assert_eq!(status_from(reached, target, &foreign), Some(403));
            assert_eq!(status_from(reached, target, &[("host", "127.0.0.1:8787")]), None);
        }
    }

    #[test]
    fn a_path_stays_below_its_root() {
        let own = ("host", "localhost");
        for path in ["/v1/../x", "/v1/%2E%2e/x", "/v1/..%2fx", "/v1/./x", "/v1/..\\x", "/..%5cx"] {
            assert_eq!(status(path, &[own]), Some(400), "{path}");
        }
        assert_eq!(status("/v1/files/a..b/...", &[own]), None);
    }

    #[test]
    fn only_json_is_json() {
        let json = |kinds: &[&str]| {
            let kinds = kinds.iter().map(|kind| (CONTENT_TYPE, kind.parse().unwrap()));
            is_json(&kinds.collect())
        };
        assert!(json(&["application/json"]) && json(&["Application/JSON; charset=utf-8"]));
        for kinds in
            [&[][..], &["text/plain"], &["text/plain; application/json"], &["application/jsonp"]]
        {
            assert!(!json(kinds), "{kinds:?}");
        }
    }
}
