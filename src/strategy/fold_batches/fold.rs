//! The state machine: folds chunks into batches, then proposes a plan.

use std::{collections::VecDeque, time::Duration};

use super::{
    chunks::{self, Chunk, Item, Limits, Piece},
    options::{self, FoldBatches},
    requests::{MIN_TOKENS, RequestWriter},
    split::{Earlier, Split},
};
use crate::{ledger::Quotes, strategy::kit::*};

/// Longest wait before a retry. A call is not retried if the provider asks for more.
const MAX_WAIT: Duration = Duration::from_secs(600);

/// One attempt. It works on one job at a time, with one request at a time.
#[derive(Debug)]
pub(super) struct Folding {
    task: Task,
    split: Split,
    requests: RequestWriter,
    /// Items whose job has not begun.
    remaining: VecDeque<Item>,
    /// The batches so far, in order, and all new ones, also those that were replaced.
    batches: Vec<Batch>,
    made: Vec<Batch>,
    /// The id of the next new batch.
    next_id: BatchId,
    /// Number of jobs that were begun.
    jobs: usize,
    /// Number of requests that were answered.
    done: usize,
    job: Job,
    /// The quotes in the answers so far.
    quotes: Quotes,
    current: Current,
}

/// The work on one batch.
#[derive(Debug, Default)]
struct Job {
    /// Pieces without a summary, in order. The current request is about the first one.
    pieces: VecDeque<Piece>,
    /// Summaries of the finished pieces.
    texts: Vec<Text>,
    retries: u32,
    /// The batch without its text.
    batch: Option<Batch>,
    /// Number of earlier batches, counted from the first, that the new one replaces.
    replaces: usize,
}

impl Folding {
    /// Returns the attempt with its first request, or with its end if none is needed.
    ///
    /// # Errors
    ///
    /// [`StrategyError::Plan`] if a removal is illegal.
    pub(super) fn new(
        task: Task,
        (split, items): (Split, Vec<Item>),
        requests: RequestWriter,
    ) -> Result<Self> {
        let mut folding = Self {
            batches: Vec::new(),
            made: Vec::new(),
            next_id: first_id(&task),
            task,
            split,
            requests,
            remaining: items.into(),
            jobs: 0,
            done: 0,
            job: Job::default(),
            quotes: Quotes::default(),
            current: Current::Ended(Ended(Err(StrategyError::NeedsModel))),
        };
        // Build the plan once now, so that an illegal removal fails before a model call is paid
        // for.
        drop(folding.split.plan(&folding.task, Summary::new("."))?);
        folding.next_job();
        Ok(folding)
    }

    /// Begins the next job, or ends.
    fn next_job(&mut self) {
        while let Some(item) = self.remaining.pop_front() {
            match item {
                Item::Earlier(Earlier::Batch(batch)) => self.batches.push(batch),
                Item::Earlier(Earlier::Summary(text, message)) => {
                    let at = self.time(message);
                    let batch = Batch::new(self.next_id, text);
                    self.add(Batch { start: at, end: at, ..batch }, 0);
                }
                Item::Chunk(chunk) => return self.fold(chunk),
            }
        }
        if self.batches.len() > self.requests.options.max_batches() {
            return self.merge_older();
        }
        self.current = Current::Ended(Ended(self.propose()));
    }

    fn fold(&mut self, chunk: Chunk) {
        let (first, last) = (chunk.range.start, chunk.range.end.saturating_sub(1));
        let batch = Batch {
            start: self.time(first),
            end: self.time(last),
            messages: chunk.messages,
            ..Batch::new(self.next_id, "")
        };
        let job = Job { pieces: [chunk.piece].into(), batch: Some(batch), ..Job::default() };
        self.begin(job);
    }

    /// Summarises all batches except the last `clip_last` ones into one.
    fn merge_older(&mut self) {
        let replaces = self.batches.len().saturating_sub(self.requests.options.clip_last);
        let (sources, _) = self.batches.split_at(replaces);
        let depth = sources.iter().map(|source| source.depth).max().unwrap_or_default();
        let messages = sources.iter().map(|source| source.messages);
        let messages = messages.fold(0, usize::saturating_add);
        let start = sources.first().map_or(self.task.brief.now, |source| source.start);
        let end = sources.last().map_or(self.task.brief.now, |source| source.end);
        let parts = sources.iter().enumerate().map(|(index, source)| {
            let text = format!("{}\n{}", options::label(index, source), source.text);
            vec![Message::user(text)]
        });
        let pieces =
            chunks::in_pieces(parts, self.requests.room, self.task.thread.counter()).into();
        let depth = depth.saturating_add(1);
        let batch = Batch { depth, start, end, messages, ..Batch::new(self.next_id, "") };
        self.begin(Job { pieces, batch: Some(batch), replaces, ..Job::default() });
    }

    fn begin(&mut self, job: Job) {
        self.job = job;
        self.jobs += 1;
        self.ask(Duration::ZERO);
    }

    /// Requests the summary of the first piece of the job, after a wait.
    fn ask(&mut self, after: Duration) {
        let Some(piece) = self.job.pieces.front() else { return };
        // Batches that are being merged are the material, so they are not shown a second time.
        let before = if self.job.replaces > 0 { &[][..] } else { &self.batches };
        let before = before.iter().map(|batch| batch.text.as_str());
        let so_far: Vec<&str> = before.chain(self.job.texts.iter().map(Text::as_str)).collect();
        let request = self.requests.request(&so_far, piece, self.task.thread.counter());
        let (done, total) = (self.done, self.total_calls());
        self.current = Current::Call { model: ModelRole::Fast, request, done, total, after };
    }

    fn answered(&mut self, turn: &Turn) -> Result<()> {
        let (text, quotes) = attempt::quoted_summary_of(turn)?;
        self.job.texts.push(text);
        self.quotes.extend(quotes);
        self.job.pieces.pop_front();
        self.done += 1;
        if !self.job.pieces.is_empty() {
            self.ask(Duration::ZERO);
            return Ok(());
        }
        let job = std::mem::take(&mut self.job);
        if let Some(batch) = job.batch {
            let texts: Vec<&str> = job.texts.iter().map(Text::as_str).collect();
            self.add(Batch { text: texts.join("\n\n").into(), ..batch }, job.replaces);
        }
        self.next_job();
        Ok(())
    }

    /// Retries the call, with half of the piece if its size may be the cause, or gives up.
    fn failed(&mut self, error: ModelError) -> Result<()> {
        match error.kind {
            ModelErrorKind::Overflow { .. } => {
                if self.halve() || self.clip_more() {
                    self.ask(Duration::ZERO);
                    return Ok(());
                }
                let tokens = self.job.pieces.front();
                let tokens = tokens.map_or(0, |piece| piece.tokens(self.task.thread.counter()));
                Err(RunError::PieceTooLarge { chunk: self.jobs, tokens }.into())
            }
            ModelErrorKind::Retryable { after } => {
                let wait = after.unwrap_or_else(|| self.backoff());
                self.job.retries = self.job.retries.saturating_add(1);
                if self.job.retries > self.requests.options.max_retries || wait > MAX_WAIT {
                    let (chunk, tries) = (self.jobs, self.job.retries);
                    let ModelError { kind, message, .. } = error;
                    return Err(RunError::Exhausted { chunk, tries, kind, message }.into());
                }
                // Without a requested wait, the failure may be a timeout of a large piece, so halve
                // it.
                if after.is_none() {
                    self.halve();
                }
                self.ask(wait);
                Ok(())
            }
            ModelErrorKind::Authentication
            | ModelErrorKind::Refused
            | ModelErrorKind::NoModel
            | ModelErrorKind::Other => Err(StrategyError::from_model(error)),
        }
    }

    /// Halves the current piece unless it is small already, and returns whether it was halved.
    fn halve(&mut self) -> bool {
        let counter = self.task.thread.counter();
        let Some(piece) = self.job.pieces.front() else { return false };
        let small = piece.parts.iter().map(Vec::len).sum::<usize>() <= 2;
        if small && piece.tokens(counter) <= MIN_TOKENS {
            return false;
        }
        let Some([first, second]) = piece.halves(counter) else { return false };
        self.job.pieces.pop_front();
        self.job.pieces.push_front(second);
        self.job.pieces.push_front(first);
        true
    }

    /// Halves the token limit of a piece that cannot be divided. Returns whether the new limit is
    /// worth a call.
    fn clip_more(&mut self) -> bool {
        let room = self.requests.room.unwrap_or(u64::MAX);
        let Some(piece) = self.job.pieces.front_mut() else { return false };
        let sent = piece.tokens(self.task.thread.counter()).min(room);
        let half = piece.most.unwrap_or(sent).min(sent) / 2;
        piece.most = Some(half);
        half >= MIN_TOKENS
    }

    fn backoff(&self) -> Duration {
        let factor = 2_u64.checked_pow(self.job.retries).unwrap_or(u64::MAX);
        Duration::from_millis(self.requests.options.backoff_ms.saturating_mul(factor)).min(MAX_WAIT)
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
        self.task.thread.time(message).unwrap_or(self.task.brief.now)
    }

    fn propose(&mut self) -> Result<Proposal> {
        let batches = std::mem::take(&mut self.batches);
        let made = std::mem::take(&mut self.made);
        let text = self.requests.options.view(&batches);
        let summary = Summary { batches: batches.into(), ..self.task.summary(text) };
        let before = self.split.tokens();
        let view = Message::summary(Role::User, summary.clone());
        let after = self.task.thread.counter().message(&view);
        if after >= before {
            return Err(RunError::NotSmaller { before, after }.into());
        }
        let Task { thread, brief } = &self.task;
        let plan = thread.stamped(self.split.plan(&self.task, summary)?, brief);
        let plan = self.task.fitted(plan)?;
        let quotes = std::mem::take(&mut self.quotes);
        Ok(Proposal { batches: made, quotes, ..Proposal::new(plan) })
    }

    /// The number of calls needed in all, as far as known.
    fn total_calls(&self) -> usize {
        let chunks = self.remaining.iter().filter(|item| matches!(item, Item::Chunk(_))).count();
        let batches = self.batches.len() + self.remaining.len() + 1;
        let merges = self.job.replaces == 0 && batches > self.requests.options.max_batches();
        let left = self.job.pieces.len() + chunks + usize::from(merges);
        self.done + left
    }
}

/// Returns the first id of new batches. It follows the ids of the batches in the thread, because
/// without a log all compactions have the same number.
fn first_id(Task { thread, brief }: &Task) -> BatchId {
    let compaction = brief.compaction.unwrap_or_default();
    let summaries = thread.messages().iter().flat_map(Message::summaries);
    let ids = summaries.flat_map(|summary| &summary.batches).map(|batch| batch.id);
    let ids = ids.filter(|id| id.compaction == compaction);
    let index = ids.map(|id| id.index.saturating_add(1)).max().unwrap_or_default();
    BatchId { compaction, index }
}

impl Attempt for Folding {
    fn step(&self) -> Step<'_> {
        self.current.step()
    }

    fn handle(&mut self, answer: Result<Turn, ModelError>) {
        let Current::Call { .. } = self.current else { return };
        let handled = match answer {
            Ok(turn) => self.answered(&turn),
            Err(error) => self.failed(error),
        };
        if let Err(error) = handled {
            self.current = Current::Ended(Ended(Err(error)));
        }
    }
}

impl CompactionStrategy for FoldBatches {
    fn name(&self) -> &str {
        "fold-batches"
    }

    fn begin(&self, thread: &Snapshot, brief: &Brief) -> Box<dyn Attempt> {
        attempt::or_failed(self.attempt(thread, brief))
    }
}

impl FoldBatches {
    fn attempt(&self, thread: &Snapshot, brief: &Brief) -> Result<Box<dyn Attempt>> {
        self.check()?;
        let target = [self.target, brief.target].into_iter().flatten().min();
        let task = Task::new(thread, &Brief { target, ..brief.clone() });
        let mut split = self.split(&task)?;
        let requests = RequestWriter::new(self.clone(), &task)?;
        let by_count = self.chunk_tokens.is_none();
        let limits = Limits {
            messages: by_count.then_some(self.chunk_messages),
            tokens: [self.chunk_tokens, requests.room].into_iter().flatten().min(),
        };
        let items = chunks::group(&mut split.stretches, limits, thread.counter());
        Ok(Box::new(Folding::new(task, (split, items), requests)?))
    }
}
