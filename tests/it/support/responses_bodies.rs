//! Random Responses bodies.

use proptest::{collection::vec, option, prelude::*, sample::select};
use serde_json::{Value, json};

use super::random_json::{self, blank_or_text, rarely, text, text_of, with};

/// A body that the API accepts.
pub(crate) fn body() -> impl Strategy<Value = Value> {
    let items = (vec(said("developer"), 0..2), vec(exchange(), 1..6));
    let tools = option::of(vec(tool(), 1..3));
    (items, params(), tools, unknown()).prop_map(
        |((leading, exchanges), params, tools, unknown)| {
            let mut items = leading;
            for (index, exchange) in exchanges.into_iter().enumerate() {
                items.extend(exchange.into_iter().map(|item| numbered(item, index)));
            }
            let mut body = with(json!({"input": items}), params);
            if let Some(tools) = tools {
                body = with(body, json!({"tools": tools}));
            }
            with(body, unknown)
        },
    )
}

/// Any JSON in which the words of the dialect are frequent.
pub(crate) fn junk() -> impl Strategy<Value = Value> {
    let words = vec![
        "role",
        "content",
        "type",
        "text",
        "user",
        "assistant",
        "system",
        "message",
        "input",
        "reasoning",
        "summary",
        "summary_text",
        "encrypted_content",
        "function_call",
        "function_call_output",
        "custom_tool_call",
        "call_id",
        "id",
        "name",
        "arguments",
        "output",
        "input_text",
        "output_text",
        "input_image",
        "image_url",
        "input_file",
        "file_data",
        "refusal",
        "computer_call",
        "computer_call_output",
        "web_search_call",
        "item_reference",
        "compaction_trigger",
        "local_shell_call_output",
        "previous_response_id",
        "~part",
        "~item",
        "item",
        "status",
        "",
    ];
    random_json::junk(words, 4)
}

/// Makes ids unique over the body.
fn numbered(mut item: Value, exchange: usize) -> Value {
    for key in ["id", "call_id", "approval_request_id"] {
        if let Some(Value::String(id)) = item.get_mut(key) {
            *id = format!("{id}_{exchange}");
        }
    }
    item
}

/// A message and its consequences.
fn exchange() -> impl Strategy<Value = Vec<Value>> {
    prop_oneof![
        said("user").prop_map(|item| vec![item]),
        said("system").prop_map(|item| vec![item]),
        answer(),
        calls(),
        pairs(),
        select(whole()).prop_map(|item| vec![item]),
    ]
}

fn said(role: &'static str) -> impl Strategy<Value = Value> {
    let form = select(vec![
        json!({}),
        json!({"type": "message"}),
        json!({"type": "message", "status": "completed"}),
        json!({"type": "message", "id": "msg_u"}),
    ]);
    let part = prop_oneof![part("input_text"), media_part(), unknown_part()].boxed();
    (content("input_text", part), form, unknown()).prop_map(move |(content, form, unknown)| {
        with(with(json!({"role": role, "content": content}), form), unknown)
    })
}

/// Reasoning and its consequences.
fn answer() -> impl Strategy<Value = Vec<Value>> {
    let spoken = prop_oneof![
        (content("output_text", answer_part()), unknown()).prop_map(|(content, unknown)| with(
            json!({"role": "assistant", "content": content}),
            unknown
        )),
        (vec(answer_part(), 0..3), unknown()).prop_map(|(content, unknown)| {
            let item = json!({"type": "message", "id": "msg_1", "role": "assistant",
                "status": "completed", "phase": null, "content": content});
            with(item, unknown)
        }),
        (vec(answer_part(), 1..3), unknown()).prop_map(|(content, unknown)| with(
            json!({"type": "message", "role": "assistant", "content": content}),
            unknown
        )),
        select(vec![
            json!({"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}}),
            json!({"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "AA=="}),
            json!({"type": "mcp_call", "id": "mcp_1", "name": "n", "server_label": "s", "arguments": "{}", "output": "o"}),
        ]),
    ];
    (option::of(reasoning()), spoken)
        .prop_map(|(reasoning, spoken)| reasoning.into_iter().chain([spoken]).collect())
}

fn reasoning() -> impl Strategy<Value = Value> {
    let summary = vec(text().prop_map(|text| json!({"type": "summary_text", "text": text})), 0..3);
    let form = select(vec![
        json!({"id": "rs_1"}),
        json!({"id": "rs_1", "encrypted_content": "gAAA", "status": null}),
        json!({"encrypted_content": "gAAA", "content": null}),
        json!({"id": "rs_1", "encrypted_content": null, "content": [{"type": "reasoning_text", "text": "hm"}]}),
    ]);
    (summary, form, unknown()).prop_map(|(summary, form, unknown)| {
        with(with(json!({"type": "reasoning", "summary": summary}), form), unknown)
    })
}

/// Calls of functions and custom tools, and their results in any order.
fn calls() -> impl Strategy<Value = Vec<Value>> {
    let result = content("input_text", prop_oneof![part("input_text"), media_part()].boxed());
    let result = prop_oneof![5 => result, 1 => Just(json!("")), 1 => Just(json!([]))];
    let call =
        (call(), result, option::of(Just(json!({"id": "fco", "status": "completed"}))), unknown());
    (option::of(reasoning()), vec(call, 1..4), any::<bool>(), option::of(said("user"))).prop_map(
        |(reasoning, calls, reverse, user)| {
            let mut items: Vec<Value> = reasoning.into_iter().collect();
            let mut results = Vec::new();
            for (index, (mut call, output, form, unknown)) in calls.into_iter().enumerate() {
                let id = format!("call_{index}");
                call["call_id"] = json!(id);
                if let Some(id) = call.get_mut("id") {
                    *id = json!(format!("fc_{index}"));
                }
                let kind = format!("{}_output", call["type"].as_str().unwrap());
                let mut form = form.unwrap_or(json!({}));
                if let Some(id) = form.get_mut("id") {
                    *id = json!(format!("fco_{index}"));
                }
                let result = json!({"type": kind, "call_id": id, "output": output});
                results.push(with(with(result, form), unknown));
                items.push(call);
            }
            if reverse {
                results.reverse();
            }
            items.extend(results);
            items.extend(user);
            items
        },
    )
}

fn call() -> impl Strategy<Value = Value> {
    let arguments = prop_oneof![
        Just("{}".to_owned()),
        Just(r#"{"b": 1.0, "a": 1e2}"#.to_owned()),
        Just("{\"a\": ".to_owned()),
        text(),
    ];
    let kind = select(vec![("function_call", "arguments"), ("custom_tool_call", "input")]);
    let form = select(vec![
        json!({}),
        json!({"id": "fc"}),
        json!({"id": "fc", "status": "completed", "namespace": "n", "caller": {"type": "direct"}}),
    ]);
    (kind, "[a-z_]{1,8}", arguments, form, unknown()).prop_map(
        |((kind, key), name, arguments, form, unknown)| {
            with(with(json!({"type": kind, "name": name, key: arguments}), form), unknown)
        },
    )
}

/// Calls of special kinds, each with its answer.
fn pairs() -> impl Strategy<Value = Vec<Value>> {
    let pairs = vec![
        json!([{"type": "local_shell_call", "id": "lsh", "call_id": "c", "status": "completed", "action": {"type": "exec", "command": ["ls"], "env": {}}},
            {"type": "local_shell_call_output", "id": "c", "output": "{}"}]),
        json!([{"type": "local_shell_call", "id": "lsh", "call_id": "c", "status": "completed", "action": {"type": "exec", "command": ["ls"], "env": {}}},
            {"type": "function_call_output", "call_id": "c", "output": "a.txt"}]),
        json!([{"type": "computer_call", "id": "cu", "call_id": "c", "status": "completed", "pending_safety_checks": [], "action": {"type": "screenshot"}},
            {"type": "computer_call_output", "call_id": "c", "output": {"type": "computer_screenshot", "image_url": "data:image/png;base64,AA=="}}]),
        json!([{"type": "shell_call", "call_id": "c", "action": {"commands": ["ls"]}},
            {"type": "shell_call_output", "call_id": "c", "max_output_length": 9, "output": [{"stdout": "a", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]}]),
        json!([{"type": "apply_patch_call", "call_id": "c", "status": "completed", "operation": {"type": "delete_file", "path": "a"}},
            {"type": "apply_patch_call_output", "call_id": "c", "status": "completed"}]),
        json!([{"type": "tool_search_call", "call_id": "c", "execution": "client", "arguments": {"q": 1}},
            {"type": "tool_search_output", "call_id": "c", "execution": "client", "tools": []}]),
        json!([{"type": "tool_search_call", "call_id": null, "execution": "server", "arguments": {}},
            {"type": "tool_search_output", "call_id": null, "execution": "server", "tools": []}]),
        json!([{"type": "mcp_approval_request", "id": "mcpr", "name": "n", "server_label": "s", "arguments": "{}"},
            {"type": "mcp_approval_response", "approval_request_id": "mcpr", "approve": true}]),
    ];
    (option::of(reasoning()), select(pairs)).prop_map(|(reasoning, pair)| {
        let reasoning = reasoning.into_iter();
        reasoning.chain(pair.as_array().unwrap().clone()).collect()
    })
}

/// Items that only this dialect has.
fn whole() -> Vec<Value> {
    vec![
        json!({"type": "compaction", "encrypted_content": "gAAA", "id": "cmp_1"}),
        json!({"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "s", "tools": []}),
        json!({"type": "item_reference", "id": "msg_ref"}),
        json!({"type": null, "id": "rs_ref"}),
        json!({"id": "fc_ref"}),
        json!({"type": "hologram", "depth": [1.0, 1e30]}),
        json!({"role": "critic", "content": "no"}),
        json!({"role": "user", "content": []}),
        json!({"~part": {"type": "x"}, "type": "odd"}),
    ]
}

fn content(kind: &'static str, part: BoxedStrategy<Value>) -> impl Strategy<Value = Value> {
    let kinds = select(vec![
        "<checkpoint:a1b2c3>",
        "<system-reminder>\nbe brief\n</system-reminder>",
        "<system-reminder>\n \n</system-reminder>",
        "<conversation-summary>\nall of it\n</conversation-summary>",
    ]);
    let kinds = kinds.prop_map(str::to_owned).boxed();
    let kind_part = kinds.clone().prop_map(move |text| json!({"type": kind, "text": text}));
    prop_oneof![
        3 => blank_or_text().prop_map(Value::from),
        1 => kinds.prop_map(Value::from),
        3 => vec(prop_oneof![3 => part, 1 => kind_part], 1..4).prop_map(Value::from),
    ]
}

fn part(kind: &'static str) -> impl Strategy<Value = Value> {
    (blank_or_text(), unknown())
        .prop_map(move |(text, unknown)| with(json!({"type": kind, "text": text}), unknown))
}

fn answer_part() -> BoxedStrategy<Value> {
    let annotated = select(vec![
        json!({}),
        json!({"annotations": []}),
        json!({"annotations": [{"type": "file_path", "file_id": "f", "index": 1.0}], "logprobs": []}),
    ]);
    prop_oneof![
        6 => (part("output_text"), annotated).prop_map(|(part, more)| with(part, more)),
        1 => text_of(|text| !text.is_empty()).prop_map(|text| json!({"type": "refusal", "refusal": text})),
        1 => part("input_text"),
        1 => Just(json!({"type": "output_text", "text": "x", "item": {"a": 1}})),
        1 => Just(json!({"type": "hologram"})),
    ]
    .boxed()
}

fn media_part() -> impl Strategy<Value = Value> {
    let part = select(vec![
        json!({"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo=", "detail": "auto"}),
        json!({"type": "input_image", "image_url": "data:image/png;charset=utf-8;base64,AA"}),
        json!({"type": "input_image", "image_url": "https://example.com/a.png", "file_id": null, "detail": "low"}),
        json!({"type": "input_image", "file_id": "file-1", "detail": "high"}),
        json!({"type": "input_file", "file_id": "file-1"}),
        json!({"type": "input_file", "file_url": "https://example.com/a.pdf", "filename": null}),
        json!({"type": "input_file", "file_data": "data:application/pdf;base64,JVBERi0=", "filename": "a.pdf"}),
        json!({"type": "input_file", "file_data": "JVBERi0=", "filename": "a.pdf"}),
        json!({"type": "input_file", "filename": "a.pdf"}),
    ]);
    (part, unknown()).prop_map(|(part, unknown)| with(part, unknown))
}

fn unknown_part() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!({"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}})),
        Just(json!({"~item": 1, "value": {"role": "user"}})),
        Just(json!({"type": "input_text", "text": null})),
    ]
}

fn tool() -> impl Strategy<Value = Value> {
    let function = (
        "[a-z_]{1,8}",
        option::of(select(vec![Value::Null, json!(""), json!("does it")])),
        option::of(select(vec![
            Value::Null,
            json!({}),
            json!({"type": "object", "properties": {}}),
        ])),
        option::of(select(vec![Value::Null, json!(true)])),
    );
    let function = function.prop_map(|(name, description, parameters, strict)| {
        let mut tool = json!({"type": "function", "name": name});
        let fields = [("description", description), ("parameters", parameters), ("strict", strict)];
        for (key, value) in fields {
            if let Some(value) = value {
                tool[key] = value;
            }
        }
        tool
    });
    let tool = prop_oneof![
        3 => function.boxed(),
        1 => Just(json!({"type": "custom", "name": "c", "description": "d"})).boxed(),
        1 => Just(json!({"type": "web_search", "filters": null})).boxed(),
    ];
    (tool, unknown()).prop_map(|(tool, unknown)| with(tool, unknown))
}

fn params() -> impl Strategy<Value = Value> {
    let choices = vec![
        json!({}),
        json!({"model": "gpt-5", "temperature": 1, "max_output_tokens": 10}),
        json!({"instructions": "be brief", "temperature": 0.7, "store": false, "stream": true}),
        json!({"instructions": "", "model": "m"}),
        json!({"instructions": null, "temperature": null, "max_output_tokens": null, "tool_choice": null}),
        json!({"temperature": 1.0, "max_output_tokens": 10.0, "tool_choice": "auto"}),
        json!({"tool_choice": {"type": "function", "name": "f"}}),
        json!({"tool_choice": {"type": "custom", "name": "c"}, "previous_response_id": "resp_0"}),
        json!({"tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": []}, "conversation": {"id": "conv_0"}}),
    ];
    select(choices)
}

/// Unknown fields, including some that look like the codec's own marks.
fn unknown() -> impl Strategy<Value = Value> {
    rarely(vec![
        json!({"x_new": {"z": 1.0, "a": [null]}}),
        json!({"~as": "custom_tool_call", "~content": "array"}),
        json!({"~~raw": 1, "~item": {}, "~led": "rs_9", "~next": "x", "~role": "developer"}),
        json!({"prompt_cache_breakpoint": {"mode": "explicit"}}),
    ])
}
