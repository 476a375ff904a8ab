//! A call whose arguments come in pieces, as Vertex AI streams them where it is asked to.
//!
//! The first piece has the name, each of the others some values with the paths to them, and the last
//! one does not say that more will come:
//!
//! ```json
//! {"functionCall": {"name": "read", "willContinue": true}, "thoughtSignature": "c2ln"}
//! {"functionCall": {"partialArgs": [{"jsonPath": "$.path", "stringValue": "a."}], "willContinue": true}}
//! {"functionCall": {"partialArgs": [{"jsonPath": "$.path", "stringValue": "txt"}], "willContinue": true}}
//! {"functionCall": {}}
//! ```

use super::{marks::FUNCTION_CALL, part::Part, path::Step, value::Node};
use crate::{
    assembly::Merged,
    fields::{Fields, items, text},
    raw::Raw,
    tree::{Object, Tree},
};
use threadfold_core::message::{Json, Text};

const ARGS: &str = "args";
const PARTIAL: [&str; 2] = ["partialArgs", "partial_args"];
const CONTINUES: [&str; 2] = ["willContinue", "will_continue"];

/// A call in the making.
#[derive(Debug)]
pub(super) struct Partial {
    /// The id under which it is reported.
    pub(super) id: Text,
    call: Merged,
    beside: Merged,
    args: Node,
}

impl Partial {
    /// Returns a call of which nothing is known yet.
    pub(super) fn new(id: Text) -> Self {
        Self { id, call: Merged::default(), beside: Merged::default(), args: Node::object() }
    }

    /// Takes a piece, and returns whether more will come.
    pub(super) fn add(&mut self, part: &Part<'_>) -> Result<bool, &'static str> {
        let mut inner = part.inner().ok_or("a call is no object")?;
        let continues = take(&mut inner, CONTINUES).is_some_and(|raw| raw.get() == "true");
        let pieces = take(&mut inner, PARTIAL).and_then(items).unwrap_or_default();
        if let Some(args) = inner.take(ARGS).and_then(Fields::of) {
            for (key, raw) in args.rest() {
                self.args.at(&[Step::Key(key.to_owned())])?.set(raw.json())?;
            }
        }
        for raw in pieces {
            self.piece(&Fields::of(raw).ok_or("a piece of an argument is no object")?)?;
        }
        self.call.merge(&inner);
        self.beside.merge(&part.rest);
        Ok(continues)
    }

    fn piece(&mut self, piece: &Fields<'_>) -> Result<(), &'static str> {
        let get = |names: [&str; 2]| names.into_iter().find_map(|name| piece.get(name));
        let path = get(["jsonPath", "json_path"]).and_then(text);
        let path = Step::path(&path.ok_or("a piece of an argument has no path")?)?;
        if let Some(said) = get(["stringValue", "string_value"]).and_then(text) {
            return self.args.at(&path)?.add_text(&said);
        }
        let plain = get(["numberValue", "number_value"]).or(get(["boolValue", "bool_value"]));
        let null = get(["nullValue", "null_value"]).map(|_| Json::default());
        match plain.map(Raw::json).or(null) {
            Some(value) => self.args.at(&path)?.set(value),
            None => Ok(()),
        }
    }

    /// The arguments as far as they came.
    pub(super) fn args(&self) -> Json {
        self.args.tree().into_json()
    }

    /// The part that the whole call would have been.
    pub(super) fn into_tree(self) -> Tree {
        let call = self.call.object().unwrap_or_default().with(ARGS, self.args.tree());
        let mut part = Object::default().with(FUNCTION_CALL.camel, call);
        part.extend_unset(self.beside.object().unwrap_or_default());
        part.into()
    }
}

/// Whether a part is a call that comes in pieces, or the rest of one.
pub(super) fn is_partial(inner: &Fields<'_>) -> bool {
    let has = |names: [&str; 2]| names.into_iter().find_map(|name| inner.get(name));
    has(PARTIAL).is_some() || has(CONTINUES).is_some_and(|raw| raw.get() == "true")
}

/// Whether a part says whose call it is.
pub(super) fn is_named(inner: &Fields<'_>) -> bool {
    inner.get("name").and_then(text).is_some_and(|name| !name.is_empty())
}

fn take<'a>(fields: &mut Fields<'a>, names: [&str; 2]) -> Option<Raw<'a>> {
    let [camel, snake] = names;
    fields.take(camel).or_else(|| fields.take(snake))
}
