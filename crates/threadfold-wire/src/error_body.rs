//! Reading error bodies of every provider: messages, codes and numbers.

use std::time::Duration;

use serde_json::Value;

use super::{error_text, json::abridged, overflow, overflow::after, phrases::phrases};
use threadfold_core::message::Text;

/// Bodies with more bytes are not parsed as JSON.
const MAX_BODY: usize = 4 * 1024 * 1024;
/// The number of bytes of a text that are searched. Later bytes usually repeat the request.
const MAX_SEARCHED: usize = 2 * 1024;
/// The maximum length of the kept message, in characters.
const MAX_MESSAGE: usize = 2_000;
/// Fields that repeat the request and are not searched.
const ECHOES: [&str; 7] = ["input", "body", "ctx", "request", "messages", "prompt", "params"];

/// The contents of an error body that classification needs.
#[derive(Debug)]
pub(super) struct Report {
    /// The beginning of the provider's message.
    pub(super) message: Text,
    /// The searched beginnings of the messages, in lower case, without the texts that they quote.
    words: String,
    /// Whether the error is about another field than the messages and the length of the answer.
    pub(super) blames_other_field: bool,
    /// Whether the error is about a single message.
    pub(super) blames_one_message: bool,
    /// Types and codes in lower case, one a line. A message of one word counts as a code.
    codes: String,
    /// The HTTP status that the body names.
    pub(super) status: Option<u16>,
    /// How long the provider asks to wait.
    pub(super) retry_after: Option<Duration>,
    /// The window in tokens.
    pub(super) limit: Option<u64>,
    /// The prompt in tokens. If the message counts prompt and answer, the answer is subtracted.
    pub(super) found: Option<u64>,
    /// The tokens that were reserved for the answer.
    pub(super) output: Option<u64>,
}

impl Report {
    /// Reads a body: JSON in any of the shapes that providers use, or text.
    pub(super) fn read(body: &[u8]) -> Self {
        let whole = Some(body).filter(|body| body.len() <= MAX_BODY);
        let whole = whole.and_then(|body| str::from_utf8(body).ok());
        let value: Option<Value> = whole.and_then(|body| serde_json::from_str(body).ok());
        let beginning = body.get(..MAX_MESSAGE * 5).unwrap_or(body);
        let text = String::from_utf8_lossy(beginning);
        let mut fields = Found::default();
        value.iter().for_each(|value| fields.gather(value));
        if fields.messages.is_empty() {
            fields.messages.push(text.trim().to_owned());
        }
        // Plain text does not distinguish messages from codes, so search it as both.
        let mut codes: Vec<&str> = fields.codes.iter().map(String::as_str).collect();
        let mut texts: Vec<&str> = fields.messages.iter().map(|text| searched(text)).collect();
        let subjects = fields.subjects.iter().map(String::as_str);
        let blames_other_field = error_text::blames_other_field(subjects, &texts);
        let blames_one_message = texts.iter().any(|text| error_text::blames_one_message(text));
        let own: Vec<String> = texts.iter().map(|text| error_text::without_quotes(text)).collect();
        let words = own.join(": ");
        texts.retain(|text| value.is_none() || !text.contains(char::is_whitespace));
        codes.extend(texts);
        Self {
            message: abridged(&fields.messages.join(": "), MAX_MESSAGE).into(),
            codes: codes.join("\n").to_ascii_lowercase(),
            status: fields.status,
            retry_after: fields.retry_after.or_else(|| wait(&words)),
            limit: fields.limit.or_else(|| overflow::stated(&words, "limit")),
            found: fields.found.or_else(|| overflow::found(&words)),
            output: overflow::output(&words),
            blames_other_field,
            blames_one_message,
            words,
        }
    }

    /// Whether a message, a type or a code has this meaning.
    pub(super) fn mentions(&self, meaning: &str) -> bool {
        self.is_coded(meaning) || self.message_mentions(meaning)
    }

    /// Whether a message has this meaning.
    pub(super) fn message_mentions(&self, meaning: &str) -> bool {
        phrases(meaning, "text").any(|phrase| self.words.contains(phrase))
    }

    /// Whether a type or code has this meaning.
    pub(super) fn is_coded(&self, meaning: &str) -> bool {
        phrases(meaning, "code").any(|word| match word.strip_prefix('^') {
            Some(start) => self.codes.lines().any(|code| code.starts_with(start)),
            None if word.bytes().all(|byte| byte.is_ascii_digit()) => {
                self.codes.lines().any(|code| code == word)
            }
            None => self.codes.contains(word),
        })
    }
}

/// The wait that a message asks for.
fn wait(words: &str) -> Option<Duration> {
    phrases("wait", "after")
        .find_map(|before| duration(after(words, before)?.trim_start_matches(['~', ' '])))
}

/// The values found in the fields of the JSON.
#[derive(Debug, Default)]
struct Found {
    messages: Vec<String>,
    codes: Vec<String>,
    /// The fields of the request that the error is about.
    subjects: Vec<String>,
    status: Option<u16>,
    retry_after: Option<Duration>,
    found: Option<u64>,
    limit: Option<u64>,
}

impl Found {
    /// Walks the whole tree, because providers and gateways nest errors in errors. The size and
    /// depth of the tree are bounded by those of the body.
    fn gather(&mut self, value: &Value) {
        match value {
            Value::Object(fields) => {
                for (key, value) in fields {
                    self.field(key, value);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.gather(item)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn field(&mut self, key: &str, value: &Value) {
        match (key.to_ascii_lowercase().as_str(), value) {
            (
                "message" | "error" | "detail" | "msg" | "status_msg" | "error_message",
                Value::String(text),
            ) => {
                self.message(text);
            }
            // A gateway may pass on the provider's error body as a string.
            ("raw", Value::String(text)) => match serde_json::from_str(text) {
                Ok(inner @ Value::Object(_)) => self.gather(&inner),
                Ok(_) | Err(_) => self.message(text),
            },
            (
                "type" | "__type" | "code" | "status" | "reason" | "finish_reason",
                Value::String(code),
            ) => {
                self.codes.push(code.clone());
            }
            ("code" | "status" | "status_code", Value::Number(number)) => {
                let status = number.as_u64().and_then(|number| u16::try_from(number).ok());
                let status = status.filter(|status| (400..600).contains(status));
                self.status = self.status.or(status);
                // Other numbers are codes of the provider.
                self.codes.extend(status.is_none().then(|| number.to_string()));
            }
            ("param", Value::String(subject)) => self.subjects.push(subject.clone()),
            ("resets_in_seconds" | "reset_after_seconds" | "quotaresetdelay", value) => {
                self.retry_after = self.retry_after.or_else(|| delay(value));
            }
            ("retrydelay" | "retry_delay" | "retry_after" | "retry-after", value) => {
                self.retry_after = self.retry_after.or_else(|| delay(value));
            }
            ("retry_after_ms", value) => {
                let millis = value.as_u64().map(Duration::from_millis).filter(is_sane);
                self.retry_after = self.retry_after.or(millis);
            }
            ("n_prompt_tokens", value) => self.found = value.as_u64(),
            ("n_ctx", value) => self.limit = value.as_u64(),
            (key, _) if ECHOES.contains(&key) => {}
            (_, value) => self.gather(value),
        }
    }

    /// Takes a message. Gateways pass on the provider's error body as JSON within a text.
    fn message(&mut self, text: &str) {
        let text = text.trim();
        if let Some((before, inner)) = error_text::inner_body(text) {
            self.gather(&inner);
            return self.add_message(before);
        }
        self.add_message(text);
    }

    fn add_message(&mut self, text: &str) {
        if !text.is_empty()
            && !self.messages.iter().any(|known| known == text)
            && self.messages.len() < 4
        {
            self.messages.push(text.to_owned());
        }
    }
}

fn delay(value: &Value) -> Option<Duration> {
    match value {
        Value::String(text) => duration(text),
        Value::Number(seconds) => seconds_to_duration(seconds.as_f64()?),
        Value::Object(parts) => seconds_to_duration(parts.get("seconds")?.as_f64()?),
        Value::Null | Value::Bool(_) | Value::Array(_) => None,
    }
}

/// Reads the duration that a text begins with: `20s`, `1m3.5s`, `250ms`, `5 seconds`, `7`.
pub(super) fn duration(text: &str) -> Option<Duration> {
    let mut rest = text.trim_start();
    let mut seconds = None;
    loop {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (digits, after_it) = rest.split_at(end);
        let Ok(amount) = digits.trim_end_matches('.').parse::<f64>() else { break };
        let unit = after_it.trim_start_matches(' ');
        let end = unit.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(unit.len());
        let (unit, after_it) = unit.split_at(end);
        let Some(factor) = factor(unit) else { break };
        seconds = Some(seconds.unwrap_or(0.0) + amount * factor);
        rest = after_it;
        if unit.is_empty() {
            break;
        }
    }
    seconds_to_duration(seconds?)
}

/// The seconds in a unit; without a unit the number is in seconds.
fn factor(unit: &str) -> Option<f64> {
    match unit {
        "" | "s" | "sec" | "secs" | "second" | "seconds" => Some(1.0),
        "ms" | "millisecond" | "milliseconds" => Some(0.001),
        "m" | "min" | "mins" | "minute" | "minutes" => Some(60.0),
        "h" | "hr" | "hrs" | "hour" | "hours" => Some(3_600.0),
        "d" | "day" | "days" => Some(86_400.0),
        _ => None,
    }
}

fn seconds_to_duration(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds).ok().filter(is_sane)
}

/// Rejects waits of more than a day, which are probably misread values.
pub(super) fn is_sane(duration: &Duration) -> bool {
    *duration <= Duration::from_secs(24 * 60 * 60)
}

/// Returns the beginning of a text that is searched.
fn searched(text: &str) -> &str {
    let mut ends = (0..=MAX_SEARCHED).rev();
    ends.find_map(|end| text.get(..end)).filter(|_| text.len() > MAX_SEARCHED).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_in_every_spelling() {
        let rows = [
            ("20s.", Some(20_000)),
            ("1m3.5s", Some(63_500)),
            ("250ms (limit)", Some(250)),
            ("5 seconds", Some(5_000)),
            ("7", Some(7_000)),
            ("6m0s. visit", Some(360_000)),
            ("2 days", None),
            ("a while", None),
            ("99999999999999999999s", None),
            ("", None),
        ];
        for (text, millis) in rows {
            assert_eq!(duration(text), millis.map(Duration::from_millis), "{text}");
        }
    }
}
