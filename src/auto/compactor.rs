//! Decides when to compact: the soft trigger, and the hard check before every request.

use super::{
    breaker::Breaker,
    cost::Planner,
    policy::{AutoPolicy, Goal},
    pressure::{Learned, Pressure},
    trigger::{Level, Reading, Signal, Trigger},
};
use crate::message::{CompactionReason, ContextWindow, InvalidValue, Text, Timestamp};

/// The last attempt of a turn compacts to the usual target divided by this, because another refusal
/// would end the turn.
const LAST_TRY: u64 = 64;

/// The minimum number of tokens above the floor that the last attempt keeps: enough for a summary
/// of one line.
const SUMMARY_LINE: u64 = 100;

/// Decides when to compact. See the [module](super) for the two checks.
#[derive(Clone, Debug)]
pub struct AutoCompactor {
    policy: AutoPolicy,
    trigger: Trigger,
    breaker: Breaker,
    request: NextRequest,
    learned: Learned,
    /// Whether the notice about the unknown window was given.
    announced: bool,
    /// Decides whether a compaction pays, if the policy has prices.
    planner: Planner,
    /// The window of the last request, to notice a smaller model.
    window: Option<ContextWindow>,
}

/// The next request, and the attempts to make room for it.
///
/// | input | next state | output |
/// |---|---|---|
/// | before a request, after one that was sent: it was answered | nothing tried; then as below | as below |
/// | before a request that fits | sent | the soft trigger's |
/// | before a request that does not fit | not sent, forced once more | compact, or cannot fit |
/// | refused as too long | not sent, refused once more | compact, or cannot fit |
/// | the turn ended | not sent, nothing tried | |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct NextRequest {
    /// Number of compactions that were tried because the request did not fit.
    forced: u32,
    /// Number of compactions that were tried because the provider refused it.
    refused: u32,
    /// The estimated tokens of the request, once it was sent. The provider has not answered or
    /// refused it yet.
    sent: Option<u64>,
}

/// An event that the machine reacts to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Input {
    /// A prompt is about to be appended and sent.
    BeforeSend(Pressure),
    /// Tool results were appended, and the next request is about to be sent.
    BeforeContinue(Pressure),
    /// A turn ended: with an answer, with an error, or because it was aborted. The counts of
    /// attempts start anew.
    TurnEnded(Pressure),
    /// The provider refused the request as too long.
    Overflowed {
        /// How full the context is.
        pressure: Pressure,
        /// The window in tokens, if the refusal states it.
        limit: Option<u64>,
        /// The tokens that the provider reserves for the answer, if the refusal states them.
        output: Option<u64>,
    },
    /// The user, the host or the agent requested a compaction.
    Requested {
        /// The focus of the summary.
        focus: Option<Text>,
        /// How full the context is.
        pressure: Pressure,
    },
    /// A compaction was carried out.
    Compacted {
        /// The reason of the compaction.
        reason: CompactionReason,
    },
    /// A compaction failed or was cancelled.
    Failed {
        /// The reason of the compaction.
        reason: CompactionReason,
    },
}

/// The next action of the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Output {
    /// Compact now, before anything is sent.
    Compact {
        /// The reason of the compaction.
        reason: CompactionReason,
        /// The size that the thread should have afterwards, in tokens: the policy's target, or more
        /// if that cannot be reached. `None` if the window is unknown.
        target: Option<u64>,
        /// The largest size of the compacted thread, in tokens, that still helps: with a larger
        /// one, the request does not fit or the trigger fires again at once. `None` if any
        /// reduction helps.
        limit: Option<u64>,
    },
    /// Tell the user that the soft trigger is suspended, for one of two reasons. If two compactions
    /// in a row left the context over the threshold, the trigger waits until the context is under
    /// the threshold for another reason, or the user compacts. If the part that no compaction can
    /// remove exceeds the threshold by itself, the trigger waits until that part is smaller.
    Suspended {
        /// The tokens of the next request.
        tokens: u64,
        /// The tokens at which the trigger fires.
        threshold: u64,
    },
    /// Tell the user that the soft trigger pauses, because too many compactions failed in a row.
    Paused {
        /// The number of failures.
        failures: u32,
        /// When the pause ends.
        until: Timestamp,
    },
    /// Tell the user that the window of the model is unknown. The soft trigger does not fire until
    /// the host sets a window or a refusal of the provider states one.
    UnknownWindow,
    /// The request cannot be sent, and no compaction helps.
    CannotFit {
        /// The tokens of the smallest possible request: system prompt, tools, the text that the
        /// user typed last, and messages that are appended before the request.
        floor: u64,
        /// The tokens of the request.
        tokens: u64,
        /// The tokens that fit the window.
        limit: u64,
    },
}

impl AutoCompactor {
    /// Returns a machine that follows this policy.
    ///
    /// ```
    /// use threadfold::auto::{AutoCompactor, AutoPolicy, Threshold};
    ///
    /// let policy = AutoPolicy { threshold: Threshold::Fraction(80.0), ..AutoPolicy::default() };
    /// let error = AutoCompactor::new(policy).unwrap_err();
    /// assert_eq!(error.to_string(), "\"80\" is not a share of the window; expected a number from 0 to 1");
    /// ```
    ///
    /// # Errors
    ///
    /// As [`AutoPolicy::check`].
    pub fn new(policy: AutoPolicy) -> Result<Self, InvalidValue> {
        policy.check()?;
        Ok(Self {
            policy,
            trigger: Trigger::Armed { misses: 0 },
            breaker: Breaker::default(),
            request: NextRequest::default(),
            learned: Learned::default(),
            announced: false,
            planner: Planner::default(),
            window: None,
        })
    }

    /// The policy.
    #[must_use]
    pub fn policy(&self) -> &AutoPolicy {
        &self.policy
    }

    /// Follows another policy from now on. Limits learnt from refusals and the attempts for the
    /// next request stay.
    ///
    /// ```
    /// use threadfold::auto::{AutoCompactor, AutoPolicy};
    ///
    /// let mut auto = AutoCompactor::new(AutoPolicy::default())?;
    /// auto.set_policy(AutoPolicy { enabled: false, ..AutoPolicy::default() })?;
    /// assert!(!auto.policy().enabled);
    /// # Ok::<(), threadfold::message::InvalidValue>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`AutoPolicy::check`]. The policy is then unchanged.
    pub fn set_policy(&mut self, policy: AutoPolicy) -> Result<(), InvalidValue> {
        policy.check()?;
        (self.policy, self.breaker) = (policy, Breaker::default());
        Ok(())
    }

    /// Drops the limits learnt from refusals: they hold for the model that refused.
    pub fn model_changed(&mut self) {
        (self.learned, self.announced) = (Learned::default(), false);
    }

    /// The window of the model: the smaller of the host's window and the one that a
    /// refusal stated. The stated one is forgotten when the provider answers a longer request.
    ///
    /// ```
    /// use threadfold::{
    ///     ContextWindow,
    ///     auto::{AutoCompactor, AutoPolicy, Input, Pressure},
    ///     message::Timestamp,
    /// };
    ///
    /// let mut auto = AutoCompactor::new(AutoPolicy::default())?;
    /// assert_eq!(auto.window(None), None);
    /// let pressure = Pressure { thread: 9_000, ..Pressure::default() };
    /// let refusal = Input::Overflowed { pressure, limit: Some(8_000), output: None };
    /// auto.handle(Timestamp(0), refusal);
    /// assert_eq!(auto.window(None), Some(ContextWindow::new(8_000)));
    /// # Ok::<(), threadfold::message::InvalidValue>(())
    /// ```
    #[must_use]
    pub fn window(&self, host: Option<ContextWindow>) -> Option<ContextWindow> {
        self.learned.window(host)
    }

    /// Takes an event and returns what the driver does next, if anything. After
    /// [`Output::Compact`], the driver passes [`Input::Compacted`] or [`Input::Failed`]; a
    /// cancelled compaction counts as failed.
    ///
    /// ```
    /// use threadfold::auto::{AutoCompactor, AutoPolicy, Input, Output, Pressure};
    /// use threadfold::{ContextWindow, message::{CompactionReason::Threshold, Timestamp}};
    ///
    /// let mut auto = AutoCompactor::new(AutoPolicy::default())?;
    /// let window = Some(ContextWindow::new(1_000));
    /// let full = Pressure { window, reported: Some(850), thread: 850, ..Pressure::default() };
    /// let output = auto.handle(Timestamp(0), Input::BeforeSend(full));
    /// let compact = Output::Compact { reason: Threshold, target: Some(500), limit: Some(799) };
    /// assert_eq!(output, Some(compact));
    /// assert_eq!(auto.handle(Timestamp(1), Input::Compacted { reason: Threshold }), None);
    /// let half = Pressure { reported: Some(500), thread: 500, ..full };
    /// assert_eq!(auto.handle(Timestamp(2), Input::BeforeSend(half)), None);
    /// # Ok::<(), threadfold::message::InvalidValue>(())
    /// ```
    pub fn handle(&mut self, now: Timestamp, input: Input) -> Option<Output> {
        match input {
            Input::BeforeSend(pressure) | Input::BeforeContinue(pressure) => {
                let output = self.before_request(now, pressure);
                self.planner.sent(now, &self.policy, &self.learned.known(pressure));
                output
            }
            Input::TurnEnded(pressure) => self.turn_ended(now, pressure),
            Input::Overflowed { pressure, limit, output } => {
                Some(self.overflowed(pressure, limit, output))
            }
            Input::Requested { focus, pressure } => {
                let target = self.requested_target(pressure);
                let reason = CompactionReason::Manual { focus };
                Some(Output::Compact { reason, target, limit: None })
            }
            Input::Compacted { reason } => {
                self.breaker = Breaker::default();
                self.planner.compacted();
                self.trigger = self.trigger.compacted(now, reason.is_manual());
                None
            }
            Input::Failed { reason } => self.failed(now, &reason),
        }
    }

    /// The target, in tokens, of a compaction that the user, the host or the agent requests.
    pub(crate) fn requested_target(&self, pressure: Pressure) -> Option<u64> {
        let pressure = self.learned.known(pressure);
        let room = self.policy.room(&pressure)?;
        Some(self.policy.goal(&pressure, room).target)
    }

    /// The hard check, then the soft trigger.
    fn before_request(&mut self, now: Timestamp, pressure: Pressure) -> Option<Output> {
        let switched = self.switches_to(pressure.window);
        self.answered(&pressure);
        let (pressure, host_limit) = self.known(pressure);
        // If the previous request was sent, it was answered, so the attempts start anew.
        let next = match self.request.sent {
            Some(_) => NextRequest::default(),
            None => self.request,
        };
        let (ahead, needed) = match switched {
            true => (CompactionReason::ModelSwitch, CompactionReason::ModelSwitch),
            false => (CompactionReason::Threshold, CompactionReason::Overflow),
        };
        let sent = NextRequest { sent: Some(pressure.estimate()), ..next };
        let Some(limit) = self.policy.room(&pressure) else {
            self.request = sent;
            let announced = std::mem::replace(&mut self.announced, true);
            return (!announced).then_some(Output::UnknownWindow);
        };
        let fits = pressure.tokens() <= limit;
        if fits || self.sends_anyway(now, &pressure, limit, next, host_limit) {
            self.request = sent;
            return fits.then(|| self.soft(now, &pressure, ahead, true)).flatten();
        }
        self.request = NextRequest { forced: next.forced.saturating_add(1), ..next };
        // A limit that is known only from refusals may be wrong. If no compaction can reach it, any
        // smaller request may still be accepted.
        let smaller = pressure.tokens().saturating_sub(1).min(host_limit);
        let is_doubtful = next.forced > 0 || is_doubtful(&pressure, limit, host_limit);
        let limit = if is_doubtful { smaller } else { limit };
        Some(self.hard(&pressure, limit, next.forced, needed))
    }

    /// Whether to send a request although it seems too long, because its size or the limit is
    /// doubtful and no compaction helps. If the number is right, the provider refuses the request;
    /// if it is wrong, the thread can continue.
    fn sends_anyway(
        &self,
        now: Timestamp,
        pressure: &Pressure,
        limit: u64,
        next: NextRequest,
        host_limit: u64,
    ) -> bool {
        let tried = next.forced >= self.policy.max_reactive;
        // The estimate fits, and compactions do not reduce the provider's count.
        let is_paused = self.breaker.paused_until(&self.policy, now).is_some();
        let fits_by_estimate = (tried || is_paused) && (1..=limit).contains(&pressure.estimate());
        // The limit is known only from refusals, so one request in each turn tests it.
        let nothing_removable = next.forced > 0 || pressure.floor() >= pressure.tokens();
        let hopeless = tried || (nothing_removable && pressure.floor() > limit);
        fits_by_estimate || (next.refused == 0 && hopeless && pressure.tokens() <= host_limit)
    }

    /// The pressure, corrected by the learnt limits, and the tokens that fit the host's window.
    fn known(&self, pressure: Pressure) -> (Pressure, u64) {
        let known = self.learned.known(pressure);
        let host = Pressure { window: pressure.window, ..known };
        (known, self.policy.room(&host).unwrap_or(u64::MAX))
    }

    /// Whether this window is smaller than that of the previous request.
    fn switches_to(&mut self, window: Option<ContextWindow>) -> bool {
        let Some(window) = window else { return false };
        self.window.replace(window).is_some_and(|before| window < before)
    }

    fn turn_ended(&mut self, now: Timestamp, pressure: Pressure) -> Option<Output> {
        self.answered(&pressure);
        let pressure = self.learned.known(pressure);
        self.request = NextRequest::default();
        self.soft(now, &pressure, CompactionReason::Threshold, self.policy.after_turn)
    }

    /// Records that the last request was answered, if the thread has grown since it was sent.
    fn answered(&mut self, pressure: &Pressure) {
        self.learned.answered(pressure);
        if let Some(tokens) = self.request.sent
            && pressure.estimate() > tokens
        {
            self.learned.held(tokens.saturating_add(self.policy.reserve(pressure)));
        }
    }

    /// Makes room after a refusal. It learns the limit that the provider stated or, if it stated
    /// none, the size that it refused.
    fn overflowed(
        &mut self,
        pressure: Pressure,
        limit: Option<u64>,
        output: Option<u64>,
    ) -> Output {
        let before = self.learned.known(pressure);
        let too_long = before.tokens().saturating_sub(1);
        let at_most = too_long.saturating_add(self.policy.reserve(&before));
        self.learned.refused(&pressure, limit, output, at_most);
        let (pressure, host_limit) = self.known(pressure);
        // A request of this size was just refused, so the limit is below it even if the window is
        // larger.
        let room = self.policy.room(&pressure);
        let room = room.filter(|room| !is_doubtful(&pressure, *room, host_limit));
        let limit = room.map_or(too_long, |room| room.min(too_long));
        let NextRequest { forced, refused, sent: _ } = self.request;
        self.request = NextRequest { forced, refused: refused.saturating_add(1), sent: None };
        let mut output = self.hard(&pressure, limit, refused, CompactionReason::Overflow);
        // On the last attempt, make the target very small, because the true limit is unknown.
        let is_last = refused > 0 && refused.saturating_add(1) >= self.policy.max_reactive;
        if let Output::Compact { target: Some(target), .. } = &mut output
            && is_last
        {
            let floor = pressure.of_thread(pressure.floor());
            let room = target.saturating_sub(floor);
            *target = floor.saturating_add((room / LAST_TRY).max(room.min(SUMMARY_LINE)));
        }
        output
    }

    /// Requests a compaction of a thread that does not fit, unless that cannot help or was tried
    /// often enough.
    fn hard(
        &self,
        pressure: &Pressure,
        limit: u64,
        tries: u32,
        reason: CompactionReason,
    ) -> Output {
        let floor = pressure.floor();
        if floor > limit || tries >= self.policy.max_reactive {
            return Output::CannotFit { floor, tokens: pressure.tokens(), limit };
        }
        let Goal { target, .. } = self.policy.goal(pressure, limit);
        let limit = Some(pressure.of_thread(limit));
        Output::Compact { reason, target: Some(target), limit }
    }

    /// Passes the pressure to the soft trigger and returns the output for its signal.
    fn soft(
        &mut self,
        now: Timestamp,
        pressure: &Pressure,
        reason: CompactionReason,
        may_fire: bool,
    ) -> Option<Output> {
        let reading = self.reading(now, pressure);
        let may_fire = may_fire && reading.may_fire;
        let (next, signal) = self.trigger.read(&Reading { may_fire, ..reading });
        self.trigger = next;
        match signal {
            Signal::Nothing => None,
            Signal::Fire => {
                let Goal { target, limit } =
                    self.policy.goal(pressure, self.policy.room(pressure)?);
                Some(Output::Compact { reason, target: Some(target), limit: Some(limit) })
            }
            // A disabled trigger never fires, so report no suspension.
            Signal::Rest => self.policy.enabled.then(|| {
                let threshold = self.policy.level(pressure).unwrap_or(u64::MAX);
                Output::Suspended { tokens: pressure.tokens(), threshold }
            }),
        }
    }

    fn reading(&self, now: Timestamp, pressure: &Pressure) -> Reading {
        let level = match (self.policy.is_over(pressure), self.policy.is_hopeless(pressure)) {
            (true, true) => Level::Hopeless,
            (over, _) if self.planner.fires(over, &self.policy, pressure, now) => Level::Over,
            (..) => Level::Under,
        };
        Reading {
            now,
            tokens: pressure.tokens(),
            level,
            counted: pressure.reported.is_some() || self.policy.estimates(),
            may_fire: self.policy.enabled && self.breaker.paused_until(&self.policy, now).is_none(),
            cooldown_ms: self.policy.cooldown_ms,
            growth: self.policy.growth(pressure),
        }
    }

    fn failed(&mut self, now: Timestamp, reason: &CompactionReason) -> Option<Output> {
        self.trigger = self.trigger.failed();
        if reason.is_manual() {
            return None;
        }
        self.breaker.failed(&self.policy, now);
        let until = self.breaker.paused_until(&self.policy, now)?;
        Some(Output::Paused { failures: self.breaker.failures, until })
    }
}

/// Whether a limit is known only from refusals and no request fits it: the smallest request exceeds
/// it, but not the limit of the host's window.
fn is_doubtful(pressure: &Pressure, limit: u64, host_limit: u64) -> bool {
    pressure.floor() > limit && pressure.floor() <= host_limit
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auto::Threshold;

    // `testdata/auto` has the cases that need only inputs and outputs.

    const WINDOW: u64 = 200_000;

    fn machine(policy: AutoPolicy) -> AutoCompactor {
        AutoCompactor::new(policy).unwrap()
    }

    fn reported(tokens: u64) -> Pressure {
        let window = Some(ContextWindow::new(WINDOW));
        Pressure { window, reported: Some(tokens), newest: 100, ..Pressure::default() }
    }

    fn refusal(pressure: Pressure, limit: Option<u64>) -> Input {
        Input::Overflowed { pressure, limit, output: None }
    }

    #[test]
    fn a_stated_limit_is_forgotten_once_a_longer_request_was_answered() {
        let mut auto = machine(AutoPolicy::default());
        let window = |auto: &AutoCompactor| auto.window(Some(ContextWindow::new(WINDOW)));
        auto.handle(Timestamp(0), refusal(reported(90_000), Some(50_000)));
        assert_eq!(window(&auto), Some(ContextWindow::new(50_000)));
        auto.handle(Timestamp(1), Input::TurnEnded(reported(50_001)));
        assert_eq!(window(&auto), Some(ContextWindow::new(WINDOW)));
    }

    #[test]
    fn what_refusals_taught_belongs_to_the_model_that_refused() {
        let mut auto = machine(AutoPolicy::default());
        let unnamed = Pressure { window: None, ..reported(10) };
        let notice = Some(Output::UnknownWindow);
        assert_eq!(auto.handle(Timestamp(0), Input::BeforeSend(unnamed)), notice);
        assert_eq!(auto.handle(Timestamp(0), Input::BeforeSend(unnamed)), None, "said once");
        auto.handle(Timestamp(0), refusal(reported(90_000), Some(50_000)));
        auto.model_changed();
        assert_eq!(auto.window(None), None);
        assert_eq!(auto.handle(Timestamp(1), Input::BeforeSend(unnamed)), notice);
    }

    #[test]
    fn the_last_of_several_tries_after_refusals_leaves_little() {
        let small = 100 + (74_999 - 100) / LAST_TRY;
        let rows: [(u32, &[u64]); 3] =
            [(1, &[74_999]), (2, &[74_999, small]), (3, &[74_999, 74_999, small])];
        for (max_reactive, expected) in rows {
            let mut auto = machine(AutoPolicy { max_reactive, ..AutoPolicy::default() });
            let refused = refusal(reported(150_000), None);
            let target = |output| match output {
                Some(Output::Compact { target, .. }) => target,
                _ => None,
            };
            let targets: Vec<u64> =
                (0..4).map_while(|_| target(auto.handle(Timestamp(0), refused.clone()))).collect();
            assert_eq!(targets, expected, "{max_reactive} tries");
        }
    }

    #[test]
    fn sizes_that_were_refused_are_forgotten_once_a_longer_request_was_answered() {
        let mut auto = machine(AutoPolicy::default());
        let pressure = |thread| Pressure { window: None, newest: thread, thread, ..reported(0) };
        let window = |auto: &AutoCompactor| auto.window(None).map(ContextWindow::tokens);
        for size in [9_000, 900] {
            auto.handle(Timestamp(0), refusal(pressure(size), None));
            auto.handle(Timestamp(1), Input::TurnEnded(pressure(size)));
            assert_eq!(window(&auto), Some(size - 1));
        }
        // The request is sent, because nothing makes it smaller, and gets no answer.
        assert_eq!(auto.handle(Timestamp(2), Input::BeforeContinue(pressure(1_000))), None);
        auto.handle(Timestamp(3), Input::TurnEnded(pressure(1_000)));
        assert_eq!(window(&auto), Some(899));
        // It is sent again, and answered.
        assert_eq!(auto.handle(Timestamp(4), Input::BeforeContinue(pressure(1_000))), None);
        auto.handle(Timestamp(5), Input::TurnEnded(pressure(1_001)));
        assert_eq!(window(&auto), Some(8_999), "what was longer still holds");
    }

    #[test]
    fn a_share_that_is_none_is_refused() {
        for found in [80.0, -0.1, f64::NAN] {
            let threshold = Threshold::Fraction(found);
            let policy = AutoPolicy { threshold, ..AutoPolicy::default() };
            assert!(AutoCompactor::new(policy).is_err());
            let target = Threshold::Fraction(found);
            assert!(AutoPolicy { target, ..AutoPolicy::default() }.check().is_err());
        }
    }

    #[test]
    fn a_size_that_was_refused_is_the_window_if_no_other_is_known() {
        let mut auto = machine(AutoPolicy::default());
        let unknown = Pressure { window: None, thread: 60_000, ..reported(60_000) };
        auto.handle(Timestamp(0), refusal(unknown, None));
        assert_eq!(auto.window(None), Some(ContextWindow::new(59_999)));
    }
}
