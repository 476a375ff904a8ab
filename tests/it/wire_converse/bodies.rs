//! Random bodies of the Converse dialect: valid ones, and trees that resemble them.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Text that a provider accepts, and that the wire uses for its own purposes.
fn words() -> BoxedStrategy<String> {
    prop_oneof![
        "[a-z]{1,8}( [a-z]{1,8}){0,3}",
        "\\PC{1,12}x",
        Just("<checkpoint:a1b2c3>".to_owned()),
        Just("<system-reminder>\nbe kind\n</system-reminder>".to_owned()),
        Just("<conversation-summary>\nall\n</conversation-summary>".to_owned()),
    ]
    .boxed()
}

/// The block of this key, with unknown fields in it and beside it now and then.
fn block(key: &'static str, inner: BoxedStrategy<Value>) -> BoxedStrategy<Value> {
    (inner, prop::option::weighted(0.2, any::<bool>()))
        .prop_map(move |(mut inner, new)| {
            if let (Some(true), Value::Object(fields)) = (new, &mut inner) {
                fields.insert("~new".to_owned(), json!([1, {"a": null}]));
            }
            let mut block = json!({ key: inner });
            if new == Some(false) {
                block["beside"] = json!({"b": 1.5});
            }
            block
        })
        .boxed()
}

fn text() -> BoxedStrategy<Value> {
    block("text", words().prop_map(Value::from).boxed())
}

fn picture() -> BoxedStrategy<Value> {
    let sources = vec![
        json!({"format": "png", "source": {"bytes": "AA=="}}),
        json!({"format": "new", "source": {"bytes": "AA=="}}),
        json!({"format": "gif", "source": {"s3Location": {"uri": "s3://a/b"}}}),
    ];
    block("image", prop::sample::select(sources).boxed())
}

fn document() -> BoxedStrategy<Value> {
    let sources = vec![
        json!({"name": "a b", "format": "pdf", "source": {"bytes": "AA=="}}),
        json!({"name": "n", "source": {"text": "x"}, "context": "c"}),
        json!({"name": "n", "format": "md", "source": {"text": "x"}, "context": null}),
        json!({"name": "n", "format": "txt", "source": {"content": [{"text": "x"}]}}),
    ];
    block("document", prop::sample::select(sources).boxed())
}

fn other() -> BoxedStrategy<Value> {
    prop::sample::select(vec![
        json!({"video": {"format": "mp4", "source": {"bytes": "AA=="}}}),
        json!({"guardContent": {"text": {"text": "hi", "qualifiers": ["query"]}}}),
        json!({"searchResult": {"source": "s", "title": "t", "content": [{"text": "x"}]}}),
        json!({"hologram": 5}),
    ])
    .boxed()
}

/// A text, then anything of the user's, with a cache point if there may be one.
fn said(points: bool) -> BoxedStrategy<Vec<Value>> {
    let rest = prop_oneof![3 => text(), 1 => picture(), 1 => document(), 1 => other()];
    (text(), prop::collection::vec(rest, 0..3), any::<bool>(), text())
        .prop_map(move |(first, rest, point, last)| {
            let point = (point && points).then(|| json!({"cachePoint": {"type": "default"}}));
            [first].into_iter().chain(point).chain(rest).chain([last]).collect()
        })
        .boxed()
}

fn thoughts() -> BoxedStrategy<Vec<Value>> {
    let signed =
        words().prop_map(|text| json!({"reasoningText": {"text": text, "signature": "c2ln"}}));
    let thought = prop_oneof![
        signed,
        Just(json!({"reasoningText": {"text": "", "signature": "c2ln", "new": 1}})),
        Just(json!({"reasoningText": {"text": "hm"}})),
        Just(json!({"redactedContent": "AAEC"})),
    ];
    prop::collection::vec(block("reasoningContent", thought.boxed()), 0..2).boxed()
}

fn call(id: usize) -> BoxedStrategy<Value> {
    let input = prop_oneof![Just(json!({})), Just(json!({"path": "a.txt", "deep": {"n": [1, 2]}}))];
    let call = input.prop_map(
        move |input| json!({"toolUseId": format!("t.{id}:a"), "name": "read", "input": input}),
    );
    block("toolUse", call.boxed())
}

fn result(id: usize) -> BoxedStrategy<Value> {
    let json = prop::sample::select(vec![json!({}), json!([1, "a"]), json!("s"), Value::Null]);
    let json = json.prop_map(|json| json!({ "json": json }));
    let items = prop_oneof![3 => text(), 2 => json, 1 => picture(), 1 => document(), 1 => other()];
    let status = prop::option::of(prop::sample::select(vec!["success", "error", "new"]));
    let result = (prop::collection::vec(items, 0..3), status).prop_map(move |(items, status)| {
        let mut result = json!({"toolUseId": format!("t.{id}:a"), "content": items});
        if let Some(status) = status {
            result["status"] = status.into();
        }
        result
    });
    block("toolResult", result.boxed())
}

/// A question and its answer, with a tool called on the way or not.
fn exchange(number: usize) -> BoxedStrategy<Vec<Value>> {
    let message = |role: &str, content: Vec<Value>| json!({"role": role, "content": content});
    let tools = (
        thoughts(),
        call(2 * number),
        call(2 * number + 1),
        result(2 * number),
        result(2 * number + 1),
    );
    let tools = tools.prop_map(move |(thoughts, one, two, first, second)| {
        let calls = [thoughts, vec![one, two]].concat();
        vec![message("assistant", calls), message("user", vec![first, second])]
    });
    let tools = prop::option::of(tools).prop_map(Option::unwrap_or_default);
    let cited = Just(json!({"citationsContent": {"content": [{"text": "a"}], "citations": []}}));
    let plain = prop_oneof![3 => text(), 1 => cited];
    (said(false), tools, thoughts(), plain)
        .prop_map(move |(question, tools, thoughts, answer)| {
            let answer = [thoughts, vec![answer]].concat();
            let ends = vec![message("assistant", answer)];
            [vec![message("user", question)], tools, ends].concat()
        })
        .boxed()
}

fn parameters() -> BoxedStrategy<Map<String, Value>> {
    let parameter = |key: &'static str, values: Vec<Value>| {
        prop::option::of(prop::sample::select(values)).prop_map(move |value| (key, value))
    };
    (
        parameter("modelId", vec![json!("openai.gpt-oss-20b-1:0"), json!("amazon.nova-pro-v1:0")]),
        parameter(
            "system",
            vec![json!([{"text": "a"}, {"cachePoint": {"type": "default"}}]), json!([])],
        ),
        parameter(
            "inferenceConfig",
            vec![
                json!({}),
                json!({"maxTokens": 9, "temperature": 0.5}),
                json!({"temperature": 1, "topP": 0.5}),
            ],
        ),
        parameter(
            "additionalModelRequestFields",
            vec![json!({"top_k": 5, "thinking": {"type": "adaptive"}})],
        ),
        prop::sample::select(vec![
            json!({"tools": [{"toolSpec": {"name": "read", "inputSchema": {"json": {}}}}]}),
            json!({"tools": [{"systemTool": {"name": "s"}}, {"cachePoint": {"type": "default"}}],
                "toolChoice": {"any": {}}}),
        ]),
    )
        .prop_map(|(model, system, inference, fields, tools)| {
            let some = [model, system, inference, fields, ("toolConfig", Some(tools))];
            let set = some.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
            set.collect()
        })
        .boxed()
}

/// Valid bodies, with everything that the dialect leaves open.
pub(super) fn body() -> BoxedStrategy<Value> {
    let exchanges = (exchange(0), prop::option::of(exchange(1)), prop::option::of(exchange(2)));
    (parameters(), exchanges, said(true))
        .prop_map(|(mut body, (one, two, three), last)| {
            let mut messages = [one, two.unwrap_or_default(), three.unwrap_or_default()].concat();
            messages.push(json!({"role": "user", "content": last, "new": [1]}));
            body.insert("messages".to_owned(), messages.into());
            body.into()
        })
        .boxed()
}

/// Any tree, of words that mean something on the wire.
pub(super) fn junk() -> BoxedStrategy<Value> {
    let words = [
        "text",
        "assistant",
        "user",
        "system",
        "t1",
        "a|b",
        "",
        " ",
        "x ",
        "default",
        "png",
        "<checkpoint:a1b2c3>",
        "server_tool_use",
        "error",
        "AA==",
        "end_turn",
        "=",
    ];
    let leaf = prop_oneof![
        6 => prop::sample::select(words.to_vec()).prop_map(Value::from),
        1 => Just(Value::Null),
        1 => any::<i64>().prop_map(Value::from),
        1 => any::<f64>().prop_map(|number| json!(number)),
    ];
    let keys = [
        "text",
        "image",
        "document",
        "toolUse",
        "toolResult",
        "toolUseId",
        "name",
        "input",
        "content",
        "source",
        "bytes",
        "format",
        "role",
        "status",
        "type",
        "cachePoint",
        "reasoningContent",
        "reasoningText",
        "redactedContent",
        "signature",
        "json",
        "messages",
        "guardContent",
        "citationsContent",
        "citation",
        "~json",
        "~beside",
        "new",
        "delta",
        "start",
        "contentBlockIndex",
        "usage",
        "stopReason",
    ];
    leaf.prop_recursive(5, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(prop::sample::select(keys.to_vec()), inner, 0..5).prop_map(
                |fields| fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
            ),
        ]
    })
    .boxed()
}

/// Blocks of the known kinds, with fields that may be there and may be right.
fn block_like() -> BoxedStrategy<Value> {
    let id = prop::sample::select(vec!["t1", "t2", "t|1", ""]);
    let kind = prop::sample::select(vec![
        "text",
        "toolUse",
        "toolResult",
        "reasoningContent",
        "image",
        "document",
        "video",
        "cachePoint",
        "guardContent",
        "citationsContent",
    ]);
    (kind, id, junk(), any::<bool>())
        .prop_map(|(kind, id, odd, server)| {
            let mut inner = json!({
                "toolUseId": id, "name": "read_me", "input": odd, "content": [{"text": "a "}, odd],
                "reasoningText": {"text": "c", "signature": "s"}, "text": {"text": "g"},
                "source": {"bytes": "AA=="}, "format": "png", "status": odd,
            });
            if server {
                inner["type"] = "server_tool_use".into();
            }
            if kind == "text" { json!({"text": "a "}) } else { json!({ kind: inner }) }
        })
        .boxed()
}

/// Bodies with the right outline and anything in it.
pub(super) fn body_like() -> BoxedStrategy<Value> {
    let role = prop::sample::select(vec!["user", "assistant", "system"]);
    let block = prop_oneof![3 => block_like(), 1 => junk()];
    let message = (role, prop::collection::vec(block, 0..4))
        .prop_map(|(role, content)| json!({"role": role, "content": content}));
    let model = prop::option::of(prop::sample::select(vec![
        "meta.llama3-1-70b-instruct-v1:0",
        "anthropic.claude-opus-4-6-v1:0",
        "writer.palmyra-x5-v1:0",
    ]));
    let rest = prop::collection::btree_map(
        prop::sample::select(vec!["additionalModelRequestFields", "extra", "p"]),
        junk(),
        0..3,
    );
    (prop::collection::vec(message, 0..6), model, rest)
        .prop_map(|(messages, model, rest)| {
            let mut body: Map<String, Value> =
                rest.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
            body.insert("messages".to_owned(), messages.into());
            if let Some(model) = model {
                body.insert("modelId".to_owned(), model.into());
            }
            body.into()
        })
        .boxed()
}
