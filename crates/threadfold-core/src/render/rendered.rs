//! A rendering and the byte ranges of its messages.

use std::{fmt, ops::Deref, ops::Range};

/// The text of a thread and the byte range of every message in it. It dereferences to `str`.
///
/// The ranges follow each other without gaps; joined they are the whole text. A host with its own
/// format collects a rendering from the texts of its messages, and can cut it into
/// [chunks](super::chunk()) too:
///
/// ```
/// use threadfold::render::Rendered;
///
/// let rendered: Rendered = ["> hello\n", "hi\n"].into_iter().collect();
/// assert_eq!(rendered.text(), "> hello\nhi\n");
/// assert_eq!(rendered.message_ranges().collect::<Vec<_>>(), [0..8, 8..11]);
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Rendered {
    text: String,
    starts: Vec<usize>,
}

impl Rendered {
    /// The whole text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the whole text as a string, without copying.
    ///
    /// ```
    /// use threadfold::{Message, render::{RenderOptions, render}};
    ///
    /// let text = render(&[Message::user("hi")], &RenderOptions::default()).into_text();
    /// assert!(text.contains("hi"));
    /// ```
    #[must_use]
    pub fn into_text(self) -> String {
        self.text
    }

    /// Returns the byte range of a message; `None` if there is no such message.
    ///
    /// ```
    /// use threadfold::render::Rendered;
    ///
    /// let rendered: Rendered = ["> hello\n", "hi\n"].into_iter().collect();
    /// assert_eq!(rendered.message_range(1), Some(8..11));
    /// assert_eq!(rendered.message_range(2), None);
    /// ```
    #[must_use]
    pub fn message_range(&self, message: usize) -> Option<Range<usize>> {
        let start = *self.starts.get(message)?;
        Some(start..self.end_of(message))
    }

    /// Returns the text of a message; `None` if there is no such message.
    ///
    /// ```
    /// use threadfold::{Message, render::{RenderOptions, render}};
    ///
    /// let thread = [Message::user("hi"), Message::assistant("hello")];
    /// let rendered = render(&thread, &RenderOptions::default());
    /// assert!(rendered.message(1).is_some_and(|text| text.contains("hello")));
    /// assert_eq!(rendered.message(2), None);
    /// ```
    #[must_use]
    pub fn message(&self, message: usize) -> Option<&str> {
        self.text.get(self.message_range(message)?)
    }

    /// The byte ranges of the messages, in order.
    #[must_use]
    pub fn message_ranges(&self) -> impl ExactSizeIterator<Item = Range<usize>> {
        self.starts.iter().enumerate().map(|(message, start)| *start..self.end_of(message))
    }

    fn end_of(&self, message: usize) -> usize {
        self.starts.get(message + 1).copied().unwrap_or(self.text.len())
    }

    /// The byte offsets at which messages start, ascending.
    pub(super) fn starts(&self) -> &[usize] {
        &self.starts
    }

    /// Makes room for so many bytes, if there is memory for them.
    pub(super) fn reserve(&mut self, bytes: usize) {
        let _ = self.text.try_reserve(bytes);
    }

    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.starts.clear();
    }

    /// Starts a message. The text written next belongs to it.
    pub(super) fn next_message(&mut self) -> &mut String {
        self.starts.push(self.text.len());
        &mut self.text
    }
}

impl<S: AsRef<str>> FromIterator<S> for Rendered {
    fn from_iter<I: IntoIterator<Item = S>>(messages: I) -> Self {
        let mut rendered = Self::default();
        for message in messages {
            rendered.next_message().push_str(message.as_ref());
        }
        rendered
    }
}

impl Deref for Rendered {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl AsRef<str> for Rendered {
    fn as_ref(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Rendered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl fmt::Debug for Rendered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let messages = (0..self.starts.len()).filter_map(|message| self.message(message));
        f.debug_list().entries(messages).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rendering_is_its_text_and_its_messages() {
        let mut rendered: Rendered = ["one ", "", "three"].into_iter().collect();
        assert_eq!(
            (rendered.as_ref(), &*rendered, rendered.text()),
            ("one three", "one three", "one three")
        );
        assert_eq!(rendered.message_ranges().collect::<Vec<_>>(), [0..4, 4..4, 4..9]);
        let messages: Vec<_> = (0..4).map(|message| rendered.message(message)).collect();
        assert_eq!(messages, [Some("one "), Some(""), Some("three"), None]);
        assert_eq!(format!("{rendered:>10}"), " one three");
        assert_eq!(format!("{rendered:?}"), r#"["one ", "", "three"]"#);
        rendered.clear();
        assert_eq!(rendered, Rendered::default());
    }
}
