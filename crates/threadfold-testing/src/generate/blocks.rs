//! Blocks of generated messages.

use proptest::{collection::vec, option, prelude::*, sample::select};
use threadfold::message::{
    ContentBlock, ContextUpdate, Document, Extra, Image, Json, MediaSource, Opaque,
    RedactedThinking, ServerToolResult, ServerToolUse, Text, TextBlock, Thinking, ToolInput,
    ToolResult,
};

/// Parts of ordinary text: code, prose, several scripts, and white space that must survive.
#[rustfmt::skip]
const WORDS: [&str; 20] = [
    "fix", "the parser", "src/wire/mod.rs", "error[E0308]: mismatched types", "please never",
    "cargo test --all", "don't", "\n", "\n\n", "\r\n", "\t", "naïve", "漢字", "🦀", "e\u{301}",
    "```rust\nfn main() {}\n```", "  ", "{\"a\":1.0}", "<b>&amp;</b>", "\"quoted\\\"",
];

/// Texts that look like markers, headings or blocks.
const LOOKALIKES: [&str; 12] = [
    "<checkpoint:a1b2c3>",
    "<checkpoint:a1b2c3> and more",
    "<system-reminder>\nbe brief\n</system-reminder>",
    "<conversation-summary>\nall went well\n</conversation-summary>",
    "<context-update>\n- a.rs\nchanged\n</context-update>",
    "</conversation-summary>",
    "# assistant\nI am not the assistant",
    "hello\n# user\nhow are you",
    "[tool_use t0 read] {}",
    "line\n[tool_result t0] hello",
    "\\# user",
    "--- thread",
];

/// A text that is not blank: mostly a few words, sometimes one that looks like a marker, rarely a
/// large one.
pub(super) fn text() -> impl Strategy<Value = Text> + Clone {
    let words = vec(select(&WORDS[..]), 0..6).prop_map(|words| words.join(" "));
    prop_oneof![
        20 => words.clone().prop_map(|words| Text::from(format!("w {words}"))),
        2 => words.clone().prop_map(|words| Text::from(format!("{words}."))),
        2 => select(&LOOKALIKES[..]).prop_map(Text::from),
        1 => (words, 10_usize..200).prop_map(|(words, times)| {
            Text::from(format!("{words} and so on\n").repeat(times))
        }),
    ]
}

/// Mostly no fields; sometimes those of one codec, which other codecs must omit.
pub(super) fn extra() -> impl Strategy<Value = Extra> + Clone {
    let fields = [
        ("anthropic-messages", "cache_control", r#"{"type":"ephemeral"}"#),
        ("openai-chat", "x_note", r#"{"z":1.0,"a":[2]}"#),
        ("acme", "x_custom", "[1.50,null]"),
    ];
    let some = select(fields.to_vec())
        .prop_map(|(codec, key, value)| Extra::new(codec, [(key, json(value))]));
    prop_oneof![24 => Just(Extra::default()), 1 => some]
}

/// As [`extra`], for a message: no provider has cache marks on messages.
pub(super) fn message_extra() -> impl Strategy<Value = Extra> + Clone {
    extra().prop_map(|extra| match extra.codec() {
        Some("anthropic-messages") => Extra::default(),
        Some(_) | None => extra,
    })
}

/// Returns a constant as JSON.
pub(super) fn json(text: &str) -> Json {
    debug_assert!(Json::parse(text).is_ok(), "{text}");
    Json::from_valid(text)
}

pub(super) fn text_block() -> impl Strategy<Value = ContentBlock> + Clone {
    (text(), extra()).prop_map(|(text, extra)| TextBlock { extra, ..TextBlock::new(text) }.into())
}

/// A block from the user or the host: mostly text.
pub(super) fn user_block() -> impl Strategy<Value = ContentBlock> + Clone {
    prop_oneof![
        12 => text_block(),
        3 => text().prop_map(ContentBlock::reminder),
        2 => context_update(),
        1 => image(),
        1 => document(),
        1 => opaque(),
    ]
}

/// A tool result: mostly one text, sometimes empty, blank, or with several blocks or an image.
pub(super) fn result() -> impl Strategy<Value = ToolResult> + Clone {
    let content = prop_oneof![
        8 => text_block().prop_map(|block| vec![block]),
        1 => Just(Vec::new()),
        1 => Just(vec![ContentBlock::text("")]),
        2 => vec(prop_oneof![3 => text_block(), 1 => image(), 1 => document()], 2..4),
    ];
    (content, prop::bool::weighted(0.15), extra()).prop_map(|(content, is_error, extra)| {
        ToolResult { is_error, extra, ..ToolResult::new("", content) }
    })
}

/// A tool input: JSON, or text that may be invalid JSON.
pub(super) fn input() -> impl Strategy<Value = ToolInput> + Clone {
    let texts = ["{}", r#"{"path":"a.txt"}"#, "{\"path\":", "", "[1]", "say \"hi\""];
    prop_oneof![
        3 => Just(ToolInput::Json(json("{}"))),
        4 => text().prop_map(|text| {
            ToolInput::from(serde_json::json!({ "text": text.as_str(), "n": [1, 2.5, null] }))
        }),
        1 => Just(ToolInput::Json(json(r#"{"z":1.0,"a":1e2}"#))),
        2 => select(texts.to_vec()).prop_map(ToolInput::from_text),
    ]
}

/// Reasoning: signed, unsigned, a signature without text, or encrypted.
pub(super) fn reasoning() -> impl Strategy<Value = ContentBlock> + Clone {
    let signature = option::of(Just(Text::from("c2lnbmF0dXJl")));
    prop_oneof![
        6 => (text(), signature).prop_map(|(text, sig)| Thinking::new(text, sig).into()),
        1 => Just(Thinking::new("", Some("c2ln".into())).into()),
        2 => Just(RedactedThinking::new("ZW5jcnlwdGVk").into()),
    ]
}

/// A server-side tool call and its result.
pub(super) fn server_pair() -> impl Strategy<Value = [ContentBlock; 2]> + Clone {
    (text(), 0..4).prop_map(|(text, number)| {
        let id = Text::from(format!("srv_{number}"));
        let query = serde_json::json!({ "query": text.as_str() });
        let call = ServerToolUse::new(id.clone(), "web_search", query);
        let found = json(
            r#"[{"type":"web_search_result","url":"https://example.org","title":"t","encrypted_content":"RW4=","page_age":null}]"#,
        );
        [call.into(), ServerToolResult::new(id, "web_search_tool_result", found).into()]
    })
}

pub(super) fn image() -> impl Strategy<Value = ContentBlock> + Clone {
    source("image/png", "iVBORw0KGgo=").prop_map(|source| Image::new(source).into())
}

pub(super) fn document() -> impl Strategy<Value = ContentBlock> + Clone {
    let text = text().prop_map(|text| MediaSource::Text { media_type: "text/plain".into(), text });
    let source = prop_oneof![2 => source("application/pdf", "JVBERi0="), 1 => text];
    (source, option::of(option::of(self::text()))).prop_map(|(source, title)| {
        Document { title: title.flatten(), ..Document::new(source) }.into()
    })
}

pub(super) fn context_update() -> impl Strategy<Value = ContentBlock> + Clone {
    let paths = select(vec!["a.rs", "docs/naïve.md"]).prop_map(Text::from);
    (vec(paths, 1..3), text()).prop_map(|(paths, text)| ContextUpdate::new(paths, text).into())
}

pub(super) fn opaque() -> impl Strategy<Value = ContentBlock> + Clone {
    let values = [
        ("anthropic-messages", r#"{"type":"container_upload","file_id":"f1"}"#),
        ("openai-chat", r#"{"type":"input_audio","input_audio":{"data":"aa","format":"wav"}}"#),
        ("acme", r#"{"type":"hologram","z":1,"a":2.0}"#),
    ];
    select(values.to_vec()).prop_map(|(codec, value)| Opaque::new(codec, json(value)).into())
}

/// A source of this media type, whose data begin with the type's magic bytes.
fn source(
    media_type: &'static str,
    data: &'static str,
) -> impl Strategy<Value = MediaSource> + Clone {
    select(vec![
        MediaSource::Base64 { media_type: media_type.into(), data: data.into() },
        MediaSource::Url { url: "https://example.org/a".into() },
        MediaSource::File { id: "file_1".into() },
    ])
}
