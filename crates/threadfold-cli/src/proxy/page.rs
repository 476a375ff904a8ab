//! `GET /threadfold`: lists the threads and the saved tokens, and shows the report of each.

use hyper::{
    Method, Response, StatusCode,
    header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue},
};
use threadfold::message::ThreadId;

use super::{
    forward::{Body, full, response},
    server::Proxy,
    views::About,
};
use crate::{
    report::{self, escaped},
    terminal::thousands,
};

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;\
    padding:0 1rem;color:#1c1c1c;background:#fff}table{border-collapse:collapse;width:100%}\
    td,th{padding:.3rem .6rem;text-align:left;border-bottom:1px solid #ddd}\
    td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}\
    @media(prefers-color-scheme:dark){body{color:#ddd;background:#161616}a{color:#8ab4f8}}";

pub(super) async fn answer(proxy: &Proxy, method: &Method, path: &str) -> Response<Body> {
    if method != Method::GET {
        return html(StatusCode::METHOD_NOT_ALLOWED, "<p>This page is only read.</p>");
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
    let policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
        (CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy)),
    ];
    response(status, headers.into_iter().collect(), full(page.to_owned()))
}
