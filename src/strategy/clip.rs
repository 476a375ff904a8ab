//! Shortens a text to a token limit by omitting its middle.

use std::collections::HashSet;

use crate::{
    message::{ContentBlock, TextBlock, ToolResult},
    prose::sentences,
    tokens::TokenCounter,
};

/// Token limit for each text beside the thread: the focus and the next prompt. Every request
/// repeats them, so a long paste must not inflate all requests.
pub(super) const ASIDE_TOKENS: u64 = 2_000;

/// Returns the text with at most `most` tokens: its head, a line with the number of omitted bytes,
/// its tail. The line is present even if it alone exceeds the limit.
pub(crate) fn clip(text: &str, most: u64, counter: &dyn TokenCounter) -> String {
    let size = counter.text(text);
    if size <= most {
        return text.to_owned();
    }
    let share = u128::from(most) * text.len() as u128 / u128::from(size.max(1));
    let mut kept = usize::try_from(share).unwrap_or(usize::MAX).min(text.len());
    loop {
        let head_end = border_before(text, kept / 2);
        let tail_start = border_before(text, text.len() - kept / 2);
        let ((head, _), (_, tail)) = (text.split_at(head_end), text.split_at(tail_start));
        let omitted = tail_start.saturating_sub(head_end);
        let clipped = format!("{head}\n[... {omitted} bytes omitted ...]\n{tail}");
        if kept < 4 || counter.text(&clipped) <= most {
            return clipped.trim().to_owned();
        }
        kept -= (kept / 16).max(1);
    }
}

/// Returns the result with the head and the tail of its texts, so that they have at most this many
/// tokens together, and a note; `None` if it is short enough. Each text keeps the same share.
pub(crate) fn clip_result(
    result: &ToolResult,
    most: u64,
    counter: &dyn TokenCounter,
    can_recall: bool,
) -> Option<ToolResult> {
    let texts = result.content.iter().filter_map(ContentBlock::as_text);
    let tokens = texts.clone().map(|text| counter.text(text)).fold(0, u64::saturating_add);
    if tokens <= most {
        return None;
    }
    let content = result.content.iter().map(|block| {
        let ContentBlock::Text(whole) = block else { return block.clone() };
        let share = u128::from(counter.text(&whole.text)) * u128::from(most) / u128::from(tokens);
        let text = clip(&whole.text, u64::try_from(share).unwrap_or(most), counter).into();
        TextBlock { text, extra: whole.extra.clone() }.into()
    });
    let mut content: Vec<ContentBlock> = content.collect();
    let bytes: usize = texts.map(|text| text.len()).sum();
    let mut note = format!("[This result has {bytes} bytes, so its middle is left out.");
    if can_recall {
        let id = serde_json::Value::from(result.tool_use_id.as_str());
        note.push_str(&format!(" To read all of it call recall with {{\"call\":{id}}}."));
    }
    note.push(']');
    content.push(ContentBlock::text(note));
    Some(ToolResult { content, ..result.clone() })
}

/// Returns the text without sentences that the same section states before, except short sentences
/// and fences. Repetitions would take the room of what the text could say instead.
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

/// The last character border at or before an offset.
pub(crate) fn border_before(text: &str, offset: usize) -> usize {
    let mut border = offset.min(text.len());
    while !text.is_char_boundary(border) {
        border -= 1;
    }
    border
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
