//! A turn: model, tools, model, until an answer has no calls.

use restate_sdk::prelude::*;
use serde_json::json;
use threadfold::{
    Answer, ContextWindow, Message, Request, Role,
    auto::{AutoCompactor, AutoPolicy, Input, Output, Pressure, Refusal, Threshold},
    log::LogError,
    message::{CompactionReason, InvalidValue, ToolResult, ToolSpec},
    turn::{TurnMachine, TurnStep},
};

use crate::{live::Live, steps::Steps};

const SYSTEM: &str = "You read manuals.";

/// The window of the model. A real one is larger.
pub(crate) const WINDOW: ContextWindow = ContextWindow::new(10_000);

const MAX_ROUNDS: u32 = 500;

/// A turn that has not ended.
#[derive(Debug)]
pub struct OpenTurn<'a, 'ctx> {
    pub(crate) live: Live,
    pub(crate) steps: Steps<'a, 'ctx>,
    auto: AutoCompactor,
}

impl<'a, 'ctx> OpenTurn<'a, 'ctx> {
    /// Returns a turn of this thread.
    ///
    /// # Errors
    ///
    /// [`InvalidValue`] for an invalid policy.
    pub fn new(live: Live, steps: Steps<'a, 'ctx>) -> Result<Self, InvalidValue> {
        let auto = AutoCompactor::new(AutoPolicy {
            target: Threshold::Fraction(0.3),
            estimates_usage: true,
            ..AutoPolicy::default()
        })?;
        Ok(Self { live, steps, auto })
    }

    /// Runs the turn and returns the text of its last answer.
    ///
    /// # Errors
    ///
    /// The turn was cancelled, the model refused, or the thread does not fit the window.
    pub async fn run(&mut self, text: String) -> HandlerResult<String> {
        if text.trim().is_empty() {
            return Err(TerminalError::new_with_code(400, "the text is blank").into());
        }
        self.append(Message::user(text))?;
        let (mut machine, mut last) = (TurnMachine::new(MAX_ROUNDS), String::new());
        loop {
            match machine.step() {
                TurnStep::CallModel => {
                    let answer = self.ask().await?;
                    last = answer.text();
                    self.append(answer.message.clone())?;
                    if let Some(refused) = machine.handle_answer(&answer).terminal()? {
                        self.append(refused)?;
                    }
                }
                TurnStep::CallTools(calls) => {
                    let (message, calls) = (self.live.events(), calls.to_vec());
                    for (index, call) in calls.into_iter().enumerate() {
                        let result = self.steps.call((message, index), call).await?;
                        if let Some(results) = machine.handle_result(index, result).terminal()? {
                            self.append(results)?;
                        }
                    }
                }
                TurnStep::Finished { .. } => return Ok(last),
                step => return Err(unknown(step)),
            }
        }
    }

    /// Ends the turn and returns its thread. Calls that a cancelled turn left open get a result,
    /// because providers refuse a call without one.
    ///
    /// # Errors
    ///
    /// [`LogError`], as every append.
    pub fn close(mut self) -> Result<Live, LogError> {
        let open = self.live.thread().open_calls().iter();
        let cancelled = |id| ToolResult::error(id, "Cancelled. It may have been carried out.");
        let results: Vec<_> = open.cloned().map(cancelled).map(Into::into).collect();
        if !results.is_empty() {
            self.live.append(self.steps.now(), Message::new(Role::User, results))?;
        }
        Ok(self.live)
    }

    /// Asks the model for the next answer, after compacting the thread until it fits the window.
    async fn ask(&mut self) -> HandlerResult<Answer> {
        let mut input = Input::BeforeRequest(self.pressure());
        loop {
            match self.auto.handle(self.steps.now(), input) {
                None
                | Some(
                    Output::Suspended { .. }
                    | Output::Paused { .. }
                    | Output::UnknownWindow
                    | Output::ShortAnswer { .. }
                    | Output::SendAgain,
                ) => {}
                Some(Output::Compact { reason, target, .. }) => {
                    let may_wait = reason == CompactionReason::Threshold;
                    let ended = match self.compact(reason.clone(), target).await? {
                        true => Input::Compacted { reason },
                        false => Input::Failed { reason },
                    };
                    self.auto.handle(self.steps.now(), ended);
                    if !may_wait {
                        input = Input::BeforeRequest(self.pressure());
                        continue;
                    }
                }
                Some(output) => return Err(unknown(output)),
            }
            let messages = self.live.thread().messages().clone();
            let request = Request { tools: tools().into(), ..Request::new(messages) };
            match self.steps.ask("turn", request.with_system(SYSTEM)).await? {
                Ok(mut answer) => {
                    answer.message = self.live.thread().repaired(answer.message);
                    return Ok(answer);
                }
                Err(refused) => match Refusal::of(&refused.kind) {
                    Some(refusal) => {
                        input = Input::Overflowed { pressure: self.pressure(), refusal };
                    }
                    None => return Err(refused).terminal(),
                },
            }
        }
    }

    fn pressure(&self) -> Pressure {
        let thread = self.live.thread();
        let counter = thread.counter();
        let overhead = counter.messages(&system()).saturating_add(counter.tools(&tools()));
        Pressure { window: Some(WINDOW), overhead, ..Pressure::of(thread) }
    }

    fn append(&mut self, message: Message) -> HandlerResult<()> {
        self.live.append(self.steps.now(), message).terminal()
    }
}

pub(crate) fn system() -> Vec<Message> {
    vec![Message::system(SYSTEM)]
}

pub(crate) fn tools() -> Vec<ToolSpec> {
    let schema = json!({"type": "object", "properties": {"part": {"type": "integer"}}});
    vec![ToolSpec::new("read", "Reads a part of the manual.", schema)]
}

/// The error for a step that this turn does not handle.
pub(crate) fn unknown(step: impl std::fmt::Debug) -> HandlerError {
    TerminalError::new(format!("the turn cannot go on: {step:?}")).into()
}
