//! `digest`: the old part gives way to what it says of itself. The rung that cannot fail.

use std::{collections::HashSet, ops::Range};

use serde::{Deserialize, Serialize};

use super::{facts::Facts, gather, write};
use crate::{
    compact::{Plan, Position},
    message::{ContentBlock, Message, Role, Summary},
    strategy::{
        attempt,
        brief::Brief,
        contract::{Attempt, CompactionStrategy, StrategyError},
        snapshot::Snapshot,
        tail::{self, Stay, Wish},
    },
};

/// What is new must have more tokens than this to be worth a digest.
const MIN_TOKENS: u64 = 100;

/// Replaces the old part of the thread with a digest: quotes and lists that are taken from it by
/// plain rules. Needs no model, and gives the same digest for the same thread.
///
/// The digest is a user message with a summary in Markdown: the first request and how the later
/// ones begin, sentences by which the user demanded or forbade something (English ones), what
/// earlier summaries said, the files and commands that tools were given, errors, and what the
/// model said last. What does not fit its budget is left out, and a line says how much. A digest in
/// the part that goes is taken apart and put together with what came after it; so a digest of a
/// digest is as long as one, and keeps the first request.
///
/// The end of the thread stays, and what the user typed last, as for
/// [`Summarize`](super::super::Summarize). Where the target of the brief leaves no room for that,
/// only the last message of the user is kept word for word; then the tool results in the end of the
/// thread are [trimmed](crate::compact::trim()) in steps: to 40 lines of at most 4,000 bytes, 12 of
/// 1,000, 3 of 300, 1 of 100, the last time those of errors too; then only what no cut can take
/// stays, trimmed in the same way. Where the next prompt follows and nothing else helps, what the user
/// typed before it goes as well. So every target is met that leaves room for what the user typed last,
/// for calls that are open and for one line.
///
/// ```
/// use threadfold::{Message, strategy::*};
///
/// let mut thread = vec![Message::user("Port the parser to Rust. Never touch the lexer.")];
/// thread.extend((0..40).map(|step| Message::assistant(format!("Step {step} of the port is done."))));
/// let thread = Snapshot::new(thread);
/// let attempt = Digest { user_messages: 0, ..Digest::default() }.begin(&thread, &Brief::default());
/// let Step::Proposed(proposal) = attempt.step() else { panic!("it needs no model") };
/// let after = thread.accept(&proposal.plan, &Brief::default())?;
/// assert_eq!(after.len(), 1 + 1 + 8);
/// # Ok::<(), Rejection>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Digest {
    /// How many messages stay at the end, if they fit the target. More stay where no cut is legal.
    pub messages: usize,
    /// The most tokens that these may have.
    pub tokens: Option<u64>,
    /// How many messages of the user stay word for word out of the part that goes.
    pub user_messages: usize,
    /// The most tokens that these may have together. The last one stays whatever its size.
    pub user_tokens: u64,
    /// The most tokens that the digest may have.
    pub digest_tokens: u64,
}

impl Default for Digest {
    fn default() -> Self {
        Self {
            messages: 8,
            tokens: None,
            user_messages: 3,
            user_tokens: 4_000,
            digest_tokens: 2_500,
        }
    }
}

impl CompactionStrategy for Digest {
    fn name(&self) -> &str {
        "digest"
    }

    fn begin(&self, thread: &Snapshot, brief: &Brief) -> Box<dyn Attempt> {
        attempt::propose(self.plan(thread, brief))
    }
}

impl Digest {
    fn plan(&self, thread: &Snapshot, brief: &Brief) -> Result<Plan, StrategyError> {
        let before = thread.counter().messages(thread.messages());
        let work = Work { thread, brief, before, most: self.digest_tokens };
        let stays = tail::stays(thread, brief, self.wish(thread, brief))?;
        let is_over = tail::over(thread, brief).is_some();
        let mut failed = None;
        for stay in &stays {
            let worth = if is_over { Ok(()) } else { work.check_worth(stay) };
            match worth.and_then(|()| work.attempt(stay)) {
                Ok(plan) => return Ok(plan),
                // Of a thread that is small enough the first says best why nothing goes.
                Err(error) if is_over => failed = Some(error),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        Err(failed.unwrap_or_else(|| nothing("nothing was tried".to_owned())))
    }

    fn wish(&self, thread: &Snapshot, brief: &Brief) -> Wish {
        let target = tail::over(thread, brief).unwrap_or(u64::MAX);
        // The digest has to fit beside the tail, and so has what the user typed last.
        let last = thread.messages().iter().rev().find(|message| message.is_typed());
        let last = last.map_or(0, |message| thread.counter().message(message));
        let digest = self.digest_tokens.min(target / 3);
        let comes = [digest, last, brief.reserve(), thread.stamp_tokens()];
        Wish {
            messages: self.messages,
            tokens: self.tokens,
            user: (self.user_messages, self.user_tokens),
            comes: comes.into_iter().fold(0, u64::saturating_add),
            yields_when_asked: true,
        }
    }
}

/// A thread that is to become smaller.
struct Work<'a> {
    thread: &'a Snapshot,
    brief: &'a Brief,
    /// Its tokens.
    before: u64,
    /// The most tokens that the digest may have.
    most: u64,
}

impl Work<'_> {
    /// Returns the plan of putting a digest in the place of what stands before the cut and is not
    /// kept, and of trimming what stands behind it.
    fn attempt(&self, stay: &Stay) -> Result<Plan, StrategyError> {
        let (cut, kept) = (stay.cut, stay.typed.as_slice());
        let counter = self.thread.counter();
        // With a digest of one character, all else has its final size.
        let frame = self.build(stay, Some("."))?;
        let fixed = self.thread.tokens_after(&frame)?.saturating_sub(counter.text("."));
        let target = self.brief.target.unwrap_or(u64::MAX);
        let goes = self.goes(cut, kept, |_, _| true);
        let room = target.min(self.before.saturating_sub(1)).saturating_sub(fixed);
        // An addendum comes after it, and has room in no more than the half.
        let room = room.saturating_sub(self.brief.reserve().min(room / 2));
        // A digest is not longer than what it tells of, but for its first line.
        let facts = self.facts(cut, kept);
        let line = counter.text(&write::opening(facts.messages, false));
        let budget = self.most.min(room).min(goes.saturating_sub(1).max(line));
        let digest = write::write(&facts, budget, counter).filter(|_| goes > 0);
        let plan = match &digest {
            Some(digest) => self.build(stay, Some(digest))?,
            // Nothing goes, so there is nothing to tell of.
            None if goes == 0 => self.build(stay, None)?,
            None => return Err(self.no_room(cut, kept, fixed)),
        };
        if plan.messages_after() == 0 && self.brief.next_prompt.is_none() {
            let reason = "all that it holds are reminders and reasoning, and nothing would be left";
            return Err(nothing(reason.to_owned()));
        }
        let after = self.thread.tokens_after(&plan)?;
        if after > target || after >= self.before {
            return Err(self.no_room(cut, kept, after));
        }
        Ok(plan)
    }

    fn build(&self, stay: &Stay, digest: Option<&str>) -> Result<Plan, StrategyError> {
        let compaction = self.brief.compaction;
        let summary = |text| Summary { compaction, ..Summary::new(text) };
        let insert =
            digest.filter(|_| stay.cut > 0).map(|text| Message::summary(Role::User, summary(text)));
        stay.plan(self.thread, self.brief, insert.into_iter().collect())
    }

    fn facts(&self, cut: usize, kept: &[Range<Position>]) -> Facts {
        let kept: HashSet<usize> = kept.iter().map(|range| range.start.message).collect();
        let head = self.thread.messages().get(..cut).unwrap_or_default();
        let mut facts = gather::gather(head, |message| kept.contains(&message));
        // The standing rules stand beside the digest, and what was taken back nowhere.
        let is_rule = |line: &String| self.thread.rules().find(line).is_some();
        for list in [&mut facts.rules, &mut facts.later] {
            list.items.retain(|line| !is_rule(line));
        }
        facts
    }

    /// The tokens of the blocks before the cut that are not kept.
    fn goes(
        &self,
        cut: usize,
        kept: &[Range<Position>],
        counts: impl Fn(usize, &ContentBlock) -> bool,
    ) -> u64 {
        let kept: HashSet<Position> = kept.iter().map(|range| range.start).collect();
        let mut goes: u64 = 0;
        for (message, parts) in self.thread.messages().iter().enumerate().take(cut) {
            for (block, content) in parts.content.iter().enumerate() {
                if !kept.contains(&Position { message, block }) && counts(message, content) {
                    goes = goes.saturating_add(self.thread.counter().block(content));
                }
            }
        }
        goes
    }

    /// Refuses to make a digest of hardly more than a digest.
    fn check_worth(&self, stay: &Stay) -> Result<(), StrategyError> {
        let (cut, kept) = (stay.cut, stay.typed.as_slice());
        let messages = self.thread.messages();
        let head = messages.get(..cut).unwrap_or_default();
        // What the user typed before a summary was kept beside it once already.
        let last = head.iter().rposition(|message| message.is_summary()).unwrap_or_default();
        let kept_once =
            |index: usize| index < last && messages.get(index).is_some_and(Message::is_typed);
        let new = |index: usize, block: &ContentBlock| !is_standing(block) && !kept_once(index);
        match self.goes(cut, kept, new) {
            goes if goes > MIN_TOKENS => Ok(()),
            goes => Err(nothing(format!(
                "about {goes} tokens before the end are in no summary, too few to be worth it"
            ))),
        }
    }

    fn no_room(&self, cut: usize, kept: &[Range<Position>], stays: u64) -> StrategyError {
        let messages = self.thread.messages();
        let counter = self.thread.counter();
        let end = messages.get(cut..).unwrap_or_default();
        let typed = kept
            .iter()
            .filter_map(|range| messages.get(range.start.message)?.content.get(range.start.block));
        let typed: u64 = typed.map(|block| counter.block(block)).fold(0, u64::saturating_add);
        let most = self.brief.target.unwrap_or(self.before);
        nothing(format!(
            "about {stays} tokens would stay, {most} are the most: {} messages at the end that \
             cannot be cut have {} untrimmed, and what the user typed and stays before them {typed}",
            end.len(),
            counter.messages(end),
        ))
    }
}

/// Whether a block is no reason for a digest: it is one, or it goes in every compaction.
fn is_standing(block: &ContentBlock) -> bool {
    matches!(
        block,
        ContentBlock::Summary(_) | ContentBlock::Checkpoint(_) | ContentBlock::SystemReminder(_)
    )
}

fn nothing(reason: String) -> StrategyError {
    StrategyError::NothingToCompact { reason: reason.into() }
}
