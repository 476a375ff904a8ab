//! The compactor: its memory, its options, how it reads a thread, and how it compacts it. Each
//! compaction is one temporary conversation, compacted like any other, for the host or for the two
//! tools with which the model compacts its own thread.

use std::sync::Arc;

use futures::{FutureExt, future::BoxFuture};
use serde::{Deserialize, Serialize};

use super::memory::{AfterCompaction, Memory};
use crate::{
    auto::{AutoCompactor, AutoPolicy, IdleStep, Input, Pressure},
    compact::Size,
    compaction::{
        self, COMPACT, COMPACT_CONTEXT, COMPACTED, ContextCompacted, ONE_CALL, Result, plan_call,
    },
    drive::{self, CompactionJob, Conversation, Models, PreparedCompaction},
    foreign::{self, HostMessage, HostPlan},
    ledger::Ledger,
    log::{self, CompactionRecord, Event, EventLog, Thread},
    message::{
        CompactionId, CompactionReason, ContentBlock, ContextWindow, InvalidValue, Message,
        Redactor, Request, Role, Text, Timestamp, ToolResult, ToolSpec, ToolUse, Usage,
    },
    retention::RetentionPolicy,
    store::Journal,
    strategy::{
        Brief, CompactionStrategy, ConversationFacts, Fallback, Ladder, Proposal, Rejection, Terms,
        When,
    },
    tokens::{ByteEstimate, Calibrated, TokenCounter},
    wire,
};

/// The number of compactions that are remembered: the last one, and the one before it for a host that
/// undoes the last one. Those after a refusal are beside them until the request is answered, because a
/// host takes all of these back if the request is given up.
const REMEMBERED: usize = 2;

/// Compacts the thread of a host that has a loop and a message vector of its own.
///
/// [`observe`](Self::observe) reads the new messages of the vector, [`compact`](Self::compact)
/// replaces its old part. Standing rules and facts are kept over any number of compactions. See the
/// [module](super) for what is stored.
///
/// ```
/// use futures::executor::block_on;
/// use threadfold::{Compactor, Message, testing::ExtractiveModel};
///
/// let long = |text: &str| Message::assistant(format!("{text} {}", "I read on. ".repeat(200)));
/// let mut messages = vec![Message::user("Fix src/parse.rs.")];
/// let mut compactor = Compactor::default();
/// compactor.add_rule("Never touch the lexer.")?;
/// for round in 0..3 {
///     messages.extend([long("It is long."), Message::user(format!("Go on with part {round}."))]);
///     let done = block_on(compactor.compact(&mut messages, 500, &ExtractiveModel))?;
///     assert!(done.report.after.tokens <= 500);
///     // The host stores both, and reads them again.
///     let stored = serde_json::to_string(&(&compactor, &messages))?;
///     (compactor, messages) = serde_json::from_str(&stored)?;
/// }
/// compactor.observe(&messages);
/// assert_eq!(compactor.rules().to_string(), "- Never touch the lexer.\n");
/// assert!(format!("{messages:?}").contains("- Never touch the lexer."));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
#[must_use]
pub struct Compactor {
    /// The latest compactions, the last one at the end.
    past: Vec<AfterCompaction>,
    /// The host's changes of the rules.
    changes: Vec<RuleChange>,
    /// The number of the next compaction.
    next: CompactionId,
    #[serde(skip)]
    options: Options,
    /// Decides when to compact. Only its ratio is stored.
    #[serde(rename = "ratio", with = "ratio")]
    pub(super) auto: AutoCompactor,
    /// The reason of the compaction in the last [`RequestStep`](super::RequestStep), until it ends.
    #[serde(skip)]
    pub(super) offered: Option<CompactionReason>,
    #[serde(skip)]
    pub(super) live: Live,
}

/// The vector as it was last observed. It is not stored: the host stores the vector itself.
#[derive(Clone, Debug, Default)]
pub(super) struct Live {
    /// The messages; `None` before the first observation.
    thread: Option<Thread>,
    known: Memory,
    /// The number of entries of `past` that the messages continue.
    past: usize,
    /// Whether an answer reported its usage since the thread was last rewritten or read anew.
    is_counted: bool,
    /// The strategy of the last compaction, if no message was added since.
    compacted_by: Option<Text>,
    /// Whether a compaction was due at the threshold, if no message was added since.
    pub(super) is_compacted_ahead: bool,
    /// The messages before the provider refused the request first, if none was added since.
    pub(super) unrefused: Option<Arc<Vec<Message>>>,
}

/// A change of the standing rules by the host.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RuleChange {
    Added { text: Text },
    Revoked { id: Text },
}

options! {
    /// The options that a host sets. None of them is stored.
    #[derive(Clone, Debug)]
    struct Options {
        strategy: Arc<dyn CompactionStrategy> = Arc::new(Ladder::default()),
        redactor: Option<Arc<dyn Redactor>> = None,
        retention: Option<RetentionPolicy> = Some(RetentionPolicy::default()),
        counter: Arc<dyn TokenCounter> = Arc::new(ByteEstimate::TRIGGER),
        window: Option<ContextWindow> = None,
        system: Arc<Vec<Message>> = Arc::default(),
        tools: Arc<Vec<ToolSpec>> = Arc::default(),
        max_output: Option<u64> = None,
    }
}

/// A planned compaction of a host's own messages.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PlannedHost {
    /// The edit, in indexes of the host's messages.
    pub plan: HostPlan,
    /// What was done and what it cost. Its own plan is for the shadows of the messages.
    pub record: CompactionRecord,
}

/// The work of a compaction.
#[derive(Debug)]
enum Work<'m> {
    /// Run the strategy with these models.
    Ask(Models<'m>),
    /// Carry out a call of the tool `compact`.
    Apply(Box<Proposal>),
    /// Adopt what was prepared.
    Adopt(&'m PreparedCompaction),
}

impl Compactor {
    /// Returns the compactor with this strategy; the default is the
    /// [ladder](crate::strategy::Ladder) of a session.
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use std::sync::Arc;
    /// use threadfold::{Compactor, Message, testing::ExtractiveModel};
    /// use threadfold::strategy::{Brief, KeepRecent};
    ///
    /// let mut messages: Vec<Message> = (0..20).map(|n| Message::assistant(format!("Step {n}."))).collect();
    /// let keep = KeepRecent { messages: 4, ..KeepRecent::default() };
    /// let mut compactor = Compactor::default().with_strategy(Arc::new(keep));
    /// block_on(compactor.compact(&mut messages, Brief::default(), &ExtractiveModel))?;
    /// assert_eq!(messages.len(), 4);
    /// # Ok::<(), threadfold::drive::CompactionError>(())
    /// ```
    pub fn with_strategy(mut self, strategy: Arc<dyn CompactionStrategy>) -> Self {
        self.options.strategy = strategy;
        self.live.compacted_by = None;
        self
    }

    /// Returns the compactor with a redactor. Strategies, rules, facts and summaries get redacted
    /// texts; the messages that stay keep the originals.
    ///
    /// ```
    /// use std::{borrow::Cow, sync::Arc};
    /// use threadfold::{Compactor, message::Redactor};
    ///
    /// #[derive(Debug)]
    /// struct Keys;
    ///
    /// impl Redactor for Keys {
    ///     fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
    ///         text.replace("sk-123", "[key]").into()
    ///     }
    /// }
    ///
    /// let mut compactor = Compactor::default().with_redactor(Arc::new(Keys));
    /// compactor.add_rule("Never print sk-123.")?;
    /// assert_eq!(compactor.rules().to_string(), "- Never print [key].\n");
    /// # Ok::<(), threadfold::message::InvalidValue>(())
    /// ```
    pub fn with_redactor(mut self, redactor: Arc<dyn Redactor>) -> Self {
        self.options.redactor = Some(redactor);
        self.forget_live()
    }

    /// Returns the compactor with a retention policy; `None` turns the audit off. The default is
    /// [`RetentionPolicy::default`], as in a session. The `retention` of a brief takes precedence,
    /// except for its audit options.
    ///
    /// ```
    /// use threadfold::{Compactor, retention::RetentionPolicy};
    ///
    /// // A summary must keep 60 percent of the weight of all facts, or the strategy fails.
    /// let policy = RetentionPolicy { minimum: 60, ..RetentionPolicy::default() };
    /// let strict = Compactor::default().with_retention(policy);
    /// let without_audit = Compactor::default().with_retention(None);
    /// ```
    pub fn with_retention(mut self, policy: impl Into<Option<RetentionPolicy>>) -> Self {
        self.options.retention = policy.into();
        self.forget_live()
    }

    /// Returns the compactor with another token counter; the default is
    /// [`ByteEstimate::TRIGGER`](crate::tokens::ByteEstimate::TRIGGER). With any counter, the ratio
    /// to the provider's counts is learned.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use threadfold::{Compactor, Message, tokens::ByteEstimate};
    ///
    /// let mut compactor = Compactor::default().with_counter(Arc::new(ByteEstimate::new(4)));
    /// compactor.observe(&[Message::user("Where is the parser?")]);
    /// assert!(compactor.context_tokens() > 0);
    /// ```
    pub fn with_counter(mut self, counter: Arc<dyn TokenCounter>) -> Self {
        self.options.counter = counter;
        self.forget_live()
    }

    /// Returns the compactor with the context window of the model. A brief without a target then
    /// aims at half of the thread, or at half of the window if that is less.
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use threadfold::{Compactor, ContextWindow, Message, testing::ExtractiveModel};
    /// use threadfold::strategy::Brief;
    ///
    /// let said = |n| Message::assistant(format!("{n} {}", "The parser reads words. ".repeat(200)));
    /// let mut messages: Vec<Message> = (0..20).map(said).collect();
    /// let mut compactor = Compactor::default().with_window(ContextWindow::new(30_000));
    /// compactor.observe(&messages);
    /// let before = compactor.context_tokens();
    /// let brief = Brief::default();
    /// block_on(compactor.compact(&mut messages, brief, &ExtractiveModel))?;
    /// assert!(compactor.context_tokens() <= before / 2);
    /// # Ok::<(), threadfold::drive::CompactionError>(())
    /// ```
    pub fn with_window(mut self, window: impl Into<Option<ContextWindow>>) -> Self {
        self.options.window = window.into();
        self
    }

    /// Returns the compactor with the system prompt and the tools of the conversation, which are
    /// part of requests for summaries and take room in the window.
    ///
    /// ```
    /// use threadfold::{Compactor, Message, message::ToolSpec};
    ///
    /// let mut compactor = Compactor::default();
    /// compactor.observe(&[Message::user("Hi.")]);
    /// let before = compactor.context_tokens();
    /// let tools = vec![ToolSpec::new("read", "Reads a file.", serde_json::json!({}))];
    /// let compactor = compactor.with_context(vec![Message::system("Be brief.")], tools);
    /// assert!(compactor.context_tokens() > before);
    /// ```
    pub fn with_context(
        mut self,
        system: impl Into<Arc<Vec<Message>>>,
        tools: impl Into<Arc<Vec<ToolSpec>>>,
    ) -> Self {
        (self.options.system, self.options.tools) = (system.into(), tools.into());
        self
    }

    /// Returns the compactor with the `max_output` of its next requests, for which the window has to
    /// have room; `None` for that of the provider. A request is sent with the one that
    /// [`RequestStep::Send`](super::RequestStep::Send) has: some providers refuse a request that
    /// exceeds the window only together with it, and a shorter answer costs less than a shorter
    /// thread.
    ///
    /// ```
    /// use threadfold::{Compactor, ContextWindow, Message, auto::Refusal};
    /// use threadfold::{compactor::RequestStep, message::Timestamp};
    ///
    /// let window = ContextWindow::new(10_000);
    /// let mut compactor = Compactor::default().with_window(window).with_max_output(5_000);
    /// let long = Message::assistant("I read the parser, line by line. ".repeat(500));
    /// compactor.observe(&[Message::user("Read it."), long, Message::user("Is it long?")]);
    /// let RequestStep::Send { max_output } = compactor.before_request(Timestamp(0)) else { panic!() };
    /// assert_eq!(max_output, Some(5_000));
    /// // The provider refuses the sum.
    /// let refusal = Refusal { limit: Some(10_000), found: Some(5_600), output: Some(5_000) };
    /// let RequestStep::Send { max_output } = compactor.refused(Timestamp(0), refusal) else { panic!() };
    /// assert!(max_output.is_some_and(|tokens| (4_000..5_000).contains(&tokens)));
    /// ```
    pub fn with_max_output(mut self, tokens: impl Into<Option<u64>>) -> Self {
        self.options.max_output = tokens.into();
        self
    }

    /// Returns the compactor with this policy, by which it decides when to compact and how far: see
    /// [`before_request`](Self::before_request) and [`idle`](Self::idle).
    ///
    /// # Errors
    ///
    /// As [`AutoPolicy::check`].
    ///
    /// ```
    /// use threadfold::{Compactor, auto::AutoPolicy};
    ///
    /// let compactor = Compactor::default().with_policy(AutoPolicy::default())?;
    /// let wrong = AutoPolicy { min_growth: 25.0, ..AutoPolicy::default() };
    /// assert!(compactor.with_policy(wrong).is_err());
    /// # Ok::<(), threadfold::message::InvalidValue>(())
    /// ```
    pub fn with_policy(mut self, policy: AutoPolicy) -> Result<Self, InvalidValue> {
        self.auto.set_policy(policy)?;
        Ok(self)
    }

    /// Reads the new messages of the thread since the last call: rules, facts, and the usage that
    /// answers report. The time is linear in the new messages; older ones are only compared by
    /// handle.
    ///
    /// If the host changed older messages, the thread is read again: from the last compaction whose
    /// summary it still has, else from its start. The rules and facts of messages that the host
    /// removed since then are forgotten; those of messages that an earlier compaction removed stay.
    /// Rules that the host added always stay.
    ///
    /// [`compact`](Self::compact) observes the thread itself. Call this before changing old
    /// messages, and before reading [`rules`](Self::rules) and
    /// [`context_tokens`](Self::context_tokens).
    ///
    /// ```
    /// use threadfold::{Compactor, Message};
    ///
    /// let mut messages = vec![Message::user("Fix the parser."), Message::assistant("Fine.")];
    /// let mut compactor = Compactor::default();
    /// compactor.observe(&messages);
    /// let before = compactor.context_tokens();
    /// messages.push(Message::user("And the lexer."));
    /// compactor.observe(&messages);
    /// assert!(compactor.context_tokens() > before);
    /// // The host takes the last message back.
    /// messages.pop();
    /// compactor.observe(&messages);
    /// assert_eq!(compactor.context_tokens(), before);
    /// ```
    pub fn observe(&mut self, messages: &[Message]) {
        let recognised = wire::recognised(messages);
        let messages = recognised.as_deref().unwrap_or(messages);
        let old = self.live.thread.as_ref().map(Thread::messages);
        match old.and_then(|old| messages.strip_prefix(old.as_slice())) {
            Some(new) => self.append(new),
            None => self.read_again(messages),
        }
    }

    /// Returns the standing rules as of the last [`observe`](Self::observe), redacted and including
    /// revoked ones.
    #[must_use]
    pub fn rules(&self) -> &Ledger {
        &self.live.known.rules
    }

    /// Adds a standing rule of the host and returns its id. The model sees it after the next
    /// summary.
    ///
    /// ```
    /// use threadfold::{Compactor, Message};
    ///
    /// let mut compactor = Compactor::default();
    /// let id = compactor.add_rule("Never send mails.")?;
    /// compactor.observe(&[Message::user("You may send mails.")]);
    /// assert_eq!(compactor.rules().to_string(), "- Never send mails.\n");
    /// assert!(compactor.revoke_rule(&id) && !compactor.revoke_rule(&id));
    /// # Ok::<(), threadfold::message::InvalidValue>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidValue`] if the text is blank or too long, or there are too many rules.
    pub fn add_rule(&mut self, text: impl Into<Text>) -> Result<Text, InvalidValue> {
        let text = compaction::redacted_by(text.into(), self.options.redactor.as_deref());
        let id = self.live.known.rules.add(&text)?;
        self.changes.push(RuleChange::Added { text });
        Ok(id)
    }

    /// Revokes a rule of user or host, and returns whether it was active.
    ///
    /// ```
    /// use threadfold::Compactor;
    ///
    /// let mut compactor = Compactor::default();
    /// let id = compactor.add_rule("Never touch the lexer.")?;
    /// assert!(compactor.revoke_rule(&id));
    /// assert_eq!(compactor.rules().active().count(), 0);
    /// # Ok::<(), threadfold::message::InvalidValue>(())
    /// ```
    pub fn revoke_rule(&mut self, id: &str) -> bool {
        let was_active = self.live.known.rules.revoke(id);
        if was_active {
            self.changes.push(RuleChange::Revoked { id: id.into() });
        }
        was_active
    }

    /// Returns the tokens of the next request, as of the last [`observe`](Self::observe): the
    /// larger of the provider's last count plus an estimate of the messages since, and an estimate
    /// of the whole request, scaled to the provider's counts.
    ///
    /// ```
    /// use threadfold::{Compactor, Message, Usage};
    ///
    /// let mut compactor = Compactor::default();
    /// let mut answer = Message::assistant("Hello!");
    /// answer.make_mut().usage = Some(Usage::new(900, 100));
    /// compactor.observe(&[Message::user("Hi."), answer]);
    /// assert_eq!(compactor.context_tokens(), 1_000);
    /// ```
    #[must_use]
    pub fn context_tokens(&self) -> u64 {
        self.pressure().calibrated(self.auto.ratio()).tokens()
    }

    /// Drops the observed thread, because an option decides how it is read.
    fn forget_live(mut self) -> Self {
        self.live = Live::default();
        self
    }

    /// The messages of the thread as it was last observed.
    fn messages(&self) -> &[Message] {
        self.live.thread.as_ref().map_or(&[], |thread| thread.messages())
    }

    /// The size of the observed thread, as the counter counts it.
    pub(super) fn size(&self) -> Size {
        self.live.thread.as_ref().map_or_else(Size::default, Thread::size)
    }

    /// Sets the messages after a compaction that inserted `new` ones.
    fn compacted<'n>(
        &mut self,
        thread: Thread,
        new: impl IntoIterator<Item = &'n Message>,
        strategy: &Text,
    ) {
        let known = self.live.known.clone();
        self.past.truncate(self.live.past);
        self.past.push(AfterCompaction::new(known, self.changes.len(), thread.messages(), new));
        if self.live.unrefused.is_none() {
            let excess = self.past.len().saturating_sub(REMEMBERED);
            self.past.drain(..excess);
        }
        self.live.past = self.past.len();
        self.live.is_counted = false;
        self.live.thread = Some(thread);
        self.live.compacted_by = Some(strategy.clone());
        self.next = self.next.next();
    }

    fn append(&mut self, new: &[Message]) {
        let overhead = self.overhead();
        let Some(thread) = &mut self.live.thread else { return };
        for message in new {
            (self.live.compacted_by, self.live.unrefused) = (None, None);
            self.live.is_compacted_ahead = false;
            if let (Role::Assistant, Some(usage)) = (message.role, message.usage) {
                let estimated = thread.size().tokens.saturating_add(overhead);
                // A count that cannot belong to this request teaches nothing.
                let _ = self.auto.counted(estimated, usage.input);
                self.live.is_counted = true;
            }
            self.live.known.read(message, self.options.redactor.as_deref());
            thread.push(message.clone());
        }
    }

    /// Reads a thread that does not continue the observed one.
    fn read_again(&mut self, messages: &[Message]) {
        let past = self.past.iter().rposition(|past| past.leads_to(messages));
        let base = past.and_then(|past| self.past.get(past));
        let policy = self.options.retention.as_ref();
        self.live = Live {
            thread: Some(Thread::new(Arc::clone(&self.options.counter))),
            known: base.map_or_else(
                || Memory::new(policy, self.options.window),
                |base| base.known.clone(),
            ),
            past: past.map_or(0, |past| past + 1),
            ..Live::default()
        };
        let changed = base.map_or(0, |base| base.changes);
        let ratio = *self.auto.ratio();
        if base.is_none() {
            self.append(messages);
        } else if let (Some(base), Some(thread)) = (base, &mut self.live.thread) {
            let messages: Vec<Message> =
                messages.iter().cloned().map(|message| base.recognised(message)).collect();
            for message in base.unread(&messages) {
                self.live.known.read(message, self.options.redactor.as_deref());
            }
            thread.extend(messages);
        }
        if ratio != Calibrated::default() {
            // Restore the ratio: it has already learned from these reports.
            self.auto.set_ratio(ratio);
        }
        let rules = &mut self.live.known.rules;
        for change in self.changes.iter().skip(changed) {
            match change {
                // The rule was valid when it was added, so this fails only if there are too many
                // rules.
                RuleChange::Added { text } => drop(rules.add(text)),
                RuleChange::Revoked { id } => drop(rules.revoke(id)),
            }
        }
    }

    /// Estimated tokens of system prompt and tools.
    pub(super) fn overhead(&self) -> u64 {
        let Options { counter, system, tools, .. } = &self.options;
        counter.messages(system).saturating_add(counter.tools(tools))
    }

    /// How full the context is.
    pub(super) fn pressure(&self) -> Pressure {
        let Some(thread) = &self.live.thread else { return Pressure::default() };
        let pressure = Pressure::of(thread);
        Pressure {
            window: self.options.window,
            reported: pressure.reported.filter(|_| self.live.is_counted),
            overhead: self.overhead(),
            output: self.options.max_output.unwrap_or_default(),
            ..pressure
        }
    }

    /// The `max_output` of the next request.
    pub(super) fn max_output(&self) -> Option<u64> {
        self.auto.max_output(self.pressure()).or(self.options.max_output)
    }

    /// Compacts the thread to at most the target of the brief, and returns the result. A number is
    /// a brief with this target. Target and limit are in tokens as the provider counts them. Without a
    /// target, it follows from the [window](Self::with_window); without a window too, the strategy
    /// decides.
    ///
    /// The user's instructions are in the `reason` of the brief. `models` is one model, or
    /// [`Models`] with a fast one as well; [`Models::default`] is for strategies that call no model.
    /// A result that misses the target is accepted if it is smaller than before and fits the window;
    /// the report shows its size. If the thread does not fit the window and the strategy fails, tool
    /// results are trimmed, and then a digest is made.
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
    /// let reason = CompactionReason::Manual { instructions: Some("the parser".into()) };
    /// let brief = Brief { target: Some(300), reason, ..Brief::default() };
    /// // Without a model the ladder ends with a digest.
    /// let done = block_on(compactor.compact(&mut messages, brief, Models::default()))?;
    /// assert!(done.report.after.tokens <= 300 && messages[0].is_summary());
    /// # Ok::<(), threadfold::drive::CompactionError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`CompactionError`](crate::drive::CompactionError); the thread is unchanged.
    pub async fn compact<'m>(
        &mut self,
        messages: &mut Vec<Message>,
        brief: impl Into<Brief>,
        models: impl Into<Models<'m>>,
    ) -> Result<CompactionRecord> {
        let (brief, models) = (brief.into(), models.into());
        self.observe(messages);
        let brief = self.completed(brief);
        let done = self.carry_out(&brief, Work::Ask(models)).await?;
        *messages = self.messages().to_vec();
        Ok(done)
    }

    /// Compacts the messages of a request like [`compact`](Self::compact). Its system prompt, tools
    /// and `max_output` replace those of [`with_context`](Self::with_context) and
    /// [`with_max_output`](Self::with_max_output).
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
    /// [`CompactionError`](crate::drive::CompactionError); the request is unchanged.
    pub async fn compact_request<'m>(
        &mut self,
        request: &mut Request,
        brief: impl Into<Brief>,
        models: impl Into<Models<'m>>,
    ) -> Result<CompactionRecord> {
        self.options.system = request.system.clone();
        self.options.tools = request.tools.clone();
        self.options.max_output = request.max_output;
        let mut messages = request.messages.to_vec();
        let done = self.compact(&mut messages, brief, models).await?;
        request.messages = messages.into();
        Ok(done)
    }

    /// Compacts the observed thread.
    async fn carry_out(&mut self, brief: &Brief, work: Work<'_>) -> Result<CompactionRecord> {
        let mut journal = self.journal(brief)?;
        let done = self.run(&mut journal, brief, work).await;
        let reason = brief.reason.clone();
        self.offered = None;
        // Pauses of the trigger show in the next step.
        let _ = self.auto.handle(
            brief.now,
            match &done {
                Ok(_) => Input::Compacted { reason },
                Err(_) => Input::Failed { reason },
            },
        );
        let done = done?;
        self.live.known.rules.apply(&done.quoted);
        self.compacted(journal.thread().clone(), done.plan.new_messages(), &done.strategy);
        Ok(done)
    }

    async fn run(
        &self,
        journal: &mut Journal,
        brief: &Brief,
        work: Work<'_>,
    ) -> Result<CompactionRecord> {
        let present = Arc::clone(journal.thread().messages());
        let mut conversation = self.conversation(journal);
        match work {
            Work::Ask(models) => {
                let strategy = self.options.strategy.as_ref();
                drive::compact(&mut conversation, strategy, brief, models, &mut |_, _| {}).await
            }
            Work::Apply(proposal) => conversation.finish(COMPACT, brief, Ok(*proposal)).await,
            Work::Adopt(prepared) => {
                let snapshot = conversation.ruled_snapshot();
                let outcome = prepared.fitted(&present, &snapshot, brief);
                conversation.finish(&prepared.strategy, brief, outcome).await
            }
        }
    }

    /// A journal of the observed thread, for one compaction.
    fn journal(&self, brief: &Brief) -> Result<Journal> {
        let log = log_of(self.messages(), brief)?;
        let journal = Journal::new(log).with_counter(Arc::clone(&self.options.counter));
        Ok(match &self.options.redactor {
            Some(redactor) => journal.with_redactor(Arc::clone(redactor)),
            None => journal,
        })
    }

    /// The conversation of this journal, with what the compactor knows.
    fn conversation<'j>(&self, journal: &'j mut Journal) -> Conversation<'j> {
        let (Options { system, tools, .. }, known) = (&self.options, &self.live.known);
        let window = self
            .window()
            .map(|window| ContextWindow::new(self.auto.ratio().unscale(window.tokens())));
        let mut conversation = Conversation::new(journal)
            .with_context(system.clone(), tools.clone())
            .with_window(window);
        conversation.known = Some(ConversationFacts {
            next_compaction: self.next,
            rules: Arc::new(known.rules.clone()),
            facts: known.facts.clone(),
            compacted_by: self.live.compacted_by.clone(),
        });
        conversation.terms = self.terms();
        conversation
    }

    /// Decides what to do with the provider's cache of the last prompt while the user is away, as a
    /// session's [`idle_for`](crate::Session::idle_for) does: see [`Idle`](crate::auto::Idle) for the
    /// rule. It changes nothing; the host has the timer and sends the requests:
    ///
    /// | step | the host |
    /// |---|---|
    /// | [`Wait`](IdleStep::Wait) | asks again after this time |
    /// | [`KeepAlive`](IdleStep::KeepAlive) | sends [`auto::keep_alive`](crate::auto::keep_alive) of its last request, and calls [`kept_alive`](Self::kept_alive) |
    /// | [`Compact`](IdleStep::Compact) | compacts with the reason [`Idle`](CompactionReason::Idle): at once with [`compact`](Self::compact), or beside its loop with [`prepare_compaction`](Self::prepare_compaction) and [`adopt`](Self::adopt) |
    /// | [`LetGo`](IdleStep::LetGo) | does nothing more in this pause |
    ///
    /// Without [prices](AutoPolicy::prices) in the [policy](Self::with_policy), without a
    /// [window](Self::with_window), and before the first request, there is nothing to decide.
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use threadfold::{Compactor, ContextWindow, Message, strategy::Brief};
    /// use threadfold::{auto::{AutoPolicy, IdleStep}, compactor::RequestStep};
    /// use threadfold::{message::{CompactionReason, Timestamp}, testing::ExtractiveModel};
    ///
    /// let policy: AutoPolicy = serde_json::from_str(
    ///     r#"{"keep_alive": false,
    ///         "prices": {"input": 3, "cached": 0.3, "cache_write": 3.75, "output": 15}}"#,
    /// )?;
    /// let window = ContextWindow::new(40_000);
    /// let mut compactor = Compactor::default().with_window(window).with_policy(policy)?;
    /// let long = Message::assistant("The parser reads tokens, line by line. ".repeat(2_000));
    /// let mut messages = vec![Message::user("Explain it."), long, Message::user("Is it long?")];
    /// compactor.observe(&messages);
    /// assert!(matches!(compactor.before_request(Timestamp(0)), RequestStep::Send { .. }));
    /// messages.push(Message::assistant("Yes."));
    /// compactor.observe(&messages);
    ///
    /// // Anthropic's cache dies after five minutes.
    /// assert_eq!(compactor.idle(Timestamp(10_000)), IdleStep::Wait { ms: 260_000 });
    /// let now = Timestamp(270_000);
    /// assert_eq!(compactor.idle(now), IdleStep::Compact);
    /// let brief = Brief { reason: CompactionReason::Idle, now, ..Brief::default() };
    /// let job = compactor.prepare_compaction(brief, &ExtractiveModel)?;
    /// // Meanwhile the loop may go on.
    /// let prepared = block_on(job);
    /// let done = block_on(compactor.adopt(&mut messages, prepared))?;
    /// assert!(done.report.after.tokens < done.report.before.tokens);
    /// assert_eq!(compactor.idle(now), IdleStep::LetGo);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn idle(&self, now: Timestamp) -> IdleStep {
        self.auto.idle(now, self.pressure())
    }

    /// Records that the last prompt was sent again at this time, to keep the provider's cache alive.
    ///
    /// ```
    /// use threadfold::{Compactor, compactor::RequestStep, message::Timestamp};
    ///
    /// let mut compactor = Compactor::default();
    /// assert!(matches!(compactor.before_request(Timestamp(0)), RequestStep::Send { .. }));
    /// compactor.kept_alive(Timestamp(270_000));
    /// ```
    pub fn kept_alive(&mut self, now: Timestamp) {
        self.auto.kept_alive(now);
    }

    /// Returns a future that prepares a compaction of the thread as it was last observed, also of
    /// foreign messages. It borrows only the models: run it while the loop goes on, and
    /// [adopt](Self::adopt) the result. The brief is as for [`compact`](Self::compact). It may be
    /// dropped at any point. [`idle`](Self::idle) has an example.
    ///
    /// # Errors
    ///
    /// [`CompactionError`](crate::drive::CompactionError) if the thread cannot be read. An error of
    /// the compaction is in the result.
    pub fn prepare_compaction<'m>(
        &self,
        brief: impl Into<Brief>,
        models: impl Into<Models<'m>>,
    ) -> Result<BoxFuture<'m, PreparedCompaction>> {
        let (brief, models) = (self.completed(brief.into()), models.into());
        let mut journal = self.journal(&brief)?;
        let job = CompactionJob {
            strategy: Arc::clone(&self.options.strategy),
            snapshot: self.conversation(&mut journal).ruled_snapshot(),
            has_facts: true,
            journal,
            brief,
            terms: self.terms(),
        };
        Ok(async move { job.run(models, &mut |_, _| {}).await }.boxed())
    }

    /// Applies a prepared compaction, if the messages that it was prepared for are still at the
    /// beginning of the thread. Messages appended since stay, and their reasoning is marked.
    /// [`idle`](Self::idle) has an example.
    ///
    /// The future may be dropped at any point; the thread is then unchanged.
    ///
    /// # Errors
    ///
    /// [`CompactionError`](crate::drive::CompactionError) in these cases; the thread is unchanged.
    ///
    /// - The preparation failed.
    /// - The thread was rewritten since: [`CompactError::Rewritten`](crate::compact::CompactError)
    ///   names the first message that differs.
    /// - Another compaction was carried out since ([`Rejection::NumberTaken`]).
    pub async fn adopt(
        &mut self,
        messages: &mut Vec<Message>,
        prepared: PreparedCompaction,
    ) -> Result<CompactionRecord> {
        self.observe(messages);
        let done = self.adopt_observed(&prepared).await?;
        *messages = self.messages().to_vec();
        Ok(done)
    }

    async fn adopt_observed(&mut self, prepared: &PreparedCompaction) -> Result<CompactionRecord> {
        let brief = &prepared.brief;
        if let Some(id) = brief.compaction.filter(|id| *id != self.next) {
            let proposal = prepared.outcome().map_err(Clone::clone)?;
            return Err(proposal.failed(Rejection::NumberTaken { id }));
        }
        // Drop the target: it predates the messages appended since.
        let brief = Brief { target: None, ..brief.clone() };
        self.carry_out(&brief, Work::Adopt(prepared)).await
    }

    /// The brief with the compactor's own policy, and with target and limit in tokens of the counter.
    fn completed(&self, brief: Brief) -> Brief {
        let ratio = self.auto.ratio();
        let thread = ratio.scale(self.size().tokens);
        let half = thread / 2;
        let requested = self.auto.requested_target(self.pressure());
        let requested = requested.filter(|target| thread > *target);
        let target = brief.target.or_else(|| requested.map(|target| target.min(half)));
        Brief {
            compaction: Some(self.next),
            target: target.map(|target| ratio.unscale(target)),
            limit: brief.limit.map(|limit| ratio.unscale(limit)).or_else(|| self.fits()),
            retention: brief.retention.or_else(|| self.options.retention.clone()),
            ..brief
        }
    }

    /// How the strategy is run: with its fallback if the thread does not fit.
    fn terms(&self) -> Terms {
        let thread = self.live.thread.as_ref().map_or(0, |thread| thread.size().tokens);
        let fallback = match self.fits().is_some_and(|fits| thread > fits) {
            true => Fallback::Always,
            false => Fallback::IfNeeded,
        };
        Terms { fallback: Some(fallback), when: When::Grown }
    }

    /// The window: the host's, or a smaller one that a refusal stated.
    fn window(&self) -> Option<ContextWindow> {
        self.auto.window(self.options.window)
    }

    /// The tokens of messages that fit the window.
    fn fits(&self) -> Option<u64> {
        let window = self.auto.ratio().unscale(self.window()?.tokens());
        Some(window.saturating_sub(self.overhead()))
    }

    /// Adds a checkpoint to every user message that does not end with one, so that the model can
    /// name ranges in a call of [`COMPACT`]. Call this before each request if the model has that
    /// tool.
    ///
    /// ```
    /// use threadfold::{Compactor, ContentBlock, Message};
    ///
    /// let mut messages = vec![Message::user("Hi."), Message::assistant("Hello!")];
    /// let compactor = Compactor::default();
    /// compactor.stamp(&mut messages);
    /// assert!(matches!(messages[0].content[1], ContentBlock::Checkpoint(_)));
    /// let stamped = messages.clone();
    /// compactor.stamp(&mut messages);
    /// assert_eq!(messages, stamped);
    /// ```
    pub fn stamp(&self, messages: &mut Vec<Message>) {
        // Change the seed with each compaction, so that no id of a removed message is used again.
        let seed = self.next.0.rotate_left(32) ^ messages.len() as u64;
        *messages = log::stamp(std::mem::take(messages), seed);
    }

    /// Appends the results of the calls in the last message, and carries out its calls of
    /// [`COMPACT`] and [`COMPACT_CONTEXT`]. The host passes only the results of its own tools, in
    /// any order; a call without a result gets an error. If the last message has no calls, nothing
    /// happens.
    ///
    /// A call of `compact` replaces the ranges that the model named with the model's texts. A text
    /// replaces the call, and a reminder with the numbers replaces its result. If the call fails,
    /// its result gives the reason and lists the checkpoints. `compact_context` runs the strategy
    /// with `models`; its result has the numbers, or the error. Returns the last compaction that
    /// was carried out.
    ///
    /// The future may be dropped at any point; the thread is then unchanged.
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use threadfold::compaction::COMPACT;
    /// use threadfold::{Compactor, Message, Role, drive::Models, legality, message::ToolUse};
    ///
    /// let mut messages = vec![Message::user("Which colour?")];
    /// let mut compactor = Compactor::default();
    /// compactor.stamp(&mut messages);
    /// let range = serde_json::json!({"replacements": [{"summary": "They want a colour."}]});
    /// let call = ToolUse::new("c1", COMPACT, range);
    /// messages.push(Message::new(Role::Assistant, vec![call.into()]));
    ///
    /// let done = block_on(compactor.push_results(&mut messages, [], Models::default()))?;
    /// assert_eq!(done.map(|done| done.report.after.messages), Some(2));
    /// assert!(messages[0].is_summary());
    /// assert_eq!(legality::violations(&messages), []);
    /// # Ok::<(), threadfold::drive::CompactionError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`CompactionError`](crate::drive::CompactionError) if the thread could not be changed; it is
    /// then unchanged. A compaction that failed is not an error, but a result for the model.
    pub async fn push_results<'m>(
        &mut self,
        messages: &mut Vec<Message>,
        results: impl IntoIterator<Item = ToolResult>,
        models: impl Into<Models<'m>>,
    ) -> Result<Option<CompactionRecord>> {
        let (results, models): (Vec<ToolResult>, _) =
            (results.into_iter().collect(), models.into());
        let calls: Vec<ToolUse> =
            messages.last().into_iter().flat_map(|answer| answer.tool_uses()).cloned().collect();
        if calls.is_empty() {
            return Ok(None);
        }
        let (mut thread, mut done, mut compact) = (messages.clone(), None, None);
        let mut all = Vec::with_capacity(calls.len());
        for call in &calls {
            let given = results.iter().find(|result| result.tool_use_id == call.id);
            let result = match (given, call.name.as_str()) {
                (Some(result), _) => result.clone(),
                (None, COMPACT) if compact.is_some() => error(call, ONE_CALL),
                (None, COMPACT) => {
                    compact = Some(call);
                    ToolResult::text(call.id.clone(), COMPACTED)
                }
                (None, COMPACT_CONTEXT) => {
                    let (result, compacted) = self.run_context(call, &mut thread, models).await;
                    done = compacted.or(done);
                    result
                }
                (None, _) => error(call, NO_RESULT),
            };
            all.push(result);
        }
        let is_stamped = thread.iter().any(|message| message.checkpoints().next().is_some());
        thread.push(Message::new(Role::User, all.into_iter().map(Into::into).collect()));
        if is_stamped {
            self.stamp(&mut thread);
        }
        if let Some(call) = compact {
            done = self.run_compact(call, &mut thread).await?.or(done);
        }
        *messages = thread;
        Ok(done)
    }

    /// Runs the strategy for a call of `compact_context`.
    async fn run_context(
        &mut self,
        call: &ToolUse,
        thread: &mut Vec<Message>,
        models: Models<'_>,
    ) -> (ToolResult, Option<CompactionRecord>) {
        self.observe(thread);
        let before = self.size().tokens;
        let target = self.auto.requested_target(self.pressure());
        let is_small = target.is_some_and(|target| self.auto.ratio().scale(before) <= target);
        let brief = Brief { reason: CompactionReason::AgentTool, target, ..Brief::default() };
        let brief = self.completed(brief);
        if is_small {
            return (text(call, ContextCompacted::nothing(before)), None);
        }
        let done = self.carry_out(&brief, Work::Ask(models)).await;
        if done.is_ok() {
            *thread = self.messages().to_vec();
        }
        let (words, is_error) = ContextCompacted::result(before, done.as_ref());
        (ToolResult { is_error, ..text(call, words) }, done.ok())
    }

    /// Carries out a call of `compact`, or puts the error into its result, the last message.
    async fn run_compact(
        &mut self,
        call: &ToolUse,
        thread: &mut Vec<Message>,
    ) -> Result<Option<CompactionRecord>> {
        let number = self.next;
        let plan = plan_call(thread, call, number, self.options.counter.as_ref());
        let plan = match plan {
            Ok(plan) => plan,
            Err(words) => {
                replace_result(thread, error(call, words));
                return Ok(None);
            }
        };
        self.observe(thread);
        let reason = CompactionReason::AgentTool;
        let brief = self.completed(Brief { reason, ..Brief::default() });
        let proposal = Proposal::audited(plan, thread, self.live.known.facts.as_deref())?;
        let done = self.carry_out(&brief, Work::Apply(Box::new(proposal))).await?;
        *thread = self.messages().to_vec();
        Ok(Some(done))
    }

    /// The observed thread, such as the shadows of a host's own messages.
    pub(super) fn shadows(&self) -> Arc<Vec<Message>> {
        let thread = self.live.thread.as_ref();
        thread.map_or_else(Arc::default, |thread| Arc::clone(thread.messages()))
    }

    /// Reads the new messages of a host's thread since the last call, like
    /// [`observe`](Self::observe). Old messages are compared by their texts, and nothing of them is
    /// copied.
    ///
    /// ```
    /// use threadfold::{Compactor, Role};
    ///
    /// let mut thread = vec![(Role::User, "Fix the parser.".to_owned())];
    /// let mut compactor = Compactor::default();
    /// compactor.observe_host(&thread);
    /// let before = compactor.context_tokens();
    /// thread.push((Role::Assistant, "Fine.".to_owned()));
    /// compactor.observe_host(&thread);
    /// assert!(compactor.context_tokens() > before);
    /// ```
    pub fn observe_host<M: HostMessage>(&mut self, messages: &[M]) {
        let shadows = self.shadows();
        let pairs = shadows.iter().zip(messages);
        let is_read = shadows.len() <= messages.len() && { pairs }
            .all(|(shadow, message)| foreign::is_shadow_of(shadow, message));
        let mut all = if is_read { shadows.to_vec() } else { Vec::new() };
        all.extend(messages.iter().skip(all.len()).map(foreign::shadow));
        drop(shadows);
        self.observe(&all);
    }

    /// Plans a compaction of a host's own messages to at most the target of the brief, like
    /// [`compact`](Self::compact). The messages are not changed: carry the plan out with
    /// [`HostPlan::apply`], before the thread changes otherwise. The compactor then continues from
    /// the compacted thread. If the plan is not carried out, the next observation reads the thread
    /// again.
    ///
    /// The future may be dropped at any point; the compactor then still knows the old thread.
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use threadfold::{Compactor, Role, drive::Models};
    ///
    /// let said = |text: &str| (Role::Assistant, text.repeat(200));
    /// let mut thread = vec![(Role::User, "Read a.rs.".to_owned()), said("I read. "), said("On. ")];
    /// let last = thread[2].1.as_ptr();
    /// let mut compactor = Compactor::default();
    /// let planned = block_on(compactor.plan_host(&thread, 400, Models::default()))?;
    /// let applied = planned.plan.apply(&mut thread, |new, _| (new.role, new.text()))?;
    /// assert!(planned.record.report.after.tokens <= 400);
    /// assert_eq!(thread.last().map(|(_, text)| text.as_ptr()), Some(last), "it is the same value");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`CompactionError`](crate::drive::CompactionError), for the same reasons as
    /// [`compact`](Self::compact).
    pub async fn plan_host<'m, M: HostMessage>(
        &mut self,
        messages: &[M],
        brief: impl Into<Brief>,
        models: impl Into<Models<'m>>,
    ) -> Result<PlannedHost> {
        let (brief, models) = (brief.into(), models.into());
        self.observe_host(messages);
        let shadows = self.shadows();
        let brief = self.completed(brief);
        let record = self.carry_out(&brief, Work::Ask(models)).await?;
        let plan = HostPlan::new(&record.plan, &shadows)?;
        Ok(PlannedHost { plan, record })
    }

    /// Plans a prepared compaction for a host's own messages, like [`adopt`](Self::adopt). Carry the
    /// plan out as that of [`plan_host`](Self::plan_host).
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use threadfold::{Compactor, Role, drive::Models};
    ///
    /// let said = |text: &str| (Role::Assistant, text.repeat(200));
    /// let mut thread = vec![(Role::User, "Read a.rs.".to_owned()), said("I read. "), said("On. ")];
    /// let mut compactor = Compactor::default();
    /// compactor.observe_host(&thread);
    /// let job = compactor.prepare_compaction(400, Models::default())?;
    /// thread.push((Role::User, "I am back.".to_owned()));
    /// let planned = block_on(compactor.adopt_host(&thread, block_on(job)))?;
    /// planned.plan.apply(&mut thread, |new, _| (new.role, new.text()))?;
    /// assert_eq!(thread.last().map(|(_, text)| text.as_str()), Some("I am back."));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`CompactionError`](crate::drive::CompactionError), for the same reasons as
    /// [`adopt`](Self::adopt).
    pub async fn adopt_host<M: HostMessage>(
        &mut self,
        messages: &[M],
        prepared: PreparedCompaction,
    ) -> Result<PlannedHost> {
        self.observe_host(messages);
        let shadows = self.shadows();
        let record = self.adopt_observed(&prepared).await?;
        let plan = HostPlan::new(&record.plan, &shadows)?;
        Ok(PlannedHost { plan, record })
    }

    /// Learns the ratio of estimated to reported tokens from the usage of an answer to the thread
    /// as it was last observed, for hosts whose messages do not carry it. Returns `false` if the
    /// report is implausible; nothing is learnt then.
    ///
    /// ```
    /// use threadfold::{Compactor, Role, Usage};
    ///
    /// let mut compactor = Compactor::default();
    /// compactor.observe_host(&[(Role::User, "word ".repeat(600))]);
    /// let before = compactor.context_tokens();
    /// assert!(compactor.learn(Usage::new(before * 2, 10)));
    /// assert!(compactor.context_tokens() > before);
    /// ```
    pub fn learn(&mut self, usage: Usage) -> bool {
        let estimated = self.size().tokens.saturating_add(self.overhead());
        self.auto.counted(estimated, usage.input)
    }
}

/// The stored form of the machine: the ratio that it learnt.
mod ratio {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::{auto::AutoCompactor, tokens::Calibrated};

    pub(super) fn serialize<S: Serializer>(auto: &AutoCompactor, to: S) -> Result<S::Ok, S::Error> {
        auto.ratio().serialize(to)
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<AutoCompactor, D::Error> {
        let mut auto = AutoCompactor::default();
        auto.set_ratio(Calibrated::deserialize(from)?);
        Ok(auto)
    }
}

/// A log of these messages alone, for the record of one compaction.
fn log_of(messages: &[Message], brief: &Brief) -> Result<EventLog> {
    let mut log = EventLog::new("compactor".parse()?);
    for message in messages {
        log.append(brief.now, Event::MessageAppended(message.clone()))?;
    }
    Ok(log)
}

/// The result of a call for which the host supplied none.
const NO_RESULT: &str = "The call was not executed.";

fn text(call: &ToolUse, text: impl Into<Text>) -> ToolResult {
    ToolResult::text(call.id.clone(), text)
}

fn error(call: &ToolUse, words: impl Into<Text>) -> ToolResult {
    ToolResult { is_error: true, ..text(call, words) }
}

/// Replaces the result of the same call in the last message.
fn replace_result(thread: &mut [Message], result: ToolResult) {
    let Some(last) = thread.last_mut() else { return };
    let at = last.content.iter().position(|block| {
        matches!(block, ContentBlock::ToolResult(old) if old.tool_use_id == result.tool_use_id)
    });
    if let Some(block) = at.and_then(|at| last.make_mut().content.get_mut(at)) {
        *block = result.into();
    }
}

const _: () = {
    const fn send<T: Send + Sync + 'static>() {}
    send::<Compactor>();
};
