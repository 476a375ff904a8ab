//! Repairing a thread that violates the rules of all providers.
//!
//! The first pass removes what can be judged block by block: blocks of the wrong role, blank text,
//! results of calls that were never made, empty messages. The second pass pairs calls and results:
//! misplaced results are moved, missing ones added, surplus ones removed.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque},
    fmt,
};

use serde::{Deserialize, Serialize};

use super::{
    position::Position,
    runs::{Mention, RoleRun, role_runs},
    violations::violations,
};
use crate::message::{ContentBlock, Message, Role, Text, ToolResult};

/// The text of the result that [`repair`] adds for a call without one.
pub const NO_RESULT: &str = "No result was recorded for this call.";

/// One change that [`repair`] made. Indices refer to the thread before the repair.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Repair {
    /// A block was removed.
    BlockDropped {
        /// The index of the message.
        message: usize,
        /// The kind of the block.
        kind: Text,
        /// Why it was removed.
        reason: Text,
    },
    /// A message without blocks was removed.
    MessageDropped {
        /// The index of the message.
        message: usize,
    },
    /// A result was moved after its call.
    ResultMoved {
        /// The index of the message that contained the result.
        message: usize,
        /// The id of the call.
        id: Text,
    },
    /// An error result was added to a call without a result.
    ResultAdded {
        /// The index of the message with the call.
        message: usize,
        /// The id of the call.
        id: Text,
    },
    /// A call got a new id, because its id occurred twice in one run. Its result got the same id.
    CallRenamed {
        /// The index of the message with the call.
        message: usize,
        /// The old id.
        from: Text,
        /// The new id.
        to: Text,
    },
}

/// Returns the thread without violations of the rules of all providers, and the changes made.
///
/// Never fails; a second repair changes nothing. Unchanged messages are the same handles as before.
/// Calls that are open at the end stay open. Time is linear in the number of blocks.
///
/// ```
/// use threadfold::{Message, Role, legality, message::ToolUse};
///
/// let call = ToolUse::new("t1", "read", serde_json::json!({}));
/// let thread = vec![Message::new(Role::Assistant, vec![call.into()]), Message::user("Go on.")];
/// let (repaired, repairs) = legality::repair(thread);
/// assert_eq!(legality::violations(&repaired), []);
/// assert_eq!(repairs.len(), 1);
/// ```
#[must_use]
pub fn repair(messages: Vec<Message>) -> (Vec<Message>, Vec<Repair>) {
    // Most threads need no repair, and checking costs less than pairing calls.
    if violations(&messages).is_empty() {
        return (messages, Vec::new());
    }
    let (repaired, repairs) = repair_always(messages);
    (repaired.into_iter().map(|(_, message)| message).collect(), repairs)
}

/// Like [`repair`], and returns for each message its index before the repair. An inserted message
/// has the index of the message after it.
pub fn repair_numbered(messages: Vec<Message>) -> (Vec<(usize, Message)>, Vec<Repair>) {
    if violations(&messages).is_empty() {
        return (messages.into_iter().enumerate().collect(), Vec::new());
    }
    repair_always(messages)
}

fn repair_always(messages: Vec<Message>) -> (Vec<(usize, Message)>, Vec<Repair>) {
    let mut repairs = Vec::new();
    let cleaned = clean(messages, &mut repairs);
    let (origins, messages): (Vec<usize>, Vec<Message>) = cleaned.into_iter().unzip();
    let mut pairing = Pairing::new(&messages, &origins);
    let mut runs = role_runs(&messages).peekable();
    while let Some(run) = runs.next() {
        pairing.visit(&run, runs.peek());
    }
    let edits = pairing.finish(&mut repairs);
    let repaired = edits.apply(&messages, &origins, &mut repairs);
    repairs.sort_by_key(Repair::message);
    (repaired, repairs)
}

/// Removes what can be judged block by block. Returns each remaining message with its index.
fn clean(messages: Vec<Message>, repairs: &mut Vec<Repair>) -> Vec<(usize, Message)> {
    let mut called: HashSet<Text> = HashSet::new();
    let mut server_called: HashSet<Text> = HashSet::new();
    let mut cleaned = Vec::with_capacity(messages.len());
    for (index, mut message) in messages.into_iter().enumerate() {
        let blocks = message.content.iter();
        let faults: Vec<Option<&str>> = blocks
            .map(|block| fault(message.role, block, &mut called, &mut server_called))
            .collect();
        // A message without faults keeps its handle.
        if faults.iter().any(Option::is_some) {
            let mut faults = faults.into_iter();
            message.make_mut().content.retain(|block| {
                let fault = faults.next().flatten();
                repairs.extend(fault.map(|reason| dropped(index, block, reason)));
                fault.is_none()
            });
        }
        if message.content.is_empty() {
            repairs.push(Repair::MessageDropped { message: index });
        } else {
            cleaned.push((index, message));
        }
    }
    cleaned
}

/// Returns why a block must be removed, if it must, and records the ids of calls.
fn fault(
    role: Role,
    block: &ContentBlock,
    called: &mut HashSet<Text>,
    server_called: &mut HashSet<Text>,
) -> Option<&'static str> {
    if !role.may_send(block) {
        return Some("this role cannot send it");
    }
    if block.is_blank() {
        return Some("blank text");
    }
    if let ContentBlock::ToolUse(call) = block {
        called.insert(call.id.clone());
    } else if let ContentBlock::ServerToolUse(call) = block {
        server_called.insert(call.id.clone());
    }
    // Only the calls so far count: a result before its call answers nothing.
    let orphan = match block {
        ContentBlock::ToolResult(result) => !called.contains(&result.tool_use_id),
        ContentBlock::ServerToolResult(result) => !server_called.contains(&result.tool_use_id),
        ContentBlock::Text(_)
        | ContentBlock::Image(_)
        | ContentBlock::Document(_)
        | ContentBlock::Thinking(_)
        | ContentBlock::RedactedThinking(_)
        | ContentBlock::ToolUse(_)
        | ContentBlock::ServerToolUse(_)
        | ContentBlock::SystemReminder(_)
        | ContentBlock::ContextUpdate(_)
        | ContentBlock::Checkpoint(_)
        | ContentBlock::Summary(_)
        | ContentBlock::Opaque(_) => false,
    };
    orphan.then_some("its call was never made")
}

fn dropped(message: usize, block: &ContentBlock, reason: &str) -> Repair {
    Repair::BlockDropped { message, kind: block.kind().into(), reason: reason.into() }
}

/// Finds the result of every call, run by run.
struct Pairing<'a> {
    messages: &'a [Message],
    origins: &'a [usize],
    /// The latest call with each id, which a misplaced result may answer.
    latest: HashMap<&'a Text, Call<'a>>,
    /// The positions of results that are already where their call requires them.
    matched: HashSet<Position>,
    /// All call ids, so that generated ids are unique.
    ids: HashSet<Text>,
    /// The last number appended to each id to make it unique.
    numbers: HashMap<&'a Text, usize>,
    edits: Edits,
    repairs: Vec<Repair>,
}

/// A call that the pairing has reached.
#[derive(Clone)]
struct Call<'a> {
    mention: Mention<'a>,
    /// The index of the message after the run with the call, where its result belongs.
    answer_at: usize,
    /// The id of the call after the repair.
    id: Text,
    answered: bool,
}

impl<'a> Pairing<'a> {
    fn new(messages: &'a [Message], origins: &'a [usize]) -> Self {
        let calls = messages.iter().flat_map(|message| message.tool_uses());
        let ids = calls.map(|call| call.id.clone()).collect();
        Self {
            messages,
            origins,
            latest: HashMap::new(),
            matched: HashSet::new(),
            ids,
            numbers: HashMap::new(),
            edits: Edits::default(),
            repairs: Vec::new(),
        }
    }

    fn visit(&mut self, run: &RoleRun<'a>, next: Option<&RoleRun<'a>>) {
        self.place_unmatched(run);
        // Results are queued in order, so that two calls with one id get one result each.
        let mut waiting: HashMap<&Text, VecDeque<Position>> = HashMap::new();
        for result in next.into_iter().flat_map(|next| &next.results) {
            waiting.entry(result.id).or_default().push_back(result.at);
        }
        let mut in_run = HashSet::new();
        for mention in run.uses.iter().copied() {
            let is_duplicate = !in_run.insert(mention.id);
            let id = if is_duplicate { self.rename(mention) } else { mention.id.clone() };
            let result = waiting.get_mut(mention.id).and_then(VecDeque::pop_front);
            if let Some(at) = result {
                self.matched.insert(at);
                self.edits.rename(at, mention.id, &id);
            }
            // A call at the end of the thread may still wait for its result.
            let answered = result.is_some() || next.is_none();
            let call = Call { mention, answer_at: run.end, id, answered };
            // Results after this call answer this call, so an earlier call with its id stays
            // unanswered.
            if let Some(before) = self.latest.insert(mention.id, call) {
                self.add_missing_result(before);
            }
        }
    }

    /// Handles the results that no call of the previous run matched. Each answers the latest call
    /// with its id if that call has no result; otherwise it is removed.
    fn place_unmatched(&mut self, run: &RoleRun<'a>) {
        for result in run.results.iter().filter(|result| !self.matched.contains(&result.at)) {
            let Some(block) = block(self.messages, result.at) else { continue };
            let message = self.origin(result.at.message);
            self.edits.drops.insert(result.at);
            match self.latest.get_mut(result.id).filter(|call| !call.answered) {
                Some(call) => {
                    call.answered = true;
                    let id = call.id.clone();
                    self.edits.add(call.answer_at, call.mention.at, renamed(block, &id));
                    self.repairs.push(Repair::ResultMoved { message, id });
                }
                None => {
                    self.repairs.push(dropped(message, block, "its call has its result"));
                }
            }
        }
    }

    /// Adds an error result for a call without a result.
    fn add_missing_result(&mut self, call: Call<'a>) {
        if call.answered {
            return;
        }
        let message = self.origin(call.mention.at.message);
        self.repairs.push(Repair::ResultAdded { message, id: call.id.clone() });
        let result = ToolResult::error(call.id, NO_RESULT);
        self.edits.add(call.answer_at, call.mention.at, result.into());
    }

    fn rename(&mut self, mention: Mention<'a>) -> Text {
        // Counting on from the last number keeps the time linear if one id repeats often.
        let number = self.numbers.entry(mention.id).or_insert(1);
        let id = loop {
            *number += 1;
            let id = Text::from(format!("{}-{number}", mention.id));
            if self.ids.insert(id.clone()) {
                break id;
            }
        };
        self.edits.rename(mention.at, mention.id, &id);
        let message = self.origin(mention.at.message);
        let (from, to) = (mention.id.clone(), id.clone());
        self.repairs.push(Repair::CallRenamed { message, from, to });
        id
    }

    /// Answers the remaining calls without a result, and returns the edits.
    fn finish(mut self, repairs: &mut Vec<Repair>) -> Edits {
        let mut calls: Vec<Call<'a>> = self.latest.drain().map(|(_, call)| call).collect();
        // Hash maps are unordered, and the same thread must give the same report.
        calls.sort_by_key(|call| call.mention.at);
        for call in calls {
            self.add_missing_result(call);
        }
        repairs.append(&mut self.repairs);
        self.edits
    }

    fn origin(&self, message: usize) -> usize {
        debug_assert!(message < self.origins.len(), "message {message} was not cleaned");
        self.origins.get(message).copied().unwrap_or(message)
    }
}

/// The changes by position, applied in one sweep.
#[derive(Default)]
struct Edits {
    drops: BTreeSet<Position>,
    renames: BTreeMap<Position, Text>,
    /// The results to insert before a message, in the order of their calls.
    additions: BTreeMap<(usize, Position), ContentBlock>,
}

impl Edits {
    fn rename(&mut self, at: Position, from: &Text, to: &Text) {
        if from != to {
            self.renames.insert(at, to.clone());
        }
    }

    fn add(&mut self, before: usize, call: Position, result: ContentBlock) {
        self.additions.insert((before, call), result);
    }

    fn apply(
        self,
        messages: &[Message],
        origins: &[usize],
        repairs: &mut Vec<Repair>,
    ) -> Vec<(usize, Message)> {
        let mut repaired = Vec::with_capacity(messages.len());
        for ((index, message), origin) in messages.iter().enumerate().zip(origins.iter().copied()) {
            // The keys begin with the message before which a result goes, and continue with the
            // position of its call, so that a range holds all results in the order of their calls.
            let within = (index, Position::default())..(index + 1, Position::default());
            let results: Vec<ContentBlock> =
                self.additions.range(within).map(|(_, block)| block.clone()).collect();
            let mut message = message.clone();
            self.edit(index, &mut message);
            // If no user message follows the call, the results become a message of their own.
            if message.role == Role::User {
                add_results(&mut message, results);
            } else if !results.is_empty() {
                repaired.push((origin, Message::new(Role::User, results)));
            }
            if message.content.is_empty() {
                repairs.push(Repair::MessageDropped { message: origin });
            } else {
                repaired.push((origin, message));
            }
        }
        repaired
    }

    fn edit(&self, index: usize, message: &mut Message) {
        let within = Position::before(index)..Position::before(index + 1);
        let mut renames = self.renames.range(within.clone()).peekable();
        let mut drops = self.drops.range(within).peekable();
        if renames.peek().is_none() && drops.peek().is_none() {
            return;
        }
        let content = &mut message.make_mut().content;
        for (at, id) in renames {
            if let Some(block) = content.get_mut(at.block) {
                *block = renamed(block, id);
            }
        }
        let mut block = 0;
        content.retain(|_| {
            let stays = drops.next_if(|at| at.block == block).is_none();
            block += 1;
            stays
        });
    }
}

/// Inserts results after the leading results of the message.
fn add_results(message: &mut Message, results: Vec<ContentBlock>) {
    if results.is_empty() {
        return;
    }
    // Providers require the results before any other block of the message.
    let content = &mut message.make_mut().content;
    let results_first = content.iter().take_while(|it| matches!(it, ContentBlock::ToolResult(_)));
    let leading = results_first.count();
    content.splice(leading..leading, results);
}

fn renamed(block: &ContentBlock, id: &Text) -> ContentBlock {
    let mut block = block.clone();
    if let ContentBlock::ToolUse(call) = &mut block {
        call.id = id.clone();
    } else if let ContentBlock::ToolResult(result) = &mut block {
        result.tool_use_id = id.clone();
    }
    block
}

fn block(messages: &[Message], at: Position) -> Option<&ContentBlock> {
    messages.get(at.message)?.content.get(at.block)
}

impl Repair {
    /// The index of the message before the repair.
    #[must_use]
    pub fn message(&self) -> usize {
        match self {
            Self::BlockDropped { message, .. }
            | Self::MessageDropped { message }
            | Self::ResultMoved { message, .. }
            | Self::ResultAdded { message, .. }
            | Self::CallRenamed { message, .. } => *message,
        }
    }
}

impl fmt::Display for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BlockDropped { kind, reason, .. } => write!(f, "{kind} taken out: {reason}"),
            Self::MessageDropped { .. } => f.write_str("taken out: no content"),
            Self::ResultMoved { id, .. } => write!(f, "result for {id} moved after its call"),
            Self::ResultAdded { id, .. } => write!(f, "call {id} answered: no result was recorded"),
            Self::CallRenamed { from, to, .. } => write!(f, "call {from} renamed to {to}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*, sample::select};

    use super::*;
    use crate::message::{Json, ServerToolResult, ServerToolUse, Thinking, ToolUse};

    fn block() -> impl Strategy<Value = ContentBlock> {
        let made = |(kind, id): (u8, &'static str)| match kind {
            0 | 1 => ToolUse::new(id, "read", Json::default()).into(),
            2 | 3 => ToolResult::text(id, "done").into(),
            4 => ServerToolUse::new(id, "search", Json::default()).into(),
            5 => ServerToolResult::new(id, "found", Json::default()).into(),
            6 => Thinking::new("Hm.", None).into(),
            7 => ContentBlock::reminder("Be brief."),
            8 => ContentBlock::text(" "),
            _ => ContentBlock::text("Well."),
        };
        (0_u8..12, select(vec!["a", "b"])).prop_map(made)
    }

    fn message() -> impl Strategy<Value = Message> {
        let roles = select(vec![Role::User, Role::Assistant, Role::Assistant, Role::System]);
        (roles, vec(block(), 0..4)).prop_map(|(role, content)| Message::new(role, content))
    }

    /// Calls of an assistant and the results that answer them, sometimes in two messages each.
    fn round() -> impl Strategy<Value = Vec<Message>> {
        let shape = (select(vec![vec!["a"], vec!["b"], vec!["a", "b"], vec!["b", "a"]]), 0_u8..8);
        shape.prop_map(|(ids, shape)| {
            let call = |id: &&str| ContentBlock::from(ToolUse::new(*id, "read", Json::default()));
            let result = |id: &&str| ContentBlock::from(ToolResult::text(*id, "done"));
            let message = |role, blocks: Vec<ContentBlock>| Message::new(role, blocks);
            let messages = |role, blocks: Vec<ContentBlock>, apart: bool| -> Vec<Message> {
                if apart {
                    blocks.into_iter().map(|block| message(role, vec![block])).collect()
                } else {
                    vec![message(role, blocks)]
                }
            };
            let mut calls =
                messages(Role::Assistant, ids.iter().map(call).collect(), shape & 1 == 1);
            let results = ids.iter().rev().map(result).collect();
            calls.extend(messages(Role::User, results, shape & 2 == 2));
            calls.extend((shape & 4 == 4).then(|| Message::assistant("It is done.")));
            calls
        })
    }

    /// A thread of a few messages.
    fn thread() -> impl Strategy<Value = Vec<Message>> {
        let piece = prop_oneof![
            3 => message().prop_map(|message| vec![message]),
            2 => round(),
            1 => Just(vec![Message::user("And now?")]),
        ];
        vec(piece, 0..6).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(4_000) })]

        #[test]
        fn a_thread_is_changed_exactly_if_it_has_violations(thread in thread()) {
            let (repaired, repairs) = repair_always(thread.clone());
            let is_same = repaired.len() == thread.len()
                && repaired.iter().zip(&thread).all(|((_, repaired), message)| repaired.ptr_eq(message));
            let is_legal = violations(&thread).is_empty();
            prop_assert_eq!((is_same, repairs.is_empty()), (is_legal, is_legal), "{:?}", repairs);
        }
    }
}
