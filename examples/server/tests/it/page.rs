//! The page, and what the routes refuse.

use std::sync::Arc;

use axum::{
    Router,
    body::{Body, to_bytes},
    http::{Request, StatusCode},
};
use server::router;
use threadfold::store::MemoryStore;
use tower::ServiceExt;

use crate::judge::Judge;

fn server() -> Router {
    router(Arc::new(Judge::default()).threads(Arc::new(MemoryStore::default()), 8))
}

async fn status(method: &str, path: &str, kind: &str, body: String) -> StatusCode {
    let request = Request::builder().method(method).uri(path).header("content-type", kind);
    let request = request.body(Body::from(body)).unwrap();
    server().oneshot(request).await.unwrap().status()
}

#[tokio::test]
async fn the_page_loads_nothing_from_other_servers() {
    let parts = [("/", "text/html"), ("/chat.js", "text/javascript"), ("/chat.css", "text/css")];
    for (path, kind) in parts {
        let request = Request::get(path).body(Body::empty()).unwrap();
        let response = server().oneshot(request).await.unwrap();
        let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
        assert!(header("content-type").starts_with(kind), "{path}");
        assert!(header("content-security-policy").starts_with("default-src 'none'"), "{path}");
        let text = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        let text = str::from_utf8(&text).unwrap();
        for forbidden in ["http:", "https:", "innerHTML", "eval(", "onclick"] {
            assert!(!text.contains(forbidden), "{path} has {forbidden}");
        }
    }
}

#[tokio::test]
async fn invalid_texts_and_thread_ids_are_refused() {
    let json = "application/json";
    let text = |text: &str| serde_json::json!({ "text": text }).to_string();
    let long = text(&"long ".repeat(20_000));
    let rows = [
        ("/threads/..%2Fetc/turns", json, text("hi"), StatusCode::BAD_REQUEST),
        ("/threads/.hidden/turns", json, text("hi"), StatusCode::BAD_REQUEST),
        ("/threads/u1/turns", json, text(" \n"), StatusCode::BAD_REQUEST),
        ("/threads/u1/turns", json, long, StatusCode::PAYLOAD_TOO_LARGE),
        ("/threads/u1/turns", json, "{\"text\":".to_owned(), StatusCode::BAD_REQUEST),
        // A form of another site can send plain text, but not JSON.
        ("/threads/u1/turns", "text/plain", text("hi"), StatusCode::UNSUPPORTED_MEDIA_TYPE),
    ];
    for (path, kind, body, expected) in rows {
        assert_eq!(status("POST", path, kind, body).await, expected, "{path}");
    }
}
