//! Folds chunks into batches, one call after another, then proposes a plan.

use std::{collections::VecDeque, time::Duration};

use async_trait::async_trait;

use super::{
    chunks::{self, MIN_TOKENS, Piece},
    options::{self, Rolling},
    requests::RequestWriter,
    split::{Earlier, Split, Stretch},
};
use crate::{
    ledger::Quotes,
    message::{
        Batch, BatchId, Message, ModelError, ModelErrorKind, Role, Summary, Text, Timestamp,
    },
    strategy::{
        ask::{Ask, ModelCall, quoted_summary_of},
        brief::Brief,
        contract::CompactionStrategy,
        error::{Result, StrategyError},
        pieces::Pieces,
        proposal::{ModelRole, Proposal},
        run_error::RunError,
        view::View,
    },
    tokens::TokenCounter,
};

#[async_trait]
impl CompactionStrategy for Rolling {
    fn name(&self) -> &str {
        "rolling"
    }

    async fn propose(&self, view: &View, ask: &mut Ask<'_>) -> Result<Proposal> {
        self.check()?;
        let target = [self.target, view.brief.target].into_iter().flatten().min();
        let view = View::new(view.thread.clone(), Brief { target, ..view.brief.clone() });
        let mut split = self.split(&view)?;
        let requests = RequestWriter::new(self.clone(), &view)?;
        let messages = self.chunk_tokens.map_or(self.chunk_messages, |_| usize::MAX);
        let tokens = [self.chunk_tokens, requests.room].into_iter().flatten().min();
        let (tokens, counter) = (tokens.unwrap_or(u64::MAX), view.thread.counter());
        let chunks = chunks::group(&mut split.stretches, messages, tokens, counter);
        // Build the plan once now, so that an illegal removal fails before a model call is paid
        // for.
        drop(split.plan(&view, Summary::new("."))?);
        let mut folding = Folding {
            batches: Vec::new(),
            made: Vec::new(),
            next_id: first_id(&view),
            view,
            split,
            requests,
            remaining: chunks.into(),
            jobs: 0,
            done: 0,
            quotes: Quotes::default(),
        };
        while let Some(mut chunk) = folding.remaining.pop_front() {
            for earlier in std::mem::take(&mut chunk.earlier) {
                match earlier {
                    Earlier::Batch(batch) => folding.batches.push(batch),
                    Earlier::Summary(text, message) => {
                        let at = folding.time(message);
                        let batch = Batch::new(folding.next_id, text);
                        folding.add(Batch { start: at, end: at, ..batch }, 0);
                    }
                }
            }
            if chunk.has_content {
                let job = folding.job_of(chunk);
                folding.work(job, ask).await?;
            }
        }
        if folding.batches.len() > self.max_batches() {
            let job = folding.job_of_older();
            folding.work(job, ask).await?;
        }
        folding.proposal()
    }
}

/// The batches so far. One job is done at a time, with one request at a time.
#[derive(Debug)]
struct Folding {
    view: View,
    split: Split,
    requests: RequestWriter,
    /// Chunks whose job has not begun.
    remaining: VecDeque<Stretch>,
    /// The batches so far, in order, and all new ones, also those that were replaced.
    batches: Vec<Batch>,
    made: Vec<Batch>,
    /// The id of the next new batch.
    next_id: BatchId,
    /// Number of jobs that were begun.
    jobs: usize,
    /// Number of requests that were answered.
    done: usize,
    /// The quotes in the answers so far.
    quotes: Quotes,
}

/// The work on one batch.
#[derive(Debug)]
struct Job {
    /// The summaries of the finished ones are `texts`.
    pieces: Pieces<Piece>,
    texts: Vec<Text>,
    /// The batch without its text.
    batch: Batch,
    /// Number of earlier batches, counted from the first, that the new one replaces.
    replaces: usize,
}

impl Job {
    /// Halves the current piece unless it is small already, and returns whether it was halved.
    fn halve(&mut self, counter: &dyn TokenCounter) -> bool {
        let halves = self.pieces.current().and_then(|piece| piece.halves(counter));
        self.pieces.divide(halves)
    }

    /// Halves the token limit of a piece that cannot be divided. Returns whether the new limit is
    /// worth a call.
    fn clip_more(&mut self, room: Option<u64>, counter: &dyn TokenCounter) -> bool {
        let Some(piece) = self.pieces.all.get_mut(self.pieces.done) else { return false };
        let sent = piece.tokens(counter).min(room.unwrap_or(u64::MAX));
        let half = piece.most.unwrap_or(sent).min(sent) / 2;
        piece.most = Some(half);
        half >= MIN_TOKENS
    }
}

impl Folding {
    /// The job that summarises a chunk.
    fn job_of(&self, chunk: Stretch) -> Job {
        let piece = Piece { parts: chunk.parts, most: None };
        let (first, last) = (chunk.range.start, chunk.range.end.saturating_sub(1));
        let batch = Batch {
            start: self.time(first),
            end: self.time(last),
            messages: chunk.messages,
            ..Batch::new(self.next_id, "")
        };
        Job { pieces: Pieces::new(vec![piece]), texts: Vec::new(), batch, replaces: 0 }
    }

    /// The job that summarises all batches except the last `clip_last` ones into one.
    fn job_of_older(&self) -> Job {
        let replaces = self.batches.len().saturating_sub(self.requests.options.clip_last);
        let (sources, _) = self.batches.split_at(replaces);
        let depth = sources.iter().map(|source| source.depth).max().unwrap_or_default();
        let messages = sources.iter().map(|source| source.messages);
        let messages = messages.fold(0, usize::saturating_add);
        let start = sources.first().map_or(self.view.brief.now, |source| source.start);
        let end = sources.last().map_or(self.view.brief.now, |source| source.end);
        let parts = sources.iter().enumerate().map(|(index, source)| {
            let text = format!("{}\n{}", options::label(index, source), source.text);
            vec![Message::user(text)]
        });
        let pieces = chunks::in_pieces(parts, self.requests.room, self.view.thread.counter());
        let depth = depth.saturating_add(1);
        let batch = Batch { depth, start, end, messages, ..Batch::new(self.next_id, "") };
        Job { pieces: Pieces::new(pieces), texts: Vec::new(), batch, replaces }
    }

    /// Has a model summarise the pieces of a job, and adds the batch.
    async fn work(&mut self, mut job: Job, ask: &mut Ask<'_>) -> Result<()> {
        self.jobs += 1;
        let mut after = Duration::ZERO;
        while let Some(call) = self.call(&job, after) {
            after = match ask.once(&call).await {
                Ok(answer) => {
                    let (text, quotes) = quoted_summary_of(&answer)?;
                    job.texts.push(text);
                    self.quotes.extend(quotes);
                    job.pieces.done += 1;
                    self.done += 1;
                    Duration::ZERO
                }
                Err(error) => self.wait_after(error, &mut job)?,
            };
        }
        let texts: Vec<&str> = job.texts.iter().map(Text::as_str).collect();
        self.add(Batch { text: texts.join("\n\n").into(), ..job.batch }, job.replaces);
        Ok(())
    }

    /// The call for the summary of the current piece of a job, after a wait.
    fn call(&self, job: &Job, after: Duration) -> Option<ModelCall> {
        let piece = job.pieces.current()?;
        // Batches that are being merged are the material, so they are not shown a second time.
        let before = if job.replaces > 0 { &[][..] } else { &self.batches };
        let before = before.iter().map(|batch| batch.text.as_str());
        let so_far: Vec<&str> = before.chain(job.texts.iter().map(Text::as_str)).collect();
        let request = self.requests.request(&so_far, piece, self.view.thread.counter());
        let (done, total) = (self.done, self.total_calls(job));
        Some(ModelCall { done, total, after, ..ModelCall::new(ModelRole::Fast, request) })
    }

    /// Returns the wait before the call is retried, with half of the piece if its size may be the
    /// cause.
    fn wait_after(&self, error: ModelError, job: &mut Job) -> Result<Duration> {
        let (counter, chunk) = (self.view.thread.counter(), self.jobs);
        if let Some(wait) = job.pieces.wait(&error, &self.requests.options.retries()) {
            // Without a requested wait, the failure may be a timeout of a large piece.
            if error.kind == (ModelErrorKind::Retryable { after: None }) {
                job.halve(counter);
            }
            return Ok(wait);
        }
        if error.is_overflow() {
            if job.halve(counter) || job.clip_more(self.requests.room, counter) {
                return Ok(Duration::ZERO);
            }
            let bytes = job.pieces.current().map_or(0, Piece::bytes);
            return Err(RunError::DoesNotFit { chunk, bytes }.into());
        }
        Err(match error.is_retryable() {
            true => RunError::model(chunk, job.pieces.tries(), &error).into(),
            false => StrategyError::from_model(error),
        })
    }

    /// Adds a new batch, which has the next id, at the end, or replaces the first `replaces`
    /// batches by it.
    fn add(&mut self, batch: Batch, replaces: usize) {
        self.next_id.index = self.next_id.index.saturating_add(1);
        let replaced = self.batches.drain(..replaces.min(self.batches.len()));
        let batch = Batch { replaces: replaced.map(|source| source.id).collect(), ..batch };
        self.made.push(batch.clone());
        let at = if replaces > 0 { 0 } else { self.batches.len() };
        self.batches.insert(at, batch);
    }

    fn time(&self, message: usize) -> Timestamp {
        self.view.thread.time(message).unwrap_or(self.view.brief.now)
    }

    fn proposal(self) -> Result<Proposal> {
        let Self { view, split, requests, batches, made, quotes, .. } = self;
        let text = requests.options.view(&batches);
        let summary = Summary { batches: batches.into(), ..view.summary(text) };
        let before = split.tokens();
        let shown = Message::summary(Role::User, summary.clone());
        let after = view.thread.counter().message(&shown);
        if after >= before {
            return Err(RunError::NotSmaller { before, after }.into());
        }
        let plan = view.thread.stamped(split.plan(&view, summary)?, &view.brief);
        let plan = view.fitted(plan)?;
        Ok(Proposal { batches: made, quotes, ..Proposal::new(plan) })
    }

    /// The number of calls needed in all, as far as known.
    fn total_calls(&self, job: &Job) -> usize {
        let chunks = self.remaining.iter().filter(|chunk| chunk.has_content).count();
        let earlier: usize = self.remaining.iter().map(|chunk| chunk.earlier.len()).sum();
        let batches = self.batches.len() + earlier + chunks + 1;
        let merges = job.replaces == 0 && batches > self.requests.options.max_batches();
        let left = job.pieces.all.len() - job.pieces.done + chunks + usize::from(merges);
        self.done + left
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
