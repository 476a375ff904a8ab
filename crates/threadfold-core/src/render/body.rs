//! The texts inside a fence, whole or with their middle omitted.

use std::{
    borrow::Cow,
    fmt::{self, Write},
};

use super::{
    lookalikes::Lookalikes,
    marks::{backticks, end_line, escaped},
};
use crate::message::boundary_before;

/// The texts inside one fence, in order.
#[derive(Debug, Default)]
pub(super) struct Body<'a> {
    texts: Vec<Cow<'a, str>>,
    /// The parts of each text that need escaping. They are searched for when the texts are written.
    lookalikes: Vec<Lookalikes>,
}

impl<'a> Body<'a> {
    pub(super) fn clear(&mut self) {
        self.texts.clear();
    }

    pub(super) fn push(&mut self, text: impl Into<Cow<'a, str>>) {
        self.texts.push(text.into());
    }

    /// The bytes of the texts.
    pub(super) fn len(&self) -> usize {
        self.texts.iter().map(|text| text.len()).sum()
    }

    /// Omits the middle if the texts have more than `cap` bytes: half of `cap` stays at the head
    /// and half at the tail, and a line between them states how many bytes are omitted.
    pub(super) fn cap(&mut self, cap: Option<usize>) {
        let total = self.len();
        let Some(cap) = cap.filter(|cap| *cap < total) else { return };
        let (head_end, tail_start) = (cap - cap / 2, total - cap / 2);
        let (mut head, mut tail, mut at) = (Vec::new(), Vec::new(), 0);
        for text in self.texts.drain(..) {
            let (start, end) = (at, at + text.len());
            at = end;
            if start < head_end {
                head.push(part(&text, |text| head_of(text, head_end - start)));
            }
            if end > tail_start {
                tail.push(part(&text, |text| tail_of(text, tail_start.saturating_sub(start))));
            }
        }
        let kept: usize = head.iter().chain(&tail).map(|text| text.len()).sum();
        let omission = Cow::Owned(format!("[... {} bytes omitted ...]", total - kept));
        let parts = head.into_iter().chain([omission]).chain(tail);
        self.texts.extend(parts.filter(|text| !text.is_empty()));
    }

    /// Writes the texts in a fence that none of them can close, and a blank line.
    pub(super) fn write(&mut self, out: &mut impl Write, info: &str) -> fmt::Result {
        if self.lookalikes.len() < self.texts.len() {
            self.lookalikes.resize_with(self.texts.len(), Lookalikes::default);
        }
        let mut fence = 3;
        for (text, lookalikes) in self.texts.iter().zip(&mut self.lookalikes) {
            lookalikes.find(text);
            fence = fence.max(lookalikes.backticks + 1);
        }
        backticks(out, fence)?;
        out.write_str(info)?;
        out.write_str("\n")?;
        for (text, lookalikes) in self.texts.iter().zip(&self.lookalikes) {
            escaped(out, text, lookalikes)?;
            end_line(out, text)?;
        }
        backticks(out, fence)?;
        out.write_str("\n\n")
    }
}

fn part<'a>(text: &Cow<'a, str>, cut: impl Fn(&str) -> &str) -> Cow<'a, str> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(cut(text)),
        Cow::Owned(text) => Cow::Owned(cut(text).to_owned()),
    }
}

/// Returns at most the first `most` bytes of a text. It ends after a whole line, unless that would
/// lose half of these bytes.
fn head_of(text: &str, most: usize) -> &str {
    if most >= text.len() {
        return text;
    }
    let (head, _) = text.split_at(boundary_before(text, most));
    let line_end = head.rfind('\n').map_or(0, |at| at + 1);
    if line_end > head.len() / 2 { head.split_at(line_end).0 } else { head }
}

/// Returns the end of a text, from offset `least` or later. It starts with a whole line, unless
/// that would lose half of it.
fn tail_of(text: &str, least: usize) -> &str {
    let mut start = least.min(text.len());
    while !text.is_char_boundary(start) {
        start += 1;
    }
    let (before, tail) = text.split_at(start);
    if before.is_empty() || before.ends_with('\n') {
        return tail;
    }
    let skipped = tail.find('\n').map_or(tail.len(), |at| at + 1);
    if skipped < tail.len() / 2 { tail.split_at(skipped).1 } else { tail }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capped(texts: &[&'static str], cap: usize) -> Vec<Cow<'static, str>> {
        let mut body = Body::default();
        texts.iter().for_each(|text| body.push(*text));
        body.cap(Some(cap));
        body.texts
    }

    #[test]
    fn the_head_and_the_tail_are_kept() {
        assert_eq!(capped(&["0123456789"], 5), ["012", "[... 5 bytes omitted ...]", "89"]);
        assert_eq!(capped(&["0123456789"], 10), ["0123456789"]);
        assert_eq!(capped(&["0123456789"], 0), ["[... 10 bytes omitted ...]"]);
    }

    #[test]
    fn a_cap_counts_all_texts_together() {
        let expected = ["abc", "d", "[... 7 bytes omitted ...]", "l", "mno"];
        assert_eq!(capped(&["abc", "def", "ghi", "jkl", "mno"], 8), expected);
    }

    #[test]
    fn whole_lines_are_kept_if_that_loses_little() {
        let expected = ["one\n", "[... 10 bytes omitted ...]", "four\n"];
        assert_eq!(capped(&["one\ntwo\nthree\nfour\n"], 10), expected);
        let expected = ["a\nbcd", "[... 4 bytes omitted ...]", "ij\nk"];
        assert_eq!(capped(&["a\nbcdefghij\nk"], 9), expected);
    }

    #[test]
    fn a_tail_that_begins_with_a_line_is_kept_whole() {
        let gone = |bytes: usize| format!("[... {bytes} bytes omitted ...]");
        for (texts, cap, omitted, tail) in [
            (&["0123456789", "a\nbcdefgh"][..], 18, 1, "a\nbcdefgh"),
            (&["0123456789\na\nbcdefgh"], 18, 2, "a\nbcdefgh"),
            (&["012345678xyz\ndefg"], 16, 1, "xyz\ndefg"),
            (&["0123456789z\ndefgh"], 14, 5, "defgh"),
        ] {
            let capped = capped(texts, cap);
            assert_eq!((capped.last().map(|it| &**it), &*capped[1]), (Some(tail), &*gone(omitted)));
        }
    }

    #[test]
    fn no_character_is_cut() {
        assert_eq!(capped(&["ääää"], 6), ["ä", "[... 4 bytes omitted ...]", "ä"]);
    }
}
