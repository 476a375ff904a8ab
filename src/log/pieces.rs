//! A thread as pieces: runs of messages as they came, and single messages that compactions made.
//!
//! A log holds every message already, so a thread that it stands for needs no list of its own: a
//! thread that was never compacted is one run, a compacted one a summary and a run. Pieces stand
//! in a tree that is balanced by drawn weights, so that a plan costs its splices and not the
//! length of the thread, however often a thread is compacted and put back.

use std::ops::Range;

use crate::message::Message;

/// Messages of a thread, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Pieces {
    root: Link,
    weights: Weights,
}

/// Some neighbouring messages.
#[derive(Clone, Debug)]
pub(super) enum Piece {
    /// Messages as they came, by their number among all that ever came.
    Run(Range<usize>),
    /// One message that is not as it came.
    Made(Made),
}

/// A message that a compaction made, or that was marked.
#[derive(Clone, Debug)]
pub(super) struct Made {
    pub(super) message: Message,
    pub(super) source: Maker,
}

/// Where a message comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Maker {
    /// It is, or is a part of, this one of the messages that came.
    Arrival(usize),
    /// A compaction put it in: which of those that stand, and in which of its splices.
    Compaction { standing: usize, splice: usize },
}

/// Some messages go, others come.
#[derive(Clone, Debug)]
pub(super) struct Swap {
    pub(super) at: Range<usize>,
    pub(super) comes: Pieces,
}

type Link = Option<Box<Node>>;

#[derive(Clone, Debug)]
struct Node {
    piece: Piece,
    /// How many messages are in it and below it.
    len: usize,
    /// No node below has a greater one.
    weight: u64,
    left: Link,
    right: Link,
}

impl Pieces {
    /// How many messages there are.
    pub(super) fn len(&self) -> usize {
        len(&self.root)
    }

    /// Puts a piece behind the others.
    pub(super) fn push(&mut self, piece: Piece) {
        if piece.len() > 0 && !extend(&mut self.root, &piece) {
            let leaf = self.weights.leaf(piece);
            self.root = merge(self.root.take(), leaf);
        }
    }

    /// Drops all messages from this one on.
    pub(super) fn truncate(&mut self, len: usize) {
        self.root = self.split(len).0;
    }

    /// Returns pieces that may come into this thread. Their weights are drawn with its own.
    pub(super) fn gather(&mut self, pieces: impl IntoIterator<Item = Piece>) -> Self {
        let mut root = None;
        for piece in pieces {
            root = merge(root, self.weights.leaf(piece));
        }
        Self { root, weights: Weights::default() }
    }

    /// Carries swaps out, which are in order and in range, and returns what went for each.
    pub(super) fn swap(&mut self, swaps: Vec<Swap>) -> Vec<Pieces> {
        // From the back, so that the places before are still those of the plan.
        let mut went: Vec<Pieces> = Vec::with_capacity(swaps.len());
        for Swap { at, comes } in swaps.into_iter().rev() {
            let (rest, behind) = self.split(at.end);
            self.root = rest;
            let (before, gone) = self.split(at.start);
            went.push(Self { root: gone, weights: Weights::default() });
            self.root = merge(merge(before, comes.root), behind);
        }
        went.reverse();
        went
    }

    /// The pieces, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Piece> {
        let mut open: Vec<&Node> = Vec::new();
        let mut next = self.root.as_deref();
        std::iter::from_fn(move || {
            while let Some(node) = next {
                open.push(node);
                next = node.left.as_deref();
            }
            let node = open.pop()?;
            next = node.right.as_deref();
            Some(&node.piece)
        })
    }

    /// The piece that holds this message, and which of its messages it is.
    pub(super) fn get(&self, index: usize) -> Option<(&Piece, usize)> {
        let (mut next, mut index) = (self.root.as_deref(), index);
        while let Some(node) = next {
            let before = len(&node.left);
            if index < before {
                next = node.left.as_deref();
            } else if index - before < node.piece.len() {
                return Some((&node.piece, index - before));
            } else {
                index -= before + node.piece.len();
                next = node.right.as_deref();
            }
        }
        None
    }

    fn split(&mut self, at: usize) -> (Link, Link) {
        split(self.root.take(), at, &mut self.weights)
    }
}

impl Piece {
    /// How many messages it holds.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Run(run) => run.len(),
            Self::Made(_) => 1,
        }
    }
}

fn len(link: &Link) -> usize {
    link.as_ref().map_or(0, |node| node.len)
}

impl Node {
    fn measured(mut self: Box<Self>) -> Link {
        self.len = len(&self.left) + self.piece.len() + len(&self.right);
        Some(self)
    }
}

/// Makes the last piece longer, if what comes goes on where it ends.
fn extend(link: &mut Link, piece: &Piece) -> bool {
    let Some(node) = link else { return false };
    let extended = if node.right.is_some() {
        extend(&mut node.right, piece)
    } else if let (Piece::Run(run), Piece::Run(more)) = (&mut node.piece, piece)
        && run.end == more.start
    {
        run.end = more.end;
        true
    } else {
        false
    };
    node.len += if extended { piece.len() } else { 0 };
    extended
}

/// Returns what stands before a message, and the rest.
fn split(link: Link, at: usize, weights: &mut Weights) -> (Link, Link) {
    let Some(mut node) = link else { return (None, None) };
    let before = len(&node.left);
    let end = before + node.piece.len();
    if at <= before {
        let (front, back) = split(node.left.take(), at, weights);
        node.left = back;
        (front, node.measured())
    } else if at >= end {
        let (front, back) = split(node.right.take(), at - end, weights);
        node.right = front;
        (node.measured(), back)
    } else {
        let (left, right) = (node.left.take(), node.right.take());
        let (front, back) = weights.halves(node.piece, at - before);
        (merge(left, front), merge(back, right))
    }
}

/// Returns the pieces of both, one behind the other.
fn merge(left: Link, right: Link) -> Link {
    match (left, right) {
        (None, link) | (link, None) => link,
        (Some(mut left), Some(mut right)) => {
            if left.weight >= right.weight {
                left.right = merge(left.right.take(), Some(right));
                left.measured()
            } else {
                right.left = merge(Some(left), right.left.take());
                right.measured()
            }
        }
    }
}

/// Where weights come from: a mixed counter, so that the same log makes the same tree.
#[derive(Clone, Debug, Default)]
struct Weights(u64);

impl Weights {
    fn leaf(&mut self, piece: Piece) -> Link {
        let len = piece.len();
        (len > 0).then(|| {
            let weight = self.draw();
            Box::new(Node { piece, len, weight, left: None, right: None })
        })
    }

    fn halves(&mut self, piece: Piece, at: usize) -> (Link, Link) {
        match piece {
            Piece::Run(run) => {
                let middle = run.start.saturating_add(at).min(run.end);
                let front = self.leaf(Piece::Run(run.start..middle));
                (front, self.leaf(Piece::Run(middle..run.end)))
            }
            Piece::Made(made) => (None, self.leaf(Piece::Made(made))),
        }
    }

    /// The output function of SplitMix64.
    fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(pieces: &Pieces) -> Vec<usize> {
        let numbers = |piece: &Piece| match piece {
            Piece::Run(run) => run.clone().collect(),
            Piece::Made(made) => match made.source {
                Maker::Arrival(number) => vec![number],
                Maker::Compaction { splice, .. } => vec![splice],
            },
        };
        pieces.iter().flat_map(numbers).collect()
    }

    fn made(number: usize) -> Piece {
        Piece::Made(Made { message: Message::user(""), source: Maker::Arrival(number) })
    }

    fn depth(link: &Link) -> usize {
        link.as_ref().map_or(0, |node| 1 + depth(&node.left).max(depth(&node.right)))
    }

    #[test]
    fn pieces_are_swapped_as_the_elements_of_a_vector_are() {
        let (mut pieces, mut vector) = (Pieces::default(), Vec::new());
        let mut dice = Weights(7);
        let mut below = |end: usize| (dice.draw() % (end as u64 + 1)) as usize;
        for number in 0..3_000 {
            pieces.push(Piece::Run(number..number + 1));
            vector.push(number);
            let (one, other) = (below(vector.len()), below(vector.len()));
            let at = one.min(other)..one.max(other).min(one.min(other) + 5);
            let comes = pieces.gather((0..below(3)).map(|more| made(number + more)));
            let more = numbers(&comes);
            let went = pieces.swap(vec![Swap { at: at.clone(), comes }]).remove(0);
            let gone: Vec<usize> = vector.splice(at.clone(), more).collect();
            assert_eq!((numbers(&went), went.len()), (gone.clone(), at.len()));
            if number % 7 == 0 {
                let back = at.start..at.start;
                pieces.swap(vec![Swap { at: back.clone(), comes: went }]);
                vector.splice(back, gone);
            }
            if number % 50 == 0 {
                pieces.truncate(vector.len() / 2);
                vector.truncate(vector.len() / 2);
            }
            assert_eq!(pieces.len(), vector.len());
        }
        assert_eq!(numbers(&pieces), vector);
        for (index, number) in vector.into_iter().enumerate() {
            let (piece, offset) = pieces.get(index).unwrap();
            let found = match piece {
                Piece::Run(run) => run.start + offset,
                Piece::Made(made) => match made.source {
                    Maker::Arrival(number) => number,
                    Maker::Compaction { splice, .. } => splice,
                },
            };
            assert_eq!(found, number);
        }
        assert!(pieces.get(pieces.len()).is_none());
    }

    #[test]
    fn the_tree_stays_flat_however_often_it_is_taken_apart() {
        let mut pieces = Pieces::default();
        for number in 0..50_000 {
            pieces.push(made(number));
        }
        for round in 0..10_000 {
            let comes = pieces.gather([made(round)]);
            let at = round % 100..50_000 - round % 77;
            let mut went = pieces.swap(vec![Swap { at: at.clone(), comes }]);
            let back = went.remove(0);
            pieces.swap(vec![Swap { at: at.start..at.start + 1, comes: back }]);
        }
        assert_eq!(numbers(&pieces), (0..50_000).collect::<Vec<_>>());
        // The binary logarithm is 16; a tree of drawn weights is about twice as deep.
        assert!(depth(&pieces.root) < 64, "{}", depth(&pieces.root));
    }
}
