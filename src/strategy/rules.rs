//! Standing rules in a compaction: listed for the summarising model and appended to the summary.

use super::{
    brief::Brief,
    clip::{ASIDE_TOKENS, clip},
    contract::Proposal,
    snapshot::Snapshot,
};
use crate::{
    ledger::{self, Rule},
    message::{ContentBlock, ContextWindow, Message, Role, Summary, Text},
};

/// Tokens kept free between an addendum and the target, because the token count of a whole can
/// exceed the sum of its parts.
const MARGIN: u64 = 8;

/// Upper limit for the tokens of rules after a summary.
const RULES_TOKENS: u64 = 4_000;

/// The active rules as a list for the summarising model; empty if there are none.
pub(super) fn for_model(thread: &Snapshot) -> String {
    let tenth = thread.window().map(ContextWindow::tokens).map_or(u64::MAX, |tokens| tokens / 10);
    thread.rules().to_text(ASIDE_TOKENS.min(tenth), thread.counter())
}

impl Snapshot {
    /// Appends the active rules to the summary, if the result is acceptable.
    pub(super) fn append_rules(
        &self,
        proposal: Proposal,
        summary: Text,
        after: &[Message],
        brief: &Brief,
    ) -> (Proposal, Text) {
        let counter = self.counter();
        // A list that a model wrote under our title is not ours, whether there are rules or not.
        let own = ledger::without_titled(&summary);
        if self.rules().rules().next().is_none() && own.len() == summary.len() {
            return (proposal, summary);
        }
        // A list of rules in the summary itself is replaced, so its tokens are free again.
        let freed = counter.text(&summary).saturating_sub(counter.text(&own));
        let room = self.room(after, brief).saturating_add(freed);
        let unstated = unstated(self.rules().active(), after, self.system());
        let list = ledger::titled(&unstated, self.rules().left_out(), RULES_TOKENS, counter);
        let lacks = counter.text(&list).saturating_add(MARGIN).saturating_sub(room);
        let half = counter.text(&own).div_ceil(2);
        let shorter = clip(&own, counter.text(&own).saturating_sub(lacks).max(half), counter);
        let short_list = ledger::titled(&unstated, self.rules().left_out(), room, counter);
        // In order of preference: complete rules matter more than a complete summary.
        let texts =
            [(own.as_str(), list.as_str()), (&shorter, &list), (&own, &short_list), (&own, "")];
        for (own, list) in texts {
            let text = joined(own, list);
            let plan = proposal.plan.clone().with_last_summary(text.clone());
            if !text.is_blank() && self.accept(&plan, brief).is_ok() {
                return (Proposal { plan, ..proposal }, text);
            }
        }
        (proposal, summary)
    }

    /// Adds the active rules as a summary of their own if a plan without a summary removes some of
    /// them and the result is acceptable.
    pub(super) fn insert_rules(
        &self,
        proposal: Proposal,
        after: &[Message],
        brief: &Brief,
    ) -> Proposal {
        let (before, left) = (texts(self.messages()), texts(after));
        let contains = |texts: &[String], rule: &str| texts.iter().any(|text| text.contains(rule));
        let mut rules = self.rules().active().map(|rule| &*rule.text);
        if !rules.any(|rule| contains(&before, rule) && !contains(&left, rule)) {
            return proposal;
        }
        let unstated = unstated(self.rules().active(), after, self.system());
        let room = self.room(after, brief).saturating_sub(self.stamp_tokens());
        let room = room.min(RULES_TOKENS);
        let list = ledger::titled(&unstated, self.rules().left_out(), room, self.counter());
        if list.is_empty() {
            return proposal;
        }
        let summary = Summary { compaction: brief.compaction, ..Summary::new(list) };
        let message = Message::summary(Role::User, summary);
        let plan = proposal.plan.clone().with_message_in_gap(message);
        match plan.map(|plan| self.stamped(plan, brief)) {
            Some(plan) if self.accept(&plan, brief).is_ok() => Proposal { plan, ..proposal },
            Some(_) | None => proposal,
        }
    }

    /// Rules that the summary need not repeat: revoked ones, and those in the system prompt.
    pub(super) fn rules_elsewhere(&self) -> Vec<&str> {
        let unstated = unstated(self.rules().active(), &[], self.system());
        let texts = self.rules().rules().map(|rule| &*rule.text);
        texts.filter(|text| !unstated.contains(text)).collect()
    }

    /// Tokens that may still be added to the compacted thread.
    pub(super) fn room(&self, after: &[Message], brief: &Brief) -> u64 {
        let smaller = self.counter().messages(self.messages()).saturating_sub(1);
        let most = brief.target.map_or(smaller, |target| target.min(smaller));
        most.saturating_sub(self.counter().messages(after)).saturating_sub(MARGIN)
    }
}

/// The rules that no user message and no system prompt states. Summaries do not count.
fn unstated<'a>(
    rules: impl Iterator<Item = &'a Rule>,
    after: &[Message],
    system: &[Message],
) -> Vec<&'a str> {
    let users = after.iter().filter(|message| message.role == Role::User && !message.is_summary());
    let blocks = users.chain(system).flat_map(|message| &message.content);
    let texts = blocks.filter_map(ContentBlock::as_text).map(|text| one_line(text));
    let texts: Vec<String> = texts.collect();
    let rules = rules.map(|rule| &*rule.text);
    rules.filter(|rule| !texts.iter().any(|text| text.contains(rule))).collect()
}

/// The text and summary blocks of messages, each on one line.
fn texts(messages: &[Message]) -> Vec<String> {
    let blocks = messages.iter().flat_map(|message| &message.content);
    let texts = blocks.filter_map(|block| {
        if let ContentBlock::Summary(summary) = block {
            Some(&summary.text)
        } else {
            block.as_text()
        }
    });
    texts.map(|text| one_line(text)).collect()
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn joined(summary: &str, list: &str) -> Text {
    let parts = [summary.trim_end(), list];
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("\n\n").into()
}
