//! Request parameters, and what depends on them.

use super::forms::NAME;
use crate::kit::*;

/// Reads the parameters of a body.
pub(super) fn read(fields: &mut Fields<'_>, request: &mut Request) {
    request.max_output = MAX_OUTPUT.take(fields);
    request.temperature = TEMPERATURE.take(fields);
    request.tool_choice = TOOL_CHOICE.take(fields);
}

/// Marks a tool choice in a body that lacks the tools for it. [`write`] omits such a choice,
/// because the provider refuses it, but a body that was read with one is written back unchanged.
pub(super) fn note_lone_choice(request: &Request, fields: &mut Fields<'_>) {
    if let Some(choice) = &request.tool_choice
        && !is_met(choice, request.tools.iter().map(|tool| &tool.name))
        && let Some(tree) = (TOOL_CHOICE.write)(choice)
    {
        fields.add("~tool_choice", tree.into_json());
    }
}

/// Sets the temperature and the choice among these tools. A choice whose tools are missing is
/// omitted, because the provider refuses it.
pub(super) fn write(object: &mut Object, request: &Request, tools: &[ToolSpec], notes: &mut Notes) {
    TEMPERATURE.set(object, &request.extra, request.temperature.as_ref(), notes);
    let lone = Param { kept_as: "~tool_choice", ..TOOL_CHOICE };
    let stays = request.tool_choice.as_ref().is_none_or(|choice| {
        let is_met = is_met(choice, tools.iter().map(|tool| &tool.name));
        is_met || lone.was_read_as(NAME, &request.extra, choice)
    });
    if stays {
        TOOL_CHOICE.set(object, &request.extra, request.tool_choice.as_ref(), notes);
    } else {
        notes.drop_parameter(TOOL_CHOICE.key());
    }
}

/// The type of thinking that the request sets, if any.
pub(super) fn thinking_type(extra: &Extra) -> Option<Text> {
    Fields::parse(extra.get(NAME, "thinking")?.as_str())?.take_text("type")
}

pub(super) const MAX_OUTPUT: Param<u64> = Param { read: whole_number, ..limit("~max_tokens") };

const TEMPERATURE: Param<f64> = temperature(write_to_one);

pub(super) const TOOL_CHOICE: Param<ToolChoice> = Param {
    kept_as: "tool_choice",
    read: choice,
    write: |choice| {
        Some(Tree::from(match choice {
            ToolChoice::Auto => Object::typed("auto"),
            ToolChoice::Required => Object::typed("any"),
            ToolChoice::None => Object::typed("none"),
            ToolChoice::Tool(name) => Object::typed("tool").with("name", name.clone()),
        }))
    },
};

fn whole_number(raw: Raw<'_>) -> Option<u64> {
    // Floats represent every whole number up to this one exactly.
    const MAX: f64 = 9_007_199_254_740_992.0;
    raw.whole_number().or_else(|| {
        let float = raw.number()?;
        let whole = (0.0..MAX).contains(&float) && float.fract() == 0.0;
        whole.then(|| format!("{float:.0}").parse().ok()).flatten()
    })
}

fn choice(raw: Raw<'_>) -> Option<ToolChoice> {
    let mut fields = Fields::of(raw)?;
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
    use crate::notes;

    fn reread(body: &str, change: impl FnOnce(&mut Request)) -> String {
        let mut fields = Fields::parse(body).unwrap();
        let mut request = Request::default();
        read(&mut fields, &mut request);
        note_lone_choice(&request, &mut fields);
        request.extra = fields.keep(NAME);
        change(&mut request);
        let mut object = Object::default();
        let (_, mut notes) = notes::prepare(&[], NAME);
        MAX_OUTPUT.set(&mut object, &request.extra, request.max_output.as_ref(), &mut notes);
        write(&mut object, &request, &[], &mut notes);
        let rest = notes.own_fields(&request.extra);
        add_rest(&mut object, rest.filter(|(key, _)| *key != TOOL_CHOICE.key()));
        object.into_json().to_string()
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
