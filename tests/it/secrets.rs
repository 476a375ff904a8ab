//! Threads with a secret in every field. No output of a compaction contains it.

use std::{
    borrow::Cow,
    fmt::Debug,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use futures::{StreamExt, executor::block_on, stream::BoxStream};
use serde_json::json;
use threadfold::{
    CompactionStrategy, ContentBlock, ContextWindow, EventLog, Message, Model, ModelAgent, Request,
    Role, Session, StrategyRegistry,
    drive::{self, Conversation, Models},
    log::Event,
    message::{
        Answer, Batch, BatchId, Checkpoint, CompactionReason, ContextUpdate, Delta, Document,
        Extra, Image, Json, MediaSource, ModelError, ModelErrorKind, Opaque, Origin,
        RedactedThinking, Redactor, ServerToolResult, ServerToolUse, StopReason, Summary, Text,
        TextBlock, Thinking, Timestamp, ToolInput, ToolResult, ToolSpec, ToolUse,
    },
    model::{self, Tool, ToolContext, ToolOutput},
    recall::Recall,
    retention::RetentionPolicy,
    session::SessionEvent,
    store::Journal,
    strategy::{Brief, Digest, KeepRecent, ModelCall, Rolling, Summarize},
    testing::ExtractiveModel,
};
use threadfold_testing::TestClock;

use crate::support::traces::{self, Traces};

const WORD: &str = "hunter2";
const NUMBER: &str = "4111111111111111";
const NAME: &str = "J\u{fc}rgen";

/// Removes a word, a number and a name.
#[derive(Debug)]
struct Secrets;

impl Redactor for Secrets {
    fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut left = Cow::Borrowed(text);
        for secret in [WORD, NUMBER, NAME] {
            if left.contains(secret) {
                left = left.replace(secret, "X").into();
            }
        }
        left
    }
}

/// Checks that an output does not hold a secret, in any escaped form.
fn check(way: &str, out: &impl Debug) {
    let text = format!("{out:?}");
    let bare = text.replace('\\', "");
    for secret in [WORD, NUMBER, NAME, "u00fcrgen", "4.111111111111111e15"] {
        let at = bare.find(secret);
        let near = at.map(|at| bare.get(at.saturating_sub(200)..(at + 60).min(bare.len())));
        assert!(at.is_none(), "{way} holds {secret}: {near:?}");
    }
}

fn extra() -> Extra {
    let field = Json::parse(r#"{"hunter2":["J\u00fcrgen",4111111111111111,4.111111111111111e15]}"#);
    Extra::new("openai-chat", [("x_hunter2", field.unwrap())])
}

/// Every kind of block, with a secret in every field of it; calls and results fit.
fn answer(round: usize) -> Vec<ContentBlock> {
    let input = r#"{"hunter2":"a hunter2","card":4111111111111111,"who":"J\u00fcrgen","in":"{\"who\":\"J\\u00fcrgen\"}"}"#;
    let id = |name: &str| format!("{name}-hunter2-{round}");
    let mut call = ToolUse::new(id("call"), "ask_hunter2", Json::parse(input).unwrap());
    call.extra = extra();
    let mut broken = ToolUse::new(id("broken"), "ask_other", json!({}));
    broken.input = ToolInput::Text(r#"{"who":"J\u00fcrgen","hunter2"#.into());
    let mut server = ServerToolUse::new(id("server"), "find_hunter2", Json::parse(input).unwrap());
    server.extra = extra();
    let mut found =
        ServerToolResult::new(id("server"), "hunter2_result", Json::parse(input).unwrap());
    found.extra = extra();
    let mut text = TextBlock::new("I told hunter2 to src/hunter2.rs. error: hunter2 is gone");
    text.extra = extra();
    let mut thought = Thinking::new("Hm, hunter2.", Some("sig".into()));
    thought.extra = extra();
    let mut sealed = RedactedThinking::new("c2ln");
    sealed.extra = extra();
    vec![
        thought.into(),
        sealed.into(),
        text.into(),
        Opaque::new("openai-chat", Json::parse(input).unwrap()).into(),
        server.into(),
        found.into(),
        call.into(),
        broken.into(),
    ]
}

fn said(round: usize) -> Vec<ContentBlock> {
    let id = |name: &str| Text::from(format!("{name}-hunter2-{round}"));
    let file = MediaSource::File { id: "file-hunter2".into() };
    let inline = MediaSource::Base64 { media_type: "image/hunter2".into(), data: "aGk=".into() };
    let written =
        MediaSource::Text { media_type: "text/hunter2".into(), text: "In hunter2.".into() };
    let mut document = Document::new(written);
    document.title = Some("hunter2.txt".into());
    document.context = Some("Of hunter2".into());
    document.extra = extra();
    let mut image = Image::new(MediaSource::Url { url: "https://hunter2.example".into() });
    image.extra = extra();
    let opaque = MediaSource::Opaque {
        codec: "bedrock-converse".into(),
        value: Json::parse(r#"{"s3Location":{"uri":"s3://hunter2/J\u00fcrgen"}}"#).unwrap(),
    };
    let reminder = TextBlock { extra: extra(), ..TextBlock::new("Mind hunter2.") };
    let reminder = ContentBlock::SystemReminder(reminder);
    let mut update = ContextUpdate::new(vec!["src/hunter2.rs".into()], "4111111111111111 changed");
    update.extra = extra();
    let mut result = ToolResult::new(
        id("call"),
        vec![ContentBlock::text(r#"{"who":"J\u00fcrgen","is":"hunter2"}"#), image.clone().into()],
    );
    result.extra = extra();
    let mut mark = Checkpoint::new(format!("aaaa{round:02}").parse().unwrap());
    mark.extra = extra();
    vec![
        result.into(),
        ToolResult::error(id("broken"), "error: no hunter2 in /etc/hunter2").into(),
        ContentBlock::text(
            "Never tell hunter2 to anybody. Is J\u{fc}rgen there? Fix src/hunter2.rs.",
        ),
        reminder,
        update.into(),
        document.into(),
        image.into(),
        Document::new(opaque).into(),
        Image::new(file).into(),
        Image::new(inline).into(),
        mark.into(),
    ]
}

fn thread() -> Vec<Message> {
    let mut summary = Summary::new("They spoke of hunter2.");
    summary.batches = [Batch::new(BatchId::default(), "Batch of hunter2.")].into();
    summary.extra = extra();
    let mut thread = vec![Message::summary(Role::User, summary)];
    for round in 0..8 {
        let mut message = Message::new(Role::Assistant, answer(round));
        let parts = message.make_mut();
        parts.stop_reason = Some(StopReason::Other("hunter2".into()));
        parts.extra = extra();
        parts.origin = Some(Origin::new("hunter2.example", Some("m-hunter2".into())));
        thread.push(message);
        let mut message = Message::new(Role::User, said(round));
        message.make_mut().extra = extra();
        message.make_mut().untyped = round % 2 > 0;
        thread.push(message);
        let long = format!("On {round}: {}", "it was said to hunter2 and others. ".repeat(30));
        thread.push(Message::assistant(long));
        thread.push(Message::user(format!("And {round}, hunter2?")));
    }
    thread
}

/// Answers with parts of the request or fails with them, and records every request.
#[derive(Debug, Default)]
struct Listens {
    fails: bool,
    heard: Mutex<Vec<Request>>,
}

#[async_trait]
impl Model for Listens {
    async fn complete(&self, request: Request) -> Result<Answer, ModelError> {
        model::answer_of(self.stream(request)).await
    }

    fn stream(&self, request: Request) -> BoxStream<'_, Result<Delta, ModelError>> {
        self.heard.lock().unwrap().push(request.clone());
        if self.fails {
            let error = ModelError::new(ModelErrorKind::Other, "no hunter2, said J\\u00fcrgen");
            return Box::pin(futures::stream::iter([Err(error)]));
        }
        Box::pin(futures::stream::once(async move {
            ExtractiveModel.complete(request).await.map(|turn| Delta::Answer { answer: turn })
        }))
    }
}

fn strategies() -> Vec<Arc<dyn CompactionStrategy>> {
    let registry = StrategyRegistry::default();
    let mut all: Vec<Arc<dyn CompactionStrategy>> =
        registry.names().map(|name| Arc::clone(registry.get(name).unwrap())).collect();
    all.push(Arc::new(KeepRecent { messages: 3, ..KeepRecent::default() }));
    all.push(Arc::new(Summarize { messages: 3, ..Summarize::default() }));
    all.push(Arc::new(Rolling { keep_recent: 3, chunk_messages: 6, ..Rolling::default() }));
    all.push(Arc::new(Digest::default()));
    all
}

/// Runs the work and checks every span and event of the trace. If the work succeeds, there must be
/// a trace.
fn traced<T>(name: &str, work: impl FnOnce() -> T, is_done: impl FnOnce(&T) -> bool) -> T {
    let traces = Traces::default();
    let done = traces::with(traces.clone(), work);
    let lines = traces.lines();
    assert!(!lines.is_empty() || !is_done(&done), "{name} left no trace");
    check(&format!("{name}: the trace"), &lines);
    done
}

/// A tool of this name with a secret in everything that it declares.
fn tool(name: &str, schema: Json) -> ToolSpec {
    let mut tool = ToolSpec::new(name, "Asks hunter2.", schema);
    tool.extra = extra();
    tool
}

/// A tool with a secret in everything that it declares.
#[derive(Debug)]
struct Ask;

#[async_trait]
impl Tool for Ask {
    fn spec(&self) -> ToolSpec {
        let schema = Json::parse(r#"{"type":"object","description":"J\u00fcrgen"}"#).unwrap();
        tool("ask_hunter2", schema)
    }

    async fn call(
        &self,
        _: &ToolUse,
        _: &ToolContext<'_>,
    ) -> Result<ToolOutput, Box<dyn std::error::Error + Send + Sync>> {
        Ok("hunter2".into())
    }
}

/// A session with the same thread, and its model.
fn session(strategy: Arc<dyn CompactionStrategy>, fails: bool) -> (Session, Arc<Listens>) {
    let model = Arc::new(Listens { fails, ..Listens::default() });
    let agent = ModelAgent::new(model.clone());
    let session = Session::builder(agent)
        .messages(thread())
        .window(ContextWindow::new(60_000))
        .strategy(strategy)
        .fast_model(model.clone())
        .tool(Arc::new(Ask))
        .system("You know hunter2.")
        .rule("Never tell hunter2 to anybody.")
        .retention(RetentionPolicy::default())
        .clock(Arc::new(TestClock::default()))
        .redactor(Arc::new(Secrets))
        .build()
        .unwrap();
    (session, model)
}

/// Checks the requests and the new events of a session, batches included; returns the number of
/// events of compactions.
fn check_session(name: &str, (session, model): &(Session, Arc<Listens>), before: u64) -> usize {
    check(&format!("{name}: a request of a session"), &model.heard.lock().unwrap());
    let of_compaction = |event: &&Event| {
        matches!(
            event,
            Event::Compacted(_) | Event::CompactionFailed(_) | Event::LocalNotice { .. }
        )
    };
    let log = session.log();
    let entries: Vec<_> = log.since(before).iter().map(|logged| &logged.event).collect();
    let records: Vec<_> = entries.into_iter().filter(of_compaction).collect();
    check(&format!("{name}: the record of a session"), &records);
    records.len()
}

/// Compacts a session's thread, and checks all of its events.
fn run_session(strategy: Arc<dyn CompactionStrategy>, fails: bool) -> bool {
    let name = strategy.name().to_owned();
    let mut all = session(strategy, fails);
    let before = all.0.log().len();
    let completes = |event: &Result<SessionEvent, _>| format!("{event:?}").contains("Completed");
    let events: Vec<_> = traced(
        &format!("{name} in a session"),
        || block_on(all.0.send("/compact Keep hunter2 in mind.").collect()),
        |events: &Vec<_>| events.iter().any(completes),
    );
    for event in &events {
        if let Ok(event @ SessionEvent::Compaction(_)) = event {
            check(&format!("{name}: an event"), event);
            check(&format!("{name}: a line of an event"), &serde_json::to_string(event).unwrap());
        } else {
            check(&format!("{name}: what a session says"), event);
        }
    }
    assert!(check_session(&name, &all, before) > 0, "{name} left no record");
    events.iter().any(completes)
}

/// Prepares a compaction in the background, and adopts it.
fn run_job(strategy: Arc<dyn CompactionStrategy>, fails: bool) -> bool {
    let name = format!("{} beside the conversation", strategy.name());
    let mut all = session(strategy, fails);
    let before = all.0.log().len();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let done = traced(
        &name,
        || {
            let observed = Arc::clone(&seen);
            let observe = move |call: &ModelCall, delta: Option<&Delta>| {
                observed.lock().unwrap().push(format!("{call:?} {delta:?}"));
            };
            let prepared = block_on(all.0.prepare_compaction_observed(observe));
            check(&format!("{name}: the report"), &prepared.report());
            match prepared.outcome() {
                Ok(proposal) => check(&format!("{name}: the outcome"), proposal),
                Err(error) => check(&format!("{name}: why not"), &(error.to_string(), error)),
            }
            block_on(all.0.adopt(prepared))
        },
        Result::is_ok,
    );
    check(&format!("{name}: what is observed"), &*seen.lock().unwrap());
    match &done {
        Ok(done) => check(&format!("{name}: what was done"), done),
        Err(error) => check(&format!("{name}: the error"), &(error.to_string(), error)),
    }
    check_session(&name, &all, before);
    done.is_ok()
}

/// Compacts the same thread as a host that runs the strategy itself, and checks the record.
fn conversation_in_parts(strategy: &dyn CompactionStrategy, brief: &Brief, model: &Listens) {
    let journal = Journal::new(EventLog::new("parts".parse().unwrap()));
    let mut journal = journal.with_redactor(Arc::new(Secrets));
    for message in thread() {
        journal.append(Timestamp(1), Event::MessageAppended(message)).unwrap();
    }
    let before = journal.log().len();
    let mut conversation = Conversation::new(&mut journal);
    let view = block_on(conversation.view(brief)).unwrap();
    let models = Models { redactor: Some(&Secrets), ..Models::one(model) };
    let proposed =
        block_on(drive::propose(strategy, &view.thread, &view.brief, models, &mut |_, _| {}));
    let _ = block_on(conversation.finish(strategy.name(), brief, proposed));
    let entries: Vec<_> = journal.log().since(before).iter().map(|logged| &logged.event).collect();
    check(&format!("{}: the record of a compaction in parts", strategy.name()), &entries);
}

/// Compacts the thread with a secret in every field, and checks every output.
fn run(strategy: &dyn CompactionStrategy, fails: bool) -> bool {
    let name = strategy.name();
    let journal = Journal::new(EventLog::new("main".parse().unwrap()));
    let mut journal = journal.with_redactor(Arc::new(Secrets));
    for message in thread() {
        journal.append(Timestamp(1), Event::MessageAppended(message)).unwrap();
    }
    let model = Listens { fails, ..Listens::default() };
    let schema = Json::parse(r#"{"description":"J\u00fcrgen"}"#).unwrap();
    let tools = ["ask_hunter2", "ask_other"].map(|name| tool(name, schema.clone()));
    let brief = Brief {
        reason: CompactionReason::Manual { instructions: Some("Keep hunter2 in mind.".into()) },
        next_prompt: Some(Message::user("Where is hunter2?")),
        target: Some(3_000),
        retention: Some(RetentionPolicy::default()),
        now: Timestamp(2),
        ..Brief::default()
    };
    let mut seen = Vec::new();
    let before = journal.log().len();
    let system = vec![Message::system("You know hunter2.")];
    let mut conversation = Conversation::new(&mut journal)
        .with_context(system.into(), tools.to_vec().into())
        .with_window(Some(ContextWindow::new(60_000)));
    let models = Models { conversation: Some(&model), ..Models::default() };
    let mut observe = |call: &ModelCall, delta: Option<&Delta>| {
        seen.push(format!("{call:?} {delta:?}"));
    };
    let done = traced(
        name,
        || block_on(drive::compact(&mut conversation, strategy, &brief, models, &mut observe)),
        Result::is_ok,
    );
    check(&format!("{name}: a request"), &model.heard.lock().unwrap());
    check(&format!("{name}: what is observed"), &seen);
    conversation_in_parts(strategy, &brief, &model);
    match &done {
        Ok(done) => check(&format!("{name}: the report"), done),
        Err(error) => {
            check(&format!("{name}: the error"), &(error.to_string(), error));
        }
    }
    let log = journal.log();
    let entries: Vec<_> = log.since(before).iter().map(|logged| &logged.event).collect();
    check(&format!("{name}: the record"), &entries);
    let recall = Recall::of(log).redacted_by(&Secrets);
    let queries = ["hunter2", "said", NUMBER].map(|query| json!({"query": query}));
    let others = [json!({}), json!({"to": "aaaa01"}), json!({"message": 0}), json!({"message": 2})];
    for input in queries.iter().chain(&others) {
        check(&format!("{name}: recall"), &recall.call(input));
    }
    done.is_ok()
}

#[test]
fn no_output_of_any_strategy_contains_a_secret() {
    let compacted = strategies().iter().filter(|strategy| run(strategy.as_ref(), false)).count();
    assert!(compacted >= 4, "{compacted} strategies compacted");
    for strategy in strategies() {
        run(strategy.as_ref(), true);
    }
}

#[test]
fn no_event_of_a_compaction_in_a_session_contains_a_secret() {
    let compacted = |strategy: &Arc<dyn CompactionStrategy>| run_session(strategy.clone(), false);
    let count = strategies().iter().filter(|strategy| compacted(strategy)).count();
    assert!(count >= 4, "{count} strategies compacted");
    for strategy in strategies() {
        run_session(strategy, true);
    }
}

#[test]
fn no_background_compaction_contains_a_secret() {
    let count = strategies().iter().filter(|strategy| run_job((*strategy).clone(), false)).count();
    assert!(count >= 4, "{count} strategies compacted");
    for strategy in strategies() {
        run_job(strategy, true);
    }
}

#[test]
fn redacted_calls_and_results_still_match() {
    let messages = thread();
    let journal = Journal::new(EventLog::new("main".parse().unwrap()));
    let mut journal = journal.with_redactor(Arc::new(Secrets));
    for message in &messages {
        journal.append(Timestamp(1), Event::MessageAppended(message.clone())).unwrap();
    }
    let conversation = Conversation::new(&mut journal);
    let snapshot = conversation.snapshot();
    let violations = threadfold::legality::violations(&messages);
    assert_eq!(threadfold::legality::violations(snapshot.messages()), violations);
    check("the snapshot", &snapshot.messages());
    let ids = |messages: &[Message]| {
        let mut ids: Vec<Text> = messages
            .iter()
            .flat_map(|message| message.tool_uses().map(|call| call.id.clone()))
            .collect();
        ids.sort();
        ids.dedup();
        ids.len()
    };
    assert_eq!(ids(snapshot.messages()), ids(&messages));
}

#[test]
fn two_ids_that_are_secrets_get_different_replacements() {
    let call = |id: &str| ContentBlock::from(ToolUse::new(id, "read", json!({})));
    let calls = vec![call(WORD), call(NAME), call("c")];
    let clean = Message::new(Role::Assistant, calls).redacted(&Secrets);
    let ids: Vec<&str> = clean.tool_uses().map(|call| call.id.as_str()).collect();
    assert_eq!(ids, ["X", "X-2", "c"]);
}

/// Knows a secret only by the name before it, in any rendering: `password: x`, `"password":"x"`.
#[derive(Debug)]
struct Pairs;

impl Redactor for Pairs {
    fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let (mut redacted, mut rest) = (String::new(), text);
        while let Some((before, after)) = rest.split_once("password") {
            redacted.push_str(before);
            redacted.push_str("password");
            rest = after;
            let value = after.trim_start_matches(['"', '\'', ' ']);
            let Some(value) = value.strip_prefix([':', '=']) else { continue };
            let value = value.trim_start_matches(['"', '\'', ' ']);
            let (between, _) = after.split_at(after.len() - value.len());
            let word = value.find(|c: char| !c.is_alphanumeric()).unwrap_or(value.len());
            if word > 0 {
                redacted.push_str(between);
                redacted.push('X');
                rest = &value[word..];
            }
        }
        redacted.push_str(rest);
        if redacted == text { text.into() } else { redacted.into() }
    }
}

/// Answers as the offline model does, with a password in each summary, and records the requests.
#[derive(Debug, Default)]
struct Blabs(Mutex<Vec<Request>>);

#[async_trait]
impl Model for Blabs {
    async fn complete(&self, request: Request) -> Result<Answer, ModelError> {
        self.0.lock().unwrap().push(request.clone());
        let mut turn = ExtractiveModel.complete(request).await?;
        for block in &mut turn.message.make_mut().content {
            if let ContentBlock::Text(block) = block
                && !block.text.starts_with(['{', '['])
            {
                block.text = format!("The password: hunter77. {}", block.text).into();
            }
        }
        Ok(turn)
    }

    fn stream(&self, request: Request) -> BoxStream<'_, Result<Delta, ModelError>> {
        Box::pin(futures::stream::once(async move {
            self.complete(request).await.map(|turn| Delta::Answer { answer: turn })
        }))
    }
}

/// Passwords that only a name beside them makes known, in a tool's input, in results and in texts.
fn passwords() -> Vec<Message> {
    let mut thread = Vec::new();
    for round in 0..12 {
        thread.push(Message::user(format!("Log in to src/site{round}.rs, password: hunter41.")));
        let id = format!("call_{round}");
        let input =
            json!({"user": "bob", "password": "hunter42", "path": format!("src/a{round}.rs")});
        let call = ToolUse::new(id.as_str(), "login", input);
        thread.push(Message::new(Role::Assistant, vec![call.into()]));
        let long = "The page says hello to everybody. ".repeat(40);
        let result =
            format!("{{\"user\":\"bob\",\"password\":\"hunter43\"}}\npassword = hunter44\n{long}");
        thread.push(Message::new(Role::User, vec![ToolResult::text(id.as_str(), result).into()]));
        thread.push(Message::assistant(format!("Done {round}. {}", "It went well. ".repeat(30))));
    }
    thread
}

#[test]
fn a_secret_that_only_its_name_makes_known_reaches_no_model_summary_or_record() {
    let hides = |way: &str, out: &dyn Debug| {
        let text = format!("{out:?}").replace('\\', "");
        let found = text.find("hunter");
        let near = found.map(|at| text.get(at.saturating_sub(120)..(at + 40).min(text.len())));
        assert!(found.is_none(), "{way}: {near:?}");
    };
    let mut compacted = 0;
    for strategy in strategies() {
        let name = strategy.name().to_owned();
        let model = Arc::new(Blabs::default());
        let agent = ModelAgent::new(model.clone());
        let mut session = Session::builder(agent)
            .messages(passwords())
            .window(ContextWindow::new(60_000))
            .strategy(strategy)
            .fast_model(model.clone())
            .retention(RetentionPolicy::default())
            .clock(Arc::new(TestClock::default()))
            .redactor(Arc::new(Pairs))
            .build()
            .unwrap();
        let before = session.log().len();
        let events: Vec<_> = block_on(session.send("/compact").collect());
        hides(&format!("{name}: a request"), &model.0.lock().unwrap());
        hides(&format!("{name}: an event"), &events);
        let log = session.log();
        hides(&format!("{name}: the log"), &log.since(before));
        let recall = Recall::of(log).redacted_by(&Pairs);
        hides(&format!("{name}: recall"), &recall.call(&json!({"query": "password"})));
        compacted += usize::from(format!("{events:?}").contains("Completed"));
    }
    assert!(compacted >= 4, "{compacted} strategies compacted");
}
