//! The importance of a message.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::message::{ContentBlock, Message, Role, Text};
use crate::strategy::run_error::RunError;

/// Number of characters that score `length_weight`.
const LENGTH_UNIT: f64 = 100.0;
/// Upper limit for the score of the length.
const MAX_FOR_LENGTH: f64 = 3.0;

/// Weights for the importance of a message: the higher its score, the longer it stays.
///
/// The score is the weight of the role, multiplied by `recency_decay` for every later message, plus
/// points for a question mark, tool calls, each keyword, and the length.
///
/// ```
/// use threadfold::{Message, strategy::Scoring};
///
/// let scoring = Scoring::default();
/// assert_eq!(scoring.score(&Message::assistant("At work"), 0, 1), 3.07);
/// let decided = Message::assistant("We agreed on it.");
/// assert!(scoring.score(&decided, 0, 10) < scoring.score(&decided, 9, 10));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Scoring {
    /// Weight of a system message.
    pub system_weight: f64,
    /// Weight of a user message, which includes tool results.
    pub user_weight: f64,
    /// Weight of an assistant message.
    pub assistant_weight: f64,
    /// Factor for the weight of the role per later message, from 0 to 1.
    pub recency_decay: f64,
    /// Points for one or more question marks.
    pub question_bonus: f64,
    /// Points for one or more tool calls.
    pub tool_call_bonus: f64,
    /// Points for each keyword that the text contains.
    pub keyword_bonus: f64,
    /// The keywords; case does not matter.
    pub keywords: Vec<Text>,
    /// Points per 100 characters, 3 points at most.
    pub length_weight: f64,
}

impl Default for Scoring {
    fn default() -> Self {
        let keywords =
            ["error", "fail", "bug", "fix", "decision", "agreed", "constraint", "requirement"];
        Self {
            system_weight: 10.0,
            user_weight: 5.0,
            assistant_weight: 3.0,
            recency_decay: 0.95,
            question_bonus: 2.0,
            tool_call_bonus: 4.0,
            keyword_bonus: 1.5,
            keywords: keywords.map(Text::from).into(),
            length_weight: 1.0,
        }
    }
}

impl Scoring {
    /// Returns the score of a message, the one at `index` of `total` candidates.
    ///
    /// ```
    /// use threadfold::{Message, strategy::Scoring};
    ///
    /// let scoring = Scoring::default();
    /// let score = |text: &str| scoring.score(&Message::user(text), 0, 10);
    /// assert!(score("Which port?") > score("The port."));
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

    pub(super) fn check(&self) -> Result<(), RunError> {
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
            let option = format!("scoring.{name}");
            return Err(RunError::option(&option, found.to_string(), rule));
        }
        if self.keywords.iter().any(Text::is_blank) {
            let rule = "all texts hold it";
            return Err(RunError::option("a word of scoring.keywords", "blank", rule));
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
