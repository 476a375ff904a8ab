//! Results of a provider's own tools, without the parts that only the provider can read.

use serde_json::{Map, Value};

use crate::message::Json;

/// The readable part of a result.
pub(super) struct Readable {
    pub(super) text: String,
    pub(super) is_error: bool,
}

/// Returns the readable part of a result: a list for links, the code of an error, otherwise JSON
/// without encrypted and binary fields. `None` if the result nests too deeply to be parsed.
pub(super) fn readable(content: &Json) -> Option<Readable> {
    let mut value = content.to_value().ok()?;
    if let Some(code) = value.get("error_code").and_then(Value::as_str) {
        return Some(Readable { text: code.to_owned(), is_error: true });
    }
    if let Some(text) = link_list(&value) {
        return Some(Readable { text, is_error: false });
    }
    remove_unreadable(&mut value);
    Some(Readable { text: value.to_string(), is_error: false })
}

/// Returns a list of links if the result consists only of links.
fn link_list(value: &Value) -> Option<String> {
    let entries = value.as_array().filter(|entries| !entries.is_empty())?;
    entries.iter().map(|entry| link_line(entry.as_object()?)).collect()
}

fn link_line(entry: &Map<String, Value>) -> Option<String> {
    let url = entry.get("url")?.as_str()?;
    let title = entry.get("title").and_then(Value::as_str).unwrap_or(url);
    let age = entry.get("page_age").and_then(Value::as_str);
    let age = age.map(|age| format!(" ({age})")).unwrap_or_default();
    Some(format!("- [{title}]({url}){age}\n"))
}

/// Removes encrypted and binary fields.
fn remove_unreadable(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            let is_base64 = fields.get("type").and_then(Value::as_str) == Some("base64");
            fields.retain(|key, _| !(key.starts_with("encrypted_") || is_base64 && key == "data"));
            fields.values_mut().for_each(remove_unreadable);
        }
        Value::Array(values) => values.iter_mut().for_each(remove_unreadable),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(json: &str) -> Option<String> {
        readable(&Json::parse(json).unwrap()).map(|readable| readable.text)
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
    fn an_error_is_rendered_as_its_code() {
        let error = readable(&Json::parse(r#"{"error_code":"unavailable"}"#).unwrap()).unwrap();
        assert!(error.is_error);
        assert_eq!(error.text, "unavailable");
    }

    #[test]
    fn a_result_that_nests_too_deep_is_not_shown() {
        assert_eq!(text(&format!("{}{}", "[".repeat(500), "]".repeat(500))), None);
    }
}
