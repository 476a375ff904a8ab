//! Finds all facts in one pass: an Aho-Corasick automaton over tokens. The work is linear in the
//! length of the text, however many facts there are.

use std::collections::{HashMap, VecDeque};

use crate::{
    message::steps,
    prose::{canonical, tokens},
};

/// The words of phrases, with their numbers. A search has one for all its automata.
#[derive(Debug, Default)]
pub(super) struct Words(HashMap<String, u32>);

impl Words {
    /// The number of a word, if a phrase has it.
    pub(super) fn number(&self, word: &str) -> Option<u32> {
        self.0.get(word).copied()
    }

    fn add(&mut self, word: &str) -> u32 {
        let new = self.0.len() as u32;
        *self.0.entry(word.to_owned()).or_insert(new)
    }
}

/// Finds phrases in texts.
#[derive(Debug, Default)]
pub(super) struct Automaton {
    folds_case: bool,
    next: HashMap<(u32, Step), u32>,
    nodes: Vec<Node>,
    /// The number of tokens of each phrase.
    lengths: Vec<usize>,
}

/// A word, and whether no white space is between it and the previous one.
type Step = (u32, bool);

#[derive(Clone, Debug, Default)]
struct Node {
    /// The node of the longest proper suffix that is also the beginning of a phrase.
    fail: u32,
    /// The nearest node on the path of `fail` that ends a phrase.
    shorter: u32,
    phrases: Vec<usize>,
}

/// The node at which every search begins.
pub(super) const ROOT: u32 = 0;

impl Automaton {
    pub(super) fn new(folds_case: bool) -> Self {
        Self { folds_case, nodes: vec![Node::default()], ..Self::default() }
    }

    /// Adds a phrase and returns its number. A phrase without tokens is never found.
    pub(super) fn add(&mut self, words: &mut Words, phrase: &str) -> usize {
        let (number, mut node, mut count) = (self.lengths.len(), ROOT, 0);
        let mut buffer = String::new();
        for token in tokens(phrase) {
            let word = words.add(canonical(token.text, self.folds_case, &mut buffer));
            // Whether the first token is glued depends on the text before the phrase, so it is
            // ignored.
            let step = (word, token.glued && node != ROOT);
            let new = self.nodes.len() as u32;
            node = *self.next.entry((node, step)).or_insert(new);
            if node == new {
                self.nodes.push(Node::default());
            }
            count += 1;
        }
        self.lengths.push(count);
        if let Some(node) = self.nodes.get_mut(node as usize).filter(|_| count > 0) {
            node.phrases.push(number);
        }
        number
    }

    /// Sets the links between nodes. Call it once, after all phrases are added.
    pub(super) fn link(&mut self) {
        let mut children: HashMap<u32, Vec<(Step, u32)>> = HashMap::new();
        for ((node, step), child) in &self.next {
            children.entry(*node).or_default().push((*step, *child));
        }
        // Breadth first, because the link of a node leads to a node nearer the root, whose own link
        // must be set by then.
        let mut queue = VecDeque::from([ROOT]);
        while let Some(node) = queue.pop_front() {
            for (step, child) in children.remove(&node).unwrap_or_default() {
                let fail =
                    if node == ROOT { ROOT } else { self.follow(self.node(node).fail, step) };
                let suffix = self.node(fail);
                let shorter = if suffix.phrases.is_empty() { suffix.shorter } else { fail };
                if let Some(child) = self.nodes.get_mut(child as usize) {
                    (child.fail, child.shorter) = (fail, shorter);
                }
                queue.push_back(child);
            }
        }
    }

    /// Returns the node after a token with this word, glued to the one before or not.
    pub(super) fn step(&self, node: u32, word: Option<u32>, glued: bool) -> u32 {
        word.map_or(ROOT, |word| self.follow(node, (word, glued)))
    }

    /// Calls `found` with the number and the token count of every phrase that ends at this node.
    pub(super) fn ending(&self, mut node: u32, mut found: impl FnMut(usize, usize)) {
        while node != ROOT {
            let at = self.node(node);
            steps::round();
            for phrase in &at.phrases {
                if let Some(length) = self.lengths.get(*phrase) {
                    found(*phrase, *length);
                }
            }
            node = at.shorter;
        }
    }

    /// Returns the node after a step.
    fn follow(&self, mut node: u32, step: Step) -> u32 {
        while node != ROOT {
            steps::round();
            if let Some(next) = self.next.get(&(node, step)) {
                return *next;
            }
            node = self.node(node).fail;
        }
        // The first token of a phrase may be glued to the text before it.
        self.next.get(&(ROOT, (step.0, false))).copied().unwrap_or(ROOT)
    }

    /// Returns a node. Its number comes from this automaton, so the node always exists.
    fn node(&self, number: u32) -> &Node {
        const NONE: &Node = &Node { fail: ROOT, shorter: ROOT, phrases: Vec::new() };
        let node = self.nodes.get(number as usize);
        debug_assert!(node.is_some(), "there is no node {number}");
        node.unwrap_or(NONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrases_within_other_phrases_are_found() {
        let (mut words, mut automaton) = (Words::default(), Automaton::new(true));
        for phrase in ["a b c", "b", "b c d", "x.y", ""] {
            automaton.add(&mut words, phrase);
        }
        automaton.link();
        let (mut found, mut node) = (Vec::new(), ROOT);
        for token in tokens("A b C d x.y x. y") {
            let word = words.number(&token.text.to_lowercase());
            node = automaton.step(node, word, token.glued);
            automaton.ending(node, |phrase, length| found.push((phrase, length, token.start)));
        }
        assert_eq!(found, [(1, 1, 2), (0, 3, 4), (2, 3, 6), (3, 3, 10)]);
    }
}
