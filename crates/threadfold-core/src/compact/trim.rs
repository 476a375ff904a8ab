//! Trimming tool results: only the first lines of each long text stay.
//!
//! Calls, ids and everything else stay unchanged, so no call loses its result. A text is cut after
//! its first lines, or at a number of bytes if the lines are long, and a marker line states how
//! many bytes were removed. Trimming again with the same limits changes nothing; with tighter
//! limits it adds to the number in the marker.
//!
//! The marker counts bytes, not lines, because counting lines would read the whole removed text.
//! Only the kept bytes and the end, where an earlier marker would be, are read.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::{
    apply,
    plan::{Insert, Plan, Splice},
};
use crate::message::{ContentBlock, Message, Text, TextBlock, ToolResult, boundary_before};

/// Cuts long texts of tool results to their first lines and changes nothing else. The fields set
/// how much stays.
///
/// As a strategy it calls no model. If these options miss the target of the brief, it tries
/// stricter ones; the strictest leave one line of at most 100 bytes of every result.
///
/// ```
/// use threadfold::{Message, Role, strategy::*};
/// use threadfold::message::{Json, ToolResult, ToolUse};
///
/// let mut thread = vec![
///     Message::user("What files are there?"),
///     Message::new(Role::Assistant, vec![ToolUse::new("t1", "list", Json::parse("{}")?).into()]),
///     Message::new(Role::User, vec![ToolResult::text("t1", "a.rs\n".repeat(400)).into()]),
/// ];
/// thread.extend(["Four hundred.", "All of them called a.rs."].map(Message::assistant));
/// let view = View::new(Snapshot::new(thread), Brief::default());
/// let strategy = TrimToolResults { keep_recent: 2, ..TrimToolResults::default() };
/// let proposal = without_model(&strategy, &view)?;
/// assert_eq!(view.thread.accept(&proposal.plan, &view.brief)?.len(), 5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrimToolResults {
    /// The number of lines of a text that stay. A line break at the end of a text starts no further
    /// line.
    pub lines: usize,
    /// The maximum number of bytes that these lines may have together, cut at a character boundary;
    /// `None` for no limit.
    pub bytes: Option<usize>,
    /// The number of messages at the end of the thread that are not trimmed.
    pub keep_recent: usize,
    /// Texts with fewer bytes are not trimmed.
    pub min_bytes: usize,
    /// Keeps error results whole, because their first lines rarely state the cause.
    pub keep_errors: bool,
    /// Keeps pictures and documents in results. Otherwise a note takes the place of each.
    pub keep_media: bool,
}

impl Default for TrimToolResults {
    /// Three lines of at most 1,000 bytes, for texts of 200 bytes or more. The last eight messages,
    /// error results and media are not trimmed.
    fn default() -> Self {
        Self {
            lines: 3,
            bytes: Some(1_000),
            keep_recent: 8,
            min_bytes: 200,
            keep_errors: true,
            keep_media: true,
        }
    }
}

/// Returns the plan that cuts long texts of tool results to their first lines.
///
/// Messages without a shortened result keep their handles. An assistant message with reasoning
/// after the first change keeps all of its blocks and is marked
/// [`prefix_rewritten`](field@crate::message::Message::prefix_rewritten). Texts never become
/// longer, other blocks stay, and a legal thread stays legal. Time is linear in the number of
/// messages and in the text that stays; removed text is not read.
///
/// ```
/// use threadfold::{ContentBlock, Message, Role};
/// use threadfold::compact::{TrimToolResults, trim};
/// use threadfold::message::{Json, ToolResult, ToolUse};
///
/// let listing = "src/compact/trim.rs\n".repeat(40);
/// let mut thread = vec![
///     Message::user("What files are there?"),
///     Message::new(Role::Assistant, vec![ToolUse::new("t1", "list", Json::parse("{}")?).into()]),
///     Message::new(Role::User, vec![ToolResult::text("t1", listing).into()]),
/// ];
/// let options = TrimToolResults { lines: 1, keep_recent: 0, ..TrimToolResults::default() };
/// trim(&thread, &options).apply(&mut thread)?;
/// let result = thread[2].tool_results().next().and_then(|result| result.content.first());
/// let text = result.and_then(ContentBlock::as_text).map(|text| text.as_str());
/// assert_eq!(text, Some("src/compact/trim.rs\n[781 bytes trimmed]"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn trim(messages: &[Message], options: &TrimToolResults) -> Plan {
    trim_after(&Plan::from_splices(messages.len(), Vec::new()), messages, options, &|_| false)
}

/// Returns the plan with trimming added: it also trims the results that it leaves in the thread,
/// except those in messages that are `spared`.
pub fn trim_after(
    plan: &Plan,
    messages: &[Message],
    options: &TrimToolResults,
    spared: &dyn Fn(usize) -> bool,
) -> Plan {
    let recent = messages.len().saturating_sub(options.keep_recent);
    let mut sweep =
        Sweep { messages, options, recent, spared, splices: Vec::new(), buffer: String::new() };
    let mut next = 0;
    for splice in plan.splices() {
        sweep.trim_untouched(next..splice.at.start);
        sweep.trim_splice(splice);
        next = splice.at.end;
    }
    sweep.trim_untouched(next..messages.len());
    Plan::from_splices(messages.len(), sweep.splices)
        .with_stripped(plan.blocks_stripped())
        .with_reasoning_marked(messages)
}

/// One sweep over the thread.
struct Sweep<'a> {
    messages: &'a [Message],
    options: &'a TrimToolResults,
    /// The first message that is too recent to be trimmed.
    recent: usize,
    spared: &'a dyn Fn(usize) -> bool,
    splices: Vec<Splice>,
    /// Holds the text that is being shortened. It is reused, so that memory is allocated only once.
    buffer: String,
}

impl Sweep<'_> {
    /// Trims messages that the plan does not change.
    fn trim_untouched(&mut self, range: Range<usize>) {
        for (index, message) in self.messages.iter().enumerate().take(range.end).skip(range.start) {
            if let Some(message) = self.trimmed(index, message) {
                let insert = vec![Insert::Message { message }];
                self.splices.push(Splice { at: index..index + 1, insert });
            }
        }
    }

    /// Trims the parts of old messages that a splice of the plan keeps.
    fn trim_splice(&mut self, splice: &Splice) {
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

    /// Returns the message with its results trimmed; `None` if that changes nothing.
    fn trimmed(&mut self, index: usize, message: &Message) -> Option<Message> {
        if index >= self.recent || (self.spared)(index) {
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
            let ContentBlock::Text(block) = block else {
                let note = media_note(block).filter(|_| !self.options.keep_media)?;
                return Some(ContentBlock::text(note));
            };
            let text = shortened(&block.text, self.options, &mut self.buffer)?;
            Some(TextBlock { text, extra: block.extra.clone() }.into())
        })?;
        Some(ToolResult {
            tool_use_id: result.tool_use_id.clone(),
            content,
            is_error: result.is_error,
            usage: result.usage.clone(),
            extra: result.extra.clone(),
        })
    }
}

/// Returns the note in place of a picture or a document; `None` for any other block.
pub fn media_note(block: &ContentBlock) -> Option<&'static str> {
    match block {
        ContentBlock::Image(_) => Some("[image omitted]"),
        ContentBlock::Document(_) => Some("[document omitted]"),
        ContentBlock::Text(_)
        | ContentBlock::Thinking(_)
        | ContentBlock::RedactedThinking(_)
        | ContentBlock::ToolUse(_)
        | ContentBlock::ToolResult(_)
        | ContentBlock::ServerToolUse(_)
        | ContentBlock::ServerToolResult(_)
        | ContentBlock::SystemReminder(_)
        | ContentBlock::ContextUpdate(_)
        | ContentBlock::Checkpoint(_)
        | ContentBlock::Summary(_)
        | ContentBlock::Opaque(_) => None,
    }
}

/// Returns the blocks with `change` applied; `None` if it changes none. Only unchanged blocks are
/// cloned: cloning a result copies its content.
fn changed(
    blocks: &[ContentBlock],
    mut change: impl FnMut(&ContentBlock) -> Option<ContentBlock>,
) -> Option<Vec<ContentBlock>> {
    let mut remaining = blocks.iter().enumerate();
    let (first, block) = remaining.find_map(|(index, block)| Some((index, change(block)?)))?;
    let mut changed = Vec::with_capacity(blocks.len());
    changed.extend(blocks.iter().take(first).cloned());
    changed.push(block);
    changed.extend(remaining.map(|(_, block)| change(block).unwrap_or_else(|| block.clone())));
    Some(changed)
}

/// Returns the first lines of a text with the marker; `None` if that is not shorter than the text.
/// They are built in a buffer, so that only the new text is allocated.
fn shortened(text: &str, options: &TrimToolResults, buffer: &mut String) -> Option<Text> {
    if text.len() < options.min_bytes {
        return None;
    }
    let (body, already_removed) = without_marker(text);
    let head = head(body, options);
    let removed = body.len() - head.len();
    if removed == 0 {
        return None;
    }
    buffer.clear();
    buffer.push_str(head);
    buffer.push_str(if head.is_empty() { "" } else { "\n" });
    push_marker(buffer, already_removed.saturating_add(removed as u64));
    (buffer.len() < text.len()).then(|| Text::from(buffer.as_str()))
}

/// Returns the lines that stay, without the last line break; the whole text if no line is removed.
/// Bytes after the limit are not read.
fn head<'t>(text: &'t str, options: &TrimToolResults) -> &'t str {
    let most = options.bytes.unwrap_or(text.len());
    let (within, _) = text.split_at(boundary_before(text, most));
    let end = match options.lines.checked_sub(1) {
        Some(last) => within.match_indices('\n').nth(last).map(|(end, _)| end),
        None => Some(0),
    };
    let end = end.filter(|end| *end + 1 < text.len());
    let head = end.map_or(within, |end| within.split_at(end).0);
    if head.len() < text.len() { head.trim_end_matches(['\n', '\r']) } else { head }
}

/// The end of the marker line.
const END: &str = " trimmed]";

/// Splits off the marker line at the end of a text and returns the number of bytes in it. The line
/// must be exactly as [`push_marker`] writes it.
fn without_marker(text: &str) -> (&str, u64) {
    // Skips the search for the last line break, which reads the whole text if it has one line.
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

/// Appends the marker line. `format!` is avoided, because it took a tenth of the time of trimming.
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

    fn options(lines: usize, bytes: usize) -> TrimToolResults {
        TrimToolResults { lines, bytes: Some(bytes), min_bytes: 0, ..TrimToolResults::default() }
    }

    fn shortened(text: &str, options: &TrimToolResults) -> Option<Text> {
        super::shortened(text, options, &mut String::from("what was there before"))
    }

    #[test]
    fn a_result_in_a_message_of_the_wrong_role_is_trimmed_too() {
        let result = ToolResult::text("t1", "line\n".repeat(100));
        let thread = [Message::new(crate::Role::Assistant, vec![result.into()])];
        let options = TrimToolResults { keep_recent: 0, ..TrimToolResults::default() };
        assert_eq!(trim(&thread, &options).splices().len(), 1);
    }

    #[test]
    fn trimming_with_tighter_limits_adds_to_the_number_in_the_marker() {
        let text = (0..40).map(|line| format!("line {line}\n")).collect::<String>();
        let gently = shortened(&text, &options(5, 1_000)).unwrap();
        assert!(gently.ends_with("line 4\n[276 bytes trimmed]"), "{gently}");
        for harder in [options(2, 1_000), options(5, 17), options(0, 1_000)] {
            assert_eq!(shortened(&gently, &harder), shortened(&text, &harder));
        }
    }

    #[test]
    fn a_picture_gives_way_to_a_note_only_if_media_are_not_kept() {
        let source = crate::message::MediaSource::Url { url: "https://example.com/a.png".into() };
        let picture = ContentBlock::Image(crate::message::Image::new(source));
        let result = ToolResult { content: vec![picture], ..ToolResult::text("t1", "") };
        let mut thread = vec![Message::new(Role::User, vec![result.into()])];
        let kept = TrimToolResults { keep_recent: 0, ..options(1, 100) };
        assert!(trim(&thread, &kept).splices().is_empty());
        let dropped = TrimToolResults { keep_media: false, ..kept };
        trim(&thread, &dropped).apply(&mut thread).unwrap();
        let note = Message::new(Role::User, vec![ToolResult::text("t1", "[image omitted]").into()]);
        assert_eq!(thread, [note]);
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        let text = "漢".repeat(40);
        let short = shortened(&text, &options(3, 10)).unwrap();
        assert_eq!(short, "漢漢漢\n[111 bytes trimmed]");
        assert_eq!(shortened(&short, &options(3, 10)), None);
    }

    #[test]
    fn a_line_that_only_resembles_a_marker_is_ordinary_text() {
        for line in ["[1 bytes trimmed]", "[01 bytes trimmed]", "[ bytes trimmed]", "[]"] {
            assert_eq!(read_marker(line), None, "{line}");
        }
        assert_eq!(read_marker("[18446744073709551615 bytes trimmed]"), Some(u64::MAX));
    }

    #[test]
    fn a_text_with_no_more_lines_than_the_limit_is_unchanged() {
        let blank = "\n".repeat(40);
        assert_eq!(shortened(&blank, &options(40, 1_000)), None);
        let short = shortened(&blank, &options(39, 1_000)).unwrap();
        assert_eq!(short, "[40 bytes trimmed]");
    }

    #[test]
    fn a_text_that_would_not_become_shorter_is_unchanged() {
        let text = |more: usize| format!("ab\n{}", "x".repeat(more));
        assert_eq!(shortened(&text(18), &options(1, 1_000)), None);
        let short = "ab\n[20 bytes trimmed]";
        assert_eq!(shortened(&text(19), &options(1, 1_000)), Some(short.into()));
    }

    #[test]
    fn kept_parts_of_a_message_are_trimmed_and_the_last_has_its_usage() {
        let result = |id: &str| ToolResult::text(id, "a line of a file\n".repeat(20)).into();
        let mut results = Message::new(Role::User, vec![result("t1"), result("t2")]);
        results.make_mut().usage = Some(Usage::new(1, 2));
        let mut thread = vec![Message::user("Read."), results, Message::assistant("Done.")];
        let part = |block| Insert::Part { message: 1, blocks: [block].into() };
        let note = Insert::Message { message: Message::user("And on.") };
        let splice = Splice { at: 0..2, insert: vec![note, part(0), part(1)] };
        let plan = Plan::from_splices(3, vec![splice]).with_stripped(4);
        let none_recent = TrimToolResults { keep_recent: 0, ..options(1, 1_000) };
        let trimmed = trim_after(&plan, &thread, &none_recent, &|_| false);
        assert_eq!(trimmed.blocks_stripped(), 4);
        trimmed.apply(&mut thread).unwrap();
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
    fn only_a_text_below_min_bytes_is_left_whole() {
        let text = "line of a file\n".repeat(20);
        let least = |min_bytes| TrimToolResults { min_bytes, ..options(1, 1_000) };
        let short = "line of a file\n[286 bytes trimmed]".to_owned();
        assert_eq!(shortened(&text, &least(text.len())), Some(short.into()));
        assert_eq!(shortened(&text, &least(text.len() + 1)), None);
    }
}
