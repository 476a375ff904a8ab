//! Reading one part of a content: its data field, and the metadata beside it.

use super::marks::{self, CODEC, Name, Spelling, flag};
use crate::json::{Fields, Raw};
use threadfold_core::message::{
    ContentBlock, Extra, Json, Opaque, Text, TextBlock, Thinking, ToolInput, ToolUse,
};

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

    /// What becomes of all that was not taken, with what is left of the data.
    pub(super) fn keep(mut self, left: &Fields<'_>) -> Extra {
        self.rest.note_inner(self.data.camel, left);
        self.spelling.keep(self.rest)
    }
}

impl Part<'_> {
    /// Reads a text, a thought, a picture or a document.
    pub(super) fn block(mut self) -> Option<ContentBlock> {
        if self.data != marks::TEXT {
            return self.medium();
        }
        let said = self.value.text()?;
        let thought = self.rest.get("thought").is_some_and(|raw| raw.get() == "true");
        if thought {
            self.rest.take("thought");
            return Some(self.thinking(said));
        }
        let signed = marks::SIGNATURE.get(&self.rest);
        if said.is_empty() && signed.is_some_and(Raw::is_text) {
            self.rest.mark("~as", "text");
            return Some(self.thinking(said));
        }
        // White space is valid in this dialect only, so it is kept opaque.
        let white = !said.is_empty() && said.is_blank();
        (!white).then(|| TextBlock { text: said, extra: self.spelling.keep(self.rest) }.into())
    }

    fn thinking(mut self, text: Text) -> ContentBlock {
        let signature = self.spelling.take_text(&mut self.rest, marks::SIGNATURE);
        let extra = self.spelling.keep(self.rest);
        Thinking { extra, ..Thinking::new(text, signature) }.into()
    }

    /// Reads a call, under this id if it has none of its own.
    pub(super) fn call(mut self, made_up: impl FnOnce() -> Text) -> Option<ToolUse> {
        let mut inner = self.inner()?;
        let name = inner.take_text("name")?;
        let id = match inner.take_text("id") {
            Some(id) if !id.is_empty() => id,
            Some(empty) => {
                self.rest.mark("~id", &empty);
                made_up()
            }
            None => {
                flag(&mut self.rest, "~no_id");
                made_up()
            }
        };
        let args = inner.take_object("args").map(Raw::json);
        if args.is_none() {
            self.rest.mark("~args", "absent");
        }
        let input = ToolInput::Json(args.unwrap_or_else(no_args));
        Some(ToolUse { id, name, input, extra: self.keep(&inner) })
    }
}

/// The input of a call that came without arguments.
pub(super) fn no_args() -> Json {
    Json::from_compact("{}")
}

/// Returns a part that is kept whole.
pub(super) fn opaque(raw: Raw<'_>) -> ContentBlock {
    Opaque::new(CODEC, raw.json()).into()
}
