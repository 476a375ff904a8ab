//! The input in the making: items, and what the rules of the dialect need to know of them.

use super::kinds::Label;
use crate::{
    raw::Raw,
    tree::{Object, Tree},
};
use threadfold_core::message::{Json, Text};

/// One item in the making.
#[derive(Debug)]
pub(super) struct Item {
    /// The message that it comes from.
    pub(super) at: usize,
    pub(super) kind: Kind,
    pub(super) body: Tree,
    /// The provider's id of it.
    pub(super) id: Option<Text>,
    /// The reasoning that led to it: its id, or nothing where it had none.
    pub(super) led: Option<Text>,
}

/// What an item is.
#[derive(Debug)]
pub(super) enum Kind {
    /// A message of the user or of the host.
    Said,
    /// A message of the model.
    Answer,
    /// A call that the host answers: its id before it was shortened.
    Call(Text),
    /// The answer to a call.
    Output,
    /// Reasoning, and by what the item that it led to is known.
    Reasoning(Option<Text>),
    /// An item that goes back as it came or not at all.
    Whole(Label<'static>),
}

impl Item {
    /// Returns an item of these fields.
    pub(super) fn new(at: usize, kind: Kind, object: Object, led: Option<Text>) -> Self {
        let id = match object.get("id") {
            Some(Tree::Text(id)) => Some(id.clone()),
            Some(Tree::Raw(json)) => serde_json::from_str(json.as_str()).ok(),
            Some(_) | None => None,
        };
        let id = id.filter(|id: &Text| !id.is_empty());
        Self { at, kind, body: object.into(), id, led }
    }

    /// Returns an item that goes back as it came.
    pub(super) fn whole(at: usize, json: Json, led: Option<Text>) -> Self {
        let label = Label::read(Raw::of(&json)).into_owned();
        let id = label.id.as_deref().map(Text::from);
        Self { at, kind: Kind::Whole(label), body: json.into(), id, led }
    }

    /// By what the item is known from among others.
    pub(super) fn identity(&self) -> Option<Text> {
        match &self.kind {
            Kind::Said | Kind::Output => None,
            Kind::Answer => Some(self.id.clone().unwrap_or_else(|| "message".into())),
            Kind::Call(call_id) => Some(self.id.clone().unwrap_or_else(|| call_id.clone())),
            Kind::Reasoning(_) => Some(self.id.clone().unwrap_or_else(|| "reasoning".into())),
            Kind::Whole(label) if label.is_of_model() => Some(label.identity()),
            Kind::Whole(_) => None,
        }
    }

    /// Takes the provider's id of it away.
    pub(super) fn forget_id(&mut self) {
        self.id = None;
        if let Tree::Object(object) = &mut self.body {
            object.remove("id");
        }
    }
}
