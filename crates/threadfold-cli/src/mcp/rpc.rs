//! The lines of the protocol: JSON-RPC 2.0.

use serde_json::{Map, Value, json};

pub(super) const PARSE_ERROR: i64 = -32700;
pub(super) const INVALID_REQUEST: i64 = -32600;
pub(super) const METHOD_NOT_FOUND: i64 = -32601;
pub(super) const INVALID_PARAMS: i64 = -32602;
pub(super) const INTERNAL_ERROR: i64 = -32603;

/// The maximum length of an id that is a text, in bytes. Answers repeat it.
const MAX_ID: usize = 1_000;

/// The calls of one line.
#[derive(Debug, PartialEq)]
pub(super) enum Message {
    One(Call),
    Batch(Vec<Call>),
}

#[derive(Debug, PartialEq)]
pub(super) enum Call {
    Request {
        id: Value,
        method: String,
        params: Map<String, Value>,
    },
    /// A notification or an answer, which has no answer of its own.
    Notification,
    Invalid {
        id: Value,
        error: Error,
    },
}

#[derive(Debug, PartialEq)]
pub(super) struct Error {
    pub(super) code: i64,
    pub(super) words: String,
    pub(super) data: Option<Value>,
}

impl Error {
    pub(super) fn new(code: i64, words: impl Into<String>) -> Self {
        Self { code, words: words.into(), data: None }
    }
}

/// Reads a line.
pub(super) fn read(line: &[u8]) -> Result<Message, Error> {
    let value: Value = serde_json::from_slice(line).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        Error::new(PARSE_ERROR, format!("not JSON, at line {line} column {column}"))
    })?;
    let Value::Array(calls) = value else { return Ok(Message::One(Call::of(value))) };
    if calls.is_empty() {
        return Err(Error::new(INVALID_REQUEST, "a batch needs a call"));
    }
    Ok(Message::Batch(calls.into_iter().map(Call::of).collect()))
}

/// The answer that reports an error.
pub(super) fn error(id: &Value, error: &Error) -> Value {
    let mut body = json!({"code": error.code, "message": error.words});
    if let (Some(body), Some(data)) = (body.as_object_mut(), &error.data) {
        body.insert("data".to_owned(), data.clone());
    }
    json!({"jsonrpc": "2.0", "id": id, "error": body})
}

impl Call {
    fn of(value: Value) -> Self {
        let invalid =
            |id, words: &str| Self::Invalid { id, error: Error::new(INVALID_REQUEST, words) };
        let Value::Object(mut call) = value else {
            return invalid(Value::Null, "a call must be an object");
        };
        let has_id = call.contains_key("id");
        let id = call.remove("id").filter(is_id).unwrap_or_default();
        let is_answer = call.contains_key("result") || call.contains_key("error");
        let method = match call.remove("method") {
            Some(Value::String(method)) => method,
            None if is_answer => return Self::Notification,
            Some(_) | None => return invalid(id, "a call needs a method, which is a text"),
        };
        if call.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
            return invalid(id, "a call needs \"jsonrpc\": \"2.0\"");
        }
        if !has_id {
            return Self::Notification;
        }
        if id.is_null() {
            return invalid(id, "an id must be a number or a short text");
        }
        match call.remove("params") {
            None | Some(Value::Null) => Self::Request { id, method, params: Map::new() },
            Some(Value::Object(params)) => Self::Request { id, method, params },
            Some(_) => {
                let error = Error::new(INVALID_PARAMS, "params must be an object");
                Self::Invalid { id, error }
            }
        }
    }
}

fn is_id(id: &Value) -> bool {
    id.is_number() || id.as_str().is_some_and(|id| id.len() <= MAX_ID)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_a_call_or_an_error() {
        let code = |line: &str| match read(line.as_bytes()) {
            Ok(Message::One(Call::Invalid { error, .. })) => Some(error.code),
            Ok(Message::One(Call::Request { .. })) => Some(0),
            Ok(Message::One(Call::Notification) | Message::Batch(_)) => None,
            Err(error) => Some(error.code),
        };
        let rows = [
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, Some(0)),
            (r#"{"jsonrpc":"2.0","id":"a","method":"ping","params":null}"#, Some(0)),
            (r#"{"jsonrpc":"2.0","method":"ping"}"#, None),
            (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, None),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, Some(INVALID_REQUEST)),
            (r#"{"jsonrpc":"2.0","id":[],"method":"ping"}"#, Some(INVALID_REQUEST)),
            (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, Some(INVALID_REQUEST)),
            (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, Some(INVALID_REQUEST)),
            (r#"{"jsonrpc":"2.0","id":1}"#, Some(INVALID_REQUEST)),
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#, Some(INVALID_PARAMS)),
            ("7", Some(INVALID_REQUEST)),
            ("[]", Some(INVALID_REQUEST)),
            ("{", Some(PARSE_ERROR)),
            ("\u{feff}{}", Some(PARSE_ERROR)),
        ];
        for (line, expected) in rows {
            assert_eq!(code(line), expected, "{line}");
        }
    }
}
