//! The compacted form of the first messages of a thread.
//!
//! A view is not a plan, because the plans of several compactions would have to be applied one
//! after another; the log of the thread has the plans. A view ends where the kept tail begins, so
//! it stays valid if a client changes its last messages.

use serde::{Deserialize, Serialize};

use threadfold::{
    legality,
    message::{ContentBlock, Message},
};

/// The messages to send in place of the first messages of a thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    /// The number of messages of the thread that it replaces.
    pub covers: usize,
    /// The messages that are sent instead.
    pub messages: Vec<Message>,
}

impl View {
    /// Returns the view that turns a thread into its compacted form. It does not cover the messages
    /// at the end that are equal in both, so it stays valid if a client changes these.
    ///
    /// ```
    /// use threadfold::Message;
    /// use threadfold_cli::relay::View;
    ///
    /// let thread = [Message::user("a"), Message::assistant("b"), Message::user("c")];
    /// let view = View::between(&thread, &[Message::user("A and b."), Message::user("c")]);
    /// assert_eq!(view, View { covers: 2, messages: vec![Message::user("A and b.")] });
    /// ```
    #[must_use]
    pub fn between(thread: &[Message], compacted: &[Message]) -> Self {
        let pairs = thread.iter().rev().zip(compacted.iter().rev());
        let tail = pairs.take_while(|(before, after)| before == after).count();
        let kept = compacted.len().saturating_sub(tail);
        Self {
            covers: thread.len().saturating_sub(tail),
            messages: compacted.iter().take(kept).cloned().collect(),
        }
    }

    /// Whether the view may stand for the beginning of a thread that begins with what it covers. A client
    /// may go back to an earlier point: then the view covers what the model has not read there, or
    /// lacks the text that was the user's newest.
    ///
    /// ```
    /// use threadfold::Message;
    /// use threadfold_cli::relay::View;
    ///
    /// let view = View { covers: 2, messages: vec![Message::user("They spoke of Ann.")] };
    /// let thread = ["Who?", "Where?", "When?"].map(Message::user);
    /// assert!(!view.serves(&thread), "the model has read nothing yet");
    /// let thread = [Message::user("Who?"), Message::assistant("Ann."), Message::user("When?")];
    /// assert!(view.serves(&thread));
    /// assert!(!view.serves(&thread[..2]), "the newest question is lost there");
    /// let thread = [Message::user("Who?"), Message::assistant("Ann."), Message::user("Who?")];
    /// assert!(view.serves(&thread), "it was asked again");
    /// ```
    #[must_use]
    pub fn serves(&self, thread: &[Message]) -> bool {
        /// The characters by which a text is known. Its end may have been cut.
        const KNOWN_BY: usize = 200;
        // By its place: a user types "Go on." more than once.
        let newest = thread.iter().rposition(Message::is_typed).filter(|at| *at < self.covers);
        let begins = |text: &str| text.chars().take(KNOWN_BY).collect::<String>();
        let is_in =
            |block: &ContentBlock, kept: &ContentBlock| match (block.as_text(), kept.as_text()) {
                (Some(text), Some(kept)) => kept.contains(&begins(text)),
                _ => block == kept,
            };
        let is_kept = |newest: &Message| {
            let kept: Vec<_> = self.messages.iter().flat_map(Message::typed_content).collect();
            newest.typed_content().any(|block| kept.iter().any(|kept| is_in(block, kept)))
        };
        self.covers <= legality::unread_from(thread)
            && newest.and_then(|at| thread.get(at)).is_none_or(is_kept)
    }

    /// Returns the thread as it is sent; `None` if the thread is shorter than the view covers.
    ///
    /// ```
    /// use threadfold::Message;
    /// use threadfold_cli::relay::View;
    ///
    /// let view = View { covers: 2, messages: vec![Message::user("A and b.")] };
    /// let thread = [Message::user("a"), Message::assistant("b"), Message::user("c")];
    /// assert_eq!(view.of(&thread).as_deref(), Some(&[Message::user("A and b."), Message::user("c")][..]));
    /// assert_eq!(view.of(&thread[..1]), None);
    /// ```
    #[must_use]
    pub fn of(&self, thread: &[Message]) -> Option<Vec<Message>> {
        let rest = thread.get(self.covers..)?;
        Some(self.messages.iter().chain(rest).cloned().collect())
    }
}
