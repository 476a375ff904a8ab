//! Bodies of requests and streams of answers, in every dialect.

use std::fmt::Write;

use threadfold::{
    Message, Request,
    message::Json,
    wire::{self, EncodeOptions},
};

use super::thread::{PROSE, fill};

/// The codecs. One line each.
pub const CODECS: [wire::Dialect; 5] = [
    wire::Dialect::Anthropic,
    wire::Dialect::BedrockConverse,
    wire::Dialect::Gemini,
    wire::Dialect::OpenAiChat,
    wire::Dialect::OpenAiResponses,
];

/// The bytes of text in one event of a stream.
const PIECE: usize = 20;

/// The body of a request with these messages.
pub fn body(codec: wire::Dialect, messages: &[Message]) -> Json {
    let request = Request::new(messages.to_vec()).with_system("Be brief.");
    codec
        .encode(&request, &EncodeOptions { model: Some("m".into()), ..EncodeOptions::default() })
        .body
}

/// Returns an answer of this many events, as the bytes of `text/event-stream`.
pub fn stream(codec: wire::Dialect, events: usize) -> String {
    let text: Vec<char> = fill(PROSE, 0, events * PIECE).chars().collect();
    let pieces: Vec<String> = text.chunks(PIECE).map(|piece| piece.iter().collect()).collect();
    let Some(dialect) = DIALECTS.iter().find(|dialect| dialect.name == codec.name()) else {
        return String::new();
    };
    let mut stream = String::new();
    dialect.before.iter().for_each(|(name, data)| event(&mut stream, name, data));
    for piece in &pieces {
        let (name, data) = dialect.piece;
        event(&mut stream, name, &data.replace('@', &quoted(piece)));
    }
    let all = quoted(&pieces.concat());
    dialect
        .after
        .iter()
        .for_each(|(name, data)| event(&mut stream, name, &data.replace('@', &all)));
    stream
}

/// Returns the data of the events, one per line.
pub fn data(stream: &str) -> String {
    let data = stream.lines().filter_map(|line| line.strip_prefix("data: "));
    data.filter(|data| *data != "[DONE]").flat_map(|data| [data, "\n"]).collect()
}

fn event(stream: &mut String, name: &str, data: &str) {
    if !name.is_empty() {
        let _ = writeln!(stream, "event: {name}");
    }
    let _ = write!(stream, "data: {data}\n\n");
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The events of a dialect, each a name and its data. `@` stands for a text.
struct Dialect {
    name: &'static str,
    before: &'static [(&'static str, &'static str)],
    piece: (&'static str, &'static str),
    after: &'static [(&'static str, &'static str)],
}

const DIALECTS: [Dialect; 5] = [
    Dialect {
        name: "anthropic-messages",
        before: &[
            (
                "message_start",
                r#"{"type":"message_start","message":{"id":"msg_01","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":25,"output_tokens":1}}}"#,
            ),
            (
                "content_block_start",
                r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
            ),
        ],
        piece: (
            "content_block_delta",
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":@}}"#,
        ),
        after: &[
            ("content_block_stop", r#"{"type":"content_block_stop","index":0}"#),
            (
                "message_delta",
                r#"{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":15}}"#,
            ),
            ("message_stop", r#"{"type":"message_stop"}"#),
        ],
    },
    Dialect {
        name: "bedrock-converse",
        before: &[("messageStart", r#"{"p":"abc","role":"assistant"}"#)],
        piece: (
            "contentBlockDelta",
            r#"{"contentBlockIndex":0,"delta":{"text":@},"p":"abcdefgh"}"#,
        ),
        after: &[
            ("contentBlockStop", r#"{"contentBlockIndex":0,"p":"abcd"}"#),
            ("messageStop", r#"{"stopReason":"end_turn","p":"x"}"#),
            (
                "metadata",
                r#"{"usage":{"inputTokens":3,"outputTokens":7,"totalTokens":10},"p":"zz"}"#,
            ),
        ],
    },
    Dialect {
        name: "gemini",
        before: &[],
        piece: (
            "",
            r#"{"candidates":[{"content":{"parts":[{"text":@}],"role":"model"},"index":0}],"modelVersion":"m","responseId":"r-1"}"#,
        ),
        after: &[(
            "",
            r#"{"candidates":[{"content":{"parts":[{"text":"."}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":4,"totalTokenCount":14},"modelVersion":"m","responseId":"r-1"}"#,
        )],
    },
    Dialect {
        name: "openai-chat",
        before: &[(
            "",
            r#"{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1794000000,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}]}"#,
        )],
        piece: (
            "",
            r#"{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1794000000,"model":"m","choices":[{"index":0,"delta":{"content":@},"logprobs":null,"finish_reason":null}]}"#,
        ),
        after: &[
            (
                "",
                r#"{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1794000000,"model":"m","choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}]}"#,
            ),
            ("", "[DONE]"),
        ],
    },
    Dialect {
        name: "openai-responses",
        before: &[
            (
                "response.created",
                r#"{"type":"response.created","response":{"id":"resp_1","object":"response","status":"in_progress","output":[],"usage":null}}"#,
            ),
            (
                "response.output_item.added",
                r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"msg_1","status":"in_progress","role":"assistant","content":[]}}"#,
            ),
            (
                "response.content_part.added",
                r#"{"type":"response.content_part.added","output_index":0,"content_index":0,"item_id":"msg_1","part":{"type":"output_text","text":"","annotations":[]}}"#,
            ),
        ],
        piece: (
            "response.output_text.delta",
            r#"{"type":"response.output_text.delta","output_index":0,"content_index":0,"item_id":"msg_1","delta":@,"logprobs":[]}"#,
        ),
        after: &[
            (
                "response.output_text.done",
                r#"{"type":"response.output_text.done","output_index":0,"content_index":0,"item_id":"msg_1","text":@}"#,
            ),
            (
                "response.output_item.done",
                r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","text":@,"annotations":[]}]}}"#,
            ),
            (
                "response.completed",
                r#"{"type":"response.completed","response":{"id":"resp_1","object":"response","status":"completed","model":"m","output":[{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","text":@,"annotations":[]}]}],"usage":{"input_tokens":10,"output_tokens":5,"total_tokens":15}}}"#,
            ),
        ],
    },
];
