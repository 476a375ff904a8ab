//! The work of a turn: the thin loop over the machine.

use futures::{FutureExt, StreamExt, future};

use super::{
    calls::Called,
    command::Command,
    compaction::{Before, tell},
    error::SessionError,
    event::SessionEvent,
    events::Emit,
    lawful::lawful,
    session::Session,
};
use crate::{
    auto::{Input, Output},
    log::{Event, LocalNotice},
    message::{
        CacheMarks, CompactionReason, ContentBlock, Delta, Extra, Message, MessageParts,
        ModelError, ModelErrorKind, Request, Role, SystemReminder, Text, Timestamp, ToolUse, Turn,
        Usage,
    },
    model::cut_short,
    turn::{self, Finished, TurnMachine, TurnStep},
};

/// What calls get whose turn was cancelled before they had a result.
const CANCELLED: &str = "Cancelled before it was done.";

/// What a session is asked to do.
#[derive(Debug)]
pub(super) enum Asked {
    /// Send this, and go on until the agent has come to its answer.
    Message(Message),
    /// Compact.
    Compact { focus: Option<Text> },
    /// Compact, and send this.
    CompactAndSend { prompt: Option<Text> },
}

impl Asked {
    pub(super) fn parse(text: Text) -> Self {
        match Command::parse(&text) {
            None => Self::Message(said(text)),
            Some(Command::Compact { focus }) => Self::Compact { focus: focus.map(Text::from) },
            Some(Command::CompactAndSend { prompt }) => {
                Self::CompactAndSend { prompt: prompt.map(Text::from) }
            }
        }
    }
}

/// What a person says, with room for the checkpoint behind it.
fn said(text: Text) -> Message {
    let mut content = Vec::with_capacity(2);
    content.push(ContentBlock::text(text));
    Message::new(Role::User, content)
}

impl Session {
    /// Does what was asked, and everything that was left by a turn that was dropped.
    pub(super) async fn work(&mut self, asked: Asked, emit: &mut Emit) -> Result<(), SessionError> {
        if self.begun.is_some() {
            // On the heap by itself, because every turn would carry the room for it along.
            self.end_begun(emit).boxed().await?;
        }
        if std::mem::take(&mut self.in_turn) {
            // The turn before was dropped.
            let (now, pressure) = (self.clock.now(), self.pressure(0));
            tell(self.auto.handle(now, Input::TurnEnded(pressure)), emit).await;
        }
        // A future that finds nothing to do is made and dropped all the same.
        if !self.journal.unstored().is_empty() {
            self.journal.flush().await?;
        }
        let mut next = match asked {
            Asked::Message(message) => Some(message),
            Asked::Compact { focus } => {
                self.command(focus, None, emit).boxed().await?;
                None
            }
            Asked::CompactAndSend { prompt } => {
                let prompt = Message::user(prompt.unwrap_or_else(|| "Please continue.".into()));
                self.command(None, Some(&prompt), emit).boxed().await?;
                Some(prompt)
            }
        };
        loop {
            if let Some(message) = next.take() {
                self.turn(message, emit).await?;
            }
            // A turn for each message that was queued meanwhile.
            let Some(text) = self.shared.next_queued() else { return Ok(()) };
            next = Some(Message::user(text.clone()));
            emit.event(SessionEvent::QueuedMessage { text }).await;
        }
    }

    /// Compacts because a person said so, and leaves a line that says how it went.
    async fn command(
        &mut self,
        focus: Option<Text>,
        next: Option<&Message>,
        emit: &mut Emit,
    ) -> Result<(), SessionError> {
        self.answer_open_calls()?;
        let (now, pressure) = (self.clock.now(), self.pressure(0));
        let asked = self.auto.handle(now, Input::Requested { focus, pressure });
        let Some(Output::Compact { reason, .. }) = asked else { return Ok(()) };
        // Whoever asks for it wants it also where the thread is small.
        let line = match self.compact_for(reason, None, next.cloned(), emit).await? {
            Ok(done) => format!("Compacted: {}.", done.report),
            Err(error) => format!("Not compacted: {error}."),
        };
        self.notice(line, emit).await?;
        Ok(())
    }

    async fn notice(&mut self, line: String, emit: &mut Emit) -> Result<(), SessionError> {
        let text = self.line(line);
        let event = Event::LocalNotice(LocalNotice { text: text.clone() });
        self.journal.append(self.clock.now(), event)?;
        self.journal.flush().await?;
        emit.event(SessionEvent::Notice { text }).await;
        Ok(())
    }

    async fn turn(&mut self, message: Message, emit: &mut Emit) -> Result<(), SessionError> {
        self.answer_open_calls()?;
        self.in_turn = true;
        let ended = self.rounds(message, emit).await;
        self.ended(ended, emit).await
    }

    /// Ends a turn, and does what is due behind it. Not a part of the future of the turn, which would
    /// have room for an error beside everything else.
    fn ended<'a>(
        &'a mut self,
        ended: Result<Timestamp, SessionError>,
        emit: &'a mut Emit,
    ) -> impl Future<Output = Result<(), SessionError>> {
        self.in_turn = false;
        let now = ended.as_ref().map_or_else(|_| self.clock.now(), |at| *at);
        let pressure = self.pressure(0);
        match self.auto.handle(now, Input::TurnEnded(pressure)) {
            None => future::ready(ended.map(|_| ())).left_future(),
            // On the heap by itself, because every turn would carry the room for it along.
            Some(after) => self.follow(after, ended, emit).boxed().right_future(),
        }
    }

    /// Does what is due behind a turn, and returns how that ended.
    async fn follow(
        &mut self,
        after: Output,
        ended: Result<Timestamp, SessionError>,
        emit: &mut Emit,
    ) -> Result<(), SessionError> {
        match after {
            Output::Compact { reason, target } if ended.is_ok() => {
                // The turn is over, whatever becomes of this.
                let _ = self.compact_for(reason, target, None, emit).await?;
            }
            Output::Compact { .. } | Output::Notify(_) | Output::CannotFit { .. } => {
                tell(Some(after), emit).await;
            }
        }
        ended.map(|_| ())
    }

    /// Goes on until the model has come to its answer, and returns when that was. The clock is asked
    /// once behind everything that takes its time: the model, the tools, a compaction.
    async fn rounds(
        &mut self,
        message: Message,
        emit: &mut Emit,
    ) -> Result<Timestamp, SessionError> {
        let message = self.with_reminder(message);
        let message = lawful(self.agent.thread(), message);
        // With everything that it will have, so that all of it is counted.
        let message = self.stamped(message);
        let mut now = self.guard(Before::Prompt(&message), self.clock.now(), emit).await?;
        self.append(message, now)?;
        let (mut machine, mut usage) = (TurnMachine::new(self.max_rounds), Usage::default());
        let mut asked = false;
        loop {
            // What the next step builds on is stored before it is taken.
            if !self.journal.unstored().is_empty() {
                self.journal.flush().await?;
            }
            match machine.step() {
                TurnStep::CallModel => {
                    if std::mem::replace(&mut asked, true) {
                        self.guard(Before::Continuing, now, emit).await?;
                    }
                    let turn = self.call_model(emit).await?;
                    now = self.clock.now();
                    usage += turn.usage.unwrap_or_default();
                    self.take(turn, &mut machine, now)?;
                }
                TurnStep::CallTools(calls) => {
                    let Called { results, appended } = self.call_tools(calls, emit).await?;
                    now = self.clock.now();
                    for (call, result) in results.into_iter().enumerate() {
                        let Some(result) = result else { continue };
                        let message = machine.handle_result(call, result)?;
                        if let Some(message) = message.filter(|_| !appended) {
                            let message = self.with_due_reminder(message);
                            self.append_user(message, now)?;
                        }
                    }
                }
                TurnStep::Finished(finished) => {
                    let Finished { stop_reason, rounds, capped } = finished.clone();
                    emit.event(SessionEvent::TurnEnded { stop_reason, rounds, capped, usage })
                        .await;
                    return Ok(now);
                }
            }
        }
    }

    /// Takes an answer into the thread.
    fn take(
        &mut self,
        turn: Turn,
        machine: &mut TurnMachine,
        now: Timestamp,
    ) -> Result<(), SessionError> {
        self.learn(&turn);
        let turn = self.mended(turn);
        self.count_written(&turn);
        let refused = machine.handle_turn(&turn)?;
        // An answer of nothing leaves nothing in the thread.
        if !turn.message.content.is_empty() {
            self.append(turn.message, now)?;
        }
        match refused {
            Some(results) => self.append_user(results, now),
            None => Ok(()),
        }
    }

    /// Asks the model. A provider that says that the request is too long is believed: the thread is
    /// compacted, and the model asked again.
    async fn call_model(&mut self, emit: &mut Emit) -> Result<Turn, SessionError> {
        loop {
            let (reason, target) = match self.ask(emit).await {
                Ok(turn) => return Ok(turn),
                Err(error) => self.overflowed(error)?,
            };
            if let Err(failed) = self.compact_for(reason, target, None, emit).await? {
                return Err(failed.into());
            }
            self.guard(Before::Continuing, self.clock.now(), emit).await?;
        }
    }

    /// Returns for what to compact, and to how many tokens, after this error; the error itself where
    /// no compaction helps.
    fn overflowed(
        &mut self,
        error: ModelError,
    ) -> Result<(CompactionReason, Option<u64>), SessionError> {
        let ModelErrorKind::Overflow { limit, .. } = error.kind else { return Err(error.into()) };
        let (now, pressure) = (self.clock.now(), self.pressure(0));
        match self.auto.handle(now, Input::Overflowed { pressure, limit }) {
            Some(Output::Compact { reason, target }) => Ok((reason, target)),
            Some(Output::CannotFit { .. } | Output::Notify(_)) | None => Err(error.into()),
        }
    }

    async fn ask(&self, emit: &mut Emit) -> Result<Turn, ModelError> {
        let request = self.request();
        let mut deltas = self.agent.run_turn(request);
        while let Some(delta) = deltas.next().await {
            let event = match delta? {
                Delta::Text { text } => SessionEvent::TextDelta { text },
                Delta::Thinking { text } => SessionEvent::ThinkingDelta { text },
                Delta::ToolUse { .. } | Delta::ToolInput { .. } => continue,
                Delta::Turn { turn } => return Ok(turn),
            };
            emit.event(event).await;
        }
        Err(cut_short())
    }

    /// The next request. Every field is named, because the handles of a default one are allocated.
    fn request(&self) -> Request {
        Request {
            system: self.system_prompt(),
            messages: self.agent.messages().clone(),
            tools: self.specs.clone(),
            tool_choice: None,
            max_output: None,
            temperature: None,
            timeout: None,
            cache: CacheMarks::default(),
            extra: Extra::default(),
        }
    }

    /// Answers what a turn left open that was dropped.
    fn answer_open_calls(&mut self) -> Result<(), SessionError> {
        if self.agent.thread().open_calls().is_empty() {
            return Ok(());
        }
        let last = self.agent.messages().last();
        let calls: Vec<ToolUse> =
            last.into_iter().flat_map(|message| message.tool_uses()).cloned().collect();
        match turn::refused(&calls, CANCELLED) {
            Some(message) => self.append_user(message, self.clock.now()),
            None => Ok(()),
        }
    }

    /// The answer as it may stand in the thread, whatever role it came with.
    fn mended(&self, mut turn: Turn) -> Turn {
        if turn.message.role != Role::Assistant {
            turn.message.change(|parts| parts.role = Role::Assistant);
        }
        turn.message = lawful(self.agent.thread(), turn.message);
        turn
    }

    fn with_reminder(&mut self, mut message: Message) -> Message {
        if let Some(text) = &self.reminder {
            self.unreminded = 0;
            let reminder = SystemReminder::new(text.clone());
            message.change(|parts| parts.content.push(reminder.into()));
        }
        message
    }

    /// Reminds the model behind results, if it has written much since.
    fn with_due_reminder(&mut self, results: Message) -> Message {
        let is_due = self.remind_every.is_some_and(|tokens| self.unreminded >= tokens);
        if is_due { self.with_reminder(results) } else { results }
    }

    /// Counts what the model wrote, as it says itself where it does.
    fn count_written(&mut self, turn: &Turn) {
        let counter = self.agent.thread().counter();
        let written = turn.usage.map(|usage| usage.output).filter(|tokens| *tokens > 0);
        let written = written.unwrap_or_else(|| counter.message(&turn.message));
        self.unreminded = self.unreminded.saturating_add(written);
    }

    /// Appends a user message, with a checkpoint as its last block.
    fn append_user(&mut self, message: Message, now: Timestamp) -> Result<(), SessionError> {
        let message = self.stamped(message);
        self.append(message, now)
    }

    pub(super) fn stamped(&mut self, mut message: Message) -> Message {
        let thread = self.agent.thread();
        let id = self.ids.draw(|id| thread.checkpoint(id).is_some());
        message.change(|MessageParts { content, .. }| {
            // It is the last one. A vector that grows by itself takes room for four.
            content.reserve_exact(1);
            content.push(ContentBlock::checkpoint(id));
        });
        message
    }

    /// The only place where a message comes into thread and log: in both or in neither.
    pub(super) fn append(&mut self, message: Message, now: Timestamp) -> Result<(), SessionError> {
        self.rules.change();
        self.journal.append(now, Event::MessageAppended(message.clone()))?;
        self.agent.push(message);
        if self.rules_in_system_prompt {
            self.read_rules();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures::executor::block_on;

    use super::*;
    use crate::{model::ModelAgent, testing::ScriptedModel};

    #[test]
    fn only_a_turn_that_was_dropped_is_still_to_be_ended() {
        let model = Arc::new(ScriptedModel::new(["Hello!", "Never read.", "Hello again!"]));
        let mut session = Session::builder(ModelAgent::new(model)).build().unwrap();
        block_on(async { session.send("Hi.").await }).unwrap();
        assert!(!session.in_turn);
        assert!(block_on(session.send("And?").next()).is_some());
        assert!(session.in_turn);
        block_on(async { session.send("And now?").await }).unwrap();
        assert!(!session.in_turn);
    }
}
