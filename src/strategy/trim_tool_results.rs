//! `trim-tool-results`: keeps the first lines of long tool results.

use async_trait::async_trait;

use super::{
    ask::Ask,
    contract::CompactionStrategy,
    error::Result,
    proposal::Proposal,
    tail::{most_recent, nothing},
    view::View,
};
use crate::{
    compact::{Plan, TrimToolResults, trim_after},
    message::Message,
};

#[async_trait]
impl CompactionStrategy for TrimToolResults {
    fn name(&self) -> &str {
        "trim-tool-results"
    }

    async fn propose(&self, view: &View, _: &mut Ask<'_>) -> Result<Proposal> {
        // A thread within its target keeps what an earlier compaction left whole.
        if let Some(target) = view.brief.target
            && view.thread.has_room(&view.brief)
        {
            return view.within(target);
        }
        Ok(plan(self, view)?.into())
    }
}

/// Returns the plan that reaches the target with the mildest options.
///
/// The first of these steps that meets the target is proposed, else the last:
///
/// 1. the options as they are;
/// 2. half as many recent messages are untouched;
/// 3. only the last two messages are untouched, and results keep two lines of at most 400 bytes;
/// 4. no message is untouched, and results keep one line of at most 200 bytes;
/// 5. results keep one line of at most 100 bytes, including errors and results in the message that
///    the user typed last.
///
/// Of the messages that this step would trim, the newest stay whole as far as the target allows.
fn plan(options: &TrimToolResults, View { thread, brief }: &View) -> Result<Plan> {
    let messages = thread.messages();
    let unread = thread.unread_from();
    let last = messages.iter().rposition(Message::is_typed);
    let untouched = Plan::from_splices(messages.len(), Vec::new());
    let trimmed = |options: &TrimToolResults, untouchable: Option<usize>| {
        let spared = |index| index >= unread || Some(index) == untouchable;
        trim_after(&untouched, messages, options, &spared)
    };
    let target = brief.target.unwrap_or(u64::MAX);
    let fits = |plan: &Plan| thread.tokens_after(plan).is_ok_and(|after| after <= target);
    let mut best: Option<Plan> = None;
    for (options, untouchable) in steps(*options, last) {
        let plan = trimmed(&options, untouchable);
        if fits(&plan) {
            let more = most_recent(messages.len(), |keep_recent| {
                let more = TrimToolResults { keep_recent, ..options };
                Some(trimmed(&more, untouchable)).filter(|plan| !plan.is_empty() && fits(plan))
            });
            best = more.filter(|_| brief.target.is_some()).or(Some(plan));
            break;
        }
        best = Some(plan);
    }
    match best {
        Some(trimmed) if !trimmed.is_empty() => Ok(trimmed),
        Some(_) | None => {
            let TrimToolResults { lines, keep_recent, .. } = options;
            let results = messages.iter().flat_map(|message| message.tool_results()).count();
            nothing(format!(
                "none of {results} tool results becomes shorter if {lines} lines of it stay and \
                 the last {keep_recent} messages are left alone"
            ))
        }
    }
}

/// The options and the harder ones, each with the message to leave untouched.
fn steps(options: TrimToolResults, last: Option<usize>) -> [(TrimToolResults, Option<usize>); 5] {
    let half = TrimToolResults { keep_recent: options.keep_recent / 2, ..options };
    let [harder, hard, hardest] =
        [(2, 400, 2), (1, 200, 0), (1, 100, 0)].map(|(lines, bytes, recent)| TrimToolResults {
            lines: options.lines.min(lines),
            bytes: Some(options.bytes.unwrap_or(bytes).min(bytes)),
            keep_recent: options.keep_recent.min(recent),
            ..options
        });
    let hardest =
        TrimToolResults { keep_errors: false, keep_media: false, min_bytes: 0, ..hardest };
    [(options, last), (half, last), (harder, last), (hard, last), (hardest, None)]
}
