//! Matches facts against the texts of a thread after a compaction.

use std::{collections::HashSet, sync::Arc};

use super::{
    automaton::{Automaton, ROOT, Words},
    files::Files,
};
use crate::prose::{
    FactClass, Kind, Property, Trust, canonical, is_whole, key, path_value, tokens, word_facts,
};

/// The files and URLs that the texts read so far mention.
#[derive(Clone, Debug, Default)]
pub(super) struct Spelled {
    /// Files that were mentioned in any spelling.
    named: HashSet<usize>,
    /// Files that were mentioned with at least one folder.
    located: HashSet<usize>,
    urls: HashSet<String>,
}

impl Spelled {
    pub(super) fn read(&mut self, files: &Files<'_>, kind: Kind, text: &str) {
        if kind == Kind::Path {
            path_value(text, &mut |class, text| self.note(files, class, text));
        }
        word_facts(text, Trust::Full, &mut |class, text| self.note(files, class, text));
    }

    pub(super) fn note(&mut self, files: &Files<'_>, class: FactClass, text: &str) {
        if class == FactClass::Path {
            let key = key(class, text);
            let file = files.file(&key);
            self.named.extend(file);
            self.located.extend(file.filter(|_| key.contains('/')));
        } else if class == FactClass::Url {
            self.urls.insert(key(class, text).into_owned());
        }
    }

    /// Whether the file or the URL with this key was mentioned. If the longest spelling of a file has
    /// a folder, only a mention with a folder counts.
    pub(super) fn has(&self, class: FactClass, key: &str, file: Option<usize>) -> bool {
        let read = if key.contains('/') { &self.located } else { &self.named };
        file.is_some_and(|file| read.contains(&file))
            || (class == FactClass::Url && self.urls.contains(key))
    }
}

/// Searches for phrases, each under the rules of its class. A clone shares the phrases.
#[derive(Clone, Debug)]
pub(super) struct Phrases {
    words: Arc<Words>,
    /// The phrases that are compared with case, and those without.
    halves: Arc<[Half; 2]>,
    /// For each phrase, whether a text contained it.
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
        let (mut words, mut count) = (Words::default(), 0);
        for (number, (class, text)) in phrases.into_iter().enumerate() {
            count += 1;
            let half = if class.is(Property::Folded) { &mut folded } else { &mut exact };
            half.automaton.add(&mut words, phrase(class, text));
            half.owners.push((class, number));
        }
        exact.automaton.link();
        folded.automaton.link();
        let (words, halves) = (Arc::new(words), Arc::new([exact, folded]));
        Self { words, halves, read: vec![false; count] }
    }

    pub(super) fn read(&mut self, text: &str) {
        let Self { words, halves, read } = self;
        let (mut starts, mut nodes, mut buffer) = (Vec::new(), [ROOT; 2], String::new());
        for token in tokens(text) {
            starts.push(token.start);
            let end = token.start + token.text.len();
            let exact = words.number(token.text);
            let folded = canonical(token.text, true, &mut buffer);
            let folded = if folded == token.text { exact } else { words.number(folded) };
            for ((half, node), word) in halves.iter().zip(&mut nodes).zip([exact, folded]) {
                let Half { automaton, owners } = half;
                *node = automaton.step(*node, word, token.glued);
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
