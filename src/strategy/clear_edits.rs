//! Reading the context edits of Anthropic's Messages API as options of `clear-results`.
//!
//! The fields are those of the beta `context-management-2025-06-27`; what is left out has the
//! default that its documentation states.

use serde::Deserialize;

use super::clear_results::ClearResults;
use crate::message::{InvalidValue, Json, Text};

/// The tokens at which Anthropic clears tool results by default.
const TRIGGER: u64 = 100_000;

/// The value of `context_management`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Edits {
    edits: Vec<Edit>,
}

#[derive(Deserialize)]
#[serde(tag = "type", deny_unknown_fields)]
enum Edit {
    #[serde(rename = "clear_tool_uses_20250919")]
    ToolUses(ToolUses),
    #[serde(rename = "clear_thinking_20251015")]
    Thinking { keep: Option<Thinking> },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolUses {
    trigger: Option<Number>,
    keep: Option<Number>,
    clear_at_least: Option<Number>,
    exclude_tools: Option<Vec<Text>>,
    clear_tool_inputs: Option<ToolInputs>,
}

/// All inputs or none, or those of calls of these tools.
#[derive(Deserialize)]
#[serde(untagged)]
enum ToolInputs {
    All(bool),
    Of(Vec<Text>),
}

#[derive(Clone, Copy, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
enum Number {
    InputTokens { value: u64 },
    ToolUses { value: usize },
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Thinking {
    /// The text `all`.
    Word(Text),
    Of(Turns),
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
enum Turns {
    ThinkingTurns { value: usize },
    All,
}

impl ClearResults {
    /// Reads the field `context_management` of a request to Anthropic's Messages API, with the
    /// edits `clear_tool_uses_20250919` and `clear_thinking_20251015`, so that the same settings
    /// hold for every provider. As there, results of failed calls are cleared like others, and only
    /// its age decides when a result is cleared.
    ///
    /// Without the edit for thinking, reasoning stays, as newer models of Anthropic keep it; with
    /// the edit but without `keep`, that of the last turn stays.
    ///
    /// ```
    /// use threadfold::{message::Json, strategy::ClearResults};
    ///
    /// let edits = r#"{"edits": [{"type": "clear_tool_uses_20250919",
    ///     "trigger": {"type": "input_tokens", "value": 30000},
    ///     "clear_at_least": {"type": "input_tokens", "value": 5000},
    ///     "exclude_tools": ["web_search"]}]}"#;
    /// let clear = ClearResults::from_context_management(&Json::parse(edits)?)?;
    /// assert_eq!((clear.keep, clear.from_tokens, clear.at_least), (3, 30_000, 5_000));
    /// # Ok::<(), threadfold::message::InvalidValue>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidValue`] for another edit or field, a unit that does not belong to its field, or the
    /// same edit twice.
    pub fn from_context_management(json: &Json) -> Result<Self, InvalidValue> {
        let what = "a list of edits for clear-results";
        let Edits { edits } = serde_json::from_str(json.as_str())
            .map_err(|error| InvalidValue::new(what, error.to_string(), json.as_str()))?;
        let (mut results, mut reasoning) = (None, None);
        for edit in edits {
            let is_second = match edit {
                Edit::Thinking { keep } => reasoning.replace(kept(keep)?).is_some(),
                Edit::ToolUses(edit) => results.replace(cleared(edit)?).is_some(),
            };
            if is_second {
                let rule = "an edit may be there once";
                return Err(InvalidValue::new(what, rule, json.as_str()));
            }
        }
        // Without the edit for results, all of them stay.
        let results = results.unwrap_or_else(|| Self {
            keep: usize::MAX,
            obsolete: false,
            ..Self::default()
        });
        Ok(Self { keep_reasoning: reasoning.flatten(), ..results })
    }
}

/// Returns how many turns keep their reasoning; `None` for all.
fn kept(keep: Option<Thinking>) -> Result<Option<usize>, InvalidValue> {
    match keep {
        None => Ok(Some(1)),
        Some(Thinking::Of(Turns::ThinkingTurns { value })) => Ok(Some(value)),
        Some(Thinking::Of(Turns::All)) => Ok(None),
        Some(Thinking::Word(word)) if word == *"all" => Ok(None),
        Some(Thinking::Word(word)) => {
            Err(InvalidValue::new("what to keep of thinking", "\"all\" or turns are", &word))
        }
    }
}

fn cleared(edit: ToolUses) -> Result<ClearResults, InvalidValue> {
    let (from_tokens, from_calls) = match edit.trigger {
        None => (TRIGGER, 0),
        Some(Number::InputTokens { value }) => (value, 0),
        Some(Number::ToolUses { value }) => (0, value),
    };
    let keep = match edit.keep {
        None => ClearResults::default().keep,
        Some(Number::ToolUses { value }) => value,
        Some(Number::InputTokens { value }) => return Err(unit("keep", "tool_uses", value)),
    };
    let at_least = match edit.clear_at_least {
        None => 0,
        Some(Number::InputTokens { value }) => value,
        Some(Number::ToolUses { value }) => {
            return Err(unit("clear_at_least", "input_tokens", value as u64));
        }
    };
    let (inputs, inputs_of) = match edit.clear_tool_inputs {
        None => (false, Vec::new()),
        Some(ToolInputs::All(all)) => (all, Vec::new()),
        Some(ToolInputs::Of(tools)) => (!tools.is_empty(), tools),
    };
    Ok(ClearResults {
        keep,
        exclude_tools: edit.exclude_tools.unwrap_or_default(),
        keep_errors: false,
        obsolete: false,
        inputs,
        inputs_of,
        keep_reasoning: None,
        at_least,
        from_tokens,
        from_calls,
    })
}

fn unit(field: &str, unit: &str, found: u64) -> InvalidValue {
    let rule = format!("{field} is a number of {unit}");
    InvalidValue::new("a number in the right unit", rule, &found.to_string())
}
