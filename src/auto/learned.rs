//! Limits of a window, learnt from a provider's refusals.

use std::collections::BTreeSet;

use super::pressure::Pressure;
use crate::message::ContextWindow;

/// Limits of a model's window, learnt from its refusals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Learned {
    /// The most tokens that fit, as a refusal stated.
    stated: Option<u64>,
    /// One token less than each size that was refused while the window was unknown.
    refused: BTreeSet<u64>,
    /// The tokens that the provider reserves for the answer, if it stated them.
    output: Option<u64>,
    /// The window that the host named when these limits were learnt. Another window means another
    /// model, for which they do not hold.
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

    /// The pressure with what was learnt, and without a count that must be wrong.
    pub(super) fn known(&self, pressure: Pressure) -> Pressure {
        let output = pressure.output.max(self.output.unwrap_or(0));
        Pressure { window: self.window(pressure.window), output, ..pressure }.without_wrong_count()
    }

    /// Learns from a refusal: the limit and the reserve that it stated. If it stated no limit,
    /// `at_most` is used: the most tokens, reserve included, that can fit if this size did not.
    pub(super) fn refused(
        &mut self,
        pressure: &Pressure,
        stated: Option<u64>,
        output: Option<u64>,
        at_most: u64,
    ) {
        if self.of != pressure.window {
            (self.stated, self.refused) = (None, BTreeSet::new());
        }
        if let Some(limit) = stated.filter(|limit| *limit > 0) {
            let known = [pressure.window.map(ContextWindow::tokens), self.stated];
            self.stated = known.into_iter().flatten().chain([limit]).min();
        } else if self.stated.is_none() && pressure.window.is_none() {
            self.refused.insert(at_most);
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
        self.stated = self.stated.filter(|limit| answered.is_none_or(|tokens| tokens <= *limit));
    }

    /// Forgets refused sizes that are smaller than this one, because a request of this size was
    /// answered.
    pub(super) fn held(&mut self, tokens: u64) {
        self.refused.retain(|limit| *limit >= tokens);
    }

    fn limit(&self) -> Option<u64> {
        [self.stated, self.refused.first().copied()].into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests {
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
