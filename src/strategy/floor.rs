//! The floor of a compaction: what no plan may change.
//!
//! The model has not read the messages after its last answer: tool results, reminders, and what the
//! user typed since. They are the *unread* part of a thread, and every plan leaves them as they are.
//! The only exception is a thread whose unread part does not fit, together with the calls that it
//! answers and the user's newest text. Then the longest unread results are cut to their head and
//! tail, with as much text as fits, and each cut says how to read the rest. The cut is made here and
//! by no strategy: strategies see a thread that is already cut, and [`Snapshot::settle`] adds the
//! cut to their plans.

use std::sync::Arc;

use super::{
    attempt::{Ended, propose},
    brief::Brief,
    clip::border_before,
    contract::{Attempt, CompactionStrategy, Proposal, Result, StrategyError},
    panic_guard::{Decide, Guarded, Outer, State},
    rejection::Rejection,
    snapshot::Snapshot,
    tail::{HARDEST, nothing},
};
use crate::{
    compact::{Plan, legality, trim_after},
    log::Rung,
    message::{CompactionReason, ContentBlock, Message, Role, Text, TextBlock, ToolResult},
    tokens::TokenCounter,
};

/// A shorter text than this is cut with a short note.
const NOTED_TOKENS: u64 = 160;

/// The share of what fits that a cut leaves free for a summary: an eighth.
const FREE_SHARE: u64 = 8;

impl Snapshot {
    /// The messages that the model has read.
    #[must_use]
    pub fn past(&self) -> &[Message] {
        self.split_at(self.unread_from()).0
    }

    /// The messages that the model has not read yet, at the end of the thread: tool results,
    /// reminders, and what the user typed since its last answer. No plan may change them, unless
    /// they alone do not fit.
    ///
    /// ```
    /// use threadfold::{Message, Plan, compact::Splice, strategy::{Brief, Rejection, Snapshot}};
    ///
    /// let thread = ["hi", "Read it."].map(Message::user);
    /// let thread = [&thread[..1], &[Message::assistant("hello")], &thread[1..]].concat();
    /// let thread = Snapshot::new(thread);
    /// assert_eq!((thread.past().len(), thread.unread().len()), (2, 1));
    ///
    /// let next_prompt = Some(Message::user("Well?"));
    /// let brief = Brief { next_prompt, ..Brief::default() };
    /// let plan = Plan::from_splices(3, vec![Splice { at: 2..3, insert: Vec::new() }]);
    /// assert_eq!(thread.accept(&plan, &brief), Err(Rejection::TouchesUnread { message: 2 }));
    /// ```
    #[must_use]
    pub fn unread(&self) -> &[Message] {
        self.split_at(self.unread_from()).1
    }

    /// The tokens that the messages may have at most: the limit of the brief, else the window less
    /// system prompt, tools and next prompt. `None` if neither is known.
    pub(super) fn fits(&self, brief: &Brief) -> Option<u64> {
        if brief.limit.is_some() {
            return brief.limit;
        }
        let counter = self.counter();
        let next = brief.next_prompt.as_ref().map_or(0, |next| counter.message(next));
        let around = counter.tools(self.tools()).saturating_add(counter.messages(self.system()));
        let around = around.saturating_add(next);
        Some(self.window()?.tokens().saturating_sub(around))
    }

    /// The tokens of what stays beside the unread part in every plan: the calls that it answers, and
    /// the user's newest text.
    fn beside_unread(&self) -> u64 {
        let (counter, from) = (self.counter(), self.unread_from());
        let points = legality::cut_points(self.without_reasoning().messages());
        let cut = points.into_iter().take_while(|point| *point <= from).last().unwrap_or(0);
        let stays = self.messages().iter().take(from).skip(cut);
        let stays = stays.map(|message| counter.message(&shortest(message)));
        let last = self.messages().iter().rposition(Message::is_typed).filter(|last| *last < cut);
        let last = last.and_then(|last| self.messages().get(last));
        let typed = last.map_or(0, |message| counter.message(message));
        stays.fold(typed, u64::saturating_add)
    }

    /// Returns how many tokens the unread part may have, if it has more.
    fn unread_room(&self, brief: &Brief) -> Option<u64> {
        let is_refused = brief.reason == CompactionReason::Overflow;
        let fits = self.fits(brief);
        if !is_refused && fits.is_none_or(|fits| self.size() <= fits) {
            return None;
        }
        let unread = self.counter().messages(self.unread());
        let beside = self.beside_unread();
        let floor = unread.saturating_add(beside);
        // A provider that refused this thread counts more than the counter does, or has a smaller
        // window. If removing all of the past would hardly help, half of the thread is tried.
        let is_all = is_refused && floor > self.size() / 4 * 3;
        let half = is_all.then_some(self.size() / 2);
        let fits = [fits, half].into_iter().flatten().min()?;
        if floor <= fits {
            return None;
        }
        Some(fits.saturating_sub(fits / FREE_SHARE).saturating_sub(beside))
    }

    /// Returns the unread messages that must be shortened, with their indexes; empty if the unread
    /// part fits.
    fn cuts(&self, brief: &Brief) -> Vec<(usize, Message)> {
        let Some(room) = self.unread_room(brief) else { return Vec::new() };
        let from = self.unread_from();
        let recall = |index: usize| self.recall_number(from + index);
        let cut = cut_to(self.unread(), room, self.counter(), &recall);
        cut.into_iter().map(|(index, message)| (from + index, message)).collect()
    }

    /// Returns the thread as strategies see it: with its unread results cut, if they do not fit.
    pub(super) fn with_unread_cut(&self, brief: &Brief) -> Self {
        let cuts = self.cuts(brief);
        if cuts.is_empty() {
            return self.clone();
        }
        let mut messages = self.messages().to_vec();
        for (index, message) in cuts {
            if let Some(place) = messages.get_mut(index) {
                *place = message;
            }
        }
        self.with_messages(Arc::new(messages))
    }

    /// Returns the plan with the cut of unread results that do not fit. A plan that changes the
    /// unread part already stays as it is.
    pub(super) fn completed(&self, plan: Plan, brief: &Brief) -> Plan {
        let from = self.unread_from();
        let touches = plan.splices().iter().any(|splice| splice.at.end > from);
        if touches || plan.check(self.messages()).is_err() {
            return plan;
        }
        let cuts = self.cuts(brief);
        if cuts.is_empty() { plan } else { plan.with_replaced(cuts) }
    }

    /// Checks that a plan leaves the unread part as it is, unless that does not fit. `after` is the
    /// thread after the plan.
    pub(super) fn check_unread(&self, after: &[Message], brief: &Brief) -> Result<(), Rejection> {
        let unread = self.unread();
        let end = after.len().saturating_sub(unread.len());
        let left = after.get(end..).unwrap_or_default();
        let same = unread.iter().zip(left).take_while(|(one, other)| is_same(one, other)).count();
        if same == unread.len() || self.unread_room(brief).is_some() {
            return Ok(());
        }
        Err(Rejection::TouchesUnread { message: self.unread_from() + same })
    }
}

/// Begins an attempt of a strategy. If the user requests a target that the thread already meets,
/// the attempt ends at once. If the unread part of the thread does not fit, the strategy sees it cut.
pub(crate) fn begin(
    strategy: &dyn CompactionStrategy,
    thread: &Snapshot,
    brief: &Brief,
) -> Box<dyn Attempt> {
    match brief.target.filter(|_| brief.reason.is_manual() && thread.has_room(brief)) {
        Some(target) => {
            let found = thread.size();
            let reason = format!("about {found} tokens are within the target of {target}");
            propose(nothing(reason))
        }
        None => begin_anyway(strategy, thread, brief),
    }
}

/// Same as [`begin`], for a thread that may meet its target already.
pub(crate) fn begin_anyway(
    strategy: &dyn CompactionStrategy,
    thread: &Snapshot,
    brief: &Brief,
) -> Box<dyn Attempt> {
    let seen = thread.with_unread_cut(brief);
    if Arc::ptr_eq(seen.messages(), thread.messages()) {
        return strategy.begin(thread, brief);
    }
    let first = State::Running(Guarded::begin(strategy, &seen, brief));
    let cut = UnreadCut { thread: thread.clone(), brief: brief.clone() };
    Box::new(Outer::new(cut, first))
}

/// Completes the proposals of a strategy that saw a thread with its unread part cut. If the strategy
/// proposes nothing, the cut itself is the proposal.
#[derive(Debug)]
pub(super) struct UnreadCut {
    /// The thread without the cut.
    pub(super) thread: Snapshot,
    pub(super) brief: Brief,
}

impl Decide for UnreadCut {
    fn after(&mut self, rung: Rung<StrategyError>, outcome: Result<Proposal>) -> State {
        let Self { thread, brief } = self;
        let outcome = match outcome {
            Ok(proposal) => {
                Ok(Proposal { plan: thread.completed(proposal.plan, brief), ..proposal })
            }
            Err(error) => {
                let plan = Plan::from_splices(thread.messages().len(), Vec::new());
                let cut = Proposal::new(thread.completed(plan, brief));
                let rungs = if let StrategyError::NoRung { rungs } = &error {
                    rungs.clone()
                } else {
                    vec![Rung { failure: Some(error.clone()), ..rung }]
                };
                match thread.settle_within(cut, brief, thread.fits(brief)) {
                    Ok(cut) => Ok(Proposal { rungs, ..cut }),
                    Err(_) => Err(error),
                }
            }
        };
        State::Ended(Ended(outcome))
    }
}

/// Whether two messages differ at most in checkpoints.
fn is_same(one: &Message, other: &Message) -> bool {
    let blocks = |message: &Message| {
        let blocks = message.content.iter();
        let blocks = blocks.filter(|block| !matches!(block, ContentBlock::Checkpoint(_)));
        blocks.cloned().collect::<Vec<_>>()
    };
    one == other || (one.role == other.role && blocks(one) == blocks(other))
}

/// The message with its tool results as short as trimming makes them.
fn shortest(message: &Message) -> Message {
    let messages = [message.clone()];
    let none = Plan::from_splices(1, Vec::new());
    let trimmed = trim_after(&none, &messages, &HARDEST, &|_| false);
    let after = trimmed.after(&messages).ok();
    after.and_then(|after| after.into_iter().next()).unwrap_or_else(|| message.clone())
}

/// Returns the messages whose results must be cut so that all have at most `room` tokens together,
/// with their indexes. The longest results are cut first, all to the same size.
fn cut_to(
    messages: &[Message],
    room: u64,
    counter: &dyn TokenCounter,
    recall: &dyn Fn(usize) -> Option<u64>,
) -> Vec<(usize, Message)> {
    let results = messages.iter().flat_map(Message::tool_results);
    let sizes: Vec<u64> = results.map(|result| text_tokens(result, counter)).collect();
    let all = counter.messages(messages);
    let others = all.saturating_sub(sizes.iter().copied().fold(0, u64::saturating_add));
    let mut left = room.saturating_sub(others);
    loop {
        let most = level(&sizes, left);
        let cut = messages.iter().enumerate().filter_map(|(index, message)| {
            Some((index, cut_message(message, most, counter, recall(index))?))
        });
        let cut: Vec<(usize, Message)> = cut.collect();
        let saved = |(index, message): &(usize, Message)| {
            let before = messages.get(*index).map_or(0, |before| counter.message(before));
            before.saturating_sub(counter.message(message))
        };
        let after = all.saturating_sub(cut.iter().map(saved).fold(0, u64::saturating_add));
        if after <= room || left == 0 {
            return cut;
        }
        left = left.saturating_sub((after - room).max(left / 16).max(1));
    }
}

/// Returns the largest size to which all sizes can be cut so that their sum is at most `room`.
fn level(sizes: &[u64], room: u64) -> u64 {
    let mut sorted = sizes.to_vec();
    sorted.sort_unstable();
    let mut left = room;
    for (index, size) in sorted.iter().enumerate() {
        let share = left / (sorted.len() - index) as u64;
        if *size > share {
            return share;
        }
        left -= size;
    }
    u64::MAX
}

fn text_tokens(result: &ToolResult, counter: &dyn TokenCounter) -> u64 {
    let texts = result.content.iter().filter_map(ContentBlock::as_text);
    texts.map(|text| counter.text(text)).fold(0, u64::saturating_add)
}

/// Returns the message with results of at most `most` tokens of text each; `None` if they have no
/// more.
fn cut_message(
    message: &Message,
    most: u64,
    counter: &dyn TokenCounter,
    number: Option<u64>,
) -> Option<Message> {
    debug_assert!(message.role == Role::User || message.tool_results().next().is_none());
    let is_long = |result: &ToolResult| text_tokens(result, counter) > most;
    if !message.tool_results().any(is_long) {
        return None;
    }
    let content = message.content.iter().map(|block| match block {
        ContentBlock::ToolResult(result) if is_long(result) => {
            cut_result(result, most, counter, number).into()
        }
        _ => block.clone(),
    });
    let content = content.collect();
    Some(message.with_content(content))
}

fn cut_result(
    result: &ToolResult,
    most: u64,
    counter: &dyn TokenCounter,
    number: Option<u64>,
) -> ToolResult {
    let tokens = text_tokens(result, counter).max(1);
    let content = result.content.iter().map(|block| {
        let ContentBlock::Text(whole) = block else { return block.clone() };
        let share = u128::from(counter.text(&whole.text)) * u128::from(most) / u128::from(tokens);
        let share = u64::try_from(share).unwrap_or(most);
        let text = ends(&whole.text, share, counter, number);
        TextBlock { text, extra: whole.extra.clone() }.into()
    });
    ToolResult { content: content.collect(), ..result.clone() }
}

/// Returns the head and the tail of a text in at most `most` tokens, with a note between them that
/// states how to read the rest. The note stays even if it alone has more tokens.
fn ends(text: &str, most: u64, counter: &dyn TokenCounter, number: Option<u64>) -> Text {
    let size = counter.text(text);
    if size <= most {
        return text.into();
    }
    let share = u128::from(most) * text.len() as u128 / u128::from(size.max(1));
    let mut kept = usize::try_from(share).unwrap_or(usize::MAX).min(text.len());
    loop {
        let head_end = border_before(text, kept - kept / 3);
        let tail_start = border_before(text, text.len() - kept / 3).max(head_end);
        let ((head, _), (_, tail)) = (text.split_at(head_end), text.split_at(tail_start));
        let note = note(tail_start - head_end, most, number);
        let cut = format!("{head}\n{note}\n{tail}");
        let cut = cut.trim_matches('\n');
        if kept == 0 || counter.text(cut) <= most {
            return cut.into();
        }
        kept -= (kept / 16).max(1);
    }
}

/// The note in place of these bytes, short in a short text.
fn note(bytes: usize, most: u64, number: Option<u64>) -> String {
    if most < NOTED_TOKENS {
        return format!("[{bytes} bytes omitted]");
    }
    let recall = number.map_or_else(String::new, |number| {
        format!(", or call recall with {{\"message\":{number}}}")
    });
    format!(
        "[... {bytes} bytes are omitted here, because the context window has no room for them. To \
         read them, repeat the call with a narrower range{recall} ...]"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        message::{ContextWindow, Json, ToolUse},
        strategy::{KeepRecent, Step, TrimToolResults},
    };

    /// A question, a call and its result with this many lines, which nobody has read.
    fn unread(lines: usize) -> Vec<Message> {
        let call = ToolUse::new("t1", "read", Json::default());
        let text: String = (0..lines).map(|line| format!("line {line} of the file\n")).collect();
        vec![
            Message::user("Read it."),
            Message::new(Role::Assistant, vec![call.into()]),
            Message::new(Role::User, vec![ToolResult::text("t1", text).into()]),
        ]
    }

    fn with_past(lines: usize) -> Vec<Message> {
        let past = [Message::user("word ".repeat(900)), Message::assistant("word ".repeat(900))];
        [&past[..], &unread(lines)].concat()
    }

    #[test]
    fn an_unread_result_that_fits_is_never_shortened_whatever_the_target() {
        let thread = with_past(300);
        let snapshot = Snapshot::new(thread.clone()).with_window(Some(ContextWindow::new(8_000)));
        let strategies: [Box<dyn CompactionStrategy>; 2] =
            [Box::new(KeepRecent::default()), Box::new(TrimToolResults::default())];
        for strategy in strategies {
            let brief = Brief { limit: Some(8_000), ..Brief::from(500) };
            let attempt = begin(strategy.as_ref(), &snapshot, &brief);
            let Step::Proposed(proposal) = attempt.step() else { continue };
            let settled = snapshot.settle_within(proposal.clone(), &brief, Some(8_000)).unwrap();
            let after = settled.plan.after(&thread).unwrap();
            assert_eq!(after[after.len() - 2..], thread[thread.len() - 2..], "{strategy:?}");
        }
    }

    #[test]
    fn an_unread_result_that_does_not_fit_keeps_head_and_tail_with_as_much_as_fits() {
        for thread in [unread(3_000), with_past(3_000)] {
            let window = 6_000;
            let snapshot =
                Snapshot::new(thread.clone()).with_window(Some(ContextWindow::new(window)));
            let brief = Brief { limit: Some(window), ..Brief::from(window / 2) };
            let attempt = begin(&KeepRecent::default(), &snapshot, &brief);
            let Step::Proposed(proposal) = attempt.step() else { panic!("{attempt:?}") };
            let settled = snapshot.settle_within(proposal.clone(), &brief, Some(window)).unwrap();
            let after = settled.plan.after(&thread).unwrap();
            let size = snapshot.counter().messages(&after);
            assert!((window / 4 * 3..=window).contains(&size), "{size}");
            let text = after.last().unwrap().tool_results().next().unwrap().content[0].as_text();
            let text = text.unwrap().as_str();
            assert!(text.starts_with("line 0 of") && text.ends_with("line 2999 of the file"));
            assert!(text.contains("repeat the call with a narrower range"), "{text}");
            let again = snapshot.settle_within(settled.clone(), &brief, Some(window)).unwrap();
            assert_eq!(again.plan, settled.plan);
        }
    }

    #[test]
    fn many_unread_results_share_the_room_and_short_ones_stay_whole() {
        let sizes = [10, 5_000, 40, 9_000];
        assert_eq!(level(&sizes, 1_050), 500);
        assert_eq!(level(&sizes, 100_000), u64::MAX);
        assert_eq!(level(&[], 0), u64::MAX);
    }
}
