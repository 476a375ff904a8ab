//! Removing the user's demands that were taken back.

use super::facts::Facts;
use crate::prose::FactClass;

impl Facts {
    /// Removes the constraints with these words, because the user took them back.
    #[doc(hidden)]
    pub fn without_constraints<'a>(self, texts: impl IntoIterator<Item = &'a str>) -> Self {
        let mut facts = self;
        for text in texts {
            facts.gathered.remove(FactClass::Constraint, text);
        }
        facts
    }
}
