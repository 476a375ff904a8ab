//! Recall as a tool of an agent.
//!
//! [`spec`] is the tool's description for the model, which the host adds to requests, and
//! [`Recall::call`](super::Recall::call) runs a call.

use serde_json::{Value, json};

use crate::message::ToolSpec;

/// The name of the tool.
pub const RECALL: &str = "recall";

/// The description of the tool for a model.
const ABOUT: &str = include_str!("tool_recall.md");

/// The description of queries, which need the feature `recall`.
const ABOUT_QUERY: &str = include_str!("tool_recall_query.md");

/// Returns the description and schema of the tool for a model. The field `query` needs the feature
/// `recall`.
///
/// ```
/// assert_eq!(threadfold::recall::tool::spec().name, "recall");
/// ```
#[must_use]
pub fn spec() -> ToolSpec {
    let mut properties = json!({
        "from": text("Id of the checkpoint after which the range begins. Leave it out to begin at the start."),
        "to": text("Id of the checkpoint with which the range ends. Leave it out to end with the latest."),
        "message": number("Number of one message to read, instead of a range."),
        "call": text("Id of one tool call whose result was cut, to read the whole result."),
        "offset": number("The offset that the previous answer stated. Leave it out to begin."),
    });
    let mut about = ABOUT.to_owned();
    if cfg!(feature = "recall") {
        about.push('\n');
        about.push_str(ABOUT_QUERY);
        if let Some(properties) = properties.as_object_mut() {
            let query = text("Words to look for, instead of a range or a message.");
            properties.insert("query".to_owned(), query);
        }
    }
    let schema = json!({"type": "object", "properties": properties, "additionalProperties": false});
    ToolSpec::new(RECALL, about.trim_end(), schema)
}

fn text(words: &str) -> Value {
    json!({"type": "string", "description": words})
}

fn number(words: &str) -> Value {
    json!({"type": "integer", "minimum": 0, "description": words})
}
