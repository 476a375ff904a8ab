//! Finds the names in a text: paths, files, identifiers, hashes and long numbers.

/// The endings by which a name with a dot is a file.
const ENDINGS: [&str; 16] = [
    "c", "cpp", "go", "h", "java", "js", "json", "md", "py", "rs", "toml", "ts", "tsx", "txt",
    "yaml", "yml",
];

/// The least bytes of a name.
const MIN: usize = 4;

/// Returns the names in a text, in order, with repetitions: paths, identifiers with an underline or
/// an inner capital, words of letters and digits, numbers of four digits and more, and files.
///
/// ```
/// use threadfold::hindsight::names;
///
/// let text = "In src/a.rs, parseLine fails for max_width=4096; see lexer.py at 3f9a2c, ok.";
/// let found: Vec<&str> = names(text).collect();
/// assert_eq!(found, ["src/a.rs", "parseLine", "max_width", "4096", "lexer.py", "3f9a2c"]);
/// ```
pub fn names(text: &str) -> impl Iterator<Item = &str> {
    let named = runs(text).flat_map(|run| Names { rest: run, is_whole: run.contains('/') });
    named.map(|name| name.trim_matches(['.', '/', '-'])).filter(|name| name.len() >= MIN)
}

/// A kind of characters.
#[derive(Clone, Copy)]
enum Kind {
    /// Letters, digits and the underline.
    Word,
    /// These, points and hyphens.
    Run,
}

impl Kind {
    fn has(self, c: char) -> bool {
        let is_word = c == '_' || c.is_alphanumeric();
        match self {
            Self::Word => is_word,
            Self::Run => is_word || c == '.' || c == '-',
        }
    }

    fn has_ascii(self, byte: u8) -> bool {
        let is_word = byte == b'_' || byte.is_ascii_alphanumeric();
        match self {
            Self::Word => is_word,
            Self::Run => is_word || byte == b'.' || byte == b'-',
        }
    }

    /// The bytes at the start of a text up to the first character that is of the kind, or that is
    /// not. Nearly all bytes of a thread are ASCII, and need no decoding.
    fn up_to(self, text: &str, is_of_kind: bool) -> usize {
        let mut at = 0;
        while let Some(byte) = text.as_bytes().get(at) {
            if byte.is_ascii() {
                if self.has_ascii(*byte) == is_of_kind {
                    return at;
                }
                at += 1;
                continue;
            }
            let Some(c) = text.get(at..).and_then(|rest| rest.chars().next()) else { break };
            if self.has(c) == is_of_kind {
                return at;
            }
            at += c.len_utf8();
        }
        text.len()
    }

    /// A text without what is before the first character of the kind.
    fn skip_others(self, text: &str) -> &str {
        text.get(self.up_to(text, true)..).unwrap_or_default()
    }
}

/// The longest parts of a text that are a path, or have no slash.
fn runs(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = Kind::Run.skip_others(rest);
        let mut end = segment(rest);
        if end == 0 {
            return None;
        }
        loop {
            let next = rest.get(end..).and_then(|rest| rest.strip_prefix('/')).map_or(0, segment);
            if next == 0 {
                break;
            }
            end += 1 + next;
        }
        let (run, after) = rest.split_at(end);
        rest = after;
        Some(run)
    })
}

/// The bytes of the run at the start of a text.
fn segment(text: &str) -> usize {
    Kind::Run.up_to(text, false)
}

/// The names in a run.
struct Names<'a> {
    rest: &'a str,
    /// Whether the whole run is one name.
    is_whole: bool,
}

impl<'a> Iterator for Names<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        if std::mem::take(&mut self.is_whole) {
            return Some(std::mem::take(&mut self.rest));
        }
        loop {
            self.rest = Kind::Word.skip_others(self.rest);
            let end = Kind::Word.up_to(self.rest, false);
            if end == 0 {
                return None;
            }
            let (word, after) = self.rest.split_at(end);
            if is_name(word) {
                self.rest = after;
                return Some(word);
            }
            if let Some(end) = file(self.rest) {
                let (file, after) = self.rest.split_at(end);
                self.rest = after;
                return Some(file);
            }
            self.rest = after;
        }
    }
}

/// Whether a word is a name by its form.
fn is_name(word: &str) -> bool {
    let bytes = word.as_bytes();
    let is_ascii = word.is_ascii();
    let has_digit = bytes.iter().any(u8::is_ascii_digit);
    let has_letter = bytes.iter().any(u8::is_ascii_alphabetic);
    let is_long = word.len() >= 5 && word.chars().nth(4).is_some();
    if has_digit && has_letter && is_long {
        return true;
    }
    if !has_letter && bytes.len() >= MIN && bytes.iter().all(u8::is_ascii_digit) {
        return true;
    }
    let begins = bytes.first().is_some_and(|first| !first.is_ascii_digit());
    let inner = bytes.iter().skip(1).take(bytes.len().saturating_sub(2));
    if is_ascii && begins && inner.clone().any(|byte| *byte == b'_') {
        return true;
    }
    let lower = bytes.iter().take_while(|byte| byte.is_ascii_lowercase()).count();
    lower > 0 && lower + 1 < bytes.len() && bytes.get(lower).is_some_and(u8::is_ascii_uppercase)
}

/// The bytes of the name of a file at the start of a text, if it begins with one.
fn file(text: &str) -> Option<usize> {
    let stem = text.find(|c| !Kind::Word.has(c) && c != '-')?;
    let ending = text.get(stem..)?.strip_prefix('.')?;
    let ending = ending.get(..Kind::Word.up_to(ending, false))?;
    ENDINGS.contains(&ending).then_some(stem + 1 + ending.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_by_their_form_alone() {
        let all = |text| names(text).collect::<Vec<_>>();
        assert_eq!(all("/usr/lib/x.so: a/b/c, ../up/y."), ["usr/lib/x.so", "a/b/c", "up/y"]);
        assert_eq!(all("__init__ _x a_ x_y_z foo_bar.py"), ["__init__", "x_y_z", "foo_bar"]);
        assert_eq!(all("camelCase Pascal XMLHttp aB aBcd"), ["camelCase", "aBcd"]);
        assert_eq!(all("12 123 1234 12345, v1 v12345 ab12"), ["1234", "12345", "v12345"]);
        assert_eq!(all("foo-bar.py a.b.json x.tar.gz"), ["foo-bar.py", "b.json"]);
        assert_eq!(all("漢字_漢字 日本1a語"), ["日本1a語"]);
    }
}
