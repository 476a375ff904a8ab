//! The codec of AWS Bedrock's Converse API, for the models of every maker that it offers.
//!
//! ```
//! use std::sync::Arc;
//! use threadfold::wire::{Dialect, DecodeOptions, EncodeOptions};
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
//! std::sync::Arc::make_mut(&mut request.messages).push(Message::user("Are you there?"));
//! let encoded = Dialect::BedrockConverse.encode(&request, &EncodeOptions::default());
//! let notes: Vec<String> = encoded.adjustments.iter().map(|note| note.to_string()).collect();
//! assert_eq!(notes, ["message 1: merged with the message before it"]);
//! # Ok::<(), threadfold::wire::WireError>(())
//! ```
//!
//! Over HTTP the address names the model, not the body. A body with a `modelId`, as SDKs use it,
//! keeps it, or gets [`EncodeOptions::model`]. Either tells the codec the family of the model; if
//! neither is set, the codec applies the strictest rules that every family accepts.
//!
//! # Mapping
//!
//! | on the wire | in the thread |
//! |---|---|
//! | `text` | [`Text`]; [`Checkpoint`], [`SystemReminder`] or [`Summary`] if [`DecodeOptions`] asks for it |
//! | `citationsContent`, `guardContent` of text | [`Text`]; while the text is unchanged, the block is written back whole |
//! | `image`, `document` | [`Image`], [`Document`]; the name is the title; a source in a store or of another form is opaque |
//! | `reasoningContent` | [`Thinking`], [`RedactedThinking`]; the message gets this codec as its origin |
//! | `toolUse`, `toolResult` | [`ToolUse`], [`ToolResult`] |
//! | `json` in a result | [`Text`] of the JSON, which is written as JSON while it is valid |
//! | `toolUse` with a `type`, `toolResult` in an answer | [`ServerToolUse`], [`ServerToolResult`] |
//! | `cachePoint`, `video`, `audio`, `searchResult`, `guardContent` of images, `toolAddition`, ... | [`Opaque`] |
//! | a block with a malformed field, with two known keys or with none | [`Opaque`], whole |
//!
//! `system` becomes one system message of [`Request::system`]; a message of the role `system` stays
//! in the thread. `maxTokens`, `temperature` and `toolChoice` are fields of the request. A system
//! tool and a cache point among the tools become tools without a schema, whose fields are in their
//! `extra`. All other fields of the body are in [`Request::extra`].
//!
//! # Normal forms
//!
//! A valid body that the host did not change is written back equal as JSON, without an adjustment:
//! same fields, same numbers, same order in lists. The differences are:
//!
//! - white space between tokens and the order of the known keys of an object;
//! - adjacent messages of one role, which some families accept: they are merged, which is reported;
//! - what only some families accept, in a body that does not name its model: see below.
//!
//! # Adjustments
//!
//! The thread is repaired first (see [`legality`](threadfold_core::legality)). Then the following
//! is done, each with its [`Change`]:
//!
//! | rule of the provider | change |
//! |---|---|
//! | user and assistant take turns | neighbours of one role are merged |
//! | a user message is first, except for Claude and Qwen | a short one is inserted before the first answer |
//! | a user message is last, except for models that continue an answer | "Please continue." is appended |
//! | an answer that Claude continues does not end in white space, has no reasoning if thinking is off, and is refused with a fixed thinking budget | it is trimmed, the reasoning is left out, or the answer counts as complete |
//! | no call is open | open calls get an error result |
//! | a server tool has its result before the next question | a call without it is left out |
//! | results are first in a user turn; with Llama and Mistral nothing else is in it, with Claude no documents and videos | they are moved to its beginning; other blocks are moved into the last one |
//! | no text is blank | it is left out; a result that loses all its content gets "(no output)" |
//! | a message with documents has a text | a short one is appended |
//! | pictures are PNG, JPEG, GIF or WebP of up to 3.75 MB and 8,000 pixels a side; there are up to 20, documents included | a picture that breaks the rule becomes a text that names it, and of too many the earliest do; a wrong format is corrected |
//! | ids are up to 64 letters, digits, `_`, `.`, `:` and `-`, names of tools are without `.` and `:` | others are rewritten, in call, result and tool |
//! | names of documents are up to 200 letters, digits, `-`, brackets and single spaces | others are rewritten; one that was read in a body stays |
//! | inputs are objects | others are wrapped: `{"input": ...}` |
//! | tools are declared if the thread has calls | if none is, those that it calls are declared, with a schema that accepts anything |
//! | no choice forbids all tools, and a choice needs tools | `toolChoice` is left out |
//! | reasoning is signed (by Claude), by this provider, and some models check the messages before it | unsigned and foreign reasoning is left out; for these models also reasoning after a changed message |
//! | with a fixed thinking budget a tool loop or an answer at the end begins with reasoning | `thinking` is left out of the model's own fields if what was written of it has no reasoning |
//! | a fixed thinking budget forces no tool | `toolChoice` is left out |
//! | cache points follow a block, but no document, video, reasoning or other cache point; there are at most four | the others are left out; of too many the first; those of [`Request::cache`] stay |
//! | some models accept system messages after a user turn | elsewhere they become user messages in `<system-reminder>` tags; one that was read in a body stays for the same model |
//! | Writer takes no `status` | it is left out |
//! | schemas say `object`, the temperature is 1 at most | schemas are completed without an adjustment, a higher temperature is left out; values that were read in a body stay |
//!
//! [`Request::cache`] places cache points after the tools, the system prompt and the last user
//! message, if the family of the model supports them there. Ids that are used again in a later turn
//! stay, and so do calls of undeclared tools if other tools are declared. Pictures that were read
//! in a body of this dialect stay while they are unchanged, whatever they hold. Sizes and numbers
//! of documents are not checked.
//!
//! # Losses
//!
//! Left out and reported is what other providers made and this dialect has no form for: their
//! opaque blocks and sources, server tools (call and result), reasoning, built-in tools, files in
//! their stores, unknown fields; addresses outside S3; unsupported media types. A text document of
//! another type becomes plain text. Not written, and not reported: usage, stop reason, origin,
//! [`Request::timeout`], and the fields of a response besides its message, which the message keeps
//! as `~response` in its `extra`.
//!
//! # Streams
//!
//! The host decodes the binary framing: the name of an event is its member of the stream
//! (`contentBlockDelta`, `throttlingException`, ...) and its data are the payload. An event without
//! a name holds both, `{"contentBlockDelta": {...}}`, as SDKs return it. The usage follows the end
//! of the answer, and the answer is complete after both.
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

use crate::kit::*;

pub(crate) const CODEC: Codec =
    Codec::new::<stream::Response>(forms::NAME, read::request, write::request, read::answer);
