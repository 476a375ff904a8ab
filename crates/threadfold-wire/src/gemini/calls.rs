//! Which call a result answers, when not every call has an id; and which names calls may have.

use std::collections::{HashMap, VecDeque};

use crate::names::{self, Rules, is_word};
use threadfold_core::message::Text;

/// The names of functions.
pub(super) const TOOLS: Rules = Rules {
    is_legal: |char| is_word(char) || matches!(char, '.' | ':'),
    begins_with_letter: true,
    ..names::TOOLS
};

/// The calls of the turn before that wait for their results.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// Id and name of each call, until it is answered.
    calls: Vec<Option<(Text, Text)>>,
    /// By what a result may know its call, the earliest call first. Queues may hold calls that were
    /// answered under another key.
    waiting: HashMap<Key, VecDeque<usize>>,
}

/// What a result may know its call by.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Key {
    Id(Text),
    /// The name of a call whose id did not come with it.
    Unnamed(Text),
    /// The name of a call that came with its id.
    Named(Text),
    Any,
}

impl Calls {
    /// Adds a call; `came` says whether its id came with it.
    pub(super) fn add(&mut self, id: Text, name: Text, came: bool) {
        let of_name = if came { Key::Named(name.clone()) } else { Key::Unnamed(name.clone()) };
        for key in [Key::Id(id.clone()), of_name, Key::Any] {
            self.waiting.entry(key).or_default().push_back(self.calls.len());
        }
        self.calls.push(Some((id, name)));
    }

    /// Returns id and name of the call that a result answers: the one that it names, else the next
    /// one of its function, else, where it names none, the next one.
    pub(super) fn answer(&mut self, id: Option<&str>, name: &str) -> Option<(Text, Text)> {
        let unnamed = Key::Unnamed(name.into());
        let keys = match id {
            Some(id) => vec![Key::Id(id.into()), unnamed],
            None => vec![unnamed, Key::Named(name.into()), Key::Any],
        };
        keys.iter().find_map(|key| self.next(key))
    }

    fn next(&mut self, key: &Key) -> Option<(Text, Text)> {
        let waiting = self.waiting.get_mut(key)?;
        while let Some(place) = waiting.pop_front() {
            if let Some(call) = self.calls.get_mut(place).and_then(Option::take) {
                return Some(call);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(calls: &mut Calls, id: Option<&str>, name: &str) -> Option<String> {
        calls.answer(id, name).map(|(id, _)| id.to_string())
    }

    #[test]
    fn a_result_answers_by_id_then_by_name_then_in_order() {
        let mut calls = Calls::default();
        for (id, name, came) in
            [("a", "f", true), ("1", "f", false), ("2", "g", false), ("3", "f", false)]
        {
            calls.add(id.into(), name.into(), came);
        }
        assert_eq!(answered(&mut calls, None, "f").as_deref(), Some("1"));
        assert_eq!(answered(&mut calls, Some("a"), "f").as_deref(), Some("a"));
        assert_eq!(answered(&mut calls, None, "h").as_deref(), Some("2"));
        assert_eq!(answered(&mut calls, Some("x"), "f").as_deref(), Some("3"));
        assert_eq!(answered(&mut calls, None, "f"), None);
        calls.add("b".into(), "f".into(), true);
        calls.add("c".into(), "g".into(), true);
        assert_eq!(answered(&mut calls, None, "g").as_deref(), Some("c"));
    }
}
