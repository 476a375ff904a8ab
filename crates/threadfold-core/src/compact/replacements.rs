//! Ranges to replace, as a caller or the `compact` tool names them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::edit::CompactError;
use crate::message::{CheckpointId, Text, markup::named_checkpoint, quoted};

/// A range of the thread and the summary that replaces it.
///
/// The range starts after the `from` checkpoint and ends after the `to` checkpoint. So the message
/// with `from` stays up to its checkpoint, and the message with `to` is replaced up to and
/// including its checkpoint.
///
/// ```
/// use threadfold::Replacement;
///
/// let range = Replacement::new("We read a.txt.").from("aaaaaa".parse()?).to("bbbbbb".parse()?);
/// assert_eq!(range.to, Some("bbbbbb".parse()?));
/// # Ok::<(), threadfold::message::InvalidValue>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Replacement {
    /// The checkpoint before the range; `None` for the start of the thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<CheckpointId>,
    /// The checkpoint at the end of the range; `None` for the end of the thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<CheckpointId>,
    /// The text of the summary. A blank one deletes the range.
    pub summary: Text,
}

impl Replacement {
    /// Returns the replacement of the whole thread. Narrow it with [`from`](Self::from) and
    /// [`to`](Self::to).
    ///
    /// ```
    /// use threadfold::{Message, Replacement, compact};
    ///
    /// let thread = [Message::user("hi"), Message::assistant("hello")];
    /// let compacted = compact(&thread, &[Replacement::new("We said hello.")])?;
    /// assert_eq!(compacted.messages.len(), 1);
    /// # Ok::<(), threadfold::compact::CompactError>(())
    /// ```
    #[must_use]
    pub fn new(summary: impl Into<Text>) -> Self {
        Self { from: None, to: None, summary: summary.into() }
    }

    /// Returns the replacement with its range starting after this checkpoint.
    ///
    /// ```
    /// use threadfold::{Message, Replacement, compact, log, message::ContentBlock};
    ///
    /// let thread = vec![Message::user("hi"), Message::assistant("hello"), Message::assistant("so?")];
    /// let thread = log::stamp(thread, 1);
    /// let ContentBlock::Checkpoint(after_hi) = &thread[0].content[1] else { panic!("it was stamped") };
    /// let compacted = compact(&thread, &[Replacement::new("Said hello.").from(after_hi.id)])?;
    /// assert_eq!(compacted.messages[0], thread[0]);
    /// assert_eq!(compacted.removed, thread[1..]);
    /// # Ok::<(), threadfold::compact::CompactError>(())
    /// ```
    #[must_use]
    pub fn from(self, id: CheckpointId) -> Self {
        Self { from: Some(id), ..self }
    }

    /// Returns the replacement with its range ending after this checkpoint.
    ///
    /// ```
    /// use threadfold::{Message, Replacement, compact, log, message::ContentBlock};
    ///
    /// let thread = vec![Message::user("hi"), Message::assistant("hello")];
    /// let thread = log::stamp(thread, 1);
    /// let ContentBlock::Checkpoint(after_hi) = &thread[0].content[1] else { panic!("it was stamped") };
    /// let compacted = compact(&thread, &[Replacement::new("A greeting.").to(after_hi.id)])?;
    /// assert_eq!(compacted.messages[1], Message::assistant("hello"));
    /// assert_eq!(compacted.removed, thread[..1]);
    /// # Ok::<(), threadfold::compact::CompactError>(())
    /// ```
    #[must_use]
    pub fn to(self, id: CheckpointId) -> Self {
        Self { to: Some(id), ..self }
    }

    /// Reads the JSON input of the `compact` tool: `{"replacements": [{"from"?, "to"?,
    /// "summary"}]}`. A `null` counts as absent, and an id may be given as a marker,
    /// `<checkpoint:a1b2c3>`.
    ///
    /// ```
    /// use threadfold::Replacement;
    ///
    /// let input = serde_json::json!({"replacements": [{"to": "a1b2c3", "summary": "We talked."}]});
    /// assert_eq!(Replacement::parse_all(&input)?[0].from, None);
    /// let wrong = serde_json::json!({"replacements": [{"summary": 7}]});
    /// let error = Replacement::parse_all(&wrong).unwrap_err();
    /// assert_eq!(error.to_string(), "replacements[0].summary must be a string, found 7");
    /// # Ok::<(), threadfold::compact::CompactError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`CompactError`] with the field and its index. Whether the checkpoints are in the thread is
    /// not checked here.
    pub fn parse_all(input: &Value) -> Result<Vec<Self>, CompactError> {
        let object = input.as_object().ok_or_else(|| mismatch("input", "an object", input))?;
        let list = object.get("replacements").ok_or_else(|| missing("replacements"))?;
        let items = list.as_array().ok_or_else(|| mismatch("replacements", "an array", list))?;
        if items.is_empty() {
            return Err(CompactError::NoReplacements);
        }
        items.iter().enumerate().map(|(index, item)| replacement(index, item)).collect()
    }
}

fn replacement(index: usize, item: &Value) -> Result<Replacement, CompactError> {
    let whole = format!("replacements[{index}]");
    let object = item.as_object().ok_or_else(|| mismatch(&whole, "an object", item))?;
    if let Some(key) = object.keys().find(|key| !matches!(key.as_str(), "from" | "to" | "summary"))
    {
        return Err(CompactError::UnknownField { field: format!("{whole}.{key}").into() });
    }
    let summary = text(object, &whole, "summary")?;
    let summary = summary.ok_or_else(|| missing(&format!("{whole}.summary")))?;
    let (from, to) = (id(object, &whole, "from")?, id(object, &whole, "to")?);
    Ok(Replacement { from, to, summary: summary.into() })
}

/// Returns a text field of a replacement; `None` if it is absent.
fn text<'v>(
    object: &'v Map<String, Value>,
    whole: &str,
    key: &str,
) -> Result<Option<&'v str>, CompactError> {
    match object.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(mismatch(&format!("{whole}.{key}"), "a string", other)),
    }
}

fn id(
    object: &Map<String, Value>,
    whole: &str,
    key: &str,
) -> Result<Option<CheckpointId>, CompactError> {
    let id = text(object, whole, key)?.map(named_checkpoint).transpose();
    id.map_err(|error| CompactError::Checkpoint {
        field: format!("{whole}.{key}").into(),
        error: Box::new(error),
    })
}

fn missing(field: &str) -> CompactError {
    CompactError::Missing { field: field.into() }
}

fn mismatch(field: &str, expected: &'static str, found: &Value) -> CompactError {
    CompactError::Type { field: field.into(), expected, found: quoted(&found.to_string()).into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_mistake_is_named_with_its_field() {
        let rows = [
            (json!([]), "input must be an object, found []"),
            (json!({}), "replacements is missing"),
            (json!({"replacements": {}}), "replacements must be an array, found {}"),
            (json!({"replacements": []}), "replacements is empty: name at least one range"),
            (json!({"replacements": ["x"]}), "replacements[0] must be an object, found \"x\""),
            (json!({"replacements": [{}]}), "replacements[0].summary is missing"),
            (
                json!({"replacements": [{"summary": "s"}, {"summary": 5}]}),
                "replacements[1].summary must be a string, found 5",
            ),
            (
                json!({"replacements": [{"summary": "s", "form": "aaaaaa"}]}),
                "replacements[0].form is not a field of a replacement; the fields are from, to and summary",
            ),
            (
                json!({"replacements": [{"summary": "s", "from": "AAA"}]}),
                "replacements[0].from: \"AAA\" is not a checkpoint id; expected six characters \
                 from a to z and 0 to 9",
            ),
        ];
        for (input, text) in rows {
            assert_eq!(Replacement::parse_all(&input).unwrap_err().to_string(), text);
        }
    }

    #[test]
    fn a_marker_may_be_given_whole_and_null_is_absent() {
        let input = json!({"replacements": [
            {"from": "<checkpoint:aaaaaa>", "to": null, "summary": ""}
        ]});
        let expected = Replacement::new("").from("aaaaaa".parse().unwrap());
        assert_eq!(Replacement::parse_all(&input).unwrap(), [expected]);
    }

    #[test]
    fn a_wrong_value_is_quoted_up_to_forty_characters() {
        let message = |count: usize| {
            Replacement::parse_all(&json!("é".repeat(count))).unwrap_err().to_string()
        };
        let head = "input must be an object, found \"";
        assert_eq!(message(38), format!("{head}{}\"", "é".repeat(38)));
        assert_eq!(message(39), format!("{head}{}...", "é".repeat(39)));
    }
}
