//! The life of a compaction in a session, whatever asked for it.
//!
//! | begun by | comes in through | how it is proposed |
//! |---|---|---|
//! | the trigger, the hard check, a refusal, `/compact`, `@compact`, the tool `compact_context` | [`Session::compact_for`] | by the strategy, with the net below it |
//! | the tool `compact`, the host's replacements | [`Session::replace`] | named ranges |
//! | [`Session::adopt`] | [`Session::adopt`] | prepared by a [`CompactionJob`](super::CompactionJob) |
//!
//! Each becomes the one [`Compaction`] that the session has in flight, with one start and one end. A
//! stream that is dropped leaves it there, and the next turn ends it.

use std::sync::Arc;

use futures::{
    FutureExt,
    future::{self, BoxFuture},
};

use super::{error::SessionError, event::SessionEvent, events::Emit, session::Session};
use crate::{
    auto::Input,
    compaction::{Compaction, CompactionEvent, Done, DriveError, Driven, UnexpectedInput},
    drive::{
        CompactionError, CompactionSpan, Conversation, DriveEvent, Listener, Models, drive_with,
        logged_snapshot, nothing_to_do,
    },
    message::{CompactionId, CompactionReason, Delta, Message, Timestamp},
    model::AgentModel,
    strategy::{Attempt, Brief, CompactionStrategy, Net, Snapshot},
};

/// What a compaction is asked for.
#[derive(Debug)]
pub(super) struct Order {
    pub(super) reason: CompactionReason,
    /// The tokens that the thread should have afterwards, as the provider counts.
    pub(super) target: Option<u64>,
    /// The most tokens with which it helps; `None` where any gain does.
    pub(super) limit: Option<u64>,
    /// What is sent next.
    pub(super) next_prompt: Option<Message>,
}

impl Session {
    /// Compacts once by the strategy, with all events. The outer result is that of the session, the
    /// inner one that of the compaction.
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
        let Order { reason, target, limit, next_prompt } = order;
        let strategy = Net::new(Arc::clone(&self.settings.strategy), self.uncalibrated(limit));
        let strategy = match reason {
            CompactionReason::Overflow | CompactionReason::ModelSwitch => {
                strategy.with_last_resort()
            }
            CompactionReason::Threshold
            | CompactionReason::Manual { .. }
            | CompactionReason::AgentTool
            | CompactionReason::Background => strategy,
        };
        let brief = self.brief(self.next_compaction(), reason, target, next_prompt);
        let (snapshot, redacted) = (self.snapshot_for(&brief), self.redacted_brief(&brief));
        let mut attempt = strategy.begin(&snapshot, &redacted);
        if let Some(error) = nothing_to_do(attempt.as_ref()) {
            let notice = self.auto.handle(brief.now, Input::Failed { reason: brief.reason });
            emit.notice_of(notice).await;
            return Ok(Err(error.into()));
        }
        let span = self.span(strategy.name(), &brief);
        self.begin(strategy.name(), &redacted, emit).await;
        let outcome = span.run(self.ask_models(attempt.as_mut(), emit)).await;
        let done = span.run(self.conclude(outcome, None, &span)).await;
        self.emit_end(emit).await;
        stored(done)
    }

    /// Carries out ranges that somebody named and that were checked. The message, if any, comes into
    /// thread and log in the same moment.
    pub(super) async fn replace(
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

    /// Ends a compaction that was prepared beside the conversation. Its events come first in the next
    /// stream.
    pub(super) async fn end_prepared(
        &mut self,
        strategy: &str,
        brief: &Brief,
        outcome: Result<Driven, DriveError>,
        span: &CompactionSpan,
    ) -> Result<Done, CompactionError> {
        if self.compaction.is_some() {
            // Nobody listens, so its end is told with the next stream too.
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

    /// Tells the end of a compaction whose stream was dropped before, and records it.
    pub(super) async fn end_interrupted(&mut self, emit: &mut Emit) -> Result<(), SessionError> {
        let Some(compaction) = &self.compaction else { return Ok(()) };
        let id = compaction.id();
        match self.shared.last_compaction() {
            // The stream was dropped right after the end.
            Some(last) if last == (id, true) => self.compaction = None,
            Some(last) if last == (id, false) => {
                let ended = self.interrupt().await;
                self.emit_end(emit).await;
                return stored(ended).map(|_| ());
            }
            // Nobody heard of its start, so nobody waits for its end.
            Some(_) | None => {
                let reason = compaction.reason().clone();
                self.compaction = None;
                let _ = self.auto.handle(self.now(), Input::Failed { reason });
            }
        }
        Ok(())
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

    /// Makes a compaction the one in flight and announces it.
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

    /// Takes what was proposed, carries the compaction to its end, and has the trigger know.
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
        done
    }

    /// The compaction in flight, and what it changes.
    fn in_flight(&mut self) -> Result<(&mut Compaction, Conversation<'_>), UnexpectedInput> {
        let none = UnexpectedInput { state: "not begun" };
        let compaction = self.compaction.as_mut().ok_or(none)?;
        let mut conversation = Conversation::new(self.agent.as_mut(), &mut self.journal);
        if let Some(archive) = &self.settings.archive {
            conversation = conversation.with_archive(archive.as_ref());
        }
        if let Some(redactor) = &self.settings.redactor {
            conversation = conversation.with_redactor(redactor.as_ref());
        }
        Ok((compaction, conversation))
    }

    /// Has the trigger know how the compaction in flight ended. What it says to that is told with the
    /// end.
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

    /// Tells the end of the compaction in flight. It stays in flight until that was heard.
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

    /// Drives an attempt and tells what happens meanwhile.
    async fn ask_models(
        &self,
        attempt: &mut dyn Attempt,
        emit: &mut Emit,
    ) -> Result<Driven, DriveError> {
        let id = self.compaction.as_ref().map(Compaction::id).unwrap_or_default();
        let conversation = AgentModel(self.agent.as_ref());
        let models = Models {
            conversation: Some(&conversation),
            fast: self.settings.fast.as_deref(),
            sleeper: Some(self.settings.sleeper.as_ref()),
        };
        drive_with(attempt, models, &mut EmitProgress { emit, id }).await
    }

    /// The brief of a compaction. The target is as the provider counts.
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

    /// Strategies count with the thread's own counter.
    fn uncalibrated(&self, tokens: Option<u64>) -> Option<u64> {
        tokens.map(|tokens| self.ratio.scale_down(tokens))
    }

    /// The number of the next compaction: after those in the log, those reserved by jobs, and the one
    /// in flight.
    pub(super) fn next_compaction(&self) -> CompactionId {
        let next = self.journal.log().next_compaction().max(self.reserved);
        self.compaction.as_ref().map_or(next, |compaction| next.max(compaction.id().next()))
    }

    /// What a strategy sees of the session now, with the facts of everything that was said if the
    /// brief asks for retention.
    pub(super) fn snapshot_for(&mut self, brief: &Brief) -> Snapshot {
        self.read_rules();
        let redactor = self.settings.redactor.as_deref();
        let snapshot = logged_snapshot(self.agent.thread(), self.journal.log())
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

    /// The brief that a strategy sees.
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

/// Tells what happens while models are asked.
struct EmitProgress<'e> {
    emit: &'e mut Emit,
    id: CompactionId,
}

impl Listener for EmitProgress<'_> {
    fn hear(&mut self, event: DriveEvent<'_>) -> BoxFuture<'_, ()> {
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

/// What was done is done; that it could not be stored is the session's trouble.
fn stored<T>(done: Result<T, CompactionError>) -> Result<Result<T, CompactionError>, SessionError> {
    match done {
        Err(CompactionError::Store(error)) => Err(error.into()),
        done => Ok(done),
    }
}
