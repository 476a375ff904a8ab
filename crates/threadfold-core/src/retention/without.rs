//! Removing demands that the user revoked.

use super::facts::Facts;
use crate::prose::FactClass;

impl Facts {
    /// Removes the constraints with these words, because the user revoked them.
    #[doc(hidden)]
    pub fn without_constraints<'a>(self, texts: impl IntoIterator<Item = &'a str>) -> Self {
        let mut facts = self;
        for text in texts {
            facts.gathered.remove(FactClass::Constraint, text);
        }
        facts
    }
}
