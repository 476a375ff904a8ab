//! The cases of the suites for stores: files of operations, each with its expected outcome.
//!
//! A case is a paragraph and runs on an implementation of its own. A line that begins with `#`
//! describes the case. Every other line is a [`Step`], as JSON:
//!
//! ```text
//! # A lease that was released is free.
//! {"law": "ExpiredIsFree", "in": "t1", "acquire": ["a", "first", 0]}
//! {"law": "ExpiredIsFree", "in": "t1", "release": "a"}
//! {"law": "ExpiredIsFree", "in": "t1", "acquire": ["b", "second", 1]}
//! ```

use std::fmt;

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use threadfold::message::ThreadId;

use super::law::{Law, Result};

/// An operation on a thread, the JSON of its expected outcome (`null` for none), and the law that
/// any other outcome breaks.
#[derive(Deserialize)]
pub(super) struct Step<O> {
    pub(super) law: Law,
    #[serde(rename = "in")]
    pub(super) thread: ThreadId,
    #[serde(flatten)]
    pub(super) operation: O,
    #[serde(default)]
    gives: Value,
    /// The step as text, for a breach.
    #[serde(skip)]
    line: &'static str,
}

impl<O> Step<O> {
    /// Compares the outcome of the operation with the expected one.
    pub(super) fn check(&self, found: Value) -> Result<()> {
        if self.gives == found {
            return Ok(());
        }
        Err(self.law.breach(self.line, &self.gives, found))
    }
}

/// Reads the cases of a file.
pub(super) fn cases<O: DeserializeOwned>(text: &'static str) -> Result<Vec<Vec<Step<O>>>> {
    let cases = text.split("\n\n").map(|case| {
        let steps = case.lines().filter(|line| !line.starts_with('#')).map(|line| {
            let step = serde_json::from_str::<Step<O>>(line);
            let step = step.map_err(|error| Law::StoredComesBack.breach(line, "a step", error))?;
            Ok(Step { line, ..step })
        });
        steps.collect()
    });
    cases.collect()
}

/// Returns the JSON of an outcome: the value, or the `Debug` text of the error, which names all its
/// fields.
pub(super) fn outcome<T: Serialize, E: fmt::Debug>(outcome: Result<T, E>) -> Value {
    let value = outcome.map(|value| serde_json::to_value(value).unwrap_or_default());
    value.unwrap_or_else(|error| json!({ "error": format!("{error:?}") }))
}
