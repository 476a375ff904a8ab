//! Providers whose windows are not what the session assumes, and that refuse requests which fit:
//! one request is sent at most three times, and what did not help is taken back.

use std::sync::{Arc, Mutex};

use futures::executor::block_on;
use threadfold::{
    Answer, ContextWindow, Message, Model, ModelAgent, Request, Session, TokenCounter, Usage,
    async_trait,
    auto::MAX_SENDS,
    message::{ModelError, ModelErrorKind, StopReason, ToolUse},
    session::SessionError,
    strategy::Digest,
    tokens::ByteEstimate,
};
use threadfold_testing::shared::splitmix64;

use super::provider::{Read, lines};

const RUNS: u64 = 60;
const TURNS: u64 = 12;

/// A provider with a window, with or without the rule that prompt and `max_output` together must
/// fit, that sometimes lies.
#[derive(Debug)]
struct Provider {
    window: u64,
    sum_rule: bool,
    states: bool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    chance: Chance,
    /// How many of the next requests are refused although they may fit.
    lies: u64,
    /// The requests since the last answer.
    sent: Vec<Request>,
    /// The largest number of requests before an answer or an error.
    most: usize,
    refusals: u64,
    calls_tool: bool,
}

#[derive(Debug, Default)]
struct Chance(u64);

impl Chance {
    /// A number from 0 to `below` - 1.
    fn below(&mut self, below: u64) -> u64 {
        splitmix64(&mut self.0) % below
    }
}

fn overflow(limit: Option<u64>, found: Option<u64>, output: Option<u64>) -> ModelError {
    ModelError::new(ModelErrorKind::Overflow { limit, found, output }, "too long")
}

#[async_trait]
impl Model for Provider {
    async fn complete(&self, request: Request) -> Result<Answer, ModelError> {
        let mut state = self.state.lock().unwrap();
        let tokens = ByteEstimate::TRIGGER.request(&request);
        let output = request.max_output.unwrap_or(0);
        state.sent.push(request.clone());
        state.most = state.most.max(state.sent.len());
        assert!(state.sent.len() < 20, "it is sent without end");
        if state.lies > 0 {
            state.lies -= 1;
            state.refusals += 1;
            let limit = match state.chance.below(3) {
                0 => None,
                1 => Some(1 + state.chance.below(tokens.max(1))),
                _ => Some(tokens * 2),
            };
            return Err(overflow(limit, None, None));
        }
        if self.sum_rule && tokens + output > self.window {
            state.refusals += 1;
            return Err(overflow(Some(self.window), Some(tokens), Some(output)));
        }
        if tokens > self.window {
            state.refusals += 1;
            let stated = self.states.then_some(self.window);
            return Err(overflow(stated, stated.map(|_| tokens), None));
        }
        state.sent.clear();
        let usage = Some(Usage::new(tokens, 50));
        if std::mem::take(&mut state.calls_tool) {
            let call = ToolUse::new(format!("c{}", state.chance.0), "read", serde_json::json!({}));
            let answer = Message::new(threadfold::Role::Assistant, vec![call.into()]);
            return Ok(Answer::new(answer, StopReason::ToolUse, usage));
        }
        let answer = Message::assistant(lines(state.chance.below(self.window / 5) + 10));
        Ok(Answer::new(answer, StopReason::EndTurn, usage))
    }
}

#[test]
fn refused_requests_are_sent_three_times_at_most_and_what_did_not_help_is_taken_back() {
    let (mut lies, mut errors, mut taken_back, mut compactions) = (0, 0, 0, 0);
    for seed in 0..RUNS {
        let mut chance = Chance(seed);
        let window = [3_000, 6_000, 12_000][chance.below(3) as usize];
        let provider = Arc::new(Provider {
            window,
            sum_rule: chance.below(2) == 0,
            states: chance.below(4) > 0,
            state: Mutex::new(State { chance: Chance(seed + 1), ..State::default() }),
        });
        let assumed = [None, Some(window / 2), Some(window), Some(window * 4)];
        let assumed = assumed[chance.below(4) as usize].map(ContextWindow::new);
        let reserve = window * (1 + chance.below(150)) / 100;
        let agent = ModelAgent::new(Arc::<Provider>::clone(&provider));
        let agent = match assumed {
            Some(window) => agent.with_window(window),
            None => agent,
        };
        let result = window * (1 + chance.below(30)) / 10;
        let mut session = Session::builder(agent)
            .system("Be brief.")
            .strategy(Arc::new(Digest::default()))
            .max_output(reserve)
            .tool(Arc::new(Read(result)))
            .build()
            .unwrap();
        for turn in 0..TURNS {
            let lying = if chance.below(3) == 0 { 1 + chance.below(5) } else { 0 };
            {
                let mut state = provider.state.lock().unwrap();
                (state.lies, state.calls_tool) = (lying, chance.below(3) == 0);
                state.sent.clear();
                lies += lying;
            }
            let typed = format!("Turn {turn}. {}", lines(chance.below(window / 4) + 10));
            let sent = block_on(async { session.send(typed.clone()).await });
            let state = provider.state.lock().unwrap();
            assert!(
                state.most <= MAX_SENDS as usize,
                "{seed}, turn {turn}: {} requests",
                state.most
            );
            match sent {
                Ok(_) => {}
                Err(SessionError::Model(error)) if error.is_overflow() => {
                    errors += 1;
                    let first = &state.sent[0];
                    taken_back += usize::from(state.sent.len() > 1);
                    let is_typed = |message: &&Message| message.is_typed();
                    let prompts = first.messages.iter().rev().take_while(is_typed).count();
                    let before = &first.messages[..first.messages.len() - prompts];
                    assert_eq!(
                        session.messages()[..],
                        *before,
                        "{seed}, turn {turn}: the thread is as it was before the turn"
                    );
                }
                Err(SessionError::CannotFit { .. }) => errors += 1,
                Err(error) => panic!("{seed}, turn {turn}: {error}"),
            }
            let is_kept = |message: &Message| message.texts().any(|text| text.contains(&typed));
            if session.handle().is_text_in_thread() {
                let kept = session.messages().iter().any(is_kept);
                assert!(kept || session.messages().last().is_some_and(|m| !m.is_typed()));
            }
        }
        compactions += session.log().standing().count();
    }
    println!("{lies} lies, {errors} errors, {taken_back} taken back, {compactions} compactions");
    assert!(lies > 400 && taken_back > 20 && compactions > 50);
}

#[test]
fn one_passing_refusal_leaves_half_of_the_thread() {
    for size in [8_000, 20_000, 42_000] {
        let provider = Arc::new(Provider {
            window: 100_000,
            sum_rule: false,
            states: false,
            state: Mutex::new(State::default()),
        });
        let agent = ModelAgent::new(Arc::<Provider>::clone(&provider));
        let agent = agent.with_window(ContextWindow::new(100_000));
        let builder = Session::builder(agent).strategy(Arc::new(Digest::default()));
        let mut session = builder.build().unwrap();
        for turn in 0..4 {
            let typed = format!("Turn {turn}. {}", lines(size / 8));
            block_on(async { session.send(typed).await }).unwrap();
        }
        let before = ByteEstimate::TRIGGER.messages(session.messages());
        provider.state.lock().unwrap().lies = 1;
        block_on(async { session.send("And now?").await }).unwrap();
        let after = ByteEstimate::TRIGGER.messages(session.messages());
        assert!(after >= before / 4, "{before} to {after}");
        {
            let mut state = provider.state.lock().unwrap();
            (state.lies, state.sent) = (9, Vec::new());
        }
        block_on(async { session.send("And then?").await }).unwrap_err();
        let first = provider.state.lock().unwrap().sent[0].messages.clone();
        let (prompt, before) = first.split_last().unwrap();
        assert_eq!(session.messages()[..], *before, "all is taken back");
        assert!(prompt.is_typed() && !session.handle().is_text_in_thread());
    }
}
