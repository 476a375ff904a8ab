//! The work of a turn: the async loop over the turn machine.

use std::collections::HashMap;

use futures::{FutureExt, StreamExt};

use super::{
    calls::Called,
    compacting::{Order, stored},
    error::{Result, SessionError},
    event::SessionEvent,
    events::Emit,
    send::UserInput,
    session::Session,
};
use crate::{
    auto::{Input, Output},
    log::Event,
    message::{
        CompactionReason, ContentBlock, Delta, Message, ModelError, ModelErrorKind, Request, Role,
        StopReason, Text, ToolUse, Turn, Usage,
    },
    turn::{self, TurnMachine, TurnStep},
};

/// The result of calls whose turn was cancelled before they finished.
const CANCELLED: &str = "Cancelled before it was done.";

impl Session {
    /// Runs the input. First it ends a dropped turn or compaction and runs the texts that were
    /// queued before number `queued_later`; texts that are queued meanwhile run last.
    pub(super) async fn work(
        &mut self,
        input: UserInput,
        queued_later: u64,
        emit: &mut Emit,
    ) -> Result<()> {
        if self.compaction.is_some() {
            // Boxed: inlined, this rare path would enlarge every turn's future. A failure of the
            // compaction was already reported by its events.
            let _ = stored(self.end_interrupted(emit).boxed().await)?;
        }
        if std::mem::take(&mut self.in_turn) {
            // The previous turn was dropped, so end it for the trigger too.
            let (now, pressure) = (self.now(), self.pressure(0));
            let notice = self.auto.handle(now, Input::TurnEnded(pressure));
            emit.notice_of(notice).await;
        }
        self.journal.flush().await?;
        while let Some(text) = self.shared.next_queued_before(queued_later) {
            self.run_text(text, emit).await?;
        }
        self.run_input(input, emit).await?;
        while let Some(text) = self.shared.next_queued() {
            self.run_text(text, emit).await?;
        }
        Ok(())
    }

    /// Runs a turn that begins with this message, or without a new message.
    pub(super) async fn turn(&mut self, message: Option<Message>, emit: &mut Emit) -> Result<()> {
        self.answer_open_calls()?;
        let message = match message.map(|message| self.agent.thread().repaired(message)) {
            Some(message) if message.content.is_empty() => return Err(SessionError::Blank),
            message => message,
        };
        self.in_turn = true;
        let ended = self.rounds(message, emit).await;
        self.in_turn = false;
        if ended.is_err() {
            self.tick();
        }
        let pressure = self.pressure(0);
        match self.auto.handle(self.at, Input::TurnEnded(pressure)) {
            Some(Output::Compact { reason, .. }) if ended.is_err() => {
                let notice = self.auto.handle(self.at, Input::Failed { reason });
                emit.notice_of(notice).await;
            }
            Some(Output::Compact { reason, target, limit }) => {
                let order = Order { reason, target, limit, next_prompt: None, strategy: None };
                // The turn is complete even if this compaction fails; events and log report the
                // failure.
                drop(self.compact_for(order, emit).await?);
            }
            output => emit.notice_of(output).await,
        }
        ended
    }

    /// Runs rounds of model and tools until the turn ends.
    async fn rounds(&mut self, message: Option<Message>, emit: &mut Emit) -> Result<()> {
        self.tick();
        // The first request is checked again if rules in the prompt may have lengthened the system
        // prompt.
        let mut recheck = message.is_none() || self.settings.rules_in_system_prompt;
        if let Some(message) = message {
            // Add the time and the reminder before the tokens are counted.
            let message = self.with_reminder(message);
            let message = self.stamped(message);
            self.guard(Some(&message), emit).await?;
            self.append(message)?;
        }
        let (mut machine, mut usage) =
            (TurnMachine::new(self.settings.max_rounds), Usage::default());
        loop {
            // A step is stored before the next one builds on it.
            if !self.journal.unstored().is_empty() {
                self.journal.flush().await?;
            }
            match machine.step() {
                TurnStep::CallModel => {
                    if std::mem::replace(&mut recheck, true) {
                        self.guard(None, emit).await?;
                    }
                    let turn = self.call_model(&mut usage, emit).await?;
                    self.tick();
                    usage += turn.usage.unwrap_or_default();
                    self.take(turn, &mut machine)?;
                }
                TurnStep::CallTools(calls) => {
                    let Called { results, appended } = self.call_tools(calls, emit).await?;
                    self.tick();
                    for (call, result) in results.into_iter().enumerate() {
                        let Some(result) = result else { continue };
                        let message = machine.handle_result(call, result)?;
                        if let Some(message) = message.filter(|_| !appended) {
                            let message = self.with_due_reminder(message);
                            self.append_user(message)?;
                        }
                    }
                }
                TurnStep::Finished { stop_reason, rounds, capped } => {
                    let stop_reason = stop_reason.clone();
                    emit.event(SessionEvent::TurnEnded { stop_reason, rounds, capped, usage })
                        .await;
                    return Ok(());
                }
            }
        }
    }

    /// Makes sure that the next request fits: compacts at the threshold, compacts if the window is
    /// exceeded, or returns an error.
    async fn guard(&mut self, prompt: Option<&Message>, emit: &mut Emit) -> Result<()> {
        let mut tried = None;
        loop {
            let input = match prompt {
                Some(prompt) => Input::BeforeSend(self.pressure_before(prompt)),
                None => Input::BeforeContinue(self.pressure(0)),
            };
            match self.auto.handle(self.at, input) {
                None => return Ok(()),
                Some(Output::CannotFit { floor, tokens, limit }) => {
                    return Err(self.cannot_fit((floor, tokens, limit), tried));
                }
                Some(
                    notice @ (Output::Suspended { .. }
                    | Output::Paused { .. }
                    | Output::UnknownWindow),
                ) => {
                    emit.notice_of(Some(notice)).await;
                    return Ok(());
                }
                Some(Output::Compact { reason, target, limit }) => {
                    let needed = reason != CompactionReason::Threshold;
                    let next_prompt = prompt.cloned();
                    let order = Order { reason, target, limit, next_prompt, strategy: None };
                    let done = self.compact_for(order, emit).await?;
                    self.tick();
                    if !needed {
                        return Ok(());
                    }
                    tried = done.err().map(|error| self.journal.redacted_text(error.to_string()));
                }
            }
        }
    }

    /// Appends an answer to the thread.
    fn take(&mut self, mut turn: Turn, machine: &mut TurnMachine) -> Result<()> {
        self.learn(&turn);
        if turn.message.role != Role::Assistant {
            turn.message.make_mut().role = Role::Assistant;
        }
        turn.message = self.agent.thread().repaired(turn.message);
        self.count_written(&turn);
        let refused = machine.handle_turn(&turn)?;
        // An empty answer is not appended.
        if !turn.message.content.is_empty() {
            self.append(turn.message)?;
        }
        refused.map_or(Ok(()), |results| self.append_user(results))
    }

    /// Asks the model. If the provider refuses the request as too long, or the window cuts the
    /// answer off, compacts and asks again.
    async fn call_model(&mut self, usage: &mut Usage, emit: &mut Emit) -> Result<Turn> {
        loop {
            let mut streamed = String::new();
            let answer = self.ask(&mut streamed, emit).await;
            let is_too_long = match &answer {
                Ok(turn) => turn.stop_reason == StopReason::ContextWindowExceeded,
                Err(error) => error.is_overflow(),
            };
            if !is_too_long {
                return Ok(answer?);
            }
            // Boxed: inlined, this rare path would enlarge every turn's future.
            if let Some(turn) = self.make_room(answer, usage, emit).boxed().await? {
                return Ok(turn);
            }
            if !streamed.is_empty() {
                emit.event(SessionEvent::AnswerDiscarded).await;
            }
        }
    }

    /// Compacts after a request that was too long. Returns the cut-off answer if no compaction
    /// helps.
    async fn make_room(
        &mut self,
        answer: Result<Turn, ModelError>,
        usage: &mut Usage,
        emit: &mut Emit,
    ) -> Result<Option<Turn>> {
        let (now, pressure) = (self.now(), self.pressure(0));
        let (limit, output) = match &answer {
            Err(ModelError { kind: ModelErrorKind::Overflow { limit, output, .. }, .. }) => {
                (*limit, *output)
            }
            Ok(_) | Err(_) => (None, None),
        };
        let next = self.auto.handle(now, Input::Overflowed { pressure, limit, output });
        let Some(Output::Compact { reason, target, limit }) = next else {
            return Ok(Some(answer?));
        };
        let order = Order { reason, target, limit, next_prompt: None, strategy: None };
        match (self.compact_for(order, emit).await?, answer) {
            (Err(_), Ok(turn)) => return Ok(Some(turn)),
            // The events report why the compaction failed, so the turn ends with the provider's
            // error.
            (Err(_), Err(refused)) => return Err(refused.into()),
            (Ok(_), Ok(turn)) => *usage += turn.usage.unwrap_or_default(),
            (Ok(_), Err(_)) => {}
        }
        self.guard(None, emit).await?;
        Ok(None)
    }

    /// Asks the model once. `streamed` collects the emitted text; at the end it equals the text of
    /// the answer.
    async fn ask(&self, streamed: &mut String, emit: &mut Emit) -> Result<Turn, ModelError> {
        let mut deltas = self.agent.run_turn(self.request());
        // Tool names by call id, because a delta of a call carries only the id.
        let mut names: HashMap<Text, Text> = HashMap::new();
        while let Some(delta) = deltas.next().await {
            match delta? {
                Delta::Text { text } => {
                    streamed.push_str(&text);
                    emit.event(SessionEvent::TextDelta { text }).await;
                }
                Delta::Thinking { text } => emit.event(SessionEvent::ThinkingDelta { text }).await,
                Delta::ToolUse { id, name } => {
                    names.insert(id.clone(), name.clone());
                    let text = Text::default();
                    emit.event(SessionEvent::ToolInputDelta { id, name, text }).await;
                }
                Delta::ToolInput { id, text } => {
                    let Some(name) = names.get(&id).cloned() else { continue };
                    emit.event(SessionEvent::ToolInputDelta { id, name, text }).await;
                }
                Delta::Turn { turn } => {
                    let whole: String = turn.message.texts().map(Text::as_str).collect();
                    if !whole.starts_with(streamed.as_str()) {
                        streamed.clear();
                        emit.event(SessionEvent::AnswerDiscarded).await;
                    }
                    // Some adapters stream only part of the text, or none.
                    if let Some(rest) =
                        whole.strip_prefix(streamed.as_str()).filter(|rest| !rest.is_empty())
                    {
                        emit.event(SessionEvent::TextDelta { text: rest.into() }).await;
                    }
                    *streamed = whole;
                    return Ok(turn);
                }
            }
        }
        Err(ModelError::cut_short())
    }

    /// The next request.
    pub(super) fn request(&self) -> Request {
        Request {
            system: self.system_prompt(),
            tools: self.tools.specs.clone(),
            max_output: self.settings.max_output,
            ..Request::new(self.agent.messages().clone())
        }
    }

    /// Answers the calls that a dropped turn left open.
    pub(super) fn answer_open_calls(&mut self) -> Result<()> {
        if self.agent.thread().open_calls().is_empty() {
            return Ok(());
        }
        self.tick();
        let last = self.agent.messages().last();
        let calls: Vec<ToolUse> =
            last.into_iter().flat_map(|message| message.tool_uses()).cloned().collect();
        turn::refused(&calls, CANCELLED).map_or(Ok(()), |message| self.append_user(message))
    }

    fn with_reminder(&mut self, mut message: Message) -> Message {
        if let Some(text) = &self.settings.reminder {
            self.unreminded = 0;
            let reminder = ContentBlock::reminder(text.clone());
            message.make_mut().content.push(reminder);
        }
        message
    }

    /// Appends the reminder to results if it is due.
    fn with_due_reminder(&mut self, results: Message) -> Message {
        let is_due = self.settings.remind_every.is_some_and(|tokens| self.unreminded >= tokens);
        if is_due { self.with_reminder(results) } else { results }
    }

    /// Adds the answer's tokens, as reported or else as estimated.
    fn count_written(&mut self, turn: &Turn) {
        let counter = self.agent.thread().counter();
        let written = turn.usage.map(|usage| usage.output).filter(|tokens| *tokens > 0);
        let written = written.unwrap_or_else(|| counter.message(&turn.message));
        self.unreminded = self.unreminded.saturating_add(written);
    }

    /// Appends a user message with a checkpoint as its last block.
    fn append_user(&mut self, message: Message) -> Result<()> {
        let message = self.stamped(message);
        self.append(message)
    }

    pub(super) fn stamped(&mut self, mut message: Message) -> Message {
        let thread = self.agent.thread();
        let id = self.ids.draw(|id| thread.checkpoint(id).is_some());
        message.make_mut().content.push(ContentBlock::checkpoint(id));
        message
    }

    /// Reads the clock, after an await that may have taken long.
    fn tick(&mut self) {
        self.at = self.now();
    }

    /// Appends a message to thread and log, both or neither. This is the only function here that
    /// does.
    pub(super) fn append(&mut self, message: Message) -> Result<()> {
        let event = Event::MessageAppended(message.clone());
        self.journal.log().check(&event)?;
        // Append to the thread first: its counter may panic, and then neither has changed.
        self.agent.push(message.clone());
        self.journal.append(self.at, event)?;
        if self.settings.rules_in_system_prompt {
            self.journal.read_rules();
        }
        self.show_next(message);
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
