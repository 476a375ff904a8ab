//! The compactor: its memory, and how it reads a thread.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::memory::{AfterCompaction, Memory};
use crate::{
    auto::{AutoCompactor, AutoPolicy, Pressure},
    compact::Size,
    compaction,
    ledger::Ledger,
    log::{RuleChange, Thread},
    message::{CompactionId, ContextWindow, InvalidValue, Message, Redactor, Role, Text, ToolSpec},
    retention::RetentionPolicy,
    strategy::{CompactionStrategy, Ladder},
    tokens::{ByteEstimate, Calibrated, TokenCounter},
};

/// The maximum number of compactions that are remembered: the last one, and the one before it for a
/// host that undoes the last one.
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
    pub(super) ratio: Calibrated,
    /// The number of the next compaction.
    pub(super) next: CompactionId,
    #[serde(skip)]
    pub(super) options: Options,
    #[serde(skip)]
    pub(super) live: Live,
}

/// The vector as it was last observed. It is not stored: the host stores the vector itself.
#[derive(Clone, Debug, Default)]
pub(super) struct Live {
    /// The messages; `None` before the first observation.
    pub(super) thread: Option<Thread>,
    pub(super) known: Memory,
    /// The number of entries of `past` that the messages continue.
    past: usize,
    /// Whether an answer reported its usage since the thread was last rewritten or read anew.
    is_counted: bool,
    /// The strategy of the last compaction, if no message was added since.
    pub(super) compacted_by: Option<Text>,
}

options! {
    /// The options that a host sets. None of them is stored.
    #[derive(Clone, Debug)]
    pub(super) struct Options {
        pub(super) strategy: Arc<dyn CompactionStrategy> = Arc::new(Ladder::default()),
        pub(super) redactor: Option<Arc<dyn Redactor>> = None,
        pub(super) retention: Option<RetentionPolicy> = Some(RetentionPolicy::default()),
        pub(super) counter: Arc<dyn TokenCounter> = Arc::new(ByteEstimate::TRIGGER),
        pub(super) window: Option<ContextWindow> = None,
        pub(super) system: Arc<Vec<Message>> = Arc::default(),
        pub(super) tools: Arc<Vec<ToolSpec>> = Arc::default(),
    }
}

impl Compactor {
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
        self.pressure().tokens()
    }

    /// Drops the observed thread, because an option decides how it is read.
    pub(super) fn forget_live(mut self) -> Self {
        self.live = Live::default();
        self
    }

    /// The messages of the thread as it was last observed.
    pub(super) fn messages(&self) -> &[Message] {
        self.live.thread.as_ref().map_or(&[], |thread| thread.messages())
    }

    /// The size of the observed thread, as the counter counts it.
    pub(super) fn size(&self) -> Size {
        self.live.thread.as_ref().map_or_else(Size::default, Thread::size)
    }

    /// Sets the messages after a compaction that inserted `new` ones.
    pub(super) fn compacted<'n>(
        &mut self,
        thread: Thread,
        new: impl IntoIterator<Item = &'n Message>,
        strategy: &Text,
    ) {
        let known = self.live.known.clone();
        self.past.truncate(self.live.past);
        self.past.push(AfterCompaction::new(known, self.changes.len(), thread.messages(), new));
        let excess = self.past.len().saturating_sub(REMEMBERED);
        self.past.drain(..excess);
        self.live.past = self.past.len();
        self.live.is_counted = false;
        self.live.thread = Some(thread);
        self.live.compacted_by = Some(strategy.clone());
        self.next = self.next.next();
    }

    pub(super) fn append(&mut self, new: &[Message]) {
        let overhead = self.overhead();
        let Some(thread) = &mut self.live.thread else { return };
        for message in new {
            self.live.compacted_by = None;
            if let (Role::Assistant, Some(usage)) = (message.role, message.usage) {
                let estimated = thread.size().tokens.saturating_add(overhead);
                // The ratio ignores a count that cannot belong to this request.
                let _ = self.ratio.learn(estimated, usage.input);
                self.live.is_counted = true;
            }
            self.live.known.read(message, self.options.redactor.as_deref());
            thread.push(message.clone());
        }
    }

    /// Reads a thread that does not continue the observed one.
    pub(super) fn read_again(&mut self, messages: &[Message]) {
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
        let ratio = self.ratio;
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
            self.ratio = ratio;
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

    /// The target, in tokens of the provider, that follows from the window.
    pub(super) fn requested_target(&self, pressure: Pressure) -> Option<u64> {
        AutoCompactor::new(AutoPolicy::default()).ok()?.requested_target(pressure)
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
            ..pressure
        }
        .calibrated(&self.ratio)
    }
}

const _: () = {
    const fn send<T: Send + Sync + 'static>() {}
    send::<Compactor>();
};
