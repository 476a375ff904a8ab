//! The agent loop as a state machine: model, tools, model, until the turn is over.
//!
//! [`TurnMachine`] calls neither models nor tools. It takes the answers of the model and the
//! results of the calls, in any order, and returns the next step. Every call gets exactly one
//! result, in the order of the calls, in one user message, so no turn ends with an open call.
//!
//! ```
//! use threadfold::{Message, Role, message::{Json, StopReason, ToolResult, ToolUse, Answer}};
//! use threadfold::turn::{TurnMachine, TurnStep};
//!
//! let mut turn = TurnMachine::new(8);
//! assert_eq!(turn.step(), TurnStep::CallModel);
//! let call = ToolUse::new("t1", "read", Json::parse("{}")?);
//! let answer = Message::new(Role::Assistant, vec![call.into()]);
//! turn.handle_answer(&Answer::new(answer, StopReason::ToolUse, None))?;
//! assert!(matches!(turn.step(), TurnStep::CallTools(calls) if calls.len() == 1));
//! let results = turn.handle_result(0, ToolResult::text("t1", "hello"))?;
//! assert!(results.is_some());
//! assert_eq!(turn.step(), TurnStep::CallModel);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::message::{
    Answer, ContentBlock, InvalidValue, Message, Role, StopReason, ToolResult, ToolUse,
};

/// The result of a call in the last answer that `max_rounds` allows; the call does not run.
const NO_ROUND: &str = "Not executed: this turn reached its maximum number of rounds.";

/// The number of consecutive rounds with equal calls and equal errors after which the turn ends.
const MAX_REPEATS: u32 = 3;

/// The result of a call in an incomplete answer; the call does not run.
const NOT_MEANT: &str = "Not executed: the answer that contains this call is incomplete.";

/// One turn of an agent: from a user message to the first answer without tool calls.
///
/// ```
/// use threadfold::{Message, Role, message::{StopReason, ToolUse, Answer}};
/// use threadfold::turn::{TurnMachine, TurnStep};
///
/// // A model that never stops calling tools is stopped, and its last call still gets a result.
/// let call = ToolUse::new("t1", "read", serde_json::json!({}));
/// let answer = Message::new(Role::Assistant, vec![call.into()]);
/// let mut turn = TurnMachine::new(1);
/// let refused = turn.handle_answer(&Answer::new(answer, StopReason::ToolUse, None))?;
/// assert!(refused.is_some_and(|message| message.tool_results().all(|result| result.is_error)));
/// assert!(matches!(turn.step(), TurnStep::Finished { capped: true, .. }));
/// # Ok::<(), threadfold::message::InvalidValue>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnMachine {
    rounds: u32,
    max_rounds: u32,
    /// The last round, if all of its calls failed.
    failed: Option<FailedRound>,
    state: State,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct FailedRound {
    calls: Vec<ToolUse>,
    results: Vec<ToolResult>,
    /// The number of consecutive rounds with these calls and errors.
    repeats: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Model,
    Tools { calls: Vec<ToolUse>, results: Vec<Option<ToolResult>> },
    Finished { stop_reason: StopReason, capped: bool },
}

/// The next step of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TurnStep<'a> {
    /// Send a request to the model.
    CallModel,
    /// Run these calls, concurrently or one by one.
    CallTools(&'a [ToolUse]),
    /// The turn is over.
    Finished {
        /// Why the model stopped.
        stop_reason: &'a StopReason,
        /// The number of answers.
        rounds: u32,
        /// Whether the turn was ended early: at `max_rounds`, or after three consecutive rounds
        /// with equal calls and equal errors.
        capped: bool,
    },
}

impl TurnMachine {
    /// Returns a turn that begins with a request to the model and has at most `max_rounds` answers.
    /// Zero counts as one.
    #[must_use]
    pub fn new(max_rounds: u32) -> Self {
        Self { rounds: 0, max_rounds: max_rounds.max(1), failed: None, state: State::Model }
    }

    /// Returns the next step. It does not change the machine.
    ///
    /// ```
    /// use threadfold::{Message, message::{StopReason, Answer}, turn::{TurnMachine, TurnStep}};
    ///
    /// let mut turn = TurnMachine::new(8);
    /// assert_eq!(turn.step(), TurnStep::CallModel);
    /// // After a paused answer the model is called again, with no message in between.
    /// turn.handle_answer(&Answer::new(Message::assistant("One moment."), StopReason::PauseTurn, None))?;
    /// assert_eq!(turn.step(), TurnStep::CallModel);
    /// # Ok::<(), threadfold::message::InvalidValue>(())
    /// ```
    #[must_use]
    pub fn step(&self) -> TurnStep<'_> {
        match &self.state {
            State::Model => TurnStep::CallModel,
            State::Tools { calls, .. } => TurnStep::CallTools(calls),
            State::Finished { stop_reason, capped } => {
                TurnStep::Finished { stop_reason, rounds: self.rounds, capped: *capped }
            }
        }
    }

    /// Takes the answer of the model. The caller appends the answer to the thread, and then the
    /// returned message, if any, which holds the results of calls that must not run.
    ///
    /// After a paused answer the model is called again; one without content ends the turn. Calls of an
    /// answer that was cut off, declined or aborted do not run.
    ///
    /// ```
    /// use threadfold::{Message, message::{StopReason, Answer}, turn::{TurnMachine, TurnStep}};
    ///
    /// let mut turn = TurnMachine::new(8);
    /// let answer = Answer::new(Message::assistant("Four."), StopReason::EndTurn, None);
    /// assert_eq!(turn.handle_answer(&answer)?, None);
    /// assert!(matches!(turn.step(), TurnStep::Finished { rounds: 1, .. }));
    /// # Ok::<(), threadfold::message::InvalidValue>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidValue`] if no request is open.
    pub fn handle_answer(&mut self, answer: &Answer) -> Result<Option<Message>, InvalidValue> {
        let State::Model = self.state else {
            return Err(InvalidValue::unexpected("an answer of the model", "no request is open"));
        };
        self.rounds = self.rounds.saturating_add(1);
        let calls: Vec<ToolUse> = answer.message.tool_uses().cloned().collect();
        let stop_reason = answer.stop_reason.clone();
        let capped = self.rounds >= self.max_rounds;
        let meant = is_meant(&stop_reason);
        // After an empty answer the same request would follow.
        let pauses = stop_reason == StopReason::PauseTurn && !answer.message.content.is_empty();
        let goes_on = pauses || (meant && !calls.is_empty());
        if !goes_on || capped {
            self.state = State::Finished { stop_reason, capped: goes_on };
            return Ok(refused(&calls, if meant { NO_ROUND } else { NOT_MEANT }));
        }
        self.state = match calls.is_empty() {
            true => State::Model,
            false => State::Tools { results: vec![None; calls.len()], calls },
        };
        Ok(None)
    }

    /// Takes the result of one call, by its index in the step; results may come in any order. With
    /// the last result it returns the user message with all results, in the order of the calls.
    ///
    /// ```
    /// use threadfold::{Message, Role, message::{StopReason, ToolResult, ToolUse, Answer}};
    /// use threadfold::turn::TurnMachine;
    ///
    /// let calls = ["t1", "t2"].map(|id| ToolUse::new(id, "read", serde_json::json!({})).into());
    /// let answer = Message::new(Role::Assistant, calls.into());
    /// let mut turn = TurnMachine::new(8);
    /// turn.handle_answer(&Answer::new(answer, StopReason::ToolUse, None))?;
    /// assert_eq!(turn.handle_result(1, ToolResult::text("t2", "second"))?, None);
    /// let results = turn.handle_result(0, ToolResult::text("t1", "first"))?.unwrap();
    /// assert_eq!(results.tool_results().next().unwrap().tool_use_id, *"t1");
    /// # Ok::<(), threadfold::message::InvalidValue>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidValue`] if no call is open, or if the call at this index has another id.
    pub fn handle_result(
        &mut self,
        call: usize,
        result: ToolResult,
    ) -> Result<Option<Message>, InvalidValue> {
        let id = result.tool_use_id.clone();
        let State::Tools { calls, results } = &mut self.state else {
            return Err(InvalidValue::unexpected(format!("a result for {id}"), "no call is open"));
        };
        let fits = calls.get(call).is_some_and(|call| call.id == id);
        match results.get_mut(call) {
            Some(slot @ None) if fits => *slot = Some(result),
            Some(_) | None => return Err(no_such_call(call, &id)),
        }
        if results.iter().any(Option::is_none) {
            return Ok(None);
        }
        let (calls, results) = (std::mem::take(calls), std::mem::take(results));
        let results: Vec<ToolResult> = results.into_iter().flatten().collect();
        self.state = match self.repeats(calls, &results) {
            true => State::Finished { stop_reason: StopReason::ToolUse, capped: true },
            false => State::Model,
        };
        let content = results.into_iter().map(ContentBlock::from).collect();
        Ok(Some(Message::new(Role::User, content)))
    }

    /// Whether this is the third consecutive round with equal calls and equal errors.
    fn repeats(&mut self, calls: Vec<ToolUse>, results: &[ToolResult]) -> bool {
        if !results.iter().all(|result| result.is_error) {
            self.failed = None;
            return false;
        }
        // Compare without the ids of the calls, which are new in every round.
        let same = self.failed.take().filter(|failed| {
            let calls = failed.calls.iter().zip(&calls);
            let errors = failed.results.iter().zip(results);
            failed.results.len() == results.len()
                && calls.into_iter().all(|(a, b)| (&a.name, &a.input) == (&b.name, &b.input))
                && errors.into_iter().all(|(a, b)| a.content == b.content)
        });
        let repeats = same.map_or(1, |failed| failed.repeats.saturating_add(1));
        self.failed = Some(FailedRound { calls, results: results.to_vec(), repeats });
        repeats >= MAX_REPEATS
    }
}

/// Whether an answer with this stop reason was not cut off, declined or aborted, so that its calls
/// run. Some servers report `EndTurn` for an answer with calls.
pub(crate) fn is_meant(stop_reason: &StopReason) -> bool {
    match stop_reason {
        StopReason::ToolUse
        | StopReason::EndTurn
        | StopReason::StopSequence
        | StopReason::PauseTurn
        | StopReason::Other(_) => true,
        StopReason::MaxTokens
        | StopReason::Refusal
        | StopReason::ContextWindowExceeded
        | StopReason::Aborted => false,
    }
}

/// Returns a user message with an error result for each call, with `words` as text; `None` if there
/// are no calls.
///
/// ```
/// use threadfold::{message::{Json, ToolUse}, turn};
///
/// let calls = [ToolUse::new("t1", "read", Json::parse("{}")?)];
/// let message = turn::refused(&calls, "cancelled").ok_or("a call gives a message")?;
/// assert!(message.tool_results().all(|result| result.is_error));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn refused(calls: &[ToolUse], words: &str) -> Option<Message> {
    let results = calls.iter().map(|call| ToolResult::error(call.id.clone(), words).into());
    let results: Vec<ContentBlock> = results.collect();
    (!results.is_empty()).then(|| Message::new(Role::User, results))
}

fn no_such_call(call: usize, id: &str) -> InvalidValue {
    let input = format!("a result for {id} at index {call}");
    InvalidValue::unexpected(input, "no call of this id is open there")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Json;

    fn answer(ids: &[&str], stop_reason: StopReason) -> Answer {
        let call = |id: &&str| ContentBlock::from(ToolUse::new(*id, "read", Json::default()));
        let mut content = vec![ContentBlock::text("Well.")];
        content.extend(ids.iter().map(call));
        Answer::new(Message::new(Role::Assistant, content), stop_reason, None)
    }

    fn result(id: &str) -> ToolResult {
        ToolResult::text(id, format!("result of {id}"))
    }

    #[test]
    fn results_are_in_the_order_of_the_calls_whichever_comes_first() {
        let mut turn = TurnMachine::new(3);
        turn.handle_answer(&answer(&["a", "b", "a"], StopReason::ToolUse)).unwrap();
        assert_eq!(turn.handle_result(2, result("a")), Ok(None));
        assert_eq!(turn.handle_result(1, result("b")), Ok(None));
        let message = turn.handle_result(0, result("a")).unwrap().unwrap();
        let ids: Vec<&str> =
            message.tool_results().map(|result| result.tool_use_id.as_str()).collect();
        assert_eq!(ids, ["a", "b", "a"]);
        assert_eq!(turn.step(), TurnStep::CallModel);
    }

    #[test]
    fn how_an_answer_ends_says_what_is_next() {
        let rows = [
            (StopReason::EndTurn, vec![], "finished", false),
            (StopReason::EndTurn, vec!["a"], "tools", false),
            (StopReason::ToolUse, vec!["a"], "tools", false),
            (StopReason::ToolUse, vec![], "finished", false),
            (StopReason::PauseTurn, vec![], "model", false),
            (StopReason::MaxTokens, vec![], "finished", false),
            (StopReason::MaxTokens, vec!["a"], "finished", true),
            (StopReason::Refusal, vec!["a"], "finished", true),
            (StopReason::Aborted, vec!["a"], "finished", true),
            (StopReason::ContextWindowExceeded, vec![], "finished", false),
        ];
        for (stop_reason, calls, next, answered) in rows {
            let mut turn = TurnMachine::new(9);
            let results = turn.handle_answer(&answer(&calls, stop_reason.clone())).unwrap();
            let step = match turn.step() {
                TurnStep::CallModel => "model",
                TurnStep::CallTools(_) => "tools",
                TurnStep::Finished { .. } => "finished",
            };
            assert_eq!((step, results.is_some()), (next, answered), "{stop_reason:?} {calls:?}");
        }
    }

    #[test]
    fn an_empty_pause_ends_the_turn() {
        let mut turn = TurnMachine::new(9);
        let empty = Message::new(Role::Assistant, Vec::new());
        turn.handle_answer(&Answer::new(empty, StopReason::PauseTurn, None)).unwrap();
        assert!(matches!(turn.step(), TurnStep::Finished { stop_reason, .. }
            if *stop_reason == StopReason::PauseTurn));
    }

    #[test]
    fn at_the_cap_open_calls_are_answered_and_the_turn_ends() {
        let mut turn = TurnMachine::new(1);
        let results = turn.handle_answer(&answer(&["a"], StopReason::ToolUse)).unwrap().unwrap();
        assert!(results.tool_results().all(|result| result.is_error));
        let stop_reason = &StopReason::ToolUse;
        assert_eq!(turn.step(), TurnStep::Finished { stop_reason, rounds: 1, capped: true });
    }

    #[test]
    fn what_was_not_asked_for_is_refused_and_changes_nothing() {
        let mut turn = TurnMachine::new(3);
        let unexpected = InvalidValue::unexpected("a result for a", "no call is open");
        assert_eq!(turn.handle_result(0, result("a")), Err(unexpected));
        turn.handle_answer(&answer(&["a", "b"], StopReason::ToolUse)).unwrap();
        let before = turn.clone();
        let again = turn.handle_answer(&answer(&[], StopReason::EndTurn));
        assert_eq!(
            again,
            Err(InvalidValue::unexpected("an answer of the model", "no request is open"))
        );
        for (call, id) in [(0, "b"), (2, "a"), (9, "x")] {
            let none = no_such_call(call, id);
            assert_eq!(turn.handle_result(call, result(id)), Err(none));
        }
        assert_eq!(turn, before);
        turn.handle_result(0, result("a")).unwrap();
        let twice = no_such_call(0, "a");
        assert_eq!(turn.handle_result(0, result("a")), Err(twice));
    }

    #[test]
    fn a_round_that_brings_the_same_errors_three_times_ends_the_turn() {
        let mut turn = TurnMachine::new(100);
        for id in ["a", "b", "c"] {
            assert_eq!(turn.step(), TurnStep::CallModel);
            turn.handle_answer(&answer(&[id], StopReason::ToolUse)).unwrap();
            assert!(
                turn.handle_result(0, ToolResult::error(id, "no such tool")).unwrap().is_some()
            );
        }
        assert!(matches!(turn.step(), TurnStep::Finished { capped: true, rounds: 3, .. }));
    }

    #[test]
    fn another_error_or_a_success_is_something_new() {
        let rows = [
            ToolResult::error("a", "timeout 1"),
            ToolResult::error("a", "timeout 2"),
            ToolResult::error("a", "timeout 2"),
            ToolResult::text("a", "done"),
            ToolResult::error("a", "timeout 2"),
            ToolResult::error("a", "timeout 2"),
        ];
        let mut turn = TurnMachine::new(100);
        for result in rows {
            turn.handle_answer(&answer(&["a"], StopReason::ToolUse)).unwrap();
            turn.handle_result(0, result).unwrap();
            assert_eq!(turn.step(), TurnStep::CallModel);
        }
    }
}
