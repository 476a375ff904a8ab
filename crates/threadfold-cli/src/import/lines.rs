//! What the readers of all agents share: their result, the lines that they leave out, and fields.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::Value;

use crate::input::Dialect;

/// The content of an agent's log.
#[derive(Debug)]
pub(super) struct Imported {
    /// A request body with the thread.
    pub(super) body: Value,
    pub(super) dialect: Dialect,
    /// The number of lines in the thread.
    pub(super) carried: usize,
    pub(super) left: Left,
}

/// The number of lines outside the thread, by reason.
#[derive(Debug, Default)]
pub(super) struct Left(pub(super) BTreeMap<&'static str, usize>);

impl Left {
    pub(super) fn out(&mut self, reason: &'static str) {
        *self.0.entry(reason).or_default() += 1;
    }
}

/// Returns the ids of an entry and of all its ancestors. `fields` are the names of the fields that
/// hold the id of an entry and of its parent. Each entry is visited once, because wrong parents may
/// form a cycle.
pub(super) fn branch<'v>(
    lines: &'v [Value],
    leaf: Option<&'v Value>,
    (id, parent): (&str, &str),
) -> HashSet<&'v str> {
    let by_id: HashMap<&str, &Value> = lines.iter().map(|line| (text(line, id), line)).collect();
    let (mut branch, mut next) = (HashSet::new(), leaf);
    while let Some(line) = next.filter(|line| branch.insert(text(line, id))) {
        next = by_id.get(text(line, parent)).copied();
    }
    branch
}

/// The text of a field; empty if there is none.
pub(super) fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}
