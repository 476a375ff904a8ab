//! The lists after a summary: what the user typed, and the facts that are missing beside it.

use super::{
    brief::Brief,
    contract::Proposal,
    rules,
    snapshot::Snapshot,
    typed::{self, Typed},
};
use crate::{
    compact::Plan,
    message::{Message, Text},
    prose::{one_line, without_typed},
    retention::{Beside, Fact, Retention, RetentionPolicy},
};

/// What an audit of a proposal with one summary compares with.
pub(super) struct Audit<'a> {
    pub(super) policy: &'a RetentionPolicy,
    pub(super) brief: &'a Brief,
    /// What the messages beside the summary state.
    pub(super) beside: Beside<'a>,
    /// What the whole summary states and nothing in the conversation does.
    pub(super) invented: Vec<Fact>,
}

impl Audit<'_> {
    fn with_enriched(
        &self,
        proposal: &Proposal,
        (text, mut retention): (Text, Retention),
        policy: &RetentionPolicy,
    ) -> Proposal {
        let shortfall = policy.shortfall(&retention);
        let line = one_line(&text);
        let stated = self.invented.iter().filter(|fact| line.contains(fact.text.as_str()));
        retention.invented = stated.cloned().collect();
        let shortfall = shortfall.or_else(|| policy.shortfall(&retention));
        let mut proposal = proposal.clone();
        proposal.plan = proposal.plan.with_last_summary(text);
        proposal.retention = Some(retention.shortened());
        proposal.shortfall = shortfall;
        proposal
    }
}

impl Snapshot {
    /// Audits the summary and appends the missing facts, as far as there is room.
    pub(super) fn enriched(
        &self,
        proposal: Proposal,
        summary: &Text,
        after: &[Message],
        audit: &Audit<'_>,
        merged: &[&str],
    ) -> Proposal {
        let Audit { policy, brief, ref beside, .. } = *audit;
        let statements = self.statements();
        let mut typed = Typed::new(&statements, self, brief, after);
        typed.skip(&without_typed(summary));
        let typed = typed.with_rules(merged);
        // If the summary is blank, the plan shows only the user's words. The lists replace them, so
        // their tokens are free.
        let shown = last_summary(&proposal.plan).filter(|_| summary.is_blank());
        let shown = shown.map_or(0, |shown| self.counter().text(shown));
        let room = self.room(after, brief).saturating_add(shown);
        let shares = merged.is_empty() && !summary.is_blank();
        let (share, most) = match policy.lists_typed() {
            true => self.typed_room(&typed, room, shares, audit),
            false => (0, 0),
        };
        let first = typed.list(share, self.counter());
        let lists =
            Lists { thread: self, proposal: &proposal, summary, typed: &typed, room, audit };
        let grown = lists.room_after(&first).and_then(|left| {
            let tokens = self.counter().text(&first).saturating_add(left);
            let most = if policy.lists_typed() { most.max(policy.addendum_tokens) } else { 0 };
            lists.with(&typed.list(tokens.min(most), self.counter()), |_| true)
        });
        // A counter may count more tokens for the whole text than for its parts, so a text of which
        // every part fits may still be too long.
        let settled = grown
            .or_else(|| lists.with(&first, |fact| lists.is_listed_alone(fact)))
            .or_else(|| lists.with("", |_| true));
        settled.unwrap_or_else(|| {
            let summary = last_summary(&proposal.plan).cloned().unwrap_or_default();
            let bare = RetentionPolicy { addendum_tokens: 0, ..policy.clone() };
            let enriched = beside.enrich(&summary, &bare, self.counter(), |_| true);
            audit.with_enriched(&proposal, enriched, policy)
        })
    }

    /// Returns how many tokens the list of the user's statements gets before the other facts are
    /// listed, and how many it may have in the end. If the list `shares` the room with other facts,
    /// a sixth of the room is theirs, unless rules or statements need it.
    fn typed_room(
        &self,
        typed: &Typed<'_>,
        room: u64,
        shares: bool,
        audit: &Audit<'_>,
    ) -> (u64, u64) {
        let share = typed.room(room, room, self.counter());
        if !shares {
            return (share.min(room), room);
        }
        let (target, longest) = (audit.brief.target, typed::most(room));
        let target = target.unwrap_or(audit.policy.addendum_tokens);
        let most = typed.share_of(target).max(typed.emphasised(self.counter()).min(longest));
        (share.min(most).min(longest), most)
    }
}

/// A proposal whose summary gets a list of what the user typed, and the missing facts after it.
struct Lists<'a> {
    thread: &'a Snapshot,
    proposal: &'a Proposal,
    summary: &'a Text,
    typed: &'a Typed<'a>,
    /// The tokens for both lists.
    room: u64,
    audit: &'a Audit<'a>,
}

impl Lists<'_> {
    /// Returns the summary with a list of what the user typed, and the policy for the facts after
    /// it; `None` if both are empty.
    fn listed(&self, list: &str) -> Option<(Text, RetentionPolicy)> {
        if self.summary.is_blank() && list.is_empty() {
            return None;
        }
        let (policy, tokens) = (self.audit.policy, self.thread.counter().text(list));
        let addendum_tokens = self.room.saturating_sub(tokens).min(policy.addendum_tokens);
        let policy = RetentionPolicy { addendum_tokens, ..policy.clone() };
        Some((rules::joined(self.summary, list), policy))
    }

    /// Returns the settled proposal with this list and with those missing facts for which
    /// `is_listed` is `true`, if it is acceptable.
    fn with(&self, list: &str, is_listed: impl Fn(&Fact) -> bool) -> Option<Proposal> {
        let (summary, policy) = self.listed(list)?;
        let Audit { beside, brief, .. } = self.audit;
        let enriched = beside.enrich(&summary, &policy, self.thread.counter(), is_listed);
        let settled = self.audit.with_enriched(self.proposal, enriched, &policy);
        self.thread.accept(&settled.plan, brief).ok().map(|_| settled)
    }

    /// Returns the tokens that the addendum leaves after this list. The list grows into them; the
    /// rest is for facts without their statements.
    fn room_after(&self, list: &str) -> Option<u64> {
        let (summary, policy) = self.listed(list)?;
        let Audit { beside, brief, .. } = self.audit;
        let counter = self.thread.counter();
        let text = beside.text(&summary, &policy, counter, |fact| self.is_listed_alone(fact));
        let plan = self.proposal.plan.clone().with_last_summary(text);
        let after = self.thread.accept(&plan, brief).ok()?;
        Some(self.thread.room(&after, brief))
    }

    /// Whether a fact is listed by itself. What the user typed is listed in whole statements, a
    /// value with its subject.
    fn is_listed_alone(&self, fact: &Fact) -> bool {
        !self.audit.policy.lists_typed() || !self.typed.covers(fact)
    }
}

/// Returns the text of the last new summary of a plan.
pub(super) fn last_summary(plan: &Plan) -> Option<&Text> {
    plan.new_messages().flat_map(Message::summaries).last().map(|summary| &summary.text)
}
