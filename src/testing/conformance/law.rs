//! The laws, and how a breach of one is shown.

use std::fmt;

use proptest::{
    strategy::Strategy,
    test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner},
};

/// A law that an implementation breaks, with the case that shows it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{law}\ninput:\n{input}\nexpected:\n{expected}\nfound:\n{found}")]
#[non_exhaustive]
pub struct Breach {
    /// The law.
    pub law: Law,
    /// What was asked.
    pub input: String,
    /// What the law demands.
    pub expected: String,
    /// What came.
    pub found: String,
}

/// What the suites ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Law {
    /// A stream of a model ends with one turn or one error.
    StreamEnds,
    /// Nothing comes behind the end of a stream.
    NothingFollows,
    /// The pieces of text of a stream, if there are any, join to the text of its turn; so do those
    /// of reasoning.
    PiecesJoin,
    /// The message of a turn is the assistant's, and says why it stopped and what it cost.
    TurnIsAnswer,
    /// Waiting for the whole answer ends as streaming it does.
    CompleteAgrees,
    /// A stream that is dropped leaves the model ready for the next question.
    DropIsHarmless,
    /// A new thread is empty.
    NewIsEmpty,
    /// A thread after an operation is what [`Thread`](crate::Thread) makes of it.
    FollowsThread,
    /// Replacing ranges gives the thread of the case.
    Compacts,
    /// An operation that fails leaves everything as it was.
    ErrorsChangeNothing,
    /// The epoch changes with every rewrite, and with nothing else.
    EpochTellsRewrites,
    /// A body that was read and written is the same body.
    BodyComesBack,
    /// Nothing is adjusted in a body that nobody touched.
    UntouchedIsUnadjusted,
    /// Fields that nobody knows come back where they were.
    UnknownFieldsSurvive,
    /// What is written can be read again.
    WrittenReads,
    /// What is written and read is legal.
    WrittenIsLegal,
    /// What is written, read and written again is the same body.
    WritingIsStable,
    /// A text of the thread is in the body, or an adjustment says that its message was changed.
    NothingIsLostSilently,
    /// What was stored is loaded as it was, events of unknown kinds too.
    StoredComesBack,
    /// An append to a log of another length is refused with both lengths, and stores nothing.
    ConflictWritesNothing,
    /// Events that do not run on from the log are refused, and nothing is stored.
    PlacesRunOn,
    /// An append of no events stores nothing, and is refused as any other.
    EmptyStoresNothing,
    /// What is done to a thread is done to no other, whatever their names have in common.
    ThreadsAreApart,
    /// A thread of which nothing is stored is an empty one.
    UnknownIsEmpty,
    /// Of appends that expect the same length exactly one is carried out.
    OneWriterWins,
    /// The events from a place on are those of the whole log.
    TailIsRest,
    /// The threads of which something is stored are listed, once and in order.
    ListNamesAll,
    /// What was deleted is as if it had never been.
    DeletedIsGone,
    /// After a failed append the beginning of the log is stored, and can be gone on from.
    FailureLeavesBeginning,
    /// What is written under a compaction takes the place of all that was there.
    WriteReplaces,
    /// Entries of another compaction, or with one name, are refused, and nothing is changed.
    NamesAreChecked,
    /// Entries are seen while their compaction stands, and no longer.
    OnlyStandingIsSeen,
    /// What a visible entry stands for is not listed, but found and marked.
    ReplacedIsFoundOnly,
    /// Entries are listed by the time of their start, then by name.
    ListIsInOrder,
    /// A search finds the entries that have a word of the query, in any case, and no others.
    SearchFinds,
    /// A search gives those with more different words first, of these the latest, and never more than the limit.
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
            Self::NothingFollows => "nothing may come behind the end of a stream",
            Self::PiecesJoin => "the pieces of a stream must join to the text of its turn",
            Self::TurnIsAnswer => "the message of a turn must be the answer",
            Self::CompleteAgrees => "waiting for an answer must end as streaming it does",
            Self::DropIsHarmless => "a dropped stream must leave the model ready",
            Self::NewIsEmpty => "a new thread must be empty",
            Self::FollowsThread => "an operation must do what it does to a `Thread`",
            Self::Compacts => "replacing ranges must give the thread of the case",
            Self::ErrorsChangeNothing => "an operation that fails must change nothing",
            Self::EpochTellsRewrites => "the epoch must change with every rewrite only",
            Self::BodyComesBack => "a body that was read and written must be the same body",
            Self::UntouchedIsUnadjusted => "nothing may be adjusted in an untouched body",
            Self::UnknownFieldsSurvive => "unknown fields must come back where they were",
            Self::WrittenReads => "what is written must be readable",
            Self::WrittenIsLegal => "what is written must be legal",
            Self::WritingIsStable => "what is written, read and written must be the same body",
            Self::NothingIsLostSilently => "what is left out must be named by an adjustment",
            Self::StoredComesBack => "what was stored must be loaded as it was",
            Self::ConflictWritesNothing => {
                "an append that expects another length must store nothing and name both"
            }
            Self::PlacesRunOn => "events that do not run on must be refused",
            Self::EmptyStoresNothing => "an append of no events must store nothing",
            Self::ThreadsAreApart => "what is done to a thread must leave all others alone",
            Self::UnknownIsEmpty => "a thread of which nothing is stored must be empty",
            Self::OneWriterWins => "exactly one of two appends to one length must be carried out",
            Self::TailIsRest => "the events from a place on must be those of the whole log",
            Self::ListNamesAll => "the threads must be listed, once and in order",
            Self::DeletedIsGone => "what was deleted must be gone",
            Self::FailureLeavesBeginning => "a failed append must leave the beginning of the log",
            Self::WriteReplaces => "what is written must replace what was there",
            Self::NamesAreChecked => "entries with wrong names must be refused",
            Self::OnlyStandingIsSeen => "only entries of standing compactions may be seen",
            Self::ReplacedIsFoundOnly => {
                "what is stood for must not be listed, but found and marked"
            }
            Self::ListIsInOrder => "entries must be listed by time and then by name",
            Self::SearchFinds => {
                "a search must find what has a word of the query, and nothing else"
            }
            Self::SearchRanks => "a search must give the best first, and no more than the limit",
        })
    }
}

/// Checks so many generated values, and returns the breach of the smallest that breaks a law.
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
