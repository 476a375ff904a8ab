//! The strategy: has a run write the account of each chunk, merges the older batches if there are
//! too many, and proposes a plan.

use std::time::Duration;

use async_trait::async_trait;

use super::{options::Rolling, split::Chunk};
use crate::{
    message::{Batch, BatchId, Message, Summary, Text},
    render::{ChunkBudget, RenderOptions},
    strategy::{
        ask::Ask,
        batches,
        brief::Brief,
        chunked::{Chunked, CompactionRun, Prompts, Writer},
        contract::CompactionStrategy,
        error::Result,
        proposal::Proposal,
        view::View,
    },
};

/// Upper limit for the earlier accounts that a request shows, as a multiple of the limit for one.
const SHOWN_ACCOUNTS: u64 = 8;

/// Assumed bytes per token of an account and of a chunk.
const BYTES_PER_TOKEN: u64 = 3;

#[async_trait]
impl CompactionStrategy for Rolling {
    fn name(&self) -> &str {
        "rolling"
    }

    async fn propose(&self, view: &View, ask: &mut Ask<'_>) -> Result<Proposal> {
        self.check()?;
        let target = [self.target, view.brief.target].into_iter().flatten().min();
        let view = View::new(view.thread.clone(), Brief { target, ..view.brief.clone() });
        let split = self.split(&view)?;
        // Build the plan once now, so that an illegal removal fails before a model call is paid
        // for.
        drop(split.plan(&view, Summary::new("."))?);
        let prompts = self.prompts(&view)?;
        let most = prompts.options.chunks.max() as u64 / BYTES_PER_TOKEN;
        let chunks = split.chunks(self, most, &view);
        let is_full = chunks.len() > self.max_batches();
        let parts = chunks.iter().map(|chunk| (&chunk.messages, chunk.batch.text.to_string()));
        let mut run = CompactionRun::of_parts(parts, prompts.clone())?;
        let calls = run.drive(&view, ask, (0, usize::from(is_full))).await;
        let mut notes = run.notes();
        let (texts, quotes) = run.into_accounts()?;
        ask.quoted(quotes);
        let (mut next_id, mut made, mut batches) = (first_id(&view), Vec::new(), Vec::new());
        for (Chunk { mut batch, is_new, .. }, text) in chunks.into_iter().zip(texts) {
            if is_new {
                (batch.id, batch.text) = (next_id, text.into());
                next_id.index = next_id.index.saturating_add(1);
                made.push(batch.clone());
            }
            batches.push(batch);
        }
        if is_full {
            let recent = batches.split_off(batches.len().saturating_sub(self.clip_last));
            let mut run = CompactionRun::of_parts([(labelled(&batches), String::new())], prompts)?;
            run.drive(&view, ask, (calls, 0)).await;
            let failure = run.steps().iter().find_map(|step| step.failure.clone());
            match (failure, run.into_accounts()) {
                (None, Ok((texts, more))) => {
                    let merged = Batch { text: texts.concat().into(), ..merged(&batches, next_id) };
                    ask.quoted(more);
                    made.push(merged.clone());
                    batches = vec![merged];
                }
                // An extract of batches would say less than they do.
                (failure, _) => {
                    let why = failure.map(|failure| format!(" ({failure})")).unwrap_or_default();
                    notes.push(format!("the older batches were not merged{why}").into());
                }
            }
            batches.extend(recent);
        }

        let text = self.view(&batches);
        let summary = Summary { batches: batches.into(), ..view.summary(text) };
        let plan = view.thread.stamped(split.plan(&view, summary)?, &view.brief);
        let plan = view.fitted(plan)?;
        Ok(Proposal { batches: made, notes, ..Proposal::new(plan) })
    }
}

impl Rolling {
    /// Returns the prompts of its runs, with limits that fit the window.
    fn prompts(&self, view: &View) -> Result<Prompts> {
        let shown = self.summary_tokens.saturating_mul(SHOWN_ACCOUNTS * BYTES_PER_TOKEN);
        let has_several = |message: &Message| {
            message.tool_uses().nth(1).is_some() || message.tool_results().nth(1).is_some()
        };
        let options = Chunked {
            render: RenderOptions {
                // Ids match parallel calls with their results, which may be in other messages.
                tool_ids: view.thread.messages().iter().any(has_several),
                tool_result_cap: self.tool_result_cap,
                tool_input_cap: self.tool_input_cap,
                ..RenderOptions::default()
            },
            prompt: self.prompt.clone(),
            sections: self.sections.clone(),
            chunks: ChunkBudget { target: usize::MAX, tolerance: 0 },
            max_chunks: usize::MAX,
            summary_bytes: usize::try_from(shown).unwrap_or(usize::MAX),
            answer_tokens: self.summary_tokens,
            max_retries: self.max_retries,
            ..Chunked::default()
        };
        let timeout = self.timeout_ms.map(Duration::from_millis);
        let first_wait = Duration::from_millis(self.backoff_ms);
        let prompts = Prompts::new(view, options, Writer::Accounts { timeout, first_wait });
        prompts.within_window(view, view.thread.messages())
    }
}

/// Batches as messages to summarise.
fn labelled(batches: &[Batch]) -> Vec<Message> {
    let labelled = batches.iter().enumerate().map(|(index, batch)| {
        Message::user(format!("{}\n{}", batches::label(index, batch), batch.text))
    });
    labelled.collect()
}

/// The batch that replaces these, without its text.
fn merged(batches: &[Batch], id: BatchId) -> Batch {
    let depth = batches.iter().map(|batch| batch.depth).max().unwrap_or_default();
    Batch {
        depth: depth.saturating_add(1),
        start: batches.first().map(|batch| batch.start).unwrap_or_default(),
        end: batches.last().map(|batch| batch.end).unwrap_or_default(),
        messages: batches.iter().map(|batch| batch.messages).fold(0, usize::saturating_add),
        replaces: batches.iter().map(|batch| batch.id).collect(),
        ..Batch::new(id, Text::default())
    }
}

/// Returns the first id of new batches. It follows the ids of the batches in the thread, because
/// without a log all compactions have the same number.
fn first_id(View { thread, brief }: &View) -> BatchId {
    let compaction = brief.compaction.unwrap_or_default();
    let summaries = thread.messages().iter().flat_map(Message::summaries);
    let ids = summaries.flat_map(|summary| &summary.batches).map(|batch| batch.id);
    let ids = ids.filter(|id| id.compaction == compaction);
    let index = ids.map(|id| id.index.saturating_add(1)).max().unwrap_or_default();
    BatchId { compaction, index }
}
