//! Contents on their way to the wire: written, but still open to the rules that look at several.

use crate::{
    notes::Notes,
    tree::{Object, Tree},
};
use threadfold_core::message::{Message, Role, Text};

use super::marks::{has_mark, marked, wire_fields};

/// A content in the making.
#[derive(Debug)]
pub(super) struct Draft {
    /// The message of the request that it comes from, or stands before.
    pub(super) at: usize,
    pub(super) role: Role,
    /// The word for the role, where it came with another.
    pub(super) role_form: Option<Text>,
    /// Fields beside role and parts.
    pub(super) fields: Object,
    pub(super) parts: Vec<Written>,
    /// It came right behind another content of its role.
    pub(super) beside: bool,
    /// Its results came behind or beside other parts.
    pub(super) placed: bool,
}

/// A part in the making.
#[derive(Debug)]
pub(super) struct Written {
    /// The kind of block that it was in the thread.
    pub(super) kind: &'static str,
    pub(super) body: Tree,
    /// What the call is that it makes or answers.
    pub(super) call: Option<CallPart>,
}

/// A call, as the rules over several parts know it.
#[derive(Clone, Debug)]
pub(super) struct CallPart {
    pub(super) id: Text,
    pub(super) name: Text,
    /// The number of the call in the thread.
    pub(super) number: usize,
    /// Whether it goes on the wire without an id.
    pub(super) unnamed: bool,
    /// Whether another provider's model or nobody's made it.
    pub(super) foreign: bool,
}

impl Draft {
    /// Returns a content without parts for a message.
    pub(super) fn new(at: usize, message: &Message, notes: &mut Notes) -> Self {
        let role = if message.role == Role::Assistant { Role::Assistant } else { Role::User };
        Self {
            role_form: marked(&message.extra, "~role"),
            fields: wire_fields(&message.extra, notes),
            beside: has_mark(&message.extra, "~beside"),
            placed: has_mark(&message.extra, "~placed"),
            ..Self::empty(at, role)
        }
    }

    /// Returns a user content of one text.
    pub(super) fn user(at: usize, text: &'static str) -> Self {
        Self { parts: vec![Written::text(Tree::Word(text))], ..Self::empty(at, Role::User) }
    }

    /// Returns a content without parts and fields.
    pub(super) fn empty(at: usize, role: Role) -> Self {
        Self {
            at,
            role,
            role_form: None,
            fields: Object::default(),
            parts: Vec::new(),
            beside: false,
            placed: false,
        }
    }

    /// Whether it holds only results, and parts that are no known data.
    fn may_be_function(&self) -> bool {
        self.parts.iter().all(|part| part.is_result() || part.kind == "opaque")
    }

    /// Whether it holds results only.
    pub(super) fn is_results(&self) -> bool {
        self.parts.iter().all(Written::is_result)
    }

    pub(super) fn into_tree(self) -> Tree {
        let role = match self.role {
            Role::Assistant => Some(Tree::Word("model")),
            Role::User | Role::System => match self.role_form.as_deref() {
                Some("absent") => None,
                Some("null") => Some(Tree::Null),
                Some("") => Some(Tree::Word("")),
                // The old role is for results alone.
                Some("function") if self.may_be_function() => Some(Tree::Word("function")),
                Some(_) | None => Some(Tree::Word("user")),
            },
        };
        let mut object = Object::default();
        object.set_some("role", role);
        let parts: Vec<Tree> = self.parts.into_iter().map(|part| part.body).collect();
        object.set("parts", parts);
        object.extend_unset(self.fields);
        object.into()
    }
}

impl Written {
    pub(super) fn new(kind: &'static str, body: impl Into<Tree>) -> Self {
        Self { kind, body: body.into(), call: None }
    }

    pub(super) fn text(text: Tree) -> Self {
        Self::new("text", Object::default().with("text", text))
    }

    pub(super) fn is_result(&self) -> bool {
        self.kind == "tool_result"
    }
}
