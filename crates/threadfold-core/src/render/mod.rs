//! Rendering a thread as Markdown, and cutting the Markdown into chunks that a model can read.
//!
//! Summarizing needs a thread as text: [`render`] writes it and records where every message starts,
//! and [`chunk`](fn@chunk) cuts it between messages where possible. Both are pure functions.
//! [`render`] copies the text of the thread once; chunks borrow it.
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
//! # Format
//!
//! The rendering has two kinds of headings: `# `, a [`Role`](crate::Role), the
//! [author](crate::message::Author) in parentheses if there is one, and a colon start a message, such
//! as `# user (ann):`; `## ` and a [`kind`](crate::ContentBlock::kind) start a block of that kind. A blank
//! line follows each.
//!
//! | block | rendering |
//! |---|---|
//! | text | unchanged; under `## text` after a block with a heading |
//! | tool call | `## tool_use: NAME`, the input in a fence: the JSON, or `(not JSON)` and the text |
//! | tool result | `## tool_result`, `(error)` for an error, the output in a fence |
//! | summary | `## summary` and its text |
//! | context update | `## context_update:` and the paths; optionally its text |
//! | image, document | `## image: image/png`, `## document: TITLE (application/pdf)` |
//! | provider's own call | `## server_tool_use: NAME`, the input in a fence |
//! | provider's own result | `## server_tool_result: KIND`, links as a list, no encrypted data |
//! | reasoning, reminder, checkpoint | omitted; optionally under a heading |
//! | opaque block | `## opaque: CODEC` and its size in bytes |
//!
//! Calls and results carry their ids if their message has several, so that they can be matched.
//! Every message is rendered by itself, so the rendering of two joined threads is the two
//! renderings joined.
//!
//! # Escaping
//!
//! A transcript contains text from untrusted sources. Such text cannot imitate the rendering's own
//! lines:
//!
//! - If hashes, white space and the name of a role (in any case) or of a kind follow each other in
//!   the thread, the last hash gets a backslash: `\# user:`, which Markdown shows as a plain hash.
//!   This also happens inside fences and within lines, so every line that looks like a heading is
//!   one, wherever a chunk was cut (with a tolerance of 3 bytes or more).
//! - Our fences have one backtick more than the longest run inside, and at least three.
//! - A fence that a text leaves open is closed after the text.
//! - Names, ids, paths and titles in headings are on one line, cut after about 200 bytes.
//!
//! HTML in a text is not escaped: a viewer that interprets it hides everything after an open
//! `<!--`; a program that reads lines does not.

mod body;
mod chunk;
mod links;
mod lookalikes;
mod markdown;
mod marks;
mod options;
#[doc(hidden)]
pub mod read_back;
mod rendered;
mod tools;

use std::fmt;

pub use chunk::{
    BYTES_PER_TOKEN, Chunk, ChunkBudget, TARGET_CHUNK_TOKENS, TOLERANCE_TOKENS, chunk, chunk_ranges,
};
pub use options::RenderOptions;
pub use rendered::Rendered;

use crate::message::{ContentBlock, Message};
use markdown::Markdown;

/// Returns the messages as Markdown, with the byte range of every message.
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
    let bytes = messages.iter().map(|message| expected(message, options));
    rendered.reserve(bytes.fold(0, usize::saturating_add));
    render_into(messages, options, &mut rendered);
    rendered
}

/// The bytes that most of a message takes: its texts, calls and results. A buffer that grows to the
/// size of a thread would take twice as much.
fn expected(message: &Message, options: &RenderOptions) -> usize {
    const HEADING: usize = 64;
    let capped = |bytes: usize, cap: Option<usize>| cap.map_or(bytes, |cap| bytes.min(cap));
    let texts = message.texts().map(|text| text.len());
    let summaries = message.summaries().map(|summary| summary.text.len());
    let inputs = message.tool_uses().map(|call| call.input.as_str().len());
    let results = message.tool_results().map(|result| {
        let texts = result.content.iter().filter_map(ContentBlock::as_text);
        texts.map(|text| text.len()).fold(0, usize::saturating_add)
    });
    let inputs = inputs.map(|bytes| capped(bytes, options.tool_input_cap));
    let results = results.map(|bytes| capped(bytes, options.tool_result_cap));
    let all = texts.chain(summaries).chain(inputs).chain(results);
    // Some signs are escaped.
    let all = all.map(|bytes| bytes.saturating_add(bytes / 32).saturating_add(HEADING));
    all.fold(0, usize::saturating_add)
}

/// Renders into an earlier rendering, which is overwritten. Its buffers are reused, and grow only
/// if they are too small.
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

/// Writes the messages as Markdown to a writer.
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
/// The errors of the writer.
pub fn write_to(
    messages: &[Message],
    options: &RenderOptions,
    out: &mut impl fmt::Write,
) -> fmt::Result {
    let mut markdown = Markdown::new(options);
    messages.iter().try_for_each(|message| markdown.message(message, out))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Json, Role, ToolResult, ToolUse};

    #[test]
    fn a_rendering_fits_the_room_that_is_made_for_it() {
        let round = |n: usize| {
            let input = Json::parse("{\"path\":\"src/part.rs\"}").unwrap();
            let call = ToolUse::new(format!("call_{n}"), "read_many_files", input);
            let said = ContentBlock::text("I read *all* of it, and `then` # some.".repeat(n % 9));
            let result = ToolResult::text(format!("call_{n}"), "line_of_code()\n".repeat(n % 700));
            [
                Message::user("And now?"),
                Message::new(Role::Assistant, vec![said, call.into()]),
                Message::new(Role::User, vec![result.into()]),
            ]
        };
        let thread: Vec<Message> = (0..300).flat_map(round).collect();
        for options in [
            RenderOptions::default(),
            RenderOptions {
                tool_result_cap: Some(500),
                tool_ids: true,
                ..RenderOptions::default()
            },
        ] {
            let rendered = render(&thread, &options);
            let room: usize = thread.iter().map(|message| expected(message, &options)).sum();
            let len = rendered.text().len();
            assert!(len <= room && room <= len * 3 / 2, "{len} bytes, room for {room}");
        }
    }
}
