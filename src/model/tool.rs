//! `Tool`: what an agent can do.

use std::{error::Error, fmt, sync::Arc};

use async_trait::async_trait;

use crate::message::{ContentBlock, Messages, Text, ThreadId, ToolSpec, ToolUse, Usage};

/// Why a tool failed. The model is told in its words.
pub type ToolFailure = Box<dyn Error + Send + Sync>;

/// Something that an agent can do: a function with a name, a description and a JSON schema.
///
/// The future may be dropped at any point, when the turn is cancelled. Calls of one answer are
/// carried out at the same time.
///
/// ```
/// use threadfold::{async_trait, message::{ToolSpec, ToolUse}};
/// use threadfold::model::{Tool, ToolContext, ToolFailure, ToolOutput};
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
///     async fn call(&self, _: &ToolUse, _: &ToolContext<'_>) -> Result<ToolOutput, ToolFailure> {
///         Ok(ToolOutput::from("4"))
///     }
/// }
/// ```
#[async_trait]
pub trait Tool: fmt::Debug + Send + Sync {
    /// What the model is told about it.
    fn spec(&self) -> ToolSpec;

    /// Carries a call out. The input was read: [`ToolInput::json`](crate::message::ToolInput::json)
    /// gives an object.
    ///
    /// # Errors
    ///
    /// [`ToolFailure`], in words for the model.
    async fn call(
        &self,
        call: &ToolUse,
        context: &ToolContext<'_>,
    ) -> Result<ToolOutput, ToolFailure>;
}

/// What a tool knows beside its call.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ToolContext<'a> {
    /// The thread that the call is part of.
    pub thread: &'a ThreadId,
    /// Its messages, the answer with the call among them. A clone costs nothing while the call goes
    /// on; one that is kept has the vector of handles copied with the next append.
    pub messages: &'a Messages,
}

/// What a tool gives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolOutput {
    /// Texts, pictures, documents.
    pub content: Vec<ContentBlock>,
    /// Whether it is the account of a failure.
    pub is_error: bool,
    /// Tokens that the tool itself spent, if it asked models.
    pub usage: Option<Usage>,
}

impl<'a> ToolContext<'a> {
    /// Returns the context of a call in this thread.
    #[must_use]
    pub fn new(thread: &'a ThreadId, messages: &'a Messages) -> Self {
        Self { thread, messages }
    }
}

impl ToolOutput {
    /// Returns the account of a failure, in words for the model.
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

macro_rules! forward {
    ($($pointer:ty),+) => {$(
        #[async_trait]
        impl<T: Tool + ?Sized> Tool for $pointer {
            fn spec(&self) -> ToolSpec {
                (**self).spec()
            }

            async fn call(
                &self,
                call: &ToolUse,
                context: &ToolContext<'_>,
            ) -> Result<ToolOutput, ToolFailure> {
                (**self).call(call, context).await
            }
        }
    )+};
}

forward!(&T, Box<T>, Arc<T>);

const _: Option<Box<dyn Tool>> = None;
