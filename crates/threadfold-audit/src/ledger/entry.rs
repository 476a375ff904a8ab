//! A rule of a ledger with the meaning of its words, and how later sentences change it.

use super::{
    correction::{Correction, Fit, contains},
    english::in_english,
    meaning::Meaning,
    rule::Rule,
    terms::Terms,
    words::{listed, words},
};
use crate::{message::steps, prose::Subject};

/// A rule, and what its words mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) rule: Rule,
    pub(super) key: String,
    meaning: Meaning,
    pub(super) subject: Subject,
    terms: Terms,
}

impl Entry {
    /// `demand` is the sentence of the rule that demands something.
    pub(super) fn new(rule: Rule, key: String, demand: &str) -> Self {
        let subject = Subject::of(&rule.text);
        Self {
            key,
            meaning: Meaning::of(&in_english(demand)),
            terms: Terms::of(&subject),
            subject,
            rule,
        }
    }

    /// Whether later sentences of the user can revoke the rule.
    pub(super) fn is_revocable(&self) -> bool {
        self.rule.holds() && self.rule.position.is_some()
    }

    /// Whether a later subject with these terms gives another value for the subject of the rule.
    pub(super) fn is_revalued_by(&self, later: &Subject, terms: &Terms) -> bool {
        if !terms.may_replace(&self.terms) {
            return false;
        }
        steps::round();
        later.replaces(&self.subject)
    }

    /// Whether the rule keeps something within a limit. A later sentence about that thing is not a
    /// new limit: `The frames take 11 ms now`.
    pub(super) fn is_limit(&self) -> bool {
        self.meaning.topic.first().is_some_and(|verb| listed(" keep limit cap hold ", verb))
    }

    /// Returns how well a correction fits the rule.
    pub(super) fn fit(&self, correction: &Correction) -> Fit {
        let meaning = &self.meaning;
        let is_named = match correction {
            _ if !self.is_revocable() => return Fit::None,
            Correction::Allows(about) if meaning.forbids == Some(true) => {
                return about.fit(meaning);
            }
            Correction::Releases(about) if meaning.forbids == Some(false) => {
                return about.fit(meaning);
            }
            Correction::Allows(_) | Correction::Releases(_) => false,
            Correction::Forgets(topic) => contains(meaning, topic),
            Correction::Names(text) => {
                let words: Vec<String> = words(&self.key).collect();
                text.contains(&format!(" {} ", words.join(" ")))
            }
            Correction::All => return Fit::Whole,
        };
        if is_named { Fit::Part } else { Fit::None }
    }

    /// Whether this announces a change and differs from the old choice in one thing.
    pub(super) fn may_replace(&self, old: &Self) -> bool {
        match (&self.meaning.choice, &old.meaning.choice) {
            (Some(new), Some(old)) => new.is_change && new.differs_in_one(old),
            _ => false,
        }
    }

    /// Whether this clearly contradicts the old rule.
    pub(super) fn replaces(&self, old: &Self) -> bool {
        self.meaning.contradicts(&old.meaning) || old.is_revalued_by(&self.subject, &self.terms)
    }
}
