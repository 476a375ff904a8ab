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
    /// Fields beside role and content.
    pub(super) fields: Object,
}

/// A block of the body in the making.
#[derive(Debug)]
pub(super) struct Block {
    /// The message of the request that it comes from.
    pub(super) at: usize,
    /// The kind that it was in the thread.
    pub(super) kind: &'static str,
    pub(super) body: Tree,
}

impl Draft {
    pub(super) fn new(at: usize, role: Role, blocks: Vec<Block>) -> Self {
        Self { at, role, blocks, fields: Object::default() }
    }

    /// Returns a user message of one text.
    pub(super) fn user(at: usize, text: &'static str) -> Self {
        Self::new(at, Role::User, vec![Block::text(at, text)])
    }

    /// Turns the notes to the message of the request that this comes from.
    pub(super) fn at_work(&self, notes: &mut Notes) {
        notes.turn_to(self.at);
    }

    pub(super) fn into_tree(self) -> Tree {
        let bodies: Vec<Tree> = self.blocks.into_iter().map(|block| block.body).collect();
        let mut object = Object::default().with("role", self.role.as_str()).with("content", bodies);
        object.extend_unset(self.fields);
        object.into()
    }
}

impl Block {
    /// Returns a text that stands in no request.
    pub(super) fn text(at: usize, text: &'static str) -> Self {
        Self { at, kind: "text", body: Object::default().with("text", text).into() }
    }

    pub(super) fn is_result(&self) -> bool {
        self.has("toolResult")
    }

    pub(super) fn is_reasoning(&self) -> bool {
        self.has("reasoningContent")
    }

    /// Whether the block has this key.
    pub(super) fn has(&self, key: &str) -> bool {
        matches!(&self.body, Tree::Object(object) if object.get(key).is_some())
    }

    /// The texts and items of a result, to be added to.
    pub(super) fn result_content(&mut self) -> Option<&mut Vec<Tree>> {
        let Tree::Object(block) = &mut self.body else { return None };
        let Some(Tree::Object(result)) = block.get_mut("toolResult") else { return None };
        let Some(Tree::Array(items)) = result.get_mut("content") else { return None };
        Some(items)
    }

    /// The text of a block that is one, to be changed.
    pub(super) fn text_mut(&mut self) -> Option<&mut Text> {
        let Tree::Object(block) = &mut self.body else { return None };
        let Some(Tree::Text(text)) = block.get_mut("text") else { return None };
        Some(text)
    }
}
