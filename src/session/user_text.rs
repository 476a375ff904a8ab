//! A text that somebody typed, before it is a message or a command.

use crate::message::{Author, Message, Text};

/// A text that somebody typed, with the person, if the host names one. Any text is one without an
/// author.
///
/// ```
/// use threadfold::session::UserText;
///
/// let typed = UserText::from("Hi.");
/// assert_eq!((&*typed.text, typed.author), ("Hi.", None));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserText {
    /// The text, as typed.
    pub text: Text,
    /// Who typed it.
    pub author: Option<Author>,
}

impl UserText {
    /// The message of this text.
    pub(super) fn into_message(self) -> Message {
        Message::user(self.text).by_author(self.author)
    }
}

impl<T: Into<Text>> From<T> for UserText {
    fn from(text: T) -> Self {
        Self { text: text.into(), author: None }
    }
}
