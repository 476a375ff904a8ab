//! What the conversions share: the list of adjustments, and reading fields of JSON.

use serde_json::{Map, Value};
use threadfold::{
    message::Text,
    wire::{Adjustment, Change},
};

/// The adjustments so far.
#[derive(Debug)]
pub(crate) struct Notes(pub(crate) Vec<Adjustment>);

impl Notes {
    pub(crate) fn note(&mut self, change: Change) {
        self.0.push(Adjustment::whole(change));
    }

    pub(crate) fn drop_block(&mut self, kind: &str, reason: &str) {
        self.note(Change::BlockDropped { kind: kind.into(), reason: reason.into() });
    }

    /// Reports that these fields were dropped, if there are any.
    pub(crate) fn drop_fields(&mut self, codec: &str, fields: &Map<String, Value>) {
        let fields: Vec<Text> = fields.keys().map(|key| Text::from(key.as_str())).collect();
        if !fields.is_empty() {
            self.note(Change::FieldsDropped { codec: codec.into(), fields });
        }
    }
}

pub(crate) fn array(value: Option<Value>) -> Vec<Value> {
    if let Some(Value::Array(values)) = value { values } else { Vec::new() }
}

/// Returns the fields of an object; none for other values.
pub(crate) fn object(value: Value) -> Map<String, Value> {
    if let Value::Object(fields) = value { fields } else { Map::new() }
}

/// Returns the text of a field.
pub(crate) fn text<'v>(value: &'v Value, key: &str) -> Option<&'v str> {
    value.get(key)?.as_str()
}

/// Removes and returns a field that is a string.
pub(crate) fn take_text(fields: &mut Map<String, Value>, key: &str) -> Option<String> {
    if !fields.get(key)?.is_string() {
        return None;
    }
    if let Some(Value::String(text)) = fields.remove(key) { Some(text) } else { None }
}
