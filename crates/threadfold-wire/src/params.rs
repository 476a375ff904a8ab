//! Request parameters for which [`Request`](threadfold_core::message::Request) has fields.
//!
//! A parameter is read from its JSON text. If this crate would write it differently, the text is
//! remembered: for example `1` for a temperature of 1.0, or a tool choice with an unknown field.
//! The remembered text is written while its value equals that of the request.

use super::{extras::reopen, json::*, notes::Notes, options::EncodeOptions};
use serde_json::Number;
use threadfold_core::message::{Extra, Json, Request, Text, ToolChoice};

/// A parameter: its key, and its reader and writer.
#[derive(Clone, Copy)]
pub(super) struct Param<T> {
    /// The key under which the JSON text is remembered: the key of the parameter after a `~`, so
    /// that other codecs ignore it. Without a `~` they report it as left out; this is for
    /// parameters whose text may hold more than the value.
    pub(super) kept_as: &'static str,
    pub(super) read: fn(Raw<'_>) -> Option<T>,
    pub(super) write: fn(&T) -> Option<Tree>,
}

impl<T: PartialEq> Param<T> {
    /// The key of the parameter in a body.
    pub(super) fn key(&self) -> &'static str {
        wire_name(self.kept_as)
    }

    /// Removes the parameter from a body and reads it, and remembers its text if this crate would
    /// write another one. A parameter that cannot be read stays.
    pub(super) fn take(&self, body: &mut Fields<'_>) -> Option<T> {
        let raw = body.get(self.key())?;
        let value = (self.read)(raw)?;
        body.take(self.key());
        let text = raw.json();
        if (self.write)(&value).is_none_or(|ours| ours.into_json() != text) {
            body.add(self.kept_as, text);
        }
        Some(value)
    }

    /// Sets the parameter. A value without a form in this dialect is reported as left out.
    pub(super) fn set(&self, to: &mut Object, extra: &Extra, value: Option<&T>, notes: &mut Notes) {
        let kept = extra.get(notes.codec(), self.kept_as);
        match kept.filter(|text| (self.read)(Raw::of(text)).as_ref() == value) {
            Some(text) => to.set(self.key(), text.clone()),
            None => to.set_some(self.key(), value.and_then(self.write)),
        }
        if value.is_some() && to.get(self.key()).is_none() {
            notes.drop_parameter(self.key());
        }
    }

    /// Whether the body that was read had the parameter with this value.
    pub(super) fn was_read_as(&self, codec: &str, extra: &Extra, value: &T) -> bool {
        let note = extra.get(codec, self.kept_as);
        note.and_then(|note| (self.read)(Raw::of(note))).as_ref() == Some(value)
    }
}

/// Whether the body names a model. A body without a model is stored, not sent.
pub(super) fn names_model(request: &Request, options: &EncodeOptions, codec: &str) -> bool {
    let own = request.extra.get(codec, "model");
    options.model.is_some() || own.is_some_and(|own| *own != Json::default())
}

/// Whether the tools that a choice needs are among these.
pub(super) fn is_met<'t>(choice: &ToolChoice, mut tools: impl Iterator<Item = &'t Text>) -> bool {
    match choice {
        ToolChoice::Tool(name) => tools.any(|tool| tool == name),
        ToolChoice::Auto | ToolChoice::Required | ToolChoice::None => tools.next().is_some(),
    }
}

/// An object of a body that holds parameters.
pub(super) struct Section {
    /// Its key with a `~` before it, which is also the mark of an empty one.
    pub(super) kept_as: &'static str,
}

impl Section {
    /// Reads the parameters with this function. The remaining fields stay unknown fields of the
    /// body, and so does a section that is no object.
    pub(super) fn take(&self, body: &mut Fields<'_>, read: impl FnOnce(&mut Fields<'_>)) {
        let key = wire_name(self.kept_as);
        let Some(mut section) = body.take_as(key, Fields::of) else { return };
        if section.left() == 0 {
            body.add(self.kept_as, Object::default().into_json());
        }
        read(&mut section);
        body.add_inner(key, &section);
        body.move_marks(&mut section);
    }

    /// The unknown fields of the section.
    pub(super) fn rest(&self, codec: &str, extra: &Extra) -> Object {
        reopen(extra.get(codec, wire_name(self.kept_as)))
    }

    /// Sets the section of a body. An empty one is omitted, unless it was empty in the body that
    /// was read.
    pub(super) fn set(&self, body: &mut Object, section: Object, codec: &str, extra: &Extra) {
        let key = wire_name(self.kept_as);
        if section.len() > 0 {
            body.set(key, section);
        } else {
            body.set_some(key, extra.get(codec, self.kept_as).cloned());
        }
    }
}

/// The parameter for the maximum tokens of the answer.
pub(super) const fn limit(kept_as: &'static str) -> Param<u64> {
    Param { kept_as, read: |raw| raw.whole_number(), write: |tokens| Some(Tree::from(*tokens)) }
}

/// The temperature, for providers that accept any.
pub(super) const TEMPERATURE: Param<f64> = temperature(write_float);

/// The parameter for the temperature, with its writer.
pub(super) const fn temperature(write: fn(&f64) -> Option<Tree>) -> Param<f64> {
    Param { kept_as: "~temperature", read: |raw| raw.number(), write }
}

/// Writes a temperature; `None` for a value that JSON cannot hold.
fn write_float(value: &f64) -> Option<Tree> {
    Number::from_f64(*value).map(Tree::Number)
}

/// Writes a temperature of at most 1, the limit of the provider. A larger one that was read in a
/// body of this dialect is written back from its remembered text.
pub(super) fn write_to_one(value: &f64) -> Option<Tree> {
    write_float(value).filter(|_| (0.0..=1.0).contains(value))
}

/// Whether this type of thinking has a fixed budget.
pub(super) fn thinks_manually(kind: Option<Text>) -> bool {
    kind.is_some_and(|kind| kind == "enabled")
}

/// Whether this type of thinking is off, explicitly or by default.
pub(super) fn does_not_think(kind: Option<Text>) -> bool {
    kind.is_none_or(|kind| kind == "disabled")
}
