//! The result of an audit, as data: what a compaction lost, and what its summary invented.
//!
//! The functions that compute it are in `threadfold::retention`, with these types.

mod class;
mod fact;
mod report;

pub use class::FactClass;
#[doc(hidden)]
pub use class::Property;
pub use fact::Fact;
#[doc(hidden)]
pub use fact::Speaker;
pub use report::{KeptShare, Retention};
