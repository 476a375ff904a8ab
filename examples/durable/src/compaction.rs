//! Compacts a thread in the middle of a turn: runs the state machine of the strategy, step by step.

use std::sync::{Arc, LazyLock};

use restate_sdk::prelude::*;
use threadfold::{
    Usage,
    drive::{CompactionError, CompactionErrorKind},
    message::CompactionReason,
    render::ChunkBudget,
    strategy::{Brief, Chunked, CompactionStrategy, Digest, Ladder, Proposal, Step},
};

use crate::turn::{OpenTurn, WINDOW, system, tools, unknown};

/// The model folds the thread into a summary, chunk by chunk. The fallback is a digest without a
/// model.
static STRATEGY: LazyLock<Ladder> = LazyLock::new(|| {
    let chunks = ChunkBudget { target: 4_000, tolerance: 1_000 };
    let chunked = Chunked { chunks, ..Chunked::default() };
    Ladder::new([Arc::new(chunked) as _, Arc::new(Digest::default()) as _])
});

impl OpenTurn<'_, '_> {
    /// Compacts the thread and returns whether it is smaller now. A failed compaction is in the
    /// log, and the thread is unchanged.
    pub(crate) async fn compact(
        &mut self,
        reason: CompactionReason,
        target: Option<u64>,
    ) -> HandlerResult<bool> {
        let Self { live, steps, .. } = self;
        let mut conversation = live
            .conversation()
            .with_context(system().into(), tools().into())
            .with_window(Some(WINDOW));
        let compaction = Some(conversation.next_compaction());
        let brief = Brief { compaction, reason, target, now: steps.now(), ..Brief::default() };
        let snapshot = match conversation.snapshot_for(&brief).await {
            Ok(snapshot) => snapshot,
            Err(error) => return Err(TerminalError::new(error.to_string()).into()),
        };

        let mut attempt = STRATEGY.begin(&snapshot, &brief);
        let (mut usage, mut calls) = (Usage::default(), 0);
        while let Step::Call { request, after, .. } = attempt.step() {
            let request = request.clone();
            steps.wait(after).await?;
            let answer = steps.ask("compaction", request).await?;
            usage += match &answer {
                Ok(turn) => turn.usage.unwrap_or_default(),
                Err(error) => error.usage,
            };
            calls += 1;
            attempt.handle(answer);
        }

        let mut driven = match attempt.step() {
            Step::Proposed(proposal) => Ok(proposal.clone()),
            // An attempt without an effect is not a compaction and not logged.
            Step::Failed(error) if calls == 0 && error.is_nothing_to_compact() => return Ok(false),
            Step::Failed(error) => Err(CompactionError::new(error.clone())),
            step @ (Step::Call { .. } | _) => return Err(unknown(step)),
        };
        match &mut driven {
            Ok(Proposal { usage: all, calls: asked, .. })
            | Err(CompactionError { usage: all, calls: asked, .. }) => {
                (*all, *asked) = (usage, calls)
            }
        }
        let accepted = driven.and_then(|driven| driven.accepted(&snapshot, &brief));
        match conversation.finish(STRATEGY.name(), &brief, accepted).await {
            Ok(_) => Ok(true),
            Err(CompactionError { kind: CompactionErrorKind::Strategy(_), .. }) => Ok(false),
            Err(error) => Err(TerminalError::new(error.to_string()).into()),
        }
    }
}
