//! What a provider's own tool gave, without what only the provider can read.

use serde_json::{Map, Value};

use crate::message::Json;

/// The readable part of a result.
pub(super) struct Shown {
    pub(super) text: String,
    pub(super) is_error: bool,
}

/// Returns what can be read in a result: a list for links, the code of an error, otherwise JSON
/// without encrypted fields and binary data. Nothing if it nests too deeply to be looked through.
pub(super) fn shown(content: &Json) -> Option<Shown> {
    let mut value = content.to_value().ok()?;
    if let Some(code) = value.get("error_code").and_then(Value::as_str) {
        return Some(Shown { text: code.to_owned(), is_error: true });
    }
    if let Some(text) = list(&value) {
        return Some(Shown { text, is_error: false });
    }
    make_readable(&mut value);
    Some(Shown { text: value.to_string(), is_error: false })
}

/// A list of links, if that is all there is.
fn list(value: &Value) -> Option<String> {
    let entries = value.as_array().filter(|entries| !entries.is_empty())?;
    entries.iter().map(|entry| line(entry.as_object()?)).collect()
}

fn line(entry: &Map<String, Value>) -> Option<String> {
    let url = entry.get("url")?.as_str()?;
    let title = entry.get("title").and_then(Value::as_str).unwrap_or(url);
    let age = entry.get("page_age").and_then(Value::as_str);
    let age = age.map(|age| format!(" ({age})")).unwrap_or_default();
    Some(format!("- [{title}]({url}){age}\n"))
}

/// Takes out fields that no reader can use.
fn make_readable(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            let is_base64 = fields.get("type").and_then(Value::as_str) == Some("base64");
            let is_useless =
                |key: &str| key.starts_with("encrypted_") || is_base64 && key == "data";
            fields.retain(|key, _| !is_useless(key));
            fields.values_mut().for_each(make_readable);
        }
        Value::Array(values) => values.iter_mut().for_each(make_readable),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(json: &str) -> Option<String> {
        shown(&Json::parse(json).unwrap()).map(|shown| shown.text)
    }

    #[test]
    fn links_are_a_list_without_payloads() {
        let json = r#"[{"type":"web_search_result","title":"A","url":"https://a.org",
            "encrypted_content":"xyz","page_age":"2 days"},{"url":"https://b.org"}]"#;
        let expected = "- [A](https://a.org) (2 days)\n- [https://b.org](https://b.org)\n";
        assert_eq!(text(json).as_deref(), Some(expected));
    }

    #[test]
    fn encrypted_fields_and_binary_data_never_appear() {
        let json =
            r#"{"a":[{"encrypted_stdout":"x","b":1}],"source":{"type":"base64","data":"QQ"}}"#;
        let expected = r#"{"a":[{"b":1}],"source":{"type":"base64"}}"#;
        assert_eq!(text(json).as_deref(), Some(expected));
    }

    #[test]
    fn an_error_is_its_code() {
        let shown = shown(&Json::parse(r#"{"error_code":"unavailable"}"#).unwrap()).unwrap();
        assert!(shown.is_error);
        assert_eq!(shown.text, "unavailable");
    }

    #[test]
    fn what_is_too_deep_is_not_shown() {
        assert_eq!(text(&format!("{}{}", "[".repeat(500), "]".repeat(500))), None);
    }
}
