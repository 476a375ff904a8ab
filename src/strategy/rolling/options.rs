//! Options of `rolling`, and their checks.
//!
//! The view is the summary text that stands for all batches. It is never parsed, because the
//! batches are stored with it as data.

use std::{collections::HashSet, fmt::Write, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{
    message::{Batch, ContentBlock, Message, Role, Text, Timestamp},
    strategy::{ask::Retries, clip::clip, error::Result, instructions, run_error::RunError},
    tokens::TokenCounter,
};

options! {
    /// Folds old messages chunk by chunk into batches, and shows the first and the last of them.
    ///
    /// With a target, stretches of the thread are folded in the order of their
    /// [score](Self::score), the least important first and the older of equals, until the thread is
    /// expected to meet the target; more important ones stay word for word in their place. Without
    /// a target all old messages are folded. A thread within its target is left unchanged.
    ///
    /// The end of the thread and the message that the user typed last always stay, and a call is
    /// kept or folded together with its results. A summary of another strategy becomes a batch
    /// unchanged.
    ///
    /// After a retryable failure a chunk is sent again, in two halves unless the provider gave a
    /// time to wait. A chunk over the model's window is halved, and clipped if it cannot be halved
    /// further. The halves still become one batch. If a chunk cannot be folded, the strategy fails.
    ///
    /// ```
    /// use threadfold::{Message, strategy::*, testing::{answers, asked}};
    ///
    /// let message = |round| Message::assistant(format!("{round}. {}", "A few words. ".repeat(12)));
    /// let thread = Snapshot::new((0..30).map(message).collect::<Vec<_>>());
    /// let strategy = Rolling { chunk_messages: 10, ..Rolling::default() };
    /// let view = View::new(thread, Brief::default());
    /// let (calls, proposal) = asked(&strategy, &view, answers(["They talked."; 3]));
    /// assert_eq!((calls[0].request.messages.len(), calls[0].total), (10 + 1, 3));
    /// assert_eq!(proposal?.batches.len(), 3);
    /// # Ok::<(), StrategyError>(())
    /// ```
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct Rolling {
        /// Upper limit for the messages of a chunk. Calls and their results stay in one chunk even
        /// if they exceed it.
        pub chunk_messages: usize = 20,
        /// Upper limit for the tokens of a chunk. If set, it replaces `chunk_messages`. If the
        /// window is known, requests fit it in any case.
        pub chunk_tokens: Option<u64> = None,
        /// Number of messages to keep at the end, if they fit the target. More stay if no legal cut
        /// is near.
        pub keep_recent: usize = 5,
        /// Upper limit for the tokens of one batch's text.
        pub summary_tokens: u64 = 1_024,
        /// Number of batches that the view shows at its beginning.
        pub clip_first: usize = 2,
        /// Number of batches that the view shows at its end.
        pub clip_last: usize = 2,
        /// System prompt of the summarising model, instead of the built-in one.
        pub prompt: Option<Text> = None,
        /// What the text of a batch must preserve, one text for each point, in order. Empty for the
        /// built-in list.
        pub sections: Vec<Text> = Vec::new(),
        /// Weight of a system message.
        pub system_weight: f64 = 10.0,
        /// Weight of a user message, which includes tool results.
        pub user_weight: f64 = 5.0,
        /// Weight of an assistant message.
        pub assistant_weight: f64 = 3.0,
        /// Factor from 0 to 1 by which the weight of the role is multiplied once for each later
        /// message.
        pub recency_decay: f64 = 0.95,
        /// Points added to the score for one or more question marks.
        pub question_bonus: f64 = 2.0,
        /// Points added for one or more tool calls.
        pub tool_call_bonus: f64 = 4.0,
        /// Points added for each keyword that the text contains.
        pub keyword_bonus: f64 = 1.5,
        /// The keywords; case does not matter.
        pub keywords: Vec<Text> =
            ["error", "fail", "bug", "fix", "decision", "agreed", "constraint", "requirement"]
                .map(Text::from)
                .into(),
        /// Points added per 100 characters, at most 3 points.
        pub length_weight: f64 = 1.0,
        /// Upper limit for the tokens of the compacted thread; the target of the brief applies too.
        pub target: Option<u64> = None,
        /// Upper limit for the bytes of a tool result in a request; the middle of longer ones is
        /// omitted.
        pub tool_result_cap: Option<usize> = Some(12_000),
        /// Upper limit for the bytes of a tool call's input in a request, likewise.
        pub tool_input_cap: Option<usize> = Some(6_000),
        /// Timeout for one answer, in milliseconds.
        pub timeout_ms: Option<u64> = Some(120_000),
        /// Upper limit for the retries of one chunk after retryable failures.
        pub max_retries: u32 = 2,
        /// Wait before the first retry, in milliseconds. Doubled for each further one.
        pub backoff_ms: u64 = 1_000,
    }
}

impl Rolling {
    /// Checks that all options have valid values. Every compaction begins with this check.
    ///
    /// ```
    /// use threadfold::strategy::Rolling;
    ///
    /// let options = Rolling { chunk_messages: 0, ..Rolling::default() };
    /// let error = options.check().unwrap_err();
    /// assert_eq!(error.to_string(), "chunk_messages is 0; expected at least 1");
    /// ```
    ///
    /// # Errors
    ///
    /// [`RunError::Option`], for the first invalid option.
    pub fn check(&self) -> Result<(), RunError> {
        let (from_1, from_0) = ("expected at least 1", "expected a number from 0");
        let numbers = [
            ("chunk_messages", self.chunk_messages as f64, 1.0..=f64::MAX, from_1),
            ("chunk_tokens", self.chunk_tokens.unwrap_or(1) as f64, 1.0..=f64::MAX, from_1),
            ("summary_tokens", self.summary_tokens as f64, 1.0..=f64::MAX, from_1),
            ("timeout_ms", self.timeout_ms.unwrap_or(1) as f64, 1.0..=f64::MAX, from_1),
            ("system_weight", self.system_weight, 0.0..=f64::MAX, from_0),
            ("user_weight", self.user_weight, 0.0..=f64::MAX, from_0),
            ("assistant_weight", self.assistant_weight, 0.0..=f64::MAX, from_0),
            ("question_bonus", self.question_bonus, 0.0..=f64::MAX, from_0),
            ("tool_call_bonus", self.tool_call_bonus, 0.0..=f64::MAX, from_0),
            ("keyword_bonus", self.keyword_bonus, 0.0..=f64::MAX, from_0),
            ("length_weight", self.length_weight, 0.0..=f64::MAX, from_0),
            ("recency_decay", self.recency_decay, 0.0..=1.0, "expected a number from 0 to 1"),
        ];
        for (option, found, valid, rule) in numbers {
            if !valid.contains(&found) {
                return Err(RunError::option(option, found.to_string(), rule));
            }
        }
        if self.clip_first == 0 && self.clip_last == 0 {
            let rule =
                "expected at least 1, because clip_last is 0 too and no batch would be shown";
            return Err(RunError::option("clip_first", "0", rule));
        }
        if self.keywords.iter().any(Text::is_blank) {
            let rule = "expected a word, because every text contains a blank one";
            return Err(RunError::option("a word of keywords", "blank", rule));
        }
        instructions::check(self.prompt.as_ref(), &self.sections)
    }

    /// When a call about a chunk is repeated.
    pub(super) fn retries(&self) -> Retries {
        let first_wait = Some(Duration::from_millis(self.backoff_ms));
        let most = usize::try_from(self.max_retries).unwrap_or(usize::MAX);
        Retries { first_wait, ..Retries::of_job(most) }
    }

    /// Number of batches above which the older ones are merged.
    pub(super) fn max_batches(&self) -> usize {
        self.clip_first.saturating_add(self.clip_last).saturating_add(2)
    }
}

/// Number of characters for which a message gets `length_weight` points.
const LENGTH_UNIT: f64 = 100.0;
/// Upper limit for the points for length.
const MAX_FOR_LENGTH: f64 = 3.0;

impl Rolling {
    /// Returns the importance of the message at `index` of `total` candidates: the weight of its
    /// role, multiplied by `recency_decay` for every later message, plus points for a question
    /// mark, tool calls, each keyword, and the length.
    ///
    /// ```
    /// use threadfold::{Message, strategy::Rolling};
    ///
    /// let options = Rolling::default();
    /// let score = |text: &str| options.score(&Message::user(text), 0, 10);
    /// assert!(score("Which port?") > score("The port."));
    /// assert_eq!(options.score(&Message::assistant("At work"), 0, 1), 3.07);
    /// ```
    #[must_use]
    pub fn score(&self, message: &Message, index: usize, total: usize) -> f64 {
        let text = text(message);
        let age = total.saturating_sub(1).saturating_sub(index);
        let weight = match message.role {
            Role::System => self.system_weight,
            Role::User => self.user_weight,
            Role::Assistant => self.assistant_weight,
        };
        let question = if text.contains('?') { self.question_bonus } else { 0.0 };
        let calls = if message.tool_uses().next().is_some() { self.tool_call_bonus } else { 0.0 };
        let length = text.chars().count() as f64 / LENGTH_UNIT * self.length_weight;
        weight * self.recency_decay.powf(age as f64)
            + question
            + calls
            + self.keyword_bonus * self.keywords_in(&text) as f64
            + length.min(MAX_FOR_LENGTH)
    }

    /// Number of different keywords in a text.
    fn keywords_in(&self, text: &str) -> usize {
        let text = text.to_lowercase();
        let keywords: HashSet<String> =
            self.keywords.iter().map(|keyword| keyword.to_lowercase()).collect();
        keywords.iter().filter(|keyword| text.contains(keyword.as_str())).count()
    }
}

/// The texts of a message, including those of tool results.
fn text(message: &Message) -> String {
    let mut texts: Vec<&str> = Vec::new();
    for block in &message.content {
        if let ContentBlock::ToolResult(result) = block {
            texts.extend(result.content.iter().filter_map(ContentBlock::as_text).map(Text::as_str));
        } else {
            texts.extend(block.as_text().map(Text::as_str));
        }
    }
    texts.join("\n")
}

impl Rolling {
    /// Returns the text that the thread shows for these batches: a line with the number of messages
    /// that they replace, then the first and the last batches, with the number of those omitted
    /// between them.
    ///
    /// That line also states the number of cycles: how often the oldest messages were summarised.
    ///
    /// ```
    /// use threadfold::{message::{Batch, BatchId}, strategy::Rolling};
    ///
    /// let batch = Batch::new(BatchId::default(), "They fixed the parser.");
    /// let view = Rolling::default().view(&[batch]);
    /// assert!(view.starts_with("[Summary of the conversation so far: 0 messages compressed"));
    /// assert!(view.ends_with("They fixed the parser."));
    /// ```
    #[must_use]
    pub fn view(&self, batches: &[Batch]) -> String {
        let mut text = header(batches);
        let numbered: Vec<(usize, &Batch)> = batches.iter().enumerate().collect();
        let (first, omitted, last) = self.clip(&numbered);
        if omitted > 0 {
            push_section(&mut text, "## Earliest", first);
            let _ = write!(
                text,
                "\n\n[... {} omitted here; the log of this conversation has {} ...]",
                counted(omitted, "batch", "batches"),
                if omitted == 1 { "it" } else { "them" },
            );
            push_section(&mut text, "## Recent", last);
        } else {
            first.iter().for_each(|(index, batch)| push_batch(&mut text, *index, batch));
        }
        text.trim_end().to_owned()
    }

    /// Returns the texts joined, in at most `most` tokens: all of them, else the first and the last
    /// ones that the view shows, else these with their middles omitted. `None` if there are none.
    pub(super) fn so_far(
        &self,
        texts: &[&str],
        most: u64,
        counter: &dyn TokenCounter,
    ) -> Option<String> {
        if texts.is_empty() || most == 0 {
            return None;
        }
        if joined_tokens(texts, counter) <= most {
            return Some(texts.join("\n\n"));
        }
        let (first, omitted, last) = self.clip(texts);
        let note = format!("[... {} omitted ...]", counted(omitted, "batch", "batches"));
        let note = (omitted > 0).then_some(note.as_str());
        let shown = [first, note.as_slice(), last].concat();
        if joined_tokens(&shown, counter) <= most {
            return Some(clip(&shown.join("\n\n"), most, counter));
        }
        let share = (most / shown.len().max(1) as u64).saturating_sub(1);
        let texts: Vec<String> = shown.iter().map(|text| clip(text, share, counter)).collect();
        Some(clip(&texts.join("\n\n"), most, counter))
    }

    /// Returns the first and the last items, and the number of those between them. If none is
    /// between, all are among the first.
    fn clip<'t, T>(&self, all: &'t [T]) -> (&'t [T], usize, &'t [T]) {
        let omitted = all.len().saturating_sub(self.clip_first).saturating_sub(self.clip_last);
        if omitted == 0 {
            return (all, 0, &[]);
        }
        // The list is longer than both ends together, so this cannot split out of bounds.
        let (first, rest) = all.split_at(self.clip_first);
        let (_, last) = rest.split_at(omitted);
        (first, omitted, last)
    }
}

fn header(batches: &[Batch]) -> String {
    let messages = batches.iter().map(|batch| batch.messages).fold(0, usize::saturating_add);
    let depth = batches.iter().map(|batch| batch.depth).max();
    let cycles = depth.map_or(0, |depth| depth.saturating_add(1) as usize);
    format!(
        "[Summary of the conversation so far: {} compressed, {} deep]",
        counted(messages, "message", "messages"),
        counted(cycles, "cycle", "cycles"),
    )
}

fn push_section(text: &mut String, heading: &str, batches: &[(usize, &Batch)]) {
    if batches.is_empty() {
        return;
    }
    text.push_str("\n\n");
    text.push_str(heading);
    batches.iter().for_each(|(index, batch)| push_batch(text, *index, batch));
}

fn push_batch(text: &mut String, index: usize, batch: &Batch) {
    text.push_str("\n\n");
    text.push_str(&label(index, batch));
    text.push('\n');
    text.push_str(batch.text.trim());
}

/// The heading of a batch, with its times if they are known.
pub(super) fn label(index: usize, batch: &Batch) -> String {
    let Batch { depth, start, end, .. } = batch;
    let number = index + 1;
    if *end == Timestamp::default() {
        return format!("[Batch {number} \u{2014} depth {depth}]");
    }
    format!("[Batch {number} \u{2014} depth {depth}, {start} to {end}]")
}

/// The tokens of texts that are joined by blank lines.
fn joined_tokens(texts: &[&str], counter: &dyn TokenCounter) -> u64 {
    texts.iter().map(|text| counter.text(text) + 1).fold(0, u64::saturating_add)
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
