//! Legality: the cases under `testdata/legality/`.
//!
//! A case is `--- thread`, and the expected results: `--- violations` with a line for each; `---
//! repairs` with a line for each and `--- repaired` with the thread after; `--- cuts` with the
//! positions where it may be cut; `--- loop` with the message at which the open tool loop begins,
//! or `none`; `--- open calls` with their ids.

use threadfold::{Message, legality};
use threadfold_testing::{
    notation,
    shared::cases::{self, Case},
};

#[test]
fn legality_passes_its_cases() {
    for case in cases::read("testdata/legality").unwrap() {
        let thread = notation::parse(case.section("thread").unwrap()).unwrap();
        let found = legality::violations(&thread);
        asks(&case, "violations", || lines(&found));
        asks(&case, "cuts", || words(&legality::cut_points(&thread)));
        asks(&case, "open calls", || words(&legality::open_calls(&thread)));
        asks(&case, "loop", || {
            legality::open_loop(&thread).map_or("none\n".to_owned(), |start| format!("{start}\n"))
        });
        let (repaired, repairs) = legality::repair(thread.clone());
        let concerns =
            |repair: &legality::Repair| format!("message {}: {repair}", repair.message());
        asks(&case, "repairs", || lines(&repairs.iter().map(concerns).collect::<Vec<_>>()));
        asks(&case, "repaired", || notation::write(&repaired));
        assert_eq!(found.is_empty(), repairs.is_empty(), "{}", case.name);
        assert_eq!(legality::violations(&repaired), [], "{}", case.name);
        assert_same(&thread, &repaired, &case);
    }
}

/// Compares the output with that of the case, if the case has this section.
fn asks(case: &Case, section: &str, said: impl FnOnce() -> String) {
    if let Some(expected) = case.section(section) {
        assert_eq!(said(), expected, "{section} of {}", case.name);
    }
}

/// Checks that the repair of a legal thread returns the same handles.
fn assert_same(thread: &[Message], repaired: &[Message], case: &Case) {
    if legality::violations(thread).is_empty() {
        let pairs = thread.iter().zip(repaired);
        assert!(thread.len() == repaired.len(), "{}", case.name);
        assert!({ pairs }.all(|(before, after)| before.ptr_eq(after)), "{}", case.name);
    }
}

fn lines<T: ToString>(items: &[T]) -> String {
    items.iter().map(|item| item.to_string() + "\n").collect()
}

fn words<T: ToString>(items: &[T]) -> String {
    items.iter().map(T::to_string).collect::<Vec<_>>().join(" ") + "\n"
}
