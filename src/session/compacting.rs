//! The one path that every compaction of a session takes, whatever requested it.
//!
//! | requested by | entry point | proposed by |
//! |---|---|---|
//! | the trigger, the hard check, a refusal, `/compact`, `@compact`, the tool `compact_context` | [`Session::compact_for`] | the strategy, with its fallback |
//! | the tool `compact` | [`Session::carry_out`] | the model, as named ranges |
//! | [`Session::adopt`] | [`Session::carry_out`] | a prepared compaction |
//! | [`Session::replace`], [`Session::redo_compaction`] | [`Session::carry_out`] | the host, or the log |
//!
//! Each becomes a [`Compaction`] with one start event and one end event; at most one is in flight.
//! If the host drops the stream, the compaction stays in flight, and the next turn ends it.

use std::sync::Arc;

use futures::{
    FutureExt,
    future::{self, BoxFuture},
};

use super::{error::Result, event::SessionEvent, events::Emit, session::Session};
use crate::{
    auto::Input,
    compaction::{Compaction, CompactionEvent},
    drive::{Calls, CompactionError, CompactionSpan, Conversation, Listener},
    log::CompactionRecord,
    message::{
        CompactionId, CompactionReason, ContextWindow, Delta, InvalidValue, Message, Timestamp,
    },
    model::AgentModel,
    strategy::{self, Brief, CompactionStrategy, Fallback, ModelCall, Proposal, Terms, When},
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
    ) -> BoxFuture<'a, Result<Result<CompactionRecord, CompactionError>>> {
        let work = async move {
            let Order { reason, target, limit, next_prompt, strategy } = order;
            let limit = limit.map(|tokens| self.auto.ratio().unscale(tokens));
            // A host that passes a strategy may have changed its options since the last compaction,
            // so the thread may be compacted again.
            let when = if strategy.is_none() { When::Grown } else { When::Due };
            let strategy = strategy.unwrap_or_else(|| Arc::clone(&self.settings.strategy));
            let brief = Brief { next_prompt, limit, ..self.brief(reason, target) };
            let terms = Terms { fallback: Some(Fallback::IfNeeded), when };
            let view = match self.conversation().view(&brief).boxed().await {
                Ok(view) => view,
                Err(error) => return self.not_begun(error, brief, emit).await,
            };
            let span = self.conversation().span(strategy.name(), &brief);
            let id = brief.compaction.unwrap_or_else(|| self.next_compaction());
            let thread = self.thread_id().clone();
            let mut start = Some(Compaction::begin(id, thread, strategy.name(), &view.brief));
            let outcome = {
                let conversation = AgentModel(self.agent.as_ref());
                let redactor = self.journal.redactor().map(AsRef::as_ref);
                let models = self.settings.models(&conversation, redactor);
                let (start, in_flight) = (&mut start, &mut self.compaction);
                let mut progress = EmitProgress { emit, start, in_flight };
                let mut calls = Calls { models, span: &span, listener: &mut progress };
                strategy::propose(strategy.as_ref(), &view, &mut calls, terms).await
            };
            let outcome = outcome.map_err(CompactionError::from);
            match (start, &outcome) {
                (Some(_), Err(error)) if error.is_nothing_to_compact() => {
                    return self.not_begun(error.clone(), brief, emit).await;
                }
                (Some(compaction), _) => span.run(self.start(compaction, emit)).await,
                (None, _) => {}
            }
            let done = span.run(self.conclude(outcome, None, &span)).await;
            self.emit_end(emit).await;
            outcome_of(done)
        };
        work.boxed()
    }

    /// Reports to the trigger that nothing was compacted.
    async fn not_begun(
        &mut self,
        error: CompactionError,
        brief: Brief,
        emit: &mut Emit,
    ) -> Result<Result<CompactionRecord, CompactionError>> {
        let failed = Input::Failed { reason: brief.reason };
        emit.notice_of(self.auto.handle(brief.now, failed)).await;
        outcome_of(Err(error))
    }

    /// Carries out a proposal that already exists. The arriving message, if any, is appended to
    /// thread and log in the same step.
    pub(super) async fn carry_out(
        &mut self,
        strategy: &str,
        brief: &Brief,
        outcome: Result<Proposal, CompactionError>,
        arriving: Option<Message>,
        (span, emit): (&CompactionSpan, &mut Emit),
    ) -> Result<CompactionRecord, CompactionError> {
        let id = brief.compaction.unwrap_or_else(|| self.next_compaction());
        let redacted = self.journal.redacted(brief);
        let compaction = Compaction::begin(id, self.thread_id().clone(), strategy, &redacted);
        span.run(self.start(compaction, emit)).await;
        let done = span.run(self.conclude(outcome, arriving, span)).await;
        self.emit_end(emit).await;
        done
    }

    /// Ends a compaction whose stream was dropped, and emits its end event unless that was
    /// delivered. The start event was delivered in any case: the poll that emits an event also
    /// delivers it.
    pub(super) async fn end_interrupted(&mut self, emit: &mut Emit) -> Result<(), CompactionError> {
        let Some(compaction) = &self.compaction else { return Ok(()) };
        if self.shared.lock().last_compaction == Some((compaction.id, true)) {
            self.compaction = None;
            return Ok(());
        }
        let now = self.now();
        let (compaction, mut conversation) = self.in_flight()?;
        let mut ended = Ok(());
        if compaction.end().is_none() {
            compaction.interrupted();
            compaction.now = now;
            ended = conversation.end(compaction, &CompactionSpan::none()).await;
            self.report_end_to_trigger();
            self.show();
        }
        self.emit_end(emit).await;
        ended
    }

    /// Puts a compaction in flight and emits its start event.
    async fn start(&mut self, compaction: Compaction, emit: &mut Emit) {
        let started = compaction.started();
        self.compaction = Some(compaction);
        emit.event(SessionEvent::Compaction(started)).await;
    }

    /// Carries the compaction in flight from its proposal to its end, and reports the end to the
    /// trigger.
    async fn conclude(
        &mut self,
        outcome: Result<Proposal, CompactionError>,
        arriving: Option<Message>,
        span: &CompactionSpan,
    ) -> Result<CompactionRecord, CompactionError> {
        let now = self.now();
        let (compaction, mut conversation) = self.in_flight()?;
        conversation.arriving = arriving;
        compaction.now = now;
        let done = conversation.conclude(compaction, span, outcome).await;
        self.report_end_to_trigger();
        self.show();
        done
    }

    /// The compaction in flight and the conversation that it changes.
    fn in_flight(&mut self) -> Result<(&mut Compaction, Conversation<'_>), InvalidValue> {
        let none = InvalidValue::unexpected("this input", "no compaction has begun");
        let (conversation, compaction) = self.parts();
        Ok((compaction.ok_or(none)?, conversation))
    }

    /// Reports the end of the compaction in flight to the trigger, and keeps the trigger's notice
    /// for the host.
    fn report_end_to_trigger(&mut self) {
        let now = self.now();
        let Some(compaction) = &self.compaction else { return };
        let reason = compaction.reason.clone();
        let input = match compaction.record() {
            Some(_) => Input::Compacted { reason },
            None => Input::Failed { reason },
        };
        self.notice = self.auto.handle(now, input);
    }

    /// Emits the end event of the compaction in flight. The compaction is cleared only after
    /// delivery, so that a dropped stream does not lose the event.
    async fn emit_end(&mut self, emit: &mut Emit) {
        if let Some(end) = self.compaction.as_ref().and_then(Compaction::end) {
            emit.event(SessionEvent::Compaction(end.clone())).await;
        }
        self.compaction = None;
        let notice = self.notice.take();
        emit.notice_of(notice).await;
    }

    /// The brief of the next compaction. `target` is in tokens as the provider counts them.
    pub(super) fn brief(&self, reason: CompactionReason, target: Option<u64>) -> Brief {
        Brief {
            compaction: Some(self.next_compaction()),
            reason,
            next_prompt: None,
            target: target.map(|tokens| self.auto.ratio().unscale(tokens)),
            limit: None,
            retention: self.settings.retention.clone(),
            binds_reasoning: self.agent.binds_reasoning(),
            moderators: self.settings.moderators.clone(),
            now: self.now(),
        }
    }

    /// The next free compaction id: after those in the log, those reserved by jobs, and the one in
    /// flight.
    pub(super) fn next_compaction(&self) -> CompactionId {
        let next = self.journal.log().next_compaction().max(self.reserved);
        self.compaction.as_ref().map_or(next, |compaction| next.max(compaction.id.next()))
    }

    /// The conversation, with the system prompt, tools and limits that strategies see.
    pub(super) fn conversation(&mut self) -> Conversation<'_> {
        self.parts().0
    }

    /// The conversation, and the compaction in flight, if any.
    fn parts(&mut self) -> (Conversation<'_>, Option<&mut Compaction>) {
        let (system, window) = (self.system_prompt(), self.window());
        // Strategies count with the counter, which the provider's count may exceed.
        let window =
            window.map(|window| ContextWindow::new(self.auto.ratio().unscale(window.tokens())));
        let mut conversation = Conversation::new(&mut self.journal)
            .with_provider(self.agent.as_mut())
            .with_window(window)
            .with_prices(self.auto.policy().prices);
        (conversation.system, conversation.tools) = (system, self.tools.clone());
        (conversation, self.compaction.as_mut())
    }

    pub(super) fn now(&self) -> Timestamp {
        self.settings.clock.now()
    }
}

/// Puts a compaction in flight when it begins, and emits its progress.
struct EmitProgress<'e> {
    emit: &'e mut Emit,
    /// The compaction, until it begins.
    start: &'e mut Option<Compaction>,
    in_flight: &'e mut Option<Compaction>,
}

impl Listener for EmitProgress<'_> {
    fn on_event<'a>(&'a mut self, call: &ModelCall, delta: Option<&Delta>) -> BoxFuture<'a, ()> {
        let mut events = Vec::new();
        if let Some(compaction) = self.start.take() {
            events.push(compaction.started());
            *self.in_flight = Some(compaction);
        }
        let Some(compaction) = self.in_flight.as_mut() else {
            return future::ready(()).boxed();
        };
        let id = compaction.id;
        match delta {
            None => {
                let (done, total) = (call.done, call.total);
                events.push(CompactionEvent::Progress { id, done, total });
            }
            Some(Delta::Text { text }) => {
                events.push(CompactionEvent::SummaryDelta { id, text: text.clone() });
            }
            Some(Delta::Answer { answer }) => {
                compaction.spent(answer.usage.unwrap_or_default());
            }
            Some(Delta::Thinking { .. } | Delta::ToolUse { .. } | Delta::ToolInput { .. }) => {}
        }
        let emit = &mut *self.emit;
        let work = async move {
            for event in events {
                emit.event(SessionEvent::Compaction(event)).await;
            }
        };
        work.boxed()
    }
}

/// Returns the outcome of a compaction, or else an error of the store, which is an error of the
/// session: the compaction was already applied or has not begun.
pub(super) fn outcome_of<T>(
    done: Result<T, CompactionError>,
) -> Result<Result<T, CompactionError>> {
    let failed = done.as_ref().err().and_then(CompactionError::of_log_store).cloned();
    failed.map_or(Ok(done), |error| Err(error.into()))
}
