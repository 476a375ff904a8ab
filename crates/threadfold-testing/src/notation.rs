//! Threads as text, for test cases and failure messages.
//!
//! ```text
//! # user
//! read a.txt
//! <checkpoint:aaaaaa>
//! # assistant
//! [thinking] short file
//! [tool_use t1 read] {"path": "a.txt"}
//! # user
//! [tool_result t1] hello
//! ```
//!
//! A line `# role` opens a message, `# user (ann)` one with an author, and a line `[kind ...]` a
//! block; the lines up to the next such line belong to it. Lines before any `[kind]` are one text block. Kinds: `text`, `thinking`,
//! `signed` (thinking with a signature), `redacted`, `tool_use ID NAME`, `tool_result ID`,
//! `tool_error ID`, `server_tool_use ID NAME`, `server_tool_result ID KIND`, `reminder`,
//! `context PATH...`, `summary`, `image`, `document` (both with an address), `opaque CODEC`.
//!
//! A text line that looks like one of these lines, or begins with a backslash, is written with a
//! backslash before it.
//!
//! [`write()`] writes summaries as on the wire: in an assistant message as plain text, in a user
//! message in a tag.

use std::fmt::Write as _;

use threadfold::message::{
    Author, ContentBlock, ContextUpdate, Document, Image, InvalidValue, Json, MediaSource, Message,
    Opaque, RedactedThinking, Role, ServerToolResult, ServerToolUse, Summary, Text, Thinking,
    ToolInput, ToolResult, ToolUse, markup,
};

/// Reads a thread.
///
/// ```
/// use threadfold::Message;
/// use threadfold_testing::notation;
///
/// let thread = notation::parse("# user\nhi\n# assistant\nhello")?;
/// assert_eq!(thread, [Message::user("hi"), Message::assistant("hello")]);
/// # Ok::<(), threadfold::message::InvalidValue>(())
/// ```
///
/// # Errors
///
/// [`InvalidValue`] for a block before any message, an unknown kind, or a malformed one.
pub fn parse(text: &str) -> Result<Vec<Message>, InvalidValue> {
    let mut messages: Vec<(Speaker, Vec<Draft>)> = Vec::new();
    // `lines` would remove carriage returns.
    for (index, line) in text.strip_suffix('\n').unwrap_or(text).split('\n').enumerate() {
        if let Some(speaker) = speaker(line) {
            messages.push((speaker, Vec::new()));
            continue;
        }
        let Some((_, drafts)) = messages.last_mut() else {
            if line.trim().is_empty() {
                continue;
            }
            return Err(refused(index + 1, "a block before the first `# role`", line));
        };
        let plain = line.strip_prefix('\\').unwrap_or(line);
        match (head(line), drafts.last_mut()) {
            (Some((words, rest)), _) => drafts.push(Draft::new(index, words, rest)),
            (None, Some(open)) if !open.is_closed() => open.body.extend(["\n", plain]),
            (None, _) => drafts.push(Draft::new(index, vec!["text".to_owned()], plain)),
        }
    }
    let messages = messages.into_iter().map(|((role, author), drafts)| {
        let blocks = drafts.into_iter().map(Draft::finish).collect::<Result<_, _>>()?;
        Ok(Message::new(role, blocks).by_author(author))
    });
    messages.collect()
}

/// Writes a thread.
///
/// ```
/// use threadfold::Message;
/// use threadfold_testing::notation;
///
/// assert_eq!(notation::write(&[Message::user("hi")]), "# user\nhi\n");
/// ```
#[must_use]
pub fn write(messages: &[Message]) -> String {
    let mut text = String::new();
    for message in messages {
        // Writing to a string cannot fail.
        let author = message.author.as_ref().map(|author| format!(" ({author})"));
        let _ = writeln!(text, "# {}{}", message.role, author.unwrap_or_default());
        // Whether the next line would be read as part of the previous block.
        let mut open = false;
        for block in &message.content {
            let (head, body) = block_text(message.role, block);
            let marker = matches!(block, ContentBlock::Checkpoint(_));
            let plain = head.is_empty() && !marker;
            let needs_head = plain && (open || looks_special(&body));
            let head = if needs_head { "[text]".to_owned() } else { head };
            open = !marker;
            let space = if head.is_empty() || body.is_empty() { "" } else { " " };
            let _ = writeln!(text, "{head}{space}{}", escaped(&body));
        }
    }
    text
}

/// A block that is being read.
struct Draft {
    line: usize,
    words: Vec<String>,
    body: String,
}

impl Draft {
    fn new(line: usize, words: Vec<String>, body: &str) -> Self {
        Self { line: line + 1, words, body: body.to_owned() }
    }

    /// A checkpoint is a single line.
    fn is_closed(&self) -> bool {
        self.words.first().is_some_and(|kind| kind == "checkpoint")
    }

    fn finish(self) -> Result<ContentBlock, InvalidValue> {
        self.block().map_err(|reason| {
            let found = format!("[{}] {}", self.words.join(" "), self.body);
            refused(self.line, reason, &found)
        })
    }

    /// Returns the block, or why there is none.
    fn block(&self) -> Result<ContentBlock, &'static str> {
        let Self { words, body, .. } = self;
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        Ok(match words.as_slice() {
            ["text"] => ContentBlock::text(body.as_str()),
            ["checkpoint", id] => {
                let id = id.parse().map_err(|_| "not a checkpoint id")?;
                ContentBlock::checkpoint(id)
            }
            ["thinking"] => Thinking::new(body.as_str(), None).into(),
            ["signed"] => Thinking::new(body.as_str(), Some(format!("sig:{body}").into())).into(),
            ["redacted"] => RedactedThinking::new(body.as_str()).into(),
            ["tool_use", id, name] => {
                let input = Json::parse(body).map(ToolInput::Json);
                let input = input.unwrap_or_else(|_| ToolInput::from_text(body.as_str()));
                ToolUse { input, ..ToolUse::new(*id, *name, Json::default()) }.into()
            }
            ["tool_result", id] if body.is_empty() => ToolResult::new(*id, Vec::new()).into(),
            ["tool_result", id] => ToolResult::text(*id, body.as_str()).into(),
            ["tool_error", id] => ToolResult::error(*id, body.as_str()).into(),
            ["server_tool_use", id, name] => ServerToolUse::new(*id, *name, json(body)?).into(),
            ["server_tool_result", id, kind] => {
                ServerToolResult::new(*id, *kind, json(body)?).into()
            }
            ["reminder"] => ContentBlock::reminder(body.as_str()),
            ["context", paths @ ..] => ContextUpdate::new(
                paths.iter().map(|path| Text::from(*path)).collect(),
                body.as_str(),
            )
            .into(),
            ["summary"] => Summary::new(body.as_str()).into(),
            ["image"] => Image::new(MediaSource::Url { url: body.as_str().into() }).into(),
            ["document"] => Document::new(MediaSource::Url { url: body.as_str().into() }).into(),
            ["opaque", codec] => Opaque::new(*codec, json(body)?).into(),
            _ => return Err("there is no such block"),
        })
    }
}

fn json(text: &str) -> Result<Json, &'static str> {
    Json::parse(text).map_err(|_| "not JSON")
}

/// The role of a message, and its author.
type Speaker = (Role, Option<Author>);

/// Reads the line that opens a message: `# user (ann)`.
fn speaker(line: &str) -> Option<Speaker> {
    let author = line.strip_prefix("# user (").and_then(|rest| rest.strip_suffix(')'));
    if let Some(author) = author {
        return Some((Role::User, Some(author.parse().ok()?)));
    }
    match line {
        "# system" => Some((Role::System, None)),
        "# user" => Some((Role::User, None)),
        "# assistant" => Some((Role::Assistant, None)),
        _ => None,
    }
}

/// The words of a `[kind ...]` or of a checkpoint, and the rest of the line.
fn head(line: &str) -> Option<(Vec<String>, &str)> {
    if let Some(id) = markup::read_checkpoint(line) {
        return Some((vec!["checkpoint".to_owned(), id.to_string()], ""));
    }
    let (words, rest) = line.strip_prefix('[')?.split_once(']')?;
    let rest = rest.strip_prefix(' ').unwrap_or(rest);
    words.starts_with(|first: char| first.is_ascii_lowercase()).then_some(())?;
    Some((words.split(' ').map(str::to_owned).collect(), rest))
}

/// Whether a text needs a `[text]` before it, because its first line would be read differently.
fn looks_special(text: &str) -> bool {
    text.is_empty() || text.split('\n').next().is_some_and(needs_escape)
}

fn needs_escape(line: &str) -> bool {
    line.starts_with('\\') || speaker(line).is_some() || head(line).is_some()
}

/// The body with a backslash before all lines but the first that need one.
fn escaped(body: &str) -> String {
    let mut escaped = String::with_capacity(body.len());
    for (index, line) in body.split('\n').enumerate() {
        if index > 0 {
            escaped.push_str(if needs_escape(line) { "\n\\" } else { "\n" });
        }
        escaped.push_str(line);
    }
    escaped
}

/// The `[kind ...]` of a block (empty for plain text) and its body.
fn block_text(role: Role, block: &ContentBlock) -> (String, String) {
    match block {
        ContentBlock::Text(block) => (String::new(), block.text.to_string()),
        ContentBlock::Checkpoint(checkpoint) => (String::new(), markup::checkpoint(checkpoint.id)),
        ContentBlock::Summary(summary) => {
            (String::new(), markup::summary(role, summary).to_string())
        }
        ContentBlock::Thinking(thinking) => {
            let kind = if thinking.signature.is_some() { "[signed]" } else { "[thinking]" };
            (kind.into(), thinking.text.to_string())
        }
        ContentBlock::RedactedThinking(thinking) => {
            ("[redacted]".into(), thinking.data.to_string())
        }
        ContentBlock::ToolUse(call) => {
            (format!("[tool_use {} {}]", call.id, call.name), call.input.as_str().into())
        }
        ContentBlock::ToolResult(result) => {
            let kind = if result.is_error { "tool_error" } else { "tool_result" };
            let inner = result.content.iter().map(|block| block_text(role, block).1);
            let inner: Vec<String> = inner.collect();
            (format!("[{kind} {}]", result.tool_use_id), inner.join("\n"))
        }
        ContentBlock::ServerToolUse(call) => {
            (format!("[server_tool_use {} {}]", call.id, call.name), call.input.as_str().into())
        }
        ContentBlock::ServerToolResult(result) => {
            let head = format!("[server_tool_result {} {}]", result.tool_use_id, result.kind);
            (head, result.content.as_str().into())
        }
        ContentBlock::SystemReminder(block) => ("[reminder]".into(), block.text.to_string()),
        ContentBlock::ContextUpdate(update) => {
            let paths: Vec<&str> = update.paths.iter().map(Text::as_str).collect();
            (format!("[context {}]", paths.join(" ")), update.text.to_string())
        }
        ContentBlock::Image(image) => ("[image]".into(), address(&image.source)),
        ContentBlock::Document(document) => ("[document]".into(), address(&document.source)),
        ContentBlock::Opaque(opaque) => {
            (format!("[opaque {}]", opaque.codec), opaque.value.as_str().into())
        }
    }
}

fn address(source: &MediaSource) -> String {
    match source {
        MediaSource::Url { url } => url.to_string(),
        MediaSource::File { id } => format!("file {id}"),
        MediaSource::Base64 { media_type, data } => format!("{media_type}, {} bytes", data.len()),
        MediaSource::Text { text, .. } => text.to_string(),
        MediaSource::Opaque { value, .. } => value.to_string(),
    }
}

fn refused(line: usize, reason: &str, found: &str) -> InvalidValue {
    InvalidValue::new("a line of a thread", format!("line {line}: {reason}"), found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        let text = "# user\nread\nthis\n<checkpoint:aaaaaa>\n# assistant\n[thinking] hm\n\
                    [tool_use t1 read] {\"a\":1}\n# user\n[tool_error t1] gone\n[reminder] x\n\
                    [text] # user\n# user (ann)\nhi\n";
        assert_eq!(write(&parse(text).unwrap()), text);
    }

    #[test]
    fn a_mistake_is_named_with_its_line() {
        let error = parse("# user\nhi\n[hologram] x").unwrap_err();
        assert_eq!(
            error.to_string(),
            "\"[hologram] x\" is not a line of a thread; line 3: there is no such block"
        );
    }
}
