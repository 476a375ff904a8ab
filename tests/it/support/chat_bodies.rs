//! Random Chat Completions bodies.

use proptest::{collection::vec, option, prelude::*, sample::select};
use serde_json::{Value, json};

use super::random_json::{self, blank_or_text, rarely, text, text_of, with};

/// A body that the API accepts.
pub(crate) fn body() -> impl Strategy<Value = Value> {
    let messages = (vec(system(), 0..3), vec(exchange(), 1..6));
    let tools = option::of(vec(tool(), 1..3));
    (messages, params(), tools, unknown()).prop_map(
        |((system, exchanges), params, tools, unknown)| {
            let mut messages = system;
            for (index, exchange) in exchanges.into_iter().enumerate() {
                messages.extend(exchange.into_iter().map(|message| numbered(message, index)));
            }
            let mut body = with(json!({"messages": messages}), params);
            if let Some(tools) = tools {
                body = with(body, json!({"tools": tools}));
            }
            at_rest_if_open(with(body, unknown))
        },
    )
}

/// A thread that ends in open calls is valid only without a model.
fn at_rest_if_open(mut body: Value) -> Value {
    let messages = body["messages"].as_array().into_iter().flatten().rev();
    let mut answers = messages.take_while(|message| message["role"] == "assistant");
    if answers.any(|one| !one["function_call"].is_null() || !one["tool_calls"].is_null()) {
        body.as_object_mut().unwrap().remove("model");
    }
    body
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
        "tool",
        "system",
        "function",
        "tool_calls",
        "function_call",
        "id",
        "tool_call_id",
        "name",
        "arguments",
        "image_url",
        "url",
        "file",
        "#field",
        "#as",
        "value",
        "message",
        "refusal",
        "audio",
        "custom",
        "",
    ];
    random_json::junk(words, 4)
}

/// Makes call ids unique over the body, so that the pairs of one exchange stay its own.
fn numbered(mut message: Value, exchange: usize) -> Value {
    let renew = |id: &mut Value| *id = json!(format!("{}_{exchange}", id.as_str().unwrap()));
    if let Some(id) = message.get_mut("tool_call_id") {
        renew(id);
    }
    for call in message.get_mut("tool_calls").and_then(Value::as_array_mut).into_iter().flatten() {
        renew(call.get_mut("id").unwrap());
    }
    message
}

/// A message and its consequences.
fn exchange() -> impl Strategy<Value = Vec<Value>> {
    prop_oneof![
        user().prop_map(|message| vec![message]),
        system().prop_map(|message| vec![message]),
        answer().prop_map(|message| vec![message]),
        (user(), answer()).prop_map(|(user, answer)| vec![user, answer]),
        calls(),
        function_call(),
    ]
}

fn system() -> impl Strategy<Value = Value> {
    let role = select(vec!["system", "developer"]);
    (role, content(text_part().boxed()), unknown()).prop_map(|(role, content, unknown)| {
        with(json!({"role": role, "content": content}), unknown)
    })
}

fn user() -> impl Strategy<Value = Value> {
    let part = prop_oneof![text_part(), media_part(), unknown_part()].boxed();
    (content(part), unknown())
        .prop_map(|(content, unknown)| with(json!({"role": "user", "content": content}), unknown))
}

fn answer() -> impl Strategy<Value = Value> {
    let refusal = text_of(|text| !text.is_empty())
        .prop_map(|text| json!({"type": "refusal", "refusal": text}));
    let said = prop_oneof![
        content(prop_oneof![text_part(), refusal, unknown_part()].boxed())
            .prop_filter("an answer says something", |content| *content != json!(""))
            .prop_map(|content| json!({"content": content})),
        blank_or_text().prop_map(|text| json!({"content": null, "refusal": format!("x{text}")})),
        "[a-z]{1,9}".prop_map(|id| json!({"audio": {"id": id}})),
    ];
    (said, beside(), unknown()).prop_map(|(said, beside, unknown)| {
        with(with(with(json!({"role": "assistant"}), said), beside), unknown)
    })
}

/// A message that calls, and its results in any order.
fn calls() -> impl Strategy<Value = Vec<Value>> {
    let call = (call(), content(text_part().boxed()), option::of("[a-z]{1,4}"), unknown());
    let said = prop_oneof![
        Just(json!({})),
        Just(json!({"content": null})),
        Just(json!({"content": ""})),
        Just(json!({"content": []})),
        content(text_part().boxed()).prop_map(|content| json!({"content": content})),
    ];
    (said, beside(), vec(call, 1..4), unknown(), any::<bool>(), option::of(user())).prop_map(
        |(said, beside, calls, unknown, reverse, user)| {
            let mut items = Vec::new();
            let mut results = Vec::new();
            for (index, (mut call, content, name, extra)) in calls.into_iter().enumerate() {
                let id = format!("call_{index}");
                call["id"] = json!(id);
                items.push(call);
                let result = json!({"role": "tool", "tool_call_id": id, "content": content});
                let name = name.map_or(json!({}), |name| json!({"name": name}));
                results.push(with(with(result, name), extra));
            }
            if reverse {
                results.reverse();
            }
            let message = with(json!({"role": "assistant", "tool_calls": items}), unknown);
            let mut messages = vec![with(with(message, said), beside)];
            messages.extend(results);
            messages.extend(user);
            messages
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
    let kind = select(vec![("function", "arguments"), ("custom", "input")]);
    (kind, "[a-z_]{1,8}", arguments, unknown(), unknown()).prop_map(
        |((kind, key), name, arguments, outer, inner)| {
            let body = with(json!({"name": name, key: arguments}), inner);
            with(json!({"type": kind, kind: body}), outer)
        },
    )
}

fn function_call() -> impl Strategy<Value = Vec<Value>> {
    let call = ("[a-z_]{1,8}", text(), unknown());
    let answer =
        option::of((prop_oneof![Just(Value::Null), text().prop_map(Value::from)], unknown()));
    (call, answer).prop_map(|((name, arguments, unknown), answer)| {
        let call = with(json!({"name": name, "arguments": arguments}), unknown);
        let call = json!({"role": "assistant", "content": null, "function_call": call});
        let answer = answer.map(|(content, unknown)| {
            with(json!({"role": "function", "name": name, "content": content}), unknown)
        });
        [call].into_iter().chain(answer).collect()
    })
}

/// Fields that compatible servers add beside the content.
fn beside() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => Just(json!({})),
        1 => text().prop_map(|text| json!({"reasoning_content": text})),
        1 => text().prop_map(|text| json!({"reasoning": text, "reasoning_details": [{"data": text}]})),
        1 => Just(json!({"refusal": null, "audio": null, "function_call": null, "annotations": []})),
        1 => Just(json!({"reasoning": null, "reasoning_content": ""})),
    ]
}

fn content(part: BoxedStrategy<Value>) -> impl Strategy<Value = Value> {
    let kinds = select(vec![
        "<checkpoint:a1b2c3>",
        "<system-reminder>\nbe brief\n</system-reminder>",
        "<system-reminder>\n \n</system-reminder>",
        "<conversation-summary>\nall of it\n</conversation-summary>",
    ]);
    let kinds = kinds.prop_map(str::to_owned).boxed();
    let kind_part = kinds.clone().prop_map(|text| json!({"type": "text", "text": text}));
    prop_oneof![
        3 => blank_or_text().prop_map(Value::from),
        1 => kinds.prop_map(Value::from),
        3 => vec(prop_oneof![3 => part, 1 => kind_part], 1..4).prop_map(Value::from),
    ]
}

fn text_part() -> impl Strategy<Value = Value> {
    (blank_or_text(), unknown())
        .prop_map(|(text, unknown)| with(json!({"type": "text", "text": text}), unknown))
}

fn media_part() -> impl Strategy<Value = Value> {
    let url = select(vec![
        "data:image/png;base64,iVBORw0KGgo=",
        "data:image/png;charset=utf-8;base64,AA",
        "https://example.com/a.png",
        "",
    ]);
    let image = (url, option::of(select(vec!["auto", "low"])), unknown()).prop_map(
        |(url, detail, unknown)| {
            let mut inner = with(json!({"url": url}), unknown);
            if let Some(detail) = detail {
                inner["detail"] = json!(detail);
            }
            json!({"type": "image_url", "image_url": inner})
        },
    );
    let file = select(vec![
        json!({"file_id": "file-1"}),
        json!({"file_data": "data:application/pdf;base64,JVBERi0=", "filename": "a.pdf"}),
        json!({"file_data": "data:application/pdf;base64,JVBERi0=", "file_id": "f"}),
        json!({"file_data": "https://example.com/a.pdf"}),
        json!({"filename": "a.pdf"}),
    ]);
    let file = (file, unknown())
        .prop_map(|(file, unknown)| json!({"type": "file", "file": with(file, unknown)}));
    let part = prop_oneof![image.boxed(), file.boxed()];
    (part, unknown()).prop_map(|(part, unknown)| with(part, unknown))
}

fn unknown_part() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!({"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}})),
        Just(json!({"type": "hologram", "depth": [1.0, 1e30]})),
        Just(json!({"#field": "audio", "value": {"id": "x"}})),
        Just(json!({"#field": "message", "value": {"role": "user"}})),
        Just(json!({"type": "text", "text": null})),
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
        unknown(),
    );
    let function = function.prop_map(|(name, description, parameters, unknown)| {
        let mut function = with(json!({"name": name}), unknown);
        if let Some(description) = description {
            function["description"] = description;
        }
        if let Some(parameters) = parameters {
            function["parameters"] = parameters;
        }
        json!({"type": "function", "function": function})
    });
    let tool = prop_oneof![
        3 => function.boxed(),
        1 => Just(json!({"type": "custom", "custom": {"name": "c", "description": "d"}})).boxed(),
        1 => Just(json!({"type": "web_search", "filters": null})).boxed(),
    ];
    (tool, unknown()).prop_map(|(tool, unknown)| with(tool, unknown))
}

fn params() -> impl Strategy<Value = Value> {
    let choices = vec![
        json!({}),
        json!({"model": "gpt-5", "temperature": 1, "max_tokens": 10}),
        json!({"temperature": 0.7, "max_completion_tokens": 10, "stream": true}),
        json!({"temperature": null, "max_tokens": null, "tool_choice": null}),
        json!({"temperature": 1.0, "max_tokens": 10.0, "tool_choice": "auto"}),
        json!({"tool_choice": {"type": "function", "function": {"name": "f"}}}),
        json!({"tool_choice": {"type": "custom", "custom": {"name": "c"}}}),
        json!({"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto"}}}),
    ];
    select(choices)
}

/// Unknown fields, including some that look like the codec's own marks.
fn unknown() -> impl Strategy<Value = Value> {
    rarely(vec![
        json!({"x_new": {"z": 1.0, "a": [null]}}),
        json!({"name": "bob"}),
        json!({"#as": "custom", "#content": "array"}),
        json!({"##raw": 1, "#raw": {}, "#id": "absent", "#role": "developer"}),
        json!({"cache_control": {"type": "ephemeral"}, "extra_content": {"google": 1e2}}),
    ])
}
