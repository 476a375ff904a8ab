//! Completing a summary with the facts that it lost, and judging whether it keeps enough.
//!
//! Missing facts are listed until the required share of each class, by weight, is stated. The class
//! with the lowest share comes first.

use std::collections::HashSet;

use super::{addendum::addendum_up_to, facts::Facts, options::RetentionPolicy, search::Search};
use crate::{
    message::{Message, Text},
    prose::fingerprint,
    tokens::TokenCounter,
};
use threadfold_core::retention::{Fact, Retention};

/// Returns the summary, followed by an addendum of the facts that it lost if the policy wants one,
/// and the audit of the result. [`RetentionPolicy::shortfall`] decides whether it keeps enough.
///
/// `after` is the thread without the messages that the summary replaces; it may contain the
/// summary. Missing facts are chosen as by [`addendum`](super::addendum()).
///
/// ```
/// use threadfold::Message;
/// use threadfold::retention::{Facts, RetentionPolicy, enrich};
/// use threadfold::tokens::ByteEstimate;
///
/// let before = [Message::user("Fix src/parse.rs, but not src/lex.rs.")];
/// let facts = Facts::of(&before, &RetentionPolicy::default());
/// let policy = RetentionPolicy::default();
/// let summary = "src/parse.rs is fixed.";
/// let (text, kept) = enrich(summary, &facts, &[], &policy, &ByteEstimate::TRIGGER);
/// assert!(text.ends_with("\n- src/lex.rs\n"));
/// assert_eq!(policy.shortfall(&kept), None);
/// ```
#[must_use]
pub fn enrich(
    summary: &str,
    facts: &Facts,
    after: &[Message],
    policy: &RetentionPolicy,
    counter: &dyn TokenCounter,
) -> (Text, Retention) {
    Beside(facts.search(after)).enrich(summary, policy, counter, |_| true)
}

/// The facts that the remaining messages state. Several summaries can then be tried with them.
#[doc(hidden)]
#[derive(Debug)]
pub struct Beside<'f>(Search<'f>);

impl Facts {
    /// Returns which of the facts these messages state. What a message states that was read before is
    /// known; summaries and changed messages are searched.
    #[doc(hidden)]
    pub fn beside<'m>(&self, stay: impl IntoIterator<Item = &'m Message>) -> Beside<'_> {
        let marked = stay.into_iter().map(|message| (fingerprint(message), message));
        let mut marked: Vec<(u64, &Message)> = marked.collect();
        let marks: HashSet<u64> = marked.iter().map(|(mark, _)| *mark).collect();
        let read = (0..self.messages).rev().zip(&self.read);
        let known = read.filter(|(_, mark)| marks.contains(mark));
        let (stay, known): (HashSet<usize>, HashSet<u64>) = known.unzip();
        let mut search = Search::new(&self.gathered, self.messages, &self.options, &stay);
        marked.retain(|(mark, message)| message.is_summary() || !known.contains(mark));
        marked.into_iter().for_each(|(_, message)| search.read(message));
        Beside(search)
    }
}

impl Beside<'_> {
    /// Which of the facts the messages state, and which they lack.
    #[doc(hidden)]
    #[must_use]
    pub fn retention(&self) -> Retention {
        self.0.retention()
    }

    /// Returns what [`enrich`] returns, with an addendum that lists only facts for which `lists` is
    /// `true`.
    #[doc(hidden)]
    pub fn enrich(
        &self,
        summary: &str,
        policy: &RetentionPolicy,
        counter: &dyn TokenCounter,
        lists: impl Fn(&Fact) -> bool,
    ) -> (Text, Retention) {
        let mut search = self.0.clone();
        search.read_summary(summary);
        let without = search.retention();
        let mut listed = without.clone();
        listed.missing.retain(lists);
        let budget = policy.addendum_tokens;
        let Some(addendum) = addendum_up_to(policy.wanted, &listed, budget, counter) else {
            return (summary.into(), without);
        };
        search.read_summary(&addendum);
        (format!("{}\n\n{addendum}", summary.trim_end()).into(), search.retention())
    }
}

impl RetentionPolicy {
    /// Whether the user's typed text is listed.
    #[doc(hidden)]
    #[must_use]
    pub fn lists_typed(&self) -> bool {
        self.addendum_tokens > 0 && self.typed_percent > 0
    }

    /// Returns why a summary with this retention keeps too little, or `None` if it keeps enough.
    ///
    /// ```
    /// use threadfold::retention::{Retention, RetentionPolicy};
    ///
    /// assert_eq!(RetentionPolicy::default().shortfall(&Retention::default()), None);
    /// ```
    #[must_use]
    pub fn shortfall(&self, retention: &Retention) -> Option<Text> {
        let found = retention.invented.len() as u64;
        if let Some(most) = self.max_invented.filter(|most| found > *most) {
            let text = format!(
                "it states {found} facts that the conversation does not; {most} are allowed"
            );
            return Some(text.into());
        }
        let (found, minimum) = (retention.overall.weight_percent(), self.minimum);
        (found < minimum).then(|| {
            format!(
                "the summary keeps {found} % of the facts by weight; the minimum is {minimum} %"
            )
            .into()
        })
    }
}
