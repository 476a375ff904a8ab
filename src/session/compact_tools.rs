//! The two tools by which the model has its thread compacted.
//!
//! `compact_context` leaves the how to the strategy of the session. In a call of `compact` the model
//! names ranges by their checkpoints and writes the summaries itself: everything is checked first,
//! with the results of the other calls in place, and then thread and log change at once.

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

/// The result of a call of `compact` that was carried out. It is seen only where the compaction is
/// taken back.
const COMPACTED: &str = "The thread was compacted.";

/// How many checkpoints are named to a model that named others.
const NAMED_CHECKPOINTS: usize = 40;

/// A call of `compact` that was checked.
struct Checked {
    /// The results of all calls of the answer.
    results: Message,
    brief: Brief,
    driven: Driven,
}

impl Session {
    /// The tool by which the model has the thread compacted.
    pub(super) async fn compact_context(
        &mut self,
        emit: &mut Emit,
    ) -> Result<ToolOutput, SessionError> {
        let target = self.requested_target();
        let before = self.agent.thread().size().tokens;
        // Within its target a thread has nothing that has to go.
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

    /// How many messages a compaction took out of the thread.
    fn taken_by(&self, id: CompactionId) -> usize {
        let Some(record) = self.journal.log().compaction(id) else { return 0 };
        let (before, after) = (record.plan.messages_before(), record.plan.messages_after());
        before.saturating_add(record.plan.new_messages().count()).saturating_sub(after)
    }

    /// The tool by which the model compacts ranges itself. The results of the other calls are there.
    /// Where it is carried out they come into the thread with it.
    pub(super) async fn compact_ranges(
        &mut self,
        call: &ToolUse,
        index: usize,
        results: &[Option<ToolResult>],
        emit: &mut Emit,
    ) -> Result<ToolOutput, SessionError> {
        let checked = match self.check_ranges(call, index, results) {
            Ok(checked) => checked,
            Err(words) => return Ok(ToolOutput::error(words)),
        };
        let Checked { results, brief, driven } = checked;
        self.replace(COMPACT, &brief, driven, results, emit).await??;
        Ok(ToolOutput::from(COMPACTED))
    }

    /// Checks a call against the thread as it will be, and says what is wrong with it.
    fn check_ranges(
        &mut self,
        call: &ToolUse,
        index: usize,
        results: &[Option<ToolResult>],
    ) -> Result<Checked, String> {
        let input = call.input.json().map_err(|error| not_read(&error))?;
        let input = input.to_value().map_err(|error| not_read(&error))?;
        let ranges = CompactInput::parse(&input).map_err(|error| not_read(&error))?.replacements;
        let blocks = results.iter().enumerate().filter_map(|(at, result)| match result {
            None if at == index => Some(ToolResult::text(call.id.clone(), COMPACTED).into()),
            result => result.clone().map(ContentBlock::from),
        });
        let results = self.stamped(Message::new(Role::User, blocks.collect()));
        let id = self.next_compaction();
        let options = CompactOptions { compaction: Some(id), ..CompactOptions::default() };
        let thread: Vec<Message> = self.messages().iter().chain([&results]).cloned().collect();
        let plan = |said: &Text| Plan::of_call(&thread, &call.id, &ranges, &options, said);
        // The notice quotes the plan's numbers, so plan once with an empty notice.
        let draft = plan(&Text::default()).map_err(|error| self.refused(&error))?;
        let after = draft.after(&thread).map_err(|error| not_read(&error))?;
        let counter = self.agent.thread().counter().as_ref();
        let report = CompactReport::new(Size::of(&thread, counter), &after, &draft, counter);
        let said = format!("The thread was compacted as you asked: {report}. Go on with the task.");
        let plan = plan(&said.into()).map_err(|error| self.refused(&error))?;
        let brief = self.brief(id, CompactionReason::AgentTool, None, None);
        let mut proposal = Proposal::new(plan);
        if let Some(policy) = &brief.retention {
            // Measured only: nothing is added to the model's own words.
            let after = proposal.plan.after(&thread).map_err(|error| not_read(&error))?;
            let redactor = self.settings.redactor.as_deref();
            let facts = self.facts.of(self.journal.log(), &policy.audit, redactor);
            proposal.retention = Some(facts.audit(&after).shortened());
        }
        Ok(Checked { results, brief, driven: Driven::new(proposal) })
    }

    /// What is wrong with the ranges of a call, and which checkpoints there are.
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
