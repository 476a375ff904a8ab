//! Executing the calls of an answer: the host's tools and the session's own.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, resume_unwind},
    sync::Arc,
};

use futures::{FutureExt, StreamExt, stream::FuturesUnordered};

use super::{
    error::SessionError, event::SessionEvent, events::Emit, session::Session, tool_output,
};
use crate::{
    compaction::{COMPACT, COMPACT_CONTEXT, ONE_CALL},
    message::{ToolResult, ToolUse},
    model::{Tool, ToolContext, ToolOutput},
    recall::tool::RECALL,
};

/// The result of a compaction tool that the builder did not add.
const NOT_CONFIGURED: &str = "Compaction not yet configured";

/// The results of the calls of an answer.
pub(super) struct Called {
    /// One result for each call, in the order of the calls.
    pub(super) results: Vec<Option<ToolResult>>,
    /// Whether the thread already holds them.
    pub(super) appended: bool,
}

/// The session's own tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SessionTool {
    Compact,
    CompactContext,
    Recall,
}

impl Session {
    /// Executes the host's tools concurrently, then the session's own, and returns the results in
    /// the order of the calls. Compactions run last, because they change the thread that the other
    /// calls read.
    pub(super) async fn call_tools(
        &mut self,
        calls: &[ToolUse],
        emit: &mut Emit,
    ) -> Result<Called, SessionError> {
        let mut results: Vec<Option<ToolResult>> = vec![None; calls.len()];
        for call in calls {
            let (id, name) = (call.id.clone(), call.name.clone());
            let input = call.input.as_str().into();
            emit.event(SessionEvent::ToolStarted { id, name, input }).await;
        }
        self.call_host_tools(calls, &mut results, emit).await;
        self.cut_long(&mut results)?;
        for (index, call) in calls.iter().enumerate() {
            if self.session_tool(call) == Some(SessionTool::Recall) {
                let output = self.recall(call);
                finish(&mut results, index, call, output, emit).await;
            }
        }
        let mut compact = None;
        for (index, call) in calls.iter().enumerate() {
            let output = match self.session_tool(call) {
                None | Some(SessionTool::Recall) => continue,
                Some(own) if !self.offers(call) => not_configured(own),
                // Boxed: inlined, this rare path would enlarge every turn's future.
                Some(SessionTool::CompactContext) => self.compact_context(emit).boxed().await?,
                Some(SessionTool::Compact) if compact.is_none() => {
                    compact = Some((index, call));
                    continue;
                }
                Some(SessionTool::Compact) => ToolOutput::error(ONE_CALL),
            };
            finish(&mut results, index, call, output, emit).await;
        }
        let mut appended = false;
        if let Some((index, call)) = compact {
            // Boxed for the same reason.
            let done = self.compact_ranges(call, &results, emit).boxed().await?;
            appended = !done.is_error;
            finish(&mut results, index, call, done, emit).await;
        }
        Ok(Called { results, appended })
    }

    /// Calls the host's tools concurrently.
    async fn call_host_tools(
        &self,
        calls: &[ToolUse],
        results: &mut [Option<ToolResult>],
        emit: &mut Emit,
    ) {
        let context = &self.context();
        let mut running: FuturesUnordered<_> = self
            .host_calls(calls)
            .map(|(index, call)| async move { (index, call, self.call(call, context).await) })
            .collect();
        while let Some((index, call, output)) = running.next().await {
            finish(results, index, call, output, emit).await;
        }
    }

    /// The calls that are not for the session's own tools, with their indexes.
    fn host_calls<'a>(&self, calls: &'a [ToolUse]) -> impl Iterator<Item = (usize, &'a ToolUse)> {
        calls.iter().enumerate().filter(|(_, call)| self.session_tool(call).is_none())
    }

    fn context(&self) -> ToolContext<'_> {
        ToolContext::new(self.thread_id(), self.agent.messages())
    }

    async fn call(&self, call: &ToolUse, context: &ToolContext<'_>) -> ToolOutput {
        if let Err(error) = call.input.json() {
            return ToolOutput::error(format!("The input of the call cannot be read: {error}."));
        }
        let Some(tool) = self.host_tool(call) else {
            let names: Vec<&str> = self.specs.iter().map(|spec| spec.name.as_str()).collect();
            let there = names.join(", ");
            return ToolOutput::error(format!(
                "There is no tool {}; there are {there}.",
                call.name
            ));
        };
        // Called through the `Arc`, the future would be boxed twice. A tool may panic before it
        // returns its future, so that is made inside.
        let called = async { tool.as_ref().call(call, context).await };
        match AssertUnwindSafe(called).catch_unwind().await {
            Ok(Ok(output)) => output,
            Ok(Err(error)) => ToolOutput::error(error.to_string()),
            Err(panic) if self.settings.tool_panics_unwind => resume_unwind(panic),
            Err(panic) => ToolOutput::error(format!("The tool panicked: {}.", panic_text(&*panic))),
        }
    }

    /// The session's own tool of this name. A host tool of the same name takes precedence.
    fn session_tool(&self, call: &ToolUse) -> Option<SessionTool> {
        let own = match call.name.as_str() {
            COMPACT => SessionTool::Compact,
            COMPACT_CONTEXT => SessionTool::CompactContext,
            RECALL if self.offers(call) => SessionTool::Recall,
            _ => return None,
        };
        self.host_tool(call).is_none().then_some(own)
    }

    pub(super) fn host_tool(&self, call: &ToolUse) -> Option<&Arc<dyn Tool>> {
        // The specs start with those of the host's tools, in the same order.
        let index = self.specs.iter().position(|spec| spec.name == call.name)?;
        self.settings.tools.get(index)
    }

    /// Whether the request offers this tool to the model.
    fn offers(&self, call: &ToolUse) -> bool {
        self.specs.iter().any(|spec| spec.name == call.name)
    }
}

/// What a panic says, if it says anything.
fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no reason given")
}

fn not_configured(own: SessionTool) -> ToolOutput {
    match own {
        SessionTool::Compact | SessionTool::Recall => ToolOutput::error(NOT_CONFIGURED),
        SessionTool::CompactContext => tool_output::not_compacted(NOT_CONFIGURED),
    }
}

/// Stores the result of a call and emits `ToolFinished`.
fn finish<'e>(
    results: &mut [Option<ToolResult>],
    index: usize,
    call: &ToolUse,
    output: ToolOutput,
    emit: &'e mut Emit,
) -> impl Future<Output = ()> + use<'e> {
    // `ToolResult::new` turns content that nests too deep into an error.
    let mut result = ToolResult::new(call.id.clone(), output.content);
    result.is_error |= output.is_error;
    result.usage = output.usage.map(Box::new);
    let (is_error, content) = (result.is_error, result.content.clone());
    if let Some(slot) = results.get_mut(index) {
        *slot = Some(result);
    }
    let (id, name) = (call.id.clone(), call.name.clone());
    emit.event(SessionEvent::ToolFinished { id, name, is_error, content })
}
