//! The two tools with which the model compacts its own thread.
//!
//! `compact_context` runs the session's strategy. In a call of `compact` the model names ranges by
//! their checkpoints and writes the summaries itself: the call is checked first, against the thread
//! with the results of the other calls in it, and then thread and log change in one step.

use super::{
    compacting::Order,
    error::SessionError,
    events::Emit,
    session::Session,
    tool_output::{self, Compacted},
};
use crate::{
    compact::{CompactError, CompactInput, CompactOptions, CompactReport, Plan, Size},
    compaction::{COMPACT, Done, Driven},
    message::{
        CompactionId, CompactionReason, ContentBlock, Message, Role, Text, ToolResult, ToolUse,
    },
    model::ToolOutput,
    strategy::{Brief, Proposal},
};

/// The result of a successful call of `compact`. The compaction replaces it, so it is visible only
/// after an undo.
const COMPACTED: &str = "The thread was compacted.";

/// How many of the latest checkpoints an error result lists.
const NAMED_CHECKPOINTS: usize = 40;

/// A call of `compact` that passed the checks.
struct Checked {
    /// A message with the results of all calls of the answer.
    results: Message,
    brief: Brief,
    driven: Driven,
}

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
            return Ok(Compacted::nothing(before).output());
        }
        let reason = CompactionReason::AgentTool;
        let order = Order { reason, target, limit: None, next_prompt: None };
        Ok(match self.compact_for(order, emit).await? {
            Ok(Done { id, report, calls, .. }) => Compacted {
                messages_compressed: self.taken_by(id),
                batches_created: calls,
                tokens_estimate_before: report.before.tokens,
                tokens_estimate_after: report.after.tokens,
            }
            .output(),
            Err(error) if error.is_nothing_to_compact() => Compacted::nothing(before).output(),
            Err(error) => tool_output::not_compacted(error.to_string()),
        })
    }

    /// How many messages a compaction removed from the thread.
    fn taken_by(&self, id: CompactionId) -> usize {
        let Some(record) = self.journal.log().compaction(id) else { return 0 };
        let (before, after) = (record.plan.messages_before(), record.plan.messages_after());
        before.saturating_add(record.plan.new_messages().count()).saturating_sub(after)
    }

    /// Executes a call of `compact`. `results` holds the results of the answer's other calls; on
    /// success they are appended in the same step as the compaction.
    pub(super) async fn compact_ranges(
        &mut self,
        call: &ToolUse,
        results: &[Option<ToolResult>],
        emit: &mut Emit,
    ) -> Result<ToolOutput, SessionError> {
        let checked = match self.check_ranges(call, results) {
            Ok(checked) => checked,
            Err(words) => return Ok(ToolOutput::error(words)),
        };
        let Checked { results, brief, driven } = checked;
        self.replace(COMPACT, &brief, driven, results, emit).await??;
        Ok(ToolOutput::from(COMPACTED))
    }

    /// Plans a call against the thread as it will be; the error is the text of the error result.
    fn check_ranges(
        &mut self,
        call: &ToolUse,
        results: &[Option<ToolResult>],
    ) -> Result<Checked, String> {
        let input = call.input.json().map_err(|error| not_read(&error))?;
        let input = input.to_value().map_err(|error| not_read(&error))?;
        let ranges = CompactInput::parse(&input).map_err(|error| not_read(&error))?.replacements;
        // Only this call has no result yet.
        let own = || ToolResult::text(call.id.clone(), COMPACTED);
        let blocks = results.iter().map(|result| result.clone().unwrap_or_else(own).into());
        let results = self.stamped(Message::new(Role::User, blocks.collect()));
        let id = self.next_compaction();
        let options = CompactOptions { compaction: Some(id), ..CompactOptions::default() };
        let thread: Vec<Message> = self.messages().iter().chain([&results]).cloned().collect();
        let plan = |notice: &Text| Plan::of_call(&thread, &call.id, &ranges, &options, notice);
        // The notice quotes the plan's numbers, so plan once with an empty notice.
        let draft = plan(&Text::default()).map_err(|error| self.refused(&error))?;
        let after = draft.after(&thread).map_err(|error| not_read(&error))?;
        let counter = self.agent.thread().counter().as_ref();
        let report = CompactReport::new(Size::of(&thread, counter), &after, &draft, counter);
        let notice =
            format!("The thread was compacted as you asked: {report}. Go on with the task.");
        let plan = plan(&notice.into()).map_err(|error| self.refused(&error))?;
        let brief = self.brief(id, CompactionReason::AgentTool, None, None);
        let mut proposal = Proposal::new(plan);
        if let Some(policy) = &brief.retention {
            // Audited, but not completed: nothing is added to the model's own words.
            let after = proposal.plan.after(&thread).map_err(|error| not_read(&error))?;
            let redactor = self.settings.redactor.as_deref();
            let facts = self.facts.of(self.journal.log(), &policy.audit, redactor);
            proposal.retention = Some(facts.audit(&after).shortened());
        }
        Ok(Checked { results, brief, driven: Driven::new(proposal) })
    }

    /// The text for a refused call: the error and the latest checkpoints.
    fn refused(&self, error: &CompactError) -> String {
        let blocks = self.messages().iter().rev().flat_map(|message| message.content.iter().rev());
        let ids = blocks.filter_map(|block| {
            let ContentBlock::Checkpoint(checkpoint) = block else { return None };
            Some(checkpoint.id.to_string())
        });
        let mut ids: Vec<String> = ids.take(NAMED_CHECKPOINTS).collect();
        ids.reverse();
        format!(
            "Nothing was compacted: {error}. The latest checkpoints in the thread are, in order: \
             {}.",
            ids.join(", ")
        )
    }
}

fn not_read(error: &dyn std::fmt::Display) -> String {
    format!("Nothing was compacted: {error}.")
}
