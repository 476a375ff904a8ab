//! The ways to start a turn: a message, a command, or continuing a turn that broke off.

use std::sync::Arc;

use futures::FutureExt;

use super::{
    compacting::Order,
    error::{LastTurn, Result, SessionError},
    event::SessionEvent,
    events::{Emit, Events},
    session::Session,
    user_text::UserText,
};
use crate::{
    drive::CompactionError,
    ledger::Moderators,
    log::Event,
    message::{Author, CompactionReason, ContentBlock, Message, Role, StopReason, Text},
    strategy::{CompactionStrategy, StrategyError},
};

/// The message that is sent to the agent after `@compact` without a prompt, and after an answer
/// that was cut off.
const CONTINUE: &str = "Please continue.";

/// What the user sent.
#[derive(Debug)]
pub(super) enum UserInput {
    /// Send this and run a turn.
    Message(Message),
    /// Compact with this strategy, or else with that of the session, and do not ask the agent.
    Compact { strategy: Option<Arc<dyn CompactionStrategy>>, instructions: Option<Text> },
    /// Compact, then send the prompt.
    CompactAndSend(Option<Message>),
    /// Continue the turn that broke off.
    Continue,
    /// Run only the queued texts.
    Queued,
}

impl UserInput {
    /// Reads a text of this author: the command `/compact FOCUS` or `@compact PROMPT` of somebody whose
    /// commands count, or an ordinary message.
    pub(super) fn parse(typed: UserText, moderators: &Moderators) -> Self {
        if !moderators.allow(typed.author.as_ref()) {
            return Self::Message(typed.into_message());
        }
        // Every message is parsed here, so compare only the start of an ordinary one.
        let start = typed.text.trim_start();
        if let Some(instructions) = argument(start, "/compact") {
            return Self::Compact { strategy: None, instructions };
        }
        match argument(start, "@compact") {
            Some(prompt) => {
                Self::CompactAndSend(prompt.map(|text| UserText { text, ..typed }.into_message()))
            }
            None => Self::Message(typed.into_message()),
        }
    }
}

/// The turn that an input begins.
#[derive(Debug)]
pub(super) enum NextTurn {
    /// A turn with this message.
    With(Message),
    /// A turn with the thread as it is.
    AsItIs,
    /// No turn.
    None,
}

impl Session {
    /// Sends a user message and returns the events of the turn, and of the turns of queued messages
    /// after it. The commands `/compact INSTRUCTIONS` and `@compact PROMPT` are run instead of sent. A
    /// text with which the thread ends already, because its request failed, is not appended again.
    ///
    /// No model or tool is called and nothing is written before the first poll of the stream. The
    /// stream may be dropped at any point.
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use std::sync::Arc;
    /// use threadfold::{ModelAgent, testing::ScriptedModel};
    /// use threadfold::session::{Session, SessionEvent};
    ///
    /// let model = Arc::new(ScriptedModel::new(["Hello!"]));
    /// let mut session = Session::builder(ModelAgent::new(model)).build()?;
    /// let mut events = session.send("Hi.");
    /// let mut answer = String::new();
    /// while let Some(event) = block_on(events.next()) {
    ///     if let SessionEvent::TextDelta { text } = event? {
    ///         answer.push_str(&text);
    ///     }
    /// }
    /// assert_eq!(answer, "Hello!");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn send(&mut self, text: impl Into<UserText>) -> Events<'_> {
        self.send_typed(text.into())
    }

    /// Same as [`send`](Self::send), for a text of this author, in a thread of several people. Commands
    /// count only from [moderators](super::SessionBuilder::moderators), if the host names any.
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use std::sync::Arc;
    /// use threadfold::{ModelAgent, Session, testing::ScriptedModel};
    ///
    /// let agent = ModelAgent::new(Arc::new(ScriptedModel::new(["Hello, Ann!"])));
    /// let mut session = Session::builder(agent).build()?;
    /// block_on(async { session.send_as("ann".parse().unwrap(), "Hi.").await })?;
    /// assert_eq!(session.messages()[0].author, Some("ann".parse()?));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn send_as(&mut self, author: Author, text: impl Into<Text>) -> Events<'_> {
        self.send_typed(UserText { text: text.into(), author: Some(author) })
    }

    fn send_typed(&mut self, typed: UserText) -> Events<'_> {
        let input = UserInput::parse(typed, &self.settings.moderators);
        self.run(input)
    }

    /// Same as [`send`](Self::send), for a message with any content. It is never parsed as a
    /// command, and its role is set to user.
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use std::sync::Arc;
    /// use threadfold::message::{Image, MediaSource, Message};
    /// use threadfold::{ModelAgent, Session, testing::ScriptedModel};
    ///
    /// let model = Arc::new(ScriptedModel::new(["A cat."]));
    /// let mut session = Session::builder(ModelAgent::new(model)).build()?;
    /// let mut question = Message::user("What is this?");
    /// let url = MediaSource::Url { url: "https://example.org/cat.png".into() };
    /// question.make_mut().content.push(Image::new(url).into());
    /// let reply = block_on(async { session.send_message(question).await })?;
    /// assert_eq!(reply.text, "A cat.");
    /// assert_eq!(session.messages()[0].content[1].kind(), "image");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn send_message(&mut self, mut message: Message) -> Events<'_> {
        if message.role != Role::User {
            message.make_mut().role = Role::User;
        }
        self.run(UserInput::Message(message))
    }

    /// Compacts the thread now and does not ask the agent. `instructions` name what the summary should
    /// concentrate on. Same as the command `/compact`.
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use std::sync::Arc;
    /// use threadfold::{ModelAgent, Session, strategy::KeepRecent, testing::ScriptedModel};
    ///
    /// let model = Arc::new(ScriptedModel::new(["In src/parse.rs.", "A hundred lines."]));
    /// let keep = KeepRecent { messages: 2, ..KeepRecent::default() };
    /// let builder = Session::builder(ModelAgent::new(model)).strategy(Arc::new(keep));
    /// let mut session = builder.build()?;
    /// block_on(async { session.send("Where is the parser?").await })?;
    /// block_on(async { session.send("How long is it?").await })?;
    /// let reply = block_on(async { session.compact(None).await })?;
    /// assert!(reply.text.starts_with("Compacted: 4 to 2 messages"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn compact(&mut self, instructions: Option<Text>) -> Events<'_> {
        self.run(UserInput::Compact { strategy: None, instructions })
    }

    /// Same as [`compact`](Self::compact), with this strategy for this one compaction.
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use std::sync::Arc;
    /// use threadfold::{ModelAgent, Session, strategy::KeepRecent, testing::ScriptedModel};
    ///
    /// let model = Arc::new(ScriptedModel::new(["In src/parse.rs.", "A hundred lines."]));
    /// let mut session = Session::builder(ModelAgent::new(model)).build()?;
    /// block_on(async { session.send("Where is the parser?").await })?;
    /// block_on(async { session.send("How long is it?").await })?;
    /// let keep = Arc::new(KeepRecent { messages: 2, ..KeepRecent::default() });
    /// block_on(async { session.compact_with(keep, None).await })?;
    /// assert_eq!(session.messages().len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn compact_with(
        &mut self,
        strategy: Arc<dyn CompactionStrategy>,
        instructions: Option<Text>,
    ) -> Events<'_> {
        self.run(UserInput::Compact { strategy: Some(strategy), instructions })
    }

    /// Continues a turn that broke off: because the model failed, the stream was dropped, the host
    /// crashed, or an answer was cut off. No message of the user is needed. Calls without a result
    /// are answered as cancelled first.
    ///
    /// The stream ends with [`SessionError::NothingToContinue`] if the thread is empty or ends with
    /// a complete answer. The error tells whether the last turn is over or never began.
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use std::sync::Arc;
    /// use threadfold::model::{ModelError, ModelErrorKind};
    /// use threadfold::testing::{Scripted, ScriptedModel};
    /// use threadfold::{ModelAgent, Session};
    ///
    /// let broken = ModelError::new(ModelErrorKind::Other, "the line is dead");
    /// let model = Arc::new(ScriptedModel::new([Scripted::Error(broken), "Hello!".into()]));
    /// let mut session = Session::builder(ModelAgent::new(model)).build()?;
    /// assert!(block_on(async { session.send("Hi.").await }).is_err());
    /// let reply = block_on(async { session.continue_turn().await })?;
    /// assert_eq!((reply.text.as_str(), session.messages().len()), ("Hello!", 2));
    /// # Ok::<(), threadfold::session::SessionError>(())
    /// ```
    pub fn continue_turn(&mut self) -> Events<'_> {
        self.run(UserInput::Continue)
    }

    /// Runs the texts that were [queued](super::SessionHandle::queue) while no turn was running,
    /// each as a turn of its own. If there are none, the stream ends at once.
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use std::sync::Arc;
    /// use threadfold::{ModelAgent, Session, testing::ScriptedModel};
    ///
    /// let model = Arc::new(ScriptedModel::new(["Hello!"]));
    /// let mut session = Session::builder(ModelAgent::new(model)).build()?;
    /// assert!(!session.handle().queue("Hi."), "no turn is running");
    /// let reply = block_on(async { session.run_queued().await })?;
    /// assert_eq!(reply.text, "Hello!");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn run_queued(&mut self) -> Events<'_> {
        self.run(UserInput::Queued)
    }

    fn run(&mut self, input: UserInput) -> Events<'_> {
        let shared = Arc::clone(&self.shared);
        let has_message = matches!(input, UserInput::Message(_) | UserInput::CompactAndSend(_));
        let queued_later = shared.begin(has_message);
        let is_command = matches!(input, UserInput::Compact { .. });
        let emit = Emit { shared: Arc::clone(&shared), defers: false };
        let work = self.work(input, queued_later, emit).boxed();
        Events { work: Some(work), shared, is_command }
    }

    /// Carries out the command in an input, if it has one, and returns the turn that it begins.
    pub(super) async fn turn_of(&mut self, input: UserInput, emit: &mut Emit) -> Result<NextTurn> {
        Ok(match input {
            UserInput::Message(message) => NextTurn::With(message),
            UserInput::Continue => self.continuation()?.map_or(NextTurn::AsItIs, NextTurn::With),
            UserInput::Compact { strategy, instructions } => {
                // Whoever aborts a command does not want it to begin again.
                self.shared.done_with_taken();
                self.command(strategy, instructions, None, emit).boxed().await?;
                NextTurn::None
            }
            UserInput::CompactAndSend(prompt) => {
                self.command(None, None, prompt.clone(), emit).boxed().await?;
                NextTurn::With(prompt.unwrap_or_else(go_on))
            }
            UserInput::Queued => NextTurn::None,
        })
    }

    /// Compacts at the user's request, and logs the result as a notice.
    async fn command(
        &mut self,
        strategy: Option<Arc<dyn CompactionStrategy>>,
        instructions: Option<Text>,
        next_prompt: Option<Message>,
        emit: &mut Emit,
    ) -> Result<()> {
        self.answer_open_calls()?;
        // A user who requests a compaction expects an effect, so the target of a thread over its
        // target is at most half of the thread.
        let thread = self.auto.ratio().scale(self.journal.thread().size().tokens);
        let target = self.requested_target().filter(|target| thread > *target);
        let target = target.map(|target| target.min(thread / 2));
        let reason = CompactionReason::Manual { instructions };
        let order = Order { reason, target, limit: None, next_prompt, strategy };
        let line = match self.compact_for(order, emit).await? {
            Ok(done) => format!("Compacted: {}.", done.report),
            Err(error) => {
                let why = self.journal.redacted_text(why_not(&error));
                if error.is_nothing_to_compact() {
                    let why = why.clone();
                    emit.event(SessionEvent::NothingCompacted { why }).await;
                }
                format!("Not compacted: {why}.")
            }
        };
        let text = self.journal.redacted_text(line);
        let event = Event::LocalNotice { text: text.clone() };
        let now = self.now();
        self.journal.append(now, event)?;
        self.journal.flush().await?;
        emit.event(SessionEvent::Notice { text }).await;
        Ok(())
    }

    /// The message with which a continued turn begins; `None` if the thread is sent unchanged.
    fn continuation(&self) -> Result<Option<Message>> {
        let never_began =
            self.messages().is_empty() || self.shared.lock().has_entered == Some(false);
        let turn = if never_began { LastTurn::NeverBegan } else { LastTurn::Over };
        let nothing = SessionError::NothingToContinue { turn };
        let Some(last) = self.messages().last() else { return Err(nothing) };
        if last.role != Role::Assistant || !self.journal.thread().open_calls().is_empty() {
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
                Err(nothing)
            }
        }
    }
}

/// Returns a message that asks the agent to continue. It is a reminder and not text, because it
/// must not count as words that the user typed.
fn go_on() -> Message {
    Message::new(Role::User, vec![ContentBlock::reminder(CONTINUE)])
}

/// A short line for the user on why nothing was compacted. Events and log have the details.
fn why_not(error: &CompactionError) -> String {
    if error.is_nothing_to_compact() {
        return "there is nothing to compact yet".to_owned();
    }
    if let Some(StrategyError::NoRung { .. }) = error.strategy() {
        return "no strategy could make the thread smaller".to_owned();
    }
    error.to_string()
}

/// Returns the text after a command's word, if the message is this command. White space or the end
/// must follow the word: `/compaction` is an ordinary message.
fn argument(text: &str, word: &str) -> Option<Option<Text>> {
    let rest = text.strip_prefix(word)?;
    let alone = rest.is_empty() || rest.starts_with(char::is_whitespace);
    alone.then(|| Some(rest.trim()).filter(|rest| !rest.is_empty()).map(Text::from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_word_itself_is_a_command() {
        let rows = [
            ("/compact", "compact None"),
            (" /compact \n", "compact None"),
            ("/compact the tests", "compact Some(\"the tests\")"),
            ("/compact\nthe\ttests ", "compact Some(\"the\\ttests\")"),
            ("@compact", "send None"),
            ("@compact go on", "send Some(\"go on\")"),
            ("/compaction", "message"),
            ("/compact-now", "message"),
            ("/Compact", "message"),
            ("please /compact", "message"),
            ("@compacted", "message"),
            ("", "message"),
        ];
        for (text, command) in rows {
            let typed = UserText::from(text);
            let parsed = match UserInput::parse(typed, &Moderators::Everybody) {
                UserInput::Compact { instructions, .. } => {
                    format!("compact {:?}", instructions.as_deref())
                }
                UserInput::CompactAndSend(prompt) => {
                    let prompt = prompt.map(|prompt| prompt.texts().next().cloned());
                    format!("send {:?}", prompt.flatten().as_deref())
                }
                UserInput::Message(_) => "message".to_owned(),
                UserInput::Continue | UserInput::Queued => "something else".to_owned(),
            };
            assert_eq!(parsed, command, "{text:?}");
        }
    }
}
