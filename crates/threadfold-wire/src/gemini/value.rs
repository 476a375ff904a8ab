//! A JSON value that comes together piece by piece, each with the path to it.

use std::collections::HashMap;

use super::path::Step;
use crate::{
    fields::{Fields, is_text, items, text},
    raw::Raw,
    tree::{Object, Tree},
};
use threadfold_core::message::Json;

/// A value in the making.
#[derive(Debug)]
pub(super) enum Node {
    /// Nothing came yet.
    Nothing,
    /// A value that came whole.
    Whole(Json),
    /// A text, as far as it came.
    Text(String),
    Array(Vec<Node>),
    Object(Vec<(String, Node)>, HashMap<String, usize>),
}

const OTHER: &str = "an argument has two shapes";

impl Node {
    /// An object without fields.
    pub(super) fn object() -> Self {
        Self::Object(Vec::new(), HashMap::new())
    }

    /// The value at a path, which is made where it is not there.
    pub(super) fn at(&mut self, path: &[Step]) -> Result<&mut Self, &'static str> {
        let mut node = self;
        for step in path {
            node = node.step(step)?;
        }
        Ok(node)
    }

    fn step(&mut self, step: &Step) -> Result<&mut Self, &'static str> {
        self.open(step);
        match (self, step) {
            (Self::Object(fields, places), Step::Key(key)) => {
                let place = *places.entry(key.clone()).or_insert(fields.len());
                if place == fields.len() {
                    fields.push((key.clone(), Self::Nothing));
                }
                fields.get_mut(place).map(|(_, value)| value).ok_or(OTHER)
            }
            (Self::Array(items), Step::Index(index)) => {
                if *index == items.len() {
                    items.push(Self::Nothing);
                }
                items.get_mut(*index).ok_or("an item of an argument comes before those before it")
            }
            _ => Err(OTHER),
        }
    }

    /// Makes room for a step. What came whole can be added to.
    fn open(&mut self, step: &Step) {
        let opened = match (&*self, step) {
            (Self::Nothing, Step::Key(_)) => Self::object(),
            (Self::Nothing, Step::Index(_)) => Self::Array(Vec::new()),
            (Self::Whole(json), Step::Key(_)) => {
                let Some(fields) = Fields::parse(json.as_str()) else { return };
                let fields = fields.rest();
                let fields: Vec<_> =
                    fields.map(|(key, raw)| (key.to_owned(), Self::Whole(raw.json()))).collect();
                let keys = fields.iter().enumerate();
                let places = keys.map(|(place, (key, _))| (key.clone(), place)).collect();
                Self::Object(fields, places)
            }
            (Self::Whole(json), Step::Index(_)) => {
                let Some(items) = items(Raw::of(json)) else { return };
                let whole = |raw: Raw<'_>| Self::Whole(raw.json());
                Self::Array(items.into_iter().map(whole).collect())
            }
            (Self::Text(_) | Self::Array(_) | Self::Object(..), _) => return,
        };
        *self = opened;
    }

    /// Adds the next piece of a text.
    pub(super) fn add_text(&mut self, piece: &str) -> Result<(), &'static str> {
        match self {
            Self::Nothing => *self = Self::Text(piece.to_owned()),
            Self::Text(before) => before.push_str(piece),
            Self::Whole(json) if is_text(Raw::of(json)) => {
                let before = text(Raw::of(json)).unwrap_or_default();
                *self = Self::Text(format!("{before}{piece}"));
            }
            Self::Whole(_) | Self::Array(_) | Self::Object(..) => return Err(OTHER),
        }
        Ok(())
    }

    /// Sets a value that came whole.
    pub(super) fn set(&mut self, value: Json) -> Result<(), &'static str> {
        match self {
            Self::Nothing | Self::Whole(_) => *self = Self::Whole(value),
            Self::Text(_) | Self::Array(_) | Self::Object(..) => return Err(OTHER),
        }
        Ok(())
    }

    /// The value as far as it came.
    pub(super) fn tree(&self) -> Tree {
        match self {
            Self::Nothing => Tree::Null,
            Self::Whole(json) => json.clone().into(),
            Self::Text(text) => text.clone().into(),
            Self::Array(items) => items.iter().map(Self::tree).collect::<Vec<_>>().into(),
            Self::Object(fields, _) => {
                let mut object = Object::default();
                fields.iter().for_each(|(key, value)| object.push(key.clone(), value.tree()));
                object.into()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(node: &mut Node, path: &str, value: &str) -> Result<(), &'static str> {
        node.at(&Step::path(path)?)?.set(Json::parse(value).unwrap())
    }

    fn add(node: &mut Node, path: &str, piece: &str) -> Result<(), &'static str> {
        node.at(&Step::path(path)?)?.add_text(piece)
    }

    #[test]
    fn pieces_come_together_where_their_paths_lead() {
        let mut node = Node::object();
        set(&mut node, "$.whole", r#"{"z":1.0,"a":[2]}"#).unwrap();
        add(&mut node, "$.text", "a").unwrap();
        set(&mut node, "$.list[0].n", "1e2").unwrap();
        add(&mut node, "$.list[1]", "x").unwrap();
        add(&mut node, "$.text", "b").unwrap();
        set(&mut node, "$.whole.a[1]", "null").unwrap();
        let expected = r#"{"whole":{"z":1.0,"a":[2,null]},"text":"ab","list":[{"n":1e2},"x"]}"#;
        assert_eq!(node.tree().into_json().as_str(), expected);
    }

    #[test]
    fn two_shapes_at_one_place_are_an_error() {
        let mut node = Node::object();
        add(&mut node, "$.a", "x").unwrap();
        assert_eq!(set(&mut node, "$.a.b", "1"), Err(OTHER));
        assert_eq!(set(&mut node, "$.a", "1"), Err(OTHER));
        assert_eq!(set(&mut node, "$[0]", "1"), Err(OTHER));
        assert_eq!(add(&mut node, "$", "x"), Err(OTHER));
        assert!(set(&mut node, "$.b[1000000000]", "1").is_err());
    }
}
