//! Words of a token and their stems, by which subjects are compared.

/// Returns the words of a token in lower case. Text without spaces between words gives pairs of
/// characters.
pub(super) fn parts(token: &str) -> Vec<String> {
    let pieces = token.split(|c: char| !c.is_alphanumeric() && c != '\'' && c != '\u{2019}');
    let mut words = Vec::new();
    for piece in pieces.filter(|piece| !piece.is_empty()) {
        let unspaced = |c: char| matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}');
        if piece.contains(unspaced) {
            let chars: Vec<char> = piece.chars().collect();
            words.extend(chars.windows(2).map(|pair| pair.iter().collect::<String>()));
        } else {
            words.push(piece.to_lowercase().replace('\u{2019}', "'"));
        }
    }
    words
}

/// Returns a word without the endings of its forms: `plans` and `planned` have one stem.
pub(super) fn stem(word: &str) -> String {
    const ENDINGS: [&str; 10] = ["'s", "ing", "ed", "er", "es", "al", "en", "s", "e", "n"];
    const LONGEST: usize = 6;
    let mut stem = word;
    while let Some(rest) = ENDINGS
        .iter()
        .find_map(|ending| stem.strip_suffix(ending))
        .filter(|rest| rest.chars().count() >= 3)
    {
        stem = rest;
    }
    let mut letters: Vec<char> = stem.chars().take(LONGEST).collect();
    // `planned` and `plan`.
    if let [.., one, two] = letters.as_slice()
        && one == two
        && letters.len() > 3
    {
        letters.pop();
    }
    letters.into_iter().collect()
}

/// Whether a character is a mark around a word.
pub(super) fn is_mark(c: char) -> bool {
    matches!(c, '.' | ',' | ';' | ':' | '!' | '?' | '(' | ')' | '[' | ']' | '"' | '\'' | '`' | '*')
        || matches!(c, '\u{201c}' | '\u{201d}' | '\u{201e}' | '\u{ab}' | '\u{bb}' | '\u{2019}')
}
