//! A conversation of many turns, which goes on whatever the server does.

use std::{
    error::Error,
    sync::{Arc, Mutex},
};

use futures::executor::block_on;
use serde_json::json;
use threadfold::{
    ContextWindow, ModelAgent, Session, async_trait,
    message::{ToolSpec, ToolUse},
    model::{Tool, ToolContext, ToolOutput, std_clock},
    session::SessionError,
};

use super::{adapter::Ollama, server::Server};

pub(crate) use super::server::Seen;

/// The rule that the user types once, and the rule of the host.
pub(crate) const RULES: [&str; 2] = ["Never touch the lexer.", "Answer in one sentence."];

/// A tool that returns made-up files.
#[derive(Debug)]
struct Read;

#[async_trait]
impl Tool for Read {
    fn spec(&self) -> ToolSpec {
        let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
        ToolSpec::new("read", "Reads a file.", schema)
    }

    async fn call(
        &self,
        call: &ToolUse,
        _: &ToolContext<'_>,
    ) -> Result<ToolOutput, Box<dyn Error + Send + Sync>> {
        let input = call.input.as_str();
        let line = |number| format!("// {input} line {number}: fn part_{number}() {{ todo() }}\n");
        Ok(ToolOutput::from((1..=24).map(line).collect::<String>()))
    }
}

/// Asks this many questions, with this window as the host's idea of it, and returns the session.
pub(crate) fn talk(
    server: &Arc<Server>,
    window: ContextWindow,
    turns: usize,
) -> Result<Session, Box<dyn Error>> {
    let model = Ollama {
        client: Arc::clone(server) as _,
        clock: Arc::new(std_clock()),
        window,
        answered: Mutex::default(),
    };
    let mut session = Session::builder(ModelAgent::new(Arc::new(model)))
        .system("You are a careful engineer.")
        .rule(RULES[1])
        .rules_in_system_prompt()
        .tool(Arc::new(Read))
        .max_output(600)
        .build()?;
    for turn in 0..turns {
        let first = if turn == 0 { RULES[0] } else { "" };
        let prompt = format!("{first} What does src/part_{turn}.rs say?");
        let mut reply = block_on(async { session.send(prompt.trim_start()).await });
        for _ in 0..5 {
            match reply {
                Err(SessionError::Model(error)) if error.is_retryable() => {
                    reply = block_on(async { session.continue_turn().await });
                }
                _ => break,
            }
        }
        reply?;
    }
    Ok(session)
}
