//! Ids from a seed, and hashes of JSON that do not depend on the order of its keys.

use std::{
    collections::hash_map::DefaultHasher,
    hash::{Hash, Hasher},
};

use serde_json::Value;

/// A splitmix64 generator: the same seed gives the same ids.
#[derive(Clone, Debug)]
pub(super) struct Numbers(u64);

impl Numbers {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// An id with this prefix.
    pub(super) fn id(&mut self, prefix: &str) -> String {
        format!("{prefix}{:016x}", self.next())
    }

    /// An opaque text, as signatures and encrypted contents are: letters and digits, in groups of
    /// four.
    pub(super) fn opaque(&mut self, prefix: &str) -> String {
        format!("{prefix}{:016x}{:016x}{:016x}", self.next(), self.next(), self.next())
    }
}

/// The hash of a value.
pub(super) fn hash_of(value: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    add(value, &mut hasher);
    hasher.finish()
}

/// The hash of a sequence and one more element.
pub(super) fn chain(before: u64, next: u64) -> u64 {
    let mut hasher = DefaultHasher::new();
    (before, next).hash(&mut hasher);
    hasher.finish()
}

fn add(value: &Value, hasher: &mut DefaultHasher) {
    match value {
        Value::Object(fields) => {
            let mut keys: Vec<&String> = fields.keys().collect();
            keys.sort();
            // A field that is null is as good as one that is missing.
            let set = keys.into_iter().filter_map(|key| Some((key, fields.get(key)?)));
            for (key, value) in set.filter(|(_, value)| !value.is_null()) {
                key.hash(hasher);
                add(value, hasher);
            }
            0_u8.hash(hasher);
        }
        Value::Array(items) => {
            for item in items {
                add(item, hasher);
            }
            1_u8.hash(hasher);
        }
        Value::String(text) => text.hash(hasher),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string().hash(hasher),
    }
}
