//! One long thread like those of coding agents, for benchmarks.
//!
//! Sizes follow a bell curve over powers of two, computed with integers only, so every platform
//! generates the same thread. Texts are slices of one buffer of words, so generating a hundred
//! megabytes costs little more than a copy.

use std::collections::HashSet;

use rand::{Rng, SeedableRng, rngs::Xoshiro256PlusPlus};
use threadfold::message::{
    CheckpointId, CheckpointIds, ContentBlock, Message, Role, Text, Thinking, ToolResult, ToolUse,
    Usage,
};

use super::blocks::json;

/// Returns a legal thread of this many messages; the same seed gives the same thread. A message has
/// about 1,000 bytes; by bytes, about 62 % are tool results, 15 % reasoning, 13 % plain text and 10
/// % reminders. About every twentieth message is typed by the user, every user message ends with a
/// checkpoint, and one word in a hundred is not ASCII. The last call may be open.
///
/// ```
/// use threadfold::legality;
/// use threadfold_testing::generate;
///
/// let thread = generate::legal_thread_from(7, 1_000);
/// assert_eq!(thread.len(), 1_000);
/// assert_eq!(legality::violations(&thread), []);
/// assert_eq!(thread, generate::legal_thread_from(7, 1_000));
/// ```
#[must_use]
pub fn legal_thread_from(seed: u64, messages: usize) -> Vec<Message> {
    let mut writer = Writer::new(seed);
    let mut thread: Vec<Message> = Vec::with_capacity(messages);
    // Calls that the next message answers.
    let mut open: Vec<Text> = Vec::new();
    let mut rounds = 0;
    while thread.len() < messages {
        let calls = std::mem::take(&mut open);
        let is_user_next = thread.last().is_none_or(|last| last.role == Role::Assistant);
        let message = if !calls.is_empty() {
            writer.results(calls)
        } else if is_user_next {
            rounds = 6 + writer.below(8);
            writer.question()
        } else {
            let calls = if rounds == 0 { 0 } else { 1 + writer.below(8) / 7 };
            rounds = rounds.saturating_sub(1);
            writer.answer(calls, &mut open)
        };
        thread.push(message);
    }
    thread
}

struct Writer {
    random: Xoshiro256PlusPlus,
    ids: CheckpointIds,
    used: HashSet<CheckpointId>,
    words: String,
    /// Number of calls so far, which numbers their ids.
    calls: usize,
}

#[rustfmt::skip]
const WORDS: [&str; 16] = [
    "the", "parser", "reads", "src/main.rs", "let mut next = 0;\n", "error:", "and", "returns",
    "a result", "of", "tests", "passed;", "fn build(&self)", "in", "line 42\n", "which",
];
const OTHERS: [&str; 4] = ["naïve", "漢字", "🦀", "größer"];
/// Size in bytes of the buffer of which texts are slices.
const BUFFER: usize = 1 << 18;

impl Writer {
    fn new(seed: u64) -> Self {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut words = String::with_capacity(BUFFER + 32);
        while words.len() < BUFFER {
            let number = below(&mut random, 1_600);
            let word = OTHERS.get(number / 4).or_else(|| WORDS.get(number % 16));
            words.push_str(word.copied().unwrap_or_default());
            words.push(' ');
        }
        let ids = CheckpointIds::new(seed);
        Self { random, ids, used: HashSet::new(), words, calls: 0 }
    }

    fn question(&mut self) -> Message {
        let text = ContentBlock::text(self.text(12));
        let content = vec![text, ContentBlock::reminder(self.text(4))];
        self.stamped(content)
    }

    fn answer(&mut self, calls: usize, open: &mut Vec<Text>) -> Message {
        let mut content: Vec<ContentBlock> = Vec::with_capacity(calls + 2);
        if self.below(2) == 0 {
            content.push(Thinking::new(self.text(16), Some("c2lnbmF0dXJl".into())).into());
        }
        if calls == 0 || self.below(2) == 0 {
            content.push(ContentBlock::text(self.text(10)));
        }
        for _ in 0..calls {
            self.calls += 1;
            let id = Text::from(format!("call_{}", self.calls));
            let input = json(r#"{"path":"src/main.rs","limit":200}"#);
            content.push(ToolUse::new(id.clone(), "read_file", input).into());
            open.push(id);
        }
        let mut message = Message::new(Role::Assistant, content);
        message.make_mut().usage = Some(Usage::new(300 * self.calls as u64, 120));
        message
    }

    fn results(&mut self, calls: Vec<Text>) -> Message {
        let count = calls.len();
        let mut content: Vec<ContentBlock> = Vec::with_capacity(count + 2);
        for id in calls {
            let text = self.text(32);
            let failed = self.below(12) == 0;
            let result =
                if failed { ToolResult::error(id, text) } else { ToolResult::text(id, text) };
            content.push(result.into());
        }
        if self.below(2) == 0 {
            content.push(ContentBlock::reminder(self.text(11)));
        }
        self.stamped(content)
    }

    fn stamped(&mut self, mut content: Vec<ContentBlock>) -> Message {
        let id = self.ids.draw(|id| self.used.contains(&id));
        self.used.insert(id);
        content.push(ContentBlock::checkpoint(id));
        Message::new(Role::User, content)
    }

    /// A text of 38 times `unit` bytes on average. Half of the texts have 12 to 48 times `unit`.
    fn text(&mut self, unit: usize) -> Text {
        let bits = self.random.next_u64();
        let power = (bits & 0xff).count_ones();
        let length = (unit << power) + (unit << power) * below(&mut self.random, 64) / 64;
        let last = self.words.len().saturating_sub(length);
        let start = below(&mut self.random, last);
        let start = self.border_before(start);
        let end = self.border_before(start.saturating_add(length));
        // A slice may be white space only, and a blank text is illegal.
        self.words.get(start..end).filter(|text| !text.trim().is_empty()).unwrap_or("x").into()
    }

    /// The last character border of the words at or before an offset.
    fn border_before(&self, offset: usize) -> usize {
        let mut borders = (0..=offset.min(self.words.len())).rev();
        borders.find(|border| self.words.is_char_boundary(*border)).unwrap_or_default()
    }

    fn below(&mut self, end: usize) -> usize {
        below(&mut self.random, end)
    }
}

/// A number below `end`, or zero.
fn below(random: &mut Xoshiro256PlusPlus, end: usize) -> usize {
    let number = random.next_u64() >> 16;
    usize::try_from(number % (end.max(1) as u64)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use threadfold::{legality, tokens};

    #[test]
    fn the_sizes_are_those_of_coding_threads() {
        let thread = legal_thread_from(1, 4_000);
        assert_eq!(legality::violations(&thread), []);
        let bytes = |selects: fn(&ContentBlock) -> bool| {
            let blocks = thread.iter().flat_map(|message| &message.content);
            let selected = blocks.filter(|block| selects(block)).cloned();
            tokens::text_bytes(
                &selected.map(|b| Message::new(Role::User, vec![b])).collect::<Vec<_>>(),
            )
        };
        let all = tokens::text_bytes(&thread);
        let share = |selects| bytes(selects) * 100 / all;
        assert!((800..1_300).contains(&(all / 4_000)), "{} bytes a message", all / 4_000);
        let shares = [
            share(|block| matches!(block, ContentBlock::ToolResult(_))),
            share(ContentBlock::is_reasoning),
            share(|block| matches!(block, ContentBlock::Text(_))),
            share(|block| matches!(block, ContentBlock::SystemReminder(_))),
        ];
        for (share, expected) in shares.into_iter().zip([62, 15, 13, 10]) {
            assert!(share.abs_diff(expected) <= 4, "{shares:?}");
        }
    }
}
