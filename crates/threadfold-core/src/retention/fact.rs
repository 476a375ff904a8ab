//! A fact, its speaker and its weight.

use serde::{Deserialize, Serialize};

use super::class::FactClass;
use crate::message::Text;

/// The speaker of a text. Speakers are ordered by the weight of their words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[doc(hidden)]
pub enum Speaker {
    /// A tool, a document, or a file that the model writes.
    Tool,
    /// The model, or the host in a system message.
    Assistant,
    /// The user.
    User,
}

impl Speaker {
    /// Returns the factor by which the weight of this speaker's facts is multiplied.
    #[must_use]
    pub fn factor(self) -> u32 {
        match self {
            Self::Tool => 1,
            Self::Assistant => 3,
            Self::User => 8,
        }
    }
}

/// A fact of a thread: a part of a text that can be found again word for word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Fact {
    /// Its class.
    pub class: FactClass,
    /// The words as first written, on one line and without terminal colours. If a path has several
    /// spellings, the longest.
    pub text: Text,
    /// How much the fact matters: `speaker * often * recent`, between 16 and 512. `speaker` is 1
    /// for a tool, 3 for the model, 8 for the user. `often` is 4 for one message that states the
    /// fact, plus 1 for each further one, at most 8. `recent` rises evenly from 4, if the last of
    /// these messages is the first of the thread, to 8, if it is the thread's last.
    pub weight: u32,
    /// Who stated the fact. Of several speakers, the one with the largest factor.
    #[doc(hidden)]
    pub speaker: Speaker,
    /// The indices of the messages that state it, ascending. If there are more than 64, the first
    /// 63 and the last.
    pub positions: Vec<usize>,
}

impl Fact {
    #[doc(hidden)]
    #[must_use]
    pub fn new(
        class: FactClass,
        text: Text,
        weight: u32,
        speaker: Speaker,
        positions: Vec<usize>,
    ) -> Self {
        Self { class, text, weight, speaker, positions }
    }

    /// Whether the user stated the fact in typed text.
    #[must_use]
    pub fn is_users(&self) -> bool {
        self.speaker == Speaker::User
    }

    /// Returns the [`weight`](Self::weight) of a fact that this speaker stated in `mentions`
    /// messages, the last of which has index `last` of `messages`.
    #[doc(hidden)]
    #[must_use]
    pub fn weigh(speaker: Speaker, mentions: usize, last: usize, messages: usize) -> u32 {
        let often = 3 + mentions.clamp(1, 5) as u32;
        let end = messages.saturating_sub(1).max(1);
        let quarters = last.min(end).saturating_mul(4) / end;
        let recent = 4 + quarters as u32;
        speaker.factor() * often * recent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_weight_depends_on_speaker_frequency_and_recency() {
        let weights = [
            Fact::weigh(Speaker::Tool, 1, 0, 100),
            Fact::weigh(Speaker::Assistant, 1, 50, 100),
            Fact::weigh(Speaker::User, 2, 99, 100),
            Fact::weigh(Speaker::User, 9, 0, 1),
        ];
        assert_eq!(weights, [4 * 4, 3 * 4 * 6, 8 * 5 * 8, 8 * 8 * 4]);
    }
}
