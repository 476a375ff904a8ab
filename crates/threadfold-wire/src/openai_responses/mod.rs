//! OpenAI Responses.
//!
//! Neighbouring items of the model are one assistant message, neighbouring answers to calls are one
//! user message of results, and every other item is a message of its own.
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
//! | `compaction`, `compaction_trigger`, `item_reference`, `image_generation_call`, and whatever else | [`Opaque`] |
//!
//! | part or field | here |
//! |---|---|
//! | `input_text`, `output_text`; a content that is a string | [`TextBlock`], or the kind that it is the wire form of, if [`DecodeOptions`](super::options::DecodeOptions) asks for that |
//! | `refusal` | [`TextBlock`], marked |
//! | `input_image` | [`Image`] of a data URI, an address or a file id |
//! | `input_file` | [`Document`] of the same |
//! | blank text, other parts, what does not read as above | [`Opaque`]: the part of a user message, the whole item of an answer |
//! | tools of type `function` | [`ToolSpec`] |
//! | other tools | [`ToolSpec`] whose schema is `null`, the whole tool in its `extra` |
//! | `temperature`, `max_output_tokens`, `tool_choice` | the fields of [`Request`] |
//! | other fields and parameters, the model among them | `extra` of the message, block, tool or request |
//!
//! # Normal forms
//!
//! A valid body comes back equal as JSON: absent, `null`, `""` and `[]` stay apart, and so do
//! strings and arrays, numbers and their texts. What may change is the order of keys, white space,
//! escapes in strings, and which of two equal keys of one object stays (the last). The dialect lets
//! answers to calls stand anywhere after them; here each stands before the model goes on, and one
//! that came later is moved, which is noted.
//!
//! # Adjustments and losses
//!
//! First the thread is repaired as [`legality`](threadfold_core::legality) says. Then:
//!
//! | what stands in the thread | what is written | noted as |
//! |---|---|---|
//! | a first system message of texts | `instructions` | |
//! | checkpoint, reminder, context update, summary | text of their exact shape; an assistant's summary is its plain text | |
//! | calls at the end without results, in a body that names a model | error results; in a thread at rest they stay open | `Repaired` |
//! | a failed result | its text with `Error: ` before it, unless it begins with `Error:` in any case | |
//! | an input of JSON | its text as arguments; wrapped if it is no object | `InputWrapped` |
//! | a name of a tool that is not up to 64 letters, digits, `_` and `-` | another, in declaration, choice and call | `NameRewritten` |
//! | call ids over 64 characters | their beginning and a hash | `IdRewritten` |
//! | an empty id of a call | `call-1` and so on | `IdRewritten` |
//! | the id of a call before: answers need not follow their calls, so ids differ in the whole input | the id with a number | `IdRewritten` |
//! | a changed result of a call whose answer is no text (a screenshot) | neither call nor result | `BlockDropped` |
//! | reasoning of others, or that was changed; reasoning on a rewritten prefix, for a model that binds it | nothing | `ReasoningDropped` |
//! | reasoning with an id, where what it led to does not follow | nothing | `ReasoningDropped` |
//! | the id of a message or call whose reasoning is gone, or that stands twice | the item without it | `FieldsDropped` |
//! | hosted calls and opaque items whose reasoning is gone, or that stand twice | nothing | `BlockDropped` |
//! | opaque answers whose call is neither there nor stored | nothing | `BlockDropped` |
//! | a `compaction_trigger` that is not last | nothing | `BlockDropped` |
//! | `previous_response_id`, `conversation`, where the thread was compacted or holds the answer that they name | nothing: the provider would put what it stored before the same once more | `ParameterDropped` |
//! | documents of text; those of an address in an answer | text; nothing of a blank one | `BlockAsText`, `BlockDropped` |
//! | a blank text in a result that did not come so | nothing | `BlockDropped` |
//! | pictures and files in an answer, files of another provider | nothing | `BlockDropped` |
//! | calls of another provider's own tools and their results, opaque blocks of others | nothing | `BlockDropped` |
//! | fields that another codec read | nothing | `FieldsDropped` |
//! | tools that only another provider has, and a choice of them | nothing | `BlockDropped`, `ParameterDropped` |
//! | a thread of which nothing is left | "Please continue." of the user | `UserInserted` |
//!
//! Tools that came from elsewhere say `strict: false`: without it this provider takes any schema for
//! a strict one. Messages side by side, system messages anywhere and a trailing assistant message
//! are legal here and stay. Marks of [`Request::cache`](threadfold_core::message::Request::cache) have no form here and need
//! none.
//!
//! # Example
//!
//! The codec of OpenAI Responses (`POST /v1/responses`), named `openai-responses`.
//!
//! ```
//! use threadfold::{
//!     Message, Role,
//!     wire::{DecodeOptions, EncodeOptions, Dialect, WireFormat},
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
//! Arc::make_mut(&mut request.messages).push(Message::user("bye"));
//! let encoded = Dialect::OpenAiResponses.encode(&request, &EncodeOptions::default());
//! assert_eq!(encoded.adjustments, []);
//! let body: serde_json::Value = serde_json::from_str(encoded.body.as_str())?;
//! assert_eq!(body["input"][1]["encrypted_content"], "gAAA");
//! assert_eq!(body["input"][3]["content"], "bye");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Answers are read to a [`Turn`]. The usage counts cached tokens in the prompt, as this provider
//! does; an answer that calls stops for the results. What the body says beside the answer stays
//! with the message, but for what it repeats of the request, and is never sent back.
//!
//! ```
//! use threadfold::{Usage, message::StopReason, wire::{Dialect, WireFormat}};
//!
//! let turn = Dialect::OpenAiResponses.decode_response(br#"{"model":"gpt-5","status":"completed","output":[
//!     {"type":"message","role":"assistant","content":[{"type":"output_text","text":"yes"}]}],
//!     "usage":{"input_tokens":9,"output_tokens":1}}"#)?;
//! assert_eq!((turn.text().as_str(), &turn.stop_reason), ("yes", &StopReason::EndTurn));
//! assert_eq!(turn.usage, Some(Usage::new(9, 1)));
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

#[cfg(doc)]
use threadfold_core::message::{
    Document, Image, Opaque, Request, ServerToolResult, ServerToolUse, TextBlock, Thinking,
    ToolResult, ToolSpec, ToolUse, Turn,
};

/// The codec.
#[derive(Debug)]
pub(crate) struct Codec;

crate::contract::codec!(Codec, marks::CODEC, compaction);

/// Returns the body for `POST /v1/responses/compact`, which answers with all messages of the user
/// and a compaction. [`compaction_request`](crate::WireFormat::compaction_request) asks at the
/// usual address instead.
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
    options: &crate::EncodeOptions,
) -> crate::Encoded {
    let encoded = write::request(request, options);
    crate::Encoded { body: compaction::of_endpoint(&encoded.body), ..encoded }
}
