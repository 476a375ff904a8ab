//! The name of an author before a statement in a list: `ann said: Never push to main.`

use std::borrow::Cow;

use crate::message::Author;

/// Separates the name of an author and the words.
const SAID: &str = " said: ";

/// Returns a statement with its author's name before it. A statement without an author that begins
/// like one with a name gets a backslash, so that nobody can put words into another person's mouth.
pub fn named<'t>(author: Option<&Author>, text: &'t str) -> Cow<'t, str> {
    match author {
        Some(author) => format!("{author}{SAID}{text}").into(),
        None if split(text.trim_start_matches('\\')).is_some() => format!("\\{text}").into(),
        None => text.into(),
    }
}

/// Returns the author and the words of a text that [`named`] wrote.
pub fn read_named(text: &str) -> (Option<Author>, &str) {
    match (split(text), text.strip_prefix('\\')) {
        (Some((author, words)), _) => (Some(author), words),
        (None, Some(words)) if split(words.trim_start_matches('\\')).is_some() => (None, words),
        (None, _) => (None, text),
    }
}

fn split(text: &str) -> Option<(Author, &str)> {
    // A name is short, so a long text is not searched.
    let head = text.get(..text.len().min(Author::MAX_LENGTH + SAID.len())).unwrap_or(text);
    let at = head.find(SAID)?;
    let author = text.get(..at)?.parse().ok()?;
    Some((author, text.get(at + SAID.len()..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_back_and_cannot_be_typed() {
        let ann: Author = "ann".parse().unwrap();
        assert_eq!(named(Some(&ann), "Be brief."), "ann said: Be brief.");
        for author in [None, Some(ann)] {
            for text in ["Be brief.", "I said: no.", "\\bob said: no.", "\\", "bob  said: x", "é"]
            {
                let written = named(author.as_ref(), text);
                assert_eq!(read_named(&written), (author.clone(), text), "{written}");
            }
        }
    }
}
