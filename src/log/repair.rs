//! Repairs a message before it is appended to a thread.
//!
//! Models answer with nothing, with white space, or with one id for two calls, and users send empty
//! text. In the thread, such a message would make every later request illegal.

use std::slice;

use super::thread::Thread;
use crate::{
    compact::legality::{self, repair_numbered},
    message::{ContentBlock, Message, Role, Text},
};

impl Thread {
    /// Returns the message repaired for this thread; it has no blocks if nothing of it may be
    /// appended. A message that needs no repair is returned as the same handle. A session does this
    /// before each append; a host with a loop of its own does it with answers and results.
    ///
    /// ```
    /// use threadfold::{ContentBlock, Message, Role, Thread};
    ///
    /// let thread: Thread = [Message::user("hi")].into_iter().collect();
    /// let texts = [" ", "Hello!"].map(ContentBlock::text);
    /// let answer = Message::new(Role::Assistant, texts.into());
    /// // Providers refuse a blank text.
    /// assert_eq!(thread.repaired(answer), Message::assistant("Hello!"));
    /// ```
    #[must_use]
    pub fn repaired(&self, message: Message) -> Message {
        // Almost every message begins a run of its role and answers no call, so earlier messages do
        // not matter.
        let begins_turn = self.messages().last().is_none_or(|before| before.role != message.role);
        let answers = message.role != Role::Assistant && !self.open_calls().is_empty();
        let alone = slice::from_ref(&message);
        if begins_turn && !answers && legality::violations(alone).is_empty() {
            return message;
        }
        repaired_round(self.messages(), message)
    }
}

fn repaired_round(thread: &[Message], message: Message) -> Message {
    // An id may occur again later, so only the round at the end matters.
    let answer = thread.iter().rposition(|message| message.role == Role::Assistant);
    let before = thread.get(..answer.unwrap_or(0)).unwrap_or_default();
    let start = before.iter().rposition(|message| message.role != Role::Assistant);
    let start = start.map_or(0, |last| last + 1);
    // A provider may answer its own call several messages later.
    let start = earliest_answered(thread, &message).map_or(start, |call| call.min(start));
    let round = thread.get(start..).unwrap_or_default();
    let joined = [round, slice::from_ref(&message)].concat();
    if legality::violations(&joined).is_empty() {
        return message;
    }
    let (repaired_round, _) = repair_numbered(joined);
    let last = repaired_round.into_iter().next_back().filter(|(at, _)| *at == round.len());
    let role = message.role;
    last.map_or_else(|| Message::new(role, Vec::new()), |(_, message)| message)
}

/// Returns the earliest message with a call of the provider that this message answers.
fn earliest_answered(thread: &[Message], message: &Message) -> Option<usize> {
    let answers = message.content.iter().filter_map(|block| {
        if let ContentBlock::ServerToolResult(answer) = block { Some(answer) } else { None }
    });
    answers.filter_map(|answer| latest_call(thread, &answer.tool_use_id)).min()
}

/// Returns the last message in which the provider calls a tool of its own with this id.
fn latest_call(thread: &[Message], id: &Text) -> Option<usize> {
    thread.iter().rposition(|message| {
        let mut blocks = message.content.iter();
        blocks.any(|block| matches!(block, ContentBlock::ServerToolUse(call) if call.id == *id))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Json, ServerToolResult, ServerToolUse, Thinking, ToolResult, ToolUse};

    fn call(id: &str) -> ContentBlock {
        ToolUse::new(id, "read", Json::parse("{}").unwrap()).into()
    }

    fn result(id: &str) -> ContentBlock {
        ToolResult::text(id, "a line").into()
    }

    fn answer(content: Vec<ContentBlock>) -> Message {
        Message::new(Role::Assistant, content)
    }

    #[test]
    fn what_is_in_order_is_the_same_handle() {
        let thread = Thread::from_iter([
            Message::user("Read."),
            answer(vec![call("a")]),
            Message::new(Role::User, vec![result("a")]),
        ]);
        for message in [answer(vec![call("a")]), Message::assistant("So."), Message::user("Stop.")]
        {
            assert!(thread.repaired(message.clone()).ptr_eq(&message));
        }
    }

    #[test]
    fn what_may_not_stand_there_is_taken_out() {
        let thread = Thread::from_iter([Message::user("Read."), Message::assistant("Done.")]);
        let rows = [
            (answer(vec![ContentBlock::text(" "), call("a")]), answer(vec![call("a")])),
            (answer(vec![ContentBlock::text(" ")]), answer(Vec::new())),
            (answer(vec![result("a")]), answer(Vec::new())),
            (Message::user(""), Message::new(Role::User, Vec::new())),
            (Message::new(Role::User, vec![result("a")]), Message::new(Role::User, Vec::new())),
        ];
        for (message, expected) in rows {
            assert_eq!(thread.repaired(message), expected);
        }
    }

    #[test]
    fn two_calls_of_one_id_get_two() {
        let thread = Thread::from_iter([Message::user("Read.")]);
        let repaired_round = thread.repaired(answer(vec![call("a"), call("a")]));
        assert_eq!(repaired_round, answer(vec![call("a"), call("a-2")]));
    }

    #[test]
    fn an_id_may_come_again_in_a_later_round() {
        let results = || Message::new(Role::User, vec![result("a")]);
        let round = || [answer(vec![call("a")]), results()];
        let rounds = [[Message::user("Read.")].as_slice(), &round(), &round(), &round()].concat();
        let thread = Thread::from_iter(rounds[..6].iter().cloned());
        let message = results();
        assert!(thread.repaired(message.clone()).ptr_eq(&message));
    }

    #[test]
    fn calls_of_two_answers_in_a_row_are_answered_together() {
        let calls = ["a", "b"].map(|id| answer(vec![call(id)]));
        let thread = Thread::from_iter([Message::user("Read.")].into_iter().chain(calls));
        let message = Message::new(Role::User, vec![result("a"), result("b")]);
        assert!(thread.repaired(message.clone()).ptr_eq(&message));
    }

    #[test]
    fn a_look_at_the_message_alone_says_what_a_look_at_the_round_says() {
        let server = |id: &str| ServerToolResult::new(id, "x", Json::default()).into();
        let said = |text: &str| ContentBlock::text(text);
        let contents = [
            vec![],
            vec![said("Well.")],
            vec![said(" ")],
            vec![said("Well."), call("a")],
            vec![call("a"), call("b")],
            vec![call("a"), call("b"), call("a")],
            (0..9).map(|number| call(&number.to_string())).collect(),
            vec![result("a")],
            vec![result("a"), said("Well.")],
            vec![Thinking::new("Hm.", None).into()],
            vec![ServerToolUse::new("s", "x", Json::default()).into(), server("s")],
            vec![server("s")],
        ];
        let roles = [Role::User, Role::Assistant, Role::System];
        let message = |role| move |content: &Vec<_>| Message::new(role, content.clone());
        let all: Vec<_> =
            roles.into_iter().flat_map(|role| contents.iter().map(message(role))).collect();
        let threads = all.iter().flat_map(|first| all.iter().map(move |second| [first, second]));
        for before in threads.map(|two| two.map(Clone::clone)) {
            let before = legality::repair(before.to_vec()).0;
            let thread = Thread::from_iter(before.clone());
            for message in &all {
                let (looked, whole) =
                    (thread.repaired(message.clone()), repaired_round(&before, message.clone()));
                assert_eq!(looked, whole, "{before:?}");
            }
        }
    }

    #[test]
    fn what_a_provider_answers_in_a_later_turn_stays() {
        let call = ServerToolUse::new("s1", "search", Json::default());
        let round = [answer(vec![self::call("a")]), Message::new(Role::User, vec![result("a")])];
        let before = [[Message::user("Read.")].as_slice(), &round, &round].concat();
        let thread = Thread::from_iter(before.into_iter().chain([
            Message::assistant("I read it."),
            Message::user("Search."),
            answer(vec![call.into()]),
            Message::user("You may."),
            answer(vec![ContentBlock::text("I search.")]),
            Message::user("Go on."),
        ]));
        let found = ServerToolResult::new("s1", "found", Json::default());
        let message = answer(vec![found.into(), ContentBlock::text("Found.")]);
        assert!(thread.repaired(message.clone()).ptr_eq(&message));
    }
}
