//! What a rendering shows.

use serde::{Deserialize, Serialize};

use crate::message::Text;

/// What a rendering shows. The default is what a summary needs.
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
    /// Whether reasoning is shown; by default not.
    pub thinking: bool,
    /// Whether reminders of the host are shown; by default not.
    pub reminders: bool,
    /// Whether checkpoints are shown; by default not.
    pub checkpoints: bool,
    /// Whether news about files are shown with their text; by default only the paths are.
    pub context_texts: bool,
    /// Whether documents that hold text are shown with it; by default only their titles are.
    pub document_texts: bool,
    /// Whether the inputs of calls are indented; by default they are compact, as they came.
    pub pretty_inputs: bool,
    /// Whether every call and result carries its id; by default only those of a message that has
    /// several do.
    pub tool_ids: bool,
    /// How many bytes of a tool result or a document are shown at most: the first half and the
    /// last, and between them how much was left out. By default all of it.
    pub tool_result_cap: Option<usize>,
    /// The same for the input of a call.
    pub tool_input_cap: Option<usize>,
    /// Tools whose results are named but not shown, unless they are errors: those that read files
    /// which can be read again. By default none.
    pub omit_results_of: Vec<Text>,
}
