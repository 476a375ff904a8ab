//! Looking at messages before work on them begins.
//!
//! The messages of a long thread lie far apart in memory. Work that takes one after the other waits
//! for each: for its parts, for its blocks, for what those point to. A look at many at once, in which
//! nothing depends on what was seen, lets the processor fetch them side by side; the work then finds
//! them near. It pays where much is done for each message. Where next to nothing is, as where lengths
//! are added, the processor looks ahead by itself, and a look costs some ten nanoseconds a message.

use std::{hint::black_box, slice};

use super::{content::ContentBlock, message::Message, parts::Role};

/// How many messages are looked at before work on them begins.
pub(crate) const BATCH: usize = 64;

/// Walks messages in their order, and looks at each batch of them before it hands them out.
pub(crate) fn ahead(messages: &[Message]) -> Ahead<'_> {
    Ahead { seen: [].iter(), rest: messages }
}

/// The messages of a slice. Made by [`ahead`].
#[derive(Clone, Debug)]
pub(crate) struct Ahead<'a> {
    seen: slice::Iter<'a, Message>,
    rest: &'a [Message],
}

impl<'a> Iterator for Ahead<'a> {
    type Item = &'a Message;

    fn next(&mut self) -> Option<&'a Message> {
        if self.seen.as_slice().is_empty() {
            let (batch, rest) = self.rest.split_at(self.rest.len().min(BATCH));
            look(batch);
            (self.seen, self.rest) = (batch.iter(), rest);
        }
        self.seen.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.seen.len() + self.rest.len();
        (left, Some(left))
    }
}

/// Looks at messages, at their blocks, and at the blocks of results, so that all of it is near. The
/// messages come first: how many blocks there are to look at is known by then, and nothing waits.
pub(crate) fn look(batch: &[Message]) {
    let blocks = || batch.iter().flat_map(|message| &message.content);
    let results = || batch.iter().flat_map(Message::tool_results);
    let kinds = |seen, block: &ContentBlock| seen ^ block.kind().len();
    // Who spoke and what it cost lie at the other end of a message.
    let ends = |message: &Message| message.role == Role::User && message.usage.is_some();
    black_box(batch.iter().filter(|message| ends(message)).count());
    black_box(batch.iter().fold(0, |seen, message| seen ^ message.content.len()));
    black_box(blocks().fold(0, kinds));
    black_box(results().flat_map(|result| &result.content).fold(0, kinds));
}

/// Adds handles of these messages. To make one is to count it where the message lies, which no
/// processor does for two at a time; so the counts are looked at before.
pub(crate) fn add_handles<'m>(
    handles: &mut Vec<Message>,
    mut messages: impl Iterator<Item = &'m Message> + Clone,
) {
    loop {
        let batch = messages.clone().take(BATCH);
        black_box(batch.clone().fold(0, |seen, message| seen ^ message.references()));
        handles.extend(batch.cloned());
        if messages.nth(BATCH - 1).is_none() {
            return;
        }
    }
}

/// Returns other handles of these messages, as [`add_handles`].
pub(crate) fn handles(messages: &[Message]) -> Vec<Message> {
    let mut handles = Vec::with_capacity(messages.len());
    add_handles(&mut handles, messages.iter());
    handles
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_messages_come_in_their_order() {
        for count in [0, 1, BATCH - 1, BATCH, BATCH + 1, 3 * BATCH + 7] {
            let text = |number: usize| Message::user(number.to_string());
            let messages: Vec<Message> = (0..count).map(text).collect();
            let mut walk = ahead(&messages);
            assert_eq!(walk.size_hint(), (count, Some(count)));
            assert!(walk.by_ref().eq(&messages));
            assert_eq!((walk.next(), walk.size_hint()), (None, (0, Some(0))));
            let same = handles(&messages);
            assert!(same.len() == count && same.iter().zip(&messages).all(|(a, b)| a.ptr_eq(b)));
        }
    }
}
