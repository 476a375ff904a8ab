//! The codec of Anthropic's Messages API.
//!
//! Reads bodies without losing a field, and makes a thread valid under the rules of the API:
//!
//! ```
//! use threadfold::wire::{Dialect, DecodeOptions, EncodeOptions, WireFormat};
//! use threadfold::{ContentBlock, Message};
//!
//! let body = br#"{"model":"claude-opus-4-6","max_tokens":1024,
//!     "messages":[{"role":"user","content":"hello"}]}"#;
//! let mut request = Dialect::Anthropic.decode_slice(body, &DecodeOptions::default())?;
//! assert_eq!(request.messages[0].content, [ContentBlock::text("hello")]);
//!
//! let untouched = Dialect::Anthropic.encode(&request, &EncodeOptions::default());
//! assert_eq!(untouched.adjustments, []);
//!
//! // This model does not go on with an answer that was begun for it.
//! Arc::make_mut(&mut request.messages).push(Message::assistant("hi"));
//! let encoded = Dialect::Anthropic.encode(&request, &EncodeOptions::default());
//! let notes: Vec<String> = encoded.adjustments.iter().map(|note| note.to_string()).collect();
//! assert_eq!(notes, ["message 2: a user message put in before it"]);
//! assert!(encoded.body.as_str().contains("Please continue."));
//! # Ok::<(), threadfold::wire::WireError>(())
//! ```
//!
//! # What becomes what
//!
//! | on the wire | in the thread |
//! |---|---|
//! | `text` | [`Text`]; [`Checkpoint`], [`SystemReminder`] or [`Summary`] where [`DecodeOptions`] says so |
//! | `image`, `document` | [`Image`], [`Document`]; a source of another shape is opaque |
//! | `thinking`, `redacted_thinking` | [`Thinking`], [`RedactedThinking`]; the message gets this codec as its origin |
//! | `tool_use`, `tool_result` | [`ToolUse`], [`ToolResult`]; texts, pictures and documents in a result too |
//! | `server_tool_use`, `mcp_tool_use` | [`ServerToolUse`] |
//! | `web_search_tool_result` and every other `..._tool_result` | [`ServerToolResult`] of that kind |
//! | `search_result`, `tool_reference`, `container_upload`, `mid_conv_system`, `compaction`, `tool_addition`, `fallback`, ... | [`Opaque`] |
//! | a known type with a field that is malformed | [`Opaque`], whole |
//!
//! `system` becomes one system message of [`Request::system`], a message of the role `system` stays
//! in the thread. `max_tokens`, `temperature` and `tool_choice` are parameters of the request, a
//! tool without an `input_schema` is the provider's own and keeps its whole shape in its `extra`,
//! and everything else of the body (`model`, `thinking`, `stream`, ...) is in [`Request::extra`].
//!
//! # Normal forms
//!
//! A valid body that the host did not change is written as it was read, without an adjustment, as JSON: same
//! fields, same numbers, same order in lists. What differs:
//!
//! - white space between tokens and the order of the known keys of an object;
//! - `content: []` and `content: null` of a tool result: the field is left out;
//! - an empty last message of the assistant: it is left out, and that is an adjustment;
//! - a body that names a model and no `max_tokens`, which is one that only counts tokens: it gets
//!   one, and that is an adjustment.
//!
//! In which form something came (one string, `false` spelled out, ...) is remembered in the `extra`
//! of its owner, under names that begin with `~`.
//!
//! # Answers
//!
//! An answer in pieces is complete with `message_stop`. What does not keep to the order of events
//! is refused, so that an answer of which a part went missing is never taken for a whole one. The
//! counts are the last that came. A call that was cut off by the output limit has its text as a
//! JSON string for its input. If the provider paused after a compaction of its own, the answer is a
//! paused one; the usage of an answer that is a compaction alone is that of its `iterations`.
//!
//! # Adjustments
//!
//! The thread is repaired first (see [`legality`](threadfold_core::legality)). Then, each with its
//! [`Change`]:
//!
//! | rule of the provider | what is done |
//! |---|---|
//! | a user speaks first | a short user message is put before the first answer, unless that begins with the provider's own `compaction` |
//! | a `compaction` with a signature is the only one, and first in the thread | older ones are left out, and it is moved there |
//! | a user speaks last, but for models that accept a beginning of their answer | "Please continue." is put after the last answer; one that the provider paused goes back as it is, and so does one that is to be compacted |
//! | a beginning of an answer does not end in white space, holds no reasoning when thinking is off, and is refused with a fixed thinking budget | it is trimmed, the reasoning is left out, or the answer counts as finished |
//! | no call is unanswered | open calls get an error result; in a body without model, a thread at rest, they stay where a beginning of an answer may |
//! | results stand first in a user turn | they are moved there |
//! | no text is blank | it is left out, in results and in the system prompt too |
//! | ids are letters, digits, `_` and `-` | others are rewritten, in call and result |
//! | names of tools are up to 128 letters, digits, `_` and `-` | others are rewritten, in declaration, choice and call |
//! | inputs are objects | others are wrapped: `{"input": ...}` |
//! | at most four cache marks, none on reasoning | the earliest are left out; those that [`Request::cache`] places stay |
//! | a result of the provider's own tool is a `..._tool_result` | one of another kind is left out with its call |
//! | reasoning is signed, by this provider, and on some models bound to what stands before it | unsigned and foreign reasoning is left out, and so is that of a message whose prefix was rewritten |
//! | with a fixed thinking budget an open tool loop begins with reasoning | `thinking` is left out if there is no reasoning in the loop as it is written |
//! | a fixed thinking budget forces no tool | `tool_choice` becomes `auto` |
//! | some models accept system messages after a user turn | elsewhere they become user messages in `<system-reminder>` tags; one that came in a body stays for the same model |
//! | a tool that is to be chosen is there | `tool_choice` is left out, but for a body that came so |
//! | marks that live longer come first | those that [`Request::cache`] places live as long as the longest after them |
//! | pictures and documents are fetched by `https` only, JPEG is called `image/jpeg`, schemas say `object`, the temperature is 1 at most | data URIs are written as Base64, other addresses and a higher temperature are left out, names and schemas are completed without a note; what came in a body stays |
//! | `max_tokens` must be there | 4096 is set in a body that names a model |
//!
//! An id that comes again in a later turn, neighbours of one role, and calls of tools that are not
//! declared are accepted and left alone.
//!
//! # Losses
//!
//! What other providers made and this one has no form for is left out and noted: their opaque
//! blocks and sources, server tools (call and result), reasoning, built-in tools, files in their
//! stores, unknown fields; pictures of the assistant; media types that are not read here. A text
//! document becomes plain text. Not on the wire, and not noted: usage, stop reason, origin,
//! [`Request::timeout`], and the fields of a response beside its content, which the message keeps
//! as `~answer` in its `extra`.
//!
//! [`Request::cache`]: threadfold_core::message::Request::cache
//! [`Checkpoint`]: threadfold_core::message::ContentBlock::Checkpoint
//! [`Document`]: threadfold_core::message::ContentBlock::Document
//! [`Image`]: threadfold_core::message::ContentBlock::Image
//! [`Opaque`]: threadfold_core::message::ContentBlock::Opaque
//! [`Change`]: crate::Change
//! [`DecodeOptions`]: crate::DecodeOptions
//! [`RedactedThinking`]: threadfold_core::message::ContentBlock::RedactedThinking
//! [`ServerToolResult`]: threadfold_core::message::ContentBlock::ServerToolResult
//! [`ServerToolUse`]: threadfold_core::message::ContentBlock::ServerToolUse
//! [`Summary`]: threadfold_core::message::ContentBlock::Summary
//! [`SystemReminder`]: threadfold_core::message::ContentBlock::SystemReminder
//! [`Text`]: threadfold_core::message::ContentBlock::Text
//! [`Thinking`]: threadfold_core::message::ContentBlock::Thinking
//! [`ToolResult`]: threadfold_core::message::ContentBlock::ToolResult
//! [`ToolUse`]: threadfold_core::message::ContentBlock::ToolUse

mod compaction;
mod forms;
mod media;
mod params;
mod read;
mod stream;
mod write;

#[cfg(doc)]
use threadfold_core::message::Request;

/// The codec.
#[derive(Debug)]
pub(crate) struct Codec;

crate::contract::codec!(Codec, forms::NAME, compaction);
