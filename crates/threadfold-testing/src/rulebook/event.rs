//! Events of streams.

use serde_json::Value;

/// An event of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Its name, if the vendor names its events.
    pub name: Option<String>,
    /// Its data.
    pub data: Value,
}

impl Event {
    /// An event that is named by the `type` of its data.
    pub(super) fn typed(data: Value) -> Self {
        let name = data.get("type").and_then(Value::as_str).map(str::to_owned);
        Self { name, data }
    }

    pub(super) fn unnamed(data: Value) -> Self {
        Self { name: None, data }
    }

    pub(super) fn named(name: &str, data: Value) -> Self {
        Self { name: Some(name.to_owned()), data }
    }
}
