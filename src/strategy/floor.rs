//! The floor of a compaction: what no plan may change.
//!
//! The model has not read the messages after its last answer: tool results, reminders, and what the
//! user typed since. They are the *unread* part of a thread, and every plan leaves them as they are.
//! The only exception is a thread whose unread part does not fit, together with the calls that it
//! answers and the user's newest text. Then the longest unread results are cut to their head and
//! tail, with as much text as fits, and each cut says how to read the rest. Pictures and documents in
//! results stay, unless the thread does not fit with all texts cut: then a note takes the place of the
//! largest ones. The cut is made here and by no strategy: strategies see a thread that is already cut,
//! and [`Snapshot::settle`] adds the cut to their plans.
//!
//! In a tool loop with signed reasoning no cut is legal after that reasoning. If that leaves no
//! room, calls and results become text that nobody typed, which needs no reasoning before it. This
//! is done only if less than a third of what stays as text could stay otherwise. If the calls alone do
//! not fit, because one writes a long file or there are hundreds, they and their results become one
//! text each, which is cut as a result is.

use std::sync::Arc;

use super::{
    brief::Brief,
    clip::{Ends, ends, ends_of_result, level, text_tokens},
    error::{Result, StrategyError},
    proposal::Proposal,
    rejection::Rejection,
    snapshot::Snapshot,
    tail::HARDEST,
    view::View,
};
use crate::{
    compact::{Plan, legality, media_note, trim_after},
    log::Rung,
    message::{ContentBlock, Message, Role, TextBlock},
    tokens::TokenCounter,
};

/// A shorter text than this is cut with a short note.
const NOTED_TOKENS: u64 = 160;

/// The share of what fits that a cut leaves free for a summary: an eighth.
const FREE_SHARE: u64 = 8;

/// The tokens that the text of a summary needs at least, without the list of rules.
const SUMMARY_TEXT_TOKENS: u64 = 100;

/// How an unread part that does not fit is cut.
#[derive(Clone, Copy, Debug)]
struct Cut {
    /// The tokens that the unread messages may have; with [`Round::Cut`], those of the whole round.
    room: u64,
    round: Round,
}

/// What becomes of the calls that unread results answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Round {
    /// They stay.
    Calls,
    /// Calls and results become texts, which need neither the calls nor the reasoning before them.
    Texts,
    /// The calls of a message become one text, its results another one, and both are cut.
    Cut,
}

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

    /// The tokens that the messages may have at most: the window less system prompt, tools and next
    /// prompt. If that is not known, or the request does not fit, the limit of the brief. `None` if
    /// neither is known.
    pub(super) fn fits(&self, brief: &Brief) -> Option<u64> {
        if brief.limit.is_some() && (brief.is_needed() || self.window().is_none()) {
            return brief.limit;
        }
        let counter = self.counter();
        let next = brief.next_prompt.as_ref().map_or(0, |next| counter.message(next));
        let around = counter.tools(self.tools()).saturating_add(counter.messages(self.system()));
        let around = around.saturating_add(next);
        Some(self.window()?.tokens().saturating_sub(around))
    }

    /// The first message that no plan can remove because of the unread part: the calls that it
    /// answers and, in a tool loop with signed reasoning, everything since that reasoning.
    fn held_from(&self) -> usize {
        let from = self.unread_from();
        let points = legality::cut_points(self.without_reasoning().messages());
        points.into_iter().take_while(|point| *point <= from).last().unwrap_or(0)
    }

    /// The tokens of what stays beside the unread part in every plan that keeps the messages from
    /// `held` on: these messages, the user's newest text, and a compaction that the host brought.
    fn beside_unread(&self, brief: &Brief, held: usize) -> u64 {
        let counter = self.counter();
        let stays = self.messages().iter().take(self.unread_from()).skip(held);
        let stays = stays.map(|message| counter.message(&shortest(message)));
        let last = self.messages().iter().rposition(Message::is_typed);
        // With a next prompt, what was typed before it need not stay.
        let last = last.filter(|last| *last < held && brief.next_prompt.is_none());
        let last = last.and_then(|last| self.messages().get(last));
        let typed = last.into_iter().flat_map(Message::typed_content);
        let typed = typed.map(|block| counter.block(block));
        let brought = self.brought_compaction(held);
        let brought = brought.and_then(|it| self.messages().get(it.start.message));
        let brought = brought.map(|message| counter.message(message));
        stays.chain(typed).chain(brought).fold(0, u64::saturating_add)
    }

    /// The tokens that stay in every plan.
    fn floor(&self, brief: &Brief) -> u64 {
        let unread = self.counter().messages(self.unread());
        unread.saturating_add(self.beside_unread(brief, self.held_from()))
    }

    /// The tokens of the shortest summary with its list of rules. If it does not fit beside the unread
    /// part, that part is cut.
    fn summary_need(&self, brief: &Brief) -> u64 {
        self.rules_need(brief).saturating_add(SUMMARY_TEXT_TOKENS)
    }

    /// Returns how the unread part must be cut, if it does not fit.
    fn unread_cut(&self, brief: &Brief) -> Option<Cut> {
        let fits = self.fits(brief).filter(|fits| self.size() > *fits)?;
        if self.floor(brief).saturating_add(self.summary_need(brief)) <= fits {
            return None;
        }
        let (held, from, counter) = (self.held_from(), self.unread_from(), self.counter());
        let is_mixed = |it: &Message| it.is_typed() && it.tool_results().next().is_some();
        let can_be_text = !self.unread().iter().any(is_mixed);
        let room_from = |from: usize| {
            let beside = self.beside_unread(brief, from);
            fits.saturating_sub(fits / FREE_SHARE).saturating_sub(beside)
        };
        let (with_calls, as_text) = (room_from(held), room_from(from));
        let would_stay = as_text.min(counter.messages(self.unread()));
        let is_short = can_be_text && held < self.round_from() && with_calls < would_stay / 3;
        let tokens = |messages: &[Message], form: fn(&Message) -> Message| {
            let tokens = messages.iter().map(|message| counter.message(&form(&shortest(message))));
            tokens.fold(0, u64::saturating_add)
        };
        let (round, least) = match is_short {
            true => (Round::Texts, tokens(self.round(), round_as_text)),
            false => (Round::Calls, tokens(self.unread(), Message::clone)),
        };
        let room = if is_short { as_text } else { with_calls };
        let beside = self.beside_unread(brief, if is_short { from } else { held });
        Some(match can_be_text && beside.saturating_add(least) > fits {
            true => Cut { room: as_text, round: Round::Cut },
            false => Cut { room, round },
        })
    }

    /// The messages with the calls that the unread results answer.
    fn calls(&self) -> &[Message] {
        let calls = self.unread_from() - self.round_from();
        self.round().get(..calls).unwrap_or_default()
    }

    /// These messages and the unread part.
    fn round(&self) -> &[Message] {
        self.split_at(self.round_from()).1
    }

    /// The first message of the calls that the unread results answer.
    fn round_from(&self) -> usize {
        let from = self.unread_from();
        let run = self.past().iter().rev().take_while(|message| message.role == Role::Assistant);
        from - run.count()
    }

    /// Returns the unread messages that must be shortened, with their indexes; empty if the unread
    /// part fits.
    fn cuts(&self, brief: &Brief) -> Vec<(usize, Message)> {
        let Some(Cut { room, round }) = self.unread_cut(brief) else { return Vec::new() };
        let cut = |from: usize, messages: &[Message]| {
            let recall = |index: usize| self.recall_of(from + index);
            replaced(messages, cut_to(messages, room, self.counter(), &recall))
        };
        let (from, calls) = (self.unread_from(), self.round_from());
        let changed = match round {
            Round::Calls => [self.calls(), &cut(from, self.unread())].concat(),
            Round::Texts => {
                let cut = [self.calls(), &cut(from, self.unread())].concat();
                cut.iter().map(round_as_text).collect()
            }
            Round::Cut => {
                let texts: Vec<Message> = self.round().iter().map(round_as_one_text).collect();
                cut(calls, &texts)
            }
        };
        let changed = changed.into_iter().zip(self.round()).enumerate();
        let changed = changed.filter(|(_, (after, before))| after != *before);
        changed.map(|(index, (after, _))| (calls + index, after)).collect()
    }

    /// Returns the thread as strategies see it: with its unread results cut, if they do not fit.
    pub(super) fn with_unread_cut(&self, brief: &Brief) -> Self {
        let cuts = self.cuts(brief);
        if cuts.is_empty() {
            return self.clone();
        }
        self.with_messages(Arc::new(replaced(self.messages(), cuts)))
    }

    /// Returns the brief with a target that can be reached, if its limit allows to miss the target. If
    /// what stays in every plan leaves no room for a summary, a quarter of the rest is to stay beside
    /// it, but no more than a quarter of the target: a strategy does what it can instead of nothing,
    /// and a smaller target leaves no larger thread.
    fn with_reachable_target(&self, brief: &Brief) -> Brief {
        let (Some(target), Some(limit)) = (brief.target, brief.limit) else { return brief.clone() };
        let floor = self.floor(brief);
        if floor.saturating_add(self.summary_need(brief)) <= target || self.size() <= target {
            return brief.clone();
        }
        let target = self.reachable(brief, floor, target).max(target);
        Brief { target: Some(target), limit: Some(limit.max(target)), ..brief.clone() }
    }

    /// Returns the limit, or a larger one if what stays in every plan leaves no room for a summary
    /// below it and the request fits all the same.
    pub(super) fn reachable_limit(&self, brief: &Brief, limit: u64) -> u64 {
        let floor = self.floor(brief);
        if floor.saturating_add(self.summary_need(brief)) <= limit {
            return limit;
        }
        self.reachable(brief, floor, limit).max(limit)
    }

    /// The size that a compaction can reach if at least `floor` tokens stay, and `wanted` are wanted.
    fn reachable(&self, brief: &Brief, floor: u64, wanted: u64) -> u64 {
        let rest = self.size().saturating_sub(floor).min(wanted);
        let most = self.fits(brief).unwrap_or(u64::MAX);
        floor.saturating_add(self.summary_need(brief).max(rest / 4)).min(most)
    }

    /// Returns the plan with the cut of unread results that do not fit. A plan that changes the
    /// unread part already stays as it is.
    pub(super) fn completed(&self, plan: Plan, brief: &Brief) -> Plan {
        let from = self.unread_from();
        let touches = plan.splices().iter().any(|splice| splice.at.end > from);
        if touches || plan.check(self.messages()).is_err() {
            return plan;
        }
        let mut cuts = self.cuts(brief);
        // Calls that become text may be gone already.
        cuts.retain(|(index, _)| !plan.splices().iter().any(|splice| splice.at.contains(index)));
        if cuts.is_empty() { plan } else { plan.with_replaced(cuts) }
    }

    /// Checks that a plan leaves the unread part as it is, unless that does not fit. `after` is the
    /// thread after the plan.
    pub(super) fn check_unread(&self, after: &[Message], brief: &Brief) -> Result<(), Rejection> {
        let unread = self.unread();
        let end = after.len().saturating_sub(unread.len());
        let left = after.get(end..).unwrap_or_default();
        let same = unread.iter().zip(left).take_while(|(one, other)| is_same(one, other)).count();
        if same == unread.len() || self.unread_cut(brief).is_some() {
            return Ok(());
        }
        Err(Rejection::TouchesUnread { message: self.unread_from() + same })
    }
}

impl View {
    /// Returns the view that a strategy gets. If the unread part of the thread does not fit, the
    /// strategy sees it cut; if it alone exceeds the target, the strategy gets one that it can reach.
    pub(super) fn as_seen(&self) -> Self {
        let thread = self.thread.with_unread_cut(&self.brief);
        let brief = thread.with_reachable_target(&self.brief);
        Self { thread, brief }
    }

    /// Completes what a strategy proposed that saw this view with its unread part cut. If the strategy
    /// proposes nothing, the cut itself is the proposal.
    pub(super) fn with_cut(
        &self,
        seen: &Self,
        outcome: Result<Proposal>,
        rung: Rung<StrategyError>,
    ) -> Result<Proposal> {
        let Self { thread, brief } = self;
        if Arc::ptr_eq(seen.thread.messages(), thread.messages()) {
            return outcome;
        }
        let error = match outcome {
            Ok(proposal) => {
                let plan = thread.completed(proposal.plan, brief);
                return Ok(Proposal { plan, ..proposal });
            }
            Err(error) => error,
        };
        let plan = Plan::from_splices(thread.messages().len(), Vec::new());
        let cut = Proposal::new(thread.completed(plan, brief));
        match thread.settle_within(cut, brief, thread.fits(brief)) {
            Ok(cut) => Ok(Proposal { rungs: error.rungs(rung), ..cut }),
            Err(_) => Err(error),
        }
    }
}

/// The message with its calls and results as text; one without them as it is.
fn round_as_text(message: &Message) -> Message {
    if message.tool_uses().next().is_none() && message.tool_results().next().is_none() {
        return message.clone();
    }
    let text = |block: &ContentBlock| {
        if let ContentBlock::ToolUse(call) = block {
            let text = format!("(I called {} {}.)", call.name, call.input.as_str());
            vec![ContentBlock::text(text)]
        } else if let ContentBlock::ToolResult(result) = block {
            let kind = if result.is_error { "error" } else { "result" };
            let title = ContentBlock::text(format!("The {kind} of call {}:", result.tool_use_id));
            let is_blank = |it: &&ContentBlock| it.as_text().is_some_and(|it| it.trim().is_empty());
            let content = result.content.iter().filter(|block| !is_blank(block));
            [title].into_iter().chain(content.cloned()).collect()
        } else {
            vec![block.clone()]
        }
    };
    let content = message.content.iter().flat_map(text);
    let mut message = message.with_content(content.collect());
    // Nobody typed the text of a result.
    message.make_mut().untyped = true;
    message
}

/// The message with its calls and results as one text, beside their media; one without them as it is.
fn round_as_one_text(message: &Message) -> Message {
    let texts = round_as_text(message);
    if texts == *message {
        return texts;
    }
    let said: Vec<&str> = texts.texts().map(|text| text.as_str()).collect();
    let one = ContentBlock::text(said.join("\n"));
    let media = texts.content.iter().filter(|it| it.as_text().is_none() && !it.is_reasoning());
    texts.with_content([one].into_iter().chain(media.cloned()).collect())
}

/// Whether two messages differ at most in checkpoints.
fn is_same(one: &Message, other: &Message) -> bool {
    let blocks = |message: &Message| {
        let blocks = message.content.iter();
        let blocks = blocks.filter(|block| !matches!(block, ContentBlock::Checkpoint(_)));
        blocks.cloned().collect::<Vec<_>>()
    };
    let is_from_same = (one.role, &one.author) == (other.role, &other.author);
    one == other || (is_from_same && blocks(one) == blocks(other))
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
/// with their indexes. The longest results are cut first, all to the same size. If the shortest texts
/// do not fit beside the media, the largest media give way to notes.
fn cut_to(
    messages: &[Message],
    room: u64,
    counter: &dyn TokenCounter,
    recall: &dyn Fn(usize) -> Option<String>,
) -> Vec<(usize, Message)> {
    let mut bare: Vec<Message> = messages.to_vec();
    let mut cut = texts_cut_to(&bare, room, counter, recall);
    // Without a medium the texts need not be cut as short.
    while after(&bare, &cut, counter) > room && drop_largest_medium(&mut bare, counter) {
        cut = texts_cut_to(&bare, room, counter, recall);
    }
    let all = replaced(&bare, cut).into_iter().enumerate().zip(messages);
    all.filter(|((_, after), before)| after != *before).map(|(after, _)| after).collect()
}

/// Returns the messages with these in the places of others.
fn replaced(messages: &[Message], others: Vec<(usize, Message)>) -> Vec<Message> {
    let mut messages = messages.to_vec();
    for (index, message) in others {
        if let Some(place) = messages.get_mut(index) {
            *place = message;
        }
    }
    messages
}

/// The tokens of the messages with these cuts.
fn after(messages: &[Message], cut: &[(usize, Message)], counter: &dyn TokenCounter) -> u64 {
    let saved = |(index, message): &(usize, Message)| {
        let before = messages.get(*index).map_or(0, |before| counter.message(before));
        before.saturating_sub(counter.message(message))
    };
    let saved = cut.iter().map(saved).fold(0, u64::saturating_add);
    counter.messages(messages).saturating_sub(saved)
}

/// Puts a note in the place of the largest picture or document of all results, and returns whether
/// there was one that is larger than its note.
fn drop_largest_medium(messages: &mut [Message], counter: &dyn TokenCounter) -> bool {
    let gain = |block: &ContentBlock| {
        let note = counter.text(media_note(block)?);
        counter.block(block).checked_sub(note).filter(|gain| *gain > 0)
    };
    let places = messages.iter().enumerate().flat_map(|(message, it)| {
        it.content.iter().enumerate().flat_map(move |(block, it)| {
            let result =
                if let ContentBlock::ToolResult(result) = it { Some(result) } else { None };
            let inner = result.map_or(&[][..], |result| &result.content);
            inner.iter().enumerate().map(move |(inner, it)| (it, (message, block, inner)))
        })
    });
    let largest = places.filter_map(|(it, place)| Some((gain(it)?, place))).max();
    let Some((_, (message, block, inner))) = largest else { return false };
    let Some(message) = messages.get_mut(message) else { return false };
    let Some(ContentBlock::ToolResult(result)) = message.make_mut().content.get_mut(block) else {
        return false;
    };
    let Some(medium) = result.content.get_mut(inner) else { return false };
    let Some(note) = media_note(medium) else { return false };
    *medium = ContentBlock::text(note);
    true
}

/// Returns the messages whose texts of results must be cut so that all have at most `room` tokens
/// together, with their indexes.
fn texts_cut_to(
    messages: &[Message],
    room: u64,
    counter: &dyn TokenCounter,
    recall: &dyn Fn(usize) -> Option<String>,
) -> Vec<(usize, Message)> {
    let sizes: Vec<u64> = messages.iter().flat_map(|it| sizes(it, counter)).collect();
    let all = counter.messages(messages);
    let others = all.saturating_sub(sizes.iter().copied().fold(0, u64::saturating_add));
    let mut left = room.saturating_sub(others);
    loop {
        let most = level(&sizes, left);
        let cut = messages.iter().enumerate().filter_map(|(index, message)| {
            Some((index, cut_message(message, most, counter, recall(index).as_deref())?))
        });
        let cut: Vec<(usize, Message)> = cut.collect();
        let after = after(messages, &cut, counter);
        if after <= room || left == 0 {
            return cut;
        }
        left = left.saturating_sub((after - room).max(left / 16).max(1));
    }
}

/// The tokens of each text that may be cut: those of tool results, and those of a message that nobody
/// typed.
fn sizes(message: &Message, counter: &dyn TokenCounter) -> Vec<u64> {
    let texts = message.content.iter().filter_map(ContentBlock::as_text);
    let texts = texts.filter(|_| message.untyped).map(|text| counter.text(text));
    message.tool_results().map(|result| text_tokens(result, counter)).chain(texts).collect()
}

/// Returns the message with results of at most `most` tokens of text each; `None` if they have no
/// more.
fn cut_message(
    message: &Message,
    most: u64,
    counter: &dyn TokenCounter,
    recall: Option<&str>,
) -> Option<Message> {
    debug_assert!(message.role == Role::User || message.tool_results().next().is_none());
    if sizes(message, counter).iter().all(|size| *size <= most) {
        return None;
    }
    let is_call = message.role == Role::Assistant;
    let note = |bytes: usize, most: u64| note(bytes, most, is_call, recall);
    let shorten = |text: &str, most| {
        let cut = ends(text, most, counter, Ends { tail: 3, note: &note });
        // The note may be longer than a short text.
        cut.filter(|cut| cut.len() < text.len()).unwrap_or_else(|| text.to_owned())
    };
    let shortened = |block: &ContentBlock| {
        if let ContentBlock::ToolResult(result) = block
            && text_tokens(result, counter) > most
        {
            return ends_of_result(result, most, counter, shorten).into();
        }
        if let ContentBlock::Text(text) = block
            && message.untyped
        {
            let (text, extra) = (shorten(&text.text, most).into(), text.extra.clone());
            return TextBlock { text, extra }.into();
        }
        block.clone()
    };
    let content = message.content.iter().map(shortened);
    let content = content.collect();
    Some(message.with_content(content))
}

/// The note in place of these bytes of a call or a result, short in a short text.
fn note(bytes: usize, most: u64, is_call: bool, recall: Option<&str>) -> String {
    if most < NOTED_TOKENS {
        return format!("[{bytes} bytes omitted]");
    }
    // To repeat a call would carry it out once more.
    let repeat = (!is_call).then_some("repeat the call with a narrower range");
    let ways: Vec<&str> = repeat.into_iter().chain(recall).collect();
    let read = match ways.is_empty() {
        true => String::new(),
        false => format!(". To read them, {}", ways.join(", or ")),
    };
    format!(
        "[... {bytes} bytes are omitted here, because the context window has no room for them{read} \
         ...]"
    )
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;

    use super::*;
    use crate::{
        message::{ContextWindow, Extra, Json, Thinking, ToolResult, ToolUse},
        strategy::{CompactionStrategy, Digest, KeepRecent, Terms, TrimToolResults, propose},
        testing::answers,
        tokens::ByteEstimate,
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
    fn no_note_takes_the_place_of_a_shorter_text() {
        let result = |text: &str| vec![ToolResult::text("t1", text).into()];
        let short = [Message::new(Role::User, result("ok"))];
        assert_eq!(cut_to(&short, 0, &ByteEstimate::TRIGGER, &|_| None), []);
        let long = [Message::new(Role::User, result(&"ok ".repeat(60)))];
        assert_eq!(cut_to(&long, 0, &ByteEstimate::TRIGGER, &|_| None).len(), 1);
    }

    #[test]
    fn a_call_that_does_not_fit_becomes_a_text_that_asks_nobody_to_repeat_it() {
        let lines: String = (0..4_000).map(|line| format!("line {line} of the file\n")).collect();
        let input = serde_json::json!({ "path": "a.md", "text": lines });
        let call = ToolUse::new("t1", "write", input);
        let thread = vec![
            Message::user("Write it."),
            Message::new(Role::Assistant, vec![call.into()]),
            Message::new(Role::User, vec![ToolResult::text("t1", "written").into()]),
        ];
        let snapshot = Snapshot::new(thread).with_window(Some(ContextWindow::new(4_000)));
        let brief = Brief { limit: Some(4_000), ..Brief::from(2_000) };
        let seen = snapshot.with_unread_cut(&brief);
        let [_, call, result] = &seen.messages()[..] else { panic!("three messages") };
        let text = call.texts().next().unwrap();
        assert!(text.starts_with("(I called write {\"path\":\"a.md\"") && text.ends_with("}.)"));
        assert!(text.contains("no room for them ...]") && !text.contains("repeat"), "{text}");
        assert_eq!(result.texts().next().unwrap(), "The result of call t1:\nwritten");
        assert!((3_000..4_000).contains(&seen.size()), "{}", seen.size());
    }

    /// The proposal of a strategy without a model.
    fn settled(
        strategy: &dyn CompactionStrategy,
        thread: &Snapshot,
        brief: &Brief,
    ) -> Option<Proposal> {
        let (mut none, view) = (answers([""; 0]), View::new(thread.clone(), brief.clone()));
        let terms = Terms::default();
        block_on(propose(strategy, &view, &mut none, terms)).ok()
    }

    #[test]
    fn an_unread_result_that_fits_is_never_shortened_whatever_the_target() {
        let thread = with_past(300);
        let snapshot = Snapshot::new(thread.clone()).with_window(Some(ContextWindow::new(8_000)));
        let strategies: [Box<dyn CompactionStrategy>; 2] =
            [Box::new(KeepRecent::default()), Box::new(TrimToolResults::default())];
        for strategy in strategies {
            let brief = Brief { limit: Some(8_000), ..Brief::from(500) };
            let Some(settled) = settled(strategy.as_ref(), &snapshot, &brief) else { continue };
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
            let settled = settled(&KeepRecent::default(), &snapshot, &brief).unwrap();
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

    /// A tool loop whose reasoning holds this many words, and its unread result with this many lines.
    fn reasons(words: usize, lines: usize) -> Vec<Message> {
        let mut thread = with_past(lines);
        let (text, signature) = ("word ".repeat(words).into(), Some("signed".into()));
        let thought = ContentBlock::Thinking(Thinking { text, signature, extra: Extra::default() });
        let call = ToolUse::new("t0", "list", Json::default());
        let begin = Message::new(Role::Assistant, vec![thought, call.into()]);
        let end = Message::new(Role::User, vec![ToolResult::text("t0", "a.rs").into()]);
        let at = thread.len() - 2;
        thread.splice(at..at, [begin, end]);
        thread
    }

    #[test]
    fn a_call_becomes_text_only_if_hardly_any_of_its_unread_result_could_stay_beside_it() {
        for (words, is_text) in [(750, false), (1_100, true)] {
            let thread = reasons(words, 130);
            let snapshot =
                Snapshot::new(thread.clone()).with_window(Some(ContextWindow::new(2_000)));
            let brief = Brief { limit: Some(2_000), ..Brief::from(1_000) };
            let seen = snapshot.with_unread_cut(&brief);
            let last = seen.messages().last().unwrap();
            assert_eq!(last.tool_results().next().is_none(), is_text, "{words} words");
            assert_ne!(Some(last), thread.last(), "{words} words");
        }
    }

    #[test]
    fn calls_with_short_results_stay_although_no_summary_fits_beside_them() {
        let ids = ["t1", "t2", "t3"];
        let call = |id| ToolUse::new(id, "read", Json::default()).into();
        let thread = [
            Message::user("Go."),
            Message::assistant("word ".repeat(140)),
            Message::user("Read. ".repeat(300)),
            Message::new(Role::Assistant, ids.map(call).into()),
            Message::new(Role::User, ids.map(|id| ToolResult::text(id, "ok").into()).into()),
        ];
        let snapshot = Snapshot::new(thread.to_vec());
        let floor = snapshot.counter().messages(&thread[2..]);
        for (window, stays) in [(floor + 8, true), (floor - 80, false)] {
            let snapshot = snapshot.clone().with_window(Some(ContextWindow::new(window)));
            let brief = Brief { limit: Some(window), ..Brief::from(window / 2) };
            let seen = snapshot.with_unread_cut(&brief);
            assert_eq!(seen.messages()[..] == thread, stays, "{window}");
        }
    }

    #[test]
    fn a_target_below_the_unread_part_leaves_it_whole_and_compacts_the_rest() {
        let thread = with_past(300);
        let snapshot = Snapshot::new(thread.clone()).with_window(Some(ContextWindow::new(8_000)));
        let strategies: [Box<dyn CompactionStrategy>; 2] =
            [Box::new(KeepRecent::default()), Box::new(Digest::default())];
        for strategy in strategies {
            let brief = Brief { limit: Some(8_000), ..Brief::from(500) };
            let settled = settled(strategy.as_ref(), &snapshot, &brief).unwrap();
            let after = settled.plan.after(&thread).unwrap();
            assert_eq!(after.last(), thread.last(), "{strategy:?}");
            assert!(snapshot.counter().messages(&after) < snapshot.size() - 1_000, "{strategy:?}");
        }
    }
}
