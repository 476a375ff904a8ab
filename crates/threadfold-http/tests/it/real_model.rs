//! The adapter of the example `http` and a session over it, against a real model.
//!
//! `tests/real-model.sh` starts a small one and runs this with `THREADFOLD_BASE_URL`. Any server
//! with both dialects works, such as llama.cpp's. `THREADFOLD_WINDOW` is its window in tokens.
//! Without a server the tests print that they were skipped.

use std::{
    env, iter,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use futures::{StreamExt, stream::BoxStream};
use serde_json::{Value, json};
use threadfold::{
    Answer, CompactionStrategy, Message, Model, ModelAgent, Request, Role, Session, async_trait,
    legality,
    message::{
        CompactionReason, Delta, ModelError, ModelErrorKind, StopReason, ToolChoice, ToolResult,
        ToolSpec,
    },
    model::{self, AnswerLimits},
    session::{CompactionEvent, SessionEvent},
    strategy::{Digest, Ladder, Summarize},
    wire::AnthropicVersion,
};

use threadfold_http::{Dialect, HttpModel, HttpOptions};

use crate::runtime::run;

const BOTH: [Dialect; 2] = [Dialect::Anthropic, Dialect::Compatible];

/// The server, if there is one.
struct Server {
    base_url: String,
    window: u64,
}

impl Server {
    fn here() -> Option<Self> {
        let Ok(base_url) = env::var("THREADFOLD_BASE_URL") else {
            println!("skipped: THREADFOLD_BASE_URL names no server");
            return None;
        };
        let window = env::var("THREADFOLD_WINDOW").map_or(2_048, |text| text.parse().unwrap());
        Some(Self { base_url, window })
    }

    fn model(&self, dialect: Dialect, max_output: u64) -> HttpModel {
        let base_url = match dialect {
            Dialect::Anthropic => self.base_url.clone(),
            _ => format!("{}/v1", self.base_url),
        };
        let options = HttpOptions {
            dialect,
            base_url,
            model: env::var("THREADFOLD_MODEL").unwrap_or_else(|_| "smollm2-135m-instruct".into()),
            anthropic_version: AnthropicVersion::default(),
            prefix_mismatch: None,
            window: None,
            key: None,
            max_output,
            tries: 3,
            first_wait: Duration::from_millis(200),
            max_wait: Duration::from_secs(10),
            silence: Duration::from_secs(120),
            limits: AnswerLimits::default(),
        };
        HttpModel::new(options).unwrap()
    }
}

/// A model that records its calls and its refusals.
#[derive(Clone, Debug)]
struct Watched {
    model: HttpModel,
    calls: Arc<AtomicUsize>,
    refusals: Arc<Mutex<Vec<ModelErrorKind>>>,
}

#[async_trait]
impl Model for Watched {
    async fn complete(&self, request: Request) -> Result<Answer, ModelError> {
        model::answer_of(self.stream(request)).await
    }

    fn stream(&self, request: Request) -> BoxStream<'_, Result<Delta, ModelError>> {
        let call = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        let (count, begun) = (request.messages.len(), Instant::now());
        let deltas = self.model.stream(request);
        let printed = move |delta: &Result<Delta, ModelError>| {
            let words = match delta {
                Ok(Delta::Answer { answer }) => {
                    let usage = answer.usage.unwrap_or_default();
                    let reason = &answer.stop_reason;
                    format!("{} tokens in, {} out, {reason:?}", usage.input, usage.output)
                }
                Ok(_) => return,
                Err(error) => {
                    self.refusals.lock().unwrap().push(error.kind.clone());
                    format!("refused: {error}")
                }
            };
            println!("  call {call:>2}  {count:>2} messages, {:.1?}: {words}", begun.elapsed());
        };
        deltas.inspect(printed).boxed()
    }
}

fn prose(words: usize) -> String {
    let text = "The lighthouse keeper climbs the stairs, trims the lamp and writes the weather \
        into his book before the ships come in with the evening tide. ";
    text.split_inclusive(' ').cycle().take(words).collect()
}

/// A summary by the model, and a digest if the model does not finish one in the allowed tokens: the
/// smallest models never stop.
fn strategy() -> Arc<dyn CompactionStrategy> {
    let summarize = Summarize {
        messages: 2,
        user_messages: 1,
        user_tokens: 100,
        summary_tokens: 240,
        ..Summarize::default()
    };
    let rungs: [Arc<dyn CompactionStrategy>; 2] =
        [Arc::new(summarize), Arc::new(Digest::default())];
    Arc::new(Ladder::new(rungs))
}

#[test]
fn a_chat_larger_than_the_window_is_compacted_after_a_refusal_and_continues() {
    let Some(server) = Server::here() else { return };
    for dialect in BOTH {
        println!(
            "\n{dialect:?}: a chat in {} tokens, which the session does not know",
            server.window
        );
        let (calls, refusals) = <(Arc<AtomicUsize>, Arc<Mutex<Vec<_>>>)>::default();
        let model = server.model(dialect, 48);
        let watched = Watched { model, calls, refusals: Arc::clone(&refusals) };
        // Without a window, the session learns of the limit from the provider's refusal.
        let agent = ModelAgent::new(Arc::new(watched));
        let mut session = Session::builder(agent)
            .system("You answer in one sentence.")
            .strategy(strategy())
            .build()
            .unwrap();
        let mut rounds_since = None;
        // The second text exceeds the window. The later ones are short, because reading takes long.
        for (round, words) in (1..=8).zip([1_200, 500].into_iter().chain(iter::repeat(60))) {
            let text = format!("Note {round}: {}\nWhat does the keeper do?", prose(words));
            let (answer, compacted) = say(&mut session, &text);
            assert!(!answer.trim().is_empty(), "round {round} has no answer");
            assert_eq!(legality::violations(session.messages()), []);
            rounds_since = rounds_since.map(|rounds| rounds + 1).or(compacted.then_some(0));
            if rounds_since == Some(1) {
                break;
            }
        }
        assert_eq!(rounds_since, Some(1), "nothing was compacted because of an overflow");
        let refusals = refusals.lock().unwrap();
        let stated = |kind: &&ModelErrorKind| matches!(kind, ModelErrorKind::Overflow { limit: Some(limit), .. } if *limit == server.window);
        assert!(refusals.iter().filter(stated).count() >= 1, "{refusals:?}");
        assert!(session.log().standing().count() >= 1);
        for rung in session.log().standing().flat_map(|compacted| &compacted.rungs) {
            let failure = rung.failure.as_ref().map_or("accepted", |failure| failure.as_str());
            println!("  rung {}: {failure:.120}", rung.strategy.as_str());
        }
        println!(
            "  {} messages in the thread, {} events in the log",
            session.messages().len(),
            session.log().len()
        );
    }
}

/// Sends a text, and returns the answer and whether an overflow caused a compaction before it.
fn say(session: &mut Session, text: &str) -> (String, bool) {
    let (mut answer, mut summary) = (String::new(), String::new());
    let (mut compacted, mut overflow) = (false, false);
    run(async {
        let mut events = session.send(text);
        while let Some(event) = events.next().await {
            match event.unwrap() {
                SessionEvent::TextDelta { text } => answer.push_str(&text),
                SessionEvent::Compaction(CompactionEvent::Started { reason, .. }) => {
                    overflow = reason == CompactionReason::Overflow;
                    println!("  compaction, because of {}", reason.as_str());
                }
                SessionEvent::Compaction(CompactionEvent::Completed { report, .. }) => {
                    compacted |= overflow;
                    println!("  {report}");
                    println!("  summary: {:.160}", summary.trim().replace('\n', " "));
                }
                SessionEvent::Compaction(CompactionEvent::SummaryDelta { text, .. }) => {
                    summary.push_str(&text);
                }
                SessionEvent::Compaction(CompactionEvent::Failed { error, .. }) => {
                    println!("  failed: {error}");
                }
                _ => {}
            }
        }
    });
    println!("  assistant: {:.90}", answer.trim().replace('\n', " "));
    (answer, compacted)
}

#[test]
fn an_overflow_has_the_numbers_of_the_provider() {
    let Some(server) = Server::here() else { return };
    for dialect in BOTH {
        let request = Request::new(vec![Message::user(prose(server.window as usize))]);
        let error = run(server.model(dialect, 32).complete(request)).unwrap_err();
        println!("{dialect:?}: {error}");
        let ModelErrorKind::Overflow { limit, found: Some(found), .. } = error.kind else {
            panic!("{error:?}")
        };
        assert_eq!(limit, Some(server.window));
        assert!(found > server.window, "{error}");
    }
}

#[test]
fn a_session_continues_after_a_dropped_answer() {
    let Some(server) = Server::here() else { return };
    for dialect in BOTH {
        let agent = ModelAgent::new(Arc::new(server.model(dialect, 120)));
        let mut session = Session::builder(agent).build().unwrap();
        let pieces = run(async {
            let mut events = session.send("Tell me a long story about a lighthouse.");
            let mut pieces = Vec::new();
            while let Some(event) = events.next().await {
                if let SessionEvent::TextDelta { text } = event.unwrap() {
                    pieces.push(text);
                }
                if pieces.len() == 5 {
                    break;
                }
            }
            pieces
        });
        assert_eq!(pieces.len(), 5, "the answer came in one piece");
        assert_eq!(session.messages().len(), 1, "half an answer is in the thread");
        let (answer, _) = say(&mut session, "Stop. What is two and two?");
        assert!(!answer.trim().is_empty());
        assert_eq!(legality::violations(session.messages()), []);
    }
}

#[test]
fn a_required_tool_is_called_and_its_result_used() {
    let Some(server) = Server::here() else { return };
    for dialect in BOTH {
        let model = server.model(dialect, 64);
        let schema = json!({"type": "object", "properties": {
            "city": {"type": "string", "enum": ["Kemnay", "Aberdeen"]}}, "required": ["city"]});
        let ask = Request {
            tools: vec![ToolSpec::new("weather", "Says the weather of a city.", schema)].into(),
            tool_choice: Some(ToolChoice::Tool("weather".into())),
            ..Request::new(vec![Message::user("What is the weather in Aberdeen?")])
        };
        let answer = run(model.complete(ask.clone())).unwrap();
        let call = answer.message.tool_uses().next().expect("a call").clone();
        let input = call.input.json().unwrap().to_value().unwrap();
        println!("{dialect:?}: {} {input}", call.name.as_str());
        assert_eq!((call.name.as_str(), &answer.stop_reason), ("weather", &StopReason::ToolUse));
        assert!(["Kemnay", "Aberdeen"].contains(&input["city"].as_str().unwrap_or_default()));
        assert!(matches!(input, Value::Object(_)));

        let result = ToolResult::text(call.id, "Rain.");
        let mut messages = ask.messages.to_vec();
        messages.extend([answer.message, Message::new(Role::User, vec![result.into()])]);
        let answer =
            run(model.complete(Request { tool_choice: None, messages: messages.into(), ..ask }))
                .unwrap();
        println!("{dialect:?}: {}", answer.text());
        assert!(!answer.text().trim().is_empty());
    }
}
