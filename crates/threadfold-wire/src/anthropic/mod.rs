//! The codec of Anthropic's Messages API.
//!
//! Reads bodies without losing a field, and makes a thread valid under the rules of the API:
//!
//! ```
//! use std::sync::Arc;
//! use threadfold::wire::{Dialect, DecodeOptions, EncodeOptions};
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
//! std::sync::Arc::make_mut(&mut request.messages).push(Message::assistant("hi"));
//! let encoded = Dialect::Anthropic.encode(&request, &EncodeOptions::default());
//! let notes: Vec<String> = encoded.adjustments.iter().map(|note| note.to_string()).collect();
//! assert_eq!(notes, ["message 2: a user message put in before it"]);
//! assert!(encoded.body.as_str().contains("Please continue."));
//! # Ok::<(), threadfold::wire::WireError>(())
//! ```
//!
//! # Mapping
//!
//! | on the wire | in the thread |
//! |---|---|
//! | `text` | [`Text`]; [`Checkpoint`], [`SystemReminder`] or [`Summary`] if [`DecodeOptions`] asks for it |
//! | `image`, `document` | [`Image`], [`Document`]; a source of another form is opaque |
//! | `thinking`, `redacted_thinking` | [`Thinking`], [`RedactedThinking`]; the message gets this codec as its origin |
//! | `tool_use`, `tool_result` | [`ToolUse`], [`ToolResult`]; texts, images and documents in a result too |
//! | `server_tool_use`, `mcp_tool_use` | [`ServerToolUse`] |
//! | `web_search_tool_result` and every other `..._tool_result` | [`ServerToolResult`] of that kind |
//! | `search_result`, `tool_reference`, `container_upload`, `mid_conv_system`, `compaction`, `tool_addition`, `fallback`, ... | [`Opaque`] |
//! | a known type with a malformed field | [`Opaque`], whole |
//!
//! `system` becomes one system message of [`Request::system`]; a message of the role `system` stays
//! in the thread. `max_tokens`, `temperature` and `tool_choice` are fields of the request. A tool
//! without an `input_schema` is the provider's own, and all its fields are in its `extra`. All
//! other fields of the body (`model`, `thinking`, `stream`, ...) are in [`Request::extra`].
//!
//! # Normal forms
//!
//! A valid body that the host did not change is written back equal as JSON, without an adjustment:
//! same fields, same numbers, same order in lists. The differences are:
//!
//! - white space between tokens and the order of the known keys of an object;
//! - `content: []` and `content: null` of a tool result: the field is left out;
//! - an empty last assistant message: it is left out, which is reported;
//! - a body with a model but without `max_tokens`, which is one that only counts tokens: it gets a
//!   limit, which is reported.
//!
//! The form in which a value was read (one string, an explicit `false`, ...) is kept as a mark in
//! the `extra` of its owner. The names of marks begin with `~`.
//!
//! # Answers
//!
//! A streamed answer is complete with `message_stop`. Events in another order are refused, so that
//! an answer with a missing part never counts as complete. The last reported counts apply. The
//! input of a call that the output limit cut off is its text, as a JSON string. If the provider
//! paused after its own compaction, the stop reason is a pause; the usage of an answer that is only
//! a compaction is that of its `iterations`.
//!
//! # Adjustments
//!
//! The thread is repaired first (see [`legality`](threadfold_core::legality)). Then the following
//! is done, each with its [`Change`]:
//!
//! | rule of the provider | change |
//! |---|---|
//! | a user message is first | a short one is inserted before the first answer, unless that begins with the provider's own `compaction` |
//! | a `compaction` with a signature is the only one, and first in the thread | older ones are left out, and it is moved to the beginning |
//! | a user message is last, except for models that continue an answer | "Please continue." is appended; an answer that the provider paused stays last, and so does one that is to be compacted |
//! | an answer to be continued does not end in white space, has no reasoning if thinking is off, and is refused with a fixed thinking budget | it is trimmed, the reasoning is left out, or the answer counts as complete |
//! | no call is open | open calls get an error result; in a body without a model they stay if the model continues answers |
//! | a server tool has its result before the next question | a call without it is left out |
//! | results are first in a user turn | they are moved to its beginning |
//! | no text is blank | it is left out, in results and in the system prompt too |
//! | ids are letters, digits, `_` and `-`, and unique in the whole request | others are rewritten, in call and result; a later call with the same id gets a number |
//! | names of tools are up to 128 letters, digits, `_` and `-` | others are rewritten, in declaration, choice and call |
//! | inputs are objects | others are wrapped: `{"input": ...}` |
//! | at most four cache marks, none on reasoning | the first are left out; those of [`Request::cache`] stay |
//! | a result of the provider's own tool is a `..._tool_result` | any other is left out with its call |
//! | reasoning is signed, by this provider, and some models check the messages before it | unsigned and foreign reasoning is left out; for these models also reasoning after a changed message |
//! | with a fixed thinking budget a tool loop or an answer at the end begins with reasoning | `thinking` is left out if what was written of it has no reasoning |
//! | a fixed thinking budget forces no tool | `tool_choice` becomes `auto` |
//! | some models accept system messages after a user turn | elsewhere they become user messages in `<system-reminder>` tags; one that was read in a body stays for the same model |
//! | the chosen tool is declared | `tool_choice` is left out, unless it was read in a body |
//! | marks with a longer lifetime are first | those of [`Request::cache`] get the longest lifetime of the marks after them |
//! | pictures are JPEG, PNG, GIF or WebP of up to 5 MiB of Base64 and 8,000 pixels a side; there are up to 100, or 600 for a window over 200,000 tokens, documents included, and no side has over 2,000 pixels if there are more than 20 | a picture that breaks the rule becomes a text that names it, and of too many the earliest do; a wrong media type is corrected |
//! | images and documents are fetched by `https` only, JPEG is called `image/jpeg`, schemas say `object`, the temperature is 1 at most | data URIs are written as Base64, other addresses and a higher temperature are left out, names and schemas are completed without an adjustment; values that were read in a body stay |
//! | version 2026-10-21 refuses sampling parameters, documents in answers, and citations on a user's text ([`AnthropicVersion`]) | they are left out if the options name that version |
//! | the message of a compaction that this provider made holds the block alone | the account of this crate beside it is left out |
//! | `max_tokens` must be there | 4096 is set in a body that names a model |
//!
//! Adjacent messages of one role, and calls of undeclared tools, are accepted and stay.
//!
//! # Losses
//!
//! Left out and reported is what other providers made and this dialect has no form for: their
//! opaque blocks and sources, server tools (call and result), reasoning, built-in tools, files in
//! their stores, unknown fields; images of the assistant; unsupported media types. A text document
//! becomes plain text. Pictures that were read in a body of this dialect stay while they are
//! unchanged, whatever they hold. Not written, and not reported: usage, stop reason, origin,
//! [`Request::timeout`], and the fields of a response besides its content, which the message keeps
//! as `~response` in its `extra`.
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
mod version;
mod write;

use crate::kit::*;

pub(crate) const CODEC: Codec =
    Codec::new::<stream::Response>(forms::NAME, read::request, write::request, read::answer)
        .compacting(compaction::NATIVE);
