//! How much of the end of a thread stays as it is, and what of the rest is kept word for word.

use std::ops::Range;

use super::{brief::Brief, contract::StrategyError, snapshot::Snapshot};
use crate::{
    compact::{Edit, Position, legality},
    message::{ContentBlock, Message},
};

/// Returns the cut before the tail that stays: at least `messages` long, unless it would have more
/// than `tokens`, then as many messages as these hold.
///
/// # Errors
///
/// [`StrategyError::NothingToCompact`] if the tail is the whole thread.
pub(super) fn cut(
    snapshot: &Snapshot,
    messages: usize,
    tokens: Option<u64>,
) -> Result<usize, StrategyError> {
    let snapshot = &snapshot.without_reasoning();
    let thread = snapshot.messages();
    let points = legality::cut_points(thread);
    let wanted = thread.len().saturating_sub(messages);
    let by_length = points.iter().copied().take_while(|point| *point <= wanted).last();
    let by_size = tokens.map(|tokens| first_within(snapshot, tokens)).unwrap_or_default();
    // Where an open call stands behind every cut, the last cut leaves the least.
    let by_size = points.iter().copied().find(|point| *point >= by_size);
    let by_size = if tokens.is_some() { by_size.or(points.last().copied()) } else { by_size };
    let cut = by_length.unwrap_or_default().max(by_size.unwrap_or_default());
    if cut > 0 {
        return Ok(cut);
    }
    let count = thread.len();
    let reason = format!("the last {messages} messages stay, and {count} are all that can be cut");
    Err(StrategyError::NothingToCompact { reason: reason.into() })
}

/// Returns the first message from which on the thread has at most this many tokens.
fn first_within(snapshot: &Snapshot, tokens: u64) -> usize {
    let mut left = tokens;
    let thread = snapshot.messages();
    let fits = |message: &&Message| {
        let rest = left.checked_sub(snapshot.counter().message(message));
        left = rest.unwrap_or_default();
        rest.is_some()
    };
    thread.len() - thread.iter().rev().take_while(fits).count()
}

/// Returns what the user typed in these messages and should stay word for word, as ranges of
/// blocks in order: the last `count` messages, as far as they have at most `tokens` together. The
/// last one of the whole thread is among them whatever its size. The checkpoint at the end of such a
/// message stays with it.
pub(super) fn typed(
    snapshot: &Snapshot,
    before: usize,
    count: usize,
    tokens: u64,
) -> Vec<Range<Position>> {
    let mut left = tokens;
    let in_tail = snapshot.messages().iter().skip(before).any(|message| message.is_typed());
    let count = count.max(usize::from(!in_tail));
    let head = snapshot.messages().iter().enumerate().take(before);
    let typed = head.rev().filter(|(_, message)| message.is_typed()).take(count);
    let chosen = typed.enumerate().take_while(|(rank, (_, message))| {
        let blocks = message.typed_blocks().filter_map(|block| message.content.get(block));
        let size: u64 = blocks.map(|block| snapshot.counter().block(block)).sum();
        let fits = size <= left;
        left = left.saturating_sub(size);
        fits || (*rank == 0 && !in_tail)
    });
    let mut kept: Vec<(usize, &Message)> = chosen.map(|(_, message)| message).collect();
    kept.reverse();
    let range = |message: usize, block: usize| {
        Position { message, block }..Position { message, block: block + 1 }
    };
    let stays = |(index, message): (usize, &Message)| {
        let last = message.content.len().saturating_sub(1);
        let is_stamped = matches!(message.content.last(), Some(ContentBlock::Checkpoint(_)));
        let blocks = message.typed_blocks().chain(is_stamped.then_some(last));
        blocks.map(|block| range(index, block)).collect::<Vec<_>>()
    };
    kept.into_iter().flat_map(stays).collect()
}

/// Refuses an edit that takes less than what comes in its place is likely to cost. Where the thread
/// is within its target, an earlier summary alone is not worth another one: what was summed up once
/// is summed up again only with something new beside it, or out of need.
///
/// # Errors
///
/// [`StrategyError::NothingToCompact`], with the tokens that would go.
pub(super) fn check_worth(
    snapshot: &Snapshot,
    brief: &Brief,
    cut: usize,
    kept: &[Range<Position>],
    least: u64,
) -> Result<(), StrategyError> {
    let counter = snapshot.counter();
    let thread = snapshot.messages();
    let needed = brief.target.is_some_and(|target| counter.messages(thread) > target);
    let stays = |message: usize, block: usize| {
        kept.binary_search_by_key(&(message, block), |range| {
            (range.start.message, range.start.block)
        })
        .is_ok()
    };
    let tokens = |(index, message): (usize, &Message)| {
        let blocks = message.content.iter().enumerate();
        let stay = blocks.clone().any(|(block, _)| stays(index, block));
        if !stay {
            return if needed || !message.is_summary() { counter.message(message) } else { 0 };
        }
        // What stands beside a text that stays is no reason to go.
        let marks = |block: &ContentBlock| {
            matches!(block, ContentBlock::Checkpoint(_) | ContentBlock::SystemReminder(_))
        };
        let gone = blocks.filter(|(at, block)| !stays(index, *at) && !marks(block));
        gone.map(|(_, block)| counter.block(block)).fold(0, u64::saturating_add)
    };
    let goes = thread.iter().enumerate().take(cut).map(tokens).fold(0, u64::saturating_add);
    if goes > least {
        return Ok(());
    }
    let reason = format!("about {goes} tokens could go, too few to be worth it");
    Err(StrategyError::NothingToCompact { reason: reason.into() })
}

/// Returns the edits that take everything before the cut but these ranges, and put the messages in
/// at the cut.
pub(super) fn take_all_but(
    kept: Vec<Range<Position>>,
    cut: usize,
    insert: Vec<Message>,
) -> Vec<Edit> {
    let mut edits = Vec::with_capacity(kept.len() + 1);
    let mut from = Position::before(0);
    for range in kept {
        if from < range.start {
            edits.push(Edit { range: from..range.start, insert: Vec::new() });
        }
        from = range.end;
    }
    edits.push(Edit { range: from..Position::before(cut), insert });
    edits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        log,
        message::{CheckpointIds, SystemReminder},
        strategy::{CompactionStrategy, KeepRecent, Step},
    };

    #[test]
    fn a_message_that_is_kept_keeps_its_checkpoint() {
        let mut asked = Message::user("Where is the parser?");
        asked.change(|parts| parts.content.push(SystemReminder::new("Be brief.").into()));
        let answers = (0..4).map(|number| Message::assistant(format!("I look for it: {number}")));
        let thread: Vec<Message> = std::iter::once(asked).chain(answers).collect();
        let thread = log::stamp(thread, &mut CheckpointIds::new(1));
        let snapshot = Snapshot::new(thread.clone());
        let strategy = KeepRecent { messages: 1, ..KeepRecent::default() };
        let attempt = strategy.begin(&snapshot, &Brief::default());
        let Step::Proposed(proposal) = attempt.step() else { panic!("{attempt:?}") };
        let after = proposal.plan.after(&thread).unwrap();
        let [text, _, checkpoint] = thread[0].content.as_slice() else { panic!("{thread:?}") };
        assert_eq!(after[0].content, [text.clone(), checkpoint.clone()]);
        assert_eq!(after.len(), 2);
    }
}
