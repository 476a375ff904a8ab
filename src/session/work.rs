//! The work of a turn: the async loop over the turn machine.
//!
//! A tool result that is too long is cut before it enters the thread. The whole result is an event
//! of its own, which does not change the thread: as a compaction, the cut would be one more step to
//! undo, and the trigger would count it as a gain.

use std::collections::HashMap;

use futures::{FutureExt, StreamExt};

use super::{
    compacting::{Order, outcome_of},
    error::{Result, SessionError},
    event::SessionEvent,
    events::Emit,
    send::{NextTurn, UserInput},
    session::{Finished, Session},
    user_text::UserText,
};
use crate::{
    auto::{Input, Output, Refusal},
    compact::Replaced,
    compaction::COMPACT,
    log::Event,
    message::{
        Answer, CompactionId, CompactionReason, ContentBlock, ContextWindow, Delta, Message,
        ModelError, Request, Role, StopReason, Text, ToolResult, ToolUse, Usage, Withheld,
    },
    recall::tool::RECALL,
    turn::{TurnMachine, TurnStep},
};

/// The result of calls whose turn was cancelled before they finished.
const CANCELLED: &str = "Cancelled before its result arrived. It may have taken effect.";

impl Session {
    /// Runs the input. First it ends a dropped turn or compaction and runs the texts that were
    /// queued before number `queued_later`; texts that are queued meanwhile run last.
    pub(super) async fn work(
        &mut self,
        input: UserInput,
        queued_later: u64,
        mut emit: Emit,
    ) -> Result<()> {
        if self.compaction.is_some() {
            // Boxed: inlined, this rare path would enlarge every turn's future. A failure of the
            // compaction was already reported by its events.
            let _ = outcome_of(self.end_interrupted(&mut emit).boxed().await)?;
        }
        if std::mem::take(&mut self.in_turn) {
            // The previous turn was dropped, so end it for the trigger too.
            let (now, pressure) = (self.now(), self.pressure(0));
            let notice = self.auto.handle(now, Input::TurnFailed(pressure));
            emit.notice_of(notice).await;
        }
        self.journal.flush().await?;
        let mut own = Some(input);
        while let Some(input) = self.next_input(&mut own, queued_later, &mut emit).await {
            let message = match self.turn_of(input, &mut emit).await? {
                NextTurn::With(message) => Some(message),
                NextTurn::AsItIs => None,
                NextTurn::None => continue,
            };
            let message = self.begin_turn(message)?;
            let ended = self.rounds(message, &mut emit).await;
            self.end_turn(ended.is_err(), &mut emit).boxed().await?;
            ended?;
        }
        Ok(())
    }

    /// Returns the next input: a text that was queued before number `queued_later`, then the input
    /// that the stream began with, then texts that were queued meanwhile.
    async fn next_input(
        &mut self,
        own: &mut Option<UserInput>,
        queued_later: u64,
        emit: &mut Emit,
    ) -> Option<UserInput> {
        let queued = match own {
            Some(_) => self.shared.next_queued_before(queued_later),
            None => self.shared.next_queued(),
        };
        self.is_own_input = queued.is_none() && own.is_some();
        let Some(typed) = queued else { return own.take() };
        let UserText { text, author } = typed.clone();
        emit.event(SessionEvent::QueuedMessage { text, author }).await;
        Some(UserInput::parse(typed, &self.settings.moderators))
    }

    /// Begins a turn with this message, or without a new message, and returns the message repaired.
    fn begin_turn(&mut self, message: Option<Message>) -> Result<Option<Message>> {
        self.answer_open_calls()?;
        let message = match message.map(|message| self.journal.thread().repaired(message)) {
            Some(message) if message.content.is_empty() => return Err(SessionError::Blank),
            message => message,
        };
        self.in_turn = true;
        Ok(message)
    }

    /// Ends a turn, and compacts after it if that is due.
    async fn end_turn(&mut self, failed: bool, emit: &mut Emit) -> Result<()> {
        self.in_turn = false;
        if failed {
            self.tick();
        }
        let pressure = self.pressure(0);
        let ended = if failed { Input::TurnFailed(pressure) } else { Input::TurnEnded(pressure) };
        match self.auto.handle(self.at, ended) {
            Some(Output::Compact { reason, target, limit }) => {
                let order = Order { reason, target, limit, next_prompt: None, strategy: None };
                // The turn is complete even if this compaction fails; events and log report the
                // failure.
                drop(self.compact_for(order, emit).await?);
            }
            output => emit.notice_of(output).await,
        }
        Ok(())
    }

    /// Runs rounds of model and tools until the turn ends.
    async fn rounds(&mut self, message: Option<Message>, emit: &mut Emit) -> Result<()> {
        self.tick();
        let prompted = message.is_some();
        let message = message.filter(|message| !self.is_unanswered(message));
        // The first request is checked again if rules in the prompt may have lengthened the system
        // prompt.
        let mut recheck = message.is_none() || self.settings.rules_in_system_prompt;
        if prompted && message.is_none() {
            self.entered();
        }
        if let Some(message) = message {
            // Add the time and the reminder before the tokens are counted.
            let message = self.with_reminder(message);
            let message = self.stamped(message);
            let fits = self.compact_until_it_fits(Some(&message), emit).await;
            if let Err(SessionError::CannotFit { .. }) = &fits {
                // If it waited again, it would be refused again before every later text.
                self.shared.done_with_taken();
            }
            fits?;
            self.append(message)?;
            self.entered();
        }
        let (mut machine, mut usage) =
            (TurnMachine::new(self.settings.max_rounds), Usage::default());
        let mut unanswered = prompted;
        loop {
            // A step is stored before the next one builds on it.
            if !self.journal.unstored().is_empty() {
                self.journal.flush().await?;
            }
            match machine.step() {
                TurnStep::CallModel => {
                    if std::mem::replace(&mut recheck, true) {
                        self.compact_until_it_fits(None, emit).await?;
                    }
                    let answer = self.call_model(unanswered, &mut usage, emit).await?;
                    unanswered = false;
                    self.tick();
                    usage += answer.usage.unwrap_or_default();
                    self.take(answer, &mut machine)?;
                }
                TurnStep::CallTools(calls) => {
                    let appended = self.call_tools(calls, emit).await?;
                    self.tick();
                    let results = std::mem::take(&mut self.results);
                    for (call, result) in results.into_iter().enumerate() {
                        let Some(Finished { result, .. }) = result else { continue };
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

    /// Whether the thread ends with this message already, because an earlier request with it failed:
    /// whoever sends it again wants an answer to it, and no second copy.
    fn is_unanswered(&self, message: &Message) -> bool {
        self.messages().last().is_some_and(|last| {
            last.is_typed()
                && last.tool_results().next().is_none()
                && last.author == message.author
                && last.typed_content().eq(message.typed_content())
        })
    }

    /// Records that the input is in the thread.
    fn entered(&self) {
        self.shared.done_with_taken();
        if self.is_own_input {
            self.shared.lock().has_entered = Some(true);
        }
    }

    /// Compacts at the threshold, or until the next request fits the window; an error if it cannot
    /// fit.
    async fn compact_until_it_fits(
        &mut self,
        prompt: Option<&Message>,
        emit: &mut Emit,
    ) -> Result<()> {
        let mut tried = None;
        loop {
            let input = Input::BeforeRequest(match prompt {
                Some(prompt) => self.pressure_before(prompt),
                None => self.pressure(0),
            });
            match self.auto.handle(self.at, input) {
                None => return Ok(()),
                Some(Output::CannotFit { floor, tokens, limit }) => {
                    return Err(self.cannot_fit((floor, tokens, limit), tried));
                }
                Some(
                    notice @ (Output::Suspended { .. }
                    | Output::Paused { .. }
                    | Output::UnknownWindow
                    | Output::ShortAnswer { .. }
                    | Output::SendAgain
                    | Output::TakeBack),
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
    fn take(&mut self, mut answer: Answer, machine: &mut TurnMachine) -> Result<()> {
        self.learn(&answer);
        if answer.message.role != Role::Assistant {
            answer.message.make_mut().role = Role::Assistant;
        }
        answer.message = self.journal.thread().repaired(answer.message);
        self.count_written(&answer);
        let refused = machine.handle_answer(&answer)?;
        // An empty answer is not appended.
        if answer.message.content.is_empty() {
            self.spent(answer.usage.unwrap_or_default())?;
        } else {
            self.append(answer.message)?;
        }
        refused.map_or(Ok(()), |results| self.append_user(results))
    }

    /// Asks the model. If the provider refuses the request as too long, or the window cuts the
    /// answer off, compacts and asks again. If that does not help, thread and ratio are as before:
    /// before the turn, if the model has not answered the prompt with which it began.
    async fn call_model(
        &mut self,
        unanswered: bool,
        usage: &mut Usage,
        emit: &mut Emit,
    ) -> Result<Answer> {
        let (first, ratio) = (self.next_compaction(), *self.auto.ratio());
        loop {
            let mut streamed = String::new();
            let answer = self.ask(&mut streamed, emit).await;
            let is_too_long = match &answer {
                Ok(answer) => answer.stop_reason == StopReason::ContextWindowExceeded,
                Err(error) => error.is_overflow(),
            };
            if let Err(error) = &answer {
                *usage += error.usage;
                self.spent(error.usage)?;
            }
            if !is_too_long {
                let answer = answer?;
                // Boxed: inlined, this rare path would enlarge every turn's future.
                if let Some(line) = Withheld::line(&answer.withheld) {
                    emit.event(SessionEvent::Notice { text: line.into() }).boxed().await;
                }
                return Ok(answer);
            }
            // Boxed: inlined, this rare path would enlarge every turn's future.
            match self.make_room(answer, usage, emit).boxed().await {
                Ok(None) => {}
                given_up => {
                    self.auto.set_ratio(ratio);
                    self.take_back(first, emit).boxed().await?;
                    if unanswered && given_up.is_err() {
                        self.withdraw_prompt(emit).boxed().await?;
                    }
                    return given_up.and_then(|answer| answer.ok_or(SessionError::Blank));
                }
            }
            if !streamed.is_empty() {
                emit.event(SessionEvent::AnswerDiscarded).await;
            }
        }
    }

    /// Compacts after a request that was too long. Returns `None` if the model is asked again, and the
    /// cut-off answer if no compaction helps.
    async fn make_room(
        &mut self,
        answer: Result<Answer, ModelError>,
        usage: &mut Usage,
        emit: &mut Emit,
    ) -> Result<Option<Answer>> {
        let (now, pressure, before) = (self.now(), self.pressure(0), self.window());
        let refusal =
            answer.as_ref().err().map(|error| Refusal::of(&error.kind).unwrap_or_default());
        let next = self.auto.handle(
            now,
            match refusal {
                Some(refusal) => Input::Overflowed { pressure, refusal },
                None => Input::CutOff(pressure),
            },
        );
        if refusal.is_some_and(|refusal| refusal.limit.is_some()) {
            self.report_window(before, emit).await;
        }
        let (reason, target, limit) = match next {
            Some(Output::Compact { reason, target, limit }) => (reason, target, limit),
            Some(Output::SendAgain) => {
                self.discarded(answer.ok(), usage)?;
                return Ok(None);
            }
            _ => return Ok(Some(answer?)),
        };
        let order = Order { reason, target, limit, next_prompt: None, strategy: None };
        let refused = match (self.compact_for(order, emit).await?, answer) {
            (Err(_), Ok(answer)) => return Ok(Some(answer)),
            // The events report why the compaction failed, so the turn ends with the provider's
            // error.
            (Err(_), Err(refused)) => return Err(refused.into()),
            (Ok(_), Ok(answer)) => {
                self.discarded(Some(answer), usage)?;
                None
            }
            (Ok(_), Err(refused)) => Some(refused),
        };
        match (self.compact_until_it_fits(None, emit).await, refused) {
            // The limit that follows from the refusal may be wrong, so the refusal says more.
            (Err(SessionError::CannotFit { .. }), Some(refused)) => Err(refused.into()),
            (fits, _) => fits.map(|()| None),
        }
    }

    /// Counts and logs the tokens of an answer that was cut off and is asked for anew.
    fn discarded(&mut self, answer: Option<Answer>, usage: &mut Usage) -> Result<()> {
        let spent = answer.and_then(|answer| answer.usage).unwrap_or_default();
        *usage += spent;
        self.spent(spent)
    }

    /// Logs the tokens of an answer that is in no message.
    fn spent(&mut self, usage: Usage) -> Result<()> {
        if usage.is_zero() {
            return Ok(());
        }
        let now = self.now();
        self.journal.append(now, Event::Spent { usage })?;
        Ok(())
    }

    /// Notifies the host if a refusal stated a smaller window than the one that was assumed.
    async fn report_window(&self, before: Option<ContextWindow>, emit: &mut Emit) {
        let now = self.window();
        if let Some(now) = now.filter(|_| now != before) {
            let before = before.map_or("no window was known".to_owned(), |before| {
                format!("{} were assumed", before.tokens())
            });
            let text =
                format!("The provider states a window of {} tokens; {before}.", now.tokens());
            emit.event(SessionEvent::Notice { text: text.into() }).await;
        }
    }

    /// Undoes the compactions from this one on, which the refusals of a request led to in vain.
    async fn take_back(&mut self, first: CompactionId, emit: &mut Emit) -> Result<()> {
        let standing = self.journal.log().standing().map(|record| record.id);
        let Some(id) = standing.filter(|id| *id >= first).min() else { return Ok(()) };
        let undone = self.undo_compaction(id).await?.len();
        let times = if undone == 1 { "compaction" } else { "compactions" };
        let text = format!(
            "The provider refused the request however long it was, so its {undone} {times} were undone."
        );
        emit.event(SessionEvent::Notice { text: text.into() }).await;
        Ok(())
    }

    /// Drops what was typed since the last answer from the thread, so that it does not make every
    /// later request too long; the log keeps it. It stays if the whole log, which this needs, cannot
    /// be read.
    async fn withdraw_prompt(&mut self, emit: &mut Emit) -> Result<()> {
        if self.journal.read_whole().await.is_err() {
            return Ok(());
        }
        let is_prompt =
            |message: &&Message| message.is_typed() && message.tool_results().next().is_none();
        let from = self.messages().len();
        let prompts = self.messages().iter().rev().take_while(is_prompt).count();
        // A compaction can be undone only as long as the messages that it left are there.
        let latest = self.journal.log().standing().next_back();
        let since = latest.map_or(0, |record| record.plan.messages_after());
        let len = (from - prompts).max(since.min(from));
        if len == from {
            return Ok(());
        }
        self.journal.append(self.at, Event::Truncated { from, len })?;
        let replaced = Replaced { at: len..from, messages: &[] };
        self.agent.rewritten(&[replaced], self.journal.thread().messages());
        if self.is_own_input {
            self.shared.lock().has_entered = Some(false);
        }
        self.show();
        // The turn ends with the refusal, and a resumed thread must not begin with this prompt again.
        // If the store fails, the next write repeats it.
        let _ = self.journal.flush().await;
        let what = match from - len {
            1 => "The last message, which the provider refuses, was".to_owned(),
            some => format!("The last {some} messages, which the provider refuses, were"),
        };
        let text = format!("{what} taken out of the thread; the log keeps what was typed.");
        emit.event(SessionEvent::Notice { text: text.into() }).await;
        Ok(())
    }

    /// Asks the model once. `streamed` collects the emitted text; at the end it equals the text of
    /// the answer.
    async fn ask(&mut self, streamed: &mut String, emit: &mut Emit) -> Result<Answer, ModelError> {
        let request = self.request();
        let mut deltas = self.agent.answer(request);
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
                Delta::Answer { answer } => {
                    let whole: String = answer.message.texts().map(Text::as_str).collect();
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
                    return Ok(answer);
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
            max_output: self.auto.max_output(self.pressure(0)).or(self.settings.max_output),
            ..Request::new(self.journal.thread().messages().clone())
        }
    }

    /// Answers the calls that a dropped turn left open: with their results where they had finished.
    pub(super) fn answer_open_calls(&mut self) -> Result<()> {
        if self.journal.thread().open_calls().is_empty() {
            // The thread holds these results.
            self.results.clear();
            return Ok(());
        }
        self.cut_long()?;
        self.tick();
        let last = self.journal.thread().messages().last();
        let calls: Vec<ToolUse> =
            last.into_iter().flat_map(|message| message.tool_uses()).cloned().collect();
        let mut finished = std::mem::take(&mut self.results).into_iter();
        let results = calls.iter().map(|call| {
            let result = finished.next().flatten().map(|finished| finished.result);
            let result = result.filter(|result| result.tool_use_id == call.id);
            result.unwrap_or_else(|| ToolResult::error(call.id.clone(), CANCELLED)).into()
        });
        let results: Vec<ContentBlock> = results.collect();
        self.append_user(Message::new(Role::User, results))
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
    fn count_written(&mut self, answer: &Answer) {
        let counter = self.journal.thread().counter();
        let written = answer.usage.map(|usage| usage.output).filter(|tokens| *tokens > 0);
        let written = written.unwrap_or_else(|| counter.message(&answer.message));
        self.unreminded = self.unreminded.saturating_add(written);
    }

    /// Appends a user message, with a checkpoint if something reads checkpoints.
    fn append_user(&mut self, message: Message) -> Result<()> {
        let message = self.stamped(message);
        self.append(message)
    }

    /// Returns the message with a checkpoint as its last block, if a tool or the host reads
    /// checkpoints.
    pub(super) fn stamped(&mut self, mut message: Message) -> Message {
        let is_read = [COMPACT, RECALL].iter().any(|name| self.tools.offers(name));
        if !is_read && !self.settings.checkpoints {
            return message;
        }
        let thread = self.journal.thread();
        let id = self.ids.draw(|id| thread.checkpoint(id).is_some());
        message.make_mut().content.push(ContentBlock::checkpoint(id));
        message
    }

    /// Reads the clock, after an await that may have taken long.
    fn tick(&mut self) {
        self.at = self.now();
    }

    /// Appends a message. This is the only function here that does.
    pub(super) fn append(&mut self, message: Message) -> Result<()> {
        self.journal.append(self.at, Event::MessageAppended(message.clone()))?;
        self.agent.appended(&message);
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
