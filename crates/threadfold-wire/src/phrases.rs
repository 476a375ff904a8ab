//! The words by which errors are recognised: the rows of `phrases.txt`, which documents their form.

/// Returns the words of the rows of a meaning.
pub(super) fn phrases(meaning: &str, place: &str) -> impl Iterator<Item = &'static str> {
    let row = format!("{meaning} {place} \"");
    let rows = include_str!("phrases.txt").lines();
    rows.filter_map(move |line| line.strip_prefix(&*row)?.strip_suffix('"'))
}
