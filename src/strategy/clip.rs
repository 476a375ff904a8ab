//! Shortens a text to a token limit: omits its middle or, from a summary, whole sentences.

use std::collections::HashSet;

use crate::{
    message::{ContentBlock, TextBlock, ToolResult, boundary_before},
    prose::{Kind, Speaker, item, sentences, spans, words_key},
    tokens::TokenCounter,
};

/// Token limit for each text beside the thread: the instructions and the next prompt. Every request
/// repeats them, so a long paste must not inflate all requests.
pub(super) const ASIDE_TOKENS: u64 = 2_000;

/// Returns the text with at most `most` tokens: its head, a line with the number of omitted bytes,
/// its tail. The line is present even if it alone exceeds the limit.
pub(crate) fn clip(text: &str, most: u64, counter: &dyn TokenCounter) -> String {
    let note = |bytes: usize, _: u64| format!("[... {bytes} bytes omitted ...]");
    let cut = ends(text, most, counter, Ends { tail: 2, note: &note });
    cut.map_or_else(|| text.to_owned(), |cut| cut.trim().to_owned())
}

/// What stays of a text that is cut.
#[derive(Clone, Copy)]
pub(super) struct Ends<'a> {
    /// The share that the tail takes: one of this many parts. The head takes the others.
    pub(super) tail: usize,
    /// Returns the note between head and tail: in place of this many bytes, in a text of at most this
    /// many tokens.
    pub(super) note: &'a dyn Fn(usize, u64) -> String,
}

/// Returns the head and the tail of a text in at most `most` tokens, with a note between them; `None`
/// if the text is short enough. The note stays even if it alone has more tokens.
pub(super) fn ends(
    text: &str,
    most: u64,
    counter: &dyn TokenCounter,
    keeps: Ends<'_>,
) -> Option<String> {
    let size = counter.text(text);
    if size <= most {
        return None;
    }
    let share = u128::from(most) * text.len() as u128 / u128::from(size.max(1));
    let mut kept = usize::try_from(share).unwrap_or(usize::MAX).min(text.len());
    loop {
        let part = kept / keeps.tail.max(1);
        let head_end = end_before(text, part * keeps.tail.saturating_sub(1));
        let tail_start = start_after(text, text.len() - part).max(head_end);
        let ((head, _), (_, tail)) = (text.split_at(head_end), text.split_at(tail_start));
        let note = (keeps.note)(tail_start - head_end, most);
        let cut = format!("{head}\n{note}\n{tail}");
        let cut = cut.trim_matches('\n');
        if kept == 0 || counter.text(cut) <= most {
            return Some(cut.to_owned());
        }
        kept -= (kept / 16).max(1);
    }
}

/// The bytes that are looked at for the end of a line, but no more than a quarter of a head or a tail.
const LINE: usize = 120;

/// The bytes that are looked at for the end of a word, if there is no end of a line.
const WORD: usize = 40;

/// Where a head of at most this many bytes ends: after a line or a word, if one ends near.
fn end_before(text: &str, at: usize) -> usize {
    let at = boundary_before(text, at);
    let near = |bytes: usize| boundary_before(text, at.saturating_sub(bytes));
    let found = |from: usize, mark: fn(char) -> bool| {
        text.get(from..at).and_then(|near| near.rfind(mark)).map(|end| from + end)
    };
    let line = found(near(LINE.min(at / 4)), |c| c == '\n');
    line.or_else(|| found(near(WORD), char::is_whitespace)).unwrap_or(at)
}

/// Where a tail that begins at or after this place begins: with a line or a word, if one begins near.
fn start_after(text: &str, at: usize) -> usize {
    let at = boundary_before(text, at);
    let near = |bytes: usize| boundary_before(text, at.saturating_add(bytes));
    let found = |to: usize, mark: fn(char) -> bool| {
        text.get(at..to).and_then(|near| near.find(mark)).map(|end| at + end + 1)
    };
    let line = found(near(LINE.min((text.len() - at) / 4)), |c| c == '\n');
    line.or_else(|| found(near(WORD), |c| c.is_ascii_whitespace())).unwrap_or(at)
}

/// Returns the result with the ends of its texts, so that they have at most this many tokens together.
/// Each text keeps the same share.
pub(super) fn ends_of_result(
    result: &ToolResult,
    most: u64,
    counter: &dyn TokenCounter,
    shorten: impl Fn(&str, u64) -> String,
) -> ToolResult {
    let tokens = text_tokens(result, counter).max(1);
    let content = result.content.iter().map(|block| {
        let ContentBlock::Text(whole) = block else { return block.clone() };
        let share = u128::from(counter.text(&whole.text)) * u128::from(most) / u128::from(tokens);
        let text = shorten(&whole.text, u64::try_from(share).unwrap_or(most)).into();
        TextBlock { text, extra: whole.extra.clone() }.into()
    });
    ToolResult { content: content.collect(), ..result.clone() }
}

/// The tokens of the texts of a result.
pub(super) fn text_tokens(result: &ToolResult, counter: &dyn TokenCounter) -> u64 {
    let texts = result.content.iter().filter_map(ContentBlock::as_text);
    texts.map(|text| counter.text(text)).fold(0, u64::saturating_add)
}

/// Returns the largest size to which all sizes can be cut so that their sum is at most `room`.
pub(super) fn level(sizes: &[u64], room: u64) -> u64 {
    let mut sorted = sizes.to_vec();
    sorted.sort_unstable();
    let mut left = room;
    for (index, size) in sorted.iter().enumerate() {
        let share = left / (sorted.len() - index) as u64;
        if *size > share {
            return share;
        }
        left -= size;
    }
    u64::MAX
}

/// Returns the result with the head and the tail of its texts, so that they have at most this many
/// tokens together, and a note; `None` if it is short enough.
pub(crate) fn clip_result(
    result: &ToolResult,
    most: u64,
    counter: &dyn TokenCounter,
    can_recall: bool,
) -> Option<ToolResult> {
    if text_tokens(result, counter) <= most {
        return None;
    }
    let mut clipped = ends_of_result(result, most, counter, |text, most| clip(text, most, counter));
    let texts = result.content.iter().filter_map(ContentBlock::as_text);
    let bytes: usize = texts.map(|text| text.len()).sum();
    let mut note = format!("[This result has {bytes} bytes, so its middle is left out.");
    if can_recall {
        let id = serde_json::Value::from(result.tool_use_id.as_str());
        note.push_str(&format!(" To read all of it call recall with {{\"call\":{id}}}."));
    }
    note.push(']');
    clipped.content.push(ContentBlock::text(note));
    Some(clipped)
}

/// Returns the text without sentences that repeat an earlier one of the same section, except short
/// sentences and fences. Repetitions waste the room of a summary.
pub(super) fn without_repeats(text: &str) -> String {
    const SHORT: usize = 20;
    let (mut seen, mut fenced, mut kept) = (HashSet::new(), false, String::new());
    for line in text.split_inclusive('\n') {
        let is_fence = line.trim_start().starts_with("```");
        fenced ^= is_fence;
        if fenced || is_fence {
            kept.push_str(line);
            continue;
        }
        if line.starts_with('#') {
            seen.clear();
        }
        let all: Vec<&str> = sentences(line).collect();
        let new = all.iter().copied().filter(|one| {
            one.len() < SHORT || seen.insert(one.trim_start_matches(|c: char| !c.is_alphanumeric()))
        });
        let new: Vec<&str> = new.collect();
        if new.len() == all.len() {
            kept.push_str(line);
        } else if !new.is_empty() {
            // The mark of a list item goes with its first sentence.
            let start = match new.first() == all.first() {
                true => line.len() - line.trim_start().len(),
                false => line.find(char::is_alphanumeric).unwrap_or(0),
            };
            kept.push_str(line.split_at(start).0);
            kept.push_str(&new.join(" "));
            kept.push_str(if line.ends_with('\n') { "\n" } else { "" });
        }
    }
    kept
}

/// Returns a text without the sentences that have one of these keys, except in fences, and without
/// headings that have no text left.
pub(super) fn without_stated(text: &str, stated: &HashSet<String>) -> String {
    let parts = parts(text);
    let is_stated: Vec<bool> = parts
        .iter()
        .map(|part| part.is_sentence && stated.contains(&words_key(part.text)))
        .collect();
    if !is_stated.contains(&true) {
        return text.to_owned();
    }
    write(&parts, |part| is_stated.get(part.at) == Some(&false), 0)
}

/// Returns the text in at most `most` tokens, by whole sentences: first those that state a fact,
/// such as a path or a number, then the others, from both ends of the text inwards. A line gives
/// the number of omitted bytes, even if that alone has more than `most` tokens.
pub(super) fn excerpt(text: &str, most: u64, counter: &dyn TokenCounter) -> String {
    if counter.text(text) <= most {
        return text.to_owned();
    }
    let parts = parts(text);
    let mut order: Vec<&Part<'_>> = parts.iter().filter(|part| !part.is_gap()).collect();
    order.sort_by_cached_key(|part| (!states_fact(part.text), part.at.min(parts.len() - part.at)));
    let mut left = most.saturating_sub(counter.text(&note(text.len())));
    order.retain(|part| {
        let cost = counter.text(part.text).saturating_add(counter.text(part.mark));
        let fits = cost <= left;
        left -= if fits { cost } else { 0 };
        fits
    });
    // The whole may have more tokens than the sum of its parts, so retry with less room.
    loop {
        let kept: HashSet<usize> = order.iter().map(|part| part.at).collect();
        let written = write(&parts, |part| kept.contains(&part.at), text.len());
        if order.is_empty() || counter.text(&written) <= most {
            return written;
        }
        order.truncate(order.len() - order.len().div_ceil(8));
    }
}

/// A sentence, or a line that has none.
struct Part<'a> {
    at: usize,
    line: usize,
    /// The beginning of the line before its first sentence: the mark of a list item.
    mark: &'a str,
    text: &'a str,
    is_sentence: bool,
}

impl Part<'_> {
    fn is_heading(&self) -> bool {
        !self.is_sentence && self.text.starts_with('#')
    }

    /// Whether the part is a heading or a blank line, which stay with what follows them.
    fn is_gap(&self) -> bool {
        self.is_heading() || self.text.trim().is_empty()
    }
}

/// Returns the parts of a text in order.
fn parts(text: &str) -> Vec<Part<'_>> {
    let (mut parts, mut fenced) = (Vec::new(), false);
    for (line, text) in text.lines().enumerate() {
        let is_fence = text.trim_start().starts_with("```");
        fenced ^= is_fence;
        let at = parts.len();
        if fenced || is_fence || text.starts_with('#') || text.trim().is_empty() {
            parts.push(Part { at, line, mark: "", text, is_sentence: false });
            continue;
        }
        let listed = text.trim_start();
        let body = item(listed).unwrap_or(listed).trim_start_matches(['-', '*', '>', ' ']);
        let mark = text.strip_suffix(body).unwrap_or_default();
        parts.extend(sentences(body).enumerate().map(|(index, text)| {
            let is_sentence = true;
            Part { at: at + index, line, mark, text, is_sentence }
        }));
    }
    parts
}

/// Writes the parts that stay. A heading stays if something below it does. If `bytes` is the size
/// of the whole, a line says how many of them are left out.
fn write(parts: &[Part<'_>], keeps: impl Fn(&Part<'_>) -> bool, bytes: usize) -> String {
    let (mut text, mut last, mut omits_at) = (String::new(), None, None);
    let mut gap: Vec<&str> = Vec::new();
    for part in parts {
        if part.is_heading() {
            gap.retain(|line| !line.starts_with('#'));
        }
        if part.is_gap() {
            gap.push(part.text);
        } else if keeps(part) {
            if last == Some(part.line) {
                text.truncate(text.trim_end_matches('\n').len());
                text.push(' ');
            } else {
                gap.drain(..).for_each(|line| text.extend([line, "\n"]));
                text.push_str(part.mark);
            }
            text.extend([part.text, "\n"]);
            last = Some(part.line);
        } else if bytes > 0 {
            omits_at.get_or_insert(text.len());
            last = None;
        }
    }
    if let Some(at) = omits_at {
        text.insert_str(at, &note(bytes.saturating_sub(text.len())));
    }
    text.trim().to_owned()
}

/// The line in place of omitted text.
fn note(bytes: usize) -> String {
    format!("[... {bytes} bytes omitted ...]\n")
}

fn states_fact(text: &str) -> bool {
    let mut found = false;
    spans(Speaker::Assistant, Kind::Said, text, &mut |_| found = true);
    found
}

/// Whether a line is only the note with the number of omitted bytes that [`clip`] and [`excerpt`]
/// write.
pub(crate) fn is_note(line: &str) -> bool {
    let inner = line.strip_prefix("[... ").and_then(|line| line.strip_suffix(" omitted ...]"));
    inner.is_some_and(|inner| inner.trim_start_matches(|it: char| it.is_ascii_digit()) == " bytes")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::ByteEstimate;

    const COUNTER: ByteEstimate = ByteEstimate::CHUNK;

    #[test]
    fn what_a_text_states_again_goes() {
        let text = "# Done\n\nI read the long file. I read the long file. Fine.\n- Fine. I read the \
                    long file. I wrote the other one.\n- I read the long file. Now it is done.\n\
                    ```\nI read the long file.\n```\nI read the long file.\n";
        let expected = "# Done\n\nI read the long file. Fine.\n- Fine. I wrote the other one.\n- Now it \
                        is done.\n```\nI read the long file.\n```\n";
        assert_eq!(without_repeats(text), expected);
        let sections = "# Done\n- I read the long file.\n# Read\n- I read the long file.\n";
        assert_eq!(without_repeats(sections), sections);
        assert_eq!(without_repeats(expected), expected);
    }

    #[test]
    fn a_long_text_loses_its_middle_between_characters() {
        let text = "ä".repeat(200);
        let clipped = clip(&text, 40, &COUNTER);
        assert!(COUNTER.text(&clipped) <= 40, "{clipped}");
        assert!(clipped.starts_with('ä') && clipped.ends_with('ä'), "{clipped}");
        let omitted = 400 - clipped.matches('ä').count() * 2;
        assert!(clipped.contains(&format!("[... {omitted} bytes omitted ...]")), "{clipped}");
        assert_eq!(clip("short", 2, &COUNTER), "short");
        assert_eq!(clip(&text, 0, &COUNTER), "[... 400 bytes omitted ...]");
    }
}

#[cfg(test)]
mod excerpt_tests {
    use proptest::{collection::vec, prelude::*, sample::select};

    use super::*;
    use crate::tokens::ByteEstimate;

    fn any_summary() -> impl Strategy<Value = String> {
        let lines = select(vec![
            "## State",
            "",
            "- They fixed src/lex.rs. It took 12 ms.",
            "The tea is green. Nobody asked why! Was it late?",
            "let x = 1.",
            "1. First the tests, e.g. those of `a.rs`. Then the docs.",
            "\u{8fd9}\u{662f}\u{7b2c}\u{4e00}\u{53e5}\u{3002}\u{8fd9}\u{662f}\u{7b2c}\u{4e8c}\u{53e5}\u{3002}",
        ]);
        vec(lines, 0..30).prop_map(|lines| lines.join("\n"))
    }

    proptest! {
        #[test]
        fn an_excerpt_fits_and_consists_of_whole_sentences_in_order(
            text in any_summary(),
            most in 40_u64..800,
        ) {
            let counter = ByteEstimate::new(1);
            let short = excerpt(&text, most, &counter);
            prop_assert!(counter.text(&short) <= most, "{short}");
            let all: Vec<&str> = parts(&text).iter().map(|part| part.text.trim()).collect();
            let mut rest = all.iter();
            let shown: Vec<&str> = short.lines().filter(|line| !line.starts_with("[...")).collect();
            for part in parts(&shown.join("\n")).iter().map(|part| part.text.trim()) {
                let is_whole = part.is_empty() || rest.any(|whole| *whole == part);
                prop_assert!(is_whole, "{part:?} in {short}");
            }
        }
    }

    #[test]
    fn many_texts_share_the_room_and_short_ones_stay_whole() {
        let sizes = [10, 5_000, 40, 9_000];
        assert_eq!(level(&sizes, 1_050), 500);
        assert_eq!(level(&sizes, 100_000), u64::MAX);
        assert_eq!(level(&[], 0), u64::MAX);
    }

    #[test]
    fn sentences_that_state_a_fact_stay_longest() {
        let text = "The tea is green. They fixed src/lex.rs. Nobody asked why.";
        let short = excerpt(text, 50, &ByteEstimate::new(1));
        assert_eq!(short, "[... 35 bytes omitted ...]\nThey fixed src/lex.rs.");
    }

    #[test]
    fn stated_sentences_go_with_headings_that_have_nothing_left() {
        let stated = HashSet::from([words_key("Never touch the lexer.")]);
        let text = "## Rules\n\n- Never touch the lexer.\n\n## State\n\nAll is well.";
        assert_eq!(without_stated(text, &stated), "## State\n\nAll is well.");
        let fenced = "```\nNever touch the lexer.\n```";
        assert_eq!(without_stated(fenced, &stated), fenced);
    }
}
