//! Fold-in batches: replaces old messages chunk by chunk, each chunk by one batch.
//!
//! The model that summarises a chunk sees the summaries of everything before it and describes only
//! the new chunk, so batches do not repeat each other. The thread keeps one message for all of
//! them: a [`Summary`](crate::message::Summary) whose text shows the first and the last batches and
//! which carries every batch as data. The next compaction reads them from there, so the strategy is
//! stateless. When there are too many batches, the older ones are merged into one that is a level
//! deeper. All batches are in the record of the compaction, also those that the text omits or that
//! were replaced.
//!
//! | file | content |
//! |---|---|
//! | `options` | [`Rolling`], its checks, the score of a message, and the text that represents all batches |
//! | `split` | renders messages as plain text, divides the old part into stretches between legal cuts, chooses those to remove, and builds the plan |
//! | `chunks` | joins stretches into chunks, and divides a chunk into pieces |
//! | `requests` | writes the requests, with messages shortened to fit |
//! | `fold` | the strategy: has each chunk summarised, in `pieces` |
//!
//! Each batch covers its own stretch and has the earlier batches as context. Scores choose what a
//! target removes first; time orders the folding.

mod chunks;
mod fold;
mod options;
mod requests;
mod split;

pub use options::Rolling;
