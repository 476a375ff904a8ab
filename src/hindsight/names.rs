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
    Names { text, at: 0, end: 0, has_point: false }
}

/// Letters, digits and the underline.
const WORD: u8 = 1;
/// Points and hyphens, which join words to a run.
const JOIN: u8 = 2;
/// What a name has beside small letters: without it, no word of a run is a name.
const MARK: u8 = 4;
/// A byte of a character that is not ASCII, which must be decoded.
const WIDE: u8 = 8;

/// What each byte may be part of. Nearly all bytes of a thread are ASCII, and need no decoding.
#[allow(clippy::indexing_slicing, reason = "the compiler evaluates it")]
const CLASSES: [u8; 256] = {
    let (mut classes, mut byte) = ([0; 256], 0_u8);
    loop {
        classes[byte as usize] = class_of(byte);
        match byte.checked_add(1) {
            Some(next) => byte = next,
            None => break classes,
        }
    }
};

#[allow(clippy::indexing_slicing, reason = "the table has an entry for every byte")]
fn class(byte: u8) -> u8 {
    CLASSES[usize::from(byte)]
}

const fn class_of(byte: u8) -> u8 {
    match byte {
        b'a'..=b'z' => WORD,
        b'A'..=b'Z' | b'0'..=b'9' | b'_' => WORD | MARK,
        b'.' => JOIN | MARK,
        b'-' => JOIN,
        128.. => WIDE,
        _ => 0,
    }
}

/// The names of a text that is read up to a place. A run is the longest part that is a path, or has
/// no slash.
struct Names<'a> {
    text: &'a str,
    /// The place up to which the text is read.
    at: usize,
    /// The end of the run whose words are read now, if it is after that place.
    end: usize,
    /// Whether that run has a point.
    has_point: bool,
}

impl<'a> Iterator for Names<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        loop {
            if self.at < self.end {
                if let Some(name) = self.word() {
                    return Some(name);
                }
                continue;
            }
            let start = self.next_of(self.at, WORD | JOIN);
            let (mut end, mut seen) = self.span(start, WORD | JOIN);
            if start == end {
                return None;
            }
            let first = end;
            while self.text.as_bytes().get(end) == Some(&b'/') {
                let (next, more) = self.span(end + 1, WORD | JOIN);
                if next == end + 1 {
                    break;
                }
                (end, seen) = (next, seen | more);
            }
            if end > first {
                self.at = end;
                let path = self.text.get(start..end)?.trim_matches(['.', '/', '-']);
                if path.len() >= MIN {
                    return Some(path);
                }
            } else if seen & MARK == 0 {
                self.at = end;
            } else {
                (self.at, self.end) = (start, end);
                self.has_point = self.text.get(start..end)?.contains('.');
            }
        }
    }
}

impl<'a> Names<'a> {
    /// Reads the next word of a run, and returns it if it is a name, or the file that it begins.
    fn word(&mut self) -> Option<&'a str> {
        let start = self.next_of(self.at, WORD).min(self.end);
        let (end, seen) = self.span(start, WORD);
        self.at = end;
        let word = self.text.get(start..end)?;
        if seen & (MARK | WIDE) != 0 && is_name(word) {
            return (word.len() >= MIN).then_some(word);
        }
        let file = self.has_point.then(|| self.text.get(start..self.end).and_then(file))??;
        self.at = start + file.len();
        (file.len() >= MIN).then_some(file)
    }

    /// The first place from this one on with a character of these classes, or the end.
    fn next_of(&self, mut at: usize, classes: u8) -> usize {
        while let Some(byte) = self.text.as_bytes().get(at) {
            match class(*byte) {
                WIDE => match self.wide(at) {
                    (_, true) => break,
                    (len, false) => at += len,
                },
                own if own & classes != 0 => break,
                _ => at += 1,
            }
        }
        at
    }

    /// The end of the characters of these classes that begin here, and all classes that they have.
    fn span(&self, mut at: usize, classes: u8) -> (usize, u8) {
        let mut seen = 0;
        while let Some(byte) = self.text.as_bytes().get(at) {
            let own = class(*byte);
            if own & classes != 0 {
                at += 1;
            } else if let (WIDE, (len, true)) = (own, self.wide(at)) {
                at += len;
            } else {
                break;
            }
            seen |= own;
        }
        (at, seen)
    }

    /// The bytes of the character at this place, and whether it is a letter or a digit.
    fn wide(&self, at: usize) -> (usize, bool) {
        let found = self.text.get(at..).and_then(|rest| rest.chars().next());
        found.map_or((1, false), |c| (c.len_utf8(), c.is_alphanumeric()))
    }
}

/// Whether a word is a name by its form.
fn is_name(word: &str) -> bool {
    let bytes = word.as_bytes();
    let (mut digits, mut letters) = (0, 0);
    for byte in bytes {
        digits += usize::from(byte.is_ascii_digit());
        letters += usize::from(byte.is_ascii_alphabetic());
    }
    if digits > 0 && letters > 0 && bytes.len() >= 5 && word.chars().nth(4).is_some() {
        return true;
    }
    if digits == bytes.len() {
        return digits >= MIN;
    }
    if let [first, inner @ .., _] = bytes
        && !first.is_ascii_digit()
        && inner.contains(&b'_')
        && word.is_ascii()
    {
        return true;
    }
    let lower = bytes.iter().take_while(|byte| byte.is_ascii_lowercase()).count();
    lower > 0 && lower + 1 < bytes.len() && bytes.get(lower).is_some_and(u8::is_ascii_uppercase)
}

/// The file at the start of a run, if it begins with one.
fn file(run: &str) -> Option<&str> {
    let stem = run.find('.')?;
    let ending = run.get(stem + 1..)?;
    let end = ending.find(['.', '-']).unwrap_or(ending.len());
    ENDINGS.contains(&ending.get(..end)?).then(|| run.get(..stem + 1 + end))?
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
