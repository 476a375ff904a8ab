//! `GET /threadfold`: lists the threads and the saved tokens, and shows the report of each.

use aws_lc_rs::digest::{SHA256, digest};
use hyper::{
    HeaderMap, Method, Response, StatusCode,
    header::{
        ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue,
        REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
    },
};
use threadfold::message::{ThreadId, base64};

use super::{
    forward::{Body, full, response},
    index,
    state::Proxy,
};
use crate::report::{self, document, escaped};

pub(super) async fn answer(proxy: &Proxy, method: &Method, path: &str) -> Response<Body> {
    if method != Method::GET && method != Method::HEAD {
        let mut answer = notice(StatusCode::METHOD_NOT_ALLOWED, "This page is only read.");
        answer.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return answer;
    }
    let found = match path.strip_prefix("/threadfold/threads/").map(str::parse::<ThreadId>) {
        Some(Ok(thread)) => match proxy.store.load(&thread).await {
            Ok(loaded) if loaded.log.is_empty() => Ok(None),
            Ok(loaded) => {
                let about = proxy.views.about(&thread);
                let window = about.and_then(|about| about.window).or(proxy.options.window);
                Ok(Some(report::page_of_list(&loaded.log, window, "/threadfold")))
            }
            Err(error) => Err(error.to_string()),
        },
        None if path.trim_end_matches('/') == "/threadfold" => {
            proxy.views.list().map(|(threads, all)| Some(index::page(&threads, all)))
        }
        Some(Err(_)) | None => Ok(None),
    };
    match found {
        Ok(Some(page)) => html(StatusCode::OK, &page),
        Ok(None) => notice(StatusCode::NOT_FOUND, "There is no such page."),
        Err(error) => notice(StatusCode::INTERNAL_SERVER_ERROR, &error),
    }
}

/// A page with a line, such as one about what is missing.
fn notice(status: StatusCode, words: &str) -> Response<Body> {
    let title = status.canonical_reason().unwrap_or_default();
    let main = format!(
        "<p class=\"over\">threadfold proxy</p>\n<h1>{}</h1>\n\
         <p><a href=\"/threadfold\">All threads</a></p>\n",
        escaped(words)
    );
    html(status, &document(title, "", &main))
}

fn html(status: StatusCode, page: &str) -> Response<Body> {
    const FIXED: [(HeaderName, &str); 6] = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        // The page shows texts of threads.
        (CACHE_CONTROL, "no-store"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    let fixed = FIXED.map(|(name, value)| (name, HeaderValue::from_static(value)));
    let mut headers: HeaderMap = fixed.into_iter().collect();
    // The characters of the policy are fixed, or of Base64.
    if let Ok(policy) = HeaderValue::try_from(policy(page)) {
        headers.insert(CONTENT_SECURITY_POLICY, policy);
    }
    response(status, headers, full(page.to_owned()))
}

/// Allows the style sheets of this page by their hashes, and nothing else. A text of a thread that
/// got into the page unescaped could neither run, load, submit nor frame anything.
fn policy(page: &str) -> String {
    let sheets = page.split("<style>").skip(1).filter_map(|rest| rest.split("</style>").next());
    let hashes: String = sheets
        .map(|sheet| {
            format!(" 'sha256-{}'", base64::encode(digest(&SHA256, sheet.as_bytes()).as_ref()))
        })
        .collect();
    let styles = if hashes.is_empty() { " 'none'" } else { &hashes };
    format!(
        "default-src 'none'; style-src{styles}; img-src data:; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'"
    )
}
