//! Compacts a thread in the middle of a turn. Each call of the model is a step of the engine, so a
//! compaction that was interrupted continues with the answers that it has.

use std::sync::{Arc, LazyLock};

use restate_sdk::prelude::*;
use threadfold::{
    Answer, async_trait,
    drive::{self, CompactionError, CompactionErrorKind},
    message::{CompactionReason, ModelError, ModelErrorKind},
    render::ChunkBudget,
    strategy::{Answers, Brief, Chunked, CompactionStrategy, Digest, Ladder, ModelCall},
};

use crate::{
    steps::Steps,
    turn::{OpenTurn, WINDOW, system, tools},
};

/// The model folds the thread into a summary, chunk by chunk. The fallback is a digest without a
/// model.
static STRATEGY: LazyLock<Ladder> = LazyLock::new(|| {
    let chunks = ChunkBudget { target: 4_000, tolerance: 1_000 };
    let chunked = Chunked { chunks, ..Chunked::default() };
    Ladder::new([Arc::new(chunked) as _, Arc::new(Digest::default()) as _])
});

/// Answers the calls of a strategy with steps of the engine.
struct Journaled<'s, 'a, 'ctx> {
    steps: &'s mut Steps<'a, 'ctx>,
    /// The error of the engine that ended the handler.
    failed: Option<TerminalError>,
}

#[async_trait]
impl Answers for Journaled<'_, '_, '_> {
    async fn answer(&mut self, call: &ModelCall) -> Result<Answer, ModelError> {
        let waited = self.steps.wait(call.after).await;
        let answer = match waited {
            Ok(()) => self.steps.ask("compaction", call.request.clone()).await,
            Err(error) => Err(error),
        };
        answer.unwrap_or_else(|error| {
            let refused = ModelError::new(ModelErrorKind::Other, error.to_string());
            self.failed = Some(error);
            Err(refused)
        })
    }
}

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
        let view = match conversation.view(&brief).await {
            Ok(view) => view,
            Err(error) => return Err(TerminalError::new(error.to_string()).into()),
        };

        let mut answers = Journaled { steps, failed: None };
        let proposal = drive::propose_with(&*STRATEGY, &view, &mut answers).await;
        if let Some(error) = answers.failed {
            return Err(error.into());
        }
        // A strategy that found nothing to do is not a compaction and not logged.
        if proposal.as_ref().is_err_and(CompactionError::is_nothing_to_compact) {
            return Ok(false);
        }
        match conversation.finish(STRATEGY.name(), &brief, proposal).await {
            Ok(_) => Ok(true),
            Err(CompactionError { kind: CompactionErrorKind::Strategy(_), .. }) => Ok(false),
            Err(error) => Err(TerminalError::new(error.to_string()).into()),
        }
    }
}
