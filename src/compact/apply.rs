//! Carrying a plan out.
//!
//! Nothing but handles moves, and what costs is memory that nobody had yet. So there are three ways.
//! Messages that are exchanged one for one are exchanged in place. Where most messages go, those that
//! stay move to a new vector, and the old one is handed back as what went. Else those behind the
//! first change move up.

use std::mem;

use super::{
    blocks::Blocks,
    insert::Insert,
    plan::{Plan, Splice, StalePlan},
};
use crate::message::Message;

/// What applying a plan took out of the thread, for whoever wants to keep it or drop it later.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Removed {
    /// The messages, in order; those of which a part stays are among them, whole.
    pub messages: Vec<Message>,
}

impl Plan {
    /// Carries the plan out and hands back what went. No text is copied, and no message before the
    /// first splice is looked at; where most of the thread goes, its handle moves to another vector.
    ///
    /// ```
    /// use threadfold::{Message, Plan, Replacement, compact::CompactOptions};
    ///
    /// let mut thread = vec![Message::user("hi"), Message::assistant("hello")];
    /// let plan = Plan::new(&thread, &[Replacement::new("We said hello.")], &CompactOptions::default())?;
    /// let removed = plan.apply(&mut thread)?;
    /// assert_eq!((thread.len(), removed.messages.len()), (1, 2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`StalePlan`] if the plan does not fit these messages; they are untouched then.
    pub fn apply(&self, messages: &mut Vec<Message>) -> Result<Removed, StalePlan> {
        self.check(messages)?;
        let splices = self.splices();
        let gone: usize = splices.iter().map(|splice| splice.at.len()).sum();
        let one_for_one = |splice: &Splice| splice.at.len() == 1 && splice.insert.len() == 1;
        let messages = if splices.iter().all(one_for_one) {
            exchange(splices, messages)
        } else if gone > messages.len() / 2 {
            let left = self.messages_after();
            // A thread goes on: the first message that comes would move all others again.
            move_out(splices, Vec::with_capacity(left + left / 8 + 4), messages)
        } else {
            move_up(splices, gone, messages)
        };
        Ok(Removed { messages })
    }
}

/// Exchanges messages one for one and returns those that went.
fn exchange(splices: &[Splice], messages: &mut [Message]) -> Vec<Message> {
    let mut removed = Vec::with_capacity(splices.len());
    for splice in splices {
        let made = splice.build(|index| messages.get(index)).next();
        if let (Some(made), Some(place)) = (made, messages.get_mut(splice.at.start)) {
            removed.push(mem::replace(place, made));
        }
    }
    removed
}

/// Moves what stays and what comes to another vector, and returns the old one with those that went.
fn move_out(
    splices: &[Splice],
    mut after: Vec<Message>,
    messages: &mut Vec<Message>,
) -> Vec<Message> {
    let mut made = all_made(splices, messages).into_iter();
    let (mut at, mut ranges) = (0, splices.iter().map(|splice| splice.at.clone()).peekable());
    let mut stays = messages.extract_if(.., |_| {
        while ranges.next_if(|range| range.end <= at).is_some() {}
        at += 1;
        ranges.peek().is_none_or(|range| at <= range.start)
    });
    let mut next = 0;
    for splice in splices {
        after.extend(stays.by_ref().take(splice.at.start.saturating_sub(next)));
        after.extend(made.by_ref().take(splice.insert.len()));
        next = splice.at.end;
    }
    after.extend(stays);
    mem::replace(messages, after)
}

/// Moves what stays up to what comes, and returns those that went, of which there are so many.
fn move_up(splices: &[Splice], gone: usize, messages: &mut Vec<Message>) -> Vec<Message> {
    let mut made = all_made(splices, messages).into_iter();
    let mut removed = Vec::with_capacity(gone);
    let mut next = splices.first().map_or(messages.len(), |splice| splice.at.start);
    let mut tail = messages.split_off(next).into_iter();
    for splice in splices {
        messages.extend(tail.by_ref().take(splice.at.start.saturating_sub(next)));
        messages.extend(made.by_ref().take(splice.insert.len()));
        removed.extend(tail.by_ref().take(splice.at.len()));
        next = splice.at.end;
    }
    messages.extend(tail);
    removed
}

/// The messages that come in all splices.
fn all_made(splices: &[Splice], messages: &[Message]) -> Vec<Message> {
    let mut made = Vec::with_capacity(splices.iter().map(|splice| splice.insert.len()).sum());
    made.extend(splices.iter().flat_map(|splice| splice.build(|index| messages.get(index))));
    made
}

impl Splice {
    /// Builds the messages that come in the place of those that go.
    pub(crate) fn build<'a>(
        &self,
        message_at: impl Fn(usize) -> Option<&'a Message>,
    ) -> impl Iterator<Item = Message> {
        self.insert.iter().enumerate().filter_map(move |(place, insert)| match insert {
            Insert::Message { message } => Some(message.clone()),
            Insert::Part { message, blocks } => {
                let later = self.insert.iter().skip(place + 1).find_map(Insert::part_of);
                Some(part(message_at(*message)?, blocks, later != Some(*message)))
            }
        })
    }
}

impl Insert {
    /// The message of which it is a part.
    fn part_of(&self) -> Option<usize> {
        match self {
            Self::Message { .. } => None,
            Self::Part { message, .. } => Some(*message),
        }
    }
}

/// Some blocks of a message, with everything else that it has. Reasoning that stays was signed for
/// what stood before it once, so the part is marked. What the answer cost and why it ended stand
/// on the last part only, so that they count once. Where nothing is left out it shares the parts of
/// the message: the blocks of a big one would be copied for every plan that keeps it.
pub(super) fn part(source: &Message, blocks: &Blocks, is_last: bool) -> Message {
    // Ascending and within range, so as many are all.
    let is_whole = blocks.len() == source.content.len();
    let mut part =
        if is_whole { source.clone() } else { source.with_content(blocks.of(&source.content)) };
    part.prefix_rewritten |= part.sketch().has_reasoning();
    if !is_last && (part.stop_reason.is_some() || part.usage.is_some()) {
        part.change(|parts| (parts.stop_reason, parts.usage) = (None, None));
    }
    part
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;
    use crate::message::{ContentBlock, Thinking, Usage};

    /// What a plan does, said plainly.
    fn expected(plan: &Plan, thread: &[Message]) -> (Vec<Message>, Vec<Message>) {
        let (mut after, mut removed, mut next) = (Vec::new(), Vec::new(), 0);
        for splice in plan.splices() {
            after.extend_from_slice(&thread[next..splice.at.start]);
            after.extend(splice.build(|index| thread.get(index)));
            removed.extend_from_slice(&thread[splice.at.clone()]);
            next = splice.at.end;
        }
        after.extend_from_slice(&thread[next..]);
        (after, removed)
    }

    #[test]
    fn however_much_goes_and_comes_the_thread_is_what_the_plan_says() {
        let thread: Vec<Message> = (0..8).map(|number| Message::user(number.to_string())).collect();
        let insert = |text: usize| Insert::Message { message: Message::user(text.to_string()) };
        let splice = |at: Range<usize>, come: usize| {
            let insert = (100 * at.start..).take(come).map(insert).collect();
            Splice { at, insert }
        };
        let mut ways = [0; 3];
        // Two splices of any extent at any place, each with up to three messages.
        let starts = (0..=8).flat_map(|start| (start..=8).map(move |end| start..end));
        for first in starts.clone() {
            for second in starts.clone().filter(|range| range.start >= first.end) {
                for come in 0..9 {
                    let splices =
                        vec![splice(first.clone(), come / 3), splice(second.clone(), come % 3)];
                    let (plan, mut after) = (Plan::from_splices(8, splices), thread.clone());
                    let removed = plan.apply(&mut after).unwrap().messages;
                    let (left, went) = expected(&plan, &thread);
                    assert_eq!((&after, &removed), (&left, &went), "{plan:?}");
                    let extents = [first.len(), come / 3, second.len(), come % 3];
                    ways[if extents == [1; 4] { 0 } else { 1 + usize::from(removed.len() > 4) }] +=
                        1;
                }
            }
        }
        assert!(ways.iter().all(|plans| *plans > 20), "{ways:?}");
    }

    #[test]
    fn where_most_goes_the_vector_of_the_thread_is_handed_back() {
        let mut thread: Vec<Message> = (0..8).map(|_| Message::user("hi")).collect();
        let vector = thread.as_ptr();
        let splice =
            Splice { at: 1..7, insert: Insert::Message { message: Message::user("ho") }.into() };
        let removed = Plan::from_splices(8, vec![splice]).apply(&mut thread).unwrap();
        assert_eq!((removed.messages.len(), removed.messages.as_ptr()), (6, vector));
        assert_eq!(thread.len(), 3);
    }

    #[test]
    fn what_an_answer_cost_counts_once_when_it_is_divided() {
        let mut answer = Message::assistant("one");
        answer.make_mut().usage = Some(Usage::new(100, 10));
        answer.make_mut().content.extend(["two", "three"].map(ContentBlock::text));
        let between = || Insert::Message { message: Message::user("go on") };
        for before in [0, 1] {
            let part = |block| Insert::Part { message: before, blocks: [block].into() };
            let mut thread = vec![Message::user("begin"); before];
            thread.push(answer.clone());
            let insert = vec![part(0), between(), part(1), part(2), between()].into();
            let splice = Splice { at: 0..before + 1, insert };
            Plan::from_splices(before + 1, vec![splice]).apply(&mut thread).unwrap();
            let costs: Vec<_> = thread.iter().map(|message| message.usage).collect();
            assert_eq!(costs, [None, None, None, Some(Usage::new(100, 10)), None]);
        }
    }

    #[test]
    fn all_of_a_message_is_the_message_itself_unless_it_is_to_be_marked() {
        let thought = || Thinking::new("hm", None).into();
        for (reasons, marked, same) in
            [(false, false, true), (false, true, true), (true, true, true), (true, false, false)]
        {
            let mut message = Message::assistant("Well.");
            message.prefix_rewritten = marked;
            let parts = message.make_mut();
            parts.usage = Some(Usage::new(100, 10));
            parts.content.extend(reasons.then(thought));
            let blocks: Blocks = (0..).take(message.content.len()).collect();
            let whole = part(&message, &blocks, true);
            assert_eq!((whole.ptr_eq(&message), whole == message), (same, same), "{message:?}");
            assert_eq!(whole.prefix_rewritten, marked || reasons);
            assert!(!part(&message, &blocks, false).ptr_eq(&message));
        }
    }
}
