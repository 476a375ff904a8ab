//! Classifies error responses of every provider.
//!
//! The status alone is not enough: an overflow has status 400, 413, 422 or 500, a bad key 400
//! (Gemini), a rate limit 413 (Groq) or 403. So the body is checked first, then the status:
//!
//! | step | decides | by |
//! |---|---|---|
//! | 1 | overflow | codes such as `context_length_exceeded`, with any status; a request that exceeds a limit per minute |
//! | 2 | other | a used-up quota: waiting does not help |
//! | 3 | retryable | 429, and codes and phrases of rate limits, unless the status is 413 |
//! | 4 | overflow | the phrases of each provider; too many pictures or messages; any 413; a 400 without a body |
//! | 5 | refused | codes and phrases of content filters |
//! | 6 | authentication | 401, 403, and codes and phrases of keys and permissions |
//! | 7 | other | a chat template that refuses the roles, with status 500 |
//! | 8 | retryable | 408, 409, 425, 5xx, and codes and phrases of overload |
//! | 9 | other | everything else |
//!
//! Rate limits are checked before the phrases of overflows, because their messages also mention
//! tokens, requests and limits. A request that alone exceeds the rate limit gets 413 from Groq and
//! 429 from OpenAI; it must shrink, so it is an overflow.
//!
//! Words such as `moderation` or `rate_limit` are searched in types and codes only: in a message
//! they may be the name of a tool or a model, so there only whole phrases count. If a 404 or the
//! type `invalid_request_error` blames the request itself, phrases of rate limits and overload do
//! not count either. Parts of the body that repeat the request are not searched.

use super::error_body::Report;
use threadfold_core::message::{ModelError, ModelErrorKind};

/// Returns the kind of failure of an error response, with the provider's own message.
///
/// Knows the texts and codes of Anthropic, OpenAI (both APIs), Gemini, Bedrock, Ollama, LM Studio,
/// llama.cpp, vLLM, SGLang, TGI, xAI, Groq, OpenRouter, Mistral, Copilot, MiniMax, Kimi and Cerebras.
/// The token counts of an overflow, and the wait of a rate limit, are read from the body if it states
/// them. Some providers count the tokens reserved for the answer against the window. Then `output` is
/// this reserve and `found` is the prompt alone, or their sum if the body states only the sum.
/// [`retry_after`](super::retry_after) reads the headers. Pass status 0 for an error within a stream:
/// then the status in the body counts, if it has one.
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

fn kind(status: u16, report: &Report) -> ModelErrorKind {
    let Report { limit, found, output, retry_after: after, .. } = *report;
    let overflow = ModelErrorKind::Overflow { limit, found, output };
    let retryable = ModelErrorKind::Retryable { after };
    // The request itself is wrong: the message quotes names of models, tools and fields.
    let names_fault =
        status == 404 || (status == 400 && report.is_coded(&["invalid_request_error"]));
    if report.is_coded(&OVERFLOW_CODES) || report.says(&SHRINK) {
        return overflow;
    }
    if report.is_coded(&QUOTA_CODES) || report.says(&QUOTA) {
        return ModelErrorKind::Other;
    }
    if status == 429 || (status != 413 && is_rate_limit(report, names_fault)) {
        return retryable;
    }
    if report.is_coded(&TOO_MANY_CODES) || report.says(&TOO_MANY) {
        return ModelErrorKind::Overflow { limit: None, found: None, output: None };
    }
    let without_body = status == 400 && report.message.is_empty();
    if status == 413 || without_body || is_overflow(report) {
        return overflow;
    }
    if report.is_coded(&REFUSAL_CODES) || (status != 404 && report.says(&REFUSALS)) {
        return ModelErrorKind::Refused;
    }
    if matches!(status, 401 | 403) || report.is_coded(&AUTHENTICATION_CODES) || report.says(&KEYS) {
        return ModelErrorKind::Authentication;
    }
    if report.says(&TEMPLATES) {
        return ModelErrorKind::Other;
    }
    if matches!(status, 408 | 409 | 425 | 500..) || is_overload(report, names_fault) {
        return retryable;
    }
    ModelErrorKind::Other
}

fn is_rate_limit(report: &Report, names_fault: bool) -> bool {
    report.is_coded(&RATE_LIMIT_CODES) || (!names_fault && report.says(&RATE_LIMITS))
}

fn is_overload(report: &Report, names_fault: bool) -> bool {
    report.is_coded(&OVERLOAD_CODES) || (!names_fault && report.says(&OVERLOADS))
}

/// Whether the message reports that the prompt is too long: a phrase of one provider, or a phrase
/// for the context with a phrase for exceeding it.
fn is_overflow(report: &Report) -> bool {
    let counts_tokens = report.says(&["token", "prompt"]);
    report.says(&OVERFLOWS)
        || report.says(&OVERFLOW_CODES)
        || (report.says(&["exceeds the limit of"]) && counts_tokens)
        || (report.says(&CONTEXTS) && report.says(&OVER))
}

/// Codes that only an overflow has.
const OVERFLOW_CODES: [&str; 3] =
    ["context_length_exceeded", "exceed_context_size_error", "context_window_exceeded"];

/// Codes and phrases for too many messages, pictures or documents, whatever tokens they have. Only a
/// shorter thread helps, and their numbers are not those of tokens.
const TOO_MANY_CODES: [&str; 2] = ["array_above_max_length", "string_above_max_length"];

const TOO_MANY: [&str; 3] = ["too many images", "too many documents", "too many pages"];

/// A request that alone exceeds the limit per minute: only shrinking it helps.
const SHRINK: [&str; 1] = ["tokens must be reduced in order to run"];

const OVERFLOWS: [&str; 14] = [
    "`inputs` tokens + `max_new_tokens` must be",
    "longer than the maximum model length",
    "prompt is too long",
    "prompt too long",
    "input is too long",
    "exceed context limit",
    "exceeds the maximum number of tokens allowed",
    "maximum context length is",
    "maximum prompt length is",
    "reduce the length of the messages",
    "too large for model with",
    "exceeded model token limit",
    "exceeds the available context size",
    "input length exceeds",
];

const CONTEXTS: [&str; 4] = ["context length", "context window", "context size", "context limit"];

const OVER: [&str; 6] =
    ["exceed", "greater than", "longer than", "larger than", "too long", "too large"];

// "You exceeded your current quota" is ambiguous: Gemini also sends it for a quota per minute.
const QUOTA_CODES: [&str; 1] = ["insufficient_quota"];

const QUOTA: [&str; 1] = ["credit balance is too low"];

const RATE_LIMIT_CODES: [&str; 6] = [
    "rate_limit",
    "ratelimit",
    "resource_exhausted",
    "throttling",
    "too_many_requests",
    "toomanyrequests",
];

const RATE_LIMITS: [&str; 8] = [
    "rate limit",
    "ratelimiterror",
    "throttlingexception",
    "too many requests",
    "too many tokens, please wait",
    "tokens per min",
    "requests per min",
    "(tpm)",
];

const REFUSAL_CODES: [&str; 6] = [
    "content_filter",
    "content_policy",
    "responsibleaipolicy",
    "moderation",
    "prohibited_content",
    "guardrail",
];

const REFUSALS: [&str; 12] = [
    "content filter",
    "content policy",
    "content management policy",
    "content moderation",
    "requires moderation",
    "blocked by moderation",
    "was flagged",
    "been flagged",
    "flagged as",
    "usage polic",
    "blocked by guardrail",
    "guardrail intervened",
];

const AUTHENTICATION_CODES: [&str; 11] = [
    "expiredtoken",
    "authentication_error",
    "authenticationerror",
    "permission_error",
    "permission_denied",
    "unauthenticated",
    "unauthorized",
    "invalid_api_key",
    "api_key_invalid",
    "accessdenied",
    "unrecognizedclient",
];

const KEYS: [&str; 4] =
    ["invalid api key", "api key not valid", "incorrect api key", "accessdeniedexception"];

const TEMPLATES: [&str; 2] = ["roles must alternate", "must alternate user"];

const OVERLOAD_CODES: [&str; 9] = [
    "overloaded",
    "server_error",
    "api_error",
    "internalserverexception",
    "serviceunavailable",
    "\nunavailable",
    "modelnotready",
    "modeltimeout",
    "timeout_error",
];

const OVERLOADS: [&str; 3] = ["overloaded", "service unavailable", "try again in"];
