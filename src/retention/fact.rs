//! A fact, who said it, and what it weighs.

use serde::{Deserialize, Serialize};

use super::class::FactClass;
use crate::message::Text;

/// Something in a thread that can be found again by its words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Fact {
    /// What kind of thing it is.
    pub class: FactClass,
    /// The words, as they were first said, on one line and without the colours of terminals. Of
    /// several spellings of a path, the longest.
    pub text: Text,
    /// How much it would be missed: see [`Fact::weigh`].
    pub weight: u32,
    /// Who said it; of several, the one who counts most.
    pub speaker: Speaker,
    /// The indices of the messages that say it, ascending: of more than 64, the first 63 and the
    /// last.
    pub positions: Vec<usize>,
}

/// Who says something, those who count most last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Speaker {
    /// A tool or a document; and the model where it writes files.
    Tool,
    /// The model, and the host.
    Assistant,
    /// The user.
    User,
}

impl Speaker {
    /// What a word of this speaker counts.
    fn factor(self) -> u32 {
        match self {
            Self::Tool => 1,
            Self::Assistant => 3,
            Self::User => 8,
        }
    }
}

impl Fact {
    /// Returns what a fact weighs that this speaker said in so many messages, the last of which is
    /// at index `last` of `messages`.
    ///
    /// It is `speaker * often * recent`: 1 for a tool, 3 for the model, 8 for the user; 4 for one
    /// message and one more for each other one, 8 at most; 4 for the first message of the thread,
    /// evenly up to 8 for its last. So it is between 16 and 512.
    ///
    /// ```
    /// use threadfold::retention::{Fact, Speaker};
    ///
    /// assert_eq!(Fact::weigh(Speaker::Tool, 1, 0, 100), 1 * 4 * 4);
    /// assert_eq!(Fact::weigh(Speaker::User, 2, 99, 100), 8 * 5 * 8);
    /// ```
    #[must_use]
    pub fn weigh(speaker: Speaker, mentions: usize, last: usize, messages: usize) -> u32 {
        let often = 3 + u32::try_from(mentions.clamp(1, 5)).unwrap_or(5);
        let end = messages.saturating_sub(1).max(1);
        let quarters = last.min(end).saturating_mul(4) / end;
        let recent = 4 + u32::try_from(quarters).unwrap_or(4);
        speaker.factor() * often * recent
    }
}
