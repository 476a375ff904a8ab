//! Carrying out what the model calls: the host's tools, and those of the session.

use std::sync::Arc;

use futures::{FutureExt, StreamExt, stream::FuturesUnordered};

use super::{
    error::SessionError, event::SessionEvent, events::Emit, session::Session, tool_output,
};
use crate::{
    compaction::{COMPACT, COMPACT_CONTEXT},
    message::{ToolResult, ToolUse},
    model::{Tool, ToolContext, ToolOutput},
    recall::tool::RECALL,
};

/// What a compaction tool says that the session does not offer.
const NOT_CONFIGURED: &str = "Compaction not yet configured";

/// What a second call of `compact` in one answer gets.
const ONE_CALL: &str =
    "Not carried out: one call of compact in an answer is. Name all ranges in one call.";

/// What the calls of an answer gave.
pub(super) struct Called {
    /// The results, in the order of the calls. There is one for each.
    pub(super) results: Vec<Option<ToolResult>>,
    /// Whether they are in the thread already.
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
    /// Carries all calls out at the same time and gives their results in the order of the calls.
    /// Those that compact come last: they change what the others were called for.
    pub(super) async fn call_tools(
        &mut self,
        calls: &[ToolUse],
        emit: &mut Emit,
    ) -> Result<Called, SessionError> {
        let mut results: Vec<Option<ToolResult>> = vec![None; calls.len()];
        for call in calls {
            let (id, name) = (call.id.clone(), call.name.clone());
            emit.event(SessionEvent::ToolStarted { id, name }).await;
        }
        self.call_host_tools(calls, &mut results, emit).await;
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
            // For the same reason.
            let done = self.compact_ranges(call, index, &results, emit).boxed().await?;
            appended = !done.is_error;
            finish(&mut results, index, call, done, emit).await;
        }
        Ok(Called { results, appended })
    }

    /// Calls the host's tools, all at once.
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

    /// The calls that are not of the session's own tools, with their places.
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
        // Through the handle the future would be boxed twice.
        match tool.as_ref().call(call, context).await {
            Ok(output) => output,
            Err(error) => ToolOutput::error(error.to_string()),
        }
    }

    /// The session's own tool that is called. A tool of the host goes before it.
    fn session_tool(&self, call: &ToolUse) -> Option<SessionTool> {
        let own = match call.name.as_str() {
            COMPACT => SessionTool::Compact,
            COMPACT_CONTEXT => SessionTool::CompactContext,
            RECALL if self.offers(call) => SessionTool::Recall,
            _ => return None,
        };
        self.host_tool(call).is_none().then_some(own)
    }

    fn host_tool(&self, call: &ToolUse) -> Option<&Arc<dyn Tool>> {
        // The specs of the host's tools come first, in their order.
        let index = self.specs.iter().position(|spec| spec.name == call.name)?;
        self.settings.tools.get(index)
    }

    /// Whether the model was told of the tool.
    fn offers(&self, call: &ToolUse) -> bool {
        self.specs.iter().any(|spec| spec.name == call.name)
    }
}

fn not_configured(own: SessionTool) -> ToolOutput {
    match own {
        SessionTool::Compact | SessionTool::Recall => ToolOutput::error(NOT_CONFIGURED),
        SessionTool::CompactContext => tool_output::not_compacted(NOT_CONFIGURED),
    }
}

/// Puts the result of a call in its place, and tells that it is there.
fn finish<'e>(
    results: &mut [Option<ToolResult>],
    index: usize,
    call: &ToolUse,
    output: ToolOutput,
    emit: &'e mut Emit,
) -> impl Future<Output = ()> + use<'e> {
    // What nests too deep is an error already.
    let mut result = ToolResult::new(call.id.clone(), output.content);
    result.is_error |= output.is_error;
    result.usage = output.usage.map(Box::new);
    let is_error = result.is_error;
    if let Some(slot) = results.get_mut(index) {
        *slot = Some(result);
    }
    let (id, name) = (call.id.clone(), call.name.clone());
    emit.event(SessionEvent::ToolFinished { id, name, is_error })
}
