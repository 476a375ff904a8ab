//! The words of a token and their stems. Subjects are compared by stems.

/// Returns the words of a token in lower case. Text in a script without spaces is returned as pairs
/// of characters.
pub(super) fn parts(token: &str) -> Vec<String> {
    let pieces = token.split(|c: char| !c.is_alphanumeric() && c != '\'' && c != '\u{2019}');
    let mut words = Vec::new();
    for piece in pieces.filter(|piece| !piece.is_empty()) {
        if piece.contains(is_unspaced) {
            for run in piece.split(is_grammar).filter(|run| !run.is_empty()) {
                let chars: Vec<char> = run.chars().collect();
                let pairs = chars.windows(chars.len().min(2));
                words.extend(pairs.map(|pair| pair.iter().collect::<String>()));
            }
        } else {
            words.push(piece.to_lowercase().replace('\u{2019}', "'"));
        }
    }
    words
}

/// Whether a character belongs to a script that puts no spaces between words.
pub(crate) fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}')
}

/// Whether a character is a grammatical word in a script without spaces, like articles and
/// prepositions elsewhere.
fn is_grammar(c: char) -> bool {
    const CHINESE: &str = "的是为在了把和与到从将给由已被也都就";
    matches!(c, '\u{3040}'..='\u{309f}') || CHINESE.contains(c)
}

/// Returns a word without the endings of its forms: `plans` and `planned` have one stem.
pub(super) fn stem(word: &str) -> String {
    const ENDINGS: [&str; 10] = ["'s", "ing", "ed", "er", "es", "al", "en", "s", "e", "n"];
    const LONGEST: usize = 6;
    let mut stem = match word {
        "bought" => "buy",
        "brought" => "bring",
        "built" => "build",
        "chose" | "chosen" => "choose",
        "drove" | "driven" => "drive",
        "gave" | "given" => "give",
        "held" => "hold",
        "led" => "lead",
        "left" => "leave",
        "made" => "make",
        "met" => "meet",
        "paid" => "pay",
        "sent" => "send",
        "sold" => "sell",
        "taught" => "teach",
        "wrote" | "written" => "write",
        regular => regular,
    };
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
        || matches!(
            c,
            '\u{3001}'
                | '\u{3002}'
                | '\u{300c}'
                | '\u{300d}'
                | '\u{ff01}'
                | '\u{ff08}'
                | '\u{ff09}'
        )
        || matches!(c, '\u{ff0c}' | '\u{ff1a}' | '\u{ff1b}' | '\u{ff1f}')
        || matches!(c, '\u{201c}' | '\u{201d}' | '\u{201e}' | '\u{ab}' | '\u{bb}' | '\u{2019}')
}
