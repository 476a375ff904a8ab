//! Compacting the observed thread: one temporary conversation, compacted like any other.

use std::sync::Arc;

use super::value::Compactor;
use crate::{
    compaction::COMPACT,
    drive::{self, CompactionError, Conversation, Models},
    log::{CompactionRecord, Event, EventLog},
    message::{Message, Request},
    store::Journal,
    strategy::{Brief, Known, Net, Proposal, Snapshot},
};

/// The work of a compaction.
#[derive(Debug)]
pub(super) enum Work<'m> {
    /// Run the strategy with these models.
    Ask(Models<'m>),
    /// Carry out a call of the tool `compact`.
    Apply(Box<Proposal>),
}

impl Compactor {
    /// Compacts the thread to at most the target of the brief, and returns the result. A number is
    /// a brief with this target, in tokens as the provider counts them. Without a target the
    /// [window](Self::with_window) decides; without both, the strategy does.
    ///
    /// The focus is in the `reason` of the brief. `models` is one model, or [`Models`] with a fast
    /// one too; [`Models::default`] is for strategies that call none. A result that misses the
    /// target is accepted if it is smaller than before and fits the window; the report shows its
    /// size. If the thread does not fit the window and the strategy fails, tool results are
    /// trimmed, and then a digest is made.
    ///
    /// The future may be dropped at any point; the thread is then unchanged.
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use threadfold::{Compactor, Message, drive::Models, strategy::Brief};
    /// use threadfold::message::CompactionReason;
    ///
    /// let mut messages = vec![Message::user(format!("Read src/a.rs. {}", "Slowly. ".repeat(300)))];
    /// messages.extend([Message::assistant("I read it."), Message::user("And now?")]);
    /// let mut compactor = Compactor::default();
    /// let reason = CompactionReason::Manual { focus: Some("the parser".into()) };
    /// let brief = Brief { target: Some(300), reason, ..Brief::default() };
    /// // Without a model the ladder ends with a digest.
    /// let done = block_on(compactor.compact(&mut messages, brief, Models::default()))?;
    /// assert!(done.report.after.tokens <= 300 && messages[0].is_summary());
    /// # Ok::<(), threadfold::drive::CompactionError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`CompactionError`]; the thread is unchanged.
    pub async fn compact<'m>(
        &mut self,
        messages: &mut Vec<Message>,
        brief: impl Into<Brief>,
        models: impl Into<Models<'m>>,
    ) -> Result<CompactionRecord, CompactionError> {
        let (brief, models) = (brief.into(), models.into());
        self.observe(messages);
        let brief = self.completed(brief);
        let done = self.carry_out(&brief, Work::Ask(models)).await?;
        *messages = self.messages().to_vec();
        Ok(done)
    }

    /// Compacts the messages of a request like [`compact`](Self::compact). Its system prompt and
    /// tools replace those of [`with_context`](Self::with_context).
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use threadfold::{Compactor, Message, Request, drive::Models};
    ///
    /// let old = Message::user(format!("Never touch the lexer. {}", "Read it. ".repeat(300)));
    /// let thread = vec![old, Message::assistant("I read it."), Message::user("And now?")];
    /// let mut request = Request::new(thread).with_system("Be brief.");
    /// let mut compactor = Compactor::default();
    /// let done = block_on(compactor.compact_request(&mut request, 300, Models::default()))?;
    /// assert_eq!(done.report.after.messages, request.messages.len());
    /// # Ok::<(), threadfold::drive::CompactionError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`CompactionError`]; the request is unchanged.
    pub async fn compact_request<'m>(
        &mut self,
        request: &mut Request,
        brief: impl Into<Brief>,
        models: impl Into<Models<'m>>,
    ) -> Result<CompactionRecord, CompactionError> {
        self.options.system = request.system.clone();
        self.options.tools = request.tools.clone();
        let mut messages = request.messages.to_vec();
        let done = self.compact(&mut messages, brief, models).await?;
        request.messages = messages.into();
        Ok(done)
    }

    /// Compacts the observed thread.
    pub(super) async fn carry_out(
        &mut self,
        brief: &Brief,
        work: Work<'_>,
    ) -> Result<CompactionRecord, CompactionError> {
        let mut thread = self.live.thread.clone().unwrap_or_default();
        let mut journal = Journal::new(log_of(self.messages(), brief)?);
        if let Some(redactor) = &self.options.redactor {
            journal = journal.with_redactor(Arc::clone(redactor));
        }
        let known = &self.live.known;
        let mut conversation = Conversation::new(&mut thread, &mut journal)
            .with_context(self.options.system.clone(), self.options.tools.clone())
            .with_window(self.options.window);
        conversation.known = Some(Known {
            next_compaction: self.next,
            rules: Arc::new(known.rules.clone()),
            facts: known.facts.clone(),
            compacted_by: self.live.compacted_by.clone(),
        });
        let done = match work {
            Work::Ask(models) => {
                let net = self.net();
                drive::run(&mut conversation, &net, brief, models, &mut |_, _| {}, settled).await?
            }
            Work::Apply(driven) => conversation.finish(COMPACT, brief, Ok(*driven)).await?,
        };
        self.compacted(thread, done.plan.new_messages(), &done.strategy);
        Ok(done)
    }

    /// The brief with the compactor's own policy, and with a target in tokens of the counter.
    pub(super) fn completed(&self, brief: Brief) -> Brief {
        let pressure = self.pressure();
        let half = pressure.thread / 2;
        let requested = self.requested_target(pressure).filter(|target| pressure.thread > *target);
        let target = brief.target.or_else(|| requested.map(|target| target.min(half)));
        Brief {
            compaction: Some(self.next),
            target: target.map(|target| self.ratio.scale_down(target)),
            retention: brief.retention.or_else(|| self.options.retention.clone()),
            ..brief
        }
    }

    /// The strategy with its fallback, if the thread does not fit as it is.
    fn net(&self) -> Net {
        let fits = self
            .options
            .window
            .map(|window| self.ratio.scale_down(window.tokens()).saturating_sub(self.overhead()));
        let thread = self.live.thread.as_ref().map_or(0, |thread| thread.size().tokens);
        let last_resort = fits.is_some_and(|fits| thread > fits);
        Net { strategy: Arc::clone(&self.options.strategy), limit: fits, last_resort, once: true }
    }
}

/// A log of these messages alone, for the record of one compaction.
fn log_of(messages: &[Message], brief: &Brief) -> Result<EventLog, CompactionError> {
    let mut log = EventLog::new("compactor".parse()?);
    for message in messages {
        log.append(brief.now, Event::MessageAppended(message.clone()))?;
    }
    Ok(log)
}

/// Returns a proposal as it is, because the fallback has settled it already.
fn settled(proposal: Proposal, _: &Snapshot, _: &Brief) -> Result<Proposal, CompactionError> {
    Ok(proposal)
}
