//! A compaction directly after another one does nothing and asks no model, because no message was
//! added.

use std::sync::Arc;

use futures::{StreamExt, executor::block_on};
use threadfold::{
    Compactor, ContextWindow, Message, ModelAgent, Role, Session, StrategyRegistry,
    drive::{self, Models},
    log::{Event, EventLog},
    message::{Json, Timestamp, ToolResult, ToolUse},
    retention::RetentionPolicy,
    session::SessionEvent,
    store::Journal,
    strategy::{Brief, Snapshot},
    testing::ScriptedModel,
};

use crate::support::recorded::requests;

/// Threads with tool results that can be cleared without loss of facts, and recorded threads.
fn threads() -> Vec<Vec<Message>> {
    let mut reading =
        vec![Message::user("Look at the lamps in src/hall.rs. Never touch the lexer.")];
    for id in 0..12 {
        let id = format!("t{id}");
        let call = ToolUse::new(&*id, "read", Json::parse(r#"{"path":"src/hall.rs"}"#).unwrap());
        let result = ToolResult::text(id, "let lamp = Lamp::new(Colour::Red);\n".repeat(60));
        reading.push(Message::new(Role::Assistant, vec![call.into()]));
        reading.push(Message::new(Role::User, vec![result.into()]));
    }
    reading.push(Message::assistant("They are red."));
    let recorded = requests().into_iter().map(|(_, _, request)| request.messages.to_vec());
    std::iter::once(reading).chain(recorded).collect()
}

fn model() -> ScriptedModel {
    ScriptedModel::repeating(["They looked at the lamps and found nothing."])
}

fn tokens(thread: &[Message]) -> u64 {
    Snapshot::new(thread.to_vec()).counter().messages(thread)
}

fn journal_of(thread: &[Message]) -> Journal {
    let mut journal = Journal::new(EventLog::new("main".parse().unwrap()));
    for message in thread {
        journal.append(Timestamp(1), Event::MessageAppended(message.clone())).unwrap();
    }
    journal
}

#[test]
fn a_thread_within_its_target_is_not_compacted() {
    let registry = StrategyRegistry::default();
    let mut without_model = 0;
    for thread in threads() {
        let target = Some(tokens(&thread) / 2);
        let retention = Some(RetentionPolicy::default());
        let brief = Brief { target, retention, ..Brief::default() };
        for strategy in registry.names().filter_map(|name| registry.get(name).ok()) {
            let model = model();
            let propose = |thread: &[Message]| {
                let (thread, models) = (Snapshot::new(thread.to_vec()), Models::one(&model));
                block_on(drive::propose(strategy.as_ref(), &thread, &brief, models, &mut |_, _| {}))
            };
            let Ok(first) = propose(&thread) else { continue };
            without_model += usize::from(first.calls == 0);
            let error = propose(&first.plan.after(&thread).unwrap()).unwrap_err();
            assert!(error.is_nothing_to_compact(), "{}: {error}", strategy.name());
            assert_eq!(error.calls, 0, "{}", strategy.name());
        }
    }
    assert!(without_model > 0, "every strategy called a model");
}

#[test]
fn a_user_who_asks_twice_gets_one_compaction_with_any_strategy() {
    let registry = StrategyRegistry::default();
    let mut compacted = 0;
    for thread in threads() {
        for strategy in registry.names().filter_map(|name| registry.get(name).ok()) {
            let window = ContextWindow::new(tokens(&thread) / 5 * 6);
            let model = model();
            let agent = ModelAgent::new(Arc::new(model.clone())).with_window(window);
            let journal = journal_of(&thread);
            let builder = Session::builder(agent).journal(journal).strategy(strategy.clone());
            let mut session = builder.build().unwrap();
            block_on(session.compact(None).collect::<Vec<_>>());
            if session.log().standing().count() == 0 {
                continue;
            }
            compacted += 1;
            let asked = model.requests().len();
            let events = block_on(session.compact(None).collect::<Vec<_>>());
            let is_nothing = |event| matches!(event, Ok(SessionEvent::NothingCompacted { .. }));
            assert!(events.into_iter().any(is_nothing), "{}", strategy.name());
            assert_eq!(model.requests().len(), asked, "{}", strategy.name());
        }
    }
    assert!(compacted > 0, "no thread was compacted");
}

#[test]
fn a_compactor_does_nothing_for_a_thread_that_it_has_just_compacted() {
    let registry = StrategyRegistry::default();
    for thread in threads() {
        for strategy in registry.names().filter_map(|name| registry.get(name).ok()) {
            let model = model();
            let window = ContextWindow::new(tokens(&thread) / 5 * 6);
            let mut compactor =
                Compactor::default().with_strategy(strategy.clone()).with_window(window);
            let mut messages = thread.clone();
            if block_on(compactor.compact(&mut messages, Brief::default(), &model)).is_err() {
                continue;
            }
            let asked = model.requests().len();
            let error = block_on(compactor.compact(&mut messages, Brief::default(), &model));
            let error = error.unwrap_err();
            assert!(error.is_nothing_to_compact(), "{}: {error}", strategy.name());
            assert_eq!(model.requests().len(), asked, "{}", strategy.name());
        }
    }
}
