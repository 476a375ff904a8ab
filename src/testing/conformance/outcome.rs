//! Compares outcomes of stores and archives.

use std::fmt;

use super::law::{Breach, Law};
use crate::message::ThreadId;

/// Compares outcomes by their `Debug` text, because errors of storage media are not comparable.
pub(super) fn same<T: fmt::Debug, E: fmt::Debug>(
    law: Law,
    input: impl fmt::Display,
    expected: &Result<T, E>,
    found: &Result<T, E>,
) -> Result<(), Breach> {
    let (expected, found) = (format!("{expected:?}"), format!("{found:?}"));
    if expected == found { Ok(()) } else { Err(law.breach(input, expected, found)) }
}

/// Parses a thread id.
pub(super) fn named(name: &str) -> Result<ThreadId, Breach> {
    name.parse().map_err(|error| Law::ThreadsAreApart.breach(name, "a thread id", error))
}
