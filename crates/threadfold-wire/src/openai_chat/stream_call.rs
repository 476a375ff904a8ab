//! The tool calls of a streamed response.
//!
//! A call is identified by its `index`. Its id and name arrive once, and its input in pieces. Some
//! servers give every call the index 0, or none: then a new id with a name begins a new call, and
//! so does another name, or a name with an input after an input that is whole. Without an index a
//! known id continues its call. Some servers change the id within a call: the first one counts.

use std::collections::HashMap;

use crate::kit::*;

/// The calls so far, in the order in which they began.
#[derive(Debug, Default)]
pub(super) struct Calls {
    calls: Vec<Call>,
    /// The position of the call of each index.
    places: HashMap<u64, usize>,
}

/// A call that is being received.
#[derive(Debug, Default)]
pub(super) struct Call {
    id: Text,
    name: Text,
    kind: Text,
    /// The field that holds its name and input: `function` or `custom`.
    form: &'static str,
    input: String,
    reported: bool,
    body: Merged,
    rest: Merged,
}

impl Calls {
    /// Takes an item of `tool_calls`, and reports what it adds.
    pub(super) fn add(&mut self, mut item: Fields<'_>, out: &mut Output) {
        let index = item.take_as("index", Raw::whole_number);
        let place = self.place(index, &item);
        if let Some(call) = self.calls.get_mut(place) {
            call.add(item, out);
        }
    }

    /// Reports the calls whose id or name did not arrive, under the id and name that the reader
    /// will give them.
    pub(super) fn finish(&mut self, out: &mut Output) {
        for call in self.calls.iter_mut().filter(|call| !call.reported) {
            call.reported = true;
            let names = [&*call.name, &*call.kind, call.form, "function"];
            let name = names.into_iter().find(|name| !name.is_empty()).unwrap_or_default();
            out.call(&call.id, name.into());
            out.input(&call.id, call.input.as_str().into());
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// `tool_calls` as in a whole response; `None` if there are none.
    pub(super) fn tree(&self) -> Option<Tree> {
        let calls = self.calls.iter().map(Call::item);
        (!self.is_empty()).then(|| calls.collect())
    }

    /// Returns the position of the call that an item belongs to, or of a new call.
    fn place(&mut self, index: Option<u64>, item: &Fields<'_>) -> usize {
        let known = match index {
            Some(index) => self.places.get(&index).copied(),
            None => {
                let id = item.text_or_empty("id");
                let own = self.calls.iter().rposition(|call| !id.is_empty() && call.id == id);
                own.or_else(|| self.calls.len().checked_sub(1))
            }
        };
        let continues =
            known.filter(|at| self.calls.get(*at).is_some_and(|call| call.goes_on(index, item)));
        let place = continues.unwrap_or(self.calls.len());
        if place == self.calls.len() {
            self.calls.push(Call::default());
        }
        if let Some(index) = index {
            self.places.insert(index, place);
        }
        place
    }
}

impl Call {
    /// Returns a call of the deprecated form, with the id that the reader will give it.
    pub(super) fn deprecated(response: &str) -> Self {
        Self { id: format!("function_call_{response}").into(), ..Self::default() }
    }

    /// Takes name and input, or pieces of them, and reports what they add.
    pub(super) fn add_body(&mut self, form: &'static str, mut body: Fields<'_>, out: &mut Output) {
        self.form = form;
        if let Some(name) = take_word(&mut body, "name").filter(|_| self.name.is_empty()) {
            self.name = name;
        }
        // An input that arrives as JSON instead of text is kept as its text.
        let input = body.take_value(self.input_key());
        let piece = input.map(|raw| raw.text().unwrap_or_else(|| raw.get().into()));
        let piece = piece.unwrap_or_default();
        self.input.push_str(&piece);
        self.body.merge(&body);
        self.report(piece, out);
    }

    /// Name and input, as they are written within a call.
    pub(super) fn body(&self) -> Object {
        let mut object = Object::default();
        object.set_unless_empty("name", &self.name);
        object.push(self.input_key(), self.input.clone());
        self.body.add_to(&mut object);
        object
    }

    fn add(&mut self, mut item: Fields<'_>, out: &mut Output) {
        for (key, own) in [("id", &mut self.id), ("type", &mut self.kind)] {
            if let Some(word) = take_word(&mut item, key).filter(|_| own.is_empty()) {
                *own = word;
            }
        }
        self.report(Text::default(), out);
        for form in ["function", "custom"] {
            if let Some(body) = item.take_as(form, Fields::of) {
                self.add_body(form, body, out);
            }
        }
        self.rest.merge(&item);
    }

    /// Reports a call once its id and name are known, with the input so far.
    fn report(&mut self, piece: Text, out: &mut Output) {
        if self.reported {
            return out.input(&self.id, piece);
        }
        if !self.id.is_empty() && !self.name.is_empty() {
            self.reported = true;
            out.call(&self.id, self.name.clone());
            out.input(&self.id, self.input.as_str().into());
        }
    }

    /// Whether an item continues this call: see the head of this file.
    fn goes_on(&self, index: Option<u64>, item: &Fields<'_>) -> bool {
        let body = ["function", "custom"].into_iter().find_map(|form| item.object(form));
        let body = body.unwrap_or_default();
        let name = body.text_or_empty("name");
        let is_named = !name.is_empty();
        let id = item.text_or_empty("id");
        if !id.is_empty() && !self.id.is_empty() {
            return id == self.id || (index.is_some() && !is_named && !self.name.is_empty());
        }
        if self.name.is_empty() || !is_named {
            return true;
        }
        let adds_input = ["arguments", "input"].into_iter().any(|key| {
            body.value(key).is_some_and(|raw| raw.text().is_none_or(|text| !text.is_empty()))
        });
        index.is_some() && name == self.name && !(adds_input && Json::parse(&self.input).is_ok())
    }

    /// The call as an item of `tool_calls`.
    fn item(&self) -> Object {
        let mut object = Object::default();
        for (key, value) in [("id", &self.id), ("type", &self.kind)] {
            if !value.is_empty() {
                object.push(key, value.clone());
            }
        }
        if !self.form.is_empty() {
            // Servers omit the type in streams, but not in whole answers.
            if self.kind.is_empty() {
                object.push("type", self.form);
            }
            object.push(self.form, self.body());
        }
        // Some servers send `null` before the function.
        object.and(self.rest.object())
    }

    fn input_key(&self) -> &'static str {
        if self.form == "custom" { "input" } else { "arguments" }
    }
}

/// Removes a field and returns its text; `None` if it is empty or no text.
fn take_word(fields: &mut Fields<'_>, key: &str) -> Option<Text> {
    fields.take(key).and_then(Raw::text).filter(|word| !word.is_empty())
}
