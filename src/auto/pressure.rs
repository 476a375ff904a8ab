//! Measures how full a context is.
//!
//! The window may be smaller than the host knows. Its limits are learnt from a provider's refusals.
//!
//! Clients reserve 32,000 or 64,000 tokens for the answer by default, which is more than many
//! windows have, and most providers count only the prompt. So at most a quarter of the window is
//! reserved. If a refusal states that prompt and reserve count together, requests get a smaller
//! `max_output`, because a shorter answer costs less than a shorter thread. A reserve alone never
//! makes a request impossible: if the unread messages leave less than the reserve, nothing is
//! reserved.
//!
//! No request is refused for a provider's count alone, because the count may be the sum of all
//! calls, or wrong. An implausible count is ignored, and if only the count exceeds the window, the
//! request is sent and the provider decides.

use std::collections::BTreeSet;

use crate::{
    compact::legality,
    log::Thread,
    message::{ContextWindow, Message},
    tokens::{Calibrated, TokenCounter},
};

/// A provider's count is considered wrong if it exceeds both the window and this many times the
/// estimate. The built-in estimate is a third of the bytes, and no text has more tokens than bytes,
/// so a correct count is never that high.
const MAX_OFF: u64 = 4;

/// The number of answered requests near a refused size after which the refusal is doubted first.
const DOUBTED_AFTER: u32 = 8;

/// Whether a provider's count of a prompt can be right: no text has more than three times the tokens
/// of the built-in estimate, and some servers report the sum of several calls.
#[doc(hidden)]
#[must_use]
pub fn is_likely(estimated: u64, reported: u64) -> bool {
    reported <= estimated.saturating_mul(MAX_OFF)
}

/// How full the context is, in tokens: a provider's count, and estimates.
///
/// The caller makes the estimates, with one counter. The
/// [machine](super::AutoCompactor) scales them by the [ratio](super::AutoCompactor::ratio) that it
/// learns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Pressure {
    /// The window of the model. `None` and zero mean that it is unknown; then no request is too
    /// long.
    pub window: Option<ContextWindow>,
    /// Prompt and answer of the last call, as the provider counted them; `None` if it reported
    /// nothing since the thread was last rewritten. A count of more than four times the estimate
    /// that exceeds the window is ignored, because a request of that size would have been refused.
    pub reported: Option<u64>,
    /// Estimate of the messages that were appended after that call, or after the last rewrite of
    /// the thread if there was no call since.
    pub since: u64,
    /// Estimate of the whole thread.
    pub thread: u64,
    /// Estimate of system prompt and tools.
    pub overhead: u64,
    /// Estimate of the message that is appended before the next request.
    pub pending: u64,
    /// Tokens that the next request reserves for its answer: its `max_output`, 0 for none.
    pub output: u64,
    /// Whether the provider is known to refuse a request whose prompt and `output` together exceed
    /// the window. A refusal that states the tokens of both sets this by itself.
    pub sum_rule: bool,
    /// Estimate of the part of the thread that no compaction removes: everything that the model has
    /// not read yet.
    pub newest: u64,
    /// Estimate of the text that the user typed last, if the model has read it. Targets leave room for
    /// it as far as it fits.
    pub said: u64,
    /// The tool results in `newest`. They are cut, each to its head and tail, if head and unread
    /// messages alone do not fit.
    pub cuttable: u64,
}

impl Pressure {
    /// Returns the pressure of a thread alone. The host adds the window of its model and the other
    /// parts of its requests.
    ///
    /// ```
    /// use threadfold::{Message, Thread, auto::Pressure};
    ///
    /// let thread: Thread = [Message::user("How long is it?")].into_iter().collect();
    /// let pressure = Pressure { overhead: 100, ..Pressure::of(&thread) };
    /// assert_eq!(pressure.tokens(), 100 + thread.size().tokens);
    /// ```
    pub fn of(thread: &Thread) -> Self {
        let (reported, since) = thread.counted();
        let messages = thread.messages();
        let unread = legality::unread_from(messages);
        let newest = (unread..messages.len()).map(|message| thread.tokens_of(message));
        Self {
            reported,
            since,
            thread: thread.size().tokens,
            newest: newest.fold(0, u64::saturating_add),
            said: said(messages, unread).map_or(0, |message| thread.tokens_of(message)),
            cuttable: cuttable(messages, unread, thread.counter().as_ref(), &|message| {
                thread.tokens_of(message)
            }),
            ..Self::default()
        }
    }

    /// Returns the pressure of these messages alone, which no provider has counted.
    ///
    /// ```
    /// use threadfold::{Message, auto::Pressure, tokens::{ByteEstimate, TokenCounter}};
    ///
    /// let thread = [Message::user("Go."), Message::assistant("Done."), Message::user("And now?")];
    /// let pressure = Pressure::of_messages(&thread, &ByteEstimate::TRIGGER);
    /// assert_eq!(pressure.newest, ByteEstimate::TRIGGER.message(&thread[2]));
    /// ```
    pub fn of_messages(messages: &[Message], counter: &dyn TokenCounter) -> Self {
        let from = legality::unread_from(messages);
        let unread = messages.get(from..).unwrap_or_default();
        let said = said(messages, from).and_then(|message| messages.get(message));
        Self {
            thread: counter.messages(messages),
            newest: counter.messages(unread),
            said: said.map_or(0, |message| counter.message(message)),
            cuttable: cuttable(messages, from, counter, &|message| {
                messages.get(message).map_or(0, |message| counter.message(message))
            }),
            ..Self::default()
        }
    }

    /// The tokens of the next request: the larger of the provider's count and the estimate.
    ///
    /// ```
    /// use threadfold::auto::Pressure;
    ///
    /// let pressure = Pressure { reported: Some(900), since: 50, thread: 700, ..Pressure::default() };
    /// assert_eq!((pressure.tokens(), pressure.estimate()), (950, 700));
    /// ```
    #[must_use]
    pub fn tokens(&self) -> u64 {
        let counted = self.reported.map_or(0, |tokens| tokens.saturating_add(self.since));
        counted.saturating_add(self.pending).max(self.estimate())
    }

    /// The estimate of the next request, regardless of reported counts.
    #[must_use]
    pub fn estimate(&self) -> u64 {
        self.thread.saturating_add(self.overhead).saturating_add(self.pending)
    }

    /// The estimate at which the provider would count this many tokens, as far as it counted more than
    /// the estimate. What a compaction leaves is measured by the estimate alone.
    pub(super) fn in_estimates(&self, tokens: u64) -> u64 {
        let (estimate, counted) = (u128::from(self.estimate()), u128::from(self.tokens()));
        let share = (u128::from(tokens) * estimate).checked_div(counted);
        share
            .and_then(|tokens| u64::try_from(tokens).ok())
            .filter(|_| estimate > 0)
            .unwrap_or(tokens)
    }

    /// Drops a count that must be wrong, such as the sum of all calls. Without an estimate to
    /// compare with, every count is kept.
    pub(super) fn without_wrong_count(self) -> Self {
        let estimate = self.thread.saturating_add(self.overhead);
        let window = self.window.map_or(0, ContextWindow::tokens);
        let reported = self.reported.filter(|reported| {
            estimate == 0 || *reported <= window || is_likely(estimate, *reported)
        });
        Self { reported, ..self }
    }

    /// Scales the estimates by the ratio of reported to estimated tokens. Reported counts and the
    /// window stay.
    ///
    /// ```
    /// use threadfold::{auto::Pressure, tokens::Calibrated};
    ///
    /// let mut ratio = Calibrated::default();
    /// ratio.learn(1_000, 1_200);
    /// let pressure = Pressure { thread: 1_000, overhead: 500, ..Pressure::default() };
    /// assert_eq!(pressure.calibrated(&ratio).tokens(), 1_044 + 522);
    /// ```
    pub fn calibrated(self, ratio: &Calibrated) -> Self {
        Self {
            since: ratio.scale(self.since),
            thread: ratio.scale(self.thread),
            overhead: ratio.scale(self.overhead),
            pending: ratio.scale(self.pending),
            newest: ratio.scale(self.newest),
            said: ratio.scale(self.said),
            cuttable: ratio.scale(self.cuttable),
            ..self
        }
    }

    /// The part of a request of this size that is left for the thread, after system prompt, tools
    /// and the pending message.
    pub(super) fn of_thread(&self, request: u64) -> u64 {
        request.saturating_sub(self.overhead).saturating_sub(self.pending)
    }

    /// The estimate of the messages of the next request.
    #[must_use]
    pub fn messages(&self) -> u64 {
        self.thread.saturating_add(self.pending)
    }

    /// The size of the request with everything removed that the model has read. No compaction goes
    /// below it, unless it exceeds what fits: then unread tool results are cut.
    ///
    /// ```
    /// use threadfold::auto::Pressure;
    ///
    /// let pressure = Pressure { thread: 900, newest: 40, overhead: 100, ..Pressure::default() };
    /// assert_eq!((pressure.floor(), pressure.tokens()), (140, 1_000));
    /// ```
    #[must_use]
    pub fn floor(&self) -> u64 {
        self.overhead.saturating_add(self.newest).saturating_add(self.pending)
    }

    /// The size of the smallest possible request: the floor with its tool results cut.
    pub(super) fn least(&self) -> u64 {
        self.floor().saturating_sub(self.cuttable)
    }
}

/// The index of the message that the user typed last, if the model has read it.
fn said(messages: &[Message], unread: usize) -> Option<usize> {
    messages.iter().rposition(Message::is_typed).filter(|message| *message < unread)
}

/// The tokens of the messages from `unread` on that hold tool results or other text that nobody typed,
/// without what was typed beside it. Only that is counted here: a turn counts no message twice.
fn cuttable(
    messages: &[Message],
    unread: usize,
    counter: &dyn TokenCounter,
    tokens_of: &dyn Fn(usize) -> u64,
) -> u64 {
    let unread = messages.iter().enumerate().skip(unread);
    let results = unread.filter(|(_, it)| it.untyped || it.tool_results().next().is_some());
    let typed = |message: &Message| {
        message.typed_content().map(|block| counter.block(block)).fold(0, u64::saturating_add)
    };
    let cuttable = results.map(|(index, it)| tokens_of(index).saturating_sub(typed(it)));
    cuttable.fold(0, u64::saturating_add)
}

/// Limits of a model's window, learnt from its refusals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Learned {
    /// The maximum tokens that fit, as a refusal stated.
    stated: Option<u64>,
    /// One token less than each size that was refused while the window was unknown.
    refused: BTreeSet<u64>,
    /// The number of answered requests of at least a third of the smallest of these sizes, since the
    /// last refusal.
    near: u32,
    /// How often such a size was dropped and then confirmed by another refusal.
    confirmed: u32,
    /// The tokens that the provider reserves for the answer, if it stated them.
    output: Option<u64>,
    /// The window that the host set when these limits were learnt. A different window means a
    /// different model, for which they do not hold.
    of: Option<ContextWindow>,
    /// The provider's last count before the refusal.
    counted: Option<u64>,
}

impl Learned {
    /// The smaller of the host's window and the learnt limit.
    pub(super) fn window(&self, host: Option<ContextWindow>) -> Option<ContextWindow> {
        let limit = self.limit().filter(|_| self.of == host).map(ContextWindow::new);
        let host = host.filter(|window| window.tokens() > 0);
        [host, limit].into_iter().flatten().min()
    }

    /// The limit that a refusal stated, if it is below the host's window.
    pub(super) fn stated_window(&self, host: Option<ContextWindow>) -> Option<ContextWindow> {
        let stated = self.stated.filter(|_| self.of == host).map(ContextWindow::new)?;
        Some(stated).filter(|stated| host.is_none_or(|host| *stated < host))
    }

    /// The pressure with the learnt limits, and without a count that must be wrong.
    pub(super) fn known(&self, pressure: Pressure) -> Pressure {
        let output = pressure.output.max(self.output.unwrap_or(0));
        let sum_rule = pressure.sum_rule || self.output.is_some();
        let window = self.window(pressure.window);
        Pressure { window, output, sum_rule, ..pressure }.without_wrong_count()
    }

    /// Learns from a refusal: the limit and the reserve that it stated. If it stated no limit,
    /// `at_most` is used: the maximum tokens, reserve included, that can fit if this size did not.
    pub(super) fn refused(
        &mut self,
        pressure: &Pressure,
        stated: Option<u64>,
        output: Option<u64>,
        at_most: u64,
    ) {
        if self.of != pressure.window {
            *self = Self { output: self.output, ..Self::default() };
        }
        if let Some(limit) = stated.filter(|limit| *limit > 0) {
            let known = [pressure.window.map(ContextWindow::tokens), self.stated];
            self.stated = known.into_iter().flatten().chain([limit]).min();
        } else if self.stated.is_none() && pressure.window.is_none() {
            self.refused.insert(at_most);
            self.near = 0;
        }
        self.output = output.filter(|output| *output > 0).or(self.output);
        (self.of, self.counted) = (pressure.window, pressure.reported);
    }

    /// Forgets a stated limit that the provider's own count of an answered request contradicts.
    /// Such counts may be wrong, so sizes that were refused stay until a longer request was
    /// [answered](Self::held).
    pub(super) fn answered(&mut self, pressure: &Pressure) {
        let is_new = pressure.reported != self.counted;
        let answered = self.known(*pressure).reported.filter(|_| is_new);
        self.contradict(answered.unwrap_or(0));
    }

    /// Forgets a stated limit that this count of an answered request contradicts.
    pub(super) fn contradict(&mut self, tokens: u64) {
        self.stated = self.stated.filter(|limit| tokens <= *limit);
    }

    /// Takes the estimated size of an answered request. It contradicts refused sizes that are
    /// smaller, and a stated limit that is much smaller.
    ///
    /// The refusal of a size may have been an error. So after some answered requests near the
    /// smallest size it is dropped, and a longer request is tried. Each time that a refusal confirms
    /// it, twice as many answers are needed, so few requests are refused in all.
    pub(super) fn held(&mut self, tokens: u64) {
        self.contradict(tokens / MAX_OFF);
        let sizes = self.refused.len();
        self.refused.retain(|limit| *limit >= tokens);
        if self.refused.len() < sizes {
            (self.near, self.confirmed) = (0, 0);
        }
        let Some(least) = self.refused.first().copied() else { return };
        // A request that was compacted because of this size has somewhat less than half of it.
        self.near = self.near.saturating_add(u32::from(tokens >= least / 3));
        let needed = DOUBTED_AFTER.saturating_mul(2_u32.saturating_pow(self.confirmed));
        if self.near >= needed {
            self.refused.remove(&least);
            (self.near, self.confirmed) = (0, self.confirmed.saturating_add(1));
        }
    }

    /// Whether a refusal stated the window.
    pub(super) fn has_stated(&self) -> bool {
        self.stated.is_some()
    }

    fn limit(&self) -> Option<u64> {
        [self.stated, self.refused.first().copied()].into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Usage;

    #[test]
    fn the_pressure_of_a_thread_has_what_came_since_the_last_count() {
        let mut answer = Message::assistant("It is done.");
        answer.make_mut().usage = Some(Usage::new(900, 20));
        let mut thread = Thread::default();
        for message in [Message::user("Do it."), answer, Message::user("And again, please.")] {
            thread.push(message);
        }
        let newest = thread.tokens_of(2);
        let (reported, all) = (Some(920), thread.size().tokens);
        let expected =
            Pressure { reported, since: newest, thread: all, newest, ..Pressure::default() };
        assert_eq!(Pressure::of(&thread), expected);
    }

    #[test]
    fn a_ratio_scales_every_estimate_and_nothing_that_was_counted() {
        let mut ratio = Calibrated::default();
        ratio.learn(1_000, 2_000);
        let window = Some(ContextWindow::new(50_000));
        let counted = Pressure { window, reported: Some(900), output: 70, ..Pressure::default() };
        let (since, thread, overhead) = (1_000, 2_000, 3_000);
        let estimated =
            Pressure { since, thread, overhead, pending: 4_000, newest: 5_000, ..counted };
        let up = |tokens| ratio.scale(tokens);
        assert!(up(1_000) > 1_000);
        let expected = Pressure {
            since: up(since),
            thread: up(thread),
            overhead: up(overhead),
            pending: up(4_000),
            newest: up(5_000),
            ..counted
        };
        assert_eq!(estimated.calibrated(&ratio), expected);
    }
}

#[cfg(test)]
mod learned_tests {
    use super::*;

    fn of(window: u64) -> Pressure {
        let window = Some(ContextWindow::new(window));
        Pressure { window, thread: 900, ..Pressure::default() }
    }

    fn tokens(learned: &Learned, window: u64) -> Option<u64> {
        learned.window(Some(ContextWindow::new(window))).map(ContextWindow::tokens)
    }

    #[test]
    fn what_one_model_stated_says_nothing_of_another() {
        let mut learned = Learned::default();
        learned.refused(&of(1_000), Some(700), None, 899);
        assert_eq!((tokens(&learned, 1_000), tokens(&learned, 2_000)), (Some(700), Some(2_000)));
        learned.refused(&of(1_000), None, None, 599);
        assert_eq!(tokens(&learned, 1_000), Some(700), "the same model keeps it");
        learned.refused(&of(2_000), None, None, 899);
        assert_eq!(tokens(&learned, 2_000), Some(2_000), "another forgets it");
    }

    #[test]
    fn a_limit_or_a_reserve_of_nothing_is_none() {
        let mut learned = Learned::default();
        learned.refused(&of(1_000), Some(0), Some(300), 899);
        learned.refused(&of(1_000), None, Some(0), 899);
        assert_eq!((tokens(&learned, 1_000), learned.known(of(1_000)).output), (Some(1_000), 300));
    }

    #[test]
    fn an_answer_that_fills_a_stated_limit_does_not_contradict_it() {
        let mut learned = Learned::default();
        learned.refused(&of(1_000), Some(700), None, 899);
        learned.answered(&Pressure { reported: Some(700), ..of(1_000) });
        assert_eq!(tokens(&learned, 1_000), Some(700));
        learned.answered(&Pressure { reported: Some(701), ..of(1_000) });
        assert_eq!(tokens(&learned, 1_000), Some(1_000));
    }
}
