//! Options of `rolling`, and their checks.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::{
    message::{Batch, ContentBlock, Message, Role, Text},
    strategy::{batches, instructions, run_error::RunError},
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
    /// Its chunks are those of a [`CompactionRun`](crate::strategy::CompactionRun): after a retryable
    /// failure a chunk is sent again, in two halves unless the provider gave a time to wait, and a
    /// chunk over the model's window is halved. The halves still become one batch; a message is
    /// divided only if it alone does not fit. If the model refuses a chunk or does not summarise it, or
    /// after a permanent failure, the batch is an extract made without a model, and the notes of the
    /// proposal say so. If none of the chunks was summarised, or none of the first three, the strategy
    /// fails. If the merging of older batches fails, they stay as they are.
    ///
    /// ```
    /// use threadfold::{Message, strategy::*, testing::{answers, asked}};
    ///
    /// let message = |round| Message::assistant(format!("{round}. {}", "A few words. ".repeat(12)));
    /// let thread = Snapshot::new((0..30).map(message).collect::<Vec<_>>());
    /// let strategy = Rolling { chunk_messages: 10, ..Rolling::default() };
    /// let view = View::new(thread, Brief::default());
    /// let (calls, proposal) = asked(&strategy, &view, answers(["They talked."; 3]));
    /// assert_eq!(calls[0].total, 3);
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
        /// Upper limit for the retries of one call after retryable failures.
        pub max_retries: usize = 2,
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
        if let Some(index) = self.keywords.iter().position(Text::is_blank) {
            let rule = "expected a word with text, because a blank one would match every message";
            return Err(RunError::option(&format!("keywords[{index}]"), "blank", rule));
        }
        instructions::check(self.prompt.as_ref(), &self.sections)
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
    let results = message.tool_results().flat_map(|result| &result.content);
    let texts = message.texts().chain(results.filter_map(ContentBlock::as_text));
    texts.map(Text::as_str).collect::<Vec<_>>().join("\n")
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
        batches::view(batches, self.clip_first, self.clip_last)
    }
}
