//! Looking at messages before work on them begins.
//!
//! The messages of a long thread lie far apart in memory. Work that takes one after the other waits
//! for each: for its parts, for its blocks, for what those point to. A look at many at once, in which
//! nothing depends on what was seen, lets the processor fetch them side by side; the work then finds
//! them near. What the handles know needs no look at all.

use std::{hint::black_box, slice};

use super::{content::ContentBlock, message::Message, sketch::Sketch};

/// How many messages are looked at before work on them begins.
const BATCH: usize = 64;

/// Walks messages in their order, and looks at those of each batch that will be worked on before it
/// hands them out.
pub(crate) fn ahead<W: Fn(Sketch) -> bool>(messages: &[Message], will_work: W) -> Ahead<'_, W> {
    Ahead { seen: [].iter(), rest: messages, will_work }
}

/// The messages of a slice. Made by [`ahead`].
#[derive(Clone, Debug)]
pub(crate) struct Ahead<'a, W> {
    seen: slice::Iter<'a, Message>,
    rest: &'a [Message],
    will_work: W,
}

impl<'a, W: Fn(Sketch) -> bool> Iterator for Ahead<'a, W> {
    type Item = &'a Message;

    fn next(&mut self) -> Option<&'a Message> {
        if self.seen.as_slice().is_empty() {
            let (batch, rest) = self.rest.split_at(self.rest.len().min(BATCH));
            look(batch, &self.will_work);
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
fn look(batch: &[Message], will_work: impl Fn(Sketch) -> bool) {
    let messages = || batch.iter().filter(|message| will_work(message.sketch()));
    let blocks = || messages().flat_map(|message| &message.content);
    let results = || messages().flat_map(Message::tool_results);
    let kinds = |seen, block: &ContentBlock| seen ^ block.kind().len();
    black_box(messages().fold(0, |seen, message| seen ^ message.content.len()));
    black_box(blocks().fold(0, kinds));
    black_box(results().flat_map(|result| &result.content).fold(0, kinds));
}

/// Adds handles of these messages, each made into what holds it. To make a handle is to count it
/// where the message lies, which no processor does for two at a time; so the counts are looked at
/// before.
pub(crate) fn add_handles<'m, T>(
    handles: &mut Vec<T>,
    mut messages: impl Iterator<Item = &'m Message> + Clone,
    make: impl Fn(Message) -> T,
) {
    loop {
        let batch = messages.clone().take(BATCH);
        black_box(batch.clone().fold(0, |seen, message| seen ^ message.references()));
        handles.extend(batch.cloned().map(&make));
        if messages.nth(BATCH - 1).is_none() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_messages_come_in_their_order() {
        for count in [0, 1, BATCH - 1, BATCH, BATCH + 1, 3 * BATCH + 7] {
            let text = |number: usize| Message::user(number.to_string());
            let messages: Vec<Message> = (0..count).map(text).collect();
            let mut walk = ahead(&messages, |_| true);
            assert_eq!(walk.size_hint(), (count, Some(count)));
            assert!(walk.by_ref().eq(&messages));
            assert_eq!((walk.next(), walk.size_hint()), (None, (0, Some(0))));
            let mut same = Vec::new();
            add_handles(&mut same, messages.iter(), |message| message);
            assert!(same.len() == count && same.iter().zip(&messages).all(|(a, b)| a.ptr_eq(b)));
        }
    }
}
