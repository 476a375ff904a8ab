//! All facts looked for at once: a trie over tokens with links from every dead end to the longest
//! other beginning that fits (Aho and Corasick). The work is linear in the text, however many facts
//! there are.

use std::collections::{HashMap, VecDeque};

use super::token::{Token, canonical, tokens};

/// Finds phrases in texts.
#[derive(Debug)]
pub(super) struct Automaton {
    folds_case: bool,
    words: HashMap<String, u32>,
    next: HashMap<(u32, Step), u32>,
    nodes: Vec<Node>,
    /// How many tokens each phrase has.
    lengths: Vec<usize>,
    /// Steps taken, for a test that counts them.
    pub(super) steps: u64,
}

/// A word, and whether it is glued to the one before.
type Step = (u32, bool);

#[derive(Clone, Debug, Default)]
struct Node {
    fail: u32,
    /// The nearest node on the way of `fail` that ends a phrase.
    shorter: u32,
    phrases: Vec<usize>,
}

const ROOT: u32 = 0;

impl Automaton {
    pub(super) fn new(folds_case: bool) -> Self {
        let (words, next, lengths) = (HashMap::new(), HashMap::new(), Vec::new());
        Self { folds_case, words, next, nodes: vec![Node::default()], lengths, steps: 0 }
    }

    /// Adds a phrase and returns its number. One without a token is never found.
    pub(super) fn add(&mut self, phrase: &str) -> usize {
        let (number, mut node, mut count) = (self.lengths.len(), ROOT, 0);
        let mut buffer = String::new();
        for token in tokens(phrase) {
            canonical(token.text, self.folds_case, &mut buffer);
            let fresh = self.words.len() as u32;
            let word = *self.words.entry(buffer.clone()).or_insert(fresh);
            let step = (word, token.glued && node != ROOT);
            let fresh = self.nodes.len() as u32;
            let known = *self.next.entry((node, step)).or_insert(fresh);
            if known == fresh {
                self.nodes.push(Node::default());
            }
            (node, count) = (known, count + 1);
        }
        self.lengths.push(count);
        if let Some(node) = self.nodes.get_mut(node as usize).filter(|_| count > 0) {
            node.phrases.push(number);
        }
        number
    }

    /// Sets the links. To be called when all phrases are there.
    pub(super) fn link(&mut self) {
        let mut children: HashMap<u32, Vec<(Step, u32)>> = HashMap::new();
        for ((node, step), child) in &self.next {
            children.entry(*node).or_default().push((*step, *child));
        }
        let mut queue = VecDeque::from([ROOT]);
        while let Some(node) = queue.pop_front() {
            for (step, child) in children.remove(&node).unwrap_or_default() {
                let fail = if node == ROOT { ROOT } else { self.follow(self.fail(node), step).0 };
                let ends = self.nodes.get(fail as usize).is_some_and(|at| !at.phrases.is_empty());
                let further = self.nodes.get(fail as usize).map_or(ROOT, |at| at.shorter);
                if let Some(child) = self.nodes.get_mut(child as usize) {
                    (child.fail, child.shorter) = (fail, if ends { fail } else { further });
                }
                queue.push_back(child);
            }
        }
    }

    /// Tells of every phrase that ends somewhere in the text: its number, where it begins and ends.
    pub(super) fn scan(&mut self, text: &str, mut found: impl FnMut(usize, usize, usize)) {
        let (mut node, mut buffer) = (ROOT, String::new());
        let mut starts: Vec<usize> = Vec::new();
        for token in tokens(text) {
            starts.push(token.start);
            let (next, steps) = self.step(node, &token, &mut buffer);
            self.steps += steps;
            node = next;
            let end = token.start + token.text.len();
            let mut ending = node;
            while ending != ROOT {
                let Some(at) = self.nodes.get(ending as usize) else { break };
                self.steps += 1;
                for phrase in &at.phrases {
                    let length = self.lengths.get(*phrase).copied().unwrap_or_default();
                    let start = starts.len().checked_sub(length).and_then(|at| starts.get(at));
                    found(*phrase, start.copied().unwrap_or_default(), end);
                }
                ending = at.shorter;
            }
        }
    }

    fn step(&self, node: u32, token: &Token<'_>, buffer: &mut String) -> (u32, u64) {
        canonical(token.text, self.folds_case, buffer);
        match self.words.get(buffer.as_str()) {
            Some(word) => self.follow(node, (*word, token.glued)),
            None => (ROOT, 1),
        }
    }

    /// The node behind a step, and how many links it took.
    fn follow(&self, mut node: u32, step: Step) -> (u32, u64) {
        let mut steps = 1;
        while node != ROOT {
            if let Some(next) = self.next.get(&(node, step)) {
                return (*next, steps);
            }
            (node, steps) = (self.fail(node), steps + 1);
        }
        // What stands before the first token of a phrase is nobody's business here.
        let next = self.next.get(&(ROOT, (step.0, false)));
        (next.copied().unwrap_or(ROOT), steps)
    }

    fn fail(&self, node: u32) -> u32 {
        self.nodes.get(node as usize).map_or(ROOT, |at| at.fail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrases_are_found_in_one_another() {
        let mut automaton = Automaton::new(true);
        for phrase in ["a b c", "b", "b c d", "x.y", ""] {
            automaton.add(phrase);
        }
        automaton.link();
        let mut found = Vec::new();
        automaton.scan("A b C d x.y x. y", |phrase, start, end| found.push((phrase, start, end)));
        assert_eq!(found, [(1, 2, 3), (0, 0, 5), (2, 2, 7), (3, 8, 11)]);
    }
}
