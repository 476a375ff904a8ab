//! Request parameters and tools. A parameter that cannot be read stays an unknown field.

use super::marks::*;
use crate::kit::*;

const LIMIT: Param<u64> = limit("~max_completion_tokens");
const OLD_LIMIT: Param<u64> = limit("~max_tokens");

const TOOLS: Tools = Tools {
    codec: CODEC,
    read: read_tool,
    is_native: |tool| !tool.extra.is_empty(),
    write: write_tool,
    choice: Param { kept_as: "~tool_choice", read: openai::read_choice, write: write_choice },
};

/// Returns the request of these messages, with the parameters of the body.
pub(super) fn read(mut fields: Fields<'_>, system: Vec<Message>, thread: Vec<Message>) -> Request {
    let mut max_output = LIMIT.take(&mut fields);
    if max_output.is_none() {
        max_output = fields.get(OLD_LIMIT.key()).and_then(OLD_LIMIT.read);
        // Always remember the text, because the mark also means that the limit is written under its
        // old name.
        if let Some(json) = max_output.and_then(|_| fields.take_json(OLD_LIMIT.key())) {
            fields.add(OLD_LIMIT.kept_as, json);
        }
    }
    Request { max_output, ..TOOLS.read_request(fields, system, thread) }
}

/// Returns the body without its messages.
pub(super) fn write(request: &Request, options: &EncodeOptions, notes: &mut Notes) -> Object {
    let is_old = request.extra.get(CODEC, OLD_LIMIT.kept_as).is_some();
    let limit = if is_old { OLD_LIMIT } else { LIMIT };
    TOOLS.write_request(request, options, request.max_output.map(|_| limit), notes)
}

fn read_tool(mut fields: Fields<'_>) -> Option<ToolSpec> {
    fields.take_word("type").filter(|kind| kind == "function")?;
    let mut function = Fields::of(fields.take("function")?)?;
    let tool = openai::read_function(&mut function)?;
    fields.add_inner("function", &function);
    fields.move_marks(&mut function);
    Some(ToolSpec { extra: fields.keep(CODEC), ..tool })
}

fn write_tool(tool: &ToolSpec, object: &mut Object) {
    let mut function = reopen(tool.extra.get(CODEC, "function"));
    openai::set_function(tool, CODEC, &mut function);
    object.set("type", "function");
    object.set("function", function);
}

fn write_choice(choice: &ToolChoice) -> Option<Tree> {
    openai::write_choice(choice, |name| {
        let function = Object::of("name", name);
        Object::typed("function").with("function", function)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notes;

    #[test]
    fn every_form_of_a_tool_goes_back_as_it_came() {
        for tool in [
            r#"{"type":"function","function":{"name":"f"}}"#,
            r#"{"type":"function","function":{"description":null,"parameters":null,"name":"f"}}"#,
            r#"{"type":"function","function":{"strict":true,"name":"f","parameters":{"b":1,"a":2}}}"#,
            r#"{"type":"function","function":{"description":"","name":"f","parameters":{}}}"#,
            r#"{"type":"function","function":{"name":7}}"#,
            r#"{"type":"custom","custom":{"name":"c","format":{"type":"text"}}}"#,
        ] {
            let list = format!("[{tool}]");
            let (_, mut notes) = notes::prepare(&[], CODEC);
            let read = TOOLS.read_all(serde_json::from_str(&list).unwrap()).unwrap().remove(0);
            let written = Tree::from(TOOLS.declaration(&read, &mut notes).unwrap()).into_json();
            assert_eq!(
                written.to_value().unwrap(),
                serde_json::from_str::<serde_json::Value>(tool).unwrap()
            );
        }
    }
}
