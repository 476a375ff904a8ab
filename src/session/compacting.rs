//! Compactions in a session, whatever requested them.
//!
//! | requested by | entry point | proposed by |
//! |---|---|---|
//! | the trigger, the hard check, a refusal, `/compact`, `@compact`, the tool `compact_context` | [`Session::compact_for`] | the strategy, with the safety net below it |
//! | the tool `compact` | [`Session::replace_ranges`] | the model, as named ranges |
//! | [`Session::adopt`] | [`Session::end_prepared`] | a [`CompactionJob`](super::CompactionJob), earlier |
//!
//! Each becomes the one [`Compaction`] in flight, with one start event and one end event. Dropping
//! the stream leaves it in flight, and the next turn ends it.

use crate::message::UnexpectedInput;
use std::sync::Arc;

use futures::{
    FutureExt,
    future::{self, BoxFuture},
};

use super::{error::SessionError, event::SessionEvent, events::Emit, session::Session};
use crate::{
    auto::Input,
    compaction::{Compaction, CompactionEvent, Done, DriveError, Driven},
    drive::{
        CompactionError, CompactionSpan, Conversation, DriveEvent, Listener, Models, drive_with,
        logged_snapshot, nothing_to_do,
    },
    message::{CompactionId, CompactionReason, Delta, Message, Timestamp},
    model::AgentModel,
    strategy::{Attempt, Brief, CompactionStrategy, Net, Snapshot},
};

/// The parameters of a compaction.
#[derive(Debug)]
pub(super) struct Order {
    pub(super) reason: CompactionReason,
    /// Tokens that the thread should have afterwards, as the provider counts them.
    pub(super) target: Option<u64>,
    /// Maximum tokens with which the compaction helps; `None` if any reduction helps.
    pub(super) limit: Option<u64>,
    /// The prompt that is sent next.
    pub(super) next_prompt: Option<Message>,
    /// The strategy, if not that of the session.
    pub(super) strategy: Option<Arc<dyn CompactionStrategy>>,
}

impl Session {
    /// Runs the strategy once and emits all events. The outer result is an error of the session,
    /// the inner one the outcome of the compaction.
    ///
    /// Boxed: inlined, this rare path would enlarge every turn's future.
    pub(super) fn compact_for<'a>(
        &'a mut self,
        order: Order,
        emit: &'a mut Emit,
    ) -> BoxFuture<'a, Result<Result<Done, CompactionError>, SessionError>> {
        self.carry_out(order, emit).boxed()
    }

    async fn carry_out(
        &mut self,
        order: Order,
        emit: &mut Emit,
    ) -> Result<Result<Done, CompactionError>, SessionError> {
        let Order { reason, target, limit, next_prompt, strategy } = order;
        let strategy = strategy.unwrap_or_else(|| Arc::clone(&self.settings.strategy));
        let strategy = Net::new(strategy, self.uncalibrated(limit));
        let strategy = match reason {
            CompactionReason::Overflow | CompactionReason::ModelSwitch => {
                strategy.with_last_resort()
            }
            CompactionReason::Threshold
            | CompactionReason::Manual { .. }
            | CompactionReason::AgentTool
            | CompactionReason::Background => strategy,
        };
        let id = self.next_compaction();
        let brief = self.brief(id, reason, target, next_prompt);
        let (snapshot, redacted) = (self.snapshot_for(&brief), self.redacted_brief(&brief));
        let mut attempt = strategy.begin(&snapshot, &redacted);
        if let Some(error) = nothing_to_do(attempt.as_ref()) {
            let notice = self.auto.handle(brief.now, Input::Failed { reason: brief.reason });
            emit.notice_of(notice).await;
            return Ok(Err(error.into()));
        }
        let span = self.span(strategy.name(), &brief);
        self.begin(strategy.name(), &redacted, emit).await;
        let outcome = span.run(self.ask_models(attempt.as_mut(), id, emit)).await;
        let done = span.run(self.conclude(outcome, None, &span)).await;
        self.emit_end(emit).await;
        stored(done)
    }

    /// Applies a checked proposal of named ranges. The arriving message is appended to thread and
    /// log in the same step.
    pub(super) async fn replace_ranges(
        &mut self,
        strategy: &str,
        brief: &Brief,
        driven: Driven,
        arriving: Message,
        emit: &mut Emit,
    ) -> Result<Result<Done, CompactionError>, SessionError> {
        let (span, redacted) = (self.span(strategy, brief), self.redacted_brief(brief));
        self.begin(strategy, &redacted, emit).await;
        let done = span.run(self.conclude(Ok(driven), Some(arriving), &span)).await;
        self.emit_end(emit).await;
        stored(done)
    }

    /// Ends a prepared compaction. Its events are deferred to the next stream.
    pub(super) async fn end_prepared(
        &mut self,
        strategy: &str,
        brief: &Brief,
        outcome: Result<Driven, DriveError>,
        span: &CompactionSpan,
    ) -> Result<Done, CompactionError> {
        if self.compaction.is_some() {
            // No stream is open, so its end is deferred too.
            self.interrupt().await?;
            self.defer_end();
        }
        let compaction = self.machine(strategy, &self.redacted_brief(brief));
        self.shared.defer(SessionEvent::Compaction(compaction.started()));
        self.compaction = Some(compaction);
        let done = span.run(self.conclude(outcome, None, span)).await;
        self.defer_end();
        done
    }

    /// Ends a compaction whose stream was dropped, and reports the end unless it was delivered. The
    /// start was: the poll that emits an event delivers it, and deferred events come first.
    pub(super) async fn end_interrupted(&mut self, emit: &mut Emit) -> Result<(), SessionError> {
        let Some(compaction) = &self.compaction else { return Ok(()) };
        if self.shared.last_compaction() == Some((compaction.id(), true)) {
            self.compaction = None;
            return Ok(());
        }
        let ended = self.interrupt().await;
        self.emit_end(emit).await;
        stored(ended).map(|_| ())
    }

    async fn interrupt(&mut self) -> Result<(), CompactionError> {
        let now = self.now();
        let (compaction, mut conversation) = self.in_flight()?;
        if compaction.end().is_some() {
            return Ok(());
        }
        compaction.interrupted();
        compaction.set_now(now);
        let ended = conversation.end(compaction, &CompactionSpan::none()).await;
        self.report_end_to_trigger();
        ended
    }

    /// Puts a compaction in flight and emits its start.
    async fn begin(&mut self, strategy: &str, redacted: &Brief, emit: &mut Emit) {
        let compaction = self.machine(strategy, redacted);
        let started = compaction.started();
        self.compaction = Some(compaction);
        emit.event(SessionEvent::Compaction(started)).await;
    }

    fn machine(&self, strategy: &str, redacted: &Brief) -> Compaction {
        let id = redacted.compaction.unwrap_or_else(|| self.next_compaction());
        Compaction::begin(id, self.thread_id().clone(), strategy, redacted)
    }

    /// Carries the compaction in flight from its proposal to its end, and reports the end to the
    /// trigger.
    async fn conclude(
        &mut self,
        outcome: Result<Driven, DriveError>,
        arriving: Option<Message>,
        span: &CompactionSpan,
    ) -> Result<Done, CompactionError> {
        let now = self.now();
        self.rules.invalidate();
        let (compaction, mut conversation) = self.in_flight()?;
        if let Some(message) = arriving {
            conversation = conversation.with_arriving(message);
        }
        compaction.set_now(now);
        let done = conversation.conclude(compaction, span, outcome).await;
        self.report_end_to_trigger();
        self.show();
        done
    }

    /// The compaction in flight and the conversation that it changes.
    fn in_flight(&mut self) -> Result<(&mut Compaction, Conversation<'_>), UnexpectedInput> {
        let none = UnexpectedInput::new("this input", "no compaction has begun");
        let prices = self.auto.policy().prices;
        let system = self.system_prompt();
        let compaction = self.compaction.as_mut().ok_or(none)?;
        let mut conversation = Conversation::new(self.agent.as_mut(), &mut self.journal)
            .with_context(system, self.specs.clone())
            .with_prices(prices);
        if let Some(archive) = &self.settings.archive {
            conversation = conversation.with_archive(archive.as_ref());
        }
        if let Some(redactor) = &self.settings.redactor {
            conversation = conversation.with_redactor(redactor.as_ref());
        }
        Ok((compaction, conversation))
    }

    /// Reports the end of the compaction in flight to the trigger, and keeps the response for the
    /// host.
    fn report_end_to_trigger(&mut self) {
        let now = self.now();
        let Some(compaction) = &self.compaction else { return };
        let reason = compaction.reason().clone();
        let input = match compaction.done() {
            Some(_) => Input::Compacted { reason },
            None => Input::Failed { reason },
        };
        self.notice = self.auto.handle(now, input);
    }

    /// Emits the end of the compaction in flight. Cleared only after delivery, so that a dropped
    /// stream does not lose the end.
    async fn emit_end(&mut self, emit: &mut Emit) {
        if let Some(event) = self.end_event() {
            emit.event(event).await;
        }
        self.compaction = None;
        let notice = self.notice.take();
        emit.notice_of(notice).await;
    }

    fn defer_end(&mut self) {
        if let Some(event) = self.end_event() {
            self.shared.defer(event);
        }
        self.compaction = None;
    }

    fn end_event(&self) -> Option<SessionEvent> {
        self.compaction.as_ref()?.end().cloned().map(SessionEvent::Compaction)
    }

    /// Drives an attempt and emits its progress.
    async fn ask_models(
        &self,
        attempt: &mut dyn Attempt,
        id: CompactionId,
        emit: &mut Emit,
    ) -> Result<Driven, DriveError> {
        let conversation = AgentModel(self.agent.as_ref());
        let models = Models {
            conversation: Some(&conversation),
            fast: self.settings.fast.as_deref(),
            sleeper: Some(self.settings.sleeper.as_ref()),
        };
        drive_with(attempt, models, &mut EmitProgress { emit, id }).await
    }

    /// The brief of a compaction. `target` is in tokens as the provider counts them.
    pub(super) fn brief(
        &self,
        id: CompactionId,
        reason: CompactionReason,
        target: Option<u64>,
        next_prompt: Option<Message>,
    ) -> Brief {
        Brief {
            compaction: Some(id),
            reason,
            next_prompt,
            target: self.uncalibrated(target),
            retention: self.settings.retention.clone(),
            now: self.now(),
        }
    }

    /// Converts provider tokens to those of the thread's counter, which strategies use.
    fn uncalibrated(&self, tokens: Option<u64>) -> Option<u64> {
        tokens.map(|tokens| self.ratio.scale_down(tokens))
    }

    /// The next free compaction id: after those in the log, those reserved by jobs, and the one in
    /// flight.
    pub(super) fn next_compaction(&self) -> CompactionId {
        let next = self.journal.log().next_compaction().max(self.reserved);
        self.compaction.as_ref().map_or(next, |compaction| next.max(compaction.id().next()))
    }

    /// The snapshot for a strategy, with the facts of all logged messages if the brief asks for
    /// retention.
    pub(super) fn snapshot_for(&mut self, brief: &Brief) -> Snapshot {
        self.read_rules();
        let redactor = self.settings.redactor.as_deref();
        let snapshot = logged_snapshot(self.agent.thread(), self.journal.log())
            .with_subjects(&|call| self.host_tool(call)?.subject(call))
            .with_context(self.system_prompt(), self.specs.clone())
            .with_rules(Arc::new(self.rules().clone()))
            .with_window(self.window());
        let snapshot = match redactor {
            Some(redactor) => snapshot.redacted(redactor),
            None => snapshot,
        };
        match &brief.retention {
            Some(policy) => {
                let facts = self.facts.of(self.journal.log(), &policy.audit, redactor);
                snapshot.with_facts(facts)
            }
            None => snapshot,
        }
    }

    /// The brief as strategies see it, without what the redactor removes.
    pub(super) fn redacted_brief(&self, brief: &Brief) -> Brief {
        let redactor = self.settings.redactor.as_deref();
        redactor.map_or_else(|| brief.clone(), |redactor| brief.redacted(redactor))
    }

    fn span(&self, strategy: &str, brief: &Brief) -> CompactionSpan {
        CompactionSpan::begin(self.agent.thread(), self.thread_id(), strategy, brief)
    }

    pub(super) fn now(&self) -> Timestamp {
        self.settings.clock.now()
    }
}

/// Emits the progress of a compaction while models are called.
struct EmitProgress<'e> {
    emit: &'e mut Emit,
    id: CompactionId,
}

impl Listener for EmitProgress<'_> {
    fn on_event(&mut self, event: DriveEvent<'_>) -> BoxFuture<'_, ()> {
        let id = self.id;
        let event = match event {
            DriveEvent::Called { progress, .. } => {
                CompactionEvent::Progress { id, done: progress.done, total: progress.total }
            }
            DriveEvent::Delta(Delta::Text { text }) => {
                CompactionEvent::SummaryDelta { id, text: text.clone() }
            }
            DriveEvent::Delta(
                Delta::Thinking { .. }
                | Delta::ToolUse { .. }
                | Delta::ToolInput { .. }
                | Delta::Turn { .. },
            ) => return future::ready(()).boxed(),
        };
        self.emit.event(SessionEvent::Compaction(event)).boxed()
    }
}

/// Moves a store error to the session's result: the compaction itself was applied.
fn stored<T>(done: Result<T, CompactionError>) -> Result<Result<T, CompactionError>, SessionError> {
    match done {
        Err(CompactionError::Store(error)) => Err(error.into()),
        done => Ok(done),
    }
}
