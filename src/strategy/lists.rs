//! The lists after a summary: standing rules, what the user typed, and the facts that the compacted
//! thread lacks.

use std::{cell::OnceCell, collections::HashSet};

use super::{
    brief::Brief,
    clip::{ASIDE_TOKENS, excerpt, without_repeats, without_stated},
    digest,
    proposal::Proposal,
    rejection::Rejection,
    snapshot::Snapshot,
    typed::{self, Typed},
};
use crate::{
    compact::Plan,
    ledger::{self, Rule},
    message::{ContextWindow, Message, Role, Text},
    notes,
    prose::{key_by, one_line, own_key, paragraphs, sentences, without_typed},
    retention::{Beside, Fact, Facts, Retention, RetentionPolicy},
    tokens::TokenCounter,
};

/// Tokens that stay free between an addendum and the target, because a whole text can have more
/// tokens than the sum of its parts.
const MARGIN: u64 = 8;

/// Summaries of up to this many bytes are not shortened.
const SHORT: usize = 300;

/// The share of a target that lists may add if nobody asked for the compaction: a quarter. The thread
/// must have room to grow, or it is compacted again at once.
const LISTS_SHARE: u64 = 4;

/// Upper limit for the tokens of rules after a summary.
pub(super) const RULES_TOKENS: u64 = 4_000;

/// The active rules as a list for the summarising model; empty if there are none.
pub(super) fn for_model(thread: &Snapshot) -> String {
    let tenth = thread.window().map(ContextWindow::tokens).map_or(u64::MAX, |tokens| tokens / 10);
    thread.rules().to_text(ASIDE_TOKENS.min(tenth), thread.counter())
}

/// The thread of a proposal that is settled, the brief, and the retention policy of the brief.
#[derive(Clone, Copy)]
pub(super) struct Settling<'a> {
    pub(super) thread: &'a Snapshot,
    pub(super) brief: &'a Brief,
    pub(super) policy: &'a RetentionPolicy,
}

impl<'a> Settling<'a> {
    /// Adds the active rules to the summary of a proposal, except those that a kept message or the
    /// system prompt states. Returns the proposal, its summary with the rules, and the rules that
    /// the list of the user's statements must show. If no text is acceptable, the proposal and its
    /// summary are returned unchanged.
    pub(super) fn append_rules(
        &self,
        proposal: Proposal,
        summary: Text,
        after: &[Message],
    ) -> (Proposal, Text, Vec<&'a Rule>) {
        let Self { thread, brief, .. } = *self;
        let counter = self.counter();
        let left_out = thread.rules().left_out();
        let own = without_repeats(&thread.own_text(&summary));
        // `own` has no list of rules, so the tokens of an earlier list can be used again.
        let freed = counter.text(&summary).saturating_sub(counter.text(&own));
        let room = self.room(after).saturating_add(freed);
        let missing = thread.rules_to_list(after);
        let list = ledger::titled(&missing, left_out, RULES_TOKENS, counter);
        // If rules and statements do not both fit, a rule that the user typed is listed once, as a
        // statement.
        let (typed, stated) =
            self.stated_by_lists(after, room, counter.text(&list)).unwrap_or_else(|| {
                (HashSet::new(), missing.iter().flat_map(|rule| typed::rule_keys(rule)).collect())
            });
        let is_typed = |rule: &&Rule| typed.contains(&key_by(rule.author.as_ref(), &rule.text));
        let (merged, others): (Vec<&Rule>, Vec<&Rule>) =
            missing.iter().copied().partition(is_typed);
        let unrepeated = without_stated(&own, &stated);
        if missing.is_empty() && unrepeated.len() == summary.len() {
            return (proposal, summary, merged);
        }
        let excess = counter.text(&list).saturating_add(MARGIN).saturating_sub(room);
        let half = counter.text(&own).div_ceil(2);
        let list = match merged.is_empty() {
            true => list,
            false => ledger::titled(&others, left_out, room, counter),
        };
        let unrepeated = match !merged.is_empty() && excess > 0 {
            true => shortened(&unrepeated, excess, half, counter),
            false => unrepeated,
        };
        let alone = room.saturating_add(counter.text(&own));
        // Rules that do not fit are counted in the end.
        for text in [joined(&unrepeated, &list), own.into()] {
            // If the user's statements hold all that the summary says, they replace it.
            let shown = if text.is_blank() {
                self.typed(after).list(alone, counter).into_owned().into()
            } else {
                text.clone()
            };
            let plan = proposal.plan.clone().with_last_summary(shown.clone());
            if !shown.is_blank() && thread.accept(&plan, brief).is_ok() {
                return (Proposal { plan, ..proposal }, text, merged);
            }
        }
        (proposal, summary, Vec::new())
    }

    /// Adds the active rules to a summary that the fill wrote, except those that a kept message or
    /// the system prompt states. It has all other lists already. Returns the proposal and its
    /// summary, both unchanged if no list is acceptable.
    pub(super) fn with_rules_only(
        &self,
        proposal: Proposal,
        digest: Text,
        after: &[Message],
    ) -> (Proposal, Text) {
        let Self { thread, brief, .. } = *self;
        let counter = self.counter();
        let own = ledger::without_titled(&notes::without(&digest));
        let mut missing = thread.rules_to_list(after);
        if !missing.is_empty() {
            let told: HashSet<String> =
                paragraphs(&own).iter().flat_map(|text| typed::keys(text)).collect();
            missing.retain(|rule| {
                let mut sentences = sentences(&rule.text);
                !sentences.all(|it| told.contains(&key_by(rule.author.as_ref(), it)))
            });
        }
        let freed = counter.text(&digest).saturating_sub(counter.text(&own));
        let room = self.room(after).saturating_add(freed).min(RULES_TOKENS);
        let list = ledger::titled(&missing, thread.rules().left_out(), room, counter);
        // A heading without rules says nothing.
        let list = if list.contains("\n- ") { list } else { String::new() };
        let text = joined(&own, &list);
        let plan = proposal.plan.clone().with_last_summary(text.clone());
        match text != digest && !text.is_blank() && thread.accept(&plan, brief).is_ok() {
            true => (Proposal { plan, ..proposal }, text),
            false => (proposal, digest),
        }
    }

    /// The user's statements, except those that these messages, the rules or the system prompt
    /// already state.
    pub(super) fn typed(&self, stay: &[Message]) -> Typed {
        Typed::new(self.thread.statements(), self.thread, self.brief, stay)
    }

    /// Returns `None` if the list of rules and the list of the user's statements both fit.
    /// Otherwise the rules are the first of the statements, and two sets are returned: the keys of
    /// the statements that are listed, and the keys of the sentences that the summary must not
    /// repeat, which are those and everything that is stated elsewhere.
    fn stated_by_lists(
        &self,
        after: &[Message],
        room: u64,
        list_tokens: u64,
    ) -> Option<(HashSet<String>, HashSet<String>)> {
        if !self.policy.lists_typed() {
            return None;
        }
        let typed = self.typed(after);
        let all = self.counter().text(&typed.list(u64::MAX, self.counter()));
        let needed = list_tokens.saturating_add(all).saturating_add(MARGIN);
        (needed > room).then(|| (typed.keys(), typed.known()))
    }

    /// Returns a list of the active rules that a plan without a summary leaves unstated, because it
    /// removes them or the host added them; empty if it states all of them, or if none
    /// fits.
    pub(super) fn missing_rules(&self, after: &[Message]) -> String {
        let Self { thread, .. } = *self;
        if thread.unstated_rules(after).is_empty() {
            return String::new();
        }
        let unstated = thread.rules_to_list(after);
        let room = self.room(after).saturating_sub(thread.stamp_tokens()).min(RULES_TOKENS);
        let list = ledger::titled(&unstated, thread.rules().left_out(), room, self.counter());
        // Rules that do not fit are stated or counted in the end.
        if list.contains("\n- ") { list } else { String::new() }
    }

    /// Tokens that may still be added to the compacted thread.
    pub(super) fn room(&self, after: &[Message]) -> u64 {
        let smaller = self.thread.size().saturating_sub(1);
        let most = self.brief.target.map_or(smaller, |target| target.min(smaller));
        let room = most.saturating_sub(self.counter().messages(after)).saturating_sub(MARGIN);
        let share = self.brief.target.filter(|_| !self.brief.reason.is_manual());
        let share = share.map(|target| target / LISTS_SHARE);
        [Some(room), share, self.thread.lists].into_iter().flatten().min().unwrap_or(room)
    }

    pub(super) fn counter(&self) -> &'a dyn TokenCounter {
        self.thread.counter()
    }
}

/// Returns the summary shortened by `excess` tokens, but not below `least`. A short summary stays
/// whole, because the note about omitted bytes would take most of its room.
fn shortened(text: &str, excess: u64, least: u64, counter: &dyn TokenCounter) -> String {
    let most = counter.text(text).saturating_sub(excess).max(least);
    if text.len() > SHORT { excerpt(text, most, counter) } else { text.to_owned() }
}

impl Snapshot {
    /// Returns what a model says in a summary: without lists under the titles of this crate, which a
    /// model must not write, and without the sentences that the user took back with later ones.
    pub(super) fn own_text(&self, summary: &str) -> String {
        let own = without_typed(&ledger::without_titled(&notes::without(summary)));
        // Reading what the user typed takes longer than all the rest of a compaction.
        if self.rules().taken_back().next().is_none() {
            return own;
        }
        let taken_back = self.statements().taken_back(self.rules().taken_back());
        without_stated(&own, &taken_back.iter().map(|key| own_key(key).to_owned()).collect())
    }

    /// The active rules that neither these messages nor the system prompt state, not even in a
    /// summary. None if a list in a summary counts those that it lacks.
    pub(super) fn unstated_rules(&self, after: &[Message]) -> Vec<&Rule> {
        let mut summaries = after.iter().flat_map(Message::summaries);
        match summaries.any(|it| ledger::counts_more(&it.text)) {
            true => Vec::new(),
            false => self.lost_rules(after),
        }
    }

    /// The same, whether a list counts them or not.
    pub(super) fn lost_rules(&self, after: &[Message]) -> Vec<&Rule> {
        let users =
            after.iter().filter(|message| message.role != Role::Assistant || message.is_summary());
        let stay: Vec<Message> = users.chain(self.system().iter()).cloned().collect();
        let texts = texts(&stay);
        self.rules().active().filter(|rule| !state(&texts, &rule.text)).collect()
    }

    /// The active rules that no user message and not the system prompt states. Summaries do not count.
    pub(super) fn rules_to_list(&self, after: &[Message]) -> Vec<&Rule> {
        unstated(self.rules().active(), after, self.system())
    }
}

/// Returns the rules that neither a user message nor the system prompt states; of a rule with an
/// author, a message of this author. Summaries do not count.
fn unstated<'a>(
    rules: impl Iterator<Item = &'a Rule>,
    after: &[Message],
    system: &[Message],
) -> Vec<&'a Rule> {
    let users = after.iter().filter(|message| message.role == Role::User && !message.is_summary());
    let messages = users.chain(system);
    let rules: Vec<&Rule> = rules.collect();
    if rules.is_empty() {
        return rules;
    }
    let texts = messages.flat_map(|message| message.texts().map(move |text| (message, text)));
    let texts: Vec<_> = texts.map(|(message, text)| (message, one_line(text))).collect();
    let states = |rule: &Rule| {
        texts.iter().any(|(message, text)| {
            let is_authors = rule.author.is_none() || rule.author == message.author;
            (is_authors || message.role == Role::System) && text.contains(&*rule.text)
        })
    };
    rules.into_iter().filter(|rule| !states(rule)).collect()
}

/// Whether one of these texts states a rule.
fn state(texts: &[String], rule: &str) -> bool {
    texts.iter().any(|text| text.contains(rule))
}

/// The text and summary blocks of messages, each on one line.
fn texts(messages: &[Message]) -> Vec<String> {
    let summaries = messages.iter().flat_map(Message::summaries);
    // A note with the words of a rule is no rule.
    let summaries = summaries.map(|summary| Text::from(notes::without(&summary.text)));
    let texts = summaries.chain(messages.iter().flat_map(Message::texts).cloned());
    texts.map(|text| one_line(&text).into_owned()).collect()
}

/// Returns a summary with a list after it, if there is one.
pub(super) fn joined(summary: &str, list: &str) -> Text {
    match (summary.trim_end(), list) {
        (_, "") => summary.into(),
        ("", list) => list.into(),
        (summary, list) => format!("{summary}\n\n{list}").into(),
    }
}

/// What an audit compares a proposal with one summary against.
pub(super) struct Audit<'a> {
    pub(super) settling: Settling<'a>,
    /// The facts of the conversation, and the whole summary.
    pub(super) facts: &'a Facts,
    pub(super) summary: Text,
    /// The facts that the messages beside the summary state.
    pub(super) beside: Beside<'a>,
    /// Facts that the whole summary states, but nothing in the conversation, if they were needed.
    pub(super) invented: OnceCell<Vec<Fact>>,
    /// What the thread before states, if it was needed.
    pub(super) before: OnceCell<Retention>,
}

impl Audit<'_> {
    fn with_enriched(
        &self,
        proposal: &Proposal,
        (text, mut retention): (Text, Retention),
        policy: &RetentionPolicy,
    ) -> Proposal {
        let line = one_line(&text);
        let find = || self.settling.invented(&self.summary, self.facts);
        let stated =
            self.invented.get_or_init(find).iter().filter(|fact| line.contains(fact.text.as_str()));
        retention.invented = stated.cloned().collect();
        let mut proposal = proposal.clone();
        proposal.plan = proposal.plan.with_last_summary(text);
        let before = || self.before.get_or_init(|| self.settling.thread.stated(policy)).clone();
        proposal.shortfall = shortfall(&proposal.plan, &retention, policy, before);
        proposal.retention = Some(retention.shortened());
        proposal
    }

    /// Settles a summary that the fill wrote, with its list of what the user typed: the rules are
    /// added, and after a model's account missing facts as far as the fill left room. A digest has no
    /// facts to add.
    pub(super) fn filled(
        &self,
        proposal: &Proposal,
        summary: &Text,
        after: &[Message],
    ) -> Result<Proposal, Rejection> {
        let settling @ Settling { thread, brief, policy } = self.settling;
        let (proposal, text) = match policy.addendum_tokens > 0 {
            true => settling.with_rules_only(proposal.clone(), summary.clone(), after),
            false => (proposal.clone(), summary.clone()),
        };
        let after = thread.accept(&proposal.plan, brief)?;
        let room = if digest::is_digest(summary) { 0 } else { settling.room(&after) };
        // A counter may count more tokens for the whole text than for its parts.
        let with = |room| self.with_enriched(&proposal, self.with_facts(&text, room), policy);
        let settled = with(room);
        Ok(if thread.accept(&settled.plan, brief).is_ok() { settled } else { with(0) })
    }

    /// The summary with the facts that it lacks and the user did not take back, in at most this many
    /// tokens.
    pub(super) fn with_facts(&self, summary: &Text, room: u64) -> (Text, Retention) {
        let Settling { policy, .. } = self.settling;
        let addendum_tokens = room.min(policy.addendum_tokens);
        let policy = RetentionPolicy { addendum_tokens, ..policy.clone() };
        let typed = self.settling.typed(&[]);
        let holds = |fact: &Fact| !typed.was_taken_back(fact);
        self.beside.enrich(summary, &policy, self.settling.counter(), holds)
    }

    /// Audits the summary and appends the missing facts, as far as there is room.
    pub(super) fn enriched(
        &self,
        proposal: Proposal,
        summary: &Text,
        after: &[Message],
        merged: &[&Rule],
    ) -> Proposal {
        let settling @ Settling { policy, .. } = self.settling;
        let counter = settling.counter();
        let mut typed = settling.typed(after);
        typed.skip_before(&without_typed(summary));
        let typed = typed.with_rules(merged);
        // If the summary is blank, the plan shows only the user's words. The lists replace them, so
        // their tokens are free.
        let shown = last_summary(&proposal.plan).filter(|_| summary.is_blank());
        let shown = shown.map_or(0, |shown| counter.text(shown));
        let room = settling.room(after).saturating_add(shown);
        let shares = merged.is_empty() && !summary.is_blank();
        let (share, most) = match policy.lists_typed() {
            true => self.typed_room(&typed, room, shares),
            false => (0, 0),
        };
        let mut first = typed.list(share, counter);
        if first.is_empty() && policy.lists_typed() {
            // What the user said comes before any fact, so it takes the room of all.
            first = typed.list(room, counter);
        }
        let lists = Lists { audit: self, proposal: &proposal, summary, typed: &typed, room };
        let holds = |fact: &Fact| !typed.was_taken_back(fact);
        let grown = lists.room_after(&first).and_then(|left| {
            let tokens = counter.text(&first).saturating_add(left);
            let most = if policy.lists_typed() { most.max(policy.addendum_tokens) } else { 0 };
            lists.with(&typed.list(tokens.min(most), counter), holds)
        });
        // A counter may count more tokens for the whole text than for its parts, so check the whole
        // again.
        let settled = grown
            .or_else(|| lists.with(&first, |fact| lists.is_listed_alone(fact)))
            .or_else(|| lists.with("", holds));
        settled.unwrap_or_else(|| {
            let summary = last_summary(&proposal.plan).cloned().unwrap_or_default();
            let bare = RetentionPolicy { addendum_tokens: 0, ..policy.clone() };
            let enriched = self.beside.enrich(&summary, &bare, counter, |_| true);
            self.with_enriched(&proposal, enriched, policy)
        })
    }

    /// Returns how many tokens the list of the user's statements gets before the other facts are
    /// listed, and how many it may have in the end. If the list `shares` the room with other facts,
    /// a sixth of the room is theirs, unless rules or statements need it.
    fn typed_room(&self, typed: &Typed, room: u64, shares: bool) -> (u64, u64) {
        let Settling { brief, policy, .. } = self.settling;
        let counter = self.settling.counter();
        let share = typed.room(room, room, counter);
        if !shares {
            return (share.min(room), room);
        }
        let longest = typed::most(room);
        let target = brief.target.unwrap_or(policy.addendum_tokens);
        let most = typed.share_of(target).max(typed.worth(counter).min(longest));
        (share.min(most).min(longest), most)
    }
}

/// A proposal whose summary gets a list of what the user typed, and the missing facts after it.
struct Lists<'a> {
    audit: &'a Audit<'a>,
    proposal: &'a Proposal,
    summary: &'a Text,
    typed: &'a Typed,
    /// The tokens for both lists.
    room: u64,
}

impl Lists<'_> {
    /// Returns the summary with a list of what the user typed, and the policy for the facts after
    /// it; `None` if both are empty.
    fn listed(&self, list: &str) -> Option<(Text, RetentionPolicy)> {
        if self.summary.is_blank() && list.is_empty() {
            return None;
        }
        let Settling { policy, thread, .. } = self.audit.settling;
        let tokens = thread.counter().text(list);
        let addendum_tokens = self.room.saturating_sub(tokens).min(policy.addendum_tokens);
        let policy = RetentionPolicy { addendum_tokens, ..policy.clone() };
        Some((joined(self.summary, list), policy))
    }

    /// Returns the settled proposal with this list and with those missing facts for which
    /// `is_listed` is `true`, if it is acceptable.
    fn with(&self, list: &str, is_listed: impl Fn(&Fact) -> bool) -> Option<Proposal> {
        let (summary, policy) = self.listed(list)?;
        let Audit { beside, settling: Settling { thread, brief, .. }, .. } = self.audit;
        let enriched = beside.enrich(&summary, &policy, thread.counter(), is_listed);
        let settled = self.audit.with_enriched(self.proposal, enriched, &policy);
        thread.accept(&settled.plan, brief).ok().map(|_| settled)
    }

    /// Returns the tokens that are left after this list and the facts beside it, so that the list
    /// may grow by them. Facts that a statement of the user holds are not counted, because the list
    /// will show them.
    fn room_after(&self, list: &str) -> Option<u64> {
        let (summary, policy) = self.listed(list)?;
        let Audit { beside, settling, .. } = self.audit;
        let is_listed = |fact: &Fact| self.is_listed_alone(fact);
        let (text, _) = beside.enrich(&summary, &policy, settling.counter(), is_listed);
        let plan = self.proposal.plan.clone().with_last_summary(text);
        let after = settling.thread.accept(&plan, settling.brief).ok()?;
        Some(settling.room(&after))
    }

    /// Whether a fact is listed on its own. Facts that the user typed are listed within their
    /// statements, so that a value has its subject.
    fn is_listed_alone(&self, fact: &Fact) -> bool {
        let is_covered = self.audit.settling.policy.lists_typed() && self.typed.covers(fact);
        !is_covered && !self.typed.was_taken_back(fact)
    }
}

/// Returns why a plan with a summary keeps too few of the facts that the thread before it states.
/// What earlier compactions have lost is not its loss, and what a provider's own block keeps nobody
/// can see, so it is not judged.
pub(super) fn shortfall(
    plan: &Plan,
    retention: &Retention,
    policy: &RetentionPolicy,
    before: impl FnOnce() -> Retention,
) -> Option<Text> {
    last_summary(plan)?;
    if plan.new_messages().any(Message::holds_compaction) {
        return None;
    }
    policy.shortfall(retention)?;
    policy.shortfall(&retention.clone().against(&before()))
}

/// Returns the text of the last new summary of a plan.
pub(super) fn last_summary(plan: &Plan) -> Option<&Text> {
    plan.new_messages().flat_map(Message::summaries).last().map(|summary| &summary.text)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        compact::{Plan, Splice},
        ledger::{Ledger, TITLE},
        message::Summary,
        retention::RetentionPolicy,
    };

    /// Returns the thread after a plan that drops its first messages and inserts `insert`.
    fn settled(thread: Snapshot, drops: usize, insert: Vec<Message>) -> Vec<Message> {
        let insert = insert.into_iter().map(|message| crate::compact::Insert::Message { message });
        let splice = Splice { at: 0..drops, insert: insert.collect() };
        let plan = Plan::from_splices(thread.messages().len(), vec![splice]);
        let brief = Brief { retention: Some(RetentionPolicy::default()), ..Brief::default() };
        let settled = thread.settle(Proposal::new(plan), &brief).unwrap();
        thread.accept(&settled.plan, &brief).unwrap()
    }

    #[test]
    fn rules_that_an_earlier_list_states_are_listed_again() {
        let mut rules = Ledger::default();
        rules.add("Style: tabs only.").unwrap();
        rules.add("Style: no emoji at all.").unwrap();
        let list = rules.to_string();
        assert!(list.contains("- Style: tabs only.\n"));
        let long = |text: &str| format!("{text} {}", "Words without much in them. ".repeat(30));
        let talk = [
            Message::user(long("Hi.")),
            Message::assistant(long("Hello.")),
            Message::user("Go on."),
        ];
        let with_rules =
            |messages: Vec<Message>| Snapshot::new(messages).with_rules(Arc::new(rules.clone()));
        let summary = |text: &str| Message::summary(Role::User, Summary::new(text));

        let system = Arc::new(vec![Message::system(format!("{TITLE}\n{list}"))]);
        let thread = with_rules(talk.to_vec()).with_context(system, Arc::default());
        let after = settled(thread, 2, vec![summary("They talked.")]);
        assert!(
            !format!("{after:?}").contains("tabs only"),
            "the system prompt states it: {after:?}"
        );

        let listed = summary(&long(&format!("They talked.\n\n{TITLE}\n{list}\nMore.")));
        let thread = [listed, Message::assistant(long("Well.")), Message::user("Go on.")];
        let after = settled(with_rules(thread.to_vec()), 2, Vec::new());
        assert!(
            format!("{after:?}").contains("tabs only"),
            "the rule goes with no plan: {after:?}"
        );
    }
}
