//! What a rendering includes.

use serde::{Deserialize, Serialize};

/// What a rendering includes. The default is what a summary needs.
///
/// ```
/// use threadfold::{Message, message::{ContentBlock, ToolResult}};
/// use threadfold::render::{RenderOptions, render};
///
/// let result = ToolResult::text("t1", "one\ntwo\nthree\nfour\n");
/// let thread = [Message::new(threadfold::Role::User, vec![ContentBlock::ToolResult(result)])];
/// let options = RenderOptions { tool_result_cap: Some(10), ..RenderOptions::default() };
/// assert_eq!(
///     render(&thread, &options).text(),
///     "# user:\n\n## tool_result\n\n```\none\n[... 10 bytes omitted ...]\nfour\n```\n\n"
/// );
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RenderOptions {
    /// Includes reasoning. Off by default.
    pub thinking: bool,
    /// Includes system reminders. Off by default.
    pub reminders: bool,
    /// Includes checkpoints. Off by default.
    pub checkpoints: bool,
    /// Includes the text of context updates, not only the paths. Off by default.
    pub context_texts: bool,
    /// Includes the text of text documents, not only the title. Off by default.
    pub document_texts: bool,
    /// Writes the id of every tool call and result. Off by default: only messages with several have
    /// ids.
    pub tool_ids: bool,
    /// The maximum bytes of a tool result or document. The first and last half of them stay, with a
    /// line in between that states how many bytes are omitted. `None`, the default, omits nothing.
    pub tool_result_cap: Option<usize>,
    /// The maximum bytes of a tool call's input, cut in the same way as a result.
    pub tool_input_cap: Option<usize>,
}
