//! Request parameters that have a type of their own, both ways, and what they decide.

use super::forms::{self, NAME};
use crate::kit::*;

const MAX_OUTPUT: Param<u64> = Param {
    key: "maxTokens",
    kept_as: "~maxTokens",
    read: number,
    write: |limit| Some(Tree::from(*limit)).filter(|_| *limit > 0),
};

const TEMPERATURE: Param<f64> =
    Param { key: "temperature", kept_as: forms::TEMPERATURE, read: number, write: write_to_one };

const TOOL_CHOICE: Param<ToolChoice> =
    Param { key: "toolChoice", kept_as: forms::TOOL_CHOICE, read: choice, write: choice_form };

/// Takes the parameters of inference out of a body.
pub(super) fn read(fields: &mut Fields<'_>, request: &mut Request) -> Result<(), WireError> {
    let Some(raw) = fields.take("inferenceConfig") else { return Ok(()) };
    if matches!(raw.get(), "null" | "{}") {
        fields.note(forms::INFERENCE, raw.json());
        return Ok(());
    }
    let mut config = Fields::read(raw, Path::Field(&Path::Body, "inferenceConfig"))?;
    request.max_output = MAX_OUTPUT.take_from(&mut config, fields);
    request.temperature = TEMPERATURE.take_from(&mut config, fields);
    fields.note_inner("inferenceConfig", &config);
    Ok(())
}

/// Takes the choice of tools out. One that does not read as a choice stays.
pub(super) fn read_choice(config: &mut Fields<'_>, body: &mut Fields<'_>, request: &mut Request) {
    request.tool_choice = TOOL_CHOICE.take_from(config, body);
}

/// Sets the parameters of inference of a body.
pub(super) fn write(body: &mut Object, request: &Request, notes: &mut Notes) {
    let extra = &request.extra;
    let mut config = Object::default();
    MAX_OUTPUT.set(&mut config, extra, request.max_output.as_ref(), notes);
    TEMPERATURE.set(&mut config, extra, request.temperature.as_ref(), notes);
    config.extend_unset(reopen(extra.get(NAME, "inferenceConfig")));
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
    let choice = request.tool_choice.as_ref();
    let met = choice.filter(|it| !tools.is_empty() && (forced == Forced::May || !is_forced(it)));
    if choice.is_some() && met.is_none() {
        notes.drop_parameter(TOOL_CHOICE.key);
    }
    if tools.is_empty() {
        if extra.get(NAME, "toolConfig").is_some() {
            notes.drop_parameter("toolConfig");
        }
        body.set_some("toolConfig", extra.get(NAME, forms::TOOLS).cloned());
        return;
    }
    let mut config = Object::default().with("tools", tools);
    TOOL_CHOICE.set(&mut config, extra, met, notes);
    config.extend_unset(reopen(extra.get(NAME, "toolConfig")));
    body.set("toolConfig", config);
}

/// Whether the model may be made to call a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Forced {
    May,
    MayNot,
}

/// The key of the fields that the provider passes on to the model.
pub(super) const MODEL_FIELDS: &str = "additionalModelRequestFields";

/// The names under which Claude's thinking is switched on there.
pub(super) const THINKING: [&str; 2] = ["thinking", "reasoning_config"];

/// The type of thinking that the request asks for, if it asks for one.
pub(super) fn thinking_type(extra: &Extra) -> Option<Text> {
    let fields = Fields::parse(extra.get(NAME, MODEL_FIELDS)?.as_str())?;
    let thinking = THINKING.into_iter().find_map(|key| fields.get(key))?;
    Fields::of(thinking)?.take_text("type")
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

fn choice(raw: Raw<'_>) -> Option<ToolChoice> {
    let fields = Fields::of(raw)?;
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
        let mut request = Request::default();
        read(&mut fields, &mut request).unwrap();
        request.extra = fields.keep(NAME);
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
