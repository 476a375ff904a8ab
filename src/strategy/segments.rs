//! The parts of a model's summary that later compactions leave as they are.
//!
//! A summary of a summary loses something each time. So a summary is composed of segments, one after
//! the other, and a compaction writes only the newest. Segments merge like the digits of a binary
//! counter: a new segment has depth 0, and as long as the last one has the same depth, the model
//! rewrites both as one of the next depth. After *n* compactions nothing was rewritten more than
//! log2 *n* times, and what stands is at the beginning of the summary, byte for byte.

use crate::{
    message::{CompactionId, Message, Segment, Summary},
    tokens::TokenCounter,
};

/// The segments of the next summary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Segments {
    /// What stands of the earlier summary.
    standing: Vec<Segment>,
    /// The depth of the segment to write.
    depth: u32,
}

impl Segments {
    /// Reads the segments of the earlier summary among these messages. None stand if there is no
    /// such summary or a second one, if its text does not begin with them, or if they have more than
    /// `most` tokens.
    pub(super) fn of(messages: &[Message], most: u64, counter: &dyn TokenCounter) -> Self {
        let mut summaries = messages.iter().flat_map(Message::summaries);
        let Some((earlier, None)) = summaries.next().map(|first| (first, summaries.next())) else {
            return Self::default();
        };
        let mut segments = Self { standing: earlier.segments.to_vec(), depth: 0 };
        while segments.standing.pop_if(|last| last.depth <= segments.depth).is_some() {
            segments.depth += 1;
        }
        let text = segments.text();
        let stands = earlier.text.starts_with(&text) && counter.text(&text) <= most;
        if stands { segments } else { Self { standing: Vec::new(), ..segments } }
    }

    /// The text that stands; empty if the model writes everything.
    pub(super) fn text(&self) -> String {
        let texts = self.standing.iter().map(|segment| segment.text.trim());
        texts.collect::<Vec<_>>().join("\n\n")
    }

    /// What the request says about the text that stands.
    pub(super) fn request(&self) -> Option<String> {
        /// The characters of its end that name the place.
        const END: usize = 80;
        let text = self.text();
        let line = text.lines().rev().find(|line| !line.trim().is_empty())?.trim();
        let skipped = line.chars().count().saturating_sub(END);
        let end: String = line.chars().skip(skipped).collect();
        Some(format!("{}\n{end}", STANDS.trim_end()))
    }

    /// Returns the whole summary with a new segment at its end.
    pub(super) fn with(self, text: &str, compaction: Option<CompactionId>) -> Summary {
        let whole = [self.text().as_str(), text.trim()]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join("\n\n");
        let segment = Segment { depth: self.depth, text: text.trim().into() };
        let segments = self.standing.into_iter().chain([segment]).collect();
        Summary { compaction, segments, ..Summary::new(whole) }
    }
}

/// The part of a request that says what stands.
const STANDS: &str = include_str!("prompts/summarize_stands.md");
