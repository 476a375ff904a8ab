//! What stands in a thread after a compaction, made ready to be asked for facts.

use std::collections::HashSet;

use super::{
    automaton::{Automaton, ROOT},
    border::is_whole,
};
use crate::prose::{FactClass, Kind, Trust, key, path_value, tokens, word_facts};

/// The paths and addresses of a thread, as they are compared.
#[derive(Debug, Default)]
pub(super) struct Spelled {
    pub(super) paths: HashSet<String>,
    pub(super) urls: HashSet<String>,
}

impl Spelled {
    /// Reads a text.
    pub(super) fn read(&mut self, kind: Kind, text: &str) {
        let mut note = |class: FactClass, text: &str| {
            let known = if class == FactClass::Path {
                &mut self.paths
            } else if class == FactClass::Url {
                &mut self.urls
            } else {
                return;
            };
            let key = key(class, text);
            if !known.contains(&*key) {
                known.insert(key.into_owned());
            }
        };
        if kind == Kind::Path {
            path_value(text, &mut note);
        }
        word_facts(text, Trust::Full, &mut note);
    }
}

/// Looks for phrases, each by the rules of its class.
#[derive(Debug)]
pub(super) struct Phrases {
    exact: Half,
    folded: Half,
    read: HashSet<usize>,
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

    /// Reads a text.
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
                    let start = starts.len().checked_sub(length).and_then(|at| starts.get(at));
                    let start = start.copied().unwrap_or_default();
                    if !read.contains(number) && is_whole(*class, text, start, end) {
                        read.insert(*number);
                    }
                });
            }
        }
    }

    /// Whether the phrase of this number stood in a text.
    pub(super) fn was_read(&self, number: usize) -> bool {
        self.read.contains(&number)
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
