//! Request parameters that have a type of their own, both ways, and what they decide.
//!
//! A parameter is read from its JSON text and remembered as that text where ours would differ:
//! `1` for a temperature of 1.0, or a tool choice with a field that the vocabulary does not know.
//! The remembered text is written as long as it still says what the request says.

use super::forms::{self, Forms, NAME};
use crate::{
    contract::WireError,
    fields::{Fields, Path},
    notes::Notes,
    raw::Raw,
    tree::{Object, Tree},
};
use threadfold_core::message::{Extra, Json, Request, Text, ToolChoice};

/// Takes the parameters of inference out of a body.
pub(super) fn read(
    fields: &mut Fields<'_>,
    forms: &mut Forms,
    request: &mut Request,
) -> Result<(), WireError> {
    let Some(raw) = fields.take("inferenceConfig") else { return Ok(()) };
    if matches!(raw.get(), "null" | "{}") {
        forms.note(forms::INFERENCE, raw.json());
        return Ok(());
    }
    let mut config = Fields::read(raw, Path::Field(&Path::Body, "inferenceConfig"))?;
    request.max_output = config.take_as("maxTokens");
    let temperature = config.get("temperature");
    request.temperature = config.take_as("temperature");
    let ours = request.temperature.and_then(temperature_form).map(Tree::into_json);
    let came = temperature.filter(|_| request.temperature.is_some()).map(Raw::json);
    if let Some(came) = came.filter(|came| ours.as_ref() != Some(came)) {
        forms.note(forms::TEMPERATURE, came);
    }
    if config.rest().next().is_some() {
        forms.note("inferenceConfig", forms::raw_object(&config));
    }
    Ok(())
}

/// Takes the choice of tools out. One that does not read as a choice stays.
pub(super) fn read_choice(config: &mut Fields<'_>, forms: &mut Forms, request: &mut Request) {
    let Some(raw) = config.get("toolChoice") else { return };
    let Some(choice) = choice(raw.get()) else { return };
    config.take("toolChoice");
    let came = raw.json();
    if choice_form(&choice).map(Tree::into_json).as_ref() != Some(&came) {
        forms.note(forms::TOOL_CHOICE, came);
    }
    request.tool_choice = Some(choice);
}

/// Sets the parameters of inference of a body.
pub(super) fn write(body: &mut Object, request: &Request, notes: &mut Notes) {
    let extra = &request.extra;
    let mut config = Object::default();
    let limit = request.max_output.filter(|limit| *limit > 0);
    config.set_some("maxTokens", limit);
    if let Some(value) = request.temperature {
        let is_same = |text: &&Json| serde_json::from_str(text.as_str()).ok() == Some(value);
        let kept = extra.get(NAME, forms::TEMPERATURE).filter(is_same);
        let kept = kept.cloned().map(Tree::Raw);
        config.set_some("temperature", kept.or_else(|| temperature_form(value)));
    }
    let wanted = [
        ("maxTokens", request.max_output.is_some()),
        ("temperature", request.temperature.is_some()),
    ];
    for (name, _) in wanted.into_iter().filter(|(name, is)| *is && config.get(name).is_none()) {
        notes.drop_parameter(name);
    }
    config.extend_unset(forms::reopen(extra.get(NAME, "inferenceConfig")));
    if config.len() > 0 {
        body.set("inferenceConfig", config);
    } else {
        body.set_some("inferenceConfig", extra.get(NAME, forms::INFERENCE).cloned());
    }
}

/// Sets the tools of a body and the choice among them.
pub(super) fn write_tools(
    body: &mut Object,
    request: &Request,
    tools: Vec<Tree>,
    forced: Forced,
    notes: &mut Notes,
) {
    let extra = &request.extra;
    let choice = request.tool_choice.as_ref().and_then(|choice| {
        let came = extra.get(NAME, forms::TOOL_CHOICE);
        let came = came.filter(|text| self::choice(text.as_str()).as_ref() == Some(choice));
        let written = came.cloned().map(Tree::Raw).or_else(|| choice_form(choice));
        let met = forced == Forced::May || !is_forced(choice);
        let written = written.filter(|_| !tools.is_empty() && met);
        if written.is_none() {
            notes.drop_parameter("toolChoice");
        }
        written
    });
    if tools.is_empty() {
        if extra.get(NAME, "toolConfig").is_some() {
            notes.drop_parameter("toolConfig");
        }
        body.set_some("toolConfig", extra.get(NAME, forms::TOOLS).cloned());
        return;
    }
    let mut config = Object::default().with("tools", tools);
    config.set_some("toolChoice", choice);
    config.extend_unset(forms::reopen(extra.get(NAME, "toolConfig")));
    body.set("toolConfig", config);
}

/// Whether the model may be made to call a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Forced {
    May,
    MayNot,
}

/// Where the fields stand that only the model behind the provider knows.
pub(super) const MODEL_FIELDS: &str = "additionalModelRequestFields";

/// The names under which Claude's thinking is switched on there.
pub(super) const THINKING: [&str; 2] = ["thinking", "reasoning_config"];

/// Whether the request switches on thinking with a fixed budget.
pub(super) fn thinks_manually(extra: &Extra) -> bool {
    thinking_type(extra).is_some_and(|kind| kind == "enabled")
}

/// Whether the request leaves thinking off: it says so, or says nothing.
pub(super) fn does_not_think(extra: &Extra) -> bool {
    thinking_type(extra).is_none_or(|kind| kind == "disabled")
}

fn thinking_type(extra: &Extra) -> Option<Text> {
    let fields = Fields::parse(extra.get(NAME, MODEL_FIELDS)?.as_str())?;
    let thinking = THINKING.into_iter().find_map(|key| fields.get(key))?;
    Fields::of(thinking)?.take_text("type")
}

/// The temperature in its wire form; `None` if it goes further than this provider.
fn temperature_form(value: f64) -> Option<Tree> {
    let known = (0.0..=1.0).contains(&value);
    serde_json::Number::from_f64(value).filter(|_| known).map(Tree::Number)
}

/// The choice in its wire form. There is none that forbids all tools.
fn choice_form(choice: &ToolChoice) -> Option<Tree> {
    let (key, object) = match choice {
        ToolChoice::Auto => ("auto", Object::default()),
        ToolChoice::Required => ("any", Object::default()),
        ToolChoice::Tool(name) => ("tool", Object::default().with("name", name.clone())),
        ToolChoice::None => return None,
    };
    Some(Object::default().with(key, object).into())
}

fn choice(text: &str) -> Option<ToolChoice> {
    let fields = Fields::parse(text)?;
    let mut kinds = fields.rest();
    let (kind, raw) = kinds.next()?;
    let mut inner = Fields::of(raw).filter(|_| kinds.next().is_none())?;
    match kind {
        "auto" => Some(ToolChoice::Auto),
        "any" => Some(ToolChoice::Required),
        "tool" => inner.take_text("name").map(ToolChoice::Tool),
        _ => None,
    }
}

fn is_forced(choice: &ToolChoice) -> bool {
    match choice {
        ToolChoice::Required | ToolChoice::Tool(_) => true,
        ToolChoice::Auto | ToolChoice::None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notes;

    fn reread(body: &str, change: impl FnOnce(&mut Request)) -> String {
        let mut fields = Fields::parse(body).unwrap();
        let (mut forms, mut request) = (Forms::of(NAME), Request::default());
        read(&mut fields, &mut forms, &mut request).unwrap();
        request.extra = forms.into_extra(&fields);
        change(&mut request);
        let (_, mut notes) = notes::prepare(&[], NAME);
        let mut object = Object::default();
        write(&mut object, &request, &mut notes);
        Tree::from(object).into_json().to_string()
    }

    #[test]
    fn untouched_parameters_keep_their_text() {
        for body in [
            r#"{"inferenceConfig":{"maxTokens":1024,"temperature":1}}"#,
            r#"{"inferenceConfig":{"temperature":0.50,"topP":1e-1,"stopSequences":["a"]}}"#,
            r#"{"inferenceConfig":{"maxTokens":1e3,"temperature":null}}"#,
            r#"{"inferenceConfig":{"temperature":1.5}}"#,
            r#"{"inferenceConfig":{}}"#,
            r#"{"inferenceConfig":null}"#,
            r#"{}"#,
        ] {
            assert_eq!(reread(body, |_| {}), body);
        }
    }

    #[test]
    fn a_changed_parameter_is_written_as_changed() {
        let body = r#"{"inferenceConfig":{"maxTokens":1e3,"temperature":1,"topP":0.5}}"#;
        let changed = reread(body, |request| {
            (request.max_output, request.temperature) = (Some(5), Some(0.5));
        });
        assert_eq!(changed, r#"{"inferenceConfig":{"maxTokens":5,"temperature":0.5,"topP":0.5}}"#);
    }
}
