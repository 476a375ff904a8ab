//! Acceptance of a proposal: it is rejected, or completed with what its summary left out.

use std::sync::Arc;

use super::{
    brief::Brief,
    contract::Proposal,
    digest, rules,
    snapshot::{Rejection, Snapshot},
    typed::Typed,
};
use crate::{
    compact::Plan,
    message::{ContentBlock, Message, Summary, Text},
    prose::without_typed,
    retention::{Enriched, Fact, Facts, RetentionPolicy, Shortfall, enrich, enrich_with, invented},
};

/// An accepted proposal.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settled {
    /// The proposal, with an addendum for what its summary left out.
    pub proposal: Proposal,
    /// Why it still keeps too few facts, if it does.
    pub shortfall: Option<Shortfall>,
}

impl Snapshot {
    /// Returns the proposal ready to apply: checked by [`accept`](Self::accept), and, if the brief
    /// sets a retention policy, with an addendum of missing facts after its last summary, within
    /// the target and the policy.
    ///
    /// The active standing rules come first, word for word, except those that the user typed in a
    /// message that stays or that the system prompt holds. A model's wording of a rule does not
    /// count. If the rules do not fit, the summary shrinks by up to half. Revoked rules are neither
    /// added nor missed.
    ///
    /// What the user typed follows, statement by statement and word for word: at first up to half
    /// of the room, then facts that are still missing, then more statements in the room that is left.
    /// A value that the user replaced is not listed. If rules and statements do not both fit, the
    /// rules are the first of the statements, and the summary loses lines that only repeat them.
    ///
    /// For every plan, reasoning after the first change is [marked](Plan::with_reasoning_marked),
    /// new summaries get the number of the compaction, and if the thread has checkpoints, each summary inserted as a user message ends with a fresh
    /// one. Settling the result again changes neither.
    ///
    /// A plan without a summary is audited and kept as it is, except that rules which it removes
    /// are inserted as a summary of their own. A proposal that was audited before is not audited
    /// again.
    ///
    /// ```
    /// use threadfold::{Message, Plan, compact::{Insert, Splice}};
    /// use threadfold::message::{Role, Summary};
    /// use threadfold::retention::RetentionPolicy;
    /// use threadfold::strategy::{Brief, Proposal, Snapshot};
    ///
    /// let padding = "Words without much in them. ".repeat(20);
    /// let said = Message::user(format!("Never touch the lexer. {padding}"));
    /// let thread = Snapshot::new(vec![said, Message::assistant("Fine."), Message::user("Go on.")]);
    /// let message = Message::summary(Role::User, Summary::new("They talked."));
    /// let splice = Splice { at: 0..2, insert: vec![Insert::Message { message }] };
    /// let proposal = Proposal::new(Plan::from_splices(3, vec![splice]));
    /// let brief = Brief { retention: Some(RetentionPolicy::default()), ..Brief::default() };
    /// let settled = thread.settle(proposal, &brief)?;
    /// let summary = settled.proposal.plan.new_messages().next().unwrap();
    /// assert!(format!("{summary:?}").contains("- Never touch the lexer."));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Rejection`], as in [`accept`](Self::accept).
    pub fn settle(&self, proposal: Proposal, brief: &Brief) -> Result<Settled, Rejection> {
        let plan = numbered(proposal.plan.with_reasoning_marked(self.messages()), brief);
        let plan = self.stamped(plan, brief);
        let proposal = Proposal { plan, ..proposal };
        let after = self.accept(&proposal.plan, brief)?;
        let Some(policy) = &brief.retention else {
            return Ok(Settled { proposal, shortfall: None });
        };
        let summary = last_summary(&proposal.plan).cloned();
        if let Some(retention) = &proposal.retention {
            let shortfall = summary.and_then(|_| policy.shortfall(retention));
            return Ok(Settled { proposal, shortfall });
        }
        let adds_rules = policy.addendum_tokens > 0;
        match summary {
            Some(summary) if adds_rules => {
                let (proposal, summary, merged) =
                    self.append_rules(proposal, summary, &after, brief);
                let after = self.accept(&proposal.plan, brief)?;
                Ok(self.enriched(proposal, &summary, &after, policy, brief, &merged))
            }
            Some(summary) => Ok(self.enriched(proposal, &summary, &after, policy, brief, &[])),
            None => {
                let proposal =
                    if adds_rules { self.insert_rules(proposal, &after, brief) } else { proposal };
                let after = self.accept(&proposal.plan, brief)?;
                let retention = self.current_facts(policy).audit(&after).shortened();
                let proposal = Proposal { retention: Some(retention), ..proposal };
                Ok(Settled { proposal, shortfall: None })
            }
        }
    }

    /// Returns the proposal as [`settle`](Self::settle) does; if it misses the target of the brief,
    /// accepts up to `limit` tokens instead, for example what fits the window. A thread over the
    /// target that fits is better than one that does not. Without a limit, any thread smaller than
    /// before is accepted.
    ///
    /// ```
    /// use threadfold::{Message, Plan, compact::Splice};
    /// use threadfold::strategy::{Brief, Proposal, Rejection, Snapshot};
    ///
    /// let said = |number: usize| Message::user(format!("{number} {}", "words ".repeat(30)));
    /// let thread = Snapshot::new((0..4).map(said).collect::<Vec<_>>());
    /// let plan = Plan::from_splices(4, vec![Splice { at: 0..1, insert: Vec::new() }]);
    /// let brief = Brief { target: Some(80), ..Brief::default() };
    /// let refused = thread.settle(Proposal::new(plan.clone()), &brief).unwrap_err();
    /// assert!(matches!(refused, Rejection::OverTarget { target: 80, .. }));
    /// assert!(thread.settle_within(Proposal::new(plan.clone()), &brief, Some(200)).is_ok());
    /// let refused = thread.settle_within(Proposal::new(plan), &brief, Some(100)).unwrap_err();
    /// assert!(matches!(refused, Rejection::OverTarget { target: 100, .. }));
    /// ```
    ///
    /// # Errors
    ///
    /// As in [`settle`](Self::settle), except that the target may be missed up to the limit.
    pub fn settle_within(
        &self,
        proposal: Proposal,
        brief: &Brief,
        limit: Option<u64>,
    ) -> Result<Settled, Rejection> {
        let is_wider = limit.is_none_or(|limit| brief.target.is_some_and(|target| target < limit));
        match self.settle(proposal.clone(), brief) {
            Err(Rejection::OverTarget { .. }) if is_wider => {
                self.settle(proposal, &Brief { target: limit, ..brief.clone() })
            }
            settled => settled,
        }
    }

    /// The facts of the whole conversation, without revoked rules and those in the system prompt.
    fn current_facts(&self, policy: &RetentionPolicy) -> Arc<Facts> {
        let facts = self.facts(&policy.audit);
        let elsewhere = self.rules_elsewhere();
        if elsewhere.is_empty() {
            return facts;
        }
        Arc::new(Arc::unwrap_or_clone(facts).without_constraints(elsewhere))
    }

    /// Audits the summary and appends the missing facts, as far as there is room.
    fn enriched(
        &self,
        proposal: Proposal,
        summary: &Text,
        after: &[Message],
        policy: &RetentionPolicy,
        brief: &Brief,
        merged: &[&str],
    ) -> Settled {
        let facts = self.current_facts(policy);
        let statements = self.statements();
        let mut typed = Typed::new(&statements, self, brief, after);
        typed.skip(&without_typed(summary));
        let typed = typed.with_rules(merged);
        let is_alone = summary.is_blank();
        let room = self.room_beside(&proposal.plan, summary, after, brief);
        let lists = policy.lists_typed();
        let most = match lists {
            false => 0,
            true if merged.is_empty() && !is_alone => typed
                .share_of(brief.target.unwrap_or(policy.addendum_tokens))
                .max(typed.emphasised(self.counter()).min(room / 3 * 2)),
            true => room,
        };
        let share = typed.room(room, room, self.counter()).min(most);
        // Other facts get half of the room, unless rules or the user's words need it.
        let share = if merged.is_empty() && !is_alone { share.min(room / 2) } else { share };
        let first = typed.list(share, self.counter());
        let invented = self.invented(summary, &facts);
        let with = |list: &str, all: bool| {
            if is_alone && list.is_empty() {
                return None;
            }
            let tokens = room.saturating_sub(self.counter().text(list)).min(policy.addendum_tokens);
            let policy = RetentionPolicy { addendum_tokens: tokens, ..policy.clone() };
            // What the user typed is listed in whole statements, a value with its subject.
            let is_listed = |fact: &Fact| all || !lists || !typed.covers(fact);
            let summary = rules::joined(summary, list);
            let enriched = enrich_with(&summary, &facts, after, &policy, self.counter(), is_listed);
            let settled = with_enriched(&proposal, summary, enriched, &invented, &policy);
            let after = self.accept(&settled.proposal.plan, brief).ok()?;
            Some((settled, self.room(&after, brief)))
        };
        let settled = with(&first, false);
        // The list grows into the room that the addendum left, and what then is left is for facts
        // without their statements.
        let grown = settled.as_ref().and_then(|(_, left)| {
            let tokens = self.counter().text(&first).saturating_add(*left);
            let most = if lists { most.max(policy.addendum_tokens) } else { 0 };
            with(&typed.list(tokens.min(most), self.counter()), true)
        });
        // The parts may fit while the counter counts more tokens for the whole.
        let settled = grown.or(settled).or_else(|| with("", true));
        settled.map(|(settled, _)| settled).unwrap_or_else(|| {
            let summary = last_summary(&proposal.plan).cloned().unwrap_or_default();
            let bare = RetentionPolicy { addendum_tokens: 0, ..policy.clone() };
            let enriched = enrich(&summary, &facts, after, &bare, self.counter());
            with_enriched(&proposal, summary, enriched, &invented, policy)
        })
    }

    /// Tokens for lists after a summary. A blank one stands for the user's words alone, which the
    /// plan shows so far and the lists replace.
    fn room_beside(&self, plan: &Plan, summary: &Text, after: &[Message], brief: &Brief) -> u64 {
        let shown = last_summary(plan).filter(|_| summary.is_blank());
        let shown = shown.map_or(0, |shown| self.counter().text(shown));
        self.room(after, brief).saturating_add(shown)
    }

    /// What a summary states and nothing in the conversation does. A digest only quotes.
    fn invented(&self, summary: &str, facts: &Facts) -> Vec<Fact> {
        if digest::is_digest(summary) {
            return Vec::new();
        }
        invented(summary, facts, self.messages())
    }
}

fn with_enriched(
    proposal: &Proposal,
    summary: Text,
    enriched: Enriched,
    invented: &[Fact],
    policy: &RetentionPolicy,
) -> Settled {
    let (text, shortfall, mut retention) = match enriched {
        Enriched::Enough { retention } => (summary, None, retention),
        Enriched::WithAddendum { text, retention, .. } => (text, None, retention),
        Enriched::TooLittle { text, reason, retention } => (text, Some(reason), retention),
    };
    retention.invented = invented.to_vec();
    let shortfall = shortfall.or_else(|| policy.shortfall(&retention));
    let mut proposal = proposal.clone();
    proposal.plan = proposal.plan.with_last_summary(text);
    proposal.retention = Some(retention.shortened());
    Settled { proposal, shortfall }
}

/// The plan with the number of the compaction in every new summary that has none.
fn numbered(plan: Plan, brief: &Brief) -> Plan {
    let Some(id) = brief.compaction else { return plan };
    plan.with_new_messages(|message| {
        for index in 0..message.content.len() {
            let Some(ContentBlock::Summary(summary)) = message.content.get(index) else { continue };
            if summary.compaction.is_some() {
                continue;
            }
            let summary = Summary { compaction: Some(id), ..summary.clone() };
            if let Some(block) = message.make_mut().content.get_mut(index) {
                *block = summary.into();
            }
        }
    })
}

fn last_summary(plan: &Plan) -> Option<&Text> {
    let blocks = plan.new_messages().flat_map(|message| &message.content);
    let summaries = blocks.filter_map(|block| {
        if let ContentBlock::Summary(summary) = block { Some(&summary.text) } else { None }
    });
    summaries.last()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        compact::{Insert, Splice},
        message::{CompactionId, Role, Thinking},
    };

    #[test]
    fn new_summaries_get_the_number_of_the_compaction_and_others_keep_theirs() {
        let old = Summary { compaction: Some(CompactionId(3)), ..Summary::new("Old.") };
        let thread = vec![
            Message::user("Something of some length, so that removing it pays, and then some."),
            Message::summary(Role::User, old),
            Message::user("Go on."),
        ];
        let plan = Plan::summarise(&thread, 0..1, "New.").unwrap();
        let brief = Brief { compaction: Some(CompactionId(7)), ..Brief::default() };
        let snapshot = Snapshot::new(thread.clone());
        let settled = snapshot.settle(Proposal::new(plan), &brief).unwrap();
        let after = settled.proposal.plan.after(&thread).unwrap();
        let numbers = after.iter().flat_map(|message| &message.content).filter_map(|block| {
            if let ContentBlock::Summary(summary) = block { summary.compaction } else { None }
        });
        assert_eq!(numbers.collect::<Vec<_>>(), [CompactionId(7), CompactionId(3)]);
    }

    fn thoughtful(text: &str) -> Message {
        let thought = Thinking::new("Hm.", Some("sig".into()));
        Message::new(Role::Assistant, vec![thought.into(), ContentBlock::text(text)])
    }

    fn marks(plan: &Plan, thread: &[Message]) -> Vec<bool> {
        plan.after(thread).unwrap().iter().map(|message| message.prefix_rewritten).collect()
    }

    #[test]
    fn reasoning_after_the_first_change_is_marked_however_the_plan_was_made() {
        let question = || Message::user("Something of some length, so that removing it pays.");
        let thread = vec![
            question(),
            thoughtful("one"),
            question(),
            thoughtful("two"),
            Message::user("Go on."),
        ];
        let snapshot = Snapshot::new(thread.clone());
        // A host's own plan that also inserts an old answer as a new message.
        let again = Insert::Message { message: thoughtful("again") };
        let splices =
            vec![Splice { at: 2..3, insert: Vec::new() }, Splice { at: 4..4, insert: vec![again] }];
        let plan = Plan::from_splices(5, splices);
        assert_eq!(marks(&plan, &thread), [false; 5]);
        let settled = snapshot.settle(Proposal::new(plan), &Brief::default()).unwrap();
        let plan = settled.proposal.plan.clone();
        assert_eq!(marks(&plan, &thread), [false, false, true, true, false]);
        // The stored plan holds the marks, and settling again finds nothing to mark.
        let stored = serde_json::to_string(&plan).unwrap();
        let read: Plan = serde_json::from_str(&stored).unwrap();
        assert_eq!(read.after(&thread).unwrap(), plan.after(&thread).unwrap());
        let again = snapshot.settle(settled.proposal, &Brief::default()).unwrap();
        assert_eq!(again.proposal.plan, plan);
    }
}
