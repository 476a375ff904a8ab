//! Compactions that other threads prepare while the session goes on, and that it adopts if the
//! messages that they were prepared for are still there.

use std::sync::Arc;

use shuttle::{future::block_on, sync::mpsc, thread};
use threadfold::{
    CompactionStrategy, Message, ModelAgent, Plan, Role, Session, async_trait,
    compact::Splice,
    drive::PreparedCompaction,
    message::Summary,
    session::{CompactionEvent, SessionEvent},
    strategy::{Ask, KeepRecent, Proposal, StrategyError, Summarize, View},
    testing::ScriptedModel,
};

use crate::{every_order, many_orders};

/// A session after two turns, with a strategy that asks the model or one that does not.
fn session(strategy: Arc<dyn CompactionStrategy>) -> Session {
    let answer = "It reads one line after the other, and keeps what it cannot read. ".repeat(4);
    let model = Arc::new(ScriptedModel::repeating([answer.as_str()]));
    let builder = Session::builder(ModelAgent::new(model)).strategy(strategy);
    let mut session = builder.build().unwrap();
    for turn in 0..2 {
        block_on(async { session.send(format!("What does part {turn} do?")).await }).unwrap();
    }
    session
}

fn keeping() -> Arc<dyn CompactionStrategy> {
    Arc::new(KeepRecent { messages: 2, ..KeepRecent::default() })
}

fn summarizing() -> Arc<dyn CompactionStrategy> {
    Arc::new(Summarize { messages: 2, ..Summarize::default() })
}

/// Adopts a compaction that was prepared for these messages, and checks that it is refused exactly if
/// they are no longer the beginning of the thread.
fn adopt(session: &mut Session, prepared: PreparedCompaction, messages: &[Message]) {
    let before = Arc::clone(session.messages());
    let is_unchanged = before.starts_with(messages);
    let is_prepared = prepared.outcome().is_ok();
    let adopted = block_on(session.adopt(prepared));
    match adopted {
        Ok(record) => {
            assert!(is_unchanged, "adopted over a changed thread");
            assert_eq!(session.messages().len(), record.plan.messages_after());
            // What was appended since is as it was.
            let since = before.get(messages.len()..).unwrap();
            let same = since.iter().rev().zip(session.messages().iter().rev());
            assert!(
                same.clone().count() == since.len()
                    && same.clone().all(|(one, other)| one == other)
            );
        }
        Err(error) => {
            assert!(Arc::ptr_eq(session.messages(), &before), "a refusal changed the thread");
            assert!(!is_prepared || !is_unchanged, "{error}");
            let is_stale = error.to_string().contains("was rewritten from message");
            assert!(!is_prepared || is_stale, "{error}");
        }
    }
    assert_eq!(session.log().replay(), **session.messages());
}

/// What the session does while another thread prepares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meanwhile {
    Appends,
    Compacts,
    /// Its first message stays as it is.
    RewritesTheMiddle,
}

/// Summarises the second message.
#[derive(Debug)]
struct Second;

#[async_trait]
impl CompactionStrategy for Second {
    fn name(&self) -> &str {
        "second"
    }

    async fn propose(&self, view: &View, _: &mut Ask<'_>) -> Result<Proposal, StrategyError> {
        let summary = Message::summary(Role::Assistant, Summary::new("It reads lines."));
        let insert = vec![summary.into()];
        let len = view.thread.messages().len();
        Ok(Proposal::new(Plan::from_splices(len, vec![Splice { at: 1..2, insert }])))
    }
}

#[test]
fn a_compaction_is_adopted_if_its_messages_are_there() {
    for meanwhile in [Meanwhile::Appends, Meanwhile::Compacts, Meanwhile::RewritesTheMiddle] {
        every_order(move || {
            let mut session = session(keeping());
            let messages = Arc::clone(session.messages());
            let job = session.prepare_compaction();
            let job = thread::spawn(move || block_on(job));
            block_on(async { session.send("And the last part?").await }).unwrap();
            match meanwhile {
                Meanwhile::Appends => {}
                Meanwhile::Compacts => {
                    block_on(async { session.send("/compact").await }).unwrap();
                }
                Meanwhile::RewritesTheMiddle => {
                    block_on(async { session.compact_with(Arc::new(Second), None).await }).unwrap();
                    assert_eq!(session.messages()[0], messages[0]);
                    assert_ne!(session.messages()[1], messages[1]);
                }
            }
            adopt(&mut session, job.join().unwrap(), &messages);
        });
    }
}

#[test]
fn of_two_compactions_the_first_one_that_is_ready_is_adopted() {
    many_orders(|| {
        let mut session = session(summarizing());
        let messages = Arc::clone(session.messages());
        let (done, ready) = mpsc::channel();
        for job in [session.prepare_compaction(), session.prepare_compaction()] {
            let done = done.clone();
            thread::spawn(move || done.send(block_on(job)).unwrap());
        }
        drop(done);
        let mut adopted = 0;
        for text in ["And the last part?", "/compact"] {
            while let Ok(prepared) = ready.try_recv() {
                adopt(&mut session, prepared, &messages);
                adopted += 1;
            }
            block_on(async { session.send(text).await }).unwrap();
        }
        for prepared in ready {
            adopt(&mut session, prepared, &messages);
            adopted += 1;
        }
        assert_eq!(adopted, 2);
        // Each compaction has one start and one end, and the session goes on.
        block_on(async { session.send("Thank you.").await }).unwrap();
        let events = session.handle().recent_events();
        let compactions = events.iter().filter_map(|event| match event {
            SessionEvent::Compaction(event) => Some(event),
            _ => None,
        });
        let mut open = None;
        for event in compactions {
            match event {
                CompactionEvent::Started { id, .. } => assert_eq!(open.replace(*id), None),
                event if event.is_end() => assert_eq!(open.take(), Some(event.id())),
                event => assert_eq!(open, Some(event.id())),
            }
        }
        assert_eq!(open, None);
    });
}

#[test]
fn a_text_that_is_queued_while_a_compaction_is_adopted_is_not_lost() {
    every_order(|| {
        let mut session = session(keeping());
        let messages = Arc::clone(session.messages());
        let (job, host) = (session.prepare_compaction(), session.handle());
        let queue = thread::spawn(move || host.queue("And the last part?"));
        let prepared = block_on(job);
        adopt(&mut session, prepared, &messages);
        assert!(!queue.join().unwrap(), "no turn is running");
        block_on(async { session.run_queued().await }).unwrap();
        let is_there =
            |message: &Message| message.texts().any(|text| *text == "And the last part?");
        assert!(session.messages().iter().any(is_there));
    });
}
