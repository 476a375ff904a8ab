//! The settings.

use serde::{Deserialize, Serialize};

use super::score::Scoring;
use crate::message::Text;
use crate::strategy::run_error::RunError;

/// Folds old messages chunk by chunk into batches, and shows the first and the last of them.
///
/// With a target, stretches of the thread go in the order of their [`Scoring`], the least
/// important first and the older of equals, until the thread is likely to be small enough; what
/// matters more stays word for word where it is. What goes is folded in the order of the thread.
/// Without a target everything goes that may; a thread that is within its target is left alone.
///
/// What stays in any case: the end of the thread, calls with their results on the same side, and
/// what the user typed last. A summary that another strategy left becomes a batch as it is.
///
/// A chunk whose call fails in a way that may pass is asked about again, in two halves unless the
/// provider said when to come back; one that does not fit the model's window is halved, and clipped
/// in the end. It becomes one batch all the same. If it cannot be folded nothing is proposed.
///
/// ```
/// use threadfold::{Message, strategy::*};
///
/// let said = |round: usize| Message::user(format!("{round}. {}", "Something was said. ".repeat(9)));
/// let thread = Snapshot::new((0..30).map(said).collect::<Vec<_>>());
/// let strategy = FoldBatches { chunk_messages: 10, ..FoldBatches::default() };
/// let attempt = strategy.begin(&thread, &Brief::default());
/// let Step::Call { model: ModelRole::Fast, request, progress, .. } = attempt.step() else { panic!() };
/// assert_eq!((request.messages.len(), progress.total), (10 + 1, 3));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FoldBatches {
    /// How many messages a chunk has at most, but for calls with their results that have more.
    pub chunk_messages: usize,
    /// How many tokens a chunk has at most. When set, messages are not counted. Where the window
    /// is known, a request fits it in any case.
    pub chunk_tokens: Option<u64>,
    /// How many messages stay at the end, if they fit the target. More stay where no cut is legal.
    pub keep_recent: usize,
    /// How many tokens one account may have.
    pub summary_tokens: u64,
    /// How many batches the view shows from the first on.
    pub clip_first: usize,
    /// How many batches the view shows up to the last.
    pub clip_last: usize,
    /// What the summariser is told that it is, word for word, instead of the built-in prompt.
    pub prompt: Option<Text>,
    /// What is more important, where not everything goes.
    pub scoring: Scoring,
    /// The most tokens that the thread may have afterwards; the target of the brief counts too.
    pub target: Option<u64>,
    /// How many bytes of a result the summariser is shown at most: its head and its tail.
    pub tool_result_cap: Option<usize>,
    /// The same for the input of a call.
    pub tool_input_cap: Option<usize>,
    /// How long to wait for one answer, in milliseconds.
    pub timeout_ms: Option<u64>,
    /// How often one chunk is tried again after failures that may pass.
    pub max_retries: u32,
    /// How long to wait before the first such try, in milliseconds. Doubled for each that follows.
    pub backoff_ms: u64,
}

impl Default for FoldBatches {
    fn default() -> Self {
        Self {
            chunk_messages: 20,
            chunk_tokens: None,
            keep_recent: 5,
            summary_tokens: 1_024,
            clip_first: 2,
            clip_last: 2,
            prompt: None,
            scoring: Scoring::default(),
            target: None,
            tool_result_cap: Some(12_000),
            tool_input_cap: Some(6_000),
            timeout_ms: Some(120_000),
            max_retries: 2,
            backoff_ms: 1_000,
        }
    }
}

impl FoldBatches {
    /// Returns whether all options have values that make sense. An attempt asks this too.
    ///
    /// ```
    /// use threadfold::strategy::FoldBatches;
    ///
    /// let error = FoldBatches { chunk_messages: 0, ..FoldBatches::default() }.check().unwrap_err();
    /// assert_eq!(error.to_string(), "chunk_messages is 0: at least 1 is needed");
    /// ```
    ///
    /// # Errors
    ///
    /// [`RunError::Option`], the first that does not.
    pub fn check(&self) -> Result<(), RunError> {
        let refuse = |option: &str, found: &str, rule: &str| {
            Err(RunError::Option {
                option: Text::from(option),
                found: found.into(),
                rule: Text::from(rule),
            })
        };
        let zeros = [
            ("chunk_messages", self.chunk_messages == 0),
            ("chunk_tokens", self.chunk_tokens == Some(0)),
            ("summary_tokens", self.summary_tokens == 0),
            ("timeout_ms", self.timeout_ms == Some(0)),
        ];
        if let Some((option, _)) = zeros.into_iter().find(|(_, is_zero)| *is_zero) {
            return refuse(option, "0", "at least 1 is needed");
        }
        if self.clip_first == 0 && self.clip_last == 0 {
            return refuse("clip_first", "0", "with clip_last at 0 no batch would be shown");
        }
        if self.prompt.as_ref().is_some_and(Text::is_blank) {
            return refuse("prompt", "blank", "a text is needed, or none for the built-in one");
        }
        self.scoring.check()
    }

    /// How many batches may be there before the older ones are summed up.
    pub(super) fn max_batches(&self) -> usize {
        self.clip_first.saturating_add(self.clip_last).saturating_add(2)
    }
}
