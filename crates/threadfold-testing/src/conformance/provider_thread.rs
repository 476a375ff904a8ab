//! The conformance suite for provider threads.

use std::fmt;

use proptest::{collection::vec, prelude::*, sample::Index};
use serde::Deserialize;
use serde_json::Value;
use threadfold::{
    compact::{Plan, Replaced, Replacement, Splice},
    log::Thread,
    message::{CheckpointId, Message},
    model::ProviderThread,
};

use super::law::{Law, Result, for_all};
use crate::{generate, notation};

/// Tests a provider thread: after every sequence of changes, `held` (what it holds of the thread)
/// must equal `native` (the same made anew from the messages); replacing ranges gives the expected
/// threads; a failed operation changes nothing.
///
/// `make` must return a provider thread of an empty thread each time.
///
/// ```
/// use threadfold::{Message, ProviderThread, compact::Replaced};
/// use threadfold_testing::conformance;
///
/// #[derive(Debug, Default)]
/// struct Native(Vec<String>);
///
/// fn native(message: &Message) -> String {
///     format!("{:?}: {}", message.role, message.texts().map(|text| text.as_str()).collect::<String>())
/// }
///
/// impl ProviderThread for Native {
///     fn appended(&mut self, message: &Message) {
///         self.0.push(native(message));
///     }
///
///     fn rewritten(&mut self, replaced: &[Replaced<'_>], _thread: &[Message]) {
///         for Replaced { at, messages } in replaced.iter().rev() {
///             drop(self.0.splice(at.clone(), messages.iter().map(native)));
///         }
///     }
/// }
///
/// let anew = |messages: &[Message]| messages.iter().map(native).collect::<Vec<_>>();
/// conformance::provider_thread(Native::default, |adapter| adapter.0.clone(), anew)?;
/// # Ok::<(), conformance::Breach>(())
/// ```
///
/// # Errors
///
/// The first [`Breach`](super::Breach).
pub fn provider_thread<T: ProviderThread, V: PartialEq + fmt::Debug>(
    make: impl Fn() -> T,
    held: impl Fn(&T) -> V,
    native: impl Fn(&[Message]) -> V,
) -> Result<()> {
    let (new, empty) = (held(&make()), native(&[]));
    if new != empty {
        return Err(Law::NewIsEmpty.breach("a new thread", shown(&empty), shown(&new)));
    }
    let suite = Suite { held, native };
    CASES.lines().try_for_each(|case| suite.run_case(make(), case))?;
    let cases = (generate::legal_thread(0..8), vec(operation(), 1..6));
    for_all(&cases, 64, |(start, operations)| suite.follow(make(), start, operations))
}

/// The cases, one a line.
const CASES: &str = include_str!("../../testdata/provider_thread/replace.jsonl");

/// A thread, the input of the tool `compact`, and the resulting thread or error.
#[derive(Deserialize)]
struct Case {
    thread: String,
    replace: Value,
    becomes: Option<String>,
    error: Option<String>,
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

/// How to see what an adapter holds, and how to make it anew.
struct Suite<H, N> {
    held: H,
    native: N,
}

impl<H, N> Suite<H, N> {
    fn run_case<T, V>(&self, mut adapter: T, line: &str) -> Result<()>
    where
        T: ProviderThread,
        V: PartialEq + fmt::Debug,
        H: Fn(&T) -> V,
        N: Fn(&[Message]) -> V,
    {
        let case: Case = serde_json::from_str(line)
            .map_err(|error| Law::Compacts.breach(line, "a case", error))?;
        let messages = notation::parse(&case.thread);
        let messages = messages.map_err(|error| Law::Compacts.breach(line, "a thread", error))?;
        let ranges = Replacement::parse_all(&case.replace);
        let ranges = ranges.map_err(|error| Law::Compacts.breach(line, "ranges", error))?;
        let mut thread = Thread::default();
        push(&mut adapter, &mut thread, messages);
        let before = thread.messages().clone();
        let outcome = adapter.compact(&mut thread, &ranges);
        let (is_error, found) = match outcome {
            Ok(_) => (false, notation::write(thread.messages())),
            Err(error) => (true, error.to_string()),
        };
        if is_error && thread.messages() != &before {
            let found = notation::write(thread.messages());
            return Err(Law::ErrorsChangeNothing.breach(line, case.thread, found));
        }
        let expected = case.error.or(case.becomes).unwrap_or_default();
        if found != expected {
            return Err(Law::Compacts.breach(line, expected, found));
        }
        self.compare(&adapter, &thread, is_error, line)
    }

    /// Runs the operations, and compares after each.
    fn follow<T, V>(
        &self,
        mut adapter: T,
        start: &[Message],
        operations: &[Operation],
    ) -> Result<()>
    where
        T: ProviderThread,
        V: PartialEq + fmt::Debug,
        H: Fn(&T) -> V,
        N: Fn(&[Message]) -> V,
    {
        let mut thread = Thread::default();
        let start = Operation::Push(start.to_vec());
        for operation in std::iter::once(&start).chain(operations) {
            let before = thread.clone();
            let is_error = !run(&mut adapter, &mut thread, operation);
            let input = || format!("{}{operation:?}", notation::write(before.messages()));
            if is_error && thread.messages() != before.messages() {
                let threads = [&before, &thread].map(|it| notation::write(it.messages()));
                let [expected, found] = threads;
                return Err(Law::ErrorsChangeNothing.breach(input(), expected, found));
            }
            self.compare(&adapter, &thread, is_error, input())?;
        }
        Ok(())
    }

    /// Compares what the adapter holds with the thread.
    fn compare<T, V>(
        &self,
        adapter: &T,
        thread: &Thread,
        is_error: bool,
        input: impl fmt::Display,
    ) -> Result<()>
    where
        V: PartialEq + fmt::Debug,
        H: Fn(&T) -> V,
        N: Fn(&[Message]) -> V,
    {
        let (found, expected) = ((self.held)(adapter), (self.native)(thread.messages()));
        if found == expected {
            return Ok(());
        }
        let law = if is_error { Law::ErrorsChangeNothing } else { Law::FollowsThread };
        Err(law.breach(input, shown(&expected), shown(&found)))
    }
}

fn push(adapter: &mut impl ProviderThread, thread: &mut Thread, messages: Vec<Message>) {
    for message in messages {
        thread.push(message.clone());
        adapter.appended(&message);
    }
}

/// Runs an operation, and returns whether it succeeded.
fn run(adapter: &mut impl ProviderThread, thread: &mut Thread, operation: &Operation) -> bool {
    match operation {
        Operation::Push(messages) => push(adapter, thread, messages.clone()),
        Operation::Truncate(at) => {
            let from = thread.messages().len();
            let len = at.index(from + 1);
            if len < from {
                thread.truncate(len);
                let replaced = Replaced { at: len..from, messages: &[] };
                adapter.rewritten(&[replaced], thread.messages());
            }
        }
        Operation::Compact(..) | Operation::CompactUnknown => {
            let ranges = ranges(thread.messages(), operation);
            return adapter.compact(thread, &ranges).is_ok();
        }
        Operation::Apply(_) | Operation::ApplyStale => {
            let plan = plan(thread.messages(), operation);
            return adapter.apply(thread, &plan).is_ok();
        }
    }
    true
}

fn shown(value: &impl fmt::Debug) -> String {
    format!("{value:#?}")
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
