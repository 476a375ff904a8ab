//! `Tool`: a function that an agent can call, and the tools that a request offers.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::Arc,
};

use async_trait::async_trait;
use futures::FutureExt;

use super::forward::for_pointers;
use crate::{
    message::{ContentBlock, Message, Text, ThreadId, ToolSpec, ToolUse, Usage},
    strategy::panic_message,
};

/// A function that an agent can call, with a name, a description and a JSON schema.
///
/// The calls of one answer run concurrently. If the turn is cancelled, the future of a call is
/// dropped at any point.
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
///     async fn call(
///         &self,
///         _: &ToolUse,
///         _: &ToolContext<'_>,
///     ) -> Result<ToolOutput, Box<dyn std::error::Error + Send + Sync>> {
///         Ok(ToolOutput::from("4"))
///     }
/// }
/// ```
#[async_trait]
pub trait Tool: fmt::Debug + Send + Sync {
    /// Returns name, description and schema, which are sent to the model.
    fn spec(&self) -> ToolSpec;

    /// Returns the subject of a call, such as the path of the file that it reads or writes. For
    /// [`ClearResults`](crate::strategy::ClearResults), a later call of any tool with the same
    /// subject makes the result of this call obsolete. The subject of a call that reads a part of a
    /// file should name the part.
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
    /// Any error. The model gets its text as the result of the call.
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
    /// call. If it is kept longer, the next append copies the vector of handles.
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

/// The tools of a host, and the driver's own tools. No two have the same name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tools {
    pub(crate) host: Vec<Arc<dyn Tool>>,
    /// The specs of the host's tools in their order, followed by the driver's own.
    pub(crate) specs: Arc<Vec<ToolSpec>>,
}

impl Tools {
    /// Returns the tools, or the name that two of them have.
    pub(crate) fn new(host: Vec<Arc<dyn Tool>>, own: &[ToolSpec]) -> Result<Self, Text> {
        let specs: Vec<ToolSpec> =
            host.iter().map(|tool| tool.spec()).chain(own.iter().cloned()).collect();
        let mut names: Vec<&Text> = specs.iter().map(|spec| &spec.name).collect();
        names.sort_unstable();
        let mut pairs = names.iter().zip(names.iter().skip(1));
        match pairs.find(|(one, other)| one == other) {
            Some((name, _)) => Err((*name).clone()),
            None => Ok(Self { host, specs: specs.into() }),
        }
    }

    /// Returns the tools of a host that runs their calls itself.
    pub(crate) fn of(specs: Arc<Vec<ToolSpec>>) -> Self {
        Self { host: Vec::new(), specs }
    }

    /// The specs of the driver's own tools.
    pub(crate) fn own(&self) -> Vec<ToolSpec> {
        self.specs.iter().skip(self.host.len()).cloned().collect()
    }

    /// Whether a tool has this name.
    pub(crate) fn offers(&self, name: &str) -> bool {
        self.specs.iter().any(|spec| spec.name == *name)
    }

    /// The host's tool of this name.
    pub(crate) fn host_tool(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        let index = self.specs.iter().position(|spec| spec.name == *name)?;
        self.host.get(index)
    }

    /// The subject of a call, if its tool returns one. A tool that panics returns none.
    pub(crate) fn subject(&self, call: &ToolUse) -> Option<Text> {
        let tool = self.host_tool(&call.name)?;
        catch_unwind(AssertUnwindSafe(|| tool.subject(call))).ok().flatten()
    }

    /// Calls a tool of the host. A tool that fails, panics or does not exist, and input that is not
    /// JSON, give an error result. If `unwinds`, a panic is passed on to the caller instead.
    pub(crate) async fn call(
        &self,
        call: &ToolUse,
        context: &ToolContext<'_>,
        unwinds: bool,
    ) -> ToolOutput {
        if let Err(error) = call.input.json() {
            return ToolOutput::error(format!("The input of the call cannot be read: {error}."));
        }
        let Some(tool) = self.host_tool(&call.name) else {
            let names: Vec<&str> = self.specs.iter().map(|spec| spec.name.as_str()).collect();
            let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            return ToolOutput::error(format!(
                "There is no tool {}; there are {names}.",
                call.name
            ));
        };
        // Call the tool through `as_ref`: through the `Arc`, the future would be boxed twice. The
        // future is made inside this block, because a tool may panic before it returns it.
        let called = async { tool.as_ref().call(call, context).await };
        match AssertUnwindSafe(called).catch_unwind().await {
            Ok(Ok(output)) => output,
            Ok(Err(error)) => ToolOutput::error(error.to_string()),
            Err(panic) if unwinds => resume_unwind(panic),
            Err(panic) => {
                ToolOutput::error(format!("The tool panicked: {}.", panic_message(&*panic)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;

    use super::*;
    use crate::message::Json;

    /// Returns a subject for its calls, but panics for an odd number.
    #[derive(Debug)]
    struct Picky;

    #[async_trait]
    impl Tool for Picky {
        fn spec(&self) -> ToolSpec {
            ToolSpec::new("pick", "Picks.", serde_json::json!({}))
        }

        fn subject(&self, call: &ToolUse) -> Option<Text> {
            assert_ne!(call.id.as_str(), "odd", "it does not like this call");
            Some(call.id.clone())
        }

        async fn call(
            &self,
            _: &ToolUse,
            _: &ToolContext<'_>,
        ) -> Result<ToolOutput, Box<dyn std::error::Error + Send + Sync>> {
            Ok(ToolOutput::default())
        }
    }

    #[test]
    fn a_call_without_any_tool_gets_an_error_that_says_so() {
        let tools = Tools::new(Vec::new(), &[]).unwrap();
        let (thread, messages) = ("main".parse().unwrap(), Arc::default());
        let call = ToolUse::new("a", "pick", Json::parse("{}").unwrap());
        let context = ToolContext::new(&thread, &messages);
        let output = futures::executor::block_on(tools.call(&call, &context, false));
        assert_eq!(output, ToolOutput::error("There is no tool pick; there are none."));
    }

    #[test]
    fn a_tool_that_panics_knows_no_subject() {
        let tools = Tools::new(vec![Arc::new(Picky)], &[]).unwrap();
        let subject =
            |id: &str, name: &str| tools.subject(&ToolUse::new(id, name, Json::default()));
        assert_eq!(subject("even", "pick"), Some("even".into()));
        assert_eq!(subject("odd", "pick"), None);
        assert_eq!(subject("even", "other"), None);
    }
}
