//! Reading JSON objects field by field, without losing any.
//!
//! An object is read one level deep: its keys, and the raw text of its values. What a codec knows
//! it takes out; what is left becomes the [`Extra`] of the message or block, together with the codec's
//! marks: they say in which form something came. The name of a mark begins with `~`, and a wire field
//! whose name begins so gets a second `~`.

use std::{borrow::Cow, fmt};

use super::{
    raw::{Raw, Scanned, outer},
    tree::{MARK, Object, Tree, wire_name},
};
use crate::contract::WireError;
use threadfold_core::message::{Extra, Json, Name, Text};

/// The path of a value in a body. It is written out only for an error.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Path<'p> {
    /// The whole body.
    Body,
    /// A field of an object.
    Field(&'p Path<'p>, &'p str),
    /// An item of an array.
    Item(&'p Path<'p>, usize),
}

/// The fields of one JSON object, in order, and the marks on the value that they become.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fields<'a> {
    fields: Vec<(Cow<'a, str>, Raw<'a>)>,
    marks: Vec<(&'static str, Json)>,
}

impl<'a> Fields<'a> {
    /// Reads an object, one level deep. A key that comes twice counts once, with its last value.
    pub(crate) fn read(raw: Raw<'a>, path: Path<'_>) -> Result<Self, WireError> {
        Self::of(raw).ok_or_else(|| path.mismatch("an object", raw))
    }

    /// Reads an object, one level deep; `None` if it is something else.
    pub(crate) fn of(raw: Raw<'a>) -> Option<Self> {
        match raw.parts() {
            Some(parts) => Self::of_parts(raw.get(), parts),
            None => Self::parse(raw.get()),
        }
    }

    /// Reads the keys and values of an object, in turns.
    fn of_parts(text: &str, mut parts: impl Iterator<Item = Raw<'a>>) -> Option<Self> {
        /// Most objects have no more keys.
        const USUAL: usize = 8;
        if !text.starts_with('{') {
            return None;
        }
        let mut fields = Vec::with_capacity(USUAL);
        while let Some(key) = parts.next() {
            push(&mut fields, key.word()?, parts.next()?);
        }
        Some(Self { fields, marks: Vec::new() })
    }

    /// Reads the text of an object, one level deep; `None` if it is something else.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        Self::of_parts(text.trim_start(), outer(text)?.into_iter())
    }

    /// Reads a whole body.
    pub(crate) fn body(body: &'a Scanned<'_>) -> Result<Self, WireError> {
        Self::read(body.whole()?, Path::Body)
    }

    /// Reads a whole response body. One that holds an error is refused.
    pub(crate) fn answer(body: &'a Scanned<'_>) -> Result<Self, WireError> {
        let fields = Self::body(body)?;
        match fields.value("error") {
            Some(error) => {
                let path = Path::Field(&Path::Body, "error");
                Err(path.mismatch("an answer without an error", error))
            }
            None => Ok(fields),
        }
    }

    /// The raw value of a field.
    pub(crate) fn get(&self, key: &str) -> Option<Raw<'a>> {
        self.fields.iter().find(|(name, _)| name == key).map(|(_, raw)| *raw)
    }

    /// The raw value of a field; `None` if it is `null`.
    pub(crate) fn value(&self, key: &str) -> Option<Raw<'a>> {
        self.get(key).filter(|raw| raw.get() != "null")
    }

    /// The text of a field; `None` if it is something else.
    pub(crate) fn text(&self, key: &str) -> Option<Text> {
        self.get(key)?.text()
    }

    /// As [`text`](Self::text), for a text that is looked at and not kept.
    pub(crate) fn word(&self, key: &str) -> Option<Cow<'a, str>> {
        self.get(key)?.word()
    }

    /// The number in a field; `None` if it is something else, or too large.
    pub(crate) fn number(&self, key: &str) -> Option<u64> {
        self.get(key)?.whole_number()
    }

    /// The items of an array in a field; `None` if it is something else.
    pub(crate) fn items(&self, key: &str) -> Option<Vec<Raw<'a>>> {
        self.get(key)?.items()
    }

    /// The fields of an object in a field; `None` if it is something else.
    pub(crate) fn object(&self, key: &str) -> Option<Self> {
        Self::of(self.get(key)?)
    }

    /// Takes the raw value of a field out.
    pub(crate) fn take(&mut self, key: &str) -> Option<Raw<'a>> {
        let index = self.fields.iter().position(|(name, _)| name == key)?;
        Some(self.fields.remove(index).1)
    }

    /// Takes the raw value of a field out; `None` if it is `null`.
    pub(crate) fn take_value(&mut self, key: &str) -> Option<Raw<'a>> {
        self.take(key).filter(|raw| raw.get() != "null")
    }

    /// Takes a field out, as this function reads it. A field that it cannot read stays.
    pub(crate) fn take_as<T>(
        &mut self,
        key: &str,
        read: impl FnOnce(Raw<'a>) -> Option<T>,
    ) -> Option<T> {
        let value = read(self.get(key)?)?;
        self.take(key);
        Some(value)
    }

    /// Takes a text out. Of another shape, or `null`, it stays.
    pub(crate) fn take_text(&mut self, key: &str) -> Option<Text> {
        self.take_as(key, |raw| Some(raw).filter(|raw| raw.is_text())?.text())
    }

    /// Takes a text out that is looked at and not kept. Of another shape it stays.
    pub(crate) fn take_word(&mut self, key: &str) -> Option<Cow<'a, str>> {
        self.take_as(key, |raw| Some(raw).filter(|raw| raw.is_text())?.word())
    }

    /// Takes the items of an array out that must be there.
    pub(crate) fn take_items(
        &mut self,
        key: &str,
        path: Path<'_>,
        expected: &'static str,
    ) -> Result<Vec<Raw<'a>>, WireError> {
        let path = Path::Field(&path, key);
        let raw = self.take(key).ok_or_else(|| path.missing(expected))?;
        raw.items().ok_or_else(|| path.mismatch(expected, raw))
    }

    /// Takes the items of an array out; none where it is absent or `null`.
    pub(crate) fn take_any_items(
        &mut self,
        key: &str,
        path: Path<'_>,
        expected: &'static str,
    ) -> Result<Vec<Raw<'a>>, WireError> {
        match self.get(key).map(Raw::get) {
            None | Some("null") => Ok(Vec::new()),
            Some(_) => self.take_items(key, path, expected),
        }
    }

    /// Takes an object out. Of another shape it stays.
    pub(crate) fn take_object(&mut self, key: &str) -> Option<Raw<'a>> {
        self.take_as(key, |raw| raw.is_object().then_some(raw))
    }

    /// Takes a field of any shape out, as JSON.
    pub(crate) fn take_json(&mut self, key: &str) -> Option<Json> {
        self.take(key).map(Raw::json)
    }

    /// How many fields were not taken.
    pub(crate) fn left(&self) -> usize {
        self.fields.len()
    }

    /// The fields that were not taken.
    pub(crate) fn rest(&self) -> impl Iterator<Item = (&str, Raw<'a>)> {
        self.fields.iter().map(|(key, raw)| (key.as_ref(), *raw))
    }
}

impl Fields<'_> {
    /// Marks the value that the fields become with a word.
    pub(crate) fn mark(&mut self, key: &'static str, word: &str) {
        self.note(key, Json::text(word));
    }

    /// Marks the value that the fields become, without a word.
    pub(crate) fn flag(&mut self, key: &'static str) {
        self.note(key, Json::from_compact("true"));
    }

    /// Marks the value that the fields become with JSON, or keeps that under a name of the wire.
    pub(crate) fn note(&mut self, key: &'static str, json: impl Into<Json>) {
        self.marks.push((key, json.into()));
    }

    /// Keeps the fields of an inner object that were not taken, as one object of this name.
    pub(crate) fn note_inner(&mut self, key: &'static str, inner: &Fields<'_>) {
        if inner.left() > 0 {
            self.note(key, inner.json());
        }
    }

    /// Gives fields that came under their second name the first one, and marks that. A pair holds the
    /// first name and the mark, which is the second name after a `~`.
    pub(crate) fn respell(&mut self, names: &[(&'static str, &'static str)]) {
        if !self.fields.iter().any(|(key, _)| key.contains('_')) {
            return;
        }
        for (name, mark) in names {
            if self.get(name).is_none()
                && let Some((key, _)) =
                    self.fields.iter_mut().find(|(key, _)| key == wire_name(mark))
            {
                *key = Cow::Borrowed(name);
                self.marks.push((mark, Json::default()));
            }
        }
    }

    /// Whether the value that the fields become has any mark.
    pub(crate) fn is_marked(&self) -> bool {
        !self.marks.is_empty()
    }

    /// Takes the marks of an inner object over.
    pub(crate) fn move_marks(&mut self, inner: &mut Fields<'_>) {
        self.marks.append(&mut inner.marks);
    }

    /// The marks, and then the fields that were not taken.
    pub(crate) fn keep(self, codec: &'static str) -> Extra {
        let mut kept = Vec::with_capacity(self.marks.len() + self.fields.len());
        kept.extend(self.marks.into_iter().map(|(key, json)| (Name::Known(key), json)));
        kept.extend(self.fields.into_iter().map(|(key, raw)| {
            let key = if key.starts_with(MARK) { format!("{MARK}{key}").into() } else { key };
            (Name::Read(Text::from(key.as_ref())), raw.json())
        }));
        Extra::named(Name::Known(codec), kept)
    }

    /// The fields that were not taken, ready to be written.
    pub(crate) fn tree(&self) -> Object {
        let mut object = Object::default();
        for (key, raw) in self.rest() {
            object.push(key.to_owned(), raw.json());
        }
        object
    }

    /// The fields that were not taken, as one object.
    pub(crate) fn json(&self) -> Json {
        Tree::from(self.tree()).into_json()
    }
}

/// The extra of a value that has no fields of the wire, but this mark.
pub(crate) fn marked(codec: &'static str, key: &'static str, mark: Json) -> Extra {
    Fields { fields: Vec::new(), marks: vec![(key, mark)] }.keep(codec)
}

/// Adds a field; in the place of an earlier one of this name.
fn push<'a>(fields: &mut Vec<(Cow<'a, str>, Raw<'a>)>, key: Cow<'a, str>, raw: Raw<'a>) {
    // Objects of a wire format have a dozen keys at most, but hostile ones may have many: only
    // short ones are searched for a key that comes twice.
    let searched = if fields.len() < 64 { fields.as_mut_slice() } else { &mut [] };
    match searched.iter_mut().find(|(name, _)| *name == key) {
        Some(earlier) => earlier.1 = raw,
        None => fields.push((key, raw)),
    }
}

impl Path<'_> {
    /// Returns the error that another kind of value was expected here.
    pub(crate) fn mismatch(self, expected: &'static str, found: Raw<'_>) -> WireError {
        WireError::Shape { path: self.to_string(), expected, found: abridged(found.get()) }
    }

    /// Returns the error that a value is missing here.
    pub(crate) fn missing(self, expected: &'static str) -> WireError {
        WireError::Shape { path: self.to_string(), expected, found: "nothing".to_owned() }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Body => f.write_str("body"),
            Self::Field(Path::Body, key) => f.write_str(key),
            Self::Field(parent, key) => write!(f, "{parent}.{key}"),
            Self::Item(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

fn abridged(text: &str) -> String {
    const MAX: usize = 60;
    let mut kept: String = text.chars().take(MAX).collect();
    if kept.len() < text.len() {
        kept.push_str("...");
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_taken_stays_in_order() {
        let mut fields =
            Fields::parse(r#"{"z":1,"text":"hi","a":null,"n":{"b":1,"a":2}}"#).unwrap();
        assert_eq!(fields.take_text("text"), Some(Text::from("hi")));
        assert_eq!(fields.take_text("a"), None);
        let kept: Vec<(&str, &str)> = fields.rest().map(|(key, raw)| (key, raw.get())).collect();
        assert_eq!(kept, [("z", "1"), ("a", "null"), ("n", r#"{"b":1,"a":2}"#)]);
    }

    #[test]
    fn an_error_says_where_and_what() {
        let messages = Path::Field(&Path::Body, "messages");
        let raw = serde_json::from_str("5").unwrap();
        let error = Fields::read(raw, Path::Item(&messages, 3)).unwrap_err();
        assert_eq!(error.to_string(), "messages[3]: expected an object, found 5");
    }

    #[test]
    fn a_key_that_comes_twice_counts_once_with_its_last_value() {
        let fields = Fields::parse(r#"{"a":1,"b":2,"a":3}"#).unwrap();
        let kept: Vec<&str> = fields.rest().map(|(_, raw)| raw.get()).collect();
        assert_eq!(kept, ["3", "2"]);
    }
}
