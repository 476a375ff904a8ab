//! Request parameters that have a type of their own, both ways.
//!
//! A parameter is read from its JSON text and remembered as that text where ours would differ: `1`
//! for a temperature of 1.0, or a choice among tools with a field that the vocabulary does not know.
//! The remembered text is written as long as it still says what the request says.

use super::{
    extras::reopen,
    json::{Fields, Object, Raw, Tree, wire_name},
    notes::Notes,
};
use serde_json::Number;
use threadfold_core::message::{Extra, Text};

/// A parameter: its key, and how it is read and written.
#[derive(Clone, Copy)]
pub(super) struct Param<T> {
    /// Its key with a `~` before it, or the key itself where the text may say more than the value.
    pub(super) kept_as: &'static str,
    pub(super) read: fn(Raw<'_>) -> Option<T>,
    pub(super) write: fn(&T) -> Option<Tree>,
}

impl<T: PartialEq> Param<T> {
    /// The key of the parameter in a body.
    pub(super) fn key(&self) -> &'static str {
        wire_name(self.kept_as)
    }

    /// Takes the parameter out of a body, and notes its text where ours would differ. One that does not
    /// read stays.
    pub(super) fn take(&self, body: &mut Fields<'_>) -> Option<T> {
        let raw = body.get(self.key())?;
        let value = (self.read)(raw)?;
        body.take(self.key());
        let text = raw.json();
        if (self.write)(&value).is_none_or(|ours| ours.into_json() != text) {
            body.note(self.kept_as, text);
        }
        Some(value)
    }

    /// Sets the parameter. One that has no form here is noted as left out.
    pub(super) fn set(
        &self,
        object: &mut Object,
        extra: &Extra,
        value: Option<&T>,
        notes: &mut Notes,
    ) {
        let kept = extra.get(notes.codec(), self.kept_as);
        match kept.filter(|text| (self.read)(Raw::of(text)).as_ref() == value) {
            Some(text) => object.set(self.key(), text.clone()),
            None => object.set_some(self.key(), value.and_then(self.write)),
        }
        if value.is_some() && object.get(self.key()).is_none() {
            notes.drop_parameter(self.key());
        }
    }

    /// Whether a note says that the parameter came with this value.
    pub(super) fn came_so(&self, codec: &str, extra: &Extra, value: &T) -> bool {
        let note = extra.get(codec, self.kept_as);
        note.and_then(|note| (self.read)(Raw::of(note))).as_ref() == Some(value)
    }
}

/// An object within a body that holds parameters.
pub(super) struct Section {
    /// Its key with a `~` before it, which is the mark of an empty one.
    pub(super) kept_as: &'static str,
}

impl Section {
    /// Takes the parameters out that this function reads. What it leaves stays an unknown field of the
    /// body, and so does a section that is no object.
    pub(super) fn take(&self, body: &mut Fields<'_>, read: impl FnOnce(&mut Fields<'_>)) {
        let key = wire_name(self.kept_as);
        let Some(mut section) = body.take_as(key, Fields::of) else { return };
        if section.left() == 0 {
            body.note(self.kept_as, Object::default().into_json());
        }
        read(&mut section);
        body.note_inner(key, &section);
        body.move_marks(&mut section);
    }

    /// The fields that were left when the section was read.
    pub(super) fn rest(&self, codec: &str, extra: &Extra) -> Object {
        reopen(extra.get(codec, wire_name(self.kept_as)))
    }

    /// Sets the section of a body. An empty one is left out, unless it came empty.
    pub(super) fn set(&self, body: &mut Object, section: Object, codec: &str, extra: &Extra) {
        let key = wire_name(self.kept_as);
        if section.len() > 0 {
            body.set(key, section);
        } else {
            body.set_some(key, extra.get(codec, self.kept_as).cloned());
        }
    }
}

/// Returns a limit in tokens under this key.
pub(super) const fn limit(kept_as: &'static str) -> Param<u64> {
    Param { kept_as, read: |raw| raw.whole_number(), write: |tokens| Some(Tree::from(*tokens)) }
}

/// Returns the temperature, which is written so.
pub(super) const fn temperature(write: fn(&f64) -> Option<Tree>) -> Param<f64> {
    Param { kept_as: "~temperature", read: |raw| raw.number(), write }
}

/// Writes a temperature; `None` for one that JSON cannot hold.
pub(super) fn write_float(value: &f64) -> Option<Tree> {
    Number::from_f64(*value).map(Tree::Number)
}

/// Writes a temperature of at most 1. Other dialects allow more. A larger one that came in a body of
/// this dialect is kept as its text and written back.
pub(super) fn write_to_one(value: &f64) -> Option<Tree> {
    write_float(value).filter(|_| (0.0..=1.0).contains(value))
}

/// Whether parameters of this type of thinking switch it on with a fixed budget.
pub(super) fn thinks_manually(kind: Option<Text>) -> bool {
    kind.is_some_and(|kind| kind == "enabled")
}

/// Whether parameters of this type of thinking leave it off: they say so, or say nothing.
pub(super) fn does_not_think(kind: Option<Text>) -> bool {
    kind.is_none_or(|kind| kind == "disabled")
}
