//! Reading the window with which a server runs a model.
//!
//! A server may run a model with a smaller window than the model supports, so only the configured
//! window is read:
//!
//! | server | request | field |
//! |---|---|---|
//! | llama.cpp | `GET /props` | `default_generation_settings.n_ctx` |
//! | llama.cpp | `GET /slots` | `n_ctx` of each slot |
//! | vLLM, SGLang | `GET /v1/models` | `max_model_len` |
//! | LM Studio | `GET /api/v0/models` | `loaded_context_length`; `max_context_length` is the model's |
//! | Ollama | `POST /api/show` | `num_ctx` in `parameters`; `model_info` is the model's, but for a model that runs elsewhere (`remote_host`) |
//! | Ollama | `GET /api/ps`, once the model is loaded | `context_length` |
//! | LiteLLM | `GET /model/info` | `model_info.max_input_tokens` |
//! | OpenRouter | `GET /api/v1/models` | `context_length` |

use serde_json::Value;

use threadfold_core::message::ContextWindow;

/// Returns the window that a server's answer states for this model, in tokens; `None` if it states
/// none, for example because the model is not loaded yet.
///
/// Knows the answers of llama.cpp (`/props`, `/slots`), vLLM (`/v1/models`), LM Studio
/// (`/api/v0/models`), Ollama (`/api/show`, `/api/ps`), LiteLLM (`/model/info`) and OpenRouter
/// (`/api/v1/models`). A server may run a model with a smaller window than the model supports, so
/// LM Studio's `max_context_length` and Ollama's `model_info` are ignored. If a gateway lists
/// several servers under one name, the smallest window counts.
///
/// ```
/// use serde_json::json;
/// use threadfold::{ContextWindow, wire::window_of};
///
/// let models = json!({"data": [{"id": "qwen3-8b", "max_model_len": 40_960}]});
/// assert_eq!(window_of(&models, "qwen3-8b"), Some(ContextWindow::new(40_960)));
/// let props = json!({"default_generation_settings": {"n_ctx": 8_192}});
/// assert_eq!(window_of(&props, "whatever"), Some(ContextWindow::new(8_192)));
/// assert_eq!(window_of(&models, "another"), None);
/// ```
#[must_use]
pub fn window_of(answer: &Value, model: &str) -> Option<ContextWindow> {
    let list = answer.as_array();
    let list = list.or_else(|| answer.get("data").or_else(|| answer.get("models"))?.as_array());
    let tokens = match list {
        Some(entries) => {
            let entries = entries.iter().filter(|entry| is_of(entry, model));
            entries.filter_map(entry_window).min()
        }
        None => answer_window(answer),
    };
    tokens.map(ContextWindow::new)
}

/// The window in an answer about one model.
fn answer_window(answer: &Value) -> Option<u64> {
    if let Some(tokens) = tokens(answer.pointer("/default_generation_settings/n_ctx")) {
        return Some(tokens);
    }
    let parameters = answer.get("parameters").and_then(Value::as_str).unwrap_or_default();
    let set = parameters.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        words.next().filter(|name| *name == "num_ctx")?;
        words.next()?.parse().ok().filter(|tokens| *tokens > 0)
    });
    set.or_else(|| {
        answer.get("remote_host")?;
        let facts = answer.get("model_info")?.as_object()?;
        let found = facts.iter().find(|(key, _)| key.ends_with(".context_length"));
        found.and_then(|(_, value)| tokens(Some(value)))
    })
}

/// Whether an entry of a list is about this model. Slots have no name: all are of the same model.
fn is_of(entry: &Value, model: &str) -> bool {
    const NAMES: [&str; 4] = ["id", "name", "model", "model_name"];
    let mut names = NAMES.iter().filter_map(|key| entry.get(key)?.as_str()).peekable();
    let latest = format!("{model}:latest");
    names.peek().is_none() || names.any(|name| name == model || name == latest)
}

fn entry_window(entry: &Value) -> Option<u64> {
    const PLACES: [&str; 5] = [
        "/max_model_len",
        "/loaded_context_length",
        "/context_length",
        "/n_ctx",
        "/model_info/max_input_tokens",
    ];
    PLACES.iter().find_map(|place| tokens(entry.pointer(place)))
}

/// A number of tokens; `None` for zero and less.
fn tokens(value: Option<&Value>) -> Option<u64> {
    value?.as_u64().filter(|tokens| *tokens > 0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_server_says_its_window_in_its_own_way() {
        let lm_studio = json!({"object": "list", "data": [
            {"id": "other", "type": "llm", "state": "loaded", "max_context_length": 32_768,
                "loaded_context_length": 1_024},
            {"id": "m-1", "type": "llm", "state": "loaded", "max_context_length": 131_072,
                "loaded_context_length": 4_096},
        ]});
        let show = |parameters: &str| {
            json!({"parameters": parameters, "details": {"family": "llama"}, "model_info": {
                "general.architecture": "llama", "llama.context_length": 131_072}})
        };
        let mut remote = show("temperature 0.7");
        remote["remote_host"] = json!("https://ollama.com:443");
        let deployment = |name: &str, tokens: Value| {
            json!({"model_name": name, "litellm_params": {"model": "openai/x"},
                "model_info": {"id": "1", "max_tokens": 4_096, "max_input_tokens": tokens}})
        };
        let rows = [
            (
                json!({"default_generation_settings": {"id": 0, "n_ctx": 8_192}, "total_slots": 4}),
                Some(8_192),
            ),
            (json!({"default_generation_settings": {"n_ctx": 0}}), None),
            (json!([{"id": 0, "n_ctx": 4_096}, {"id": 1, "n_ctx": 2_048}]), Some(2_048)),
            (
                json!({"object": "list", "data": [{"id": "m-1", "max_model_len": 40_960}]}),
                Some(40_960),
            ),
            (json!({"object": "list", "data": [{"id": "m-2", "max_model_len": 40_960}]}), None),
            (json!({"object": "list", "data": [{"id": "m-1", "max_model_len": null}]}), None),
            (json!({"object": "list", "data": [{"id": "m-1", "owned_by": "openai"}]}), None),
            (lm_studio, Some(4_096)),
            (
                json!({"data": [{"id": "m-1", "state": "not-loaded", "max_context_length": 131_072}]}),
                None,
            ),
            (show("stop  \"<|eot|>\"\nnum_ctx                        16384\n"), Some(16_384)),
            (show("stop \"num_ctx 5\"\nnum_ctx many"), None),
            (show(""), None),
            (remote, Some(131_072)),
            (
                json!({"models": [{"name": "m-1:latest", "model": "m-1:latest", "context_length": 32_768}]}),
                Some(32_768),
            ),
            (json!({"models": []}), None),
            (
                json!({"data": [deployment("m-1", json!(200_000)), deployment("m-1", json!(128_000)),
                deployment("m-2", json!(1))]}),
                Some(128_000),
            ),
            (json!({"data": [deployment("m-1", json!(null))]}), None),
            (json!({"data": [{"id": "m-1", "context_length": 262_144}]}), Some(262_144)),
            (json!({"data": [{"id": "m-1", "context_length": -1}]}), None),
            (json!({"error": "not found"}), None),
            (json!("m-1"), None),
            (json!(null), None),
        ];
        for (answer, expected) in rows {
            let found = window_of(&answer, "m-1").map(ContextWindow::tokens);
            assert_eq!(found, expected, "{answer}");
        }
    }
}
