//! The live thread: messages, and what must be known of them on every turn.

use std::{collections::HashSet, sync::Arc};

use super::{
    event::LoggedEvent,
    rewrite::{Next, Rewrite, counted},
    usage::{self, ContextCount, ContextUsage},
};
use crate::{
    compact::{
        CheckpointIndex, CheckpointPosition, CompactError, CompactOptions, Plan, Position, Removed,
        Replacement, Size, StalePlan, legality,
    },
    message::{CheckpointId, CheckpointIds, ContentBlock, Message, Messages, Role, Text},
    tokens::{ByteEstimate, TokenCounter},
};

/// A thread with its index: the only place where messages, checkpoints, open calls and sizes
/// change, and only together.
///
/// Everything that is asked on every turn takes constant time, whatever the length: [`size`],
/// [`context_usage`], [`open_calls`], [`checkpoint`], and [`messages`], which is a shared handle.
///
/// [`size`]: Self::size
/// [`context_usage`]: Self::context_usage
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
    messages: Messages,
    counter: Arc<dyn TokenCounter>,
    /// The size of the thread up to and including each message.
    sums: Vec<Sum>,
    checkpoints: CheckpointIndex,
    open_calls: Vec<Text>,
    context: ContextUsage,
    epoch: u64,
}

/// Bytes of text and tokens, together.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    bytes: u64,
    tokens: u64,
}

impl Thread {
    /// Returns an empty thread whose size is counted so.
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
            messages: Messages::default(),
            counter,
            sums: Vec::new(),
            checkpoints: CheckpointIndex::default(),
            open_calls: Vec::new(),
            context: ContextUsage::default(),
            epoch: 0,
        }
    }

    /// Returns a thread that goes on where a log ends: `messages` are what its `events` give on
    /// replay. Messages that are only collected are taken for ones that come now, and what kept ones
    /// reported before they were compacted would count again.
    ///
    /// ```
    /// use std::{collections::HashSet, sync::Arc};
    /// use threadfold::{Message, Thread, log::{Event, LoggedEvent}, message::Timestamp};
    /// use threadfold::tokens::ByteEstimate;
    ///
    /// let message = Message::user("hi");
    /// let event = Event::MessageAppended(message.clone());
    /// let events = [LoggedEvent { seq: 0, at: Timestamp(0), event }];
    /// let thread = Thread::restored(vec![message], &events, Arc::new(ByteEstimate::TRIGGER));
    /// assert_eq!(thread.context_usage().pending, 5);
    /// ```
    #[must_use]
    pub fn restored(
        messages: impl Into<Messages>,
        events: &[LoggedEvent],
        counter: Arc<dyn TokenCounter>,
    ) -> Self {
        let messages = messages.into();
        let mut thread = Self::new(counter);
        thread.context = usage::context_usage(events, &messages, thread.counter.as_ref());
        let tokens = counted(&messages, thread.counter.as_ref());
        thread.messages = messages;
        thread.index(0, &tokens);
        thread
    }

    /// The messages. Cloning the handle costs nothing; an append while a clone is held copies the
    /// vector of handles once.
    #[must_use]
    pub fn messages(&self) -> &Messages {
        &self.messages
    }

    /// The size of the thread, tokens as its counter estimates them.
    #[must_use]
    pub fn size(&self) -> Size {
        let Sum { bytes, tokens } = self.sums.last().copied().unwrap_or_default();
        Size { messages: self.sums.len(), bytes, tokens }
    }

    /// How full the context is: what the last call reported and what was pushed since; an estimate
    /// after [`apply`](Self::apply) and [`truncate`](Self::truncate), until an answer comes that was
    /// counted.
    #[must_use]
    pub fn context_usage(&self) -> ContextUsage {
        self.context
    }

    /// Estimated tokens of the message at this place, as its counter said when it came.
    pub(crate) fn tokens_of(&self, message: usize) -> u64 {
        self.tokens_until(message.saturating_add(1)).saturating_sub(self.tokens_until(message))
    }

    fn tokens_until(&self, len: usize) -> u64 {
        len.checked_sub(1).and_then(|last| self.sums.get(last)).map_or(0, |sum| sum.tokens)
    }

    /// What counts the tokens.
    #[must_use]
    pub fn counter(&self) -> &Arc<dyn TokenCounter> {
        &self.counter
    }

    /// The ids of the calls at the end that have no result yet, in order.
    #[must_use]
    pub fn open_calls(&self) -> &[Text] {
        &self.open_calls
    }

    /// The position just after the marker of a checkpoint; `None` if it is unknown or ambiguous.
    ///
    /// ```
    /// use threadfold::{Message, Thread, compact::Position, message::CheckpointIds};
    ///
    /// let mut thread = Thread::default();
    /// let id = thread.push_stamped(Message::user("hi"), &mut CheckpointIds::new(1));
    /// assert_eq!(thread.checkpoint(id), Some(Position { message: 0, block: 2 }));
    /// let twice = thread.messages()[0].clone();
    /// thread.push(twice);
    /// assert_eq!(thread.checkpoint(id), None, "two places have that name");
    /// ```
    #[must_use]
    pub fn checkpoint(&self, id: CheckpointId) -> Option<Position> {
        if let Some(CheckpointPosition::At(position)) = self.checkpoints.find(id) {
            Some(position)
        } else {
            None
        }
    }

    /// A number that changes with every change but an append. What was prepared for one epoch is
    /// stale in another.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
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
    /// assert_eq!(thread.epoch(), 0, "an append makes nothing stale");
    /// ```
    ///
    /// # Panics
    ///
    /// Only if the counter does. The thread is as before then.
    pub fn push(&mut self, message: Message) {
        // Counted before anything changes: a counter that panics leaves the thread as it was.
        let tokens = self.counter.message(&message);
        self.follow(self.messages.len(), &message, tokens);
        self.open(std::slice::from_ref(&message));
        self.messages.make_mut().push(message);
    }

    /// Updates the open calls for appended messages.
    fn open(&mut self, messages: &[Message]) {
        let answer = messages.iter().rposition(|message| message.role != Role::Assistant);
        if answer.is_some() {
            self.open_calls.clear();
        }
        let since = messages.iter().skip(answer.map_or(0, |last| last + 1));
        self.open_calls.extend(since.flat_map(Message::tool_uses).map(|call| call.id.clone()));
    }

    /// Updates the index for an appended message, except for the open calls.
    fn follow(&mut self, index: usize, message: &Message, tokens: u64) {
        self.note(index, message, tokens);
        self.context = match usage::reported_tokens(message) {
            Some(tokens) => ContextUsage { counted: ContextCount::Reported(tokens), pending: 0 },
            None => ContextUsage {
                pending: self.context.pending.saturating_add(tokens),
                ..self.context
            },
        };
    }

    /// Appends a user message with a checkpoint after its last block, and returns its id.
    ///
    /// ```
    /// use threadfold::{Message, Thread, message::CheckpointIds};
    ///
    /// let mut thread = Thread::default();
    /// let id = thread.push_stamped(Message::user("hi"), &mut CheckpointIds::new(1));
    /// assert_eq!(thread.checkpoint(id).map(|at| at.block), Some(2));
    /// ```
    pub fn push_stamped(&mut self, mut message: Message, ids: &mut CheckpointIds) -> CheckpointId {
        let id = ids.draw(|id| self.checkpoints.find(id).is_some());
        message.make_mut().content.push(ContentBlock::checkpoint(id));
        self.push(message);
        id
    }

    /// Drops all messages from this one on.
    ///
    /// ```
    /// use threadfold::{Message, Thread};
    ///
    /// let mut thread: Thread = [Message::user("hi"), Message::assistant("hello")].into_iter().collect();
    /// let before = thread.epoch();
    /// thread.truncate(1);
    /// assert_eq!(thread.messages()[..], [Message::user("hi")]);
    /// assert_ne!(thread.epoch(), before);
    /// ```
    pub fn truncate(&mut self, len: usize) {
        if len < self.messages.len() {
            self.messages.make_mut().truncate(len);
            self.reindex(len, &[]);
        }
    }

    /// Returns the plan of replacing ranges with summaries. The checkpoints come from the index.
    ///
    /// ```
    /// use threadfold::{Message, Replacement, Thread, compact::CompactOptions, message::CheckpointIds};
    ///
    /// let mut thread = Thread::default();
    /// let id = thread.push_stamped(Message::user("Where is it?"), &mut CheckpointIds::new(1));
    /// thread.extend([Message::assistant("I look."), Message::assistant("In src/parse.rs.")]);
    ///
    /// let found = Replacement::new("It is in src/parse.rs.").from(id);
    /// let plan = thread.plan(&[found], &CompactOptions::default())?;
    /// assert_eq!((plan.messages_before(), plan.messages_after()), (3, 2));
    /// assert_eq!(thread.size().messages, 3, "nothing has changed yet");
    /// let removed = thread.apply(&plan)?;
    /// assert_eq!(removed.messages.len(), 2);
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

    /// Returns the thread as the plan would leave it, for a caller who has something to do before
    /// it is changed: the plan is checked here, so [`Rewrite::apply`] cannot fail.
    ///
    /// ```
    /// use threadfold::{Message, Replacement, Thread, compact::CompactOptions};
    ///
    /// let mut thread: Thread = [Message::user("hi"), Message::assistant("hello")].into_iter().collect();
    /// let plan = thread.plan(&[Replacement::new("We said hello.")], &CompactOptions::default())?;
    /// let rewrite = thread.rewrite(&plan)?;
    /// assert_eq!(rewrite.messages().len(), 1);
    /// // Here the plan is written to a log. If that fails, the rewrite is dropped and nothing changed.
    /// let removed = rewrite.apply();
    /// assert_eq!((removed.messages.len(), thread.size().messages), (2, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`StalePlan`] if the plan was not made for this thread.
    pub fn rewrite(&mut self, plan: &Plan) -> Result<Rewrite<'_, Self>, StalePlan> {
        let next = Next::checked(plan, &self.messages, self.counter.as_ref())?;
        Ok(Rewrite::new(self, next))
    }

    /// Returns the plan of replacing ranges, and what it makes of this thread.
    pub(crate) fn planned(
        &self,
        replacements: &[Replacement],
        options: &CompactOptions,
    ) -> Result<(Plan, Next), CompactError> {
        let plan = self.plan(replacements, options)?;
        let next = Next::made(&plan, &self.messages, self.counter.as_ref());
        Ok((plan, next))
    }

    /// Carries a plan out and returns the messages that it removed: [`rewrite`](Self::rewrite) and
    /// [`Rewrite::apply`] in one call.
    ///
    /// ```
    /// use threadfold::{Message, Replacement, Thread, compact::{CompactOptions, StalePlan}};
    ///
    /// let mut thread: Thread = [Message::user("hi"), Message::assistant("hello")].into_iter().collect();
    /// let plan = thread.plan(&[Replacement::new("We said hello.")], &CompactOptions::default())?;
    /// thread.truncate(1);
    /// assert_eq!(thread.apply(&plan), Err(StalePlan::Length { planned: 2, found: 1 }));
    /// assert_eq!(thread.size().messages, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`StalePlan`] if the plan was not made for this thread; it is untouched then.
    pub fn apply(&mut self, plan: &Plan) -> Result<Removed, StalePlan> {
        Ok(self.rewrite(plan)?.apply())
    }

    /// Replaces the thread with what a plan makes of it. Only a [`Rewrite`] has that, and it borrows
    /// the thread.
    pub(crate) fn take_on(&mut self, next: Next) -> Removed {
        if let Some(from) = next.from {
            self.messages = next.messages.into();
            self.reindex(from, &next.tokens);
        }
        next.removed
    }

    /// Updates the index after a change from this message on that is no append.
    fn reindex(&mut self, from: usize, tokens: &[u64]) {
        self.epoch += 1;
        self.index(from, tokens);
        let counted = ContextCount::Estimated(self.size().tokens);
        self.context = ContextUsage { counted, pending: 0 };
    }

    /// Indexes the messages from this one on, of so many tokens each.
    fn index(&mut self, from: usize, tokens: &[u64]) {
        self.sums.truncate(from);
        self.checkpoints = CheckpointIndex::of(self.messages.iter().take(from));
        let messages = self.messages.clone();
        let counted = messages.iter().enumerate().skip(from).zip(tokens);
        for ((index, message), tokens) in counted {
            self.note(index, message, *tokens);
        }
        self.open_calls = legality::open_calls(&self.messages);
    }

    /// Adds a message of so many tokens to the index. Calls no code of the host.
    fn note(&mut self, index: usize, message: &Message, own: u64) {
        self.checkpoints.add(index, message);
        let Sum { bytes, tokens } = self.sums.last().copied().unwrap_or_default();
        self.sums.push(Sum {
            bytes: bytes.saturating_add(message.text_bytes()),
            tokens: tokens.saturating_add(own),
        });
    }
}

impl Rewrite<'_, Thread> {
    /// Rewrites the thread and returns the messages that the plan removed.
    pub fn apply(self) -> Removed {
        let (thread, next) = self.into_parts();
        thread.take_on(next)
    }
}

impl Default for Thread {
    /// An empty thread, counted by [`ByteEstimate::TRIGGER`].
    fn default() -> Self {
        Self::new(Arc::new(ByteEstimate::TRIGGER))
    }
}

impl Extend<Message> for Thread {
    fn extend<I: IntoIterator<Item = Message>>(&mut self, messages: I) {
        // Iterator and counter belong to the host and may panic: both are done before the index changes.
        let messages: Vec<Message> = messages.into_iter().collect();
        let tokens = counted(&messages, self.counter.as_ref());
        for ((message, index), tokens) in messages.iter().zip(self.messages.len()..).zip(tokens) {
            self.follow(index, message, tokens);
        }
        self.open(&messages);
        self.messages.make_mut().extend(messages);
    }
}

impl FromIterator<Message> for Thread {
    fn from_iter<I: IntoIterator<Item = Message>>(messages: I) -> Self {
        let mut thread = Self::default();
        thread.extend(messages);
        thread
    }
}

/// Returns the messages with a checkpoint after the last block of every user message that has
/// none, as a session would have stamped them. The same source gives the same ids.
///
/// ```
/// use threadfold::{Message, log, message::CheckpointIds};
///
/// let thread = vec![Message::user("hi"), Message::assistant("hello")];
/// let stamped = log::stamp(thread, &mut CheckpointIds::new(1));
/// assert_eq!((stamped[0].content.len(), stamped[1].content.len()), (2, 1));
/// ```
#[must_use]
pub fn stamp(mut messages: Vec<Message>, ids: &mut CheckpointIds) -> Vec<Message> {
    let stamps = messages.iter().flat_map(Message::checkpoints);
    let mut taken: HashSet<CheckpointId> = stamps.map(|(id, _)| id).collect();
    for message in messages.iter_mut().filter(|message| message.role == Role::User) {
        if !matches!(message.content.last(), Some(ContentBlock::Checkpoint(_))) {
            let id = ids.draw(|id| taken.contains(&id));
            taken.insert(id);
            message.make_mut().content.push(ContentBlock::checkpoint(id));
        }
    }
    messages
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

    /// What the index says must be what a fresh look at the messages says.
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
        assert_eq!(removed.messages.len(), 2);
        assert_indexed(&thread);
        assert_eq!(thread.checkpoint("bbbbbb".parse().unwrap()), None);
        thread.truncate(1);
        assert_indexed(&thread);
        assert_eq!(thread.epoch(), 2);
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
    fn only_an_append_leaves_the_epoch() {
        let mut thread = thread();
        thread.push(Message::assistant("four"));
        let empty = thread.plan(&[], &CompactOptions::default()).unwrap();
        thread.apply(&empty).unwrap();
        assert_eq!(thread.epoch(), 0);
    }

    #[test]
    fn a_stale_plan_leaves_the_thread_alone() {
        let mut thread = thread();
        let plan = thread.plan(&[Replacement::new("all")], &CompactOptions::default()).unwrap();
        thread.push(Message::assistant("four"));
        let before = thread.messages().clone();
        assert_eq!(thread.apply(&plan), Err(StalePlan::Length { planned: 3, found: 4 }));
        assert!(thread.messages().ptr_eq(&before));
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
    fn a_rewrite_changes_the_thread_only_when_it_is_applied() {
        let messages = ["one", "two", "three"].map(Message::user);
        let mut thread: Thread = messages.iter().cloned().collect();
        let plan = Plan::from_splices(3, vec![Splice { at: 1..2, insert: Vec::new() }]);
        let rewrite = thread.rewrite(&plan).unwrap();
        assert_eq!(rewrite.messages(), [messages[0].clone(), messages[2].clone()]);
        drop(rewrite);
        assert_eq!((&thread.messages()[..], thread.epoch()), (&messages[..], 0));
        let removed = thread.rewrite(&plan).unwrap().apply();
        assert_eq!(removed.messages, messages[1..2]);
        assert_eq!((thread.size().messages, thread.epoch()), (2, 1));
    }

    #[test]
    fn a_plan_that_changes_nothing_leaves_the_epoch() {
        let mut thread: Thread = [Message::user("one")].into_iter().collect();
        let before = thread.messages().clone();
        let _ = thread.rewrite(&Plan::from_splices(1, Vec::new())).unwrap().apply();
        assert!(thread.messages().ptr_eq(&before) && thread.epoch() == 0);
    }
}
