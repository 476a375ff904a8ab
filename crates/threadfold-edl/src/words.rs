//! The words of the language.

/// Every command, in the order in which the documentation lists them.
pub(crate) const COMMANDS: [&str; 18] = [
    "file",
    "newfile",
    "select",
    "select_multiple",
    "narrow",
    "narrow_multiple",
    "retain_first",
    "retain_last",
    "retain_nth",
    "select_next",
    "select_prev",
    "extend_forward",
    "extend_back",
    "replace",
    "insert_before",
    "insert_after",
    "delete",
    "cut",
];

/// How much of a pattern or word a message repeats.
pub(crate) const QUOTE_CHARACTERS: usize = 60;

/// Returns a text on one line, cut to a length that suits a message.
pub(crate) fn abridge(text: &str, characters: usize) -> String {
    let mut abridged = String::new();
    for (index, character) in text.chars().enumerate() {
        if index == characters {
            abridged.push('…');
            break;
        }
        match character {
            '\n' => abridged.push('⏎'),
            _ if character.is_control() => abridged.extend(character.escape_default()),
            _ => abridged.push(character),
        }
    }
    abridged
}

/// Returns a number and its noun.
pub(crate) fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_abridged_text_has_one_line() {
        assert_eq!(abridge("a\nb\rcd", 5), "a⏎b\\rc…");
        assert_eq!(abridge("ab", 2), "ab");
        assert_eq!(abridge("né \"x\\d\" 'y'\u{7}", 60), "né \"x\\d\" 'y'\\u{7}");
    }
}
