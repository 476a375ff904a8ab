//! A text that somebody typed, before it is a message or a command.

use crate::message::{Author, Text};

/// A text, and the person who typed it, if the host names one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Typed {
    pub(super) text: Text,
    pub(super) author: Option<Author>,
}

impl From<Text> for Typed {
    fn from(text: Text) -> Self {
        Self { text, author: None }
    }
}
