//! What the model is told of a compaction that it asked for.

use serde::Serialize;

use crate::{message::Text, model::ToolOutput};

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
struct NotCompacted {
    success: bool,
    output: Text,
}

impl Compacted {
    /// What is told where nothing had to be done.
    pub(super) fn nothing(tokens: u64) -> Self {
        Self { tokens_estimate_before: tokens, tokens_estimate_after: tokens, ..Self::default() }
    }

    pub(super) fn output(self) -> ToolOutput {
        json(&self)
    }
}

/// What a compaction that came to nothing is told as.
pub(super) fn not_compacted(output: impl Into<Text>) -> ToolOutput {
    let output = NotCompacted { success: false, output: output.into() };
    ToolOutput { is_error: true, ..json(&output) }
}

fn json<T: Serialize>(value: &T) -> ToolOutput {
    ToolOutput::from(serde_json::to_string(value).unwrap_or_default())
}
