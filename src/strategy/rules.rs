//! Standing rules in a compaction: listed for the summarising model and appended to the summary.

use std::collections::HashSet;

use super::{
    brief::Brief,
    clip::{ASIDE_TOKENS, without_repeats},
    contract::Proposal,
    digest,
    excerpt::{excerpt, without_stated},
    snapshot::Snapshot,
    typed::Typed,
};
use crate::{
    ledger::{self, Rule},
    message::{ContextWindow, Message, Role, Text},
    prose::without_typed,
    retention::key,
};

/// Tokens kept free between an addendum and the target, because the token count of a whole can
/// exceed the sum of its parts.
const MARGIN: u64 = 8;

/// Summaries of up to this many bytes are not shortened.
const SHORT: usize = 300;

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
    ) -> (Proposal, Text, Vec<&str>) {
        let counter = self.counter();
        let own = self.own_text(&summary);
        // A list of rules in the summary itself is replaced, so its tokens are free again.
        let freed = counter.text(&summary).saturating_sub(counter.text(&own));
        let room = self.room(after, brief).saturating_add(freed);
        let alone = room.saturating_add(counter.text(&own));
        let unstated = unstated(self.rules().active(), after, self.system());
        let list = ledger::titled(&unstated, self.rules().left_out(), RULES_TOKENS, counter);
        let stated = self.stated_by_lists(after, room, counter.text(&list), brief);
        let (typed, stated) = stated
            .unwrap_or_else(|| (HashSet::new(), unstated.iter().map(|rule| key(rule)).collect()));
        let is_typed = |rule: &&str| typed.contains(&key(rule));
        let merged: Vec<&str> = unstated.iter().copied().filter(is_typed).collect();
        let once = without_stated(&own, &stated);
        if unstated.is_empty() && once.len() == summary.len() {
            return (proposal, summary, merged);
        }
        let lacks = counter.text(&list).saturating_add(MARGIN).saturating_sub(room);
        let half = counter.text(&own).div_ceil(2);
        let cut =
            |text: &str| excerpt(text, counter.text(text).saturating_sub(lacks).max(half), counter);
        // A short summary is not shortened: the note about omitted bytes would take most of its room.
        let shorter = if own.len() > SHORT { cut(&own) } else { own.clone() };
        // In order of preference: complete rules matter more than a complete summary. What the lists
        // state is not stated twice.
        let (list, short_list) = if merged.is_empty() {
            (list, ledger::titled(&unstated, self.rules().left_out(), room, counter))
        } else {
            let own: Vec<&str> = unstated.iter().copied().filter(|rule| !is_typed(rule)).collect();
            let own = ledger::titled(&own, self.rules().left_out(), room, counter);
            (own.clone(), own)
        };
        let fits = merged.is_empty() || lacks == 0 || once.len() <= SHORT;
        let once = if fits { once } else { cut(&once) };
        let texts = [
            (once.as_str(), list.as_str()),
            (&own, &list),
            (&shorter, &list),
            (&own, &short_list),
            (&own, ""),
        ];
        for (own, list) in texts {
            let text = joined(own, list);
            // If the user's words state everything in the summary, they replace it.
            let shown =
                if text.is_blank() { self.words_alone(alone, brief, after) } else { text.clone() };
            let plan = proposal.plan.clone().with_last_summary(shown.clone());
            if !shown.is_blank() && self.accept(&plan, brief).is_ok() {
                return (Proposal { plan, ..proposal }, text, merged);
            }
        }
        (proposal, summary, Vec::new())
    }

    /// Returns a summary without text that settling adds, replaced values, and repetitions.
    fn own_text(&self, summary: &str) -> String {
        // A list that a model wrote under our titles is not ours, whether there are rules or not.
        let own = without_typed(&ledger::without_titled(summary));
        // A value that the user replaced later would mislead.
        let own = self.statements().without_replaced(&own);
        if digest::is_digest(&own) { own } else { without_repeats(&own) }
    }

    /// Returns the list of the user's words as the whole summary.
    fn words_alone(&self, room: u64, brief: &Brief, after: &[Message]) -> Text {
        let statements = self.statements();
        Typed::new(&statements, self, brief, after).list(room, self.counter()).into()
    }

    /// Returns the keys of the user's words, and the keys of these and of all that stays, if a list
    /// of rules and the user's words do not both fit. The rules are then the first of the user's
    /// words, and the summary omits sentences with these keys.
    fn stated_by_lists(
        &self,
        after: &[Message],
        room: u64,
        list_tokens: u64,
        brief: &Brief,
    ) -> Option<(HashSet<String>, HashSet<String>)> {
        brief.retention.as_ref().filter(|policy| policy.lists_typed())?;
        let statements = self.statements();
        let typed = Typed::new(&statements, self, brief, after);
        let all = self.counter().text(&typed.list(u64::MAX, self.counter()));
        let needed = list_tokens.saturating_add(all).saturating_add(MARGIN);
        (needed > room).then(|| (typed.keys().clone(), typed.known()))
    }

    /// Returns the active rules as a list if a plan removes some of them; empty if it removes none.
    pub(super) fn removed_rules(&self, after: &[Message], brief: &Brief) -> String {
        let (before, left) = (texts(self.messages()), texts(after));
        let contains = |texts: &[String], rule: &str| texts.iter().any(|text| text.contains(rule));
        let mut rules = self.rules().active().map(|rule| &*rule.text);
        if !rules.any(|rule| contains(&before, rule) && !contains(&left, rule)) {
            return String::new();
        }
        let unstated = unstated(self.rules().active(), after, self.system());
        let room = self.room(after, brief).saturating_sub(self.stamp_tokens()).min(RULES_TOKENS);
        ledger::titled(&unstated, self.rules().left_out(), room, self.counter())
    }

    /// Rules that the summary need not repeat: revoked ones, and those in the system prompt.
    pub(super) fn rules_elsewhere(&self) -> Vec<&str> {
        let unstated = unstated(self.rules().active(), &[], self.system());
        let texts = self.rules().rules().map(|rule| &*rule.text);
        texts.filter(|text| !unstated.contains(text)).collect()
    }

    /// Tokens that may still be added to the compacted thread.
    pub(super) fn room(&self, after: &[Message], brief: &Brief) -> u64 {
        let smaller = self.size().saturating_sub(1);
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
    let texts = users.chain(system).flat_map(Message::texts);
    let texts: Vec<String> = texts.map(|text| one_line(text)).collect();
    let rules = rules.map(|rule| &*rule.text);
    rules.filter(|rule| !texts.iter().any(|text| text.contains(rule))).collect()
}

/// The text and summary blocks of messages, each on one line.
fn texts(messages: &[Message]) -> Vec<String> {
    let summaries = messages.iter().flat_map(Message::summaries).map(|summary| &summary.text);
    let texts = summaries.chain(messages.iter().flat_map(Message::texts));
    texts.map(|text| one_line(text)).collect()
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns a summary with a list after it, if there is one.
pub(super) fn joined(summary: &str, list: &str) -> Text {
    match (summary.trim_end(), list) {
        (_, "") => summary.into(),
        ("", list) => list.into(),
        (summary, list) => format!("{summary}\n\n{list}").into(),
    }
}
