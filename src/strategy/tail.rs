//! What of a thread stays as it is: how much of its end, and what of the rest word for word.
//!
//! A strategy wishes for a tail of some length. Where the target of the brief leaves no room for
//! that, the tail yields: [`stays`] lists what may stay, from what is wished for down to the least,
//! and a strategy takes the first with which its plan is small enough.

use std::ops::Range;

use super::{brief::Brief, contract::StrategyError, snapshot::Snapshot};
use crate::{
    compact::{CompactOptions, Edit, Plan, Position, TrimOptions, legality, trim, trim_after},
    message::{CompactionReason, ContentBlock, Message},
};

/// What stays of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stay {
    /// From this message on everything does.
    pub(super) cut: usize,
    /// What the user typed before it and stays word for word.
    pub(super) typed: Vec<Range<Position>>,
    /// How the tool results after the cut are trimmed.
    pub(super) trim: Option<TrimOptions>,
}

/// What should stay, where there is room for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wish {
    /// How many messages at the end.
    pub(super) messages: usize,
    /// The most tokens that these may have.
    pub(super) tokens: Option<u64>,
    /// How many messages of the user before these, and how many tokens of them.
    pub(super) user: (usize, u64),
    /// How many tokens of the target the tail has to leave for everything else.
    pub(super) comes: u64,
    /// Whether fewer messages stay where a person asked for a compaction and all would stay else.
    pub(super) yields_when_asked: bool,
}

/// Returns what may stay, from what is wished for down to the least, never nothing at all.
///
/// Where the thread is over its target that is: the tail that the target has room for, but for the
/// last turn, which says more trimmed than summed up; then less of what the user typed; then tool
/// results trimmed harder and harder; then only what no cut can take, trimmed; and where the next
/// prompt follows, that without what the user typed before it.
///
/// # Errors
///
/// [`StrategyError::NothingToCompact`] if nothing has to go and the tail is the whole thread.
pub(super) fn stays(
    snapshot: &Snapshot,
    brief: &Brief,
    wish: Wish,
) -> Result<Vec<Stay>, StrategyError> {
    let bare = &snapshot.without_reasoning();
    let Some(target) = over(snapshot, brief) else {
        return within_target(snapshot, bare, brief, wish);
    };
    let room = target - wish.comes.min(target - target / 4);
    let tokens = wish.tokens.map_or(room, |tokens| tokens.min(room));
    let shortest = cut(bare, wish.messages, Some(tokens));
    let end = legality::cut_points(bare.messages()).last().copied().unwrap_or_default();
    let first = shortest.min(bare.cut_at_or_before(snapshot.messages().len().saturating_sub(1)));
    let (count, user) = wish.user;
    let stay = |cut, count, tokens, trim| {
        let typed = typed(snapshot, cut, count, tokens);
        Stay { cut, typed, trim }
    };
    let hardest = STEPS.last().copied();
    let mut all = vec![stay(first, count, user.min(target / 4), None), stay(first, 1, 0, None)];
    all.extend(STEPS.iter().map(|step| stay(first, 1, 0, Some(*step))));
    for cut in [shortest, end] {
        all.extend([None, hardest].map(|trim| stay(cut, 1, 0, trim)));
    }
    if brief.next_prompt.is_some() {
        // What was typed before it may be longer than all that fits.
        all.extend([None, hardest].map(|trim| Stay { cut: end, typed: Vec::new(), trim }));
    }
    all.dedup();
    Ok(all)
}

/// The target of the brief, if the thread is over it.
pub(super) fn over(snapshot: &Snapshot, brief: &Brief) -> Option<u64> {
    brief.target.filter(|target| snapshot.counter().messages(snapshot.messages()) > *target)
}

/// What may stay where nothing has to go.
fn within_target(
    snapshot: &Snapshot,
    bare: &Snapshot,
    brief: &Brief,
    wish: Wish,
) -> Result<Vec<Stay>, StrategyError> {
    // What was compacted once is not taken apart further on the same request made twice.
    let is_fresh = !snapshot.messages().iter().any(Message::is_summary);
    let asked = match brief.reason {
        CompactionReason::Manual { .. } => wish.yields_when_asked && is_fresh,
        CompactionReason::Threshold
        | CompactionReason::Overflow
        | CompactionReason::AgentTool
        | CompactionReason::ModelSwitch
        | CompactionReason::Background => false,
    };
    let shorter = |length: &usize| (asked && *length > 0).then_some(*length / 2);
    let lengths = std::iter::successors(Some(wish.messages), shorter);
    let (count, user) = wish.user;
    // In the middle of its work the agent has not seen yet what the last message says.
    let most =
        snapshot.messages().len() - usize::from(legality::open_loop(snapshot.messages()).is_some());
    let most = most.max(cut(bare, wish.messages, wish.tokens));
    let cuts = lengths.map(|length| cut(bare, length, wish.tokens));
    let cuts = cuts.filter(|cut| *cut > 0 && *cut <= most);
    let stay = |cut| Stay { cut, typed: typed(snapshot, cut, count, user), trim: None };
    let mut all: Vec<Stay> = cuts.map(stay).collect();
    all.dedup();
    if all.is_empty() {
        let (messages, count) = (wish.messages, snapshot.messages().len());
        return nothing(format!(
            "the last {messages} messages stay, and {count} are all that can be cut"
        ));
    }
    Ok(all)
}

/// How tool results are trimmed where there is no room for them, harder and harder.
const STEPS: [TrimOptions; 4] = [
    step(40, 4_000, true),
    step(12, 1_000, true),
    step(3, 300, true),
    // At last those of calls that failed too.
    step(1, 100, false),
];

const fn step(lines: usize, bytes: usize, keep_errors: bool) -> TrimOptions {
    TrimOptions { lines, bytes: Some(bytes), keep_recent: 0, min_bytes: 0, keep_errors }
}

/// Returns the first plan that meets the target of the brief, else the smallest.
///
/// # Errors
///
/// As `build`, and [`StrategyError::NothingToCompact`] if there is nothing to build.
pub(super) fn first_within_target<'s>(
    snapshot: &Snapshot,
    brief: &Brief,
    stays: impl IntoIterator<Item = &'s Stay>,
    build: impl Fn(&Stay) -> Result<Plan, StrategyError>,
) -> Result<Plan, StrategyError> {
    let target = brief.target.unwrap_or(u64::MAX);
    let mut least: Option<(u64, Plan)> = None;
    for stay in stays {
        let plan = build(stay)?;
        let tokens = snapshot.tokens_after(&plan)?;
        if tokens <= target {
            return Ok(plan);
        }
        if least.as_ref().is_none_or(|(least, _)| tokens < *least) {
            least = Some((tokens, plan));
        }
    }
    match least {
        Some((_, plan)) => Ok(plan),
        None => nothing("all of it stays".to_owned()),
    }
}

/// Returns a plan with the tool results that it leaves trimmed until the target is met, or as far as
/// they can be.
///
/// # Errors
///
/// [`StrategyError::Rejected`] if it was made for another thread.
pub(super) fn fitted(
    snapshot: &Snapshot,
    brief: &Brief,
    plan: Plan,
) -> Result<Plan, StrategyError> {
    let target = brief.target.unwrap_or(u64::MAX);
    let mut fitted = plan;
    for step in &STEPS {
        if snapshot.tokens_after(&fitted)? <= target {
            break;
        }
        fitted = trim_after(&fitted, snapshot.messages(), step, None).plan;
    }
    Ok(fitted)
}

/// The messages with their tool results trimmed, harder and harder.
pub(super) fn trimmed(messages: &[Message]) -> impl Iterator<Item = Vec<Message>> {
    STEPS.iter().map(|step| trim(messages, step).plan.made_of(messages))
}

/// Returns the cut before the tail that stays: at least `messages` long, unless it would have more
/// than `tokens`, then as many messages as these hold. Zero if the tail is the whole thread.
fn cut(bare: &Snapshot, messages: usize, tokens: Option<u64>) -> usize {
    let thread = bare.messages();
    let points = legality::cut_points(thread);
    let wanted = thread.len().saturating_sub(messages);
    let by_length = points.iter().copied().take_while(|point| *point <= wanted).last();
    // Where an open call stands after every cut, the last cut leaves the least.
    let by_size = tokens.map(|tokens| first_within(bare, tokens)).and_then(|first| {
        points.iter().copied().find(|point| *point >= first).or(points.last().copied())
    });
    by_length.unwrap_or_default().max(by_size.unwrap_or_default())
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
    let needed = over(snapshot, brief).is_some();
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
    nothing(format!("about {goes} tokens could go, too few to be worth it"))
}

impl Stay {
    /// Returns the plan that takes everything else, and puts these messages in at the cut.
    pub(super) fn plan(
        &self,
        snapshot: &Snapshot,
        brief: &Brief,
        insert: Vec<Message>,
    ) -> Result<Plan, StrategyError> {
        let messages = snapshot.messages();
        let edits = take_all_but(self.typed.clone(), self.cut, insert);
        let plan = Plan::from_edits(messages, edits, &CompactOptions::default())?;
        let trimmed = self.trim.map(|step| trim_after(&plan, messages, &step, None).plan);
        Ok(snapshot.stamped(trimmed.unwrap_or(plan), brief))
    }
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

fn nothing<T>(reason: String) -> Result<T, StrategyError> {
    Err(StrategyError::NothingToCompact { reason: reason.into() })
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
        asked.make_mut().content.push(SystemReminder::new("Be brief.").into());
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
