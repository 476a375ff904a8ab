//! Request parameters, and what depends on them.

use super::forms::{NAME, within};
use crate::kit::*;

const MAX_OUTPUT: Param<u64> =
    Param { write: |limit| Some(Tree::from(*limit)).filter(|_| *limit > 0), ..limit("~maxTokens") };

const TEMPERATURE: Param<f64> = temperature(write_to_one);

const TOOL_CHOICE: Param<ToolChoice> =
    Param { kept_as: "~toolChoice", read: choice, write: choice_form };

const INFERENCE: Section = Section { kept_as: "~inferenceConfig" };
const TOOLS: Section = Section { kept_as: "~toolConfig" };

/// Reads the inference parameters of a body.
pub(super) fn read(fields: &mut Fields<'_>, request: &mut Request) {
    INFERENCE.take(fields, |config| {
        request.max_output = MAX_OUTPUT.take(config);
        request.temperature = TEMPERATURE.take(config);
    });
}

/// Reads the tools of a body and the choice among them.
pub(super) fn read_tools(fields: &mut Fields<'_>, request: &mut Request) -> Result<()> {
    let path = Path::Field(&Path::Body, "toolConfig");
    let mut tools = Ok(Vec::new());
    TOOLS.take(fields, |config| {
        request.tool_choice = TOOL_CHOICE.take(config);
        tools = config.take_items("tools", path, "an array of tools").and_then(|items| {
            // A cache point among the tools is read like the provider's own tools.
            messages::tools(NAME, (items, Path::Field(&path, "tools")), read_tool, |fields| {
                let (key, raw) = fields.rest().next()?;
                let name = Fields::of(raw).and_then(|inner| inner.text("name"));
                Some(name.unwrap_or_else(|| key.into()))
            })
        });
    });
    request.tools = tools?.into();
    Ok(())
}

/// Reads a function of the host; `None` for any other tool.
fn read_tool(mut fields: Fields<'_>) -> Option<ToolSpec> {
    let mut inner = within(fields.take("toolSpec")?, &fields)?;
    let name = inner.take_text("name")?;
    let mut wrapped = Fields::of(inner.take("inputSchema")?)?;
    let schema = wrapped.take("json").filter(|_| wrapped.left() == 0)?;
    let input_schema = Some(schema.json()).filter(Json::is_object)?;
    if !is_typed(schema) {
        inner.add(mark::SCHEMA, input_schema.clone());
    }
    let description = inner.take_text("description").unwrap_or_default();
    let tool = ToolSpec::new(name, description, input_schema);
    Some(ToolSpec { extra: inner.keep(NAME), ..tool })
}

/// Sets the inference parameters of a body.
pub(super) fn write(body: &mut Object, request: &Request, notes: &mut Notes) {
    let extra = &request.extra;
    let mut config = Object::default();
    MAX_OUTPUT.set(&mut config, extra, request.max_output.as_ref(), notes);
    TEMPERATURE.set(&mut config, extra, request.temperature.as_ref(), notes);
    config.extend_unset(INFERENCE.rest(NAME, extra));
    INFERENCE.set(body, config, NAME, extra);
}

/// Sets the tools of a body and the choice among them. `may_force` allows a choice that forces a
/// call.
pub(super) fn write_tools(
    body: &mut Object,
    request: &Request,
    tools: Vec<Tree>,
    may_force: bool,
    notes: &mut Notes,
) {
    let extra = &request.extra;
    let choice = request.tool_choice.as_ref();
    let forces = matches!(choice, Some(ToolChoice::Required | ToolChoice::Tool(_)));
    let met = choice.filter(|_| !tools.is_empty() && (may_force || !forces));
    if choice.is_some() && met.is_none() {
        notes.drop_parameter(TOOL_CHOICE.key());
    }
    let rest = TOOLS.rest(NAME, extra);
    if tools.is_empty() {
        if rest.len() > 0 {
            notes.drop_parameter("toolConfig");
        }
        return;
    }
    let mut config = Object::of("tools", tools);
    TOOL_CHOICE.set(&mut config, extra, met, notes);
    config.extend_unset(rest);
    TOOLS.set(body, config, NAME, extra);
}

/// The key of the fields that the provider passes on to the model.
pub(super) const MODEL_FIELDS: &str = "additionalModelRequestFields";

/// The names of Claude's thinking in these fields.
pub(super) const THINKING: [&str; 2] = ["thinking", "reasoning_config"];

/// The type of thinking that the request sets, if any.
pub(super) fn thinking_type(extra: &Extra) -> Option<Text> {
    let fields = Fields::parse(extra.get(NAME, MODEL_FIELDS)?.as_str())?;
    let thinking = THINKING.into_iter().find_map(|key| fields.get(key))?;
    Fields::of(thinking)?.take_text("type")
}

/// The wire form of a choice. There is none that forbids all tools.
fn choice_form(choice: &ToolChoice) -> Option<Tree> {
    let (key, object) = match choice {
        ToolChoice::Auto => ("auto", Object::default()),
        ToolChoice::Required => ("any", Object::default()),
        ToolChoice::Tool(name) => ("tool", Object::of("name", name.clone())),
        ToolChoice::None => return None,
    };
    Some(Object::of(key, object).into())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dialect;
    use crate::notes;

    fn reread(body: &str, change: impl FnOnce(&mut Request)) -> String {
        let mut fields = Fields::parse(body).unwrap();
        let mut request = Request::default();
        read(&mut fields, &mut request);
        request.extra = fields.keep(NAME);
        change(&mut request);
        let (_, mut notes) = notes::prepare(&[], NAME);
        let mut object = Object::default();
        write(&mut object, &request, &mut notes);
        object.into_json().to_string()
    }

    #[test]
    fn untouched_parameters_keep_their_text() {
        for body in [
            r#"{"inferenceConfig":{"maxTokens":1024,"temperature":1}}"#,
            r#"{"inferenceConfig":{"temperature":0.50,"topP":1e-1,"stopSequences":["a"]}}"#,
            r#"{"inferenceConfig":{"maxTokens":1e3,"temperature":null}}"#,
            r#"{"inferenceConfig":{"temperature":1.5}}"#,
            r#"{"inferenceConfig":{}}"#,
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

    #[test]
    fn a_section_that_is_no_object_goes_back_as_it_came() {
        for section in ["5", "null", "[]"] {
            let messages = r#""messages":[{"role":"user","content":[{"text":"hi"}]}]"#;
            let text =
                format!(r#"{{{messages},"inferenceConfig":{section},"toolConfig":{section}}}"#);
            let request =
                Dialect::BedrockConverse.decode_slice(text.as_bytes(), &DecodeOptions::default());
            let encoded =
                Dialect::BedrockConverse.encode(&request.unwrap(), &EncodeOptions::default());
            let expected: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert_eq!((encoded.body.to_value().unwrap(), encoded.adjustments), (expected, vec![]));
        }
    }
}
