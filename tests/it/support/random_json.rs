//! Parts of the random bodies of all dialects.

use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::{Map, Value, json};

/// Any JSON in which these words are frequent.
pub(crate) fn junk(words: Vec<&'static str>, depth: u32) -> impl Strategy<Value = Value> {
    let words = select(words);
    let word = words.clone();
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(|number| json!(number)),
        word.prop_map(Value::from),
        text_of(|_| true).prop_map(Value::from),
    ];
    leaf.prop_recursive(depth, 40, 6, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(Value::from),
            vec((words.clone(), inner), 0..6).prop_map(|fields| Value::Object(
                fields.into_iter().map(|(k, v)| (k.to_owned(), v)).collect()
            )),
        ]
    })
}

/// Texts for which `keep` returns `true`.
pub(crate) fn text_of(keep: fn(&String) -> bool) -> impl Strategy<Value = String> {
    let known = select(vec!["hello", "Error: x", "é🦀\u{0}", "a\r\n\"b\"\\", "\u{feff}z"]);
    prop_oneof![known.prop_map(str::to_owned), ".{1,12}"].prop_filter("kept", keep)
}

/// Mostly no fields, sometimes one of these objects.
pub(crate) fn rarely(fields: Vec<Value>) -> impl Strategy<Value = Value> {
    prop_oneof![6 => Just(json!({})), 1 => select(fields)]
}

/// Returns an object with more fields after its own.
pub(crate) fn with(mut value: Value, more: Value) -> Value {
    let mut fields: Map<String, Value> = more.as_object().unwrap().clone();
    // The object's own fields win over unknown ones of the same name.
    fields.retain(|key, _| value.get(key).is_none());
    value.as_object_mut().unwrap().append(&mut fields);
    value
}

pub(crate) fn blank_or_text() -> impl Strategy<Value = String> {
    prop_oneof![6 => text_of(|text| !text.trim().is_empty()), 1 => "[ \n\t]{0,3}"]
}

pub(crate) fn text() -> impl Strategy<Value = String> {
    text_of(|_| true)
}
