//! `GET /threadfold`: lists the threads and the saved tokens, and shows the report of each.

use aws_lc_rs::digest::{SHA256, digest};
use hyper::{
    HeaderMap, Method, Response, StatusCode,
    header::{
        ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue,
        REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
    },
};
use threadfold::message::ThreadId;
use threadfold_terminal::thousands;

use super::{
    forward::{Body, full, response},
    state::Proxy,
    views::About,
};
use crate::report::{self, escaped};

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;\
    padding:0 1rem;color:#1c1c1c;background:#fff}table{border-collapse:collapse;width:100%}\
    td,th{padding:.3rem .6rem;text-align:left;border-bottom:1px solid #ddd}\
    td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}\
    @media(prefers-color-scheme:dark){body{color:#ddd;background:#161616}a{color:#8ab4f8}}";

pub(super) async fn answer(proxy: &Proxy, method: &Method, path: &str) -> Response<Body> {
    if method != Method::GET && method != Method::HEAD {
        let words = "<p>This page is only read.</p>";
        let mut answer = html(StatusCode::METHOD_NOT_ALLOWED, words);
        answer.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return answer;
    }
    let found = match path.strip_prefix("/threadfold/threads/").map(str::parse::<ThreadId>) {
        Some(Ok(thread)) => match proxy.store.load(&thread).await {
            Ok(loaded) if loaded.log.is_empty() => Ok(None),
            Ok(loaded) => Ok(Some(report::page(&loaded.log, proxy.options.window))),
            Err(error) => Err(error.to_string()),
        },
        None if path.trim_end_matches('/') == "/threadfold" => {
            proxy.views.list().map(|views| Some(index(&views)))
        }
        Some(Err(_)) | None => Ok(None),
    };
    match found {
        Ok(Some(page)) => html(StatusCode::OK, &page),
        Ok(None) => html(StatusCode::NOT_FOUND, "<p>There is no such page.</p>"),
        Err(error) => {
            html(StatusCode::INTERNAL_SERVER_ERROR, &format!("<p>{}</p>", escaped(&error)))
        }
    }
}

fn index(views: &[About]) -> String {
    let saved: u64 = views.iter().map(|view| view.before.saturating_sub(view.after)).sum();
    let rows: String = views.iter().map(row).collect();
    format!(
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport \
         content=\"width=device-width\"><title>threadfold</title><style>{STYLE}</style>\
         <h1>threadfold</h1><p>{} compactions took about {} tokens out of threads. Each request \
         after one is smaller by what it took.</p><table><tr><th>thread<th>model<th>dialect\
         <th class=n>tokens before<th class=n>after<th>when</tr>{rows}</table></html>",
        views.len(),
        thousands(saved)
    )
}

fn row(view: &About) -> String {
    let About { thread, at, dialect, model, before, after, .. } = view;
    let (before, after) = (thousands(*before), thousands(*after));
    format!(
        "<tr><td><a href=\"/threadfold/threads/{thread}\">{thread}</a><td>{}<td>{}\
         <td class=n>{before}<td class=n>{after}<td>{at}</tr>",
        escaped(model),
        escaped(dialect)
    )
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
        .map(|sheet| format!(" 'sha256-{}'", base64(digest(&SHA256, sheet.as_bytes()).as_ref())))
        .collect();
    let styles = if hashes.is_empty() { " 'none'" } else { &hashes };
    format!(
        "default-src 'none'; style-src{styles}; img-src data:; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'"
    )
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let number = (0..3).fold(0_usize, |number, at| {
            number << 8 | usize::from(chunk.get(at).copied().unwrap_or_default())
        });
        for at in 0..4 {
            let digit = DIGITS.get(number >> (18 - 6 * at) & 63).copied().map(char::from);
            text.push(digit.filter(|_| at <= chunk.len()).unwrap_or('='));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_as_in_rfc_4648() {
        let rows =
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")];
        assert_eq!(rows.map(|(text, _)| base64(text.as_bytes())), rows.map(|(_, text)| text));
    }
}
