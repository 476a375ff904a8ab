//! Paths of files and folders.

use std::borrow::Cow;

use super::{
    chunk::Trust,
    class::{FactClass, Note},
    token::is_word,
    word_kinds::{has_pair, is_listed_in_any_case},
};
use crate::message::slice;

/// File endings that make a word a path even without a folder.
#[rustfmt::skip]
const ENDINGS: [&str; 71] = [
    "bash", "bat", "c", "cc", "cfg", "cjs", "conf", "cpp", "cs", "css", "csv", "db", "dockerfile",
    "env", "ex", "exs", "gif", "go", "gradle", "graphql", "h", "hpp", "html", "ini", "ipynb",
    "java", "jpg", "js", "json", "jsonl", "jsx", "kt", "lock", "log", "lua", "md", "mdx", "mjs",
    "mk", "patch", "pdf", "php", "png", "prisma", "proto", "ps1", "py", "rb", "rs", "rst", "scala",
    "scss", "sh", "sql", "sqlite", "svelte", "svg", "swift", "tex", "tf", "toml", "ts", "tsx",
    "txt", "vue", "wasm", "xml", "yaml", "yml", "zig", "zsh",
];

/// Names of products that look like files.
#[rustfmt::skip]
const PRODUCTS: [&str; 9] = [
    "chart.js", "d3.js", "express.js", "next.js", "node.js", "nuxt.js", "react.js", "three.js",
    "vue.js",
];

/// Returns the path that a word is, without the location within the file.
pub(crate) fn path(word: &str, trust: Trust) -> Option<&str> {
    Some(without_location(word)).filter(|found| is_path(found, trust))
}

/// Notes the value of a field whose name marks it as a path.
pub(crate) fn path_value(value: &str, note: Note<'_>) {
    let value = without_location(value.trim());
    let fits = (2..=400).contains(&value.len()) && value.chars().any(char::is_alphanumeric);
    if fits && value.contains(['/', '\\', '.']) && !value.contains("://") {
        note(FactClass::Path, value);
    }
}

/// Whether a word before `(` is a method call such as `value.read`, and not a path.
pub(crate) fn is_dotted_call(word: &str) -> bool {
    word.contains('.') && !word.contains(['/', '\\'])
}

fn is_path(word: &str, trust: Trust) -> bool {
    if !(3..=260).contains(&word.len())
        || word.contains(|c: char| !(c.is_alphanumeric() || "/\\._-+@~:#".contains(c)))
        || word.starts_with('-')
        || has_pair(word, *b"//")
        || has_pair(word, *b"::")
        || !word.contains(char::is_alphabetic)
    {
        return false;
    }
    let slash = ['/', '\\'];
    let (folder, name) = word.rsplit_once(slash).unwrap_or(("", word));
    let depth = word.matches(slash).count();
    let (stem, ending) = name.rsplit_once('.').unwrap_or((name, ""));
    let ending_fits = (1..=8).contains(&ending.len())
        && ending.chars().all(char::is_alphanumeric)
        && ending.chars().any(char::is_alphabetic);
    let rooted = ["/", "./", "../", "~/"].iter().any(|root| word.starts_with(root));
    let colon = folder.contains(':') && word.as_bytes().get(1) != Some(&b':');
    let listed = is_listed_in_any_case(&ENDINGS, ending);
    let named = listed && !stem.is_empty() && !is_listed_in_any_case(&PRODUCTS, word);
    // `.gitignore` and `.env` are files, but `.rs` is only a file ending.
    let is_ending = listed && ending != "env";
    let hidden =
        stem.is_empty() && ending_fits && !is_ending && (depth > 0 || trust != Trust::Little);
    let deep = rooted && depth > usize::from(word.starts_with(['/', '.', '~']));
    let at = word.starts_with('@') && depth > 0 && trust != Trust::Little && !name.is_empty();
    let slashed = depth > 0 && trust == Trust::Full;
    let drive = matches!(word.as_bytes(), [letter, b':', b'/' | b'\\', _, ..] if letter.is_ascii_alphabetic());
    !colon
        && (named
            || hidden
            || deep
            || at
            || slashed
            || drive
            || (ending_fits && depth > 0 && !folder.is_empty()))
}

/// Strips the location within the file: `:12`, `:12:3`, `:24-40`, `#L12`, `::test_name`.
fn without_location(word: &str) -> &str {
    if !word.bytes().any(|byte| matches!(byte, b':' | b'#')) {
        return word.trim_end_matches('/');
    }
    let word = word.split_once("#L").map_or(word, |(file, _)| file);
    let word = word.split_once("::").map_or(word, |(file, _)| file);
    let mut file = word;
    for _ in 0..2 {
        file = match file.rsplit_once(':') {
            Some((before, lines)) if is_range(lines) => before,
            Some(_) | None => file,
        };
    }
    // Listings may put a colon and a remark after the path: `src/a.rs:TODO`.
    let remarked = file.split_once(':').filter(|(drive, _)| drive.len() > 1);
    remarked.map_or(file, |(file, _)| file).trim_end_matches('/')
}

/// Whether a text is a line, a column, or a range of lines.
fn is_range(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
        && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
}

/// Returns the key by which paths are compared: with `/` as separator, and without `./`, `@` or `/`
/// at the start.
pub(super) fn key(path: &str) -> Cow<'_, str> {
    if path.contains('\\') {
        Cow::Owned(bare(&path.replace('\\', "/")).to_owned())
    } else {
        bare(path).into()
    }
}

fn bare(path: &str) -> &str {
    let start = path.find(|c: char| is_word(c) || !c.is_ascii()).unwrap_or(0);
    let hidden =
        path.get(..start).is_some_and(|before| before.ends_with('.') && !before.ends_with(".."));
    let start = if hidden { start - 1 } else { start };
    slice(path, start..).trim_end_matches('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_prose_are_no_paths() {
        let found = |word| path(word, Trust::Prose).is_some();
        let paths = ["src/lib.rs", "a.txt", "/usr/local/bin", "./x/y.py", "C:\\a\\b", "/a/.env"];
        for path in paths.into_iter().chain(["Cargo.toml", "c:/a"]) {
            assert!(found(path), "{path}");
        }
        let words = ["e.g", "1.5", "self.len", "/", "a/b", "application/json", "2024/05/15", "-i"];
        let more = ["https://a.b/c.d", "s/a/b/", "and/or", "x:1.5/2.5", "end.", "w.flush", "/x/"];
        for word in words.into_iter().chain(more).chain(["1.0.2", "c:/"]) {
            assert!(!found(word), "{word}");
        }
    }

    #[test]
    fn the_lists_are_sorted() {
        assert!(ENDINGS.is_sorted());
        assert!(PRODUCTS.is_sorted());
    }
}
