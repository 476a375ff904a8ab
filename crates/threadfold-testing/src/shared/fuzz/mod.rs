//! Cases for fuzzing, shared by the targets under `fuzz/` and by bounded runs of them in the tests.

pub mod compact;
pub mod edl;
pub mod log_read;
pub mod prose;
pub mod stream;
pub mod wire_decode;
