//! What goes: the thread before its recent end, in stretches between legal cuts.

use std::ops::Range;

use super::{
    options::FoldBatches,
    plain::{Shown, plain},
};
use crate::{
    compact::{Position, legality},
    message::{Batch, ContentBlock, Message, Text},
    strategy::{
        brief::Brief,
        contract::StrategyError,
        snapshot::Snapshot,
        tail::{self, Stay, Wish},
    },
    tokens::TokenCounter,
};

/// Asking a model is not worth it for less than this.
const MIN_TOKENS: u64 = 100;

/// A part of the thread that goes or stays as one.
#[derive(Debug)]
pub(super) struct Stretch {
    pub(super) range: Range<usize>,
    /// What earlier compactions left in it, in order.
    pub(super) earlier: Vec<Earlier>,
    /// What the summariser is shown of it.
    pub(super) material: Vec<Message>,
    /// How many messages go that are no summaries.
    pub(super) messages: usize,
    /// Whether any of these shows something.
    pub(super) says: bool,
    /// The tokens that go.
    pub(super) tokens: u64,
}

/// What an earlier compaction left.
#[derive(Clone, Debug)]
pub(super) enum Earlier {
    /// One of ours left a batch.
    Batch(Batch),
    /// Another left a summary, in this message.
    Summary(Text, usize),
}

/// What goes, and what stays within it.
#[derive(Debug)]
pub(super) struct Split {
    /// Before it all stretches stand, behind it everything stays.
    pub(super) cut: usize,
    pub(super) stretches: Vec<Stretch>,
    /// The blocks of what the user typed last, if it stands before the cut: all of one message.
    pub(super) typed: Vec<Range<Position>>,
}

impl FoldBatches {
    /// Returns the stretches that go.
    ///
    /// # Errors
    ///
    /// [`StrategyError::NothingToCompact`] if none does, or if it is not worth a call.
    pub(super) fn split(&self, thread: &Snapshot, brief: &Brief) -> Result<Split, StrategyError> {
        let found = thread.counter().messages(thread.messages());
        if let Some(target) = brief.target.filter(|target| found <= *target) {
            return nothing(format!("about {found} tokens are within the target of {target}"));
        }
        let shown = self.clip_first.saturating_add(self.clip_last) as u64;
        let wish = Wish {
            messages: self.keep_recent,
            tokens: None,
            user: (1, 0),
            comes: shown.saturating_mul(self.summary_tokens),
            yields_when_asked: true,
        };
        let mut stays = tail::stays(thread, brief, wish)?;
        stays.dedup_by_key(|stay| stay.cut);
        let target = brief.target.unwrap_or(u64::MAX);
        let mut split = nothing("all of it stays".to_owned());
        for stay in stays {
            let (at, after) = self.split_at(thread, brief, stay);
            match at.check() {
                Ok(()) if after <= target => return Ok(at),
                Ok(()) => split = Ok(at),
                Err(error) if split.is_err() => split = Err(error),
                Err(_) => {}
            }
        }
        split
    }

    /// The stretches that go where this stays, and the tokens that the thread is likely to have then.
    fn split_at(&self, thread: &Snapshot, brief: &Brief, stay: Stay) -> (Split, u64) {
        let Stay { cut, typed, .. } = stay;
        let points = legality::cut_points(thread.without_reasoning().messages());
        let borders: Vec<usize> = points.into_iter().take_while(|point| *point <= cut).collect();
        let ranges = borders.iter().zip(borders.iter().skip(1));
        let stretches = ranges.map(|(start, end)| self.stretch(thread, *start..*end, &typed));
        let mut split = Split { cut, stretches: stretches.collect(), typed };
        let after = match brief.target {
            Some(target) => self.choose(thread, target, &mut split),
            None => 0,
        };
        (split, after)
    }

    fn stretch(
        &self,
        thread: &Snapshot,
        range: Range<usize>,
        typed: &[Range<Position>],
    ) -> Stretch {
        let messages = thread.messages().get(range.clone()).unwrap_or_default();
        // Results may stand in messages of their own, so the whole stretch is asked.
        let tool_ids = messages.iter().any(|message| {
            message.tool_uses().nth(1).is_some() || message.tool_results().nth(1).is_some()
        });
        let mut stretch = Stretch::new(range.clone());
        for (index, message) in range.zip(messages) {
            let kept = typed.first().is_some_and(|first| first.start.message == index);
            stretch.count(message, if kept { typed } else { &[] }, thread.counter());
            let before = stretch.earlier.len();
            stretch.find_earlier(index, message);
            // Beside a view of ours stands nothing but a line of ours.
            let is_ours = stretch.earlier.iter().skip(before).any(Earlier::is_batch);
            let shown = Shown { kept, tool_ids };
            let shown = if is_ours { None } else { plain(message, shown, self) };
            let is_summary = stretch.earlier.len() > before && shown.is_none();
            stretch.messages += usize::from(!kept && !is_summary);
            stretch.says |= !kept && shown.is_some();
            stretch.material.extend(shown);
        }
        stretch
    }

    /// Leaves the stretches that go first: those with summaries, which are folded anew in any case,
    /// then the least important, until the thread is likely to be within the target.
    fn choose(&self, thread: &Snapshot, target: u64, split: &mut Split) -> u64 {
        let scores = self.scores(thread, &split.stretches);
        let mut order: Vec<(f64, usize)> =
            scores.into_iter().enumerate().map(|(index, score)| (score, index)).collect();
        order.sort_by(|(left, _), (right, _)| left.total_cmp(right));
        let before = thread.counter().messages(thread.messages());
        let mut after = before.saturating_add(thread.stamp_tokens());
        let mut goes = vec![false; split.stretches.len()];
        let (mut messages, mut tokens, mut earlier) = (0, 0, 0);
        for (_, index) in order {
            let Some(stretch) = split.stretches.get(index) else { continue };
            let within = after.saturating_add(self.cost(messages, tokens, earlier)) <= target;
            if within && stretch.earlier.is_empty() {
                break;
            }
            if let Some(goes) = goes.get_mut(index) {
                *goes = true;
            }
            after = after.saturating_sub(stretch.tokens);
            messages += stretch.messages;
            earlier += stretch.earlier.len();
            tokens += thread.counter().messages(&stretch.material);
        }
        let mut goes = goes.into_iter();
        split.stretches.retain(|_| goes.next().unwrap_or_default());
        after.saturating_add(self.cost(messages, tokens, earlier))
    }

    /// The score of each stretch: that of its most important message.
    fn scores(&self, thread: &Snapshot, stretches: &[Stretch]) -> Vec<f64> {
        let new = stretches.iter().filter(|stretch| stretch.earlier.is_empty());
        let total = new.map(|stretch| stretch.range.len()).sum();
        let mut counted = 0;
        let score = |stretch: &Stretch| {
            if !stretch.earlier.is_empty() {
                return f64::NEG_INFINITY;
            }
            let messages = thread.messages().get(stretch.range.clone()).unwrap_or_default();
            let scored = messages.iter().map(|message| {
                counted += 1;
                self.scoring.score(message, counted - 1, total)
            });
            scored.fold(f64::NEG_INFINITY, f64::max)
        };
        stretches.iter().map(score).collect()
    }

    /// The tokens of the view that is likely to come for so much.
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
    /// Whether something new would be folded, and enough of it.
    fn check(&self) -> Result<(), StrategyError> {
        let messages: usize = self.stretches.iter().map(|stretch| stretch.messages).sum();
        if !self.stretches.iter().any(|stretch| stretch.says) {
            return nothing(format!("{messages} messages could go, and none has anything to fold"));
        }
        let tokens = self.tokens();
        if tokens <= MIN_TOKENS {
            return nothing(format!("about {tokens} tokens could go, too few to be worth it"));
        }
        Ok(())
    }

    /// The tokens that go.
    pub(super) fn tokens(&self) -> u64 {
        self.stretches.iter().map(|stretch| stretch.tokens).fold(0, u64::saturating_add)
    }
}

impl Stretch {
    fn new(range: Range<usize>) -> Self {
        Self {
            range,
            earlier: Vec::new(),
            material: Vec::new(),
            messages: 0,
            says: false,
            tokens: 0,
        }
    }

    /// Counts the tokens of a message that go: all but those of some of its blocks.
    fn count(&mut self, message: &Message, kept: &[Range<Position>], counter: &dyn TokenCounter) {
        let kept = kept.iter().filter_map(|range| message.content.get(range.start.block));
        let kept = kept.map(|block| counter.block(block)).fold(0, u64::saturating_add);
        let goes = counter.message(message).saturating_sub(kept);
        self.tokens = self.tokens.saturating_add(goes);
    }

    fn find_earlier(&mut self, index: usize, message: &Message) {
        for block in &message.content {
            let ContentBlock::Summary(summary) = block else { continue };
            if !summary.batches.is_empty() {
                let said = summary.batches.iter().filter(|batch| !batch.text.is_blank());
                self.earlier.extend(said.cloned().map(Earlier::Batch));
            } else if !summary.text.is_blank() {
                self.earlier.push(Earlier::Summary(summary.text.clone(), index));
            }
        }
    }
}

impl Earlier {
    fn is_batch(&self) -> bool {
        matches!(self, Self::Batch(_))
    }
}

fn nothing<T>(reason: String) -> Result<T, StrategyError> {
    Err(StrategyError::NothingToCompact { reason: reason.into() })
}
