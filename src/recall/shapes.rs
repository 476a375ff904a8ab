//! First letters and lengths of words, by which most others are excluded before they are hashed.

/// The first letters of some words, and the lengths of those with each.
#[derive(Clone, Debug)]
pub(super) struct Shapes(
    /// For each first byte, a bit for each length up to 63, which stands for all longer ones too.
    [u64; 256],
);

impl Default for Shapes {
    fn default() -> Self {
        Self([0; 256])
    }
}

impl Shapes {
    /// Adds a word. An ASCII letter at its beginning counts in either case.
    pub(super) fn add(&mut self, word: &str) {
        let first = word.bytes().next().map(|first| usize::from(first.to_ascii_lowercase()));
        if let Some(lengths) = first.and_then(|first| self.0.get_mut(first)) {
            *lengths |= bit(word.len());
        }
    }

    /// Whether a word begins with this byte, or with the other case of this letter.
    #[inline]
    pub(super) fn begins(&self, first: u8) -> bool {
        self.lengths(first) != 0
    }

    /// Whether a word of so many bytes begins with this byte, or with the other case of this letter.
    #[inline]
    pub(super) fn has(&self, first: u8, length: usize) -> bool {
        self.lengths(first) & bit(length) != 0
    }

    #[inline]
    fn lengths(&self, first: u8) -> u64 {
        self.0.get(usize::from(first.to_ascii_lowercase())).copied().unwrap_or_default()
    }
}

#[inline]
fn bit(length: usize) -> u64 {
    1 << length.min(63)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_known_by_its_first_letter_and_its_length() {
        let mut shapes = Shapes::default();
        assert!(!shapes.begins(b'p') && !shapes.has(b'p', 4));
        shapes.add("Port");
        shapes.add(&"x".repeat(80));
        assert!(shapes.begins(b'P') && shapes.has(b'P', 4) && shapes.has(b'x', 70));
        assert!(!shapes.has(b'p', 5) && !shapes.begins(b's'));
    }
}
