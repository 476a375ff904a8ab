//! Random bodies of Gemini's `generateContent`.

use proptest::{collection::vec, option, prelude::*, sample::select};
use serde_json::{Value, json};

use super::random_json::{self, rarely, text_of, with};

/// A body that the API accepts.
pub(crate) fn body() -> impl Strategy<Value = Value> {
    let rest = (vec(exchange(), 0..5), user(), params(), option::of(tools()), unknown());
    (user(), rest).prop_map(|(first, (exchanges, last, params, tools, unknown))| {
        let mut contents = vec![first];
        contents.extend(exchanges.into_iter().flatten());
        contents.push(last);
        let mut body = with(json!({"contents": contents}), params);
        if let Some(tools) = tools {
            body = with(body, json!({"tools": tools}));
        }
        with(body, unknown)
    })
}

/// Any JSON in which the words of the dialect are frequent.
pub(crate) fn junk() -> impl Strategy<Value = Value> {
    let words = vec![
        "role",
        "parts",
        "text",
        "user",
        "model",
        "function",
        "functionCall",
        "function_response",
        "functionResponse",
        "inlineData",
        "mimeType",
        "image/png",
        "data",
        "fileUri",
        "fileData",
        "id",
        "name",
        "args",
        "response",
        "output",
        "error",
        "thought",
        "thoughtSignature",
        "executableCode",
        "codeExecutionResult",
        "toolCall",
        "toolResponse",
        "functionDeclarations",
        "tools",
        "index",
        "~snake",
        "",
    ];
    random_json::junk(words, 5)
}

/// An answer and its consequences.
fn exchange() -> impl Strategy<Value = Vec<Value>> {
    prop_oneof![
        user().prop_map(|message| vec![message]),
        (answer(), option::of(answer()), user()).prop_map(|(answer, more, user)| {
            [answer].into_iter().chain(more).chain([user]).collect()
        }),
        calls(),
    ]
}

fn user() -> impl Strategy<Value = Value> {
    let kinds = select(vec![
        "<checkpoint:a1b2c3>",
        "<system-reminder>\nbe brief\n</system-reminder>",
        "<conversation-summary>\nall of it\n</conversation-summary>",
    ]);
    let kind = kinds.prop_map(|text| json!({"text": text}));
    let part = prop_oneof![4 => text_part(), 2 => media(), 1 => unknown_part(), 1 => kind];
    let role = select(vec![json!({}), json!({"role": "user"}), json!({"role": "user"})]);
    (role, vec(part, 1..4), unknown())
        .prop_map(|(role, parts, unknown)| with(with(role, json!({"parts": parts})), unknown))
}

fn answer() -> impl Strategy<Value = Value> {
    let part = prop_oneof![
        4 => text_part().boxed(),
        2 => thought().boxed(),
        1 => media().boxed(),
        1 => unknown_part().boxed(),
    ];
    let server = prop_oneof![
        3 => Just(Vec::new()),
        1 => Just(vec![
            json!({"executableCode": {"language": "PYTHON", "code": "1"}}),
            json!({"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1\n"}}),
        ]),
        1 => Just(vec![
            json!({"toolCall": {"id": "s", "toolType": "GOOGLE_SEARCH", "args": {"q": 1.0}}, "thoughtSignature": "c2ln"}),
            json!({"tool_response": {"id": "s", "toolType": "GOOGLE_SEARCH", "response": {}}}),
        ]),
        1 => Just(vec![json!({"codeExecutionResult": {"outcome": "OUTCOME_OK"}})]),
    ];
    (vec(part, 1..4), server, unknown()).prop_map(|(mut parts, server, unknown)| {
        parts.extend(server);
        with(json!({"role": "model", "parts": parts}), unknown)
    })
}

/// Calls and their results, in a content of their own or beside text.
fn calls() -> impl Strategy<Value = Vec<Value>> {
    let call = (select(vec!["f", "g"]), args(), option::of("[a-z]{1,4}"), unknown(), unknown());
    let said = option::of(prop_oneof![text_part().boxed(), thought().boxed()]);
    let behind = option::of(user());
    let sent = (any::<bool>(), select(vec!["user", "function"]), any::<bool>());
    (said, vec((call, response()), 1..4), sent, behind).prop_map(
        |(said, calls, (snake, role, beside), behind)| {
            let mut parts: Vec<Value> = said.into_iter().collect();
            let mut results = Vec::new();
            for (index, ((name, args, id, outer, inner), response)) in calls.into_iter().enumerate()
            {
                let id = id.map_or(json!({}), |id| json!({"id": format!("{id}{index}")}));
                let call = with(with(with(json!({"name": name}), args), id.clone()), inner);
                let key = if snake { "function_call" } else { "functionCall" };
                parts.push(with(json!({key: call}), outer));
                let result = with(with(json!({"name": name}), response), id);
                let key = if snake { "function_response" } else { "functionResponse" };
                results.push(json!({key: result}));
            }
            let role = if beside { "user" } else { role };
            if beside {
                results.push(json!({"text": "and now?"}));
            }
            let mut contents = vec![json!({"role": "model", "parts": parts})];
            contents.push(json!({"role": role, "parts": results}));
            contents.extend(behind);
            contents
        },
    )
}

fn args() -> impl Strategy<Value = Value> {
    select(vec![
        json!({}),
        json!({"args": {}}),
        json!({"args": null}),
        json!({"args": {"b": 1.0, "a": {"z": [1, null]}}}),
    ])
}

fn response() -> impl Strategy<Value = Value> {
    let said = text().prop_map(|text| json!({"response": {"output": text}}));
    let other = select(vec![
        json!({"response": {"error": "no such file"}}),
        json!({"response": {"error": {"code": 2}}}),
        json!({"response": {"result": {"z": 1.0, "a": [2]}}}),
        json!({"response": {}}),
        json!({"response": {"output": ""}, "willContinue": false}),
        json!({"response": {"output": "see"}, "parts": [{"inlineData": {"mimeType": "image/png", "data": "AA=="}}]}),
        json!({"response": {"output": 1, "error": null}, "scheduling": "SILENT"}),
    ]);
    prop_oneof![said, other]
}

fn thought() -> impl Strategy<Value = Value> {
    let signed = select(vec![
        json!({}),
        json!({"thoughtSignature": "c2ln"}),
        json!({"thought_signature": "c2ln"}),
    ]);
    prop_oneof![
        (text(), signed)
            .prop_map(|(text, signed)| with(json!({"text": text, "thought": true}), signed)),
        Just(json!({"text": "", "thoughtSignature": "c2ln"})),
        Just(json!({"text": "", "thought": true, "thought_signature": "c2ln"})),
    ]
}

fn text_part() -> impl Strategy<Value = Value> {
    let signed = select(vec![
        json!({}),
        json!({}),
        json!({"thoughtSignature": "c2ln"}),
        json!({"thought": false, "partMetadata": {"a": 1.0}}),
    ]);
    (text(), signed, unknown())
        .prop_map(|(text, signed, unknown)| with(with(json!({"text": text}), signed), unknown))
}

fn media() -> impl Strategy<Value = Value> {
    let part = select(vec![
        json!({"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}),
        json!({"inline_data": {"mime_type": "image/png", "data": "_-8"}}),
        json!({"inlineData": {"mimeType": "application/pdf", "data": "JVBERi0=", "displayName": "a.pdf"}}),
        json!({"inlineData": {"mimeType": "audio/wav", "data": "AA=="}}),
        json!({"fileData": {"mimeType": "image/png", "fileUri": "https://example.org/a.png"}}),
        json!({"fileData": {"mime_type": "application/pdf", "file_uri": "gs://bucket/a.pdf"}}),
        json!({"fileData": {"fileUri": "https://www.youtube.com/watch?v=1"}, "videoMetadata": {"fps": 1.0}}),
        json!({"fileData": {"mimeType": "text/plain", "fileUri": "https://generativelanguage.googleapis.com/v1beta/files/x"}}),
    ]);
    (part, unknown()).prop_map(|(part, unknown)| with(part, unknown))
}

fn unknown_part() -> impl Strategy<Value = Value> {
    select(vec![
        json!({"hologram": {"depth": [1.0, 1e30]}}),
        json!({"text": " \n"}),
        json!({"text": "a", "inlineData": {"mimeType": "image/png", "data": "AA=="}}),
        json!({"inlineData": {"data": "AA=="}}),
    ])
}

fn tools() -> impl Strategy<Value = Vec<Value>> {
    let schema = select(vec![
        json!({}),
        json!({"parameters": {"type": "OBJECT", "properties": {"a": {"type": "STRING"}}}}),
        json!({"parameters": null}),
        json!({"parametersJsonSchema": {"type": "object", "z": 1.0}}),
        json!({"parameters_json_schema": {}}),
    ]);
    let described =
        select(vec![json!({}), json!({"description": ""}), json!({"description": "d"})]);
    let declaration = ("[a-z_]{1,8}", schema, described, unknown()).prop_map(
        |(name, schema, described, unknown)| {
            with(with(with(json!({"name": name}), schema), described), unknown)
        },
    );
    let beside = select(vec![json!({}), json!({}), json!({"googleSearch": {}})]);
    let functions =
        (vec(declaration, 0..3), beside, any::<bool>()).prop_map(|(all, beside, snake)| {
            let key = if snake { "function_declarations" } else { "functionDeclarations" };
            with(json!({key: all}), beside)
        });
    let native = select(vec![json!({"codeExecution": {}}), json!({"urlContext": {}}), json!({})]);
    vec(prop_oneof![3 => functions.boxed(), 1 => native.boxed()], 1..4)
}

fn params() -> impl Strategy<Value = Value> {
    select(vec![
        json!({}),
        json!({"generationConfig": {}}),
        json!({"generationConfig": {"maxOutputTokens": 10, "temperature": 1, "topK": 3.0}}),
        json!({"generation_config": {"max_output_tokens": 10, "temperature": 0.5}}),
        json!({"systemInstruction": {"role": "user", "parts": [{"text": "be brief"}, {"text": "or not", "x": 1}]}}),
        json!({"system_instruction": {"parts": [{"text": "be brief"}]}, "safetySettings": []}),
        json!({"systemInstruction": null, "cachedContent": "cachedContents/1"}),
        json!({"toolConfig": {"functionCallingConfig": {"mode": "ANY"}}}),
        json!({"tool_config": {"function_calling_config": {"mode": "ANY", "allowed_function_names": ["f"]}}}),
        json!({"toolConfig": {"functionCallingConfig": {"mode": "VALIDATED"}, "retrievalConfig": {}}}),
        json!({"model": "models/gemini-2.5-pro"}),
    ])
}

/// Unknown fields, including some that look like the codec's own marks.
fn unknown() -> impl Strategy<Value = Value> {
    rarely(vec![
        json!({"x_new": {"z": 1.0, "a": [null]}}),
        json!({"~as": "response", "~no_id": true, "~beside": true}),
        json!({"~~snake": 1, "~snake": ["functionCall"], "~placed": true, "~role": "absent"}),
        json!({"mediaResolution": {"level": "LOW"}, "y": 1e2}),
    ])
}

fn text() -> impl Strategy<Value = String> {
    text_of(|text| !text.trim().is_empty())
}
