//! Groups stretches into chunks. One summary is written for each chunk.

use std::ops::Range;

use super::split::{Earlier, Stretch};
use crate::{message::Message, tokens::TokenCounter};

/// Upper limits for a chunk. A stretch over a limit becomes a chunk of its own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) messages: Option<usize>,
    pub(super) tokens: Option<u64>,
}

/// The source of a batch. Items are in the order of the thread.
#[derive(Debug)]
pub(super) enum Item {
    Earlier(Earlier),
    Chunk(Chunk),
}

/// Messages that become one batch.
#[derive(Debug, Default)]
pub(super) struct Chunk {
    /// The messages as the model sees them.
    pub(super) piece: Piece,
    /// The range of the thread that it spans.
    pub(super) range: Range<usize>,
    /// Number of messages in it that are removed.
    pub(super) messages: usize,
    tokens: u64,
    has_content: bool,
}

/// The material of one request.
#[derive(Clone, Debug, Default)]
pub(super) struct Piece {
    /// Parts that stay together when the piece is halved.
    pub(super) parts: Vec<Vec<Message>>,
    /// Upper limit for the tokens of the parts, set after a request was too long.
    pub(super) most: Option<u64>,
}

/// Groups stretches into chunks, each as large as the limits allow. No chunk spans an earlier
/// summary, so that batches stay in order. Moves the material from the stretches to the chunks.
pub(super) fn group(
    stretches: &mut [Stretch],
    limits: Limits,
    counter: &dyn TokenCounter,
) -> Vec<Item> {
    let mut items: Vec<Item> = Vec::new();
    for stretch in stretches {
        items.extend(std::mem::take(&mut stretch.earlier).into_iter().map(Item::Earlier));
        if stretch.messages == 0 && stretch.material.is_empty() {
            continue;
        }
        let tokens = counter.messages(&stretch.material);
        if let Some(Item::Chunk(open)) = items.last_mut()
            && open.fits(stretch.messages, tokens, limits)
        {
            open.add(stretch, tokens);
        } else {
            let mut chunk = Chunk { range: stretch.range.clone(), ..Chunk::default() };
            chunk.add(stretch, tokens);
            items.push(Item::Chunk(chunk));
        }
    }
    // Messages without content are removed without a batch.
    items.retain(|item| !matches!(item, Item::Chunk(chunk) if !chunk.has_content));
    items
}

/// Distributes parts over as few pieces as possible, in order. A piece has at most `room` tokens,
/// but at least one part.
pub(super) fn in_pieces(
    parts: impl IntoIterator<Item = Vec<Message>>,
    room: Option<u64>,
    counter: &dyn TokenCounter,
) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut tokens = 0_u64;
    for part in parts {
        let size = counter.messages(&part);
        tokens = tokens.saturating_add(size);
        match pieces.last_mut() {
            Some(open) if room.is_none_or(|room| tokens <= room) => open.parts.push(part),
            Some(_) | None => {
                tokens = size;
                pieces.push(Piece { parts: vec![part], most: None });
            }
        }
    }
    pieces
}

impl Chunk {
    fn fits(&self, messages: usize, tokens: u64, limits: Limits) -> bool {
        let messages = self.messages.saturating_add(messages);
        let tokens = self.tokens.saturating_add(tokens);
        limits.messages.is_none_or(|most| messages <= most)
            && limits.tokens.is_none_or(|most| tokens <= most)
    }

    fn add(&mut self, stretch: &mut Stretch, tokens: u64) {
        self.range.end = stretch.range.end;
        self.messages += stretch.messages;
        self.tokens = self.tokens.saturating_add(tokens);
        self.has_content |= stretch.has_content;
        if !stretch.material.is_empty() {
            self.piece.parts.push(std::mem::take(&mut stretch.material));
        }
    }
}

impl Piece {
    pub(super) fn messages(&self) -> Vec<Message> {
        self.parts.concat()
    }

    pub(super) fn tokens(&self, counter: &dyn TokenCounter) -> u64 {
        let parts = self.parts.iter().map(|part| counter.messages(part));
        parts.fold(0, u64::saturating_add)
    }

    /// Returns two halves of about equal tokens, or `None` for a single part.
    pub(super) fn halves(&self, counter: &dyn TokenCounter) -> Option<[Self; 2]> {
        let last = self.parts.len().checked_sub(1).filter(|last| *last > 0)?;
        let half = self.tokens(counter) / 2;
        let mut tokens = 0_u64;
        let mut middle = 0;
        for part in &self.parts {
            tokens = tokens.saturating_add(counter.messages(part));
            if tokens > half {
                break;
            }
            middle += 1;
        }
        let (first, second) = self.parts.split_at(middle.clamp(1, last));
        Some([first, second].map(|parts| Self { parts: parts.to_vec(), most: self.most }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::ByteEstimate;

    const COUNTER: ByteEstimate = ByteEstimate::CHUNK;

    /// Stretches of one message each; `0` has an earlier summary before it.
    fn stretches(sizes: &[usize]) -> Vec<Stretch> {
        let stretch = |(index, size): (usize, &usize)| Stretch {
            range: index..index + 1,
            earlier: (*size == 0)
                .then(|| Earlier::Summary("old".into(), index))
                .into_iter()
                .collect(),
            material: vec![Message::user("x".repeat(*size))],
            messages: 1,
            has_content: true,
            tokens: 0,
        };
        sizes.iter().enumerate().map(stretch).collect()
    }

    fn lengths(sizes: &[usize], messages: Option<usize>, tokens: Option<u64>) -> Vec<usize> {
        let items = group(&mut stretches(sizes), Limits { messages, tokens }, &COUNTER);
        let length = |item: &Item| match item {
            Item::Earlier(_) => 0,
            Item::Chunk(chunk) => chunk.messages,
        };
        items.iter().map(length).collect()
    }

    #[test]
    fn chunks_are_filled_up_to_a_number_of_messages() {
        assert_eq!(lengths(&[9; 10], Some(3), None), [3, 3, 3, 1]);
        assert_eq!(lengths(&[], Some(3), None), [0; 0]);
        assert_eq!(lengths(&[9; 2], Some(5), None), [2]);
        assert_eq!(lengths(&[9; 3], Some(1), None), [1, 1, 1]);
    }

    #[test]
    fn chunks_are_filled_up_to_a_number_of_tokens_and_no_message_is_divided() {
        assert_eq!(lengths(&[400; 5], None, Some(250)), [2, 2, 1]);
        assert_eq!(lengths(&[4_000, 400], None, Some(500)), [1, 1]);
        assert_eq!(lengths(&[200, 200, 2_000, 200], None, Some(150)), [2, 1, 1]);
    }

    #[test]
    fn no_chunk_spans_an_earlier_summary() {
        assert_eq!(lengths(&[9, 9, 0, 9], Some(20), None), [2, 0, 2]);
    }

    #[test]
    fn a_piece_is_halved_by_tokens() {
        let parts = |sizes: &[usize]| {
            let parts = sizes.iter().map(|size| vec![Message::user("x".repeat(*size))]);
            Piece { parts: parts.collect(), most: None }
        };
        let halves = |sizes: &[usize]| {
            parts(sizes).halves(&COUNTER).map(|halves| halves.map(|half| half.parts.len()))
        };
        assert_eq!(halves(&[400; 4]), Some([2, 2]));
        assert_eq!(halves(&[4_000, 4, 4]), Some([1, 2]));
        assert_eq!(halves(&[4, 4, 4_000]), Some([2, 1]));
        assert_eq!(halves(&[400]), None);
        assert_eq!(halves(&[]), None);
    }
}
