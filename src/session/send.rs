//! Sending messages and commands to a session, each answered with a stream of events.

use std::sync::Arc;

use super::{command::Command, events::Events, input::UserInput, session::Session};
use crate::{
    message::{Message, Role, Text},
    strategy::CompactionStrategy,
};

impl Session {
    /// Sends a user message and returns the events of the turn, and of the turns of queued messages
    /// after it. A [command](super::Command) is executed instead of sent.
    ///
    /// No model or tool is called and nothing is written before the first poll of the stream; the
    /// session's status is `Working` from this call on. The stream may be dropped at any point.
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
    pub fn send(&mut self, text: impl Into<Text>) -> Events<'_> {
        self.events(UserInput::parse(text.into()))
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
        self.events(UserInput::Message(message))
    }

    /// Compacts the thread now and asks the agent nothing. `focus` names what the summary should
    /// attend to. Same as the command `/compact`.
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
    pub fn compact(&mut self, focus: Option<Text>) -> Events<'_> {
        let focus = focus.map(|focus| focus.to_string());
        self.events(UserInput::Command(Command::Compact { focus }))
    }

    /// Compacts the thread now with this strategy, once, and asks the agent nothing. Otherwise as
    /// [`compact`](Self::compact).
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
        focus: Option<Text>,
    ) -> Events<'_> {
        self.events(UserInput::CompactWith(strategy, focus))
    }

    /// Continues a turn that broke off: because the model failed, the stream was dropped, the host
    /// crashed, or an answer was cut off. No message of the user is needed. Calls without a result
    /// are answered as cancelled first.
    ///
    /// The stream ends with [`SessionError::NothingToContinue`] if the thread is empty or ends with
    /// a complete answer.
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use std::sync::Arc;
    /// use threadfold::model::{ModelError, ModelErrorKind};
    /// use threadfold::testing::{Answer, ScriptedModel};
    /// use threadfold::{ModelAgent, Session};
    ///
    /// let broken = ModelError::new(ModelErrorKind::Other, "the line is dead");
    /// let model = Arc::new(ScriptedModel::new([Answer::Error(broken), "Hello!".into()]));
    /// let mut session = Session::builder(ModelAgent::new(model)).build()?;
    /// assert!(block_on(async { session.send("Hi.").await }).is_err());
    /// let reply = block_on(async { session.continue_turn().await })?;
    /// assert_eq!((reply.text.as_str(), session.messages().len()), ("Hello!", 2));
    /// # Ok::<(), threadfold::session::SessionError>(())
    /// ```
    pub fn continue_turn(&mut self) -> Events<'_> {
        self.run(Some(UserInput::Continue))
    }

    /// Runs the texts that were [queued](super::SessionHandle::queue) while no turn was running, each
    /// as a turn of its own. Without any the stream ends at once.
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use std::sync::Arc;
    /// use threadfold::{ModelAgent, Session, session::Queued, testing::ScriptedModel};
    ///
    /// let model = Arc::new(ScriptedModel::new(["Hello!"]));
    /// let mut session = Session::builder(ModelAgent::new(model)).build()?;
    /// assert_eq!(session.handle().queue("Hi."), Queued::Waiting);
    /// let reply = block_on(async { session.run_queued().await })?;
    /// assert_eq!(reply.text, "Hello!");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn run_queued(&mut self) -> Events<'_> {
        self.run(None)
    }

    fn events(&mut self, input: UserInput) -> Events<'_> {
        self.run(Some(input))
    }

    fn run(&mut self, input: Option<UserInput>) -> Events<'_> {
        let shared = Arc::clone(&self.shared);
        let queued_later = shared.begin();
        let is_command = matches!(
            input,
            Some(UserInput::Command(Command::Compact { .. }) | UserInput::CompactWith(..))
        );
        Events::of(shared, is_command, move |mut emit| async move {
            let ended = self.work(input, queued_later, &mut emit).await;
            emit.ended(ended).await;
        })
    }
}
