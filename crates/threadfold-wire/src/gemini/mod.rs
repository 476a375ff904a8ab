//! Gemini `generateContent`, of the Gemini API and of Vertex AI.
//!
//! | on the wire | here |
//! |---|---|
//! | `systemInstruction` | one message of [`Request::system`] |
//! | a content of the role `user`, `function` or none | a user message |
//! | a content of the role `model` | an assistant message; with calls or thoughts its origin is this codec |
//!
//! | part | here |
//! |---|---|
//! | `text` | [`TextBlock`]; another kind if the text has its wire form and [`DecodeOptions`] asks for it |
//! | `text` with `thought` | [`Thinking`] with its `thoughtSignature` |
//! | an empty `text` with a `thoughtSignature` | [`Thinking`] without text |
//! | `functionCall` | [`ToolUse`]; a call without an id gets one that is not sent back |
//! | `functionResponse` | [`ToolResult`]: the text of `output`, or of `error` for a failure; a response with other keys is a text of JSON, and is written back as an object |
//! | its `parts` | images and documents of the result |
//! | `inlineData`, `fileData` | [`Image`], or [`Document`] for `application/*` and `text/*`; Base64 in the URL alphabet is converted, and converted back when it is written |
//! | `executableCode`, `toolCall` | [`ServerToolUse`], the data as its input |
//! | `codeExecutionResult`, `toolResponse` after its call | [`ServerToolResult`], the data as its content |
//! | white space, audio, video, other parts, parts that cannot be read as above | [`Opaque`] |
//! | `thoughtSignature` of other parts, `videoMetadata`, `partMetadata` and whatever else | `extra` of the block |
//! | `tools[].functionDeclarations[]` | [`ToolSpec`], its schema from `parametersJsonSchema` or `parameters`, with types in lower case |
//! | the other fields of an item of `tools` | [`ToolSpec`] whose schema is `null`, the fields in its `extra` |
//! | `maxOutputTokens`, `temperature`, `functionCallingConfig` | the fields of [`Request`] |
//! | other parameters | `extra` of the request |
//!
//! A result without an id answers the next call of its function, else the next call.
//!
//! # Normal forms
//!
//! A valid body is written back equal as JSON, with every field in the spelling in which it was
//! read. Only these may change: the order of keys, white space, and escapes in strings; if an
//! object has a key twice, only the last value stays. An empty text without a signature, which some
//! models accept, is left out and reported; the old role `function` of a content with other parts
//! than results becomes `user`. The address names the model, so a body contains it only if the body
//! that was read did.
//!
//! # Adjustments and losses
//!
//! First the thread is repaired as [`legality`](threadfold_core::legality) describes. Then:
//!
//! | in the thread | written | reported as |
//! |---|---|---|
//! | checkpoint, reminder, context update, summary | text in their exact form; an assistant's summary is its plain text | |
//! | a thread that begins with an answer | a short user content before it | `UserInserted` |
//! | a thread that ends with an answer | "Please continue." after it, unless the model accepts the beginning of its answer | `UserInserted` |
//! | open calls at the end | error results; in a body without a model that may end with an answer they stay open | `Repaired` |
//! | adjacent answers that were not read in this form | one content; the fields of the first stay | `Merged`, `FieldsDropped` |
//! | results beside or after other blocks that were not read in this form | the results first, in a content of their own; the other blocks in another content | `BlockMoved` where the order changes |
//! | results without ids in another order than their calls | in the order of the calls | `BlockMoved` |
//! | several texts in a result | one text, with blank lines between | |
//! | images and documents of results that were not read within | user parts after the results | `BlockMoved` |
//! | a picture that is not JPEG, PNG, WebP, HEIC or HEIF, has broken or no data, or is one of more than 3,000 (the earliest go) | a text that names it; the picture under its own media type if only that is wrong | `BlockDropped`, `NameRewritten` |
//! | a system message within the thread | a reminder of the user | `SystemMoved` |
//! | the first call of a step without signature, if another provider's model made it; for Gemini 3 and later also this provider's own, in the current turn | the documented placeholder for a signature | `CallSigned` |
//! | a name of a function that is not up to 64 letters, digits, `_`, `-`, `.` and `:`, or that begins with neither a letter nor `_` | another, in declaration, choice, call and result | `NameRewritten` |
//! | an input that is no object | wrapped: `{"input": ...}` | `InputWrapped` |
//! | encrypted or foreign reasoning | nothing | `ReasoningDropped` |
//! | an image or a document from another dialect with an address whose extension names no format | as `image/jpeg` and `application/pdf`: Vertex AI demands a type | |
//! | text documents | text; nothing if it is blank | `BlockAsText`, `BlockDropped` |
//! | addresses that are not fetched by HTTP, files of other stores, titles of documents that were read without | nothing | `BlockDropped` |
//! | server tools and opaque blocks of other codecs, other providers' own tools | nothing | `BlockDropped` |
//! | a choice among missing tools | nothing | `ParameterDropped` |
//! | fields of another codec | nothing | `FieldsDropped` |
//!
//! Pictures that were read in a body of this dialect stay while they are unchanged.
//!
//! The current turn begins with the last user content that holds more than results. Signatures do
//! not depend on earlier messages, so changing those has no effect. Adjacent contents of one role
//! are accepted and stay. The marks of [`Request::cache`](threadfold_core::message::Request::cache)
//! have no form in this dialect, whose provider caches automatically.
//!
//! # Example
//!
//! The codec of Gemini's `generateContent` and `streamGenerateContent`, named `gemini`.
//!
//! ```
//! use std::sync::Arc;
//! use threadfold::{
//!     Message,
//!     wire::{DecodeOptions, EncodeOptions, Dialect},
//! };
//!
//! let body = br#"{"systemInstruction":{"parts":[{"text":"Be brief."}]},"contents":[
//!     {"role":"user","parts":[{"text":"Read a.txt."}]},
//!     {"role":"model","parts":[{"functionCall":{"name":"read","args":{"path":"a.txt"}},
//!         "thoughtSignature":"c2ln"}]}]}"#;
//! let mut request = Dialect::Gemini.decode_slice(body, &DecodeOptions::default())?;
//! let call = request.messages[1].tool_uses().next().map(|call| call.id.clone());
//! assert_eq!(call.as_deref(), Some("call_1_0"));
//!
//! let result = threadfold::message::ToolResult::text("call_1_0", "a poem").into();
//! let answer = Message::new(threadfold::Role::User, vec![result]);
//! std::sync::Arc::make_mut(&mut request.messages).push(answer);
//! let encoded = Dialect::Gemini.encode(&request, &EncodeOptions::default());
//! assert_eq!(encoded.adjustments, []);
//! let body: serde_json::Value = serde_json::from_str(encoded.body.as_str())?;
//! assert_eq!(body["contents"][1]["parts"][0]["thoughtSignature"], "c2ln");
//! assert_eq!(
//!     body["contents"][2]["parts"][0]["functionResponse"],
//!     serde_json::json!({"name": "read", "response": {"output": "a poem"}}),
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Answers are read to a [`Answer`], from the first of several candidates. The output of its usage
//! includes reasoning, which this provider counts separately. A `STOP` with calls is read as a stop
//! for their results, and a blocked prompt as a refusal. The other fields of the body are kept with
//! the message and never sent back.
//!
//! ```
//! use threadfold::{Usage, message::StopReason, wire::Dialect};
//!
//! let answer = Dialect::Gemini.decode_response(br#"{"candidates":[
//!     {"content":{"role":"model","parts":[{"text":"yes"}]},"finishReason":"STOP"}],
//!     "usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":1,"thoughtsTokenCount":4}}"#)?;
//! assert_eq!((answer.text().as_str(), &answer.stop_reason), ("yes", &StopReason::EndTurn));
//! assert_eq!(answer.usage, Some(Usage { reasoning: 4, ..Usage::new(9, 5) }));
//! # Ok::<(), threadfold::wire::WireError>(())
//! ```

mod marks;
mod media;
mod normal;
mod params;
mod part;
mod partial;
mod read;
mod stream;
mod tools;
mod write;

use crate::kit::*;

pub(crate) const CODEC: Codec =
    Codec::new::<stream::Response>(marks::CODEC, read::request, write::request, read::answer);
