//! A source file without comments, string literals and the tests at its end.

/// One file.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// Its path below `src`.
    pub(crate) path: String,
    /// Its module, from the root; empty for the root.
    pub(crate) module: Vec<String>,
    pub(crate) text: String,
    pub(crate) tokens: Vec<Token>,
}

/// A word, `::`, or any other single character.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub(crate) line: usize,
    pub(crate) text: String,
}

impl Source {
    pub(crate) fn new(path: &str, text: &str) -> Self {
        let parts = path.trim_end_matches(".rs").split('/').map(str::to_owned);
        let mut module: Vec<String> = parts.collect();
        if matches!(module.last().map(String::as_str), Some("mod" | "lib" | "main")) {
            module.pop();
        }
        let marks = ["#[cfg(test)]\nmod", "#[cfg(any(test, feature = \"testing\"))]\nmod"];
        let end = marks.iter().filter_map(|mark| text.find(mark)).min();
        let code = end.and_then(|end| text.get(..end)).unwrap_or(text);
        Self { path: path.to_owned(), module, text: text.to_owned(), tokens: tokens(code) }
    }

    /// The paths that begin with one of these words, each with its line. `use a::{b, c::d}` are
    /// the paths `a::b` and `a::c::d`.
    pub(crate) fn paths(&self, roots: &[&str]) -> Vec<(usize, Vec<String>)> {
        let mut found = Vec::new();
        for (index, token) in self.tokens.iter().enumerate() {
            let begins = index.checked_sub(1).is_none_or(|before| self.word(before) != "::");
            if begins && roots.contains(&token.text.as_str()) && self.word(index + 1) == "::" {
                let mut paths = Vec::new();
                self.tree(index, &[], &mut paths);
                found.extend(paths.into_iter().map(|path| (token.line, path)));
            }
        }
        found
    }

    /// Reads the tree of paths that begins here, and returns where it ends.
    fn tree(&self, mut index: usize, stem: &[String], found: &mut Vec<Vec<String>>) -> usize {
        let mut path = stem.to_vec();
        loop {
            if self.word(index) == "{" {
                index += 1;
                while !matches!(self.word(index), "}" | "") {
                    index = self.tree(index, &path, found);
                    // An alias, or the text between two branches.
                    while !matches!(self.word(index), "," | "}" | "") {
                        index += 1;
                    }
                    index += usize::from(self.word(index) == ",");
                }
                return index + 1;
            }
            if is_word(self.word(index)) {
                path.push(self.word(index).to_owned());
                index += 1;
            }
            if self.word(index) != "::" {
                found.push(path);
                return index;
            }
            index += 1;
            if !is_word(self.word(index)) && self.word(index) != "{" {
                // A star or type arguments end the path.
                found.push(path);
                return index + 1;
            }
        }
    }

    /// The modules that it declares.
    pub(crate) fn children(&self) -> Vec<Vec<String>> {
        let declared = |index: &usize| self.word(*index) == "mod" && self.word(index + 2) == ";";
        let names = (0..self.tokens.len()).filter(declared).map(|index| self.word(index + 1));
        names.map(|name| [self.module.as_slice(), &[name.to_owned()]].concat()).collect()
    }

    fn word(&self, index: usize) -> &str {
        self.tokens.get(index).map_or("", |token| token.text.as_str())
    }
}

fn is_word(text: &str) -> bool {
    text.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

fn tokens(code: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = code;
    let mut line = 1;
    while let Some(first) = rest.chars().next() {
        let (length, text) = next(rest, first);
        let (eaten, left) = rest.split_at(length);
        tokens.extend(text.map(|text| Token { line, text: text.to_owned() }));
        line += eaten.matches('\n').count();
        rest = left;
    }
    tokens
}

/// Returns how long the next piece is, and its text if it is a token.
fn next(rest: &str, first: char) -> (usize, Option<&str>) {
    let until = |end: &str, from: usize| {
        rest.get(from..).and_then(|left| left.find(end)).map_or(rest.len(), |at| from + at)
    };
    if rest.starts_with("//") {
        return (until("\n", 0), None);
    }
    if rest.starts_with("/*") {
        return (comment(rest), None);
    }
    if let Some(length) = text_literal(rest) {
        return (length, None);
    }
    if first == '\'' {
        return (quoted_char(rest), None);
    }
    if rest.starts_with("::") {
        return (2, rest.get(..2));
    }
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let length =
        if word(first) { rest.find(|c| !word(c)).unwrap_or(rest.len()) } else { first.len_utf8() };
    (length, rest.get(..length).filter(|_| !first.is_whitespace()))
}

/// The length of a block comment, which may contain nested ones.
fn comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while let Some(left) = rest.get(at..).filter(|left| !left.is_empty()) {
        let step = match left {
            _ if left.starts_with("/*") => {
                depth += 1;
                2
            }
            _ if left.starts_with("*/") => {
                depth -= 1;
                2
            }
            _ => left.chars().next().map_or(1, char::len_utf8),
        };
        at += step;
        if depth == 0 {
            break;
        }
    }
    at
}

/// The length of a string, raw or not, if one begins here.
fn text_literal(rest: &str) -> Option<usize> {
    let body = rest.trim_start_matches(['b', 'c']);
    let prefix = rest.len() - body.len();
    let raw = body.strip_prefix('r').map(|body| (body.trim_start_matches('#'), body));
    if let Some((quoted, hashed)) = raw.filter(|(quoted, _)| quoted.starts_with('"')) {
        let hashes = hashed.len() - quoted.len();
        let end = format!("\"{}", "#".repeat(hashes));
        let start = prefix + 1 + hashes + 1;
        let close = rest.get(start..)?.find(&end).map_or(rest.len(), |at| start + at + end.len());
        return (prefix <= 1).then_some(close);
    }
    if prefix > 1 || !body.starts_with('"') {
        return None;
    }
    let mut escaped = false;
    let close = body.char_indices().skip(1).find(|(_, c)| {
        let closes = *c == '"' && !escaped;
        escaped = *c == '\\' && !escaped;
        closes
    });
    Some(prefix + close.map_or(body.len(), |(at, _)| at + 1))
}

/// The length of a character literal, or of the quote of a lifetime.
fn quoted_char(rest: &str) -> usize {
    let mut chars = rest.char_indices().skip(1);
    match (chars.next(), chars.next()) {
        (Some((_, '\\')), Some((at, escaped))) => {
            let from = at + escaped.len_utf8();
            rest.get(from..).and_then(|left| left.find('\'')).map_or(1, |close| from + close + 1)
        }
        (Some(_), Some((at, '\''))) => at + 1,
        _ => 1,
    }
}
