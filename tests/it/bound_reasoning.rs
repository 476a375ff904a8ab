//! Providers that bind reasoning to the messages before it: what they report, what a request tells
//! them, and which rung of the default ladder keeps the reasoning. Also what a version of Anthropic's
//! API refuses.

use std::sync::Arc;

use serde_json::{Value, json};
use threadfold::{
    Answer, Message, Request, Session,
    compact::VoidReasoning,
    message::{Json, Opaque, Role, StopReason, Text, Thinking, Withheld, WithheldReason},
    model::ModelAgent,
    session::SessionEvent,
    strategy::{Brief, Ladder, ModelRole, Snapshot, View},
    testing::{ScriptedModel, asked},
    tokens::ByteEstimate,
    wire::{AnthropicVersion, DecodeOptions, Dialect, EncodeOptions, PrefixMismatch},
};

use crate::support::bench::events;

fn withheld(at: &str, reason: WithheldReason, shown: bool) -> Withheld {
    Withheld { at: at.into(), reason, shown }
}

#[test]
fn both_vendors_reports_on_dropped_reasoning_are_read() {
    let anthropic = json!({"model": "claude-opus-5-5", "stop_reason": "end_turn",
        "content": [{"type": "text", "text": "yes"}],
        "input_transformations": [
            {"type": "thinking_dropped", "path": "messages.1.content.0", "reason": "prefix_binding_mismatch"},
            {"type": "thinking_mismatch_allowed", "path": "messages.3.content.0", "reason": "prefix_binding_mismatch"},
            {"type": "something_newer", "path": "messages.5.content.0"}]});
    let openai = json!({"model": "gpt-6.2-sol", "status": "completed",
        "output": [{"type": "message", "role": "assistant", "id": "msg_1", "status": "completed",
            "content": [{"type": "output_text", "text": "yes", "annotations": []}]}],
        "input_transformations": [
            {"type": "reasoning", "id": "rs_1", "action": "removed", "reason": "prefix_mismatch"},
            {"type": "reasoning", "id": "rs_2", "action": "removed", "reason": "turn_boundary"},
            {"type": "reasoning", "id": "rs_3", "action": "removed", "reason": "moon_phase"}]});
    let read = |dialect: Dialect, body: &Value| {
        dialect.decode_response(body.to_string().as_bytes()).unwrap()
    };
    let answer = read(Dialect::Anthropic, &anthropic);
    let expected = [
        withheld("messages.1.content.0", WithheldReason::Prefix, false),
        withheld("messages.3.content.0", WithheldReason::Prefix, true),
    ];
    assert_eq!(answer.withheld, expected);
    // The log keeps the report as it came.
    assert!(format!("{:?}", answer.message.extra).contains("thinking_mismatch_allowed"));
    let answer = read(Dialect::OpenAiResponses, &openai);
    let expected = [
        withheld("rs_1", WithheldReason::Prefix, false),
        withheld("rs_2", WithheldReason::TurnBoundary, false),
        withheld("rs_3", WithheldReason::Other("moon_phase".into()), false),
    ];
    assert_eq!(answer.withheld, expected);
    let stored = serde_json::to_string(&answer).unwrap();
    assert_eq!(serde_json::from_str::<Answer>(&stored).unwrap(), answer);
}

#[test]
fn a_streamed_report_on_dropped_reasoning_is_read() {
    let dropped = json!([{"type": "thinking_dropped", "path": "messages.1.content.0",
        "reason": "model_binding_mismatch"}]);
    let events = [
        json!({"type": "message_start", "message": {"role": "assistant", "content": [],
            "model": "claude-opus-5-5", "input_transformations": dropped,
            "usage": {"input_tokens": 9, "output_tokens": 1}}}),
        json!({"type": "content_block_start", "index": 0,
            "content_block": {"type": "compaction", "content": null, "signature": "c2ln", "tool_changes": []}}),
        json!({"type": "content_block_delta", "index": 0,
            "delta": {"type": "compaction_delta", "content": "They talked."}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "compaction"},
            "usage": {"output_tokens": 5}}),
        json!({"type": "message_stop"}),
    ];
    let stream: String = events
        .iter()
        .map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap()))
        .collect();
    let bytes = futures::stream::iter([Ok::<_, std::io::Error>(stream.into_bytes())]);
    let deltas = threadfold::model::deltas_of(bytes, Dialect::Anthropic);
    let answer = futures::executor::block_on(threadfold::model::answer_of(deltas)).unwrap();
    assert_eq!(answer.withheld, [withheld("messages.1.content.0", WithheldReason::Model, false)]);
    let text = format!("{:?}", answer.message.content);
    assert!(answer.message.holds_compaction() && text.contains("tool_changes"), "{text}");
    assert_eq!(answer.stop_reason, StopReason::PauseTurn);
}

fn encoded(body: &Value, options: &EncodeOptions) -> (Value, String) {
    let request = Dialect::Anthropic.decode(body, &DecodeOptions::default()).unwrap();
    let encoded = Dialect::Anthropic.encode(&request, options);
    let notes: Vec<String> = encoded.adjustments.iter().map(ToString::to_string).collect();
    (encoded.body.to_value().unwrap(), notes.join("\n"))
}

#[test]
fn the_newest_api_version_gets_nothing_that_it_refuses() {
    let cited = json!([{"type": "char_location", "cited_text": "x", "document_index": 0,
        "document_title": null, "start_char_index": 0, "end_char_index": 1}]);
    let document = json!({"type": "document",
        "source": {"type": "text", "media_type": "text/plain", "data": "A page."}});
    let body = json!({"model": "claude-sonnet-5-5", "max_tokens": 9, "temperature": 1.0,
        "top_p": 0.9, "top_k": 5, "messages": [
            {"role": "user", "content": [{"type": "text", "text": "hi", "citations": cited},
                {"type": "text", "text": "you", "citations": []}]},
            {"role": "assistant", "content": [{"type": "text", "text": "hello", "citations": cited}, document]},
            {"role": "user", "content": "And?"}]});
    let newest = EncodeOptions {
        anthropic_version: AnthropicVersion::V2026_10_21,
        ..EncodeOptions::for_model("claude-sonnet-5-5")
    };
    let (written, notes) = encoded(&body, &newest);
    for name in ["temperature", "top_p", "top_k"] {
        assert!(written.get(name).is_none() && notes.contains(name), "{name}: {notes}");
    }
    let messages = written["messages"].to_string();
    assert!(
        !messages.contains(r#""document""#) && notes.contains("document"),
        "{messages}\n{notes}"
    );
    assert!(written["messages"][0]["content"][0].get("citations").is_none(), "{messages}");
    assert_eq!(written["messages"][0]["content"][1]["citations"], json!([]));
    assert_eq!(written["messages"][1]["content"][0]["citations"], cited);

    let older = EncodeOptions { anthropic_version: AnthropicVersion::V2023_06_01, ..newest };
    let (written, _) = encoded(&body, &older);
    assert_eq!(written["top_k"], 5);
    assert_eq!(written["messages"][0]["content"][0]["citations"], cited);
}

#[test]
fn what_happens_to_void_reasoning_is_set_where_the_request_thinks() {
    let body = |thinking: Value| {
        json!({"model": "claude-opus-5-5", "max_tokens": 9, "thinking": thinking,
            "messages": [{"role": "user", "content": "hi"}]})
    };
    let options = EncodeOptions {
        prefix_mismatch: Some(PrefixMismatch::DropBlock),
        ..EncodeOptions::for_model("claude-opus-5-5")
    };
    let binding = |body: &Value, options: &EncodeOptions| {
        encoded(body, options).0["thinking"]["block_binding"].clone()
    };
    let adaptive = body(json!({"type": "adaptive"}));
    assert_eq!(binding(&adaptive, &options), json!({"prefix_mismatch_behavior": "drop_block"}));
    let own = json!({"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "error"}});
    assert_eq!(binding(&body(own), &options)["prefix_mismatch_behavior"], "error");
    assert_eq!(binding(&body(json!({"type": "disabled"})), &options), Value::Null);
    let free = EncodeOptions { binds_reasoning: false, ..options };
    assert_eq!(binding(&adaptive, &free), Value::Null);
}

/// Whether the reasoning of one model is in a request to another of the same dialect.
fn reaches(dialect: Dialect, made_by: &str, asked: &str) -> bool {
    let body = match dialect {
        Dialect::Anthropic => json!({"model": made_by, "stop_reason": "end_turn", "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
            {"type": "text", "text": "yes"}]}),
        _ => json!({"model": made_by, "status": "completed", "output": [
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2ln"},
            {"type": "message", "role": "assistant", "id": "msg_1", "status": "completed",
                "content": [{"type": "output_text", "text": "yes", "annotations": []}]}]}),
    };
    let answer = dialect.decode_response(body.to_string().as_bytes()).unwrap();
    let thread = vec![Message::user("Is it?"), answer.message, Message::user("Sure?")];
    let encoded = dialect.encode(&Request::new(thread), &EncodeOptions::for_model(asked));
    let told = encoded.adjustments.iter().any(|it| it.to_string().contains("another model"));
    let sent = encoded.body.as_str().contains("c2ln");
    assert!(encoded.body.as_str().contains("yes") && sent != told, "{:?}", encoded.adjustments);
    sent
}

#[test]
fn a_model_that_binds_reasoning_gets_only_its_own() {
    let anthropic = |made_by, asked| reaches(Dialect::Anthropic, made_by, asked);
    assert!(!anthropic("claude-opus-5-5", "claude-sonnet-5-5"));
    assert!(!anthropic("claude-opus-5-5", "claude-sonnet-4-5"));
    assert!(anthropic("claude-opus-4-5", "claude-sonnet-4-5"));
    assert!(anthropic("claude-haiku-5-5", "claude-opus-5-5"));
    assert!(anthropic("claude-opus-5-5-20261001", "claude-opus-5-5"));
    assert!(anthropic("claude-opus-5-5", "us.anthropic.claude-opus-5-5-v1:0"));
    // An alias can be any model.
    assert!(anthropic("claude-opus-5-5", "claude-opus-latest"));
    let openai = |made_by, asked| reaches(Dialect::OpenAiResponses, made_by, asked);
    assert!(!openai("gpt-5.2", "gpt-6.2-sol"));
    assert!(openai("gpt-6.2-sol", "gpt-5.2"));
    assert!(openai("gpt-6.2-sol-2026-11-18", "gpt-6.2-sol"));
}

#[test]
fn a_model_that_refuses_sampling_gets_no_temperature() {
    for dialect in [Dialect::OpenAiChat, Dialect::OpenAiResponses] {
        let request = Request { temperature: Some(0.2), ..Request::new(vec![Message::user("hi")]) };
        let encoded = dialect.encode(&request, &EncodeOptions::for_model("gpt-6.2-sol"));
        assert!(encoded.body.to_value().unwrap().get("temperature").is_none());
        assert_eq!(encoded.adjustments.len(), 1, "{:?}", encoded.adjustments);
        let older = dialect.encode(&request, &EncodeOptions::for_model("gpt-5.2"));
        assert_eq!(older.body.to_value().unwrap()["temperature"], 0.2);
        // The only value that is accepted stays as it is.
        let request = Request { temperature: Some(1.0), ..request };
        let encoded = dialect.encode(&request, &EncodeOptions::for_model("gpt-6.2-sol"));
        assert!(encoded.body.to_value().unwrap()["temperature"] == 1.0);
    }
}

/// Four finished turns with signed reasoning, and a question.
fn reasoned() -> Vec<Message> {
    let turn = |number: usize| {
        let thought = Thinking::new("Hm.", Some("c2ln".into()));
        let said = threadfold::ContentBlock::text(format!(
            "Answer {number}. {}",
            "It shines. ".repeat(60)
        ));
        let asked = Message::user(format!("Question {number}. {}", "Where is it? ".repeat(20)));
        [asked, Message::new(Role::Assistant, vec![thought.into(), said])]
    };
    (0..12).flat_map(turn).chain([Message::user("And now?")]).collect()
}

#[test]
fn the_default_ladder_keeps_the_reasoning_of_the_messages_that_stay() {
    let thread = Snapshot::new(reasoned());
    let size = thread.counter().messages(thread.messages());
    let value = json!({"type": "compaction", "content": "They talked.", "signature": "c2ln"});
    let block = Opaque::new("anthropic-messages", Json::from(&value));
    for binds_reasoning in [true, false] {
        let brief = Brief { binds_reasoning, ..Brief::from(size / 2) };
        let view = View::new(thread.clone(), brief);
        let (calls, proposal) = asked(&Ladder::default(), &view, |call| {
            let answer = match call.model {
                ModelRole::Native => Message::new(Role::Assistant, vec![block.clone().into()]),
                _ => Message::assistant("They talked about the lamp."),
            };
            Ok(Answer::new(answer, StopReason::EndTurn, None))
        });
        assert_eq!(calls[0].model == ModelRole::Native, binds_reasoning);
        let settled = view.thread.settle(proposal.unwrap(), &view.brief).unwrap();
        let after = settled.plan.after(thread.messages()).unwrap();
        let answers = after.iter().filter(|message| message.role == Role::Assistant);
        let reasoned = answers.clone().filter(|it| it.is_signed()).count();
        let answers = answers.count();
        assert!(answers >= 2, "{answers}");
        assert_eq!(reasoned, if binds_reasoning { answers } else { 0 });
        assert!(VoidReasoning::of(&after, &ByteEstimate::TRIGGER).is_none() || !binds_reasoning);
    }
}

#[test]
fn a_session_shows_what_the_provider_left_out() {
    let mut answer = Answer::new(Message::assistant("yes"), StopReason::EndTurn, None);
    answer.withheld = vec![withheld("rs_1", WithheldReason::Prefix, false)];
    let model = Arc::new(ScriptedModel::new([answer]));
    let mut session = Session::builder(ModelAgent::new(model)).build().unwrap();
    let mut lines: Vec<Text> = Vec::new();
    for event in events(&mut session, "hi") {
        if let SessionEvent::Notice { text } = event.unwrap() {
            lines.push(text);
        }
    }
    let line = "The provider left out 1 block of the model's reasoning: the messages before it were \
                changed (1).";
    assert!(lines.iter().any(|text| text.as_str() == line), "{lines:?}");
}
