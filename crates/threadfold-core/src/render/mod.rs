//! A thread as Markdown, and that Markdown in pieces that a model can read.
//!
//! Whoever sums up a thread needs it as text: [`render`] writes it and keeps where every message
//! begins, [`chunk`](fn@chunk) cuts it between messages where it can. Both are pure. The text of
//! the thread is copied once, by [`render`]; chunks borrow it.
//!
//! ```
//! use threadfold::{Message, render::{ChunkBudget, RenderOptions, chunk, render}};
//!
//! let thread = [Message::user("Hello"), Message::assistant("Hi there!")];
//! let rendered = render(&thread, &RenderOptions::default());
//! assert_eq!(rendered.text(), "# user:\n\nHello\n\n# assistant:\n\nHi there!\n\n");
//! assert_eq!(rendered.message(1), Some("# assistant:\n\nHi there!\n\n"));
//! assert_eq!(chunk(&rendered, ChunkBudget::default()).len(), 1);
//! ```
//!
//! # What it looks like
//!
//! Two kinds of lines are marks: `# ` and a [`Role`](crate::Role) and a colon begin a message, `## `
//! and a [`kind`](crate::ContentBlock::kind) begin a block of that kind. A blank line follows each.
//!
//! | block | rendering |
//! |---|---|
//! | text | as it is, under `## text` if a block with a heading stands before it |
//! | call | `## tool_use: NAME`, the input in a fence: JSON as it came, or `(not JSON)` and the text |
//! | result | `## tool_result`, `(error)` if it failed, what the tool gave in a fence |
//! | summary | `## summary` and its text |
//! | news about files | `## context_update:` and the paths; the text if asked |
//! | picture, document | `## image: image/png`, `## document: TITLE (application/pdf)` |
//! | call of a provider's tool | `## server_tool_use: NAME`, the input in a fence |
//! | result of a provider's tool | `## server_tool_result: KIND`, links as a list, no encrypted data |
//! | reasoning, reminder, checkpoint | nothing; under a heading if asked |
//! | what only a codec understands | `## opaque: CODEC` and its size |
//!
//! Calls and results of a message with several carry their ids, so that they can be matched.
//! Every message is rendered by itself, so the rendering of two threads joined is the two
//! renderings joined (but for [`RenderOptions::omit_results_of`], which looks back at the calls).
//!
//! # What the thread cannot say
//!
//! A transcript holds what strangers wrote. It cannot pass for the rendering's own words:
//!
//! - Wherever hashes, white space and then the name of a role (in any case) or of a kind stand in
//!   the thread, the last hash gets a backslash: `\# user:`. That is Markdown for a plain hash. It
//!   is done inside fences and within lines too, so a line that looks like a mark is one, whatever
//!   stands around it and wherever a chunk was cut (with a tolerance of 3 bytes or more).
//! - A fence of ours has one backtick more than the longest run inside, and at least three.
//! - A fence that a text leaves open is closed behind it.
//! - Names, ids, paths and titles stand in headings on one line, cut after some 200 bytes.
//!
//! HTML in a text is left as it is: a viewer that honours an open `<!--` hides what follows, a
//! reader of lines does not.

mod body;
mod chunk;
mod links;
mod markdown;
mod marks;
mod options;
mod pretty;
#[doc(hidden)]
pub mod read_back;
mod rendered;
mod room;
mod scan;
mod tools;

use std::fmt;

pub use chunk::{
    BYTES_PER_TOKEN, Chunk, ChunkBudget, ChunkRange, TARGET_CHUNK_TOKENS, TOLERANCE_TOKENS, chunk,
    chunk_ranges,
};
pub use options::RenderOptions;
pub use rendered::Rendered;

use crate::message::Message;
use markdown::Markdown;

/// Returns the messages as Markdown, with the place of every message. No messages, no text.
///
/// ```
/// use threadfold::{Message, render::{RenderOptions, render}};
///
/// let rendered = render(&[Message::user("# user: me")], &RenderOptions::default());
/// assert_eq!(rendered.text(), "# user:\n\n\\# user: me\n\n");
/// ```
#[must_use]
pub fn render(messages: &[Message], options: &RenderOptions) -> Rendered {
    let mut rendered = Rendered::default();
    rendered.reserve(room::needed(messages, options), messages.len());
    render_into(messages, options, &mut rendered);
    rendered
}

/// Renders into the buffers of an earlier rendering, which is overwritten.
///
/// Once they are large enough, nothing is allocated for the text.
///
/// ```
/// use threadfold::{Message, render::{RenderOptions, render, render_into}};
///
/// let options = RenderOptions::default();
/// let mut rendered = render(&[Message::user("a longer message")], &options);
/// let buffer = rendered.text().as_ptr();
/// render_into(&[Message::user("short")], &options, &mut rendered);
/// assert_eq!(rendered.text(), "# user:\n\nshort\n\n");
/// assert_eq!(rendered.text().as_ptr(), buffer);
/// ```
pub fn render_into(messages: &[Message], options: &RenderOptions, rendered: &mut Rendered) {
    let mut markdown = Markdown::new(options);
    rendered.clear();
    for message in messages {
        // Writing to a string cannot fail.
        let _ = markdown.message(message, rendered.next_message());
    }
}

/// Writes the messages as Markdown to wherever text can be written.
///
/// ```
/// use threadfold::{Message, render::{RenderOptions, write_to}};
///
/// let mut prompt = String::from("The transcript:\n\n");
/// write_to(&[Message::user("Hello")], &RenderOptions::default(), &mut prompt)?;
/// assert_eq!(prompt, "The transcript:\n\n# user:\n\nHello\n\n");
/// # Ok::<(), std::fmt::Error>(())
/// ```
///
/// # Errors
///
/// Those of the writer.
pub fn write_to(
    messages: &[Message],
    options: &RenderOptions,
    out: &mut impl fmt::Write,
) -> fmt::Result {
    let mut markdown = Markdown::new(options);
    messages.iter().try_for_each(|message| markdown.message(message, out))
}
