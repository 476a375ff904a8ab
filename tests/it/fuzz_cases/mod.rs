//! Cases for fuzzing, shared by the targets under `fuzz/` and by bounded runs of them here.

pub(crate) mod compact;
pub(crate) mod edl;
pub(crate) mod log_read;
pub(crate) mod prose;
pub(crate) mod stream;
pub(crate) mod wire_decode;
