//! Cuts a text in two near its middle.

/// Returns the byte at which to cut: in the middle third after the last blank line, else after the
/// last line break, else after the last space, else at the first character border from the middle
/// on. `None` for a text of fewer than two characters.
pub(super) fn halve(text: &str) -> Option<usize> {
    let border = |from: usize| (from..=text.len()).find(|at| text.is_char_boundary(*at));
    let (start, end) = (border(text.len() / 3)?, border(text.len() * 2 / 3)?);
    let middle = text.get(start..end)?;
    let found = ["\n\n", "\n", " "]
        .into_iter()
        .find_map(|gap| middle.rfind(gap).map(|at| start + at + gap.len()));
    found.or_else(|| border(text.len() / 2)).filter(|at| (1..text.len()).contains(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cut_is_at_the_best_border_of_the_middle_third() {
        assert_eq!(halve("aaaa\n\nbb bb\ncccc"), Some(6));
        assert_eq!(halve("aaaaaa bbbbb"), Some(7));
        assert_eq!(halve("aaaaaa"), Some(3));
        assert_eq!(halve("漢漢漢"), Some(6));
        assert_eq!(halve("a"), None);
        assert_eq!(halve(""), None);
    }
}
