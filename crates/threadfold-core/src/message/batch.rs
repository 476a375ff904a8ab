//! Batches: summaries of consecutive ranges of a thread. A summary message stores its batches as
//! data, next to the text that is composed from them. In text form a batch is a header line in
//! brackets, followed by its text.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{compaction::CompactionId, text::Text, thread_id::ThreadId, usage::Timestamp};

/// The name of a batch: the compaction that created it, and its index there.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct BatchId {
    /// The compaction, or the default id if no log numbers compactions.
    pub compaction: CompactionId,
    /// The index among the batches of that compaction, from 0.
    pub index: u32,
}

/// A summary of one range of a thread.
///
/// A [`Summary`](super::Summary) that is composed from batches carries all of them, including those
/// that its text omits, so that the next compaction needs only the thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch {
    /// The name of the batch.
    pub id: BatchId,
    /// 0 for a batch made from messages; for one made from batches, one more than the deepest of
    /// them.
    pub depth: u32,
    /// When the first message of the range was appended.
    pub start: Timestamp,
    /// When the last message of the range was appended.
    pub end: Timestamp,
    /// How many messages the range had.
    pub messages: usize,
    /// The summary of the range.
    pub text: Text,
    /// The batches of which it is made, and which it replaces. Empty for one made from messages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replaces: Vec<BatchId>,
}

impl Batch {
    /// Returns a batch of depth 0 that covers no messages, replaces none and has the default times.
    #[must_use]
    pub fn new(id: BatchId, text: impl Into<Text>) -> Self {
        Self {
            id,
            depth: 0,
            start: Timestamp::default(),
            end: Timestamp::default(),
            messages: 0,
            text: text.into(),
            replaces: Vec::new(),
        }
    }

    /// Returns the batch that a text describes in the form that [`Display`](fmt::Display) writes.
    ///
    /// Never fails. A text without the header line becomes the text of a batch of depth 0 over no
    /// messages, with `now` for both times; a time that cannot be read becomes `now` too.
    ///
    /// ```
    /// use threadfold::message::{Batch, BatchId, Timestamp};
    ///
    /// let text = "[depth:1|start:2025-01-01T08:00:00Z|end:tonight|count:12]\nIt compiles.";
    /// let batch = Batch::parse(BatchId::default(), text, Timestamp(7));
    /// assert_eq!((batch.depth, batch.messages, batch.end), (1, 12, Timestamp(7)));
    /// assert_eq!(batch.text, "It compiles.");
    /// ```
    #[must_use]
    pub fn parse(id: BatchId, text: &str, now: Timestamp) -> Self {
        Self::read(id, text, now).unwrap_or_else(|| Self {
            start: now,
            end: now,
            ..Self::new(id, text)
        })
    }

    /// Reads a text whose first line is a header.
    fn read(id: BatchId, text: &str, now: Timestamp) -> Option<Self> {
        let (line, text) = text.split_once('\n').unwrap_or((text, ""));
        let fields = line.strip_prefix("[depth:")?.strip_suffix(']')?;
        let (depth, fields) = fields.split_once("|start:")?;
        let (start, fields) = fields.split_once("|end:")?;
        let (end, messages) = fields.split_once("|count:")?;
        let (depth, messages) = (depth.parse().ok()?, messages.parse().ok()?);
        let (start, end) = (start.parse().unwrap_or(now), end.parse().unwrap_or(now));
        Some(Self { depth, start, end, messages, ..Self::new(id, text) })
    }

    /// Returns a label for stores that keep texts by label. It is unique among the batches of a
    /// thread, even among those that end at the same time.
    ///
    /// Do not find the batches of a thread by the prefix of their labels: one thread id may be a
    /// prefix of another.
    ///
    /// ```
    /// use threadfold::message::{Batch, BatchId};
    ///
    /// let label = Batch::new(BatchId::default(), "It compiles.").label(&"t1".parse()?);
    /// assert_eq!(label, "compaction-batch-t1-1970-01-01T00:00:00.000Z-0.0");
    /// # Ok::<(), threadfold::message::InvalidValue>(())
    /// ```
    #[must_use]
    pub fn label(&self, thread: &ThreadId) -> String {
        format!("compaction-batch-{thread}-{}-{}", self.end, self.id)
    }
}

impl fmt::Display for Batch {
    /// Writes `[depth:N|start:TIME|end:TIME|count:M]`, a line break, and the text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id: _, depth, start, end, messages, text, replaces: _ } = self;
        write!(f, "[depth:{depth}|start:{start}|end:{end}|count:{messages}]\n{text}")
    }
}

impl fmt::Display for BatchId {
    /// Writes the number of the compaction, a dot, and the index.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.compaction, self.index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id() -> BatchId {
        BatchId { compaction: CompactionId(3), index: 4 }
    }

    #[test]
    fn display_and_parse_round_trip() {
        let times = [(0, 0), (5, u64::MAX), (1_709_164_799_042, 7)];
        for text in ["", "\n", "a\nb\r\n", "[depth:1|start:x|end:y|count:2]\nz"] {
            for (start, end) in times {
                let (start, end) = (Timestamp(start), Timestamp(end));
                let (depth, messages) = (u32::MAX, usize::MAX);
                let batch = Batch { depth, start, end, messages, ..Batch::new(id(), text) };
                assert_eq!(Batch::parse(id(), &batch.to_string(), Timestamp(9)), batch);
            }
        }
    }

    #[test]
    fn a_text_without_a_header_line_becomes_the_text_of_the_batch() {
        let texts = [
            "",
            "We read a.txt.",
            " [depth:1|start:x|end:y|count:2]\nindented",
            "first\n[depth:1|start:x|end:y|count:2]\nlater",
            "[depth:1|start:x|end:y|count:2] trailing\nz",
            "[depth:1|end:y|start:x|count:2]\nwrong order",
            "[depth:-1|start:x|end:y|count:2]\nnegative",
            "[depth:1|start:x|end:y|count:99999999999999999999999]\ntoo many",
        ];
        for text in texts {
            let now = Timestamp(9);
            let expected = Batch { start: now, end: now, ..Batch::new(id(), text) };
            assert_eq!(Batch::parse(id(), text, now), expected, "{text:?}");
        }
    }
}
