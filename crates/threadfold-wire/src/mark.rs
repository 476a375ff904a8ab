//! The names of the marks: what a codec notes in an `extra`, so that it can write a value in the form
//! in which it was read.
//!
//! The module of each codec says what its marks mean. The marks of parameters are named where the
//! parameters are defined, and those of the second spelling of Gemini's fields beside the first.

/// An empty list of annotations.
pub(crate) const ANNOTATIONS: &str = "~annotations";
/// A call without arguments.
pub(crate) const ARGS: &str = "~args";
/// Which of several forms or types the value has.
pub(crate) const AS: &str = "~as";
/// Fields beside the one key of a block; or a message beside another one of the same role.
pub(crate) const BESIDE: &str = "~beside";
/// A blank text of a result. Other blank texts are left out.
pub(crate) const BLANK: &str = "~blank";
/// The cache point after a block or a tool. In a body it is a block of its own; as a mark it moves
/// together with its block.
pub(crate) const CACHE_POINT: &str = "~cachePoint";
/// The schema of a tool that has another one now.
pub(crate) const CAME: &str = "~came";
/// The form of a content.
pub(crate) const CONTENT: &str = "~content";
/// The context of a document.
pub(crate) const CONTEXT: &str = "~context";
/// The description of a tool.
pub(crate) const DESCRIPTION: &str = "~description";
/// An image without a detail.
pub(crate) const DETAIL: &str = "~detail";
/// The name of a field, in an opaque block that holds one.
pub(crate) const FIELD: &str = "~field";
/// A text that looks like another kind of block. It is written unchanged.
pub(crate) const FORM: &str = "~form";
/// A document without a format.
pub(crate) const FORMAT: &str = "~format";
/// The number of a tool's object in the list of tools.
pub(crate) const GROUP: &str = "~group";
/// The number of halves of characters in a body.
pub(crate) const HALVES: &str = "~halves";
/// The id that was read, or that there was none.
pub(crate) const ID: &str = "~id";
/// The form of the input of a request.
pub(crate) const INPUT: &str = "~input";
/// The schema of a tool, without a type.
pub(crate) const INPUT_SCHEMA: &str = "~input_schema";
/// A result that said explicitly whether it is an error.
pub(crate) const IS_ERROR: &str = "~is_error";
/// The identity of an item; or an item, in an opaque block that holds more than it.
pub(crate) const ITEM: &str = "~item";
/// A further part of the item before it.
pub(crate) const JOINS: &str = "~joins";
/// A text that was JSON.
pub(crate) const JSON: &str = "~json";
/// The id of the reasoning that led to an item.
pub(crate) const LED: &str = "~led";
/// The name of a document that the provider's rule refuses.
pub(crate) const NAME: &str = "~name";
/// The field that names the call of a result.
pub(crate) const NAMED: &str = "~named";
/// The identity of the item after reasoning.
pub(crate) const NEXT: &str = "~next";
/// A call or result without an id.
pub(crate) const NO_ID: &str = "~no_id";
/// A function without parameters.
pub(crate) const PARAMETERS: &str = "~parameters";
/// A part of a content, in an opaque block.
pub(crate) const PART: &str = "~part";
/// A result with its images and documents inside.
pub(crate) const PARTS: &str = "~parts";
/// The media type of a picture and the length of its data, or the length of its address.
pub(crate) const PICTURE: &str = "~picture";
/// A message whose results were after or beside other parts.
pub(crate) const PLACED: &str = "~placed";
/// The whole item of a call of an unknown form.
pub(crate) const RAW: &str = "~raw";
/// The fields of a response that a request cannot hold.
pub(crate) const RESPONSE: &str = "~response";
/// The role of a message, if it is not the usual one.
pub(crate) const ROLE: &str = "~role";
/// The schema of a tool, or its field.
pub(crate) const SCHEMA: &str = "~schema";
/// Reasoning with a signature.
pub(crate) const SIGNED: &str = "~signed";
/// The status of a result.
pub(crate) const STATUS: &str = "~status";
/// A function that did not say whether it is strict.
pub(crate) const STRICT: &str = "~strict";
/// A request whose system prompt was `null` or empty.
pub(crate) const SYSTEM: &str = "~system";
/// The title of a document.
pub(crate) const TITLE: &str = "~title";
/// A request whose list of tools was `null` or empty.
pub(crate) const TOOLS: &str = "~tools";
/// The type of a block of a server tool.
pub(crate) const TYPE: &str = "~type";
