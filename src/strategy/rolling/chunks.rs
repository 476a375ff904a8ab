//! Joins stretches into chunks. One summary is written for each chunk.

use super::split::Stretch;
use crate::{
    message::Message,
    tokens::{TokenCounter, text_bytes},
};

/// Pieces of at most this many tokens are not made smaller.
pub(super) const MIN_TOKENS: u64 = 1_000;

/// The material of one request.
#[derive(Clone, Debug, Default)]
pub(super) struct Piece {
    /// Parts that stay together when the piece is halved.
    pub(super) parts: Vec<Vec<Message>>,
    /// Upper limit for the tokens of the parts, set after a request was too long.
    pub(super) most: Option<u64>,
}

/// Joins stretches into chunks, each as large as the limits on messages and tokens allow. No chunk
/// spans an earlier summary, so that batches stay in order. A stretch over a limit becomes a chunk of
/// its own. Moves the material from the stretches to the chunks; messages without content are in no
/// chunk.
pub(super) fn group(
    stretches: &mut [Stretch],
    messages: usize,
    tokens: u64,
    counter: &dyn TokenCounter,
) -> Vec<Stretch> {
    let mut chunks: Vec<Stretch> = Vec::new();
    let mut size = 0_u64;
    for stretch in stretches {
        let earlier = std::mem::take(&mut stretch.earlier);
        if !earlier.is_empty() {
            chunks.push(Stretch { earlier, ..Stretch::default() });
        }
        if stretch.messages == 0 && stretch.parts.is_empty() {
            continue;
        }
        let more = stretch.shown_tokens(counter);
        let fits = |open: &Stretch| {
            open.messages + stretch.messages <= messages && size.saturating_add(more) <= tokens
        };
        let open = chunks.pop_if(|open| open.range.is_empty() || fits(open));
        let mut open = open.unwrap_or_default();
        size = if open.range.is_empty() { more } else { size.saturating_add(more) };
        let start = if open.range.is_empty() { stretch.range.start } else { open.range.start };
        open.range = start..stretch.range.end;
        open.messages += stretch.messages;
        open.has_content |= stretch.has_content;
        open.parts.append(&mut stretch.parts);
        chunks.push(open);
    }
    chunks
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

impl Piece {
    pub(super) fn messages(&self) -> Vec<Message> {
        self.parts.concat()
    }

    pub(super) fn tokens(&self, counter: &dyn TokenCounter) -> u64 {
        let parts = self.parts.iter().map(|part| counter.messages(part));
        parts.fold(0, u64::saturating_add)
    }

    /// The bytes of its texts.
    pub(super) fn bytes(&self) -> usize {
        usize::try_from(text_bytes(&self.messages())).unwrap_or(usize::MAX)
    }

    /// Returns two halves of about equal tokens, or `None` for a single part and for a piece that is
    /// small already.
    pub(super) fn halves(&self, counter: &dyn TokenCounter) -> Option<[Self; 2]> {
        let is_short = self.parts.iter().map(Vec::len).sum::<usize>() <= 2;
        if is_short && self.tokens(counter) <= MIN_TOKENS {
            return None;
        }
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
    use crate::{strategy::rolling::split::Earlier, tokens::ByteEstimate};

    const COUNTER: ByteEstimate = ByteEstimate::CHUNK;

    /// Stretches of one message each; `0` has an earlier summary before it.
    fn stretches(sizes: &[usize]) -> Vec<Stretch> {
        let stretch = |(index, size): (usize, &usize)| Stretch {
            range: index..index + 1,
            earlier: (*size == 0)
                .then(|| Earlier::Summary("old".into(), index))
                .into_iter()
                .collect(),
            parts: vec![vec![Message::user("x".repeat(*size))]],
            messages: 1,
            has_content: true,
            ..Stretch::default()
        };
        sizes.iter().enumerate().map(stretch).collect()
    }

    fn lengths(sizes: &[usize], messages: Option<usize>, tokens: Option<u64>) -> Vec<usize> {
        let (messages, tokens) = (messages.unwrap_or(usize::MAX), tokens.unwrap_or(u64::MAX));
        let chunks = group(&mut stretches(sizes), messages, tokens, &COUNTER);
        let parts = |chunk: &Stretch| {
            std::iter::repeat_n(0, chunk.earlier.len()).chain([chunk.messages]).collect::<Vec<_>>()
        };
        chunks.iter().flat_map(parts).collect()
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
