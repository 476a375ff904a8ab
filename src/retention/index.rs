//! What stands in a thread after a compaction, made ready to be asked for facts.

use std::collections::HashSet;

use super::{
    automaton::Automaton,
    border::is_whole,
    chunk::Trust,
    class::FactClass,
    gather::key,
    passage::{Kind, passages},
    path,
    words::words,
};
use crate::message::Message;

/// The paths and addresses of a thread, as they are compared.
#[derive(Debug, Default)]
pub(super) struct Spelled {
    pub(super) paths: HashSet<String>,
    pub(super) urls: HashSet<String>,
}

impl Spelled {
    pub(super) fn of(messages: &[Message]) -> Self {
        let mut spelled = Self::default();
        for message in messages {
            passages(message, &mut |_, kind, text| spelled.read(kind, text));
        }
        spelled
    }

    fn read(&mut self, kind: Kind, text: &str) {
        let mut note = |class: FactClass, text: &str| {
            if class == FactClass::Path {
                self.paths.insert(key(class, text));
            } else if class == FactClass::Url {
                self.urls.insert(key(class, text));
            }
        };
        if kind == Kind::Path {
            path::named(text, &mut note);
        }
        words(text, Trust::Full, &mut note);
    }
}

/// Looks for phrases, each by the rules of its class.
#[derive(Debug)]
pub(super) struct Phrases {
    exact: Half,
    folded: Half,
}

/// Those whose case counts, or those whose case does not.
#[derive(Debug)]
struct Half {
    automaton: Automaton,
    /// The class of each phrase, and whose phrase it is.
    owners: Vec<(FactClass, usize)>,
}

impl Phrases {
    /// Makes ready to look for these: class and text.
    pub(super) fn new<'a>(phrases: impl IntoIterator<Item = (FactClass, &'a str)>) -> Self {
        let half = |folds| Half { automaton: Automaton::new(folds), owners: Vec::new() };
        let mut both = Self { exact: half(false), folded: half(true) };
        for (number, (class, text)) in phrases.into_iter().enumerate() {
            let half = if class.folds_case() { &mut both.folded } else { &mut both.exact };
            half.automaton.add(phrase(class, text));
            half.owners.push((class, number));
        }
        both.exact.automaton.link();
        both.folded.automaton.link();
        both
    }

    /// Returns the numbers of the phrases that stand in these messages.
    pub(super) fn found_in(&mut self, messages: &[Message]) -> HashSet<usize> {
        let mut found = HashSet::new();
        for message in messages {
            passages(message, &mut |_, _, text| {
                for Half { automaton, owners } in [&mut self.exact, &mut self.folded] {
                    automaton.scan(text, |phrase, start, end| {
                        let Some((class, number)) = owners.get(phrase) else { return };
                        if !found.contains(number) && is_whole(*class, text, start, end) {
                            found.insert(*number);
                        }
                    });
                }
            });
        }
        found
    }

    /// How many steps it took.
    pub(super) fn steps(&self) -> u64 {
        self.exact.automaton.steps + self.folded.automaton.steps
    }
}

/// What is looked for: without the sign at the end of a sentence, without the `v` of a version.
fn phrase(class: FactClass, text: &str) -> &str {
    match class {
        FactClass::Version => text.trim_start_matches(['v', 'V']),
        FactClass::Constraint | FactClass::Task | FactClass::Error => {
            text.trim_end_matches(['.', '!', '\u{3002}', '\u{ff01}'])
        }
        FactClass::Path
        | FactClass::Url
        | FactClass::Command
        | FactClass::Identifier
        | FactClass::Hash
        | FactClass::Number
        | FactClass::Quote
        | FactClass::Checkpoint => text,
    }
}
