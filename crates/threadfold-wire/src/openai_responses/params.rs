//! Request parameters and tools. A parameter that cannot be read stays an unknown field.

use super::marks::*;
use crate::kit::*;

const LIMIT: Param<u64> = limit("~max_output_tokens");

const TOOLS: Tools = Tools {
    codec: CODEC,
    read: read_tool,
    is_native: |tool| is_own(tool) && marked(&tool.extra, mark::STRICT).is_none(),
    write: write_tool,
    choice: Param {
        kept_as: "~tool_choice",
        read: openai::read_choice,
        write: |choice| {
            openai::write_choice(choice, |name| Object::typed("function").with("name", name))
        },
    },
};

/// The parameters that continue a stored response or conversation, each with the field of an answer
/// that holds the same id.
pub(super) const CHAINS: [(&str, &str); 2] =
    [("previous_response_id", "id"), ("conversation", "conversation")];

/// Returns the request of these messages, with the parameters of the body.
pub(super) fn read(mut fields: Fields<'_>, system: Vec<Message>, thread: Vec<Message>) -> Request {
    let max_output = LIMIT.take(&mut fields);
    Request { max_output, ..TOOLS.read_request(fields, system, thread) }
}

/// Returns the body without instructions and input.
pub(super) fn write(request: &Request, options: &EncodeOptions, notes: &mut Notes) -> Object {
    let mut body = TOOLS.write_request(request, options, Some(LIMIT), notes);
    if let Some(ToolChoice::Tool(name)) = &request.tool_choice
        && let Some(Tree::Object(choice)) = body.get_mut("tool_choice")
        && let Some(tool) = request.tools.iter().find(|tool| tool.name == *name)
        && marked(&tool.extra, "type").as_deref() == Some("custom")
    {
        choice.set("type", "custom");
    }
    body
}

/// Removes the parameters that would make the provider repeat messages that the thread itself
/// holds.
///
/// The provider inserts the stored messages before the input. That is right if the thread holds
/// only later messages. It is wrong if the thread holds the answer that the parameter names, or if
/// a part of the thread was compacted, which the provider still has in full. Returns whether such a
/// parameter stays.
pub(super) fn cut_chain(request: &Request, body: &mut Object, notes: &mut Notes) -> bool {
    notes.turn_to(None);
    let mut is_chained = false;
    for (name, key) in CHAINS {
        let Some(json) = request.extra.get(CODEC, name).filter(|json| **json != Json::default())
        else {
            continue;
        };
        if is_compacted(request) || holds_answer(request, key, json) {
            body.remove(name);
            notes.drop_parameter(name);
        } else {
            is_chained = true;
        }
    }
    is_chained
}

/// Whether a part of the thread was compacted or changed since it was read. A summary that was read
/// as text is no compaction of this thread.
fn is_compacted(request: &Request) -> bool {
    request.messages.iter().any(|message| {
        message.prefix_rewritten
            || message.content.iter().any(|block| {
                matches!(block, ContentBlock::Summary(summary)
                    if marked(&summary.extra, mark::AS).is_none())
            })
    })
}

/// Whether the thread holds an answer of the stored response or conversation.
fn holds_answer(request: &Request, key: &str, json: &Json) -> bool {
    let Some(wanted) = id_of(Raw::of(json)) else { return false };
    request.messages.iter().any(|message| {
        let response = message.extra.get(CODEC, mark::RESPONSE).map(Json::as_str);
        let id = response.and_then(Fields::parse).and_then(|response| id_of(response.get(key)?));
        id.as_ref() == Some(&wanted)
    })
}

/// Reads an id that is a string, or the field of an object.
fn id_of(raw: Raw<'_>) -> Option<Text> {
    raw.text().or_else(|| Fields::of(raw)?.text("id"))
}

fn is_own(tool: &ToolSpec) -> bool {
    tool.extra.codec() == Some(CODEC)
}

fn read_tool(mut fields: Fields<'_>) -> Option<ToolSpec> {
    fields.take_word("type").filter(|kind| kind == "function")?;
    // Always set the mark, because it distinguishes functions that were read in this dialect from
    // others.
    fields.add_word(mark::STRICT, if fields.get("strict").is_none() { "absent" } else { "said" });
    let tool = openai::read_function(&mut fields)?;
    Some(ToolSpec { extra: fields.keep(CODEC), ..tool })
}

fn write_tool(tool: &ToolSpec, object: &mut Object) {
    // Without it the provider applies its rules for strict schemas.
    if !is_own(tool) {
        object.set("strict", false);
    }
    object.set("type", "function");
    openai::set_function(tool, CODEC, object);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notes;

    #[test]
    fn every_form_of_a_tool_goes_back_as_it_came() {
        for tool in [
            r#"{"type":"function","name":"f"}"#,
            r#"{"description":null,"parameters":null,"type":"function","name":"f","strict":null}"#,
            r#"{"strict":true,"type":"function","name":"f","parameters":{"b":1,"a":2}}"#,
            r#"{"description":"","type":"function","name":"f","parameters":{}}"#,
            r#"{"type":"function","name":7}"#,
            r#"{"type":"custom","name":"c","format":{"type":"text"}}"#,
            r#"{"type":"mcp","server_label":"s","server_url":"https://example.org"}"#,
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

    #[test]
    fn a_tool_of_others_is_not_strict() {
        let tool = ToolSpec::new("f", "", serde_json::json!({"type": "object"}));
        let (_, mut notes) = notes::prepare(&[], CODEC);
        let written = Tree::from(TOOLS.declaration(&tool, &mut notes).unwrap()).into_json();
        let expected =
            r#"{"strict":false,"type":"function","name":"f","parameters":{"type":"object"}}"#;
        assert_eq!(written.as_str(), expected);
    }
}
