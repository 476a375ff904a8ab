//! The laws of the suites, and the report of a breach.

use std::fmt;

use proptest::{
    strategy::Strategy,
    test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner},
};
use serde::{Deserialize, Serialize};
use threadfold::message::ThreadId;

pub(super) type Result<T, E = Breach> = std::result::Result<T, E>;

/// A law that an implementation breaks, with an example.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{law}\ninput:\n{input}\nexpected:\n{expected}\nfound:\n{found}")]
#[non_exhaustive]
pub struct Breach {
    /// The law.
    pub law: Law,
    /// The input of the example.
    pub input: String,
    /// The outcome that the law demands.
    pub expected: String,
    /// The outcome of the implementation.
    pub found: String,
}

/// Declares the laws, each with the text of its breach and an optional note for the docs.
macro_rules! laws {
    ($($law:ident: $text:literal $(($more:literal))?,)+) => {
        /// The laws that the suites test.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[non_exhaustive]
        pub enum Law {
            $(#[doc = $text] $(#[doc = ""] #[doc = $more])? $law,)+
        }

        impl fmt::Display for Law {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $(Self::$law => $text,)+
                })
            }
        }
    };
}

laws! {
    StreamEnds: "a stream must end with one answer or one error",
    NothingFollows: "a stream must have no items after its answer or error",
    PiecesJoin: "the deltas of a stream must join to the text of its answer" ("The text deltas of a stream, if any, join to the text of its answer; so do the reasoning deltas."),
    AnswerIsAssistants: "the message of an answer must be the assistant's" ("The message of an answer has the role assistant, and the stop reason and usage of the answer."),
    CompleteAgrees: "`complete` and `stream` must end alike" ("`complete` and `stream` end alike: with an answer, or with an error of the same kind."),
    DropIsHarmless: "a dropped stream must leave the model ready",
    RequestIsWhole: "everything of a thread must reach the provider, in its order",
    AnswerIsWhole: "everything of an answer must come back",
    BreakIsRetryable: "an answer that breaks off must be a retryable error",
    OverflowIsTold: "a refusal for the length must be an overflow",
    NewIsEmpty: "a new thread must be empty",
    FollowsThread: "what an adapter holds must follow the thread",
    Compacts: "replacing ranges must give the expected thread",
    ErrorsChangeNothing: "a failed operation must change nothing",
    RequestIsLegal: "the messages of a request must be legal",
    StoredComesBack: "stored events must be loaded unchanged",
    ConflictWritesNothing: "an append that expects another length must store nothing and name both",
    PlacesRunOn: "events that do not continue the log must be refused",
    EmptyStoresNothing: "an append without events must store nothing",
    ThreadsAreApart: "operations on a thread must not affect others",
    UnknownIsEmpty: "a thread without stored events must be empty",
    OneWriterWins: "exactly one of several appends to one length must succeed",
    TailIsRest: "the events from a number on must equal the rest of the log",
    BaseBelongs: "the base that is kept must be the latest of the stored log",
    ListNamesAll: "the threads must be listed, once and sorted",
    DeletedIsGone: "a deleted thread must be gone",
    FailureLeavesBeginning: "a failed append must leave a prefix of the log",
    OneWorkerHolds: "one worker at a time may hold the lease of a thread" ("While the lease of a thread has not expired, no worker acquires another one, and the refusal has the lease."),
    ExpiredIsFree: "a lease that ended must be free at once",
    FencesRise: "the fence of a lease must be greater than those before it",
    RenewalExtends: "a renewal must extend the lease and never shorten it" ("A renewal extends a lease and never shortens it, and is refused if the lease was lost."),
    LateWriteIsRefused: "an append without the current lease must store nothing",
    StrategyEnds: "a strategy must end, whatever a model answers",
    NeverPanics: "a strategy must not panic",
    AwaitsAnswers: "a strategy must await nothing but answers of models",
    SameAnswersSamePlan: "the same thread and answers must give the same plan" ("The same thread and answers give the same plan, also after a dropped future."),
    IdleIsFree: "a thread with nothing to remove must cost no call",
    PlanFits: "a plan must fit its thread",
    StaysLegal: "a plan must leave the thread legal",
    KeepsOpenCalls: "a plan must leave the same calls open",
    KeepsNewestText: "a plan must keep the user's newest text" ("The text that the user typed last stays, unless a next prompt follows."),
    KeepsUnread: "a plan must keep unread messages as they are" ("The messages after the model's last answer stay as they are, if they fit."),
    SummarySaysSomething: "a summary must not be blank",
    MakesSmaller: "a plan without a model must make the thread smaller",
    MissIsReported: "a plan that misses its target must say so",
    TypesNothing: "a plan must not put words into the user's mouth",
    MakesNoCalls: "a plan must not insert calls or results",
    TakesWholeAnswers: "an answer that was cut off must not become a summary",
    AuditIsTrue: "a proposal must not report facts that its plan loses",
}

impl Law {
    pub(super) fn breach(
        self,
        input: impl fmt::Display,
        expected: impl fmt::Display,
        found: impl fmt::Display,
    ) -> Breach {
        Breach {
            law: self,
            input: input.to_string(),
            expected: expected.to_string(),
            found: found.to_string(),
        }
    }
}

/// Checks `cases` generated values and returns the breach of the smallest one that breaks a law.
pub(super) fn for_all<S: Strategy>(
    strategy: &S,
    cases: u32,
    check: impl Fn(&S::Value) -> Result<()>,
) -> Result<()> {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let outcome = TestRunner::new_with_rng(config, random).run(strategy, |value| {
        check(&value).map_err(|breach| TestCaseError::fail(breach.law.to_string()))
    });
    match outcome {
        Err(TestError::Fail(_, smallest)) => check(&smallest),
        Ok(()) | Err(TestError::Abort(_)) => Ok(()),
    }
}

/// Compares outcomes by their `Debug` text, because errors of storage media are not comparable.
pub(super) fn same<T: fmt::Debug, E: fmt::Debug>(
    law: Law,
    input: impl fmt::Display,
    expected: &Result<T, E>,
    found: &Result<T, E>,
) -> Result<()> {
    let (expected, found) = (format!("{expected:?}"), format!("{found:?}"));
    if expected == found { Ok(()) } else { Err(law.breach(input, expected, found)) }
}

/// Parses a thread id.
pub(super) fn named(name: &str) -> Result<ThreadId> {
    name.parse().map_err(|error| Law::ThreadsAreApart.breach(name, "a thread id", error))
}
