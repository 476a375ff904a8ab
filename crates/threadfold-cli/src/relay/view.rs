//! The compacted form of the first messages of a thread.
//!
//! A view is not a plan, because the plans of several compactions would have to be applied one
//! after another; the log of the thread has the plans. A view ends where the kept tail begins, so
//! it stays valid if a client changes its last messages.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use threadfold::{
    legality,
    message::{ContentBlock, Message},
};

use super::chain::{canonical, unmarked};

/// The messages to send in place of the first messages of a thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    /// The number of messages of the thread that it replaces.
    pub covers: usize,
    /// The messages that are sent instead, without cache marks.
    pub messages: Vec<Message>,
    /// How many of the messages that it replaces the model had read when it was made. The others
    /// were too large to be sent whole.
    pub read: usize,
    /// Whether the newest text among the messages that it replaces is whole in it, or was the
    /// user's newest of all when it was made.
    pub has_newest: bool,
}

impl View {
    /// Returns a view of messages that the model has read all, for threads whose newest text is not
    /// among them.
    #[must_use]
    pub fn new(covers: usize, messages: Vec<Message>) -> Self {
        Self { covers, messages, read: covers, has_newest: false }
    }

    /// Returns the view that turns a thread into its compacted form. It does not cover the messages
    /// at the end that are equal in both, so it stays valid if a client changes these.
    ///
    /// ```
    /// use threadfold::Message;
    /// use threadfold_cli::relay::View;
    ///
    /// let thread = [Message::user("a"), Message::assistant("b"), Message::user("c")];
    /// let view = View::between(&thread, &[Message::user("A and b."), Message::user("c")]);
    /// assert_eq!(view, View::new(2, vec![Message::user("A and b.")]));
    /// ```
    #[must_use]
    pub fn between(thread: &[Message], compacted: &[Message]) -> Self {
        let pairs = thread.iter().rev().zip(compacted.iter().rev());
        let tail = pairs.take_while(|(before, after)| before == after).count();
        let kept = compacted.len().saturating_sub(tail);
        let covers = thread.len().saturating_sub(tail);
        let messages: Vec<Message> = compacted.iter().take(kept).cloned().collect();
        let is_whole = |newest: &Message| {
            let kept: Vec<&ContentBlock> =
                messages.iter().flat_map(Message::typed_content).collect();
            // By its place: a user types "Go on." more than once.
            kept.ends_with(&newest.typed_content().collect::<Vec<_>>())
        };
        let newest = thread.iter().take(covers).rfind(|message| message.is_typed());
        let has_newest = !is_typed_after(thread, covers) || newest.is_none_or(is_whole);
        let read = legality::unread_from(thread).min(covers);
        Self { covers, messages, read, has_newest }
    }

    /// Whether the view may stand for the beginning of a thread that begins with what it covers. It
    /// may for the thread for which it was made, and for one that goes on from there. A client may
    /// also go back to an earlier point: then the view may lack what the model has not read there, or
    /// the text that was the user's newest.
    ///
    /// ```
    /// use threadfold::Message;
    /// use threadfold_cli::relay::View;
    ///
    /// let thread = [Message::user("Who?"), Message::assistant("Ann."), Message::user("When?")];
    /// let view = View::between(&thread, &[Message::user("It is Ann."), Message::user("When?")]);
    /// assert!(view.serves(&thread));
    /// assert!(!view.serves(&thread[..2]), "the newest question is lost there");
    ///
    /// // The newest text alone is too large, and was cut.
    /// let cut = View::between(&thread, &[Message::user("It is Ann. Wh...")]);
    /// assert_eq!((cut.covers, cut.read), (3, 2));
    /// assert!(cut.serves(&thread), "as often as it is sent");
    /// ```
    #[must_use]
    pub fn serves(&self, thread: &[Message]) -> bool {
        self.read <= legality::unread_from(thread)
            && (self.has_newest || is_typed_after(thread, self.covers))
    }

    /// Returns the thread as it is sent; `None` if the thread is shorter than the view covers. A
    /// message that stays as it is has the cache marks that the client sets on it now.
    ///
    /// ```
    /// use threadfold::Message;
    /// use threadfold_cli::relay::View;
    ///
    /// let view = View::new(2, vec![Message::user("A and b.")]);
    /// let thread = [Message::user("a"), Message::assistant("b"), Message::user("c")];
    /// assert_eq!(view.of(&thread).as_deref(), Some(&[Message::user("A and b."), Message::user("c")][..]));
    /// assert_eq!(view.of(&thread[..1]), None);
    /// ```
    #[must_use]
    pub fn of(&self, thread: &[Message]) -> Option<Vec<Message>> {
        let (covered, rest) = thread.split_at_checked(self.covers)?;
        let marked = covered.iter().filter_map(|message| Some((unmarked(message)?, message)));
        let mut marked: HashMap<Vec<u8>, &Message> =
            marked.map(|(bare, message)| (canonical(&bare), message)).collect();
        let mut messages = self.messages.clone();
        for message in messages.iter_mut().rev() {
            if marked.is_empty() {
                break;
            }
            if let Some(same) = marked.remove(&canonical(message)) {
                *message = same.clone();
            }
        }
        messages.extend_from_slice(rest);
        Some(messages)
    }
}

/// Whether a person typed anything into the thread after so many messages.
fn is_typed_after(thread: &[Message], messages: usize) -> bool {
    thread.iter().skip(messages).any(Message::is_typed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use threadfold::{
        message::{Role, TextBlock},
        wire::{DecodeOptions, Dialect},
    };

    /// A thread with an older text, a newer one, and one that makes the older ones removable.
    fn thread(older: &Message, newer: &Message) -> Vec<Message> {
        let last = Message::user("And now the tests.");
        vec![
            older.clone(),
            Message::assistant("Done."),
            newer.clone(),
            Message::assistant("Done as well."),
            last,
        ]
    }

    #[test]
    fn a_client_that_goes_back_finds_no_view_that_lacks_a_part_of_its_newest_text() {
        let begin = "You are in a project on branch main. ".repeat(10);
        let texts = |texts: [&str; 2]| {
            let blocks = texts.map(|text| ContentBlock::from(TextBlock::new(text)));
            Message::new(Role::User, blocks.into())
        };
        let rows = [
            (Message::user(format!("{begin}Alpha.")), Message::user(format!("{begin}Beta."))),
            (texts(["A file is open.", "Alpha."]), texts(["A file is open.", "Beta."])),
            (Message::user("Read the 12 files."), Message::user("2")),
        ];
        for (older, newer) in rows {
            let thread = thread(&older, &newer);
            let without = [older.clone(), thread[4].clone()];
            let view = View::between(&thread, &without);
            assert!(view.serves(&thread) && !view.serves(&thread[..4]), "{newer:?}");
            let with = [older.clone(), Message::assistant("Done."), newer.clone()];
            let with = [&with[..], &thread[4..]].concat();
            assert!(View::between(&thread, &with).serves(&thread[..4]), "{newer:?}");
        }
    }

    #[test]
    fn the_marks_of_a_view_are_those_that_the_client_sets_now() {
        let read = |ttl: Option<&str>| {
            let mark = ttl.map(|ttl| json!({"type": "ephemeral", "ttl": ttl}));
            let text = |text: &str| json!([{"type": "text", "text": text, "cache_control": mark}]);
            let messages = json!([
                {"role": "user", "content": text("Begin.")},
                {"role": "assistant", "content": text("A long story.")},
                {"role": "user", "content": "Go on."},
            ]);
            let body = json!({"messages": messages}).to_string();
            let read = Dialect::Anthropic.decode_slice(body.as_bytes(), &DecodeOptions::default());
            read.unwrap().messages
        };
        let (bare, hour) = (read(None), read(Some("1h")));
        let bare = super::super::chain::all_unmarked(&bare);
        let compacted = [bare[0].clone(), Message::assistant("Cut."), bare[2].clone()];
        let view = View::between(&bare, &compacted);
        assert_eq!(view.covers, 2);
        let sent = view.of(&hour).unwrap();
        assert_eq!(sent, [hour[0].clone(), Message::assistant("Cut."), hour[2].clone()]);
        assert_eq!(view.of(&bare).unwrap(), compacted);
    }
}
