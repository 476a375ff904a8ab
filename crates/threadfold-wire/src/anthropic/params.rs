//! Request parameters that have a type of their own, both ways.
//!
//! A parameter is read from its JSON text and remembered as that text where ours would differ:
//! `1` for a temperature of 1.0, or a tool choice with a field that the vocabulary does not know.
//! The remembered text is written as long as it still says what the request says.

use super::forms::{self, Forms, NAME};
use crate::{
    fields::Fields,
    tree::{Object, Tree},
};
use threadfold_core::message::{Extra, Request, Text, ToolChoice, ToolSpec};

/// Takes the typed parameters out of a body.
pub(super) fn read(fields: &mut Fields<'_>, forms: &mut Forms, request: &mut Request) {
    request.max_output = take(fields, forms, &MAX_OUTPUT);
    request.temperature = take(fields, forms, &TEMPERATURE);
    request.tool_choice = take(fields, forms, &TOOL_CHOICE);
}

/// Notes that a choice of tools came without the tools that it is about: then it goes back so.
pub(super) fn note_lone_choice(request: &Request, forms: &mut Forms) {
    let is_lone = |choice: &&ToolChoice| !is_met(choice, &request.tools);
    let Some(choice) = request.tool_choice.as_ref().filter(is_lone) else { return };
    if let Some(tree) = (TOOL_CHOICE.encode)(choice) {
        forms.note(forms::TOOL_CHOICE, tree.into_json());
    }
}

/// Writes the most that may be answered.
pub(super) fn write_limit(object: &mut Object, request: &Request) {
    set(object, &request.extra, &MAX_OUTPUT, request.max_output.as_ref());
}

/// Sets the typed parameters of a body that has these tools. A choice among tools that are not
/// there is refused, so it is left out.
pub(super) fn write(object: &mut Object, request: &Request, tools: &[ToolSpec]) {
    set(object, &request.extra, &TEMPERATURE, request.temperature.as_ref());
    let came_so = |choice: &ToolChoice| {
        let note = request.extra.get(NAME, forms::TOOL_CHOICE);
        note.and_then(|note| (TOOL_CHOICE.decode)(note.as_str())).as_ref() == Some(choice)
    };
    let stays = |choice: &ToolChoice| is_met(choice, tools) || came_so(choice);
    if request.tool_choice.as_ref().is_none_or(stays) {
        set(object, &request.extra, &TOOL_CHOICE, request.tool_choice.as_ref());
    }
}

/// Whether there is a tool to choose, the named one if one is named.
fn is_met(choice: &ToolChoice, tools: &[ToolSpec]) -> bool {
    match choice {
        ToolChoice::Tool(name) => tools.iter().any(|tool| tool.name == *name),
        ToolChoice::Auto | ToolChoice::Required | ToolChoice::None => !tools.is_empty(),
    }
}

/// Whether a key is written by [`write_limit`] or [`write`].
pub(super) fn is_typed(key: &str) -> bool {
    [MAX_OUTPUT.key, TEMPERATURE.key, TOOL_CHOICE.key].contains(&key)
}

/// Whether the request switches on thinking with a fixed budget.
pub(super) fn thinks_manually(extra: &Extra) -> bool {
    thinking_type(extra).is_some_and(|kind| kind == "enabled")
}

/// Whether the request leaves thinking off: it says so, or says nothing.
pub(super) fn does_not_think(extra: &Extra) -> bool {
    thinking_type(extra).is_none_or(|kind| kind == "disabled")
}

fn thinking_type(extra: &Extra) -> Option<Text> {
    Fields::parse(extra.get(NAME, "thinking")?.as_str())?.take_text("type")
}

/// A parameter: its key, where its text is remembered, and both directions.
struct Param<T> {
    key: &'static str,
    /// A note on the form, or the key itself where the text may say more than the value.
    kept_as: &'static str,
    decode: fn(&str) -> Option<T>,
    encode: fn(&T) -> Option<Tree>,
}

const MAX_OUTPUT: Param<u64> = Param {
    key: "max_tokens",
    kept_as: forms::MAX_TOKENS,
    decode: whole_number,
    encode: |tokens| Some(Tree::from(*tokens)),
};

const TEMPERATURE: Param<f64> = Param {
    key: "temperature",
    kept_as: forms::TEMPERATURE,
    decode: |text| serde_json::from_str(text).ok(),
    // Other providers go further; what came in a body of this one is remembered and goes back.
    encode: |value| {
        let known = (0.0..=1.0).contains(value);
        serde_json::Number::from_f64(*value).filter(|_| known).map(Tree::Number)
    },
};

const TOOL_CHOICE: Param<ToolChoice> = Param {
    key: "tool_choice",
    kept_as: "tool_choice",
    decode: choice,
    encode: |choice| {
        Some(Tree::from(match choice {
            ToolChoice::Auto => Object::typed("auto"),
            ToolChoice::Required => Object::typed("any"),
            ToolChoice::None => Object::typed("none"),
            ToolChoice::Tool(name) => Object::typed("tool").with("name", name.clone()),
        }))
    },
};

fn take<T>(fields: &mut Fields<'_>, forms: &mut Forms, param: &Param<T>) -> Option<T> {
    let raw = fields.get(param.key)?;
    let value = (param.decode)(raw.get())?;
    fields.take(param.key);
    let text = raw.json();
    if (param.encode)(&value).is_none_or(|ours| ours.into_json() != text) {
        forms.note(param.kept_as, text);
    }
    Some(value)
}

fn set<T: PartialEq>(object: &mut Object, extra: &Extra, param: &Param<T>, value: Option<&T>) {
    // What did not read as a value stands under its own key.
    let kept = extra.get(NAME, param.kept_as).or_else(|| extra.get(NAME, param.key));
    match kept.filter(|text| (param.decode)(text.as_str()).as_ref() == value) {
        Some(text) => object.set(param.key, text.clone()),
        None => object.set_some(param.key, value.and_then(param.encode)),
    }
}

fn whole_number(text: &str) -> Option<u64> {
    // Up to here every whole number has a float of its own.
    const MAX: f64 = 9_007_199_254_740_992.0;
    serde_json::from_str(text).ok().or_else(|| {
        let float: f64 = serde_json::from_str(text).ok()?;
        let whole = (0.0..MAX).contains(&float) && float.fract() == 0.0;
        whole.then(|| format!("{float:.0}").parse().ok()).flatten()
    })
}

fn choice(text: &str) -> Option<ToolChoice> {
    let mut fields = Fields::parse(text)?;
    match fields.take_text("type")?.as_str() {
        "auto" => Some(ToolChoice::Auto),
        "any" => Some(ToolChoice::Required),
        "none" => Some(ToolChoice::None),
        "tool" => fields.take_text("name").map(ToolChoice::Tool),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reread(body: &str, change: impl FnOnce(&mut Request)) -> String {
        let mut fields = Fields::parse(body).unwrap();
        let (mut forms, mut request) = (Forms::of(NAME), Request::default());
        read(&mut fields, &mut forms, &mut request);
        note_lone_choice(&request, &mut forms);
        request.extra = forms.into_extra(&fields);
        change(&mut request);
        let mut object = Object::default();
        write_limit(&mut object, &request);
        write(&mut object, &request, &[]);
        Tree::from(object).into_json().to_string()
    }

    #[test]
    fn untouched_parameters_keep_their_text() {
        for body in [
            r#"{"max_tokens":1e3,"temperature":1}"#,
            r#"{"max_tokens":1024,"temperature":0.50}"#,
            r#"{"temperature":"warm"}"#,
            r#"{"tool_choice":{"name":"read","disable_parallel_tool_use":true,"type":"tool"}}"#,
            r#"{"tool_choice":{"type":"new"}}"#,
        ] {
            assert_eq!(reread(body, |_| {}), body);
        }
    }

    #[test]
    fn a_changed_parameter_is_written_as_changed() {
        let body =
            r#"{"max_tokens":1e3,"tool_choice":{"type":"any","disable_parallel_tool_use":true}}"#;
        let changed = reread(body, |request| {
            request.max_output = Some(5);
            request.tool_choice = None;
        });
        assert_eq!(changed, r#"{"max_tokens":5}"#);
    }
}
