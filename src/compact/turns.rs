//! Turns: neighbours of one role, as providers count them.

use std::collections::HashSet;

use super::position::Position;
use crate::message::{ContentBlock, Message, Role, Text};

/// A run of messages of one role, with the calls and results in it.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    /// Its first message.
    pub(super) start: usize,
    /// The message after its last.
    pub(super) end: usize,
    pub(super) role: Role,
    /// The calls that the host answers.
    pub(super) uses: Vec<Mention<'a>>,
    /// The results.
    pub(super) results: Vec<Mention<'a>>,
    /// Results of the provider's own calls that do not stand before them in this turn.
    pub(super) orphan_server_results: Vec<Mention<'a>>,
    pub(super) has_server_tools: bool,
    pub(super) has_reasoning: bool,
}

/// A place in the thread that names a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mention<'a> {
    pub(super) at: Position,
    /// The id of the call.
    pub(super) id: &'a Text,
}

/// Returns the turns of a thread, in order. Calls and results count only in the role that may send
/// them.
pub(super) fn turns(messages: &[Message]) -> Vec<Turn<'_>> {
    let mut turns: Vec<Turn<'_>> = Vec::new();
    let mut server_calls = HashSet::new();
    for (index, message) in messages.iter().enumerate() {
        if turns.last().is_none_or(|turn| turn.role != message.role) {
            server_calls.clear();
            turns.push(Turn::new(index, message.role));
        }
        if let Some(turn) = turns.last_mut() {
            turn.end = index + 1;
            turn.add(index, message, &mut server_calls);
        }
    }
    turns
}

impl<'a> Turn<'a> {
    fn new(start: usize, role: Role) -> Self {
        Self {
            start,
            end: start,
            role,
            uses: Vec::new(),
            results: Vec::new(),
            orphan_server_results: Vec::new(),
            has_server_tools: false,
            has_reasoning: false,
        }
    }

    fn add(&mut self, index: usize, message: &'a Message, server_calls: &mut HashSet<&'a Text>) {
        for (number, block) in message.content.iter().enumerate() {
            let mention = |id| Mention { at: Position { message: index, block: number }, id };
            match block {
                _ if !may_send(message.role, block) => {}
                ContentBlock::ToolUse(call) => self.uses.push(mention(&call.id)),
                ContentBlock::ToolResult(result) => {
                    self.results.push(mention(&result.tool_use_id));
                }
                ContentBlock::ServerToolUse(call) => {
                    self.has_server_tools = true;
                    server_calls.insert(&call.id);
                }
                ContentBlock::ServerToolResult(result) => {
                    self.has_server_tools = true;
                    if !server_calls.contains(&result.tool_use_id) {
                        self.orphan_server_results.push(mention(&result.tool_use_id));
                    }
                }
                ContentBlock::Thinking(_) | ContentBlock::RedactedThinking(_) => {
                    self.has_reasoning = true;
                }
                ContentBlock::Text(_)
                | ContentBlock::Image(_)
                | ContentBlock::Document(_)
                | ContentBlock::SystemReminder(_)
                | ContentBlock::ContextUpdate(_)
                | ContentBlock::Checkpoint(_)
                | ContentBlock::Summary(_)
                | ContentBlock::Opaque(_) => {}
            }
        }
    }
}

/// Whether a role may send a block of this kind.
pub(super) fn may_send(role: Role, block: &ContentBlock) -> bool {
    match block {
        ContentBlock::ToolUse(_)
        | ContentBlock::Thinking(_)
        | ContentBlock::RedactedThinking(_)
        | ContentBlock::ServerToolUse(_)
        | ContentBlock::ServerToolResult(_) => role == Role::Assistant,
        ContentBlock::ToolResult(_) => role == Role::User,
        ContentBlock::Text(_)
        | ContentBlock::Image(_)
        | ContentBlock::Document(_)
        | ContentBlock::SystemReminder(_)
        | ContentBlock::ContextUpdate(_)
        | ContentBlock::Checkpoint(_)
        | ContentBlock::Summary(_)
        | ContentBlock::Opaque(_) => true,
    }
}

/// Whether a block is text of nothing but white space.
pub(super) fn is_blank(block: &ContentBlock) -> bool {
    match block {
        ContentBlock::Text(block) => block.text.is_blank(),
        ContentBlock::Summary(block) => block.text.is_blank(),
        ContentBlock::SystemReminder(block) => block.text.is_blank(),
        ContentBlock::Image(_)
        | ContentBlock::Document(_)
        | ContentBlock::Thinking(_)
        | ContentBlock::RedactedThinking(_)
        | ContentBlock::ToolUse(_)
        | ContentBlock::ToolResult(_)
        | ContentBlock::ServerToolUse(_)
        | ContentBlock::ServerToolResult(_)
        | ContentBlock::ContextUpdate(_)
        | ContentBlock::Checkpoint(_)
        | ContentBlock::Opaque(_) => false,
    }
}
