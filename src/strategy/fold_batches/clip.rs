//! Shortens messages to a token limit: long texts lose their middle, with a note in its place.

use crate::{
    message::{ContentBlock, Message, Text},
    strategy::clip::clip,
    tokens::TokenCounter,
};

/// Messages are not clipped below this many tokens; if that is not enough, messages are omitted.
const MIN: u64 = 64;

/// Returns the messages with at most `most` tokens together. The longest lose their middle first;
/// if there are too many messages for that, those in the middle are omitted. A note gives what was
/// omitted.
pub(super) fn fit(messages: &[Message], most: u64, counter: &dyn TokenCounter) -> Vec<Message> {
    if counter.messages(messages) <= most {
        return messages.to_vec();
    }
    let sizes: Vec<u64> = messages.iter().map(|message| counter.message(message)).collect();
    let share = share(sizes, most);
    if share >= MIN {
        return messages.iter().map(|message| clip_message(message, share, counter)).collect();
    }
    // Reserves `MIN` tokens for the note between the ends.
    let ends = most.saturating_sub(MIN) / MIN / 2;
    let ends = usize::try_from(ends).unwrap_or(usize::MAX).max(1);
    let omitted = messages.len().saturating_sub(2 * ends);
    let head = messages.iter().take(ends);
    let note = format!("[... {omitted} messages omitted ...]");
    let tail = messages.iter().skip(messages.len().saturating_sub(ends).max(ends));
    let mut clipped: Vec<Message> =
        head.chain(tail).map(|message| clip_message(message, MIN, counter)).collect();
    clipped.insert(ends.min(clipped.len()), Message::user(note));
    clipped
}

/// Returns the limit for each message: messages below it leave the rest to the longer ones.
fn share(mut sizes: Vec<u64>, most: u64) -> u64 {
    sizes.sort_unstable();
    let mut left = most;
    let count = sizes.len() as u64;
    for (index, size) in sizes.into_iter().enumerate() {
        let share = left / count.saturating_sub(index as u64).max(1);
        if size > share {
            return share;
        }
        left -= size;
    }
    left
}

fn clip_message(message: &Message, most: u64, counter: &dyn TokenCounter) -> Message {
    let size = counter.message(message);
    if size <= most {
        return message.clone();
    }
    let text = message.texts().map(Text::as_str).collect::<Vec<_>>().join("\n\n");
    let framing = counter.message(&Message::new(message.role, Vec::new()));
    let text = clip(&text, most.saturating_sub(framing), counter);
    Message::new(message.role, vec![ContentBlock::text(text)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Role, tokens::ByteEstimate};

    const COUNTER: ByteEstimate = ByteEstimate::CHUNK;

    #[test]
    fn the_longest_message_is_shortened() {
        let messages = [Message::user("a".repeat(400)), Message::assistant("b".repeat(4_000))];
        let fitted = fit(&messages, 500, &COUNTER);
        assert_eq!(fitted[0], messages[0]);
        assert_eq!(fitted[1].role, Role::Assistant);
        assert!(COUNTER.messages(&fitted) <= 500);
        assert!(COUNTER.messages(&fitted) > 450);
    }

    #[test]
    fn the_ends_of_too_many_messages_stay() {
        let messages: Vec<Message> = (0..1_000)
            .map(|number| Message::user(format!("{number} {}", "x".repeat(200))))
            .collect();
        let fitted = fit(&messages, 1_000, &COUNTER);
        assert!(COUNTER.messages(&fitted) <= 1_000);
        assert_eq!(fitted.len(), 15);
        assert_eq!(fitted[0], messages[0]);
        assert_eq!(fitted[7], Message::user("[... 986 messages omitted ...]"));
        assert_eq!(fitted[14], messages[999]);
    }
}
