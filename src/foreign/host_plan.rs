//! A plan in the terms of a host: ranges that stay, and messages to make.

use std::ops::Range;

use super::{
    new_message::{NewMessage, NewPart, NewResult, ResultPart},
    shadow::words_of,
};
use crate::{
    compact::{CompactError, Insert, Plan, Splice},
    message::{ContentBlock, Message, Text, ToolResult},
};

/// An edit of a host's thread: which messages stay, and which are new, in the order of the result.
/// It is made for one thread, and names its messages by index.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct HostPlan {
    before: usize,
    pieces: Vec<Piece>,
}

/// A piece of the thread after a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// These messages stay, as the same values. Ranges ascend and share no message.
    Keep(Range<usize>),
    /// A message that the host makes.
    New(NewMessage),
}

impl HostPlan {
    /// Returns a plan for these shadows in the terms of their host.
    ///
    /// ```
    /// use threadfold::foreign::{HostPlan, Piece, shadows};
    /// use threadfold::{Plan, Role};
    ///
    /// let thread = ["one", "two", "three"].map(|text| (Role::Assistant, text.to_owned()));
    /// let shadows = shadows(&thread);
    /// let plan = Plan::summarise(&shadows, 0..2, "One and two.")?;
    /// let plan = HostPlan::new(&plan, &shadows)?;
    /// assert_eq!(plan.pieces()[1], Piece::Keep(2..3));
    /// # Ok::<(), threadfold::compact::CompactError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`CompactError`] if the plan was made for other messages.
    pub fn new(plan: &Plan, shadows: &[Message]) -> Result<Self, CompactError> {
        plan.check(shadows)?;
        let mut host = Self { before: shadows.len(), pieces: Vec::new() };
        let mut next = 0;
        for splice in plan.splices() {
            host.keep(next..splice.at.start);
            host.insert(splice, shadows);
            next = splice.at.end;
        }
        host.keep(next..shadows.len());
        Ok(host)
    }

    /// The pieces of the thread after the plan, in order.
    #[must_use]
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// The number of messages that the plan was made for.
    #[must_use]
    pub fn messages_before(&self) -> usize {
        self.before
    }

    /// The number of messages after the plan.
    #[must_use]
    pub fn messages_after(&self) -> usize {
        let length = |piece: &Piece| match piece {
            Piece::Keep(range) => range.len(),
            Piece::New(_) => 1,
        };
        self.pieces.iter().map(length).sum()
    }

    /// The index of the first message that does not stay as it is, or that is new. Reasoning from
    /// there on is bound to messages that the plan changed; a provider may refuse or ignore it.
    #[must_use]
    pub fn first_touched(&self) -> usize {
        match self.pieces.first() {
            Some(Piece::Keep(range)) if range.start == 0 => range.end,
            _ => 0,
        }
    }

    fn keep(&mut self, range: Range<usize>) {
        if range.is_empty() {
            return;
        }
        match self.pieces.last_mut() {
            Some(Piece::Keep(last)) if last.end == range.start => last.end = range.end,
            _ => self.pieces.push(Piece::Keep(range)),
        }
    }

    fn insert(&mut self, splice: &Splice, shadows: &[Message]) {
        // Messages before this one may not stay any more, because ranges ascend.
        let mut next = splice.at.start;
        for insert in &splice.insert {
            match insert {
                Insert::Part { message, blocks } => {
                    let Some(shadow) = shadows.get(*message) else { continue };
                    if blocks.len() == shadow.content.len() && next <= *message {
                        self.keep(*message..message + 1);
                        next = message + 1;
                        continue;
                    }
                    let part = |block: &u32| kept(*message, *block as usize, shadow);
                    self.pieces.push(Piece::New(NewMessage {
                        role: shadow.role,
                        author: shadow.author.clone(),
                        of: Some(*message),
                        parts: blocks.iter().filter_map(part).collect(),
                    }));
                }
                Insert::Message { message } => {
                    let old = Old { shadows, at: splice.at.clone() };
                    match old.equal(message, next) {
                        Some(index) => {
                            self.keep(index..index + 1);
                            next = index + 1;
                        }
                        None => self.pieces.push(Piece::New(old.described(message))),
                    }
                }
            }
        }
    }
}

/// The messages that a splice replaces.
struct Old<'s> {
    shadows: &'s [Message],
    at: Range<usize>,
}

impl Old<'_> {
    /// The first message from `next` on that has the same author and parts.
    fn equal(&self, message: &Message, next: usize) -> Option<usize> {
        let mut old = self.messages().filter(|(index, _)| next <= *index);
        let found = old.find(|(_, old)| {
            (old.role, &old.author) == (message.role, &message.author)
                && old.content == message.content
        });
        found.map(|(index, _)| index)
    }

    fn described(&self, message: &Message) -> NewMessage {
        let of = self.source(message);
        let parts = message.content.iter().enumerate().filter_map(|(index, block)| {
            let kept = self.kept(of, index, block);
            kept.or_else(|| self.changed(of, block))
                .or_else(|| words_of(message.role, block).map(NewPart::Text))
        });
        NewMessage {
            role: message.role,
            author: message.author.clone(),
            of,
            parts: parts.collect(),
        }
    }

    /// The old message of which a message is a new form: it has a call or a result of the same id.
    fn source(&self, message: &Message) -> Option<usize> {
        if message.is_summary() {
            return None;
        }
        let is_source = |old: &Message| {
            let results = message.tool_results().map(|result| &result.tool_use_id);
            let mut calls = message.tool_uses().map(|call| &call.id);
            calls.any(|id| old.tool_uses().any(|call| call.id == *id)) || { results }
                .any(|id| old.tool_results().any(|one| one.tool_use_id == *id))
        };
        let by_id = self.messages().find(|(_, old)| is_source(old)).map(|(index, _)| index);
        // A message that replaces one message alone is a new form of it.
        let alone = (self.at.len() == 1).then_some(self.at.start);
        by_id
            .or(alone
                .filter(|at| self.shadows.get(*at).is_some_and(|old| old.role == message.role)))
    }

    /// The old part that equals a block: of the same message and place, if there is one.
    fn kept(&self, of: Option<usize>, index: usize, block: &ContentBlock) -> Option<NewPart> {
        let own = of.and_then(|of| Some((of, self.shadows.get(of)?)));
        let here = own.filter(|(_, old)| old.content.get(index) == Some(block));
        if let Some((message, old)) = here {
            return kept(message, index, old);
        }
        own.into_iter().chain(self.messages()).find_map(|(message, old)| {
            let part = old.content.iter().position(|old| old == block)?;
            kept(message, part, old)
        })
    }

    /// A call or a result that has another content now.
    fn changed(&self, of: Option<usize>, block: &ContentBlock) -> Option<NewPart> {
        if let ContentBlock::ToolUse(call) = block {
            return Some(NewPart::Call(call.clone()));
        }
        let ContentBlock::ToolResult(result) = block else { return None };
        self.shortened(of?, result).map(NewPart::Result)
    }

    fn shortened(&self, of: usize, result: &ToolResult) -> Option<NewResult> {
        let blocks = self.shadows.get(of)?.content.iter().enumerate();
        let mut results = blocks.filter_map(|(part, block)| {
            if let ContentBlock::ToolResult(old) = block { Some((part, old)) } else { None }
        });
        let (part, old) = results.find(|(_, old)| old.tool_use_id == result.tool_use_id)?;
        let content = result.content.iter().filter_map(|block| {
            let at = old.content.iter().position(|old| old == block);
            let text = block.as_text().cloned();
            match at {
                Some(part) => Some(ResultPart::Kept { part, text }),
                None => text.map(ResultPart::Text),
            }
        });
        Some(NewResult {
            id: result.tool_use_id.clone(),
            message: of,
            part,
            content: content.collect(),
            is_error: result.is_error,
        })
    }

    fn messages(&self) -> impl Iterator<Item = (usize, &Message)> {
        let end = self.at.end;
        self.shadows.iter().enumerate().take(end).skip(self.at.start)
    }
}

fn kept(message: usize, part: usize, shadow: &Message) -> Option<NewPart> {
    let text: Option<Text> = shadow.content.get(part)?.as_text().cloned();
    Some(NewPart::Kept { message, part, text })
}
