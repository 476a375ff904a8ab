//! Reading and writing JSON without losing the order of keys or the text of numbers.

mod fields;
mod raw;
mod scan;
mod tree;

pub(super) use fields::{Fields, Path, abridged};
pub use raw::without_halves;
pub(super) use raw::{Raw, not_json, read_whole};
pub(super) use tree::{Object, Tree, is_mark, wire_name};
