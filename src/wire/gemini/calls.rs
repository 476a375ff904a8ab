//! Which call a result answers, when not every call has an id.

use std::collections::{HashMap, VecDeque};

use crate::message::Text;

/// The calls of the turn before, as far as they wait for their results.
#[derive(Debug, Default)]
pub(super) struct Calls {
    calls: Vec<Call>,
    by_id: HashMap<Text, VecDeque<usize>>,
    /// Calls without an id of their own, and calls with one.
    unnamed: HashMap<Text, VecDeque<usize>>,
    named: HashMap<Text, VecDeque<usize>>,
    /// Before this one all are answered.
    first: usize,
}

#[derive(Debug)]
struct Call {
    id: Text,
    name: Text,
    answered: bool,
}

impl Calls {
    /// Adds a call; `came` says whether its id came with it.
    pub(super) fn add(&mut self, id: Text, name: Text, came: bool) {
        let index = self.calls.len();
        let of_name = if came { &mut self.named } else { &mut self.unnamed };
        of_name.entry(name.clone()).or_default().push_back(index);
        self.by_id.entry(id.clone()).or_default().push_back(index);
        self.calls.push(Call { id, name, answered: false });
    }

    /// Returns id and name of the call that a result answers: the one that it names, else the next
    /// one of its function, else, where it names none, the next one.
    pub(super) fn answer(&mut self, id: Option<&Text>, name: &Text) -> Option<(Text, Text)> {
        let index = match id {
            Some(id) => self.next(&Key::Id(id)).or_else(|| self.next(&Key::Unnamed(name))),
            None => self
                .next(&Key::Unnamed(name))
                .or_else(|| self.next(&Key::Named(name)))
                .or_else(|| self.next_of_all()),
        };
        let call = self.calls.get_mut(index?)?;
        call.answered = true;
        Some((call.id.clone(), call.name.clone()))
    }

    fn next(&mut self, key: &Key<'_>) -> Option<usize> {
        let waiting = match key {
            Key::Id(id) => self.by_id.get_mut(*id),
            Key::Unnamed(name) => self.unnamed.get_mut(*name),
            Key::Named(name) => self.named.get_mut(*name),
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

enum Key<'k> {
    Id(&'k Text),
    Unnamed(&'k Text),
    Named(&'k Text),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(calls: &mut Calls, id: Option<&str>, name: &str) -> Option<String> {
        let id = id.map(Text::from);
        calls.answer(id.as_ref(), &name.into()).map(|(id, _)| id.to_string())
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
