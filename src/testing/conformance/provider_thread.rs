//! The conformance suite for provider threads.

use proptest::{collection::vec, prelude::*, sample::Index};
use serde::Deserialize;
use serde_json::Value;

use super::law::{Law, Result, for_all};
use crate::{
    compact::{Plan, Replacement, Splice},
    log::Thread,
    message::{CheckpointId, Message},
    model::ProviderThread,
    testing::{generate, notation},
};

/// Tests a provider thread: a new one is empty; replacing ranges gives the expected threads; every
/// sequence of operations has the same results as on a [`Thread`]; a failed operation changes
/// nothing; the epoch changes with rewrites only.
///
/// `make` must return an empty thread each time.
///
/// ```
/// use std::sync::Arc;
/// use threadfold::model::ModelAgent;
/// use threadfold::testing::{ExtractiveModel, conformance};
///
/// conformance::provider_thread(|| Box::new(ModelAgent::new(Arc::new(ExtractiveModel))))?;
/// # Ok::<(), conformance::Breach>(())
/// ```
///
/// # Errors
///
/// The first [`Breach`](super::Breach).
pub fn provider_thread(mut make: impl FnMut() -> Box<dyn ProviderThread>) -> Result<()> {
    let make = &mut make;
    let new = make();
    if !new.messages().is_empty() {
        return Err(Law::NewIsEmpty.breach("a new thread", "", notation::write(new.messages())));
    }
    CASES.lines().try_for_each(|case| run_case(make(), case))?;
    let make = std::cell::RefCell::new(make);
    let cases = (generate::legal_thread(0..8), vec(operation(), 1..6));
    for_all(&cases, 64, |(start, operations)| compare((make.borrow_mut())(), start, operations))
}

/// The cases, one a line.
const CASES: &str = include_str!("../../../testdata/provider_thread/replace.jsonl");

/// A thread, the input of the tool `compact`, and the resulting thread or error.
#[derive(Deserialize)]
struct Case {
    thread: String,
    replace: Value,
    becomes: Option<String>,
    error: Option<String>,
}

fn run_case(mut thread: Box<dyn ProviderThread>, line: &str) -> Result<()> {
    let case: Case =
        serde_json::from_str(line).map_err(|error| Law::Compacts.breach(line, "a case", error))?;
    let messages = notation::parse(&case.thread);
    let messages = messages.map_err(|error| Law::Compacts.breach(line, "a thread", error))?;
    let ranges = Replacement::parse_all(&case.replace);
    let ranges = ranges.map_err(|error| Law::Compacts.breach(line, "ranges", error))?;
    messages.into_iter().for_each(|message| thread.push(message));
    let (before, epoch) = (thread.messages().clone(), thread.thread().epoch());
    let outcome = thread.compact(&ranges);
    let is_same = thread.messages() == &before && thread.thread().epoch() == epoch;
    let (is_error, found) = match outcome {
        Ok(_) => (false, notation::write(thread.messages())),
        Err(error) => (true, error.to_string()),
    };
    if is_error && !is_same {
        return Err(Law::ErrorsChangeNothing.breach(line, case.thread, found));
    }
    let expected = case.error.or(case.becomes).unwrap_or_default();
    if found != expected {
        return Err(Law::Compacts.breach(line, expected, found));
    }
    if !is_error && thread.thread().epoch() == epoch {
        return Err(Law::EpochTellsRewrites.breach(line, "another epoch", epoch));
    }
    Ok(())
}

/// An operation. Indices are resolved when it runs.
#[derive(Clone, Debug)]
enum Operation {
    Push(Vec<Message>),
    Truncate(Index),
    /// Replaces the range between two checkpoints.
    Compact(Index, Index),
    /// Applies a plan that removes the messages before this one.
    Apply(Index),
    /// Applies a plan for a thread of another length.
    ApplyStale,
    /// Replaces the range after an unknown checkpoint.
    CompactUnknown,
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        3 => generate::legal_thread(0..3).prop_map(Operation::Push),
        1 => any::<Index>().prop_map(Operation::Truncate),
        3 => any::<(Index, Index)>().prop_map(|(from, to)| Operation::Compact(from, to)),
        2 => any::<Index>().prop_map(Operation::Apply),
        1 => Just(Operation::ApplyStale),
        1 => Just(Operation::CompactUnknown),
    ]
}

/// Runs the operations on the adapter's thread and on a [`Thread`], and compares after each.
fn compare(
    mut thread: Box<dyn ProviderThread>,
    start: &[Message],
    operations: &[Operation],
) -> Result<()> {
    let mut ours: Thread = Thread::default();
    for operation in std::iter::once(&Operation::Push(start.to_vec())).chain(operations) {
        let before = thread.messages().clone();
        let epochs = (thread.thread().epoch(), ours.epoch());
        let outcomes = (run(thread.as_mut(), operation), run(&mut ours, operation));
        let changed = (ours.epoch() != epochs.1, thread.thread().epoch() != epochs.0);
        let threads = [&ours, thread.thread()].map(|thread| notation::write(thread.messages()));
        let (law, [expected, found]) = if outcomes.0 != outcomes.1 {
            (Law::FollowsThread, [outcomes.1, outcomes.0])
        } else if thread.messages() != ours.messages() {
            let is_error = outcomes.1.starts_with("error");
            (if is_error { Law::ErrorsChangeNothing } else { Law::FollowsThread }, threads)
        } else if changed.0 != changed.1 {
            (Law::EpochTellsRewrites, [changed.0.to_string(), changed.1.to_string()])
        } else {
            continue;
        };
        let input = format!("{}{operation:?}", notation::write(&before));
        return Err(law.breach(input, expected, found));
    }
    Ok(())
}

/// Runs an operation, and returns its outcome as text.
fn run(thread: &mut dyn ProviderThread, operation: &Operation) -> String {
    match operation {
        Operation::Push(messages) => {
            messages.iter().cloned().for_each(|message| thread.push(message))
        }
        Operation::Truncate(at) => thread.truncate(at.index(thread.messages().len() + 1)),
        Operation::Compact(..) | Operation::CompactUnknown => {
            return outcome_text(thread.compact(&ranges(thread.messages(), operation)));
        }
        Operation::Apply(_) | Operation::ApplyStale => {
            let plan = plan(thread.messages(), operation);
            return outcome_text(thread.apply(&plan));
        }
    }
    String::new()
}

/// Returns an outcome as the text that is compared.
fn outcome_text<T: std::fmt::Debug, E: std::fmt::Display>(outcome: Result<T, E>) -> String {
    match outcome {
        Ok(value) => format!("{value:?}"),
        Err(error) => format!("error: {error}"),
    }
}

fn ranges(messages: &[Message], operation: &Operation) -> Vec<Replacement> {
    let ids: Vec<CheckpointId> =
        messages.iter().flat_map(Message::checkpoints).map(|(id, _)| id).collect();
    let mut range = Replacement::new("Summed up.");
    if let Operation::Compact(from, to) = operation {
        [range.from, range.to] = [from, to].map(|at| ids.get(at.index(ids.len() + 1)).copied());
    } else {
        range.from = "zzzzzz".parse().ok();
    }
    vec![range]
}

fn plan(messages: &[Message], operation: &Operation) -> Plan {
    let length = messages.len();
    let Operation::Apply(at) = operation else { return Plan::from_splices(length + 1, Vec::new()) };
    let splice = Splice { at: 0..at.index(length + 1), insert: Vec::new() };
    let empty = splice.at.is_empty();
    Plan::from_splices(length, if empty { Vec::new() } else { vec![splice] })
}
