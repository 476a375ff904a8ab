//! OpenAI Chat Completions, and the many servers that speak it.
//!
//! | on the wire | here |
//! |---|---|
//! | `system`, `developer` before all others | [`Request::system`], one message each |
//! | `system`, `developer` later | a system message of the thread |
//! | `user` | a user message |
//! | `assistant` | an assistant message: reasoning, content, refusal, audio, calls, in this order |
//! | `tool`, any number in a row | one user message of [`ToolResult`]s |
//! | `function` (deprecated) after its `function_call` | a user message of one result; the call gets an id of its own |
//!
//! | part or field | here |
//! |---|---|
//! | `text`; a content that is a string | [`TextBlock`]; another kind if the text has its wire form and [`DecodeOptions`] asks for it |
//! | `refusal`, as a part or a field | [`TextBlock`], marked |
//! | `image_url` | [`Image`]; a data URI becomes Base64 where it can be put together again byte for byte |
//! | `file` | [`Document`] of a data URI or a file id |
//! | `tool_calls` of type `function` and `custom`, `function_call` | [`ToolUse`] with its input as text, for ever |
//! | `tool_calls` of another form | [`ToolUse`], as far as they can be read; is written back whole, except a function without type or with its arguments as JSON |
//! | `reasoning_content`, `reasoning` | [`Thinking`] without signature; is written back under the same name |
//! | `thinking` with one text (Mistral) | [`Thinking`] without signature, at its position |
//! | blank text, `input_audio`, `audio`, other parts, parts that cannot be read as above | [`Opaque`] |
//! | `name` of a user message | its [author](threadfold_core::message::Author), if it is the name of one |
//! | `reasoning_details`, any other `name`, and all other fields | `extra` of the message, block, call or tool |
//! | tools of type `function` | [`ToolSpec`] |
//! | other tools | [`ToolSpec`] whose schema is `null`, the whole tool in its `extra` |
//! | `temperature`, `max_completion_tokens` or `max_tokens`, `tool_choice` | the fields of [`Request`] |
//! | other parameters, the model among them | `extra` of the request |
//!
//! # Normal forms
//!
//! A valid body is written back equal as JSON: absent, `null`, `""` and `[]` stay different, and so
//! do strings and arrays, and the texts of numbers. Only these may change: the order of keys, white
//! space, and escapes in strings; if an object has a key twice, only the last value stays.
//!
//! An invalid body may change without an adjustment in a case that loses nothing: audio with its
//! data is replaced by its id.
//!
//! # Adjustments and losses
//!
//! First the thread is repaired as [`legality`](threadfold_core::legality) describes. Then:
//!
//! | in the thread | written | reported as |
//! |---|---|---|
//! | checkpoint, reminder, context update, summary | text in their exact form; an assistant's summary is its plain text | |
//! | open calls at the end, in a body that names a model | error results, as `tool` messages, or as a `function` message; in a thread at rest they stay open | `Repaired` |
//! | a failed result | its text after `Error: `, unless it begins with `Error:` in upper or lower case | |
//! | an input of JSON | its text as arguments; an input that is no object is wrapped | `InputWrapped` |
//! | results after other blocks of the user's turn | results first | `BlockMoved` |
//! | images and files of results | a user message after the results | `BlockMoved` |
//! | a picture that is not JPEG, PNG, GIF or WebP, has broken or no data, or is one of more than 500 (the earliest go) | a text that names it; the picture under its own media type if only that is wrong | `BlockDropped`, `NameRewritten` |
//! | a message that calls, followed by others of the assistant | one message; of fields that clash the first stays | `Merged`, `FieldsDropped` |
//! | content after calls in one message | content first | `BlockMoved` |
//! | a name of a tool that has other characters than letters, digits, `_` and `-`, or more than 64 | a new name, in declaration, choice and call | `NameRewritten` |
//! | call ids over 40 characters | their first characters and a hash | `IdRewritten` |
//! | call ids of another form than nine letters and digits, for Mistral's models | a hash | `IdRewritten` |
//! | a function with its arguments as JSON, without arguments, or without type | the arguments as text, the type | `CallRewritten` |
//! | reasoning in a message without content and calls, or beside the content for Mistral's models | nothing | `ReasoningDropped` |
//! | signed, encrypted or foreign reasoning | nothing | `ReasoningDropped` |
//! | documents of text or an address | text; nothing of a blank one | `BlockAsText`, `BlockDropped` |
//! | a blank text in a result that was not read as one | nothing | `BlockDropped` |
//! | calls of a provider's own tools and their results, opaque blocks of others, media without a form | nothing | `BlockDropped` |
//! | fields of another codec, an empty `tool_calls`, a `function_call` with neither name nor arguments | nothing | `FieldsDropped` |
//! | other providers' own tools, and a choice of them | nothing | `BlockDropped`, `ParameterDropped` |
//! | a thread that loses all its messages | "Please continue." of the user | `UserInserted` |
//!
//! Adjacent assistant messages, system messages at any position and a trailing assistant message
//! are legal and stay, and so do unchanged pictures that were read in a body of this dialect. The
//! marks of [`Request::cache`](threadfold_core::message::Request::cache) have no form in this
//! dialect, whose provider caches automatically.
//!
//! # Example
//!
//! The codec of OpenAI Chat Completions (`POST /v1/chat/completions`), named `openai-chat`.
//!
//! ```
//! use std::sync::Arc;
//! use threadfold::{
//!     Message, Role,
//!     wire::{DecodeOptions, EncodeOptions, Dialect},
//! };
//!
//! let body = br#"{"model":"gpt-5","messages":[
//!     {"role":"system","content":"Be brief."},
//!     {"role":"user","content":"hi","name":"ann"}]}"#;
//! let mut request = Dialect::OpenAiChat.decode_slice(body, &DecodeOptions::default())?;
//! assert_eq!(request.system.len(), 1);
//! assert_eq!(request.messages[0].role, Role::User);
//! assert_eq!(request.messages[0].author, Some("ann".parse()?));
//!
//! std::sync::Arc::make_mut(&mut request.messages).push(Message::assistant("hello"));
//! let encoded = Dialect::OpenAiChat.encode(&request, &EncodeOptions::default());
//! assert_eq!(encoded.adjustments, []);
//! let body: serde_json::Value = serde_json::from_str(encoded.body.as_str())?;
//! assert_eq!(body["messages"][1]["name"], "ann");
//! assert_eq!(body["messages"][2]["content"], "hello");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Answers are read to a [`Answer`], from the first choice. The usage counts cached tokens in the
//! prompt, as this provider does. A `stop` with calls is read as a stop for their results. The
//! other fields of the body are kept with the message and never sent back. A streamed answer is
//! complete with `[DONE]`; for servers that omit it, also after its finish reason.
//!
//! ```
//! use threadfold::{Usage, message::StopReason, wire::Dialect};
//!
//! let answer = Dialect::OpenAiChat.decode_response(br#"{"model":"gpt-5","choices":[
//!     {"message":{"role":"assistant","content":"yes"},"finish_reason":"stop"}],
//!     "usage":{"prompt_tokens":9,"completion_tokens":1}}"#)?;
//! assert_eq!((answer.text().as_str(), &answer.stop_reason), ("yes", &StopReason::EndTurn));
//! assert_eq!(answer.usage, Some(Usage::new(9, 1)));
//! # Ok::<(), threadfold::wire::WireError>(())
//! ```

mod calls;
mod marks;
mod normal;
mod params;
mod read;
mod stream;
mod stream_call;
mod write;

use crate::kit::*;

pub(crate) const CODEC: Codec =
    Codec::new::<stream::Response>(marks::CODEC, read::request, write::request, read::answer);
