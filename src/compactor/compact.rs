//! Compacting the observed thread: one temporary conversation, compacted like any other, for the
//! host or for the two tools with which the model compacts its own thread.

use std::sync::Arc;

use super::value::Compactor;
use crate::{
    compact::Plan,
    compaction::{
        COMPACT, COMPACT_CONTEXT, COMPACTED, ContextCompacted, ONE_CALL, Result, plan_call,
    },
    drive::{self, Conversation, Models},
    log::{self, CompactionRecord, Event, EventLog},
    message::{
        CompactionReason, ContentBlock, ContextWindow, Message, Request, Role, Text, ToolResult,
        ToolUse,
    },
    store::Journal,
    strategy::{Brief, ConversationFacts, Fallback, Proposal, Terms},
};

/// The work of a compaction.
#[derive(Debug)]
pub(super) enum Work<'m> {
    /// Run the strategy with these models.
    Ask(Models<'m>),
    /// Carry out a call of the tool `compact`.
    Apply(Box<Proposal>),
}

impl Compactor {
    /// Compacts the thread to at most the target of the brief, and returns the result. A number is
    /// a brief with this target, in tokens as the provider counts them. Without a target, it
    /// follows from the [window](Self::with_window); without a window too, the strategy decides.
    ///
    /// The user's instructions are in the `reason` of the brief. `models` is one model, or
    /// [`Models`] with a fast one as well; [`Models::default`] is for strategies that call no model.
    /// A result that misses the target is accepted if it is smaller than before and fits the window;
    /// the report shows its size. If the thread does not fit the window and the strategy fails, tool
    /// results are trimmed, and then a digest is made.
    ///
    /// The future may be dropped at any point; the thread is then unchanged.
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use threadfold::{Compactor, Message, drive::Models, strategy::Brief};
    /// use threadfold::message::CompactionReason;
    ///
    /// let mut messages = vec![Message::user(format!("Read src/a.rs. {}", "Slowly. ".repeat(300)))];
    /// messages.extend([Message::assistant("I read it."), Message::user("And now?")]);
    /// let mut compactor = Compactor::default();
    /// let reason = CompactionReason::Manual { instructions: Some("the parser".into()) };
    /// let brief = Brief { target: Some(300), reason, ..Brief::default() };
    /// // Without a model the ladder ends with a digest.
    /// let done = block_on(compactor.compact(&mut messages, brief, Models::default()))?;
    /// assert!(done.report.after.tokens <= 300 && messages[0].is_summary());
    /// # Ok::<(), threadfold::drive::CompactionError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`CompactionError`](crate::drive::CompactionError); the thread is unchanged.
    pub async fn compact<'m>(
        &mut self,
        messages: &mut Vec<Message>,
        brief: impl Into<Brief>,
        models: impl Into<Models<'m>>,
    ) -> Result<CompactionRecord> {
        let (brief, models) = (brief.into(), models.into());
        self.observe(messages);
        let brief = self.completed(brief);
        let done = self.carry_out(&brief, Work::Ask(models)).await?;
        *messages = self.messages().to_vec();
        Ok(done)
    }

    /// Compacts the messages of a request like [`compact`](Self::compact). Its system prompt and
    /// tools replace those of [`with_context`](Self::with_context).
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use threadfold::{Compactor, Message, Request, drive::Models};
    ///
    /// let old = Message::user(format!("Never touch the lexer. {}", "Read it. ".repeat(300)));
    /// let thread = vec![old, Message::assistant("I read it."), Message::user("And now?")];
    /// let mut request = Request::new(thread).with_system("Be brief.");
    /// let mut compactor = Compactor::default();
    /// let done = block_on(compactor.compact_request(&mut request, 300, Models::default()))?;
    /// assert_eq!(done.report.after.messages, request.messages.len());
    /// # Ok::<(), threadfold::drive::CompactionError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`CompactionError`](crate::drive::CompactionError); the request is unchanged.
    pub async fn compact_request<'m>(
        &mut self,
        request: &mut Request,
        brief: impl Into<Brief>,
        models: impl Into<Models<'m>>,
    ) -> Result<CompactionRecord> {
        self.options.system = request.system.clone();
        self.options.tools = request.tools.clone();
        let mut messages = request.messages.to_vec();
        let done = self.compact(&mut messages, brief, models).await?;
        request.messages = messages.into();
        Ok(done)
    }

    /// Compacts the observed thread.
    pub(super) async fn carry_out(
        &mut self,
        brief: &Brief,
        work: Work<'_>,
    ) -> Result<CompactionRecord> {
        let terms = self.terms();
        let counter = Arc::clone(&self.options.counter);
        let log = log_of(self.messages(), brief)?;
        let mut journal = Journal::new(log).with_counter(counter);
        if let Some(redactor) = &self.options.redactor {
            journal = journal.with_redactor(Arc::clone(redactor));
        }
        let known = &self.live.known;
        let mut conversation = Conversation::new(&mut journal)
            .with_context(self.options.system.clone(), self.options.tools.clone())
            .with_window(
                self.options
                    .window
                    .map(|window| ContextWindow::new(self.ratio.unscale(window.tokens()))),
            );
        conversation.known = Some(ConversationFacts {
            next_compaction: self.next,
            rules: Arc::new(known.rules.clone()),
            facts: known.facts.clone(),
            compacted_by: self.live.compacted_by.clone(),
        });
        let done = match work {
            Work::Ask(models) => {
                conversation.terms = terms;
                let strategy = self.options.strategy.as_ref();
                drive::compact(&mut conversation, strategy, brief, models, &mut |_, _| {}).await?
            }
            Work::Apply(driven) => conversation.finish(COMPACT, brief, Ok(*driven)).await?,
        };
        self.live.known.rules.apply(&done.quoted);
        let thread = journal.thread().clone();
        self.compacted(thread, done.plan.new_messages(), &done.strategy);
        Ok(done)
    }

    /// The brief with the compactor's own policy, and with a target in tokens of the counter.
    pub(super) fn completed(&self, brief: Brief) -> Brief {
        let pressure = self.pressure();
        let half = pressure.thread / 2;
        let requested = self.requested_target(pressure).filter(|target| pressure.thread > *target);
        let target = brief.target.or_else(|| requested.map(|target| target.min(half)));
        Brief {
            compaction: Some(self.next),
            target: target.map(|target| self.ratio.unscale(target)),
            limit: brief.limit.or_else(|| self.fits()),
            retention: brief.retention.or_else(|| self.options.retention.clone()),
            ..brief
        }
    }

    /// How the strategy is run: with its fallback if the thread does not fit.
    fn terms(&self) -> Terms {
        let thread = self.live.thread.as_ref().map_or(0, |thread| thread.size().tokens);
        let fallback = match self.fits().is_some_and(|fits| thread > fits) {
            true => Fallback::Always,
            false => Fallback::IfNeeded,
        };
        Terms { fallback: Some(fallback), once: true, anyway: false }
    }

    /// The tokens of messages that fit the window.
    fn fits(&self) -> Option<u64> {
        let window = self.ratio.unscale(self.options.window?.tokens());
        Some(window.saturating_sub(self.overhead()))
    }
}

/// A log of these messages alone, for the record of one compaction.
fn log_of(messages: &[Message], brief: &Brief) -> Result<EventLog> {
    let mut log = EventLog::new("compactor".parse()?);
    for message in messages {
        log.append(brief.now, Event::MessageAppended(message.clone()))?;
    }
    Ok(log)
}

/// The result of a call for which the host supplied none.
const NO_RESULT: &str = "The call was not executed.";

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
        // Change the seed with each compaction, so that no id of a removed message is used again.
        let seed = self.next.0.rotate_left(32) ^ messages.len() as u64;
        *messages = log::stamp(std::mem::take(messages), seed);
    }

    /// Appends the results of the calls in the last message, and carries out its calls of
    /// [`COMPACT`] and [`COMPACT_CONTEXT`]. The host passes only the results of its own tools, in
    /// any order; a call without a result gets an error. If the last message has no calls, nothing
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
    /// [`CompactionError`](crate::drive::CompactionError) if the thread could not be changed; it is
    /// then unchanged. A compaction that failed is not an error, but a result for the model.
    pub async fn push_results<'m>(
        &mut self,
        messages: &mut Vec<Message>,
        results: impl IntoIterator<Item = ToolResult>,
        models: impl Into<Models<'m>>,
    ) -> Result<Option<CompactionRecord>> {
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
        let is_small = target.is_some_and(|target| self.ratio.scale(before) <= target);
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
    ) -> Result<Option<CompactionRecord>> {
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

    /// Audits the plan without adding anything to the model's summaries.
    fn audited(&self, plan: Plan, thread: &[Message]) -> Result<Box<Proposal>> {
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
