//! Collects what a log states about the compactions of its thread.

use threadfold::{
    ContentBlock, EventLog, Message, Role, TokenCounter,
    compact::{CompactReport, Prices},
    log::{CompactionFailure, CompactionRecord, Event, LoggedEvent, NetGain, Rung, TotalUsage},
    message::{CompactionId, CompactionReason, Text, Timestamp, Usage},
    retention::{Facts, Retention, RetentionPolicy},
    tokens::ByteEstimate,
};

use crate::words::first_words;

const COUNTER: ByteEstimate = ByteEstimate::TRIGGER;

/// The maximum number of compactions for which retention and savings are computed.
const MAX_WORKED_OUT: usize = 50;

/// A log does not state the provider's prices, so savings are given in tokens.
const IN_TOKENS: Prices = Prices {
    input: 0.0,
    cached: 0.0,
    cache_write: 0.0,
    output: 0.0,
    cache_life_ms: 300_000,
    cache_min: 0,
    cache_block: 0,
};

/// The history of a thread, prepared for the page.
#[derive(Debug, Default)]
pub struct Story<'a> {
    pub thread: &'a str,
    /// The first words that a person typed into it.
    pub words: String,
    /// The window of the model in tokens, if it is known.
    pub window: Option<u64>,
    pub times: Option<(Timestamp, Timestamp)>,
    /// The number of messages, and how many of these the user typed.
    pub said: usize,
    pub turns: usize,
    /// The number of messages in the thread now, and their tokens.
    pub left: (usize, u64),
    pub sizes: Vec<Point>,
    pub compactions: Vec<Compaction<'a>>,
    pub spent: TotalUsage,
}

/// The size of the context after a number of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    pub said: usize,
    pub tokens: u64,
}

/// A compaction, however it ended.
#[derive(Debug)]
pub struct Compaction<'a> {
    pub id: CompactionId,
    pub at: Timestamp,
    /// The number of messages and turns before it, and the size of the context.
    pub said: usize,
    pub turn: usize,
    pub tokens: u64,
    pub reason: &'a CompactionReason,
    pub strategy: &'a Text,
    pub usage: Usage,
    pub rungs: &'a [Rung],
    pub outcome: Outcome<'a>,
}

/// How a compaction ended.
#[derive(Debug)]
pub enum Outcome<'a> {
    /// The thread was compacted.
    Done(Box<Done<'a>>),
    /// It failed.
    Failed { error: &'a Text },
    /// Its plan does not fit the log, so a replay leaves it out.
    LeftOut,
}

/// The result of a compaction.
#[derive(Debug)]
pub struct Done<'a> {
    pub report: &'a CompactReport,
    /// The composition of the thread before and after.
    pub before: Mix,
    pub after: Mix,
    /// The removed messages, including those of which a part stayed.
    pub gone: Vec<Message>,
    pub summaries: Vec<Text>,
    /// The kept facts; `None` for early compactions of a log without them.
    pub retention: Option<Retention>,
    /// Whether the log does not state the kept facts, so that they were computed for this page.
    pub worked_out: bool,
    /// The number of turns before it was undone, if it was.
    pub undone: Option<usize>,
    /// The usage that the provider reported until the next compaction.
    pub since: Option<NetGain>,
}

/// The tokens of a thread, by author.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mix {
    pub user: u64,
    pub assistant: u64,
    pub tools: u64,
    pub summaries: u64,
}

impl Done<'_> {
    /// The kept share of the weight of all facts, in percent.
    pub fn kept(&self) -> Option<u64> {
        Some(self.retention.as_ref()?.overall.weight_percent())
    }
}

impl Mix {
    fn of(messages: &[Message]) -> Self {
        let mut mix = Self::default();
        for message in messages {
            let tokens = COUNTER.message(message);
            let part = match message.role {
                _ if message.is_summary() => &mut mix.summaries,
                _ if message.tool_results().next().is_some() => &mut mix.tools,
                Role::User | Role::System => &mut mix.user,
                Role::Assistant => &mut mix.assistant,
            };
            *part += tokens;
        }
        mix
    }

    pub fn total(self) -> u64 {
        self.user + self.assistant + self.tools + self.summaries
    }
}

impl<'a> Story<'a> {
    /// Returns the history in this log, for a model with this window.
    pub fn of(log: &'a EventLog, window: Option<u64>) -> Self {
        let mut teller = Teller {
            story: Self {
                thread: log.thread_id().as_str(),
                words: first_words(log.events().iter().filter_map(appended), 160),
                window,
                ..Self::default()
            },
            so_far: EventLog::new(log.thread_id().clone()),
            messages: Vec::new(),
            tokens: 0,
            facts: Facts::new(&RetentionPolicy::default()),
            unaudited: log.events().iter().filter(|logged| is_unaudited(&logged.event)).count(),
        };
        log.events().iter().for_each(|logged| teller.hear(logged));
        teller.story.left = (teller.messages.len(), teller.tokens);
        for compaction in teller.story.compactions.iter_mut().rev().take(MAX_WORKED_OUT) {
            if let Outcome::Done(done) = &mut compaction.outcome {
                done.since = log.net_gain(compaction.id, &IN_TOKENS);
            }
        }
        teller.story
    }

    /// The compactions that changed the thread.
    pub fn done(&self) -> impl Iterator<Item = (&Compaction<'a>, &Done<'a>)> {
        self.compactions.iter().filter_map(|compaction| match &compaction.outcome {
            Outcome::Done(done) => Some((compaction, done.as_ref())),
            Outcome::Failed { .. } | Outcome::LeftOut => None,
        })
    }

    /// The tokens that compactions removed, less those that an undo restored.
    pub fn freed(&self) -> i64 {
        let stands = self.done().filter(|(_, done)| done.undone.is_none());
        stands.map(|(_, done)| done.report.tokens_saved()).fold(0, i64::saturating_add)
    }
}

/// Walks through a log, event by event.
struct Teller<'a> {
    story: Story<'a>,
    so_far: EventLog,
    messages: Vec<Message>,
    tokens: u64,
    facts: Facts,
    /// The number of later compactions for which the log does not state the kept facts.
    unaudited: usize,
}

impl<'a> Teller<'a> {
    fn hear(&mut self, logged: &'a LoggedEvent) {
        let (first, _) = self.story.times.unwrap_or((logged.at, logged.at));
        self.story.times = Some((first, logged.at));
        self.story.spent.record(&logged.event);
        // The log was read, so its events are in order.
        let _ = self.so_far.append_logged(logged.clone());
        match &logged.event {
            Event::MessageAppended(message) => self.said(message),
            Event::Compacted(record) => self.compacted(logged.at, record),
            Event::CompactionFailed(failure) => self.failed(logged.at, failure),
            Event::CompactionUndone { id } => self.undone(*id),
            Event::Truncated { .. } => self.rewritten(),
            _ => {}
        }
    }

    fn said(&mut self, message: &Message) {
        self.story.said += 1;
        self.story.turns += usize::from(message.is_typed());
        self.tokens += COUNTER.message(message);
        self.messages.push(message.clone());
        self.facts.read(message);
        self.point();
    }

    fn point(&mut self) {
        self.story.sizes.push(Point { said: self.story.said, tokens: self.tokens });
    }

    /// Updates the sizes after a change other than an append.
    fn rewritten(&mut self) {
        self.messages = self.so_far.replay();
        self.tokens = COUNTER.messages(&self.messages);
        self.point();
    }

    fn compacted(&mut self, at: Timestamp, record: &'a CompactionRecord) {
        let (before, tokens) = (Mix::of(&self.messages), self.tokens);
        let outcome = match record.plan.apply(&mut self.messages) {
            Err(_) => Outcome::LeftOut,
            Ok(removed) => {
                self.tokens = COUNTER.messages(&self.messages);
                let worked_out = record.report.retention.is_none();
                let stated = record.report.retention.as_deref().cloned();
                Outcome::Done(Box::new(Done {
                    report: &record.report,
                    before,
                    after: Mix::of(&self.messages),
                    gone: removed,
                    summaries: summaries(record),
                    retention: stated.or_else(|| self.worked_out()),
                    worked_out,
                    undone: None,
                    since: None,
                }))
            }
        };
        self.story.compactions.push(Compaction {
            id: record.id,
            at,
            said: self.story.said,
            turn: self.story.turns,
            tokens,
            reason: &record.reason,
            strategy: &record.strategy,
            usage: record.usage,
            rungs: &record.rungs,
            outcome,
        });
        self.point();
    }

    /// Computes the kept facts, for the latest compactions for which the log does not state them.
    fn worked_out(&mut self) -> Option<Retention> {
        self.unaudited = self.unaudited.saturating_sub(1);
        let wanted = self.unaudited < MAX_WORKED_OUT;
        wanted.then(|| self.facts.audit(&self.messages).shortened())
    }

    fn failed(&mut self, at: Timestamp, failure: &'a CompactionFailure) {
        self.story.compactions.push(Compaction {
            id: failure.id,
            at,
            said: self.story.said,
            turn: self.story.turns,
            tokens: self.tokens,
            reason: &failure.reason,
            strategy: &failure.strategy,
            usage: failure.usage,
            rungs: &failure.rungs,
            outcome: Outcome::Failed { error: &failure.error },
        });
    }

    fn undone(&mut self, id: CompactionId) {
        let turn = self.story.turns;
        for compaction in self.story.compactions.iter_mut().rev() {
            if let Outcome::Done(done) = &mut compaction.outcome
                && compaction.id == id
            {
                done.undone = Some(turn);
                break;
            }
        }
        self.rewritten();
    }
}

fn appended(logged: &LoggedEvent) -> Option<&Message> {
    match &logged.event {
        Event::MessageAppended(message) => Some(message),
        _ => None,
    }
}

fn is_unaudited(event: &Event) -> bool {
    matches!(event, Event::Compacted(record) if record.report.retention.is_none())
}

fn summaries(record: &CompactionRecord) -> Vec<Text> {
    let blocks = record.plan.new_messages().flat_map(|message| &message.content);
    let summary = |block: &ContentBlock| match block {
        ContentBlock::Summary(summary) => Some(summary.text.clone()),
        block => block.as_text().cloned(),
    };
    blocks.filter_map(summary).collect()
}
