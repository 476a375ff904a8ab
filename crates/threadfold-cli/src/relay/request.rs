//! One request on its way from the agent to the provider.

use super::view::View;
use threadfold::{
    auto::{AutoCompactor, Input, Output, Pressure, Refusal},
    message::{CompactionReason, ContextWindow, Message, ModelErrorKind, Request, Timestamp},
    tokens::TokenCounter,
};
use threadfold_terminal::thousands;

/// One request, from its arrival to the provider's answer.
///
/// | state | input | next state |
/// |---|---|---|
/// | `Compact` | [`compacted`](Self::compacted) | `Compact` if it still does not fit, else `Send` |
/// | `Compact` | [`failed`](Self::failed) | `Send`, as it is; `Refused` if that was refused |
/// | `Send` | [`refused`](Self::refused) | `Compact`; `Send` if the refusal is doubted; `Refused` if no compaction helps |
///
/// After `Refused`, the request is the one that was sent first: what was compacted for its refusals
/// is taken back, so the host stores a view only once its request was accepted. The
/// [trigger](threadfold::auto) bounds the number of requests, and decides how far a refusal is
/// believed.
///
/// Other inputs change nothing. A request that needs no compaction and has no view is not
/// rewritten: [`request`](Self::request) is then `None`, and the host sends the original bytes.
///
/// ```
/// use threadfold::{ContextWindow, Message, Request, message::Timestamp};
/// use threadfold::auto::{AutoCompactor, AutoPolicy};
/// use threadfold_cli::relay::{Relay, RelayStep, View};
///
/// let policy = AutoPolicy { estimates_usage: true, ..AutoPolicy::default() };
/// let auto = AutoCompactor::new(policy)?;
/// let window = Some(ContextWindow::new(1_000));
/// let old = Message::assistant("A long story. ".repeat(300));
/// let request = Request::new(vec![Message::user("Tell me."), old, Message::user("And then?")]);
///
/// let mut relay = Relay::new(request, None, window, auto, Timestamp(1));
/// assert!(matches!(relay.step(), RelayStep::Compact { .. }));
/// // The host compacts, and stores the view.
/// let view = View::new(2, vec![Message::user("A story was told.")]);
/// relay.compacted(&view, Timestamp(2));
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
    /// The window of the model; `None` if it is unknown.
    window: Option<ContextWindow>,
    /// The trigger of the request's thread.
    auto: AutoCompactor,
    step: RelayStep,
    refused: Refused,
    /// The `max_output` to send, if it is not that of the request.
    max_output: Option<u64>,
    /// The number of first messages of the original request whose reasoning is left out, because the
    /// provider refused it.
    without_reasoning: usize,
    was_compacted: bool,
    /// Whether it was compacted since it was refused last.
    is_smaller: bool,
    /// The last output of the trigger that asked for no compaction.
    output: Option<Output>,
}

/// Whether the provider refused the request for its length.
#[derive(Clone, Debug, PartialEq)]
enum Refused {
    No,
    Yes {
        /// The view that was sent before the first refusal; `None` if that was the request itself.
        viewed_before: Option<Vec<Message>>,
    },
}

/// The next step of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RelayStep {
    /// Compact the messages that would be sent, and report the view or the failure.
    Compact {
        /// The reason.
        reason: CompactionReason,
        /// The maximum tokens of the messages after the compaction, by the counter of the
        /// trigger's ratio; `None` if the window is unknown.
        target: Option<u64>,
        /// The tokens of the messages up to which the compaction helps, by the same counter. Unread
        /// messages are cut only if they exceed it.
        limit: Option<u64>,
    },
    /// Send the request, and report a refusal for its length.
    Send,
    /// Pass the provider's refusal on to the agent: no compaction helps.
    Refused,
}

impl Relay {
    /// Returns the relay of a request, with the view that the host found for it, and the window of
    /// its model; `None` if that is unknown. `auto` is the trigger of the request's thread, which the
    /// relay has [until the end](Self::into_auto); `now` is compared only with earlier times that were
    /// passed to it.
    pub fn new(
        request: Request,
        view: Option<&View>,
        window: Option<ContextWindow>,
        mut auto: AutoCompactor,
        now: Timestamp,
    ) -> Self {
        auto.next_request();
        let mut relay = Self::sent(request, view, window, auto);
        relay.check(now);
        relay
    }

    /// Returns the relay of a request that was sent without asking the trigger, such as one that is
    /// certainly short, or that was dropped while it was sent. It waits for a refusal.
    ///
    /// ```
    /// use threadfold::{Message, Request, message::{ModelErrorKind, Timestamp}};
    /// use threadfold::auto::{AutoCompactor, AutoPolicy};
    /// use threadfold_cli::relay::{Relay, RelayStep};
    ///
    /// let auto = AutoCompactor::new(AutoPolicy::default())?;
    /// let old = Message::assistant("A long story. ".repeat(300));
    /// let request = Request::new(vec![Message::user("Tell me."), old, Message::user("And then?")]);
    /// let mut relay = Relay::sent(request, None, None, auto);
    /// let refusal = ModelErrorKind::Overflow { limit: Some(1_000), found: None, output: None };
    /// relay.refused(&refusal, Timestamp(1));
    /// assert!(matches!(relay.step(), RelayStep::Compact { .. }));
    /// # Ok::<(), threadfold::message::InvalidValue>(())
    /// ```
    pub fn sent(
        request: Request,
        view: Option<&View>,
        window: Option<ContextWindow>,
        auto: AutoCompactor,
    ) -> Self {
        let viewed = view.and_then(|view| view.of(&request.messages));
        Self {
            original: request,
            viewed,
            window,
            auto,
            step: RelayStep::Send,
            refused: Refused::No,
            max_output: None,
            without_reasoning: 0,
            was_compacted: false,
            is_smaller: false,
            output: None,
        }
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
        if !self.is_shortened() && !self.is_without_reasoning() {
            return None;
        }
        let mut request = self.original.clone();
        if let Some(messages) = self.viewed.clone() {
            request.messages = messages.into();
        }
        if self.is_without_reasoning() {
            let later = self.original.messages.len().saturating_sub(self.without_reasoning);
            let until = request.messages.len().saturating_sub(later);
            let marked = request.messages.iter().cloned().enumerate().map(|(at, message)| {
                if at < until && message.has_reasoning() { message.rewritten() } else { message }
            });
            request.messages = marked.collect::<Vec<_>>().into();
        }
        request.max_output = self.max_output.or(request.max_output);
        Some(request)
    }

    /// Whether the provider refused the request for its length.
    #[must_use]
    pub fn was_refused(&self) -> bool {
        self.refused != Refused::No
    }

    /// Why the request is not compacted although it is over the trigger or was refused, as one line
    /// with its sizes in tokens; `None` if it was compacted, or needs no compaction.
    #[must_use]
    pub fn why_not_compacted(&self) -> Option<String> {
        let about = |tokens: u64| format!("about {} tokens", thousands(tokens));
        Some(match self.output.as_ref() {
            Some(Output::Suspended { tokens, threshold }) => format!(
                "{} are over the trigger at {}, and compacting does not bring them below it",
                about(*tokens),
                thousands(*threshold)
            ),
            Some(Output::Paused { failures, .. }) => format!(
                "{}, and compaction pauses after {failures} failures in a row",
                about(self.counted())
            ),
            Some(Output::ShortAnswer { tokens, output, window }) => format!(
                "{} of a window of {} are in use, so the answer of up to {} may be cut short",
                about(*tokens),
                thousands(*window),
                thousands(*output)
            ),
            Some(Output::CannotFit { floor, tokens, limit }) => format!(
                "{} do not fit {}, and {} of them cannot be removed",
                about(*tokens),
                thousands(*limit),
                thousands(*floor)
            ),
            Some(Output::UnknownWindow) => format!(
                "{}, and the window of the model is not known: name it with --window",
                about(self.counted())
            ),
            Some(Output::SendAgain) if self.max_output.is_some() => format!(
                "{} are sent again with room for {} of answer, because they fit the window and \
                 exceed it only with the answer that was asked for",
                about(self.counted()),
                thousands(self.max_output.unwrap_or_default())
            ),
            Some(Output::SendAgain) => format!(
                "{} were refused, although they should fit: they are sent again",
                about(self.counted())
            ),
            Some(Output::TakeBack) => "the request is refused whatever its size, so what was \
                compacted for it is taken back"
                .to_owned(),
            _ if self.was_compacted => return None,
            _ => {
                let tokens = self.counted();
                let threshold =
                    self.auto.threshold(self.pressure()).filter(|most| tokens >= *most)?;
                let why = match self.auto.policy().enabled {
                    true => "the trigger rests, because compacting did not help or failed before",
                    false => "the policy compacts only what does not fit",
                };
                format!("{} are over the trigger at {}: {why}", about(tokens), thousands(threshold))
            }
        })
    }

    /// The tokens of the request that would be sent now.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.auto.ratio().scale(self.estimate())
    }

    /// The same, or the provider's count if that is larger.
    fn counted(&self) -> u64 {
        self.pressure().calibrated(self.auto.ratio()).tokens()
    }

    /// The tokens that the view leaves out of the request.
    pub(crate) fn spared(&self) -> u64 {
        let Some(viewed) = &self.viewed else { return 0 };
        let ratio = self.auto.ratio();
        let counter = ratio.base();
        let whole = counter.messages(&self.original.messages);
        ratio.scale(whole.saturating_sub(counter.messages(viewed)))
    }

    /// The tokens of the request that would be sent now, by the counter of the trigger's ratio. Pass
    /// them to [`AutoCompactor::counted`] with the provider's count.
    #[must_use]
    pub fn estimate(&self) -> u64 {
        self.pressure().estimate()
    }

    /// Records that the request was sent again, to keep the provider's cache alive.
    pub(crate) fn kept_alive(&mut self, now: Timestamp) {
        self.auto.kept_alive(now);
    }

    /// The trigger, with what a refusal taught.
    #[must_use]
    pub fn auto(&self) -> &AutoCompactor {
        &self.auto
    }

    /// The trigger, for the next request of the thread.
    #[must_use]
    pub fn into_auto(self) -> AutoCompactor {
        self.auto
    }

    /// Takes the view of a compaction, which replaces the first messages. A view that does not fit
    /// the request counts as a failure.
    pub fn compacted(&mut self, view: &View, now: Timestamp) {
        let RelayStep::Compact { reason, .. } = self.step.clone() else { return };
        let Some(viewed) = view.of(&self.original.messages) else {
            return self.failed(now);
        };
        let _ = self.auto.handle(now, Input::Compacted { reason: reason.clone() });
        self.viewed = Some(viewed);
        (self.was_compacted, self.is_smaller) = (true, true);
        if reason == CompactionReason::Idle {
            // No request is about to be sent.
            self.step = RelayStep::Send;
        } else {
            self.check(now);
        }
    }

    /// Asks for a compaction while the agent is quiet, after
    /// [`AutoCompactor::idle`] decided for it, to the target of the policy. Without a known window
    /// nothing changes.
    ///
    /// ```
    /// use threadfold::{ContextWindow, Message, Request};
    /// use threadfold::auto::{AutoCompactor, AutoPolicy};
    /// use threadfold_cli::relay::{Relay, RelayStep};
    ///
    /// let auto = AutoCompactor::new(AutoPolicy::default())?;
    /// let window = Some(ContextWindow::new(10_000));
    /// let request = Request::new(vec![Message::user("Tell me a long story.")]);
    /// let mut relay = Relay::sent(request, None, window, auto);
    /// relay.compact_idle();
    /// assert!(matches!(relay.step(), RelayStep::Compact { target: Some(_), .. }));
    /// # Ok::<(), threadfold::message::InvalidValue>(())
    /// ```
    pub fn compact_idle(&mut self) {
        let Some(target) = self.auto.requested_target(self.pressure()) else { return };
        let (reason, target, limit) = (CompactionReason::Idle, Some(target), None);
        let output = Output::Compact { reason, target, limit };
        self.step = self.compaction(Some(output)).unwrap_or(RelayStep::Send);
    }

    /// Takes the failure of the compaction. Unless the provider refused the request as it is now, it
    /// is sent without the compaction, so that a failure of the proxy never becomes one of the agent.
    pub fn failed(&mut self, now: Timestamp) {
        let RelayStep::Compact { reason, .. } = &self.step else { return };
        let output = self.auto.handle(now, Input::Failed { reason: reason.clone() });
        self.output = output.or(self.output.take());
        match !self.was_refused() || self.is_smaller {
            true => self.step = RelayStep::Send,
            false => self.give_up(),
        }
    }

    /// Sends the request without the reasoning of so many of its first messages, as after a refusal of
    /// it. What was thought on these without it is still whole.
    pub(crate) fn leave_out_reasoning(&mut self, messages: usize) {
        self.without_reasoning = messages;
    }

    /// The number of the first messages whose reasoning is left out.
    pub(crate) fn without_reasoning(&self) -> usize {
        self.without_reasoning
    }

    /// Whether the request is sent without reasoning that it came with.
    #[must_use]
    pub fn is_without_reasoning(&self) -> bool {
        self.without_reasoning > 0
    }

    /// Whether the request is sent with a view, or with less room for its answer.
    pub(crate) fn is_shortened(&self) -> bool {
        self.viewed.is_some() || self.max_output.is_some()
    }

    /// Takes a refusal of the provider. A refusal for the length leads to a compaction. Reasoning that
    /// is bound to other messages, such as those of a view that was lost, is left out: then the
    /// [step](Self::step) is to send the request again.
    ///
    /// ```
    /// use threadfold::message::{ModelErrorKind, Thinking, Timestamp};
    /// use threadfold::{ContentBlock, Message, Request, Role};
    /// use threadfold::auto::AutoCompactor;
    /// use threadfold_cli::relay::{Relay, RelayStep};
    ///
    /// let thought = Thinking::new("Hm.", Some("signed".into())).into();
    /// let answer = Message::new(Role::Assistant, vec![thought, ContentBlock::text("Well.")]);
    /// let request = Request::new(vec![Message::user("Is it?"), answer, Message::user("And now?")]);
    /// let mut relay = Relay::sent(request, None, None, AutoCompactor::default());
    /// relay.refused(&ModelErrorKind::VoidReasoning, Timestamp(1));
    /// assert_eq!(relay.step(), &RelayStep::Send);
    /// assert!(relay.request().is_some_and(|request| request.messages[1].prefix_rewritten));
    /// relay.refused(&ModelErrorKind::VoidReasoning, Timestamp(2));
    /// assert_eq!(relay.step(), &RelayStep::Refused);
    /// ```
    pub fn refused(&mut self, error: &ModelErrorKind, now: Timestamp) {
        if self.step != RelayStep::Send {
            return;
        }
        let messages = self.original.messages.len();
        if *error == ModelErrorKind::VoidReasoning && self.without_reasoning < messages {
            return self.leave_out_reasoning(messages);
        }
        let Some(refusal) = Refusal::of(error) else { return self.give_up() };
        if self.refused == Refused::No {
            self.refused = Refused::Yes { viewed_before: self.viewed.clone() };
        }
        self.is_smaller = false;
        let pressure = self.pressure();
        let output = self.auto.handle(now, Input::Overflowed { pressure, refusal });
        match (&output, self.compaction(output.clone())) {
            (_, Some(step)) => self.step = step,
            (Some(Output::SendAgain), None) => {
                self.max_output = self.auto.max_output(self.pressure());
            }
            (_, None) => self.give_up(),
        }
    }

    /// Ends the request with the provider's refusal, and takes back what was compacted for it.
    fn give_up(&mut self) {
        self.step = RelayStep::Refused;
        if let Refused::Yes { viewed_before } = self.refused.clone() {
            self.viewed = viewed_before;
        }
    }

    /// Asks the trigger about the request that would be sent now.
    fn check(&mut self, now: Timestamp) {
        let output = self.auto.handle(now, Input::BeforeRequest(self.pressure()));
        // A request that no compaction makes fit is sent too, because only the provider knows its
        // window exactly.
        self.step = self.compaction(output).unwrap_or(RelayStep::Send);
        self.max_output = self.auto.max_output(self.pressure());
    }

    pub(crate) fn pressure(&self) -> Pressure {
        let counter = self.auto.ratio().base();
        let Request { system, tools, max_output, .. } = &self.original;
        let messages = self.viewed.as_deref().unwrap_or(&self.original.messages);
        Pressure {
            window: self.window,
            overhead: counter.messages(system).saturating_add(counter.tools(tools)),
            output: max_output.unwrap_or_default(),
            ..Pressure::of_messages(messages, &counter)
        }
    }

    /// The step for an output that asks for a compaction. Any other output is kept for the host.
    fn compaction(&mut self, output: Option<Output>) -> Option<RelayStep> {
        let output = output?;
        if let Output::Compact { reason, target, limit } = output {
            self.output = None;
            let own = |tokens: Option<u64>| tokens.map(|it| self.auto.ratio().unscale(it));
            return Some(RelayStep::Compact { reason, target: own(target), limit: own(limit) });
        }
        self.output = Some(output);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use threadfold::{ContentBlock, Role, message::Thinking};

    #[test]
    fn what_was_thought_after_refused_reasoning_is_sent_with_a_view_too() {
        let thought = |text: &str| {
            let thought = Thinking::new("Hm.", Some("signed".into())).into();
            Message::new(Role::Assistant, vec![thought, ContentBlock::text(text)])
        };
        let asked = Message::user("And now?");
        let thread = [
            Message::user("Is it?"),
            thought("Yes."),
            asked.clone(),
            thought("No."),
            asked.clone(),
            thought("Perhaps."),
            asked,
        ];
        let view = View::new(3, vec![Message::user("It is asked."), thought("Yes.")]);
        let without = |view: Option<&View>, messages: usize| {
            let request = Request::new(thread.to_vec());
            let mut relay = Relay::sent(request, view, None, AutoCompactor::default());
            relay.leave_out_reasoning(messages);
            let request = relay.request().unwrap();
            let marks = request.messages.iter().filter(|message| message.role == Role::Assistant);
            marks.map(|message| message.prefix_rewritten).collect::<Vec<_>>()
        };
        assert_eq!(without(None, 5), [true, true, false]);
        assert_eq!(without(Some(&view), 5), [true, true, false]);
        assert_eq!(without(Some(&view), 3), [true, false, false]);
    }
}
