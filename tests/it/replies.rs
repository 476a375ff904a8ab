//! The reply, the events and the thread contain the same text, for every way in which the model
//! streams it.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use futures::{
    StreamExt,
    executor::block_on,
    stream::{self, BoxStream},
};
use threadfold::{
    Answer, ContentBlock, ContextWindow, Message, Model, ModelAgent, Request, Role, Session,
    TokenCounter, async_trait,
    message::{Delta, ModelError, StopReason, ToolUse},
    session::SessionEvent,
    strategy::KeepRecent,
    tokens::ByteEstimate,
    wire::classify_error,
};

type Streamed = Vec<Result<Delta, ModelError>>;

/// Streams the given deltas, one list for each request, and records the requests.
#[derive(Debug, Default)]
struct Streams {
    streams: Mutex<VecDeque<Streamed>>,
    requests: Mutex<Vec<Request>>,
}

#[async_trait]
impl Model for Streams {
    async fn complete(&self, request: Request) -> Result<Answer, ModelError> {
        threadfold::model::answer_of(self.stream(request)).await
    }

    fn stream(&self, request: Request) -> BoxStream<'_, Result<Delta, ModelError>> {
        self.requests.lock().unwrap().push(request);
        let next = self.streams.lock().unwrap().pop_front();
        stream::iter(next.unwrap_or_else(|| vec![turn(&["Nothing more."])])).boxed()
    }
}

fn text(text: &str) -> Result<Delta, ModelError> {
    Ok(Delta::Text { text: text.into() })
}

fn turn(texts: &[&str]) -> Result<Delta, ModelError> {
    let blocks = texts.iter().map(|text| ContentBlock::text(*text)).collect();
    let turn = Answer::new(Message::new(Role::Assistant, blocks), StopReason::EndTurn, None);
    Ok(Delta::Answer { answer: turn })
}

fn session(model: &Arc<Streams>) -> Session {
    let agent = ModelAgent::new(Arc::<Streams>::clone(model));
    let keep = KeepRecent { messages: 2, ..KeepRecent::default() };
    let builder = Session::builder(agent.with_window(ContextWindow::new(50_000)));
    builder.strategy(Arc::new(keep)).build().unwrap()
}

/// The text of an answer that the events leave on a screen.
fn shown(session: &mut Session, prompt: &str) -> String {
    let mut shown = String::new();
    let mut events = session.send(prompt);
    while let Some(event) = block_on(events.next()) {
        match event.unwrap() {
            SessionEvent::TextDelta { text } => shown.push_str(&text),
            SessionEvent::AnswerDiscarded => shown.clear(),
            _ => {}
        }
    }
    shown
}

fn kinds() -> Vec<(Vec<Streamed>, &'static str)> {
    let refused = br#"{"error": {"message": "too long", "code": "context_length_exceeded"}}"#;
    let refused = || Err(classify_error(400, refused));
    let cut = || {
        let message = Message::assistant("Half of");
        Ok(Delta::Answer { answer: Answer::new(message, StopReason::ContextWindowExceeded, None) })
    };
    vec![
        (vec![vec![turn(&["Whole."])]], "Whole."),
        (vec![vec![text("In "), text("pieces."), turn(&["In pieces."])]], "In pieces."),
        (vec![vec![text("In "), turn(&["In part."])]], "In part."),
        (vec![vec![text("One."), text("Two."), turn(&["One.", "Two."])]], "One.Two."),
        (vec![vec![text("Wrong"), turn(&["Right."])]], "Right."),
        (
            vec![vec![text("Half of the ans"), refused()], vec![turn(&["The answer."])]],
            "The answer.",
        ),
        (vec![vec![cut()], vec![turn(&["All."])]], "All."),
        (vec![vec![text("Half of"), cut()], vec![text("All."), turn(&["All."])]], "All."),
    ]
}

#[test]
fn reply_events_and_thread_have_the_same_text_for_every_stream() {
    for (streams, expected) in kinds() {
        let model = Arc::new(Streams::default());
        let mut by_events = session(&model);
        // Old messages that are longer than a summary of them.
        for _ in 0..3 {
            block_on(async { by_events.send("An old question. ".repeat(20)).await }).unwrap();
        }
        *model.streams.lock().unwrap() = streams.into();
        assert_eq!(shown(&mut by_events, "And now?"), expected);
        let said: String = by_events
            .messages()
            .last()
            .unwrap()
            .content
            .iter()
            .filter_map(ContentBlock::as_text)
            .map(|text| text.as_str())
            .collect();
        assert_eq!(said, expected);
    }
    for (streams, expected) in kinds() {
        let model = Arc::new(Streams::default());
        let mut by_reply = session(&model);
        for _ in 0..3 {
            block_on(async { by_reply.send("An old question. ".repeat(20)).await }).unwrap();
        }
        *model.streams.lock().unwrap() = streams.into();
        let reply = block_on(async { by_reply.send("And now?").await }).unwrap();
        assert_eq!(reply.text, expected);
    }
}

#[test]
fn repeating_the_same_call_ends_the_turn() {
    let model = Arc::new(Streams::default());
    let call = || {
        let content = vec![
            ContentBlock::text("I look."),
            ToolUse::new("call", "", serde_json::json!({})).into(),
        ];
        let message = Message::new(Role::Assistant, content);
        vec![Ok(Delta::Answer { answer: Answer::new(message, StopReason::ToolUse, None) })]
    };
    *model.streams.lock().unwrap() = (0..100).map(|_| call()).collect();
    let reply = block_on(async { session(&model).send("Look.").await }).unwrap();
    assert!(reply.capped);
    assert_eq!(model.requests.lock().unwrap().len(), 3);
}

#[test]
fn rules_in_the_system_prompt_are_counted_before_the_request_is_sent() {
    let model = Arc::new(Streams::default());
    let window = 4_000;
    let agent = ModelAgent::new(Arc::<Streams>::clone(&model));
    let builder = Session::builder(agent.with_window(ContextWindow::new(window)));
    let mut session = builder.rules_in_system_prompt().build().unwrap();
    for part in 0..40 {
        let rules: Vec<String> = (0..10)
            .map(|rule| format!("Never touch the file src/part_{part}/unit_{rule}.rs in any way."))
            .collect();
        // If the rules alone are too long, no request is sent.
        let _ = block_on(async { session.send(rules.join(" ")).await });
    }
    let requests = model.requests.lock().unwrap();
    assert!(requests.len() > 5);
    for request in requests.iter() {
        let tokens = ByteEstimate::TRIGGER.request(request);
        assert!(tokens <= window, "{tokens}");
    }
}
