//! The model's side: what it is asked, and what it says.

use serde_json::Value;
use threadfold::wire::Dialect;

/// What a model is asked.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The dialect of the API.
    pub dialect: Dialect,
    /// The model.
    pub model: &'a str,
    /// What is wanted.
    pub purpose: Purpose,
    /// The body of the request, with the messages of a thread that the server holds.
    pub body: &'a Value,
    /// The tokens of the prompt.
    pub tokens: u64,
}

/// What a request wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The next answer.
    Answer,
    /// The vendor's own compaction of the messages: the answer's text is the summary that the block
    /// stands for.
    Compaction,
}

/// What a model says: parts in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Said {
    /// The parts.
    pub parts: Vec<Part>,
}

/// A part of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// Reasoning. The rulebook signs or encrypts it as the vendor does.
    Reasoning(String),
    /// Text.
    Text(String),
    /// A call of a tool. The rulebook gives it an id.
    Call {
        /// The name of the tool.
        name: String,
        /// Its input, an object.
        input: Value,
    },
}

impl Said {
    /// Returns an answer of text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self { parts: vec![Part::Text(text.into())] }
    }

    /// Returns an answer that calls a tool.
    #[must_use]
    pub fn call(name: impl Into<String>, input: Value) -> Self {
        Self { parts: vec![Part::Call { name: name.into(), input }] }
    }

    /// Puts reasoning before everything else.
    ///
    /// ```
    /// use threadfold_testing::rulebook::{Part, Said};
    ///
    /// let said = Said::text("Yes.").after("They ask for a word.");
    /// assert_eq!(said.parts[0], Part::Reasoning("They ask for a word.".to_owned()));
    /// ```
    #[must_use]
    pub fn after(mut self, reasoning: impl Into<String>) -> Self {
        self.parts.insert(0, Part::Reasoning(reasoning.into()));
        self
    }

    /// The texts of the answer, one after another.
    pub(super) fn all_text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            Part::Reasoning(_) | Part::Call { .. } => None,
        });
        texts.collect()
    }

    pub(super) fn has_calls(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Call { .. }))
    }
}
