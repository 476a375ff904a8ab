//! The work of a turn: the thin loop over the machine.

use futures::{StreamExt, stream::FuturesUnordered};
use serde::Serialize;

use super::{
    command::Command,
    compaction::Before,
    error::SessionError,
    event::SessionEvent,
    events::Emit,
    lawful::lawful,
    session::Session,
    tools::{COMPACT_CONTEXT, Compacted, NotCompacted},
};
use crate::{
    auto::{Input, Output},
    drive::{CompactionError, Done},
    log::{Event, LocalNotice},
    message::{
        CompactionId, CompactionReason, ContentBlock, Delta, Message, ModelError, ModelErrorKind,
        Request, Role, SystemReminder, Text, ToolResult, ToolUse, Turn, Usage,
    },
    model::{Tool, ToolContext, ToolOutput, cut_short},
    turn::{self, TurnMachine, TurnStep},
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
            None => Self::Message(Message::user(text)),
            Some(Command::Compact { focus }) => Self::Compact { focus: focus.map(Text::from) },
            Some(Command::CompactAndSend { prompt }) => {
                Self::CompactAndSend { prompt: prompt.map(Text::from) }
            }
        }
    }
}

impl Session {
    /// Does what was asked, and everything that was left by a turn that was dropped.
    pub(super) async fn work(&mut self, asked: Asked, emit: &mut Emit) -> Result<(), SessionError> {
        self.end_begun(emit).await?;
        if std::mem::take(&mut self.in_turn) {
            // The turn before was dropped.
            let (now, pressure) = (self.clock.now(), self.pressure(0));
            let _ = self.auto.handle(now, Input::TurnEnded(pressure));
        }
        self.journal.flush().await?;
        match asked {
            Asked::Message(message) => self.turns(message, emit).await,
            Asked::Compact { focus } => self.command(focus, None, emit).await.map(|_| ()),
            Asked::CompactAndSend { prompt } => {
                let prompt = Message::user(prompt.unwrap_or_else(|| "Please continue.".into()));
                self.command(None, Some(&prompt), emit).await?;
                self.turns(prompt, emit).await
            }
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
        let text: Text = line.into();
        let event = Event::LocalNotice(LocalNotice { text: text.clone() });
        self.journal.append(self.clock.now(), event)?;
        self.journal.flush().await?;
        emit.event(SessionEvent::Notice { text }).await;
        Ok(())
    }

    /// A turn, and one more for each message that was queued meanwhile.
    async fn turns(&mut self, message: Message, emit: &mut Emit) -> Result<(), SessionError> {
        let mut next = Some(message);
        while let Some(message) = next {
            self.turn(message, emit).await?;
            next = self.shared.next_queued().map(Message::user);
            if let Some(text) = next.as_ref().and_then(|message| message.content.first()) {
                let text = text.as_text().cloned().unwrap_or_default();
                emit.event(SessionEvent::QueuedMessage { text }).await;
            }
        }
        Ok(())
    }

    async fn turn(&mut self, message: Message, emit: &mut Emit) -> Result<(), SessionError> {
        self.answer_open_calls()?;
        self.in_turn = true;
        let ended = self.rounds(message, emit).await;
        self.in_turn = false;
        let (now, pressure) = (self.clock.now(), self.pressure(0));
        let after = self.auto.handle(now, Input::TurnEnded(pressure));
        if let (Ok(()), Some(Output::Compact { reason, target })) = (&ended, after) {
            // The turn is over, whatever becomes of this.
            let _ = self.compact_for(reason, target, None, emit).await?;
        }
        ended
    }

    async fn rounds(&mut self, message: Message, emit: &mut Emit) -> Result<(), SessionError> {
        let message = lawful(self.agent.messages(), self.with_reminder(message));
        // With everything that it will have, so that all of it is counted.
        let message = self.stamped(message);
        self.guard(Before::Prompt(&message), emit).await?;
        self.append(message)?;
        let (mut machine, mut usage) = (TurnMachine::new(self.max_rounds), Usage::default());
        let mut asked = false;
        loop {
            // What the next step builds on is stored before it is taken.
            self.journal.flush().await?;
            match machine.step() {
                TurnStep::CallModel => {
                    if std::mem::replace(&mut asked, true) {
                        self.guard(Before::Continuing, emit).await?;
                    }
                    let turn = self.call_model(emit).await?;
                    let turn = self.mended(turn);
                    usage += turn.usage.unwrap_or_default();
                    let refused = machine.handle_turn(&turn)?;
                    // An answer of nothing leaves nothing in the thread.
                    if !turn.message.content.is_empty() {
                        self.append(turn.message)?;
                    }
                    if let Some(results) = refused {
                        self.append_user(results)?;
                    }
                }
                TurnStep::CallTools(calls) => {
                    let calls = calls.to_vec();
                    let results = self.call_tools(&calls, emit).await?;
                    for (call, result) in results.into_iter().enumerate() {
                        if let Some(message) = machine.handle_result(call, result)? {
                            self.append_user(message)?;
                        }
                    }
                }
                TurnStep::Finished(finished) => {
                    let (stop_reason, rounds) = (finished.stop_reason.clone(), finished.rounds);
                    emit.event(SessionEvent::TurnEnded { stop_reason, rounds, usage }).await;
                    return Ok(());
                }
            }
        }
    }

    /// Asks the model. A provider that says that the request is too long is believed: the thread is
    /// compacted, and the model asked again.
    async fn call_model(&mut self, emit: &mut Emit) -> Result<Turn, SessionError> {
        loop {
            let error = match self.ask(emit).await {
                Ok(turn) => return Ok(turn),
                Err(error) => error,
            };
            let ModelErrorKind::Overflow { limit, .. } = error.kind else {
                return Err(error.into());
            };
            let (now, pressure) = (self.clock.now(), self.pressure(0));
            match self.auto.handle(now, Input::Overflowed { pressure, limit }) {
                Some(Output::Compact { reason, target }) => {
                    if let Err(failed) = self.compact_for(reason, target, None, emit).await? {
                        return Err(failed.into());
                    }
                }
                Some(Output::CannotFit { .. } | Output::Notify(_)) | None => {
                    return Err(error.into());
                }
            }
        }
    }

    async fn ask(&self, emit: &mut Emit) -> Result<Turn, ModelError> {
        let request = Request {
            system: self.system.clone(),
            tools: self.specs.clone(),
            ..Request::new(self.agent.messages().clone())
        };
        let mut deltas = self.agent.run_turn(request);
        while let Some(delta) = deltas.next().await {
            match delta? {
                Delta::Text { text } => emit.event(SessionEvent::TextDelta { text }).await,
                Delta::Thinking { text } => emit.event(SessionEvent::ThinkingDelta { text }).await,
                Delta::ToolUse { .. } | Delta::ToolInput { .. } => {}
                Delta::Turn { turn } => return Ok(turn),
            }
        }
        Err(cut_short())
    }

    /// Carries all calls out at the same time and gives their results in the order of the calls.
    /// The one that compacts comes last: it changes what the others were called for.
    async fn call_tools(
        &mut self,
        calls: &[ToolUse],
        emit: &mut Emit,
    ) -> Result<Vec<ToolResult>, SessionError> {
        let mut results: Vec<Option<ToolResult>> = vec![None; calls.len()];
        for call in calls {
            let (id, name) = (call.id.clone(), call.name.clone());
            emit.event(SessionEvent::ToolStarted { id, name }).await;
        }
        self.call_others(calls, &mut results, emit).await;
        for (call, place) in calls.iter().zip(&mut results) {
            if place.is_none() {
                let output = self.compact_context(emit).await?;
                *place = Some(finished(call, output, emit).await);
            }
        }
        Ok(results.into_iter().flatten().collect())
    }

    async fn call_others(
        &self,
        calls: &[ToolUse],
        results: &mut [Option<ToolResult>],
        emit: &mut Emit,
    ) {
        let context = ToolContext::new(self.thread_id(), self.agent.messages());
        let context = &context;
        let own = |call: &ToolUse| self.has_compaction_tool() && call.name == COMPACT_CONTEXT;
        let mut running: FuturesUnordered<_> = calls
            .iter()
            .enumerate()
            .filter(|(_, call)| !own(call))
            .map(|(index, call)| async move { (index, call, self.call(call, context).await) })
            .collect();
        while let Some((index, call, output)) = running.next().await {
            let result = finished(call, output, emit).await;
            if let Some(place) = results.get_mut(index) {
                *place = Some(result);
            }
        }
    }

    async fn call(&self, call: &ToolUse, context: &ToolContext<'_>) -> ToolOutput {
        if let Err(error) = call.input.json() {
            return ToolOutput::error(format!("The input of the call cannot be read: {error}."));
        }
        let place = self.specs.iter().position(|spec| spec.name == call.name);
        let Some(tool) = place.and_then(|place| self.tools.get(place)) else {
            let names: Vec<&str> = self.specs.iter().map(|spec| spec.name.as_str()).collect();
            let there = names.join(", ");
            return ToolOutput::error(format!(
                "There is no tool {}; there are {there}.",
                call.name
            ));
        };
        match tool.call(call, context).await {
            Ok(output) => output,
            Err(error) => ToolOutput::error(error.to_string()),
        }
    }

    fn has_compaction_tool(&self) -> bool {
        self.specs.len() > self.tools.len()
    }

    /// The tool by which the model has the thread compacted.
    async fn compact_context(&mut self, emit: &mut Emit) -> Result<ToolOutput, SessionError> {
        let (now, pressure) = (self.clock.now(), self.pressure(0));
        let asked = Input::Requested { focus: None, pressure };
        let target = match self.auto.handle(now, asked) {
            Some(Output::Compact { target, .. }) => target,
            Some(Output::Notify(_) | Output::CannotFit { .. }) | None => None,
        };
        let before = self.agent.thread().size().tokens;
        // Within its target a thread has nothing that has to go.
        if target.is_some_and(|target| before <= target) {
            return Ok(json(&Compacted {
                tokens_estimate_before: before,
                tokens_estimate_after: before,
                ..Compacted::default()
            }));
        }
        let done = self.compact_for(CompactionReason::AgentTool, target, None, emit).await?;
        Ok(match done {
            Ok(Done { id, report, calls, .. }) => json(&Compacted {
                messages_compressed: self.taken_by(id),
                batches_created: calls,
                tokens_estimate_before: report.before.tokens,
                tokens_estimate_after: report.after.tokens,
            }),
            Err(CompactionError::Strategy(failed)) if failed.error.is_nothing_to_compact() => {
                let same = Compacted {
                    tokens_estimate_before: before,
                    tokens_estimate_after: before,
                    ..Compacted::default()
                };
                json(&same)
            }
            Err(error) => {
                let output = NotCompacted { success: false, output: error.to_string() };
                ToolOutput { is_error: true, ..json(&output) }
            }
        })
    }

    /// How many messages a compaction took out of the thread.
    fn taken_by(&self, id: CompactionId) -> usize {
        let Some(record) = self.journal.log().compaction(id) else { return 0 };
        let (before, after) = (record.plan.messages_before(), record.plan.messages_after());
        before.saturating_add(record.plan.new_messages().count()).saturating_sub(after)
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
            Some(message) => self.append_user(message),
            None => Ok(()),
        }
    }

    /// The answer as it may stand in the thread, whatever role it came with.
    fn mended(&self, mut turn: Turn) -> Turn {
        if turn.message.role != Role::Assistant {
            turn.message.make_mut().role = Role::Assistant;
        }
        turn.message = lawful(self.agent.messages(), turn.message);
        turn
    }

    fn with_reminder(&self, mut message: Message) -> Message {
        if let Some(text) = &self.reminder {
            let reminder = SystemReminder::new(text.clone());
            message.make_mut().content.push(reminder.into());
        }
        message
    }

    /// Appends a user message, with a checkpoint as its last block.
    fn append_user(&mut self, message: Message) -> Result<(), SessionError> {
        let message = self.stamped(message);
        self.append(message)
    }

    fn stamped(&mut self, mut message: Message) -> Message {
        let thread = self.agent.thread();
        let id = self.ids.draw(|id| thread.checkpoint(id).is_some());
        message.make_mut().content.push(ContentBlock::checkpoint(id));
        message
    }

    /// The only place where a message comes into thread and log: in both or in neither.
    fn append(&mut self, message: Message) -> Result<(), SessionError> {
        self.journal.append(self.clock.now(), Event::MessageAppended(message.clone()))?;
        self.agent.push(message);
        Ok(())
    }
}

async fn finished(call: &ToolUse, output: ToolOutput, emit: &mut Emit) -> ToolResult {
    let (id, name, is_error) = (call.id.clone(), call.name.clone(), output.is_error);
    emit.event(SessionEvent::ToolFinished { id, name, is_error }).await;
    let mut result = ToolResult::new(call.id.clone(), output.content);
    (result.is_error, result.usage) = (is_error, output.usage);
    result
}

fn json<T: Serialize>(value: &T) -> ToolOutput {
    ToolOutput::from(serde_json::to_string(value).unwrap_or_default())
}
