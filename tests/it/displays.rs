//! How the compactions of a whole session are reported to hosts: on a console, on a web page, and
//! to a client of the Agent Client Protocol.

use std::sync::Arc;

use futures::executor::block_on;
use serde_json::{Value, json};
use threadfold::{
    ContentBlock, ContextWindow, Message, ModelAgent, Role, Session,
    auto::{AutoPolicy, Threshold},
    message::{Json, ModelErrorKind, ToolUse},
    model::ModelError,
    session::{
        COMPACT_CONTEXT, CompactionDisplay, CompactionEvent, SessionEvent, acp, api, console,
    },
    strategy::Summarize,
    testing::{Scripted, ScriptedModel},
};
use threadfold_testing::TestClock;

/// A session after eight rounds, which compacts automatically from this many tokens on, or has the
/// tool.
fn session(threshold: Option<u64>, answers: impl IntoIterator<Item = Scripted>) -> Session {
    let mut script: Vec<Scripted> =
        (0..8).map(|round| format!("Old answer {round}: {}", "word ".repeat(40)).into()).collect();
    script.extend(answers);
    let agent = ModelAgent::new(Arc::new(ScriptedModel::new(script)));
    let policy = AutoPolicy {
        enabled: threshold.is_some(),
        threshold: Threshold::Tokens(threshold.unwrap_or_default()),
        target: Threshold::Tokens(900),
        estimates_usage: true,
        ..AutoPolicy::default()
    };
    let builder = Session::builder(agent.with_window(ContextWindow::new(200_000)))
        .checkpoints()
        .thread("main".parse().unwrap())
        .strategy(Arc::new(Summarize {
            messages: 2,
            user_messages: 0,
            summary_tokens: 50,
            ..Summarize::default()
        }))
        .policy(policy)
        .clock(Arc::new(TestClock::default()));
    let builder = if threshold.is_none() { builder.compact_context_tool() } else { builder };
    let mut session = builder.build().unwrap();
    for round in 0..8 {
        let text = format!("Old question {round}: {}", "word ".repeat(20));
        block_on(session.send(text).into_future()).unwrap();
    }
    session
}

/// The compaction events of one turn.
fn reports(session: &mut Session, text: &str) -> Vec<CompactionEvent> {
    let mut events = session.send(text);
    let mut reports = Vec::new();
    while let Some(event) = block_on(events.next()) {
        if let SessionEvent::Compaction(event) = event.unwrap() {
            reports.push(event);
        }
    }
    reports
}

fn shown(reports: &[CompactionEvent]) -> String {
    let mut written = Vec::new();
    let mut display = console(&mut written);
    reports.iter().for_each(|event| display.show(event));
    drop(display);
    String::from_utf8(written).unwrap()
}

/// The JSON for a web page, without the times.
fn sent(reports: &[CompactionEvent]) -> Vec<Value> {
    let events = reports.iter().filter_map(api::compaction_event);
    let data = |event: Json| {
        let mut json = event.to_value().unwrap();
        json.as_object_mut().unwrap().remove("timestamp").unwrap();
        json
    };
    events.map(data).collect()
}

fn tool_call() -> Scripted {
    let call = ToolUse::new("c1", COMPACT_CONTEXT, Json::parse("{}").unwrap());
    Scripted::from(Message::new(Role::Assistant, vec![ContentBlock::from(call)]))
}

#[test]
fn compactions_are_shown_for_every_cause() {
    let summary = || Scripted::from("They talked.");
    let rows = [
        (session(Some(1_000), [summary(), "Four.".into()]), "Two and two?", "threshold", true),
        (session(None, [summary()]), "/compact the numbers", "manual", false),
        (session(None, [summary(), "Four.".into()]), "@compact Two and two?", "manual", false),
        (session(None, [tool_call(), summary(), "Done.".into()]), "Go.", "agent_tool", false),
    ];
    for (mut session, text, reason, auto) in rows {
        let reports = reports(&mut session, text);
        let Some(CompactionEvent::Completed { report, .. }) = reports.last() else {
            panic!("{text}: {reports:?}")
        };
        let (before, after) = (report.before.messages, report.after.messages);
        let lines = shown(&reports);
        let expected = format!(
            "🔄 Compacting conversation to reduce size...\n\
             ✅ Compaction complete! Reduced from {before} to {after} events ("
        );
        assert!(lines.starts_with(&expected) && lines.lines().count() == 2, "{text}: {lines}");
        let start = json!({"strategy": "summarize", "auto": auto, "reason": reason});
        let complete = json!({
            "success": true, "tokensSaved": report.tokens_saved(),
            "originalEventCount": before, "compactedEventCount": after,
        });
        assert_eq!(
            sent(&reports),
            [
                json!({"type": "COMPACTION_START", "threadId": "main", "data": start}),
                json!({"type": "COMPACTION_COMPLETE", "threadId": "main", "data": complete}),
            ]
        );
        let updates: Vec<Value> = reports.iter().filter_map(acp::compaction_update).collect();
        let update = |status: &str| json!({"sessionUpdate": "compaction_update", "compactionId": "0", "status": status});
        assert_eq!(updates.first(), Some(&update("in_progress")));
        assert_eq!(updates.last(), Some(&update("completed")));
        assert_eq!(session.token_usage().context_tokens, session.context_tokens());
    }
}

#[test]
fn a_failed_compaction_is_shown_and_ends_the_waiting_of_a_page() {
    let error = ModelError::new(ModelErrorKind::Other, "the lamp is out");
    let mut session = session(None, [error.into()]);
    let reports = reports(&mut session, "/compact");
    assert_eq!(
        shown(&reports),
        "🔄 Compacting conversation to reduce size...\n\
         ❌ Compaction failed: the model call failed: the lamp is out\n"
    );
    let data = json!({
        "success": false, "tokensSaved": 0, "error": "the model call failed: the lamp is out",
    });
    let complete = json!({"type": "COMPACTION_COMPLETE", "threadId": "main", "data": data});
    assert_eq!(sent(&reports).last(), Some(&complete));
}

#[test]
fn a_compaction_whose_end_was_delivered_before_the_stream_was_dropped_is_not_reported_again() {
    let mut session = session(None, ["They talked.".into(), "Fine.".into()]);
    let mut events = session.send("/compact");
    loop {
        let event = block_on(events.next()).unwrap().unwrap();
        if matches!(event, SessionEvent::Compaction(event) if event.is_end()) {
            break;
        }
    }
    drop(events);
    assert_eq!(reports(&mut session, "And now?"), []);
}

#[test]
fn a_compaction_whose_stream_was_dropped_is_reported_as_cancelled_by_the_next_turn() {
    let mut session = session(None, ["Fine.".into()]);
    let mut events = session.send("/compact");
    let first = block_on(events.next()).unwrap().unwrap();
    drop(events);
    let mut reports = match first {
        SessionEvent::Compaction(event) => vec![event],
        other => panic!("{other:?}"),
    };
    reports.extend(self::reports(&mut session, "And now?"));
    assert_eq!(
        shown(&reports),
        "🔄 Compacting conversation to reduce size...\nCompaction cancelled\n"
    );
    let data = json!({"success": false, "tokensSaved": 0, "error": "cancelled"});
    let complete = json!({"type": "COMPACTION_COMPLETE", "threadId": "main", "data": data});
    assert_eq!(sent(&reports).last(), Some(&complete));
}
