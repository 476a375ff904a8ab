//! Why a note was not written.

/// Why a note was not written, or a call of the tool was not understood. The text is written for the
/// model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoteError {
    /// A field has the wrong type, or is missing.
    #[error("{field} must be {expected}")]
    Type {
        /// The field, or `input`.
        field: &'static str,
        /// What it must be.
        expected: &'static str,
    },
    /// The input has a field that the tool does not know.
    #[error("the fields are name and text; the input has another one")]
    UnknownField,
    /// The name is blank.
    #[error("the name of a note must not be blank")]
    NoName,
    /// The name is too long.
    #[error("the name has {found} bytes; the maximum is {most}")]
    NameLength {
        /// The bytes of the name.
        found: usize,
        /// The maximum.
        most: usize,
    },
    /// The text is too long.
    #[error("the note has {found} bytes; the maximum is {most}. Write only what is needed")]
    Length {
        /// The bytes of the text.
        found: usize,
        /// The maximum.
        most: usize,
    },
    /// There are too many notes.
    #[error("there are {most} notes, which is the maximum. Replace or remove one")]
    TooMany {
        /// The maximum.
        most: usize,
    },
    /// All notes together would be too long.
    #[error(
        "all notes together would have {found} bytes; the maximum is {most}. Shorten or remove one"
    )]
    Full {
        /// The bytes that they would have.
        found: usize,
        /// The maximum.
        most: usize,
    },
    /// There is no note with the name to remove.
    #[error("there is no note of this name to remove")]
    Unknown,
}
