//! `digest`: fills the target without a model.

use std::{cell::OnceCell, sync::Arc};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::{
    ask::Ask,
    contract::CompactionStrategy,
    error::Result,
    fill::{self, Fill, Length, Reading, shape},
    proposal::Proposal,
    snapshot::Snapshot,
    tail::{self, Candidate, TailRequest, is_marker, nothing, trim_least, typed_ranges},
    typed::{Typed, percent_of},
    view::View,
};
use crate::{
    compact::{Plan, legality},
    ledger::Rule,
    message::{ContentBlock, Message, Role, Summary},
    prose,
    retention::Statements,
    tokens::ByteEstimate,
};

/// Returns the digest of these messages in at most `most` bytes, or `None` if its first line
/// exceeds them.
pub(super) fn of(messages: &[Message], most: usize) -> Option<String> {
    let thread = Snapshot::new(messages.to_vec());
    let candidate = Candidate { cut: messages.len(), kept: Vec::new(), trim: Vec::new() };
    let typed = Typed::all(Statements::of(messages).into());
    let counter = &ByteEstimate::new(1);
    let (thread, candidate, typed, budget) = (&thread, &candidate, &typed, most as u64);
    let said = typed.room(budget, budget, counter);
    let (lent, length, account) = (0, Length::Needed, None);
    let fill = Fill { thread, candidate, typed, budget, lent, length, said, account, counter };
    fill::write(&Reading::of(messages), &fill)
}

/// Returns the cut before which a model is to summarise, if its summary will have about this many
/// tokens: what follows fills its share of the target. `None` if the user's words need the target.
pub(super) fn cut_beside(task: &View, summary_tokens: u64) -> Option<usize> {
    let (task, unmarked) = (marked(task), task.thread.messages());
    let job = DigestJob { tail: BESIDE, ..DigestJob::new(&task, unmarked, u64::MAX) };
    let tail = job.tail_room(summary_tokens)?;
    job.cut_within(&job.cuts(), tail).map(|(cut, _)| cut)
}

/// The task with results in user messages marked as untyped. The blocks are the same, so a plan for
/// the marked thread fits the thread itself.
fn marked(task: &View) -> View {
    let mut marked = task.clone();
    if let Some(messages) = shape::marked(task.thread.messages()) {
        marked.thread.messages = Arc::new(messages);
    }
    marked
}

/// The tokens that a model's summary of the messages before a cut takes at most: a share of the
/// target, and most of what the shortest end of the thread and the user's texts leave. No limit
/// without a target.
pub(super) fn summary_room(task: &View, cut: usize) -> u64 {
    let Some(target) = task.missed_target() else { return u64::MAX };
    let most = percent_of(target, SUMMARY);
    let (marked, unmarked) = (marked(task), task.thread.messages());
    let job = DigestJob::new(&marked, unmarked, u64::MAX);
    let shortest = job.cuts().into_iter().map(|(at, _)| at).find(|at| *at <= cut);
    let fixed = shortest.and_then(|at| job.fixed(&job.candidate(at)).ok()).unwrap_or(0);
    match percent_of(target.saturating_sub(fixed), 90) {
        // Beside what stays there is no room, so it cannot stay.
        0 => most,
        left => left.min(most),
    }
}

/// Returns the plan that fills the target beside a model's summary of everything before the cut.
/// `None` if the summary leaves too little room.
pub(super) fn filled_beside(task: &View, summary: &Summary, cut: usize) -> Option<Plan> {
    let (marked, unmarked) = (marked(task), task.thread.messages());
    let account = Some(Account { summary, cut });
    let job = DigestJob { account, tail: BESIDE, ..DigestJob::new(&marked, unmarked, u64::MAX) };
    let whole = job.filled()?;
    // A model's summary omits facts that an account made from the thread has.
    let lacking = task.thread.lacking(&whole, &task.brief).min(job.target / FACTS);
    let smaller = DigestJob { target: job.target.saturating_sub(lacking), ..job };
    Some(if lacking > 0 { smaller.filled().unwrap_or(whole) } else { whole })
}

/// The part of a target that is left free for facts that a model's summary lacks.
const FACTS: u64 = 20;

/// Returns the plan of a fresh window: of the thread stays what the model has not read, or else its
/// last answer, beside an account of everything before it with at most this many tokens and what the
/// user typed.
///
/// # Errors
///
/// Those of [`Digest`], which takes over where the target leaves too little room.
pub(super) fn fresh(view: &View, tokens: u64) -> Result<Plan> {
    let task = marked(view);
    let View { thread, brief } = &task;
    let typed = Typed::new(thread.statements(), thread, brief, []);
    let said = thread.counter().text(&typed.list(u64::MAX, thread.counter()));
    let most = tokens.saturating_add(said);
    let job = DigestJob { tail: 0, ..DigestJob::new(&task, view.thread.messages(), most) };
    if task.missed_target().is_none() {
        task.check_need()?;
        let cut = job.cut_within(&job.cuts(), 0).map_or(0, |(cut, _)| cut);
        job.check_worth(&job.candidate(cut))?;
    }
    job.filled().map_or_else(|| Digest::default().plan(view), Ok)
}

/// Whether a text is a digest.
pub(super) fn is_digest(text: &str) -> bool {
    fill::is_opening(text.lines().next().unwrap_or_default()).is_some()
}

/// The percentage of the target that the newest messages take, without the task and what the user
/// typed.
const TAIL: u64 = 35;

/// The same beside a model's summary, whose question must fit the window with all that is before.
const BESIDE: u64 = 55;

/// The percentage of the target that the list of what the user typed takes at most, unless these are
/// rules, have labels or give values.
const SAID: u64 = 80;

/// The percentage of the target up to which the task stays word for word.
const TASK: u64 = 36;

/// A text of the user of up to this many tokens that stays before the digest is listed there as well,
/// if it has at most this share of the target: a fiftieth.
const LISTED: u64 = 100;
const LISTED_SHARE: u64 = 50;

/// The percentage of the target that a model's summary takes at most. Of a longer one head and tail
/// stay.
const SUMMARY: u64 = 33;

options! {
    /// Fills the target without a model: the newest part of the thread stays word for word, and a
    /// digest replaces the old part. The same thread gives the same digest.
    ///
    /// If the thread is over the target of the brief, what stays is chosen in this order:
    ///
    /// 1. what the model has not read yet, and the newest text that the user typed;
    /// 2. the task, which is the first text that the user typed: word for word if it takes up to 36
    ///    % of the target, else its head and tail, in the digest;
    /// 3. what else the user typed, and what the host said in system messages after the user's first
    ///    text, statement by statement: up to 80 % of the target, more if these are rules, have
    ///    labels or give values. What was quoted or pasted in it stays as such, the newest first, in
    ///    up to 30 % of what is left;
    /// 4. the account: what was said and called, in order, one line for each, with what came of it,
    ///    and the calls that failed last and that no later one mended. The newest lines tell more.
    ///    If not all fit, old calls that only read are left out first;
    /// 5. the newest whole rounds, word for word: about a third of the target, and more if the text
    ///    does not need the rest;
    /// 6. lines with names that nothing else shows (paths, identifiers, numbers, amounts), those
    ///    first that the agent most likely needs again; of lines of one form, such as the rows of a
    ///    table, each further one counts less. What is left gets the step before the kept rounds.
    ///
    /// A digest in the old part is read, so a digest of a digest is one digest. An agent that gets
    /// the outputs of its commands as user messages is recognised by their shape, and they count as
    /// results.
    ///
    /// If the target leaves too little room for that, tool results at the end of the thread are
    /// [trimmed](crate::compact::trim()) to 40 lines and 4,000 bytes, then 12 and 1,000, 3 and 300,
    /// 1 and 100 (the last step includes errors), the newest of them less than the older ones as far
    /// as they fit; then only messages that no cut can remove stay, trimmed in the same way; and if a
    /// next prompt follows, earlier user messages are removed too. So every target is met that
    /// leaves room for the last user message, for open calls and for one line.
    ///
    /// The fields apply to a thread within its target, or without one.
    ///
    /// ```
    /// use threadfold::{Message, strategy::*};
    ///
    /// let mut thread = vec![Message::user("Port the parser to Rust. Never touch the lexer.")];
    /// let done = |step| Message::assistant(format!("Step {step} of the port is done."));
    /// thread.extend((0..40).map(done));
    /// let view = View::new(Snapshot::new(thread), Brief::default());
    /// let strategy = Digest { user_messages: 0, ..Digest::default() };
    /// let proposal = without_model(&strategy, &view)?;
    /// let after = view.thread.accept(&proposal.plan, &view.brief)?;
    /// assert_eq!(after.len(), 1 + 1 + 8);
    /// # Ok::<(), StrategyError>(())
    /// ```
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct Digest {
        /// Number of messages to keep at the end, if they fit the target. More stay if no legal cut
        /// is near.
        pub messages: usize = 8,
        /// Upper limit for their tokens.
        pub tokens: Option<u64> = None,
        /// Number of user messages in the old part that stay word for word.
        pub user_messages: usize = 3,
        /// Upper limit for their tokens together. The newest one stays whatever its size.
        pub user_tokens: u64 = 4_000,
        /// Upper limit for the tokens of the digest.
        pub digest_tokens: u64 = 2_500,
    }
}

#[async_trait]
impl CompactionStrategy for Digest {
    fn name(&self) -> &str {
        "digest"
    }

    async fn propose(&self, view: &View, _: &mut Ask<'_>) -> Result<Proposal> {
        self.proposal(view)
    }
}

impl Digest {
    /// Returns what the strategy proposes; it needs no model.
    pub(super) fn proposal(&self, view: &View) -> Result<Proposal> {
        self.plan(view).map(Proposal::filled)
    }

    fn plan(&self, view: &View) -> Result<Plan> {
        let task = marked(view);
        let most = view.brief.target.map_or(self.digest_tokens, |_| u64::MAX);
        let job = DigestJob::new(&task, view.thread.messages(), most);
        if task.missed_target().is_some()
            && let Some(plan) = job.filled()
        {
            return Ok(plan);
        }
        task.check_need()?;
        let candidates = task.candidates(self.tail_request(&task))?;
        let is_over = task.missed_target().is_some();
        let length = if view.brief.target.is_some() { Length::Full } else { Length::Needed };
        let mut failed = None;
        for candidate in &candidates {
            let worth = if is_over { Ok(()) } else { job.check_worth(candidate) };
            match worth.and_then(|()| job.plan(candidate, 0, length)) {
                Ok(plan) => return Ok(job.with_whole_results(candidate).unwrap_or(plan)),
                // The smallest candidate explains best why a target is missed, and the requested
                // one why nothing is removed from a thread within its target.
                Err(error) if is_over => failed = Some(error),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or_else(|| nothing("nothing was tried".to_owned()), Err)
    }

    fn tail_request(&self, task: &View) -> TailRequest {
        let View { thread, brief } = task;
        let target = task.missed_target().unwrap_or(u64::MAX);
        // The digest and the last user message must fit beside the tail.
        let last = thread.messages().iter().rev().find(|message| message.is_typed());
        let last = last.map_or(0, |message| thread.counter().message(message));
        let digest = self.digest_tokens.min(target / 3);
        let reserved = [digest, last, brief.reserve(), thread.stamp_tokens()];
        TailRequest {
            messages: self.messages,
            tokens: self.tokens,
            user_messages: self.user_messages,
            user_tokens: self.user_tokens,
            reserved: reserved.into_iter().fold(0, u64::saturating_add),
            shrinks_when_asked: true,
        }
    }
}

struct DigestJob<'a> {
    task: &'a View,
    /// The tokens of the compacted thread at most.
    target: u64,
    /// Upper limit for the tokens of the digest; the target applies too.
    most: u64,
    /// The percentage of the target that the newest messages take. With 0 only those stay that no
    /// cut can remove, and the last one.
    tail: u64,
    /// What the user typed.
    statements: Arc<Statements>,
    /// The messages before results in user messages were marked.
    unmarked: &'a [Message],
    /// What they say, read once for all texts that are tried. A mark would hide what is a result.
    reading: OnceCell<Reading>,
    /// The summary of a model, which stands in place of an account that is made from the thread.
    account: Option<Account<'a>>,
}

/// A model's summary of the messages before a cut.
#[derive(Clone, Copy)]
struct Account<'a> {
    summary: &'a Summary,
    cut: usize,
}

impl<'a> DigestJob<'a> {
    fn new(task: &'a View, unmarked: &'a [Message], most: u64) -> Self {
        let (statements, target) =
            (task.thread.statements(), task.brief.target.unwrap_or(u64::MAX));
        let (reading, account, tail) = (OnceCell::new(), None, TAIL);
        Self { most, tail, statements, unmarked, reading, account, target, task }
    }

    /// Returns the plan that fills the target: the task and the newest whole rounds stay word for
    /// word, and a digest takes what they leave. `None` if they leave too little.
    fn filled(&self) -> Option<Plan> {
        /// How often a longer tail is tried.
        const TRIES: usize = 3;
        let thread = &self.task.thread;
        let account = self.account.map_or(0, |it| thread.counter().text(&it.summary.text));
        let mut tail = self.tail_room(account)?;
        let cuts = self.cuts();
        let (mut best, mut first) = (None, None);
        for _ in 0..TRIES {
            let Some((cut, tokens)) = self.cut_within(&cuts, tail) else { break };
            let lent = tokens.saturating_sub(*first.get_or_insert(tokens));
            let candidate = self.candidate(cut);
            let is_longer = best.is_some();
            if best.is_some_and(|(best, _)| best == cut)
                || is_longer && !self.holds_said(&candidate)
            {
                break;
            }
            let Ok(plan) = self.plan(&candidate, lent, Length::Needed) else { break };
            best = Some((cut, lent));
            if self.tail == 0 {
                break;
            }
            // What the text does not need is room for more rounds.
            let left = self.target.saturating_sub(thread.tokens_after(&plan).ok()?);
            tail = tokens.saturating_add(left);
        }
        let (cut, lent) = best?;
        self.plan(&self.candidate(cut), lent, Length::Full).ok()
    }

    /// The cuts with the tokens of the messages after them, the shortest tail first. No cut is
    /// within what the model has not read, nor after a result in a user message that is the last one:
    /// for everybody else the user typed it. Without a share for the tail, one message stays at
    /// least: what the user types next answers it.
    fn cuts(&self) -> Vec<(usize, u64)> {
        let bare = self.task.thread.without_reasoning();
        let messages = bare.messages();
        let unread = legality::unread_from(messages);
        let points = legality::cut_points(messages);
        let mut cuts = Vec::new();
        let (mut tokens, mut from) = (0_u64, messages.len());
        let latest =
            if self.tail == 0 { unread.min(messages.len().saturating_sub(1)) } else { unread };
        let [shown, marked] = [self.unmarked, self.task.thread.messages()]
            .map(|messages| messages.iter().rposition(Message::is_typed));
        let latest = if shown == marked { latest } else { latest.min(shown.unwrap_or(latest)) };
        // A result in a user message stays with the answer that asked for it.
        let is_result = |cut: &usize| {
            let [shown, marked] = [self.unmarked, self.task.thread.messages()]
                .map(|messages| messages.get(*cut).is_some_and(|message| message.untyped));
            marked && !shown
        };
        let whole: Vec<usize> = points.iter().copied().filter(|cut| !is_result(cut)).collect();
        let points =
            if whole.iter().any(|cut| (1..=latest).contains(cut)) { whole } else { points };
        for cut in points.into_iter().rev().filter(|cut| (1..=latest).contains(cut)) {
            let more = messages.get(cut..from).unwrap_or_default();
            let more = more.iter().map(|message| bare.counter().message(message));
            tokens = more.fold(tokens, u64::saturating_add);
            from = cut;
            cuts.push((cut, tokens));
        }
        cuts
    }

    /// The longest tail within this many tokens, else the shortest one. What a model did not
    /// summarise stays.
    fn cut_within(&self, cuts: &[(usize, u64)], tokens: u64) -> Option<(usize, u64)> {
        let latest = self.account.map_or(usize::MAX, |account| account.cut);
        let mut cuts = cuts.iter().copied().filter(|(cut, _)| *cut <= latest);
        let shortest = cuts.next();
        cuts.rfind(|(_, tail)| *tail <= tokens).or(shortest)
    }

    /// The tokens of the tail: a share of what the task, the user's words and a summary leave. `None`
    /// if the user's words need most of the target: neither the task nor the end then gets a share.
    fn tail_room(&self, summary: u64) -> Option<u64> {
        let Self { task: View { thread, brief }, target, tail, .. } = *self;
        if tail == 0 {
            return Some(0);
        }
        if thread.typed_need(brief) > target / 2 {
            return None;
        }
        let typed = Typed::new(Arc::clone(&self.statements), thread, brief, []);
        let said = thread.counter().text(&typed.list(percent_of(target, SAID), thread.counter()));
        let said = said.max(thread.typed_need(brief).min(target / 2));
        let task = self.first_typed().map_or(0, |index| self.typed_tokens(index));
        let task = task.min(percent_of(target, TASK));
        let fixed = [task, said, summary, thread.notes_need(brief)];
        let left = target.saturating_sub(fixed.into_iter().fold(0, u64::saturating_add));
        Some(percent_of(left, tail))
    }

    /// The first message that the user typed, unless an earlier digest shows another one as the task.
    fn first_typed(&self) -> Option<usize> {
        let messages = self.task.thread.messages();
        let first = messages.iter().position(Message::is_typed)?;
        let mut summaries = messages.iter().flat_map(Message::summaries);
        let has_task = summaries.any(|it| it.text.lines().any(|line| line == prose::TASK));
        (!has_task).then_some(first)
    }

    fn typed_tokens(&self, index: usize) -> u64 {
        let thread = &self.task.thread;
        thread.messages().get(index).map_or(0, |message| {
            let tokens = message.typed_content().map(|block| thread.counter().block(block));
            tokens.fold(0, u64::saturating_add)
        })
    }

    /// What stays with this cut: the task, if it takes little enough of the target, and the
    /// newest text that the user typed.
    fn candidate(&self, cut: usize) -> Candidate {
        let newest = self.task.with_newest(cut, None);
        let first =
            self.first_typed().filter(|index| *index < cut && !newest.keeps_part_of(*index));
        let Some(first) =
            first.filter(|index| self.typed_tokens(*index) <= percent_of(self.target, TASK))
        else {
            return newest;
        };
        let message = self.task.thread.messages().get(first);
        let task = message.map(|message| typed_ranges(first, message)).unwrap_or_default();
        let mut kept: Vec<_> = task.into_iter().chain(newest.kept.clone()).collect();
        kept.sort_unstable_by_key(|range| range.start);
        Candidate { kept, ..newest }
    }

    /// Whether all that the user typed, the rules and a model's summary fit beside what stays.
    fn holds_said(&self, candidate: &Candidate) -> bool {
        let counter = self.task.thread.counter();
        let account = self.account.map_or(0, |it| counter.text(&it.summary.text));
        let typed = counter.text(&self.typed_beside(candidate).list(u64::MAX, counter));
        let rules: Vec<&Rule> = self.task.thread.rules().active().collect();
        let needed = account.saturating_add(typed).saturating_add(self.list_tokens(&rules));
        let fixed = self.fixed(candidate).unwrap_or(u64::MAX);
        needed <= percent_of(self.target.saturating_sub(fixed), 90)
    }

    /// The tokens of the thread without the text of the digest, with the list of notes.
    fn fixed(&self, candidate: &Candidate) -> Result<u64> {
        // With a digest of one character, everything else has its final size.
        let frame = self.build(candidate, Some("."))?;
        let View { thread, brief } = self.task;
        let tokens = thread.tokens_after(&frame)?.saturating_add(thread.notes_need(brief));
        Ok(tokens.saturating_sub(thread.counter().text(".")))
    }

    /// What the user typed, without what stays and the rules.
    fn typed_beside(&self, candidate: &Candidate) -> Typed {
        let View { thread, brief } = self.task;
        let (before, after) = thread.split_at(candidate.cut);
        let mut typed = Typed::new(Arc::clone(&self.statements), thread, brief, after);
        let kept = before.iter().enumerate().filter(|(at, _)| candidate.keeps_part_of(*at));
        // A short text is listed too: it came after what the list has.
        let task = self.first_typed();
        let most = LISTED.min(self.target / LISTED_SHARE);
        let is_short = |index: usize| self.typed_tokens(index) <= most;
        let stated = kept.filter(|(index, _)| Some(*index) == task || !is_short(*index));
        stated.for_each(|(_, message)| typed.skip_kept(message));
        typed
    }

    /// The tokens of a list of these rules with its title; 0 without rules.
    fn list_tokens(&self, rules: &[&Rule]) -> u64 {
        const TITLE: u64 = 60;
        let counter = self.task.thread.counter();
        let rules = rules.iter().map(|rule| counter.text(&rule.text).saturating_add(3));
        let rules = rules.fold(0, u64::saturating_add);
        if rules > 0 { rules.saturating_add(TITLE) } else { 0 }
    }

    /// Returns the plan that replaces everything before the cut, except the kept blocks, with a
    /// digest, and trims the messages after the cut. What is `lent` to more rounds does not make the
    /// sections of the digest smaller.
    fn plan(&self, candidate: &Candidate, lent: u64, length: Length) -> Result<Plan> {
        let Self { task: View { thread, brief }, target, .. } = *self;
        let (counter, before) = (thread.counter(), thread.size());
        let fixed = self.fixed(candidate)?;
        let goes = self.removed_tokens(candidate, |_, _| true);
        let whole = target.min(before.saturating_sub(1)).saturating_sub(fixed);
        let typed = self.typed_beside(candidate);
        // The list of rules is added when the plan is settled. If it does not fit beside the other
        // words of the user, the rules that the user typed are the first of these.
        let active: Vec<&Rule> = thread.rules().active().collect();
        let rules = self.list_tokens(&active);
        let others = counter.text(&typed.list(u64::MAX, counter));
        let (typed, rules) = match rules.saturating_add(others) <= percent_of(whole, SAID) {
            true => (typed, rules),
            false => {
                let (said, given): (Vec<_>, Vec<_>) =
                    active.into_iter().partition(|rule| typed.states(rule));
                (typed.with_rules(&said), self.list_tokens(&given))
            }
        };
        let typed = &typed;
        let room = whole.saturating_sub(rules);
        // A digest must not be longer than its source, apart from the first line.
        let line = counter.text(&fill::opening(candidate.cut));
        let budget = self.most.min(room).min(goes.saturating_sub(1).max(line));
        let said = percent_of(target.min(before), SAID).max(typed.worth(counter));
        let said = said.min(budget / 10 * 9);
        let account = self.account.map(|account| account.summary.text.as_str());
        let fill = Fill { thread, candidate, typed, budget, lent, length, said, account, counter };
        let read = || Reading::of(&thread.without_note_calls(self.unmarked));
        let reading = self.reading.get_or_init(read);
        let digest = fill::write(reading, &fill).filter(|_| goes > 0);
        let plan = match &digest {
            Some(digest) => self.build(candidate, Some(digest))?,
            // Nothing is removed: this candidate only trims.
            None if goes == 0 => self.build(candidate, None)?,
            None => return self.no_room(candidate, fixed),
        };
        if plan.messages_after() == 0 && brief.next_prompt.is_none() {
            let reason = "all that it holds are reminders and reasoning, and nothing would be left";
            return nothing(reason.to_owned());
        }
        let after = thread.tokens_after(&plan)?;
        if after > target || after >= before {
            return self.no_room(candidate, after);
        }
        Ok(plan)
    }

    /// Returns the plan for a candidate that trims results, with the newest of them whole as far as
    /// they fit. `None` if it trims none, or all must be trimmed.
    fn with_whole_results(&self, candidate: &Candidate) -> Option<Plan> {
        let tail = self.task.thread.messages().len().saturating_sub(candidate.cut);
        trim_least(*candidate.trim.last()?, tail, |trim| {
            self.plan(&Candidate { trim, ..candidate.clone() }, 0, Length::Full).ok()
        })
    }

    fn build(&self, candidate: &Candidate, digest: Option<&str>) -> Result<Plan> {
        let insert = digest.filter(|_| candidate.cut > 0).map(|text| {
            let segments = self.account.map(|account| account.summary.segments.clone());
            let segments = segments.unwrap_or_default();
            let summary = Summary { segments, ..self.task.summary(text) };
            Message::summary(Role::User, summary)
        });
        candidate.plan(self.task, insert.into_iter().collect())
    }

    /// The tokens of the blocks before the cut that are not kept and for which `counts` is `true`.
    /// `counts` gets the index of the message and the block.
    fn removed_tokens(
        &self,
        candidate: &Candidate,
        counts: impl Fn(usize, &ContentBlock) -> bool,
    ) -> u64 {
        let mut tokens: u64 = 0;
        let (head, _) = self.task.thread.split_at(candidate.cut);
        for (message, parts) in head.iter().enumerate() {
            for (block, content) in parts.content.iter().enumerate() {
                if !candidate.keeps(message, block) && counts(message, content) {
                    tokens = tokens.saturating_add(self.task.thread.counter().block(content));
                }
            }
        }
        tokens
    }

    /// Rejects a digest of little more than an earlier summary.
    fn check_worth(&self, candidate: &Candidate) -> Result<()> {
        let (head, _) = self.task.thread.split_at(candidate.cut);
        // User messages before a summary were kept when it was made, so they are not new.
        let last = head.iter().rposition(Message::is_summary).unwrap_or(0);
        let goes = self.removed_tokens(candidate, |index, block| {
            let kept_once = index < last && head.get(index).is_some_and(Message::is_typed);
            !is_marker(block) && !kept_once
        });
        if goes > tail::MIN_TOKENS {
            return Ok(());
        }
        nothing(format!(
            "about {goes} tokens before the end are in no summary, which is not worth a compaction"
        ))
    }

    fn no_room(&self, candidate: &Candidate, stays: u64) -> Result<Plan> {
        let messages = self.task.thread.messages();
        let counter = self.task.thread.counter();
        let (_, end) = self.task.thread.split_at(candidate.cut);
        let typed = candidate
            .kept
            .iter()
            .filter_map(|range| messages.get(range.start.message)?.content.get(range.start.block));
        let typed: u64 = typed.map(|block| counter.block(block)).fold(0, u64::saturating_add);
        let most = self.task.brief.target.unwrap_or(self.task.thread.size());
        let mut parts = Vec::new();
        if !end.is_empty() {
            let tokens = counter.messages(end);
            let last = match end.len() {
                1 => "message, which no cut can remove, has".to_owned(),
                some => format!("{some} messages, which no cut can remove, have"),
            };
            parts.push(format!("the last {last} {tokens}"));
        }
        if typed > 0 {
            parts.push(format!("the user's newest texts, which stay word for word, have {typed}"));
        }
        nothing(format!(
            "about {stays} tokens of messages would stay, and the target is {most}: {}. A larger target \
             or window would help, or shorter messages",
            parts.join("; ")
        ))
    }
}
