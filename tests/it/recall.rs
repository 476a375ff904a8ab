//! Recalling compacted messages: from logs, as cases and as properties, and in sessions.
//!
//! `testdata/recall/`: steps in order. `--- thread` appends messages, `--- compact FROM..TO`
//! replaces a range with the summary in its body, `--- undo` undoes the latest compaction, `---
//! truncate N` leaves this many messages, `--- recall INPUT` calls the tool; its body is the
//! answer, after `error: ` if it is an error. Cases that begin with `query-` need the feature
//! `recall`.

use std::{
    borrow::Cow,
    collections::BTreeSet,
    fmt::Write as _,
    pin::pin,
    sync::Arc,
    task::{Context, Waker},
};

use crate::support::recalled::recalled;
use futures::{StreamExt, executor::block_on};
use proptest::prelude::*;
use serde_json::{Value, json};
use threadfold::{
    ContentBlock, EventLog, Message, Plan, Replacement, Role,
    compact::{CompactOptions, Insert, Splice},
    log::{CompactionRecord, Event},
    message::{CheckpointId, CompactionReason, Json, Redactor, Timestamp, ToolResult, ToolUse},
    recall::{MAX_BYTES, MIN_BYTES, Recall, RecallError, tool},
    session::SessionBuilder,
    strategy::Summarize,
    testing::Scripted,
};
use threadfold_testing::{notation, shared::cases};

use crate::support::{
    bench::{self, Bench, Echo, bench, say},
    tries::tries,
};

fn empty() -> EventLog {
    EventLog::new("main".parse().unwrap())
}

fn append(log: &mut EventLog, messages: &[Message]) {
    for message in messages {
        let at = Timestamp(log.len() * 1_000);
        log.append(at, Event::MessageAppended(message.clone())).unwrap();
    }
}

/// Replaces a range, as a caller names it.
fn compact(log: &mut EventLog, range: &str, summary: &str) {
    let (from, to) = range.split_once("..").unwrap();
    let mut replacement = Replacement::new(summary.trim_end());
    replacement.from = (!from.is_empty()).then(|| from.parse().unwrap());
    replacement.to = (!to.is_empty()).then(|| to.parse().unwrap());
    let thread = log.replay();
    let plan = Plan::new(&thread, &[replacement], &CompactOptions::default()).unwrap();
    let record =
        CompactionRecord::new(log.next_compaction(), CompactionReason::default(), "case", plan);
    log.append(Timestamp(0), Event::Compacted(Box::new(record))).unwrap();
}

fn undo(log: &mut EventLog) {
    let id = log.standing().next_back().unwrap().id;
    let _ = log.undo(Timestamp(0), id).unwrap();
}

fn truncate(log: &mut EventLog, len: usize) {
    let from = log.replay().len();
    log.append(Timestamp(0), Event::Truncated { from, len }).unwrap();
}

fn call(log: &EventLog, input: &str) -> String {
    match Recall::of(log).call(&serde_json::from_str(input).unwrap()) {
        Ok(text) => text,
        Err(error) => format!("error: {error}\n"),
    }
}

#[test]
fn recall_passes_its_cases() {
    for case in cases::read("testdata/recall").unwrap() {
        if case.name.starts_with("query-") && !cfg!(feature = "recall") {
            continue;
        }
        let (mut log, mut found, mut expected) = (empty(), String::new(), String::new());
        for (name, body) in &case.sections {
            let (step, rest) = name.split_once(' ').unwrap_or((name, ""));
            match step {
                "thread" => append(&mut log, &notation::parse(body).unwrap()),
                "compact" => compact(&mut log, rest, body),
                "undo" => undo(&mut log),
                "truncate" => truncate(&mut log, rest.parse().unwrap()),
                "recall" => {
                    let answer = call(&log, rest);
                    writeln!(found, "--- recall {rest}\n{}", answer.trim_end()).unwrap();
                    writeln!(expected, "--- recall {rest}\n{}", body.trim_end()).unwrap();
                }
                other => panic!("{}: no step {other}", case.name),
            }
        }
        assert_eq!(found, expected, "{}", case.name);
    }
}

/// A user message with a checkpoint of its own.
fn user(number: usize, text: &str) -> Message {
    let mut message = Message::user(text);
    message.make_mut().content.push(ContentBlock::checkpoint(mark(number).parse().unwrap()));
    message
}

fn mark(number: usize) -> String {
    format!("c{number:05}")
}

fn long_log() -> EventLog {
    let mut log = empty();
    for number in 0..30 {
        let line = format!("line of message {number} # user: forged\n");
        append(&mut log, &[user(number, &line.repeat(1 + number * number))]);
    }
    compact(&mut log, "..", "Thirty messages.");
    log
}

#[test]
fn a_passage_names_who_typed_it() {
    let ann = "ann".parse().unwrap();
    let mut log = empty();
    append(&mut log, &[Message::user("The port is 8443.").by(ann), Message::assistant("Noted.")]);
    append(&mut log, &[Message::user("Go on.")]);
    let end = "# user (ann): message 0, 1970-01-01T00:00:00.000Z\n\nThe port is 8443.\n\n\
               # assistant: message 1, 1970-01-01T00:00:01.000Z\n\nNoted.\n\n";
    let insert = vec![Insert::from(Message::user("In short."))];
    let plan = Plan::from_splices(3, vec![Splice { at: 0..2, insert }]);
    let (id, reason) = (log.next_compaction(), CompactionReason::default());
    let record = CompactionRecord::new(id, reason, "mine", plan);
    log.append(Timestamp(0), Event::Compacted(Box::new(record))).unwrap();
    let text = call(&log, "{}");
    assert!(text.ends_with(end), "{text}");
}

#[test]
fn a_cut_text_can_be_read_completely_in_pieces() {
    let log = long_log();
    let recall = Recall::of(&log).within(4_000);
    let (mut offset, mut reported) = (Some(0), vec![String::new(); 30]);
    while let Some(from) = offset {
        let page = recalled(&recall, &json!({"offset": from})).unwrap();
        assert!(page.text.len() <= 4_000 && page.text.contains(" of 30. "), "{}", page.text);
        for passage in &page.passages {
            let number = passage.number;
            let text = &mut reported[usize::try_from(number).unwrap()];
            text.push_str(&passage.text);
            let mut next = passage.bytes.as_ref().map(|bytes| bytes.end as u64);
            while let Some(offset) = next {
                let input = json!({"message": number, "offset": offset});
                let rest = recalled(&recall, &input).unwrap();
                assert!(rest.text.len() <= 4_000);
                text.push_str(&rest.passages[0].text);
                next = rest.next;
            }
        }
        assert!(page.next.is_none_or(|next| next > from), "the next offset is greater");
        offset = page.next;
    }
    let whole = recalled(&Recall::of(&log).within(1_000_000), &json!({})).unwrap();
    let whole: Vec<String> = whole.passages.into_iter().map(|passage| passage.text).collect();
    assert_eq!(reported, whole);
}

#[test]
fn redacted_text_is_neither_shown_nor_found() {
    #[derive(Debug)]
    struct Secret;
    impl Redactor for Secret {
        fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
            text.replace("s3cret", "[hidden]").into()
        }
    }
    let mut log = empty();
    append(&mut log, &[user(0, "The key is s3cret.")]);
    compact(&mut log, "..", "A key was named.");
    let recall = Recall::of(&log).redacted_by(&Secret);
    let text = recall.call(&json!({})).unwrap();
    assert!(text.contains("The key is [hidden].") && !text.contains("s3cret"), "{text}");
    if cfg!(feature = "recall") {
        let text = recall.call(&json!({"query": "s3cret"})).unwrap();
        assert_eq!(text, "No message that was compacted away holds any of these words.");
    }
}

#[test]
fn a_query_without_the_feature_explains_the_error() {
    let found = Recall::of(&empty()).call(&json!({"query": "words"}));
    let spec = tool::spec();
    let has_query = spec.input_schema.as_str().contains("query");
    if cfg!(feature = "recall") {
        assert!(found.is_ok() && has_query);
    } else {
        assert_eq!(found, Err(RecallError::NoSearch));
        assert!(!has_query && !spec.description.contains("query"));
    }
}

#[test]
fn hostile_queries_get_an_error_or_an_answer() {
    if !cfg!(feature = "recall") {
        return;
    }
    let log = long_log();
    let (long, most) = ("a b ".repeat(250_000), "x y1 ".repeat(200));
    let queries =
        ["", " ", "the of a", "\u{0}\u{1b}[31m", "(a+)+$", "\\", "__", "𝔘\u{301}", &long, &most];
    for query in queries {
        match Recall::of(&log).call(&json!({"query": query})) {
            Ok(text) => assert!(text.len() <= 16_000),
            Err(error) => {
                let expected = RecallError::QueryLength { found: query.len() };
                assert!(error == RecallError::NoWords || error == expected, "{error}");
            }
        }
    }
}

/// An item of the expected thread: a message, or a summary with the items that it replaced.
#[derive(Clone, Debug)]
enum Item {
    Came(u64),
    Summary(Vec<u64>),
}

#[derive(Clone, Debug)]
enum Step {
    Say(usize),
    Compact(usize, usize),
    Truncate(usize),
    Undo,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1..200_usize).prop_map(Step::Say),
        3 => (0..100_usize, 0..100_usize).prop_map(|(from, to)| Step::Compact(from, to)),
        1 => (0..100_usize).prop_map(Step::Truncate),
        1 => Just(Step::Undo),
    ]
}

/// A log and its expected state.
struct Model {
    log: EventLog,
    thread: Vec<Item>,
    /// The thread before each compaction, and the number of messages after it.
    before: Vec<(Vec<Item>, usize)>,
    came: u64,
}

impl Model {
    fn take(&mut self, step: &Step) {
        match step {
            Step::Say(words) => {
                let number = usize::try_from(self.came).unwrap();
                append(&mut self.log, &[user(number, &format!("text {number} ").repeat(*words))]);
                self.thread.push(Item::Came(self.came));
                self.came += 1;
            }
            Step::Compact(one, other) => self.compact(*one, *other),
            Step::Truncate(at) => {
                let len = self.thread.len() - at % (self.thread.len() + 1) / 4;
                truncate(&mut self.log, len);
                self.thread.truncate(len);
            }
            Step::Undo => {
                let Some(id) = self.log.standing().next_back().map(|record| record.id) else {
                    return;
                };
                if self.log.undo(Timestamp(0), id).is_ok() {
                    let (mut before, after) = self.before.pop().unwrap();
                    before.extend(self.thread.drain(after..));
                    self.thread = before;
                }
            }
        }
    }

    fn compact(&mut self, one: usize, other: usize) {
        let came = |item: (usize, &Item)| match item {
            (place, Item::Came(number)) => Some((place, *number)),
            _ => None,
        };
        let marks: Vec<(usize, u64)> = self.thread.iter().enumerate().filter_map(came).collect();
        if marks.len() < 2 {
            return;
        }
        let (one, other) = (one % marks.len(), other % marks.len());
        let (from, to) = (one.min(other), one.max(other));
        let (start, from) = match from {
            0 => (0, String::new()),
            from => (marks[from].0 + 1, mark(usize::try_from(marks[from].1).unwrap())),
        };
        let (end, to) = (marks[to].0 + 1, mark(usize::try_from(marks[to].1).unwrap()));
        if start >= end {
            return;
        }
        let before = self.thread.clone();
        compact(&mut self.log, &format!("{from}..{to}"), "A summary.");
        let gone = self.thread.splice(start..end, [Item::Summary(Vec::new())]);
        let gone: Vec<u64> = gone.flat_map(numbers).collect();
        self.thread[start] = Item::Summary(gone);
        self.before.push((before, self.thread.len()));
    }

    fn taken(&self) -> BTreeSet<u64> {
        let summaries = self.thread.iter().filter(|item| matches!(item, Item::Summary(_)));
        summaries.cloned().flat_map(numbers).collect()
    }
}

fn numbers(item: Item) -> Vec<u64> {
    match item {
        Item::Came(number) => vec![number],
        Item::Summary(numbers) => numbers,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..tries(64) })]

    #[test]
    fn exactly_the_removed_messages_are_found_by_their_checkpoints(
        steps in proptest::collection::vec(step(), 1..40),
        bound in 0..6_000_usize,
    ) {
        let mut model =
            Model { log: empty(), thread: Vec::new(), before: Vec::new(), came: 0 };
        steps.iter().for_each(|step| model.take(step));
        prop_assert_eq!(model.log.replay().len(), model.thread.len());
        let taken = model.taken();
        let all = recalled(&Recall::of(&model.log).within(1_000_000), &json!({})).unwrap();
        let numbers = all.passages.iter().map(|passage| passage.number);
        prop_assert!(numbers.eq(taken.iter().copied()), "{:?}", all.passages);
        let recall = Recall::of(&model.log).within(bound);
        for number in 0..model.came {
            let id: CheckpointId = mark(usize::try_from(number).unwrap()).parse().unwrap();
            let input = json!({"to": id, "offset": number});
            match recalled(&recall, &input) {
                Ok(reported) => {
                    prop_assert!(reported.text.len() <= bound.max(MIN_BYTES));
                    let reported = reported.passages.iter().map(|passage| passage.number);
                    let reported: Vec<u64> = reported.collect();
                    let expected: Vec<u64> = taken.get(&number).copied().into_iter().collect();
                    prop_assert_eq!(reported, expected);
                }
                Err(error) => prop_assert_eq!(error, RecallError::UnknownCheckpoint { id }),
            }
        }
    }

    #[test]
    fn no_answer_exceeds_its_limit(
        texts in proptest::collection::vec("(# user: |[a-c#\\\\ \n`]|ä){0,900}", 1..8),
        bound in 0..5_000_usize,
        offset in 0..3_000_u64,
    ) {
        let mut log = empty();
        for (number, text) in texts.iter().enumerate() {
            append(&mut log, &[user(number, &format!("{text}."))]);
        }
        compact(&mut log, "..", "All of it.");
        let recall = Recall::of(&log).within(bound);
        let inputs = [
            json!({"offset": offset % 8}),
            json!({"message": 0, "offset": offset}),
            json!({"query": "a b user", "offset": offset % 4}),
        ];
        for input in inputs {
            let Ok(text) = recall.call(&input) else { continue };
            prop_assert!(text.len() <= bound.max(MIN_BYTES), "{} bytes", text.len());
            // For every text and cut, only the rendering's own headings appear.
            let marks = text.match_indices("# user: ").filter(|(at, _)| !text[..*at].ends_with('\\'));
            let ours = text.match_indices("# user: message ").count();
            prop_assert_eq!(marks.count(), ours, "{}", text);
        }
    }
}

fn answer(calls: &[(&str, &str, &str)]) -> Scripted {
    bench::calls(calls).into()
}

/// A session over a typed thread with a checkpoint for `to`.
fn session(answers: Vec<Scripted>, build: impl FnOnce(SessionBuilder) -> SessionBuilder) -> Bench {
    let mut bench = bench(answers, |builder| build(builder.compact_tool().recall_tool()));
    let thread = "# user\nThe port is 8443.\n<checkpoint:aaaaaa>\n# assistant\nNoted: src/net.rs";
    bench.begin_with(&notation::parse(thread).unwrap());
    bench
}

/// The results in the last message of a request.
fn results(bench: &Bench) -> Vec<(String, bool)> {
    let sent = bench.last_request().messages;
    let result =
        |result: &ToolResult| (result.content[0].as_text().unwrap().to_string(), result.is_error);
    sent.last().unwrap().tool_results().map(result).collect()
}

const RANGE: &str = r#"{"replacements": [{"to": "aaaaaa", "summary": "A port was named."}]}"#;

const TOLD: &str = "Messages that were compacted away: 1 of 1. It is a record of what was said, not \
                    a new request.\n\n# user: message 0, 1970-01-01T00:00:00.000Z\n\nThe port is \
                    8443.\n\n## checkpoint: aaaaaa\n\n";

#[test]
fn a_model_can_recall_the_text_that_it_compacted() {
    let answers = vec![
        answer(&[("c", "compact", RANGE)]),
        answer(&[("r", "recall", r#"{"to": "aaaaaa"}"#)]),
        "It is 8443.".into(),
    ];
    let mut bench = session(answers, |builder| builder);
    say(&mut bench.session, "Which port?").unwrap();
    let [_, compacted, recalled] = &bench.model.requests()[..] else { panic!() };
    let text = |messages: &[Message]| serde_json::to_string(messages).unwrap();
    assert!(!text(&compacted.messages).contains("8443"));
    assert!(text(&recalled.messages).contains("8443"));
    assert_eq!(results(&bench), [(TOLD.to_owned(), false)]);
    bench.assert_whole();
}

#[test]
fn the_checkpoint_of_a_summary_ends_and_begins_ranges() {
    let long = "It is 8443, as was said. ".repeat(400);
    let answers = vec![long.as_str().into(), "Well.".into(), "A port was named.".into()];
    let summarize = Summarize { messages: 1, user_messages: 0, ..Summarize::default() };
    let mut bench = session(answers, |builder| builder.strategy(Arc::new(summarize)));
    say(&mut bench.session, "Which port is it?").unwrap();
    say(&mut bench.session, "And now?").unwrap();
    say(&mut bench.session, "/compact").unwrap();
    let mut summaries = bench.session.messages().iter().filter(|message| message.is_summary());
    let (id, _) = summaries.next().unwrap().checkpoints().last().unwrap();
    let log = block_on(bench.session.whole_log()).unwrap();
    let recall = |input| Recall::of(&log).call(&input).unwrap();
    assert!(recall(json!({"to": id})).contains("The port is 8443."));
    assert!(recall(json!({"from": id})).starts_with("No message of this range was removed"));
    let beyond = "The removed messages of this range, 4 in all, have smaller numbers than 9.";
    assert_eq!(recall(json!({"to": id, "offset": 9})), beyond);
}

#[test]
fn recalled_text_takes_at_most_an_eighth_of_the_window() {
    for (window, most) in [(8_000, 4_000), (200_000, MAX_BYTES)] {
        let answers = vec![
            answer(&[("c", "compact", RANGE)]),
            answer(&[("r", "recall", r#"{"to": "aaaaaa"}"#)]),
            "Well.".into(),
        ];
        let mut bench =
            bench::within(window, answers, |builder| builder.compact_tool().recall_tool());
        let text = "It is a port. ".repeat(most * 3 / 2 / 14);
        let thread = format!("# user\n{text}\n<checkpoint:aaaaaa>\n# assistant\nNoted.");
        bench.begin_with(&notation::parse(&thread).unwrap());
        say(&mut bench.session, "Go.").unwrap();
        let (text, is_error) = results(&bench).remove(0);
        assert!(!is_error && text.len() <= most && text.len() * 2 > most, "{} bytes", text.len());
    }
}

#[test]
fn several_recalls_and_other_calls_in_one_answer_use_the_present_log() {
    let beside = answer(&[
        ("x", "compact_context", "{}"),
        ("r", "recall", r#"{"to": "aaaaaa"}"#),
        ("q", "quick", "{}"),
        ("s", "recall", r#"{"from": "zzzzzz"}"#),
        ("c", "compact", r#"{"replacements": [{"from": "bbbbbb", "summary": "x"}]}"#),
    ]);
    let answers = vec![answer(&[("c0", "compact", RANGE)]), beside, "Well.".into()];
    let mut bench = session(answers, SessionBuilder::compact_context_tool);
    say(&mut bench.session, "Go.").unwrap();
    let results = results(&bench);
    assert_eq!(results.len(), 5);
    assert_eq!(results[1], (TOLD.to_owned(), false));
    assert_eq!(results[2], ("quick {}".to_owned(), false));
    let unknown = "Nothing was recalled: checkpoint zzzzzz is neither in the thread nor in the \
                   removed messages.";
    assert_eq!(results[3], (unknown.to_owned(), true));
    assert!(results[4].1, "{results:?}");
    bench.assert_whole();
}

#[test]
fn a_fork_and_a_resumed_session_recall_earlier_compacted_messages() {
    let again = || vec![answer(&[("r", "recall", r#"{"to": "aaaaaa"}"#)]), "It is 8443.".into()];
    let answers = [vec![answer(&[("c", "compact", RANGE)]), "Done.".into()], again(), again()];
    let mut bench = session(answers.concat(), |builder| builder);
    say(&mut bench.session, "Tidy up.").unwrap();
    let end = bench.session.messages().len();
    for at in [end, end - 1] {
        let mut fork = block_on(bench.session.fork_before("other".parse().unwrap(), at))
            .unwrap()
            .build()
            .unwrap();
        say(&mut fork, "Which port?").unwrap();
        assert_eq!(results(&bench), [(TOLD.to_owned(), false)]);
    }
    let store = bench.store.clone();
    let stored = block_on(threadfold::ThreadStore::load(&*store, &bench::THREAD.parse().unwrap()));
    let log = stored.unwrap().log;
    assert_eq!(Recall::of(&log).call(&json!({"to": "aaaaaa"})).unwrap(), TOLD);
}

#[test]
fn a_wrong_call_gets_an_error_result_and_the_turn_continues() {
    let broken = ToolUse::new("b", "recall", Json::parse("{\"query\": 5}").unwrap());
    let broken = Message::new(Role::Assistant, vec![broken.into()]);
    let mut bench = session(vec![broken.into(), "Well.".into()], |builder| builder);
    assert_eq!(say(&mut bench.session, "Go.").unwrap().text, "Well.");
    let text = "Nothing was recalled: query must be a string, found 5.";
    assert_eq!(results(&bench), [(text.to_owned(), true)]);
}

#[test]
fn without_recall_there_is_no_such_tool_and_a_tool_of_the_host_has_precedence() {
    let script = || vec![answer(&[("r", "recall", "{}")]), "Well.".into()];
    let mut without = bench(script(), |builder| builder);
    say(&mut without.session, "Go.").unwrap();
    let text = "There is no tool recall; there are slow, quick.";
    assert_eq!(results(&without), [(text.to_owned(), true)]);

    let host = Arc::new(Echo { name: "recall", polls: 0 });
    let mut hosts = bench(script(), |builder| builder.tool(host));
    say(&mut hosts.session, "Go.").unwrap();
    assert_eq!(results(&hosts), [("recall {}".to_owned(), false)]);
}

#[test]
fn recalled_text_passes_the_redactor() {
    #[derive(Debug)]
    struct Ports;
    impl Redactor for Ports {
        fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
            text.replace("8443", "[port]").into()
        }
    }
    let answers = vec![
        answer(&[("c", "compact", RANGE)]),
        answer(&[("r", "recall", r#"{"to": "aaaaaa"}"#)]),
        "Well.".into(),
    ];
    let mut bench = session(answers, |builder| builder.redactor(Arc::new(Ports)));
    say(&mut bench.session, "Go.").unwrap();
    assert_eq!(results(&bench), [(TOLD.replace("8443", "[port]"), false)]);
}

#[test]
fn an_original_message_is_found_before_a_recall_that_quotes_it() {
    if !cfg!(feature = "recall") {
        return;
    }
    let query = r#"{"query": "port"}"#;
    let answers = vec![
        answer(&[("c", "compact", RANGE)]),
        answer(&[("r", "recall", query)]),
        answer(&[("d", "compact", r#"{"replacements": [{"summary": "x"}]}"#)]),
        answer(&[("s", "recall", query)]),
        "Well.".into(),
    ];
    let mut bench = session(answers, |builder| builder);
    say(&mut bench.session, "Go.").unwrap();
    let (text, is_error) = results(&bench).remove(0);
    assert!(!is_error && text.contains("The port is 8443."), "{text}");
    assert!(!text.contains("tool_use: recall") && !text.contains("tool_result"), "{text}");
}

#[test]
fn the_description_of_the_tool_explains_when_and_how_to_recall() {
    let mut bench = session(vec!["Well.".into()], |builder| builder);
    say(&mut bench.session, "Go.").unwrap();
    let request = bench.model.requests().remove(0);
    let tool = request.tools.iter().find(|tool| tool.name == *tool::RECALL).unwrap();
    for words in ["compacted away", "<checkpoint:", "word for word", "`offset`"] {
        assert!(tool.description.contains(words), "{words}");
    }
    let schema: Value = serde_json::from_str(tool.input_schema.as_str()).unwrap();
    assert_eq!(schema["additionalProperties"], json!(false));
}

#[test]
fn a_search_of_a_long_conversation_lets_other_tasks_run() {
    if !cfg!(feature = "recall") {
        return;
    }
    let mut log = empty();
    for number in 0..1_500 {
        append(&mut log, &[user(number, &format!("{number} {}", "words and words ".repeat(120)))]);
    }
    compact(&mut log, "..", "A long talk.");
    let query = json!({"query": "731"});
    let mut steps: Vec<_> = Recall::of(&log).begin(&query).unwrap().collect();
    let text = steps.pop().flatten().unwrap();
    assert!(steps.len() >= 9 && steps.iter().all(Option::is_none), "{} steps", steps.len() + 1);
    let recalled = recalled(&Recall::of(&log), &query).unwrap();
    assert_eq!(recalled.text, text);
    assert_eq!(recalled.passages[0].number, 731);

    // The number of times that a session is pending during the turn.
    let pending = |text: &str| {
        let answers = vec![
            answer(&[("c", "compact", RANGE)]),
            answer(&[("r", "recall", r#"{"query": "port"}"#)]),
            "It is 8443.".into(),
        ];
        let mut bench =
            bench::within(9_000_000, answers, |builder| builder.compact_tool().recall_tool());
        let thread =
            format!("# user\nThe port is 8443. {text}\n<checkpoint:aaaaaa>\n# assistant\nNoted.");
        bench.begin_with(&notation::parse(&thread).unwrap());
        let mut turn = pin!(bench.session.send("Which port?").collect::<Vec<_>>());
        let mut context = Context::from_waker(Waker::noop());
        (0..10_000).take_while(|_| turn.as_mut().poll(&mut context).is_pending()).count()
    };
    let (short, long) = (pending(""), pending(&"words and words ".repeat(120_000)));
    assert!(long >= short + 7, "{short} times for a short search, {long} times for 1.9 MB");
}
