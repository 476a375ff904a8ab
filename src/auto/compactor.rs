//! The machine that says when.

use super::{
    policy::{Aim, AutoPolicy, PolicyError},
    pressure::Pressure,
};
use crate::{
    message::{CompactionReason, ContextWindow, Text, Timestamp},
    strategy::{Breaker, BreakerOptions},
};

/// After so many compactions that did not bring the context under the threshold the soft trigger is
/// suspended.
const MAX_INEFFECTIVE: u32 = 2;

/// Says when to compact. See the [module](super) for the two checks.
#[derive(Clone, Debug)]
pub struct AutoCompactor {
    policy: AutoPolicy,
    breaker: Breaker,
    /// Whether the context was under the threshold since the trigger fired last.
    armed: bool,
    /// Whether a compaction waits for the count that shows what it did.
    unjudged: bool,
    ineffective: u32,
    suspended: bool,
    /// Whether it was said that what no compaction can take is over the threshold by itself.
    overgrown: bool,
    succeeded_at: Option<Timestamp>,
    /// Whether the last compaction came to nothing.
    missed: bool,
    /// Whether the last request was let through, and nobody said since that it was refused.
    let_through: bool,
    /// Compactions for the request that does not fit, since one was let through.
    forced: u32,
    /// Compactions for the request at work, after refusals of the provider.
    refused: u32,
    /// What a provider said its window is, and what it was thought to be then.
    stated: Option<(ContextWindow, Option<ContextWindow>)>,
    window: Option<ContextWindow>,
}

/// What the machine is told.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Input {
    /// A prompt is about to be appended and sent.
    BeforeSend(Pressure),
    /// Tool results were appended, and the agent is about to go on.
    BeforeContinue(Pressure),
    /// A turn is over, however it ended: with an answer, an error, or by the user's wish. A new one
    /// has all its tries again.
    TurnEnded(Pressure),
    /// The provider refused the request as too long.
    Overflowed {
        /// How full the context is.
        pressure: Pressure,
        /// The window, where the provider said.
        limit: Option<u64>,
    },
    /// A person asked for a compaction.
    Requested {
        /// What the summary should attend to.
        focus: Option<Text>,
        /// How full the context is.
        pressure: Pressure,
    },
    /// A compaction was carried out.
    Compacted {
        /// Why.
        reason: CompactionReason,
    },
    /// A compaction came to nothing.
    Failed {
        /// Why it was tried.
        reason: CompactionReason,
    },
}

/// What the machine says.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Output {
    /// Compact now, before anything is sent.
    Compact {
        /// Why.
        reason: CompactionReason,
        /// The most tokens that the thread should have afterwards, where it is known what fits: the
        /// policy's target, or more where that is out of reach or was missed.
        target: Option<u64>,
    },
    /// Tell whoever watches.
    Notify(Notice),
    /// The request cannot be sent, and no compaction helps.
    CannotFit {
        /// What the smallest request would have: system prompt, tools, newest turn, what comes.
        floor: u64,
        /// What the request has as it is.
        tokens: u64,
        /// What fits.
        limit: u64,
    },
}

/// Why the soft trigger rests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// Compactions did not bring the context under the threshold; or what no compaction can take
    /// is over it by itself. It rests until the context is under the threshold for another reason,
    /// or a person compacts; in the latter case, until that part is smaller.
    Suspended {
        /// What the next request has.
        tokens: u64,
        /// From where on the trigger fires.
        threshold: u64,
    },
    /// There were too many failures in a row.
    Paused {
        /// How many.
        failures: u32,
        /// Until when.
        until: Timestamp,
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
    /// assert_eq!(error.to_string(), "a share of the window is between 0 and 1, not 80");
    /// ```
    ///
    /// # Errors
    ///
    /// As [`AutoPolicy::check`].
    pub fn new(policy: AutoPolicy) -> Result<Self, PolicyError> {
        policy.check()?;
        let longest = BreakerOptions::default().max_pause_ms;
        let options = BreakerOptions {
            max_failures: policy.max_consecutive_failures,
            pause_ms: policy.failure_pause_ms,
            max_pause_ms: longest.max(policy.failure_pause_ms),
        };
        Ok(Self {
            policy,
            breaker: Breaker::new(options),
            armed: true,
            unjudged: false,
            ineffective: 0,
            suspended: false,
            overgrown: false,
            succeeded_at: None,
            missed: false,
            let_through: false,
            forced: 0,
            refused: 0,
            stated: None,
            window: None,
        })
    }

    /// The policy.
    #[must_use]
    pub fn policy(&self) -> &AutoPolicy {
        &self.policy
    }

    /// The window of the model: the one that it is thought to have, or what its provider said in a
    /// refusal of a request to it where that is less.
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
    /// auto.handle(Timestamp(0), Input::Overflowed { pressure, limit: Some(8_000) });
    /// assert_eq!(auto.window(None), Some(ContextWindow::new(8_000)));
    /// # Ok::<(), threadfold::auto::PolicyError>(())
    /// ```
    #[must_use]
    pub fn window(&self, thought: Option<ContextWindow>) -> Option<ContextWindow> {
        let stated = self.stated.filter(|(_, of)| *of == thought).map(|(window, _)| window);
        let thought = thought.filter(|window| window.tokens() > 0);
        [thought, stated].into_iter().flatten().min()
    }

    /// Takes what happened and says what to do, if anything. What it says to compact is answered
    /// with [`Input::Compacted`] or [`Input::Failed`], the latter also where it was cancelled.
    ///
    /// ```
    /// use threadfold::auto::{AutoCompactor, AutoPolicy, Input, Output, Pressure};
    /// use threadfold::{ContextWindow, message::{CompactionReason::Threshold, Timestamp}};
    ///
    /// let mut auto = AutoCompactor::new(AutoPolicy::default())?;
    /// let window = Some(ContextWindow::new(1_000));
    /// let full = Pressure { window, reported: Some(850), thread: 850, ..Pressure::default() };
    /// let output = auto.handle(Timestamp(0), Input::BeforeSend(full));
    /// assert_eq!(output, Some(Output::Compact { reason: Threshold, target: Some(500) }));
    /// assert_eq!(auto.handle(Timestamp(1), Input::Compacted { reason: Threshold }), None);
    /// let half = Pressure { reported: Some(500), thread: 500, ..full };
    /// assert_eq!(auto.handle(Timestamp(2), Input::BeforeSend(half)), None);
    /// # Ok::<(), threadfold::auto::PolicyError>(())
    /// ```
    pub fn handle(&mut self, now: Timestamp, input: Input) -> Option<Output> {
        match input {
            Input::BeforeSend(pressure) | Input::BeforeContinue(pressure) => {
                // The request before this one was answered, so there is progress.
                if std::mem::take(&mut self.let_through) {
                    (self.forced, self.refused) = (0, 0);
                }
                self.before_request(now, pressure)
            }
            Input::TurnEnded(pressure) => self.turn_ended(now, pressure),
            Input::Overflowed { pressure, limit } => self.overflowed(pressure, limit),
            Input::Requested { focus, pressure } => {
                let pressure = self.known(pressure);
                let room = self.policy.room(&pressure);
                let target = room.map(|room| self.policy.target(&pressure, room, Aim::Wanted));
                Some(Output::Compact { reason: CompactionReason::Manual { focus }, target })
            }
            Input::Compacted { reason } => {
                self.compacted(now, &reason);
                None
            }
            Input::Failed { reason } => self.failed(now, &reason),
        }
    }

    /// The hard check, then the soft trigger.
    fn before_request(&mut self, now: Timestamp, pressure: Pressure) -> Option<Output> {
        let switched = self.switches_to(pressure.window);
        let pressure = self.known(pressure);
        let limit = self.policy.room(&pressure);
        // Whatever becomes of a compaction ahead of need, the request goes out behind it.
        self.let_through = limit.is_none_or(|limit| pressure.tokens() <= limit);
        let limit = limit?;
        if pressure.tokens() > limit {
            if self.doubts(now, &pressure, limit) {
                self.let_through = true;
                return None;
            }
            let reason =
                if switched { CompactionReason::ModelSwitch } else { CompactionReason::Overflow };
            let tries = self.forced;
            self.forced = tries.saturating_add(1);
            return Some(self.react(&pressure, limit, tries, reason));
        }
        let reason =
            if switched { CompactionReason::ModelSwitch } else { CompactionReason::Threshold };
        self.trigger(now, &pressure, reason)
    }

    /// Whether only the count says that the request is too long, and trying has not helped. It goes
    /// out then: if it is too long the provider says so, and a wrong count must not end a thread.
    fn doubts(&self, now: Timestamp, pressure: &Pressure, limit: u64) -> bool {
        let tried = self.forced >= self.policy.max_reactive || !self.breaker.allows(now);
        tried && (1..=limit).contains(&pressure.estimate())
    }

    /// Whether this window is smaller than that of the request before.
    fn switches_to(&mut self, window: Option<ContextWindow>) -> bool {
        let Some(window) = window else { return false };
        self.window.replace(window).is_some_and(|before| window < before)
    }

    fn turn_ended(&mut self, now: Timestamp, pressure: Pressure) -> Option<Output> {
        let pressure = self.known(pressure);
        (self.forced, self.refused, self.let_through) = (0, 0, false);
        if self.policy.after_turn {
            return self.trigger(now, &pressure, CompactionReason::Threshold);
        }
        self.judge(&pressure, self.policy.is_over(&pressure))
    }

    fn overflowed(&mut self, pressure: Pressure, limit: Option<u64>) -> Option<Output> {
        self.let_through = false;
        if let Some(limit) = limit.filter(|limit| *limit > 0).map(ContextWindow::new) {
            let known = self.known(pressure).window;
            self.stated = Some((known.map_or(limit, |known| known.min(limit)), pressure.window));
        }
        let pressure = self.known(pressure);
        // What was refused does not fit, whatever the window is thought to be.
        let refused = pressure.tokens().saturating_sub(1);
        let limit = self.policy.room(&pressure).map_or(refused, |room| room.min(refused));
        let tries = self.refused;
        self.refused = tries.saturating_add(1);
        Some(self.react(&pressure, limit, tries, CompactionReason::Overflow))
    }

    /// Compacts what does not fit, unless that cannot help or was tried often enough.
    fn react(
        &mut self,
        pressure: &Pressure,
        limit: u64,
        tries: u32,
        reason: CompactionReason,
    ) -> Output {
        let floor = pressure.floor();
        let most = self.policy.max_reactive;
        if floor > limit || tries >= most {
            return Output::CannotFit { floor, tokens: pressure.tokens(), limit };
        }
        self.armed = false;
        let aim = match self.missed {
            false => Aim::Wanted,
            true if tries.saturating_add(1) < most => Aim::Halfway,
            true => Aim::Fits,
        };
        Output::Compact { reason, target: Some(self.policy.target(pressure, limit, aim)) }
    }

    fn trigger(
        &mut self,
        now: Timestamp,
        pressure: &Pressure,
        reason: CompactionReason,
    ) -> Option<Output> {
        let is_over = self.policy.is_over(pressure);
        if let Some(notice) = self.judge(pressure, is_over) {
            return Some(notice);
        }
        let ready = self.policy.enabled && self.armed && !self.unjudged && !self.suspended;
        if !is_over || !ready || self.cools_down(now) || !self.breaker.allows(now) {
            return None;
        }
        if self.policy.is_hopeless(pressure) {
            // Said once. It is no verdict: the prompt that is newest now can be taken later.
            let said = std::mem::replace(&mut self.overgrown, true);
            return (!said).then(|| self.suspended(pressure));
        }
        self.overgrown = false;
        self.armed = false;
        let room = self.policy.room(pressure)?;
        let aim = if self.missed { Aim::Halfway } else { Aim::Wanted };
        Some(Output::Compact { reason, target: Some(self.policy.target(pressure, room, aim)) })
    }

    /// Looks at what the last compaction did, as soon as there is a count to go by.
    fn judge(&mut self, pressure: &Pressure, is_over: bool) -> Option<Output> {
        let counted = pressure.reported.is_some() || self.policy.estimates();
        if !is_over {
            self.armed = true;
            if counted {
                (self.overgrown, self.missed) = (false, false);
                (self.unjudged, self.ineffective, self.suspended) = (false, 0, false);
            }
            return None;
        }
        if !self.unjudged || !counted {
            return None;
        }
        (self.unjudged, self.armed) = (false, true);
        self.ineffective = self.ineffective.saturating_add(1);
        let enough = self.ineffective >= MAX_INEFFECTIVE && !self.suspended;
        self.suspended |= enough;
        // A trigger that is switched off rests in any case.
        (enough && self.policy.enabled).then(|| self.suspended(pressure))
    }

    fn suspended(&self, pressure: &Pressure) -> Output {
        let threshold = self.policy.level(pressure).unwrap_or(u64::MAX);
        Output::Notify(Notice::Suspended { tokens: pressure.tokens(), threshold })
    }

    fn compacted(&mut self, now: Timestamp, reason: &CompactionReason) {
        self.succeeded_at = Some(now);
        self.breaker.succeeded();
        (self.unjudged, self.missed) = (true, false);
        if matches!(reason, CompactionReason::Manual { .. }) {
            (self.ineffective, self.suspended) = (0, false);
        }
    }

    fn failed(&mut self, now: Timestamp, reason: &CompactionReason) -> Option<Output> {
        self.armed = true;
        if matches!(reason, CompactionReason::Manual { .. }) {
            return None;
        }
        self.missed = true;
        self.breaker.failed(now);
        let open = self.breaker.check(now).err()?;
        let (failures, until) = (open.failures, open.until);
        Some(Output::Notify(Notice::Paused { failures, until }))
    }

    /// A clock that was set back ends the cooldown: better early than never.
    fn cools_down(&self, now: Timestamp) -> bool {
        self.succeeded_at
            .is_some_and(|at| now >= at && now.0.saturating_sub(at.0) < self.policy.cooldown_ms)
    }

    /// The pressure with the window that the provider stated, if that is less, and without a count
    /// that cannot be right. What it stated of another window than this one says nothing.
    fn known(&self, pressure: Pressure) -> Pressure {
        Pressure { window: self.window(pressure.window), ..pressure }.believed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auto::{Target, Threshold, UnknownUsage};

    const WINDOW: u64 = 200_000;

    fn machine(policy: AutoPolicy) -> AutoCompactor {
        AutoCompactor::new(policy).unwrap()
    }

    fn reported(tokens: u64) -> Pressure {
        let window = Some(ContextWindow::new(WINDOW));
        Pressure { window, reported: Some(tokens), newest: 100, ..Pressure::default() }
    }

    /// What a fresh machine says before a request.
    fn fresh(policy: AutoPolicy, pressure: Pressure) -> Option<Output> {
        machine(policy).handle(Timestamp(0), Input::BeforeSend(pressure))
    }

    fn fires(policy: AutoPolicy, pressure: Pressure) -> bool {
        matches!(fresh(policy, pressure), Some(Output::Compact { .. }))
    }

    fn send(auto: &mut AutoCompactor, second: u64, tokens: u64) -> Option<Output> {
        auto.handle(Timestamp(second * 1_000), Input::BeforeSend(reported(tokens)))
    }

    fn compact(reason: CompactionReason) -> Option<Output> {
        Some(Output::Compact { reason, target: Some(WINDOW / 2) })
    }

    const THRESHOLD: CompactionReason = CompactionReason::Threshold;

    #[test]
    fn the_soft_trigger_fires_at_its_threshold_and_not_before() {
        let threshold = |threshold| AutoPolicy { threshold, ..AutoPolicy::default() };
        let rows = [
            (AutoPolicy::default(), 159_999, false),
            (AutoPolicy::default(), 160_000, true),
            (threshold(Threshold::Tokens(150_000)), 149_999, false),
            (threshold(Threshold::Tokens(150_000)), 150_000, true),
            (threshold(Threshold::Tokens(150_000)), 190_000, true),
            (threshold(Threshold::Remaining(20_000)), 179_999, false),
            (threshold(Threshold::Remaining(20_000)), 180_000, true),
            (AutoPolicy { output_reserve: 100_000, ..AutoPolicy::default() }, 79_999, false),
            (AutoPolicy { output_reserve: 100_000, ..AutoPolicy::default() }, 80_000, true),
            (AutoPolicy { enabled: false, ..AutoPolicy::default() }, 199_999, false),
        ];
        for (policy, tokens, expected) in rows {
            assert_eq!(fires(policy, reported(tokens)), expected, "{tokens} under {policy:?}");
        }
    }

    #[test]
    fn the_overhead_form_compares_strictly_and_goes_by_estimates() {
        // Share of the window, window, overhead, messages; source: the context budget of agents
        // that estimate four characters a token.
        let rows = [
            (0.5, 200, 20, 50, false),
            (0.5, 200, 40, 80, true),
            (0.5, 200, 0, 100, false),
            (0.25, 200, 60, 1, true),
            (0.5, 200, 15, 90, true),
            (0.5, 200, 100, 0, true),
        ];
        for (share, window, overhead, thread, expected) in rows {
            let threshold = Threshold::MessagesOver(share);
            let policy = AutoPolicy { threshold, ..AutoPolicy::default() };
            let window = Some(ContextWindow::new(window));
            let pressure = Pressure { window, overhead, thread, ..Pressure::default() };
            assert_eq!(policy.is_over(&pressure), expected, "{share} {overhead} {thread}");
        }
    }

    #[test]
    fn an_unknown_usage_waits_unless_the_policy_estimates() {
        let unknown = Pressure { reported: None, thread: 170_000, ..reported(0) };
        let estimate =
            AutoPolicy { unknown_usage: UnknownUsage::Estimate, ..AutoPolicy::default() };
        assert!(!fires(AutoPolicy::default(), unknown));
        assert!(fires(estimate, unknown));
        assert!(!fires(estimate, Pressure { window: None, ..unknown }));
    }

    #[test]
    fn what_is_pending_and_what_came_since_count() {
        let policy = AutoPolicy::default();
        assert!(fires(policy, Pressure { since: 1_000, ..reported(159_000) }));
        assert!(fires(policy, Pressure { pending: 1_000, ..reported(159_000) }));
        assert!(!fires(policy, Pressure { pending: 999, ..reported(159_000) }));
        assert!(fires(policy, Pressure { thread: 150_000, overhead: 10_000, ..reported(5) }));
    }

    #[test]
    fn it_fires_once_a_crossing_and_rests_after_a_success() {
        let mut auto = machine(AutoPolicy::default());
        assert_eq!(send(&mut auto, 0, 170_000), compact(THRESHOLD));
        assert_eq!(send(&mut auto, 1, 170_000), None, "it has said so");
        auto.handle(Timestamp(2_000), Input::Compacted { reason: THRESHOLD });
        assert_eq!(send(&mut auto, 3, 50_000), None);
        assert_eq!(send(&mut auto, 61, 170_000), None, "59 seconds after the success");
        assert_eq!(send(&mut auto, 62, 170_000), compact(THRESHOLD));
    }

    #[test]
    fn a_stale_count_does_not_fire_twice() {
        let mut auto = machine(AutoPolicy { cooldown_ms: 0, ..AutoPolicy::default() });
        assert_eq!(send(&mut auto, 0, 170_000), compact(THRESHOLD));
        auto.handle(Timestamp(1_000), Input::Compacted { reason: THRESHOLD });
        let uncounted = Pressure { reported: None, thread: 165_000, ..reported(0) };
        assert_eq!(auto.handle(Timestamp(2_000), Input::BeforeSend(uncounted)), None);
    }

    #[test]
    fn two_compactions_that_do_not_help_suspend_it_until_something_does() {
        let mut auto = machine(AutoPolicy { cooldown_ms: 0, ..AutoPolicy::default() });
        for second in 0..2 {
            assert_eq!(send(&mut auto, second, 170_000), compact(THRESHOLD));
            auto.handle(Timestamp(second * 1_000), Input::Compacted { reason: THRESHOLD });
        }
        let suspended = Notice::Suspended { tokens: 170_000, threshold: 160_000 };
        assert_eq!(send(&mut auto, 2, 170_000), Some(Output::Notify(suspended)));
        assert_eq!(send(&mut auto, 3, 180_000), None);
        let manual = CompactionReason::Manual { focus: None };
        auto.handle(Timestamp(4_000), Input::Compacted { reason: manual });
        assert_eq!(send(&mut auto, 5, 60_000), None);
        assert_eq!(send(&mut auto, 6, 160_000), compact(THRESHOLD));
    }

    #[test]
    fn failures_pause_it_and_the_pause_ends() {
        let mut auto = machine(AutoPolicy::default());
        // What was missed once is tried half as far.
        let again = Some(Output::Compact { reason: THRESHOLD, target: Some(129_999) });
        for (second, expected) in [(0, compact(THRESHOLD)), (1, again.clone())] {
            assert_eq!(send(&mut auto, second, 170_000), expected);
            let failed = Input::Failed { reason: THRESHOLD };
            assert_eq!(auto.handle(Timestamp(second * 1_000), failed), None);
        }
        assert_eq!(send(&mut auto, 2, 170_000), again);
        let failed = auto.handle(Timestamp(2_000), Input::Failed { reason: THRESHOLD });
        let paused = Notice::Paused { failures: 3, until: Timestamp(62_000) };
        assert_eq!(failed, Some(Output::Notify(paused)));
        assert_eq!(send(&mut auto, 61, 170_000), None);
        assert_eq!(send(&mut auto, 62, 170_000), again);
    }

    #[test]
    fn what_cannot_fit_is_compacted_whatever_the_policy_says_or_refused_with_numbers() {
        let policy = AutoPolicy { enabled: false, ..AutoPolicy::default() };
        let mut auto = machine(policy);
        let over = CompactionReason::Overflow;
        for _ in 0..2 {
            assert_eq!(send(&mut auto, 0, 200_001), compact(over.clone()));
            auto.handle(Timestamp(0), Input::Compacted { reason: over.clone() });
        }
        let refused = Output::CannotFit { floor: 100, tokens: 200_001, limit: WINDOW };
        assert_eq!(send(&mut auto, 0, 200_001), Some(refused));
        auto.handle(Timestamp(0), Input::TurnEnded(reported(200_001)));
        assert_eq!(send(&mut auto, 0, 200_001), compact(over), "another turn, another try");

        let huge = Pressure { thread: 1, overhead: 150_000, newest: 60_000, ..reported(210_001) };
        let refused = Output::CannotFit { floor: 210_000, tokens: 210_001, limit: WINDOW };
        assert_eq!(fresh(policy, huge), Some(refused));
    }

    #[test]
    fn a_request_that_went_out_behind_a_compaction_ahead_of_need_gives_the_next_one_its_tries() {
        let mut auto = machine(AutoPolicy::default());
        let reason = CompactionReason::Overflow;
        for _ in 0..2 {
            assert_eq!(send(&mut auto, 0, 200_001), compact(reason.clone()));
            auto.handle(Timestamp(0), Input::Compacted { reason: reason.clone() });
        }
        assert_eq!(send(&mut auto, 99, 170_000), compact(THRESHOLD));
        auto.handle(Timestamp(99_000), Input::Failed { reason: THRESHOLD });
        let Some(Output::Compact { reason, .. }) = send(&mut auto, 99, 200_001) else { panic!() };
        assert_eq!(reason, CompactionReason::Overflow);
    }

    #[test]
    fn a_request_that_was_answered_after_a_refusal_gives_the_next_one_its_tries() {
        let mut auto = machine(AutoPolicy::default());
        let over = CompactionReason::Overflow;
        for _ in 0..2 {
            assert_eq!(send(&mut auto, 0, 200_001), compact(over.clone()));
            auto.handle(Timestamp(0), Input::Compacted { reason: over.clone() });
        }
        assert_eq!(send(&mut auto, 0, 150_000), None);
        let refused = Input::Overflowed { pressure: reported(150_000), limit: None };
        assert!(matches!(auto.handle(Timestamp(0), refused), Some(Output::Compact { .. })));
        auto.handle(Timestamp(0), Input::Compacted { reason: over.clone() });
        assert_eq!(send(&mut auto, 0, 140_000), None);
        // Nothing is heard of the answer but that another request comes.
        assert_eq!(send(&mut auto, 0, 200_001), compact(over));
    }

    #[test]
    fn a_turn_of_many_requests_may_be_refused_as_often_as_a_compaction_mends_it() {
        let mut auto = machine(AutoPolicy::default());
        let refused = Input::Overflowed { pressure: reported(150_000), limit: None };
        for _ in 0..5 {
            assert_eq!(send(&mut auto, 0, 150_000), None);
            for _ in 0..2 {
                let output = auto.handle(Timestamp(0), refused.clone());
                assert!(matches!(output, Some(Output::Compact { .. })), "{output:?}");
                auto.handle(Timestamp(0), Input::Compacted { reason: CompactionReason::Overflow });
                assert_eq!(send(&mut auto, 0, 150_000), None);
            }
        }
        let third = auto.handle(Timestamp(0), refused);
        assert!(matches!(third, Some(Output::CannotFit { .. })), "{third:?}");
    }

    #[test]
    fn a_provider_that_refuses_is_believed() {
        let mut auto = machine(AutoPolicy::default());
        let pressure = Pressure { thread: 120_000, ..reported(90_000) };
        let refused = Input::Overflowed { pressure, limit: Some(100_000) };
        let output = auto.handle(Timestamp(0), refused.clone());
        let reason = CompactionReason::Overflow;
        assert_eq!(output, Some(Output::Compact { reason, target: Some(50_000) }));
        auto.handle(Timestamp(0), refused.clone());
        let third = auto.handle(Timestamp(0), refused);
        let numbers = Output::CannotFit { floor: 100, tokens: 120_000, limit: 100_000 };
        assert_eq!(third, Some(numbers));
    }

    #[test]
    fn a_smaller_window_is_a_model_switch() {
        let mut auto = machine(AutoPolicy::default());
        assert_eq!(send(&mut auto, 0, 90_000), None);
        let small = Pressure { window: Some(ContextWindow::new(100_000)), ..reported(90_000) };
        let output = auto.handle(Timestamp(1_000), Input::BeforeSend(small));
        let reason = CompactionReason::ModelSwitch;
        assert_eq!(output, Some(Output::Compact { reason, target: Some(50_000) }));
    }

    #[test]
    fn overhead_over_the_threshold_suspends_it_at_once() {
        let pressure = Pressure { overhead: 165_000, thread: 200, ..reported(166_000) };
        let suspended = Notice::Suspended { tokens: 166_000, threshold: 160_000 };
        assert_eq!(fresh(AutoPolicy::default(), pressure), Some(Output::Notify(suspended)));
    }

    #[test]
    fn a_finished_turn_is_compacted_only_if_the_policy_says_so() {
        let after_turn = AutoPolicy { after_turn: true, ..AutoPolicy::default() };
        for (policy, expected) in [(AutoPolicy::default(), None), (after_turn, compact(THRESHOLD))]
        {
            let input = Input::TurnEnded(reported(170_000));
            assert_eq!(machine(policy).handle(Timestamp(0), input), expected);
        }
    }

    #[test]
    fn a_share_that_is_none_is_refused() {
        for found in [80.0, -0.1, f64::NAN] {
            let threshold = Threshold::Fraction(found);
            let policy = AutoPolicy { threshold, ..AutoPolicy::default() };
            assert!(AutoCompactor::new(policy).is_err());
            let target = Target::Fraction(found);
            assert!(AutoPolicy { target, ..AutoPolicy::default() }.check().is_err());
        }
    }

    #[test]
    fn the_target_stays_under_the_threshold_and_leaves_room_for_what_stands_around() {
        let threshold = Threshold::Tokens(40_000);
        let policy = AutoPolicy { threshold, ..AutoPolicy::default() };
        let pressure = Pressure { overhead: 5_000, pending: 1_000, ..reported(45_000) };
        let expected = Output::Compact { reason: THRESHOLD, target: Some(39_999 - 6_000) };
        assert_eq!(fresh(policy, pressure), Some(expected));
    }
}
