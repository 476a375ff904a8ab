//! Fold-in batches: old messages go chunk by chunk, and each chunk leaves a batch of its own.
//!
//! A chunk is folded in the light of the account of everything before it, and gives an account of
//! its own stretch alone, so that batches never say the same twice. The thread keeps one message
//! for all of them: a [`Summary`](crate::message::Summary) whose text shows the first and the last
//! batches, and which carries every batch as data. The next compaction takes them from there, so a
//! strategy needs no memory of its own. When batches grow too many, the older ones are summed up
//! to one that is a level deeper. All go to the archive, where what the view leaves out can be
//! searched.
//!
//! | file | what |
//! |---|---|
//! | `options` | [`FoldBatches`] and its checks |
//! | `score` | [`Scoring`]: how much a message matters |
//! | `plain` | messages as plain text |
//! | `split` | what goes: stretches between legal cuts |
//! | `chunks` | stretches in chunks |
//! | `clip` | messages that fit, with their middles left out |
//! | `view` | the text that stands for all batches |
//! | `desk` | the requests |
//! | `ledger` | the batches so far |
//! | `place` | the plan |
//! | `fold` | the machine |
//! | `strategy` | all of it as a strategy |

mod chunks;
mod clip;
mod desk;
pub(super) mod fold;
mod ledger;
mod options;
mod place;
mod plain;
mod score;
mod split;
mod strategy;
mod view;

pub use options::FoldBatches;
pub use score::Scoring;
