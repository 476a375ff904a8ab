//! Writing JSON with keys in a given order.

use std::borrow::Cow;

use super::raw::Raw;
use threadfold_core::message::{Extra, Json, Text, ToolInput, push_string};

/// The first character of the names of marks.
pub(super) const MARK: char = '~';

/// Whether an extra field is a codec's mark and not a wire field. Marks of another codec can be
/// dropped, because they only describe forms of its dialect.
pub(crate) fn is_mark(key: &str) -> bool {
    key.strip_prefix(MARK).is_some_and(|name| !name.starts_with(MARK))
}

/// The name of a wire field, from its name in an [`Extra`].
pub(crate) fn wire_name(key: &str) -> &str {
    key.strip_prefix(MARK).unwrap_or(key)
}

/// A JSON value to be written. Texts and raw JSON in it are shared, not copied.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Tree {
    Null,
    Bool(bool),
    Number(serde_json::Number),
    Text(Text),
    Word(&'static str),
    Raw(Json),
    Array(Vec<Tree>),
    Object(Object),
}

/// The key of a field.
type Key = Cow<'static, str>;

/// A JSON object to be written.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Object(Vec<(Key, Tree)>);

impl Object {
    /// Returns an object with a `type`, the first field of most wire objects.
    pub(crate) fn typed(kind: &'static str) -> Self {
        Self::default().with("type", Tree::Word(kind))
    }

    /// Returns an object of one field.
    pub(crate) fn of(key: impl Into<Key>, value: impl Into<Tree>) -> Self {
        Self::default().with(key, value)
    }

    /// Returns the object as JSON.
    pub(crate) fn into_json(self) -> Json {
        Tree::from(self).into_json()
    }

    /// Returns the object with one more field.
    pub(crate) fn with(mut self, key: impl Into<Key>, value: impl Into<Tree>) -> Self {
        self.set(key, value);
        self
    }

    /// Sets a field: at its position if it exists, else at the end.
    pub(crate) fn set(&mut self, key: impl Into<Key>, value: impl Into<Tree>) {
        self.put(key.into(), value.into());
    }

    /// Not generic, so that it is compiled once and not for each type of value.
    fn put(&mut self, key: Key, value: Tree) {
        match self.get_mut(&key) {
            Some(place) => *place = value,
            None => self.0.push((key, value)),
        }
    }

    /// Adds a field at the end without checking whether it exists, so that adding very many fields
    /// of a hostile body stays linear. The names must differ.
    pub(crate) fn push(&mut self, key: impl Into<Key>, value: impl Into<Tree>) {
        self.0.push((key.into(), value.into()));
    }

    /// Sets a field if there is a value.
    pub(crate) fn set_some(&mut self, key: &'static str, value: Option<impl Into<Tree>>) {
        if let Some(value) = value {
            self.set(key, value);
        }
    }

    /// Sets a text, unless it is empty.
    pub(crate) fn set_unless_empty(&mut self, key: &'static str, text: &Text) {
        if !text.is_empty() {
            self.set(key, text.clone());
        }
    }

    /// Adds the fields that are not set already. Takes time linear in the new fields.
    pub(crate) fn extend_unset(&mut self, fields: impl IntoIterator<Item = (Key, Tree)>) {
        let set = self.0.len();
        for (key, value) in fields {
            if self.0.iter().take(set).all(|(name, _)| *name != key) {
                self.0.push((key, value));
            }
        }
    }

    /// Returns the object with the fields that it has not yet.
    pub(crate) fn and(mut self, fields: impl IntoIterator<Item = (Key, Tree)>) -> Self {
        self.extend_unset(fields);
        self
    }

    /// The number of fields.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// One field.
    pub(crate) fn get(&self, key: &str) -> Option<&Tree> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// One field, mutable.
    pub(crate) fn get_mut(&mut self, key: &str) -> Option<&mut Tree> {
        self.0.iter_mut().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// Renames fields to their second spelling if a mark records that they were read in it; see
    /// `Fields::respell`.
    pub(crate) fn respell(&mut self, names: &[(&'static str, &'static str)], extra: &Extra) {
        for (name, mark) in names {
            if extra.fields().any(|(key, _)| key == *mark)
                && let Some((key, _)) = self.0.iter_mut().find(|(key, _)| key == name)
            {
                *key = Cow::Borrowed(wire_name(mark));
            }
        }
    }

    /// Removes and returns one field.
    pub(crate) fn remove(&mut self, key: &str) -> Option<Tree> {
        let index = self.0.iter().position(|(name, _)| name == key)?;
        Some(self.0.remove(index).1)
    }
}

impl Tree {
    /// The text of a string; `None` for other values.
    pub(crate) fn text(&self) -> Option<Text> {
        match self {
            Self::Text(text) => Some(text.clone()),
            Self::Word(word) => Some((*word).into()),
            Self::Raw(json) => Raw::of(json).text(),
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::Array(_) | Self::Object(_) => None,
        }
    }

    /// Returns the value as JSON.
    pub(crate) fn into_json(self) -> Json {
        let mut json = String::new();
        self.write(&mut json);
        Json::from_compact(json)
    }

    /// Appends the value to a text. Unlike a serializer, this cannot fail.
    fn write(self, json: &mut String) {
        match self {
            Self::Null => json.push_str("null"),
            Self::Bool(value) => json.push_str(if value { "true" } else { "false" }),
            Self::Number(number) => json.push_str(&number.to_string()),
            Self::Text(text) => push_string(json, &text),
            Self::Word(word) => push_string(json, word),
            Self::Raw(raw) => json.push_str(raw.as_str()),
            Self::Array(items) => {
                json.push('[');
                for (index, item) in items.into_iter().enumerate() {
                    separate(json, index);
                    item.write(json);
                }
                json.push(']');
            }
            Self::Object(Object(fields)) => {
                json.push('{');
                for (index, (key, value)) in fields.into_iter().enumerate() {
                    separate(json, index);
                    push_string(json, &key);
                    json.push(':');
                    value.write(json);
                }
                json.push('}');
            }
        }
    }
}

fn separate(json: &mut String, index: usize) {
    if index > 0 {
        json.push(',');
    }
}

macro_rules! into_tree {
    ($($from:ty => $variant:ident),+) => {$(
        impl From<$from> for Tree {
            fn from(value: $from) -> Self {
                Self::$variant(value.into())
            }
        }
    )+};
}

into_tree!(
    bool => Bool,
    u64 => Number,
    Text => Text,
    String => Text,
    &'static str => Word,
    Json => Raw,
    Vec<Tree> => Array,
    Object => Object
);

impl From<&ToolInput> for Tree {
    fn from(input: &ToolInput) -> Self {
        match input {
            ToolInput::Json(json) => json.clone().into(),
            ToolInput::Text(text) => text.clone().into(),
        }
    }
}

impl IntoIterator for Object {
    type Item = (Key, Tree);
    type IntoIter = std::vec::IntoIter<Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl FromIterator<Object> for Tree {
    fn from_iter<I: IntoIterator<Item = Object>>(objects: I) -> Self {
        Self::Array(objects.into_iter().map(Tree::Object).collect())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Number, json};

    use super::*;

    #[test]
    fn a_tree_is_written_as_serde_json_writes_it() {
        let number = |float| Tree::Number(Number::from_f64(float).unwrap());
        let numbers = vec![number(1.0), number(-0.1), number(1e300), u64::MAX.into()];
        let object = Object::default()
            .with("a\"", Tree::Text("\n\u{1f}é\u{7f}".into()))
            .with("b", Tree::Raw(Json::from(json!({"z": [1.50]}))))
            .with("c", numbers)
            .with("d", Tree::Array(vec![true.into(), Tree::Null, Object::default().into()]));
        let expected = json!({
            "a\"": "\n\u{1f}é\u{7f}",
            "b": {"z": [1.50]},
            "c": [1.0, -0.1, 1e300, u64::MAX],
            "d": [true, null, {}],
        });
        assert_eq!(Tree::from(object).into_json().as_str(), expected.to_string());
    }
}
