//! Whose commands and corrections count in a thread of several people.

use std::sync::Arc;

use crate::message::Author;

/// Whose commands count, and who can lift what others said.
///
/// Everybody can lift a statement of their own with a later one of their own, whoever is named here.
/// A text without an author is nobody's: if some people are named, it lifts nothing.
///
/// ```
/// use threadfold::{ledger::Moderators, message::Author};
///
/// let [ann, bob]: [Author; 2] = ["ann".parse()?, "bob".parse()?];
/// assert!(Moderators::Everybody.allow(Some(&bob)) && Moderators::Everybody.allow(None));
/// let only = Moderators::Only([ann.clone()].into());
/// assert!(only.allow(Some(&ann)) && !only.allow(Some(&bob)) && !only.allow(None));
/// # Ok::<(), threadfold::message::InvalidValue>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Moderators {
    /// Every author, and a text without one.
    #[default]
    Everybody,
    /// These people only.
    Only(Arc<[Author]>),
}

impl Moderators {
    /// Whether what this author types counts for the whole thread; `None` for a text without an
    /// author.
    #[must_use]
    pub fn allow(&self, author: Option<&Author>) -> bool {
        match self {
            Self::Everybody => true,
            Self::Only(people) => author.is_some_and(|author| people.contains(author)),
        }
    }
}
