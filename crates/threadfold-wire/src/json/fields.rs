//! Reading JSON objects field by field without losing any.
//!
//! An object is read one level deep, into keys and the raw text of its values. A codec removes the
//! fields that it knows. The remaining fields become the [`Extra`] of the message or block,
//! together with the codec's marks, which record the form in which a value was read. The name of a
//! mark begins with `~`; a wire field whose name begins with `~` gets a second one.

use std::{borrow::Cow, fmt};

use super::{raw::*, tree::*};
use crate::contract::{Result, WireError};
use threadfold_core::message::{Extra, Json, Name, Text};

/// The path of a value in a body. It is formatted only for an error.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Path<'p> {
    /// The whole body.
    Body,
    /// A field of an object.
    Field(&'p Path<'p>, &'p str),
    /// An item of an array.
    Item(&'p Path<'p>, usize),
}

/// The fields of one JSON object, in order, and the marks for the value that is made of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fields<'a> {
    fields: Vec<(Cow<'a, str>, Raw<'a>)>,
    marks: Vec<(&'static str, Json)>,
}

impl<'a> Fields<'a> {
    /// Reads an object, one level deep. A repeated key counts once, with its last value.
    pub(crate) fn read(raw: Raw<'a>, path: Path<'_>) -> Result<Self> {
        Self::of(raw).ok_or_else(|| path.mismatch("an object", raw))
    }

    /// Reads an object, one level deep; `None` if it is something else.
    pub(crate) fn of(raw: Raw<'a>) -> Option<Self> {
        match raw.parts() {
            Some(parts) => Self::of_parts(raw.get(), parts),
            None => Self::parse(raw.get()),
        }
    }

    /// Reads alternating keys and values of an object.
    fn of_parts(text: &str, mut parts: impl Iterator<Item = Raw<'a>>) -> Option<Self> {
        /// The capacity for an object's keys; few objects have more.
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

    /// The text of a field; empty if it is something else.
    pub(crate) fn text_or_empty(&self, key: &str) -> Text {
        self.text(key).unwrap_or_default()
    }

    /// Same as [`text`](Self::text), but without a copy, for texts that are only compared.
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

    /// Removes a field and returns its raw value.
    pub(crate) fn take(&mut self, key: &str) -> Option<Raw<'a>> {
        let index = self.fields.iter().position(|(name, _)| name == key)?;
        Some(self.fields.remove(index).1)
    }

    /// Removes a field and returns its raw value; `None` if it is `null`.
    pub(crate) fn take_value(&mut self, key: &str) -> Option<Raw<'a>> {
        self.take(key).filter(|raw| raw.get() != "null")
    }

    /// Removes a field and returns its value as read by this function. A field that the function
    /// cannot read stays.
    pub(crate) fn take_as<T>(
        &mut self,
        key: &str,
        read: impl FnOnce(Raw<'a>) -> Option<T>,
    ) -> Option<T> {
        let value = read(self.get(key)?)?;
        self.take(key);
        Some(value)
    }

    /// Removes and returns a text. Any other value stays.
    pub(crate) fn take_text(&mut self, key: &str) -> Option<Text> {
        self.take_as(key, |raw| Some(raw).filter(|raw| raw.is_text())?.text())
    }

    /// Same as [`take_text`](Self::take_text), but without a copy, for texts that are only
    /// compared.
    pub(crate) fn take_word(&mut self, key: &str) -> Option<Cow<'a, str>> {
        self.take_as(key, |raw| Some(raw).filter(|raw| raw.is_text())?.word())
    }

    /// Removes a required array and returns its items.
    pub(crate) fn take_items(
        &mut self,
        key: &str,
        path: Path<'_>,
        expected: &'static str,
    ) -> Result<Vec<Raw<'a>>> {
        let path = Path::Field(&path, key);
        let raw = self.take(key).ok_or_else(|| path.missing(expected))?;
        raw.items().ok_or_else(|| path.mismatch(expected, raw))
    }

    /// Removes an array and returns its items; none if it is absent or `null`.
    pub(crate) fn take_any_items(
        &mut self,
        key: &str,
        path: Path<'_>,
        expected: &'static str,
    ) -> Result<Vec<Raw<'a>>> {
        if self.value(key).is_some() {
            return self.take_items(key, path, expected);
        }
        self.take(key);
        Ok(Vec::new())
    }

    /// Removes and returns an object. Any other value stays.
    pub(crate) fn take_object(&mut self, key: &str) -> Option<Raw<'a>> {
        self.take_as(key, |raw| raw.is_object().then_some(raw))
    }

    /// Removes a field and returns it as JSON.
    pub(crate) fn take_json(&mut self, key: &str) -> Option<Json> {
        self.take(key).map(Raw::json)
    }

    /// The number of remaining fields.
    pub(crate) fn left(&self) -> usize {
        self.fields.len()
    }

    /// The remaining fields.
    pub(crate) fn rest(&self) -> impl Iterator<Item = (&str, Raw<'a>)> {
        self.fields.iter().map(|(key, raw)| (key.as_ref(), *raw))
    }

    /// Adds a mark with a word.
    pub(crate) fn add_word(&mut self, key: &'static str, word: &str) {
        self.add(key, Json::text(word));
    }

    /// Adds a mark without a value.
    pub(crate) fn flag(&mut self, key: &'static str) {
        self.add(key, Json::from_compact("true"));
    }

    /// Adds a mark with JSON, or adds a field under its wire name.
    pub(crate) fn add(&mut self, key: &'static str, json: impl Into<Json>) {
        self.marks.push((key, json.into()));
    }

    /// Keeps the remaining fields of an inner object as one object of this name.
    pub(crate) fn add_inner(&mut self, key: &'static str, inner: &Fields<'_>) {
        if inner.left() > 0 {
            self.add(key, inner.json());
        }
    }

    /// Renames fields that have their second spelling to the first one, and marks each. A pair
    /// holds the first spelling and the mark, which is the second spelling after a `~`.
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

    /// Whether there are marks.
    pub(crate) fn is_marked(&self) -> bool {
        !self.marks.is_empty()
    }

    /// Moves the marks of an inner object to this one.
    pub(crate) fn move_marks(&mut self, inner: &mut Fields<'_>) {
        self.marks.append(&mut inner.marks);
    }

    /// The marks, then the remaining fields.
    pub(crate) fn keep(self, codec: &'static str) -> Extra {
        let mut kept = Vec::with_capacity(self.marks.len() + self.fields.len());
        kept.extend(self.marks.into_iter().map(|(key, json)| (Name::Known(key), json)));
        kept.extend(self.fields.into_iter().map(|(key, raw)| {
            let key = if key.starts_with(MARK) { format!("{MARK}{key}").into() } else { key };
            (Name::Read(Text::from(key.as_ref())), raw.json())
        }));
        Extra::named(Name::Known(codec), kept)
    }

    /// The remaining fields, ready to be written.
    pub(crate) fn tree(&self) -> Object {
        let mut object = Object::default();
        for (key, raw) in self.rest() {
            object.push(key.to_owned(), raw.json());
        }
        object
    }

    /// The remaining fields as one object.
    pub(crate) fn json(&self) -> Json {
        Tree::from(self.tree()).into_json()
    }
}

/// Adds a field, or replaces the value of an earlier one of this name.
fn push<'a>(fields: &mut Vec<(Cow<'a, str>, Raw<'a>)>, key: Cow<'a, str>, raw: Raw<'a>) {
    // Wire objects have a dozen keys at most, but a hostile one may have very many: only short
    // objects are searched for repeated keys, so that reading stays linear.
    let searched = if fields.len() < 64 { fields.as_mut_slice() } else { &mut [] };
    match searched.iter_mut().find(|(name, _)| *name == key) {
        Some(earlier) => earlier.1 = raw,
        None => fields.push((key, raw)),
    }
}

impl Path<'_> {
    /// Returns the error that another value was expected here.
    pub(crate) fn mismatch(self, expected: &'static str, found: Raw<'_>) -> WireError {
        WireError::Shape {
            path: self.to_string(),
            expected,
            found: abridged(found.get(), MAX_FOUND),
        }
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

/// The maximum number of characters of a value that an error quotes.
const MAX_FOUND: usize = 60;

/// The first characters of a text, at most this many.
pub(crate) fn abridged(text: &str, most: usize) -> String {
    let mut kept: String = text.chars().take(most).collect();
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
