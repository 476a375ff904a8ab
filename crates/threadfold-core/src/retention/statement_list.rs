//! The user's statements as a list after a summary: within a budget, in order, grouped by label.

use std::{
    cmp::Reverse,
    collections::{HashMap, HashSet},
};

use super::statements::{Statement, Statements, key_of as key};
use crate::{
    prose::{CHANGED, TYPED, label, sentences},
    tokens::TokenCounter,
};

impl Statements {
    /// Returns a list of statements in at most `budget` tokens, those that matter most first, in the
    /// order in which they were typed; empty if none fits. Statements and sentences with a key in
    /// `elsewhere` are left out; those with a key in `first` come before all others.
    pub fn list(
        &self,
        budget: u64,
        counter: &dyn TokenCounter,
        elsewhere: &HashSet<String>,
        first: &HashSet<String>,
    ) -> String {
        let lines = lines(self.holding(), elsewhere, first, counter);
        let mut order: Vec<(u64, usize, &Line<'_>)> =
            lines.iter().enumerate().map(|(at, line)| (line.worth(counter), at, line)).collect();
        order.sort_unstable_by_key(|(worth, at, _)| (Reverse(*worth), Reverse(*at)));
        let mut left = budget.saturating_sub(counter.text(TYPED) + 1);
        let mut opened: HashSet<&str> = HashSet::new();
        let mut chosen: Vec<(usize, &Line<'_>)> = Vec::new();
        for (_, at, line) in order {
            let head = line.group.filter(|label| !opened.contains(label));
            let head = head.map_or(0, |label| counter.text(label) + 2);
            if let Some(rest) = left.checked_sub(line.tokens.saturating_add(head)) {
                left = rest;
                opened.extend(line.group);
                chosen.push((at, line));
            }
        }
        // The whole may have more tokens than the sum of its lines.
        while !chosen.is_empty() {
            let mut in_order = chosen.clone();
            in_order.sort_unstable_by_key(|(at, _)| *at);
            let text = write(in_order.into_iter().map(|(_, line)| line));
            if counter.text(&text) <= budget {
                return text;
            }
            chosen.truncate(chosen.len() - chosen.len().div_ceil(8));
        }
        String::new()
    }
}

/// A line of common length: statements that are shorter are hardly preferred.
const COMMON: &str = "The port of the server is 8080.";

/// A line of the list.
#[derive(Debug)]
struct Line<'a> {
    /// The label of the group in which it is listed.
    group: Option<&'a str>,
    text: String,
    rank: u64,
    tokens: u64,
    comes_first: bool,
}

impl Line<'_> {
    fn worth(&self, counter: &dyn TokenCounter) -> u64 {
        let cost = self.tokens.saturating_add(counter.text(COMMON)).max(1);
        let worth = self.rank * self.rank * 10_000 / cost;
        if self.comes_first { worth.saturating_add(u64::MAX / 2) } else { worth }
    }
}

/// Returns the lines for these statements, without the sentences that are stated elsewhere.
fn lines<'a>(
    statements: impl Iterator<Item = &'a Statement>,
    elsewhere: &HashSet<String>,
    first: &HashSet<String>,
    counter: &dyn TokenCounter,
) -> Vec<Line<'a>> {
    let mut wanted: Vec<(&Statement, Option<&str>, String)> = Vec::new();
    let mut labels: HashMap<&str, usize> = HashMap::new();
    for statement in statements {
        if elsewhere.contains(&key(&statement.text)) {
            continue;
        }
        let all = sentences(&statement.text);
        let kept: Vec<&str> = all.filter(|sentence| !elsewhere.contains(&key(sentence))).collect();
        let text = kept.join(" ");
        let label = label(&statement.text).map(|(label, _)| label);
        // Only a label with one space after its colon is restored word for word.
        let label = label.filter(|label| {
            text.strip_prefix(label).is_some_and(|rest| {
                rest.strip_prefix(": ").is_some_and(|body| !body.starts_with(' '))
            })
        });
        if !text.is_empty() {
            label.into_iter().for_each(|label| *labels.entry(label).or_default() += 1);
            wanted.push((statement, label, text));
        }
    }
    let line = |(statement, label, text): (&'a Statement, Option<&'a str>, String)| {
        let group = label.filter(|label| labels.get(label).is_some_and(|count| *count > 1));
        let body = text.get(group.map_or(0, |label| label.len() + 2)..).unwrap_or_default();
        let changed = if statement.is_change { CHANGED } else { "" };
        let text = format!("- {body}{changed}\n");
        let tokens = counter.text(&text);
        let comes_first = !first.is_empty()
            && (first.contains(&key(&statement.text))
                || sentences(&statement.text).any(|sentence| first.contains(&key(sentence))));
        Line { group, text, rank: statement.rank, tokens, comes_first }
    };
    wanted.into_iter().map(line).collect()
}

fn write<'a>(lines: impl Iterator<Item = &'a Line<'a>>) -> String {
    let mut text = format!("{TYPED}\n");
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut groups: Vec<(&str, String)> = Vec::new();
    for line in lines {
        let Some(label) = line.group else {
            text.push_str(&line.text);
            continue;
        };
        let at = *places.entry(label).or_insert(groups.len());
        match groups.get_mut(at) {
            Some((_, group)) => group.push_str(&line.text),
            None => groups.push((label, line.text.clone())),
        }
    }
    for (label, group) in groups {
        text.push_str(&format!("{label}:\n{group}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        message::{Message, Role, Summary},
        tokens::ByteEstimate,
    };

    fn statements(texts: &[&str]) -> Statements {
        let messages: Vec<Message> = texts.iter().map(|text| Message::user(*text)).collect();
        Statements::of(&messages)
    }

    #[test]
    fn a_list_is_grouped_by_labels_and_can_be_read_back() {
        let typed = [
            "NOTE: the fee is $30",
            "Tea is fine.",
            "NOTE: the port is 80",
            "NOTE: the fee is $40",
        ];
        let all = statements(&typed);
        let list = all.list(1_000, &ByteEstimate::new(1), &HashSet::new(), &HashSet::new());
        let expected = format!(
            "{TYPED}\n- Tea is fine.\nNOTE:\n- the port is 80\n- the fee is $40{CHANGED}\n"
        );
        assert_eq!(list, expected);
        let summary = Message::summary(Role::User, Summary::new(list.as_str()));
        let again = Statements::of(&[summary]).list(
            1_000,
            &ByteEstimate::new(1),
            &HashSet::new(),
            &HashSet::new(),
        );
        assert_eq!(again, expected);
    }

    #[test]
    fn what_matters_most_comes_first_and_the_budget_holds() {
        let typed = [
            "I looked at the page for a while.",
            "Never touch the lexer.",
            "Hm, well, that is how it goes there.",
        ];
        let all = statements(&typed);
        for budget in 0..200 {
            let list = all.list(budget, &ByteEstimate::new(1), &HashSet::new(), &HashSet::new());
            assert!(list.len() as u64 <= budget, "{budget}: {list}");
        }
        let list = all.list(70, &ByteEstimate::new(1), &HashSet::new(), &HashSet::new());
        assert_eq!(list, format!("{TYPED}\n- Never touch the lexer.\n"));
    }
}
