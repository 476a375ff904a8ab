//! Nested results and JSON trees of any depth: accepted ones are stored and read again, deeper ones
//! are refused, and nothing overflows the stack.

use std::sync::Arc;

use futures::executor::block_on;
use serde_json::{Value, json};
use threadfold::{
    Answer, ContentBlock, Message, ModelAgent, Plan, Request, Role, Session, async_trait,
    compact::{Insert, Splice},
    log::{CompactionRecord, Event, EventLog, LogError, write_event, write_header},
    message::{
        CompactionId, CompactionReason, Json, MAX_NESTING, Opaque, ServerToolResult, StopReason,
        Timestamp, ToolResult, ToolSpec, ToolUse, check_nesting,
    },
    model::{Tool, ToolContext, ToolOutput},
    testing::ScriptedModel,
    wire::{DecodeOptions, Dialect},
};

/// This many nested results, made by their constructor.
fn constructed(depth: usize) -> ContentBlock {
    let text = ContentBlock::text("done");
    (0..depth).fold(text, |block, _| ToolResult::new("c", vec![block]).into())
}

/// This many nested results, made by changing fields.
fn assembled(depth: usize) -> ContentBlock {
    (0..depth).fold(ContentBlock::text("done"), |block, _| {
        let mut result = ToolResult::new("c", Vec::new());
        result.content.push(block);
        result.into()
    })
}

/// The stored form of this many nested results.
fn stored(depth: usize) -> String {
    let begin = r#"{"type":"tool_result","tool_use_id":"c","content":["#.repeat(depth);
    format!(r#"{begin}{{"type":"text","text":"done"}}{}"#, "]}".repeat(depth))
}

fn log() -> EventLog {
    EventLog::new("t".parse().unwrap())
}

fn append(log: &mut EventLog, message: Message) -> Result<(), LogError> {
    log.append(Timestamp(1), Event::MessageAppended(message)).map(drop)
}

/// Checks that a log is read as it was written, with its thread.
fn assert_read_again(log: &EventLog) {
    let mut bytes = Vec::new();
    write_header(&mut bytes, log.thread_id()).unwrap();
    log.events().iter().for_each(|event| write_event(&mut bytes, event).unwrap());
    let read = EventLog::read(bytes.as_slice()).unwrap().log;
    assert_eq!(read, *log);
    assert_eq!(read.replay(), log.replay());
}

#[test]
fn no_constructor_exceeds_the_maximum_depth() {
    for depth in [1, MAX_NESTING, MAX_NESTING + 1, 62, 200, 20_000] {
        let block = constructed(depth);
        assert_eq!(check_nesting(std::slice::from_ref(&block)), Ok(()));
        let mut log = log();
        append(&mut log, Message::new(Role::User, vec![block.clone()])).unwrap();
        assert_read_again(&log);
        let refused = block != assembled(depth.min(MAX_NESTING));
        assert_eq!(refused, depth > MAX_NESTING, "{depth}");
    }
}

#[test]
fn a_result_that_a_host_nested_too_deep_is_not_logged() {
    for depth in [MAX_NESTING + 1, 62, 200] {
        let message = Message::new(Role::User, vec![assembled(depth)]);
        let mut log = log();
        let refused = append(&mut log, message.clone());
        assert!(matches!(refused, Err(LogError::Nesting(_))), "{refused:?}");
        let splice = Splice { at: 0..0, insert: vec![Insert::Message { message }] };
        let (id, reason) = (CompactionId(0), CompactionReason::default());
        let record = CompactionRecord::new(id, reason, "s", Plan::from_splices(0, vec![splice]));
        let refused = log.append(Timestamp(1), Event::Compacted(Box::new(record))).map(drop);
        assert!(matches!(refused, Err(LogError::Nesting(_))), "{refused:?}");
        assert!(log.is_empty());
    }
}

#[test]
fn results_within_the_limit_are_read_in_every_stored_form() {
    let message = Message::new(Role::User, vec![assembled(MAX_NESTING)]);
    let request = Request::new(vec![message.clone()]);
    let text = serde_json::to_string(&request).unwrap();
    assert_eq!(serde_json::from_str::<Request>(&text).unwrap(), request);
    let turn = Answer::new(message.clone(), StopReason::EndTurn, None);
    let text = serde_json::to_string(&[[[&turn]]]).unwrap();
    assert_eq!(serde_json::from_str::<[[[Answer; 1]; 1]; 1]>(&text).unwrap(), [[[turn]]]);
    let mut log = log();
    append(&mut log, message.clone()).unwrap();
    let splice = Splice { at: 0..1, insert: vec![Insert::Message { message }] };
    let (id, reason) = (CompactionId(0), CompactionReason::default());
    let record = CompactionRecord::new(id, reason, "s", Plan::from_splices(1, vec![splice]));
    log.append(Timestamp(1), Event::Compacted(Box::new(record))).unwrap();
    assert_read_again(&log);
}

#[test]
fn a_reader_refuses_results_that_are_too_deep() {
    let read = |depth| serde_json::from_str::<ContentBlock>(&stored(depth));
    assert_eq!(read(MAX_NESTING).unwrap(), assembled(MAX_NESTING));
    for depth in [MAX_NESTING + 1, 50] {
        let error = read(depth).unwrap_err().to_string();
        assert!(error.contains("expected results nested at most 32 deep"), "{error}");
    }
    assert!(read(20_000).is_err());
}

#[test]
fn a_body_with_results_in_results_is_refused_or_can_be_logged() {
    let nested = |depth| {
        (0..depth).fold(
            json!([{"type": "text", "text": "done"}]),
            |content, _| json!([{"type": "tool_result", "tool_use_id": "c", "content": content}]),
        )
    };
    let toolresult = |depth| {
        (0..depth).fold(
            json!([{"text": "done"}]),
            |content, _| json!([{"toolResult": {"toolUseId": "c", "content": content}}]),
        )
    };
    for depth in [2, MAX_NESTING, MAX_NESTING + 1, 50, 62, 200] {
        let anthropic = json!({"messages": [{"role": "user", "content": nested(depth)}]});
        let converse = json!({"messages": [{"role": "user", "content": toolresult(depth)}]});
        let rows: [(Dialect, &Value); 5] = [
            (Dialect::Anthropic, &anthropic),
            (Dialect::BedrockConverse, &converse),
            (Dialect::OpenAiChat, &anthropic),
            (Dialect::OpenAiResponses, &anthropic),
            (Dialect::Gemini, &anthropic),
        ];
        for (codec, body) in rows {
            let decoded = codec.decode(body, &DecodeOptions::default());
            for message in decoded.iter().flat_map(|request| request.messages.iter()) {
                let mut log = log();
                append(&mut log, message.clone()).unwrap();
                assert_read_again(&log);
            }
        }
    }
}

#[test]
fn json_of_any_depth_is_stored_and_read_again() {
    let depth = 20_000;
    let text = format!("{{\"a\":{}1{}}}", "[".repeat(depth), "]".repeat(depth));
    let deep = || Json::parse(&text).unwrap();
    let blocks = vec![
        ToolUse::new("c", "f", deep()).into(),
        ServerToolResult::new("s", "r", deep()).into(),
        Opaque::new("x", deep()).into(),
    ];
    let mut log = log();
    append(&mut log, Message::new(Role::Assistant, blocks)).unwrap();
    assert_read_again(&log);
}

#[test]
fn a_tree_of_any_depth_is_written_and_dropped() {
    let depth = 100_000;
    let object = |inner| Value::Object([("a".to_owned(), inner)].into_iter().collect());
    let tree = (0..depth).fold(json!(1), |inner, _| Value::Array(vec![object(inner)]));
    let json = Json::from(tree);
    let expected = format!("{}1{}", "[{\"a\":".repeat(depth), "}]".repeat(depth));
    assert!(json.as_str() == expected);
}

#[test]
fn trees_are_written_as_serde_json_writes_them() {
    let trees = [
        json!(null),
        json!([]),
        json!({}),
        json!([[], {}, [[]], "[", "{", 1.5, -0.0, 1e300, u64::MAX, true, null]),
        json!({"b": [], "a": {"c\"\n": "\u{1}\u{e4}"}, "": [1, [2, {"x": []}], 3]}),
    ];
    for tree in trees {
        assert_eq!(Json::from(&tree).as_str(), serde_json::to_string(&tree).unwrap());
    }
}

/// Answers with nested results.
#[derive(Debug)]
struct Nesting(usize);

#[async_trait]
impl Tool for Nesting {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new("nest", "Nests.", json!({"type": "object"}))
    }

    async fn call(
        &self,
        _: &ToolUse,
        _: &ToolContext<'_>,
    ) -> Result<ToolOutput, Box<dyn std::error::Error + Send + Sync>> {
        let mut output = ToolOutput::from("");
        output.content = vec![assembled(self.0)];
        Ok(output)
    }
}

#[test]
fn a_session_refuses_a_result_that_is_too_deep_and_continues() {
    for depth in [3, MAX_NESTING, 62, 200] {
        let call = Message::new(Role::Assistant, vec![ToolUse::new("c", "nest", json!({})).into()]);
        let call = Answer::new(call, StopReason::ToolUse, None);
        let answer = || Answer::new(Message::assistant("Good."), StopReason::EndTurn, None);
        let model = ScriptedModel::new([call, answer()]);
        let mut session = Session::builder(ModelAgent::new(Arc::new(model.clone())))
            .tool(Arc::new(Nesting(depth)))
            .build()
            .unwrap();
        block_on(async { session.send("Go.").await }).unwrap();
        let results = session.messages().iter().flat_map(|message| message.tool_results());
        let errors: Vec<bool> = results.map(|result| result.is_error).collect();
        assert_eq!(errors, [depth >= MAX_NESTING]);
        assert_read_again(session.log());
    }
}
