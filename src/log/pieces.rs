//! A thread as pieces: runs of messages as they came, and single messages that compactions made.
//!
//! A log holds every message already, so a thread that it stands for needs no list of its own: a
//! thread that was never compacted is one run, a compacted one a summary and a run. Pieces stand
//! in a tree whose sides differ by one in height at most, so that a plan costs its splices and not
//! the length of the thread, however often a thread is compacted and put back. No weights are drawn
//! for it: whoever writes a log could foresee them, and make it as deep as it is long.

use std::ops::Range;

use crate::message::Message;

/// Messages of a thread, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Pieces {
    root: Link,
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
    /// How many nodes are on the longest way down, this one among them.
    height: u8,
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
            self.root = Some(join(self.root.take(), Node::leaf(piece), None));
        }
    }

    /// Drops all messages from this one on.
    pub(super) fn truncate(&mut self, len: usize) {
        self.root = split(self.root.take(), len).0;
    }

    /// Carries swaps out, which are in order and in range, and returns what went for each.
    pub(super) fn swap(&mut self, swaps: Vec<Swap>) -> Vec<Pieces> {
        // From the back, so that the places before are still those of the plan.
        let mut went: Vec<Pieces> = Vec::with_capacity(swaps.len());
        for Swap { at, comes } in swaps.into_iter().rev() {
            let (rest, behind) = split(self.root.take(), at.end);
            let (before, gone) = split(rest, at.start);
            went.push(Self { root: gone });
            self.root = concat(concat(before, comes.root), behind);
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
}

impl FromIterator<Piece> for Pieces {
    fn from_iter<I: IntoIterator<Item = Piece>>(pieces: I) -> Self {
        let mut all = Self::default();
        pieces.into_iter().for_each(|piece| all.push(piece));
        all
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

fn height(link: &Link) -> u8 {
    link.as_ref().map_or(0, |node| node.height)
}

impl Node {
    fn leaf(piece: Piece) -> Box<Self> {
        Box::new(Self { len: piece.len(), piece, height: 1, left: None, right: None })
    }

    /// The node above these two, whose heights differ by one at most.
    fn above(mut self: Box<Self>, left: Link, right: Link) -> Box<Self> {
        self.len = len(&left) + self.piece.len() + len(&right);
        self.height = height(&left).max(height(&right)).saturating_add(1);
        (self.left, self.right) = (left, right);
        self
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
fn split(link: Link, at: usize) -> (Link, Link) {
    let Some(mut node) = link else { return (None, None) };
    let (left, right) = (node.left.take(), node.right.take());
    let before = len(&left);
    let end = before + node.piece.len();
    if at <= before {
        let (front, back) = split(left, at);
        (front, Some(join(back, node, right)))
    } else if at >= end {
        let (front, back) = split(right, at - end);
        (Some(join(left, node, front)), back)
    } else {
        let (front, back) = halves(node.piece, at - before);
        let front = front.map(|front| join(left, Node::leaf(front), None));
        (front, Some(join(None, Node::leaf(back), right)))
    }
}

/// Divides a piece. Only runs have a place within them.
fn halves(piece: Piece, at: usize) -> (Option<Piece>, Piece) {
    match piece {
        Piece::Run(run) => {
            let middle = run.start.saturating_add(at).min(run.end);
            (Some(Piece::Run(run.start..middle)), Piece::Run(middle..run.end))
        }
        Piece::Made(made) => (None, Piece::Made(made)),
    }
}

/// Returns the pieces of both, one behind the other.
fn concat(left: Link, right: Link) -> Link {
    match (left, right) {
        (None, link) | (link, None) => link,
        (Some(left), right) => {
            let (rest, last) = without_last(left);
            Some(join(rest, last, right))
        }
    }
}

/// Takes the last piece out.
fn without_last(mut node: Box<Node>) -> (Link, Box<Node>) {
    match node.right.take() {
        None => (node.left.take(), node),
        Some(right) => {
            let (rest, last) = without_last(right);
            let left = node.left.take();
            (Some(join(left, node, rest)), last)
        }
    }
}

/// Returns both sides with a node between them, in the time of the difference of their heights.
fn join(left: Link, middle: Box<Node>, right: Link) -> Box<Node> {
    match (left, right) {
        (Some(mut top), right) if top.height > height(&right).saturating_add(1) => {
            let (left, between) = (top.left.take(), top.right.take());
            balanced(left, top, Some(join(between, middle, right)))
        }
        (left, Some(mut top)) if top.height > height(&left).saturating_add(1) => {
            let (between, right) = (top.left.take(), top.right.take());
            balanced(Some(join(left, middle, between)), top, right)
        }
        (left, right) => middle.above(left, right),
    }
}

/// Returns a node over two sides whose heights differ by two at most, turned so that they do not.
fn balanced(left: Link, node: Box<Node>, right: Link) -> Box<Node> {
    match (left, right) {
        (Some(mut top), right) if top.height > height(&right).saturating_add(1) => {
            match (top.left.take(), top.right.take()) {
                (outer, Some(mut inner)) if inner.height > height(&outer) => {
                    let (before, behind) = (inner.left.take(), inner.right.take());
                    let (top, node) = (top.above(outer, before), node.above(behind, right));
                    inner.above(Some(top), Some(node))
                }
                (outer, inner) => top.above(outer, Some(node.above(inner, right))),
            }
        }
        (left, Some(mut top)) if top.height > height(&left).saturating_add(1) => {
            match (top.left.take(), top.right.take()) {
                (Some(mut inner), outer) if inner.height > height(&outer) => {
                    let (before, behind) = (inner.left.take(), inner.right.take());
                    let (node, top) = (node.above(left, before), top.above(behind, outer));
                    inner.above(Some(node), Some(top))
                }
                (inner, outer) => top.above(Some(node.above(left, inner)), outer),
            }
        }
        (left, right) => node.above(left, right),
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

    /// The height of a tree of which every node is checked.
    fn depth(link: &Link) -> usize {
        let Some(node) = link else { return 0 };
        let (left, right) = (depth(&node.left), depth(&node.right));
        assert!(left.abs_diff(right) <= 1, "{left} and {right}");
        assert_eq!(usize::from(node.height), 1 + left.max(right));
        assert_eq!(node.len, len(&node.left) + node.piece.len() + len(&node.right));
        1 + left.max(right)
    }

    /// The output function of SplitMix64 over a counter.
    struct Dice(u64);

    impl Dice {
        fn draw(&mut self) -> u64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ (mixed >> 31)
        }
    }

    #[test]
    fn pieces_are_swapped_as_the_elements_of_a_vector_are() {
        let (mut pieces, mut vector) = (Pieces::default(), Vec::new());
        let mut dice = Dice(7);
        let mut below = |end: usize| (dice.draw() % (end as u64 + 1)) as usize;
        for number in 0..3_000 {
            pieces.push(Piece::Run(number..number + 1));
            vector.push(number);
            let (one, other) = (below(vector.len()), below(vector.len()));
            let at = one.min(other)..one.max(other).min(one.min(other) + 5);
            let comes: Pieces = (0..below(3)).map(|more| made(number + more)).collect();
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
            depth(&pieces.root);
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
            let comes = Pieces::from_iter([made(round)]);
            let at = round % 100..50_000 - round % 77;
            let mut went = pieces.swap(vec![Swap { at: at.clone(), comes }]);
            let back = went.remove(0);
            pieces.swap(vec![Swap { at: at.start..at.start + 1, comes: back }]);
        }
        assert_eq!(numbers(&pieces), (0..50_000).collect::<Vec<_>>());
        // The binary logarithm is 16; such a tree is at most half as deep again.
        assert!(depth(&pieces.root) < 24, "{}", depth(&pieces.root));
    }
}
