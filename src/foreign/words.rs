//! A text of a host, shared if it can be.

use std::{borrow::Cow, fmt, ops::Deref, sync::Arc};

use crate::message::Text;

/// A text of a host's message. A shared text is never copied; a borrowed one is copied once, when
/// its message is first observed.
///
/// ```
/// use std::sync::Arc;
/// use threadfold::foreign::Words;
///
/// let shared: Arc<str> = "fn main() {}".into();
/// assert!(matches!(Words::from(shared), Words::Shared(_)));
/// assert_eq!(&*Words::from("fn main() {}"), "fn main() {}");
/// ```
#[derive(Clone)]
pub enum Words<'m> {
    /// A text in the host's message.
    Borrowed(&'m str),
    /// A text that the host shares, or that was made for this call.
    Shared(Text),
}

impl Words<'_> {
    /// The text that a shadow holds.
    pub(super) fn into_text(self) -> Text {
        match self {
            Self::Borrowed(text) => text.into(),
            Self::Shared(text) => text,
        }
    }
}

impl Deref for Words<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Borrowed(text) => text,
            Self::Shared(text) => text,
        }
    }
}

impl fmt::Debug for Words<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl<'m> From<&'m str> for Words<'m> {
    fn from(text: &'m str) -> Self {
        Self::Borrowed(text)
    }
}

impl<'m> From<&'m String> for Words<'m> {
    fn from(text: &'m String) -> Self {
        Self::Borrowed(text)
    }
}

impl From<String> for Words<'_> {
    fn from(text: String) -> Self {
        Self::Shared(text.into())
    }
}

impl<'m> From<Cow<'m, str>> for Words<'m> {
    fn from(text: Cow<'m, str>) -> Self {
        match text {
            Cow::Borrowed(text) => text.into(),
            Cow::Owned(text) => text.into(),
        }
    }
}

impl From<Arc<str>> for Words<'_> {
    fn from(text: Arc<str>) -> Self {
        Self::Shared(text.into())
    }
}

impl From<&Arc<str>> for Words<'_> {
    fn from(text: &Arc<str>) -> Self {
        Arc::clone(text).into()
    }
}

impl From<Text> for Words<'_> {
    fn from(text: Text) -> Self {
        Self::Shared(text)
    }
}

impl From<&Text> for Words<'_> {
    fn from(text: &Text) -> Self {
        text.clone().into()
    }
}
