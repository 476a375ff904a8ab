//! What the parts of a content become, but for results and the provider's own tools.

use super::{
    marks::{self, Field, flag, keep, mark},
    media,
    part::{Part, no_args},
};
use crate::fields::text;
use threadfold_core::message::{ContentBlock, Text, TextBlock, Thinking, ToolInput, ToolUse};

impl Part<'_> {
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
                own.push(flag("~no_id"));
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
