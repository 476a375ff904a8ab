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
//! | `options` | [`Rolling`], its checks, and the score of a message |
//! | `split` | divides the old part into stretches between legal cuts, chooses those to remove, joins them into chunks, and builds the plan |
//! | `fold` | the strategy: two runs, one for the new batches and one that merges older ones |
//!
//! Each batch covers its own stretch and has the earlier batches as context. Scores choose what a
//! target removes first; time orders the folding. The calls, from the request to what follows a
//! failure, are those of a [`CompactionRun`](super::CompactionRun) that writes accounts.

mod fold;
mod options;
mod split;

pub use options::Rolling;
