//! Why a model call failed.

use std::{error::Error, fmt, sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};

use super::{text::Text, usage::Usage};

/// Why a model call failed: the kind of failure, the provider's message, and the tokens spent on
/// it.
///
/// `wire::classify_error` makes one from the error body of a provider. The stored form omits the
/// source.
///
/// ```
/// use threadfold::{Answer, message::{ModelError, ModelErrorKind}};
///
/// // A durable host stores the outcome of each call.
/// let outcome: Result<Answer, ModelError> = Err(ModelError::new(ModelErrorKind::Refused, "no"));
/// let stored = serde_json::to_string(&outcome)?;
/// assert_eq!(stored, r#"{"Err":{"kind":"refused","message":"no"}}"#);
/// let again: Result<Answer, ModelError> = serde_json::from_str(&stored)?;
/// assert!(again.is_err_and(|error| error.kind == ModelErrorKind::Refused));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ModelError {
    /// The kind of failure, by which callers decide what to do next.
    pub kind: ModelErrorKind,
    /// The message of the provider or the transport.
    pub message: Text,
    /// The tokens that were spent before the failure.
    #[serde(default, skip_serializing_if = "is_none")]
    pub usage: Usage,
    #[serde(skip)]
    source: Option<Arc<dyn Error + Send + Sync>>,
}

/// The kind of a [`ModelError`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelErrorKind {
    /// The prompt and the tokens reserved for the answer exceed the window. Compact the thread, or
    /// reserve fewer tokens, and ask again.
    Overflow {
        /// The window in tokens, if the provider reported it.
        limit: Option<u64>,
        /// The length of the prompt alone in tokens, if the provider reported it.
        found: Option<u64>,
        /// The tokens reserved for the answer, if the provider counts them against the window and
        /// reported them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<u64>,
    },
    /// A later attempt may succeed: rate limits, overload, server errors, broken connections.
    Retryable {
        /// How long the provider asks the caller to wait.
        after: Option<Duration>,
    },
    /// The key is missing, invalid or lacks permission.
    Authentication,
    /// The provider or the model declined the request.
    Refused,
    /// The request holds reasoning that is bound to other messages before it than those that it has,
    /// and the provider refuses it (Anthropic, prefix checks on thinking blocks). Send it without
    /// reasoning.
    VoidReasoning,
    /// No model is configured for the requested role.
    NoModel,
    /// Any other failure. The same request fails again.
    Other,
}

impl ModelError {
    /// Returns a failure of this kind with this message.
    ///
    /// ```
    /// use threadfold::message::{ModelError, ModelErrorKind};
    ///
    /// let error = ModelError::new(ModelErrorKind::Authentication, "invalid x-api-key");
    /// assert_eq!(error.to_string(), "authentication failed: invalid x-api-key");
    /// ```
    #[must_use]
    pub fn new(kind: ModelErrorKind, message: impl Into<Text>) -> Self {
        Self { kind, message: message.into(), usage: Usage::default(), source: None }
    }

    /// Returns the failure with the tokens that were spent on it.
    ///
    /// ```
    /// use threadfold::{Usage, message::{ModelError, ModelErrorKind}};
    ///
    /// let error = ModelError::new(ModelErrorKind::Refused, "no").with_usage(Usage::new(1_000, 0));
    /// assert_eq!(error.usage.input, 1_000);
    /// ```
    #[must_use]
    pub fn with_usage(self, usage: Usage) -> Self {
        Self { usage, ..self }
    }

    /// Returns the failure with the error that caused it.
    ///
    /// ```
    /// use std::{error::Error, io};
    /// use threadfold::message::{ModelError, ModelErrorKind};
    ///
    /// let broken = io::Error::new(io::ErrorKind::ConnectionReset, "connection reset by peer");
    /// let error = ModelError::new(ModelErrorKind::Retryable { after: None }, "no answer");
    /// let error = error.with_source(broken);
    /// assert_eq!(error.source().map(ToString::to_string).as_deref(), Some("connection reset by peer"));
    /// ```
    #[must_use]
    pub fn with_source(self, source: impl Error + Send + Sync + 'static) -> Self {
        Self { source: Some(Arc::new(source)), ..self }
    }

    /// Returns the failure with the boxed error that caused it.
    #[doc(hidden)]
    pub fn with_boxed_source(self, source: Box<dyn Error + Send + Sync>) -> Self {
        Self { source: Some(Arc::from(source)), ..self }
    }

    /// Returns the failure of an answer that ended before it was complete. It is retryable.
    ///
    /// ```
    /// use threadfold::message::ModelError;
    ///
    /// assert!(ModelError::cut_short().is_retryable());
    /// ```
    #[must_use]
    pub fn cut_short() -> Self {
        let kind = ModelErrorKind::Retryable { after: None };
        Self::new(kind, "the answer broke off before it was complete")
    }

    /// Returns the failure with this wait, as `wire::retry_after` reads it from headers. Without a
    /// wait, or if the failure is not retryable, it is returned unchanged.
    ///
    /// ```
    /// use std::time::Duration;
    /// use threadfold::{message::ModelErrorKind, wire::classify_error};
    ///
    /// let error = classify_error(429, b"slow down").with_retry_after(Some(Duration::from_secs(7)));
    /// let after = Some(Duration::from_secs(7));
    /// assert_eq!(error.kind, ModelErrorKind::Retryable { after });
    /// ```
    #[must_use]
    pub fn with_retry_after(mut self, wait: Option<Duration>) -> Self {
        if let ModelErrorKind::Retryable { after } = &mut self.kind {
            *after = wait.or(*after);
        }
        self
    }

    /// `true` if the prompt was too long.
    ///
    /// ```
    /// use threadfold::message::{ModelError, ModelErrorKind};
    ///
    /// let (limit, found) = (Some(200_000), Some(210_000));
    /// let kind = ModelErrorKind::Overflow { limit, found, output: None };
    /// assert!(ModelError::new(kind, "prompt is too long").is_overflow());
    /// assert!(!ModelError::new(ModelErrorKind::Other, "too long").is_overflow(), "the kind decides, not the message");
    /// ```
    #[must_use]
    pub fn is_overflow(&self) -> bool {
        matches!(self.kind, ModelErrorKind::Overflow { .. })
    }

    /// `true` if a later attempt may succeed.
    ///
    /// ```
    /// use threadfold::message::{ModelError, ModelErrorKind};
    ///
    /// let busy = ModelError::new(ModelErrorKind::Retryable { after: None }, "overloaded");
    /// let wrong = ModelError::new(ModelErrorKind::Authentication, "invalid key");
    /// assert!(busy.is_retryable() && !wrong.is_retryable());
    /// ```
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(self.kind, ModelErrorKind::Retryable { .. })
    }
}

fn is_none(usage: &Usage) -> bool {
    *usage == Usage::default()
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind)?;
        if self.message.is_blank() { Ok(()) } else { write!(f, ": {}", self.message) }
    }
}

impl fmt::Display for ModelErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overflow { limit: Some(limit), found: Some(found), output: Some(output) } => {
                write!(
                    f,
                    "the prompt of {found} tokens and the {output} reserved for the answer are over the \
                 window of {limit}"
                )
            }
            Self::Overflow { limit: Some(limit), found: Some(found), output: None } => {
                write!(f, "the prompt of {found} tokens is over the window of {limit}")
            }
            Self::Overflow { limit: Some(limit), found: None, .. } => {
                write!(f, "the prompt is over the window of {limit} tokens")
            }
            Self::Overflow { limit: None, .. } => f.write_str("the prompt is over the window"),
            Self::Retryable { after: Some(after) } => {
                write!(f, "unavailable, try again after {} s", after.as_secs_f64())
            }
            Self::Retryable { after: None } => f.write_str("unavailable for now"),
            Self::Authentication => f.write_str("authentication failed"),
            Self::Refused => f.write_str("refused"),
            Self::VoidReasoning => {
                f.write_str("reasoning is bound to other messages than those before it")
            }
            Self::NoModel => f.write_str("no model is configured"),
            Self::Other => f.write_str("the model call failed"),
        }
    }
}

impl Error for ModelError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn Error + 'static))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overflow_that_an_older_version_stored_is_read() {
        let old = r#"{"overflow":{"limit":200000,"found":210000}}"#;
        let kind =
            ModelErrorKind::Overflow { limit: Some(200_000), found: Some(210_000), output: None };
        assert_eq!(serde_json::from_str::<ModelErrorKind>(old).unwrap(), kind);
        assert_eq!(serde_json::to_string(&kind).unwrap(), old);
    }

    #[test]
    fn an_overflow_states_the_tokens_reserved_for_the_answer() {
        let kind = ModelErrorKind::Overflow {
            limit: Some(200_000),
            found: Some(188_240),
            output: Some(21_333),
        };
        assert_eq!(
            kind.to_string(),
            "the prompt of 188240 tokens and the 21333 reserved for the answer are over the window of 200000"
        );
    }
}
