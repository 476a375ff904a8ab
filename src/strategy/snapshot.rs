//! A strategy's view of a thread, and the check that judges every proposal.

use std::{collections::HashMap, sync::Arc};

use super::{brief::Brief, fill::shape, rejection::Rejection};
use crate::{
    compact::{
        Plan,
        legality::{self, Violation},
    },
    ledger::Ledger,
    log::Thread,
    message::{
        ContentBlock, ContextWindow, Message, Redactor, Request, Role, Text, ThreadId, Timestamp,
        ToolSpec, redact::Redaction,
    },
    notes::Notes,
    retention::{Facts, Retention, RetentionPolicy, Statements},
    tokens::{ByteEstimate, TokenCounter},
};

/// A thread at one moment, with the context that a strategy needs. Cheap to clone.
#[derive(Clone, Debug)]
#[must_use]
pub struct Snapshot {
    pub(super) messages: Arc<Vec<Message>>,
    /// The index of the first message that the model has not read.
    unread_from: usize,
    system: Arc<Vec<Message>>,
    tools: Arc<Vec<ToolSpec>>,
    window: Option<ContextWindow>,
    counter: Arc<dyn TokenCounter>,
    /// The tokens of the messages.
    size: u64,
    times: Option<Arc<[Timestamp]>>,
    facts: Option<Arc<Facts>>,
    /// What the user typed, if that is not what the facts take for it.
    statements: Option<Arc<Statements>>,
    rules: Arc<Ledger>,
    notes: Notes,
    /// The number under which each message can be recalled once it is removed.
    pub(super) numbers: Arc<[Option<u64>]>,
    /// The thread of the log that has these numbers.
    pub(super) thread: Option<ThreadId>,
    /// The subjects of the tool calls, by message and block.
    pub(super) subjects: Arc<Subjects>,
    /// The tokens that lists may add to a summary at most, if something limits them.
    pub(super) lists: Option<u64>,
    /// The strategy of the last compaction, if nothing was added to the thread since.
    pub(super) compacted_by: Option<Text>,
}

/// The subjects of tool calls, by message and block.
pub(super) type Subjects = HashMap<(usize, usize), Text>;

impl Snapshot {
    /// Returns a snapshot of these messages alone, counted by [`ByteEstimate::TRIGGER`].
    ///
    /// ```
    /// use threadfold::{Message, strategy::Snapshot};
    ///
    /// let snapshot = Snapshot::new(vec![Message::user("hi")]);
    /// assert_eq!(snapshot.messages().len(), 1);
    /// ```
    pub fn new(messages: impl Into<Arc<Vec<Message>>>) -> Self {
        let (messages, counter) = (messages.into(), ByteEstimate::TRIGGER);
        let size = counter.messages(&messages);
        Self::counted(messages, Arc::new(counter), size)
    }

    fn counted(messages: Arc<Vec<Message>>, counter: Arc<dyn TokenCounter>, size: u64) -> Self {
        Self {
            unread_from: legality::unread_from(&messages),
            messages,
            system: Arc::default(),
            tools: Arc::default(),
            window: None,
            counter,
            size,
            times: None,
            facts: None,
            statements: None,
            rules: Arc::default(),
            notes: Notes::default(),
            numbers: Arc::default(),
            thread: None,
            subjects: Arc::default(),
            lists: None,
            compacted_by: None,
        }
    }

    /// Returns a snapshot of a live thread, with the thread's token counter.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use threadfold::{Message, Thread, strategy::Snapshot, tokens::ByteEstimate};
    ///
    /// let mut thread = Thread::new(Arc::new(ByteEstimate::new(2)));
    /// thread.push(Message::user("hello!"));
    /// let snapshot = Snapshot::of(&thread);
    /// assert!(Arc::ptr_eq(snapshot.messages(), thread.messages()));
    /// assert_eq!(snapshot.counter().messages(snapshot.messages()), thread.size().tokens);
    /// ```
    pub fn of(thread: &Thread) -> Self {
        let (messages, counter) = (thread.messages(), thread.counter());
        Self::counted(Arc::clone(messages), Arc::clone(counter), thread.size().tokens)
    }

    /// Returns a snapshot of a request: its messages, system prompt and tools.
    ///
    /// ```
    /// use threadfold::{Message, Request, strategy::Snapshot};
    ///
    /// let request = Request::new(vec![Message::user("hi")]).with_system("Be brief.");
    /// let snapshot = Snapshot::of_request(&request);
    /// assert_eq!((snapshot.messages().len(), snapshot.system().len()), (1, 1));
    /// ```
    pub fn of_request(request: &Request) -> Self {
        Self {
            system: request.system.clone(),
            tools: request.tools.clone(),
            ..Self::new(request.messages.clone())
        }
    }

    /// Returns the snapshot with this system prompt and these tools.
    ///
    /// ```
    /// use threadfold::{Message, strategy::Snapshot};
    ///
    /// let system = vec![Message::system("Be brief.")];
    /// let snapshot = Snapshot::new(vec![Message::user("hi")]);
    /// let snapshot = snapshot.with_context(system.into(), vec![].into());
    /// assert_eq!(snapshot.system()[0], Message::system("Be brief."));
    /// ```
    pub fn with_context(self, system: Arc<Vec<Message>>, tools: Arc<Vec<ToolSpec>>) -> Self {
        Self { system, tools, ..self }
    }

    /// Returns the snapshot with this context window.
    ///
    /// ```
    /// use threadfold::{ContextWindow, Message, strategy::*};
    ///
    /// let long = Message::assistant("A long story. ".repeat(2_000));
    /// let thread = Snapshot::new(vec![Message::user("Tell me."), long, Message::user("Well?")]);
    /// let thread = thread.with_window(Some(ContextWindow::new(8_000)));
    /// let strategy = Summarize { messages: 1, user_messages: 0, ..Summarize::default() };
    /// let error = without_model(&strategy, &View::new(thread, Brief::default())).unwrap_err();
    /// assert!(matches!(error, StrategyError::TooLong { window: 8_000, .. }));
    /// ```
    pub fn with_window(self, window: Option<ContextWindow>) -> Self {
        Self { window, ..self }
    }

    /// Returns the snapshot with another token counter.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use threadfold::{Message, strategy::Snapshot, tokens::ByteEstimate};
    ///
    /// let snapshot = Snapshot::new(vec![Message::user("hello!")]);
    /// assert_eq!(snapshot.counter().messages(snapshot.messages()), 6);
    /// let snapshot = snapshot.with_counter(Arc::new(ByteEstimate::new(2)));
    /// assert_eq!(snapshot.counter().messages(snapshot.messages()), 7);
    /// ```
    pub fn with_counter(self, counter: Arc<dyn TokenCounter>) -> Self {
        Self { size: counter.messages(&self.messages), counter, ..self }
    }

    /// Returns the snapshot with the time at which each message arrived.
    ///
    /// ```
    /// use threadfold::{Message, message::Timestamp, strategy::Snapshot};
    ///
    /// let thread = vec![Message::user("hi"), Message::assistant("hello")];
    /// let snapshot = Snapshot::new(thread).with_times([Timestamp(5), Timestamp(9)]);
    /// assert_eq!(snapshot.time(1), Some(Timestamp(9)));
    /// assert_eq!(snapshot.time(2), None);
    /// ```
    pub fn with_times(self, times: impl Into<Arc<[Timestamp]>>) -> Self {
        Self { times: Some(times.into()), ..self }
    }

    /// Returns the snapshot with the facts of the whole conversation, including what earlier
    /// compactions removed. By default the facts of its messages are used.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use threadfold::{Message, retention::{RetentionPolicy, Facts, Statements}, strategy::Snapshot};
    ///
    /// // An earlier compaction left only a summary.
    /// let said = Facts::of(&[Message::user("Fix src/parse.rs.")], &RetentionPolicy::default());
    /// let snapshot = Snapshot::new(vec![Message::assistant("A file is to be fixed.")]);
    /// assert_eq!(snapshot.facts(&RetentionPolicy::default()).messages(), 1);
    /// let snapshot = snapshot.with_facts(Arc::new(said));
    /// let facts = snapshot.facts(&RetentionPolicy::default());
    /// assert_eq!(facts.audit(snapshot.messages()).missing[0].text, "src/parse.rs");
    /// ```
    pub fn with_facts(self, facts: Arc<Facts>) -> Self {
        // The facts take results in user messages for typed text.
        let marked = shape::marked(&self.messages);
        let statements = marked.map(|messages| Arc::new(Statements::of(&messages)));
        Self { facts: Some(facts), statements, ..self }
    }

    /// Returns the snapshot with the thread's standing rules. [`settle`](Self::settle) appends the
    /// active ones to the summary word for word, and strategies may list them for their models. By
    /// default there are none.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use threadfold::{Message, ledger::Ledger, strategy::Snapshot};
    ///
    /// let mut rules = Ledger::default();
    /// rules.add("Never touch the lexer.")?;
    /// let snapshot = Snapshot::new(vec![Message::user("hi")]).with_rules(Arc::new(rules));
    /// assert_eq!(snapshot.rules().to_string(), "- Never touch the lexer.\n");
    /// # Ok::<(), threadfold::message::InvalidValue>(())
    /// ```
    pub fn with_rules(self, rules: Arc<Ledger>) -> Self {
        Self { rules, ..self }
    }

    /// Returns the snapshot with the notes of the agent. [`settle`](Self::settle) lists them in the
    /// summary, word for word, if the messages that stay do not show them. By default there are none.
    ///
    /// ```
    /// use threadfold::{Message, Plan, notes::Notes, strategy::{Brief, Proposal, Snapshot}};
    ///
    /// let mut notes = Notes::default();
    /// notes.write("port", "8443")?;
    /// let talk = "They talk. ".repeat(40);
    /// let thread = vec![Message::user(talk), Message::assistant("Yes."), Message::user("Go on.")];
    /// let plan = Plan::summarise(&thread, 0..2, "They talked.")?;
    /// let snapshot = Snapshot::new(thread).with_notes(notes);
    /// let settled = snapshot.settle(Proposal::new(plan), &Brief::default())?;
    /// let summary = settled.plan.new_messages().flat_map(Message::summaries).next().unwrap();
    /// let list = "They talked.\n\nThe agent's own notes, word for word:\n- port\n> 8443\n";
    /// assert_eq!(summary.text, list);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_notes(self, notes: Notes) -> Self {
        Self { notes, ..self }
    }

    /// Returns the snapshot with its texts redacted. Every message keeps its blocks, so a plan for
    /// the redacted snapshot fits the thread itself.
    ///
    /// A strategy sees only this snapshot, so no request, batch or summary holds redacted
    /// text. The descriptions of tools are redacted too. Facts and rules are not: extract them from
    /// redacted messages.
    ///
    /// ```
    /// use std::borrow::Cow;
    /// use threadfold::{Message, message::Redactor, strategy::Snapshot};
    ///
    /// #[derive(Debug)]
    /// struct Names;
    ///
    /// impl Redactor for Names {
    ///     fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
    ///         text.replace("Ada", "[name]").into()
    ///     }
    /// }
    ///
    /// let snapshot = Snapshot::new(vec![Message::user("I am Ada.")]).redacted(&Names);
    /// assert_eq!(snapshot.messages()[..], [Message::user("I am [name].")]);
    /// ```
    pub fn redacted(self, redactor: &dyn Redactor) -> Self {
        let mut redaction = Redaction::of(redactor);
        let [messages, system] = [&self.messages, &self.system].map(|messages| {
            Arc::new(messages.iter().map(|message| redaction.message(message)).collect::<Vec<_>>())
        });
        let tools = Arc::new(self.tools.iter().map(|tool| redaction.tool(tool)).collect());
        let subjects = self.subjects_kept_by(redactor);
        let size = self.counter.messages(&messages);
        Self { messages, system, tools, subjects, size, ..self }
    }

    /// Returns the thread without the reasoning that every compaction strips. Stripping a turn can
    /// create new cut points, so strategies look for cuts here; otherwise a second compaction would
    /// find more of them than the first.
    pub(super) fn without_reasoning(&self) -> Self {
        if !self.messages.iter().any(Message::has_reasoning) {
            return self.clone();
        }
        let loop_from = legality::open_loop(&self.messages).unwrap_or(self.messages.len());
        let bare = self.messages.iter().enumerate().map(|(index, message)| {
            let mut message = message.clone();
            let strips = index < loop_from && message.role == Role::Assistant;
            if strips && message.has_reasoning() {
                message.make_mut().content.retain(|block| !block.is_reasoning());
            }
            message
        });
        let messages: Vec<Message> = bare.collect();
        self.with_messages(Arc::new(messages))
    }

    /// Returns the snapshot with other forms of the same messages.
    pub(super) fn with_messages(&self, messages: Arc<Vec<Message>>) -> Self {
        let size = self.counter.messages(&messages);
        Self { messages, size, ..self.clone() }
    }

    /// When a message arrived, if known.
    #[must_use]
    pub fn time(&self, message: usize) -> Option<Timestamp> {
        self.times.as_ref()?.get(message).copied()
    }

    /// The facts of the whole conversation: those set by [`with_facts`](Self::with_facts), else
    /// those extracted from its messages with the options of the policy.
    #[must_use]
    pub fn facts(&self, policy: &RetentionPolicy) -> Arc<Facts> {
        match &self.facts {
            Some(facts) => Arc::clone(facts),
            None => Arc::new(Facts::of(&self.messages, policy)),
        }
    }

    /// Which of these facts the messages of this thread state. Earlier compactions have lost the
    /// others.
    pub(super) fn stated(&self, policy: &RetentionPolicy) -> Retention {
        self.facts(policy).beside(self.messages.iter()).retention()
    }

    /// What the user typed in the whole conversation, as far as it is known.
    pub(super) fn statements(&self) -> Arc<Statements> {
        match (&self.statements, &self.facts) {
            (Some(statements), _) => Arc::clone(statements),
            (None, Some(facts)) => Arc::clone(facts.statements()),
            (None, None) => Arc::new(Statements::of(&self.messages)),
        }
    }

    /// The standing rules of the thread.
    #[must_use]
    pub fn rules(&self) -> &Ledger {
        &self.rules
    }

    /// The notes of the agent.
    #[must_use]
    pub fn notes(&self) -> &Notes {
        &self.notes
    }

    /// The messages of the thread.
    #[must_use]
    pub fn messages(&self) -> &Arc<Vec<Message>> {
        &self.messages
    }

    /// The index of the first message that the model has not read.
    pub(super) fn unread_from(&self) -> usize {
        self.unread_from
    }

    /// The system prompt of the conversation.
    #[must_use]
    pub fn system(&self) -> &Arc<Vec<Message>> {
        &self.system
    }

    /// The tools of the conversation.
    #[must_use]
    pub fn tools(&self) -> &Arc<Vec<ToolSpec>> {
        &self.tools
    }

    /// The context window of the model, if known.
    #[must_use]
    pub fn window(&self) -> Option<ContextWindow> {
        self.window
    }

    /// The tokens of the messages.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// The token counter.
    #[must_use]
    pub fn counter(&self) -> &dyn TokenCounter {
        self.counter.as_ref()
    }

    /// Returns the messages before a cut, and those from it on.
    pub(super) fn split_at(&self, cut: usize) -> (&[Message], &[Message]) {
        let parts = self.messages.split_at_checked(cut);
        debug_assert!(parts.is_some(), "a cut is in the thread: {cut}");
        parts.unwrap_or((&self.messages, &[]))
    }

    /// Returns the last [cut point](legality::cut_points) at or before this position, or 0.
    ///
    /// ```
    /// use threadfold::{Message, strategy::Snapshot};
    ///
    /// let snapshot = Snapshot::new(vec![Message::user("hi"), Message::assistant("hello")]);
    /// assert_eq!(snapshot.cut_at_or_before(1), 1);
    /// ```
    #[must_use]
    pub fn cut_at_or_before(&self, position: usize) -> usize {
        let points = legality::cut_points(&self.messages);
        points.into_iter().take_while(|point| *point <= position).last().unwrap_or(0)
    }

    /// Returns the messages that the plan would leave, if it is acceptable. The compacted thread
    /// must not be empty, must have no new violation, no blank summary and the same open calls,
    /// must be smaller than before and within the target, must keep the message that the user typed
    /// last unless a next prompt follows, and must end with the [unread](Self::unread) messages as
    /// they are, unless these alone do not fit.
    ///
    /// ```
    /// use threadfold::{Message, Plan, compact::Splice, strategy::{Brief, Rejection, Snapshot}};
    ///
    /// let thread = Snapshot::new(vec![Message::user("hi"), Message::assistant("hello")]);
    /// let plan = Plan::from_splices(2, vec![Splice { at: 0..1, insert: Vec::new() }]);
    /// let refused = thread.accept(&plan, &Brief::default());
    /// assert_eq!(refused, Err(Rejection::LosesLastUserMessage));
    /// // The next prompt is typed by the user too.
    /// let brief = Brief { next_prompt: Some(Message::user("bye")), ..Brief::default() };
    /// assert_eq!(thread.accept(&plan, &brief)?.len(), 1);
    /// # Ok::<(), Rejection>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Rejection`], for the first of these conditions that fails.
    pub fn accept(&self, plan: &Plan, brief: &Brief) -> Result<Vec<Message>, Rejection> {
        let after = plan.after(&self.messages)?;
        if after.is_empty() && brief.next_prompt.is_none() {
            return Err(Rejection::Empty);
        }
        let mut summaries = plan.new_messages().flat_map(Message::summaries);
        if summaries.any(|summary| summary.text.is_blank()) {
            return Err(Rejection::Blank);
        }
        if let Some(violation) = self.new_violation(&after) {
            return Err(Rejection::Illegal { violation });
        }
        let (open, left) = (legality::open_calls(&self.messages), legality::open_calls(&after));
        if open != left {
            let ids = open.iter().filter(|id| !left.contains(id));
            let ids = ids.chain(left.iter().filter(|id| !open.contains(id))).cloned().collect();
            return Err(Rejection::OpenCalls { ids });
        }
        self.check_size(&after, brief)?;
        if brief.next_prompt.is_none() && !self.keeps_last_typed(&after) {
            return Err(Rejection::LosesLastUserMessage);
        }
        self.check_unread(&after, brief)?;
        Ok(after)
    }

    /// Returns the first violation that the thread did not have before. Older violations do not
    /// count, because a stored thread may be illegal already.
    fn new_violation(&self, after: &[Message]) -> Option<Violation> {
        let found = legality::violations(after);
        if found.is_empty() {
            return None;
        }
        let before = legality::violations(&self.messages);
        let mut existing: HashMap<_, usize> = HashMap::new();
        for violation in &before {
            *existing.entry(violation.key()).or_default() += 1;
        }
        for violation in &found {
            match existing.get_mut(&violation.key()) {
                Some(count) if *count > 0 => *count -= 1,
                Some(_) | None => return Some(violation.clone()),
            }
        }
        None
    }

    /// The token count of the thread after a plan.
    ///
    /// # Errors
    ///
    /// [`Rejection::Stale`] if the plan was made for another thread.
    pub(super) fn tokens_after(&self, plan: &Plan) -> Result<u64, Rejection> {
        Ok(self.counter.messages(&plan.after(&self.messages)?))
    }

    /// Whether these messages hold what the user typed last, word for word.
    pub(crate) fn keeps_last_typed(&self, after: &[Message]) -> bool {
        let Some(last) = self.messages.iter().rev().find(|message| message.is_typed()) else {
            return true;
        };
        // A marker between two typed blocks may have split the message, so the blocks are searched
        // in sequence and not in one message.
        let wanted: Vec<&ContentBlock> = last.typed_content().collect();
        let kept: Vec<&ContentBlock> = after.iter().flat_map(Message::typed_content).collect();
        kept.windows(wanted.len().max(1)).rev().any(|run| run == wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compact::{CompactOptions, Insert, Position, Splice};

    fn snapshot() -> Snapshot {
        Snapshot::new(vec![
            Message::user("a long question that takes some room"),
            Message::assistant("a long answer that takes some room"),
            Message::user("go on"),
        ])
    }

    fn replace(snapshot: &Snapshot, range: std::ops::Range<usize>, text: &str) -> Plan {
        let range = Position::before(range.start)..Position::before(range.end);
        let insert = if text.is_empty() { Vec::new() } else { vec![Message::assistant(text)] };
        let edits = vec![(range, insert)];
        Plan::from_edits(snapshot.messages(), edits, &CompactOptions::default()).unwrap()
    }

    #[test]
    fn a_smaller_legal_thread_is_accepted() {
        let snapshot = snapshot();
        let accepted = snapshot.accept(&replace(&snapshot, 0..2, "short"), &Brief::default());
        assert_eq!(accepted, Ok(vec![Message::assistant("short"), Message::user("go on")]));
    }

    #[test]
    fn what_the_user_typed_last_stays_unless_the_next_prompt_follows() {
        let snapshot = snapshot();
        let plan = replace(&snapshot, 1..3, "short");
        let refused = snapshot.accept(&plan, &Brief::default());
        assert_eq!(refused, Err(Rejection::LosesLastUserMessage));
        let next = Brief { next_prompt: Some(Message::user("more")), ..Brief::default() };
        let refused = snapshot.accept(&plan, &next);
        assert_eq!(refused, Err(Rejection::TouchesUnread { message: 2 }), "it is unread");
        let read = Snapshot::new(vec![
            Message::user("a long question that takes some room"),
            Message::assistant("a long answer that takes some room"),
        ]);
        let plan = replace(&read, 0..1, "short");
        let refused = read.accept(&plan, &Brief::default());
        assert_eq!(refused, Err(Rejection::LosesLastUserMessage));
        assert!(read.accept(&plan, &next).is_ok());
    }

    #[test]
    fn a_thread_that_grows_or_misses_its_target_is_refused() {
        let snapshot = snapshot();
        let grown = replace(&snapshot, 0..1, &"word ".repeat(50));
        let grown = snapshot.accept(&grown, &Brief::default());
        assert!(matches!(grown, Err(Rejection::NotSmaller { .. })), "{grown:?}");
        let brief = Brief { target: Some(5), ..Brief::default() };
        let over = snapshot.accept(&replace(&snapshot, 0..2, "short"), &brief);
        assert_eq!(over, Err(Rejection::OverTarget { after: 12, target: 5 }));
    }

    #[test]
    fn what_the_user_typed_last_stays_in_its_order_and_in_one_row() {
        let typed = |texts: &[&str]| {
            let content = texts.iter().map(|text| ContentBlock::text(*text)).collect();
            Message::new(Role::User, content)
        };
        let old = Message::user("a long question that takes some room, and then some more");
        let answer = Message::assistant("Yes.");
        let snapshot = Snapshot::new(vec![old, typed(&["First this.", "Then that."]), answer]);
        let with = |messages: Vec<Message>| {
            let insert = messages.into_iter().map(|message| Insert::Message { message }).collect();
            let plan = Plan::from_splices(3, vec![Splice { at: 0..2, insert }]);
            snapshot.accept(&plan, &Brief::default()).map(drop)
        };
        assert_eq!(with(vec![typed(&["First this."]), typed(&["Then that."])]), Ok(()));
        for wrong in [
            vec![typed(&["Then that.", "First this."])],
            vec![typed(&["First this.", "Or", "Then that."])],
            vec![typed(&["Then that."])],
        ] {
            assert_eq!(with(wrong), Err(Rejection::LosesLastUserMessage));
        }
    }

    #[test]
    fn nothing_left_is_refused() {
        let snapshot = snapshot();
        let plan = replace(&snapshot, 0..3, "");
        assert_eq!(snapshot.accept(&plan, &Brief::default()), Err(Rejection::Empty));
    }
}
