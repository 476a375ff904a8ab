//! Matches facts against the texts of a thread after a compaction.

use std::collections::HashSet;

use super::automaton::{Automaton, ROOT};
use crate::prose::{FactClass, Kind, Trust, is_whole, key, path_value, tokens, word_facts};

/// The keys of the paths and URLs in a thread.
#[derive(Debug, Default)]
pub(super) struct Spelled {
    pub(super) paths: HashSet<String>,
    pub(super) urls: HashSet<String>,
}

impl Spelled {
    pub(super) fn read(&mut self, kind: Kind, text: &str) {
        let mut note = |class: FactClass, text: &str| {
            let keys = if class == FactClass::Path {
                &mut self.paths
            } else if class == FactClass::Url {
                &mut self.urls
            } else {
                return;
            };
            let key = key(class, text);
            if !keys.contains(&*key) {
                keys.insert(key.into_owned());
            }
        };
        if kind == Kind::Path {
            path_value(text, &mut note);
        }
        word_facts(text, Trust::Full, &mut note);
    }
}

/// Searches for phrases, each under the rules of its class.
#[derive(Debug)]
pub(super) struct Phrases {
    exact: Half,
    folded: Half,
    read: HashSet<usize>,
}

/// The phrases whose case counts, or those whose case does not.
#[derive(Debug)]
struct Half {
    automaton: Automaton,
    /// The class of each phrase of the automaton, and its index in [`Phrases`].
    owners: Vec<(FactClass, usize)>,
}

impl Phrases {
    /// Prepares a search for these phrases, given as class and text.
    pub(super) fn new<'a>(phrases: impl IntoIterator<Item = (FactClass, &'a str)>) -> Self {
        let half = |folds| Half { automaton: Automaton::new(folds), owners: Vec::new() };
        let mut both = Self { exact: half(false), folded: half(true), read: HashSet::new() };
        for (number, (class, text)) in phrases.into_iter().enumerate() {
            let half = if class.folds_case() { &mut both.folded } else { &mut both.exact };
            half.automaton.add(phrase(class, text));
            half.owners.push((class, number));
        }
        both.exact.automaton.link();
        both.folded.automaton.link();
        both
    }

    pub(super) fn read(&mut self, text: &str) {
        let Self { exact, folded, read } = self;
        let (mut starts, mut nodes) = (Vec::new(), (ROOT, ROOT));
        for token in tokens(text) {
            starts.push(token.start);
            let end = token.start + token.text.len();
            for (Half { automaton, owners }, node) in
                [(&mut *exact, &mut nodes.0), (&mut *folded, &mut nodes.1)]
            {
                *node = automaton.step(*node, &token);
                automaton.ending(*node, |phrase, length| {
                    let Some((class, number)) = owners.get(phrase) else { return };
                    let start = starts.iter().rev().nth(length.saturating_sub(1));
                    let is_whole = |start: &usize| is_whole(*class, text, *start, end);
                    if !read.contains(number) && start.is_some_and(is_whole) {
                        read.insert(*number);
                    }
                });
            }
        }
    }

    /// Whether a text contained the phrase with this index.
    pub(super) fn was_read(&self, number: usize) -> bool {
        self.read.contains(&number)
    }
}

/// Returns the text to search for: without punctuation at the end, without the `v` of a version.
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
