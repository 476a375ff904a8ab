//! Comparing what stores and archives answer.

use std::fmt;

use super::law::{Breach, Law};
use crate::message::ThreadId;

/// Compares outcomes by how they show themselves: the errors of media cannot be compared.
pub(super) fn same<T: fmt::Debug, E: fmt::Debug>(
    law: Law,
    input: impl fmt::Display,
    expected: &Result<T, E>,
    found: &Result<T, E>,
) -> Result<(), Breach> {
    let (expected, found) = (format!("{expected:?}"), format!("{found:?}"));
    if expected == found { Ok(()) } else { Err(law.breach(input, expected, found)) }
}

/// The id of a thread of a suite.
pub(super) fn named(name: &str) -> Result<ThreadId, Breach> {
    name.parse().map_err(|error| Law::ThreadsAreApart.breach(name, "a thread id", error))
}
