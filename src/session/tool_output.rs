//! Results of the tool `compact_context`.

use serde::Serialize;

use crate::{message::Text, model::ToolOutput};

/// The result of a compaction that succeeded or was not needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Compacted {
    pub(super) messages_compressed: usize,
    pub(super) batches_created: usize,
    pub(super) tokens_estimate_before: u64,
    pub(super) tokens_estimate_after: u64,
}

/// The result of a compaction that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct NotCompacted {
    success: bool,
    output: Text,
}

impl Compacted {
    /// The result if nothing had to be compacted.
    pub(super) fn nothing(tokens: u64) -> Self {
        Self { tokens_estimate_before: tokens, tokens_estimate_after: tokens, ..Self::default() }
    }

    pub(super) fn output(self) -> ToolOutput {
        json(&self)
    }
}

/// The error result of a failed compaction.
pub(super) fn not_compacted(output: impl Into<Text>) -> ToolOutput {
    let output = NotCompacted { success: false, output: output.into() };
    ToolOutput { is_error: true, ..json(&output) }
}

fn json<T: Serialize>(value: &T) -> ToolOutput {
    let json = serde_json::to_string(value);
    debug_assert!(json.is_ok(), "numbers, booleans and texts have a JSON form");
    ToolOutput::from(json.unwrap_or_default())
}
