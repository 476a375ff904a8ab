//! Hindsight: what an agent needed after a compaction, read from a thread that went on.
//!
//! A stored thread is cut at some point. What the agent used after the cut and had from before it
//! is what a compaction at that point should have kept. [`Hindsight::of`] finds the cut and what
//! was needed; [`Hindsight::missing`] compares a compacted past with it. No model is asked.
//!
//! *Needed* are the [names](names()) in the agent's later answers and calls that occur before the
//! cut and that neither the system prompt nor the first message that a user typed contains, since
//! every compaction keeps these. A name that a later message shows before the agent uses it does
//! not count: the agent has read it again.

mod names;

use std::collections::HashSet;

use serde_json::Value;

pub use names::names;

use crate::{
    compact::legality,
    message::{ContentBlock, Message, Request, Role, Text},
};

/// Threads with fewer messages have too little before and after a cut.
const MIN_MESSAGES: usize = 24;

/// The least number of needed names that says something.
const MIN_NEEDED: usize = 5;

/// What an agent needed after a cut.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Hindsight {
    /// The number of messages up to the first one that a user typed, with it.
    pub head: usize,
    /// The number of messages before the cut.
    pub cut: usize,
    /// The bytes of text of the messages between head and cut.
    pub bytes: usize,
    /// The names that the agent used after the cut and had from before it, in the order of their
    /// first use.
    pub needed: Vec<Text>,
}

impl Hindsight {
    /// Cuts a thread where this share of its text has passed, before an answer of the agent, with
    /// every call answered, and finds what the agent needed afterwards. `None` if the thread is too
    /// short, has no such cut, or fewer than five names were needed.
    ///
    /// ```
    /// use threadfold::{Message, Request, hindsight::Hindsight};
    ///
    /// let mut thread = vec![Message::user("Mend the parser.")];
    /// for step in 0..20 {
    ///     thread.push(Message::user(format!("See src/part{step}/mod.rs and test_part_{step}.")));
    ///     thread.push(Message::assistant("I see."));
    /// }
    /// thread.push(Message::user("Go on."));
    /// let used = "Now src/part1/mod.rs, src/part2/mod.rs, test_part_1, test_part_2, test_part_3.";
    /// thread.push(Message::assistant(used.repeat(10)));
    /// thread.extend([Message::user("And?"), Message::assistant("Done."), Message::user("Good.")]);
    /// let found = Hindsight::of(&Request::new(thread.clone()), 0.5).expect("five names are used");
    /// assert_eq!((found.head, found.needed.len()), (1, 5));
    /// let missing = found.missing(&thread[9..found.cut]);
    /// assert_eq!(missing, ["src/part1/mod.rs", "src/part2/mod.rs", "test_part_1", "test_part_2", "test_part_3"]);
    /// ```
    #[must_use]
    pub fn of(request: &Request, part: f64) -> Option<Self> {
        let messages = &request.messages;
        if messages.len() < MIN_MESSAGES {
            return None;
        }
        let texts: Vec<String> = messages.iter().map(text).collect();
        let head = messages.iter().position(Message::is_typed)? + 1;
        let cut = cut(messages, &texts, head, part)?;
        let (before, after) = (texts.get(head..cut)?, texts.get(cut..)?);
        let system: Vec<String> = request.system.iter().map(text).collect();
        let known: HashSet<&str> =
            system.iter().chain(texts.get(..head)?).flat_map(|text| names(text)).collect();
        let past: HashSet<&str> = before.iter().flat_map(|text| names(text)).collect();
        let (mut seen, mut needed) = (known, Vec::new());
        for (message, text) in messages.get(cut..)?.iter().zip(after) {
            for name in names(text) {
                let is_first = seen.insert(name);
                if is_first && message.role == Role::Assistant && past.contains(name) {
                    needed.push(name.into());
                }
            }
        }
        let bytes = before.iter().map(String::len).sum();
        (needed.len() >= MIN_NEEDED).then_some(Self { head, cut, bytes, needed })
    }

    /// The needed names that these messages do not contain.
    #[must_use]
    pub fn missing(&self, compacted: &[Message]) -> Vec<&str> {
        let texts: Vec<String> = compacted.iter().map(text).collect();
        let kept: HashSet<&str> = texts.iter().flat_map(|text| names(text)).collect();
        self.needed.iter().map(Text::as_str).filter(|name| !kept.contains(name)).collect()
    }

    /// The position of the first of the newest messages before the cut that have together at most
    /// this share of the text: what is left if everything before them is dropped.
    #[must_use]
    pub fn newest(&self, messages: &[Message], share: f64) -> usize {
        let mut left = self.bytes as f64 * share;
        let mut first = self.cut;
        while let Some(message) = first.checked_sub(1).and_then(|index| messages.get(index)) {
            left -= bytes(message) as f64;
            if left < 0.0 || first <= self.head {
                break;
            }
            first -= 1;
        }
        first
    }
}

/// Returns the first cut after this share of the text that has enough messages on both sides.
fn cut(messages: &[Message], texts: &[String], head: usize, part: f64) -> Option<usize> {
    let total: usize = texts.iter().skip(head).map(String::len).sum();
    let (mut passed, mut cut) = (0_usize, head);
    while let Some(text) = texts.get(cut).filter(|_| (passed as f64) < total as f64 * part) {
        passed += text.len();
        cut += 1;
    }
    let points = legality::cut_points(messages);
    let is_legal = |cut: &usize| {
        points.binary_search(cut).is_ok()
            && messages.get(*cut).is_some_and(|message| message.role == Role::Assistant)
    };
    let cut = (cut..messages.len()).find(is_legal)?;
    (cut >= head + 8 && cut + 4 <= messages.len()).then_some(cut)
}

/// The bytes of the texts of a message, as [`Hindsight::bytes`] counts them.
#[must_use]
pub fn bytes(message: &Message) -> usize {
    text(message).len()
}

/// All texts of a message, joined by line breaks: contents, inputs of calls, results; no ids.
fn text(message: &Message) -> String {
    let mut all = String::new();
    for block in &message.content {
        add_block(block, &mut all);
    }
    all
}

fn add_block(block: &ContentBlock, all: &mut String) {
    match block {
        ContentBlock::Text(block) | ContentBlock::SystemReminder(block) => add(&block.text, all),
        ContentBlock::Thinking(block) => add(&block.text, all),
        ContentBlock::ContextUpdate(block) => add(&block.text, all),
        ContentBlock::Summary(block) => add(&block.text, all),
        ContentBlock::ToolUse(call) => add(call.input.as_str(), all),
        ContentBlock::ToolResult(result) => {
            for block in &result.content {
                add_block(block, all);
            }
        }
        ContentBlock::ServerToolUse(call) => add(call.input.as_str(), all),
        ContentBlock::Image(_)
        | ContentBlock::Document(_)
        | ContentBlock::RedactedThinking(_)
        | ContentBlock::ServerToolResult(_)
        | ContentBlock::Checkpoint(_)
        | ContentBlock::Opaque(_) => {}
    }
}

/// Adds a text; one that is JSON by the texts in it. Encoded data has no names.
fn add(text: &str, all: &mut String) {
    const LONG: usize = 400;
    if text.len() > LONG && !text.chars().take(LONG).any(char::is_whitespace) && !is_json(text) {
        return;
    }
    match is_json(text).then(|| serde_json::from_str::<Value>(text)) {
        Some(Ok(value)) => add_value(&value, all),
        Some(Err(_)) | None => {
            if !all.is_empty() {
                all.push('\n');
            }
            all.push_str(text);
        }
    }
}

fn is_json(text: &str) -> bool {
    text.starts_with(['{', '['])
}

fn add_value(value: &Value, all: &mut String) {
    const NO_TEXT: [&str; 10] = [
        "id",
        "call_id",
        "tool_call_id",
        "tool_use_id",
        "signature",
        "encrypted_content",
        "data",
        "role",
        "type",
        "name",
    ];
    match value {
        Value::String(text) => add(text, all),
        Value::Array(items) => items.iter().for_each(|item| add_value(item, all)),
        Value::Object(fields) => {
            let texts = fields.iter().filter(|(key, _)| !NO_TEXT.contains(&key.as_str()));
            texts.for_each(|(_, value)| add_value(value, all));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_texts_of_a_message_are_those_in_its_json_too() {
        let result =
            crate::message::ToolResult::text("t1", r#"{"id":"x_1","lines":["a_b",["c_d"]]}"#);
        assert_eq!(text(&Message::new(Role::User, vec![result.into()])), "a_b\nc_d");
        let encoded = Message::user("A".repeat(500));
        assert_eq!(text(&encoded), "");
    }

    #[test]
    fn a_name_that_a_later_message_shows_first_is_not_needed() {
        let mut thread = vec![Message::user("Go.")];
        for step in 0..20 {
            thread.push(Message::user(format!("It is in item_{step}.")));
            thread.push(Message::assistant("I see it."));
        }
        thread.push(Message::user("Look: item_1 and item_2."));
        let used = (1..8).map(|step| format!("item_{step} ")).collect::<String>();
        thread.push(Message::assistant(used.repeat(5)));
        thread.extend(["So?", "And?", "Well?"].map(Message::user));
        thread.push(Message::assistant("Done."));
        let found = Hindsight::of(&Request::new(thread), 0.4).unwrap();
        assert_eq!(found.needed, ["item_3", "item_4", "item_5", "item_6", "item_7"]);
    }
}
