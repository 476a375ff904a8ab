//! Runs: adjacent messages of one role, which providers treat as one message.

use std::{borrow::Cow, collections::HashMap};

use super::position::Position;
use crate::message::{ContentBlock, Message, Role, Text};

/// A run of messages of one role, with the tool calls and results in it that this role may send.
#[derive(Debug)]
pub(super) struct RoleRun<'a> {
    /// The index of the first message.
    pub(super) start: usize,
    /// The index of the message after the last.
    pub(super) end: usize,
    pub(super) role: Role,
    /// The tool calls that the host answers.
    pub(super) uses: Vec<Mention<'a>>,
    /// The results of such calls.
    pub(super) results: Vec<Mention<'a>>,
    /// The provider's own calls and their results, in order.
    pub(super) servers: Vec<ServerMention<'a>>,
    pub(super) has_reasoning: bool,
}

/// The position and id of a tool call or tool result.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mention<'a> {
    pub(super) at: Position,
    /// The id of the call.
    pub(super) id: &'a Text,
}

/// One of the provider's own calls, or the result of one.
#[derive(Clone, Copy, Debug)]
pub(super) enum ServerMention<'a> {
    Call(Mention<'a>),
    Answer(Mention<'a>),
}

impl<'a> ServerMention<'a> {
    pub(super) fn call(&self) -> Option<&Mention<'a>> {
        if let Self::Call(call) = self { Some(call) } else { None }
    }

    pub(super) fn answer(&self) -> Option<&Mention<'a>> {
        if let Self::Answer(answer) = self { Some(answer) } else { None }
    }
}

/// Returns the runs of a thread, in order.
pub(super) fn role_runs(messages: &[Message]) -> impl Iterator<Item = RoleRun<'_>> {
    let mut messages = messages.iter().enumerate().peekable();
    std::iter::from_fn(move || {
        let (start, first) = messages.next()?;
        let mut run = RoleRun::new(start, first.role);
        run.add(first);
        while let Some((_, more)) = messages.next_if(|(_, message)| message.role == run.role) {
            run.add(more);
        }
        Some(run)
    })
}

impl<'a> RoleRun<'a> {
    fn new(start: usize, role: Role) -> Self {
        let (uses, results, servers) = (Vec::new(), Vec::new(), Vec::new());
        Self { start, end: start, role, uses, results, servers, has_reasoning: false }
    }

    /// Appends a message to the run.
    fn add(&mut self, message: &'a Message) {
        for (block, content) in message.content.iter().enumerate() {
            let at = Position { message: self.end, block };
            match content {
                _ if !message.role.may_send(content) => {}
                ContentBlock::ToolUse(call) => self.uses.push(Mention { at, id: &call.id }),
                ContentBlock::ToolResult(result) => {
                    self.results.push(Mention { at, id: &result.tool_use_id });
                }
                ContentBlock::ServerToolUse(call) => {
                    self.servers.push(ServerMention::Call(Mention { at, id: &call.id }));
                }
                ContentBlock::ServerToolResult(result) => {
                    let answer = Mention { at, id: &result.tool_use_id };
                    self.servers.push(ServerMention::Answer(answer));
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
        self.end += 1;
    }
}

/// The mentions of one run, sorted by id. They are copied only if they are not sorted already.
pub(super) struct ById<'t>(Cow<'t, [Mention<'t>]>);

impl<'t> ById<'t> {
    pub(super) fn new(mentions: &'t [Mention<'t>]) -> Self {
        let mut mentions = Cow::Borrowed(mentions);
        if !mentions.is_sorted_by_key(|mention| (mention.id, mention.at)) {
            mentions.to_mut().sort_by_key(|mention| (mention.id, mention.at));
        }
        Self(mentions)
    }

    /// Returns the first mention with this id.
    pub(super) fn first(&self, id: &Text) -> Option<Mention<'t>> {
        let first = self.0.partition_point(|mention| mention.id < id);
        self.0.get(first).filter(|mention| mention.id == id).copied()
    }
}

/// The provider's own calls, collected run by run.
///
/// Their results may come several runs later: a call may wait for an approval, or run a program
/// that calls tools of the host. So each result belongs to the latest call with its id before it.
#[derive(Default)]
pub(super) struct ServerCalls<'a>(HashMap<&'a Text, Mention<'a>>);

impl<'a> ServerCalls<'a> {
    /// Returns every result in the next run, in order, with its call; `None` if the call is
    /// missing.
    pub(super) fn answers(
        &mut self,
        run: &RoleRun<'a>,
    ) -> impl Iterator<Item = (Option<Mention<'a>>, Mention<'a>)> {
        run.servers.iter().filter_map(|mention| match mention {
            ServerMention::Call(call) => {
                self.0.insert(call.id, *call);
                None
            }
            ServerMention::Answer(answer) => Some((self.0.get(answer.id).copied(), *answer)),
        })
    }
}
