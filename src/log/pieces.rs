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
