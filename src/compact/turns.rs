//! Turns: neighbours of one role, as providers count them.

use std::{
    collections::HashMap,
    iter::{Enumerate, Peekable, Skip},
    ptr, slice,
};

use super::position::Position;
use crate::message::{ContentBlock, Message, Role, Sketch, Text};

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
    /// The calls that the provider answers itself.
    pub(super) server_uses: Vec<Mention<'a>>,
    /// The provider's answers to its own calls.
    pub(super) server_results: Vec<Mention<'a>>,
    pub(super) has_reasoning: bool,
}

/// What the handles of the messages know of a turn.
#[derive(Clone, Copy, Debug)]
pub(super) struct TurnSketch {
    /// Its first message.
    pub(super) start: usize,
    /// The message after its last.
    pub(super) end: usize,
    role: Role,
    /// How many of its messages call tools of the host.
    pub(super) callers: usize,
    /// The calls in it, as one number.
    pub(super) calls: u64,
    /// The calls that it answers, as one number.
    pub(super) results: u64,
    /// The message after its last that answers a call.
    pub(super) answered: Option<usize>,
    pub(super) has_server_calls: bool,
    pub(super) has_reasoning: bool,
    /// Whether no rule is broken within any of its messages.
    pub(super) is_plain: bool,
}

/// Walks the turns of a thread without a look at the messages.
pub(super) fn sketches(messages: &[Message]) -> impl Iterator<Item = TurnSketch> {
    let mut messages = messages.iter().map(Message::sketch).enumerate().peekable();
    std::iter::from_fn(move || {
        let (start, first) = messages.next()?;
        let role = first.role();
        let mut turn = TurnSketch::new(start, role);
        turn.add(first);
        while let Some((_, more)) = messages.next_if(|(_, known)| known.role() == role) {
            turn.add(more);
        }
        Some(turn)
    })
}

impl TurnSketch {
    fn new(start: usize, role: Role) -> Self {
        Self {
            start,
            end: start,
            role,
            callers: 0,
            calls: 0,
            results: 0,
            answered: None,
            has_server_calls: false,
            has_reasoning: false,
            is_plain: true,
        }
    }

    /// Takes up a message at the end of the turn.
    fn add(&mut self, message: Sketch) {
        self.end += 1;
        if message.has_calls() {
            self.callers += 1;
            self.calls = self.calls.wrapping_add(message.calls());
        }
        if message.has_results() {
            self.answered = Some(self.end);
            self.results = self.results.wrapping_add(message.calls());
        }
        self.has_server_calls |= message.has_server_calls();
        self.has_reasoning |= self.role == Role::Assistant && message.has_reasoning();
        self.is_plain &= message.is_plain();
    }
}

/// A place in the thread that names a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mention<'a> {
    pub(super) at: Position,
    /// The id of the call.
    pub(super) id: &'a Text,
}

/// The mentions of one turn, by id. A turn has a handful of them, so a map is made only where there
/// are many.
pub(super) enum ById<'t> {
    Few(&'t [Mention<'t>]),
    Many(HashMap<&'t Text, Mention<'t>>),
}

impl<'t> ById<'t> {
    pub(super) fn new(mentions: &'t [Mention<'t>]) -> Self {
        const FEW: usize = 8;
        if mentions.len() <= FEW {
            return Self::Few(mentions);
        }
        // Backwards, so that the first mention of an id is the one that stays in the map.
        Self::Many(mentions.iter().rev().map(|mention| (mention.id, *mention)).collect())
    }

    /// The first mention of this id.
    pub(super) fn first(&self, id: &Text) -> Option<Mention<'t>> {
        match self {
            // What a mention is asked about is often its own id, which is not looked at then.
            Self::Few(mentions) => {
                let is_it = |mention: &&Mention<'t>| ptr::eq(mention.id, id) || mention.id == id;
                mentions.iter().find(is_it).copied()
            }
            Self::Many(mentions) => mentions.get(id).copied(),
        }
    }
}

/// The turns of a thread, each with the one behind it. Calls and results count only in the role that
/// may send them.
#[derive(Debug)]
pub(super) struct Turns<'a> {
    messages: Peekable<Skip<Enumerate<slice::Iter<'a, Message>>>>,
    turn: Option<Turn<'a>>,
    next: Option<Turn<'a>>,
}

impl<'a> Turns<'a> {
    /// The turns of the whole thread.
    pub(super) fn of(messages: &'a [Message]) -> Self {
        Self::from(messages, 0)
    }

    /// The turn before that of a message, and all that follow: those whose calls and results an edit
    /// from this message on can divide.
    pub(super) fn around(messages: &'a [Message], message: usize) -> Self {
        let start = turn_start(messages, message.min(messages.len()));
        Self::from(messages, turn_start(messages, start))
    }

    fn from(messages: &'a [Message], start: usize) -> Self {
        Self {
            messages: messages.iter().enumerate().skip(start).peekable(),
            turn: None,
            next: None,
        }
    }

    /// Goes on to the next turn: that turn, and the one behind it. First comes nothing with the first
    /// turn behind it, and at the end the last turn with nothing behind it.
    pub(super) fn step(&mut self) -> Option<(Option<&Turn<'a>>, Option<&Turn<'a>>)> {
        // The turn that is done with gives its vectors to the one that comes.
        let done = std::mem::replace(&mut self.turn, self.next.take());
        self.next = self.messages.next().map(|(index, message)| {
            let mut turn = Turn::begin(done, index, message);
            let role = turn.role;
            while let Some((index, message)) =
                self.messages.next_if(|(_, message)| message.speaker() == role)
            {
                turn.add(index, message);
            }
            turn
        });
        let is_over = self.turn.is_none() && self.next.is_none();
        (!is_over).then_some((self.turn.as_ref(), self.next.as_ref()))
    }
}

/// Returns the start of the turn that holds the message before `end`.
fn turn_start(messages: &[Message], end: usize) -> usize {
    let before = messages.get(..end).unwrap_or_default();
    let Some(last) = before.last() else { return 0 };
    let role = last.speaker();
    end - before.iter().rev().take_while(|message| message.speaker() == role).count()
}

impl<'a> Turn<'a> {
    /// The turn that begins with this message, in the vectors of one that is done with.
    fn begin(done: Option<Self>, index: usize, message: &'a Message) -> Self {
        let vectors = done.map_or_else(Default::default, |done| {
            [done.uses, done.results, done.server_uses, done.server_results]
        });
        let [uses, results, server_uses, server_results] = vectors.map(|mut mentions| {
            mentions.clear();
            mentions
        });
        let (start, end, role) = (index, index, message.role);
        let has_reasoning = false;
        let mut turn =
            Self { start, end, role, uses, results, server_uses, server_results, has_reasoning };
        turn.add(index, message);
        turn
    }

    /// Takes up a message at the end of the turn.
    fn add(&mut self, index: usize, message: &'a Message) {
        self.end = index + 1;
        for (number, block) in message.content.iter().enumerate() {
            let mention = |id| Mention { at: Position { message: index, block: number }, id };
            match block {
                _ if !message.role.may_send(block) => {}
                ContentBlock::ToolUse(call) => self.uses.push(mention(&call.id)),
                ContentBlock::ToolResult(result) => {
                    self.results.push(mention(&result.tool_use_id));
                }
                ContentBlock::ServerToolUse(call) => self.server_uses.push(mention(&call.id)),
                ContentBlock::ServerToolResult(result) => {
                    self.server_results.push(mention(&result.tool_use_id));
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::compact::drawn;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(4_000) })]

        #[test]
        fn the_handles_know_of_a_turn_what_a_look_at_it_finds(thread in drawn::thread()) {
            let mut sketches = sketches(&thread);
            let mut turns = Turns::of(&thread);
            while let Some((_, turn)) = turns.step() {
                let (Some(turn), Some(known)) = (turn, sketches.next()) else { continue };
                prop_assert_eq!((known.start, known.end, known.role), (turn.start, turn.end, turn.role));
                let mut callers: Vec<_> = turn.uses.iter().map(|call| call.at.message).collect();
                callers.dedup();
                prop_assert_eq!(known.callers, callers.len());
                prop_assert_eq!(known.answered, turn.results.last().map(|last| last.at.message + 1));
                prop_assert_eq!(known.has_server_calls, !turn.server_uses.is_empty());
                prop_assert_eq!(known.has_reasoning, turn.has_reasoning);
            }
            prop_assert!(sketches.next().is_none());
        }
    }

    #[test]
    fn the_turns_around_a_message_are_the_one_before_its_turn_and_all_that_follow() {
        let roles = "uuaauau".chars();
        let role = |letter| if letter == 'u' { Role::User } else { Role::Assistant };
        let said = |letter| Message::new(role(letter), vec![ContentBlock::text("So.")]);
        let thread: Vec<Message> = roles.map(said).collect();
        let starts = |message| -> Vec<usize> {
            let mut turns = Turns::around(&thread, message);
            let mut starts = Vec::new();
            while let Some((_, next)) = turns.step() {
                starts.extend(next.map(|turn| turn.start));
            }
            starts
        };
        assert_eq!([0, 1, 2].map(starts), [[0, 2, 4, 5, 6]; 3]);
        assert_eq!(starts(4), [0, 2, 4, 5, 6]);
        assert_eq!(starts(5), [2, 4, 5, 6]);
        assert_eq!([6, 7, 9].map(starts), [vec![4, 5, 6], vec![5, 6], vec![5, 6]]);
    }
}
