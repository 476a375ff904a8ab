//! Classifies error responses of every provider.
//!
//! The status alone does not identify the failure: an overflow may have status 400, 413, 422 or
//! 500, a bad key 400 (Gemini), and a rate limit 413 (Groq) or 403. So the body is checked first,
//! then the status:
//!
//! | step | decides | by |
//! |---|---|---|
//! | 1 | overflow | codes such as `context_length_exceeded`, with any status; a request that exceeds a limit per minute; a plan without long contexts |
//! | 2 | other | a used-up quota: waiting does not help. Retryable, if the body states when the quota is renewed, within a day |
//! | 3 | retryable | 429, and codes and phrases of rate limits, unless the status is 413 |
//! | 4 | overflow | the phrases of each provider; too many pictures or messages; any 413; a 400 without a body |
//! | 5 | refused | codes and phrases of content filters |
//! | 6 | authentication | 401, 403, and codes and phrases of keys and permissions |
//! | 7 | other | a chat template that refuses the roles, with status 500; any 402 |
//! | 8 | retryable | 408, 409, 425, 5xx, and codes and phrases of overload and of a server that broke off |
//! | 9 | other | everything else |
//!
//! An error about another field than the messages as a whole (`tools`, `messages[3].content`) is an
//! overflow only by a code of step 1 or by status 413, because a shorter thread does not change it.
//! The field is the one that the body names as `param`, or the one that the message begins with. If
//! the message begins with the path of a single message, only the phrases about too many pictures and
//! messages count.
//! Texts that a message quotes may be the user's and are not searched, unless they are introduced
//! as the report of another server.
//!
//! Rate limits are checked before the phrases of overflows, because their messages also mention
//! tokens, requests and limits. A request that alone exceeds the rate limit gets 413 from Groq and
//! 429 from OpenAI; it must shrink, so it is an overflow.
//!
//! Words such as `moderation` or `rate_limit` are searched in types and codes only: in a message
//! they may be the name of a tool or a model, so there only whole phrases count. If a 404 or the
//! type `invalid_request_error` blames the request itself, phrases of rate limits and overload do
//! not count either. Parts of the body that repeat the request are not searched.

use serde_json::Value;

use super::error_body::Report;
use threadfold_core::message::{ModelError, ModelErrorKind};

/// Returns the kind of failure of an error response, with the provider's own message.
///
/// Knows the texts and codes of Anthropic, OpenAI (both APIs), Gemini, Bedrock, Ollama, LM Studio,
/// llama.cpp, vLLM, SGLang, TGI, xAI, Groq, OpenRouter, Mistral, Copilot, MiniMax, Kimi, Cerebras,
/// GLM, DashScope, DeepSeek, LiteLLM, GitHub Models and Workers AI. The token counts of an overflow,
/// and the wait of a rate limit, are read from the body if it states them. Some providers count the
/// tokens reserved for the answer against the window. Then `output` is this reserve, and `found` is
/// the prompt alone, or the sum of both if the body states only the sum.
/// [`retry_after`](super::retry_after) reads the headers. Pass status 0 for an error within a
/// stream: then the status in the body counts, if it has one.
///
/// ```
/// use threadfold::{message::ModelErrorKind, wire::classify_error};
///
/// let body = br#"{"type":"error","error":{"type":"invalid_request_error",
///     "message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#;
/// let error = classify_error(400, body);
/// let (limit, found) = (Some(200_000), Some(210_000));
/// assert_eq!(error.kind, ModelErrorKind::Overflow { limit, found, output: None });
/// assert_eq!(error.message, "prompt is too long: 210000 tokens > 200000 maximum");
/// ```
#[must_use]
pub fn classify_error(status: u16, body: &[u8]) -> ModelError {
    let report = Report::read(body);
    let named = report.status.filter(|_| status == 0);
    let kind = kind(named.unwrap_or(status), &report);
    ModelError::new(kind, report.message)
}

/// Returns the error in the body of an answer with a successful status; `None` if the body is not
/// JSON, or an answer. Some servers and gateways answer so.
///
/// An error has a field `error`, or is of the type `error`, or has only a message (`message`, `msg`
/// or `detail`), or is MiniMax's `base_resp` with a code. Google puts it into an array.
///
/// ```
/// use threadfold::wire::error_within;
///
/// let refused = br#"{"error": {"code": "context_length_exceeded", "message": "too long"}}"#;
/// assert!(error_within(refused).is_some_and(|error| error.is_overflow()));
/// let answer = br#"{"object": "chat.completion", "choices": [], "error": null}"#;
/// assert!(error_within(answer).is_none());
/// ```
#[must_use]
pub fn error_within(body: &[u8]) -> Option<ModelError> {
    let value: Value = serde_json::from_slice(body).ok()?;
    let fields = value.as_array().and_then(|items| items.first()).unwrap_or(&value).as_object()?;
    let is_error = |(key, value): (&String, &Value)| match key.as_str() {
        "error" | "errors" => match value {
            Value::Object(error) => !error.is_empty(),
            Value::Array(errors) => !errors.is_empty(),
            Value::String(error) => !error.is_empty(),
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        },
        "type" | "object" => value == "error",
        // Other dialects have their answer in `message`.
        "message" | "msg" | "detail" => value.is_string(),
        // MiniMax has it in each answer.
        "base_resp" => value.get("status_code").is_some_and(|status| *status != 0),
        _ => false,
    };
    fields.iter().any(is_error).then(|| classify_error(0, body))
}

/// What Anthropic says of thinking whose messages before it were changed (documentation, "Fix a
/// thinking block bound to a different conversation").
const VOID_REASONING: &str = "bound to a different conversation";

fn kind(status: u16, report: &Report) -> ModelErrorKind {
    let Report { limit, found, output, retry_after: after, .. } = *report;
    let overflow = ModelErrorKind::Overflow { limit, found, output };
    let retryable = ModelErrorKind::Retryable { after };
    if report.message.contains(VOID_REASONING) {
        return ModelErrorKind::VoidReasoning;
    }
    // The request itself is wrong: the message quotes names of models, tools and fields.
    let names_fault = status == 404 || (status == 400 && report.is_coded("fault"));
    if report.is_coded("overflow") || report.message_mentions("shrink") {
        return overflow;
    }
    if report.mentions("quota") {
        return after.map_or(ModelErrorKind::Other, |_| retryable);
    }
    if status == 429 || (status != 413 && has_meaning(report, "rate_limit", names_fault)) {
        return retryable;
    }
    if report.mentions("too_many") && !report.blames_other_field {
        return ModelErrorKind::Overflow { limit: None, found: None, output: None };
    }
    let without_body = status == 400 && report.message.is_empty();
    let is_elsewhere = report.blames_other_field || report.blames_one_message;
    if status == 413 || without_body || (is_overflow(report) && !is_elsewhere) {
        return overflow;
    }
    if report.is_coded("refusal") || (status != 404 && report.message_mentions("refusal")) {
        return ModelErrorKind::Refused;
    }
    if matches!(status, 401 | 403) || report.mentions("key") {
        return ModelErrorKind::Authentication;
    }
    if status == 402 || report.message_mentions("template") {
        return ModelErrorKind::Other;
    }
    if matches!(status, 408 | 409 | 425 | 500..) || has_meaning(report, "overload", names_fault) {
        return retryable;
    }
    ModelErrorKind::Other
}

/// Whether a report has this meaning. Its message counts only if it cannot quote names of models,
/// tools or fields.
fn has_meaning(report: &Report, meaning: &str, names_fault: bool) -> bool {
    report.is_coded(meaning) || (!names_fault && report.message_mentions(meaning))
}

/// Whether the message reports that the prompt is too long.
fn is_overflow(report: &Report) -> bool {
    report.message_mentions("overflow")
        || (report.message_mentions("bound") && report.message_mentions("unit"))
        || (report.message_mentions("context") && report.message_mentions("excess"))
        || (report.message_mentions("length") && report.message_mentions("over"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_within_an_answer_of_status_200_is_found() {
        let too_long = [
            r#"{"error":{"code":"context_length_exceeded","message":"too long"}}"#,
            r#"[{"error":{"code":400,"message":"The input token count (9) exceeds the maximum number of tokens allowed (7)."}}]"#,
            r#"{"choices":null,"base_resp":{"status_code":2013,"status_msg":"invalid params, context window exceeds limit (2013)"}}"#,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 9 tokens > 7 maximum"}}"#,
            r#"{"success":false,"result":{},"errors":[{"code":7,"message":"prompt is too long"}]}"#,
            r#"{"code":500,"msg":"prompt is too long","success":false}"#,
        ];
        for body in too_long {
            assert!(
                error_within(body.as_bytes()).is_some_and(|error| error.is_overflow()),
                "{body}"
            );
        }
        let answers = [
            r#"{"id":"c1","object":"chat.completion","choices":[],"error":null}"#,
            r#"{"id":"c1","choices":[],"base_resp":{"status_code":0,"status_msg":""}}"#,
            r#"{"id":"m1","type":"message","content":[]}"#,
            r#"{"message":{"role":"assistant","content":"prompt is too long"},"done":true}"#,
            r#"{"success":true,"result":{},"errors":[],"messages":[]}"#,
            r#"{"text":"{\"error\":{}}"}"#,
            "not json",
            "",
        ];
        for body in answers {
            assert!(error_within(body.as_bytes()).is_none(), "{body}");
        }
    }
}
