//! One part of a content: its data field, and the metadata beside it.

use serde_json::value::RawValue;

use super::{
    marks::{self, CODEC, Field, Name, Spelling, inner, keep, mark},
    media,
};
use crate::{
    message::{ContentBlock, Extra, Json, Opaque, Text, TextBlock, Thinking, ToolInput, ToolUse},
    wire::{
        fields::{Fields, text},
        tree::{Object, Tree},
    },
};

/// A part whose data field is known. Anything else is opaque.
#[derive(Debug)]
pub(super) struct Part<'a> {
    /// The name of the data field.
    pub(super) data: Name,
    /// Its value.
    pub(super) value: &'a RawValue,
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
    pub(super) fn read(raw: &'a RawValue) -> Option<Self> {
        let mut rest = Fields::parse(raw.get())?;
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
        Fields::parse(self.value.get())
    }

    /// Returns what nobody took, with what is left of the data.
    pub(super) fn extra(&self, left: &Fields<'_>, mut own: Vec<Field>) -> Extra {
        own.extend(inner(self.data.camel, left));
        keep(&self.rest, &self.spelling, own)
    }

    /// Reads a text, a thought, a picture or a document.
    pub(super) fn block(mut self) -> Option<ContentBlock> {
        if self.data != marks::TEXT {
            return media::read(self);
        }
        let said = text(self.value)?;
        let thought = self.rest.get("thought").is_some_and(|raw| raw.get() == "true");
        if thought {
            self.rest.take("thought");
            return Some(self.thinking(said, Vec::new()));
        }
        let signed = marks::SIGNATURE.in_fields(&self.rest).and_then(|key| self.rest.get(key));
        if said.is_empty() && signed.is_some_and(|raw| raw.get().starts_with('"')) {
            return Some(self.thinking(said, vec![mark("~as", "text")]));
        }
        // White space is valid here. Other providers refuse it, so it is no text of the thread.
        let white = !said.is_empty() && said.is_blank();
        let extra = keep(&self.rest, &self.spelling, Vec::new());
        (!white).then(|| TextBlock { text: said, extra }.into())
    }

    fn thinking(mut self, text: Text, own: Vec<Field>) -> ContentBlock {
        let signature = self.spelling.take_text(&mut self.rest, marks::SIGNATURE);
        let extra = keep(&self.rest, &self.spelling, own);
        Thinking { extra, ..Thinking::new(text, signature) }.into()
    }

    /// Reads a call, under this id if it has none of its own.
    pub(super) fn call(self, made_up: impl FnOnce() -> Text) -> Option<ToolUse> {
        let mut inner = self.inner()?;
        let name = inner.take_text("name")?;
        let mut own = Vec::new();
        let id = match inner.take_text("id") {
            Some(id) if !id.is_empty() => id,
            Some(empty) => {
                own.push(mark("~id", &empty));
                made_up()
            }
            None => {
                own.push(marks::flag("~no_id"));
                made_up()
            }
        };
        let is_object = inner.get("args").is_some_and(|raw| raw.get().starts_with('{'));
        let args = is_object.then(|| inner.take_json("args")).flatten();
        if args.is_none() {
            own.push(mark("~args", "absent"));
        }
        let input = ToolInput::Json(args.unwrap_or_else(no_args));
        Some(ToolUse { id, name, input, extra: self.extra(&inner, own) })
    }
}

/// The input of a call that came without arguments.
pub(super) fn no_args() -> Json {
    Tree::from(Object::default()).into_json()
}

/// Returns a part that is kept whole.
pub(super) fn opaque(raw: &RawValue) -> ContentBlock {
    Opaque::new(CODEC, Json::from_raw(raw)).into()
}
