//! Trimming tool results: the first lines of each long text stay.
//!
//! Calls, ids and everything else stay as they are, so no pair can come apart. A text is cut after
//! its first lines, or at a number of bytes where the lines are long, and a marker line reports how
//! many bytes went. Trimming twice with the same limits changes nothing; trimming harder adds to the
//! number in the marker.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::{
    apply,
    plan::{Insert, Plan, Splice},
};
use crate::message::{ContentBlock, Message, Text, TextBlock, ToolResult};

/// What of the tool results stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrimOptions {
    /// How many lines of a text stay. A line break at the end of a text opens no further line.
    pub lines: usize,
    /// The most bytes that these lines may have together; the cut stands between two characters.
    pub bytes: Option<usize>,
    /// How many messages at the end of the thread stay whole.
    pub keep_recent: usize,
    /// Texts with fewer bytes than this stay whole.
    pub min_bytes: usize,
    /// Whether results of calls that failed stay whole: why they failed is seldom said in the
    /// first lines.
    pub keep_errors: bool,
}

impl Default for TrimOptions {
    /// Three lines of at most 1,000 bytes, from texts of 200 bytes on. The last eight messages and
    /// errors stay whole.
    fn default() -> Self {
        Self { lines: 3, bytes: Some(1_000), keep_recent: 8, min_bytes: 200, keep_errors: true }
    }
}

/// Trimmed tool results, as a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Trimmed {
    /// The edit; empty if nothing is to be trimmed.
    pub plan: Plan,
    /// How many results are shorter for it.
    pub results: usize,
    /// By how many bytes, together.
    pub bytes_removed: u64,
}

/// Returns the plan of cutting long texts of tool results down to their first lines.
///
/// Only messages with a result that becomes shorter are new; the others pass by handle. An
/// assistant message with reasoning after the first such message is kept with all of its blocks
/// and marked [`prefix_rewritten`](field@crate::message::Message::prefix_rewritten). Texts never
/// become longer, what is no text stays, and what was legal stays legal. Takes time linear in the
/// messages and in the text that stays: what goes is not looked at.
///
/// ```
/// use threadfold::{ContentBlock, Message, Role};
/// use threadfold::compact::{TrimOptions, trim};
/// use threadfold::message::{Json, ToolResult, ToolUse};
///
/// let listing = "src/compact/trim.rs\n".repeat(40);
/// let mut thread = vec![
///     Message::user("What files are there?"),
///     Message::new(Role::Assistant, vec![ToolUse::new("t1", "list", Json::parse("{}")?).into()]),
///     Message::new(Role::User, vec![ToolResult::text("t1", listing).into()]),
/// ];
/// let trimmed = trim(&thread, &TrimOptions { lines: 1, keep_recent: 0, ..TrimOptions::default() });
/// assert_eq!((trimmed.results, trimmed.bytes_removed), (1, 761));
/// trimmed.plan.apply(&mut thread)?;
/// let result = thread[2].tool_results().next().and_then(|result| result.content.first());
/// let text = result.and_then(ContentBlock::as_text).map(|text| text.as_str());
/// assert_eq!(text, Some("src/compact/trim.rs\n[781 bytes trimmed]"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn trim(messages: &[Message], options: &TrimOptions) -> Trimmed {
    trim_after(&Plan::from_splices(messages.len(), Vec::new()), messages, options, None)
}

/// Returns the plan with the results trimmed as well that it leaves in the thread, but for those
/// in one message.
pub fn trim_after(
    plan: &Plan,
    messages: &[Message],
    options: &TrimOptions,
    except: Option<usize>,
) -> Trimmed {
    let recent = messages.len().saturating_sub(options.keep_recent);
    let mut sweep = Sweep {
        messages,
        options,
        recent,
        except,
        splices: Vec::new(),
        results: 0,
        bytes_removed: 0,
        short: String::new(),
    };
    let mut next = 0;
    for splice in plan.splices() {
        sweep.pass(next..splice.at.start);
        sweep.redo(splice);
        next = splice.at.end;
    }
    sweep.pass(next..messages.len());
    let Sweep { splices, results, bytes_removed, .. } = sweep;
    let plan = Plan::from_splices(messages.len(), splices)
        .with_stripped(plan.blocks_stripped())
        .with_reasoning_marked(messages);
    Trimmed { plan, results, bytes_removed }
}

/// One sweep over the thread.
struct Sweep<'a> {
    messages: &'a [Message],
    options: &'a TrimOptions,
    /// From here on results stay whole.
    recent: usize,
    except: Option<usize>,
    splices: Vec<Splice>,
    results: usize,
    bytes_removed: u64,
    /// What the last text was cut down to. Kept, so that its memory is.
    short: String,
}

impl Sweep<'_> {
    /// Takes up messages that no splice of the plan touches.
    fn pass(&mut self, range: Range<usize>) {
        for (index, message) in self.messages.iter().enumerate().take(range.end).skip(range.start) {
            if let Some(message) = self.trimmed(index, message) {
                let insert = vec![Insert::Message { message }];
                self.splices.push(Splice { at: index..index + 1, insert });
            }
        }
    }

    /// Takes up a splice of the plan, in which parts of old messages may stay.
    fn redo(&mut self, splice: &Splice) {
        let later = splice.insert.iter().skip(1).map(Some).chain([None]);
        let insert = splice.insert.iter().zip(later).map(|(insert, later)| {
            let Insert::Part { message: index, blocks } = insert else { return insert.clone() };
            let is_last = !matches!(later, Some(Insert::Part { message, .. }) if message == index);
            let part = self.messages.get(*index).map(|source| apply::part(source, blocks, is_last));
            let trimmed = part.and_then(|part| self.trimmed(*index, &part));
            trimmed.map_or_else(|| insert.clone(), |message| Insert::Message { message })
        });
        let insert = insert.collect();
        self.splices.push(Splice { at: splice.at.clone(), insert });
    }

    /// Returns the message with its results trimmed, if that changes it.
    fn trimmed(&mut self, index: usize, message: &Message) -> Option<Message> {
        let stays = index >= self.recent || self.except == Some(index);
        if stays {
            return None;
        }
        let content = changed(&message.content, |block| {
            let ContentBlock::ToolResult(result) = block else { return None };
            self.result(result).map(ContentBlock::ToolResult)
        })?;
        Some(message.with_content(content))
    }

    fn result(&mut self, result: &ToolResult) -> Option<ToolResult> {
        if result.is_error && self.options.keep_errors {
            return None;
        }
        let content = changed(&result.content, |block| {
            let ContentBlock::Text(block) = block else { return None };
            let text = shortened(&block.text, self.options, &mut self.short)?;
            self.bytes_removed += (block.text.len() - text.len()) as u64;
            Some(TextBlock { text, extra: block.extra.clone() }.into())
        })?;
        self.results += 1;
        Some(ToolResult {
            tool_use_id: result.tool_use_id.clone(),
            content,
            is_error: result.is_error,
            usage: result.usage.clone(),
            extra: result.extra.clone(),
        })
    }
}

/// Returns the blocks with some of them changed, if any is. Only those that stay are cloned: a
/// result that is replaced would be copied with all that it holds.
fn changed(
    blocks: &[ContentBlock],
    mut change: impl FnMut(&ContentBlock) -> Option<ContentBlock>,
) -> Option<Vec<ContentBlock>> {
    let mut places = blocks.iter().enumerate();
    let (first, block) = places.find_map(|(place, block)| Some((place, change(block)?)))?;
    let mut changed = Vec::with_capacity(blocks.len());
    changed.extend(blocks.iter().take(first).cloned());
    changed.push(block);
    changed.extend(places.map(|(_, block)| change(block).unwrap_or_else(|| block.clone())));
    Some(changed)
}

/// Returns the first lines of a text with the marker, if that is shorter than the text. They are
/// built in a buffer, so that only the new text is allocated.
fn shortened(text: &str, options: &TrimOptions, buffer: &mut String) -> Option<Text> {
    if text.len() < options.min_bytes {
        return None;
    }
    let (body, before) = without_marker(text);
    let head = head(body, options);
    let rest = body.len() - head.len();
    if rest == 0 {
        return None;
    }
    buffer.clear();
    buffer.push_str(head);
    buffer.push_str(if head.is_empty() { "" } else { "\n" });
    push_marker(buffer, before.saturating_add(rest as u64));
    (buffer.len() < text.len()).then(|| Text::from(buffer.as_str()))
}

/// The lines that stay, without the last line break; the whole text if no line goes. Bytes after the
/// limit are not read.
fn head<'t>(text: &'t str, options: &TrimOptions) -> &'t str {
    let most = options.bytes.map_or(text.len(), |bytes| bytes.min(text.len()));
    let border = (0..=most).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
    let reach = text.get(..border).unwrap_or_default();
    let end = match options.lines.checked_sub(1) {
        Some(last) => reach.match_indices('\n').nth(last).map(|(end, _)| end),
        None => Some(0),
    };
    let end = end.filter(|end| *end + 1 < text.len()).unwrap_or(border);
    let head = reach.get(..end).unwrap_or_default();
    if end < text.len() { head.trim_end_matches(['\n', '\r']) } else { head }
}

/// How the line ends that stands for what went.
const END: &str = " trimmed]";

/// Divides a text from the marker that it ends with, which says how many bytes went. Only a last
/// line that is a marker to the letter is one.
fn without_marker(text: &str) -> (&str, u64) {
    // Without this a text of one line would be looked through for the break before its last.
    if !text.ends_with(END) {
        return (text, 0);
    }
    let (body, line) = text.rsplit_once('\n').unwrap_or(("", text));
    read_marker(line).map_or((text, 0), |bytes| (body, bytes))
}

fn read_marker(line: &str) -> Option<u64> {
    let count = line.strip_prefix('[')?.strip_suffix(END)?;
    let bytes = count.split_once(' ')?.0.parse().ok()?;
    let mut written = String::new();
    push_marker(&mut written, bytes);
    (written == line).then_some(bytes)
}

/// Adds the line that stands for what went. Formatting it was a tenth of all that trimming does.
fn push_marker(out: &mut String, bytes: u64) {
    out.push('[');
    push_number(out, bytes);
    out.push_str(if bytes == 1 { " byte" } else { " bytes" });
    out.push_str(END);
}

fn push_number(out: &mut String, number: u64) {
    if number > 9 {
        push_number(out, number / 10);
    }
    out.push(char::from(b'0' + (number % 10) as u8));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Role, Usage};

    fn options(lines: usize, bytes: usize) -> TrimOptions {
        TrimOptions { lines, bytes: Some(bytes), min_bytes: 0, ..TrimOptions::default() }
    }

    fn shortened(text: &str, options: &TrimOptions) -> Option<Text> {
        super::shortened(text, options, &mut String::from("what was there before"))
    }

    #[test]
    fn a_result_in_a_message_of_the_wrong_role_is_trimmed_too() {
        let result = ToolResult::text("t1", "line\n".repeat(100));
        let thread = [Message::new(crate::Role::Assistant, vec![result.into()])];
        let options = TrimOptions { keep_recent: 0, ..TrimOptions::default() };
        assert_eq!(trim(&thread, &options).results, 1);
    }

    #[test]
    fn trimming_harder_counts_on() {
        let text = (0..40).map(|line| format!("line {line}\n")).collect::<String>();
        let gently = shortened(&text, &options(5, 1_000)).unwrap();
        assert!(gently.ends_with("line 4\n[276 bytes trimmed]"), "{gently}");
        for harder in [options(2, 1_000), options(5, 17), options(0, 1_000)] {
            assert_eq!(shortened(&gently, &harder), shortened(&text, &harder));
        }
    }

    #[test]
    fn a_cut_stands_between_characters() {
        let text = "漢".repeat(40);
        let short = shortened(&text, &options(3, 10)).unwrap();
        assert_eq!(short, "漢漢漢\n[111 bytes trimmed]");
        assert_eq!(shortened(&short, &options(3, 10)), None);
    }

    #[test]
    fn a_line_that_is_no_marker_to_the_letter_is_a_line_like_others() {
        for line in ["[1 bytes trimmed]", "[01 bytes trimmed]", "[ bytes trimmed]", "[]"] {
            assert_eq!(read_marker(line), None, "{line}");
        }
        assert_eq!(read_marker("[18446744073709551615 bytes trimmed]"), Some(u64::MAX));
    }

    #[test]
    fn a_text_of_as_many_lines_as_stay_is_left_alone() {
        let blank = "\n".repeat(40);
        assert_eq!(shortened(&blank, &options(40, 1_000)), None);
        let short = shortened(&blank, &options(39, 1_000)).unwrap();
        assert_eq!(short, "[40 bytes trimmed]");
    }

    #[test]
    fn what_would_stay_as_long_is_left_alone() {
        let text = |more: usize| format!("ab\n{}", "x".repeat(more));
        assert_eq!(shortened(&text(18), &options(1, 1_000)), None);
        let short = "ab\n[20 bytes trimmed]";
        assert_eq!(shortened(&text(19), &options(1, 1_000)), Some(short.into()));
    }

    #[test]
    fn the_parts_of_a_message_that_a_plan_keeps_are_trimmed_and_the_last_has_what_it_cost() {
        let result = |id: &str| ToolResult::text(id, "a line of a file\n".repeat(20)).into();
        let mut results = Message::new(Role::User, vec![result("t1"), result("t2")]);
        results.make_mut().usage = Some(Usage::new(1, 2));
        let mut thread = vec![Message::user("Read."), results, Message::assistant("Done.")];
        let part = |block| Insert::Part { message: 1, blocks: [block].into() };
        let note = Insert::Message { message: Message::user("And on.") };
        let splice = Splice { at: 0..2, insert: vec![note, part(0), part(1)] };
        let plan = Plan::from_splices(3, vec![splice]).with_stripped(4);
        let none_recent = TrimOptions { keep_recent: 0, ..options(1, 1_000) };
        let trimmed = trim_after(&plan, &thread, &none_recent, None);
        assert_eq!((trimmed.results, trimmed.plan.blocks_stripped()), (2, 4));
        trimmed.plan.apply(&mut thread).unwrap();
        let short = |id: &str| {
            let text = "a line of a file\n[324 bytes trimmed]";
            Message::new(Role::User, vec![ToolResult::text(id, text).into()])
        };
        let mut last = short("t2");
        last.make_mut().usage = Some(Usage::new(1, 2));
        let before = [Message::user("And on."), short("t1")];
        assert_eq!(thread, [&before[..], &[last, Message::assistant("Done.")]].concat());
    }

    #[test]
    fn only_a_text_under_the_least_size_is_left_whole() {
        let text = "line of a file\n".repeat(20);
        let least = |min_bytes| TrimOptions { min_bytes, ..options(1, 1_000) };
        let short = "line of a file\n[286 bytes trimmed]".to_owned();
        assert_eq!(shortened(&text, &least(text.len())), Some(short.into()));
        assert_eq!(shortened(&text, &least(text.len() + 1)), None);
    }
}
