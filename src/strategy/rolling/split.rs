//! Divides the old part of the thread into stretches between legal cuts, and chooses those to
//! remove.

use std::ops::Range;

use super::options::Rolling;
use crate::{
    compact::{CompactError, CompactOptions, Plan, Position, legality},
    message::{Batch, BatchId, ContentBlock, Message, Summary, Text},
    strategy::{
        error::Result,
        snapshot::Snapshot,
        tail::{self, Candidate, TailRequest, nothing},
        view::View,
    },
    tokens::TokenCounter,
};

/// Messages between two neighbouring legal cuts, which are removed or kept together.
#[derive(Debug)]
struct Stretch {
    range: Range<usize>,
    /// Batches and summaries of earlier compactions in it.
    earlier: Vec<Chunk>,
    /// Everything else in it.
    chunk: Chunk,
    /// Tokens of the removed blocks.
    tokens: u64,
}

/// A batch of the new summary, and what it is about.
#[derive(Clone, Debug)]
pub(super) struct Chunk {
    /// The batch. Its text is empty if it is to be written; a new one has no id yet. Counts only
    /// messages that go, without summaries.
    pub(super) batch: Batch,
    /// Whether this compaction makes the batch.
    pub(super) is_new: bool,
    /// The messages to summarise; none if the text is known.
    pub(super) messages: Vec<Message>,
    /// Whether any of these goes.
    has_content: bool,
}

/// The stretches to remove, and the blocks in them that stay.
#[derive(Debug)]
pub(super) struct Split {
    stretches: Vec<Stretch>,
    /// What stays in any case: the end of the thread, and the last typed message.
    candidate: Candidate,
}

impl Rolling {
    /// Returns the stretches to remove.
    ///
    /// # Errors
    ///
    /// [`StrategyError::NothingToCompact`] if there are none, or if they are not worth a call.
    pub(super) fn split(&self, task: &View) -> Result<Split> {
        if let (None, Some(target)) = (task.missed_target(), task.brief.target) {
            return task.within(target);
        }
        let shown = self.clip_first.saturating_add(self.clip_last) as u64;
        let request = TailRequest {
            messages: self.keep_recent,
            user_messages: 1,
            reserved: shown.saturating_mul(self.summary_tokens),
            shrinks_when_asked: true,
            ..TailRequest::default()
        };
        let mut candidates = task.candidates(request)?;
        candidates.dedup_by_key(|candidate| candidate.cut);
        let target = task.brief.target.unwrap_or(u64::MAX);
        let mut best = nothing("all of it stays".to_owned());
        for candidate in candidates {
            let (split, after) = self.split_for(task, candidate);
            match split.check(task.brief.target.is_some()) {
                Ok(()) if after <= target => return Ok(split),
                Ok(()) => best = Ok(split),
                Err(error) if best.is_err() => best = Err(error),
                Err(_) => {}
            }
        }
        best
    }

    /// Returns the stretches to remove for this candidate, and the expected tokens of the thread
    /// afterwards.
    fn split_for(&self, view: &View, candidate: Candidate) -> (Split, u64) {
        let View { thread, brief } = view;
        let points = legality::cut_points(thread.without_reasoning().messages());
        let borders: Vec<usize> =
            points.into_iter().take_while(|point| *point <= candidate.cut).collect();
        let ranges = borders.iter().zip(borders.iter().skip(1));
        let stretches = ranges.map(|(start, end)| Stretch::new(view, *start..*end, &candidate));
        let mut split = Split { stretches: stretches.collect(), candidate };
        let after = match brief.target {
            Some(target) => self.choose(thread, target, &mut split),
            None => 0,
        };
        (split, after)
    }

    /// Keeps in the split only the stretches to remove: all with earlier summaries, which become
    /// part of the new one, then the least important until the thread is expected to meet the
    /// target. Returns the expected tokens of the thread.
    fn choose(&self, thread: &Snapshot, target: u64, split: &mut Split) -> u64 {
        // A stretch is as important as its most important message; one with earlier summaries goes
        // first.
        let all = std::mem::take(&mut split.stretches);
        let new = all.iter().filter(|stretch| stretch.earlier.is_empty());
        let total = new.map(|stretch| stretch.range.len()).sum();
        let mut index = 0;
        let scored = all.into_iter().map(|stretch| {
            let messages = thread.messages().get(stretch.range.clone()).unwrap_or_default();
            let new = messages.iter().filter(|_| stretch.earlier.is_empty());
            let score = new.fold(f64::NEG_INFINITY, |score, message| {
                index += 1;
                score.max(self.score(message, index - 1, total))
            });
            (score, stretch)
        });
        let mut by_score: Vec<(f64, Stretch)> = scored.collect();
        by_score.sort_by(|(left, _), (right, _)| left.total_cmp(right));
        let before = thread.size();
        let mut after = before.saturating_add(thread.stamp_tokens());
        let (mut messages, mut tokens, mut earlier) = (0, 0_u64, 0);
        for (_, stretch) in by_score {
            let meets_target = after.saturating_add(self.cost(messages, tokens, earlier)) <= target;
            if meets_target && stretch.earlier.is_empty() {
                break;
            }
            after = after.saturating_sub(stretch.tokens);
            messages += stretch.chunk.batch.messages;
            earlier += stretch.earlier.len();
            tokens = tokens.saturating_add(thread.counter().messages(&stretch.chunk.messages));
            split.stretches.push(stretch);
        }
        split.stretches.sort_by_key(|stretch| stretch.range.start);
        after.saturating_add(self.cost(messages, tokens, earlier))
    }

    /// The expected tokens of the view for removed messages with this many tokens, and this many
    /// earlier batches and summaries.
    fn cost(&self, messages: usize, tokens: u64, earlier: usize) -> u64 {
        let chunks = match self.chunk_tokens {
            Some(most) => tokens.div_ceil(most.max(1)),
            None => messages.div_ceil(self.chunk_messages.max(1)) as u64,
        };
        let shown = self.clip_first.saturating_add(self.clip_last) as u64;
        chunks.saturating_add(earlier as u64).min(shown).saturating_mul(self.summary_tokens)
    }
}

impl Split {
    /// Returns the chunks of the stretches, each as large as the options allow, with at most `most`
    /// tokens. A stretch over a limit becomes a chunk of its own. Chunks and earlier batches are in
    /// the order of the thread; messages without content are in no chunk.
    pub(super) fn chunks(&self, options: &Rolling, most: u64, view: &View) -> Vec<Chunk> {
        let messages = options.chunk_tokens.map_or(options.chunk_messages, |_| usize::MAX);
        let most = options.chunk_tokens.unwrap_or(u64::MAX).min(most);
        let (mut chunks, mut tokens) = (Vec::<Chunk>::new(), 0_u64);
        for Stretch { earlier, chunk, .. } in &self.stretches {
            chunks.extend(earlier.iter().cloned());
            if chunk.batch.messages == 0 && chunk.messages.is_empty() {
                continue;
            }
            let more = view.thread.counter().messages(&chunk.messages);
            let sum = tokens.saturating_add(more);
            let open = chunks.last_mut().filter(|open| {
                let count = open.batch.messages + chunk.batch.messages;
                open.batch.text.is_empty() && count <= messages && sum <= most
            });
            tokens = if open.is_some() { sum } else { more };
            match open {
                Some(open) => open.join(chunk.clone()),
                None => chunks.push(chunk.clone()),
            }
        }
        chunks.retain(|chunk| chunk.has_content || !chunk.batch.text.is_empty());
        chunks
    }

    /// Checks that there is new content to fold, and enough of it. Without a target, earlier
    /// summaries do not count, because each summary of a summary loses something.
    fn check(&self, has_target: bool) -> Result<()> {
        let chunks = self.stretches.iter().map(|stretch| &stretch.chunk);
        let messages: usize = chunks.clone().map(|chunk| chunk.batch.messages).sum();
        if !chunks.clone().any(|chunk| chunk.has_content) {
            return nothing(format!("none of the {messages} removable messages has text to fold"));
        }
        let counted =
            self.stretches.iter().filter(|stretch| has_target || stretch.earlier.is_empty());
        let tokens = counted.map(|stretch| stretch.tokens).fold(0, u64::saturating_add);
        if tokens <= tail::MIN_TOKENS {
            return nothing(format!("a compaction would remove only about {tokens} tokens"));
        }
        Ok(())
    }

    /// Returns the plan that inserts the view in place of the first removed message.
    ///
    /// # Errors
    ///
    /// [`CompactError`] if a removal is illegal.
    pub(super) fn plan(&self, task: &View, view: Summary) -> Result<Plan, CompactError> {
        let messages = task.thread.messages();
        let mut edits = self.removed(messages);
        let is_last = edits.len() == 1 && self.candidate.cut == messages.len();
        let brought = task.thread.brought_compaction(self.candidate.cut);
        let from = brought.map_or(Position::before(0), |block| block.end);
        let first = edits.iter().position(|(range, _)| range.start >= from).unwrap_or(0);
        if let Some((_, insert)) = edits.get_mut(first) {
            insert.push(task.summary_message(view, is_last));
        }
        let options =
            CompactOptions { compaction: task.brief.compaction, ..CompactOptions::default() };
        Plan::from_edits(messages, edits, &options)
    }

    /// The ranges that go, in order, with nothing in their place.
    fn removed(&self, messages: &[Message]) -> Vec<(Range<Position>, Vec<Message>)> {
        let mut removed: Vec<(Range<Position>, Vec<Message>)> = Vec::new();
        let mut remove = |range: Range<Position>| match removed.last_mut() {
            _ if range.start >= range.end => {}
            Some((last, _)) if last.end == range.start => last.end = range.end,
            Some(_) | None => removed.push((range, Vec::new())),
        };
        for Stretch { range, .. } in &self.stretches {
            let mut from = Position::before(range.start);
            let kept = self.candidate.kept.iter();
            for kept in kept.filter(|kept| range.contains(&kept.start.message)) {
                remove(from..kept.start);
                // The end of a message is the start of the next one.
                let message = messages.get(kept.end.message);
                let is_end = message.is_none_or(|it| kept.end.block >= it.content.len());
                from = if is_end { Position::before(kept.end.message + 1) } else { kept.end };
            }
            remove(from..Position::before(range.end));
        }
        removed
    }
}

impl Stretch {
    fn new(view: &View, range: Range<usize>, candidate: &Candidate) -> Self {
        let messages = view.thread.messages().get(range.clone()).unwrap_or_default();
        let chunk = Chunk::new(view, range.clone(), "");
        let mut stretch = Self { range: range.clone(), earlier: Vec::new(), chunk, tokens: 0 };
        for (index, message) in range.zip(messages) {
            let kept = candidate.keeps_part_of(index);
            let blocks = candidate.kept.iter().filter(|range| range.start.message == index);
            stretch.count(message, blocks, view.thread.counter());
            let earlier = earlier(view, index, message);
            // A message with batches has no content of its own, at most this crate's request to
            // continue.
            let has_batches = earlier.iter().any(|earlier| !earlier.is_new);
            let shown = if has_batches { None } else { shown(message, kept) };
            let is_summary = !earlier.is_empty() && shown.is_none();
            stretch.chunk.batch.messages += usize::from(!kept && !is_summary);
            stretch.chunk.has_content |= !kept && shown.is_some();
            stretch.chunk.messages.extend(shown);
            stretch.earlier.extend(earlier);
        }
        stretch
    }

    /// Adds the tokens of a message, except those of its kept blocks.
    fn count<'r>(
        &mut self,
        message: &Message,
        kept: impl Iterator<Item = &'r Range<Position>>,
        counter: &dyn TokenCounter,
    ) {
        let kept = kept.filter_map(|range| message.content.get(range.start.block));
        let kept = kept.map(|block| counter.block(block)).fold(0, u64::saturating_add);
        let goes = counter.message(message).saturating_sub(kept);
        self.tokens = self.tokens.saturating_add(goes);
    }
}

impl Chunk {
    /// A new batch about these messages of the thread, without a message yet.
    fn new(View { thread, brief }: &View, range: Range<usize>, text: impl Into<Text>) -> Self {
        let time = |message: usize| thread.time(message).unwrap_or(brief.now);
        let (start, end) = (time(range.start), time(range.end.saturating_sub(1)));
        let batch = Batch { start, end, ..Batch::new(BatchId::default(), text) };
        Self { batch, is_new: true, messages: Vec::new(), has_content: false }
    }

    /// Adds the messages that follow.
    fn join(&mut self, next: Self) {
        self.batch.end = next.batch.end;
        self.batch.messages += next.batch.messages;
        self.messages.extend(next.messages);
        self.has_content |= next.has_content;
    }
}

/// The batches in a message, and its summaries by other strategies, which become batches.
fn earlier(view: &View, index: usize, message: &Message) -> Vec<Chunk> {
    let mut earlier = Vec::new();
    for summary in message.summaries() {
        let new = Chunk::new(view, index..index + 1, summary.text.clone());
        if summary.batches.is_empty() {
            earlier.push(new.clone());
        }
        let batches = summary.batches.iter().cloned();
        earlier.extend(batches.map(|batch| Chunk { batch, is_new: false, ..new.clone() }));
    }
    earlier.retain(|chunk| !chunk.batch.text.is_blank());
    earlier
}

/// Ends a message that the thread keeps.
const KEPT: &str = "[This message stays in the conversation, word for word.]";

/// Returns a message as it is to be summarised, or `None` if it has nothing to show. Summaries are
/// omitted, because they become batches unchanged. `kept` says that the thread keeps the message.
fn shown(message: &Message, kept: bool) -> Option<Message> {
    let is_shown = |block: &&ContentBlock| {
        let is_blank = block.as_text().is_some_and(Text::is_blank);
        !tail::is_marker(block) && !block.is_reasoning() && !is_blank
    };
    let mut content: Vec<_> = message.content.iter().filter(is_shown).cloned().collect();
    if content.is_empty() {
        return None;
    }
    content.extend(kept.then(|| ContentBlock::text(KEPT)));
    Some(message.with_content(content))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Role;

    #[test]
    fn a_message_with_nothing_to_show_is_none() {
        let content = vec![
            ContentBlock::reminder("be brief"),
            ContentBlock::checkpoint("aaaaaa".parse().unwrap()),
            ContentBlock::text(" "),
            Summary::new("What was before.").into(),
        ];
        assert_eq!(shown(&Message::new(Role::User, content), false), None);
        let system = Message::system("Answer in verse.");
        assert_eq!(shown(&system, false), Some(system.clone()));
        assert!(shown(&system, true).is_some_and(|shown| shown.texts().count() == 2));
    }
}
