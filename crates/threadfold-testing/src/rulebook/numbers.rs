//! Ids from a seed, and hashes of JSON that do not depend on the order of its keys.

use std::{
    collections::hash_map::DefaultHasher,
    hash::{Hash, Hasher},
};

use serde_json::Value;

use crate::splitmix::splitmix64;

/// A splitmix64 generator: the same seed gives the same ids.
#[derive(Clone, Debug)]
pub(super) struct Numbers(u64);

impl Numbers {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn next(&mut self) -> u64 {
        splitmix64(&mut self.0)
    }

    /// An id with this prefix.
    pub(super) fn id(&mut self, prefix: &str) -> String {
        format!("{prefix}{:016x}", self.next())
    }

    /// An opaque text in the place of a signature or of encrypted content: the prefix and 48
    /// hexadecimal digits.
    pub(super) fn opaque(&mut self, prefix: &str) -> String {
        format!("{prefix}{:016x}{:016x}{:016x}", self.next(), self.next(), self.next())
    }
}

/// The hash of a value. A field that is null counts as a missing one.
pub(super) fn hash_of(value: &Value) -> u64 {
    let mut value = value.clone();
    remove_nulls(&mut value);
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

fn remove_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(remove_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_nulls),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The hash of a sequence and one more element.
pub(super) fn chain(before: u64, next: u64) -> u64 {
    let mut hasher = DefaultHasher::new();
    (before, next).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_order_of_keys_and_fields_that_are_null_do_not_count() {
        let same = [json!({"a": 1, "b": [{}]}), json!({"b": [{"d": null}], "c": null, "a": 1})];
        assert_eq!(hash_of(&same[0]), hash_of(&same[1]));
        for (one, other) in [
            (json!([1, [2]]), json!([[1, 2]])),
            (json!("true"), json!(true)),
            (json!("1"), json!(1)),
            (json!(["null"]), json!([null])),
            (json!([]), json!({})),
        ] {
            assert_ne!(hash_of(&one), hash_of(&other), "{one} {other}");
        }
    }
}
