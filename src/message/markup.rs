//! The exact texts by which checkpoints, reminders and summaries travel on the wire.
//!
//! Inside the crate kinds are data. Only codecs turn them into text and, when asked, back.

use super::{
    checkpoint::CheckpointId,
    content::{ContextUpdate, Summary},
    parts::Role,
    text::Text,
};

/// `<checkpoint:a1b2c3>`.
#[must_use]
pub(crate) fn checkpoint(id: CheckpointId) -> String {
    format!("<checkpoint:{id}>")
}

/// The id, if the whole text is a checkpoint marker.
#[must_use]
pub(crate) fn read_checkpoint(text: &str) -> Option<CheckpointId> {
    text.strip_prefix("<checkpoint:")?.strip_suffix('>')?.parse().ok()
}

/// A reminder in its tags.
#[must_use]
pub(crate) fn reminder(text: &str) -> String {
    wrap("system-reminder", text)
}

/// The reminder, if the whole text is one.
#[must_use]
pub(crate) fn read_reminder(text: &str) -> Option<Text> {
    unwrap("system-reminder", text)
}

/// A summary as a message of this role carries it: plain for the assistant, else in its tags.
#[must_use]
pub(crate) fn summary(role: Role, summary: &Summary) -> Text {
    match role {
        Role::Assistant => summary.text.clone(),
        Role::User | Role::System => wrap("conversation-summary", &summary.text).into(),
    }
}

/// The summary, if the whole text is one in its tags.
#[must_use]
pub(crate) fn read_summary(text: &str) -> Option<Text> {
    unwrap("conversation-summary", text)
}

/// News about files, with their names first.
#[must_use]
pub(crate) fn context_update(update: &ContextUpdate) -> String {
    let mut body: String = update.paths.iter().map(|path| format!("- {path}\n")).collect();
    body.push_str(&update.text);
    wrap("context-update", &body)
}

fn wrap(tag: &str, text: &str) -> String {
    format!("<{tag}>\n{text}\n</{tag}>")
}

fn unwrap(tag: &str, text: &str) -> Option<Text> {
    let inner = text.strip_prefix('<')?.strip_prefix(tag)?.strip_prefix(">\n")?;
    let inner = inner.strip_suffix('>')?.strip_suffix(tag)?.strip_suffix("\n</")?;
    Some(Text::from(inner))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrapped_can_be_read_back() {
        for text in ["", "a", "\n", "</system-reminder>", "<system-reminder>\n"] {
            assert_eq!(read_reminder(&reminder(text)), Some(Text::from(text)));
        }
        let id: CheckpointId = "a1b2c3".parse().unwrap();
        assert_eq!(read_checkpoint(&checkpoint(id)), Some(id));
    }

    #[test]
    fn only_the_whole_text_counts() {
        assert_eq!(read_checkpoint("<checkpoint:a1b2c3> and more"), None);
        assert_eq!(read_reminder("see <system-reminder>\nx\n</system-reminder>"), None);
        assert_eq!(read_summary("<conversation-summary>\n</conversation-summary>"), None);
    }
}
