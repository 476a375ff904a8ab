//! The requests to the summarising model. If messages are too long for a request, the middle of
//! long texts is replaced with a note.

use std::{sync::Arc, time::Duration};

use super::{
    chunks::{MIN_TOKENS, Piece},
    options::Rolling,
};
use crate::{
    ledger::Quotes,
    message::{ContentBlock, Message, Request, Text},
    strategy::{
        clip::{clip, level},
        error::Result,
        instructions::{VALUES, asides, fill, sections, tagged},
        run_error::RunError,
        view::View,
    },
    tokens::TokenCounter,
};

const SYSTEM: &str = include_str!("../prompts/fold_system.md");
const SO_FAR: &str = include_str!("../prompts/fold_so_far.md");
const DIRECTIVE: &str = include_str!("../prompts/fold.md");
/// The built-in sections: what an account of a stretch preserves.
const SECTIONS: &str = include_str!("../prompts/fold_sections.md");
const NEXT: &str = "When all stretches are done the user will ask this; do not answer it now:";

/// Upper limit for the text of the earlier summaries, as a multiple of the limit for one batch.
const SO_FAR_BATCHES: u64 = 8;

/// Writes requests that fit the window.
#[derive(Debug)]
pub(super) struct RequestWriter {
    pub(super) options: Rolling,
    directive: Message,
    /// Upper limit for the tokens of the summary so far.
    so_far: u64,
    /// Upper limit for the tokens of a piece, if the window is known.
    pub(super) room: Option<u64>,
}

impl RequestWriter {
    /// Returns the writer for one compaction.
    ///
    /// # Errors
    ///
    /// [`RunError::NoRoom`] if a chunk would not fit the window.
    pub(super) fn new(options: Rolling, task: &View) -> Result<Self, RunError> {
        let counter = task.thread.counter();
        let values = [("sections", &*sections(&options.sections, SECTIONS)), ("values", VALUES)];
        let directive = fill(DIRECTIVE, &values) + "\n\n" + Quotes::ASK + &asides(task, "", NEXT);
        let directive = Message::user(directive);
        let so_far = options.summary_tokens.saturating_mul(SO_FAR_BATCHES);
        let mut writer = Self { options, directive, so_far, room: None };
        let Some(window) = task.thread.window() else { return Ok(writer) };
        let window = window.tokens();
        // Pass one character as the summary so far, so that the text around it is counted too.
        let empty = writer.request(&["."], &Piece::default(), counter);
        let fixed = counter.request(&empty).saturating_add(writer.options.summary_tokens);
        // A tenth stays free, because counts are estimates.
        let free = (window - window / 10).saturating_sub(fixed);
        writer.so_far = writer.so_far.min(free / 3);
        let room = free.saturating_sub(writer.so_far);
        if room < MIN_TOKENS {
            return Err(RunError::NoRoom { window, fixed });
        }
        writer.room = Some(room);
        Ok(writer)
    }

    /// Returns the request to summarise a piece. `so_far` are the summaries of everything before.
    pub(super) fn request(
        &self,
        so_far: &[&str],
        piece: &Piece,
        counter: &dyn TokenCounter,
    ) -> Request {
        let prompt = self.options.prompt.clone().unwrap_or_else(|| SYSTEM.trim_end().into());
        let mut system = vec![Message::system(prompt)];
        if let Some(so_far) = self.options.so_far(so_far, self.so_far, counter) {
            let framed = tagged("summary-so-far", &so_far);
            system.push(Message::system(format!("{}\n\n{framed}", SO_FAR.trim_end())));
        }
        let most = [piece.most, self.room].into_iter().flatten().min().unwrap_or(u64::MAX);
        let mut messages = fit(&piece.messages(), most, counter);
        messages.push(self.directive.clone());
        // No temperature: newer models refuse sampling parameters.
        Request {
            system: Arc::new(system),
            max_output: Some(self.options.summary_tokens),
            timeout: self.options.timeout_ms.map(Duration::from_millis),
            ..Request::new(messages)
        }
    }
}

/// Messages are not clipped below this many tokens; if that is not enough, messages are omitted.
const MIN: u64 = 64;

/// Returns the messages with at most `most` tokens together. The longest lose their middle first;
/// if there are too many messages for that, those in the middle are omitted. A note states what was
/// omitted.
pub(super) fn fit(messages: &[Message], most: u64, counter: &dyn TokenCounter) -> Vec<Message> {
    let all = counter.messages(messages);
    if all <= most {
        return messages.to_vec();
    }
    let sizes: Vec<u64> = messages.iter().map(|message| counter.message(message)).collect();
    // A counter may count more for the list than for its messages.
    let besides = all.saturating_sub(sizes.iter().copied().fold(0, u64::saturating_add));
    let share = level(&sizes, most.saturating_sub(besides));
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

fn clip_message(message: &Message, most: u64, counter: &dyn TokenCounter) -> Message {
    let size = counter.message(message);
    if size <= most {
        return message.clone();
    }
    let text = message.texts().map(Text::as_str).collect::<Vec<_>>().join("\n\n");
    let with = |content| Message::new(message.role, content).by_author(message.author.clone());
    let framing = counter.message(&with(Vec::new()));
    let text = clip(&text, most.saturating_sub(framing), counter);
    with(vec![ContentBlock::text(text)])
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
