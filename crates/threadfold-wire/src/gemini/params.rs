//! Request parameters. A parameter that cannot be read stays an unknown field.

use super::marks::*;
use crate::kit::*;

const GENERATION: Section = Section { kept_as: "~generationConfig" };
const TOOLS: Section = Section { kept_as: "~toolConfig" };

const MAX_OUTPUT: Param<u64> = limit("~maxOutputTokens");

const CHOICE: Param<ToolChoice> =
    Param { kept_as: "~functionCallingConfig", read: choice, write: write_choice };

/// Returns the request with the parameters of the body.
pub(super) fn read(mut fields: Fields<'_>, mut request: Request) -> Request {
    GENERATION.take(&mut fields, |config| {
        camel_case(config);
        request.max_output = MAX_OUTPUT.take(config);
        request.temperature = TEMPERATURE.take(config);
    });
    TOOLS.take(&mut fields, |config| {
        camel_case(config);
        let Some(raw) = config.get(CHOICE.key()) else { return };
        request.tool_choice = choice(raw);
        if request.tool_choice.is_none() {
            return;
        }
        config.add(CHOICE.kept_as, raw.json());
        // If the section has unknown fields, the choice stays in it too, so that other codecs
        // report the section as left out.
        const KNOWN: [&str; 2] = ["mode", "allowedFunctionNames"];
        if self::fields(raw).is_some_and(|all| all.rest().all(|(key, _)| KNOWN.contains(&key))) {
            config.take(CHOICE.key());
        }
    });
    request.extra = fields.keep(CODEC);
    request
}

/// Returns the body without its contents. `functions` are the names that it declares.
pub(super) fn write(
    request: &Request,
    options: &EncodeOptions,
    functions: &[Text],
    notes: &mut Notes,
) -> Object {
    notes.turn_to(None);
    let extra = &request.extra;
    let mut body = wire_fields(extra, notes);
    if body.get("model").is_some() {
        // The address names the model; some servers also want it here.
        body.set_some("model", options.model.clone());
    }
    let mut config = Object::default();
    MAX_OUTPUT.set(&mut config, extra, request.max_output.as_ref(), notes);
    TEMPERATURE.set(&mut config, extra, request.temperature.as_ref(), notes);
    config.extend_unset(GENERATION.rest(CODEC, extra));
    respell(&mut config, extra);
    GENERATION.set(&mut body, config, CODEC, extra);
    write_tools(request, functions, &mut body, notes);
    body
}

fn write_tools(request: &Request, functions: &[Text], body: &mut Object, notes: &mut Notes) {
    let extra = &request.extra;
    let met = request.tool_choice.as_ref().filter(|choice| {
        is_met(choice, functions.iter()) || CHOICE.was_read_as(CODEC, extra, choice)
    });
    if met.is_none() && request.tool_choice.is_some() {
        notes.drop_parameter("tool_choice");
    }
    let mut config = Object::default();
    CHOICE.set(&mut config, extra, met, notes);
    let mut rest = TOOLS.rest(CODEC, extra);
    if has_mark(extra, CHOICE.kept_as) {
        // Remove the choice that was read, which the section still holds.
        rest.remove(CHOICE.key());
    }
    config.extend_unset(rest);
    respell(&mut config, extra);
    TOOLS.set(body, config, CODEC, extra);
}

fn choice(raw: Raw<'_>) -> Option<ToolChoice> {
    let fields = fields(raw)?;
    let names = fields.items("allowedFunctionNames").unwrap_or_default();
    match (fields.text("mode")?.as_str(), names.as_slice()) {
        ("AUTO", []) => Some(ToolChoice::Auto),
        ("NONE", []) => Some(ToolChoice::None),
        ("ANY", []) => Some(ToolChoice::Required),
        ("ANY", [one]) => one.text().map(ToolChoice::Tool),
        _ => None,
    }
}

fn write_choice(choice: &ToolChoice) -> Option<Tree> {
    let mode = match choice {
        ToolChoice::Auto => "AUTO",
        ToolChoice::Required | ToolChoice::Tool(_) => "ANY",
        ToolChoice::None => "NONE",
    };
    let mut object = Object::of("mode", mode);
    if let ToolChoice::Tool(name) = choice {
        object.set("allowedFunctionNames", vec![Tree::from(name.clone())]);
    }
    Some(object.into())
}
