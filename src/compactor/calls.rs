//! The two tools with which the model compacts its own thread, in a loop of the host's own.

use super::{compact::Work, value::Compactor};
use crate::{
    compact::Plan,
    compaction::{COMPACT, COMPACT_CONTEXT, COMPACTED, ContextCompacted, ONE_CALL, plan_call},
    drive::{CompactionError, Models},
    log::{self, CompactionRecord},
    message::{CompactionReason, ContentBlock, Message, Role, Text, ToolResult, ToolUse},
    strategy::{Brief, Proposal},
};

/// The result of a call for which the host supplied none.
const NO_RESULT: &str = "The call was not carried out.";

impl Compactor {
    /// Adds a checkpoint to every user message that does not end with one, so that the model can
    /// name ranges in a call of [`COMPACT`]. Call this before each request if the model has that
    /// tool.
    ///
    /// ```
    /// use threadfold::{Compactor, ContentBlock, Message};
    ///
    /// let mut messages = vec![Message::user("Hi."), Message::assistant("Hello!")];
    /// let compactor = Compactor::default();
    /// compactor.stamp(&mut messages);
    /// assert!(matches!(messages[0].content[1], ContentBlock::Checkpoint(_)));
    /// let stamped = messages.clone();
    /// compactor.stamp(&mut messages);
    /// assert_eq!(messages, stamped);
    /// ```
    pub fn stamp(&self, messages: &mut Vec<Message>) {
        // The seed changes with each compaction, so that no id of a removed message is used again.
        let seed = self.next.0.rotate_left(32) ^ messages.len() as u64;
        *messages = log::stamp(std::mem::take(messages), seed);
    }

    /// Appends the results of the calls in the last message, and carries out its calls of
    /// [`COMPACT`] and [`COMPACT_CONTEXT`]. The host passes only the results of its own tools, in
    /// any order; a call without a result gets an error. Without calls in the last message nothing
    /// happens.
    ///
    /// A call of `compact` replaces the ranges that the model named with the model's texts. A text
    /// replaces the call, and a reminder with the numbers replaces its result. If the call fails,
    /// its result gives the reason and lists the checkpoints. `compact_context` runs the strategy
    /// with `models`; its result has the numbers, or the error. Returns the last compaction that
    /// was carried out.
    ///
    /// The future may be dropped at any point; the thread is then unchanged.
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use threadfold::compaction::COMPACT;
    /// use threadfold::{Compactor, Message, Role, drive::Models, legality, message::ToolUse};
    ///
    /// let mut messages = vec![Message::user("Which colour?")];
    /// let mut compactor = Compactor::default();
    /// compactor.stamp(&mut messages);
    /// let range = serde_json::json!({"replacements": [{"summary": "They want a colour."}]});
    /// let call = ToolUse::new("c1", COMPACT, range);
    /// messages.push(Message::new(Role::Assistant, vec![call.into()]));
    ///
    /// let done = block_on(compactor.push_results(&mut messages, [], Models::default()))?;
    /// assert_eq!(done.map(|done| done.report.after.messages), Some(2));
    /// assert!(messages[0].is_summary());
    /// assert_eq!(legality::violations(&messages), []);
    /// # Ok::<(), threadfold::drive::CompactionError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`CompactionError`] if the thread could not be changed; it is then unchanged. A compaction
    /// that failed is not an error, but a result for the model.
    pub async fn push_results<'m>(
        &mut self,
        messages: &mut Vec<Message>,
        results: impl IntoIterator<Item = ToolResult>,
        models: impl Into<Models<'m>>,
    ) -> Result<Option<CompactionRecord>, CompactionError> {
        let (results, models): (Vec<ToolResult>, _) =
            (results.into_iter().collect(), models.into());
        let calls: Vec<ToolUse> =
            messages.last().into_iter().flat_map(|answer| answer.tool_uses()).cloned().collect();
        if calls.is_empty() {
            return Ok(None);
        }
        let (mut thread, mut done, mut compact) = (messages.clone(), None, None);
        let mut all = Vec::with_capacity(calls.len());
        for call in &calls {
            let given = results.iter().find(|result| result.tool_use_id == call.id);
            let result = match (given, call.name.as_str()) {
                (Some(result), _) => result.clone(),
                (None, COMPACT) if compact.is_some() => error(call, ONE_CALL),
                (None, COMPACT) => {
                    compact = Some(call);
                    ToolResult::text(call.id.clone(), COMPACTED)
                }
                (None, COMPACT_CONTEXT) => {
                    let (result, compacted) = self.run_context(call, &mut thread, models).await;
                    done = compacted.or(done);
                    result
                }
                (None, _) => error(call, NO_RESULT),
            };
            all.push(result);
        }
        let is_stamped = thread.iter().any(|message| message.checkpoints().next().is_some());
        thread.push(Message::new(Role::User, all.into_iter().map(Into::into).collect()));
        if is_stamped {
            self.stamp(&mut thread);
        }
        if let Some(call) = compact {
            done = self.run_compact(call, &mut thread).await?.or(done);
        }
        *messages = thread;
        Ok(done)
    }

    /// Runs the strategy for a call of `compact_context`.
    async fn run_context(
        &mut self,
        call: &ToolUse,
        thread: &mut Vec<Message>,
        models: Models<'_>,
    ) -> (ToolResult, Option<CompactionRecord>) {
        self.observe(thread);
        let before = self.size().tokens;
        let target = self.requested_target(self.pressure());
        let is_small = target.is_some_and(|target| self.ratio.scale_up(before) <= target);
        let brief = Brief { reason: CompactionReason::AgentTool, target, ..Brief::default() };
        let brief = self.completed(brief);
        if is_small {
            return (text(call, ContextCompacted::nothing(before)), None);
        }
        let done = self.carry_out(&brief, Work::Ask(models)).await;
        if done.is_ok() {
            *thread = self.messages().to_vec();
        }
        let (words, is_error) = ContextCompacted::result(before, done.as_ref());
        (ToolResult { is_error, ..text(call, words) }, done.ok())
    }

    /// Carries out a call of `compact`, or puts the error into its result, the last message.
    async fn run_compact(
        &mut self,
        call: &ToolUse,
        thread: &mut Vec<Message>,
    ) -> Result<Option<CompactionRecord>, CompactionError> {
        let number = self.next;
        let plan = plan_call(thread, call, number, self.options.counter.as_ref());
        let plan = match plan {
            Ok(plan) => plan,
            Err(words) => {
                replace_result(thread, error(call, words));
                return Ok(None);
            }
        };
        self.observe(thread);
        let reason = CompactionReason::AgentTool;
        let brief = self.completed(Brief { reason, ..Brief::default() });
        let done = self.carry_out(&brief, Work::Apply(self.audited(plan, thread)?)).await?;
        *thread = self.messages().to_vec();
        Ok(Some(done))
    }

    /// Audits the plan. Nothing is added to the model's own words.
    fn audited(&self, plan: Plan, thread: &[Message]) -> Result<Box<Proposal>, CompactionError> {
        let after = plan.after(thread)?;
        let mut proposal = Proposal::new(plan);
        proposal.retention =
            self.live.known.facts.as_ref().map(|facts| facts.audit(&after).shortened());
        Ok(Box::new(proposal))
    }
}

fn text(call: &ToolUse, text: impl Into<Text>) -> ToolResult {
    ToolResult::text(call.id.clone(), text)
}

fn error(call: &ToolUse, words: impl Into<Text>) -> ToolResult {
    ToolResult { is_error: true, ..text(call, words) }
}

/// Replaces the result of the same call in the last message.
fn replace_result(thread: &mut [Message], result: ToolResult) {
    let Some(last) = thread.last_mut() else { return };
    let at = last.content.iter().position(|block| {
        matches!(block, ContentBlock::ToolResult(old) if old.tool_use_id == result.tool_use_id)
    });
    if let Some(block) = at.and_then(|at| last.make_mut().content.get_mut(at)) {
        *block = result.into();
    }
}
