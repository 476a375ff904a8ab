//! One request on its way from the agent to the provider.

use super::view::View;
use threadfold::{
    auto::{AutoCompactor, Input, Output, Pressure},
    message::{CompactionReason, ContextWindow, Message, ModelErrorKind, Request, Timestamp},
    tokens::{Calibrated, TokenCounter},
};

/// The settings of a relay.
#[derive(Clone, Copy, Debug, Default)]
pub struct RelayOptions {
    /// The window of the model; `None` if it is unknown.
    pub window: Option<ContextWindow>,
    /// Scales the estimates by the provider's counts of earlier requests of the thread.
    pub ratio: Calibrated,
}

/// One request, from its arrival to the provider's answer.
///
/// | state | input | next state |
/// |---|---|---|
/// | `Compact` | [`compacted`](Self::compacted) | `Compact` if it still does not fit, else `Send` |
/// | `Compact` | [`failed`](Self::failed) | `Send`, as it is; `Refused` after a refusal |
/// | `Send` | [`refused`](Self::refused) | `Compact`, or `Refused` if no compaction helps |
///
/// Other inputs change nothing. A request that needs no compaction and has no view is not
/// rewritten: [`request`](Self::request) is then `None`, and the host sends the original bytes.
///
/// ```
/// use threadfold::{ContextWindow, Message, Request, message::Timestamp};
/// use threadfold::auto::{AutoCompactor, AutoPolicy};
/// use threadfold_cli::relay::{Relay, RelayOptions, RelayStep, View};
///
/// let policy = AutoPolicy { estimates_usage: true, ..AutoPolicy::default() };
/// let mut auto = AutoCompactor::new(policy)?;
/// let window = Some(ContextWindow::new(1_000));
/// let options = RelayOptions { window, ..RelayOptions::default() };
/// let old = Message::assistant("A long story. ".repeat(300));
/// let request = Request::new(vec![Message::user("Tell me."), old, Message::user("And then?")]);
///
/// let mut relay = Relay::new(request, None, &options, &mut auto, Timestamp(1));
/// assert!(matches!(relay.step(), RelayStep::Compact { .. }));
/// // The host compacts, and stores the view.
/// let view = View { covers: 2, messages: vec![Message::user("A story was told.")] };
/// relay.compacted(&view, &mut auto, Timestamp(2));
/// assert_eq!(relay.step(), &RelayStep::Send);
/// assert_eq!(relay.request().map(|request| request.messages.len()), Some(2));
/// # Ok::<(), threadfold::message::InvalidValue>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Relay {
    /// The original request.
    original: Request,
    /// The messages to send, if they differ from those of the request.
    viewed: Option<Vec<Message>>,
    options: RelayOptions,
    step: RelayStep,
    was_refused: bool,
}

/// The next step of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RelayStep {
    /// Compact the messages that would be sent, and report the view or the failure.
    Compact {
        /// The reason.
        reason: CompactionReason,
        /// The maximum tokens of the messages after the compaction, by the counter of the ratio;
        /// `None` if the window is unknown.
        target: Option<u64>,
    },
    /// Send the request, and report a refusal for its length.
    Send,
    /// Pass the provider's refusal on to the agent: no compaction helps.
    Refused,
}

impl Relay {
    /// Returns the relay of a request, with the view that the host found for it. `auto` is the
    /// trigger of the request's thread; `now` is compared only with earlier times that were passed
    /// to `auto`.
    pub fn new(
        request: Request,
        view: Option<&View>,
        options: &RelayOptions,
        auto: &mut AutoCompactor,
        now: Timestamp,
    ) -> Self {
        let viewed = view.and_then(|view| view.of(&request.messages));
        let options = *options;
        let step = RelayStep::Send;
        let mut relay = Self { original: request, viewed, options, step, was_refused: false };
        relay.check(auto, now);
        relay
    }

    /// The next step of the host.
    #[must_use]
    pub fn step(&self) -> &RelayStep {
        &self.step
    }

    /// The original request.
    #[must_use]
    pub fn original(&self) -> &Request {
        &self.original
    }

    /// The request to send; `None` if it is the original one.
    #[must_use]
    pub fn request(&self) -> Option<Request> {
        let messages = self.viewed.clone()?;
        Some(Request { messages: messages.into(), ..self.original.clone() })
    }

    /// The tokens of the request that would be sent now.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.pressure().estimate()
    }

    /// The tokens of the request that would be sent now, by the counter of the ratio. Pass them to
    /// [`Calibrated::learn`] with the provider's count.
    #[must_use]
    pub fn estimate(&self) -> u64 {
        self.estimated().estimate()
    }

    /// The ratio, updated by a refusal.
    #[must_use]
    pub fn ratio(&self) -> Calibrated {
        self.options.ratio
    }

    /// Takes the view of a compaction, which replaces the first messages. A view that does not fit
    /// the request counts as a failure.
    pub fn compacted(&mut self, view: &View, auto: &mut AutoCompactor, now: Timestamp) {
        let RelayStep::Compact { reason, .. } = &self.step else { return };
        let Some(viewed) = view.of(&self.original.messages) else {
            return self.failed(auto, now);
        };
        let _ = auto.handle(now, Input::Compacted { reason: reason.clone() });
        self.viewed = Some(viewed);
        self.check(auto, now);
    }

    /// Takes the failure of the compaction. Unless the provider refused the request before, it is
    /// sent without the compaction, so that a failure of the proxy never becomes one of the agent.
    pub fn failed(&mut self, auto: &mut AutoCompactor, now: Timestamp) {
        let RelayStep::Compact { reason, .. } = &self.step else { return };
        let _ = auto.handle(now, Input::Failed { reason: reason.clone() });
        self.step = if self.was_refused { RelayStep::Refused } else { RelayStep::Send };
    }

    /// Takes a refusal of the provider. Only a refusal for the length leads to a compaction.
    pub fn refused(&mut self, error: &ModelErrorKind, auto: &mut AutoCompactor, now: Timestamp) {
        if self.step != RelayStep::Send {
            return;
        }
        self.was_refused = true;
        self.step = RelayStep::Refused;
        if let ModelErrorKind::Overflow { limit, found, output } = error {
            let estimate = self.estimate();
            self.options.ratio.learn(estimate, found.unwrap_or(0));
            let (limit, output, pressure) = (*limit, *output, self.pressure());
            let output = auto.handle(now, Input::Overflowed { pressure, limit, output });
            if let Some(step) = self.compaction(output) {
                self.step = step;
            }
        }
    }

    /// Asks the trigger about the request that would be sent now.
    fn check(&mut self, auto: &mut AutoCompactor, now: Timestamp) {
        let output = auto.handle(now, Input::BeforeSend(self.pressure()));
        // A request that no compaction makes fit is sent too, because only the provider knows its
        // window exactly.
        self.step = self.compaction(output).unwrap_or(RelayStep::Send);
    }

    fn pressure(&self) -> Pressure {
        self.estimated().calibrated(&self.options.ratio)
    }

    fn estimated(&self) -> Pressure {
        let RelayOptions { window, ratio } = self.options;
        let counter = ratio.base();
        let Request { system, tools, max_output, .. } = &self.original;
        let messages = self.viewed.as_deref().unwrap_or(&self.original.messages);
        let typed = messages.iter().rfind(|message| message.is_typed());
        Pressure {
            window,
            thread: counter.messages(messages),
            overhead: counter.messages(system).saturating_add(counter.tools(tools)),
            output: max_output.unwrap_or_default(),
            newest: typed.map_or(0, |message| counter.message(message)),
            ..Pressure::default()
        }
    }

    fn compaction(&self, output: Option<Output>) -> Option<RelayStep> {
        match output? {
            Output::Compact { reason, target, .. } => {
                let target = target.map(|tokens| self.options.ratio.scale_down(tokens));
                Some(RelayStep::Compact { reason, target })
            }
            Output::Suspended { .. }
            | Output::Paused { .. }
            | Output::UnknownWindow
            | Output::CannotFit { .. }
            | _ => None,
        }
    }
}
