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
//! | `text` | [`TextBlock`], or the kind that it is the wire form of, if [`DecodeOptions`](super::options::DecodeOptions) asks for that |
//! | `text` with `thought` | [`Thinking`] with its `thoughtSignature` |
//! | an empty `text` with a `thoughtSignature` | [`Thinking`] without text |
//! | `functionCall` | [`ToolUse`]; one without an id gets one that is not sent back |
//! | `functionResponse` | [`ToolResult`]: the text of `output`, or of `error`, which says that it failed; a response with other keys is a text of JSON, and goes back as the object that it is |
//! | its `parts` | pictures and documents of the result |
//! | `inlineData`, `fileData` | [`Image`], or [`Document`] for `application/*` and `text/*`; the URL alphabet of Base64 becomes the usual one until it goes back |
//! | `executableCode`, `toolCall` | [`ServerToolUse`], the data as its input |
//! | `codeExecutionResult`, `toolResponse` after its call | [`ServerToolResult`], the data as its content |
//! | white space, sound, films, other parts, what does not read as above | [`Opaque`] |
//! | `thoughtSignature` of other parts, `videoMetadata`, `partMetadata` and whatever else | `extra` of the block |
//! | `tools[].functionDeclarations[]` | [`ToolSpec`], its schema from `parametersJsonSchema` or `parameters`, with types in small letters |
//! | what else an item of `tools` holds | [`ToolSpec`] whose schema is `null`, the fields in its `extra` |
//! | `maxOutputTokens`, `temperature`, `functionCallingConfig` | the fields of [`Request`] |
//! | other parameters | `extra` of the request |
//!
//! A result without an id answers the next call of its function, else the next call.
//!
//! # Normal forms
//!
//! A valid body comes back equal as JSON, every field in the spelling in which it came. What may
//! change is the order of keys, white space, escapes in strings, and which of two equal keys of one
//! object stays (the last). An empty text without a signature, which some models accept, is left
//! out, and that is an adjustment; the old role `function` of a content that says more than results
//! becomes `user`. The model stands in the address and not in the body; where a body
//! repeats it, so does what is written.
//!
//! # Adjustments and losses
//!
//! First the thread is repaired as [`legality`](threadfold_core::legality) says. Then:
//!
//! | what stands in the thread | what is written | noted as |
//! |---|---|---|
//! | checkpoint, reminder, context update, summary | text of their exact shape; an assistant's summary is its plain text | |
//! | a thread that begins with an answer | a short user content before it | `UserInserted` |
//! | a thread that ends with an answer | "Please continue." after it, unless the model accepts the beginning of its answer | `UserInserted` |
//! | calls at the end without results | error results; they stay open in a thread at rest, which names no model and may end with an answer | `Repaired` |
//! | answers side by side that did not come so | one content; the fields of the first stay | `Merged`, `FieldsDropped` |
//! | results beside or after other blocks that did not come so | results first, in a content of their own; the rest in another | `BlockMoved` where the order changes |
//! | results without ids in another order than their calls | in the order of the calls | `BlockMoved` |
//! | several texts in a result | one text, with blank lines between | |
//! | pictures and documents of results that did not come within | user parts after the results | `BlockMoved` |
//! | a system message within the thread | a reminder of the user | `SystemMoved` |
//! | the first call of a step without signature: of another provider's model; of this one's, in the current turn and for Gemini 3 and later | the documented stand-in for a signature | `CallSigned` |
//! | a name of a function that is not up to 64 letters, digits, `_`, `-`, `.` and `:`, or begins with none of the first and no `_` | another, in declaration, choice, call and result | `NameRewritten` |
//! | an input that is no object | wrapped: `{"input": ...}` | `InputWrapped` |
//! | encrypted or foreign reasoning | nothing | `ReasoningDropped` |
//! | a picture or a document of others after an address whose ending names no format | as `image/jpeg` and `application/pdf`: Vertex AI demands a type | |
//! | documents of text | text; nothing of a blank one | `BlockAsText`, `BlockDropped` |
//! | addresses that are not fetched by HTTP, files of other stores, titles of documents that came without | nothing | `BlockDropped` |
//! | server tools and opaque blocks of others, tools that only another provider has | nothing | `BlockDropped` |
//! | a choice among tools that are not there | nothing | `ParameterDropped` |
//! | fields that another codec read | nothing | `FieldsDropped` |
//!
//! The current turn is what stands after the last user content that holds more than results.
//! Signatures are not bound to what stands before them, so a rewritten prefix changes nothing.
//! Contents of one role side by side are accepted and stay. Marks of [`Request::cache`](threadfold_core::message::Request::cache)
//! have no form here and need none.
//!
//! # Example
//!
//! The codec of Gemini's `generateContent` and `streamGenerateContent`, named `gemini`.
//!
//! ```
//! use threadfold::{
//!     Message,
//!     wire::{DecodeOptions, EncodeOptions, Dialect, WireFormat},
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
//! Arc::make_mut(&mut request.messages).push(answer);
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
//! Answers are read to a [`Turn`]: of several candidates the first. The output of its usage counts
//! the thoughts, which this provider counts apart; a `STOP` with calls is a stop for their results,
//! and a prompt that was blocked is a refusal. What the body says beside the answer stays with the
//! message and is never sent back.
//!
//! ```
//! use threadfold::{Usage, message::StopReason, wire::{Dialect, WireFormat}};
//!
//! let turn = Dialect::Gemini.decode_response(br#"{"candidates":[
//!     {"content":{"role":"model","parts":[{"text":"yes"}]},"finishReason":"STOP"}],
//!     "usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":1,"thoughtsTokenCount":4}}"#)?;
//! assert_eq!((turn.text().as_str(), &turn.stop_reason), ("yes", &StopReason::EndTurn));
//! assert_eq!(turn.usage, Some(Usage { reasoning: 4, ..Usage::new(9, 5) }));
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

#[cfg(doc)]
use threadfold_core::message::{
    Document, Image, Opaque, Request, ServerToolResult, ServerToolUse, TextBlock, Thinking,
    ToolResult, ToolSpec, ToolUse, Turn,
};

/// The codec.
#[derive(Debug)]
pub(crate) struct Codec;

crate::contract::codec!(Codec, marks::CODEC);
