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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Law {
    /// A model's stream ends with one turn or one error.
    StreamEnds,
    /// A stream has no items after its turn or error.
    NothingFollows,
    /// The text deltas of a stream, if any, join to the text of its turn; so do the reasoning
    /// deltas.
    PiecesJoin,
    /// The message of a turn has the role assistant, and the stop reason and usage of the turn.
    TurnIsAnswer,
    /// `complete` and `stream` end alike: with an answer, or with an error of the same kind.
    CompleteAgrees,
    /// After a dropped stream the model answers the next request.
    DropIsHarmless,
    /// A new thread is empty.
    NewIsEmpty,
    /// An operation has the same result as on a [`Thread`](crate::Thread).
    FollowsThread,
    /// Replacing ranges gives the expected thread.
    Compacts,
    /// A failed operation changes nothing.
    ErrorsChangeNothing,
    /// The epoch changes with every rewrite, and only then.
    EpochTellsRewrites,
    /// Decoding and encoding a body gives the same body.
    BodyComesBack,
    /// Encoding an unchanged request makes no adjustments.
    UntouchedIsUnadjusted,
    /// Unknown fields are written in their place.
    UnknownFieldsSurvive,
    /// An encoded body can be decoded.
    WrittenReads,
    /// The thread in an encoded body is legal.
    WrittenIsLegal,
    /// Decoding and encoding an encoded body gives the same body.
    WritingIsStable,
    /// Every text of the thread is in the body, or an adjustment names its message.
    NothingIsLostSilently,
    /// Stored events are loaded unchanged, including those of unknown kinds.
    StoredComesBack,
    /// An append that expects another length is refused with both lengths and stores nothing.
    ConflictWritesNothing,
    /// Events whose sequence numbers do not continue the log are refused and not stored.
    PlacesRunOn,
    /// An append without events stores nothing, and is refused as any other.
    EmptyStoresNothing,
    /// Operations on a thread do not affect others, even with similar names.
    ThreadsAreApart,
    /// A thread without stored events loads as an empty log.
    UnknownIsEmpty,
    /// Of several appends that expect the same length, exactly one succeeds.
    OneWriterWins,
    /// The events from a sequence number on equal the rest of the whole log.
    TailIsRest,
    /// The list has every thread with stored events, once and sorted.
    ListNamesAll,
    /// A deleted thread or entry behaves as if it had never been stored.
    DeletedIsGone,
    /// After a failed append a prefix of the log is stored, and appends can continue from there.
    FailureLeavesBeginning,
    /// A write replaces all earlier entries of its compaction.
    WriteReplaces,
    /// Entries of another compaction, or with the same id, are refused, and nothing changes.
    NamesAreChecked,
    /// Only entries of visible compactions are returned.
    OnlyStandingIsSeen,
    /// Entries that a visible entry replaces are not listed, but found and marked as replaced.
    ReplacedIsFoundOnly,
    /// Entries are listed by their start time, then by id.
    ListIsInOrder,
    /// A search finds exactly the entries with a word of the query, in any case.
    SearchFinds,
    /// A search returns entries with more different words first, then later ones first, and no more
    /// than the limit.
    SearchRanks,
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

impl fmt::Display for Law {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::StreamEnds => "a stream must end with one turn or one error",
            Self::NothingFollows => "a stream must have no items after its turn or error",
            Self::PiecesJoin => "the deltas of a stream must join to the text of its turn",
            Self::TurnIsAnswer => "the message of a turn must be the answer",
            Self::CompleteAgrees => "`complete` and `stream` must end alike",
            Self::DropIsHarmless => "a dropped stream must leave the model ready",
            Self::NewIsEmpty => "a new thread must be empty",
            Self::FollowsThread => "an operation must have the same result as on a `Thread`",
            Self::Compacts => "replacing ranges must give the expected thread",
            Self::ErrorsChangeNothing => "a failed operation must change nothing",
            Self::EpochTellsRewrites => "the epoch must change with every rewrite, and only then",
            Self::BodyComesBack => "decoding and encoding a body must give the same body",
            Self::UntouchedIsUnadjusted => "an unchanged request must not be adjusted",
            Self::UnknownFieldsSurvive => "unknown fields must be written in their place",
            Self::WrittenReads => "an encoded body must be readable",
            Self::WrittenIsLegal => "the thread in an encoded body must be legal",
            Self::WritingIsStable => "decoding and encoding an encoded body must not change it",
            Self::NothingIsLostSilently => "an adjustment must name every message that loses text",
            Self::StoredComesBack => "stored events must be loaded unchanged",
            Self::ConflictWritesNothing => {
                "an append that expects another length must store nothing and name both"
            }
            Self::PlacesRunOn => "events that do not continue the log must be refused",
            Self::EmptyStoresNothing => "an append without events must store nothing",
            Self::ThreadsAreApart => "operations on a thread must not affect others",
            Self::UnknownIsEmpty => "a thread without stored events must be empty",
            Self::OneWriterWins => "exactly one of several appends to one length must succeed",
            Self::TailIsRest => "the events from a number on must equal the rest of the log",
            Self::ListNamesAll => "the threads must be listed, once and sorted",
            Self::DeletedIsGone => "a deleted thread or entry must be gone",
            Self::FailureLeavesBeginning => "a failed append must leave a prefix of the log",
            Self::WriteReplaces => "a write must replace the entries of its compaction",
            Self::NamesAreChecked => "entries with wrong ids must be refused",
            Self::OnlyStandingIsSeen => "only entries of visible compactions may be returned",
            Self::ReplacedIsFoundOnly => {
                "replaced entries must not be listed, but found and marked"
            }
            Self::ListIsInOrder => "entries must be listed by time and then by id",
            Self::SearchFinds => "a search must find exactly the entries with a word of the query",
            Self::SearchRanks => {
                "a search must return the best entries first, and no more than the limit"
            }
        })
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
