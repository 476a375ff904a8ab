//! One part of a content: its data field, and the metadata beside it.

use super::marks::{self, CODEC, Field, Name, Spelling, inner, keep};
use crate::{
    fields::Fields,
    raw::Raw,
    tree::{Object, Tree},
};
use threadfold_core::message::{ContentBlock, Extra, Json, Opaque};

/// A part whose data field is known. Anything else is opaque.
#[derive(Debug)]
pub(super) struct Part<'a> {
    /// The name of the data field.
    pub(super) data: Name,
    /// Its value.
    pub(super) value: Raw<'a>,
    /// Everything beside it.
    pub(super) rest: Fields<'a>,
    pub(super) spelling: Spelling,
}

const DATA: [Name; 9] = [
    marks::TEXT,
    marks::FUNCTION_CALL,
    marks::FUNCTION_RESPONSE,
    marks::INLINE_DATA,
    marks::FILE_DATA,
    marks::EXECUTABLE_CODE,
    marks::CODE_RESULT,
    marks::TOOL_CALL,
    marks::TOOL_RESPONSE,
];

impl<'a> Part<'a> {
    /// Reads a part that has exactly one data field, and one that is known.
    pub(super) fn read(raw: Raw<'a>) -> Option<Self> {
        let mut rest = Fields::of(raw)?;
        let known = |key: &str| DATA.into_iter().find(|name| name.is(key));
        let mut found = rest.rest().filter_map(|(key, _)| known(key));
        let data = found.next().filter(|_| found.next().is_none())?;
        drop(found);
        let mut spelling = Spelling::default();
        let value = spelling.take(&mut rest, data)?;
        Some(Self { data, value, rest, spelling })
    }

    /// The fields of the data.
    pub(super) fn inner(&self) -> Option<Fields<'a>> {
        Fields::of(self.value)
    }

    /// Returns what was not taken, with what is left of the data.
    pub(super) fn extra(&self, left: &Fields<'_>, mut own: Vec<Field>) -> Extra {
        own.extend(inner(self.data.camel, left));
        keep(&self.rest, &self.spelling, own)
    }
}

/// The input of a call that came without arguments.
pub(super) fn no_args() -> Json {
    Tree::from(Object::default()).into_json()
}

/// Returns a part that is kept whole.
pub(super) fn opaque(raw: Raw<'_>) -> ContentBlock {
    Opaque::new(CODEC, raw.json()).into()
}
