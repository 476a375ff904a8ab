//! Hostile inputs: threads, bodies, logs and scripts that are as large, numerous or deep as
//! possible.
//!
//! Each is processed within bounds or refused with a typed error. Linear growth is checked by
//! counting allocations and their bytes at one size and at ten times that size, instead of by time.
//! The largest sizes are ignored by default, because a build without optimisation takes minutes for
//! them: `cargo test --release --test it adversarial:: -- --ignored`.

use allocation_counter::{AllocationInfo, measure};
use serde_json::json;
use threadfold::{
    CheckpointId, ContentBlock, Message, Plan, Replacement, Request, Role, Thread, compact,
    compact::{CompactError, CompactOptions, Insert, Size, Splice, TrimToolResults, trim},
    legality::{self, Violation},
    log::{CompactionRecord, Event, EventLog, LogError, stamp},
    message::{CompactionId, CompactionReason, Json, Timestamp, ToolResult, ToolUse},
    render::{ChunkBudget, RenderOptions, chunk, render},
    retention::{RetentionPolicy, audit},
    tokens::ByteEstimate,
    wire::{DecodeOptions, Dialect, EncodeOptions, SseParser, WireError},
};
use threadfold_edl::{EditError, Limits, Script, Workspace};

/// Deeper than any stack would allow if each level were a call.
const DEPTH: usize = 100_000;

fn grows_linearly(name: &str, size: usize, mut work: impl FnMut(usize) -> AllocationInfo) {
    let (small, large) = (work(size), work(size * 10));
    // A linear operation on ten times the input may allocate up to this factor more: a doubling
    // buffer may have twice the needed size, and a constant part may be large. A quadratic one
    // would need a hundred times as much.
    let linear = |small: u64, large: u64, least: u64| large <= small.max(least) * 20;
    let counts = (small.count_total, large.count_total);
    assert!(linear(counts.0, counts.1, 100), "{name}: {counts:?} allocations");
    let bytes = (small.bytes_total, large.bytes_total);
    assert!(linear(bytes.0, bytes.1, 10_000), "{name}: {bytes:?} bytes");
}

type Operation<'a> = (&'a str, &'a dyn Fn(&[Message]));

/// Every operation on whole threads, with what it allocates.
fn through_everything(name: &str, size: usize, thread: impl Fn(usize) -> Vec<Message>) {
    let operations: [Operation<'_>; 8] = [
        ("size", &|thread| {
            assert!(Size::of(thread, &ByteEstimate::TRIGGER).messages == thread.len())
        }),
        ("violations", &|thread| drop(legality::violations(thread))),
        ("cut points", &|thread| drop(legality::cut_points(thread))),
        ("repair", &|thread| drop(legality::repair(thread.to_vec()))),
        ("render", &|thread| drop(render(thread, &RenderOptions::default()))),
        ("trim", &|thread| drop(trim(thread, &TrimToolResults::default()))),
        ("compact", &|thread| drop(compact(thread, &[Replacement::new("So far.")]))),
        ("index", &|thread| drop(thread.iter().cloned().collect::<Thread>())),
    ];
    for (operation, work) in operations {
        grows_linearly(&format!("{name}: {operation}"), size, |size| {
            let thread = thread(size);
            measure(|| work(&thread))
        });
    }
    for codec in Dialect::ALL {
        let body = |size| {
            let request = Request::new(thread(size));
            codec.encode(&request, &EncodeOptions::default()).body
        };
        let encoding = format!("{name}: encode {}", codec.name());
        grows_linearly(&encoding, size, |size| {
            let request = Request::new(thread(size));
            measure(|| drop(codec.encode(&request, &EncodeOptions::default())))
        });
        grows_linearly(&format!("{name}: decode {}", codec.name()), size, |size| {
            let body = body(size);
            let read = || codec.decode_slice(body.as_str().as_bytes(), &DecodeOptions::default());
            measure(|| assert!(read().is_ok(), "{}", codec.name()))
        });
    }
}

/// Messages of one role in a row, in each form that some dialect merges or rearranges.
fn in_a_row(count: usize) -> [(&'static str, Vec<Message>); 4] {
    let call = |id: usize| ToolUse::new(format!("t{id}"), "read", Json::parse("{}").unwrap());
    let calls = || Message::new(Role::Assistant, (0..count).map(|id| call(id).into()).collect());
    let result = |id: usize| ToolResult::text(format!("t{id}"), "a line").into();
    let answered = |id: usize| Message::new(Role::User, vec![result(id), ContentBlock::text("on")]);
    let calling = |id: usize| {
        Message::new(Role::Assistant, vec![ContentBlock::text("next"), call(id).into()])
    };
    let ids = || 0..count;
    [
        ("texts", ids().map(|id| Message::user(format!("line {id}"))).collect()),
        ("answers", ids().map(|id| Message::assistant(format!("line {id}"))).collect()),
        ("results", std::iter::once(calls()).chain(ids().map(answered)).collect()),
        ("calls", {
            let results = Message::new(Role::User, ids().map(result).collect());
            ids().map(calling).chain([results]).collect()
        }),
    ]
}

#[test]
fn messages_of_one_role_in_a_row_are_merged_once() {
    for codec in Dialect::ALL {
        let costs = |count| {
            in_a_row(count).map(|(name, thread)| {
                let request = Request::new(thread);
                let encode = || drop(codec.encode(&request, &EncodeOptions::default()));
                (name, measure(encode).bytes_total)
            })
        };
        for ((name, small), (_, large)) in costs(500).into_iter().zip(costs(1_000)) {
            let growth = large as f64 / small as f64;
            assert!(growth < 2.5, "{name}, {}: {small} and {large} bytes", codec.name());
        }
    }
}

/// Text with line breaks, quotes, marks and characters beyond ASCII.
fn text(bytes: usize) -> String {
    let line = "## a line with \"quotes\", `ticks`, \\ and 漢字\n";
    line.repeat(bytes / line.len() + 1)
}

fn one_message(bytes: usize) -> Vec<Message> {
    let call = ToolUse::new("t1", "read", Json::from(json!({ "text": text(bytes / 4) })));
    vec![
        Message::user(text(bytes / 4)),
        Message::new(Role::Assistant, vec![ContentBlock::text(text(bytes / 4)), call.into()]),
        Message::new(Role::User, vec![ToolResult::text("t1", text(bytes / 4)).into()]),
    ]
}

#[test]
fn messages_of_megabytes_are_processed_in_linear_time() {
    through_everything("large messages", 100_000, one_message);
}

#[test]
fn a_message_of_ten_megabytes_is_divided_and_logged_without_a_copy() {
    let bytes = 10_000_000;
    let thread = [Message::user(text(bytes))];
    let rendered = render(&thread, &RenderOptions::default());
    let budget = ChunkBudget::default();
    let mut pieces = Vec::new();
    let cut = measure(|| pieces = chunk(&rendered, budget));
    assert_eq!(pieces.iter().map(|piece| piece.text.len()).sum::<usize>(), rendered.len());
    assert!(pieces.len() > bytes / 200_000, "{} pieces", pieces.len());
    assert!(cut.bytes_total < pieces.len() as u64 * 1_000, "no text is copied: {cut:?}");

    let mut log = EventLog::new("main".parse().unwrap());
    log.append(Timestamp(0), Event::MessageAppended(thread[0].clone())).unwrap();
    let mut stored = Vec::new();
    log.write(&mut stored).unwrap();
    let read = EventLog::read(stored.as_slice()).unwrap();
    assert_eq!(read.log.replay(), thread);
}

#[test]
fn facts_of_large_and_of_many_messages_are_read_in_linear_time() {
    for (name, size, thread) in [
        ("large", 40_000, &one_message as &dyn Fn(usize) -> Vec<Message>),
        ("empty", 10_000, &empty),
        ("paths", 1_000, &|count| {
            (0..count).map(|at| Message::user(format!("src/{at}.rs"))).collect()
        }),
    ] {
        grows_linearly(name, size, |size| {
            let thread = thread(size);
            measure(|| drop(audit(&thread, &[], &RetentionPolicy::default())))
        });
    }
}

fn empty(count: usize) -> Vec<Message> {
    let role = |index| if index % 2 == 0 { Role::User } else { Role::Assistant };
    (0..count).map(|index| Message::new(role(index), Vec::new())).collect()
}

#[test]
fn a_hundred_thousand_empty_messages_are_reported_and_repaired() {
    through_everything("empty messages", 10_000, empty);
    let count = 100_000;
    let thread = empty(count);
    let violations = legality::violations(&thread);
    assert_eq!(violations.len(), count);
    assert_eq!(violations[count - 1], Violation::EmptyMessage { message: count - 1 });
    let (repaired, _) = legality::repair(thread.clone());
    assert_eq!(legality::violations(&repaired), []);
    let compacted = compact(&thread, &[Replacement::new("Nothing was said.")]).unwrap();
    assert_eq!(compacted.messages.len(), 1);
    for codec in Dialect::ALL {
        let body = codec.encode(&Request::new(thread.clone()), &EncodeOptions::default()).body;
        let read = codec.decode_slice(body.as_str().as_bytes(), &DecodeOptions::default());
        assert_eq!(legality::violations(&read.unwrap().messages), [], "{}", codec.name());
    }
}

/// A thread in which every user message ends with a checkpoint, and the checkpoints.
fn stamped(count: usize) -> (Vec<Message>, Vec<CheckpointId>) {
    let messages = (0..count * 2).map(|index| match index % 2 {
        0 => Message::user(format!("Question {index}?")),
        _ => Message::assistant(format!("Answer {index}.")),
    });
    let thread = stamp(messages.collect(), 7);
    let blocks = thread.iter().flat_map(|message| &message.content);
    let ids = blocks.filter_map(|block| {
        if let ContentBlock::Checkpoint(checkpoint) = block { Some(checkpoint.id) } else { None }
    });
    let ids = ids.collect();
    (thread, ids)
}

/// Returns a replacement for every stretch between two neighbouring checkpoints.
fn between_all(ids: &[CheckpointId]) -> Vec<Replacement> {
    let pairs = ids.windows(2).enumerate();
    pairs.map(|(at, ids)| Replacement::new(format!("Part {at}.")).from(ids[0]).to(ids[1])).collect()
}

#[test]
fn ten_thousand_replacements_are_applied_in_one_sweep() {
    let (thread, ids) = stamped(10_000);
    let replacements = between_all(&ids);
    let compacted = compact(&thread, &replacements).unwrap();
    assert_eq!(legality::violations(&compacted.messages), []);
    let text: String = compacted.messages.iter().map(said).collect();
    assert_eq!(text.matches("Part ").count(), 9_999);
    grows_linearly("replacements", 1_000, |count| {
        let (thread, ids) = stamped(count);
        let replacements = between_all(&ids);
        measure(|| drop(compact(&thread, &replacements).unwrap()))
    });
}

fn said(message: &Message) -> String {
    serde_json::to_string(message).unwrap()
}

#[test]
fn ten_thousand_ranges_that_overlap_or_are_unknown_are_refused() {
    let (thread, ids) = stamped(100);
    let same = || Replacement::new("x").from(ids[0]).to(ids[50]);
    let refused = compact(&thread, &vec![same(); 10_000]);
    assert!(matches!(refused, Err(CompactError::Overlap { .. })), "{refused:?}");
    let unknown: Vec<_> = (0..10_000).map(|_| Replacement::new("x").from(unknown())).collect();
    let refused = compact(&thread, &unknown);
    assert!(
        matches!(refused, Err(CompactError::UnknownCheckpoint { index: 0, .. })),
        "{refused:?}"
    );
    let same: Vec<_> =
        (0..10_000).map(|_| json!({ "from": "aaaaaa", "to": 7, "summary": "x" })).collect();
    assert!(Replacement::parse_all(&json!({ "replacements": same })).is_err());
}

fn unknown() -> CheckpointId {
    "zzzzzz".parse().unwrap()
}

#[test]
fn ten_thousand_checkpoints_in_one_message_are_found() {
    let ids: Vec<CheckpointId> = stamped(10_000).1;
    let mut message = Message::user("All at once.");
    message.make_mut().content.extend(ids.iter().map(|id| ContentBlock::checkpoint(*id)));
    let thread: Thread = [message, Message::assistant("And on.")].into_iter().collect();
    let places = ids.iter().enumerate().filter(|(at, id)| {
        thread.checkpoint(**id).is_some_and(|place| (place.message, place.block) == (0, at + 2))
    });
    assert_eq!(places.count(), 10_000);
    let twice = [thread.messages()[0].clone(), thread.messages()[0].clone()];
    let refused = compact(&twice, &[Replacement::new("x").from(ids[9_999])]);
    assert!(
        matches!(refused, Err(CompactError::AmbiguousCheckpoint { index: 0, .. })),
        "{refused:?}"
    );
    let options = CompactOptions::default();
    let rest = [Replacement::new("They went on.").from(ids[9_999])];
    assert_eq!(thread.plan(&rest, &options).unwrap().messages_after(), 2);
}

fn deep(open: &str, close: &str) -> String {
    format!("{}1{}", open.repeat(DEPTH), close.repeat(DEPTH))
}

#[test]
fn a_body_of_deep_values_only_is_refused_by_every_decoder() {
    for codec in Dialect::ALL {
        for deep in [deep("[", "]"), deep("{\"a\":", "}"), "[".repeat(DEPTH)] {
            let fields = ["messages", "contents", "input"];
            let within = fields.map(|field| format!("{{\"{field}\":{deep}}}"));
            for body in [&[deep][..], &within].concat() {
                let read = codec.decode_slice(body.as_bytes(), &DecodeOptions::default());
                if let Err(error) = &read {
                    let typed =
                        matches!(error, WireError::NotJson { .. } | WireError::Shape { .. });
                    assert!(typed, "{}: {error}", codec.name());
                    assert!(error.to_string().len() < 1_000, "{}", codec.name());
                }
                // A dialect keeps what it does not know, or refuses it.
                let kept = |request| codec.encode(request, &EncodeOptions::default()).body;
                let kept = read.as_ref().ok().map(kept);
                assert!(kept.is_none_or(|kept| kept.as_str().contains(&body[20..body.len() - 20])));
                assert!(codec.decode_response(body.as_bytes()).is_err(), "{}", codec.name());
                let mut builder = codec.answer_builder();
                let ended = builder.handle("message_start", &body).and_then(|_| builder.finish());
                assert!(ended.is_err(), "{}", codec.name());
            }
        }
    }
}

#[test]
fn a_deep_input_of_a_call_goes_through_every_codec_or_becomes_a_text() {
    let inputs = [deep("[", "]"), format!("{{\"a\":{}}}", deep("[", "]")), deep("{\"a\":", "}")];
    for input in inputs {
        let json = Json::parse(&input).unwrap();
        assert_eq!(json.as_str(), input);
        assert!(json.to_value().is_err());
        let thread = vec![
            Message::user("Go deep."),
            Message::new(Role::Assistant, vec![ToolUse::new("t1", "dig", json).into()]),
            Message::new(Role::User, vec![ToolResult::text("t1", "Done.").into()]),
        ];
        assert_eq!(legality::violations(&thread), []);
        assert!(render(&thread, &RenderOptions::default()).len() >= DEPTH);
        drop(audit(&thread, &[], &RetentionPolicy::default()));
        for codec in Dialect::ALL {
            let options = EncodeOptions::default();
            let body = codec.encode(&Request::new(thread.clone()), &options).body;
            let read = codec.decode_slice(body.as_str().as_bytes(), &DecodeOptions::default());
            let read = read.unwrap();
            assert_eq!(legality::violations(&read.messages), [], "{}", codec.name());
            assert_eq!(codec.encode(&read, &options).body, body, "{}", codec.name());
        }
        let mut log = EventLog::new("main".parse().unwrap());
        log.append(Timestamp(0), Event::MessageAppended(thread[1].clone())).unwrap();
        let mut stored = Vec::new();
        log.write(&mut stored).unwrap();
        assert_eq!(EventLog::read(stored.as_slice()).unwrap().log.replay(), thread[1..2]);
    }
}

#[test]
fn a_deep_line_of_a_log_is_refused_or_kept_unchanged() {
    let header = "{\"log\":\"threadfold\",\"major\":1,\"thread\":\"main\"}";
    for deep in [deep("[", "]"), deep("{\"a\":", "}")] {
        for event in [
            deep.clone(),
            format!("{{\"seq\":0,\"at\":1,\"event\":{deep}}}"),
            format!("{{\"seq\":0,\"at\":1,\"event\":{{\"message_appended\":{deep}}}}}"),
            format!("{{\"seq\":0,\"at\":1,\"event\":{{\"compacted\":{{\"plan\":{deep}}}}}}}"),
            format!("{{\"seq\":0,\"at\":1,\"event\":{{\"of_another_build\":{deep}}}}}"),
        ] {
            let lines = format!("{header}\n{event}\n");
            match EventLog::read(lines.as_bytes()) {
                Ok(read) => {
                    let mut written = Vec::new();
                    read.log.write(&mut written).unwrap();
                    assert_eq!(String::from_utf8(written).unwrap(), lines);
                    let _ = read.log.replay();
                }
                Err(LogError::Broken { line: 2, reason })
                | Err(LogError::NotAnEvent { line: 2, reason }) => {
                    assert!(reason.len() < 1_000, "{reason}");
                }
                Err(LogError::UnknownKind { seq: 0, kind }) => {
                    assert!(kind == "a" || kind == "of_another_build", "{kind}");
                }
                Err(error) => panic!("{error}"),
            }
        }
        assert!(serde_json::from_str::<Plan>(&deep).is_err());
        assert!(
            serde_json::from_str::<Message>(&format!("{{\"role\":\"user\",\"content\":{deep}}}"))
                .is_err()
        );
    }
    let block = "{\"type\":\"tool_result\",\"tool_use_id\":\"t\",\"content\":[";
    assert!(serde_json::from_str::<ContentBlock>(&block.repeat(DEPTH)).is_err());
}

/// Runs a script on a file and returns the result.
fn run(script: &str, text: &str, limits: &Limits) -> Result<usize, EditError> {
    let mut workspace = Workspace::new();
    workspace.insert("/file", text).unwrap();
    let report = Script::parse(script).unwrap().run_within(&mut workspace, limits);
    match report.failures.into_iter().next() {
        Some(failure) => Err(failure.error),
        None => Ok(workspace.text("/file").unwrap().len()),
    }
}

#[test]
fn patterns_that_backtrack_elsewhere_are_linear() {
    let almost = format!("{}!", "a".repeat(100_000));
    // The search limit is a small multiple of the file's size.
    let limits = Limits { searched_bytes: 4 * almost.len() as u64, ..Limits::default() };
    for pattern in ["(a+)+$", "(a|a)*b", "(a*)*c", "^(([a-z])+.)+[A-Z]([a-z])+$"] {
        let found = run(&format!("file /file select /{pattern}/ delete"), &almost, &limits);
        assert!(matches!(found, Err(EditError::NoMatch { .. })), "{pattern}: {found:?}");
    }
    let found = run("file /file select /(a+)+!$/ delete", &almost, &limits);
    assert_eq!(found, Ok(0));
}

#[test]
fn a_search_that_reads_to_the_end_for_every_match_is_refused() {
    let text = "a".repeat(50_000);
    let limits = Limits { searched_bytes: 1 << 20, ..Limits::default() };
    let found = run("file /file select_multiple /a[^b]*b|a/ replace \"c\"", &text, &limits);
    assert_eq!(found, Err(EditError::SearchTooLong { limit: 1 << 20 }));
}

#[test]
fn patterns_and_files_that_grow_without_bound_are_refused() {
    for pattern in ["(a{1000}){1000}", "((a{100}){100}){100}", "(\\w{500}){500}"] {
        let parsed = Script::parse(&format!("file /file select /{pattern}/ delete"));
        let error = parsed.expect_err(pattern);
        assert!(error.message.starts_with("regular expression"), "{pattern}: {error}");
    }
    let nested = format!("file /file select /{}a{}/ delete", "(".repeat(DEPTH), ")".repeat(DEPTH));
    let error = Script::parse(&nested).expect_err("too deep");
    assert!(error.message.starts_with("regular expression"), "{error}");

    let commands = format!("file /file\n{}", "select bof\n".repeat(20_001));
    let error = Script::parse(&commands).expect_err("too many commands");
    assert_eq!(error.message, "the script has more than 20000 commands");

    let limits = Limits { output_bytes: 1_000_000, ..Limits::default() };
    let script = format!("file /file select_multiple /a/ replace \"{}\"", "b".repeat(1_000));
    let grown = run(&script, &"a".repeat(10_000), &limits);
    assert!(matches!(grown, Err(EditError::OutputTooLarge { limit: 1_000_000, .. })), "{grown:?}");
}

/// The lines of a log with this many events.
fn lines(count: usize) -> Vec<u8> {
    let mut lines = b"{\"log\":\"threadfold\",\"major\":1,\"thread\":\"main\"}\n".to_vec();
    for seq in 0..count {
        let event = match seq % 4 {
            0 | 1 => {
                r#"{"message_appended":{"role":"user","content":[{"type":"text","text":"a"}]}}"#
            }
            2 => r#"{"local_notice":{"text":"n"}}"#,
            _ => r#"{"truncated":{"from":2,"len":1}}"#,
        };
        lines.extend(format!("{{\"seq\":{seq},\"at\":1,\"event\":{event}}}\n").bytes());
    }
    lines
}

#[test]
fn a_log_of_a_hundred_thousand_events_is_read_in_linear_time() {
    let read = |count: usize| {
        let lines = lines(count);
        measure(|| drop(EventLog::read(lines.as_slice()).unwrap().log.replay()))
    };
    grows_linearly("events", 10_000, read);
}

#[test]
fn a_log_of_ten_thousand_events_is_written_as_it_was_read() {
    let lines = lines(10_000);
    let read = EventLog::read(lines.as_slice()).unwrap();
    let mut written = Vec::new();
    read.log.write(&mut written).unwrap();
    assert!(written == lines, "writing the log gives the lines that were read");
}

/// A log whose thread is compacted to one message after every second message.
fn compacted_often(count: usize) -> EventLog {
    let mut log = EventLog::new("main".parse().unwrap());
    for number in 0..count as u64 {
        let before = usize::from(number > 0);
        log.append(Timestamp(0), Event::MessageAppended(Message::user("hi"))).unwrap();
        let insert = vec![Insert::Message { message: Message::user("So far.") }];
        let splice = Splice { at: 0..before + 1, insert };
        let plan = Plan::from_splices(before + 1, vec![splice]);
        let reason = CompactionReason::default();
        let record = CompactionRecord::new(CompactionId(number), reason, "mine", plan);
        log.append(Timestamp(0), Event::Compacted(Box::new(record))).unwrap();
    }
    log
}

#[test]
fn ten_thousand_compactions_on_top_of_each_other_are_replayed_and_undone() {
    grows_linearly("compactions", 1_000, |count| measure(|| drop(compacted_often(count).replay())));
    let mut log = compacted_often(10_000);
    assert_eq!(log.replay(), [Message::user("So far.")]);
    for number in (9_000..10_000).rev() {
        assert!(!log.undo(Timestamp(0), CompactionId(number)).unwrap().is_empty());
    }
    assert_eq!(log.replay().len(), 1_001);
}

#[test]
fn a_plan_of_ten_thousand_splices_that_does_not_fit_changes_nothing() {
    let splice = |at: usize| format!("{{\"at\":{{\"start\":{at},\"end\":{at}}},\"insert\":[]}}");
    let splices = |at: &dyn Fn(usize) -> usize| {
        let splices: Vec<String> = (0..10_000).map(|index| splice(at(index))).collect();
        format!("{{\"version\":1,\"before\":3,\"splices\":[{}]}}", splices.join(","))
    };
    for text in
        [splices(&|index| index), splices(&|_| usize::MAX), splices(&|index| 10_000 - index)]
    {
        let plan: Plan = serde_json::from_str(&text).unwrap();
        let mut thread = vec![Message::user("a"), Message::assistant("b"), Message::user("c")];
        let before = thread.clone();
        assert!(plan.apply(&mut thread).is_err());
        assert_eq!(thread, before);
    }
}

#[test]
fn an_event_of_a_stream_that_never_ends_is_refused() {
    let mut parser = SseParser::default();
    let piece = "data: ".to_owned() + &"x".repeat(1 << 20);
    let refused = (0..64).find_map(|_| {
        parser.push(piece.as_bytes());
        parser.next_event().err()
    });
    assert_eq!(refused, Some(WireError::EventTooLarge { limit: 16 << 20 }));
}
