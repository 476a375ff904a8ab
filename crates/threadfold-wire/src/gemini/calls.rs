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

/// The calls of the turn before, as far as they wait for their results.
///
/// Most results come in the order of their calls. Only for one that does not, the calls are sorted
/// by what they may be known by.
#[derive(Debug, Default)]
pub(super) struct Calls {
    calls: Vec<Call>,
    /// Before this one all are answered.
    first: usize,
    index: Option<Index>,
}

#[derive(Debug)]
struct Call {
    id: Text,
    name: Text,
    /// Whether its id came with it.
    came: bool,
    answered: bool,
}

#[derive(Debug, Default)]
struct Index {
    by_id: HashMap<Text, VecDeque<usize>>,
    /// Calls without an id of their own, and calls with one.
    unnamed: HashMap<Text, VecDeque<usize>>,
    named: HashMap<Text, VecDeque<usize>>,
}

impl Calls {
    /// Adds a call; `came` says whether its id came with it.
    pub(super) fn add(&mut self, id: Text, name: Text, came: bool) {
        let call = Call { id, name, came, answered: false };
        if let Some(index) = &mut self.index {
            index.add(self.calls.len(), &call);
        }
        self.calls.push(call);
    }

    /// Returns id and name of the call that a result answers: the one that it names, else the next
    /// one of its function, else, where it names none, the next one.
    pub(super) fn answer(&mut self, id: Option<&str>, name: &str) -> Option<(Text, Text)> {
        let first = self.next_of_all()?;
        let place = if self.is_meant(first, id, name) { first } else { self.search(id, name)? };
        let call = self.calls.get_mut(place)?;
        call.answered = true;
        Some((call.id.clone(), call.name.clone()))
    }

    /// Whether a call that no other one waits before is the first that a search would find.
    fn is_meant(&self, first: usize, id: Option<&str>, name: &str) -> bool {
        self.calls.get(first).is_some_and(|call| match id {
            Some(id) => call.id == *id,
            None => !call.came && call.name == *name,
        })
    }

    fn search(&mut self, id: Option<&str>, name: &str) -> Option<usize> {
        if self.index.is_none() {
            let mut index = Index::default();
            self.calls.iter().enumerate().for_each(|(place, call)| index.add(place, call));
            self.index = Some(index);
        }
        match id {
            Some(id) => self.next(&Key::Id(id)).or_else(|| self.next(&Key::Unnamed(name))),
            None => self
                .next(&Key::Unnamed(name))
                .or_else(|| self.next(&Key::Named(name)))
                .or_else(|| self.next_of_all()),
        }
    }

    fn next(&mut self, key: &Key<'_>) -> Option<usize> {
        let index = self.index.as_mut()?;
        let waiting = match key {
            Key::Id(id) => index.by_id.get_mut(*id),
            Key::Unnamed(name) => index.unnamed.get_mut(*name),
            Key::Named(name) => index.named.get_mut(*name),
        }?;
        loop {
            let index = waiting.pop_front()?;
            if self.calls.get(index).is_some_and(|call| !call.answered) {
                return Some(index);
            }
        }
    }

    fn next_of_all(&mut self) -> Option<usize> {
        while self.calls.get(self.first)?.answered {
            self.first += 1;
        }
        Some(self.first)
    }
}

impl Index {
    fn add(&mut self, place: usize, call: &Call) {
        let of_name = if call.came { &mut self.named } else { &mut self.unnamed };
        of_name.entry(call.name.clone()).or_default().push_back(place);
        self.by_id.entry(call.id.clone()).or_default().push_back(place);
    }
}

enum Key<'k> {
    Id(&'k str),
    Unnamed(&'k str),
    Named(&'k str),
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
