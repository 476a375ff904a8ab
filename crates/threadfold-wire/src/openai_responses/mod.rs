//! OpenAI Responses.
//!
//! Adjacent items of the model are one assistant message, adjacent results are one user message,
//! and every other item is a message of its own.
//!
//! | on the wire | here |
//! |---|---|
//! | `instructions` | the first message of [`Request::system`] |
//! | messages of `system` and `developer` before all other items | [`Request::system`], one message each |
//! | such messages later | a system message of the thread |
//! | `input` that is a string; a message of `user`, in the easy and the input form | a user message |
//! | a message of `assistant`, in the easy and the output form | a [`TextBlock`] for each part; the fields of the item stand on the first |
//! | `reasoning` | [`Thinking`]: its text is the summary, else the content; its signature is `encrypted_content` |
//! | `function_call`, `custom_tool_call` | [`ToolUse`] with its input as text, for ever |
//! | `apply_patch_call`, `computer_call`, `local_shell_call`, `shell_call`, `tool_search_call` | [`ToolUse`] of the name of its type, the whole item as its input; an opaque block where the provider answered it in the same response |
//! | the answers to all of these | [`ToolResult`]; an opaque block where the call is not in the input but may be stored |
//! | `web_search_call`, `file_search_call`, `code_interpreter_call`, `mcp_call` | [`ServerToolUse`], the whole item as its input |
//! | `program` and `program_output`, `tool_search_call` and `tool_search_output` that the provider carries out (`"execution":"server"`) | [`ServerToolUse`] and [`ServerToolResult`], the whole item as input and content; the answer may come in a later response |
//! | `additional_tools`, `configuration_update` | as a message of `developer`, with an [`Opaque`] block; in an answer only the block |
//! | `compaction`, `compaction_trigger`, `item_reference`, `image_generation_call`, and all other items | [`Opaque`] |
//!
//! | part or field | here |
//! |---|---|
//! | `input_text`, `output_text`; a content that is a string | [`TextBlock`]; another kind if the text has its wire form and [`DecodeOptions`] asks for it |
//! | `refusal` | [`TextBlock`], marked |
//! | `input_image` | [`Image`] of a data URI, an address or a file id |
//! | `input_file` | [`Document`] of the same |
//! | blank text, other parts, parts that cannot be read as above | [`Opaque`]: the part of a user message, the whole item of an answer |
//! | tools of type `function` | [`ToolSpec`] |
//! | other tools | [`ToolSpec`] whose schema is `null`, the whole tool in its `extra` |
//! | `temperature`, `max_output_tokens`, `tool_choice` | the fields of [`Request`] |
//! | other fields and parameters, the model among them | `extra` of the message, block, tool or request |
//!
//! # Normal forms
//!
//! A valid body is written back equal as JSON: absent, `null`, `""` and `[]` stay different, and so
//! do strings and arrays, and the texts of numbers. Only these may change: the order of keys, white
//! space, and escapes in strings; if an object has a key twice, only the last value stays. The
//! dialect allows results anywhere after their calls. A [`Request`] has them before the model's
//! next item, so a later one is moved, which is reported.
//!
//! # Adjustments and losses
//!
//! First the thread is repaired as [`legality`](threadfold_core::legality) describes. Then:
//!
//! | in the thread | written | reported as |
//! |---|---|---|
//! | a first system message of texts | `instructions` | |
//! | checkpoint, reminder, context update, summary | text in their exact form; an assistant's summary is its plain text | |
//! | open calls at the end, in a body that names a model | error results; without a model they stay open | `Repaired` |
//! | a failed result | its text after `Error: `, unless it begins with `Error:` in upper or lower case | |
//! | an input of JSON | its text as arguments; an input that is no object is wrapped | `InputWrapped` |
//! | a picture that is not JPEG, PNG, GIF or WebP, has broken or no data, or is one of more than 500 (the earliest go) | a text that names it; the picture under its own media type if only that is wrong | `BlockDropped`, `NameRewritten` |
//! | a name of a tool that has other characters than letters, digits, `_` and `-`, or more than 64 | a new name, in declaration, choice and call | `NameRewritten` |
//! | call ids over 64 characters | their first characters and a hash | `IdRewritten` |
//! | an empty id of a call | `call-1` and so on | `IdRewritten` |
//! | the id of an earlier call: results may be anywhere after their calls, so ids must be unique in the whole input | the id with a number | `IdRewritten` |
//! | a changed result of a call whose answer is no text (a screenshot) | neither call nor result | `BlockDropped` |
//! | reasoning of other providers, or that was changed; for a model that checks it, also reasoning after a changed message | nothing | `ReasoningDropped` |
//! | reasoning with an id that the item it led to does not follow | nothing | `ReasoningDropped` |
//! | the id of a message or call whose reasoning is gone, or that occurs twice | the item without it | `FieldsDropped` |
//! | hosted calls and opaque items whose reasoning is gone, or that occur twice | nothing | `BlockDropped` |
//! | opaque results whose call is neither in the input nor stored | nothing | `BlockDropped` |
//! | a `compaction_trigger` that is not last | nothing | `BlockDropped` |
//! | `previous_response_id`, `conversation`, if the thread was compacted or holds the answer that they name | nothing: the provider would insert its stored messages again | `ParameterDropped` |
//! | text documents; in an answer also those with an address | text; nothing if it is blank | `BlockAsText`, `BlockDropped` |
//! | a blank text in a result that was not read as one | nothing | `BlockDropped` |
//! | images and files in an answer, files of another provider | nothing | `BlockDropped` |
//! | calls of other providers' own tools and their results, opaque blocks of other codecs | nothing | `BlockDropped` |
//! | fields of another codec | nothing | `FieldsDropped` |
//! | other providers' own tools, and a choice of them | nothing | `BlockDropped`, `ParameterDropped` |
//! | a thread that loses all its messages | "Please continue." of the user | `UserInserted` |
//!
//! Tools from other dialects get `strict: false`: without it this provider treats every schema as a
//! strict one. Adjacent messages of one role, system messages at any position and a trailing
//! assistant message are legal and stay, and so do unchanged pictures that were read in a body of
//! this dialect. The marks of [`Request::cache`](threadfold_core::message::Request::cache)
//! have no form in this dialect, whose provider caches automatically.
//!
//! # Example
//!
//! The codec of OpenAI Responses (`POST /v1/responses`), named `openai-responses`.
//!
//! ```
//! use std::sync::Arc;
//! use threadfold::{
//!     Message, Role,
//!     wire::{DecodeOptions, EncodeOptions, Dialect},
//! };
//!
//! let body = br#"{"model":"gpt-5","instructions":"Be brief.","input":[
//!     {"role":"user","content":"hi"},
//!     {"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAA"},
//!     {"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[
//!         {"type":"output_text","text":"hello","annotations":[]}]}]}"#;
//! let mut request = Dialect::OpenAiResponses.decode_slice(body, &DecodeOptions::default())?;
//! assert_eq!((request.system.len(), request.messages.len()), (1, 2));
//! assert!(request.messages[1].content[0].is_reasoning());
//!
//! std::sync::Arc::make_mut(&mut request.messages).push(Message::user("bye"));
//! let encoded = Dialect::OpenAiResponses.encode(&request, &EncodeOptions::default());
//! assert_eq!(encoded.adjustments, []);
//! let body: serde_json::Value = serde_json::from_str(encoded.body.as_str())?;
//! assert_eq!(body["input"][1]["encrypted_content"], "gAAA");
//! assert_eq!(body["input"][3]["content"], "bye");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Answers are read to a [`Answer`]. The usage counts cached tokens in the prompt, as this provider
//! does. An answer with calls is read as a stop for their results. The other fields of the body are
//! kept with the message and never sent back, except those that repeat the request.
//!
//! ```
//! use threadfold::{Usage, message::StopReason, wire::Dialect};
//!
//! let answer = Dialect::OpenAiResponses.decode_response(br#"{"model":"gpt-5","status":"completed","output":[
//!     {"type":"message","role":"assistant","content":[{"type":"output_text","text":"yes"}]}],
//!     "usage":{"input_tokens":9,"output_tokens":1}}"#)?;
//! assert_eq!((answer.text().as_str(), &answer.stop_reason), ("yes", &StopReason::EndTurn));
//! assert_eq!(answer.usage, Some(Usage::new(9, 1)));
//! # Ok::<(), threadfold::wire::WireError>(())
//! ```

mod calls;
mod compaction;
mod kinds;
mod marks;
mod normal;
mod order;
mod params;
mod read;
mod read_content;
mod read_items;
mod stream;
mod write;

use crate::kit::*;

pub(crate) const CODEC: Codec =
    Codec::new::<stream::Response>(marks::CODEC, read::request, write::request, read::answer)
        .compacting(compaction::NATIVE);

/// Returns the body for `POST /v1/responses/compact`, which answers with all user messages and a
/// compaction. [`compaction_request`](crate::Dialect::compaction_request) asks for a compaction
/// at the usual address instead.
///
/// ```
/// use threadfold::{Message, Request, wire::{EncodeOptions, openai_responses}};
///
/// let request = Request { max_output: Some(9), ..Request::new(vec![Message::user("Hi.")]) };
/// let encoded = openai_responses::encode_compact(&request, &EncodeOptions::default());
/// assert_eq!(encoded.body.as_str(), r#"{"input":[{"role":"user","content":"Hi."}]}"#);
/// ```
pub fn encode_compact(
    request: &threadfold_core::message::Request,
    options: &EncodeOptions,
) -> Encoded {
    let encoded = write::request(request, options);
    Encoded { body: compaction::of_endpoint(&encoded.body), ..encoded }
}
