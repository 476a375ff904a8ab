//! Reading and writing JSON without losing the order of keys or the text of numbers.

mod fields;
mod raw;
mod scan;
mod tree;

pub(super) use fields::{Fields, Path, is_mark, marked, wire_name};
pub(super) use raw::{Raw, Scanned};
pub(super) use tree::{Object, Tree};
