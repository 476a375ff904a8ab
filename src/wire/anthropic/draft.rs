//! Messages on their way to the wire: written, but still open to the rules that look at several.

use crate::{
    message::{Role, Text},
    wire::{
        notes::Notes,
        tree::{Object, Tree},
    },
};

/// A message of the body in the making.
#[derive(Debug)]
pub(super) struct Draft {
    /// The message of the request that it comes from, or stands before.
    pub(super) at: usize,
    pub(super) role: Role,
    pub(super) blocks: Vec<Block>,
    /// Whether the content came as one string.
    pub(super) as_string: bool,
    /// Fields beside role and content.
    pub(super) fields: Object,
}

/// A block of the body in the making.
#[derive(Debug)]
pub(super) struct Block {
    /// The kind that it was in the thread.
    pub(super) kind: &'static str,
    pub(super) body: Tree,
}

impl Draft {
    pub(super) fn new(at: usize, role: Role, blocks: Vec<Block>) -> Self {
        Self { at, role, blocks, as_string: false, fields: Object::default() }
    }

    /// Returns a user message of one text.
    pub(super) fn user(at: usize, text: &'static str) -> Self {
        let body = Object::typed("text").with("text", text);
        Self::new(at, Role::User, vec![Block { kind: "text", body: body.into() }])
    }

    /// Turns the notes to the message of the request that this comes from.
    pub(super) fn at_work(&self, notes: &mut Notes) {
        notes.turn_to(self.at);
    }

    pub(super) fn into_tree(self) -> Tree {
        let bodies = self.blocks.into_iter().map(|block| block.body).collect();
        let mut object = Object::default()
            .with("role", self.role.as_str())
            .with("content", content(bodies, self.as_string));
        object.extend_unset(self.fields);
        object.into()
    }
}

impl Block {
    pub(super) fn is_result(&self) -> bool {
        self.kind == "tool_result"
    }

    pub(super) fn is_reasoning(&self) -> bool {
        matches!(self.kind, "thinking" | "redacted_thinking")
    }

    pub(super) fn object_mut(&mut self) -> Option<&mut Object> {
        if let Tree::Object(object) = &mut self.body { Some(object) } else { None }
    }
}

/// Returns blocks as a content: one string if it came so and can be one, else a list.
pub(super) fn content(bodies: Vec<Tree>, as_string: bool) -> Tree {
    match bodies.as_slice() {
        [body] if as_string => match plain_text(body) {
            Some(text) => Tree::Text(text.clone()),
            None => Tree::Array(bodies),
        },
        _ => Tree::Array(bodies),
    }
}

/// The text, if that is all that a block has.
fn plain_text(body: &Tree) -> Option<&Text> {
    let Tree::Object(object) = body else { return None };
    let is_text = object.len() == 2 && object.get("type") == Some(&Tree::Word("text"));
    match object.get("text").filter(|_| is_text)? {
        Tree::Text(text) => Some(text),
        Tree::Null
        | Tree::Bool(_)
        | Tree::Number(_)
        | Tree::Word(_)
        | Tree::Raw(_)
        | Tree::Array(_)
        | Tree::Object(_) => None,
    }
}
