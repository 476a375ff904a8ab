//! Results of the tool `compact_context`.

pub(super) use crate::compaction::ContextCompacted as Compacted;
use crate::{compaction, message::Text, model::ToolOutput};

impl Compacted {
    pub(super) fn output(self) -> ToolOutput {
        ToolOutput::from(self.text())
    }
}

/// The error result of a failed compaction.
pub(super) fn not_compacted(output: impl Into<Text>) -> ToolOutput {
    ToolOutput::error(compaction::not_compacted(output))
}
