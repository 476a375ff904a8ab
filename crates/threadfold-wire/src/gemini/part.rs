//! Reading one part of a content: its data field and metadata. Also pairs results with calls,
//! because not every call has an id.

use std::collections::{HashMap, VecDeque};

use super::marks::*;
use crate::kit::*;

/// A part with a known data field. Other parts become opaque.
#[derive(Clone, Debug)]
pub(super) struct Part<'a> {
    /// The name of the data field.
    pub(super) data: &'static str,
    /// Its value.
    pub(super) value: Raw<'a>,
    /// The other fields.
    pub(super) rest: Fields<'a>,
}

#[rustfmt::skip]
const DATA: [&str; 9] = [
    "text", "functionCall", "functionResponse", "inlineData", "fileData", "executableCode",
    "codeExecutionResult", "toolCall", "toolResponse",
];

impl<'a> Part<'a> {
    /// Reads a part that has exactly one data field, which must be known. A `null` counts as
    /// absent, because some clients write all fields.
    pub(super) fn read(raw: Raw<'a>) -> Option<Self> {
        let mut rest = fields(raw)?;
        let mut found = DATA.into_iter().filter(|key| rest.value(key).is_some());
        let data = found.next().filter(|_| found.next().is_none())?;
        let value = rest.take(data)?;
        Some(Self { data, value, rest })
    }

    /// The fields of the data.
    pub(super) fn inner(&self) -> Option<Fields<'a>> {
        fields(self.value)
    }

    /// The extra of the part: its remaining fields, and those of its data.
    pub(super) fn keep(mut self, mut left: Fields<'_>) -> Extra {
        self.rest.add_inner(self.data, &left);
        self.rest.move_marks(&mut left);
        self.rest.keep(CODEC)
    }

    /// Reads a text, reasoning, an image or a document.
    pub(super) fn block(mut self) -> Option<ContentBlock> {
        if self.data != "text" {
            return self.medium();
        }
        let text = self.value.text()?;
        let thought = self.rest.get("thought").is_some_and(|raw| raw.get() == "true");
        if thought {
            self.rest.take("thought");
            return Some(self.thinking(text));
        }
        if text.is_empty() && self.rest.get("thoughtSignature").is_some_and(Raw::is_text) {
            self.rest.add_word(mark::AS, "text");
            return Some(self.thinking(text));
        }
        // Text of white space only is valid in this dialect but in no other, so it becomes opaque.
        let is_space = !text.is_empty() && text.is_blank();
        (!is_space).then(|| TextBlock { text, extra: self.rest.keep(CODEC) }.into())
    }

    fn thinking(mut self, text: Text) -> ContentBlock {
        let signature = self.rest.take_text("thoughtSignature");
        let extra = self.rest.keep(CODEC);
        Thinking { extra, ..Thinking::new(text, signature) }.into()
    }

    /// Reads a call. If it has no id, it gets this one.
    pub(super) fn call(mut self, made_up: impl FnOnce() -> Text) -> Option<ToolUse> {
        let mut inner = self.inner()?;
        let name = inner.take_text("name")?;
        let given_id = inner.take_text("id");
        match &given_id {
            Some(id) if !id.is_empty() => {}
            Some(empty) => self.rest.add_word(mark::ID, empty),
            None => self.rest.flag(mark::NO_ID),
        }
        let id = given_id.filter(|id| !id.is_empty()).unwrap_or_else(made_up);
        let args = inner.take_object("args").map(Raw::json);
        if args.is_none() {
            self.rest.add_word(mark::ARGS, "absent");
        }
        let input = ToolInput::Json(args.unwrap_or_else(no_args));
        Some(ToolUse { id, name, input, extra: self.keep(inner) })
    }
}

/// The input of a call that was read without arguments.
pub(super) fn no_args() -> Json {
    Json::from_compact("{}")
}

/// Reads parts with this function. A part that it cannot read becomes opaque.
pub(super) fn read_all<'a>(
    parts: Vec<Raw<'a>>,
    mut read: impl FnMut(Part<'a>) -> Option<ContentBlock>,
) -> Vec<ContentBlock> {
    let blocks = parts.into_iter().map(|raw| {
        let block = Part::read(raw).and_then(&mut read);
        block.unwrap_or_else(|| Opaque::new(CODEC, raw.json()).into())
    });
    blocks.collect()
}

/// Reads a result. If it has no id, it is paired with a call of the previous turn.
pub(super) fn result(mut part: Part<'_>, calls: &mut Calls) -> Option<ToolResult> {
    let mut inner = part.inner()?;
    let given_id = inner.take_word("id");
    let name = inner.word("name").unwrap_or_default();
    let wanted = given_id.as_deref().filter(|id| !id.is_empty());
    let id = match calls.answer(wanted, &name) {
        Some((id, of_call)) => {
            inner.take_as("name", |_| (of_call == *name).then_some(()));
            id
        }
        // A result without a call keeps its content until repairs remove it.
        None => given_id.as_deref().unwrap_or_default().into(),
    };
    match &given_id {
        Some(given_id) if id == **given_id => {}
        Some(given_id) => part.rest.add_word(mark::ID, given_id),
        None => part.rest.flag(mark::NO_ID),
    }
    let response = inner.take_as("response", |raw| response(raw, &mut part.rest));
    let (mut content, is_error) = response.unwrap_or_default();
    if let Some(media) = inner.take_as("parts", parts) {
        part.rest.flag(mark::PARTS);
        content.extend(media);
    }
    let extra = part.keep(inner);
    Some(ToolResult { is_error, extra, ..ToolResult::new(id, content) })
}

/// Reads a response: the text under `output` or `error`, or else the whole object as JSON text.
fn response(raw: Raw<'_>, result: &mut Fields<'_>) -> Option<(Vec<ContentBlock>, bool)> {
    let fields = Fields::of(raw)?;
    let mut all = fields.rest();
    if let (Some((key, value)), None) = (all.next(), all.next())
        && let Some(text) = value.text().filter(|_| ["output", "error"].contains(&key))
        && value.is_text()
    {
        let content = if text.is_empty() { Vec::new() } else { vec![ContentBlock::text(text)] };
        return Some((content, key == "error"));
    }
    result.add_word(mark::AS, "response");
    let whole = raw.json();
    Some((vec![ContentBlock::text(Text::from(whole.as_str()))], says_error(&fields)))
}

/// Whether a response reports that the function failed.
pub(super) fn says_error(fields: &Fields<'_>) -> bool {
    fields.value("error").is_some()
}

fn parts(raw: Raw<'_>) -> Option<Vec<ContentBlock>> {
    let parts = raw.items().filter(|parts| !parts.is_empty())?;
    Some(read_all(parts, Part::medium))
}

/// The rule for names of functions.
pub(super) const TOOLS: NameRules = NameRules {
    is_legal: |char| is_word(char) || matches!(char, '.' | ':'),
    begins_with_letter: true,
    ..names::TOOLS
};

/// The calls of the previous turn that wait for their results.
///
/// A result may name its call, only the function, or neither. So each call is in a queue for every
/// key by which a result may refer to it, and a result takes the first unanswered call of its
/// queue. This finds a call in constant time, even in a hostile body with very many calls.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// Id and name of each call, until it is answered.
    calls: Vec<Option<(Text, Text)>>,
    /// The calls by every key that a result may refer to, the earliest first. A queue may hold
    /// calls that were answered under another key.
    waiting: HashMap<Key, VecDeque<usize>>,
}

/// A key by which a result may refer to its call.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) enum Key {
    Id(Text),
    /// The name of a call that was read without an id.
    Unnamed(Text),
    /// The name of a call that was read with an id.
    Named(Text),
    Any,
}

impl Calls {
    /// Adds a call; `has_id` is true if it was read with an id.
    pub(super) fn add(&mut self, id: Text, name: Text, has_id: bool) {
        let of_name = if has_id { Key::Named(name.clone()) } else { Key::Unnamed(name.clone()) };
        for key in [Key::Id(id.clone()), of_name, Key::Any] {
            self.waiting.entry(key).or_default().push_back(self.calls.len());
        }
        self.calls.push(Some((id, name)));
    }

    /// The number of calls so far.
    pub(super) fn count(&self) -> usize {
        self.calls.len()
    }

    /// Returns id and name of the call that a result answers: the call that it names, else the next
    /// call of its function, else, if it has no id, the next call.
    pub(super) fn answer(&mut self, id: Option<&str>, name: &str) -> Option<(Text, Text)> {
        let unnamed = Key::Unnamed(name.into());
        let keys = match id {
            Some(id) => vec![Key::Id(id.into()), unnamed],
            None => vec![unnamed, Key::Named(name.into()), Key::Any],
        };
        keys.iter().find_map(|key| self.next(key))
    }

    /// Returns id and name of the next call with this key.
    pub(super) fn next(&mut self, key: &Key) -> Option<(Text, Text)> {
        let waiting = self.waiting.get_mut(key)?;
        while let Some(place) = waiting.pop_front() {
            if let Some(call) = self.calls.get_mut(place).and_then(Option::take) {
                return Some(call);
            }
        }
        None
    }
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
        for (id, name, has_id) in
            [("a", "f", true), ("1", "f", false), ("2", "g", false), ("3", "f", false)]
        {
            calls.add(id.into(), name.into(), has_id);
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
