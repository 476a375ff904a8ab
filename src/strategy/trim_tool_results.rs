//! `trim-tool-results`: keeps the first lines of long tool results.

use serde::{Deserialize, Serialize};

use super::{
    attempt,
    brief::Brief,
    contract::{Attempt, CompactionStrategy, StrategyError},
    snapshot::Snapshot,
};
use crate::{
    compact::{Plan, TrimOptions, Trimmed, trim_after},
    message::Message,
};

/// Cuts long texts of tool results down to their first lines and changes nothing else:
/// [`trim`](crate::compact::trim()) as a strategy. Calls no model.
///
/// If these options miss the target of the brief, harder ones follow: half as many recent messages
/// left alone; the last two, with two lines of at most 400 bytes; none, with one line of at most
/// 200 bytes; and one line of at most 100 bytes, also of errors and of results in the message that
/// the user typed last, which is untouched until then. The first that meets the target is proposed,
/// else the last.
///
/// Its serde form is that of the options.
///
/// ```
/// use threadfold::{Message, Role, strategy::*};
/// use threadfold::message::{Json, ToolResult, ToolUse};
///
/// let mut thread = vec![
///     Message::user("What files are there?"),
///     Message::new(Role::Assistant, vec![ToolUse::new("t1", "list", Json::parse("{}")?).into()]),
///     Message::new(Role::User, vec![ToolResult::text("t1", "a.rs\n".repeat(400)).into()]),
/// ];
/// thread.extend(["Four hundred.", "All of them called a.rs."].map(Message::assistant));
/// let thread = Snapshot::new(thread);
/// let mut strategy = TrimToolResults::default();
/// strategy.options.keep_recent = 2;
/// let attempt = strategy.begin(&thread, &Brief::default());
/// let Step::Proposed(proposal) = attempt.step() else { panic!("it needs no model") };
/// assert_eq!(thread.accept(&proposal.plan, &Brief::default())?.len(), 5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TrimToolResults {
    /// How much of each result stays, if that meets the target.
    pub options: TrimOptions,
}

impl CompactionStrategy for TrimToolResults {
    fn name(&self) -> &str {
        "trim-tool-results"
    }

    fn begin(&self, thread: &Snapshot, brief: &Brief) -> Box<dyn Attempt> {
        attempt::propose(self.plan(thread, brief))
    }
}

impl TrimToolResults {
    fn plan(&self, thread: &Snapshot, brief: &Brief) -> Result<Plan, StrategyError> {
        let messages = thread.messages();
        let last = messages.iter().rposition(Message::is_typed);
        let untouched = Plan::from_splices(messages.len(), Vec::new());
        let mut best: Option<Trimmed> = None;
        for (options, untouchable) in steps(self.options, last) {
            let trimmed = trim_after(&untouched, messages, &options, untouchable);
            let after = thread.tokens_after(&trimmed.plan)?;
            let enough = brief.target.is_none_or(|target| after <= target);
            best = Some(trimmed);
            if enough {
                break;
            }
        }
        match best {
            Some(trimmed) if trimmed.results > 0 => Ok(trimmed.plan),
            Some(_) | None => Err(self.nothing(thread)),
        }
    }

    fn nothing(&self, thread: &Snapshot) -> StrategyError {
        let TrimOptions { lines, keep_recent, .. } = self.options;
        let results = thread.messages().iter().flat_map(|message| message.tool_results()).count();
        let reason = format!(
            "none of {results} tool results becomes shorter if {lines} lines of it stay and the \
             last {keep_recent} messages are left alone"
        );
        StrategyError::NothingToCompact { reason: reason.into() }
    }
}

/// The options and the harder ones, each with the message to leave untouched.
fn steps(options: TrimOptions, last: Option<usize>) -> [(TrimOptions, Option<usize>); 5] {
    let harder = |lines: usize, bytes: usize, keep_recent: usize| TrimOptions {
        lines: options.lines.min(lines),
        bytes: Some(options.bytes.unwrap_or(bytes).min(bytes)),
        keep_recent: options.keep_recent.min(keep_recent),
        ..options
    };
    let half = TrimOptions { keep_recent: options.keep_recent / 2, ..options };
    let hardest = TrimOptions { keep_errors: false, min_bytes: 0, ..harder(1, 100, 0) };
    [
        (options, last),
        (half, last),
        (harder(2, 400, 2), last),
        (harder(1, 200, 0), last),
        (hardest, None),
    ]
}
