//! The text of a recall, read back into its passages.

use std::ops::Range;

use serde_json::Value;
use threadfold::recall::{Recall, RecallError};

/// What a recall answered.
#[derive(Debug)]
pub(crate) struct Recalled {
    /// The whole text, as the model gets it.
    pub(crate) text: String,
    pub(crate) passages: Vec<Passage>,
    /// The offset of a request for the rest.
    pub(crate) next: Option<u64>,
}

/// A message, or a piece of it.
#[derive(Debug)]
pub(crate) struct Passage {
    pub(crate) number: u64,
    pub(crate) text: String,
    /// The range of a piece in the text of the message; `None` for the whole text.
    pub(crate) bytes: Option<Range<usize>>,
}

pub(crate) fn recalled(recall: &Recall<'_>, input: &Value) -> Result<Recalled, RecallError> {
    recall.call(input).map(read)
}

fn read(text: String) -> Recalled {
    let head = text.lines().next().unwrap_or_default();
    let rest = ["More: the same", "The rest: "].iter().find_map(|mark| head.split_once(mark));
    let next = rest.and_then(|(_, rest)| rest.split_once(" with offset "));
    let next = next.map(|(_, offset)| offset.trim_end_matches('.').parse().unwrap());
    // Texts of messages cannot hold such a heading, because their `#` are escaped.
    let is_heading = |line: &str| line.starts_with("# ") && line.contains(": message ");
    let mut passages: Vec<Passage> = Vec::new();
    for line in text.split_inclusive('\n') {
        if is_heading(line) {
            passages.push(heading(line.trim_end()));
        } else if let Some(passage) = passages.last_mut() {
            passage.text.push_str(line);
        }
    }
    for Passage { text, bytes, .. } in &mut passages {
        // A blank line follows the heading, and up to one a piece that does not end with one.
        text.drain(..1);
        if let Some(bytes) = bytes {
            text.truncate(bytes.len());
        }
    }
    Recalled { passages, next, text }
}

/// Reads `# user: message 7, 1970-01-01T00:00:00.000Z, bytes 10 to 20 of 30`.
fn heading(line: &str) -> Passage {
    let (_, rest) = line.split_once(": message ").unwrap();
    let (number, rest) = rest.split_once(", ").unwrap();
    let bytes = rest.split_once(", bytes ").map(|(_, bytes)| {
        let (range, _) = bytes.split_once(" of ").unwrap();
        let (start, end) = range.split_once(" to ").unwrap();
        start.parse().unwrap()..end.parse().unwrap()
    });
    Passage { number: number.parse().unwrap(), text: String::new(), bytes }
}
