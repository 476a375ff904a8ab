//! JSON values that arrive in pieces.

use std::collections::HashMap;

use super::{json::*, usage::Counts};
use threadfold_core::message::{Json, Usage};

/// A JSON value that arrives in pieces.
#[derive(Debug, Default)]
pub(super) enum Growing {
    /// No piece has arrived.
    #[default]
    Nothing,
    /// A value that arrived whole.
    Whole(Json),
    /// The text that has arrived so far.
    Text(String),
    Array(Vec<Growing>),
    Object(Merged),
}

/// The error of a piece whose shape differs from the shape of the value so far.
pub(super) const OTHER: &str = "an argument has two shapes";

impl Growing {
    /// The value of a field, which is added if it is missing.
    pub(super) fn field(&mut self, key: &str) -> Result<&mut Self, &'static str> {
        Ok(self.fields()?.field(key))
    }

    /// The fields of an object. An object that arrived whole can be extended.
    pub(super) fn fields(&mut self) -> Result<&mut Merged, &'static str> {
        match self {
            Self::Nothing => *self = Self::Object(Merged::default()),
            Self::Whole(json) => {
                *self = Self::Object(Merged::of(&Fields::parse(json.as_str()).ok_or(OTHER)?));
            }
            Self::Text(_) | Self::Array(_) | Self::Object(_) => {}
        }
        if let Self::Object(object) = self { Ok(object) } else { Err(OTHER) }
    }

    /// The item at this index. The index after the last item adds one.
    pub(super) fn item(&mut self, index: usize) -> Result<&mut Self, &'static str> {
        let items = self.items()?;
        if index == items.len() {
            items.push(Self::Nothing);
        }
        items.get_mut(index).ok_or("an item of an argument comes before those before it")
    }

    /// The items of an array. An array that arrived whole can be extended.
    fn items(&mut self) -> Result<&mut Vec<Self>, &'static str> {
        match self {
            Self::Nothing => *self = Self::Array(Vec::new()),
            Self::Whole(json) => {
                let items = Raw::of(json).items().ok_or(OTHER)?;
                let whole = items.into_iter().map(|raw| Self::Whole(raw.json()));
                *self = Self::Array(whole.collect());
            }
            Self::Text(_) | Self::Array(_) | Self::Object(_) => {}
        }
        if let Self::Array(items) = self { Ok(items) } else { Err(OTHER) }
    }

    /// Adds the next piece of a text.
    pub(super) fn add_text(&mut self, piece: &str) -> Result<(), &'static str> {
        match self {
            Self::Nothing => *self = Self::Text(piece.to_owned()),
            Self::Text(before) => before.push_str(piece),
            Self::Whole(json) => {
                let before = Raw::of(json).text().ok_or(OTHER)?;
                *self = Self::Text(format!("{before}{piece}"));
            }
            Self::Array(_) | Self::Object(_) => return Err(OTHER),
        }
        Ok(())
    }

    /// Sets a value that arrived whole.
    pub(super) fn set(&mut self, value: Json) -> Result<(), &'static str> {
        match self {
            Self::Nothing | Self::Whole(_) => *self = Self::Whole(value),
            Self::Text(_) | Self::Array(_) | Self::Object(_) => return Err(OTHER),
        }
        Ok(())
    }

    /// The value so far.
    pub(super) fn tree(&self) -> Tree {
        match self {
            Self::Nothing => Tree::Null,
            Self::Whole(json) => json.clone().into(),
            Self::Text(text) => text.clone().into(),
            Self::Array(items) => items.iter().map(Self::tree).collect::<Vec<_>>().into(),
            Self::Object(object) => object.object().into(),
        }
    }
}

/// An object whose fields arrive in several pieces. A later value replaces an earlier one, but
/// `null` replaces nothing, and a text or an array to which pieces were appended stays.
#[derive(Debug, Default)]
pub(super) struct Merged {
    /// The fields, each with its position.
    fields: HashMap<String, (usize, Growing)>,
}

impl Merged {
    /// Returns an object of the remaining fields of a piece.
    pub(super) fn of(piece: &Fields<'_>) -> Self {
        let mut merged = Self::default();
        merged.merge(piece);
        merged
    }

    /// Takes the token counts of an event and returns the usage that all counts so far state;
    /// `None` if the event has no counts. Each counts the whole answer so far.
    pub(super) fn count(&mut self, event: Option<Raw<'_>>, counts: &Counts) -> Option<Usage> {
        let mut fields = Fields::of(event?)?;
        // Servers leave counts that they do not repeat as zeros, so the larger one is real.
        let is_smaller = |key: &str, raw: Raw<'_>| {
            let known = self.get(key).and_then(|known| total(Raw::of(known)));
            total(raw).zip(known).is_some_and(|(new, known)| new < known)
        };
        let smaller = fields.rest().filter(|(key, raw)| is_smaller(key, *raw));
        let smaller: Vec<String> = smaller.map(|(key, _)| key.to_owned()).collect();
        for key in smaller {
            fields.take(&key);
        }
        self.merge(&fields);
        let has_counts = !self.fields.is_empty();
        has_counts.then(|| counts.find(|key| self.get(key).map(Raw::of)))
    }

    /// Takes the remaining fields of one more piece.
    pub(super) fn merge(&mut self, piece: &Fields<'_>) {
        for (key, raw) in piece.rest() {
            let stays = match self.fields.get(key) {
                // Compare first, because most pieces repeat most fields.
                Some((_, Growing::Whole(json))) => {
                    raw.get() == "null" || json.as_str() == raw.get()
                }
                None | Some((_, Growing::Nothing)) => false,
                Some((_, Growing::Text(_) | Growing::Array(_) | Growing::Object(_))) => true,
            };
            if !stays {
                self.set(key, raw.json());
            }
        }
    }

    /// The value of a field, which is added at the end if it is missing.
    fn field(&mut self, key: &str) -> &mut Growing {
        let before = self.fields.len();
        &mut self.fields.entry(key.to_owned()).or_insert((before, Growing::Nothing)).1
    }

    /// Whether a field has arrived.
    pub(super) fn has(&self, key: &str) -> bool {
        self.fields.contains_key(key)
    }

    /// Sets a field: at its position if it exists, else at the end.
    pub(super) fn set(&mut self, key: &str, value: Json) {
        *self.field(key) = Growing::Whole(value);
    }

    /// Appends to the text of a field. A value that is no text is replaced.
    pub(super) fn grow(&mut self, key: &str, piece: &str) {
        let field = self.field(key);
        if field.add_text(piece).is_err() {
            *field = Growing::Text(piece.to_owned());
        }
    }

    /// Appends items to the array of a field. A value that is no array is replaced.
    pub(super) fn extend(&mut self, key: &str, items: Vec<Raw<'_>>) {
        let field = self.field(key);
        let items = items.into_iter().map(|raw| Growing::Whole(raw.json()));
        match field.items() {
            Ok(before) => before.extend(items),
            Err(_) => *field = Growing::Array(items.collect()),
        }
    }

    /// A field that arrived whole.
    pub(super) fn get(&self, key: &str) -> Option<&Json> {
        if let (_, Growing::Whole(json)) = self.fields.get(key)? { Some(json) } else { None }
    }

    /// The object so far.
    pub(super) fn object(&self) -> Object {
        let mut object = Object::default();
        self.add_to(&mut object);
        object
    }

    /// The object so far; `None` if it has no fields.
    pub(super) fn begun(&self) -> Option<Object> {
        (!self.fields.is_empty()).then(|| self.object())
    }

    /// Adds the fields to an object that has none of these names.
    pub(super) fn add_to(&self, object: &mut Object) {
        let mut fields: Vec<_> = self.fields.iter().collect();
        fields.sort_by_key(|(_, (before, _))| *before);
        fields.into_iter().for_each(|(key, (_, value))| object.push(key.clone(), value.tree()));
    }
}

/// A count, or the sum of the counts in an object; `None` for other values.
fn total(raw: Raw<'_>) -> Option<u64> {
    let parts = |fields: Fields<'_>| {
        let counts = fields.rest().filter_map(|(_, raw)| raw.whole_number());
        counts.fold(0, u64::saturating_add)
    };
    raw.whole_number().or_else(|| Fields::of(raw).map(parts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_says_nothing_new() {
        let mut merged = Merged::default();
        for piece in [r#"{"b":1,"a":null}"#, r#"{"b":null,"a":2,"c":null}"#, r#"{"b":3.0}"#] {
            merged.merge(&Fields::parse(piece).unwrap());
        }
        let object = Tree::from(merged.object()).into_json();
        assert_eq!(object.as_str(), r#"{"b":3.0,"a":2,"c":null}"#);
        assert!(Merged::default().begun().is_none());
    }
}
