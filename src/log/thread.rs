//! The live thread: its messages, an index for the questions of every turn, and the thread as a
//! plan will leave it, computed before the change.

use std::{collections::HashSet, sync::Arc};

use super::{event_log::EventLog, usage};
use crate::{
    compact::{
        CheckpointIndex, CheckpointPosition, CompactError, CompactOptions, Plan, Position,
        Replacement, Size, legality,
    },
    message::{CheckpointId, CheckpointIds, ContentBlock, Message, Role, Text},
    tokens::{ByteEstimate, TokenCounter},
};

/// A thread with its index. Messages, checkpoints, open calls and sizes only change here, together.
///
/// The queries of every turn take constant time, whatever the length of the thread: [`size`],
/// [`open_calls`], [`checkpoint`], and [`messages`], which is a shared handle.
///
/// [`size`]: Self::size
/// [`open_calls`]: Self::open_calls
/// [`checkpoint`]: Self::checkpoint
/// [`messages`]: Self::messages
///
/// ```
/// use threadfold::{ContentBlock, Message, Thread};
///
/// let mut thread = Thread::default();
/// let mut question = Message::user("hi");
/// question.make_mut().content.push(ContentBlock::checkpoint("aaaaaa".parse()?));
/// thread.push(question);
/// assert_eq!(thread.size().messages, 1);
/// assert!(thread.checkpoint("aaaaaa".parse()?).is_some());
/// # Ok::<(), threadfold::message::InvalidValue>(())
/// ```
#[derive(Clone, Debug)]
pub struct Thread {
    messages: Arc<Vec<Message>>,
    counter: Arc<dyn TokenCounter>,
    /// For each message, the size of the thread up to and including it.
    sums: Vec<Sum>,
    checkpoints: CheckpointIndex,
    open_calls: Vec<Text>,
    counted: (Option<u64>, u64),
}

/// The bytes of text and the tokens of a number of messages.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    bytes: u64,
    tokens: u64,
}

impl Thread {
    /// Returns an empty thread whose tokens this counter counts.
    ///
    /// ```
    /// use std::{collections::HashSet, sync::Arc};
    /// use threadfold::{Message, Thread, tokens::ByteEstimate};
    ///
    /// let mut thread = Thread::new(Arc::new(ByteEstimate::new(2)));
    /// thread.push(Message::user("hello!"));
    /// assert_eq!(thread.size().tokens, 7);
    /// ```
    #[must_use]
    pub fn new(counter: Arc<dyn TokenCounter>) -> Self {
        Self {
            messages: Arc::default(),
            counter,
            sums: Vec::new(),
            checkpoints: CheckpointIndex::default(),
            open_calls: Vec::new(),
            counted: (None, 0),
        }
    }

    /// Returns the live thread of a log, whose replay is `messages`. A thread collected from the
    /// messages alone would be wrong: it would take the usage that an answer reported before a
    /// compaction for the current context.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use threadfold::{EventLog, Message, Thread, log::Event, message::Timestamp};
    /// use threadfold::tokens::ByteEstimate;
    ///
    /// let mut log = EventLog::new("main".parse()?);
    /// log.append(Timestamp(0), Event::MessageAppended(Message::user("hi")))?;
    /// let thread = Thread::restored(log.replay(), &log, Arc::new(ByteEstimate::TRIGGER));
    /// assert_eq!(thread.size().tokens, 5);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn restored(
        messages: impl Into<Arc<Vec<Message>>>,
        log: &EventLog,
        counter: Arc<dyn TokenCounter>,
    ) -> Self {
        let messages = messages.into();
        let mut thread = Self::new(counter);
        thread.counted = usage::usage_since(log.last_count(), &messages, thread.counter.as_ref());
        let tokens = count_each(&messages, thread.counter.as_ref());
        thread.messages = messages;
        thread.index(0, &tokens);
        thread
    }

    /// Returns the messages. Cloning the handle is free; the first append while a clone is held
    /// copies the vector of message handles.
    #[must_use]
    pub fn messages(&self) -> &Arc<Vec<Message>> {
        &self.messages
    }

    /// Returns the size of the thread, with tokens as estimated by its counter.
    #[must_use]
    pub fn size(&self) -> Size {
        let Sum { bytes, tokens } = self.sums.last().copied().unwrap_or_default();
        Size { messages: self.sums.len(), bytes, tokens }
    }

    /// Returns the tokens that the last answer reported, and an estimate of the messages pushed
    /// after it. After [`apply`](Self::apply) and [`truncate`](Self::truncate) nothing is reported
    /// until an answer has usage. [`Pressure::of`](crate::auto::Pressure::of) shows both to hosts.
    pub(crate) fn counted(&self) -> (Option<u64>, u64) {
        self.counted
    }

    /// Returns the tokens of the message at this index, as estimated when it was added.
    pub(crate) fn tokens_of(&self, message: usize) -> u64 {
        self.tokens_until(message.saturating_add(1)).saturating_sub(self.tokens_until(message))
    }

    fn tokens_until(&self, len: usize) -> u64 {
        len.checked_sub(1).and_then(|last| self.sums.get(last)).map_or(0, |sum| sum.tokens)
    }

    /// Returns the counter for tokens.
    #[must_use]
    pub fn counter(&self) -> &Arc<dyn TokenCounter> {
        &self.counter
    }

    /// Returns the ids of the tool calls at the end that have no result yet, in order.
    #[must_use]
    pub fn open_calls(&self) -> &[Text] {
        &self.open_calls
    }

    /// Returns the position just after a checkpoint; `None` if its id is not in the thread, or in
    /// it twice.
    ///
    /// ```
    /// use threadfold::{ContentBlock, Message, Thread, compact::Position};
    ///
    /// let (mut thread, mut hi) = (Thread::default(), Message::user("hi"));
    /// let id = "a1b2c3".parse()?;
    /// hi.make_mut().content.push(ContentBlock::checkpoint(id));
    /// thread.push(hi.clone());
    /// assert_eq!(thread.checkpoint(id), Some(Position { message: 0, block: 2 }));
    /// thread.push(hi);
    /// assert_eq!(thread.checkpoint(id), None, "two positions have that name");
    /// # Ok::<(), threadfold::message::InvalidValue>(())
    /// ```
    #[must_use]
    pub fn checkpoint(&self, id: CheckpointId) -> Option<Position> {
        if let Some(CheckpointPosition::At(position)) = self.checkpoints.find(id) {
            Some(position)
        } else {
            None
        }
    }

    /// Appends a message.
    ///
    /// ```
    /// use threadfold::{Message, Role, Thread, message::ToolUse};
    ///
    /// let mut thread = Thread::default();
    /// let call = ToolUse::new("call_1", "read", serde_json::json!({"path": "a.rs"}));
    /// thread.push(Message::new(Role::Assistant, vec![call.into()]));
    /// assert_eq!(thread.open_calls(), ["call_1"]);
    /// ```
    ///
    /// # Panics
    ///
    /// If the counter does. The thread is then unchanged.
    pub fn push(&mut self, message: Message) {
        // Count before any change, so that a panic of the counter leaves the thread unchanged.
        let tokens = self.counter.message(&message);
        self.push_counted(message, tokens);
    }

    /// Appends a message that has this many tokens.
    pub(crate) fn push_counted(&mut self, message: Message, tokens: u64) {
        self.index_appended(self.messages.len(), &message, tokens);
        self.update_open_calls(std::slice::from_ref(&message));
        for_appending(&mut self.messages).push(message);
    }

    /// Updates the open calls for appended messages.
    fn update_open_calls(&mut self, messages: &[Message]) {
        let answer = messages.iter().rposition(|message| message.role != Role::Assistant);
        if answer.is_some() {
            self.open_calls.clear();
        }
        let since = messages.iter().skip(answer.map_or(0, |last| last + 1));
        self.open_calls.extend(since.flat_map(Message::tool_uses).map(|call| call.id.clone()));
    }

    /// Updates index and count for an appended message, but not the open calls.
    fn index_appended(&mut self, index: usize, message: &Message, tokens: u64) {
        self.index_message(index, message, tokens);
        self.counted = match usage::reported_tokens(message) {
            Some(reported) => (Some(reported), 0),
            None => (self.counted.0, self.counted.1.saturating_add(tokens)),
        };
    }

    /// Drops the messages from index `len` on.
    ///
    /// ```
    /// use threadfold::{Message, Thread};
    ///
    /// let messages = [Message::user("hi"), Message::assistant("hello")];
    /// let mut thread: Thread = messages.into_iter().collect();
    /// thread.truncate(1);
    /// assert_eq!(thread.messages()[..], [Message::user("hi")]);
    /// ```
    pub fn truncate(&mut self, len: usize) {
        if len < self.messages.len() {
            Arc::make_mut(&mut self.messages).truncate(len);
            self.reindex(len, &[]);
        }
    }

    /// Returns the plan that replaces ranges with summaries. It finds checkpoints in the index.
    ///
    /// ```
    /// use threadfold::{Message, Replacement, Thread, compact::CompactOptions};
    ///
    /// let messages = [Message::assistant("I look."), Message::assistant("In src/parse.rs.")];
    /// let mut thread: Thread = messages.into_iter().collect();
    ///
    /// let found = Replacement::new("It is in src/parse.rs.");
    /// let plan = thread.plan(&[found], &CompactOptions::default())?;
    /// assert_eq!((plan.messages_before(), plan.messages_after()), (2, 1));
    /// assert_eq!(thread.size().messages, 2, "nothing has changed yet");
    /// let removed = thread.apply(&plan)?;
    /// assert_eq!(removed.len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Plan::new`].
    pub fn plan(
        &self,
        replacements: &[Replacement],
        options: &CompactOptions,
    ) -> Result<Plan, CompactError> {
        Plan::located(&self.messages, replacements, options, &self.checkpoints)
    }

    /// Checks a plan, and returns the thread as the plan would leave it.
    ///
    /// # Errors
    ///
    /// [`CompactError`] if the plan was not made for this thread.
    pub(crate) fn checked(&self, plan: &Plan) -> Result<Next, CompactError> {
        plan.check(&self.messages)?;
        Ok(Next::unchecked(plan, &self.messages, self.counter.as_ref()))
    }

    /// Applies a plan and returns the messages that it removed.
    ///
    /// ```
    /// use threadfold::{Message, Replacement, Thread, compact::{CompactOptions, CompactError}};
    ///
    /// let messages = [Message::user("hi"), Message::assistant("hello")];
    /// let mut thread: Thread = messages.into_iter().collect();
    /// let plan = thread.plan(&[Replacement::new("We said hello.")], &CompactOptions::default())?;
    /// thread.truncate(1);
    /// assert_eq!(thread.apply(&plan), Err(CompactError::Length { planned: 2, found: 1 }));
    /// assert_eq!(thread.size().messages, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`CompactError`] if the plan was not made for this thread; it is untouched then.
    pub fn apply(&mut self, plan: &Plan) -> Result<Vec<Message>, CompactError> {
        let next = self.checked(plan)?;
        Ok(self.take_on(next))
    }

    /// Replaces the messages with those that a plan for this thread leaves.
    pub(crate) fn take_on(&mut self, next: Next) -> Vec<Message> {
        if let Some(from) = next.from {
            self.messages = next.messages.into();
            self.reindex(from, &next.tokens);
        }
        next.removed
    }

    /// Updates the index after a change from message `from` on, other than an append.
    fn reindex(&mut self, from: usize, tokens: &[u64]) {
        self.index(from, tokens);
        self.counted = (None, 0);
    }

    /// Indexes the messages from index `from` on, which have these `tokens`.
    fn index(&mut self, from: usize, tokens: &[u64]) {
        self.sums.truncate(from);
        self.checkpoints = CheckpointIndex::of(self.messages.iter().take(from));
        let messages = self.messages.clone();
        let counted = messages.iter().enumerate().skip(from).zip(tokens);
        for ((index, message), tokens) in counted {
            self.index_message(index, message, *tokens);
        }
        self.open_calls = legality::open_calls(&self.messages);
    }

    /// Adds a message to the index. Calls no code of the host, which could panic.
    fn index_message(&mut self, index: usize, message: &Message, tokens: u64) {
        self.checkpoints.add(index, message);
        let before = self.sums.last().copied().unwrap_or_default();
        self.sums.push(Sum {
            bytes: before.bytes.saturating_add(message.text_bytes()),
            tokens: before.tokens.saturating_add(tokens),
        });
    }
}

impl Default for Thread {
    /// Returns an empty thread whose tokens [`ByteEstimate::TRIGGER`] counts.
    fn default() -> Self {
        Self::new(Arc::new(ByteEstimate::TRIGGER))
    }
}

/// Returns a vector to append to. A copy of a shared one gets spare capacity, so that it is not
/// moved at once.
pub(crate) fn for_appending<T: Clone>(items: &mut Arc<Vec<T>>) -> &mut Vec<T> {
    if Arc::get_mut(items).is_none() {
        let mut own = Vec::with_capacity(items.len() + items.len() / 8 + 4);
        own.extend_from_slice(items);
        *items = Arc::new(own);
    }
    Arc::make_mut(items)
}

impl Extend<Message> for Thread {
    fn extend<I: IntoIterator<Item = Message>>(&mut self, messages: I) {
        // The iterator and the counter are the host's and may panic, so both run before any change.
        let messages: Vec<Message> = messages.into_iter().collect();
        let tokens = count_each(&messages, self.counter.as_ref());
        for ((message, index), tokens) in messages.iter().zip(self.messages.len()..).zip(tokens) {
            self.index_appended(index, message, tokens);
        }
        self.update_open_calls(&messages);
        for_appending(&mut self.messages).extend(messages);
    }
}

impl FromIterator<Message> for Thread {
    fn from_iter<I: IntoIterator<Item = Message>>(messages: I) -> Self {
        let mut thread = Self::default();
        thread.extend(messages);
        thread
    }
}

/// Returns the messages with a checkpoint at the end of every user message that has none there, as
/// a session adds them. The same seed gives the same ids.
///
/// ```
/// use threadfold::{Message, log};
///
/// let thread = vec![Message::user("hi"), Message::assistant("hello")];
/// let stamped = log::stamp(thread, 1);
/// assert_eq!((stamped[0].content.len(), stamped[1].content.len()), (2, 1));
/// ```
#[must_use]
pub fn stamp(mut messages: Vec<Message>, seed: u64) -> Vec<Message> {
    let mut ids = CheckpointIds::new(seed);
    let stamps = messages.iter().flat_map(Message::checkpoints);
    let mut used: HashSet<CheckpointId> = stamps.map(|(id, _)| id).collect();
    for message in messages.iter_mut().filter(|message| message.role == Role::User) {
        if !matches!(message.content.last(), Some(ContentBlock::Checkpoint(_))) {
            let id = ids.draw(|id| used.contains(&id));
            used.insert(id);
            message.make_mut().content.push(ContentBlock::checkpoint(id));
        }
    }
    messages
}

/// A thread as a plan will leave it.
#[derive(Debug)]
pub(crate) struct Next {
    pub(super) messages: Vec<Message>,
    pub(super) removed: Vec<Message>,
    /// The index of the first message that changes; `None` if the plan changes nothing.
    pub(super) from: Option<usize>,
    /// The tokens of each message from `from` on, so that applying the plan calls no counter.
    pub(super) tokens: Vec<u64>,
}

/// Returns the tokens of each message. The counter is the host's and may panic, so call this before
/// any change.
pub(super) fn count_each(messages: &[Message], counter: &dyn TokenCounter) -> Vec<u64> {
    messages.iter().map(|message| counter.message(message)).collect()
}

impl Next {
    /// Applies a plan that was just made for these messages to a copy.
    pub(super) fn unchecked(plan: &Plan, messages: &[Message], counter: &dyn TokenCounter) -> Self {
        let from = (!plan.is_empty()).then(|| plan.first_touched());
        let next = plan.after_unchecked(messages);
        let changed = next.iter().skip(from.unwrap_or(next.len()));
        let tokens = changed.map(|message| counter.message(message)).collect();
        Self { messages: next, removed: plan.removed_from(messages), from, tokens }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        compact::Splice,
        message::{Json, ToolUse},
    };

    fn stamped(text: &str, id: &str) -> Message {
        let mut message = Message::user(text);
        message.make_mut().content.push(ContentBlock::checkpoint(id.parse().unwrap()));
        message
    }

    fn thread() -> Thread {
        [stamped("one", "aaaaaa"), Message::assistant("two"), stamped("three", "bbbbbb")]
            .into_iter()
            .collect()
    }

    /// Asserts that the index equals one that is built anew from the messages.
    fn assert_indexed(thread: &Thread) {
        let fresh: Thread = thread.messages().iter().cloned().collect();
        assert_eq!(thread.size(), fresh.size());
        assert_eq!(thread.checkpoints, fresh.checkpoints);
        assert_eq!(thread.open_calls, fresh.open_calls);
        assert_eq!(thread.size(), Size::of(thread.messages(), &ByteEstimate::TRIGGER));
    }

    #[test]
    fn the_index_follows_every_change() {
        let mut thread = thread();
        let range = Replacement::new("both").from("aaaaaa".parse().unwrap());
        let plan = thread.plan(&[range], &CompactOptions::default()).unwrap();
        let removed = thread.apply(&plan).unwrap();
        assert_eq!(removed.len(), 2);
        assert_indexed(&thread);
        assert_eq!(thread.checkpoint("bbbbbb".parse().unwrap()), None);
        thread.truncate(1);
        assert_indexed(&thread);
    }

    #[test]
    fn a_name_that_stands_twice_is_ambiguous_until_one_marker_is_left() {
        let mut thread = thread();
        thread.extend([stamped("four", "aaaaaa"), stamped("five", "aaaaaa")]);
        let id = "aaaaaa".parse().unwrap();
        for (len, expected) in [(5, None), (4, None), (3, Some(0)), (0, None)] {
            thread.truncate(len);
            let found = thread.checkpoint(id).map(|position| position.message);
            assert_eq!(found, expected, "{len} messages");
        }
    }

    #[test]
    fn a_stale_plan_leaves_the_thread_alone() {
        let mut thread = thread();
        let plan = thread.plan(&[Replacement::new("all")], &CompactOptions::default()).unwrap();
        thread.push(Message::assistant("four"));
        let before = thread.messages().clone();
        assert_eq!(thread.apply(&plan), Err(CompactError::Length { planned: 3, found: 4 }));
        assert!(Arc::ptr_eq(thread.messages(), &before));
    }

    #[test]
    fn messages_at_once_open_the_calls_that_they_open_one_by_one() {
        let call = |id: &str| ToolUse::new(id, "read", Json::parse("{}").unwrap()).into();
        let calls = |id: &str| Message::new(Role::Assistant, vec![call(id)]);
        let said = || Message::assistant("So.");
        let more = [calls("a"), Message::user("no"), calls("b"), said(), calls("c"), calls("d")];
        for until in 0..=more.len() {
            for from in 0..=until {
                let mut at_once: Thread = more[..from].iter().cloned().collect();
                at_once.extend(more[from..until].iter().cloned());
                let mut one_by_one = Thread::default();
                more[..until].iter().cloned().for_each(|message| one_by_one.push(message));
                assert_eq!(at_once.open_calls(), legality::open_calls(&more[..until]));
                assert_eq!(one_by_one.open_calls(), at_once.open_calls());
            }
        }
    }

    #[test]
    fn calls_are_open_until_a_user_message_comes() {
        let mut thread = thread();
        let call = ToolUse::new("t1", "read", Json::parse("{}").unwrap());
        thread.push(Message::new(Role::Assistant, vec![call.into()]));
        assert_eq!(thread.open_calls(), [Text::from("t1")]);
        assert_indexed(&thread);
        thread.push(Message::user("never mind"));
        assert!(thread.open_calls().is_empty());
    }

    #[test]
    fn a_checked_plan_changes_the_thread_only_when_it_is_applied() {
        let messages = ["one", "two", "three"].map(Message::user);
        let mut thread: Thread = messages.iter().cloned().collect();
        let plan = Plan::from_splices(3, vec![Splice { at: 1..2, insert: Vec::new() }]);
        let next = thread.checked(&plan).unwrap();
        assert_eq!(next.messages, [messages[0].clone(), messages[2].clone()]);
        assert_eq!(thread.messages()[..], messages);
        let removed = thread.apply(&plan).unwrap();
        assert_eq!(removed, messages[1..2]);
        assert_eq!(thread.size().messages, 2);
    }

    #[test]
    fn a_plan_that_changes_nothing_leaves_the_messages() {
        let mut thread: Thread = [Message::user("one")].into_iter().collect();
        let before = thread.messages().clone();
        let _ = thread.apply(&Plan::from_splices(1, Vec::new())).unwrap();
        assert!(Arc::ptr_eq(thread.messages(), &before));
    }
}
