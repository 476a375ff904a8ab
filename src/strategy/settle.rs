//! Acceptance of a proposal: it is rejected, or completed with the facts that its summary omits.
//!
//! A plan is compared with the thread before it: real histories contain violations, and a plan is
//! rejected only for those that it adds. Settling completes the plans of hosts like those of
//! strategies.
//!
//! A poor summary is completed before it is rejected. Strategies leave room for the lists: cuts and
//! digests are made up to a quarter shorter than the target. The minimum that a policy demands is a
//! separate, lower number than the share that an addendum restores. It is a share of what the thread
//! states, because a summary cannot keep what earlier ones lost. A ladder takes its next rung below
//! that minimum, and finally the summary that keeps most, because losing something is better
//! than a thread that no longer fits. The summary of a strategy without a ladder is always taken.
//!
//! If a plan only shortens messages, the facts that it removes are listed before its first change,
//! in at most half of the tokens that it frees. A plan that drops messages is meant to forget them.

use std::{cell::OnceCell, sync::Arc};

use super::{
    brief::Brief,
    clip::{excerpt, without_stated},
    digest,
    full_summary::with_summaries,
    lists::{Audit, RULES_TOKENS, Settling, joined, last_summary, shortfall},
    proposal::Proposal,
    rejection::Rejection,
    snapshot::Snapshot,
    typed,
};
use crate::{
    compact::Plan,
    ledger::{self, QuotedChanges, Quotes, TypedText},
    message::{Message, Role, Summary, Text},
    retention::{Fact, Facts, RetentionPolicy, enrich, invented},
};

/// The share of a missed target that lists may add: an eighth.
const MISSED_SHARE: u64 = 8;

/// The tokens that lists may add in any case: a title and two sentences of the user.
const MISSED_TOKENS: u64 = 64;

/// If a filled summary keeps so many percent of the facts less than are wanted, it is shortened for
/// them like any other.
const MUCH: u64 = 10;

/// Summaries with fewer tokens are not shortened to make room for facts.
const SHORT_TOKENS: u64 = 100;

impl Snapshot {
    /// Returns the proposal ready to apply: checked by [`accept`](Self::accept), and, if the brief
    /// sets a retention policy, with an addendum of missing facts after its last summary, within
    /// the target and the policy.
    ///
    /// The active standing rules come first, word for word, except those that the user typed in a
    /// message that stays or that the system prompt holds. A rule in a model's words does not count
    /// as stated. If the rules do not fit, the summary is shortened by up to half. Revoked rules
    /// are neither added nor counted as missing.
    ///
    /// What the user typed follows, statement by statement and word for word: at first up to half
    /// of the room, then facts that are still missing, then more statements in the room that is
    /// left. An earlier value with nearly the same words is listed last, and what the user took back
    /// is not listed. If rules and statements do not both fit, the rules are the first of the
    /// statements, and the summary loses sentences that only repeat them. A long summary is cut by an
    /// eighth, to a half or to an eighth, sentences without facts first, if that makes room for
    /// clearly more of the facts and statements.
    ///
    /// A summary that fills its target ([`Digest`](crate::strategy::Digest), and those of models
    /// beside it) has these lists already. It gets the rules, and after a model's account the few
    /// facts that fit the room left for them; it is shortened only if it lacks many.
    ///
    /// The [quotes](Proposal::quotes) of the proposal are checked against what the user typed. Those
    /// that hold become standing rules at once; [`quoted`](Proposal::quoted) says which.
    ///
    /// What the host set in the thread for all that follows, such as further tools, stays in effect: a
    /// summary holds it beside its text.
    ///
    /// The [notes](Self::with_notes) of the agent follow at the end, word for word, if the messages
    /// that stay do not show them.
    ///
    /// For every plan, reasoning after the first change is [marked](Plan::with_reasoning_marked),
    /// and new summaries get the number of the compaction. If the thread has checkpoints, each
    /// summary inserted as a user message ends with a fresh one. Settling the result again changes
    /// nothing.
    ///
    /// A plan without a summary is audited. If it leaves rules unstated, they are inserted as a summary
    /// of their own; if it only shortens messages, the missing facts are added as well, in at most
    /// half of the tokens that the plan frees. A proposal that was audited before is not audited
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
    /// let summary = settled.plan.new_messages().next().unwrap();
    /// assert!(format!("{summary:?}").contains("- Never touch the lexer."));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Rejection`], as in [`accept`](Self::accept).
    pub fn settle(&self, proposal: Proposal, brief: &Brief) -> Result<Proposal, Rejection> {
        if proposal.quotes.is_empty() {
            return self.listed(proposal, brief);
        }
        let (thread, quoted) = self.quoted(&proposal.quotes, brief);
        thread.listed(Proposal { quoted, ..proposal }, brief)
    }

    /// Returns the checked proposal with all lists.
    fn listed(&self, proposal: Proposal, brief: &Brief) -> Result<Proposal, Rejection> {
        self.settled_with_notes(proposal, brief, |proposal, brief| {
            let settled = self.audited(proposal, brief)?;
            self.with_rules_counted(settled, brief)
        })
    }

    /// Returns the thread with the rules that hold after these quotes, and what they change.
    pub(super) fn quoted(&self, quotes: &Quotes, brief: &Brief) -> (Self, QuotedChanges) {
        let quoted = self.rules().quoted(quotes, &self.typed_text(), &brief.moderators);
        let mut rules = self.rules().clone();
        rules.apply(&quoted);
        (self.clone().with_rules(Arc::new(rules)), quoted)
    }

    /// What the user typed in the conversation, as far as it is known, to check quotes against.
    fn typed_text(&self) -> TypedText {
        let mut typed = TypedText::default();
        for statement in self.statements().holding() {
            typed.read_text(None, statement.author.as_ref(), &statement.text);
        }
        for (index, message) in self.messages().iter().enumerate() {
            let number = self.numbers.get(index).copied().flatten();
            typed.read(number.and_then(|number| usize::try_from(number).ok()), message);
        }
        typed
    }

    /// Returns the checked and audited proposal.
    fn audited(&self, proposal: Proposal, brief: &Brief) -> Result<Proposal, Rejection> {
        let plan = numbered(proposal.plan.with_reasoning_marked(self.messages()), brief);
        let plan = self.with_settings(self.completed(self.stamped(plan, brief), brief));
        let proposal = Proposal { plan, ..proposal };
        let Some(policy) = &brief.retention else {
            self.accept(&proposal.plan, brief)?;
            return Ok(Proposal { shortfall: None, ..proposal });
        };
        let settling = Settling { thread: self, brief, policy };
        let after = self.accept(&proposal.plan, brief)?;
        let summary = last_summary(&proposal.plan).cloned();
        if proposal.retention.is_some() {
            return Ok(proposal);
        }
        let adds_rules = policy.addendum_tokens > 0;
        match summary {
            Some(summary) => {
                let facts = settling.thread.facts(policy);
                let audit = settling.audit(&summary, &facts, &after);
                let listed = || audit.listed(&proposal, &summary, &after);
                if proposal.is_filled {
                    let filled = audit.filled(&proposal, &summary, &after)?;
                    let may_shorten = adds_rules && !digest::is_digest(&summary);
                    return match may_shorten && filled.lacks_much(policy) {
                        true => Ok(listed().unwrap_or(filled)),
                        false => Ok(filled),
                    };
                }
                if !adds_rules {
                    return Ok(audit.enriched(proposal, &summary, &after, &[]));
                }
                listed()
            }
            None => {
                let proposal = match adds_rules {
                    true => settling.with_removed(proposal, &after),
                    false => proposal,
                };
                let after = self.accept(&proposal.plan, brief)?;
                let facts = settling.thread.facts(policy);
                let retention = facts.beside(&after).retention().shortened();
                Ok(Proposal { retention: Some(retention), shortfall: None, ..proposal })
            }
        }
    }

    /// Returns the proposal as [`settle`](Self::settle) does; if it misses the target of the brief,
    /// accepts up to `limit` tokens instead, for example those that fit the window: a thread that
    /// fits is better than one that does not, even over the target. Without a target, the limit is
    /// the target; without a limit, any thread smaller than before is accepted.
    ///
    /// ```
    /// use threadfold::{Message, Plan, compact::Splice};
    /// use threadfold::strategy::{Brief, Proposal, Rejection, Snapshot};
    ///
    /// let said = |number: usize| Message::assistant(format!("{number} {}", "words ".repeat(30)));
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
    ) -> Result<Proposal, Rejection> {
        let limit = limit.map(|limit| self.reachable_limit(brief, limit));
        let is_wider = limit.is_none_or(|limit| brief.target.is_some_and(|target| target < limit));
        let within = Brief { target: limit, ..brief.clone() };
        match self.settle(proposal.clone(), brief) {
            Err(Rejection::OverTarget { .. }) if is_wider => {
                // Lists that fill the room up to the limit would bring the next compaction at once.
                let lists = brief.target.map(|target| (target / MISSED_SHARE).max(MISSED_TOKENS));
                let mut thread = self.clone();
                thread.lists = lists;
                thread.settle(proposal, &within)
            }
            Ok(settled) if brief.target.is_none() => {
                // Nothing has limited the size yet.
                let after = self.tokens_after(&settled.plan)?;
                if limit.is_none_or(|limit| after <= limit) {
                    return Ok(settled);
                }
                self.settle(proposal, &within)
            }
            settled => settled,
        }
    }
}

impl Snapshot {
    /// The tokens of the facts that settling would add after the summary of a plan, if there were
    /// room.
    pub(super) fn lacking(&self, plan: &Plan, brief: &Brief) -> u64 {
        let policy = brief.retention.as_ref().filter(|policy| policy.addendum_tokens > 0);
        let after = plan.after(self.messages()).ok();
        let (Some(policy), Some(after), Some(summary)) = (policy, after, last_summary(plan)) else {
            return 0;
        };
        let facts = self.facts(policy);
        let audit = Settling { thread: self, brief, policy }.audit(summary, &facts, &after);
        let (all, _) = audit.with_facts(summary, u64::MAX);
        self.counter().text(&all).saturating_sub(self.counter().text(summary))
    }

    /// Returns the proposal with the active rules that the compacted thread does not state, for which
    /// lines of the summary give way, the last ones first. If the rules do not fit even alone, a short
    /// list of them misses the target, and of a longer one those are counted that are not listed. If not even that fits, the target is missed, up to the limit of the
    /// brief or the window: no rule is lost without a word.
    ///
    /// # Errors
    ///
    /// [`Rejection::NotSmaller`] if the thread would be as large as before with this line alone: it
    /// is better left as it is.
    fn with_rules_counted(&self, proposal: Proposal, brief: &Brief) -> Result<Proposal, Rejection> {
        let adds_rules = brief.retention.as_ref().is_some_and(|policy| policy.addendum_tokens > 0);
        if !adds_rules || self.rules().active().next().is_none() {
            return Ok(proposal);
        }
        let after = proposal.plan.after(self.messages())?;
        if self.lost_rules(&after).is_empty() {
            return Ok(proposal);
        }
        let are_counted = self.unstated_rules(&after).is_empty();
        let (left_out, counter) = (self.rules().left_out(), self.counter());
        let with = |plan: Plan, brief: &Brief| self.accept(&plan, brief).map(|_| plan);
        let most = brief.limit.or_else(|| self.fits(brief));
        let within = Brief { target: most, ..brief.clone() };
        let settled = match last_summary(&proposal.plan) {
            Some(summary) => {
                // A list whose lines give way would lose rules, so it is written anew.
                let rules = self.rules_to_list(&after);
                let listed = rules.iter().flat_map(|rule| typed::rule_keys(rule)).collect();
                let own = without_stated(&ledger::without_titled(summary), &listed);
                let lines: Vec<&str> = own.lines().collect();
                // The more lines stay, the larger is the thread.
                let beside = |text: &str, brief: &Brief| {
                    let with_lines = |count: usize| {
                        let kept = lines.get(..count).unwrap_or_default().join("\n");
                        with(proposal.plan.clone().with_last_summary(joined(&kept, text)), brief)
                    };
                    let (mut stay, mut exceed) = (0, lines.len() + 1);
                    let mut best = with_lines(stay)?;
                    while stay + 1 < exceed {
                        let count = stay.midpoint(exceed);
                        match with_lines(count) {
                            Ok(plan) => (best, stay) = (plan, count),
                            Err(_) => exceed = count,
                        }
                    }
                    Ok(best)
                };
                let list = ledger::titled(&rules, left_out, RULES_TOKENS, counter);
                let line = ledger::counted(rules.len().saturating_add(left_out));
                let mut settled = beside(&list, brief);
                // A few rules are worth more than the exact target.
                let cost = counter.text(&list);
                if let Some(target) = brief.target.filter(|target| cost <= target / MISSED_SHARE) {
                    let over = target.saturating_add(cost);
                    let over =
                        Brief { target: Some(most.unwrap_or(over).min(over)), ..brief.clone() };
                    settled = settled.or_else(|_| beside(&list, &over));
                }
                if !are_counted {
                    settled = settled.or_else(|_| beside(&line, brief));
                    // A list that fills the room up to the limit would bring the next compaction.
                    if brief.limit.is_none() {
                        settled = settled.or_else(|_| beside(&list, &within));
                    }
                    settled = settled.or_else(|_| beside(&line, &within));
                }
                settled
            }
            None if are_counted => return Ok(proposal),
            None => {
                let missing = self.unstated_rules(&after);
                let list = ledger::titled(&missing, left_out, RULES_TOKENS, counter);
                let line = ledger::counted(missing.len().saturating_add(left_out));
                let alone = |text| match self.with_own_summary(&proposal.plan, text, brief) {
                    Some(plan) => with(plan, brief),
                    // It changes nothing, so it loses nothing.
                    None => Ok(proposal.plan.clone()),
                };
                alone(list).or_else(|_| alone(line))
            }
        };
        match settled {
            Ok(plan) => Ok(self.with_plan(proposal, plan, brief)),
            Err(rejection @ Rejection::NotSmaller { .. }) if !are_counted => Err(rejection),
            Err(_) => Ok(proposal),
        }
    }

    /// Returns the plan with this text as a summary of its own before its first change, and the
    /// reasoning after it marked. `None` if the plan changes nothing.
    pub(super) fn with_own_summary(
        &self,
        plan: &Plan,
        text: impl Into<Text>,
        brief: &Brief,
    ) -> Option<Plan> {
        let summary = Summary { compaction: brief.compaction, ..Summary::new(text) };
        let message = Message::summary(Role::User, summary);
        let cuts = self.past_cuts();
        let plan = plan.clone().with_message_before(self.messages(), &cuts, message)?;
        Some(self.stamped(plan, brief))
    }

    /// Returns the proposal with a plan whose summary says more or less, so its audit is made anew.
    pub(super) fn with_plan(&self, proposal: Proposal, plan: Plan, brief: &Brief) -> Proposal {
        let policy = brief.retention.as_ref();
        let after = plan.after(self.messages()).unwrap_or_default();
        let retention = policy.zip(proposal.retention.as_ref()).map(|(policy, old)| {
            let facts = self.facts(policy);
            let mut kept = facts.beside(&after).retention().shortened();
            kept.invented.clone_from(&old.invented);
            kept
        });
        let shortfall = policy
            .zip(retention.as_ref())
            .and_then(|(policy, kept)| shortfall(&plan, kept, policy, || self.stated(policy)));
        Proposal { plan, retention, shortfall, ..proposal }
    }
}

impl Proposal {
    /// Whether it keeps so much less of the facts than is wanted that its summary is shortened for
    /// them.
    fn lacks_much(&self, policy: &RetentionPolicy) -> bool {
        let kept = self.retention.as_ref().map_or(100, |kept| kept.overall.weight_percent());
        kept.saturating_add(MUCH) <= policy.wanted
    }
}

impl Audit<'_> {
    /// Appends the lists to the summary of a proposal, which is shortened if that pays.
    fn listed(
        &self,
        proposal: &Proposal,
        summary: &Text,
        after: &[Message],
    ) -> Result<Proposal, Rejection> {
        let whole = self.completed(proposal, summary.clone(), after)?;
        Ok(self.with_shorter(whole, proposal, summary))
    }

    /// Appends the rules, what the user typed and the missing facts to the summary of a proposal.
    fn completed(
        &self,
        proposal: &Proposal,
        summary: Text,
        after: &[Message],
    ) -> Result<Proposal, Rejection> {
        let settling = self.settling;
        let (proposal, summary, merged) = settling.append_rules(proposal.clone(), summary, after);
        let after = settling.thread.accept(&proposal.plan, settling.brief)?;
        Ok(self.enriched(proposal, &summary, &after, &merged))
    }

    /// Shortens the summary if that makes room for clearly more of the user's statements and facts;
    /// otherwise returns the settled proposal. A summary can be written again; the user's words
    /// cannot.
    fn with_shorter(&self, whole: Proposal, proposal: &Proposal, summary: &Text) -> Proposal {
        const GAIN: u64 = 4;
        let settling @ Settling { thread, brief, policy } = self.settling;
        let tokens = thread.counter().text(summary);
        let kept = settling.kept(&whole);
        let lacks = kept.facts.saturating_add(GAIN) <= policy.wanted || kept.typed < policy.wanted;
        if !lacks || tokens < SHORT_TOKENS {
            return whole;
        }
        let size = thread.tokens_after(&whole.plan).unwrap_or_default();
        let (mut best, mut worth) = (whole, kept.worth().saturating_add(GAIN));
        for most in [tokens / 8 * 7, tokens / 2, tokens / 8] {
            let part: Text = excerpt(summary, most, thread.counter()).into();
            let plan = proposal.plan.clone().with_last_summary(part.clone());
            let proposal = Proposal { plan, ..proposal.clone() };
            let after = thread.accept(&proposal.plan, brief);
            let shorter = after.and_then(|after| self.completed(&proposal, part, &after));
            let Ok(shorter) = shorter else { continue };
            // Room that the lists do not need is lost, so they must be worth it.
            let after = thread.tokens_after(&shorter.plan).unwrap_or_default();
            let lost = size.saturating_sub(after).saturating_mul(100) / size.max(1);
            let kept = settling.kept(&shorter).worth();
            if kept >= worth.saturating_add(lost) {
                (best, worth) = (shorter, kept.saturating_add(GAIN));
            }
        }
        best
    }
}

impl<'a> Settling<'a> {
    /// Returns how much of the facts and of the user's statements a settled proposal keeps.
    fn kept(&self, settled: &Proposal) -> Kept {
        let retention = settled.retention.as_ref();
        let facts = retention.map_or(100, |retention| retention.overall.weight_percent());
        let plan = &settled.plan;
        let after = self.thread.accept(plan, self.brief).ok();
        let after = after.filter(|_| self.policy.lists_typed());
        let Some((after, summary)) = after.zip(last_summary(plan)) else {
            return Kept { facts, typed: 100 };
        };
        let mut typed = self.typed(&after);
        let all = typed.worth(self.counter()).max(1);
        typed.skip(summary);
        let missing = typed.worth(self.counter()).min(all);
        Kept { facts, typed: 100 - missing.saturating_mul(100) / all }
    }

    /// Adds the rules that a plan without a summary leaves unstated as a summary of their own. If the
    /// plan only shortens messages, the facts are added too, in at most half of what it frees; a plan
    /// that drops messages drops their facts deliberately. The proposal stays unchanged if no
    /// addition is acceptable.
    fn with_removed(&self, proposal: Proposal, after: &[Message]) -> Proposal {
        let Self { thread, brief, .. } = *self;
        let rules = self.missing_rules(after);
        let shortens = after.len() == thread.messages().len();
        let all = if shortens { self.with_removed_facts(&rules, after) } else { Text::default() };
        for text in [all.trim_start(), rules.as_str()].into_iter().filter(|text| !text.is_empty()) {
            let Some(plan) = thread.with_own_summary(&proposal.plan, text, brief) else { continue };
            if thread.accept(&plan, brief).is_ok() {
                return Proposal { plan, ..proposal };
            }
        }
        proposal
    }

    /// Returns a list of rules with the facts that are missing beside it.
    fn with_removed_facts(&self, rules: &str, after: &[Message]) -> Text {
        let counter = self.counter();
        let freed = self.thread.size().saturating_sub(counter.messages(after));
        let beside = self.thread.stamp_tokens().saturating_add(counter.text(rules));
        let room = self.room(after).saturating_sub(beside).min(freed / 2);
        let addendum_tokens = room.min(self.policy.addendum_tokens);
        // No summary replaces text here, so every missing fact is worth its tokens.
        let policy = RetentionPolicy { addendum_tokens, wanted: 100, ..self.policy.clone() };
        enrich(rules, &self.thread.facts(&policy), after, &policy, counter).0
    }

    /// Returns what an audit of a proposal with this summary, or a part of it, compares with.
    fn audit(self, summary: &Text, facts: &'a Facts, after: &[Message]) -> Audit<'a> {
        let beside =
            after.iter().filter(|message| !message.summaries().any(|other| other.text == *summary));
        // The list of notes is added at the end.
        let notes = self.thread.notes().to_string();
        let notes = Message::summary(Role::User, Summary::new(notes));
        let beside = facts.beside(beside.chain([&notes]));
        let (summary, invented, before) = (summary.clone(), OnceCell::new(), OnceCell::new());
        Audit { settling: self, facts, summary, beside, invented, before }
    }

    /// Returns the facts that a summary states but neither the conversation nor the system prompt
    /// does. A digest has none, because it only quotes.
    pub(super) fn invented(&self, summary: &str, facts: &Facts) -> Vec<Fact> {
        if digest::is_digest(summary) {
            return Vec::new();
        }
        invented(summary, facts, self.thread.system().iter().chain(self.thread.messages().iter()))
    }
}

/// How much a proposal keeps, in percent.
#[derive(Clone, Copy)]
struct Kept {
    /// Of the facts, by weight.
    facts: u64,
    /// Of the statements of the user that matter most, by tokens.
    typed: u64,
}

impl Kept {
    fn worth(self) -> u64 {
        self.facts.saturating_add(self.typed)
    }
}

/// The plan with the number of the compaction in every new summary that has none.
fn numbered(plan: Plan, brief: &Brief) -> Plan {
    let Some(id) = brief.compaction else { return plan };
    plan.with_new_messages(|message| {
        *message = with_summaries(message, |summary| {
            let is_new = summary.compaction.is_none();
            is_new.then(|| Summary { compaction: Some(id), ..summary.clone() })
        });
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        compact::{Insert, Splice, legality},
        ledger::Ledger,
        message::{CompactionId, ContentBlock, Json, Opaque, Thinking, ToolResult, ToolUse},
        retention::{Facts, RetentionPolicy},
        tokens::{ByteEstimate, TokenCounter},
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
        let after = settled.plan.after(&thread).unwrap();
        let numbers = after.iter().flat_map(|message| &message.content).filter_map(|block| {
            if let ContentBlock::Summary(summary) = block { summary.compaction } else { None }
        });
        assert_eq!(numbers.collect::<Vec<_>>(), [CompactionId(7), CompactionId(3)]);
    }

    #[test]
    fn no_rule_is_lost_without_a_word_for_a_target_that_a_summary_just_meets() {
        let said = |at| Message::assistant(format!("{at} {}", "I read on. ".repeat(40)));
        let thread: Vec<Message> = (0..6).map(said).collect();
        let plan = Plan::summarise(&thread, 0..5, "## Request\n\n- Go on.").unwrap();
        let size = ByteEstimate::TRIGGER.messages(&plan.after(&thread).unwrap());
        let mut rules = Ledger::default();
        rules.add("Never touch generated files.").unwrap();
        let snapshot = Snapshot::new(thread).with_rules(Arc::new(rules));
        for target in size..size + 20 {
            let retention = Some(RetentionPolicy::default());
            let brief = Brief { target: Some(target), retention, ..Brief::default() };
            let settled = snapshot.settle(Proposal::new(plan.clone()), &brief).unwrap();
            let text = last_summary(&settled.plan).unwrap();
            let says =
                text.contains("- Never touch generated files.\n") || ledger::counts_more(text);
            assert!(says, "{target}: {text}");
        }
    }

    #[test]
    fn rules_take_the_place_of_lines_and_their_list_is_written_anew() {
        let mut rules = Ledger::default();
        let all =
            ["Never touch the folder legacy.", "Write comments in English.", "Ask to deploy."];
        let mut thread = Vec::new();
        for (at, rule) in all.into_iter().enumerate() {
            rules.add(rule).unwrap();
            let filler = ["Hi!", "OK.", "Thanks, that helps."].get(at).copied().unwrap_or_default();
            let said = format!("{filler} {rule} Look at part {at}, and say what it does.");
            thread.push(Message::user(said));
            thread.push(Message::assistant(format!("{at} {}", "I read on. ".repeat(60))));
        }
        thread.push(Message::user("Go on."));
        thread.push(Message::assistant("It is done."));
        let lines: Vec<String> = (0..30).map(|at| format!("Part {at} was read.")).collect();
        let snapshot = Snapshot::new(thread.clone()).with_rules(Arc::new(rules));
        for count in [2, 8, 30] {
            let text = format!("{}\n", lines[..count].join("\n"));
            let plan = Plan::summarise(&thread, 0..6, text).unwrap();
            let size = ByteEstimate::TRIGGER.messages(&plan.after(&thread).unwrap());
            for target in size..size + 200 {
                let retention = Some(RetentionPolicy::default());
                let brief = Brief { target: Some(target), retention, ..Brief::default() };
                let settled = snapshot.settle(Proposal::new(plan.clone()), &brief).unwrap();
                let text = last_summary(&settled.plan).unwrap();
                let lists = text.matches(ledger::TITLE).count();
                let lacks = all.iter().filter(|rule| !text.contains(**rule)).count();
                assert!(lists <= 1, "{target} of {size}: {text}");
                assert!(lacks == 0 || count < 8, "{target} of {size}: {text}");
                assert!(lacks == 0 || ledger::counts_more(text), "{target} of {size}: {text}");
            }
        }
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
        // A plan of the host that also inserts an old answer as a new message.
        let again = Insert::Message { message: thoughtful("again") };
        let splices =
            vec![Splice { at: 2..3, insert: Vec::new() }, Splice { at: 4..4, insert: vec![again] }];
        let plan = Plan::from_splices(5, splices);
        assert_eq!(marks(&plan, &thread), [false; 5]);
        let settled = snapshot.settle(Proposal::new(plan), &Brief::default()).unwrap();
        let plan = settled.plan.clone();
        assert_eq!(marks(&plan, &thread), [false, false, true, true, false]);
        // The stored plan holds the marks, and settling again finds nothing to mark.
        let stored = serde_json::to_string(&plan).unwrap();
        let read: Plan = serde_json::from_str(&stored).unwrap();
        assert_eq!(read.after(&thread).unwrap(), plan.after(&thread).unwrap());
        let again = snapshot.settle(settled, &Brief::default()).unwrap();
        assert_eq!(again.plan, plan);
    }

    /// In an old session most facts are lost already, and no summary could state them.
    #[test]
    fn a_summary_is_judged_by_what_its_thread_states_and_a_block_of_the_provider_not_at_all() {
        let path = |n: u32| Message::assistant(format!("Look at src/part_{n}.rs."));
        let whole: Vec<Message> = (0..40).map(path).collect();
        let policy = RetentionPolicy { addendum_tokens: 0, ..RetentionPolicy::default() };
        let facts = Facts::of(&whole, &policy);
        let mut thread = whole[36..].to_vec();
        thread.push(Message::user("Go on."));
        let snapshot = Snapshot::new(thread.clone()).with_facts(Arc::new(facts));
        let brief = Brief { retention: Some(policy), ..Brief::default() };
        let settled = |message: Message| {
            let splice = Splice { at: 0..4, insert: vec![Insert::Message { message }] };
            let proposal = Proposal::new(Plan::from_splices(5, vec![splice]));
            let settled = snapshot.settle(proposal, &brief).unwrap();
            let share = settled.retention.map(|kept| kept.overall.kept);
            (settled.shortfall.map(|text| text.to_string()), share)
        };
        let summary = |text: &str| Message::summary(Role::User, Summary::new(text));
        // Two of the forty, but of the four that are left.
        assert_eq!(settled(summary("src/part_36.rs, src/part_38.rs")), (None, Some(2)));
        let few = "the summary keeps 0 % of the facts by weight; the minimum is 30 %";
        assert_eq!(settled(summary("Files.")), (Some(few.to_owned()), Some(0)));
        let mut native = summary("Files.");
        let block = Json::parse(r#"{"type":"compaction","content":"?"}"#).unwrap();
        native.make_mut().content.insert(0, Opaque::new("anthropic-messages", block).into());
        assert_eq!(settled(native), (None, Some(0)));
    }

    fn stated(settled: &Proposal) -> String {
        last_summary(&settled.plan).map(ToString::to_string).unwrap_or_default()
    }

    /// A prompt, a call whose result names a file among much else, and a prompt.
    fn with_result() -> Vec<Message> {
        let call = ToolUse::new("t1", "read", Json::default());
        let text = format!("see src/lexer.rs:12\n{}", "and so on, line after line\n".repeat(200));
        let result = ToolResult::new("t1", vec![ContentBlock::text(text)]);
        vec![
            Message::user("Never touch the parser. Look."),
            Message::new(Role::Assistant, vec![call.into()]),
            Message::new(Role::User, vec![result.into()]),
            Message::assistant("I looked."),
            Message::user("Go on."),
        ]
    }

    #[test]
    fn facts_are_listed_after_a_plan_that_shortens_messages_and_rules_after_any() {
        let thread = with_result();
        let mut rules = Ledger::default();
        rules.quote(0, "Never touch the parser.").unwrap();
        let snapshot = Snapshot::new(thread.clone()).with_rules(Arc::new(rules));
        let policy = RetentionPolicy { tool_mentions: 1, ..RetentionPolicy::default() };
        let brief = Brief { retention: Some(policy.clone()), ..Brief::default() };
        let short = ToolResult::new("t1", vec![ContentBlock::text("cut")]);
        let message = Message::new(Role::User, vec![short.into()]);
        let shorter = vec![Splice { at: 2..3, insert: vec![Insert::Message { message }] }];
        let settled = |splices: &[Splice], brief: &Brief| {
            let plan = Plan::from_splices(thread.len(), splices.to_vec());
            snapshot.settle(Proposal::new(plan), brief).unwrap()
        };
        let listed = settled(&shorter, &brief);
        assert!(stated(&listed).contains("- src/lexer.rs"), "{listed:?}");
        let after = listed.plan.after(&thread).unwrap();
        assert!(after[1].is_summary() && legality::violations(&after).is_empty(), "{after:?}");
        let none = RetentionPolicy { addendum_tokens: 0, ..policy };
        let none = Brief { retention: Some(none), ..Brief::default() };
        assert_eq!(stated(&settled(&shorter, &none)), "");
        let dropped = settled(&[Splice { at: 0..4, insert: Vec::new() }], &brief);
        let text = stated(&dropped);
        assert!(text.contains("- Never touch the parser.") && !text.contains("lexer"), "{text}");
    }

    /// A snapshot with a rule that only the host stated, and a plan that shortens the result of a
    /// call, before which the model reasoned.
    fn shortened_after_reasoning() -> (Snapshot, Plan) {
        let mut thread = with_result();
        thread[1].make_mut().content.insert(0, Thinking::new("Hm.", Some("c2ln".into())).into());
        let mut rules = Ledger::default();
        rules.add("Never send a mail.").unwrap();
        let short = ToolResult::new("t1", vec![ContentBlock::text("cut")]);
        let message = Message::new(Role::User, vec![short.into()]);
        let splice = Splice { at: 2..3, insert: vec![Insert::Message { message }] };
        let plan = Plan::from_splices(thread.len(), vec![splice]);
        (Snapshot::new(thread).with_rules(Arc::new(rules)), plan)
    }

    #[test]
    fn a_rule_that_only_the_host_stated_is_listed_after_a_plan_without_a_summary() {
        let (snapshot, plan) = shortened_after_reasoning();
        // Room for everything, and hardly any.
        for target in [None, Some(snapshot.tokens_after(&plan).unwrap() + 40)] {
            let retention = Some(RetentionPolicy::default());
            let brief = Brief { target, retention, ..Brief::default() };
            let settled = snapshot.settle(Proposal::new(plan.clone()), &brief).unwrap();
            assert!(stated(&settled).contains("- Never send a mail."), "{target:?}: {settled:?}");
            let again = snapshot.settle(settled.clone(), &brief).unwrap();
            assert_eq!(again.plan, settled.plan, "{target:?}");
        }
    }

    #[test]
    fn reasoning_after_a_summary_that_settling_inserts_is_marked() {
        let (snapshot, plan) = shortened_after_reasoning();
        let brief = Brief { retention: Some(RetentionPolicy::default()), ..Brief::default() };
        let settled = snapshot.settle(Proposal::new(plan), &brief).unwrap();
        let after = settled.plan.after(snapshot.messages()).unwrap();
        let summary = after.iter().position(Message::is_summary).unwrap();
        let reasons = |message: &Message| message.content.iter().any(ContentBlock::is_reasoning);
        let reasoning = after.iter().position(reasons).unwrap();
        assert!(summary < reasoning && after[reasoning].prefix_rewritten, "{after:#?}");
    }

    #[test]
    fn lines_of_a_summary_give_way_to_the_rules() {
        let filler = Message::assistant("Well, well. ".repeat(400));
        let thread = vec![Message::user("Hi."), filler, Message::user("Go on.")];
        let mut rules = Ledger::default();
        rules.add("Never send a mail.").unwrap();
        let snapshot = Snapshot::new(thread.clone()).with_rules(Arc::new(rules));
        let plan = Plan::summarise(&thread, 0..2, "They\ntalked\nfor\na\nwhile.").unwrap();
        let least = snapshot.tokens_after(&plan).unwrap();
        let listed = |target| {
            let retention = Some(RetentionPolicy::default());
            let brief = Brief { target: Some(target), retention, ..Brief::default() };
            let settled = snapshot.settle(Proposal::new(plan.clone()), &brief).unwrap();
            stated(&settled).contains("- Never send a mail.")
        };
        assert!((least + 20..least + 60).all(listed));
    }

    #[test]
    fn a_thread_that_is_as_large_with_a_line_about_its_rules_stays_as_it_is() {
        let mut rules = Ledger::default();
        rules.add("Never send a mail.").unwrap();
        let rules = Arc::new(rules);
        let brief = Brief { retention: Some(RetentionPolicy::default()), ..Brief::default() };
        let mut refused = 0;
        for size in 1..100 {
            let snapshot =
                Snapshot::new(vec![Message::assistant("w".repeat(size)), Message::user("Now.")]);
            let message = Message::summary(Role::User, Summary::new("Go."));
            let splice = Splice { at: 0..1, insert: vec![Insert::Message { message }] };
            let proposal = Proposal::new(Plan::from_splices(2, vec![splice]));
            let Ok(_) = snapshot.settle(proposal.clone(), &brief) else { continue };
            match snapshot.with_rules(Arc::clone(&rules)).settle(proposal, &brief) {
                Ok(settled) => {
                    let text = stated(&settled);
                    assert!(text.contains("mail") || text.contains("1 more"), "{size}: {text}");
                }
                Err(Rejection::NotSmaller { .. }) => refused += 1,
                Err(other) => panic!("{size}: {other}"),
            }
        }
        assert!(refused > 0, "no thread was too small");
    }

    #[test]
    fn rules_that_do_not_fit_are_counted() {
        let mut rules = Ledger::default();
        for number in 0..30 {
            let rule = format!("Never touch the file src/part_{number}.rs in any way.");
            rules.add(rule.as_str()).unwrap();
        }
        let filler = Message::assistant("Well, well. ".repeat(2_000));
        let thread = vec![Message::user("Hi."), filler, Message::user("Go on.")];
        let snapshot = Snapshot::new(thread.clone()).with_rules(Arc::new(rules.clone()));
        for target in [60, 120, 300, 600, 2_000] {
            let plan =
                Plan::summarise(&thread, 0..2, "They talked for a while. ".repeat(3)).unwrap();
            let retention = Some(RetentionPolicy::default());
            let brief = Brief { target: Some(target), retention, ..Brief::default() };
            let settled = snapshot.settle(Proposal::new(plan), &brief).unwrap();
            let text = stated(&settled);
            let all = rules.active().all(|rule| text.contains(rule.text.as_str()));
            assert!(all || text.contains(" more did not fit.)"), "{target}: {text}");
            let again = snapshot.settle(settled.clone(), &brief).unwrap();
            assert_eq!(again.plan, settled.plan, "{target}");
        }
    }

    #[test]
    fn rules_are_counted_within_the_limit_if_the_target_has_no_room_for_the_line() {
        let mut rules = Ledger::default();
        rules.add("Never touch generated files, wherever they are and whoever asks.").unwrap();
        let filler = Message::assistant("Well, well. ".repeat(2_000));
        let thread = vec![Message::user("Hi."), filler, Message::user("Go on.")];
        let snapshot = Snapshot::new(thread.clone()).with_rules(Arc::new(rules));
        let plan = Plan::summarise(&thread, 0..2, "So.").unwrap();
        let target = snapshot.counter().messages(&plan.after(&thread).unwrap());
        for (limit, is_counted) in [(target, false), (target + 200, true)] {
            let (limit, retention) = (Some(limit), Some(RetentionPolicy::default()));
            let brief = Brief { target: Some(target), limit, retention, ..Brief::default() };
            let settled = snapshot.settle(Proposal::new(plan.clone()), &brief).unwrap();
            assert_eq!(stated(&settled).contains(" more did not fit.)"), is_counted);
        }
    }

    #[test]
    fn without_a_target_a_limit_is_kept() {
        let said = |number: usize| Message::assistant(format!("{number} {}", "words ".repeat(30)));
        let thread = Snapshot::new((0..4).map(said).collect::<Vec<_>>());
        let plan = Plan::from_splices(4, vec![Splice { at: 0..1, insert: Vec::new() }]);
        let settled =
            |limit| thread.settle_within(Proposal::new(plan.clone()), &Brief::default(), limit);
        assert!(settled(None).is_ok() && settled(Some(200)).is_ok());
        let refused = settled(Some(100)).unwrap_err();
        assert!(matches!(refused, Rejection::OverTarget { target: 100, .. }), "{refused:?}");
    }

    #[test]
    fn half_of_a_long_summary_gives_way_to_facts() {
        let paths: String =
            (0..20).map(|n| format!("Read src/part_{n}.rs and go on.\n\n")).collect();
        let thread =
            vec![Message::user(paths), Message::assistant("Yes."), Message::user("Go on.")];
        let talk: String =
            (0..30).map(|n| format!("Thing {n} was looked at for a while. ")).collect();
        let plan = Plan::summarise(&thread, 0..2, talk.as_str()).unwrap();
        let counter = ByteEstimate::TRIGGER;
        let target = counter.messages(&plan.after(&thread).unwrap()) + 20;
        let filler = Message::assistant("Well, well. ".repeat(2_000));
        let thread = [thread, vec![filler]].concat();
        let plan = Plan::summarise(&thread, 0..2, talk.as_str()).unwrap();
        let plan = Plan::from_splices(
            thread.len(),
            [plan.splices(), &[Splice { at: 3..4, insert: Vec::new() }]].concat(),
        );
        let brief = |wanted| {
            let policy = RetentionPolicy { wanted, ..RetentionPolicy::default() };
            Brief { target: Some(target), retention: Some(policy), ..Brief::default() }
        };
        let snapshot = Snapshot::new(thread);
        let kept = |wanted: u64| {
            let settled = snapshot.settle(Proposal::new(plan.clone()), &brief(wanted)).unwrap();
            let retention = settled.retention.clone().unwrap();
            (stated(&settled).contains("bytes omitted"), retention.overall.weight_percent())
        };
        let (whole, half) = (kept(0), kept(90));
        assert!(!whole.0 && half.0 && half.1 >= whole.1 + 10, "{whole:?} {half:?}");
    }
}
