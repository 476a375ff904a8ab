//! The schemas of tools, for providers that require a type.

use super::{extras, json::*};
use threadfold_core::message::{Json, ToolSpec};

/// Whether a schema states its type.
pub(super) fn is_typed(schema: Raw<'_>) -> bool {
    Fields::of(schema).is_some_and(|fields| fields.get("type").is_some())
}

/// The schema of a tool, for providers that demand the type `object`. A schema that was read
/// without a type has this mark and is written unchanged.
pub(super) fn typed_schema(tool: &ToolSpec, codec: &str, note: &str) -> Tree {
    let schema = &tool.input_schema;
    if is_typed(Raw::of(schema)) || tool.extra.get(codec, note) == Some(schema) {
        return schema.clone().into();
    }
    Object::typed("object").and(extras::reopen(Some(schema))).into()
}

/// The schema of an input without fields.
pub(super) fn no_parameters() -> Json {
    let properties = Object::default();
    Tree::from(Object::typed("object").with("properties", properties)).into_json()
}
