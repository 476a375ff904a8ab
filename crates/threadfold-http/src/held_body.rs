//! Bodies that begin or continue a thread that the provider holds.

use serde_json::{Value, json};
use threadfold::message::{ModelError, ModelErrorKind};

use crate::dialect::Dialect;

/// Whether the whole thread is to be sent, because the provider does not continue the one it had.
pub(crate) fn must_replay(error: &ModelError) -> bool {
    matches!(error.kind, ModelErrorKind::Other)
}

/// The fields of a body with the whole thread that ask the provider to hold it.
pub(crate) fn creating(dialect: Dialect) -> Vec<(&'static str, Value)> {
    match dialect {
        Dialect::Anthropic => vec![("thread", json!({"type": "create"}))],
        Dialect::Responses => vec![("store", json!(true))],
        Dialect::OpenAi | Dialect::Gemini | Dialect::Bedrock | Dialect::Compatible => Vec::new(),
    }
}

/// Returns a body that continues the answer with this id: of the messages it has only those after the
/// model's last one. `None` if there are none, or if the dialect has no such threads.
pub(crate) fn continuing(dialect: Dialect, body: &str, id: &str) -> Option<String> {
    let list = match dialect {
        Dialect::Anthropic => "messages",
        Dialect::Responses => "input",
        Dialect::OpenAi | Dialect::Gemini | Dialect::Bedrock | Dialect::Compatible => return None,
    };
    let mut body: Value = serde_json::from_str(body).ok()?;
    let fields = body.as_object_mut()?;
    let items = fields.get_mut(list)?.as_array_mut()?;
    let last = items.iter().rposition(is_models)?;
    items.drain(..=last);
    if items.is_empty() {
        return None;
    }
    if dialect == Dialect::Anthropic {
        items.iter_mut().for_each(unmark);
    }
    let (key, value) = if dialect == Dialect::Anthropic {
        ("thread", json!({"type": "continue", "previous_message_id": id}))
    } else {
        ("previous_response_id", json!(id))
    };
    fields.insert(key.to_owned(), value);
    Some(body.to_string())
}

/// Removes the cache marks of a message or a block: those of the request that created the thread stay
/// with it, and a thread may have four in all.
fn unmark(item: &mut Value) {
    let Some(fields) = item.as_object_mut() else { return };
    fields.remove("cache_control");
    if let Some(Value::Array(blocks)) = fields.get_mut("content") {
        blocks.iter_mut().for_each(unmark);
    }
}

/// Whether the model wrote a message or an item. Results of tools are the host's.
fn is_models(item: &Value) -> bool {
    let word = |key: &str| item.get(key).and_then(Value::as_str);
    match (word("role"), word("type")) {
        (Some(role), _) => role == "assistant",
        (None, Some(kind)) => !kind.ends_with("_output"),
        (None, None) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_follows_the_last_answer_is_sent() {
        let messages = json!([{"role": "user", "content": "One?"}, {"role": "assistant", "content": "1"},
            {"role": "user", "content": [{"type": "text", "text": "Two?",
                "cache_control": {"type": "ephemeral"}}]}]);
        let body =
            json!({"model": "m", "messages": messages, "thread": {"type": "create"}}).to_string();
        let short = continuing(Dialect::Anthropic, &body, "msg_1").unwrap();
        let expected = json!({"model": "m", "messages": [{"role": "user",
            "content": [{"type": "text", "text": "Two?"}]}],
            "thread": {"type": "continue", "previous_message_id": "msg_1"}});
        assert_eq!(short, expected.to_string());
        assert_eq!(continuing(Dialect::Compatible, &body, "msg_1"), None);
    }

    #[test]
    fn calls_are_the_models_and_their_outputs_are_not() {
        let call = json!({"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"});
        let output = json!({"type": "function_call_output", "call_id": "c", "output": "o"});
        let body = json!({"input": [{"role": "user", "content": "?"}, call, output]}).to_string();
        let short = continuing(Dialect::Responses, &body, "resp_1").unwrap();
        assert_eq!(short, json!({"input": [output], "previous_response_id": "resp_1"}).to_string());
        let open = json!({"input": [{"role": "user", "content": "?"}, call]}).to_string();
        assert_eq!(continuing(Dialect::Responses, &open, "resp_1"), None, "nothing is new");
    }
}
