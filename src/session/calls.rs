//! Executing the calls of an answer: the host's tools and the session's own.
//!
//! With two of the session's tools, the model compacts its own thread. `compact_context` runs the
//! session's strategy. In a call of `compact`, the model names ranges by their checkpoints and
//! writes the summaries itself. Such a call is checked against the thread as it will be with the
//! results of the other calls; then thread and log change in one step.
//!
//! If the plan of such a call fails, nothing changes, and the model gets an error result that lists
//! the valid checkpoints. The outcome of a compaction follows as a reminder and not as the user's
//! words, so the next compaction strips it.

use std::{error::Error, ops::Range};

use futures::{FutureExt, StreamExt, stream::FuturesUnordered};

use super::{
    compacting::{Order, outcome_of},
    error::Result,
    event::SessionEvent,
    events::Emit,
    session::{Finished, Session},
};
use crate::{
    compact::Plan,
    compaction::{
        self, COMPACT, COMPACT_CONTEXT, COMPACTED, ContextCompacted, ONE_CALL, not_compacted,
    },
    log::Event,
    message::{CompactionReason, ContextWindow, Message, Role, Text, ToolResult, ToolUse},
    model::{ToolContext, ToolOutput, yield_now},
    notes::{
        Note, Notes,
        tool::{self, NOTES},
    },
    recall::{MAX_BYTES, Recall, RecallRequest, Steps, tool::RECALL},
    strategy::{Brief, Proposal, clip_result},
};

/// The result of a compaction tool that the builder did not add.
const NOT_CONFIGURED: &str = "Compaction not yet configured";

/// The session's own tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SessionTool {
    Compact,
    CompactContext,
    Notes,
    Recall,
}

impl Session {
    /// Executes the calls of an answer. Their results are in `self.results`, in the order of the
    /// calls. Returns whether the thread already holds them. The order of execution is another one:
    ///
    /// 1. `notes`, so that a compaction that the same answer asks for lists them.
    /// 2. The host's tools before each `compact_context`, concurrently, and then that call: calls
    ///    after it see the compacted thread.
    /// 3. The host's remaining tools, concurrently. Then every result so far that is too long is cut.
    /// 4. `recall`.
    /// 5. One `compact`, because it compacts the other results too. Any further one is an error.
    pub(super) async fn call_tools(&mut self, calls: &[ToolUse], emit: &mut Emit) -> Result<bool> {
        self.results = vec![None; calls.len()];
        for call in calls {
            let (id, name) = (call.id.clone(), call.name.clone());
            let input = call.input.as_str().into();
            emit.event(SessionEvent::ToolStarted { id, name, input }).await;
        }
        for (index, call) in calls.iter().enumerate() {
            if self.session_tool(call) == Some(SessionTool::Notes) {
                let output = self.noted(call)?;
                finish(&mut self.results, index, call, output, emit).await;
            }
        }
        let mut from = 0;
        for (index, call) in calls.iter().enumerate() {
            if self.session_tool(call) != Some(SessionTool::CompactContext) {
                continue;
            }
            self.call_host_tools(calls, from..index, emit).await;
            let output = match self.tools.offers(&call.name) {
                // Boxed: inlined, this rare path would enlarge every turn's future.
                true => self.compact_context(emit).boxed().await?,
                false => ToolOutput::error(not_compacted(NOT_CONFIGURED)),
            };
            finish(&mut self.results, index, call, output, emit).await;
            from = index.saturating_add(1);
        }
        self.call_host_tools(calls, from..calls.len(), emit).await;
        self.cut_long()?;
        for (index, call) in calls.iter().enumerate() {
            if self.session_tool(call) == Some(SessionTool::Recall) {
                // Boxed: inlined, this rare path would enlarge every turn's future.
                let output = match self.recalled(call).boxed().await {
                    Ok(text) => ToolOutput::from(text),
                    Err(error) => ToolOutput::error(format!("Nothing was recalled: {error}.")),
                };
                finish(&mut self.results, index, call, output, emit).await;
            }
        }
        let mut compact = None;
        for (index, call) in calls.iter().enumerate() {
            let output = match self.session_tool(call) {
                None
                | Some(SessionTool::Notes | SessionTool::Recall | SessionTool::CompactContext) => {
                    continue;
                }
                Some(SessionTool::Compact) if !self.tools.offers(&call.name) => {
                    ToolOutput::error(NOT_CONFIGURED)
                }
                Some(SessionTool::Compact) if compact.is_none() => {
                    compact = Some((index, call));
                    continue;
                }
                Some(SessionTool::Compact) => ToolOutput::error(ONE_CALL),
            };
            finish(&mut self.results, index, call, output, emit).await;
        }
        let mut appended = false;
        if let Some((index, call)) = compact {
            // Boxed: inlined, this rare path would enlarge every turn's future.
            let done = self.compact_ranges(call, emit).boxed().await?;
            appended = !done.is_error;
            finish(&mut self.results, index, call, done, emit).await;
        }
        Ok(appended)
    }

    /// Calls the host's tools of these calls concurrently.
    async fn call_host_tools(&mut self, calls: &[ToolUse], range: Range<usize>, emit: &mut Emit) {
        let calls = calls.iter().enumerate().take(range.end).skip(range.start);
        let calls = calls.filter(|(_, call)| self.session_tool(call).is_none());
        let calls: Vec<(usize, &ToolUse)> = calls.collect();
        let Self { journal, tools, settings, results, .. } = self;
        let context = &ToolContext::new(journal.log().thread_id(), journal.thread().messages());
        let (tools, unwinds) = (&*tools, settings.tool_panics_unwind);
        let running = calls.into_iter().map(|(index, call)| async move {
            (index, call, tools.call(call, context, unwinds).await)
        });
        let mut running: FuturesUnordered<_> = running.collect();
        while let Some((index, call, output)) = running.next().await {
            finish(results, index, call, output, emit).await;
        }
    }

    /// The session's own tool of this name. A host tool of the same name takes precedence.
    fn session_tool(&self, call: &ToolUse) -> Option<SessionTool> {
        let own = match call.name.as_str() {
            COMPACT => SessionTool::Compact,
            COMPACT_CONTEXT => SessionTool::CompactContext,
            NOTES if self.tools.offers(&call.name) => SessionTool::Notes,
            RECALL if self.tools.offers(&call.name) => SessionTool::Recall,
            _ => return None,
        };
        self.tools.host_tool(&call.name).is_none().then_some(own)
    }

    /// Shortens the results that are too long, and logs them in full.
    pub(super) fn cut_long(&mut self) -> Result<()> {
        let Some(most) = self.settings.max_tool_result else { return Ok(()) };
        let (now, can_recall) = (self.now(), self.tools.offers(RECALL));
        // A turn that was dropped may have cut some of them.
        let whole = self.results.iter_mut().flatten().filter(|finished| !finished.is_cut);
        for Finished { result, is_cut } in whole {
            let counter = self.journal.thread().counter().as_ref();
            let Some(cut) = clip_result(result, most, counter, can_recall) else { continue };
            let whole = std::mem::replace(result, cut);
            *is_cut = true;
            self.journal.append(now, Event::ResultCut(Box::new(whole)))?;
        }
        Ok(())
    }

    /// Runs a call of [`notes`](crate::notes), and logs the note that it writes.
    fn noted(&mut self, call: &ToolUse) -> Result<ToolOutput> {
        let (note, answer) = match self.note(call) {
            Ok(noted) => noted,
            Err(error) => return Ok(ToolOutput::error(format!("Nothing was noted: {error}."))),
        };
        if let Some(Note { name, text }) = note {
            let now = self.now();
            self.journal.append(now, Event::NoteWritten { name, text })?;
        }
        Ok(answer.into())
    }

    /// The note that a call writes, if any, and the answer for the model.
    fn note(&self, call: &ToolUse) -> Result<(Option<Note>, String), Box<dyn Error + Send + Sync>> {
        let input = call.input.json().and_then(|input| input.to_value())?;
        let note = tool::written(&input)?;
        // A note is logged as it is; only what the model reads is redacted.
        let mut notes = match note {
            Some(_) => self.journal.log().notes().clone(),
            None => self.journal.notes(),
        };
        let answer = tool::call(&mut notes, &input, self.eighth_of_window(Notes::MAX_BYTES))?;
        Ok((note, answer))
    }

    async fn recalled(&self, call: &ToolUse) -> Result<String, Box<dyn Error + Send + Sync>> {
        let input = call.input.json().and_then(|input| input.to_value())?;
        let request = RecallRequest::parse(&input)?;
        let log = self.journal.whole().await?;
        let recall = Recall::of(&log).within(self.eighth_of_window(MAX_BYTES));
        let recall = match self.journal.redactor() {
            Some(redactor) => recall.redacted_by(redactor.as_ref()),
            None => recall,
        };
        Ok(finished(recall.begin_from(log.removed()?, &request)?).await)
    }

    /// The bytes of an eighth of the window, at four bytes per token, and at most `most`.
    fn eighth_of_window(&self, most: usize) -> usize {
        let tokens = self.window().map_or(u64::MAX, |window| window.tokens());
        usize::try_from(tokens / 2).map_or(most, |bytes| bytes.min(most))
    }
}

/// Runs the steps of a recall to its answer. A search of a long conversation takes many steps, so
/// this yields between them to the other tasks of the executor.
async fn finished(mut step: Steps<'_>) -> String {
    loop {
        if let Some(recalled) = step() {
            return recalled.to_string();
        }
        yield_now().await;
    }
}

/// Stores the result of a call and emits `ToolFinished`.
fn finish<'e>(
    results: &mut [Option<Finished>],
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
        *slot = Some(Finished { result, is_cut: false });
    }
    let (id, name) = (call.id.clone(), call.name.clone());
    emit.event(SessionEvent::ToolFinished { id, name, is_error, content })
}

impl Session {
    /// Executes a call of `compact_context`.
    pub(super) async fn compact_context(&mut self, emit: &mut Emit) -> Result<ToolOutput> {
        let target = self.requested_target();
        let before = self.journal.thread().size().tokens;
        // A thread within its target needs no compaction.
        let counted = self.auto.ratio().scale(before);
        if target.is_some_and(|target| counted <= target) {
            return Ok(ContextCompacted::nothing(before).into());
        }
        let reason = CompactionReason::AgentTool;
        let order = Order { reason, target, limit: None, next_prompt: None, strategy: None };
        let done = self.compact_for(order, emit).await?;
        let (text, is_error) = ContextCompacted::result(before, done.as_ref());
        Ok(ToolOutput { is_error, ..text.into() })
    }

    /// Executes a call of `compact`. On success, the results of the answer's other calls are appended
    /// in the same step as the compaction.
    pub(super) async fn compact_ranges(
        &mut self,
        call: &ToolUse,
        emit: &mut Emit,
    ) -> Result<ToolOutput> {
        let (arriving, brief, thread, plan) = match self.check_ranges(call) {
            Ok(checked) => checked,
            Err(words) => return Ok(ToolOutput::error(words)),
        };
        let facts = match &brief.retention {
            Some(policy) => {
                let window = self.window().map(ContextWindow::tokens);
                let options = policy.audit_options().within(window);
                // Boxed: inlined, this rare path would enlarge every turn's future.
                Some(Box::pin(self.journal.facts(&options)).await?)
            }
            None => None,
        };
        let proposal = Proposal::audited(plan, &thread, facts.as_deref())?;
        let span = self.conversation().span(COMPACT, &brief);
        let work = self.carry_out(COMPACT, &brief, Ok(proposal), Some(arriving), (&span, emit));
        outcome_of(work.await)??;
        Ok(ToolOutput::from(COMPACTED))
    }

    /// Plans a call against the thread as it will be with all results of the answer. Returns the
    /// message with these results, or the text of the call's error result.
    fn check_ranges(
        &mut self,
        call: &ToolUse,
    ) -> Result<(Message, Brief, Vec<Message>, Plan), Text> {
        let ranges = compaction::ranges(call)?;
        // Only this call has no result yet.
        let blocks = self.results.iter().map(|result| match result {
            Some(finished) => finished.result.clone().into(),
            None => ToolResult::text(call.id.clone(), COMPACTED).into(),
        });
        let results = self.stamped(Message::new(Role::User, blocks.collect()));
        let id = self.next_compaction();
        let brief = Brief { compaction: Some(id), ..self.brief(CompactionReason::AgentTool, None) };
        let thread: Vec<Message> = self.messages().iter().chain([&results]).cloned().collect();
        let counter = self.journal.thread().counter().as_ref();
        let plan = compaction::plan_ranges(&thread, call, &ranges, id, counter)?;
        Ok((results, brief, thread, plan))
    }
}
