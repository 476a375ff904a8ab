//! The tool with which the model reads what was compacted away.

use super::session::Session;
use crate::{
    message::ToolUse,
    model::ToolOutput,
    recall::{MAX_BYTES, Recall},
};

impl Session {
    /// Answers a call from the log. An invalid call gets an error result.
    pub(super) fn recall(&self, call: &ToolUse) -> ToolOutput {
        let input = call.input.json().and_then(|input| input.to_value());
        let input = match input {
            Ok(input) => input,
            Err(error) => return ToolOutput::error(format!("Nothing was recalled: {error}.")),
        };
        let recall = Recall::of(self.log()).within(self.recall_bytes());
        let recall = match self.journal.redactor() {
            Some(redactor) => recall.redacted_by(redactor.as_ref()),
            None => recall,
        };
        match recall.call(&input) {
            Ok(text) => ToolOutput::from(text),
            Err(error) => ToolOutput::error(format!("Nothing was recalled: {error}.")),
        }
    }

    /// An eighth of the window, at four bytes a token, which is half of its tokens in bytes.
    fn recall_bytes(&self) -> usize {
        let tokens = self.window().map_or(u64::MAX, |window| window.tokens());
        usize::try_from(tokens / 2).map_or(MAX_BYTES, |bytes| bytes.min(MAX_BYTES))
    }
}
