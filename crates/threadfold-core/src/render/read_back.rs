//! Parses a rendering back into messages. The result is approximate; it serves to find facts in the
//! rendering.

use crate::message::{ContentBlock, Message, Role, ToolInput, ToolResult, ToolUse};

/// Returns the messages of a rendering or of a part of one, one message per block. Text before the
/// first heading counts as the assistant's.
#[doc(hidden)]
pub fn messages(text: &str) -> Vec<Message> {
    let mut section = Section { role: Role::Assistant, head: "text", lines: Vec::new() };
    let mut messages = Vec::new();
    for line in text.lines() {
        if let Some(role) = role(line) {
            messages.extend(section.take());
            (section.role, section.head) = (role, "text");
        } else if let Some(head) = line.strip_prefix("## ") {
            messages.extend(section.take());
            section.head = head;
        } else {
            section.lines.push(line);
        }
    }
    messages.extend(section.take());
    messages
}

/// Returns the messages of a rendering or of a part of one with all their blocks as one text. Text
/// before the first heading counts as the assistant's.
#[doc(hidden)]
#[must_use]
pub fn texts(text: &str) -> Vec<Message> {
    let mut all = vec![(Role::Assistant, String::new())];
    for line in text.lines() {
        if let Some(role) = role(line) {
            all.push((role, String::new()));
        } else if let Some((_, text)) = all.last_mut() {
            text.push_str(line);
            text.push('\n');
        }
    }
    all.retain(|(_, text)| !text.trim().is_empty());
    let message =
        |(role, text): (_, String)| Message::new(role, vec![ContentBlock::text(text.trim())]);
    all.into_iter().map(message).collect()
}

/// Whether a rendering, or a part of one, begins with the heading of a message.
#[doc(hidden)]
#[must_use]
pub fn starts_message(text: &str) -> bool {
    text.lines().next().and_then(role).is_some()
}

/// The block that is being parsed.
struct Section<'t> {
    role: Role,
    /// The heading of the block, without `## `.
    head: &'t str,
    lines: Vec<&'t str>,
}

impl Section<'_> {
    /// Returns the block as a message, and starts the next one. `None` if the block has no text.
    fn take(&mut self) -> Option<Message> {
        let text = self.lines.join("\n");
        self.lines.clear();
        let block = match self.head.split([':', ' ']).next().unwrap_or_default() {
            _ if text.trim().is_empty() => return None,
            "tool_use" => {
                let name = self.head.split(": ").nth(1).unwrap_or_default();
                let mut call = ToolUse::new("", name, serde_json::Value::Null);
                call.input = ToolInput::from_text(without_fences(&text));
                ContentBlock::ToolUse(call)
            }
            "tool_result" => {
                let notes = self.head.strip_suffix(')').unwrap_or_default();
                let is_error = notes.split([' ', '(', ',']).any(|note| note == "error");
                let text = without_fences(&text);
                if is_error { ToolResult::error("", text) } else { ToolResult::text("", text) }
                    .into()
            }
            "text" | "summary" => ContentBlock::text(text.trim()),
            _ => return None,
        };
        Some(Message::new(self.role, vec![block]))
    }
}

fn without_fences(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with("```"));
    lines.collect::<Vec<_>>().join("\n").trim().to_owned()
}

fn role(line: &str) -> Option<Role> {
    let name = line.strip_prefix("# ")?.strip_suffix(':')?;
    let role = name.split_once(" (").filter(|(_, author)| author.ends_with(')'));
    match role.map_or(name, |(role, _)| role) {
        "user" => Some(Role::User),
        "assistant" => Some(Role::Assistant),
        "system" => Some(Role::System),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        message::Json,
        render::{RenderOptions, render},
    };

    #[test]
    fn rendered_messages_are_found_again() {
        let call = ToolUse::new("t1", "read", Json::parse(r#"{"path":"a.txt"}"#).unwrap());
        let thread = [
            Message::user("read a.txt"),
            Message::new(Role::Assistant, vec![ContentBlock::text("Yes."), call.into()]),
            Message::new(Role::User, vec![ToolResult::text("t1", "hello").into()]),
            Message::new(Role::User, vec![ToolResult::error("t1", "gone").into()]),
            Message::user("Thanks.").by("ann".parse().unwrap()),
        ];
        let found = messages(render(&thread, &RenderOptions::default()).text());
        assert_eq!(found[..2], [Message::user("read a.txt"), Message::assistant("Yes.")]);
        let call = found[2].tool_uses().next().unwrap();
        assert_eq!((call.name.as_str(), call.input.as_str()), ("read", r#"{"path":"a.txt"}"#));
        let result = found[3].tool_results().next().unwrap();
        assert_eq!(
            (result.is_error, &result.content[..]),
            (false, &[ContentBlock::text("hello")][..])
        );
        let texts = texts(render(&thread, &RenderOptions::default()).text());
        let called = "Yes.\n\n## tool_use: read\n\n```json\n{\"path\":\"a.txt\"}\n```";
        assert_eq!(texts[..2], [Message::user("read a.txt"), Message::assistant(called)]);
        assert_eq!(texts.len(), 5);
        assert!(found[4].tool_results().all(|result| result.is_error));
        assert_eq!(found[5], Message::user("Thanks."));
    }
}
