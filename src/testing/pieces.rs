//! Splits a turn into the deltas that a provider would stream.

use crate::message::{ContentBlock, Delta, Text, Turn};

/// Approximate size of a delta in bytes.
const PIECE: usize = 24;

/// Returns the deltas of a turn, in order, without the final [`Delta::Turn`].
pub(super) fn pieces(turn: &Turn) -> impl Iterator<Item = Delta> {
    turn.message.content.iter().flat_map(|block| {
        if let ContentBlock::Text(block) = block {
            split(&block.text).map(|text| Delta::Text { text }).collect()
        } else if let ContentBlock::Thinking(thinking) = block {
            split(&thinking.text).map(|text| Delta::Thinking { text }).collect()
        } else if let ContentBlock::ToolUse(call) = block {
            let id = || call.id.clone();
            let begin = Delta::ToolUse { id: id(), name: call.name.clone() };
            let input = split(call.input.as_str()).map(|text| Delta::ToolInput { id: id(), text });
            std::iter::once(begin).chain(input).collect()
        } else {
            Vec::new()
        }
    })
}

/// Cuts a text after white space if possible, and never within a character.
fn split(text: &str) -> impl Iterator<Item = Text> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let long = rest.char_indices().skip_while(|(at, _)| *at < PIECE);
        let mut ends = long.filter(|(at, c)| c.is_whitespace() || *at >= 4 * PIECE);
        let end = ends.next().map_or(rest.len(), |(at, c)| at + c.len_utf8());
        let (piece, left) = rest.split_at_checked(end)?;
        rest = left;
        (!piece.is_empty()).then(|| Text::from(piece))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pieces_joined_are_the_text() {
        for text in ["", "a", "ein Satz mit Wörtern und mehr Wörtern", &"漢".repeat(300), "\n\n  "]
        {
            let joined: String = split(text).map(|piece| piece.to_string()).collect();
            assert_eq!(joined, text);
        }
    }
}
