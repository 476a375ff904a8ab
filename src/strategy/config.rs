//! A strategy as a setting: its name, or an object with the name as its only key and the options
//! that differ from the defaults as its value.

use serde_json::Value;

use crate::message::InvalidValue;

/// Returns the name in a setting, and the options if it sets any.
pub(super) fn name_and_options(setting: &Value) -> Result<(&str, Option<&Value>), InvalidValue> {
    let wrong =
        |rule: String| InvalidValue::new("the setting of a strategy", rule, &setting.to_string());
    match setting {
        Value::String(name) => Ok((name, None)),
        Value::Object(fields) => {
            let mut fields = fields.iter();
            match (fields.next(), fields.next()) {
                (Some((name, options)), None) => Ok((name, Some(options))),
                (None, _) => Err(wrong("an empty object names no strategy".to_owned())),
                (Some((name, _)), Some((second, _))) => Err(wrong(format!(
                    "an object names one strategy, this one {name} and {second}"
                ))),
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => Err(wrong(
            "the name of a strategy or an object with the name as its only key is".to_owned(),
        )),
    }
}
