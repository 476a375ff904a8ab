//! The user's statements as a list after a summary: within a budget, in order, grouped by label.

use std::{
    cmp::Reverse,
    collections::{HashMap, HashSet},
};

use super::{
    statement_store::{Statement, key_of as key},
    statements::Statements,
};
use crate::{
    message::slice,
    prose::{BULLET, CHANGED, TYPED, UNLABELLED, has_demand, heading, sentences, without_emphasis},
    tokens::TokenCounter,
};

impl Statements {
    /// Returns a list of statements in at most `budget` tokens, chosen by importance and listed in
    /// the order in which they were typed; empty if none fits. Statements and sentences with a key
    /// in `elsewhere` are left out; those with a key in `first` are chosen before all others. If
    /// not all fit, labels that only stress a statement are left out to make room.
    pub fn list(
        &self,
        budget: u64,
        counter: &dyn TokenCounter,
        elsewhere: &HashSet<String>,
        first: &HashSet<String>,
    ) -> String {
        let lines = lines(self.holding(), elsewhere, first, counter);
        let labelled = Choice::of(&lines, true, budget, counter);
        if labelled.is_whole {
            return labelled.text;
        }
        let unlabelled = Choice::of(&lines, false, budget, counter);
        if unlabelled.rank > labelled.rank { unlabelled.text } else { labelled.text }
    }
}

/// The lines that fit a budget.
#[derive(Debug, Default)]
struct Choice {
    text: String,
    /// Whether it contains all statements, complete.
    is_whole: bool,
    /// The sum of the ranks of its statements.
    rank: u64,
}

impl Choice {
    fn of(lines: &[Line<'_>], labels: bool, budget: u64, counter: &dyn TokenCounter) -> Self {
        let mut order: Vec<(u64, usize, &Line<'_>)> = lines
            .iter()
            .enumerate()
            .map(|(at, line)| (line.worth(labels, counter), at, line))
            .collect();
        // Of statements of equal worth the latest is chosen first, because it most likely still
        // matters.
        order.sort_unstable_by_key(|(worth, at, _)| (Reverse(*worth), Reverse(*at)));
        let mut left = budget.saturating_sub(counter.text(TYPED) + 1);
        let mut opened: HashSet<&str> = HashSet::new();
        let mut chosen: Vec<(usize, u64, &Form<'_>)> = Vec::new();
        let mut is_whole = true;
        for (_, at, line) in order {
            let whole = line.whole(labels);
            let mut forms = [Some(whole), line.gist.as_ref()].into_iter().flatten();
            let form = forms.find(|form| form.cost(&opened, counter) <= left);
            is_whole &= form.is_some_and(|form| form.text == whole.text);
            if let Some(form) = form {
                left -= form.cost(&opened, counter);
                opened.extend(form.group);
                chosen.push((at, line.rank, form));
            }
        }
        // The whole text may have more tokens than the sum of its lines.
        while !chosen.is_empty() {
            let mut in_order = chosen.clone();
            in_order.sort_unstable_by_key(|(at, ..)| *at);
            let text = write(in_order.into_iter().map(|(.., form)| form));
            if counter.text(&text) <= budget {
                let rank = chosen.iter().map(|(_, rank, _)| rank).sum();
                return Self { text, is_whole, rank };
            }
            is_whole = false;
            chosen.truncate(chosen.len() - chosen.len().div_ceil(8));
        }
        Self { is_whole: lines.is_empty(), ..Self::default() }
    }
}

/// A statement of usual length. Its tokens are added to the cost of every statement, so that a very
/// short one has no advantage from its length alone.
const COMMON: &str = "The port of the server is 8080.";

/// A statement as it may be listed.
#[derive(Debug)]
struct Line<'a> {
    labelled: Form<'a>,
    /// The form without the label, if the label only stresses the statement.
    unlabelled: Option<Form<'a>>,
    /// The form with only the sentences that demand something, if the statement has other sentences
    /// too. It is used if the whole statement does not fit.
    gist: Option<Form<'a>>,
    rank: u64,
    comes_first: bool,
}

/// A line of the list.
#[derive(Debug)]
struct Form<'a> {
    /// The label of the group in which it is listed.
    group: Option<&'a str>,
    text: String,
    tokens: u64,
}

impl<'a> Form<'a> {
    fn new(
        group: Option<&'a str>,
        bullet: &str,
        body: &str,
        end: &str,
        counter: &dyn TokenCounter,
    ) -> Self {
        let text = format!("{bullet}{body}{end}\n");
        let tokens = counter.text(&text);
        Self { group, text, tokens }
    }

    /// Returns the tokens of the line, plus those of its label unless the list already has the
    /// label.
    fn cost(&self, opened: &HashSet<&str>, counter: &dyn TokenCounter) -> u64 {
        let head = self.group.filter(|label| !opened.contains(label));
        self.tokens.saturating_add(head.map_or(0, |label| counter.text(label) + 2))
    }
}

impl<'a> Line<'a> {
    fn whole(&self, labels: bool) -> &Form<'a> {
        self.unlabelled.as_ref().filter(|_| !labels).unwrap_or(&self.labelled)
    }

    fn worth(&self, labels: bool, counter: &dyn TokenCounter) -> u64 {
        let cost = self.whole(labels).tokens.saturating_add(counter.text(COMMON)).max(1);
        // The square, so that a statement of twice the rank may cost four times as much.
        // A stored rank may be any number.
        let worth = self.rank.saturating_mul(self.rank).saturating_mul(10_000) / cost;
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
        let label = heading(&statement.text).map(|(label, _)| label);
        // Only a label with exactly one space after its colon can be restored word for word.
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
    let lines = wanted.into_iter().map(|(statement, label, text)| {
        let group = label.filter(|label| labels.get(label).is_some_and(|count| *count > 1));
        let body = slice(&text, group.map_or(0, |label| label.len() + 2)..);
        let end = if statement.is_change { CHANGED } else { "" };
        let bullet = if statement.lost_label { UNLABELLED } else { BULLET };
        let plain = without_emphasis(&text);
        let unlabelled =
            (plain.len() < text.len()).then(|| Form::new(None, UNLABELLED, plain, end, counter));
        let demands: Vec<&str> = sentences(plain).filter(|sentence| has_demand(sentence)).collect();
        let gist = demands.join(" ");
        let gist_bullet = if label.is_some() { UNLABELLED } else { bullet };
        let gist = (!gist.is_empty() && gist.len() < plain.len())
            .then(|| Form::new(None, gist_bullet, &gist, end, counter));
        let comes_first = !first.is_empty()
            && (first.contains(&key(&statement.text))
                || sentences(&statement.text).any(|sentence| first.contains(&key(sentence))));
        let labelled = Form::new(group, bullet, body, end, counter);
        Line { labelled, unlabelled, gist, rank: statement.rank, comes_first }
    });
    lines.collect()
}

fn write<'a>(lines: impl Iterator<Item = &'a Form<'a>>) -> String {
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
    fn labels_that_only_stress_are_omitted_for_room_and_remembered() {
        let typed = [
            "NOTE: the fee is $30 a seat",
            "TODO: the port is 80 now",
            "NOTE: the tea is green",
            "Owner: Ada Byron",
            "Well, that is how it goes there.",
        ];
        let all = statements(&typed);
        let list = |of: &Statements, budget| {
            of.list(budget, &ByteEstimate::new(1), &HashSet::new(), &HashSet::new())
        };
        let short = list(&all, 110);
        let expected = format!(
            "{TYPED}\n* the fee is $30 a seat\n* the port is 80 now\n* the tea is green\n- Owner: Ada Byron\n"
        );
        assert_eq!(short, expected);
        let summary = Message::summary(Role::User, Summary::new(short.as_str()));
        let more = Message::user("Well, that is how it goes there, and elsewhere too.");
        let read = Statements::of(&[summary.clone(), more]);
        assert_eq!(list(&read, 110), short);
        // If the labels are still known, a list with enough room shows them again.
        let mut known = all.clone();
        known.read(&summary);
        assert_eq!(list(&known, 1_000).matches("NOTE:").count(), 1);
        assert!(
            list(&known, 1_000).contains("NOTE:\n- the fee is $30 a seat\n- the tea is green\n")
        );
    }

    #[test]
    fn a_statement_that_does_not_fit_is_reduced_to_its_demands() {
        let all = statements(&["I looked at the page for quite a while. Never touch the lexer."]);
        let list = all.list(50, &ByteEstimate::new(1), &HashSet::new(), &HashSet::new());
        assert_eq!(list, format!("{TYPED}\n- Never touch the lexer.\n"));
    }

    #[test]
    fn the_most_important_statements_are_chosen_within_the_budget() {
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
