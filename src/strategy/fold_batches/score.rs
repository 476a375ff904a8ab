//! The importance of a message.

use std::collections::HashSet;

use super::options::FoldBatches;
use crate::message::{ContentBlock, Message, Role, Text};
use crate::strategy::run_error::RunError;

/// Number of characters that score `length_weight`.
const LENGTH_UNIT: f64 = 100.0;
/// Upper limit for the score of the length.
const MAX_FOR_LENGTH: f64 = 3.0;

impl FoldBatches {
    /// Returns the importance of a message, the one at `index` of `total` candidates. It is the
    /// weight of the role, multiplied by `recency_decay` for every later message, plus points for a
    /// question mark, tool calls, each keyword, and the length.
    ///
    /// ```
    /// use threadfold::{Message, strategy::FoldBatches};
    ///
    /// let options = FoldBatches::default();
    /// let score = |text: &str| options.score(&Message::user(text), 0, 10);
    /// assert!(score("Which port?") > score("The port."));
    /// assert_eq!(options.score(&Message::assistant("At work"), 0, 1), 3.07);
    /// ```
    #[must_use]
    pub fn score(&self, message: &Message, index: usize, total: usize) -> f64 {
        let text = text(message);
        let age = total.saturating_sub(1).saturating_sub(index);
        let weight = match message.role {
            Role::System => self.system_weight,
            Role::User => self.user_weight,
            Role::Assistant => self.assistant_weight,
        };
        let question = if text.contains('?') { self.question_bonus } else { 0.0 };
        let calls = if message.tool_uses().next().is_some() { self.tool_call_bonus } else { 0.0 };
        let length = text.chars().count() as f64 / LENGTH_UNIT * self.length_weight;
        weight * self.recency_decay.powf(age as f64)
            + question
            + calls
            + self.keyword_bonus * self.keywords_in(&text) as f64
            + length.min(MAX_FOR_LENGTH)
    }

    /// Number of different keywords in a text.
    fn keywords_in(&self, text: &str) -> usize {
        let text = text.to_lowercase();
        let keywords: HashSet<String> =
            self.keywords.iter().map(|keyword| keyword.to_lowercase()).collect();
        keywords.iter().filter(|keyword| text.contains(keyword.as_str())).count()
    }

    pub(super) fn check_weights(&self) -> Result<(), RunError> {
        let from_0 = "a number from 0 is needed";
        let numbers = [
            ("system_weight", self.system_weight, f64::MAX, from_0),
            ("user_weight", self.user_weight, f64::MAX, from_0),
            ("assistant_weight", self.assistant_weight, f64::MAX, from_0),
            ("question_bonus", self.question_bonus, f64::MAX, from_0),
            ("tool_call_bonus", self.tool_call_bonus, f64::MAX, from_0),
            ("keyword_bonus", self.keyword_bonus, f64::MAX, from_0),
            ("length_weight", self.length_weight, f64::MAX, from_0),
            ("recency_decay", self.recency_decay, 1.0, "a number from 0 to 1 is needed"),
        ];
        let mut numbers = numbers.into_iter();
        if let Some((name, found, _, rule)) =
            numbers.find(|(_, found, most, _)| !(0.0..=*most).contains(found))
        {
            return Err(RunError::option(name, found.to_string(), rule));
        }
        if self.keywords.iter().any(Text::is_blank) {
            let rule = "all texts hold it";
            return Err(RunError::option("a word of keywords", "blank", rule));
        }
        Ok(())
    }
}

/// The texts of a message, including those of tool results.
fn text(message: &Message) -> String {
    let mut texts: Vec<&str> = Vec::new();
    for block in &message.content {
        if let ContentBlock::ToolResult(result) = block {
            texts.extend(result.content.iter().filter_map(ContentBlock::as_text).map(Text::as_str));
        } else {
            texts.extend(block.as_text().map(Text::as_str));
        }
    }
    texts.join("\n")
}
