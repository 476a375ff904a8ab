//! Facts without what is no longer asked for.

use super::facts::Facts;
use crate::prose::FactClass;

impl Facts {
    /// Leaves out what the user demanded in these words, because it was taken back.
    #[doc(hidden)]
    pub fn without_constraints<'a>(self, texts: impl IntoIterator<Item = &'a str>) -> Self {
        let mut facts = self;
        for text in texts {
            facts.gathered.remove(FactClass::Constraint, text);
        }
        facts
    }
}
