//! An agent that works at random, in a small window, for many turns: tools of any size, several at a
//! time, answers that fail, summaries that are none. No request is ever too long or illegal.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU64, Ordering},
};

use futures::executor::block_on;
use serde_json::{Value, json};
use threadfold::{
    ContentBlock, ContextWindow, Message, Model, ModelAgent, Request, Role, Session, TokenCounter,
    Turn, Usage, async_trait,
    auto::{AutoPolicy, UnknownUsage},
    legality,
    message::{ModelErrorKind, StopReason, Timestamp, ToolSpec, ToolUse},
    model::{Clock, ModelError, Tool, ToolContext, ToolFailure, ToolOutput},
    session::{CompactionEvent, SessionError, SessionEvent},
    testing::WakefulSleeper,
    tokens::ByteEstimate,
};

const WINDOW: u64 = 32_000;

/// A source of numbers that is the same for the same seed: splitmix64.
#[derive(Debug)]
struct Numbers(AtomicU64);

impl Numbers {
    fn below(&self, most: u64) -> u64 {
        let step = 0x9e37_79b9_7f4a_7c15;
        let mut z = self.0.fetch_add(step, Ordering::Relaxed).wrapping_add(step);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % most
    }

    fn words(&self, most: u64) -> String {
        "some words of a text ".repeat(self.below(most).max(1) as usize)
    }
}

/// The model: an agent at work, and whoever sums up for it.
#[derive(Debug)]
struct Wild {
    numbers: Numbers,
    calls: AtomicU64,
    /// What was wrong with requests.
    faults: Mutex<Vec<String>>,
}

impl Wild {
    fn check(&self, request: &Request) {
        let tokens = ByteEstimate::TRIGGER.request(request);
        let mut faults = self.faults.lock().unwrap();
        if tokens > WINDOW {
            let (count, output) = (request.messages.len(), request.max_output);
            faults.push(format!("{tokens} tokens in {count} messages, {output:?} for the answer"));
        }
        if let Some(violation) = legality::violations(&request.messages).first() {
            faults.push(violation.to_string());
        }
    }

    fn answer(&self, request: &Request) -> Result<Turn, ModelError> {
        let failed = |kind| Err(ModelError::new(kind, "wild"));
        let usage = |message: &Message| {
            let output = ByteEstimate::TRIGGER.message(message);
            // Some providers count, some do not.
            (self.numbers.below(3) > 0)
                .then(|| Usage::new(ByteEstimate::TRIGGER.request(request), output))
        };
        let text = |text: String, stop_reason| {
            let message = Message::assistant(text);
            let usage = usage(&message);
            Ok(Turn::new(message, stop_reason, usage))
        };
        if request.max_output.is_some() {
            // Somebody wants a summary.
            return match self.numbers.below(8) {
                0 => failed(ModelErrorKind::Other),
                1 => text(" ".into(), StopReason::EndTurn),
                // As long as a provider lets it be.
                2 => text(self.numbers.words(500), StopReason::EndTurn),
                3 => text("half a".into(), StopReason::MaxTokens),
                _ => text("They worked on it.".into(), StopReason::EndTurn),
            };
        }
        match self.numbers.below(20) {
            0 => failed(ModelErrorKind::Other),
            1 => failed(ModelErrorKind::Overflow { limit: None, found: None }),
            2..6 => text(self.numbers.words(200), StopReason::EndTurn),
            _ => {
                let number = self.calls.fetch_add(1, Ordering::Relaxed);
                let count = self.numbers.below(4) + 1;
                let call = |place: u64| {
                    let size = self.numbers.below(30_000) >> self.numbers.below(12);
                    let name = if self.numbers.below(12) == 0 { "missing" } else { "write" };
                    ToolUse::new(format!("c{number}_{place}"), name, json!({ "size": size }))
                };
                let mut content = vec![ContentBlock::text(self.numbers.words(20))];
                content.extend((0..count).map(|place| ContentBlock::from(call(place))));
                let message = Message::new(Role::Assistant, content);
                let usage = usage(&message);
                Ok(Turn::new(message, StopReason::ToolUse, usage))
            }
        }
    }
}

#[async_trait]
impl Model for Wild {
    async fn complete(&self, request: Request) -> Result<Turn, ModelError> {
        self.check(&request);
        self.answer(&request)
    }
}

/// Gives as many bytes as it is asked for.
#[derive(Debug)]
struct Write;

#[async_trait]
impl Tool for Write {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new("write", "Writes.", json!({"type": "object"}))
    }

    async fn call(&self, call: &ToolUse, _: &ToolContext<'_>) -> Result<ToolOutput, ToolFailure> {
        let input: Value = call.input.json()?.to_value()?;
        let size = input["size"].as_u64().ok_or("how much?")?;
        if size % 13 == 0 {
            return Err("it failed".into());
        }
        Ok(ToolOutput::from("a line of it\n".repeat(size as usize / 13)))
    }
}

#[derive(Debug, Default)]
struct Ticking(AtomicU64);

impl Clock for Ticking {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.fetch_add(20_000, Ordering::Relaxed))
    }
}

/// Works so many turns and returns how many compactions were carried out.
fn work(seed: u64, turns: usize) -> usize {
    let model = Arc::new(Wild {
        numbers: Numbers(AtomicU64::new(seed)),
        calls: AtomicU64::default(),
        faults: Mutex::default(),
    });
    let agent = ModelAgent::new(model.clone()).with_window(ContextWindow::new(WINDOW));
    let mut session = Session::builder(agent)
        .system("Work.")
        .tool(Arc::new(Write))
        .clock(Arc::new(Ticking::default()))
        .sleeper(Arc::new(WakefulSleeper::default()))
        .seed(seed)
        .max_rounds(12)
        .policy(AutoPolicy { unknown_usage: UnknownUsage::Estimate, ..AutoPolicy::default() })
        .build()
        .unwrap();
    let mut done = 0;
    for turn in 0..turns {
        let mut open = None;
        let mut events = session.send(format!("Go on with part {turn}."));
        while let Some(event) = block_on(events.next()) {
            match event {
                Ok(SessionEvent::Compaction(event @ CompactionEvent::Started { .. })) => {
                    assert_eq!(open.replace(event.id()), None, "seed {seed}, turn {turn}");
                }
                Ok(SessionEvent::Compaction(event)) if event.is_end() => {
                    assert_eq!(open.take(), Some(event.id()), "seed {seed}, turn {turn}");
                    done += usize::from(matches!(event, CompactionEvent::Completed { .. }));
                }
                Ok(_) | Err(SessionError::Model(_) | SessionError::Compaction(_)) => {}
                Err(SessionError::CannotFit { floor, limit, tokens, tried }) => {
                    // A round of tools may be larger than the window by itself; then it says so.
                    assert!(
                        floor > limit || tried.is_some(),
                        "seed {seed}, turn {turn}: {floor} {tokens} {limit}"
                    );
                }
                Err(error) => panic!("seed {seed}, turn {turn}: {error}"),
            }
        }
        drop(events);
        assert_eq!(open, None, "seed {seed}, turn {turn}: a compaction without an end");
        let faults = std::mem::take(&mut *model.faults.lock().unwrap());
        assert_eq!(faults, Vec::<String>::new(), "seed {seed}, turn {turn}");
    }
    assert_eq!(session.log().replay().unwrap(), session.messages()[..], "seed {seed}");
    done
}

#[test]
fn no_request_is_ever_too_long_or_illegal() {
    let done: usize = (0..20).map(|seed| work(seed, 500)).sum();
    assert!(done > 500, "{done} compactions");
}
