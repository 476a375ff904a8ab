//! Batches: the pieces of a summary that is kept in pieces, and the text form that archives have
//! of old: a line in brackets, then what the batch says.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{compaction::CompactionId, text::Text, thread_id::ThreadId, usage::Timestamp};

/// The name of a batch: the compaction that made it, and which of its batches it is.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct BatchId {
    /// The compaction; the default one where no log numbers them.
    pub compaction: CompactionId,
    /// The place among the batches of that compaction.
    pub index: u32,
}

/// What one stretch of a thread said, in short.
///
/// A [`Summary`](super::Summary) that is a view of batches carries them, those that the view
/// leaves out too, so that the next compaction needs nothing but the thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch {
    /// Its name.
    pub id: BatchId,
    /// 0 for a batch of messages; one more than its deepest source for a batch of batches.
    pub depth: u32,
    /// When the first message of the stretch came.
    pub start: Timestamp,
    /// When the last one came.
    pub end: Timestamp,
    /// How many messages the stretch had.
    pub messages: usize,
    /// What it said.
    pub text: Text,
}

impl Batch {
    /// Returns a batch of depth 0 over no messages at no time.
    #[must_use]
    pub fn new(id: BatchId, text: impl Into<Text>) -> Self {
        Self {
            id,
            depth: 0,
            start: Timestamp::default(),
            end: Timestamp::default(),
            messages: 0,
            text: text.into(),
        }
    }

    /// Returns the batch that a text says: what [`Display`](fmt::Display) writes, and what others
    /// wrote in that form.
    ///
    /// A text that does not begin with such a line is the text of a batch of depth 0 over no
    /// messages, with `now` for its times; so is a time that cannot be read.
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
        let time = |text: &str| text.parse().unwrap_or(now);
        match head(text) {
            Some(Head { depth, start, end, messages, rest }) => {
                let (start, end) = (time(start), time(end));
                Self { id, depth, start, end, messages, text: rest.into() }
            }
            None => Self { start: now, end: now, ..Self::new(id, text) },
        }
    }

    /// Returns the label under which a store of labelled texts keeps the batch. No two batches of
    /// a thread have the same one, not even those that end at the same time.
    ///
    /// Do not look up the batches of a thread by how their labels begin: an id may begin as another
    /// one does.
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
        let Self { id: _, depth, start, end, messages, text } = self;
        write!(f, "[depth:{depth}|start:{start}|end:{end}|count:{messages}]\n{text}")
    }
}

impl fmt::Display for BatchId {
    /// Writes the number of the compaction, a dot, and the place.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.compaction, self.index)
    }
}

/// The first line of a batch's text form, and what stands below.
struct Head<'a> {
    depth: u32,
    start: &'a str,
    end: &'a str,
    messages: usize,
    rest: &'a str,
}

/// Reads the line in brackets. It must be the whole first line.
fn head(text: &str) -> Option<Head<'_>> {
    let (line, rest) = text.split_once('\n').unwrap_or((text, ""));
    let fields = line.strip_prefix("[depth:")?.strip_suffix(']')?;
    let (depth, fields) = fields.split_once("|start:")?;
    let (start, fields) = fields.split_once("|end:")?;
    let (end, messages) = fields.split_once("|count:")?;
    let (depth, messages) = (depth.parse().ok()?, messages.parse().ok()?);
    Some(Head { depth, start, end, messages, rest })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id() -> BatchId {
        BatchId { compaction: CompactionId(3), index: 4 }
    }

    #[test]
    fn a_batch_that_is_written_is_read_again() {
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
    fn a_text_without_the_line_is_all_text() {
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
