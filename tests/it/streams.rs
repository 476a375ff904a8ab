//! Streamed answers: `testdata/streams/*/*.txt`, for every codec.
//!
//! A case is `--- stream`, the bytes of a `text/event-stream`, and then either `--- response` with
//! the same answer in one body and `--- deltas` with the deltas, or `--- error` with the kind and
//! text of the failure and the tokens spent.

use std::{
    error::Error,
    fmt::Write as _,
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use futures::{FutureExt, StreamExt, executor::block_on, stream};
use proptest::{
    collection::vec,
    prelude::*,
    sample::Index,
    test_runner::{RngAlgorithm, TestRng, TestRunner},
};
use threadfold::{
    Answer, ContentBlock,
    message::{Delta, ModelError, ModelErrorKind, Text},
    model::{self, Model},
    wire::Dialect,
};
use threadfold_testing::{conformance, shared::cases::Case};

use crate::support::{stream_cases, tries::tries};

/// The codecs, and the folders of their cases. One line each.
const CODECS: &[(Dialect, &str)] = &[
    (Dialect::Anthropic, "anthropic"),
    (Dialect::BedrockConverse, "converse"),
    (Dialect::Gemini, "gemini"),
    (Dialect::OpenAiChat, "openai-chat"),
    (Dialect::OpenAiResponses, "openai-responses"),
];

/// Every case with its codec, and whether it ends with an answer.
fn cases() -> Vec<(Dialect, Case)> {
    let cases = CODECS.iter().flat_map(|(codec, folder)| {
        let cases = stream_cases::read(folder);
        cases.into_iter().map(|case| (*codec, case))
    });
    cases.collect()
}

fn answers() -> Vec<(Dialect, Case)> {
    cases().into_iter().filter(|(_, case)| case.section("response").is_some()).collect()
}

fn bytes(case: &Case) -> &[u8] {
    case.section("stream").unwrap().as_bytes()
}

/// The deltas of an answer in these pieces, and its end.
fn read<'b>(
    codec: Dialect,
    pieces: impl IntoIterator<Item = &'b [u8], IntoIter: Send>,
) -> (Vec<Delta>, Result<Answer, ModelError>) {
    let pieces = stream::iter(pieces).map(Ok::<_, io::Error>);
    let items: Vec<_> = block_on(model::deltas_of(pieces, codec).collect());
    ends(items)
}

fn ends(mut items: Vec<Result<Delta, ModelError>>) -> (Vec<Delta>, Result<Answer, ModelError>) {
    let last = match items.pop().expect("an end") {
        Ok(Delta::Answer { answer: turn }) => Ok(turn),
        Ok(delta) => panic!("ends with {delta:?}"),
        Err(error) => Err(error),
    };
    (items.into_iter().map(|delta| delta.expect("nothing follows an error")).collect(), last)
}

fn answer(codec: Dialect, case: &Case) -> Answer {
    codec.decode_response(case.section("response").unwrap().as_bytes()).unwrap()
}

fn written(deltas: &[Delta]) -> String {
    let mut lines = String::new();
    for delta in deltas {
        match delta {
            Delta::Text { text } => writeln!(lines, "text {}", json(text)),
            Delta::Thinking { text } => writeln!(lines, "thinking {}", json(text)),
            Delta::ToolUse { id, name } => writeln!(lines, "call {id} {name}"),
            Delta::ToolInput { id, text } => writeln!(lines, "input {id} {}", json(text)),
            other => panic!("{other:?}"),
        }
        .unwrap();
    }
    lines
}

fn json(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}

fn written_error(error: &ModelError) -> String {
    let kind = match error.kind {
        ModelErrorKind::Overflow { .. } => "overflow",
        ModelErrorKind::Retryable { .. } => "retryable",
        _ => "other",
    };
    format!("{kind}: {}\nusage {} {}\n", error.message, error.usage.input, error.usage.output)
}

/// The expected result of a case: the same wherever its stream is divided.
struct Expected {
    reported: Option<String>,
    end: Result<Answer, String>,
}

fn expected_of(codec: Dialect, case: &Case) -> Expected {
    let reported = case.section("deltas").map(str::to_owned);
    let end = match case.section("error") {
        Some(error) => Err(error.to_owned()),
        None => Ok(answer(codec, case)),
    };
    Expected { reported, end }
}

impl Expected {
    /// Checks the deltas, and the answer or its error.
    fn check(&self, case: &Case, deltas: &[Delta], end: Result<Answer, ModelError>) {
        if let Some(reported) = &self.reported {
            assert_eq!(&written(deltas), reported, "{}", case.name);
        }
        assert_eq!(end.map_err(|error| written_error(&error)), self.end, "{}", case.name);
    }
}

#[test]
fn an_answer_in_pieces_is_the_answer_in_one_body() {
    for (codec, case) in cases() {
        let expected = expected_of(codec, &case);
        let (deltas, end) = read(codec, [bytes(&case)]);
        expected.check(&case, &deltas, end);
    }
}

#[test]
fn the_division_of_the_bytes_makes_no_difference() {
    for (codec, case) in cases() {
        let expected = expected_of(codec, &case);
        let bytes = bytes(&case);
        let (deltas, end) = read(codec, bytes.chunks(1));
        expected.check(&case, &deltas, end);
        for at in 0..bytes.len() {
            let (one, other) = bytes.split_at(at);
            let (deltas, end) = read(codec, [one, other]);
            expected.check(&case, &deltas, end);
        }
        let cuts = vec(any::<Index>(), 0..8);
        let config = ProptestConfig { failure_persistence: None, ..tries(32) };
        let mut runner =
            TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
        runner
            .run(&cuts, |cuts| {
                let mut cuts: Vec<usize> =
                    cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
                cuts.extend([0, bytes.len()]);
                cuts.sort_unstable();
                let pieces = cuts.iter().zip(cuts.iter().skip(1));
                let pieces: Vec<&[u8]> =
                    pieces.map(|(start, end)| bytes.get(*start..*end).unwrap()).collect();
                let (deltas, end) = read(codec, pieces);
                expected.check(&case, &deltas, end);
                Ok(())
            })
            .unwrap();
    }
}

#[test]
fn the_streamed_text_equals_the_text() {
    for (codec, case) in answers() {
        let (deltas, end) = read(codec, [bytes(&case)]);
        let reported = deltas.iter().filter_map(|delta| match delta {
            Delta::Text { text } => Some(text.as_str()),
            _ => None,
        });
        let turn = end.unwrap();
        let texts = turn.message.content.iter().filter_map(ContentBlock::as_text);
        let texts = texts.map(Text::as_str);
        assert_eq!(reported.collect::<String>(), texts.collect::<String>(), "{}", case.name);
    }
}

#[test]
fn data_after_the_end_changes_nothing() {
    for (codec, case) in answers() {
        let events = stream_cases::events(&case);
        let mut builder = codec.answer_builder();
        for event in &events {
            builder.handle(&event.0, &event.1).unwrap();
        }
        let complete = builder.is_complete();
        assert!(complete || case.name.contains("without"), "{}", case.name);
        for _ in 0..2 {
            for event in events.iter().filter(|_| complete) {
                let reported = builder.handle(&event.0, &event.1).unwrap();
                assert_eq!(written(&reported), "", "{}", case.name);
            }
            assert_eq!(builder.finish().unwrap(), answer(codec, &case), "{}", case.name);
        }
    }
}

#[test]
fn invalid_utf_8_reads_the_same_for_every_division() {
    for (codec, case) in cases() {
        let bytes = bytes(&case);
        for at in (0..bytes.len()).step_by(7) {
            let spoilt = [bytes.get(..at).unwrap(), b"\xc3", bytes.get(at..).unwrap()].concat();
            let (deltas, end) = read(codec, [spoilt.as_slice()]);
            let (other_deltas, other_end) = read(codec, spoilt.chunks(5));
            assert_eq!(written(&deltas), written(&other_deltas), "{}: {at}", case.name);
            let end = end.map_err(|error| written_error(&error));
            assert_eq!(end, other_end.map_err(|error| written_error(&error)), "{}", case.name);
        }
    }
}

#[test]
fn lines_may_have_every_ending_of_the_standard() {
    for (codec, case) in cases() {
        let expected = expected_of(codec, &case);
        for ends in ["\r", "\r\n"] {
            let text = case.section("stream").unwrap().replace('\n', ends);
            let (deltas, end) = read(codec, [text.as_bytes()]);
            expected.check(&case, &deltas, end);
        }
    }
}

#[test]
fn unknown_events_and_fields_change_nothing() {
    let unknown = "\n: a comment\n\nevent: surprise\ndata: {\"type\":\"surprise\",\"index\":0,\
                   \"delta\":{\"text\":\"?\"}}\n\nevent: keepalive\ndata: ok\n\n";
    for (codec, case) in cases() {
        let expected = expected_of(codec, &case);
        let text = case.section("stream").unwrap().replace("\n\n", &format!("\n\n{unknown}"));
        let (deltas, end) = read(codec, [text.as_bytes()]);
        expected.check(&case, &deltas, end);
    }
}

#[test]
fn a_stream_cut_at_any_byte_is_an_error_and_never_half_an_answer() {
    for (codec, case) in answers() {
        let (bytes, whole) = (bytes(&case), answer(codec, &case));
        let mut errors = 0;
        for cut in 0..bytes.len() {
            let (deltas, end) = read(codec, [bytes.get(..cut).unwrap()]);
            let reported = written(&deltas);
            assert!(case.section("deltas").unwrap().starts_with(&reported), "{}: {cut}", case.name);
            match end {
                Err(error) => {
                    assert!(error.is_retryable(), "{}: {cut}: {error}", case.name);
                    errors += 1;
                }
                // Only what follows the last piece of the answer may be missing: the counts.
                Ok(turn) => {
                    assert_eq!(turn.message.content, whole.message.content, "{}", case.name);
                    assert_eq!(turn.stop_reason, whole.stop_reason, "{}", case.name);
                }
            }
        }
        assert!(errors * 3 > bytes.len(), "{}: {errors} of {}", case.name, bytes.len());
    }
}

#[test]
fn a_missing_event_causes_no_panic_and_no_other_kind_of_error() {
    for (codec, case) in cases() {
        let text = case.section("stream").unwrap();
        let events: Vec<&str> = text.split_inclusive("\n\n").collect();
        for missing in 0..events.len() {
            for times in [0, 2] {
                let kept = events.iter().enumerate();
                let kept = kept.flat_map(|(index, event)| {
                    vec![event.as_bytes(); if index == missing { times } else { 1 }]
                });
                let kept: Vec<&[u8]> = kept.collect();
                let (_, end) = read(codec, kept);
                if let Err(error) = end {
                    let own = case
                        .section("error")
                        .is_some_and(|own| own.starts_with(&format!("other: {}", error.message)));
                    let of_the_stream = error.is_retryable() || error.is_overflow();
                    assert!(of_the_stream || own, "{}: {error}", case.name);
                }
            }
        }
    }
}

#[test]
fn a_transport_that_breaks_is_a_retryable_error_with_its_source_and_the_cost() {
    for (codec, case) in answers() {
        let half = bytes(&case).len() - 100;
        let half = bytes(&case).get(..half).unwrap();
        let broken = io::Error::new(io::ErrorKind::ConnectionReset, "connection reset");
        let pieces = stream::iter([Ok(half), Err(broken)]);
        let (_, end) = ends(block_on(model::deltas_of(pieces, codec).collect()));
        let error = end.expect_err(&case.name);
        assert!(error.is_retryable() && error.message == "connection reset", "{error}");
        assert!(error.source().unwrap().downcast_ref::<io::Error>().is_some());
    }
    let (codec, case) = cases().into_iter().find(|(_, case)| case.name == "error-cut").unwrap();
    let pieces = [Ok(case.section("stream").unwrap()), Err("connection reset")];
    let (_, end) = ends(block_on(model::deltas_of(stream::iter(pieces), codec).collect()));
    assert_eq!(written_error(&end.unwrap_err()), "retryable: connection reset\nusage 109 3\n");
}

#[test]
fn nothing_is_read_after_the_end() {
    for (codec, case) in answers().into_iter().filter(|(_, case)| !case.name.contains("without")) {
        let expected = expected_of(codec, &case);
        let asked = AtomicUsize::new(0);
        let pieces = stream::iter([bytes(&case), b"data: more\n\n"]).map(|piece| {
            asked.fetch_add(1, Ordering::Relaxed);
            Ok::<_, io::Error>(piece)
        });
        let (deltas, end) = ends(block_on(model::deltas_of(pieces, codec).collect()));
        expected.check(&case, &deltas, end);
        assert_eq!(asked.load(Ordering::Relaxed), 1, "{}", case.name);
    }
}

#[test]
fn the_transport_is_dropped_before_the_last_item_and_with_the_stream() {
    let (codec, case) = answers().remove(0);
    let held = Arc::new(());
    let with_guard = |pieces: Vec<Vec<u8>>| {
        let guard = held.clone();
        stream::iter(pieces)
            .map(move |piece| {
                let _ = &guard;
                Ok::<_, io::Error>(piece)
            })
            .chain(stream::pending())
    };
    let mut deltas = model::deltas_of(with_guard(vec![bytes(&case).to_vec()]), codec);
    while let Some(item) = block_on(deltas.next()) {
        let last = matches!(item, Ok(Delta::Answer { .. }));
        assert_eq!(Arc::strong_count(&held), if last { 1 } else { 2 });
        if last {
            break;
        }
    }
    assert!(block_on(deltas.next()).is_none());

    let mut begun = model::deltas_of(with_guard(Vec::new()), codec);
    assert!(begun.next().now_or_never().is_none(), "it waits for the transport");
    drop(begun);
    assert_eq!(Arc::strong_count(&held), 1);
}

#[test]
fn a_last_event_without_its_blank_line_counts() {
    for (codec, case) in answers() {
        let expected = expected_of(codec, &case);
        let text = case.section("stream").unwrap().trim_end();
        let (deltas, end) = read(codec, [text.as_bytes()]);
        expected.check(&case, &deltas, end);
    }
}

/// A host's adapter, which is only its HTTP client.
#[derive(Debug)]
struct Adapter(Dialect, Vec<u8>);

#[threadfold::async_trait]
impl Model for Adapter {
    async fn complete(&self, request: threadfold::Request) -> Result<Answer, ModelError> {
        model::answer_of(self.stream(request)).await
    }

    fn stream(&self, _: threadfold::Request) -> stream::BoxStream<'_, Result<Delta, ModelError>> {
        model::deltas_of(stream::iter(self.1.chunks(11)).map(Ok::<_, io::Error>), self.0)
    }
}

#[test]
fn an_adapter_over_a_codec_passes_the_suite_for_models() {
    for (codec, case) in cases() {
        let adapter = Adapter(codec, bytes(&case).to_vec());
        block_on(conformance::model(&adapter)).unwrap_or_else(|breach| {
            panic!("{}: {breach}", case.name);
        });
    }
}

#[test]
fn an_event_that_is_too_large_is_not_retryable() {
    let line = vec![b'x'; 17 * 1024 * 1024];
    let (_, end) = read(Dialect::Anthropic, line.chunks(1024 * 1024));
    let error = end.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Other);
    assert_eq!(error.message, "an event of the stream has more than 16777216 bytes");
}

#[test]
fn large_streams_of_every_kind_are_read_in_linear_time() {
    let many = |one: &dyn Fn(usize) -> String| (0..10_000).map(one).collect::<Vec<_>>();
    let keys = format!("{{{}}}", many(&|n| format!("\"k{n}\":{n}")).join(","));
    let start = "data: {\"type\":\"message_start\",\"message\":{\"usage\":{}}}\n\n".to_owned();
    let block = |n: usize| {
        let block = "\"content_block\":{\"type\":\"text\",\"text\":\"x\"}";
        let delta = "\"delta\":{\"type\":\"citations_delta\",\"citation\":{}}";
        format!(
            "data: {{\"type\":\"content_block_start\",\"index\":1{n}000000,{block}}}\n\n\
             data: {{\"type\":\"content_block_delta\",\"index\":1{n}000000,{delta}}}\n\n"
        )
    };
    let stop = format!(
        "data: {{\"type\":\"message_delta\",\"delta\":{keys},\"usage\":{keys}}}\n\n\
         data: {{\"type\":\"message_stop\"}}\n\n"
    );
    let (deltas, end) =
        read(Dialect::Anthropic, [(start + &many(&block).concat() + &stop).as_bytes()]);
    assert_eq!((deltas.len(), end.unwrap().message.content.len()), (10_000, 10_000));

    let piece = |n: usize| {
        let call =
            format!("{{\"index\":1{n}000000,\"id\":\"c{n}\",\"function\":{{\"name\":\"f\"}}}}");
        let details = "[{\"type\":\"reasoning.text\",\"text\":\"x\"},{}]";
        format!(
            "data: {{\"choices\":[{{\"delta\":{{\"x{n}\":1,\"content\":\" \",\"tool_calls\":[{call}],\
             \"reasoning_details\":{details}}},\"logprobs\":{{\"y{n}\":[1]}}}}],\"z{n}\":1}}\n\n"
        )
    };
    let usage = format!("data: {{\"choices\":[],\"usage\":{keys}}}\n\n");
    let text = usage + &many(&piece).concat() + "data: [DONE]\n\n";
    let (deltas, end) = read(Dialect::OpenAiChat, [text.as_bytes()]);
    assert_eq!((deltas.len(), end.unwrap().message.tool_uses().count()), (10_000, 10_000));
}
