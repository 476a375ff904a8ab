//! The options of a model.

use std::time::Duration;

use threadfold::{
    ContextWindow,
    model::AnswerLimits,
    wire::{AnthropicVersion, PrefixMismatch},
};

use crate::{dialect::Dialect, key::Key};

/// The options of the adapter.
#[derive(Clone, Debug)]
pub struct HttpOptions {
    /// The dialect of the server.
    pub dialect: Dialect,
    /// The base URL as the provider's own clients take it: with `/v1` for OpenAI, without for all
    /// others.
    pub base_url: String,
    /// The name of the model.
    pub model: String,
    /// The version of Anthropic's API to send; other dialects have none.
    pub anthropic_version: AnthropicVersion,
    /// What Anthropic does with reasoning whose messages before it were changed, for models that
    /// check it; `None` for the provider's default, an error.
    pub prefix_mismatch: Option<PrefixMismatch>,
    /// The window, if it differs from the published one.
    pub window: Option<ContextWindow>,
    /// The key; `None` if the server needs none.
    pub key: Option<Key>,
    /// The maximum tokens of an answer, if the request does not set it.
    pub max_output: u64,
    /// The maximum number of attempts of a request.
    pub tries: u32,
    /// The wait before the second attempt, if the provider names none. It doubles with each
    /// attempt.
    pub first_wait: Duration,
    /// If a provider asks for a longer wait, the request fails.
    pub max_wait: Duration,
    /// The maximum time without data from the server. A local model reads a long prompt before it
    /// answers.
    pub silence: Duration,
    /// The limits on the size and the time of an answer.
    pub limits: AnswerLimits,
}

impl HttpOptions {
    /// Returns the options for a model of the dialect's vendor: the newest version of its API, no
    /// key, four attempts within about a minute, five minutes of silence, answers of up to 4,096
    /// tokens and a quarter of the window. A dialect of many vendors has no base URL yet.
    ///
    /// ```
    /// use threadfold_http::{Dialect, HttpModel, HttpOptions};
    ///
    /// let base_url = "http://127.0.0.1:8080/v1".to_owned();
    /// let options = HttpOptions { base_url, ..HttpOptions::new(Dialect::Compatible, "qwen3") };
    /// assert!(HttpModel::new(options).is_ok());
    /// ```
    pub fn new(dialect: Dialect, model: impl Into<String>) -> Self {
        let model = model.into();
        let window = ContextWindow::for_model(&model).map(ContextWindow::tokens);
        Self {
            dialect,
            base_url: dialect.vendor_url().unwrap_or_default().to_owned(),
            anthropic_version: AnthropicVersion::V2026_10_21,
            prefix_mismatch: Some(PrefixMismatch::DropBlock),
            window: None,
            key: None,
            max_output: window.map_or(4_096, |window| (window / 4).min(4_096)),
            tries: 4,
            first_wait: Duration::from_millis(500),
            max_wait: Duration::from_secs(60),
            silence: Duration::from_secs(300),
            limits: AnswerLimits::default(),
            model,
        }
    }
}
