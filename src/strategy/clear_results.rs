//! `clear-results`: replaces old tool results with a short line, as the context edits of Anthropic's
//! Messages API do.
//!
//! A cleared result is named by the number of its message, because some providers use the ids of
//! calls again in each turn. A snapshot holds these numbers only if the log holds the whole
//! conversation, so no line names what cannot be recalled.

use std::collections::{HashMap, HashSet};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::{
    ask::Ask, contract::CompactionStrategy, error::Result, proposal::Proposal, snapshot::Snapshot,
    tail::nothing, view::View,
};
use crate::{
    compact::{Insert, Plan, Splice, legality},
    message::{ContentBlock, Message, Role, Text, ToolInput, ToolResult, ToolUse},
};

/// Results with fewer tokens stay, because replacing them with a line would save too little.
const MIN_TOKENS: u64 = 60;

options! {
    /// Replaces old tool results with a line of under 30 tokens. By default it changes nothing
    /// else. Calls no model.
    ///
    /// The line states how the model can read the result again if the tool
    /// [`recall`](crate::recall::tool) is offered to it. Results that the model has not seen yet
    /// stay, and so does the message that the user typed last.
    ///
    /// [`trim`](crate::compact::trim()) shortens every long result, as far as the target demands.
    /// This strategy clears whole results, chosen by age and use. So it makes one large edit
    /// instead of many small ones, each of which would invalidate the provider's prompt cache.
    ///
    /// ```
    /// use threadfold::{Message, Role, strategy::*};
    /// use threadfold::message::{Json, ToolResult, ToolUse};
    ///
    /// let mut thread = vec![Message::user("What is in the files?")];
    /// for id in ["t1", "t2", "t3"] {
    ///     let input = Json::parse(&format!(r#"{{"path":"{id}.rs"}}"#))?;
    ///     let call = ToolUse::new(id, "read", input);
    ///     thread.push(Message::new(Role::Assistant, vec![call.into()]));
    ///     let content = "let lamp = Lamp::new();\n".repeat(40);
    ///     thread.push(Message::new(Role::User, vec![ToolResult::text(id, content).into()]));
    /// }
    /// thread.push(Message::assistant("Lamps."));
    /// let view = View::new(Snapshot::new(thread), Brief::default());
    /// let strategy = ClearResults { keep: 1, ..ClearResults::default() };
    /// let proposal = without_model(&strategy, &view)?;
    /// assert_eq!(proposal.plan.new_messages().count(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct ClearResults {
        /// The number of newest calls whose results stay, obsolete ones not counted.
        pub keep: usize = 3,
        /// The tools whose results stay.
        pub exclude_tools: Vec<Text> = Vec::new(),
        /// Whether the results of failed calls stay.
        pub keep_errors: bool = true,
        /// Whether to clear a result of any age that a later successful call made obsolete: an
        /// identical call, or one with the same [`Tool::subject`](crate::model::Tool::subject).
        pub obsolete: bool = true,
        /// Whether the inputs of the calls are cleared with their results.
        pub inputs: bool = false,
        /// The number of newest turns with reasoning whose reasoning stays; `None` keeps all. The
        /// reasoning of an open tool loop always stays.
        pub keep_reasoning: Option<usize> = None,
        /// The minimum number of tokens to save. If fewer would be saved, nothing is changed.
        pub at_least: u64 = 0,
        /// Threads with fewer tokens are not changed.
        pub from_tokens: u64 = 0,
    }
}

#[async_trait]
impl CompactionStrategy for ClearResults {
    fn name(&self) -> &str {
        "clear-results"
    }

    async fn propose(&self, view: &View, _: &mut Ask<'_>) -> Result<Proposal> {
        Ok(self.plan(&view.thread)?.into())
    }
}

/// A call with its result, each with the position of its message and block.
struct Answered<'a> {
    call: &'a ToolUse,
    call_at: (usize, usize),
    result: &'a ToolResult,
    result_at: (usize, usize),
}

/// The blocks of the thread that change, by message and block; `None` for a block to remove.
type Changes = HashMap<(usize, usize), Option<ContentBlock>>;

impl ClearResults {
    fn plan(&self, thread: &Snapshot) -> Result<Plan> {
        let messages = thread.messages();
        let before = thread.counter().messages(messages);
        if before < self.from_tokens {
            return nothing(format!("{before} tokens are too few to clear results"));
        }
        let calls = answered_calls(messages);
        let mut changes = self.cleared(thread, &calls);
        changes.extend(self.reasoning(messages));
        let plan = plan_of(messages, changes);
        let saved = before.saturating_sub(thread.tokens_after(&plan)?);
        if plan.is_empty() || saved < self.at_least {
            let (of, keep) = (calls.len(), self.keep);
            return nothing(format!(
                "clearing all but the last {keep} of {of} tool results saves {saved} tokens, and \
                 at least {} must be saved",
                self.at_least.max(1)
            ));
        }
        Ok(plan)
    }

    /// The results to clear, with the inputs of their calls.
    fn cleared(&self, thread: &Snapshot, calls: &[Answered<'_>]) -> Changes {
        let messages = thread.messages();
        let last_typed = messages.iter().rposition(Message::is_typed);
        let (mut newer, mut kept) = (Newer::default(), 0);
        let mut changes = Changes::new();
        for it in calls.iter().rev() {
            let is_obsolete = newer.replace(thread, it) && self.obsolete;
            let is_recent = !is_obsolete && kept < self.keep;
            kept += usize::from(!is_obsolete);
            let stays = is_recent
                || it.result_at.0 >= thread.unread_from()
                || Some(it.result_at.0) == last_typed
                || self.exclude_tools.contains(&it.call.name)
                || (it.result.is_error && self.keep_errors && !is_obsolete);
            let block = ContentBlock::ToolResult(it.result.clone());
            if stays || thread.counter().block(&block) < MIN_TOKENS {
                continue;
            }
            let recall = thread.recall_of(it.result_at.0);
            changes.insert(it.result_at, Some(line_in_place_of(thread, it.result, recall)));
            if self.inputs {
                let call = ToolUse { input: ToolInput::from_text("{}"), ..it.call.clone() };
                changes.insert(it.call_at, Some(ContentBlock::ToolUse(call)));
            }
        }
        changes
    }

    /// The reasoning of old turns. A message that holds only reasoning is not changed.
    fn reasoning(&self, messages: &[Message]) -> Changes {
        let mut changes = Changes::new();
        let Some(keep) = self.keep_reasoning else { return changes };
        let open = legality::open_loop(messages).unwrap_or(messages.len());
        let (mut turns, mut is_new_turn) = (0, true);
        for (index, message) in messages.iter().enumerate().rev() {
            is_new_turn |= message.is_typed();
            if message.role != Role::Assistant || !message.has_reasoning() {
                continue;
            }
            turns += usize::from(std::mem::take(&mut is_new_turn));
            let has_more = message.content.iter().any(|block| !block.is_reasoning());
            if turns > keep && index < open && has_more {
                let blocks = message.content.iter().enumerate();
                let reasoning = blocks.filter(|(_, block)| block.is_reasoning());
                changes.extend(reasoning.map(|(block, _)| ((index, block), None)));
            }
        }
        changes
    }
}

/// The successful calls that are newer than the current one, and their subjects.
#[derive(Default)]
struct Newer<'a> {
    calls: HashSet<(&'a Text, &'a str)>,
    subjects: HashSet<&'a Text>,
}

impl<'a> Newer<'a> {
    /// Returns whether a newer call makes this one obsolete, and adds this one to the newer calls
    /// unless it failed.
    fn replace(&mut self, thread: &'a Snapshot, it: &Answered<'a>) -> bool {
        let subject = thread.subject(it.call_at.0, it.call_at.1);
        let call = (&it.call.name, it.call.input.as_str());
        let is_replaced = self.calls.contains(&call)
            || subject.is_some_and(|subject| self.subjects.contains(subject));
        if !it.result.is_error {
            self.calls.insert(call);
            self.subjects.extend(subject);
        }
        is_replaced
    }
}

/// Returns the result with a line in place of its content. The line says how to read it again, unless it
/// is then long enough to be cleared itself.
fn line_in_place_of(
    thread: &Snapshot,
    result: &ToolResult,
    recall: Option<String>,
) -> ContentBlock {
    let with = |line: String| {
        let content = vec![ContentBlock::text(line)];
        ContentBlock::ToolResult(ToolResult { content, ..result.clone() })
    };
    let line = recall.map(|recall| format!("[Cleared. To read it again, {recall}]"));
    let line = line.map(with).filter(|it| thread.counter().block(it) < MIN_TOKENS);
    line.unwrap_or_else(|| with("[This old result was cleared.]".to_owned()))
}

/// Returns the calls that have a result, in the order of their results. A result belongs to the
/// newest call with its id that has none yet.
fn answered_calls(messages: &[Message]) -> Vec<Answered<'_>> {
    let mut open: HashMap<&Text, (&ToolUse, (usize, usize))> = HashMap::new();
    let mut answered = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        for (block, content) in message.content.iter().enumerate() {
            if let ContentBlock::ToolUse(call) = content {
                open.insert(&call.id, (call, (index, block)));
            } else if let ContentBlock::ToolResult(result) = content
                && let Some((call, call_at)) = open.remove(&result.tool_use_id)
            {
                answered.push(Answered { call, call_at, result, result_at: (index, block) });
            }
        }
    }
    answered
}

fn plan_of(messages: &[Message], mut changes: Changes) -> Plan {
    let mut changed: Vec<usize> = changes.keys().map(|(message, _)| *message).collect();
    changed.sort_unstable();
    changed.dedup();
    let splices = changed.into_iter().filter_map(|index| {
        let message = messages.get(index)?;
        let blocks = message.content.iter().enumerate();
        let content = blocks.filter_map(|(block, content)| {
            changes.remove(&(index, block)).unwrap_or_else(|| Some(content.clone()))
        });
        let message = message.with_content(content.collect());
        Some(Splice { at: index..index + 1, insert: vec![Insert::Message { message }] })
    });
    let splices = splices.collect();
    Plan::from_splices(messages.len(), splices).with_reasoning_marked(messages)
}
