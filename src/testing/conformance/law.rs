//! The laws of the suites, and the report of a breach.

use std::fmt;

use proptest::{
    strategy::Strategy,
    test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner},
};

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

/// The laws that the suites test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Law {
    /// A model's stream ends with one turn or one error.
    #[error("a stream must end with one turn or one error")]
    StreamEnds,
    /// A stream has no items after its turn or error.
    #[error("a stream must have no items after its turn or error")]
    NothingFollows,
    /// The text deltas of a stream, if any, join to the text of its turn; so do the reasoning
    /// deltas.
    #[error("the deltas of a stream must join to the text of its turn")]
    PiecesJoin,
    /// The message of a turn has the role assistant, and the stop reason and usage of the turn.
    #[error("the message of a turn must be the answer")]
    TurnIsAnswer,
    /// `complete` and `stream` end alike: with an answer, or with an error of the same kind.
    #[error("`complete` and `stream` must end alike")]
    CompleteAgrees,
    /// After a dropped stream the model answers the next request.
    #[error("a dropped stream must leave the model ready")]
    DropIsHarmless,
    /// A new thread is empty.
    #[error("a new thread must be empty")]
    NewIsEmpty,
    /// An operation has the same result as on a [`Thread`](crate::Thread).
    #[error("an operation must have the same result as on a `Thread`")]
    FollowsThread,
    /// Replacing ranges gives the expected thread.
    #[error("replacing ranges must give the expected thread")]
    Compacts,
    /// A failed operation changes nothing.
    #[error("a failed operation must change nothing")]
    ErrorsChangeNothing,
    /// The epoch changes with every rewrite, and only then.
    #[error("the epoch must change with every rewrite, and only then")]
    EpochTellsRewrites,
    /// Decoding and encoding a body gives the same body.
    #[error("decoding and encoding a body must give the same body")]
    BodyComesBack,
    /// Encoding an unchanged request makes no adjustments.
    #[error("an unchanged request must not be adjusted")]
    UntouchedIsUnadjusted,
    /// Unknown fields are written in their place.
    #[error("unknown fields must be written in their place")]
    UnknownFieldsSurvive,
    /// An encoded body can be decoded.
    #[error("an encoded body must be readable")]
    WrittenReads,
    /// The thread in an encoded body is legal.
    #[error("the thread in an encoded body must be legal")]
    WrittenIsLegal,
    /// Decoding and encoding an encoded body gives the same body.
    #[error("decoding and encoding an encoded body must not change it")]
    WritingIsStable,
    /// Every text of the thread is in the body, or an adjustment names its message.
    #[error("an adjustment must name every message that loses text")]
    NothingIsLostSilently,
    /// Stored events are loaded unchanged, including those of unknown kinds.
    #[error("stored events must be loaded unchanged")]
    StoredComesBack,
    /// An append that expects another length is refused with both lengths and stores nothing.
    #[error("an append that expects another length must store nothing and name both")]
    ConflictWritesNothing,
    /// Events whose sequence numbers do not continue the log are refused and not stored.
    #[error("events that do not continue the log must be refused")]
    PlacesRunOn,
    /// An append without events stores nothing, and is refused as any other.
    #[error("an append without events must store nothing")]
    EmptyStoresNothing,
    /// Operations on a thread do not affect others, even with similar names.
    #[error("operations on a thread must not affect others")]
    ThreadsAreApart,
    /// A thread without stored events loads as an empty log.
    #[error("a thread without stored events must be empty")]
    UnknownIsEmpty,
    /// Of several appends that expect the same length, exactly one succeeds.
    #[error("exactly one of several appends to one length must succeed")]
    OneWriterWins,
    /// The events from a sequence number on equal the rest of the whole log.
    #[error("the events from a number on must equal the rest of the log")]
    TailIsRest,
    /// The base that is kept is the latest of the stored log, and of no other one or longer one.
    #[error("the base that is kept must be the latest of the stored log")]
    BaseBelongs,
    /// The list has every thread with stored events, once and sorted.
    #[error("the threads must be listed, once and sorted")]
    ListNamesAll,
    /// A deleted thread or entry behaves as if it had never been stored.
    #[error("a deleted thread or entry must be gone")]
    DeletedIsGone,
    /// After a failed append a prefix of the log is stored, and appends can continue from there.
    #[error("a failed append must leave a prefix of the log")]
    FailureLeavesBeginning,
    /// A word index finds the messages with a word, of the stored log and of its thread only.
    #[error("a word index must find the messages with a word, and no others")]
    WordsAreFound,
    /// A search by a word index finds the same messages as one of the whole log.
    #[error("a search by an index must find what a search of the whole log finds")]
    SearchesAgree,
    /// While the lease of a thread has not expired, no worker acquires another one, and the refusal
    /// has the lease.
    #[error("one worker at a time may hold the lease of a thread")]
    OneWorkerHolds,
    /// A lease that expired or was released can be acquired at once.
    #[error("a lease that ended must be free at once")]
    ExpiredIsFree,
    /// The fence of a lease is greater than those of all earlier leases of its thread.
    #[error("the fence of a lease must be greater than those before it")]
    FencesRise,
    /// A renewal extends a lease and never shortens it, and is refused if the lease was lost.
    #[error("a renewal must extend the lease and never shorten it")]
    RenewalExtends,
    /// An append without the current lease of its thread is refused and stores nothing.
    #[error("an append without the current lease must store nothing")]
    LateWriteIsRefused,
    /// A write replaces all earlier entries of its compaction.
    #[error("a write must replace the entries of its compaction")]
    WriteReplaces,
    /// Entries of another compaction, or with the same id, are refused, and nothing changes.
    #[error("entries with wrong ids must be refused")]
    NamesAreChecked,
    /// Only entries of visible compactions are returned.
    #[error("only entries of visible compactions may be returned")]
    OnlyStandingIsSeen,
    /// Entries that a visible entry replaces are not listed, but found and marked as replaced.
    #[error("replaced entries must not be listed, but found and marked")]
    ReplacedIsFoundOnly,
    /// Entries are listed by their start time, then by id.
    #[error("entries must be listed by time and then by id")]
    ListIsInOrder,
    /// A search finds exactly the entries with a word of the query, in any case.
    #[error("a search must find exactly the entries with a word of the query")]
    SearchFinds,
    /// A search returns entries with more different words first, then later ones first, and no more
    /// than the limit.
    #[error("a search must return the best entries first, and no more than the limit")]
    SearchRanks,
    /// An attempt ends with a proposal or an error, whatever a model answers.
    #[error("an attempt must end, whatever a model answers")]
    AttemptEnds,
    /// A strategy never panics.
    #[error("a strategy must not panic")]
    NeverPanics,
    /// The step of an attempt is the same until an answer arrives.
    #[error("a step must be the same until an answer arrives")]
    StepRepeats,
    /// After its proposal or error an attempt changes no more.
    #[error("an attempt must propose once, and ignore what comes later")]
    ProposesOnce,
    /// The same thread and answers give the same plan, also after a dropped attempt.
    #[error("the same thread and answers must give the same plan")]
    SameAnswersSamePlan,
    /// A thread with nothing to remove is left alone, without a call.
    #[error("a thread with nothing to remove must cost no call")]
    IdleIsFree,
    /// A plan is for the thread of its attempt.
    #[error("a plan must fit its thread")]
    PlanFits,
    /// A plan adds no violation of the rules of providers.
    #[error("a plan must leave the thread legal")]
    StaysLegal,
    /// The same calls are open before and after a plan.
    #[error("a plan must leave the same calls open")]
    KeepsOpenCalls,
    /// The text that the user typed last stays, unless a next prompt follows.
    #[error("a plan must keep the user's newest text")]
    KeepsNewestText,
    /// No summary is blank.
    #[error("a summary must not be blank")]
    SummarySaysSomething,
    /// A plan without a model makes the thread smaller.
    #[error("a plan without a model must make the thread smaller")]
    MakesSmaller,
    /// If a plan misses the target, no rung of it counts as successful.
    #[error("a plan that misses its target must say so")]
    MissIsReported,
    /// New texts in messages of the user are summaries.
    #[error("a plan must not put words into the user's mouth")]
    TypesNothing,
    /// New messages hold no calls and results that the thread does not hold.
    #[error("a plan must not insert calls or results")]
    MakesNoCalls,
    /// An answer that was cut off is not used as a summary.
    #[error("an answer that was cut off must not become a summary")]
    TakesWholeAnswers,
    /// A proposal reports no more kept facts than its plan keeps.
    #[error("a proposal must not report facts that its plan loses")]
    AuditIsTrue,
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
    check: impl Fn(&S::Value) -> Result<(), Breach>,
) -> Result<(), Breach> {
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
