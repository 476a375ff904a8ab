//! A fact, who said it, and what it weighs.

use serde::{Deserialize, Serialize};

use crate::{
    message::Text,
    prose::{FactClass, Speaker},
};

/// Something in a thread that can be found again by its words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Fact {
    /// What kind of thing it is.
    pub class: FactClass,
    /// The words, as they were first said, on one line and without the colours of terminals. Of
    /// several spellings of a path, the longest.
    pub text: Text,
    /// How much it would be missed: `speaker * often * recent`. That is 1 for a tool, 3 for the
    /// model, 8 for the user; 4 for one message that says it and one more for each other one, 8 at
    /// most; 4 if the last of them is the thread's first, evenly up to 8 for its last. So it is
    /// between 16 and 512.
    pub weight: u32,
    /// Who said it; of several, the one who counts most.
    pub speaker: Speaker,
    /// The indices of the messages that say it, ascending: of more than 64, the first 63 and the
    /// last.
    pub positions: Vec<usize>,
}

impl Fact {
    /// Returns what a fact weighs that this speaker said in so many messages, the last of which is
    /// at index `last` of `messages`: see [`weight`](Self::weight).
    pub(super) fn weigh(speaker: Speaker, mentions: usize, last: usize, messages: usize) -> u32 {
        let often = 3 + u32::try_from(mentions.clamp(1, 5)).unwrap_or(5);
        let end = messages.saturating_sub(1).max(1);
        let quarters = last.min(end).saturating_mul(4) / end;
        let recent = 4 + u32::try_from(quarters).unwrap_or(4);
        speaker.factor() * often * recent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_said_it_how_often_and_how_late_weigh() {
        let weights = [
            Fact::weigh(Speaker::Tool, 1, 0, 100),
            Fact::weigh(Speaker::Assistant, 1, 50, 100),
            Fact::weigh(Speaker::User, 2, 99, 100),
            Fact::weigh(Speaker::User, 9, 0, 1),
        ];
        assert_eq!(weights, [4 * 4, 3 * 4 * 6, 8 * 5 * 8, 8 * 8 * 4]);
    }
}
