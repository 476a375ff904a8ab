//! Random trees that resemble bodies of the Anthropic Messages dialect.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Any tree, of words that mean something on the wire.
pub(super) fn value() -> BoxedStrategy<Value> {
    let word = prop::sample::select(vec![
        "text",
        "tool_use",
        "tool_result",
        "thinking",
        "redacted_thinking",
        "image",
        "document",
        "server_tool_use",
        "web_search_tool_result",
        "mcp_tool_use",
        "compaction",
        "user",
        "assistant",
        "system",
        "t1",
        "t2",
        "a.b",
        "",
        " ",
        "x ",
        "<checkpoint:a1b2c3>",
    ]);
    let leaf = prop_oneof![
        6 => word.prop_map(Value::from),
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::from),
        1 => any::<f64>().prop_map(|number| json!(number)),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        let key = prop::sample::select(vec![
            "type",
            "text",
            "id",
            "name",
            "input",
            "tool_use_id",
            "content",
            "role",
            "source",
            "thinking",
            "signature",
            "data",
            "is_error",
            "cache_control",
            "~content",
            "new",
        ]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(key, inner, 0..6).prop_map(|fields| {
                fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
            }),
        ]
    })
    .boxed()
}

/// Blocks of the known types, with fields that may be there and may be right.
fn block_like() -> BoxedStrategy<Value> {
    let kind = prop::sample::select(vec![
        "text",
        "tool_use",
        "tool_result",
        "thinking",
        "image",
        "server_tool_use",
        "web_search_tool_result",
    ]);
    let id = prop::sample::select(vec!["t1", "t2", "t.1", "", "srv"]);
    (kind, id, value(), any::<bool>())
        .prop_map(|(kind, id, odd, marked)| {
            let mark = if marked { json!({"type": "ephemeral"}) } else { Value::Null };
        json!({
                "type": kind, "text": "a ", "id": id, "tool_use_id": id, "name": "read",
                "input": odd, "content": "b", "thinking": "c", "signature": "s", "cache_control": mark,
        })
        })
        .boxed()
}

/// Bodies with the right outline and anything in it.
pub(super) fn body_like() -> BoxedStrategy<Value> {
    let role = prop::sample::select(vec!["user", "assistant", "system"]);
    let block = prop_oneof![3 => block_like(), 1 => value()];
    let message = (role, prop::collection::vec(block, 0..4))
        .prop_map(|(role, content)| json!({"role": role, "content": content}));
    let rest = prop::collection::btree_map(
        prop::sample::select(vec!["model", "thinking", "tool_choice", "temperature", "extra"]),
        value(),
        0..4,
    );
    (prop::collection::vec(message, 0..6), rest)
        .prop_map(|(messages, rest)| {
            let mut body: Map<String, Value> =
                rest.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
            body.insert("messages".to_owned(), messages.into());
            body.into()
        })
        .boxed()
}
