//! A client of the routes, without a socket.

use axum::{
    Router,
    body::{Body, BodyDataStream},
    http::{Request, StatusCode},
};
use futures::StreamExt;
use serde_json::{Value, json};
use tower::ServiceExt;

/// The client of one user.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) router: Router,
    pub(crate) thread: String,
}

/// The events of a turn. Dropping it simulates a client that leaves.
pub(crate) struct Events {
    body: BodyDataStream,
    text: String,
}

impl Client {
    async fn ask(&self, method: &str, path: &str, body: Value) -> (StatusCode, Body) {
        let request = Request::builder()
            .method(method)
            .uri(format!("/threads/{}{path}", self.thread))
            .header("content-type", "application/json")
            .body(Body::from(body.to_string()))
            .unwrap();
        let response = self.router.clone().oneshot(request).await.unwrap();
        (response.status(), response.into_body())
    }

    /// Sends a text that begins a turn.
    pub(crate) async fn send(&self, text: &str) -> Events {
        let (status, body) = self.ask("POST", "/turns", json!({ "text": text })).await;
        assert_eq!(status, StatusCode::OK, "{text}");
        Events { body: body.into_data_stream(), text: String::new() }
    }

    /// Continues a turn that broke off.
    pub(crate) async fn go_on(&self) -> Events {
        let (status, body) = self.ask("POST", "/continue", json!({})).await;
        assert_eq!(status, StatusCode::OK);
        Events { body: body.into_data_stream(), text: String::new() }
    }

    /// Sends a text while a turn is running.
    pub(crate) async fn queue(&self, text: &str) {
        let (status, _) = self.ask("POST", "/turns", json!({ "text": text })).await;
        assert_eq!(status, StatusCode::ACCEPTED, "{text}");
    }

    pub(crate) async fn abort(&self) {
        let (status, _) = self.ask("POST", "/abort", json!({})).await;
        assert_eq!(status, StatusCode::NO_CONTENT);
    }

    /// Returns the thread as a client sees it that connects late.
    pub(crate) async fn show(&self) -> Value {
        let (status, body) = self.ask("GET", "", json!({})).await;
        assert_eq!(status, StatusCode::OK);
        let bytes = axum::body::to_bytes(body, usize::MAX).await.unwrap();
        serde_json::from_slice(&bytes).unwrap()
    }
}

impl Events {
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let data = event.strip_prefix("data: ").map(str::to_owned);
                self.text = rest.to_owned();
                match data {
                    Some(data) => return Some(serde_json::from_str(&data).unwrap()),
                    // A comment that keeps the connection open.
                    None => continue,
                }
            }
            let bytes = self.body.next().await?.unwrap();
            self.text.push_str(str::from_utf8(&bytes).unwrap());
        }
    }

    /// Returns the types of all remaining events, except pieces of texts.
    pub(crate) async fn kinds(&mut self) -> Vec<String> {
        let mut kinds = Vec::new();
        while let Some(event) = self.next().await {
            let kind = event["type"].as_str().unwrap();
            assert_ne!(kind, "failed", "{event}");
            if !kind.ends_with("_delta") {
                kinds.push(kind.to_owned());
            }
        }
        kinds
    }

    /// Reads events until this future is ready.
    pub(crate) async fn until(&mut self, happens: impl Future<Output = ()>) {
        let happens = std::pin::pin!(happens);
        let read = std::pin::pin!(async { while self.next().await.is_some() {} });
        if let futures::future::Either::Left(_) = futures::future::select(read, happens).await {
            panic!("the turn ended before that");
        }
    }
}
