//! The dialects that are not enabled by default: OpenAI Responses, Gemini and Bedrock Converse.

use std::io::Write;

use futures::StreamExt;
use threadfold::{
    message::Delta,
    model::{self, AnswerLimits},
    wire::SseParser,
};
use threadfold_http::{Dialect, HttpModel, HttpOptions};
use threadfold_testing::shared::cases;

use crate::{
    http::{KEY, Response, Server, ask, codec, deltas_and_turn, streamed},
    runtime::run,
};

const MEDIA_TYPE: &str = "application/vnd.amazon.eventstream";

/// The dialects, the folders of their cases, and the expected requests.
const ROWS: [(Dialect, &str, &str, &str, &str); 3] = [
    (
        Dialect::Responses,
        "openai-responses",
        "POST /v1/responses HTTP/1.1",
        "authorization: Bearer ",
        r#"{"stream":true,"model":"m-1","max_output_tokens":256,"input":[{"role":"user","content":"hi"}]}"#,
    ),
    (
        Dialect::Gemini,
        "gemini",
        "POST /v1beta/models/m-1:streamGenerateContent?alt=sse HTTP/1.1",
        "x-goog-api-key: ",
        r#"{"generationConfig":{"maxOutputTokens":256},"contents":[{"role":"user","parts":[{"text":"hi"}]}]}"#,
    ),
    (
        Dialect::Bedrock,
        "converse",
        "POST /model/m-1/converse-stream HTTP/1.1",
        "authorization: Bearer ",
        r#"{"messages":[{"role":"user","content":[{"text":"hi"}]}],"inferenceConfig":{"maxTokens":256}}"#,
    ),
];

/// Returns a header with a text value.
fn header(name: &str, value: &str) -> Vec<u8> {
    let mut header = vec![name.len() as u8];
    header.extend_from_slice(name.as_bytes());
    header.push(7);
    header.extend_from_slice(&(value.len() as u16).to_be_bytes());
    header.extend_from_slice(value.as_bytes());
    header
}

/// Returns a frame as AWS sends it, with zeros as checksums.
fn frame(name: &str, payload: &str) -> Vec<u8> {
    let headers = [
        header(":content-type", "application/json"),
        header(":event-type", name),
        header(":message-type", "event"),
    ]
    .concat();
    let length = (16 + headers.len() + payload.len()) as u32;
    let mut frame = length.to_be_bytes().to_vec();
    frame.extend_from_slice(&(headers.len() as u32).to_be_bytes());
    frame.extend_from_slice(&[0; 4]);
    frame.extend_from_slice(&headers);
    frame.extend_from_slice(payload.as_bytes());
    frame.extend_from_slice(&[0; 4]);
    frame
}

/// Returns the frames for a stream written as `text/event-stream`.
fn frames(stream: &str) -> Vec<u8> {
    let (mut parser, mut frames) = (SseParser::default(), Vec::new());
    parser.push(stream.as_bytes());
    while let Some(event) = parser.next_event().unwrap() {
        frames.extend(frame(&event.0, &event.1));
    }
    frames
}

/// Sends frames in chunks of this many bytes.
fn framed(frames: Vec<u8>, size: usize) -> Response {
    Box::new(move |socket| {
        let head = format!(
            "HTTP/1.1 200 OK\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\
             content-type: {MEDIA_TYPE}\r\n\r\n"
        );
        socket.write_all(head.as_bytes()).unwrap();
        for chunk in frames.chunks(size) {
            let mut bytes = format!("{:x}\r\n", chunk.len()).into_bytes();
            bytes.extend_from_slice(chunk);
            bytes.extend_from_slice(b"\r\n");
            socket.write_all(&bytes).unwrap();
        }
        let _ = socket.write_all(b"0\r\n\r\n");
    })
}

#[test]
fn every_dialect_sends_its_request_and_reads_its_stream() {
    for (dialect, folder, line, key, sent) in ROWS {
        let cases = cases::read(format!("../../testdata/streams/{folder}")).unwrap();
        let cases = cases.iter().filter(|case| case.section("response").is_some());
        for (case, size) in cases.zip([1, 2, 7, 61].into_iter().cycle()) {
            let stream = case.section("stream").unwrap();
            // Some cases have the form of an SDK, whose events have no name.
            let named = dialect == Dialect::Bedrock && stream.contains("event: ");
            let answer = if named { framed(frames(stream), size) } else { streamed(stream, size) };
            let server = Server::new([answer]);
            let (deltas, turn) = deltas_and_turn(&server.model(dialect), ask());
            let response = case.section("response").unwrap().as_bytes();
            let turn = turn.unwrap_or_else(|error| panic!("{folder}/{}: {error}", case.name));
            assert_eq!(turn, codec(dialect).decode_response(response).unwrap(), "{}", case.name);
            let bytes = futures::stream::iter([Ok::<_, std::io::Error>(stream)]);
            let whole: Vec<_> = run(model::deltas_of(bytes, codec(dialect)).collect());
            let whole: Vec<Delta> = whole.into_iter().map(Result::unwrap).collect();
            assert_eq!(deltas, whole[..whole.len() - 1], "{}", case.name);
            let received = server.received().remove(0);
            assert_eq!(received.head.lines().next(), Some(line));
            let key = format!("{key}{KEY}");
            assert!(received.head.lines().any(|line| line == key), "{}", received.head);
            assert_eq!(received.body, sent);
        }
    }
}

#[test]
fn the_name_of_a_model_is_escaped_in_the_path() {
    let whole = frames(
        "event: messageStart\ndata: {\"role\":\"assistant\"}\n\n\
         event: contentBlockDelta\ndata: {\"contentBlockIndex\":0,\"delta\":{\"text\":\"yes\"}}\n\n\
         event: messageStop\ndata: {\"stopReason\":\"end_turn\"}\n\n\
         event: metadata\ndata: {\"usage\":{\"inputTokens\":3,\"outputTokens\":1}}\n\n",
    );
    let server = Server::new([framed(whole, 9)]);
    let model = "arn:aws:bedrock:eu:1:inference-profile/eu.m".to_owned();
    let options = HttpOptions { model, ..server.options(Dialect::Bedrock) };
    let (_, turn) = deltas_and_turn(&HttpModel::new(options).unwrap(), ask());
    assert_eq!(turn.unwrap().text(), "yes");
    let line = "POST /model/arn:aws:bedrock:eu:1:inference-profile%2Feu.m/converse-stream HTTP/1.1";
    assert_eq!(server.received()[0].head.lines().next(), Some(line));
}

#[test]
fn invalid_frames_are_refused() {
    let limits = AnswerLimits { event_bytes: 1_000, ..AnswerLimits::default() };
    let long = vec![0xff; 64];
    let mut headless = frame("messageStop", "{}");
    headless[12] = 200;
    for (frames, words) in
        [(long, "a length of 4294967295 bytes"), (headless, "headers of a frame")]
    {
        let server = Server::new([framed(frames, 16)]);
        let options = HttpOptions { limits, tries: 1, ..server.options(Dialect::Bedrock) };
        let error = deltas_and_turn(&HttpModel::new(options).unwrap(), ask()).1.unwrap_err();
        assert!(error.message.contains(words), "{error}");
    }
}
