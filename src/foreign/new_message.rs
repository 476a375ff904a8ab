//! A message that a plan adds to a host's thread.

use crate::message::{Author, Role, Text, ToolUse};

/// A message that the host must make: a summary, or a message of its own with other parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMessage {
    /// Who the message is from.
    pub role: Role,
    /// The author of the message of which this one is a new form, if it has one.
    pub author: Option<Author>,
    /// The message of which this one is a new form, by its index before the plan; `None` for a
    /// message that no old one became, such as a summary.
    pub of: Option<usize>,
    /// The parts, in order.
    pub parts: Vec<NewPart>,
}

/// A part of a new message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NewPart {
    /// A part of an old message, unchanged.
    Kept {
        /// The index of the message before the plan.
        message: usize,
        /// The index of its part.
        part: usize,
        /// Its text, if it is a text.
        text: Option<Text>,
    },
    /// A text of the compaction. A summary in a message of the user is in tags, as codecs write
    /// it; send it as it is.
    Text(Text),
    /// A tool result that was shortened or cleared.
    Result(NewResult),
    /// A tool call with another input.
    Call(ToolUse),
}

/// A tool result that was shortened or cleared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewResult {
    /// The id of the call.
    pub id: Text,
    /// The index of the message before the plan that has the whole result.
    pub message: usize,
    /// The index of the part there.
    pub part: usize,
    /// What is left of the output.
    pub content: Vec<ResultPart>,
    /// Whether the tool failed.
    pub is_error: bool,
}

/// A part of the output of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResultPart {
    /// A part of the old output, unchanged.
    Kept {
        /// Its index in the old output.
        part: usize,
        /// Its text, if it is a text.
        text: Option<Text>,
    },
    /// A text in the place of old parts.
    Text(Text),
}

impl NewMessage {
    /// Returns the texts of the message, each after a blank line. Pictures, calls and results are
    /// not among them.
    ///
    /// ```
    /// use threadfold::{Role, foreign::{NewMessage, NewPart}};
    ///
    /// let parts = vec![NewPart::Text("They talked.".into()), NewPart::Text("Rules: none.".into())];
    /// let new = NewMessage { role: Role::User, author: None, of: None, parts };
    /// assert_eq!(new.text(), "They talked.\n\nRules: none.");
    /// ```
    #[must_use]
    pub fn text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            NewPart::Text(text) | NewPart::Kept { text: Some(text), .. } => Some(text.as_str()),
            NewPart::Kept { text: None, .. } | NewPart::Result(_) | NewPart::Call(_) => None,
        });
        texts.collect::<Vec<_>>().join("\n\n")
    }
}

impl NewResult {
    /// Returns the texts of the output, each on a line of its own.
    ///
    /// ```
    /// use threadfold::foreign::{NewResult, ResultPart};
    ///
    /// let content = vec![ResultPart::Text("[cleared]".into())];
    /// let result = NewResult { id: "c1".into(), message: 4, part: 0, content, is_error: false };
    /// assert_eq!(result.text(), "[cleared]");
    /// ```
    #[must_use]
    pub fn text(&self) -> String {
        let texts = self.content.iter().filter_map(|part| match part {
            ResultPart::Text(text) | ResultPart::Kept { text: Some(text), .. } => {
                Some(text.as_str())
            }
            ResultPart::Kept { text: None, .. } => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }
}
