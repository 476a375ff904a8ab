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

// What a byte may be part of. Nearly all bytes of a thread are ASCII, and need no decoding.
const LOWER: u8 = 1;
const UPPER: u8 = 2;
const DIGIT: u8 = 4;
const UNDERLINE: u8 = 8;
const POINT: u8 = 16;
const HYPHEN: u8 = 32;
const SLASH: u8 = 64;
/// A byte of a character that is not ASCII, which must be decoded.
const WIDE: u8 = 128;

/// The classes of a word.
const WORD: u8 = LOWER | UPPER | DIGIT | UNDERLINE;
/// The classes of a run: words, and what joins them.
const RUN: u8 = WORD | POINT | HYPHEN;
/// A run with a name has one of these classes, or a slash behind it.
const MARK: u8 = UPPER | DIGIT | UNDERLINE | POINT;

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
        b'a'..=b'z' => LOWER,
        b'A'..=b'Z' => UPPER,
        b'0'..=b'9' => DIGIT,
        b'_' => UNDERLINE,
        b'.' => POINT,
        b'-' => HYPHEN,
        b'/' => SLASH,
        128.. => WIDE,
        _ => 0,
    }
}

/// The names of a text that is read up to a place.
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
            let found = if self.at < self.end { self.word() } else { self.run()? };
            if found.len() >= MIN {
                return Some(found);
            }
        }
    }
}

impl<'a> Names<'a> {
    /// Reads up to the next run that may have a name: returns it if it is a path or a word that is a
    /// name, or else nothing, and prepares to read its words if it has several. `None` at the end of
    /// the text.
    fn run(&mut self) -> Option<&'a str> {
        let rest = self.text.as_bytes().get(self.at..)?;
        let mark = rest.iter().position(|byte| class(*byte) & (MARK | WIDE | SLASH) != 0)?;
        let before = rest.get(..mark)?.iter().rev();
        let start = self.at + mark - before.take_while(|byte| class(**byte) & RUN != 0).count();
        let (first, mut seen) = self.span(start, RUN);
        if start == first {
            // A slash or a sign, which belongs to no run.
            self.at = start + self.length(start);
            return Some("");
        }
        let mut end = first;
        while self.text.as_bytes().get(end) == Some(&b'/') {
            let (next, more) = self.span(end + 1, RUN);
            if next == end + 1 {
                break;
            }
            (end, seen) = (next, seen | more);
        }
        self.at = end;
        let run = self.text.get(start..end)?;
        if end > first {
            return Some(run.trim_matches(['.', '/', '-']));
        }
        if seen & (POINT | HYPHEN) == 0 {
            return Some(if is_name(run, seen) { run } else { "" });
        }
        if seen & MARK != 0 {
            (self.at, self.end, self.has_point) = (start, end, seen & POINT != 0);
        }
        Some("")
    }

    /// Reads the next word of a run, and returns it if it is a name, or the file that it begins, or
    /// else nothing.
    fn word(&mut self) -> &'a str {
        let rest = self.text.get(self.at..self.end).unwrap_or_default();
        let word = rest.trim_start_matches(['.', '-']);
        let start = self.end - word.len();
        let (end, seen) = self.span(start, WORD);
        self.at = end;
        let name = self.text.get(start..end).unwrap_or_default();
        if is_name(name, seen) {
            return name;
        }
        let file = if self.has_point { file(word).unwrap_or_default() } else { "" };
        self.at = end.max(start + file.len());
        file
    }

    /// The end of the characters of these classes that begin here, and all classes that they have.
    fn span(&self, start: usize, classes: u8) -> (usize, u8) {
        let (mut at, mut seen) = (start, 0);
        loop {
            for byte in self.text.as_bytes().get(at..).unwrap_or_default() {
                let own = class(*byte);
                if own & classes == 0 {
                    break;
                }
                at += 1;
                seen |= own;
            }
            let next = self.text.as_bytes().get(at).filter(|byte| class(**byte) == WIDE);
            match next.and_then(|_| self.wide(at)) {
                Some(c) if c.is_alphanumeric() => at += c.len_utf8(),
                _ => return (at, seen),
            }
            seen |= WIDE;
        }
    }

    /// The character at this place.
    fn wide(&self, at: usize) -> Option<char> {
        self.text.get(at..)?.chars().next()
    }

    /// The bytes of the character at this place.
    fn length(&self, at: usize) -> usize {
        self.wide(at).map_or(1, char::len_utf8)
    }
}

/// Whether a word with these classes is a name by its form.
fn is_name(word: &str, seen: u8) -> bool {
    let has = |classes| seen & classes != 0;
    if seen == DIGIT {
        return word.len() >= MIN;
    }
    if has(DIGIT) && has(LOWER | UPPER) && word.chars().nth(4).is_some() {
        return true;
    }
    if has(UNDERLINE)
        && !has(WIDE)
        && let [first, inner @ .., _] = word.as_bytes()
        && !first.is_ascii_digit()
        && inner.contains(&b'_')
    {
        return true;
    }
    let lower = word.bytes().take_while(u8::is_ascii_lowercase).count();
    let next = word.as_bytes().get(lower);
    has(UPPER) && lower > 0 && lower + 1 < word.len() && next.is_some_and(u8::is_ascii_uppercase)
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
