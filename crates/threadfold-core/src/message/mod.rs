//! The values that all other modules work on: messages, blocks, requests and answers.
//!
//! A thread is a list of [`Message`]s; a message has a role and a list of [`ContentBlock`]s.
//! Messages are cheap handles and texts are shared, so a log, a thread, a snapshot and a fork of it
//! hold the same bytes once, and every function of this crate takes `&[Message]`.
//!
//! | value | type |
//! |---|---|
//! | a message and where it is from | [`Message`], [`MessageParts`], [`Role`], [`Author`], [`StopReason`], [`Origin`] |
//! | the blocks of a message | [`ContentBlock`] and a struct for each kind |
//! | text, JSON and unknown fields, unchanged | [`Text`], [`Json`], [`Extra`] |
//! | a position in the thread | [`CheckpointId`] |
//! | a request to a model and its answer | [`Request`], [`Answer`], [`Delta`], [`ModelError`] |
//! | a window, tokens spent, a time | [`ContextWindow`], [`Usage`], [`Timestamp`] |
//! | the id of a compaction and its reason | [`CompactionId`], [`CompactionReason`] |
//! | the id of a thread, and pieces of its summary | [`ThreadId`], [`Batch`], [`BatchId`], [`Segment`] |
//!
//! The kind of a block is never guessed from text: a checkpoint is a [`ContentBlock::Checkpoint`],
//! whatever the texts around it look like. Only the codecs of `wire` know the texts that stand for
//! blocks on the wire.
//!
//! ```
//! use threadfold::message::{ContentBlock, Message, Role};
//!
//! let mut message = Message::user("read a.txt");
//! message.make_mut().content.push(ContentBlock::checkpoint("a1b2c3".parse()?));
//! assert_eq!(message.role, Role::User);
//! assert_eq!(message.content.len(), 2);
//! # Ok::<(), threadfold::message::InvalidValue>(())
//! ```

mod author;
#[doc(hidden)]
pub mod base64;
mod batch;
mod checkpoint;
mod compaction;
mod content;
mod content_form;
mod cow_str;
mod extra;
mod failure;
#[doc(hidden)]
pub mod fnv1a;
pub(crate) mod header;
mod invalid;
mod json;
mod json_text;
#[doc(hidden)]
pub mod markup;
pub(crate) mod measure;
mod media;
#[expect(clippy::module_inception, reason = "the folder is the vocabulary, the file its centre")]
mod message;
mod nesting;
mod parts;
mod published;
#[doc(hidden)]
pub mod redact;
mod redact_json;
mod request;
#[doc(hidden)]
pub mod steps;
mod stored;
mod text;
mod thread_id;
mod tool;
mod usage;
mod window;
mod withheld;

pub use author::Author;
pub use batch::{Batch, BatchId};
pub use checkpoint::{CheckpointId, CheckpointIds};
pub use compaction::{CompactionId, CompactionReason};
pub use content::{
    Checkpoint, ContentBlock, ContextUpdate, Opaque, RedactedThinking, Segment, Summary, TextBlock,
    Thinking, ToolResult, check_nesting,
};
pub use extra::Extra;
#[doc(hidden)]
pub use extra::Name;
pub use failure::{ModelError, ModelErrorKind};
#[doc(hidden)]
pub use header::{media_type as picture_type, pixels as picture_size};
pub use invalid::InvalidValue;
#[doc(hidden)]
pub use invalid::quoted;
pub use json::Json;
#[doc(hidden)]
pub use json_text::{push_string, run_of_text, unescaped};
pub use media::{Document, Image, MediaSource};
pub use message::Message;
pub use nesting::MAX_NESTING;
pub use parts::{MessageParts, Origin, Role, StopReason};
#[doc(hidden)]
pub use published::is_same_model;
pub use redact::Redactor;
pub use request::{Answer, Delta, Request};
pub use text::Text;
#[doc(hidden)]
pub use text::{boundary_before, slice, thousands};
pub use thread_id::ThreadId;
pub use tool::{ServerToolResult, ServerToolUse, ToolChoice, ToolInput, ToolSpec, ToolUse};
pub use usage::{Timestamp, Usage};
pub use window::ContextWindow;
#[doc(hidden)]
pub use window::version as model_version;
pub use withheld::{Withheld, WithheldReason};
