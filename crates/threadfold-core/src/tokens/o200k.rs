//! The exact tokenizer of OpenAI's models since GPT-4o.

use std::sync::LazyLock;

use tiktoken::CoreBpe;

use super::{counter::TokenCounter, media_rule::MediaRule};
use crate::message::boundary_before;

/// The vocabulary, unpacked on first use.
static O200K: LazyLock<CoreBpe> = LazyLock::new(tiktoken::encoding::o200k_base);

/// The maximum number of bytes passed to the tokenizer at once. It searches the whole rest of its
/// text after every run of unusual spaces, and keeps lists for every byte of a long word, so one
/// megabyte of hostile text would take minutes.
const WINDOW: usize = 4 * 1024;

/// Returns the tokenizer `o200k_base` of GPT-4o, GPT-4.1, GPT-5, o1, o3 and o4-mini. Requires the
/// feature `tiktoken`.
///
/// Texts count exactly as for the models; images, documents and the framing of messages are the
/// estimates of [`TokenCounter`]. Text that looks like a special token counts as text. Long texts
/// are counted in windows that end where a token always ends, at the start of a line or before a
/// space, so that the time is linear. If 4 KiB contain no such position, the count may be one or
/// two tokens off for each such window. The first count unpacks the vocabulary, which takes about a
/// tenth of a second and 25 MB of memory for the rest of the process.
///
/// ```
/// use threadfold::tokens::{TokenCounter, o200k};
///
/// assert_eq!(o200k().text("antidisestablishmentarianism"), 6);
/// ```
#[must_use]
pub fn o200k() -> impl TokenCounter + Copy {
    O200k
}

#[derive(Clone, Copy, Debug)]
struct O200k;

impl TokenCounter for O200k {
    fn text(&self, text: &str) -> u64 {
        windows(text).map(|window| O200K.count(window) as u64).fold(0, u64::saturating_add)
    }

    fn media_rule(&self) -> MediaRule {
        MediaRule::OpenAi
    }
}

/// Cuts a text into windows, at the end of a token if possible.
fn windows(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (window, after) = rest.split_at_checked(end_of_window(rest))?;
        rest = after;
        (!window.is_empty()).then_some(window)
    })
}

fn end_of_window(text: &str) -> usize {
    if text.len() <= WINDOW {
        return text.len();
    }
    let edge = boundary_before(text, WINDOW);
    let (window, _) = text.split_at(edge);
    let later = window.char_indices().rev();
    let earlier = later.clone().skip(1).map(|(_, before)| before);
    let mut boundaries =
        later.zip(earlier).filter(|((_, after), before)| is_token_boundary(*before, *after));
    boundaries.next().map_or(edge, |((at, _), _)| at)
}

/// `true` if a token always ends between these two characters. A token may start with white space
/// and may end with line breaks followed by slashes; otherwise it contains white space only or
/// none.
fn is_token_boundary(before: char, after: char) -> bool {
    match (before, after) {
        ('\r' | '\n', after) => after != '/' && !after.is_whitespace(),
        (before, '\r' | '\n') => before.is_ascii_alphanumeric(),
        (before, after) => after.is_whitespace() && !before.is_whitespace(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*, sample::select, test_runner::TestRunner};

    use super::*;

    /// Characters on either side of a boundary, and some that only look like it.
    const PIECES: [&str; 28] = [
        "a", "Zz", "é", "漢", "e\u{301}", "\u{301}", "'s", "'", "7", "1234", "٣", "Ⅷ", "!", "=",
        "/", "。", "🦀", "_", " ", "  ", "\t", "\u{a0}", "\u{3000}", "\u{2028}", "\u{85}", "\n",
        "\r\n", "\n\n",
    ];

    #[test]
    fn texts_have_the_token_counts_of_the_models() {
        let rows = [
            ("", 0),
            ("hello world", 2),
            ("Hello, world!", 4),
            ("antidisestablishmentarianism", 6),
            ("2 + 2 = 4", 7),
            ("お誕生日おめでとう", 8),
        ];
        for (text, tokens) in rows {
            assert_eq!(O200k.text(text), tokens, "{text}");
        }
    }

    #[test]
    fn a_special_token_in_a_text_is_text() {
        assert!(O200k.text("<|endoftext|>") > 3);
        assert_eq!(O200k.text("<|endoftext|>"), O200K.encode("<|endoftext|>").len() as u64);
    }

    #[test]
    fn windows_change_no_count_of_texts_with_lines_and_words() {
        let texts = [
            "fn main() {\n    println!(\"naïve 漢字 {}\", 1_000);\n}\n\n",
            "It's said,\u{a0}\u{a0}that THE parser\tREADs  e\u{301}\r\n\r\n../a/b.rs;\n/x ",
            "漢字仮名交じり文。「お誕生日おめでとう」\n",
        ];
        for text in texts {
            let long = text.repeat(3 * WINDOW / text.len());
            assert!(windows(&long).count() > 2);
            assert_eq!(windows(&long).collect::<String>(), long);
            assert_eq!(O200k.text(&long), O200K.count(&long) as u64, "{text}");
        }
    }

    #[test]
    fn no_token_crosses_a_window_boundary() {
        let text = vec(select(&PIECES[..]), 0..12).prop_map(|pieces| pieces.concat());
        let checked = TestRunner::default().run(&text, |text| {
            let whole = O200K.count(&text);
            let places = text.char_indices().zip(text.chars().skip(1));
            for ((at, before), behind) in places.filter(|((_, a), b)| is_token_boundary(*a, *b)) {
                let (left, right) = text.split_at(at + before.len_utf8());
                let parts = O200K.count(left) + O200K.count(right);
                prop_assert_eq!(parts, whole, "{:?} before {:?}", left, behind);
            }
            Ok(())
        });
        checked.unwrap();
    }

    #[test]
    fn a_long_text_without_boundaries_is_counted_in_pieces() {
        for text in ["a", "é", "漢", "🦀", " ", "\n", "=", "A1", "!\n\u{a0}\u{a0}"] {
            let long = text.repeat((1 << 16) / text.len());
            assert!(windows(&long).all(|window| window.len() <= WINDOW));
            let (counted, whole) =
                (O200k.text(&long), O200K.count(text.repeat(512).as_str()) as u64);
            let expected = whole * (long.len() / text.len()) as u64 / 512;
            assert!(counted.abs_diff(expected) <= 16 * 2, "{text}: {counted} for {expected}");
        }
    }
}
