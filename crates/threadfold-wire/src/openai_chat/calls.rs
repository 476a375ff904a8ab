//! Reading and writing tool calls.

use super::marks::*;
use crate::kit::*;

/// Reads `tool_calls`; `None` if it is not an array of objects, or empty.
pub(super) fn read_all(raw: Raw<'_>) -> Option<Vec<ToolUse>> {
    raw.all(|raw| read(raw).or_else(|| read_unknown(raw)))
}

/// Reads the deprecated `function_call`, which has no id; the call gets this one.
pub(super) fn read_deprecated(raw: Raw<'_>, id: Text) -> Option<ToolUse> {
    let mut fields = Fields::of(raw)?;
    let name = fields.take_text("name")?;
    let input = ToolInput::Text(fields.take_text("arguments")?);
    fields.add_word(mark::AS, "function_call");
    Some(ToolUse { id, name, input, extra: fields.keep(CODEC) })
}

/// Whether a `function_call` has neither name nor arguments. Some servers send such a field in
/// answers without calls.
pub(super) fn is_empty_call(raw: Raw<'_>) -> bool {
    let Some(fields) = Fields::of(raw) else { return false };
    ["name", "arguments"].into_iter().all(|key| {
        fields.value(key).is_none_or(|raw| raw.text().is_some_and(|text| text.is_blank()))
    })
}

/// Whether a call was read from the deprecated `function_call`.
pub(super) fn is_deprecated(call: &ToolUse) -> bool {
    marked(&call.extra, mark::AS).is_some_and(|form| form == "function_call")
}

/// Returns a call of an unknown form as it was read, so that it can be written whole, if at most
/// its id was changed since.
pub(super) fn kept_whole(call: &ToolUse) -> Option<ToolUse> {
    let as_read = read_unknown(Raw::of(call.extra.get(CODEC, mark::RAW)?))?;
    Some(as_read).filter(|as_read| as_read.name == call.name && as_read.input == call.input)
}

/// Returns a call of an unknown form as a function, if it names one but has no type, no input, or
/// its input as JSON instead of text: providers refuse all three.
pub(super) fn as_function(call: &ToolUse) -> Option<ToolUse> {
    let mut fields = Fields::parse(call.extra.get(CODEC, mark::RAW)?.as_str())?;
    let kind = fields.take_word("type");
    if call.id.is_empty() || kind.as_ref().is_some_and(|kind| kind != "function") {
        return None;
    }
    let mut body = Fields::of(fields.take_object("function")?)?;
    body.take_text("name")?;
    let input = body.take("arguments").filter(|raw| raw.get() != "null");
    if kind.is_some() && input.is_some_and(Raw::is_text) {
        return None;
    }
    fields.take("id");
    fields.add_inner("function", &body);
    let input = input.map_or_else(|| ToolInput::Text("{}".into()), |_| call.input.clone());
    Some(ToolUse { extra: fields.keep(CODEC), input, ..call.clone() })
}

/// Returns a call as an item of `tool_calls`.
pub(super) fn write(call: &ToolUse) -> Object {
    if let Some(as_read) = kept_whole(call) {
        let mut object = reopen(call.extra.get(CODEC, mark::RAW));
        if as_read.id != call.id {
            object.set("id", call.id.clone());
        }
        return object;
    }
    let custom = marked(&call.extra, mark::AS).is_some_and(|form| form == "custom");
    let (kind, input) = if custom { ("custom", "input") } else { ("function", "arguments") };
    let mut object = own_object(CODEC, &call.extra);
    let body = reopen(call.extra.get(CODEC, kind));
    object.set("id", call.id.clone());
    object.set("type", kind);
    let body = body.with("name", call.name.clone());
    object.set(kind, body.with(input, Text::from(call.input.as_str())));
    object
}

/// Returns a call as the deprecated `function_call`.
pub(super) fn write_deprecated(call: &ToolUse) -> Object {
    let object = own_object(CODEC, &call.extra).with("name", call.name.clone());
    object.with("arguments", Text::from(call.input.as_str()))
}

/// Reads a call of one of the two known forms.
fn read(raw: Raw<'_>) -> Option<ToolUse> {
    let mut fields = Fields::of(raw)?;
    let id = fields.take_text("id")?;
    let (kind, input) = match fields.take_word("type")?.as_ref() {
        "function" => ("function", "arguments"),
        "custom" => ("custom", "input"),
        _ => return None,
    };
    if kind == "custom" {
        fields.add_word(mark::AS, kind);
    }
    let mut body = Fields::of(fields.take(kind)?)?;
    let name = body.take_text("name")?;
    let input = ToolInput::Text(body.take_text(input)?);
    fields.add_inner(kind, &body);
    Some(ToolUse { id, name, input, extra: fields.keep(CODEC) })
}

/// Reads a call of an unknown form: without type or id, of another type, or with arguments that are
/// JSON. It is kept whole. Its id, name and input are read as far as possible, so that its result
/// can be paired with it.
fn read_unknown(raw: Raw<'_>) -> Option<ToolUse> {
    let fields = Fields::of(raw)?;
    let kind = fields.text("type").unwrap_or_else(|| "function".into());
    let body = fields.get(&kind).and_then(Fields::of);
    let body = body.as_ref();
    let name = body.and_then(|body| body.get("name")).and_then(Raw::text);
    let input = body.and_then(|body| body.get("arguments").or_else(|| body.get("input")));
    Some(ToolUse {
        id: fields.text_or_empty("id"),
        name: name.unwrap_or(kind),
        input: input.map_or_else(|| ToolInput::Json(Json::from_compact("{}")), read_input),
        extra: Extra::new(CODEC, [(mark::RAW, raw.json())]),
    })
}

fn read_input(raw: Raw<'_>) -> ToolInput {
    raw.text().map_or_else(|| ToolInput::Json(raw.json()), ToolInput::Text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Tree;

    fn written(call: &ToolUse) -> String {
        Tree::from(write(call)).into_json().to_string()
    }

    fn read_one(item: &str) -> ToolUse {
        let list = format!("[{item}]");
        read_all(serde_json::from_str(&list).unwrap()).unwrap().remove(0)
    }

    #[test]
    fn a_call_of_an_unknown_form_goes_back_as_it_came() {
        for item in [
            r#"{"id":"a","function":{"name":"f","arguments":{"x":1.0}}}"#,
            r#"{"type":"function","function":{"name":"f","arguments":"{}"}}"#,
            r#"{"id":"a","type":"probe","probe":{"name":"p","depth":3}}"#,
            r#"{"id":7,"type":"function"}"#,
            "{}",
        ] {
            assert_eq!(written(&read_one(item)), item);
        }
    }

    #[test]
    fn a_changed_call_of_an_unknown_form_is_written_as_a_function() {
        let mut call = read_one(r#"{"id":"a","function":{"name":"f","arguments":{}}}"#);
        call.name = "g".into();
        let expected = r#"{"id":"a","type":"function","function":{"name":"g","arguments":"{}"}}"#;
        assert_eq!(written(&call), expected);
    }
}
