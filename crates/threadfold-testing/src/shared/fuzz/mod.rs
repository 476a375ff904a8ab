//! Cases for fuzzing, shared by the targets under `fuzz/` and by bounded runs of them in the tests.

use threadfold::{WireFormat, wire::Dialect};

pub mod compact;
pub mod edl;
pub mod log_read;
pub mod prose;
pub mod stream;
pub mod wire_decode;

/// The codecs of all dialects whose features are enabled.
#[must_use]
pub fn codecs() -> Vec<&'static dyn WireFormat> {
    Dialect::ALL.iter().map(|dialect| dialect as &dyn WireFormat).collect()
}
