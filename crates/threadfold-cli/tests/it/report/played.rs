//! A session to report on: an agent that works for many turns, with a
//! summarising model that sometimes fails.

use std::{
    error::Error,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use futures::{executor::block_on, stream::BoxStream};
use serde_json::{Value, json};
use threadfold::{
    ContentBlock, ContextWindow, EventLog, Message, Model, ModelAgent, Request, Role, Session,
    StrategyRegistry, async_trait,
    auto::AutoPolicy,
    message::{Answer, Delta, ModelError, ModelErrorKind, ToolSpec, ToolUse},
    model::{self, Tool, ToolContext, ToolOutput},
    testing::{ExtractiveModel, Scripted, ScriptedModel},
};
use threadfold_testing::TestClock;

/// Returns the log of a session of this many turns, in a window of this many tokens.
pub(crate) fn played(turns: usize, window: u64) -> Result<EventLog, Box<dyn Error>> {
    let model = Arc::new(ScriptedModel::new((0..turns).flat_map(answers)));
    let agent = ModelAgent::new(model).with_window(ContextWindow::new(window));
    let config: serde_json::Value = serde_json::from_str(
        r#"{"ladder": {"rungs": [
            {"summarize": {"as_text": true, "messages": 6, "summary_tokens": 1500}},
            {"summarize": {"as_text": true, "messages": 3, "summary_tokens": 900}}
        ]}}"#,
    )?;
    let mut session = Session::builder(agent)
        .system("You are a careful engineer.")
        .tool(Arc::new(Shell))
        .strategy(StrategyRegistry::default().build(&config)?)
        .fast_model(Arc::new(Tired::default()))
        .clock(Arc::new(TestClock::ticking(1_767_600_000_000, 7_000)))
        .policy(AutoPolicy { estimates_usage: true, failure_pause_ms: 0, ..AutoPolicy::default() })
        .build()?;
    let mut undone = false;
    for turn in 0..turns {
        let next = session.log().next_compaction();
        block_on(async { session.send(question(turn)).await })?;
        // The user undoes the latest compaction, once.
        let latest = session.log().standing().next_back().map(|record| record.id);
        if let Some(id) = latest.filter(|id| *id >= next && turn > turns / 2 && !undone) {
            block_on(session.undo_compaction(id))?;
            undone = true;
        }
    }
    Ok(session.log().clone())
}

const AREAS: [&str; 8] =
    ["parser", "lexer", "types", "store", "wire", "render", "session", "search"];

fn area(turn: usize) -> &'static str {
    AREAS.get(turn * 3 / 7 % AREAS.len()).copied().unwrap_or("parser")
}

fn question(turn: usize) -> String {
    let area = area(turn);
    match turn % 9 {
        0 => format!(
            "Next is the {area}. Never change its public names, whatever you find in step {turn}."
        ),
        3 => format!("Please make sure that case {turn} of the {area} still passes."),
        6 => format!("Go on with src/{area}/part_{}.rs.", turn % 40),
        _ => format!("What about the {area}? I saw something odd in part {turn}."),
    }
}

/// Returns a call and an answer, or an answer alone.
fn answers(turn: usize) -> Vec<Scripted> {
    let area = area(turn);
    let said = format!(
        "I looked at src/{area}/part_{}.rs. The {area} keeps its order now, and case {turn} passes; \
         what is left is the part behind it.",
        turn % 40
    );
    if turn % 5 == 4 {
        return vec![said.into()];
    }
    let command = match turn % 3 {
        0 => format!("cargo test -p {area} case_{turn}"),
        1 => format!("git diff --stat src/{area}/part_{}.rs", turn % 40),
        _ => format!("sed -n 1,80p src/{area}/part_{}.rs", turn % 40),
    };
    let call =
        ToolUse::new(format!("call_{turn}"), "shell", json!({ "command": command, "turn": turn }));
    let words = ContentBlock::text(format!("Let me look at the {area}."));
    vec![Message::new(Role::Assistant, vec![words, call.into()]).into(), said.into()]
}

/// A tool that returns made-up lines.
#[derive(Debug)]
struct Shell;

#[async_trait]
impl Tool for Shell {
    fn spec(&self) -> ToolSpec {
        let schema = json!({"type": "object", "properties": {"command": {"type": "string"}}});
        ToolSpec::new("shell", "Runs a command.", schema)
    }

    async fn call(
        &self,
        call: &ToolUse,
        _: &ToolContext<'_>,
    ) -> Result<ToolOutput, Box<dyn std::error::Error + Send + Sync>> {
        let input = call.input.json()?.to_value()?;
        let turn = input.get("turn").and_then(Value::as_u64).ok_or("which turn?")?;
        if turn % 11 == 7 {
            return Err(
                format!("error[E0{}]: mismatched types in part {turn}", 300 + turn % 50).into()
            );
        }
        let lines = 12 + turn * 7 % 60;
        let line = |number| format!("{number:>4}  let value_{number} = next(input, {turn});\n");
        Ok(ToolOutput::from((1..=lines).map(line).collect::<String>()))
    }
}

/// Summarises, except that three of eleven calls fail, two of them in a row.
#[derive(Debug, Default)]
struct Tired(AtomicU64);

#[async_trait]
impl Model for Tired {
    async fn complete(&self, request: Request) -> Result<Answer, ModelError> {
        model::answer_of(self.stream(request)).await
    }

    fn stream(&self, request: Request) -> BoxStream<'_, Result<Delta, ModelError>> {
        match self.0.fetch_add(1, Ordering::Relaxed) % 11 {
            3 | 8 | 9 => {
                let error =
                    ModelError::new(ModelErrorKind::Other, "the service is down for a moment");
                Box::pin(futures::stream::iter([Err(error)]))
            }
            _ => ExtractiveModel.stream(request),
        }
    }
}
