//! The two tools with which the model compacts its own thread.
//!
//! `compact_context` runs the session's strategy. In a call of `compact` the model names ranges by
//! their checkpoints and writes the summaries itself: the call is checked first, against the thread
//! with the results of the other calls in it, and then thread and log change in one step.

use super::{
    compacting::{Order, stored},
    error::SessionError,
    events::Emit,
    session::Session,
};
use crate::{
    compact::Plan,
    compaction::{self, COMPACT, COMPACTED, ContextCompacted},
    message::{CompactionReason, Message, Role, Text, ToolResult, ToolUse},
    model::ToolOutput,
    strategy::{Brief, Proposal},
};

impl Session {
    /// Executes a call of `compact_context`.
    pub(super) async fn compact_context(
        &mut self,
        emit: &mut Emit,
    ) -> Result<ToolOutput, SessionError> {
        let target = self.requested_target();
        let before = self.agent.thread().size().tokens;
        // A thread within its target needs no compaction.
        let counted = self.ratio.scale_up(before);
        if target.is_some_and(|target| counted <= target) {
            return Ok(ContextCompacted::nothing(before).into());
        }
        let reason = CompactionReason::AgentTool;
        let order = Order { reason, target, limit: None, next_prompt: None, strategy: None };
        let done = self.compact_for(order, emit).await?;
        let (text, is_error) = ContextCompacted::result(before, done.as_ref());
        Ok(ToolOutput { is_error, ..text.into() })
    }

    /// Executes a call of `compact`. `results` holds the results of the answer's other calls; on
    /// success they are appended in the same step as the compaction.
    pub(super) async fn compact_ranges(
        &mut self,
        call: &ToolUse,
        results: &[Option<ToolResult>],
        emit: &mut Emit,
    ) -> Result<ToolOutput, SessionError> {
        let (arriving, brief, thread, plan) = match self.check_ranges(call, results) {
            Ok(checked) => checked,
            Err(words) => return Ok(ToolOutput::error(words)),
        };
        let mut proposal = Proposal::new(plan);
        if let Some(policy) = &brief.retention {
            // The plan is audited, but gets no addendum: the summary stays as the model wrote it.
            let after = proposal.plan.after(&thread)?;
            // Boxed: inlined, this rare path would enlarge every turn's future.
            let facts = Box::pin(self.journal.facts(&policy.audit_options())).await?;
            proposal.retention = Some(facts.audit(&after).shortened());
        }
        let span = self.span(COMPACT, &brief);
        let work = self.carry_out(COMPACT, &brief, Ok(proposal), Some(arriving), (&span, emit));
        stored(work.await)??;
        Ok(ToolOutput::from(COMPACTED))
    }

    /// Plans a call against the thread as it will be. Returns the message with all results of the
    /// answer, or the text of the error result.
    fn check_ranges(
        &mut self,
        call: &ToolUse,
        results: &[Option<ToolResult>],
    ) -> Result<(Message, Brief, Vec<Message>, Plan), Text> {
        let ranges = compaction::ranges(call)?;
        // Only this call has no result yet.
        let blocks = results.iter().map(|result| match result {
            Some(result) => result.clone().into(),
            None => ToolResult::text(call.id.clone(), COMPACTED).into(),
        });
        let results = self.stamped(Message::new(Role::User, blocks.collect()));
        let id = self.next_compaction();
        let brief = Brief { compaction: Some(id), ..self.brief(CompactionReason::AgentTool, None) };
        let thread: Vec<Message> = self.messages().iter().chain([&results]).cloned().collect();
        let counter = self.agent.thread().counter().as_ref();
        let plan = compaction::plan_ranges(&thread, call, &ranges, id, counter)?;
        Ok((results, brief, thread, plan))
    }
}
