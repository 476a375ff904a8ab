//! Compaction by the provider: in both dialects, across a change of provider, and for a gateway
//! that compacts instead of the provider.

use std::sync::{Arc, Mutex};

use futures::executor::block_on;
use serde_json::{Value, json};
use threadfold::{
    Answer, ContentBlock, Message, Model, ModelAgent, Request, Session, Usage, async_trait,
    legality,
    message::{ModelError, StopReason, Text},
    recall::Recall,
    strategy::{Brief, CompactionStrategy, Digest, KeepRecent, Ladder, Native, View},
    testing::asked,
    wire::{
        CompactionAsked, CompactionTime, DecodeOptions, Dialect, EncodeOptions, openai_responses,
    },
};

use crate::support::{
    bench::{Echo, say},
    wire_cases,
};

/// A provider that enforces the rules of its dialect: it refuses a compaction of another provider,
/// a changed one, and one in the wrong position.
#[derive(Clone, Debug)]
struct Provider {
    codec: Dialect,
    bodies: Arc<Mutex<Vec<String>>>,
    /// Every third answer calls a tool, and every fifth begins with a compaction.
    is_busy: bool,
}

impl Provider {
    fn new(codec: Dialect) -> Self {
        Self { codec, bodies: Arc::default(), is_busy: false }
    }

    fn agent(&self) -> ModelAgent {
        ModelAgent::new(Arc::new(self.clone()))
    }

    fn name(&self) -> &'static str {
        self.codec.name()
    }

    /// Sends a request and returns the body.
    fn send(&self, request: &Request) -> String {
        let options = EncodeOptions::for_model("m");
        let encoded = self.codec.encode(request, &options);
        wire_cases::save(&format!("native_{}", self.name()), &encoded);
        let body = encoded.body.as_str().to_owned();
        self.check(&body);
        self.bodies.lock().unwrap().push(body.clone());
        body
    }

    fn check(&self, body: &str) {
        for codec in ["anthropic-messages", "openai-responses"] {
            let is_there = body.contains(&format!("sealed by {codec}"));
            assert!(!is_there || codec == self.name(), "{codec} in {body}");
        }
        let signed = body.matches("\"signature\"").count();
        assert!(signed <= 1, "{body}");
        if signed == 1 {
            let body: Value = serde_json::from_str(body).unwrap();
            let first = &body["messages"][0];
            assert!(first["content"][0]["signature"].is_string(), "{body}");
            // A model that binds no reasoning gets it before an answer as the user's.
            let next = &body["messages"][1];
            assert!(first["role"] == "assistant" || next["role"] == "assistant", "{body}");
            assert_eq!(first["content"].as_array().unwrap().len(), 1, "{body}");
        }
    }

    fn number(&self) -> usize {
        self.bodies.lock().unwrap().len()
    }

    fn last(&self) -> String {
        self.bodies.lock().unwrap().last().unwrap().clone()
    }

    /// Its compaction, as a block or an item.
    fn sealed(&self, is_signed: bool) -> Value {
        let seal = format!("sealed by {} {}", self.name(), self.number());
        match self.name() {
            "anthropic-messages" if is_signed => {
                json!({"type": "compaction", "content": seal, "signature": "sig"})
            }
            "anthropic-messages" => {
                json!({"type": "compaction", "content": seal, "encrypted_content": "AA=="})
            }
            _ => json!({"type": "compaction", "id": format!("cmp_{}", self.number()),
                "encrypted_content": seal}),
        }
    }

    fn answer(&self, words: &str) -> Value {
        let compacts = self.is_busy && self.number().is_multiple_of(5);
        let calls = self.is_busy && self.number().is_multiple_of(3);
        let id = format!("call_{}", self.number());
        match self.name() {
            "anthropic-messages" => {
                let mut content = vec![json!({"type": "text", "text": words})];
                let first = content[0].clone();
                if compacts && !self.last().contains("\"signature\"") {
                    content = vec![self.sealed(false), first];
                }
                if calls {
                    content.push(json!({"type": "tool_use", "id": id, "name": "echo",
                        "input": {"text": words}}));
                }
                json!({"content": content, "model": "m", "stop_reason": if calls { "tool_use" } else { "end_turn" }})
            }
            "openai-responses" => {
                let mut output = vec![json!({"type": "message", "role": "assistant",
                    "id": format!("msg_{id}"), "status": "completed",
                    "content": [{"type": "output_text", "text": words, "annotations": []}]})];
                if compacts {
                    output.insert(0, self.sealed(false));
                }
                if calls {
                    output.push(json!({"type": "function_call", "call_id": id, "name": "echo",
                        "arguments": json!({"text": words}).to_string()}));
                }
                json!({"status": "completed", "model": "m", "output": output})
            }
            _ => json!({"choices": [{"finish_reason": "stop",
                "message": {"role": "assistant", "content": words}}]}),
        }
    }

    fn read(&self, body: &Value) -> Result<Answer, ModelError> {
        Ok(self.codec.decode_response(body.to_string().as_bytes()).unwrap())
    }
}

#[async_trait]
impl Model for Provider {
    async fn complete(&self, request: Request) -> Result<Answer, ModelError> {
        self.send(&request);
        self.read(&self.answer(&format!("Answer {} of {}.", self.number(), self.name())))
    }

    async fn compact_natively(
        &self,
        request: Request,
        instructions: Option<Text>,
    ) -> Result<Option<Answer>, ModelError> {
        let instructions = instructions.as_ref().map(Text::as_str);
        let Some(request) = self.codec.compaction_request(request, instructions) else {
            return Ok(None);
        };
        let body = self.send(&request);
        let sealed = self.sealed(true);
        let answer = match self.name() {
            "anthropic-messages" => {
                assert!(body.contains(r#""compaction":{"type":"summarize"}"#), "{body}");
                json!({"content": [sealed], "stop_reason": "compaction", "usage": {
                    "input_tokens": 0, "output_tokens": 0,
                    "iterations": [{"type": "compaction", "input_tokens": 144, "output_tokens": 9}]}})
            }
            _ => {
                assert!(body.contains(r#",{"type":"compaction_trigger"}]"#), "{body}");
                json!({"status": "completed", "output": [sealed],
                    "usage": {"input_tokens": 144, "output_tokens": 9}})
            }
        };
        self.read(&answer).map(Some)
    }
}

fn session(provider: &Provider) -> Session {
    let native = Native { messages: 2, ..Native::default() };
    let rungs: [Arc<dyn CompactionStrategy>; 2] = [Arc::new(native), Arc::new(Digest::default())];
    let builder = Session::builder(provider.agent()).strategy(Arc::new(Ladder::new(rungs)));
    builder.tool(Arc::new(Echo { name: "echo", polls: 0 })).build().unwrap()
}

fn reported(session: &mut Session, provider: &Provider) {
    say(session, "The lamp is in src/lamp.rs. Never touch the tower.").unwrap();
    for number in 0..6 {
        let words =
            format!("Question {number} about the lamp. {}", "It shines at night. ".repeat(9));
        say(session, words).unwrap();
    }
    say(session, "/compact").unwrap();
    say(session, "And now?").unwrap();
    assert!(provider.last().contains("And now?"));
}

const DIALECTS: [Dialect; 2] = [Dialect::Anthropic, Dialect::OpenAiResponses];

#[test]
fn the_block_of_a_provider_is_sent_only_to_that_provider() {
    for codec in DIALECTS {
        let provider = Provider::new(codec);
        let mut session = session(&provider);
        reported(&mut session, &provider);
        let record = session.log().standing().last().unwrap();
        assert_eq!(record.rungs[0].strategy, "native");
        assert!(record.rungs[0].failure.is_none(), "{:?}", record.rungs);
        assert_eq!(record.rungs[0].usage, Usage::new(144, 9));
        let seal = format!("sealed by {}", codec.name());
        assert!(provider.last().contains(&seal), "{}", provider.last());

        for other in [Dialect::OpenAiChat, DIALECTS[0], DIALECTS[1]] {
            let other = Provider::new(other);
            session.set_agent(other.agent());
            say(&mut session, "Go on.").unwrap();
            let is_own = other.name() == codec.name();
            assert_eq!(other.last().contains(&seal), is_own, "{}", other.name());
            // The provider of the block gets nothing between it and the messages that stayed.
            for words in ["Never touch the tower.", "src/lamp.rs", "Question 1 about the lamp."] {
                assert_eq!(other.last().contains(words), !is_own, "{words} in {}", other.last());
            }
        }
    }
}

#[test]
fn the_original_messages_can_be_restored_and_recalled() {
    let provider = Provider::new(Dialect::Anthropic);
    let mut session = session(&provider);
    reported(&mut session, &provider);
    let id = session.log().standing().last().unwrap().id;
    let recalled = Recall::of(session.log()).call(&serde_json::json!({})).unwrap();
    assert!(recalled.contains("Question 2 about the lamp."), "{recalled}");
    block_on(session.undo_compaction(id)).unwrap();
    session.set_agent(Provider::new(Dialect::OpenAiChat).agent());
    assert!(session.messages().iter().all(|message| !message.is_summary()));
    assert_eq!(session.log().replay(), session.messages()[..]);
}

#[test]
fn an_unreadable_compaction_is_reported_as_such() {
    let provider = Provider::new(Dialect::Anthropic);
    let mut session = session(&provider);
    reported(&mut session, &provider);
    let record = session.log().standing().last().unwrap();
    let notes: Vec<&str> = record.report.notes.iter().map(|note| note.as_str()).collect();
    assert_eq!(notes.len(), 1);
    assert!(
        notes[0].contains("(anthropic-messages)") && notes[0].contains("cannot be looked into")
    );
}

#[test]
fn without_a_native_compaction_the_next_rung_runs() {
    let provider = Provider::new(Dialect::OpenAiChat);
    let mut session = session(&provider);
    reported(&mut session, &provider);
    let record = session.log().standing().last().unwrap();
    let rungs: Vec<_> =
        record.rungs.iter().map(|rung| (rung.strategy.as_str(), rung.calls)).collect();
    assert_eq!(rungs, [("native", 0), ("digest", 0)]);
    let failure = record.rungs[0].failure.as_deref();
    assert_eq!(failure, Some("the provider of the conversation made no compaction of its own"));
}

/// A body with finished turns, each with signed reasoning, as the provider read it.
fn reasoned(codec: Dialect, turns: usize) -> Value {
    let asked = |number: usize| format!("Question {number}. {}", "It shines at night. ".repeat(9));
    let mut items = Vec::new();
    for number in 0..turns {
        items.push(json!({"role": "user", "content": asked(number)}));
        let said = format!("Answer {number}.");
        match codec.name() {
            "anthropic-messages" => items.push(json!({"role": "assistant", "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": format!("sig{number}")},
                {"type": "text", "text": said}]})),
            _ => items.extend([
                json!({"type": "reasoning", "id": format!("rs_{number}"), "summary": [],
                    "encrypted_content": format!("sig{number}")}),
                json!({"type": "message", "role": "assistant", "id": format!("msg_{number}"),
                    "status": "completed",
                    "content": [{"type": "output_text", "text": said, "annotations": []}]}),
            ]),
        }
    }
    items.push(json!({"role": "user", "content": "And now?"}));
    match codec.name() {
        "anthropic-messages" => json!({"model": "claude-opus-5-5", "max_tokens": 9,
            "system": "Be brief.", "messages": items}),
        _ => json!({"model": "gpt-6.2-sol", "instructions": "Be brief.", "input": items}),
    }
}

#[test]
fn the_reasoning_of_messages_after_a_native_compaction_arrives() {
    let sealed = [
        json!({"type": "compaction", "content": "All.", "signature": "c2ln", "tool_changes": []}),
        json!({"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAA"}),
    ];
    for (codec, sealed) in DIALECTS.into_iter().zip(sealed) {
        let body = reasoned(codec, 8);
        let (items, answered) = match codec.name() {
            "anthropic-messages" => ("messages", json!({"content": [sealed]})),
            _ => ("input", json!({"status": "completed", "output": [sealed]})),
        };
        let request = codec.decode(&body, &DecodeOptions::default()).unwrap();
        let thread = threadfold::strategy::Snapshot::of_request(&request);
        let brief = Brief { reason: focus("the lamp"), ..Brief::default() };
        let view = View::new(thread, brief);
        let mut instructions = None;
        let native = Native { messages: 5, ..Native::default() };
        let (_, proposal) = asked(&native, &view, |call| {
            instructions.clone_from(&call.instructions);
            Ok(codec.decode_response(answered.to_string().as_bytes()).unwrap())
        });
        let instructions = instructions.unwrap();
        assert!(instructions.ends_with("\nthe lamp"), "{instructions}");
        let settled = view.thread.settle(proposal.unwrap(), &view.brief).unwrap();
        let takes = codec.name() == "anthropic-messages";
        let told = settled.notes.iter().any(|note| note.contains("takes no instructions"));
        assert_eq!(told, !takes, "{:?}", settled.notes);

        let after = settled.plan.after(&request.messages).unwrap();
        assert!(after[0].is_summary() && after[1..] == request.messages[after_cut(&after)..]);
        let request = Request { messages: after.into(), ..request };
        let model = body["model"].as_str().unwrap();
        let options = EncodeOptions::for_model(model);
        assert!(options.binds_reasoning);
        let written = codec.encode(&request, &options).body.to_value().unwrap();
        let [before, written] = [&body, &written].map(|body| body[items].as_array().unwrap());
        let block = match takes {
            true => json!({"role": "assistant", "content": [sealed]}),
            false => sealed,
        };
        assert_eq!(written[0], block);
        // Everything after the block is what the provider read before, reasoning included.
        assert!(before.ends_with(&written[1..]), "{written:#?}");
        let signed = written.iter().filter(|item| item.to_string().contains("sig")).count();
        assert!(signed >= 2 + usize::from(takes), "{written:#?}");

        // A change after it makes the later reasoning void again.
        let mut changed = request.messages.to_vec();
        let at = changed.len() - 3;
        let insert = vec![Message::user("Changed.").into()];
        let splice = threadfold::compact::Splice { at: at..at + 1, insert };
        let plan = threadfold::Plan::from_splices(changed.len(), vec![splice]);
        drop(plan.with_reasoning_marked(&changed).apply(&mut changed).unwrap());
        let request = Request { messages: changed.into(), ..request };
        let written = codec.encode(&request, &options).body;
        assert!(!written.as_str().contains("sig7") && written.as_str().contains("sig6"));
    }
}

/// What a host sets in the thread for all that follows stays in effect after a compaction of any kind:
/// the provider's guide demands it for those that a client asks for.
#[test]
fn further_tools_and_the_newest_effort_are_restored_after_a_compaction() {
    let codec = Dialect::OpenAiResponses;
    let tools =
        json!({"type": "additional_tools", "role": "developer", "tools": [{"type": "web_search"}]});
    let effort =
        |effort: &str| json!({"type": "configuration_update", "reasoning": {"effort": effort}});
    let text =
        json!({"type": "configuration_update", "id": "cu_1", "text": {"format": {"type": "text"}}});
    let mut body = reasoned(codec, 8);
    let items = body["input"].as_array_mut().unwrap();
    for (at, setting) in [effort("low"), text.clone(), tools.clone(), tools.clone(), effort("high")]
        .into_iter()
        .enumerate()
    {
        // Each stands before a message of the user.
        let users = items.iter().enumerate().filter(|(_, item)| item["role"] == "user");
        let place = users.map(|(place, _)| place).nth(at + 1).unwrap();
        items.insert(place, setting);
    }
    let request = codec.decode(&body, &DecodeOptions::default()).unwrap();
    let unchanged = codec.encode(&request, &EncodeOptions::default());
    assert_eq!((unchanged.body.to_value().unwrap(), unchanged.adjustments), (body, Vec::new()));

    let block = json!({"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAA"});
    let answer = json!({"status": "completed", "output": [block]}).to_string();
    let strategies: [&dyn CompactionStrategy; 3] = [
        &Native { messages: 3, ..Native::default() },
        &Digest { messages: 3, ..Digest::default() },
        &KeepRecent { messages: 3, ..KeepRecent::default() },
    ];
    for strategy in strategies {
        let name = strategy.name();
        let thread = threadfold::strategy::Snapshot::of_request(&request);
        let view = View::new(thread, Brief::default());
        let (_, proposal) =
            asked(strategy, &view, |_| Ok(codec.decode_response(answer.as_bytes()).unwrap()));
        let settled = view.thread.settle(proposal.unwrap(), &view.brief).unwrap();
        let again = view.thread.settle(settled.clone(), &view.brief).unwrap();
        assert_eq!(again.plan, settled.plan, "{name}: settling again changes nothing");
        let after = settled.plan.after(&request.messages).unwrap();
        assert!(after.len() < request.messages.len(), "{name}");
        let compacted = Request { messages: after.into(), ..request.clone() };
        let options = EncodeOptions::for_model("gpt-6.2-sol");
        let written = codec.encode(&compacted, &options).body.to_value().unwrap();
        let items = written["input"].as_array().unwrap();
        let settings = items
            .iter()
            .filter(|item| item["role"] == "developer" || item["type"] == "configuration_update");
        let settings: Vec<&Value> = settings.collect();
        assert_eq!(settings, [&text, &tools, &effort("high")], "{name}: {written:#}");
        if name == "native" {
            assert_eq!((&items[0], &items[1]), (&block, &text));
        }
    }
}

fn focus(words: &str) -> threadfold::message::CompactionReason {
    threadfold::message::CompactionReason::Manual { instructions: Some(words.into()) }
}

/// The first message of a thread of 17 that stayed in the thread after the compaction.
fn after_cut(after: &[Message]) -> usize {
    17 - (after.len() - 1)
}

#[test]
fn an_answer_without_a_compaction_block_is_no_compaction() {
    let answer = |body: &str| Dialect::Anthropic.decode_response(body.as_bytes()).unwrap();
    let rows = [
        (
            r#"{"content":[],"stop_reason":"refusal"}"#,
            "the summary is incomplete: the model stopped with refusal",
        ),
        (
            r#"{"content":[{"type":"compaction","content":null}],"stop_reason":"compaction"}"#,
            "the provider of the conversation made no compaction of its own",
        ),
        (
            r#"{"content":[{"type":"text","text":"A summary."}],"stop_reason":"end_turn"}"#,
            "the provider of the conversation made no compaction of its own",
        ),
    ];
    let thread: Vec<Message> = (0..9)
        .map(|number| Message::assistant(format!("{number} {}", "word ".repeat(90))))
        .collect();
    let thread = threadfold::strategy::Snapshot::new(thread);
    for (body, words) in rows {
        let view = View::new(thread.clone(), Brief::default());
        let native = Native { messages: 2, ..Native::default() };
        let (_, outcome) = asked(&native, &view, |_| Ok(answer(body)));
        assert_eq!(outcome.unwrap_err().to_string(), words);
    }
}

#[test]
fn a_compaction_within_an_answer_is_read_and_sent_back() {
    for codec in DIALECTS {
        let mut provider = Provider::new(codec);
        provider.is_busy = true;
        let mut session = session(&provider);
        for number in 0..6 {
            say(&mut session, format!("Question {number}.")).unwrap();
        }
        let compacted = session.log().provider_compactions().count();
        assert!(compacted > 0, "{}", codec.name());
        assert!(provider.last().contains("sealed by"), "{}", provider.last());
        let other = Provider::new(Dialect::OpenAiChat);
        session.set_agent(other.agent());
        say(&mut session, "Go on.").unwrap();
        assert!(other.last().contains("Question 0."), "nothing of the thread was dropped");
    }
}

/// A small generator: tests must not depend on the order in which another draws.
struct Draw(u64);

impl Draw {
    fn below(&mut self, most: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

#[test]
fn a_thousand_histories_stay_legal_across_providers() {
    let codecs: [Dialect; 3] = [DIALECTS[0], DIALECTS[1], Dialect::OpenAiChat];
    let (mut native, mut switched) = (0, 0);
    for seed in 0..1_000 {
        let mut draw = Draw(seed);
        let providers = codecs.map(|codec| Provider { is_busy: true, ..Provider::new(codec) });
        let mut session = session(&providers[draw.below(3) as usize]);
        say(&mut session, format!("Never touch tower {seed}.")).unwrap();
        for number in 0..9 {
            match draw.below(8) {
                0 | 1 => {
                    session.set_agent(providers[draw.below(3) as usize].agent());
                    switched += 1;
                }
                2 | 3 => drop(say(&mut session, "/compact")),
                4 => {
                    if let Some(id) = session.log().standing().last().map(|record| record.id) {
                        // A compaction that was undone before may have removed it.
                        drop(block_on(session.undo_compaction(id)));
                    }
                }
                _ => {
                    let words = "It shines. ".repeat(draw.below(40) as usize);
                    say(&mut session, format!("Question {number}. {words}")).unwrap();
                }
            }
            assert!(legality::violations(session.messages()).is_empty(), "{seed}");
        }
        assert_eq!(session.log().replay(), session.messages()[..], "{seed}");
        native += session.log().standing().filter(|record| is_native(record)).count();
        for provider in &providers {
            session.set_agent(provider.agent());
            say(&mut session, "Well?").unwrap();
            let bodies = provider.bodies.lock().unwrap();
            let body = bodies.iter().rev().find(|body| body.contains("Well?")).unwrap();
            // It is in the block, which only its provider reads, or stands for all others to read.
            let sealed = body.contains(&format!("sealed by {}", provider.name()));
            assert!(sealed || body.contains(&format!("Never touch tower {seed}.")), "{seed}");
        }
    }
    assert!(native > 100 && switched > 1_500, "{native} {switched}");
}

fn is_native(record: &threadfold::log::CompactionRecord) -> bool {
    let mut rungs = record.rungs.iter();
    rungs.any(|rung| rung.strategy == "native" && rung.failure.is_none())
}

#[test]
fn a_gateway_reads_requests_for_compactions_and_its_own_summaries() {
    let read =
        |codec: Dialect, body: Value| codec.decode(&body, &DecodeOptions::default()).unwrap();
    let asked = |codec: Dialect, body| codec.compaction_asked(&read(codec, body));
    let claude = |more: Value| {
        let mut body =
            json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    let now = |instructions: Option<&str>| {
        let instructions = instructions.map(Into::into);
        Some(CompactionAsked { when: CompactionTime::Now, instructions })
    };
    let before = |when| Some(CompactionAsked { when, instructions: None });
    let edits = |edit: Value| json!({"context_management": {"edits": [{"type": "clear_thinking_20251015"}, edit]}});
    let gpt = |item: Value, management: Value| json!({"input": [{"role": "user", "content": "hi"}, item], "context_management": management});
    let said = json!({"role": "user", "content": "on"});
    let rows: [(Dialect, Value, _); 8] = [
        (Dialect::Anthropic, claude(json!({})), None),
        (Dialect::Anthropic, claude(json!({"compaction": {"type": "summarize"}})), now(None)),
        (
            Dialect::Anthropic,
            claude(json!({"compaction": {"type": "summarize", "instructions": "Names."}})),
            now(Some("Names.")),
        ),
        (
            Dialect::Anthropic,
            claude(edits(
                json!({"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 60_000}}),
            )),
            before(CompactionTime::From(60_000)),
        ),
        (
            Dialect::Anthropic,
            claude(edits(json!({"type": "compact_20260112"}))),
            before(CompactionTime::ServerDefault),
        ),
        (
            Dialect::OpenAiResponses,
            gpt(json!({"type": "compaction_trigger"}), Value::Null),
            now(None),
        ),
        (
            Dialect::OpenAiResponses,
            gpt(said.clone(), json!([{"type": "compaction", "compact_threshold": 200_000}])),
            before(CompactionTime::From(200_000)),
        ),
        (Dialect::OpenAiResponses, gpt(said, Value::Null), None),
    ];
    for (codec, body, expected) in rows {
        assert_eq!(asked(codec, body.clone()), expected, "{body}");
    }
    for codec in DIALECTS {
        let usage = Usage::new(1_000, 50);
        let body = codec.compaction_answer("m", "They spoke of lamps.", usage).unwrap();
        let turn = codec.decode_response(body.as_str().as_bytes()).unwrap();
        assert_eq!(turn.usage, Some(Usage::new(1_000, 50)), "{body}");
        // The client sends the block back, and the gateway may ask a provider of any dialect.
        let block = &body.to_value().unwrap();
        let block = block.pointer("/content/0").or_else(|| block.pointer("/output/0")).unwrap();
        let later = match codec.name() {
            "anthropic-messages" => claude(json!({"messages": [
                {"role": "assistant", "content": [block]}, {"role": "user", "content": "on"}]})),
            _ => json!({"input": [block, {"role": "user", "content": "on"}]}),
        };
        let request = read(codec, later);
        assert!(request.messages[0].is_summary(), "{request:?}");
        let written = Dialect::OpenAiChat.encode(&request, &EncodeOptions::default()).body;
        assert!(written.as_str().contains("They spoke of lamps."), "{written}");
    }
}

#[test]
fn a_request_for_a_compaction_contains_nothing_that_the_provider_refuses() {
    let body = json!({"model": "m", "max_tokens": 9, "stop_sequences": ["x"],
        "tools": [{"name": "f", "input_schema": {"type": "object"}}],
        "tool_choice": {"type": "any"}, "context_management": {"edits": []},
        "output_config": {"effort": "low", "format": {"type": "json_schema"}},
        "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]});
    let request = Dialect::Anthropic.decode(&body, &DecodeOptions::default()).unwrap();
    let asked = Dialect::Anthropic.compaction_request(request, None).unwrap();
    let encoded = Dialect::Anthropic.encode(&asked, &EncodeOptions::default());
    let expected = json!({"model": "m", "max_tokens": 9,
        "tools": [{"name": "f", "input_schema": {"type": "object"}}],
        "output_config": {"effort": "low"}, "compaction": {"type": "summarize"},
        "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]});
    assert_eq!((encoded.body.to_value().unwrap(), encoded.adjustments), (expected, vec![]));
}

/// `ResponseCompactParams` of SDK openai 3.57.
#[test]
fn the_compaction_endpoint_gets_the_parameters_that_it_takes() {
    let kept = json!({"model": "gpt-6-astra", "instructions": "Be brief.",
        "image": {"context_compression": "enabled"}, "service_tier": "flex",
        "prompt_cache_key": "thread-7", "prompt_cache_options": {"mode": "explicit", "ttl": "12h"},
        "input": [{"role": "user", "content": "hi"}]});
    let mut body = kept.clone();
    for (key, value) in
        [("temperature", json!(1.0)), ("stream", json!(true)), ("store", json!(false))]
    {
        body[key] = value;
    }
    let request = Dialect::OpenAiResponses.decode(&body, &DecodeOptions::default()).unwrap();
    let encoded = openai_responses::encode_compact(&request, &EncodeOptions::default());
    assert_eq!(encoded.body.to_value().unwrap(), kept);
}

#[test]
fn a_paused_answer_with_a_compaction_is_continued() {
    let body = r#"{"content":[{"type":"compaction","content":"All."}],"stop_reason":"compaction"}"#;
    let turn = Dialect::Anthropic.decode_response(body.as_bytes()).unwrap();
    assert_eq!(turn.stop_reason, StopReason::PauseTurn);
    let is_compaction = |block: &ContentBlock| matches!(block, ContentBlock::Opaque(opaque) if opaque.is_compaction());
    assert!(turn.message.content.iter().all(is_compaction));
    let request = Request::new(vec![Message::user("hi"), turn.message]);
    let body = Dialect::Anthropic.encode(&request, &EncodeOptions::default()).body;
    assert!(body.as_str().ends_with(r#"{"type":"compaction","content":"All."}]}]}"#), "{body}");
}
