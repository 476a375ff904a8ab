//! Cutting a text in two, near its middle and at a good place.

/// Returns where to cut: in the middle third behind the last blank line, else behind the last line
/// end, else behind the last space, else at the character border next to the middle. `None` for a
/// text that cannot be cut.
pub(super) fn halve(text: &str) -> Option<usize> {
    let border = |from: usize| (from..=text.len()).find(|at| text.is_char_boundary(*at));
    let (start, end) = (border(text.len() / 3)?, border(text.len() * 2 / 3)?);
    let middle = text.get(start..end)?;
    let found = ["\n\n", "\n", " "]
        .into_iter()
        .find_map(|sign| middle.rfind(sign).map(|at| start + at + sign.len()));
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
