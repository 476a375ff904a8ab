//! Call ids that are short enough for a provider.

use std::collections::{HashMap, HashSet};

use super::{
    contract::Change,
    normal::{Thread, rewrite_ids},
    notes::Notes,
};
use threadfold_core::message::{Message, Text};

/// The ids that are too long, and what they become.
#[derive(Debug, Default)]
pub(super) struct Ids(HashMap<Text, Text>);

impl Ids {
    /// Finds a short name for every id of more than `most` characters, which must be 20 at least:
    /// its first characters and a hash, so that the same id gets the same name in every request.
    /// Unique among all ids of the thread.
    pub(super) fn new(messages: &[(usize, Message)], most: usize) -> Self {
        let calls = messages.iter().flat_map(|(_, message)| message.tool_uses());
        let ids: Vec<&Text> = calls.map(|call| &call.id).collect();
        let is_long = |id: &Text| id.len() > most && id.chars().count() > most;
        let mut names = HashMap::new();
        if !ids.iter().any(|id| is_long(id)) {
            return Self(names);
        }
        let mut taken: HashSet<Text> = ids.iter().map(|id| (*id).clone()).collect();
        for id in ids.into_iter().filter(|id| is_long(id)) {
            if names.contains_key(id) {
                continue;
            }
            let mut salt = 0;
            let name = loop {
                let name = short(id, most, salt);
                if taken.insert(name.clone()) {
                    break name;
                }
                salt += 1;
            };
            names.insert(id.clone(), name);
        }
        Self(names)
    }

    /// The id under which a call goes on.
    pub(super) fn of(&self, id: &Text) -> Text {
        self.0.get(id).unwrap_or(id).clone()
    }
}

/// Shortens the ids of calls, and of their results, that have more than `most` characters.
pub(super) fn shorten(thread: &mut Thread, most: usize, notes: &mut Notes) {
    let ids = Ids::new(thread, most);
    if ids.0.is_empty() {
        return;
    }
    let mut seen = HashSet::new();
    for (at, message) in thread.iter() {
        for call in message.tool_uses() {
            if let Some(to) = ids.0.get(&call.id).filter(|_| seen.insert(&call.id)) {
                notes.turn_to(*at);
                notes.note(Change::IdRewritten { from: call.id.clone(), to: to.clone() });
            }
        }
    }
    rewrite_ids(thread, |id| ids.0.get(id).cloned());
}

/// Returns the beginning of an id and a hash of it, `most` characters together.
pub(super) fn short(id: &str, most: usize, salt: u64) -> Text {
    const HASH_DIGITS: usize = 16;
    let kept: String = id.chars().take(most.saturating_sub(HASH_DIGITS + 1)).collect();
    format!("{kept}-{:016x}", fnv1a(id.as_bytes(), salt)).into()
}

/// The 64-bit FNV-1a hash. The standard hasher may change from release to release, and a changed
/// id would spoil the provider's prompt cache.
fn fnv1a(bytes: &[u8], salt: u64) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325 ^ salt;
    bytes.iter().fold(start, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use threadfold_core::message::{Json, Role, ToolUse};

    #[test]
    fn long_ids_become_short_unique_and_the_same_every_time() {
        let call = |id: &str| ToolUse::new(id, "f", Json::default()).into();
        let ids = [format!("{}a", "x".repeat(60)), format!("{}b", "x".repeat(60)), "é".repeat(40)];
        let message = Message::new(Role::Assistant, ids.iter().map(|id| call(id)).collect());
        let names = Ids::new(&[(0, message)], 40);
        let short: Vec<Text> = ids.iter().map(|id| names.of(&id.as_str().into())).collect();
        assert_eq!(short[0], "xxxxxxxxxxxxxxxxxxxxxxx-1ae3f85d5cfafb9c");
        assert_ne!(short[0], short[1]);
        assert_eq!(short[2].as_str(), ids[2]);
        assert!(short.iter().all(|name| name.chars().count() <= 40));
    }
}
