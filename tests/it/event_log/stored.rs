//! The stored form: every kind of event, torn tails, other versions.

use threadfold::{
    CheckpointId, ContentBlock, Message, Role, Usage,
    compact::{CompactReport, Insert, Size, Splice},
    log::{
        CompactionFailure, CompactionRecord, Event, EventLog, Loaded, LogError, LoggedEvent, Rung,
    },
    message::{
        Batch, BatchId, CompactionId, CompactionReason, Extra, Json, Timestamp, ToolResult, ToolUse,
    },
};

use super::{append, compact, compacted, log_of, say, splice, texts};

const HEADER: &str = "{\"log\":\"threadfold\",\"major\":1,\"thread\":\"main\"}\n";

/// A log with an event of every kind.
fn every_kind() -> EventLog {
    let mut log = log_of(&["a", "b\u{2028}\u{1f980}\n\"c\""]);
    let input = Json::parse(r#"{"z":1.0,"a":1e2,"n":12345678901234567890123}"#).unwrap();
    let mut answer = Message::new(Role::Assistant, vec![ToolUse::new("t1", "f", input).into()]);
    answer.make_mut().usage = Some(Usage::new(1_000, 10));
    answer.make_mut().extra =
        Extra::new("anthropic-messages", [("x", Json::parse("1.50").unwrap())]);
    append(&mut log, Event::MessageAppended(answer));
    let id: CheckpointId = "aaaaaa".parse().unwrap();
    let blocks = vec![ToolResult::text("t1", "done").into(), ContentBlock::checkpoint(id)];
    append(&mut log, Event::MessageAppended(Message::new(Role::User, blocks)));
    for by_user in [false, true] {
        append(&mut log, Event::SystemPromptSet { text: "be brief".into(), by_user });
    }
    append(&mut log, Event::LocalNotice { text: "compacting".into() });
    let failed = failure(&log);
    append(&mut log, Event::CompactionFailed(Box::new(failed)));
    let part = Splice { at: 3..4, insert: vec![Insert::Part { message: 3, blocks: vec![0] }] };
    let Event::Compacted(record) = compacted(&log, vec![splice(0..2, &["ab"]), part]) else {
        unreachable!()
    };
    append(&mut log, Event::Compacted(Box::new(reported(*record))));
    append(&mut log, Event::Truncated { from: 3, len: 3 });
    append(&mut log, Event::CompactionUndone { id: CompactionId(1) });
    let data = Json::parse(r#"{"z":1.0,"a":[]}"#).unwrap();
    append(&mut log, Event::Host { kind: "tool_approval".into(), data });
    log
}

fn failure(log: &EventLog) -> CompactionFailure {
    let id = log.next_compaction();
    let mut failure = CompactionFailure::new(id, CompactionReason::Overflow, "ladder", "no rung");
    let mut rung = Rung::new("summarize");
    (rung.failure, rung.usage, rung.calls) = (Some("too long".into()), Usage::new(7, 1), 1);
    (failure.usage, failure.rungs) = (Usage::new(7, 1), vec![rung]);
    failure
}

fn reported(mut record: CompactionRecord) -> CompactionRecord {
    record.reason = CompactionReason::Manual { instructions: Some("the parser".into()) };
    let mut report = CompactReport::default();
    report.before = Size { messages: 4, bytes: 40, tokens: 13 };
    report.blocks_stripped = 1;
    (record.report, record.usage) = (report, Usage::new(300, 20));
    let id = BatchId { compaction: record.id, index: 3 };
    record.batches =
        vec![Batch { replaces: vec![id, BatchId::default()], ..Batch::new(id, "So far.") }];
    record.rungs = vec![Rung::new("digest")];
    record
}

fn bytes(log: &EventLog) -> Vec<u8> {
    let mut bytes = Vec::new();
    log.write(&mut bytes).unwrap();
    bytes
}

fn read(text: &str) -> Result<Loaded, LogError> {
    EventLog::read(text.as_bytes())
}

#[test]
fn every_kind_of_event_round_trips_with_its_time() {
    let log = every_kind();
    let read = EventLog::read(bytes(&log).as_slice()).unwrap();
    assert_eq!((&read.log, read.end, read.torn), (&log, bytes(&log).len() as u64, None));
    assert_eq!(bytes(&read.log), bytes(&log));
    assert_eq!(read.log.replay(), log.replay());
    assert!(read.log.sources().eq(log.sources()) && read.log.times().eq(log.times()));
    assert_eq!(read.log.skipped(), log.skipped());
    assert_eq!(read.log.events()[4].at, Timestamp(1_004));
    let kinds: std::collections::BTreeSet<&str> =
        log.events().iter().map(|event| event.event.kind()).collect();
    assert_eq!(kinds.len(), 8);
    for event in log.events() {
        let text = serde_json::to_string(event).unwrap();
        assert_eq!(&serde_json::from_str::<LoggedEvent>(&text).unwrap(), event);
    }
}

#[test]
fn the_stored_form_is_fixed() {
    let mut log = log_of(&["a"]);
    append(&mut log, Event::Truncated { from: 1, len: 1 });
    compact(&mut log, vec![splice(0..1, &[])]);
    let expected = [
        HEADER.trim_end(),
        r#"{"seq":0,"at":1000,"event":{"message_appended":{"role":"user","content":[{"type":"text","text":"a"}]}}}"#,
        r#"{"seq":1,"at":1001,"event":{"truncated":{"from":1,"len":1}}}"#,
        r#"{"seq":2,"at":1002,"event":{"compacted":{"id":0,"reason":{"type":"manual"},"strategy":"mine","#,
    ];
    let stored = String::from_utf8(bytes(&log)).unwrap();
    for (line, expected) in stored.lines().zip(expected) {
        assert!(line.starts_with(expected), "{line}");
    }
    assert_eq!(stored.lines().count(), 4);
}

#[test]
fn a_log_cut_anywhere_is_a_readable_prefix() {
    let log = every_kind();
    let whole = bytes(&log);
    for cut in 0..whole.len() {
        let part = &whole[..cut];
        if cut < HEADER.len() {
            let error = EventLog::read(part).unwrap_err();
            assert!(matches!(error, LogError::NoHeader { bytes } if bytes == cut as u64));
            continue;
        }
        let read = EventLog::read(part).unwrap();
        let end = part.iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
        assert_eq!(read.end, end as u64);
        assert_eq!(read.torn, (end < cut).then_some((cut - end) as u64));
        assert_eq!(read.log.events(), &log.events()[..read.log.len() as usize]);
        assert_eq!(bytes(&read.log), whole[..end], "cut off there, the store is whole again");
    }
}

#[test]
fn a_last_line_of_garbage_is_torn_and_one_in_the_middle_an_error() {
    let event = r#"{"seq":0,"at":5,"event":{"local_notice":{"text":"x"}}}"#;
    let garbage = ["", "\0\0\0", "{\"seq\":0,", "\u{fffd}", "{\"seq\":0,\"at\":5,\"event\":{]}"];
    for garbage in garbage {
        let torn = read(&format!("{HEADER}{event}\n{garbage}\n")).unwrap();
        assert_eq!(torn.log.len(), 1);
        assert_eq!(torn.torn.unwrap(), garbage.len() as u64 + 1);
        let broken = read(&format!("{HEADER}{garbage}\n{event}\n")).unwrap_err();
        assert!(matches!(broken, LogError::Broken { line: 2, .. }), "{broken}");
        let next = event.replace(":0", ":1");
        let broken = read(&format!("{HEADER}{event}\n{garbage}\n{next}\n")).unwrap_err();
        assert!(matches!(broken, LogError::Broken { line: 3, .. }), "{broken}");
    }
    let not_utf8 = [HEADER.as_bytes(), b"{\"seq\":\xff}\n", event.as_bytes(), b"\n"].concat();
    let error = EventLog::read(not_utf8.as_slice()).unwrap_err();
    assert!(matches!(error, LogError::Broken { line: 2, .. }), "{error}");
}

#[test]
fn lines_may_end_with_a_carriage_return() {
    let log = every_kind();
    let dos = String::from_utf8(bytes(&log)).unwrap().replace('\n', "\r\n");
    let read = read(&dos).unwrap();
    assert_eq!((read.log, read.end), (log, dos.len() as u64));
}

#[test]
fn json_that_is_not_an_event_is_an_error_at_every_position() {
    let notice = r#""event":{"local_notice":{"text":"x"}}"#;
    let negative = format!(r#"{{"seq":-1,"at":0,{notice}}}"#);
    let no_time = format!(r#"{{"seq":0,{notice}}}"#);
    for line in ["{}", "[]", "7", &negative, &no_time] {
        let error = read(&format!("{HEADER}{line}\n")).unwrap_err();
        assert!(matches!(error, LogError::NotAnEvent { line: 2, .. }), "{error}");
    }
}

#[test]
fn a_gap_or_a_repeat_is_an_error() {
    for (first, second, expected) in [(0, 2, 1), (0, 0, 1), (1, 2, 0)] {
        let line = |seq| {
            format!("{{\"seq\":{seq},\"at\":0,\"event\":{{\"rule_revoked\":{{\"id\":\"x\"}}}}}}\n")
        };
        let error = read(&format!("{HEADER}{}{}", line(first), line(second))).unwrap_err();
        let found = if expected == 0 { first } else { second };
        let wanted = format!("holds event {found} instead of event {expected}");
        assert!(error.to_string().ends_with(&wanted), "{error}");
    }
}

#[test]
fn another_version_and_other_files_are_refused() {
    let error = read("{\"log\":\"threadfold\",\"major\":2,\"thread\":[]}\n").unwrap_err();
    assert_eq!(error.to_string(), "the log has version 2; this build reads 1");
    let others = [
        "hello",
        "hello\n",
        "{}\n",
        "{\"log\":\"other\",\"major\":1,\"thread\":\"main\"}\n",
        "{\"log\":\"threadfold\",\"major\":1,\"thread\":\"../main\"}\n",
        "{\"log\":\"threadfold\",\"major\":1}\n",
    ];
    for other in others {
        let error = read(other).unwrap_err();
        assert!(matches!(error, LogError::NotALog), "{other}: {error}");
    }
    let newer = "{\"log\":\"threadfold\",\"major\":1,\"thread\":\"main\",\"minor\":4}\n";
    assert_eq!(read(newer).unwrap().log.thread_id().as_str(), "main");
}

#[test]
fn a_line_has_a_maximum_length() {
    let event = format!(r#"{{"local_notice":{{"text":"{}"}}}}"#, "x".repeat(100));
    let text = format!("{HEADER}{{\"seq\":0,\"at\":5,\"event\":{event}}}\n");
    let line = (text.len() - HEADER.len()) as u64;
    let with = |max_line_bytes| EventLog::read_within(text.as_bytes(), max_line_bytes);
    assert_eq!(with(line).unwrap().log.len(), 1);
    let error = with(line - 1).unwrap_err();
    assert_eq!(error.to_string(), format!("line 2 of the log has more than {} bytes", line - 1));
    // An endless line is not read to its end.
    let endless = std::io::BufReader::new(std::io::repeat(b'{'));
    let error = EventLog::read_within(endless, 1 << 16).unwrap_err();
    assert!(matches!(error, LogError::LineTooLong { line: 1, limit: 65_536 }));
}

#[test]
fn the_number_of_an_unreadable_record_is_not_reused() {
    let lines = [
        r#"{"seq":0,"at":5,"event":{"compacted":{"id":4,"plan":"lost"}}}"#,
        r#"{"seq":1,"at":5,"event":{"compaction_failed":{"id":6}}}"#,
    ];
    let log = read(&format!("{HEADER}{}\n", lines.join("\n"))).unwrap().log;
    assert_eq!(log.next_compaction(), CompactionId(7));
    let last = r#"{"seq":2,"at":5,"event":{"compaction_failed":{"id":18446744073709551615}}}"#;
    let log = read(&format!("{HEADER}{}\n{last}\n", lines.join("\n"))).unwrap().log;
    assert_eq!(log.next_compaction(), CompactionId(0));
}

#[test]
fn a_session_loads_what_another_writer_stored() {
    let mut mine = log_of(&["a"]);
    let mut theirs = mine.clone();
    say(&mut theirs, "b");
    let tail = theirs.since(mine.len()).to_vec();
    for event in &tail {
        mine.append_logged(event.clone()).unwrap();
    }
    assert_eq!(mine, theirs);
    assert_eq!(texts(&mine.replay()), ["a", "b"]);
    let again = mine.append_logged(tail[0].clone()).unwrap_err();
    assert_eq!(again.to_string(), "expected event 2, found event 1");
    assert_eq!(mine.since(9), []);
}

#[test]
fn unusual_json_at_any_position_round_trips() {
    let deep = format!("{}{}", "[".repeat(20_000), "]".repeat(20_000));
    let odd = ["null", "\"\\ud800\"", "1e999", "-0", "{\"a\":1,\"a\":2}", "{\"\":[\"\\u0000\"]}"];
    let pretty = "{\n  \"a\" : \"b\\n\u{2028}\" ,\r\n\t\"c\":[ ]\n}";
    for text in odd.into_iter().chain([pretty, deep.as_str()]) {
        let json = || Json::parse(text).unwrap();
        let mut log = log_of(&[]);
        let mut result = ToolResult::text("t1", "done");
        result.extra = Extra::new("x", [("y", json()), ("y", json())]);
        let blocks = vec![
            ToolUse::new("t1", "f", json()).into(),
            ToolUse::new("t2", "f", threadfold::message::ToolInput::from_text(text)).into(),
            threadfold::message::Opaque::new("x", json()).into(),
            threadfold::message::ServerToolUse::new("s1", "f", json()).into(),
            threadfold::message::ServerToolResult::new("s1", "f", json()).into(),
            result.into(),
        ];
        append(&mut log, Event::MessageAppended(Message::new(Role::Assistant, blocks)));
        append(&mut log, Event::Host { kind: text.into(), data: json() });
        let message = log.replay().remove(0);
        let splices = vec![Splice { at: 0..1, insert: vec![Insert::Message { message }] }];
        compact(&mut log, splices);
        let read = EventLog::read(bytes(&log).as_slice()).unwrap();
        assert_eq!((&read.log, read.torn), (&log, None));
        assert_eq!(bytes(&read.log), bytes(&log));
        assert_eq!(read.log.replay(), log.replay());
        for event in log.events() {
            let line = serde_json::to_string(event).unwrap();
            assert_eq!(&serde_json::from_str::<LoggedEvent>(&line).unwrap(), event);
        }
    }
    // A malformed record may have been read from several lines.
    let event = "{\n\"seq\": 0, \"at\": 0, \"event\": { \"compacted\" :\n[ 1 ] } }";
    let event: LoggedEvent = serde_json::from_str(event).unwrap();
    let mut log = log_of(&[]);
    log.append_logged(event).unwrap();
    assert_eq!(EventLog::read(bytes(&log).as_slice()).unwrap().log, log);
}

#[test]
fn the_smallest_and_largest_numbers_are_kept() {
    let most = u64::MAX;
    let lines = [
        format!(
            r#"{{"seq":0,"at":{most},"event":{{"message_appended":{{"role":"user","content":[]}}}}}}"#
        ),
        format!(
            r#"{{"seq":1,"at":0,"event":{{"compaction_failed":{{"id":{most},"reason":{{"type":"threshold"}},"strategy":"s","error":"x"}}}}}}"#
        ),
        format!(
            r#"{{"seq":2,"at":1,"event":{{"compacted":{{"id":0,"reason":{{"type":"threshold"}},"strategy":"s","plan":{{"version":1,"before":1,"splices":[]}},"usage":{{"input":{most},"output":{most}}},"batches":[{{"id":{{"compaction":{most},"index":4294967295}},"depth":4294967295,"start":{most},"end":{most},"messages":{most},"text":""}}]}}}}}}"#
        ),
        format!(r#"{{"seq":3,"at":1,"event":{{"truncated":{{"from":{most},"len":0}}}}}}"#),
        format!(r#"{{"seq":4,"at":1,"event":{{"truncated":{{"from":0,"len":{most}}}}}}}"#),
    ];
    let log = read(&format!("{HEADER}{}\n", lines.join("\n"))).unwrap().log;
    assert_eq!(EventLog::read(bytes(&log).as_slice()).unwrap().log, log);
    assert_eq!(log.replay(), []);
    assert_eq!(log.next_compaction(), CompactionId(1));
    assert_eq!(threadfold::log::total_usage(log.events()).total().context_tokens(), most);
    let last = format!(r#"{{"seq":{most},"at":1,"event":{{"rule_revoked":{{"id":"x"}}}}}}"#);
    let error = read(&format!("{HEADER}{}\n{last}\n", lines.join("\n"))).unwrap_err();
    assert!(matches!(error, LogError::Misplaced { expected: 5, found: u64::MAX, .. }), "{error}");
}
