//! What the crate must know about a message of a host.

use super::words::Words;
use crate::message::{Author, Role, Usage, picture_size};

/// A message of a host's own type.
///
/// Two methods are enough. A pair of a role and a text implements the trait, for hosts without
/// tools and for short examples.
///
/// ```
/// use threadfold::{Role, foreign::{HostMessage, Part, shadow}};
///
/// struct Note(String);
///
/// impl HostMessage for Note {
///     fn role(&self) -> Role {
///         Role::User
///     }
///
///     fn parts(&self) -> Vec<Part<'_>> {
///         vec![Part::text(&self.0)]
///     }
///
///     /// This host writes its notes itself, so they are not the user's words.
///     fn is_typed(&self) -> bool {
///         false
///     }
/// }
///
/// assert!(!shadow(&Note("The file a.rs has changed.".into())).is_typed());
/// ```
pub trait HostMessage {
    /// Who the message is from. The results of tools are from the user, whatever role the host or
    /// its provider gives them.
    fn role(&self) -> Role;

    /// The parts of the message, in order. Plans name a part by its index here.
    fn parts(&self) -> Vec<Part<'_>>;

    /// Whether a person typed the texts and pictures of this message. Only such texts are kept as
    /// the user's words and can state or lift a rule. By default this holds for every message of
    /// the user.
    fn is_typed(&self) -> bool {
        self.role() == Role::User
    }

    /// The person who typed this message of the user, in threads in which several people speak. Lists
    /// of what was said then name each author.
    fn author(&self) -> Option<Author> {
        None
    }

    /// The tokens that the provider reported with this answer, if the message stores them. Other
    /// hosts report them with [`Compactor::learn`](crate::Compactor::learn).
    fn usage(&self) -> Option<Usage> {
        None
    }
}

/// A part of a host's message.
#[derive(Clone, Debug)]
pub enum Part<'m> {
    /// A text.
    Text(Words<'m>),
    /// A text that a plan put into a message which it added, as [`NewPart::Text`] had it. A host that
    /// stores its thread tells these apart from all others, so that a later process reads the rules
    /// and the user's words in a summary. No message that a person, a model or a tool wrote may have
    /// such a part.
    ///
    /// [`NewPart::Text`]: super::NewPart::Text
    Added(Words<'m>),
    /// Reasoning of the model that can be read. A compaction removes it from old messages, because
    /// providers bind it to the messages before it.
    Reasoning(Words<'m>),
    /// A picture.
    Image {
        /// Its width and height in pixels, if known. Without them it counts like the largest
        /// picture.
        pixels: Option<(u64, u64)>,
    },
    /// A document.
    Document {
        /// The title or file name; may be empty.
        title: Words<'m>,
        /// Its text, if the message has it. Other documents count a fixed number of tokens.
        text: Option<Words<'m>>,
    },
    /// A tool call that the host answers.
    Call {
        /// The id that the result refers to.
        id: Words<'m>,
        /// The name of the tool.
        name: Words<'m>,
        /// The input, as JSON text.
        input: Words<'m>,
    },
    /// The result of a tool call.
    Result {
        /// The id of the call.
        id: Words<'m>,
        /// The output: texts, images and documents. Plans name a part of it by its index.
        content: Vec<Part<'m>>,
        /// Whether the tool failed.
        is_error: bool,
    },
    /// A part that only the host and its provider understand. It stays or goes as a whole.
    Native {
        /// The bytes that it has on the wire. They count like text.
        bytes: usize,
    },
}

impl<'m> Part<'m> {
    /// Returns a text.
    ///
    /// ```
    /// use threadfold::foreign::Part;
    ///
    /// assert!(matches!(Part::text("hi"), Part::Text(words) if &*words == "hi"));
    /// ```
    pub fn text(text: impl Into<Words<'m>>) -> Self {
        Self::Text(text.into())
    }

    /// Returns a picture whose size is read from the header of its Base64 data, if they are a PNG,
    /// JPEG, GIF or WebP. The data are not copied.
    ///
    /// ```
    /// use threadfold::foreign::Part;
    ///
    /// let gif = Part::image("R0lGODlh6APoAw==");
    /// assert!(matches!(gif, Part::Image { pixels: Some((1_000, 1_000)) }));
    /// ```
    #[must_use]
    pub fn image(base64: &str) -> Self {
        Self::Image { pixels: picture_size(base64) }
    }

    /// Returns a tool call. The input is JSON text.
    ///
    /// ```
    /// use threadfold::foreign::Part;
    ///
    /// assert!(matches!(Part::call("call_1", "read", "{}"), Part::Call { .. }));
    /// ```
    pub fn call(
        id: impl Into<Words<'m>>,
        name: impl Into<Words<'m>>,
        input: impl Into<Words<'m>>,
    ) -> Self {
        Self::Call { id: id.into(), name: name.into(), input: input.into() }
    }

    /// Returns the result of a call that succeeded, with one text.
    ///
    /// ```
    /// use threadfold::foreign::Part;
    ///
    /// let result = Part::result("call_1", "fn main() {}");
    /// assert!(matches!(result, Part::Result { is_error: false, .. }));
    /// ```
    pub fn result(id: impl Into<Words<'m>>, text: impl Into<Words<'m>>) -> Self {
        Self::Result { id: id.into(), content: vec![Self::text(text)], is_error: false }
    }
}

impl HostMessage for (Role, String) {
    fn role(&self) -> Role {
        self.0
    }

    fn parts(&self) -> Vec<Part<'_>> {
        vec![Part::text(&self.1)]
    }
}

/// A shared message is read like the message itself.
impl<M: HostMessage + ?Sized> HostMessage for std::sync::Arc<M> {
    fn role(&self) -> Role {
        (**self).role()
    }

    fn parts(&self) -> Vec<Part<'_>> {
        (**self).parts()
    }

    fn is_typed(&self) -> bool {
        (**self).is_typed()
    }

    fn author(&self) -> Option<Author> {
        (**self).author()
    }

    fn usage(&self) -> Option<Usage> {
        (**self).usage()
    }
}
