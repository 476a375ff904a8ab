//! When a host's loop compacts its thread, and what it does after a refusal.

use std::sync::Arc;

use super::compactor::Compactor;
use crate::{
    auto::{Input, Output, Refusal},
    message::{CompactionReason, Message, Timestamp},
    strategy::Brief,
};

/// What a loop does next with its request.
///
/// | step | the loop |
/// |---|---|
/// | [`Send`](Self::Send) | sends the request with this `max_output`, or sends it again |
/// | [`Compact`](Self::Compact) | compacts with the brief, and asks [`before_request`](Compactor::before_request) again, also if the compaction failed |
/// | [`CannotFit`](Self::CannotFit) | sends nothing: no compaction helps |
/// | [`GiveUp`](Self::GiveUp) | passes the provider's refusal on, and puts its messages back as they were before the first refusal |
#[derive(Clone, Debug)]
#[must_use]
#[non_exhaustive]
pub enum RequestStep {
    /// Send the request.
    Send {
        /// The tokens for the answer: those of [`Compactor::with_max_output`], or what the window
        /// leaves. `None` for the provider's default.
        max_output: Option<u64>,
    },
    /// Compact the thread with this brief first.
    Compact(Brief),
    /// The request is longer than the window, and no compaction makes it fit.
    CannotFit {
        /// The tokens of the smallest possible request: system prompt, tools, and what the model has
        /// not read yet except tool results.
        floor: u64,
        /// The tokens of the request.
        tokens: u64,
        /// The tokens that fit the window.
        limit: u64,
    },
    /// The provider refuses the request whatever its size. Once the messages are put back, the
    /// compactor knows what it knew of them.
    GiveUp {
        /// The messages before the first refusal. Of a host with messages of its own type these are
        /// the shadows: it puts its own back.
        before: Arc<Vec<Message>>,
    },
}

impl Compactor {
    /// Decides what comes before the next request with the thread as it was last observed: as a
    /// session does before each of its requests, by the [policy](Self::with_policy) and the
    /// [window](Self::with_window). Without a window, and before a refusal taught one, every request is
    /// sent.
    ///
    /// A thread over the threshold is compacted once; if that fails, the request is sent as it is. A
    /// thread that does not fit is compacted until it does, and a strategy that fails is then followed
    /// by a digest.
    ///
    /// It also takes note of the request for [`idle`](Self::idle).
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use threadfold::{Compactor, ContextWindow, Message, Model, Request};
    /// use threadfold::{auto::Refusal, compactor::RequestStep, message::Timestamp};
    /// use threadfold::testing::{ExtractiveModel, ScriptedModel};
    ///
    /// /// Asks the model with a thread that fits.
    /// async fn ask(
    ///     compactor: &mut Compactor,
    ///     messages: &mut Vec<Message>,
    ///     model: &dyn Model,
    /// ) -> Result<(), Box<dyn std::error::Error>> {
    ///     let now = Timestamp(0);
    ///     compactor.observe(messages);
    ///     let mut step = compactor.before_request(now);
    ///     loop {
    ///         step = match step {
    ///             RequestStep::Send { max_output } => {
    ///                 let request = Request { max_output, ..Request::new(messages.clone()) };
    ///                 match model.complete(request).await {
    ///                     Ok(answer) => return Ok(messages.push(answer.message)),
    ///                     Err(error) => match Refusal::of(&error.kind) {
    ///                         Some(refusal) => compactor.refused(now, refusal),
    ///                         None => return Err(error.into()),
    ///                     },
    ///                 }
    ///             }
    ///             RequestStep::Compact(brief) => {
    ///                 // After a failure too, the compactor decides what comes next.
    ///                 drop(compactor.compact(messages, brief, &ExtractiveModel).await);
    ///                 compactor.before_request(now)
    ///             }
    ///             RequestStep::CannotFit { floor, limit, .. } => {
    ///                 return Err(format!("{floor} tokens at least, and {limit} fit").into());
    ///             }
    ///             RequestStep::GiveUp { before } => {
    ///                 *messages = before.to_vec();
    ///                 return Err("The provider refuses the request whatever its size.".into());
    ///             }
    ///             other => return Err(format!("an unknown step: {other:?}").into()),
    ///         };
    ///     }
    /// }
    ///
    /// let mut compactor = Compactor::default().with_window(ContextWindow::new(4_000));
    /// let long = Message::assistant("I read the parser, line by line. ".repeat(400));
    /// let mut messages = vec![Message::user("Read it."), long, Message::user("Is it long?")];
    /// block_on(ask(&mut compactor, &mut messages, &ScriptedModel::new(["Yes."])))?;
    /// assert!(messages.iter().any(Message::is_summary) && compactor.context_tokens() < 3_000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn before_request(&mut self, now: Timestamp) -> RequestStep {
        self.end_offered(now);
        if self.live.is_compacted_ahead {
            // It fitted before this compaction, whatever became of it.
            return self.sent();
        }
        let output = self.auto.handle(now, Input::BeforeRequest(self.pressure()));
        // Each request may be the last one before a pause.
        self.auto.may_pause();
        let step = self.step(now, output);
        if let RequestStep::Compact(Brief { reason: CompactionReason::Threshold, .. }) = step {
            self.live.is_compacted_ahead = true;
        }
        step
    }

    /// Decides what follows when the provider refused the request with the thread as it was last
    /// observed as too long. It learns what the refusal states: the window, and the size of the
    /// prompt. A refusal is believed as far as it makes sense, and a request is sent at most
    /// [`MAX_SENDS`](crate::auto::MAX_SENDS) times: see [`auto`](crate::auto) for the table.
    ///
    /// [`before_request`](Self::before_request) has a whole loop.
    ///
    /// ```
    /// use threadfold::{Compactor, Message, auto::Refusal, message::Timestamp};
    /// use threadfold::compactor::RequestStep;
    ///
    /// let mut compactor = Compactor::default();
    /// let long = Message::assistant("I read the parser, line by line. ".repeat(400));
    /// compactor.observe(&[Message::user("Read it."), long, Message::user("Is it long?")]);
    /// assert!(matches!(compactor.before_request(Timestamp(0)), RequestStep::Send { .. }));
    /// let refusal = Refusal { limit: Some(4_000), ..Refusal::default() };
    /// let RequestStep::Compact(brief) = compactor.refused(Timestamp(0), refusal) else { panic!() };
    /// assert!(brief.target.is_some_and(|target| target < 4_000));
    /// ```
    pub fn refused(&mut self, now: Timestamp, refusal: Refusal) -> RequestStep {
        let present = self.shadows();
        self.live.unrefused.get_or_insert(present);
        self.live.is_compacted_ahead = false;
        self.end_offered(now);
        let input = Input::Overflowed { pressure: self.pressure(), refusal };
        let output = self.auto.handle(now, input);
        self.step(now, output)
    }

    /// Reports to the trigger that the compaction of the last step was not carried out, or was
    /// dropped.
    fn end_offered(&mut self, now: Timestamp) {
        if let Some(reason) = self.offered.take() {
            let _ = self.auto.handle(now, Input::Failed { reason });
        }
    }

    fn step(&mut self, now: Timestamp, output: Option<Output>) -> RequestStep {
        match output {
            Some(Output::Compact { reason, target, limit }) => {
                self.offered = Some(reason.clone());
                RequestStep::Compact(Brief { reason, target, limit, now, ..Brief::default() })
            }
            Some(Output::CannotFit { floor, tokens, limit }) => {
                RequestStep::CannotFit { floor, tokens, limit }
            }
            Some(Output::TakeBack) => {
                let before = self.live.unrefused.take().unwrap_or_else(|| self.shadows());
                RequestStep::GiveUp { before }
            }
            // The rest are notices, and the request again.
            Some(
                Output::Suspended { .. }
                | Output::Paused { .. }
                | Output::UnknownWindow
                | Output::ShortAnswer { .. }
                | Output::SendAgain,
            )
            | None => self.sent(),
        }
    }

    fn sent(&self) -> RequestStep {
        RequestStep::Send { max_output: self.max_output() }
    }
}
