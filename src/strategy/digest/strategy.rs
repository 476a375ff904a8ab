//! `digest`: the old part gives way to what it says of itself. The rung that cannot fail.

use std::{collections::HashSet, ops::Range};

use serde::{Deserialize, Serialize};

use super::{facts::Facts, gather, write};
use crate::{
    compact::{CompactOptions, Edit, Plan, Position, TrimOptions, trim_after},
    message::{ContentBlock, Message, Role, Summary},
    strategy::{
        attempt,
        brief::Brief,
        contract::{Attempt, CompactionStrategy, StrategyError},
        snapshot::Snapshot,
        tail,
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
/// 1,000, 3 of 300, 1 of 100, the last time those of errors too. Where the next prompt follows and
/// nothing else helps, what the user typed before it goes as well.
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
    /// How many messages stay at the end at least, if they fit. More stay where no cut is legal.
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
        // A target that is met already asks for nothing.
        let over = brief.target.filter(|target| before > *target);
        let work = Work { thread, brief, before, most: self.digest_tokens };
        let bare = thread.without_reasoning();
        let shortest = match (self.cut(&bare, over, brief.reserve()), over) {
            (Ok(cut), _) => cut,
            // Nothing can be cut off, but the thread has to become smaller.
            (Err(_), Some(_)) => 0,
            (Err(error), None) => return Err(error),
        };
        // The end of the work, if only trimmed, says more than a digest of it.
        let count = thread.messages().len();
        let cut = shortest.min(bare.cut_at_or_before(count.saturating_sub(1)));
        let tokens = self.user_tokens.min(over.map_or(u64::MAX, |target| target / 4));
        let asked = tail::typed(thread, cut, self.user_messages, tokens);
        if over.is_none() {
            work.check_worth(cut, &asked)?;
            return work.attempt(cut, &asked, None);
        }
        let last = tail::typed(thread, cut, 1, 0);
        let steps = STEPS.iter().map(|step| (cut, last.clone(), Some(options(*step))));
        let mut tries = vec![(cut, asked, None), (cut, last.clone(), None)];
        tries.extend(steps);
        tries.push((shortest, tail::typed(thread, shortest, 1, 0), None));
        if brief.next_prompt.is_some() {
            // What was typed before it may be longer than all that fits.
            tries.push((shortest, Vec::new(), None));
        }
        let mut failed = None;
        for (cut, kept, trim) in tries {
            match work.attempt(cut, &kept, trim) {
                Ok(plan) => return Ok(plan),
                Err(error) => failed = Some(error),
            }
        }
        Err(failed.unwrap_or_else(|| nothing("nothing was tried".to_owned())))
    }

    fn cut(
        &self,
        thread: &Snapshot,
        target: Option<u64>,
        reserve: u64,
    ) -> Result<usize, StrategyError> {
        // The digest has to fit beside the tail, and so has what the user typed last.
        let last = thread.messages().iter().rev().find(|message| message.is_typed());
        let last = last.map_or(0, |message| thread.counter().message(message));
        let target = target.map(|target| {
            let comes = [self.digest_tokens.min(target / 3), last, reserve, thread.stamp_tokens()];
            target.saturating_sub(comes.into_iter().fold(0, u64::saturating_add))
        });
        tail::cut(thread, self.messages, [self.tokens, target].into_iter().flatten().min())
    }
}

/// How the results at the end of the thread are trimmed: lines, bytes, and whether errors are.
const STEPS: [(usize, usize, bool); 4] =
    [(40, 4_000, false), (12, 1_000, false), (3, 300, false), (1, 100, true)];

fn options((lines, bytes, errors): (usize, usize, bool)) -> TrimOptions {
    let bytes = Some(bytes);
    TrimOptions { lines, bytes, keep_recent: 0, min_bytes: 0, keep_errors: !errors }
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
    fn attempt(
        &self,
        cut: usize,
        kept: &[Range<Position>],
        trim: Option<TrimOptions>,
    ) -> Result<Plan, StrategyError> {
        let counter = self.thread.counter();
        // With a digest of one character, all else has its final size.
        let frame = self.build(cut, kept, trim, Some("."))?;
        let fixed = self.thread.tokens_after(&frame)?.saturating_sub(counter.text("."));
        let target = self.brief.target.unwrap_or(u64::MAX);
        let goes = self.goes(cut, kept, |_, _| true);
        let shrinks = self.before.saturating_sub(fixed).min(goes).saturating_sub(1);
        // An addendum comes behind it, and has room in no more than the half.
        let room = target.saturating_sub(fixed).min(shrinks);
        let budget = self.most.min(room.saturating_sub(self.brief.reserve().min(room / 2)));
        let digest = write::write(&self.facts(cut, kept), budget, counter).filter(|_| goes > 0);
        let plan = match &digest {
            Some(digest) => self.build(cut, kept, trim, Some(digest))?,
            // Nothing goes, so there is nothing to tell of.
            None if goes == 0 => self.build(cut, kept, trim, None)?,
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

    fn build(
        &self,
        cut: usize,
        kept: &[Range<Position>],
        trim: Option<TrimOptions>,
        digest: Option<&str>,
    ) -> Result<Plan, StrategyError> {
        let messages = self.thread.messages();
        let plan = match digest.filter(|_| cut > 0) {
            Some(digest) => {
                let compaction = self.brief.compaction;
                let summary = Summary { compaction, ..Summary::new(digest) };
                let insert = vec![Message::summary(Role::User, summary)];
                let edits = tail::take_all_but(kept.to_vec(), cut, insert);
                let plan = Plan::from_edits(messages, edits, &CompactOptions::default())?;
                self.thread.stamped(plan, self.brief)
            }
            // Reasoning goes with every edit, and so it does where nothing is cut off.
            None => {
                let start = Position::before(0);
                let nothing = Edit { range: start..start, insert: Vec::new() };
                Plan::from_edits(messages, vec![nothing], &CompactOptions::default())?
            }
        };
        let trimmed = trim.map(|options| trim_after(&plan, messages, &options, None).plan);
        Ok(trimmed.unwrap_or(plan))
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
    fn check_worth(&self, cut: usize, kept: &[Range<Position>]) -> Result<(), StrategyError> {
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
