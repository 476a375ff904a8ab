//! Requests and replies of HTTP as values.

use std::fmt::Write as _;

use serde_json::Value;

use super::{event::Event, frames};

/// A request: what an HTTP client sends, without the connection.
#[derive(Clone, Copy, Debug)]
pub struct HttpCall<'a> {
    /// The path with its query, such as `/v1/messages?beta=true`.
    pub path: &'a str,
    /// The headers. Names are compared without regard to case.
    pub headers: &'a [(&'a str, &'a str)],
    /// The body.
    pub body: &'a [u8],
}

impl<'a> HttpCall<'a> {
    /// The value of a header; the values of one that occurs more than once are all in it.
    pub(super) fn header(&self, name: &str) -> Option<String> {
        let values = self.headers.iter().filter(|(key, _)| key.eq_ignore_ascii_case(name));
        let values: Vec<&str> = values.map(|(_, value)| *value).collect();
        (!values.is_empty()).then(|| values.join(","))
    }

    /// The query, without its question mark.
    pub(super) fn query(&self) -> &'a str {
        self.path.split_once('?').map_or("", |(_, query)| query)
    }

    /// The path without its query.
    pub(super) fn route(&self) -> &'a str {
        self.path.split('?').next().unwrap_or(self.path)
    }
}

/// A reply.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// The status of HTTP.
    pub status: u16,
    /// The headers, `content-type` among them.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: ReplyBody,
}

/// The body of a reply.
#[derive(Clone, Debug, PartialEq)]
pub enum ReplyBody {
    /// One JSON value.
    Json(Value),
    /// Server-sent events.
    Events(Vec<Event>),
    /// The events of a stream as one JSON array, which Gemini sends without `alt=sse`.
    Array(Vec<Value>),
    /// The events of a stream in the binary frames of AWS.
    Frames(Vec<Event>),
}

impl Reply {
    pub(super) fn json(status: u16, body: Value) -> Self {
        Self::of(status, "application/json", ReplyBody::Json(body))
    }

    pub(super) fn of(status: u16, content_type: &str, body: ReplyBody) -> Self {
        let headers = vec![("content-type".to_owned(), content_type.to_owned())];
        Self { status, headers, body }
    }

    /// Returns the bytes of the body as the vendor sends them.
    ///
    /// ```
    /// use serde_json::json;
    /// use threadfold_testing::rulebook::{Reply, ReplyBody};
    ///
    /// let body = ReplyBody::Json(json!({"input_tokens": 7}));
    /// let reply = Reply { status: 200, headers: Vec::new(), body };
    /// assert_eq!(reply.bytes(), br#"{"input_tokens":7}"#);
    /// ```
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        match &self.body {
            ReplyBody::Json(value) => value.to_string().into_bytes(),
            ReplyBody::Array(values) => {
                let values: Vec<String> = values.iter().map(Value::to_string).collect();
                format!("[{}]", values.join("\n,\r\n")).into_bytes()
            }
            ReplyBody::Frames(events) => events.iter().flat_map(frames::written).collect(),
            ReplyBody::Events(events) => {
                let mut text = String::new();
                for event in events {
                    if let Some(name) = &event.name {
                        // Writing to a string cannot fail.
                        let _ = writeln!(text, "event: {name}");
                    }
                    // A text is not JSON here: the `[DONE]` of OpenAI.
                    let _ = match &event.data {
                        Value::String(word) => write!(text, "data: {word}\n\n"),
                        data @ (Value::Null
                        | Value::Bool(_)
                        | Value::Number(_)
                        | Value::Array(_)
                        | Value::Object(_)) => write!(text, "data: {data}\n\n"),
                    };
                }
                text.into_bytes()
            }
        }
    }
}
