//! Request parameters that have a type of their own, both ways.
//!
//! A parameter is read from its JSON text and remembered as that text where ours would differ: `1`
//! for a temperature of 1.0, or a choice among tools with a field that the vocabulary does not know.
//! The remembered text is written as long as it still says what the request says.

use super::{
    json::{Fields, Object, Raw, Tree, wire_name},
    notes::Notes,
};
use serde_json::Number;
use threadfold_core::message::{Extra, Text};

/// A parameter: its key, which also names where its text is remembered, and both directions.
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

    /// As [`take`](Self::take), out of an object within the body.
    pub(super) fn take_from(&self, inner: &mut Fields<'_>, body: &mut Fields<'_>) -> Option<T> {
        let value = self.take(inner);
        body.move_marks(inner);
        value
    }

    /// Sets the parameter of a body. One that has no form here is noted as left out.
    pub(super) fn set(
        &self,
        object: &mut Object,
        extra: &Extra,
        value: Option<&T>,
        notes: &mut Notes,
    ) {
        let get = |key| extra.get(notes.codec(), key);
        // What did not read as a value stands under its own key.
        let kept = get(self.kept_as).or_else(|| get(self.key()));
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

/// Reads a number; `None` for anything else.
pub(super) fn number<T: for<'n> serde::Deserialize<'n>>(raw: Raw<'_>) -> Option<T> {
    serde_json::from_str(raw.get()).ok()
}

/// Writes a temperature; `None` for one that JSON cannot hold.
pub(super) fn write_float(value: &f64) -> Option<Tree> {
    Number::from_f64(*value).map(Tree::Number)
}

/// Writes a temperature where it is 1 at most. Others go further; what came in a body of this
/// dialect is remembered and goes back.
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
