//! Converting genai's errors.

use genai::{Error, webc};
use threadfold::{
    message::{ModelError, ModelErrorKind, Timestamp},
    wire,
};

/// Returns the kind of failure of a genai error, with that error as its source.
///
/// An error response is classified by its status and body, with the wait from its headers; an error
/// event in a stream by its body. A broken connection is retryable, a missing key is a failure of
/// authentication. Everything else, such as an answer that is not JSON, is
/// [`Other`](threadfold::message::ModelErrorKind::Other).
///
/// ```
/// use genai::{Error, ModelIden, adapter::AdapterKind};
/// use threadfold::message::Timestamp;
/// use threadfold_genai::error_from_genai;
///
/// let body = serde_json::json!({"type": "error", "error": {"type": "overloaded_error"}});
/// let model_iden = ModelIden::new(AdapterKind::Anthropic, "claude-opus-4-6");
/// let error = error_from_genai(Error::ChatResponse { model_iden, body }, Timestamp(0));
/// assert!(error.is_retryable());
/// ```
#[must_use]
pub fn error_from_genai(error: Error, now: Timestamp) -> ModelError {
    let failure = classify(&error, now);
    failure.with_source(error)
}

fn classify(error: &Error, now: Timestamp) -> ModelError {
    // If a stream begins with an error response, genai boxes that response in a stream error.
    if let Error::WebStream { error: inner, cause, .. } = error {
        return match inner.downcast_ref::<Error>() {
            Some(inner) => classify(inner, now),
            None => retryable(cause),
        };
    }
    if let Some((status, body)) = error_answer(error) {
        let headers = error.headers().into_iter().flatten();
        let headers = headers.filter_map(|(key, value)| Some((key.as_str(), value.to_str().ok()?)));
        let wait = wire::retry_after(headers, now);
        return wire::classify_error(status, body.as_bytes()).with_retry_after(wait);
    }
    if let Error::ChatResponse { body, .. } = error {
        // Some adapters return the content of `error`, some the whole body.
        let whole = body.get("error").is_some() || body.is_string();
        let body =
            if whole { body.to_string() } else { serde_json::json!({ "error": body }).to_string() };
        return wire::classify_error(0, body.as_bytes());
    }
    if let Error::WebModelCall { webc_error: webc::Error::Reqwest(error), .. } = error {
        return retryable(&error.to_string());
    }
    let keys = matches!(
        error,
        Error::RequiresApiKey { .. }
            | Error::NoAuthResolver { .. }
            | Error::NoAuthData { .. }
            | Error::Resolver { .. }
    );
    let kind = if keys { ModelErrorKind::Authentication } else { ModelErrorKind::Other };
    ModelError::new(kind, error.to_string())
}

/// Returns the status and body of an error response.
fn error_answer(error: &Error) -> Option<(u16, &str)> {
    if let Error::HttpError { status, body, .. }
    | Error::WebModelCall {
        webc_error: webc::Error::ResponseFailedStatus { status, body, .. },
        ..
    } = error
    {
        return Some((status.as_u16(), body));
    }
    None
}

fn retryable(words: &str) -> ModelError {
    ModelError::new(ModelErrorKind::Retryable { after: None }, words)
}
