//! `Tool`: a function that an agent can call.

use std::{fmt, sync::Arc};

use async_trait::async_trait;

use super::forward::for_pointers;
use crate::message::{ContentBlock, Message, Text, ThreadId, ToolSpec, ToolUse, Usage};

/// A function that an agent can call, with a name, a description and a JSON schema.
///
/// When the turn is cancelled, the future of a call is dropped at any point. The calls of one
/// answer run concurrently.
///
/// ```
/// use threadfold::{async_trait, message::{ToolSpec, ToolUse}};
/// use threadfold::model::{Tool, ToolContext, ToolOutput};
///
/// #[derive(Debug)]
/// struct Dice;
///
/// #[async_trait]
/// impl Tool for Dice {
///     fn spec(&self) -> ToolSpec {
///         ToolSpec::new("roll", "Rolls a die.", serde_json::json!({"type": "object"}))
///     }
///
///     async fn call(&self, _: &ToolUse, _: &ToolContext<'_>) -> Result<ToolOutput, Box<dyn std::error::Error + Send + Sync>> {
///         Ok(ToolOutput::from("4"))
///     }
/// }
/// ```
#[async_trait]
pub trait Tool: fmt::Debug + Send + Sync {
    /// Returns name, description and schema, which are sent to the model.
    fn spec(&self) -> ToolSpec;

    /// Returns the subject of a call, such as the path of the file that it reads or writes. A later
    /// call of any tool with the same subject makes the result of this call obsolete for
    /// [`ClearResults`](crate::strategy::ClearResults). The subject of a call that reads a part of
    /// a file should name the part.
    ///
    /// The default returns `None`.
    fn subject(&self, call: &ToolUse) -> Option<Text> {
        let _ = call;
        None
    }

    /// Runs a call. Its input has been parsed: [`ToolInput::json`](crate::message::ToolInput::json)
    /// returns an object.
    ///
    /// # Errors
    ///
    /// Any error, whose text is written for the model.
    async fn call(
        &self,
        call: &ToolUse,
        context: &ToolContext<'_>,
    ) -> Result<ToolOutput, Box<dyn std::error::Error + Send + Sync>>;
}

/// The context of a tool call.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ToolContext<'a> {
    /// The thread of the call.
    pub thread: &'a ThreadId,
    /// The messages of the thread, including the answer with the call. A clone is free during the
    /// call; one that is kept longer makes the next append copy the vector of handles.
    pub messages: &'a Arc<Vec<Message>>,
}

/// The result of a tool call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolOutput {
    /// Texts, images and documents.
    pub content: Vec<ContentBlock>,
    /// Whether the content describes a failure.
    pub is_error: bool,
    /// The tokens that the tool used, if it called models itself.
    pub usage: Option<Usage>,
}

impl<'a> ToolContext<'a> {
    /// Returns the context of a call in this thread.
    #[must_use]
    pub fn new(thread: &'a ThreadId, messages: &'a Arc<Vec<Message>>) -> Self {
        Self { thread, messages }
    }
}

impl ToolOutput {
    /// Returns the output of a failed call, with a text for the model.
    ///
    /// ```
    /// use threadfold::model::ToolOutput;
    ///
    /// assert!(ToolOutput::error("no such file").is_error);
    /// ```
    #[must_use]
    pub fn error(words: impl Into<Text>) -> Self {
        Self { content: vec![ContentBlock::text(words)], is_error: true, usage: None }
    }
}

impl<T: Into<Text>> From<T> for ToolOutput {
    fn from(text: T) -> Self {
        Self { content: vec![ContentBlock::text(text)], ..Self::default() }
    }
}

for_pointers! { Tool {
    async fn call(&self, call: &ToolUse, context: &ToolContext<'_>)
        -> Result<ToolOutput, Box<dyn std::error::Error + Send + Sync>>;
    fn spec(&self) -> ToolSpec;
    fn subject(&self, call: &ToolUse) -> Option<Text>;
} }
