//! The client of the model and the tools.

use reqwest::{Client, Response};
use serde::Serialize;
use threadfold::{
    Answer, Request,
    message::{ModelError, ToolResult, ToolUse},
};

/// The header with the key of a call, by which a provider recognises a call that it has answered.
pub const KEY: &str = "idempotency-key";

/// The client of the model and the tools.
#[derive(Clone, Debug)]
pub struct Remote {
    client: Client,
    url: String,
}

impl Remote {
    /// Returns the client of the service at this address.
    pub fn new(url: impl Into<String>) -> Self {
        Self { client: Client::new(), url: url.into() }
    }

    /// Asks the model.
    ///
    /// # Errors
    ///
    /// The outer error means that there was no answer. The inner one is an answer: the provider
    /// refused.
    pub async fn complete(
        &self,
        key: &str,
        request: &Request,
    ) -> reqwest::Result<Result<Answer, ModelError>> {
        self.post("model", key, request).await?.json().await
    }

    /// Calls a tool.
    ///
    /// # Errors
    ///
    /// The error means that there was no answer.
    pub async fn call(&self, key: &str, call: &ToolUse) -> reqwest::Result<ToolResult> {
        self.post("tool", key, call).await?.json().await
    }

    async fn post(
        &self,
        path: &str,
        key: &str,
        body: &impl Serialize,
    ) -> reqwest::Result<Response> {
        let post = self.client.post(format!("{}/{path}", self.url)).header(KEY, key);
        post.json(body).send().await?.error_for_status()
    }
}
