//! Random valid bodies of the Anthropic Messages dialect, as text.

use proptest::prelude::*;
use serde_json::Value;

/// JSON as others write it: numbers and key orders that a tree would change.
fn json_text() -> BoxedStrategy<String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just("1.0".to_owned()),
        Just("1e2".to_owned()),
        Just("-0.50".to_owned()),
        Just("12345678901234567890123".to_owned()),
        any::<i64>().prop_map(|number| number.to_string()),
        words().prop_map(|text| Value::from(text).to_string()),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3)
                .prop_map(|items| format!("[{}]", items.join(", "))),
            object(inner, 3),
        ]
    })
    .boxed()
}

fn object(value: impl Strategy<Value = String> + 'static, most: usize) -> BoxedStrategy<String> {
    prop::collection::btree_map("[a-z~]{1,4}", value, 0..most)
        .prop_map(|fields| {
            let fields = fields.iter().rev();
            let fields: Vec<String> = fields
                .map(|(key, value)| format!("{}: {value}", Value::from(key.as_str())))
                .collect();
            format!("{{{}}}", fields.join(","))
        })
        .boxed()
}

/// Text that a provider accepts, and that the wire uses for its own purposes.
fn words() -> BoxedStrategy<String> {
    prop_oneof![
        "[a-z]{1,8}( [a-z]{1,8}){0,3}",
        "\\PC{1,12}x",
        Just("<checkpoint:a1b2c3>".to_owned()),
        Just("<system-reminder>\nbe kind\n</system-reminder>".to_owned()),
        Just("<system-reminder>\n \n</system-reminder>".to_owned()),
        Just("<conversation-summary>\nall\n</conversation-summary>".to_owned()),
        Just("\u{1f600} 日本 \\ \" \u{0001}x".to_owned()),
    ]
    .boxed()
}

fn quoted() -> BoxedStrategy<String> {
    words().prop_map(|text| Value::from(text).to_string()).boxed()
}

/// A block of these fields, with unknown ones around them.
fn block(fields: impl Strategy<Value = String> + 'static) -> BoxedStrategy<String> {
    (fields, prop::option::weighted(0.2, json_text()), any::<bool>())
        .prop_map(|(fields, extra, first)| match extra {
            Some(extra) if first => format!(r#"{{"~new_{}": {extra}, {fields}}}"#, "field"),
            Some(extra) => format!(r#"{{{fields}, "new_field": {extra}}}"#),
            None => format!("{{{fields}}}"),
        })
        .boxed()
}

fn text() -> BoxedStrategy<String> {
    let fields = (quoted(), prop_oneof![Just(""), Just(r#", "citations": null"#)]);
    block(fields.prop_map(|(text, rest)| format!(r#""type": "text", "text": {text}{rest}"#)))
        .boxed()
}

fn media() -> BoxedStrategy<String> {
    let source = prop_oneof![
        Just(r#"{"type": "base64", "media_type": "image/png", "data": "AA=="}"#),
        Just(r#"{"type": "base64", "media_type": "application/pdf", "data": "AA=="}"#),
        Just(r#"{"data": "a", "type": "text", "media_type": "text/plain"}"#),
        Just(r#"{"type": "content", "content": "a"}"#),
        Just(r#"{"type": "url", "url": "https://example.org/a"}"#),
        Just(r#"{"type": "file", "file_id": "f1", "new": 1.0}"#),
    ];
    let kind = prop_oneof![Just("image"), Just("document")];
    let title =
        prop_oneof![Just(""), Just(r#", "title": null"#), Just(r#", "title": "", "context": "c""#)];
    block((kind, source, title).prop_map(|(kind, source, title)| {
        format!(r#""type": "{kind}", "source": {source}{title}"#)
    }))
    .boxed()
}

fn unknown() -> BoxedStrategy<String> {
    block(
        ("[a-z]{3,9}x", json_text())
            .prop_map(|(kind, value)| format!(r#""type": "{kind}", "value": {value}"#)),
    )
    .boxed()
}

/// Blocks as a content: a list, or one string if `string` and there is one text only.
fn content(blocks: Vec<String>) -> String {
    format!("[{}]", blocks.join(","))
}

fn user_content() -> BoxedStrategy<String> {
    let blocks = prop_oneof![4 => text(), 1 => media(), 1 => unknown()];
    prop_oneof![quoted(), prop::collection::vec(blocks, 1..4).prop_map(content)].boxed()
}

fn thoughts() -> BoxedStrategy<String> {
    prop_oneof![
        block(quoted().prop_map(|text| {
            format!(r#""type": "thinking", "thinking": {text}, "signature": "c2ln""#)
        })),
        Just(r#"{"type": "thinking", "signature": "c2ln", "thinking": ""}"#.to_owned()),
        Just(r#"{"type": "redacted_thinking", "data": "AA/+="}"#.to_owned()),
    ]
    .boxed()
}

/// A server tool with its answer.
fn server_pair(id: usize) -> BoxedStrategy<String> {
    let kinds = prop_oneof![
        Just(("server_tool_use", "web_search_tool_result")),
        Just(("server_tool_use", "bash_code_execution_tool_result")),
        Just(("mcp_tool_use", "mcp_tool_result")),
    ];
    let result = prop_oneof![
        json_text().prop_map(|content| format!(r#", "content": {content}"#)),
        Just(String::new())
    ];
    (kinds, object(json_text(), 3), result)
        .prop_map(move |((call, kind), input, result)| {
            format!(
                r#"{{"type":"{call}","id":"s{id}","name":"n","input":{input}}},
            {{"type":"{kind}","tool_use_id":"s{id}"{result},"caller":{{"type":"direct"}}}}"#
            )
        })
        .boxed()
}

fn call(id: usize) -> BoxedStrategy<String> {
    block(object(json_text(), 4).prop_map(move |input| {
        format!(r#""input": {input}, "name": "read", "type": "tool_use", "id": "t{id}""#)
    }))
    .boxed()
}

fn result(id: usize) -> BoxedStrategy<String> {
    let items = prop_oneof![3 => text(), 1 => media(), 1 => unknown()];
    let content = prop_oneof![
        Just(String::new()),
        quoted().prop_map(|text| format!(r#", "content": {text}"#)),
        prop::collection::vec(items, 1..3)
            .prop_map(|items| format!(r#", "content": {}"#, content(items))),
    ];
    let error = prop_oneof![
        Just(""),
        Just(r#", "is_error": true"#),
        Just(r#", "is_error": false"#),
        Just(r#", "is_error": null"#),
    ];
    block((content, error).prop_map(move |(content, error)| {
        format!(r#""type": "tool_result", "tool_use_id": "t{id}"{content}{error}"#)
    }))
    .boxed()
}

/// A question and its answer, with a tool called on the way or not.
fn exchange(number: usize) -> BoxedStrategy<Vec<String>> {
    let message = |role: &'static str| {
        move |content: String| format!(r#"{{"role": "{role}", "content": {content}}}"#)
    };
    let plain = prop_oneof![
        quoted(),
        (prop::collection::vec(thoughts(), 0..2), server_pair(number), text())
            .prop_map(|(thoughts, pair, text)| content([thoughts, vec![pair, text]].concat())),
    ]
    .prop_map(message("assistant"));
    let with_tools = (
        (prop::collection::vec(thoughts(), 0..2), call(2 * number), call(2 * number + 1))
            .prop_map(|(thoughts, one, two)| content([thoughts, vec![one, two]].concat()))
            .prop_map(message("assistant")),
        (result(2 * number), result(2 * number + 1), prop::option::of(text()))
            .prop_map(|(one, two, text)| content([one, two].into_iter().chain(text).collect()))
            .prop_map(message("user")),
    )
        .prop_map(|(calls, results)| vec![calls, results]);
    let tools = prop_oneof![with_tools, Just(Vec::new())];
    let system = prop::option::weighted(0.2, quoted().prop_map(message("system")));
    (user_content().prop_map(message("user")), system, tools, plain)
        .prop_map(|(question, system, tools, answer)| {
            let mut messages = vec![question];
            messages.extend(system);
            messages.extend(tools);
            messages.push(answer);
            messages
        })
        .boxed()
}

fn parameters() -> BoxedStrategy<String> {
    let optional = |choices: Vec<&'static str>| {
        prop_oneof![Just(String::new()), prop::sample::select(choices).prop_map(str::to_owned)]
    };
    (
        optional(vec![
            r#""model": "claude-x", "max_tokens": 1024, "#,
            r#""max_tokens": 1e3, "#,
            r#""max_tokens": 1024.0, "model": null, "#,
        ]),
        optional(vec![
            r#""system": "be brief", "#,
            r#""system": "", "#,
            r#""system": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}], "#,
            r#""system": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "#,
        ]),
        optional(vec![
            r#""tools": [], "#,
            r#""tools": [{"input_schema": {"type": "object", "b": 1.0, "a": 1}, "name": "read"}], "#,
            r#""tools": [{"name": "a", "description": "", "type": "custom", "input_schema": {}},
                {"type": "web_search_20250305", "name": "web_search", "max_uses": 5}], "#,
            r#""tools": [{"type": "mcp_toolset", "mcp_server_name": "m"},
                {"name": "b", "description": null, "input_schema": {}}], "#,
        ]),
        optional(vec![
            r#""temperature": 1, "#,
            r#""temperature": 0.70, "tool_choice": {"type": "auto", "disable_parallel_tool_use": true}, "#,
            r#""tool_choice": {"type": "any"}, "stream": false, "metadata": {"user_id": null}, "#,
        ]),
    )
        .prop_map(|(model, system, tools, rest)| [model, system, tools, rest].concat()).boxed()
}

/// Valid bodies, with everything that the dialect leaves open.
pub(super) fn body() -> BoxedStrategy<String> {
    let exchanges = (exchange(0), prop::option::of(exchange(1)), prop::option::of(exchange(2)));
    (parameters(), exchanges, user_content())
        .prop_map(|(head, (one, two, three), last)| {
            let mut messages = [one, two.unwrap_or_default(), three.unwrap_or_default()].concat();
            messages.push(format!(r#"{{"content": {last}, "role": "user", "new": [1.0]}}"#));
            format!(r#"{{{head}"messages": [{}]}}"#, messages.join(","))
        })
        .boxed()
}
