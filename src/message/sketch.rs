//! What the handle of a message knows of its parts.
//!
//! The messages of a long thread lie far apart in memory, and a walk that asks each for something
//! small waits for each. What walks over whole threads ask most often is noted in the handles, which
//! lie side by side: whose message it is, what kinds of blocks it has, how large it is, and which
//! calls it names.

use std::{
    hash::{BuildHasher, RandomState},
    sync::LazyLock,
};

use super::{
    checkpoint::CheckpointId,
    content::ContentBlock,
    measure,
    parts::{MessageParts, Role},
    text::Text,
};

/// What is known of a message without a look at its parts. Twenty-three bytes, so that a handle with
/// all of them has thirty-two.
#[derive(Clone, Copy)]
pub(crate) struct Sketch {
    /// The calls that the message makes or answers: the sum of their fingerprints.
    pub(super) calls: u64,
    pub(super) bytes: u32,
    pub(super) tokens: u32,
    /// The checkpoint that the message ends with, where it has no other.
    pub(super) stamp: u32,
    pub(super) marks: u16,
    /// How many blocks a message with such a checkpoint has.
    pub(super) blocks: u8,
}

const KNOWN: u16 = 1;
const USER: u16 = 1 << 1;
const ASSISTANT: u16 = 1 << 2;
const CALLS: u16 = 1 << 3;
const RESULTS: u16 = 1 << 4;
const SERVER_CALLS: u16 = 1 << 5;
const REASONING: u16 = 1 << 6;
const REASONS_FIRST: u16 = 1 << 7;
const CHECKPOINTS: u16 = 1 << 8;
const REPORT: u16 = 1 << 9;
const TYPED: u16 = 1 << 10;
const PLAIN: u16 = 1 << 11;
const REMINDERS: u16 = 1 << 12;
const STAMPED: u16 = 1 << 13;
const SERVER_RESULTS: u16 = 1 << 14;

/// How many calls or results are compared with each other. Of a message with more nothing is said.
const FEW: usize = 8;

impl Sketch {
    /// The marks of a message that may have been changed since: nothing of it is known.
    pub(super) const STALE: u16 = 0;

    pub(super) fn of(parts: &MessageParts) -> Self {
        let MessageParts { role, content, usage, .. } = parts;
        let mark = |mark: u16, holds: bool| if holds { mark } else { 0 };
        let mut marks = KNOWN
            | mark(USER, *role == Role::User)
            | mark(ASSISTANT, *role == Role::Assistant)
            | mark(REPORT, usage.is_some())
            | mark(REASONS_FIRST, content.first().is_some_and(ContentBlock::is_reasoning))
            | mark(TYPED, parts.typed_blocks().next().is_some());
        for block in content {
            marks |= mark(REASONING, block.is_reasoning())
                | mark(CHECKPOINTS, matches!(block, ContentBlock::Checkpoint(_)))
                | mark(REMINDERS, matches!(block, ContentBlock::SystemReminder(_)));
            if role.may_send(block) {
                marks |= mark(CALLS, matches!(block, ContentBlock::ToolUse(_)))
                    | mark(RESULTS, matches!(block, ContentBlock::ToolResult(_)))
                    | mark(SERVER_CALLS, matches!(block, ContentBlock::ServerToolUse(_)))
                    | mark(SERVER_RESULTS, matches!(block, ContentBlock::ServerToolResult(_)));
            }
        }
        let stamp = stamp(content);
        marks |= mark(STAMPED, stamp.is_some());
        let (stamp, blocks) = stamp.unwrap_or_default();
        let calls = plain_calls(parts);
        marks |= mark(PLAIN, calls.is_some());
        // What is larger than four gigabytes is counted each time.
        let figure = |figure: u64| u32::try_from(figure).unwrap_or(u32::MAX);
        Self {
            calls: calls.unwrap_or_default(),
            bytes: figure(measure::bytes(content)),
            tokens: figure(measure::tokens(content)),
            stamp,
            blocks,
            marks,
        }
    }

    // Walks ask each of these of every handle of a thread.
    #[inline]
    fn has(self, mark: u16) -> bool {
        self.marks & mark != 0
    }

    /// Whether it is one at all.
    #[inline]
    pub(super) fn is_known(self) -> bool {
        self.has(KNOWN)
    }

    #[inline]
    pub(crate) fn role(self) -> Role {
        match (self.has(USER), self.has(ASSISTANT)) {
            (true, _) => Role::User,
            (false, true) => Role::Assistant,
            (false, false) => Role::System,
        }
    }

    /// Whether the assistant calls tools of the host in it.
    #[inline]
    pub(crate) fn has_calls(self) -> bool {
        self.has(CALLS)
    }

    /// Whether the user answers calls in it.
    #[inline]
    pub(crate) fn has_results(self) -> bool {
        self.has(RESULTS)
    }

    /// Whether the assistant calls tools in it that the provider answers.
    #[inline]
    pub(crate) fn has_server_calls(self) -> bool {
        self.has(SERVER_CALLS)
    }

    /// Whether it holds a provider's answers to calls of its own.
    #[inline]
    pub(crate) fn has_server_results(self) -> bool {
        self.has(SERVER_RESULTS)
    }

    /// Whether somebody reasons in it, whoever may.
    #[inline]
    pub(crate) fn has_reasoning(self) -> bool {
        self.has(REASONING)
    }

    /// Whether its first block is reasoning.
    #[inline]
    pub(crate) fn begins_with_reasoning(self) -> bool {
        self.has(REASONS_FIRST)
    }

    /// Whether the host reminds the model of something in it.
    #[inline]
    pub(crate) fn has_reminders(self) -> bool {
        self.has(REMINDERS)
    }

    #[inline]
    pub(super) fn has_checkpoints(self) -> bool {
        self.has(CHECKPOINTS)
    }

    /// The checkpoint that the message ends with, and how many blocks it has, where it has no other
    /// checkpoint.
    #[inline]
    pub(super) fn stamp(self) -> Option<(CheckpointId, usize)> {
        self.has(STAMPED).then(|| (CheckpointId::unpacked(self.stamp), usize::from(self.blocks)))
    }

    /// Whether it says what the call cost.
    #[inline]
    pub(crate) fn has_usage(self) -> bool {
        self.has(REPORT)
    }

    /// Whether a person typed something in it.
    #[inline]
    pub(crate) fn is_typed(self) -> bool {
        self.has(TYPED)
    }

    /// Whether no rule is broken within it: it has blocks, all of its role and none of them blank,
    /// and no call or result comes twice. `false` says nothing: so it is where there are many of
    /// them, and where a provider answers its own calls.
    #[inline]
    pub(crate) fn is_plain(self) -> bool {
        self.has(PLAIN)
    }

    /// The calls that a plain message makes or answers, as one number: that of other calls is
    /// another one, but for one chance in 2^64. Nobody can look for such calls, for the key is drawn
    /// anew by every process.
    #[inline]
    pub(crate) fn calls(self) -> u64 {
        self.calls
    }

    /// The bytes of its text, unless they are too many to be noted.
    #[inline]
    pub(crate) fn bytes(self) -> Option<u64> {
        (self.bytes < u32::MAX).then(|| u64::from(self.bytes))
    }

    /// Its tokens at [`measure::BYTES_PER_TOKEN`], unless they are too many to be noted.
    #[inline]
    pub(super) fn tokens(self) -> Option<u64> {
        (self.tokens < u32::MAX).then(|| u64::from(self.tokens))
    }
}

/// Returns the checkpoint that blocks end with and their number, if there is no other checkpoint and
/// both can be noted.
fn stamp(blocks: &[ContentBlock]) -> Option<(u32, u8)> {
    let (ContentBlock::Checkpoint(last), before) = blocks.split_last()? else { return None };
    let is_checkpoint = |block: &ContentBlock| matches!(block, ContentBlock::Checkpoint(_));
    let count = u8::try_from(blocks.len()).ok()?;
    (!before.iter().any(is_checkpoint)).then(|| (last.id.packed(), count))
}

/// Returns the sum of the fingerprints of the calls that a message makes or answers, if it is plain.
fn plain_calls(parts: &MessageParts) -> Option<u64> {
    let (mut ids, mut count) = ([None::<&Text>; FEW], 0);
    for block in &parts.content {
        if block.is_blank() || !parts.role.may_send(block) {
            return None;
        }
        let id = match block {
            ContentBlock::ToolUse(call) => &call.id,
            ContentBlock::ToolResult(result) => &result.tool_use_id,
            ContentBlock::ServerToolResult(_) => return None,
            ContentBlock::Text(_)
            | ContentBlock::Image(_)
            | ContentBlock::Document(_)
            | ContentBlock::Thinking(_)
            | ContentBlock::RedactedThinking(_)
            | ContentBlock::ServerToolUse(_)
            | ContentBlock::SystemReminder(_)
            | ContentBlock::ContextUpdate(_)
            | ContentBlock::Checkpoint(_)
            | ContentBlock::Summary(_)
            | ContentBlock::Opaque(_) => continue,
        };
        if ids.iter().flatten().any(|other| *other == id) {
            return None;
        }
        *ids.get_mut(count)? = Some(id);
        count += 1;
    }
    let sum = |sum: u64, id: &Text| sum.wrapping_add(fingerprint(id));
    (!parts.content.is_empty()).then(|| ids.into_iter().flatten().fold(0, sum))
}

fn fingerprint(id: &Text) -> u64 {
    // As the hash maps of the standard library draw theirs; no result depends on it.
    static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    KEY.hash_one(id.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Json, Message, ServerToolResult, ServerToolUse, ToolResult, ToolUse};

    fn call(id: &str) -> ContentBlock {
        ToolUse::new(id, "read", Json::default()).into()
    }

    fn result(id: &str) -> ContentBlock {
        ToolResult::text(id, "done").into()
    }

    fn calls(role: Role, content: Vec<ContentBlock>) -> Option<u64> {
        let known = Message::new(role, content).sketch();
        known.is_plain().then(|| known.calls())
    }

    #[test]
    fn a_handle_has_thirty_two_bytes() {
        assert_eq!(size_of::<Message>(), 32);
    }

    #[test]
    fn calls_and_their_results_are_one_number_in_whatever_order() {
        let called = calls(Role::Assistant, vec![call("a"), ContentBlock::text("So."), call("b")]);
        assert_eq!(called, calls(Role::User, vec![result("b"), result("a")]));
        assert_ne!(called, calls(Role::User, vec![result("a")]));
        assert_ne!(called, calls(Role::User, vec![result("a"), result("c")]));
        assert_eq!(calls(Role::User, vec![ContentBlock::text("So?")]), Some(0));
    }

    #[test]
    fn a_message_that_breaks_a_rule_or_may_is_not_plain() {
        let search = || ServerToolUse::new("s", "search", Json::default()).into();
        let found = || ServerToolResult::new("s", "found", Json::default()).into();
        let many = |count: usize| (0..count).map(|at| call(&at.to_string())).collect();
        for (role, content, expected) in [
            (Role::Assistant, vec![], false),
            (Role::Assistant, vec![ContentBlock::text(" ")], false),
            (Role::Assistant, vec![result("a")], false),
            (Role::User, vec![call("a")], false),
            (Role::User, vec![result("a"), result("a")], false),
            (Role::Assistant, vec![call("a"), call("b"), call("a")], false),
            (Role::Assistant, vec![search()], true),
            (Role::Assistant, vec![search(), found()], false),
            (Role::Assistant, many(FEW), true),
            (Role::Assistant, many(FEW + 1), false),
        ] {
            assert_eq!(calls(role, content.clone()).is_some(), expected, "{role} {content:?}");
        }
    }

    #[test]
    fn what_is_too_much_to_be_noted_is_counted() {
        let most = Sketch { bytes: u32::MAX, tokens: u32::MAX, ..Message::user("hi").sketch() };
        assert_eq!((most.bytes(), most.tokens()), (None, None));
        let less = Sketch { bytes: u32::MAX - 1, tokens: 0, ..most };
        assert_eq!((less.bytes(), less.tokens()), (Some(u64::from(u32::MAX) - 1), Some(0)));
    }

    #[test]
    fn checkpoints_are_found_wherever_they_stand() {
        let marker = |id: &str| ContentBlock::checkpoint(id.parse().unwrap());
        let text = || ContentBlock::text("So?");
        let found = |content: Vec<ContentBlock>| {
            let message = Message::new(Role::User, content);
            let found = message.checkpoints().map(|(id, end)| (id.to_string(), end));
            (message.sketch().stamp().is_some(), found.collect::<Vec<_>>())
        };
        let at = |id: &str, end| (id.to_owned(), end);
        assert_eq!(found(vec![text()]), (false, vec![]));
        assert_eq!(found(vec![text(), marker("a1b2c3")]), (true, vec![at("a1b2c3", 2)]));
        assert_eq!(found(vec![marker("a1b2c3"), text()]), (false, vec![at("a1b2c3", 1)]));
        let two = vec![marker("aaaaaa"), text(), marker("bbbbbb")];
        assert_eq!(found(two), (false, vec![at("aaaaaa", 1), at("bbbbbb", 3)]));
        for (texts, noted) in [(254, true), (255, false)] {
            let mut long = vec![text(); texts];
            long.push(marker("999999"));
            assert_eq!(found(long), (noted, vec![at("999999", texts + 1)]));
        }
    }

    #[test]
    fn what_was_changed_is_looked_at_again() {
        let mut message = Message::user("hi");
        message.make_mut().content.push(ContentBlock::text("hello"));
        let seen = |message: &Message| (message.text_bytes(), message.estimated_tokens());
        assert_eq!(seen(&message), (7, 4 + 1 + 2));
        assert!(!message.is_settled());
        message.settle();
        assert_eq!((seen(&message), message.is_settled()), ((7, 4 + 1 + 2), true));
        message.change(|parts| parts.role = Role::Assistant);
        assert_eq!((message.speaker(), message.is_settled()), (Role::Assistant, true));
        message.make_mut().role = Role::System;
        assert_eq!((message.speaker(), message.sketch().is_typed()), (Role::System, false));
    }
}
