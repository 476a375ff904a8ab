//! The tool by which the model has the thread compacted.

use serde::Serialize;
use serde_json::json;

use crate::message::ToolSpec;

/// The name of the tool without parameters.
pub const COMPACT_CONTEXT: &str = "compact_context";

/// What the model is told about it.
pub(super) fn compact_context() -> ToolSpec {
    let schema = json!({"type": "object", "properties": {}, "additionalProperties": false});
    ToolSpec::new(
        COMPACT_CONTEXT,
        "Compress conversation history to free up context space. Call it between two pieces of \
         work, when much of what was read or tried is settled and will not be needed word for word \
         again. Everything before the present piece of work is summed up; the user's last message \
         stays.",
        schema,
    )
}

/// What the model is told of a compaction that it asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Compacted {
    pub(super) messages_compressed: usize,
    pub(super) batches_created: usize,
    pub(super) tokens_estimate_before: u64,
    pub(super) tokens_estimate_after: u64,
}

/// What the model is told of one that came to nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct NotCompacted {
    pub(super) success: bool,
    pub(super) output: String,
}
