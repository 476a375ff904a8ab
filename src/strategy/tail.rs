//! Chooses what stays of a thread: how much of its end, and which earlier messages word for word.
//!
//! A strategy requests a tail of some length. If the target leaves too little room, the tail
//! shrinks: [`View::candidates`] lists them from the requested one down to the smallest, and a
//! strategy takes the first with which its plan meets the target.
//!
//! A fixed number of messages would fail if a few of them are long, so there is one list of tails
//! for all strategies. Cuts are looked for in the thread as the compaction will leave it: the
//! compaction strips reasoning after its first change, which can allow a cut that was not possible
//! before. Otherwise a second compaction would find more to remove than the first.

use std::ops::Range;

use super::{
    brief::Brief,
    error::{Result, StrategyError},
    snapshot::Snapshot,
    typed::Typed,
    view::View,
};
use crate::{
    compact::{CompactOptions, Plan, Position, TrimToolResults, legality, trim, trim_after},
    message::{ContentBlock, Message, Role, Summary},
    retention::RetentionPolicy,
};

/// A plan that removes at most this many tokens is not worth a summary.
pub(super) const MIN_TOKENS: u64 = 100;

/// One choice of what stays of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    /// Everything from this message on stays.
    pub(super) cut: usize,
    /// Blocks before the cut that stay word for word, in order.
    pub(super) kept: Vec<Range<Position>>,
    /// How tool results after the cut are trimmed: the hardest step first, each of what is older than
    /// its recent messages.
    pub(super) trim: Vec<TrimToolResults>,
}

/// What should stay, if there is room.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TailRequest {
    /// Number of messages at the end.
    pub(super) messages: usize,
    /// Upper limit for their tokens.
    pub(super) tokens: Option<u64>,
    /// Number of earlier user messages to keep.
    pub(super) user_messages: usize,
    /// Upper limit for their tokens.
    pub(super) user_tokens: u64,
    /// Tokens of the target to leave free for everything else.
    pub(super) reserved: u64,
    /// Whether to keep fewer messages if the user requested a compaction and otherwise all would
    /// stay.
    pub(super) shrinks_when_asked: bool,
}

impl View {
    /// Returns the [candidates](Self::candidates) that remove enough to be worth a model call, at
    /// least one.
    ///
    /// # Errors
    ///
    /// [`StrategyError::NothingToCompact`], for the first candidate.
    pub(super) fn worthwhile(&self, request: TailRequest) -> Result<Vec<Candidate>> {
        let (mut found, mut worthless) = (Vec::new(), None);
        for candidate in self.candidates(request)? {
            match self.check_worth(&candidate, MIN_TOKENS) {
                Ok(()) => found.push(candidate),
                Err(error) => worthless = worthless.or(Some(error)),
            }
        }
        worthless.filter(|_| found.is_empty()).map_or(Ok(found), Err)
    }

    /// Returns the candidates from the requested one down to the smallest, at least one.
    ///
    /// For a thread over its target, each candidate keeps less than the one before:
    ///
    /// 1. the tail for which the target has room, and the last turn in any case if its tool results
    ///    can be trimmed, because a trimmed turn keeps more than a summary of it;
    /// 2. the same with only the newest user message before the cut;
    /// 3. the same with tool results trimmed, harder and harder;
    /// 4. a tail without the last turn, whole and then trimmed;
    /// 5. only the messages that no cut can remove, whole and then trimmed;
    /// 6. if a next prompt follows, the same without the user's earlier messages.
    ///
    /// # Errors
    ///
    /// [`StrategyError::NothingToCompact`] if the thread is within its target and the tail is all
    /// of it.
    pub(super) fn candidates(&self, request: TailRequest) -> Result<Vec<Candidate>> {
        let Self { thread: snapshot, brief } = self;
        let bare_task = self.with_thread(snapshot.without_reasoning());
        let bare = &bare_task.thread;
        let Some(target) = self.missed_target() else { return self.within_target(bare, request) };
        let typed_need = snapshot.typed_need(brief).saturating_sub(brief.reserve()).min(target / 2);
        let notes_need = snapshot.notes_need(brief);
        let reserved = request.reserved.saturating_add(typed_need).saturating_add(notes_need);
        let room = target - reserved.min(target - target / 10);
        let tokens = request.tokens.map_or(room, |tokens| tokens.min(room));
        let points = bare.past_cuts();
        let end = at_or_before(&points, snapshot.messages().len());
        let before_last = at_or_before(&points, snapshot.messages().len().saturating_sub(1));
        // The last turn stays unless it consists of answers only: tool results can be trimmed to
        // fit, and the user's newest message always stays, but a text answer can only be removed.
        let mut newest = bare.messages().iter().skip(before_last).map(|message| message.role);
        let ends_in_words = before_last < end && newest.all(|role| role == Role::Assistant);
        let latest = if ends_in_words { end } else { before_last };
        // If the user's earlier messages are listed after the summary, few of them need to stay
        // whole.
        let share = if typed_need > 0 { 16 } else { 4 };
        let user_tokens = request.user_tokens.min(target / share);
        let fits = first_within(bare, Some(tokens));
        let cuts = self.lengths(request).map(|length| cut(&points, bare, length, fits));
        // A plan that only trims leaves no summary, so a repeated request would treat the thread as
        // not yet compacted.
        let worthwhile = cuts.clone().find(|cut| {
            let kept = bare_task.candidate(latest.min(*cut), request.user_messages, user_tokens);
            bare_task.check_worth(&kept, MIN_TOKENS).is_ok()
        });
        let shortest = worthwhile.or(cuts.min()).unwrap_or(end);
        let first = latest.min(shortest);
        let mut all = self.shrinking(first, request.user_messages, user_tokens);
        for cut in [shortest, end] {
            all.extend([None, Some(HARDEST)].map(|trim| self.with_newest(cut, trim)));
        }
        if brief.next_prompt.is_some() {
            // With a next prompt, the messages typed before it need not stay and may be too long.
            let trims = [None, Some(HARDEST)];
            all.extend(trims.map(|trim| {
                let trim = trim.into_iter().collect();
                Candidate { cut: end, kept: Vec::new(), trim }
            }));
        }
        all.dedup();
        Ok(all)
    }

    /// Returns the cut for a compaction after which everything stays exactly as it is, so that a
    /// provider keeps the reasoning there. It is near the requested length, or at the user's newest
    /// message if that is earlier and there is room. The messages before and after it have different
    /// roles, unless a provider's compaction is before it, and a system message is not the first
    /// after it, as Anthropic demands.
    ///
    /// # Errors
    ///
    /// [`StrategyError::NothingToCompact`] if too little is before every such cut, or only a
    /// provider's compaction.
    pub(super) fn untouched_cut(&self, request: TailRequest) -> Result<usize> {
        let thread = &self.thread;
        let messages = thread.messages();
        let role = |at: usize| messages.get(at).map(|message| message.role);
        let mut points = thread.past_cuts();
        points.retain(|at| {
            let before = at.checked_sub(1).and_then(|before| messages.get(before));
            // A compaction was put before what stays, whatever its role.
            let differs =
                before.is_none_or(|it| it.holds_compaction() || Some(it.role) != role(*at));
            differs && (*at == 0 || role(*at) != Some(Role::System))
        });
        let room = self.missed_target().map(|target| target.saturating_sub(request.reserved));
        let tokens = request.tokens.into_iter().chain(room).min();
        let first = first_within(thread, tokens);
        let typed = messages.iter().rposition(Message::is_typed).filter(|typed| *typed >= first);
        let mut worthless = None;
        for length in self.lengths(request) {
            let cut = cut(&points, thread, length, first);
            let with_typed = typed.map_or(cut, |typed| cut.min(at_or_before(&points, typed)));
            for cut in [with_typed, cut] {
                // A compaction of a compaction alone would only lose something.
                if cut > 0 && messages.iter().take(cut).all(Message::holds_compaction) {
                    return nothing("the provider has compacted it already".to_owned());
                }
                let candidate = Candidate { cut, kept: Vec::new(), trim: Vec::new() };
                match self.check_worth(&candidate, MIN_TOKENS) {
                    Ok(()) => return Ok(cut),
                    Err(error) => worthless = worthless.or(Some(error)),
                }
            }
        }
        worthless.map_or_else(|| nothing("all of it stays".to_owned()), Err)
    }

    /// Returns the candidate that cuts before this message and keeps the blocks that the user typed
    /// in the last `count` user messages before it, up to `tokens` tokens together. The newest user
    /// message of the whole thread always stays. A checkpoint at the end of a kept message stays
    /// with it. So does the latest compaction that a provider made for the host: nobody can read what
    /// it says.
    pub(super) fn candidate(&self, cut: usize, count: usize, tokens: u64) -> Candidate {
        let snapshot = &self.thread;
        let mut left = tokens;
        let mut must_stay = !snapshot.messages().iter().skip(cut).any(Message::is_typed);
        let count = count.max(usize::from(must_stay));
        let head = snapshot.messages().iter().enumerate().take(cut);
        let typed = head.rev().filter(|(_, message)| message.is_typed()).take(count);
        let mut kept: Vec<(usize, &Message)> = Vec::new();
        for (index, message) in typed {
            let size: u64 =
                message.typed_content().map(|block| snapshot.counter().block(block)).sum();
            if size > left && !must_stay {
                break;
            }
            must_stay = false;
            left = left.saturating_sub(size);
            kept.push((index, message));
        }
        let kept = kept.into_iter().flat_map(|(index, message)| typed_ranges(index, message));
        let brought = snapshot.brought_compaction(cut);
        let mut kept: Vec<Range<Position>> = kept.chain(brought).collect();
        kept.sort_unstable_by_key(|range| range.start);
        Candidate { cut, kept, trim: Vec::new() }
    }

    /// Returns the candidates with this cut, each of which keeps less than the one before: with the
    /// last `count` user messages before the cut, with the newest one, and with results trimmed.
    pub(super) fn shrinking(&self, cut: usize, count: usize, tokens: u64) -> Vec<Candidate> {
        let mut all = vec![self.candidate(cut, count, tokens), self.with_newest(cut, None)];
        all.extend(STEPS.map(|step| self.with_newest(cut, Some(step))));
        all.dedup();
        all
    }

    /// Returns the candidate that keeps only the user's newest message before the cut.
    pub(super) fn with_newest(&self, cut: usize, trim: Option<TrimToolResults>) -> Candidate {
        Candidate { trim: trim.into_iter().collect(), ..self.candidate(cut, 1, 0) }
    }

    /// The candidates for a thread within its target.
    fn within_target(&self, bare: &Snapshot, request: TailRequest) -> Result<Vec<Candidate>> {
        let snapshot = &self.thread;
        let most = snapshot.unread_from();
        let points = bare.past_cuts();
        let fits = first_within(bare, request.tokens);
        let mut all = Vec::new();
        for length in self.lengths(request) {
            let cut = cut(&points, bare, length, fits);
            if (1..=most).contains(&cut) {
                all.push(self.candidate(cut, request.user_messages, request.user_tokens));
            }
        }
        all.dedup();
        if all.is_empty() {
            let (messages, count) = (request.messages, snapshot.messages().len());
            return nothing(format!(
                "the last {messages} messages stay, and the thread has {count}"
            ));
        }
        Ok(all)
    }

    /// The lengths of the tail to try. If the user asked for the first compaction of the thread,
    /// each is half of the one before, because the user expects that something is removed.
    fn lengths(&self, request: TailRequest) -> impl Iterator<Item = usize> + Clone + use<> {
        // A repeated request must not shrink an already compacted thread further.
        let is_fresh = !self.thread.messages().iter().any(Message::is_summary);
        let shrinks = request.shrinks_when_asked && self.brief.reason.is_manual() && is_fresh;
        std::iter::successors(Some(request.messages), move |length| {
            (shrinks && *length > 0).then_some(*length / 2)
        })
    }

    /// Returns the first plan that meets the target of the brief, else the smallest one.
    ///
    /// # Errors
    ///
    /// Those of `build`, and [`StrategyError::NothingToCompact`] if there are no candidates.
    pub(super) fn first_within_target(
        &self,
        candidates: &[Candidate],
        build: impl Fn(&Candidate) -> Result<Plan>,
    ) -> Result<Plan> {
        let target = self.brief.target.unwrap_or(u64::MAX);
        let mut smallest: Option<(u64, Plan)> = None;
        for candidate in candidates {
            let plan = build(candidate)?;
            let tokens = self.thread.tokens_after(&plan)?;
            if tokens <= target {
                return Ok(plan);
            }
            if smallest.as_ref().is_none_or(|(least, _)| tokens < *least) {
                smallest = Some((tokens, plan));
            }
        }
        match smallest {
            Some((_, plan)) => Ok(plan),
            None => nothing("all of it stays".to_owned()),
        }
    }

    /// Returns the plan with the tool results that it keeps trimmed until the target is met, or as
    /// far as possible.
    ///
    /// # Errors
    ///
    /// [`StrategyError::Rejected`] if the plan was made for another thread.
    pub(super) fn fitted(&self, mut plan: Plan) -> Result<Plan> {
        let target = self.brief.target.unwrap_or(u64::MAX);
        for step in &STEPS {
            if self.thread.tokens_after(&plan)? <= target {
                break;
            }
            plan = self.thread.trimmed_after(&plan, step);
        }
        Ok(plan)
    }

    /// Rejects an edit that removes fewer tokens than its replacement is likely to cost. In a
    /// thread within its target an earlier summary does not count as removable: each summary of a
    /// summary loses something.
    ///
    /// # Errors
    ///
    /// [`StrategyError::NothingToCompact`], with the number of removable tokens.
    pub(super) fn check_worth(&self, candidate: &Candidate, least: u64) -> Result<()> {
        let (counter, needed) = (self.thread.counter(), self.missed_target().is_some());
        let mut goes: u64 = 0;
        for (index, message) in self.thread.messages().iter().enumerate().take(candidate.cut) {
            goes = goes.saturating_add(match self.removed_beside(index, message, candidate) {
                Some(tokens) => tokens,
                None if needed || !message.is_summary() => counter.message(message),
                None => 0,
            });
            if goes > least {
                return Ok(());
            }
        }
        nothing(format!("a compaction would remove only about {goes} tokens"))
    }

    /// The tokens of the removed blocks of a message that is partly kept; `None` if none of it is
    /// kept.
    fn removed_beside(
        &self,
        index: usize,
        message: &Message,
        candidate: &Candidate,
    ) -> Option<u64> {
        if !candidate.keeps_part_of(index) {
            return None;
        }
        let blocks = message.content.iter().enumerate();
        // Markers beside kept text do not count as savings.
        let removed =
            blocks.filter(|(block, it)| !candidate.keeps(index, *block) && !is_marker(it));
        let tokens = removed.map(|(_, block)| self.thread.counter().block(block));
        Some(tokens.fold(0, u64::saturating_add))
    }

    /// Returns the message of a summary. If the agent is at work and the summary will be the end of
    /// the thread, the message asks it to continue, because a summary alone asks for nothing.
    pub(super) fn summary_message(&self, summary: Summary, is_last: bool) -> Message {
        let mut content = vec![ContentBlock::from(summary)];
        let at_work = legality::open_loop(self.thread.messages()).is_some();
        if is_last && at_work && self.brief.next_prompt.is_none() {
            content.push(ContentBlock::text("Please continue."));
        }
        Message::new(Role::User, content)
    }
}

impl Snapshot {
    /// The positions at which the thread may be cut without a cut in the unread part.
    pub(super) fn past_cuts(&self) -> Vec<usize> {
        let mut points = legality::cut_points(self.messages());
        points.retain(|point| *point <= self.unread_from());
        points
    }

    /// Returns the plan with the results trimmed that it leaves, except those that the model has not
    /// read.
    fn trimmed_after(&self, plan: &Plan, step: &TrimToolResults) -> Plan {
        trim_after(plan, self.messages(), step, &|index| index >= self.unread_from())
    }

    /// The tokens that a list of the rules needs in a summary of its own, at most a quarter of the
    /// target.
    pub(super) fn rules_need(&self, brief: &Brief) -> u64 {
        let adds = brief.retention.as_ref().is_some_and(|policy| policy.addendum_tokens > 0);
        if !adds || self.rules().active().next().is_none() {
            return 0;
        }
        const FRAME: u64 = 60;
        let rules = self.rules().active().map(|rule| self.counter().text(&rule.text));
        let all = rules.fold(FRAME, u64::saturating_add).saturating_add(self.stamp_tokens());
        all.min(brief.target.unwrap_or(u64::MAX) / 4)
    }

    /// The tokens that the rules and the user's most important statements need after a summary.
    pub(super) fn typed_need(&self, brief: &Brief) -> u64 {
        if !brief.retention.as_ref().is_some_and(RetentionPolicy::lists_typed) {
            return 0;
        }
        let counter = self.counter();
        let rules = self.rules().active().map(|rule| counter.text(&rule.text));
        let typed = Typed::new(self.statements(), self, brief, []).worth(counter);
        rules.fold(typed, u64::saturating_add)
    }
}

/// Trims no more than it must: after a step that fits, as many of the newest messages stay whole as
/// fit, then as many of the next as fit are trimmed by each gentler step. `try_it` gets the steps,
/// the hardest first, each with the number of recent messages that it spares, at most `most`. `None`
/// if everything must be trimmed by this step.
pub(super) fn trim_least<T>(
    hardest: TrimToolResults,
    most: usize,
    try_it: impl Fn(Vec<TrimToolResults>) -> Option<T>,
) -> Option<T> {
    let gentler = STEPS.into_iter().filter(|step| step.bytes > hardest.bytes);
    let steps: Vec<TrimToolResults> = gentler.chain([hardest]).collect();
    let mut spared = vec![0; steps.len()];
    let mut best = None;
    for index in 0..steps.len() {
        let from = spared.get(index).copied().unwrap_or(0);
        let with = |more: usize| {
            let spared = spared.iter().enumerate();
            spared.map(|(at, spared)| if at < index { *spared } else { from + more }).collect()
        };
        let found = most_recent(most.saturating_sub(from), |more| {
            let spared: Vec<usize> = with(more);
            let steps = steps.iter().zip(&spared).rev();
            let steps =
                steps.map(|(step, spared)| TrimToolResults { keep_recent: *spared, ..*step });
            try_it(steps.collect()).map(|found| (found, spared))
        });
        if let Some((found, more)) = found {
            (best, spared) = (Some(found), more);
        }
    }
    best
}

/// Returns what `try_it` gives for the largest number of up to `most` recent messages for which it
/// gives anything, in at most log2 `most` + 1 tries. Zero is not tried.
pub(super) fn most_recent<T>(most: usize, try_it: impl Fn(usize) -> Option<T>) -> Option<T> {
    let (mut best, mut fits, mut misses) = (None, 0, most.saturating_add(1));
    while misses - fits > 1 {
        let middle = fits.midpoint(misses);
        match try_it(middle) {
            Some(found) => (best, fits) = (Some(found), middle),
            None => misses = middle,
        }
    }
    best
}

/// Steps of trimming tool results, each harder than the one before.
const STEPS: [TrimToolResults; 4] = [step(40, 4_000), step(12, 1_000), step(3, 300), HARDEST];

/// The last step also trims results of failed calls and drops media.
pub(super) const HARDEST: TrimToolResults =
    TrimToolResults { keep_errors: false, keep_media: false, ..step(1, 100) };

const fn step(lines: usize, bytes: usize) -> TrimToolResults {
    TrimToolResults {
        lines,
        bytes: Some(bytes),
        keep_recent: 0,
        min_bytes: 0,
        keep_errors: true,
        keep_media: true,
    }
}

/// The messages with their tool results trimmed, harder with each item.
pub(super) fn trimmed(messages: &[Message]) -> impl Iterator<Item = Vec<Message>> {
    STEPS.iter().map(|step| trim(messages, step).after_unchecked(messages))
}

/// Returns the legal cut at which the kept tail begins; zero keeps the whole thread. The tail has
/// the last `messages` messages, and more if no cut is near, but none before `first`.
fn cut(points: &[usize], bare: &Snapshot, messages: usize, first: usize) -> usize {
    let by_length = at_or_before(points, bare.messages().len().saturating_sub(messages));
    // If an open call prevents a cut that leaves few enough tokens, use the last cut, which leaves
    // the fewest.
    let by_size = points.iter().find(|point| **point >= first).or(points.last());
    by_size.map_or(by_length, |by_size| by_length.max(*by_size))
}

/// Returns the last of these cut points at or before a position, or 0.
fn at_or_before(points: &[usize], position: usize) -> usize {
    points.iter().copied().take_while(|point| *point <= position).last().unwrap_or(0)
}

/// Returns the first message from which on the thread has at most this many tokens; 0 without a
/// limit.
fn first_within(snapshot: &Snapshot, tokens: Option<u64>) -> usize {
    let Some(mut left) = tokens else { return 0 };
    let mut first = snapshot.messages().len();
    for message in snapshot.messages().iter().rev() {
        let Some(rest) = left.checked_sub(snapshot.counter().message(message)) else { break };
        left = rest;
        first -= 1;
    }
    first
}

/// Whether removing the block does not count as a saving: it is an earlier summary, or a marker
/// that every compaction removes anyway.
pub(super) fn is_marker(block: &ContentBlock) -> bool {
    matches!(
        block,
        ContentBlock::Summary(_) | ContentBlock::Checkpoint(_) | ContentBlock::SystemReminder(_)
    )
}

/// The ranges of the typed blocks of a message, and of the checkpoint at its end.
pub(super) fn typed_ranges(index: usize, message: &Message) -> Vec<Range<Position>> {
    let last = message.content.len().saturating_sub(1);
    let is_stamped = matches!(message.content.last(), Some(ContentBlock::Checkpoint(_)));
    let blocks = message.typed_blocks().chain(is_stamped.then_some(last));
    let starts = blocks.map(|block| Position { message: index, block });
    starts.map(|start| start..Position { block: start.block + 1, ..start }).collect()
}

impl Snapshot {
    /// The block of the latest compaction before a message that a provider made and the host brought:
    /// it has no account beside it, as those that a session asked for have.
    pub(super) fn brought_compaction(&self, before: usize) -> Option<Range<Position>> {
        let head = self.messages().iter().enumerate().take(before);
        let brought = |(_, it): &(usize, &Message)| it.holds_compaction() && !it.is_summary();
        let (message, found) = head.rev().find(brought)?;
        let block = found.content.iter().position(
            |block| matches!(block, ContentBlock::Opaque(opaque) if opaque.is_compaction()),
        )?;
        Some(Position { message, block }..Position { message, block: block + 1 })
    }
}

impl Candidate {
    /// Returns the plan that removes everything that does not stay, and inserts these messages at
    /// the cut.
    pub(super) fn plan(&self, task: &View, insert: Vec<Message>) -> Result<Plan> {
        let (messages, edits) = (task.thread.messages(), self.edits(insert));
        let plan = Plan::from_edits(messages, edits, &CompactOptions::default())?;
        let trimmed =
            self.trim.iter().fold(plan, |plan, step| task.thread.trimmed_after(&plan, step));
        Ok(task.thread.stamped(trimmed, &task.brief))
    }

    /// Returns the edits that remove everything before the cut except the kept blocks, and insert
    /// the messages at the cut.
    pub(super) fn edits(&self, insert: Vec<Message>) -> Vec<(Range<Position>, Vec<Message>)> {
        let mut edits = Vec::with_capacity(self.kept.len() + 1);
        let mut from = Position::before(0);
        for range in &self.kept {
            if from < range.start {
                edits.push((from..range.start, Vec::new()));
            }
            from = range.end;
        }
        edits.push((from..Position::before(self.cut), insert));
        edits
    }

    /// Whether a block before the cut stays.
    pub(super) fn keeps(&self, message: usize, block: usize) -> bool {
        self.kept.binary_search_by_key(&Position { message, block }, |range| range.start).is_ok()
    }

    /// Whether a block of a message before the cut stays.
    pub(super) fn keeps_part_of(&self, message: usize) -> bool {
        self.kept.binary_search_by_key(&message, |range| range.start.message).is_ok()
    }
}

pub(super) fn nothing<T>(reason: String) -> Result<T> {
    Err(StrategyError::NothingToCompact { reason: reason.into() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        log,
        strategy::{KeepRecent, without_model},
    };

    #[test]
    fn a_message_that_is_kept_keeps_its_checkpoint() {
        let mut asked = Message::user("Where is the parser?");
        asked.make_mut().content.push(ContentBlock::reminder("Be brief."));
        let answers = (0..4).map(|number| Message::assistant(format!("I look for it: {number}")));
        let thread: Vec<Message> = std::iter::once(asked).chain(answers).collect();
        let thread = log::stamp(thread, 1);
        let snapshot = Snapshot::new(thread.clone());
        let strategy = KeepRecent { messages: 1, ..KeepRecent::default() };
        let proposal = without_model(&strategy, &View::new(snapshot, Brief::default())).unwrap();
        let after = proposal.plan.after(&thread).unwrap();
        let [text, _, checkpoint] = thread[0].content.as_slice() else { panic!("{thread:?}") };
        assert_eq!(after[0].content, [text.clone(), checkpoint.clone()]);
        assert_eq!(after.len(), 2);
    }
}
