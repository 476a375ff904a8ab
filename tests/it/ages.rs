//! What a turn costs at any age of its session, counted in steps of reading.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use futures::executor::block_on;
use threadfold::{
    Answer, ContentBlock, ContextWindow, Message, ModelAgent, Request, Role, Session, Usage,
    async_trait,
    message::{Json, StopReason, ToolSpec, ToolUse, steps::steps},
    model::{Model, ModelError, Tool, ToolContext, ToolOutput},
};

/// Answers every prompt with a call, and everything else with a text.
#[derive(Debug, Default)]
struct Caller(AtomicUsize);

#[async_trait]
impl Model for Caller {
    async fn complete(&self, request: Request) -> Result<Answer, ModelError> {
        let number = self.0.fetch_add(1, Ordering::Relaxed);
        let usage = Some(Usage::new(0, 10));
        let said = format!("I look at src/part_{number}.rs, where step_{number} fails.");
        let prompt = request.messages.last().and_then(|last| last.texts().next());
        if prompt.is_none_or(|text| !text.starts_with("Turn ")) {
            return Ok(Answer::new(Message::assistant(said), StopReason::EndTurn, usage));
        }
        let input = Json::parse(&format!("{{\"path\":\"src/part_{number}.rs\"}}")).expect("JSON");
        let call = ToolUse::new(format!("t{number}"), "read", input);
        let content = vec![ContentBlock::text(said), call.into()];
        Ok(Answer::new(Message::new(Role::Assistant, content), StopReason::ToolUse, usage))
    }
}

/// Returns lines of a file with names that no other call returned.
#[derive(Debug)]
struct Read;

#[async_trait]
impl Tool for Read {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new("read", "Reads a file.", Json::default())
    }

    async fn call(
        &self,
        call: &ToolUse,
        _: &ToolContext<'_>,
    ) -> Result<ToolOutput, Box<dyn std::error::Error + Send + Sync>> {
        let line = |line: usize| format!("{line}: let value_{}_{line} = parse();\n", call.id);
        Ok(ToolOutput::from((0..40).map(line).collect::<String>()))
    }
}

#[test]
fn a_turn_costs_the_same_at_any_age_of_its_session() {
    const TURNS: usize = 800;
    const PART: usize = 200;
    let agent = ModelAgent::new(Arc::new(Caller::default())).with_window(ContextWindow::new(6_000));
    let mut session = Session::builder(agent).tool(Arc::new(Read)).build().expect("a session");
    let mut turn = |number: usize| {
        let text = format!(
            "Turn {number}. The limit of shelf {number} is {} boxes. Look at src/shelf_{number}.rs.",
            number * 7
        );
        steps(u64::MAX, || drop(block_on(session.send(text.as_str()).into_future())))
    };
    let costs: Vec<u64> = (0..TURNS).map(&mut turn).collect();
    let parts: Vec<u64> = costs.chunks(PART).map(|part| part.iter().sum()).collect();
    let compactions = session.log().standing().count();
    assert!(compactions > TURNS / 10, "{compactions} compactions are too few to tell");
    // The first part fills what the session may know of the past.
    let (young, old) = (parts[1], parts[3]);
    assert!(
        old <= young * 6 / 5,
        "{parts:?} steps in {PART} turns each, {compactions} compactions"
    );
}
