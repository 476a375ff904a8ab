//! Why a regular expression cannot be used.

use serde::Serialize;

/// What is wrong with a regular expression.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum RegexError {
    /// Look-ahead or look-behind, which a search in linear time cannot offer.
    #[error("look-around `{construct}` is not supported; select a longer match and `narrow` it")]
    LookAround {
        /// How the group begins.
        construct: String,
    },
    /// A reference to what a group matched, which a search in linear time cannot offer.
    #[error("back-reference `{reference}` is not supported")]
    BackReference {
        /// The reference.
        reference: String,
    },
    /// An escape without a meaning.
    #[error("`\\{found}` has no meaning here")]
    UnknownEscape {
        /// What follows the backslash, abridged.
        found: String,
    },
    /// A group that begins in an unknown way.
    #[error("a group cannot begin with `{found}`")]
    UnknownGroup {
        /// How it begins.
        found: String,
    },
    /// A class without its closing bracket.
    #[error("the class has no closing `]`")]
    UnclosedClass,
    /// A range in a class that runs backwards, or from or to a set.
    #[error("`{range}` is not a range of characters")]
    ClassRange {
        /// The range.
        range: String,
    },
    /// A flag that is given twice.
    #[error("flag `{flag}` is given twice")]
    RepeatedFlag {
        /// The flag.
        flag: char,
    },
    /// Anything else that is not a regular expression.
    #[error("{message}")]
    Syntax {
        /// What the regular-expression parser says.
        message: String,
    },
    /// The expression needs a larger automaton than allowed.
    #[error("it needs more than the {limit} bytes that an expression may take")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
    /// The expressions of the script need larger automata than allowed.
    #[error("the script's expressions need more than {limit} bytes together")]
    AllTooLarge {
        /// The limit.
        limit: usize,
    },
}
