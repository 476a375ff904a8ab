//! A session over a scripted model and a store in memory, with a clock that ticks and two tools.

use std::sync::Arc;

use futures::executor::block_on;
use serde_json::json;
use threadfold::{
    ContentBlock, ContextWindow, Message, ModelAgent, Request, Role, async_trait,
    auto::AutoPolicy,
    legality,
    log::{Event, EventLog},
    message::{Json, Text, Timestamp, ToolSpec, ToolUse},
    model::{Tool, ToolContext, ToolOutput},
    session::{CompactionEvent, Reply, Session, SessionBuilder, SessionError, SessionEvent},
    store::{Journal, MemoryStore, ThreadStore},
    testing::{Scripted, ScriptedModel},
};
use threadfold_testing::TestClock;

use super::polls::pending_once;

/// A tool that returns its input, after being pending this often.
#[derive(Debug)]
pub(crate) struct Echo {
    pub(crate) name: &'static str,
    pub(crate) polls: usize,
}

#[async_trait]
impl Tool for Echo {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new(self.name, "Says what it was given.", json!({"type": "object"}))
    }

    async fn call(
        &self,
        call: &ToolUse,
        _: &ToolContext<'_>,
    ) -> Result<ToolOutput, Box<dyn std::error::Error + Send + Sync>> {
        for _ in 0..self.polls {
            pending_once().await;
        }
        if call.input.as_str().contains("fail") {
            return Err("it failed as asked".into());
        }
        Ok(ToolOutput::from(format!("{} {}", self.name, call.input.as_str())))
    }
}

pub(crate) struct Bench {
    pub(crate) session: Session,
    pub(crate) model: ScriptedModel,
    pub(crate) store: Arc<MemoryStore>,
}

pub(crate) const THREAD: &str = "thread-1";

pub(crate) fn bench<A: Into<Scripted>>(
    script: impl IntoIterator<Item = A>,
    build: impl FnOnce(SessionBuilder) -> SessionBuilder,
) -> Bench {
    within(200_000, script, build)
}

pub(crate) fn within<A: Into<Scripted>>(
    window: u64,
    script: impl IntoIterator<Item = A>,
    build: impl FnOnce(SessionBuilder) -> SessionBuilder,
) -> Bench {
    let (model, store) = (ScriptedModel::new(script), Arc::new(MemoryStore::default()));
    let agent = ModelAgent::new(Arc::new(model.clone())).with_window(ContextWindow::new(window));
    let journal = block_on(Journal::open(store.clone(), THREAD.parse().unwrap())).unwrap();
    let builder = Session::builder(agent)
        .checkpoints()
        .journal(journal)
        .clock(Arc::new(TestClock::ticking(0, 1_000)))
        .tool(Arc::new(Echo { name: "slow", polls: 3 }))
        .tool(Arc::new(Echo { name: "quick", polls: 0 }));
    Bench { session: build(builder).build().unwrap(), model, store }
}

pub(crate) fn calls(calls: &[(&str, &str, &str)]) -> Message {
    let call = |(id, name, input): &(&str, &str, &str)| {
        ContentBlock::from(ToolUse::new(*id, *name, Json::parse(input).unwrap()))
    };
    Message::new(Role::Assistant, calls.iter().map(call).collect())
}

/// Sends a text and returns the reply.
pub(crate) fn say(session: &mut Session, text: impl Into<Text>) -> Result<Reply, SessionError> {
    block_on(session.send(text).into_future())
}

/// Sends a text and returns all events.
pub(crate) fn events(session: &mut Session, text: &str) -> Vec<Result<SessionEvent, SessionError>> {
    let mut stream = session.send(text);
    let mut events = Vec::new();
    while let Some(event) = block_on(stream.next()) {
        events.push(event);
    }
    events
}

pub(crate) fn compactions(events: &[Result<SessionEvent, SessionError>]) -> Vec<CompactionEvent> {
    let compaction = |event: &Result<SessionEvent, SessionError>| match event {
        Ok(SessionEvent::Compaction(event)) => Some(event.clone()),
        _ => None,
    };
    events.iter().filter_map(compaction).collect()
}

impl Bench {
    /// Builds the session anew over a log of these messages.
    pub(crate) fn begin_with(&mut self, thread: &[Message]) {
        let mut log = EventLog::new(THREAD.parse().unwrap());
        for message in thread {
            log.append(Timestamp(0), Event::MessageAppended(message.clone())).unwrap();
        }
        let journal = Journal::new(log).kept_by(self.store.clone());
        let builder = block_on(self.session.fork_before(THREAD.parse().unwrap(), 0)).unwrap();
        self.session = builder.journal(journal).build().unwrap();
    }

    /// Checks that thread, log and store agree, and that the thread is legal.
    pub(crate) fn assert_whole(&self) {
        let (log, messages) = (self.session.log(), self.session.messages());
        assert!(log.events().is_sorted_by_key(|logged| logged.at), "the times of events ascend");
        assert_eq!(log.replay(), messages[..]);
        let stored = block_on(self.store.load(&THREAD.parse().unwrap())).unwrap().log;
        assert_eq!(stored, *block_on(self.session.whole_log()).unwrap());
        for request in self.model.requests() {
            assert_eq!(legality::violations(&request.messages), []);
        }
    }

    pub(crate) fn last_request(&self) -> Request {
        self.model.requests().pop().unwrap()
    }

    pub(crate) fn last_sent(&self) -> String {
        serde_json::to_string(&self.last_request().messages).unwrap()
    }
}

/// A session sets no output limit for its agent, but a strategy does.
pub(crate) fn wants_summary(request: &Request) -> bool {
    request.max_output.is_some()
}

/// Uses estimates without a reported count, so that the trigger also works before the first answer.
pub(crate) fn policy() -> AutoPolicy {
    AutoPolicy { estimates_usage: true, ..AutoPolicy::default() }
}
