//! From ranges to a plan: resolve, check, build.
//!
//! Every checkpoint is resolved to a position of the original thread. Then the ranges are checked
//! against each other and against the tool calls in the thread. Then the plan is built in one sweep
//! from the first message that an edit changes. No lookup ever sees a half-edited thread.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::{
    calls,
    edit::{self, CompactError, Edit},
    legality,
    plan::{Insert, Plan, Splice},
    position::{CheckpointIndex, CheckpointPosition, Position},
    replacements::Replacement,
};
use crate::message::{CompactionId, ContentBlock, Message, Role, Summary};

/// How a thread is compacted: what is stripped from messages that stay, starting at the first
/// message that an edit changes. Messages that become empty are removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CompactOptions {
    /// Strips system reminders from user messages.
    pub strip_reminders: bool,
    /// Strips reasoning from assistant messages, readable or encrypted.
    pub strip_thinking: bool,
    /// Keeps the reasoning of an open tool loop, because most providers require it.
    pub keep_open_loop: bool,
    /// The number of this compaction in a log, recorded in the summaries.
    pub compaction: Option<CompactionId>,
}

impl Plan {
    /// Returns the plan of replacing ranges, given by checkpoints, with summaries.
    ///
    /// Ranges may come in any order and may adjoin. An assistant message with the summary replaces
    /// each range; a blank summary deletes it. From the message with the first `from` on, messages
    /// that stay are stripped as the options say. Without replacements the plan is empty.
    ///
    /// ```
    /// use threadfold::{ContentBlock, Message, Plan, Replacement, compact::CompactOptions};
    ///
    /// let mut question = Message::user("hi");
    /// question.make_mut().content.push(ContentBlock::checkpoint("aaaaaa".parse()?));
    /// let thread = [question, Message::assistant("hello"), Message::user("bye")];
    /// let ranges = [Replacement::new("").from("aaaaaa".parse()?)];
    /// let plan = Plan::new(&thread, &ranges, &CompactOptions::default())?;
    /// assert_eq!(plan.messages_after(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`CompactError`] with the index of the replacement and the checkpoints or calls.
    pub fn new(
        messages: &[Message],
        replacements: &[Replacement],
        options: &CompactOptions,
    ) -> Result<Self, CompactError> {
        Self::located(messages, replacements, options, &CheckpointIndex::of(messages))
    }

    /// Like [`new`](Self::new), with an index of the checkpoints that the caller already has.
    #[doc(hidden)]
    pub fn located(
        messages: &[Message],
        replacements: &[Replacement],
        options: &CompactOptions,
        checkpoints: &CheckpointIndex,
    ) -> Result<Self, CompactError> {
        let edits = resolve_all(messages, replacements, options, checkpoints)?;
        // A caller's replacements are carried out in the whole thread.
        plan(messages, edits, options, messages.len())
    }

    /// Returns the plan of edits: ranges of blocks to remove, and the messages to insert in place
    /// of each. Unlike a replacement, an edit can insert any messages; one with an empty range only
    /// inserts.
    ///
    /// ```
    /// use threadfold::{Message, Plan};
    /// use threadfold::compact::{CompactOptions, Position};
    ///
    /// let thread = [Message::user("hi"), Message::assistant("hello")];
    /// let first = Position::before(0)..Position::before(1);
    /// let plan = Plan::from_edits(&thread, vec![(first, Vec::new())], &CompactOptions::default())?;
    /// assert_eq!(plan.messages_after(), 1);
    /// # Ok::<(), threadfold::compact::CompactError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`CompactError`] with the index of the edit.
    pub fn from_edits(
        messages: &[Message],
        edits: Vec<(Range<Position>, Vec<Message>)>,
        options: &CompactOptions,
    ) -> Result<Self, CompactError> {
        let edits = edits.into_iter().map(|(range, insert)| Edit { range, insert });
        let unread_from = legality::unread_from(messages);
        Self::from_edits_within(messages, edits.collect(), options, unread_from)
    }

    /// Like [`from_edits`](Self::from_edits). Reminders stay from this message on.
    pub(super) fn from_edits_within(
        messages: &[Message],
        edits: Vec<Edit>,
        options: &CompactOptions,
        unread_from: usize,
    ) -> Result<Self, CompactError> {
        for (index, edit) in edits.iter().enumerate() {
            check_range(messages, index, edit)?;
        }
        plan(messages, edits, options, unread_from)
    }
}

impl Default for CompactOptions {
    /// Strips everything except the reasoning of an open tool loop.
    fn default() -> Self {
        Self { strip_reminders: true, strip_thinking: true, keep_open_loop: true, compaction: None }
    }
}

/// Returns the edit for each replacement, in the same order. No edit has an empty range.
pub(super) fn resolve_all(
    messages: &[Message],
    replacements: &[Replacement],
    options: &CompactOptions,
    checkpoints: &CheckpointIndex,
) -> Result<Vec<Edit>, CompactError> {
    let resolved = replacements.iter().enumerate().map(|(index, replacement)| {
        let range = resolve(messages, index, replacement, checkpoints)?;
        let summary = Summary::new(replacement.summary.clone());
        let summary = Summary { compaction: options.compaction, ..summary };
        let is_blank = summary.text.is_blank();
        let insert = (!is_blank).then(|| Message::summary(Role::Assistant, summary));
        Ok(Edit { range, insert: insert.into_iter().collect() })
    });
    resolved.collect()
}

/// Returns the range of a replacement, which is not empty.
fn resolve(
    messages: &[Message],
    index: usize,
    replacement: &Replacement,
    checkpoints: &CheckpointIndex,
) -> Result<Range<Position>, CompactError> {
    let Replacement { from, to, .. } = *replacement;
    let [start, end] = [(from, 0), (to, messages.len())].map(|(id, open)| match id {
        None => Ok(Position::before(open)),
        Some(id) => match checkpoints.find(id) {
            Some(CheckpointPosition::At(position)) => Ok(position),
            Some(CheckpointPosition::Ambiguous) => {
                Err(CompactError::AmbiguousCheckpoint { index, id })
            }
            None => Err(CompactError::UnknownCheckpoint { index, id }),
        },
    });
    let (start, end) = (start?, end?);
    // Normalized, so that a range between the end of a message and the start of the next is empty.
    match edit::normalized(messages, start).cmp(&edit::normalized(messages, end)) {
        std::cmp::Ordering::Less => Ok(start..end),
        std::cmp::Ordering::Equal => Err(CompactError::Empty { index, from, to }),
        std::cmp::Ordering::Greater => Err(CompactError::Inverted { index, from, to }),
    }
}

fn check_range(messages: &[Message], index: usize, edit: &Edit) -> Result<(), CompactError> {
    for at in [edit.range.start, edit.range.end] {
        let blocks = messages.get(at.message).map_or(0, |message| message.content.len());
        if at.message > messages.len() || at.block > blocks {
            return Err(CompactError::OutOfRange { index, at, messages: messages.len() });
        }
    }
    if edit.range.end < edit.range.start {
        return Err(CompactError::Inverted { index, from: None, to: None });
    }
    Ok(())
}

/// Returns the plan of edits whose positions are in the thread.
fn plan(
    messages: &[Message],
    edits: Vec<Edit>,
    options: &CompactOptions,
    unread_from: usize,
) -> Result<Plan, CompactError> {
    // Errors name an edit by its index before sorting.
    let mut edits: Vec<(usize, Edit)> = edits.into_iter().enumerate().collect();
    edits.sort_by_key(|(_, edit)| (edit.range.start, edit.range.end));
    // Sorted by start, so if any ranges overlap, two neighbours do.
    for ((first, left), (second, right)) in edits.iter().zip(edits.iter().skip(1)) {
        if right.range.start < left.range.end {
            return Err(CompactError::Overlap { first: *first, second: *second });
        }
    }
    calls::check(messages, &edits)?;
    Ok(Sweep::new(messages, &edits, options, unread_from).run(edits))
}

/// One sweep over the thread from the first message that an edit touches.
struct Sweep<'a> {
    messages: &'a [Message],
    options: &'a CompactOptions,
    /// The first message whose reasoning stays.
    loop_from: usize,
    /// The first message that the model has not read. Its reminders stay.
    unread_from: usize,
    /// The first message that the sweep has neither kept nor put into a splice yet.
    next: usize,
    insert: Vec<Insert>,
    splices: Vec<Splice>,
    stripped: usize,
}

impl<'a> Sweep<'a> {
    fn new(
        messages: &'a [Message],
        edits: &[(usize, Edit)],
        options: &'a CompactOptions,
        unread_from: usize,
    ) -> Self {
        let next = edits.first().map_or(messages.len(), |(_, edit)| edit.range.start.message);
        let open_loop = legality::open_loop(messages).filter(|_| options.keep_open_loop);
        let loop_from = open_loop.unwrap_or(messages.len());
        Self {
            messages,
            options,
            loop_from,
            unread_from,
            next,
            insert: Vec::new(),
            splices: Vec::new(),
            stripped: 0,
        }
    }

    fn run(mut self, edits: Vec<(usize, Edit)>) -> Plan {
        let mut kept_from = Position::before(self.next);
        for (_, edit) in edits {
            self.keep(kept_from..edit.range.start);
            for message in edit.insert {
                self.insert.push(Insert::Message { message });
            }
            kept_from = edit.range.end;
        }
        let end = Position::before(self.messages.len());
        self.keep(kept_from..end);
        self.close(self.messages.len());
        Plan::from_splices(self.messages.len(), self.splices)
            .with_stripped(self.stripped)
            .with_reasoning_marked(self.messages)
    }

    /// Keeps a range of blocks except those to be stripped.
    fn keep(&mut self, range: Range<Position>) {
        let until = self.messages.iter().enumerate().take(range.end.message.saturating_add(1));
        for (index, message) in until.skip(range.start.message) {
            // Only the first and the last message of the range may be cut.
            let count = message.content.len();
            let first = if index == range.start.message { range.start.block } else { 0 };
            let last = if index == range.end.message { range.end.block } else { count };
            let within = first..last.min(count);
            let blocks: Vec<u32> = within
                .clone()
                .filter(|block| !self.strips(index, message, *block))
                .filter_map(|block| u32::try_from(block).ok())
                .collect();
            self.stripped += within.len().saturating_sub(blocks.len());
            if blocks.is_empty() {
                continue;
            }
            // A message that stays whole ends the splice, so that its handle is not replaced.
            if blocks.len() == count {
                self.close(index);
                self.next = index + 1;
            } else {
                self.keep_part(index, blocks);
            }
        }
    }

    /// Keeps some blocks of a message. If nothing was inserted since the last part of the same
    /// message, both become one message.
    fn keep_part(&mut self, index: usize, more: Vec<u32>) {
        match self.insert.last_mut() {
            Some(Insert::Part { message, blocks }) if *message == index => blocks.extend(more),
            Some(Insert::Part { .. } | Insert::Message { .. }) | None => {
                self.insert.push(Insert::Part { message: index, blocks: more });
            }
        }
    }

    fn strips(&self, index: usize, message: &Message, block: usize) -> bool {
        let Some(block) = message.content.get(block) else { return false };
        let CompactOptions { strip_reminders, strip_thinking, .. } = *self.options;
        match (message.role, block) {
            (Role::User, ContentBlock::SystemReminder(_)) => {
                strip_reminders && index < self.unread_from
            }
            (Role::Assistant, block) => {
                strip_thinking && index < self.loop_from && block.is_reasoning()
            }
            (Role::System | Role::User, _) => false,
        }
    }

    /// Ends the splice before message `end`: everything from `next` on is removed.
    fn close(&mut self, end: usize) {
        if self.next < end || !self.insert.is_empty() {
            let insert = std::mem::take(&mut self.insert);
            self.splices.push(Splice { at: self.next..end, insert });
        }
    }
}
