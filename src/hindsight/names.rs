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

fn is_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

fn is_run(c: char) -> bool {
    is_word(c) || c == '.' || c == '-'
}

/// The longest parts of a text that are a path, or have no slash.
fn runs(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(|c| !is_run(c));
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
    text.find(|c| !is_run(c)).unwrap_or(text.len())
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
            self.rest = self.rest.trim_start_matches(|c| !is_word(c));
            let end = self.rest.find(|c| !is_word(c)).unwrap_or(self.rest.len());
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
    let stem = text.find(|c| !is_word(c) && c != '-')?;
    let ending = text.get(stem..)?.strip_prefix('.')?;
    let ending = ending.get(..ending.find(|c| !is_word(c)).unwrap_or(ending.len()))?;
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
