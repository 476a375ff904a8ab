//! Divides the old part of the thread into stretches between legal cuts, and chooses those to
//! remove.

use std::ops::Range;

use super::options::Rolling;
use crate::{
    compact::{CompactError, CompactOptions, Plan, Position, legality},
    message::{Batch, ContentBlock, Message, Role, Summary, Text},
    render::{RenderOptions, render},
    strategy::{
        error::Result,
        snapshot::Snapshot,
        tail::{self, Candidate, TailRequest, nothing},
        view::View,
    },
    tokens::TokenCounter,
};

/// Messages between two neighbouring legal cuts, which are removed or kept together; or several such
/// stretches that become one batch.
#[derive(Debug, Default)]
pub(super) struct Stretch {
    pub(super) range: Range<usize>,
    /// Batches and summaries of earlier compactions before its messages, in order.
    pub(super) earlier: Vec<Earlier>,
    /// Its messages as the model sees them. Each stretch between cuts is a part.
    pub(super) parts: Vec<Vec<Message>>,
    /// Number of removed messages, not counting summaries.
    pub(super) messages: usize,
    /// Whether any of these has something to show.
    pub(super) has_content: bool,
    /// Tokens of the removed blocks.
    pub(super) tokens: u64,
}

/// The result of an earlier compaction.
#[derive(Clone, Debug)]
pub(super) enum Earlier {
    /// A batch of this strategy.
    Batch(Batch),
    /// A summary of another strategy, and the index of its message.
    Summary(Text, usize),
}

/// The stretches to remove, and the blocks in them that stay.
#[derive(Debug)]
pub(super) struct Split {
    pub(super) stretches: Vec<Stretch>,
    /// What stays in any case: the end of the thread, and the last typed message.
    pub(super) candidate: Candidate,
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
    fn split_for(&self, View { thread, brief }: &View, candidate: Candidate) -> (Split, u64) {
        let points = legality::cut_points(thread.without_reasoning().messages());
        let borders: Vec<usize> =
            points.into_iter().take_while(|point| *point <= candidate.cut).collect();
        let ranges = borders.iter().zip(borders.iter().skip(1));
        let stretches = ranges.map(|(start, end)| self.stretch(thread, *start..*end, &candidate));
        let mut split = Split { stretches: stretches.collect(), candidate };
        let after = match brief.target {
            Some(target) => self.choose(thread, target, &mut split),
            None => 0,
        };
        (split, after)
    }

    fn stretch(&self, thread: &Snapshot, range: Range<usize>, candidate: &Candidate) -> Stretch {
        let messages = thread.messages().get(range.clone()).unwrap_or_default();
        let options = RenderOptions {
            // Ids are needed to match parallel calls with their results, which may be in other
            // messages.
            tool_ids: messages.iter().any(|message| {
                message.tool_uses().nth(1).is_some() || message.tool_results().nth(1).is_some()
            }),
            tool_result_cap: self.tool_result_cap,
            tool_input_cap: self.tool_input_cap,
            ..RenderOptions::default()
        };
        let mut stretch = Stretch { range: range.clone(), ..Stretch::default() };
        let mut shown = Vec::new();
        for (index, message) in range.zip(messages) {
            let kept = candidate.keeps_part_of(index);
            stretch.count(message, if kept { &candidate.kept } else { &[] }, thread.counter());
            let before = stretch.earlier.len();
            stretch.find_earlier(index, message);
            let earlier = stretch.earlier.get(before..).unwrap_or_default();
            // A message with batches has no content of its own, at most this crate's request to
            // continue.
            let has_batches = earlier.iter().any(|it| matches!(it, Earlier::Batch(_)));
            let plain = if has_batches { None } else { plain(message, kept, &options) };
            let is_summary = !earlier.is_empty() && plain.is_none();
            stretch.messages += usize::from(!kept && !is_summary);
            stretch.has_content |= !kept && plain.is_some();
            shown.extend(plain);
        }
        stretch.parts.extend(Some(shown).filter(|shown| !shown.is_empty()));
        stretch
    }

    /// Keeps in the split only the stretches to remove: all with earlier summaries, which become
    /// part of the new one, then the least important until the thread is expected to meet the
    /// target. Returns the expected tokens of the thread.
    fn choose(&self, thread: &Snapshot, target: u64, split: &mut Split) -> u64 {
        let scores = self.scores(thread, &split.stretches);
        let all = std::mem::take(&mut split.stretches).into_iter();
        let mut by_score: Vec<(f64, Stretch)> = scores.into_iter().zip(all).collect();
        by_score.sort_by(|(left, _), (right, _)| left.total_cmp(right));
        let before = thread.size();
        let mut after = before.saturating_add(thread.stamp_tokens());
        let (mut messages, mut tokens, mut earlier) = (0, 0, 0);
        for (_, stretch) in by_score {
            let meets_target = after.saturating_add(self.cost(messages, tokens, earlier)) <= target;
            if meets_target && stretch.earlier.is_empty() {
                break;
            }
            after = after.saturating_sub(stretch.tokens);
            messages += stretch.messages;
            earlier += stretch.earlier.len();
            tokens += stretch.shown_tokens(thread.counter());
            split.stretches.push(stretch);
        }
        split.stretches.sort_by_key(|stretch| stretch.range.start);
        after.saturating_add(self.cost(messages, tokens, earlier))
    }

    /// The score of each stretch: that of its most important message. A stretch with earlier
    /// summaries has the lowest score.
    fn scores(&self, thread: &Snapshot, stretches: &[Stretch]) -> Vec<f64> {
        let new = stretches.iter().filter(|stretch| stretch.earlier.is_empty());
        let total = new.map(|stretch| stretch.range.len()).sum();
        let mut index = 0;
        let mut scores = Vec::with_capacity(stretches.len());
        for stretch in stretches {
            let mut score = f64::NEG_INFINITY;
            if stretch.earlier.is_empty() {
                for message in thread.messages().get(stretch.range.clone()).unwrap_or_default() {
                    score = score.max(self.score(message, index, total));
                    index += 1;
                }
            }
            scores.push(score);
        }
        scores
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
    /// Checks that there is new content to fold, and enough of it. Without a target, earlier
    /// summaries do not count, because each summary of a summary loses something.
    fn check(&self, has_target: bool) -> Result<()> {
        let messages: usize = self.stretches.iter().map(|stretch| stretch.messages).sum();
        if !self.stretches.iter().any(|stretch| stretch.has_content) {
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
        let kept = Candidate { kept: self.kept(messages), ..self.candidate.clone() };
        let mut edits = kept.edits(Vec::new());
        let is_last = edits.len() == 1 && kept.cut == messages.len();
        if let Some((_, insert)) = edits.first_mut() {
            insert.push(task.summary_message(view, is_last));
        }
        let options =
            CompactOptions { compaction: task.brief.compaction, ..CompactOptions::default() };
        Plan::from_edits(messages, edits, &options)
    }

    /// The ranges before the cut that stay, in order.
    fn kept(&self, messages: &[Message]) -> Vec<Range<Position>> {
        let mut kept = Vec::new();
        let mut next = 0;
        let typed = &self.candidate.kept;
        let typed_in = typed.first().map(|range| range.start.message);
        for Range { start, end } in self.stretches.iter().map(|stretch| stretch.range.clone()) {
            if next < start {
                kept.push(Position::before(next)..Position::before(start));
            }
            if typed_in.is_some_and(|message| (start..end).contains(&message)) {
                // The end of a message and the start of the next one are the same place; edits use
                // the start.
                kept.extend(typed.iter().map(|&Range { start, end }| {
                    let content = messages.get(end.message).map(|message| &message.content);
                    let is_end = content.is_none_or(|content| end.block >= content.len());
                    start..if is_end { Position::before(end.message + 1) } else { end }
                }));
            }
            next = end;
        }
        if next < self.candidate.cut {
            kept.push(Position::before(next)..Position::before(self.candidate.cut));
        }
        kept
    }

    /// Tokens of the removed blocks.
    pub(super) fn tokens(&self) -> u64 {
        self.stretches.iter().map(|stretch| stretch.tokens).fold(0, u64::saturating_add)
    }
}

impl Stretch {
    /// The tokens of its messages as the model sees them.
    pub(super) fn shown_tokens(&self, counter: &dyn TokenCounter) -> u64 {
        self.parts.iter().map(|part| counter.messages(part)).fold(0, u64::saturating_add)
    }

    /// Adds the tokens of a message, except those of its kept blocks.
    fn count(&mut self, message: &Message, kept: &[Range<Position>], counter: &dyn TokenCounter) {
        let kept = kept.iter().filter_map(|range| message.content.get(range.start.block));
        let kept = kept.map(|block| counter.block(block)).fold(0, u64::saturating_add);
        let goes = counter.message(message).saturating_sub(kept);
        self.tokens = self.tokens.saturating_add(goes);
    }

    fn find_earlier(&mut self, index: usize, message: &Message) {
        for summary in message.summaries() {
            if !summary.batches.is_empty() {
                let batches = summary.batches.iter().filter(|batch| !batch.text.is_blank());
                self.earlier.extend(batches.cloned().map(Earlier::Batch));
            } else if !summary.text.is_blank() {
                self.earlier.push(Earlier::Summary(summary.text.clone(), index));
            }
        }
    }
}

/// Marks a system message, which is sent as a user message.
const SYSTEM: &str = "[system message]";
/// Ends a message that the thread keeps.
const KEPT: &str = "[This message stays in the conversation, word for word.]";

/// Returns the message with text blocks only, or `None` if it has nothing to show. Calls, results,
/// images and other blocks are rendered under a heading with their kind. Reasoning, reminders and
/// checkpoints are omitted, and so are summaries, which become batches unchanged. `kept` says that
/// the thread keeps the message.
fn plain(message: &Message, kept: bool, options: &RenderOptions) -> Option<Message> {
    let texts = message.content.iter().filter_map(|block| text_of(message.role, block, options));
    let mut content: Vec<ContentBlock> = texts.map(ContentBlock::text).collect();
    if content.is_empty() {
        return None;
    }
    if kept {
        content.push(ContentBlock::text(KEPT));
    }
    Some(match message.role {
        Role::User | Role::Assistant => {
            Message::new(message.role, content).by_author(message.author.clone())
        }
        Role::System => {
            content.insert(0, ContentBlock::text(SYSTEM));
            Message::new(Role::User, content)
        }
    })
}

/// The text of a block; `None` if it is blank or omitted.
fn text_of(role: Role, block: &ContentBlock, options: &RenderOptions) -> Option<Text> {
    if matches!(block, ContentBlock::Summary(_)) {
        return None;
    }
    let text = match block.as_text() {
        Some(text) => text.clone(),
        None => {
            let rendered = render(&[Message::new(role, vec![block.clone()])], options);
            // Drop the first heading: it is the role, which the message has already.
            let (_, under_heading) = rendered.text().split_once("\n\n")?;
            under_heading.trim_end().into()
        }
    };
    (!text.is_blank()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Json, Thinking, ToolResult, ToolUse};

    fn written(message: &Message) -> Option<(Role, Vec<String>)> {
        let plain = plain(message, false, &RenderOptions::default())?;
        let texts = plain.content.iter().filter_map(ContentBlock::as_text);
        Some((plain.role, texts.map(ToString::to_string).collect()))
    }

    #[test]
    fn calls_and_results_are_named_and_keep_their_roles() {
        let call = ToolUse::new("t1", "read", Json::parse(r#"{"path":"a.txt"}"#).unwrap());
        let content =
            vec![Thinking::new("hm", None).into(), ContentBlock::text("Reading."), call.into()];
        let call = "## tool_use: read\n\n```json\n{\"path\":\"a.txt\"}\n```";
        let expected = (Role::Assistant, vec!["Reading.".to_owned(), call.to_owned()]);
        assert_eq!(written(&Message::new(Role::Assistant, content)), Some(expected));
        let result = Message::new(Role::User, vec![ToolResult::error("t1", "gone").into()]);
        let expected = (Role::User, vec!["## tool_result (error)\n\n```\ngone\n```".to_owned()]);
        assert_eq!(written(&result), Some(expected));
    }

    #[test]
    fn a_message_with_nothing_to_show_is_none() {
        let content = vec![
            ContentBlock::reminder("be brief"),
            ContentBlock::checkpoint("aaaaaa".parse().unwrap()),
        ];
        assert_eq!(written(&Message::new(Role::User, content)), None);
    }

    #[test]
    fn a_system_message_becomes_a_marked_user_message() {
        let expected = (Role::User, vec![SYSTEM.to_owned(), "Answer in verse.".to_owned()]);
        assert_eq!(written(&Message::system("Answer in verse.")), Some(expected));
    }
}
