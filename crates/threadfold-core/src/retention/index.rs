//! Matches facts against the texts of a thread after a compaction.

use std::{collections::HashSet, sync::Arc};

use super::automaton::{Automaton, ROOT};
use crate::prose::{
    FactClass, Kind, Property, Trust, is_whole, key, path_value, tokens, word_facts,
};

/// The keys of the paths and URLs in a thread.
#[derive(Clone, Debug, Default)]
pub(super) struct Spelled {
    pub(super) paths: HashSet<String>,
    pub(super) urls: HashSet<String>,
}

impl Spelled {
    pub(super) fn read(&mut self, kind: Kind, text: &str) {
        if kind == Kind::Path {
            path_value(text, &mut |class, text| self.note(class, text));
        }
        word_facts(text, Trust::Full, &mut |class, text| self.note(class, text));
    }

    fn note(&mut self, class: FactClass, text: &str) {
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
    }
}

/// Searches for phrases, each under the rules of its class. A clone shares the phrases.
#[derive(Clone, Debug)]
pub(super) struct Phrases {
    /// The phrases whose case counts, and those whose case does not.
    halves: Arc<[Half; 2]>,
    /// Whether each phrase was read.
    read: Vec<bool>,
}

#[derive(Debug)]
struct Half {
    automaton: Automaton,
    /// The class of each phrase of the automaton, and its index in [`Phrases`].
    owners: Vec<(FactClass, usize)>,
}

impl Phrases {
    /// Prepares a search for these phrases, given as class and text.
    pub(super) fn new<'a>(phrases: impl IntoIterator<Item = (FactClass, &'a str)>) -> Self {
        let [mut exact, mut folded] = [false, true]
            .map(|folds| Half { automaton: Automaton::new(folds), owners: Vec::new() });
        let mut count = 0;
        for (number, (class, text)) in phrases.into_iter().enumerate() {
            count += 1;
            let half = if class.is(Property::Folded) { &mut folded } else { &mut exact };
            half.automaton.add(phrase(class, text));
            half.owners.push((class, number));
        }
        exact.automaton.link();
        folded.automaton.link();
        Self { halves: Arc::new([exact, folded]), read: vec![false; count] }
    }

    pub(super) fn read(&mut self, text: &str) {
        let Self { halves, read } = self;
        let (mut starts, mut nodes, mut buffer) = (Vec::new(), [ROOT; 2], String::new());
        for token in tokens(text) {
            starts.push(token.start);
            let end = token.start + token.text.len();
            for (Half { automaton, owners }, node) in halves.iter().zip(&mut nodes) {
                *node = automaton.step(*node, &token, &mut buffer);
                automaton.ending(*node, |phrase, length| {
                    let Some((class, number)) = owners.get(phrase) else { return };
                    let start = starts.iter().rev().nth(length.saturating_sub(1));
                    if let Some(read) = read.get_mut(*number).filter(|read| !**read) {
                        *read = start.is_some_and(|start| is_whole(*class, text, *start, end));
                    }
                });
            }
        }
    }

    /// Whether a text contained the phrase with this index.
    pub(super) fn was_read(&self, number: usize) -> bool {
        self.read.get(number).is_some_and(|read| *read)
    }
}

/// Returns the text to search for: without punctuation at the end, without the `v` of a version.
fn phrase(class: FactClass, text: &str) -> &str {
    if class == FactClass::Version {
        text.trim_start_matches(['v', 'V'])
    } else if class.is(Property::Sentence) {
        text.trim_end_matches(['.', '!', '\u{3002}', '\u{ff01}'])
    } else {
        text
    }
}
