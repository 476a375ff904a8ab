//! What a turn begins with: a message, a command, or the turn that broke off.

use std::sync::Arc;

use futures::FutureExt;

use super::{
    command::Command, compacting::Order, error::SessionError, event::SessionEvent, events::Emit,
    session::Session,
};
use crate::{
    drive::CompactionError,
    log::{Event, LocalNotice},
    message::{CompactionReason, Message, Role, StopReason, SystemReminder, Text},
    strategy::{CompactionStrategy, StrategyError},
};

/// The message to the agent after a `@compact` without a prompt, and after an answer that was cut
/// off.
const CONTINUE: &str = "Please continue.";

/// What the user sent.
#[derive(Debug)]
pub(super) enum UserInput {
    /// Send this and run a turn.
    Message(Message),
    /// Compact, then send the command's prompt, if any.
    Command(Command),
    /// Compact with this strategy, and ask the agent nothing.
    CompactWith(Arc<dyn CompactionStrategy>, Option<Text>),
    /// Continue the turn that broke off.
    Continue,
}

impl UserInput {
    pub(super) fn parse(text: Text) -> Self {
        let command = Command::parse(&text).map(Self::Command);
        command.unwrap_or_else(|| Self::Message(Message::user(text)))
    }
}

impl Session {
    pub(super) async fn run_text(
        &mut self,
        text: Text,
        emit: &mut Emit,
    ) -> Result<(), SessionError> {
        emit.event(SessionEvent::QueuedMessage { text: text.clone() }).await;
        self.run_input(UserInput::parse(text), emit).await
    }

    pub(super) async fn run_input(
        &mut self,
        input: UserInput,
        emit: &mut Emit,
    ) -> Result<(), SessionError> {
        match input {
            UserInput::Message(message) => self.turn(Some(message), emit).await,
            UserInput::Continue => {
                let message = self.continuation()?;
                self.turn(message, emit).await
            }
            UserInput::Command(Command::Compact { focus }) => {
                self.command((None, focus.map(Text::from)), None, emit).boxed().await
            }
            UserInput::CompactWith(strategy, focus) => {
                self.command((Some(strategy), focus), None, emit).boxed().await
            }
            UserInput::Command(Command::CompactAndSend { prompt }) => {
                let prompt = prompt.map(Message::user);
                self.command((None, None), prompt.as_ref(), emit).boxed().await?;
                self.turn(Some(prompt.unwrap_or_else(go_on)), emit).await
            }
        }
    }

    /// Compacts because the user asked, and logs the result as a notice.
    async fn command(
        &mut self,
        (strategy, focus): (Option<Arc<dyn CompactionStrategy>>, Option<Text>),
        next: Option<&Message>,
        emit: &mut Emit,
    ) -> Result<(), SessionError> {
        self.answer_open_calls()?;
        // A user who asks for a compaction expects an effect, so the target is at most half of the
        // thread, and there is none where the thread already meets it.
        let thread = self.ratio.scale_up(self.agent.thread().size().tokens);
        let target = self.requested_target().filter(|target| thread > *target);
        let target = target.map(|target| target.min(thread / 2));
        let reason = CompactionReason::Manual { focus };
        let order = Order { reason, target, limit: None, next_prompt: next.cloned(), strategy };
        let line = match self.compact_for(order, emit).await? {
            Ok(done) => format!("Compacted: {}.", done.report),
            Err(error) => {
                let why = self.journal.shown(why_not(&error));
                if error.is_nothing_to_compact() {
                    let why = why.clone();
                    emit.event(SessionEvent::NothingCompacted { why }).await;
                }
                format!("Not compacted: {why}.")
            }
        };
        let text = self.journal.shown(line);
        let event = Event::LocalNotice(LocalNotice { text: text.clone() });
        let now = self.now();
        self.journal.append(now, event)?;
        self.journal.flush().await?;
        emit.event(SessionEvent::Notice { text }).await;
        Ok(())
    }

    /// The message that a continued turn begins with; `None` if the thread is sent as it is.
    fn continuation(&self) -> Result<Option<Message>, SessionError> {
        let last = self.messages().last().ok_or(SessionError::NothingToContinue)?;
        if last.role != Role::Assistant || !self.agent.thread().open_calls().is_empty() {
            return Ok(None);
        }
        match &last.stop_reason {
            Some(StopReason::PauseTurn) => Ok(None),
            Some(
                StopReason::MaxTokens
                | StopReason::ContextWindowExceeded
                | StopReason::Aborted
                | StopReason::ToolUse
                | StopReason::Other(_),
            ) => Ok(Some(go_on())),
            Some(StopReason::EndTurn | StopReason::StopSequence | StopReason::Refusal) | None => {
                Err(SessionError::NothingToContinue)
            }
        }
    }
}

/// Asks the agent to continue. A reminder, because the user typed nothing: it does not count as the
/// user's words.
fn go_on() -> Message {
    Message::new(Role::User, vec![SystemReminder::new(CONTINUE).into()])
}

/// A short line for the user on why nothing was compacted. Events and log have the details.
fn why_not(error: &CompactionError) -> String {
    if error.is_nothing_to_compact() {
        return "there is nothing to compact yet".to_owned();
    }
    if let CompactionError::Strategy(failed) = error
        && let StrategyError::NoRung { .. } = failed.error
    {
        return "no strategy could make the thread smaller".to_owned();
    }
    error.to_string()
}
