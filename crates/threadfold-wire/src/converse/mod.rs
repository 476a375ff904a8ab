//! The codec of AWS Bedrock's Converse API, for the models of every maker that it offers.
//!
//! ```
//! use threadfold::wire::{Dialect, DecodeOptions, EncodeOptions, WireFormat};
//! use threadfold::{ContentBlock, Message};
//!
//! let body = br#"{"inferenceConfig":{"maxTokens":1024},
//!     "messages":[{"role":"user","content":[{"text":"hello"}]}]}"#;
//! let mut request = Dialect::BedrockConverse.decode_slice(body, &DecodeOptions::default())?;
//! assert_eq!(request.messages[0].content, [ContentBlock::text("hello")]);
//!
//! let untouched = Dialect::BedrockConverse.encode(&request, &EncodeOptions::default());
//! assert_eq!(untouched.adjustments, []);
//!
//! // User and assistant take turns here.
//! Arc::make_mut(&mut request.messages).push(Message::user("Are you there?"));
//! let encoded = Dialect::BedrockConverse.encode(&request, &EncodeOptions::default());
//! let notes: Vec<String> = encoded.adjustments.iter().map(|note| note.to_string()).collect();
//! assert_eq!(notes, ["message 1: merged with the message before it"]);
//! # Ok::<(), threadfold::wire::WireError>(())
//! ```
//!
//! Over HTTP the name of the model stands in the address, so it is not in the body. A body that
//! holds one under `modelId`, as SDKs take it, keeps it, or gets that of [`EncodeOptions::model`].
//! Either tells the codec to which family the model belongs; where neither does, the strictest
//! rules hold that no family refuses.
//!
//! # What becomes what
//!
//! | on the wire | in the thread |
//! |---|---|
//! | `text` | [`Text`]; [`Checkpoint`], [`SystemReminder`] or [`Summary`] where [`DecodeOptions`] says so |
//! | `citationsContent`, `guardContent` of text | [`Text`]; while that stays as it is, the block goes back whole |
//! | `image`, `document` | [`Image`], [`Document`]; the name is the title; a source in a store or of another shape is opaque |
//! | `reasoningContent` | [`Thinking`], [`RedactedThinking`]; the message gets this codec as its origin |
//! | `toolUse`, `toolResult` | [`ToolUse`], [`ToolResult`] |
//! | `json` in a result | [`Text`] of the JSON, which goes back as JSON while it is some |
//! | `toolUse` with a `type`, `toolResult` in an answer | [`ServerToolUse`], [`ServerToolResult`] |
//! | `cachePoint`, `video`, `audio`, `searchResult`, `guardContent` of pictures, `toolAddition`, ... | [`Opaque`] |
//! | a block with a field that is malformed, with two known keys or with none | [`Opaque`], whole |
//!
//! `system` becomes one system message of [`Request::system`], a message of the role `system`
//! stays in the thread. `maxTokens`, `temperature` and `toolChoice` are parameters of the request.
//! A system tool and a cache point among the tools are tools without a schema that keep their
//! shape in their `extra`. Everything else of the body is in [`Request::extra`].
//!
//! # Normal forms
//!
//! A valid body that the host did not change is written as it was read, without an adjustment, as JSON: same
//! fields, same numbers, same order in lists. What differs:
//!
//! - white space between tokens and the order of the known keys of an object;
//! - neighbours of one role, which some families accept: they are merged, and that is an
//!   adjustment;
//! - what only some families accept, in a body whose model is not named: see below.
//!
//! # Adjustments
//!
//! The thread is repaired first (see [`legality`](threadfold_core::legality)). Then, each with its
//! [`Change`]:
//!
//! | rule of the provider | what is done |
//! |---|---|
//! | user and assistant take turns | neighbours of one role are merged |
//! | a user speaks first, but for Claude and Qwen | a short user message is put before the first answer |
//! | a user speaks last, but for models that accept a beginning of their answer | "Please continue." is put after the last answer |
//! | Claude's beginning of an answer does not end in white space, holds no reasoning when thinking is off, and is refused with a fixed thinking budget | it is trimmed, the reasoning is left out, or the answer counts as finished |
//! | no call is unanswered | open calls get an error result |
//! | results stand first in a user turn, for Llama and Mistral alone, for Claude without documents and videos | they are moved there; what may not stand beside them is put into the last one |
//! | no text is blank | it is left out; a result of which nothing is left says "(no output)" |
//! | a message with documents has a text | a short one is put after them |
//! | ids are up to 64 letters, digits, `_`, `.`, `:` and `-`, names of tools are without `.` and `:` | others are rewritten, in call, result and tool |
//! | names of documents are up to 200 letters, digits, `-`, brackets and single spaces | others are rewritten; one that came in a body stays |
//! | inputs are objects | others are wrapped: `{"input": ...}` |
//! | tools are declared where the thread has calls | those that it calls are declared where none is, with a schema that accepts anything |
//! | no choice forbids all tools, and none stands without tools | `toolChoice` is left out |
//! | reasoning is signed (by Claude), by this provider, and on some models bound to what stands before it | unsigned and foreign reasoning is left out, and so is that of a message whose prefix was rewritten |
//! | with a fixed thinking budget an open tool loop begins with reasoning | `thinking` is left out of the model's own fields if there is no reasoning in the loop as it is written |
//! | a fixed thinking budget forces no tool | `toolChoice` is left out |
//! | cache points come after something, but not after a document, a video, reasoning or each other; there are at most four | those are left out, of too many the earliest; those that [`Request::cache`] places stay |
//! | some models accept system messages after a user turn | elsewhere they become user messages in `<system-reminder>` tags; one that came in a body stays for the same model |
//! | Writer takes no `status` | it is left out |
//! | schemas say `object`, the temperature is 1 at most | schemas are completed without a note, a higher temperature is left out; what came in a body stays |
//!
//! [`Request::cache`] places points after the tools, the system prompt and the last message of
//! the user, as far as the family of the model has them. An id that comes again in a later turn,
//! and calls of tools that are not among those declared, are left alone. Sizes and numbers of
//! pictures and documents are not looked at.
//!
//! # Losses
//!
//! What other providers made and this one has no form for is left out and noted: their opaque
//! blocks and sources, server tools (call and result), reasoning, built-in tools, files in their
//! stores, unknown fields; addresses that are not in S3, media types that are not read here. A
//! text document of another type becomes plain text. Not on the wire, and not noted: usage, stop
//! reason, origin, [`Request::timeout`], and the fields of a response beside its message, which
//! the message keeps as `~answer` in its `extra`.
//!
//! # Streams
//!
//! The binary framing is the host's: an event is named as its member of the stream
//! (`contentBlockDelta`, `throttlingException`, ...) and its data are the payload. An event without
//! a name holds both, `{"contentBlockDelta": {...}}`, as SDKs give it. What was spent comes after
//! the end of the answer, so an answer is complete when that came too.
//!
//! [`Request::cache`]: threadfold_core::message::Request::cache
//! [`Change`]: crate::Change
//! [`Checkpoint`]: threadfold_core::message::ContentBlock::Checkpoint
//! [`Document`]: threadfold_core::message::ContentBlock::Document
//! [`EncodeOptions::model`]: crate::EncodeOptions::model
//! [`Image`]: threadfold_core::message::ContentBlock::Image
//! [`Opaque`]: threadfold_core::message::ContentBlock::Opaque
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

mod forms;
mod media;
mod normal;
mod params;
mod read;
mod stream;
mod target;
mod write;

#[cfg(doc)]
use threadfold_core::message::Request;

/// The codec.
#[derive(Debug)]
pub(crate) struct Codec;

crate::contract::codec!(Codec, forms::NAME);
