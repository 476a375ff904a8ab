//! The two tools by which the model has its thread compacted.
//!
//! `compact_context` leaves the how to the strategy of the session. In a call of `compact` the model
//! names ranges by their checkpoints and writes the summaries itself: everything is checked first,
//! with the results of the other calls in place, and then thread and log change at once.

use super::{
    error::SessionError,
    events::Emit,
    session::Session,
    tools::{self, COMPACT, Compacted},
};
use crate::{
    auto::{Input, Output},
    compact::{CompactError, CompactInput, CompactOptions, CompactReport, Plan, Size},
    drive::{CompactionError, CompactionSpan, Done, Driven},
    message::{
        CompactionId, CompactionReason, ContentBlock, Message, Role, Text, ToolResult, ToolUse,
    },
    model::ToolOutput,
    retention::Retention,
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
    id: CompactionId,
    driven: Driven,
}

impl Session {
    /// The tool by which the model has the thread compacted.
    pub(super) async fn compact_context(
        &mut self,
        emit: &mut Emit,
    ) -> Result<ToolOutput, SessionError> {
        let (now, pressure) = (self.clock.now(), self.pressure(0));
        let asked = Input::Requested { focus: None, pressure };
        let target = match self.auto.handle(now, asked) {
            Some(Output::Compact { target, .. }) => target,
            Some(Output::Notify(_) | Output::CannotFit { .. }) | None => None,
        };
        let before = self.agent.thread().size().tokens;
        // Within its target a thread has nothing that has to go.
        let counted = self.ratio.scale_up(before);
        if target.is_some_and(|target| counted <= target) {
            return Ok(Compacted::nothing(before).output());
        }
        let done = self.compact_for(CompactionReason::AgentTool, target, None, emit).await?;
        Ok(match done {
            Ok(Done { id, report, calls, .. }) => Compacted {
                messages_compressed: self.taken_by(id),
                batches_created: calls,
                tokens_estimate_before: report.before.tokens,
                tokens_estimate_after: report.after.tokens,
            }
            .output(),
            Err(CompactionError::Strategy(failed)) if failed.error.is_nothing_to_compact() => {
                Compacted::nothing(before).output()
            }
            Err(error) => tools::not_compacted(error.to_string()),
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
        let Checked { results, brief, id, driven } = checked;
        let span = CompactionSpan::begin(self.agent.thread(), self.thread_id(), COMPACT, &brief);
        let begun = self.begin_compaction(id, &brief, COMPACT.into(), emit).await;
        // From here to the commit nothing is awaited: results and compaction are both there, or
        // neither is.
        self.append(results, self.clock.now())?;
        let done = self.conversation().commit(&span, id, COMPACT, &brief, driven);
        let stored = self.journal.flush().await.inspect_err(|_| span.error("store"));
        drop(span);
        let words = done.as_ref().err().map(ToString::to_string).unwrap_or_default();
        self.end_compaction(begun, words, emit).await;
        stored?;
        done?;
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
        let blocks = results.iter().enumerate().filter_map(|(place, result)| match result {
            None if place == index => Some(ToolResult::text(call.id.clone(), COMPACTED).into()),
            result => result.clone().map(ContentBlock::from),
        });
        let results = self.stamped(Message::new(Role::User, blocks.collect()));
        let id = self.next_compaction();
        let options = CompactOptions { compaction: Some(id), ..CompactOptions::default() };
        let thread: Vec<Message> = self.messages().iter().chain([&results]).cloned().collect();
        let plan = |said: &Text| Plan::of_call(&thread, &call.id, &ranges, &options, said);
        let refused = |error: CompactError| self.refused(&error);
        // What is said holds the numbers, which are those of a plan that says nothing.
        let report = self.report(&thread, &plan(&Text::default()).map_err(refused)?);
        let said = format!("The thread was compacted as you asked: {report}. Go on with the task.");
        let plan = plan(&said.into()).map_err(refused)?;
        let mut proposal = Proposal::new(plan);
        proposal.retention = self.measured(thread, &proposal.plan);
        let (now, reason) = (self.clock.now(), CompactionReason::AgentTool);
        let brief = Brief { compaction: Some(id), reason, now, ..Brief::default() };
        Ok(Checked { results, brief, id, driven: Driven::new(proposal) })
    }

    /// What the thread says after the model's own plan. Nothing is added to its words.
    fn measured(&mut self, mut thread: Vec<Message>, plan: &Plan) -> Option<Retention> {
        let policy = self.retention.as_ref()?;
        let (log, redactor) = (self.journal.log(), self.redactor.as_deref());
        let facts = self.facts.of(log, &policy.audit, redactor);
        plan.apply(&mut thread).ok()?;
        Some(facts.audit(&thread).shortened())
    }

    fn report(&self, thread: &[Message], plan: &Plan) -> CompactReport {
        let counter = self.agent.thread().counter().as_ref();
        let (before, mut after) = (Size::of(thread, counter), thread.to_vec());
        // It was made for this thread.
        let _ = plan.apply(&mut after);
        CompactReport::new(before, &after, plan, counter)
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
