//! Decides when to compact: the soft trigger, the hard check before every request, and what a
//! provider's refusal leads to.

use std::{cmp::Ordering, collections::VecDeque};

use super::{
    breaker::Breaker,
    cost::Planner,
    event::{Input, Output, Refusal},
    idle::IdleStep,
    policy::{AutoPolicy, Goal},
    pressure::{Learned, Pressure, is_likely},
    trigger::{Level, Reading, Signal, Trigger},
};
use crate::{
    message::{CompactionReason, ContextWindow, InvalidValue, Timestamp},
    tokens::Calibrated,
};

/// The maximum number of times that one request is sent, in every driver: once, and again after each
/// of the first two refusals.
pub const MAX_SENDS: u32 = 3;

/// The tokens of a request that fits the smallest windows of models with tools.
const SMALL_WINDOW: u64 = 6_000;

/// The room for the shortest message with a summary, beside what no compaction can remove.
const SUMMARY_MESSAGE_TOKENS: u64 = 128;

/// A refusal is doubted if one of this many requests that were answered last was as long.
const RECENT: usize = 8;

/// The part of a limit that is left for the error of a ratio: one in this many.
const ERROR: u64 = 8;

/// In a known window, a vague refusal of at most one part in this many of it is doubted.
const SMALL_PART: u64 = 4;

/// In a known window, a vague refusal is also doubted if a recent request was shorter by less than
/// this share: a sixteenth. Threads grow, so none is as long as the present one.
const NEAR_SHARE: u64 = 16;

/// Decides when to compact. See the [module](super) for the two checks. The default follows the
/// default policy.
#[derive(Clone, Debug, Default)]
pub struct AutoCompactor {
    policy: AutoPolicy,
    trigger: Trigger,
    breaker: Breaker,
    request: NextRequest,
    /// The provider's counts, compared with the estimates.
    ratio: Calibrated,
    learned: Learned,
    /// Limits and ratio as they were before the first refusal of the next request.
    unrefused: (Learned, Calibrated),
    /// The estimated tokens of the last requests that were answered.
    answered: VecDeque<u64>,
    /// The tokens that the provider counted beyond the estimate when it refused the sum of prompt and
    /// answer last.
    uncounted: u64,
    /// Whether the notice about the unknown window was given.
    announced: bool,
    /// Whether the notice about a short answer was given.
    announced_short: bool,
    /// Decides whether a compaction pays, if the policy has prices.
    planner: Planner,
    /// The window of the last request, to notice a smaller model.
    window: Option<ContextWindow>,
}

/// The next request, and the attempts to make room for it.
///
/// A refusal *states a limit* if its limit is below what was sent: by its own count, or by the
/// estimate if it has none. Any other refusal is *vague*, also one with a limit that the request
/// did not exceed.
///
/// | input | next state | output |
/// |---|---|---|
/// | before a request, after one that was sent: it was answered | nothing tried; then as below | as below |
/// | before a request that fits | sent | the soft trigger's |
/// | before a request that does not fit | not sent, forced once more | compact, or cannot fit |
/// | refused, and no compaction can help | nothing tried | cannot fit; take back, if it was refused before |
/// | refused, states a limit that prompt and `max_output` exceed only together | refused once | send again |
/// | refused, vaguely, and one of the last 8 answered requests was as long, or nearly in a known window | refused once | send again |
/// | refused, vaguely, at a quarter of a known window or less | refused once | send again |
/// | refused, states a limit | refused once more | compact to the limit |
/// | refused, vaguely | refused once more | compact to half; for a third sending to a quarter, or in an unknown window to what fits any window, and at most to the largest of the last 8 answered requests |
/// | refused, vaguely, after the thread was halved, in a known window | nothing tried | take back |
/// | refused the third time | nothing tried | take back |
/// | the turn ended or failed | not sent, nothing tried | the soft trigger's, if it ended |
///
/// Taking back drops the limits that the refusals of this request taught, unless the provider counted
/// the request, and the ratio in any case. What a vague refusal taught is dropped after several
/// answered requests near its size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct NextRequest {
    /// Number of compactions that were tried because the request did not fit.
    forced: u32,
    /// Number of times that the provider refused it.
    refused: u32,
    /// Number of compactions that were tried because the provider refused it.
    tries: u32,
    /// The tokens of the request that was refused first.
    first: u64,
    /// The estimated tokens of the request, once it was sent. The provider has not answered or
    /// refused it yet.
    sent: Option<u64>,
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
        Ok(Self { policy, ..Self::default() })
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
        self.policy = policy;
        self.breaker = Breaker::default();
        Ok(())
    }

    /// Drops the ratio, the limits learnt from refusals and the sizes that were answered: they hold for
    /// the model that counted, refused or answered. The notice of an unknown window is given again.
    pub fn model_changed(&mut self) {
        self.ratio = Calibrated::default();
        self.learned = Learned::default();
        self.unrefused = Default::default();
        self.answered.clear();
        self.uncounted = 0;
        self.announced = false;
    }

    /// Starts the attempts anew: what follows is about another request than before, whatever became
    /// of that one. A driver that calls [`handle`](Self::handle) with [`Input::TurnEnded`] at the end
    /// of each turn need not call this.
    ///
    /// ```
    /// use threadfold::auto::{AutoCompactor, AutoPolicy, Input, Output, Pressure, Refusal};
    /// use threadfold::{ContextWindow, message::Timestamp};
    ///
    /// let mut auto = AutoCompactor::new(AutoPolicy::default())?;
    /// let window = Some(ContextWindow::new(10_000));
    /// let pressure = Pressure { window, thread: 5_000, ..Pressure::default() };
    /// let refused = Input::Overflowed { pressure, refusal: Refusal::default() };
    /// for _ in 0..9 {
    ///     auto.next_request();
    ///     let output = auto.handle(Timestamp(0), refused.clone());
    ///     assert!(matches!(output, Some(Output::Compact { .. })));
    /// }
    /// # Ok::<(), threadfold::message::InvalidValue>(())
    /// ```
    pub fn next_request(&mut self) {
        self.request = NextRequest { sent: self.request.sent, ..NextRequest::default() };
    }

    /// The window of the model: the smaller of the host's window and the one that a
    /// refusal stated. The stated one is forgotten when the provider answers a longer request.
    ///
    /// ```
    /// use threadfold::{
    ///     ContextWindow,
    ///     auto::{AutoCompactor, AutoPolicy, Input, Pressure, Refusal},
    ///     message::Timestamp,
    /// };
    ///
    /// let mut auto = AutoCompactor::new(AutoPolicy::default())?;
    /// assert_eq!(auto.window(None), None);
    /// let pressure = Pressure { thread: 9_000, ..Pressure::default() };
    /// let refusal = Refusal { limit: Some(8_000), ..Refusal::default() };
    /// auto.handle(Timestamp(0), Input::Overflowed { pressure, refusal });
    /// assert_eq!(auto.window(None), Some(ContextWindow::new(8_000)));
    /// # Ok::<(), threadfold::message::InvalidValue>(())
    /// ```
    #[must_use]
    pub fn window(&self, host: Option<ContextWindow>) -> Option<ContextWindow> {
        self.learned.window(host)
    }

    /// The window that a refusal stated, if it is smaller than the host's; never one that was only
    /// concluded from the size of a refused request.
    ///
    /// ```
    /// use threadfold::auto::{AutoCompactor, AutoPolicy, Input, Pressure, Refusal};
    /// use threadfold::{ContextWindow, message::Timestamp};
    ///
    /// let mut auto = AutoCompactor::new(AutoPolicy::default())?;
    /// let pressure = Pressure { thread: 9_000, ..Pressure::default() };
    /// let refusal = Refusal::default();
    /// auto.handle(Timestamp(0), Input::Overflowed { pressure, refusal });
    /// assert_eq!((auto.window(None), auto.stated_window(None)), (Some(ContextWindow::new(8_999)), None));
    /// # Ok::<(), threadfold::message::InvalidValue>(())
    /// ```
    #[must_use]
    pub fn stated_window(&self, host: Option<ContextWindow>) -> Option<ContextWindow> {
        self.learned.stated_window(host)
    }

    /// Takes the provider's count of the prompt of an answered request, of which `estimated` tokens
    /// were [estimated](Pressure::estimate). The [ratio](Self::ratio) learns from it, and smaller limits
    /// that refusals stated are forgotten. Returns whether the ratio learnt: see
    /// [`Calibrated::learn`].
    ///
    /// ```
    /// use threadfold::auto::{AutoCompactor, AutoPolicy, Input, Pressure, Refusal};
    /// use threadfold::message::Timestamp;
    ///
    /// let mut auto = AutoCompactor::new(AutoPolicy::default())?;
    /// let pressure = Pressure { thread: 1_200, ..Pressure::default() };
    /// let refusal = Refusal { limit: Some(100), ..Refusal::default() };
    /// auto.handle(Timestamp(0), Input::Overflowed { pressure, refusal });
    /// assert!(auto.counted(1_200, 1_448));
    /// assert_eq!((auto.window(None), auto.ratio().bytes_per_token()), (None, 2.872));
    /// # Ok::<(), threadfold::message::InvalidValue>(())
    /// ```
    pub fn counted(&mut self, estimated: u64, reported: u64) -> bool {
        if is_likely(estimated, reported) {
            self.learned.contradict(reported);
        }
        self.ratio.learn(estimated, reported)
    }

    /// The ratio of the provider's counts to the estimates, learnt from the counts of prompts that it
    /// [answered](Self::counted) and refused. It scales every [`Pressure`].
    #[must_use]
    pub fn ratio(&self) -> &Calibrated {
        &self.ratio
    }

    /// Starts from a ratio that was learnt earlier.
    pub(crate) fn set_ratio(&mut self, ratio: Calibrated) {
        self.ratio = ratio;
    }

    /// Measures by this ratio if it makes more of a text than the present one.
    pub(crate) fn raise_ratio(&mut self, ratio: Calibrated) {
        if ratio.bytes_per_token() < self.ratio.bytes_per_token() {
            self.ratio = ratio;
        }
    }

    /// The tokens of a request from which the soft trigger fires; `None` if the window is unknown.
    ///
    /// ```
    /// use threadfold::{ContextWindow, auto::{AutoCompactor, AutoPolicy, Pressure}};
    ///
    /// let auto = AutoCompactor::new(AutoPolicy::default())?;
    /// let window = Some(ContextWindow::new(10_000));
    /// assert_eq!(auto.threshold(Pressure { window, ..Pressure::default() }), Some(8_000));
    /// # Ok::<(), threadfold::message::InvalidValue>(())
    /// ```
    #[must_use]
    pub fn threshold(&self, pressure: Pressure) -> Option<u64> {
        self.policy.level(&self.known(pressure))
    }

    /// The `max_output` that the next request can have: what the window leaves, if the provider is
    /// known to refuse a request whose prompt and `max_output` together exceed the window. `None` if
    /// it needs no change.
    ///
    /// ```
    /// use threadfold::{ContextWindow, auto::{AutoCompactor, AutoPolicy, Pressure}};
    ///
    /// let auto = AutoCompactor::new(AutoPolicy::default())?;
    /// let window = Some(ContextWindow::new(10_000));
    /// let pressure = Pressure { window, thread: 5_000, newest: 5_000, output: 8_000, ..Pressure::default() };
    /// assert_eq!(auto.max_output(pressure), None);
    /// assert_eq!(auto.max_output(Pressure { sum_rule: true, ..pressure }), Some(4_800));
    /// # Ok::<(), threadfold::message::InvalidValue>(())
    /// ```
    #[must_use]
    pub fn max_output(&self, pressure: Pressure) -> Option<u64> {
        self.shorter_output(&self.known(pressure))
    }

    fn shorter_output(&self, pressure: &Pressure) -> Option<u64> {
        let window = pressure.window?.tokens();
        let tokens = pressure.tokens().saturating_add(self.uncounted);
        // The estimate may be a little too small.
        let left = window.saturating_sub(tokens).saturating_sub(window / 50);
        (pressure.sum_rule && left < pressure.output).then_some(left.max(1))
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
    /// let output = auto.handle(Timestamp(0), Input::BeforeRequest(full));
    /// let compact = Output::Compact { reason: Threshold, target: Some(500), limit: Some(799) };
    /// assert_eq!(output, Some(compact));
    /// assert_eq!(auto.handle(Timestamp(1), Input::Compacted { reason: Threshold }), None);
    /// let half = Pressure { reported: Some(500), thread: 500, ..full };
    /// assert_eq!(auto.handle(Timestamp(2), Input::BeforeRequest(half)), None);
    /// # Ok::<(), threadfold::message::InvalidValue>(())
    /// ```
    pub fn handle(&mut self, now: Timestamp, input: Input) -> Option<Output> {
        match input {
            Input::BeforeRequest(pressure) => {
                let pressure = pressure.calibrated(&self.ratio);
                let output = self.before_request(now, pressure);
                self.planner.sent(now, &self.policy, &self.learned.known(pressure));
                output
            }
            Input::TurnEnded(pressure) => self.turn_ended(now, pressure, self.policy.after_turn),
            Input::TurnFailed(pressure) => self.turn_ended(now, pressure, false),
            Input::Overflowed { pressure, refusal } => {
                self.keep_unrefused();
                if let Some(found) = refusal.found {
                    let _ = self.ratio.learn_refusal(pressure.estimate(), found);
                }
                Some(self.overflowed(pressure.calibrated(&self.ratio), refusal))
            }
            Input::CutOff(pressure) => {
                self.keep_unrefused();
                let limit = pressure.window.map(ContextWindow::tokens);
                let found = limit.map(|limit| limit.saturating_add(1));
                let refusal = Refusal { limit, found, output: None };
                Some(self.overflowed(pressure.calibrated(&self.ratio), refusal))
            }
            Input::Compacted { reason } => {
                self.breaker = Breaker::default();
                let is_before_request =
                    self.request.sent.is_some() && reason != CompactionReason::Idle;
                self.planner.compacted(is_before_request);
                self.trigger = self.trigger.compacted(reason.is_manual());
                None
            }
            Input::Failed { reason } => self.failed(now, &reason),
        }
    }

    /// Returns the target, in tokens, of a compaction that the user, the host or the agent requests;
    /// `None` if the window is unknown.
    ///
    /// ```
    /// use threadfold::{ContextWindow, auto::{AutoCompactor, Pressure}};
    ///
    /// let window = Some(ContextWindow::new(1_000));
    /// let thread = Pressure { window, thread: 700, ..Pressure::default() };
    /// assert_eq!(AutoCompactor::default().requested_target(thread), Some(500));
    /// ```
    #[must_use]
    pub fn requested_target(&self, pressure: Pressure) -> Option<u64> {
        let pressure = self.known(pressure);
        let room = self.policy.room(&pressure)?;
        Some(self.policy.goal(&pressure, room).target)
    }

    /// Decides what to do with the provider's cache of the last prompt while the user is away. Call
    /// it after [`Input::TurnEnded`], and again after each step; it changes nothing.
    ///
    /// After [`IdleStep::Compact`], the driver compacts with [`CompactionReason::Idle`] to the target
    /// that [`requested_target`](Self::requested_target) returns, and passes [`Input::Compacted`] or
    /// [`Input::Failed`], as after [`Output::Compact`]; either ends the pause. A thread within that
    /// target is not compacted.
    /// After a keep-alive, the driver calls [`kept_alive`](Self::kept_alive).
    ///
    /// Without [prices](AutoPolicy::prices), before the first request and after a compaction, there is
    /// no cache to decide about. Nothing is compacted if the soft trigger is disabled, pauses, or is
    /// suspended because compactions do not help.
    ///
    /// ```
    /// use threadfold::auto::{AutoCompactor, AutoPolicy, IdleStep, Input, Pressure};
    /// use threadfold::{ContextWindow, message::{CompactionReason, Timestamp}};
    ///
    /// let policy: AutoPolicy = serde_json::from_str(
    ///     r#"{"prices": {"input": 3, "cached": 0.3, "cache_write": 3.75, "output": 15}}"#,
    /// )?;
    /// let mut auto = AutoCompactor::new(policy)?;
    /// let window = Some(ContextWindow::new(200_000));
    /// let thread = Pressure { window, thread: 120_000, newest: 100, ..Pressure::default() };
    /// auto.handle(Timestamp(0), Input::BeforeRequest(thread));
    /// auto.handle(Timestamp(0), Input::TurnEnded(thread));
    /// let (mut now, mut kept) = (Timestamp(0), 0);
    /// loop {
    ///     match auto.idle(now, thread) {
    ///         IdleStep::Wait { ms } => now = Timestamp(now.0 + ms),
    ///         IdleStep::KeepAlive => {
    ///             auto.kept_alive(now);
    ///             kept += 1;
    ///         }
    ///         IdleStep::Compact => {
    ///             let reason = CompactionReason::Idle;
    ///             auto.handle(now, Input::Compacted { reason });
    ///         }
    ///         _ => break,
    ///     }
    /// }
    /// assert_eq!((kept, now), (8, Timestamp(9 * 270_000)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn idle(&self, now: Timestamp, pressure: Pressure) -> IdleStep {
        let pressure = self.known(pressure);
        let helps = match self.trigger {
            Trigger::Armed { .. } | Trigger::Fired { .. } | Trigger::Quiet { .. } => true,
            Trigger::Overgrown { .. } | Trigger::Suspended => false,
        };
        let is_paused = self.breaker.paused_until(&self.policy, now).is_some();
        let may_compact = self.policy.enabled && helps && !is_paused;
        self.planner.idle(may_compact, &self.policy, &pressure, now)
    }

    /// Records that the last prompt was sent again at this time, to keep the cache alive.
    /// [`idle`](Self::idle) has an example.
    pub fn kept_alive(&mut self, now: Timestamp) {
        self.planner.kept_alive(now);
    }

    /// Records that the user may be away after the last request.
    pub(crate) fn may_pause(&mut self) {
        self.planner.turn_ended();
    }

    /// The hard check, then the soft trigger.
    fn before_request(&mut self, now: Timestamp, pressure: Pressure) -> Option<Output> {
        let is_smaller_window = self.note_window(pressure.window);
        self.note_answer(&pressure);
        let (pressure, host_limit) = self.limited(pressure);
        // If the previous request was sent, it was answered, so the attempts start anew.
        let next = match self.request.sent {
            Some(_) => NextRequest::default(),
            None => self.request,
        };
        let (ahead, needed) = match is_smaller_window {
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
            let soft = fits.then(|| self.soft(now, &pressure, ahead, true)).flatten();
            return soft.or_else(|| self.short_answer(&pressure));
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
        let nothing_removable = next.forced > 0 || pressure.least() >= pressure.tokens();
        let hopeless = tried || (nothing_removable && pressure.least() > limit);
        fits_by_estimate || (next.refused == 0 && hopeless && pressure.tokens() <= host_limit)
    }

    /// The notice that nothing is kept for the answer, once until there is room again.
    fn short_answer(&mut self, pressure: &Pressure) -> Option<Output> {
        let waives = self.policy.waives_reserve(pressure);
        let announced = std::mem::replace(&mut self.announced_short, waives);
        let (tokens, output) = (pressure.tokens(), pressure.output.max(self.policy.output_reserve));
        let window = pressure.window?.tokens();
        (waives && !announced).then_some(Output::ShortAnswer { tokens, output, window })
    }

    /// The pressure as a driver states it, scaled to the provider's counts and corrected by the learnt
    /// limits.
    fn known(&self, pressure: Pressure) -> Pressure {
        self.learned.known(pressure.calibrated(&self.ratio))
    }

    /// The scaled pressure, corrected by the learnt limits, and the tokens that fit the host's window.
    fn limited(&self, pressure: Pressure) -> (Pressure, u64) {
        let known = self.learned.known(pressure);
        let host = Pressure { window: pressure.window, ..known };
        (known, self.policy.room(&host).unwrap_or(u64::MAX))
    }

    /// Remembers the window of a request, and returns whether it is smaller than that of the request
    /// before.
    fn note_window(&mut self, window: Option<ContextWindow>) -> bool {
        let Some(window) = window else { return false };
        self.window.replace(window).is_some_and(|before| window < before)
    }

    fn turn_ended(&mut self, now: Timestamp, pressure: Pressure, may_fire: bool) -> Option<Output> {
        let pressure = pressure.calibrated(&self.ratio);
        self.note_answer(&pressure);
        let pressure = self.learned.known(pressure);
        self.request = NextRequest::default();
        self.planner.turn_ended();
        self.soft(now, &pressure, CompactionReason::Threshold, may_fire)
    }

    /// Records that the last request was answered, if the thread has grown since it was sent.
    fn note_answer(&mut self, pressure: &Pressure) {
        self.learned.answered(pressure);
        if let Some(tokens) = self.request.sent
            && pressure.estimate() > tokens
        {
            self.learned.held(self.policy.window_of(tokens, pressure));
            self.answered.truncate(RECENT - 1);
            self.answered.push_front(tokens);
        }
    }

    /// Makes room after a refusal, as far as it is believed. It learns the limit that the provider
    /// stated or, if it stated none, the size that it refused.
    fn overflowed(&mut self, pressure: Pressure, refusal: Refusal) -> Output {
        let before = self.learned.known(pressure);
        let sent = before.tokens();
        let request = match self.request {
            NextRequest { refused: 0, .. } => NextRequest { first: sent, ..self.request },
            request => request,
        };
        let NextRequest { refused, tries, first, .. } = request;
        let stated = refusal.stated(sent);
        let is_halved = tries > 0 && sent <= first / 2;
        let is_known = pressure.window.is_some() || self.unrefused.0.has_stated();
        let is_disbelieved = is_halved && is_known && !refusal.is_counted();
        let request = NextRequest { refused: refused.saturating_add(1), sent: None, ..request };
        let again = NextRequest { sent: Some(before.estimate()), ..request };
        if request.refused >= MAX_SENDS || is_disbelieved {
            return self.take_back(refusal);
        }
        // What can be removed is no longer than a summary of it.
        let is_least =
            stated.is_none() && sent <= before.least().saturating_add(SUMMARY_MESSAGE_TOKENS);
        let is_small =
            pressure.window.is_some_and(|window| sent <= window.tokens() / SMALL_PART) && !is_least;
        let is_doubted = is_small || self.was_answered(sent, is_known);
        if refused == 0 && stated.is_none() && is_doubted {
            self.request = again;
            return Output::SendAgain;
        }
        let too_long = sent.saturating_sub(1);
        let output = refusal.output.filter(|_| stated.is_some() || refusal.limit.is_none());
        self.learned.refused(&pressure, stated, output, self.policy.window_of(too_long, &before));
        let (pressure, host_limit) = self.limited(pressure);
        if refused == 0 && stated.is_some() && output.is_some() {
            self.uncounted = refusal.found.map_or(0, |found| found.saturating_sub(sent));
            let prompt = sent.saturating_add(self.uncounted);
            let fits = |room| prompt <= room;
            // The prompt fits, so only the answer must be shorter.
            if self.policy.room(&pressure).is_some_and(fits)
                && self.shorter_output(&pressure).is_some()
            {
                self.request = again;
                return Output::SendAgain;
            }
        }
        // A request of this size was just refused, so the limit is below it even if the window is
        // larger.
        let room = self.policy.room(&pressure);
        let room = room.filter(|room| !is_doubtful(&pressure, *room, host_limit));
        let limit = room.map_or(too_long, |room| room.min(too_long));
        self.request = NextRequest { tries: tries.saturating_add(1), ..request };
        let mut output = match is_least {
            true => Output::CannotFit { floor: sent, tokens: pressure.tokens(), limit },
            false => self.hard(&pressure, limit, tries, CompactionReason::Overflow),
        };
        if refused > 0 && matches!(output, Output::CannotFit { .. }) {
            return self.take_back(refusal);
        }
        // If the true limit is unknown, and few attempts are left, hardly more than the target is
        // accepted.
        if let Output::Compact { target: Some(target), limit: Some(limit), .. } = &mut output
            && stated.is_none()
        {
            let answered = self.answered.iter().max().copied().unwrap_or(SMALL_WINDOW);
            let fits_any = (!is_known).then_some(answered.min(SMALL_WINDOW));
            let size = attempted_size(&pressure, sent, tries, fits_any);
            *target = pressure.of_thread(size).min(*target);
            *limit = target.saturating_add(*target / 4).min(*limit);
        }
        output
    }

    /// Whether a request of this size was answered a short while ago; in a known window, whether it
    /// was nearly as long.
    fn was_answered(&self, tokens: u64, is_known: bool) -> bool {
        let near = if is_known { tokens / NEAR_SHARE } else { 0 };
        self.answered.iter().any(|size| size.saturating_add(near) >= tokens)
    }

    /// Gives the request up. No limit is learnt from its refusals unless they counted it.
    fn take_back(&mut self, refusal: Refusal) -> Output {
        self.request = NextRequest::default();
        let (learned, ratio) = std::mem::take(&mut self.unrefused);
        if !refusal.is_counted() {
            self.learned = learned;
        }
        self.ratio = ratio;
        Output::TakeBack
    }

    /// Keeps what is known before the first refusal of the next request.
    fn keep_unrefused(&mut self) {
        if self.request.refused == 0 {
            self.unrefused = (self.learned.clone(), self.ratio);
        }
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
        let floor = pressure.least();
        if floor > limit || tries >= self.policy.max_reactive {
            return Output::CannotFit { floor, tokens: pressure.tokens(), limit };
        }
        let Goal { target, .. } = self.policy.goal(pressure, limit);
        // What stays is measured by the ratio alone: too lightly if nothing was counted, or what
        // taught it was of lighter text.
        let base = self.ratio.base().bytes_per_token() as f64;
        let is_uncertain = match self.ratio.bytes_per_token().total_cmp(&base) {
            Ordering::Less => false,
            Ordering::Equal => pressure.reported.is_none(),
            Ordering::Greater => true,
        };
        let spare = if is_uncertain { limit / ERROR } else { 0 };
        let limit = pressure.of_thread(pressure.in_estimates(limit - spare)).max(target);
        Output::Compact { reason, target: Some(target), limit: Some(limit) }
    }

    /// Passes the pressure to the soft trigger and returns the output for its signal.
    fn soft(
        &mut self,
        now: Timestamp,
        pressure: &Pressure,
        reason: CompactionReason,
        may_fire: bool,
    ) -> Option<Output> {
        let (next, signal) = self.trigger.read(&self.reading(now, pressure, may_fire));
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

    fn reading(&self, now: Timestamp, pressure: &Pressure, may_fire: bool) -> Reading {
        let is_paused = self.breaker.paused_until(&self.policy, now).is_some();
        let level = match (self.policy.is_over(pressure), self.policy.is_hopeless(pressure)) {
            (true, true) => Level::Hopeless,
            (over, _) if self.planner.fires(over, &self.policy, pressure, now) => Level::Over,
            (..) => Level::Under,
        };
        Reading {
            tokens: pressure.tokens(),
            level,
            counted: pressure.reported.is_some() || self.policy.estimates(),
            may_fire: may_fire && self.policy.enabled && !is_paused,
            growth: self.policy.growth(pressure),
        }
    }

    fn failed(&mut self, now: Timestamp, reason: &CompactionReason) -> Option<Output> {
        self.trigger = self.trigger.failed();
        if *reason == CompactionReason::Idle {
            self.planner.give_up();
        }
        if reason.is_manual() {
            return None;
        }
        self.breaker.failed(&self.policy, now);
        let until = self.breaker.paused_until(&self.policy, now)?;
        Some(Output::Paused { failures: self.breaker.failures, until })
    }
}

/// The size to try after the vague refusal of a request of `sent` tokens: half of it, then a quarter.
/// The unread part is counted out, unless it takes most of the request; then it is cut too. The last
/// attempt in an unknown window cuts to `fits_any`, what fits any window and was answered before.
fn attempted_size(pressure: &Pressure, sent: u64, tries: u32, fits_any: Option<u64>) -> u64 {
    let floor = pressure.floor().saturating_add(pressure.said).min(sent);
    let cut = pressure.least().saturating_add(pressure.said).min(sent);
    let is_all = floor > sent / 4 * 3;
    let least = if is_all { cut } else { floor };
    let share = if tries == 0 { 2 } else { 4 };
    let size = least.saturating_add((sent - least) / share);
    match fits_any.filter(|_| tries > 0) {
        Some(small) => size.min(small.max(cut.saturating_add(SUMMARY_MESSAGE_TOKENS))),
        None => size,
    }
}

/// Whether a limit is known only from refusals and no request fits it: the smallest request exceeds
/// it, but not the limit of the host's window.
fn is_doubtful(pressure: &Pressure, limit: u64, host_limit: u64) -> bool {
    pressure.least() > limit && pressure.least() <= host_limit
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
        let refusal = Refusal { limit, ..Refusal::default() };
        Input::Overflowed { pressure, refusal }
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
        assert_eq!(auto.handle(Timestamp(0), Input::BeforeRequest(unnamed)), notice);
        assert_eq!(auto.handle(Timestamp(0), Input::BeforeRequest(unnamed)), None, "said once");
        auto.handle(Timestamp(0), refusal(reported(90_000), Some(50_000)));
        auto.model_changed();
        assert_eq!(auto.window(None), None);
        assert_eq!(auto.handle(Timestamp(1), Input::BeforeRequest(unnamed)), notice);
    }

    /// Feeds the machine with refusals of a driver whose compactions reach their target, and
    /// returns its outputs up to the one that ends the request.
    fn refused(policy: AutoPolicy, window: Option<u64>, refusal: Refusal) -> Vec<Output> {
        let mut auto = machine(policy);
        let mut thread = 150_000;
        let mut outputs = Vec::new();
        loop {
            let window = window.map(ContextWindow::new);
            let pressure = Pressure { window, thread, newest: 100, ..Pressure::default() };
            let output = auto.handle(Timestamp(0), Input::Overflowed { pressure, refusal });
            outputs.extend(output.clone());
            let Some(Output::Compact { target: Some(target), .. }) = output else { return outputs };
            thread = target;
        }
    }

    fn compact(target: u64, limit: u64) -> Output {
        let reason = CompactionReason::Overflow;
        Output::Compact { reason, target: Some(target), limit: Some(limit) }
    }

    #[test]
    fn a_vague_refusal_of_half_a_thread_is_disbelieved_in_a_known_window() {
        let outputs = refused(AutoPolicy::default(), Some(WINDOW), Refusal::default());
        assert_eq!(outputs, [compact(74_999, 93_748), Output::TakeBack]);
    }

    #[test]
    fn a_request_is_sent_three_times_at_most() {
        let policy = AutoPolicy { max_reactive: 9, ..AutoPolicy::default() };
        let outputs = refused(policy, None, Refusal::default());
        let (half, small) = (compact(74_999, 93_748), compact(6_000, 7_500));
        assert_eq!(outputs, [half, small, Output::TakeBack]);
        let counted = Refusal { limit: Some(1_000), found: Some(90_000), output: None };
        let outputs = refused(policy, Some(WINDOW), counted);
        // It counts less than the estimate for the whole thread, and more for the halved one.
        assert_eq!(outputs, [compact(500, 875), compact(239, 420), Output::TakeBack]);
    }

    #[test]
    fn a_ratio_that_was_not_learnt_from_heavier_text_leaves_a_part_of_the_limit() {
        let window = Some(ContextWindow::new(WINDOW));
        let pressure = Pressure { window, thread: 2 * WINDOW, ..Pressure::default() };
        let limit = |counted| {
            let mut machine = machine(AutoPolicy::default());
            if let Some(counted) = counted {
                assert!(machine.counted(1_000, counted));
            }
            let output = machine.handle(Timestamp(0), refusal(pressure, Some(WINDOW)));
            let Some(Output::Compact { limit: Some(limit), .. }) = output else {
                panic!("{output:?}")
            };
            limit
        };
        let (unknown, heavier, lighter) = (limit(None), limit(Some(1_200)), limit(Some(800)));
        assert_eq!(unknown, heavier - heavier / ERROR);
        assert_eq!(lighter, unknown);
    }

    #[test]
    fn a_vague_refusal_of_a_request_that_no_summary_makes_smaller_is_passed_on() {
        for window in [None, Some(ContextWindow::new(WINDOW))] {
            let pressure = |thread| Pressure { window, thread, newest: 40, ..Pressure::default() };
            let output = |thread| {
                machine(AutoPolicy::default()).handle(Timestamp(0), refusal(pressure(thread), None))
            };
            let none = Output::CannotFit { floor: 168, tokens: 168, limit: 167 };
            assert_eq!(output(168), Some(none));
            assert!(!matches!(output(169), Some(Output::CannotFit { .. })));
        }
    }

    #[test]
    fn a_limit_that_was_not_exceeded_is_not_learnt() {
        let outputs = refused(
            AutoPolicy::default(),
            Some(WINDOW),
            Refusal { limit: Some(150_000), ..Refusal::default() },
        );
        assert_eq!(outputs, [compact(74_999, 93_748), Output::TakeBack]);
    }

    #[test]
    fn a_refusal_of_a_length_that_was_answered_is_tested_first() {
        let mut auto = machine(AutoPolicy::default());
        let pressure = |thread| Pressure { thread, ..reported(0) };
        auto.handle(Timestamp(0), Input::BeforeRequest(pressure(90_000)));
        auto.handle(Timestamp(1), Input::BeforeRequest(pressure(90_001)));
        let output = auto.handle(Timestamp(2), refusal(pressure(90_000), None));
        assert_eq!(output, Some(Output::SendAgain));
        let output = auto.handle(Timestamp(3), refusal(pressure(90_000), None));
        assert_eq!(output, Some(compact(44_999, 56_248)));
        let output = auto.handle(Timestamp(4), refusal(pressure(44_999), None));
        assert_eq!(output, Some(Output::TakeBack));
    }

    #[test]
    fn a_request_that_was_sent_again_and_answered_is_over() {
        let mut auto = machine(AutoPolicy::default());
        let pressure = |thread| Pressure { thread, ..reported(0) };
        assert_eq!(auto.handle(Timestamp(0), Input::BeforeRequest(pressure(90_000))), None);
        for thread in [90_100, 90_200] {
            assert_eq!(auto.handle(Timestamp(1), Input::BeforeRequest(pressure(thread))), None);
            let output = auto.handle(Timestamp(1), refusal(pressure(thread), None));
            assert_eq!(output, Some(Output::SendAgain), "{thread}");
        }
    }

    #[test]
    fn a_limit_is_smaller_by_what_the_provider_counted_beyond_the_estimate() {
        let window = Some(ContextWindow::new(3_000));
        let pressure = Pressure { window, thread: 2_965, overhead: 53, ..reported(2_779) };
        let counted = Pressure { since: 531, newest: 531, ..pressure };
        let mut auto = machine(AutoPolicy::default());
        let output = auto.handle(Timestamp(0), Input::BeforeRequest(counted));
        // 3,310 tokens are estimated as 3,018, so 3,000 are as 2,735.
        let Some(Output::Compact { limit: Some(limit), .. }) = output else {
            panic!("{output:?}");
        };
        assert_eq!(limit, 2_735 - 53);
    }

    #[test]
    fn what_was_taken_back_taught_nothing() {
        let mut auto = machine(AutoPolicy::default());
        for size in [90_000, 40_000] {
            auto.handle(Timestamp(0), refusal(reported(size), Some(20_000)));
        }
        assert_eq!(auto.window(Some(ContextWindow::new(WINDOW))), Some(ContextWindow::new(WINDOW)));
    }

    #[test]
    fn a_reserve_is_a_quarter_at_most_even_if_the_sum_is_refused() {
        for sum_rule in [false, true] {
            let before = |thread| {
                let window = Some(ContextWindow::new(60_000));
                let output = 32_000;
                let pressure = Pressure { window, thread, output, sum_rule, ..Pressure::default() };
                machine(AutoPolicy::default()).handle(Timestamp(0), Input::BeforeRequest(pressure))
            };
            assert_eq!(before(35_999), None);
            let output = before(36_000);
            assert!(
                matches!(output, Some(Output::Compact { target: Some(22_500), .. })),
                "{output:?}"
            );
        }
    }

    #[test]
    fn a_refused_sum_makes_the_answer_shorter_and_not_a_thread_that_fits() {
        let mut auto = machine(AutoPolicy::default());
        let window = Some(ContextWindow::new(8_000));
        let pressure = Pressure { window, thread: 5_000, output: 7_000, ..Pressure::default() };
        // The provider counts 200 tokens more than the estimate.
        let refusal = Refusal { limit: Some(8_000), found: Some(5_200), output: Some(7_000) };
        let refused = Input::Overflowed { pressure, refusal };
        assert_eq!(auto.handle(Timestamp(0), refused.clone()), Some(Output::SendAgain));
        // The ratio rounds the estimate up.
        let left = auto.max_output(pressure).unwrap();
        assert!((8_000 - 5_200 - 165..=8_000 - 5_200 - 160).contains(&left), "{left}");
        // What it refuses nevertheless is compacted.
        let output = auto.handle(Timestamp(0), refused);
        assert!(matches!(output, Some(Output::Compact { .. })), "{output:?}");
        let full = Pressure { thread: 6_100, ..pressure };
        let refusal = Refusal { found: Some(6_100), ..refusal };
        let refused = Input::Overflowed { pressure: full, refusal };
        let output = machine(AutoPolicy::default()).handle(Timestamp(0), refused);
        assert!(matches!(output, Some(Output::Compact { .. })), "{output:?}");
    }

    /// Sends requests that grow by so many tokens each to a provider of this window, which nobody knows
    /// and no refusal states, and returns the largest request that it answered, and its refusals. The
    /// first `lies` requests over 20,000 tokens are refused in any case.
    fn vague_provider(window: u64, requests: u32, grows: u64, mut lies: u32) -> (u64, u32) {
        let mut auto = machine(AutoPolicy::default());
        let (mut thread, mut largest, mut refusals) = (10_000, 0, 0);
        for _ in 0..requests {
            thread += grows;
            auto.next_request();
            let mut sends = 0;
            let compacted = |auto: &mut AutoCompactor, thread: &mut u64, output| {
                let Some(Output::Compact { target: Some(target), reason, .. }) = output else {
                    return false;
                };
                // A compaction fills nearly all of its target.
                *thread = target - 100;
                auto.handle(Timestamp(0), Input::Compacted { reason });
                true
            };
            loop {
                let pressure = Pressure { thread, newest: 100, ..Pressure::default() };
                let output = auto.handle(Timestamp(0), Input::BeforeRequest(pressure));
                if compacted(&mut auto, &mut thread, output) {
                    continue;
                }
                sends += 1;
                let is_lie = thread > 20_000 && lies > 0;
                if thread <= window && !is_lie {
                    break;
                }
                (lies, refusals) = (lies - u32::from(is_lie), refusals + 1);
                let output = auto.handle(Timestamp(0), refusal(pressure, None));
                compacted(&mut auto, &mut thread, output);
            }
            assert!(sends <= MAX_SENDS, "{sends}");
            largest = largest.max(thread);
        }
        (largest, refusals)
    }

    #[test]
    fn a_vague_refusal_that_was_an_error_is_forgotten() {
        let (largest, refusals) = vague_provider(150_000, 280, 500, 1);
        assert!(largest > 120_000 && refusals == 1, "{largest}, {refusals} refusals");
    }

    #[test]
    fn an_error_is_forgotten_although_every_request_is_compacted_because_of_it() {
        let (largest, refusals) = vague_provider(150_000, 40, 9_000, 1);
        assert!(largest > 100_000 && refusals <= 3, "{largest}, {refusals} refusals");
    }

    #[test]
    fn a_window_that_vague_refusals_confirm_is_tried_ever_more_rarely() {
        let (largest, refusals) = vague_provider(60_000, 20_000, 500, 0);
        assert!((50_000..=60_000).contains(&largest), "{largest}");
        assert!((3..16).contains(&refusals), "{refusals} refusals");
    }

    #[test]
    fn a_vague_refusal_of_a_length_that_was_nearly_answered_is_doubted_in_a_known_window() {
        for (size, again) in [(91_000, true), (99_000, false)] {
            let mut auto = machine(AutoPolicy::default());
            let pressure = |thread| Pressure { thread, ..reported(0) };
            for thread in [90_000, 90_500] {
                auto.handle(Timestamp(0), Input::BeforeRequest(pressure(thread)));
            }
            let output = auto.handle(Timestamp(1), refusal(pressure(size), None));
            assert_eq!(output == Some(Output::SendAgain), again, "{size}");
        }
    }

    #[test]
    fn a_stated_limit_far_below_an_answered_request_is_forgotten() {
        let mut auto = machine(AutoPolicy::default());
        let pressure = |thread| Pressure { newest: 900, thread, ..reported(0) };
        auto.handle(Timestamp(0), refusal(pressure(9_000), Some(100)));
        auto.next_request();
        auto.handle(Timestamp(1), Input::BeforeRequest(pressure(900)));
        assert_eq!(auto.stated_window(None), None);
        let host = Some(ContextWindow::new(WINDOW));
        assert_eq!(auto.stated_window(host), Some(ContextWindow::new(100)));
        auto.handle(Timestamp(2), Input::TurnEnded(pressure(950)));
        assert_eq!(auto.stated_window(host), None);
    }

    #[test]
    fn a_reserve_alone_makes_no_request_impossible() {
        for output in [100, 2_000, 8_000, 15_000] {
            for sum_rule in [false, true] {
                let window = Some(ContextWindow::new(10_000));
                let (thread, newest) = (9_950, 9_950);
                let pressure =
                    Pressure { window, thread, newest, output, sum_rule, ..Pressure::default() };
                let mut auto = machine(AutoPolicy { enabled: false, ..AutoPolicy::default() });
                let short = Output::ShortAnswer { tokens: 9_950, output, window: 10_000 };
                let sent = auto.handle(Timestamp(0), Input::BeforeRequest(pressure));
                assert_eq!(sent, Some(short), "{output} {sum_rule}");
                let sent = auto.handle(Timestamp(1), Input::BeforeRequest(pressure));
                assert_eq!(sent, None, "{output} {sum_rule}: it is said once");
            }
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
        assert_eq!(auto.handle(Timestamp(2), Input::BeforeRequest(pressure(1_000))), None);
        auto.handle(Timestamp(3), Input::TurnEnded(pressure(1_000)));
        assert_eq!(window(&auto), Some(899));
        // It is sent again, and answered.
        assert_eq!(auto.handle(Timestamp(4), Input::BeforeRequest(pressure(1_000))), None);
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
