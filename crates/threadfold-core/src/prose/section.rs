//! The titles of the lists in an addendum, so that a later audit finds the user's words again.

use super::class::FactClass;

/// Returns the title of the list for a class.
pub(crate) fn title(class: FactClass) -> &'static str {
    match class {
        FactClass::Constraint => "What the user demanded, word for word:",
        FactClass::Task => "Still to be done:",
        FactClass::Error => "Errors:",
        FactClass::Path => "Paths:",
        FactClass::Url => "Addresses:",
        FactClass::Command => "Commands:",
        FactClass::Identifier => "Names:",
        FactClass::Version => "Versions:",
        FactClass::Hash => "Hashes:",
        FactClass::Number => "Numbers:",
        FactClass::Quote => "Quoted:",
        FactClass::Checkpoint => "Checkpoints:",
    }
}

/// Returns the user's demands that the addendum in a text lists.
pub(crate) fn constraints(text: &str) -> impl Iterator<Item = &str> {
    let head = title(FactClass::Constraint);
    let mut inside = false;
    text.lines().filter_map(move |line| {
        let item = line.strip_prefix("- ");
        inside = line == head || (inside && item.is_some());
        item.filter(|_| inside)
    })
}
