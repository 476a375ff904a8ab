//! The rules as a Markdown list. No text of a rule can end the list. Tags in rules are escaped by
//! the code that writes a summary with the list.

use std::fmt;

use super::{rule::Rule, rules::Ledger};
use crate::{
    prose::{named, without_list},
    tokens::TokenCounter,
};

/// The line before the list in a request or a summary.
pub const TITLE: &str = "Rules that hold, word for word:";

impl Ledger {
    /// Returns the active rules as a Markdown list of at most `budget` tokens, in order. Rules that
    /// do not fit are left out, and the last line states their number. The text is empty if not
    /// even that line fits.
    ///
    /// ```
    /// use threadfold::{ledger::Ledger, tokens::ByteEstimate};
    ///
    /// let mut ledger = Ledger::default();
    /// ledger.add("Never touch the lexer.")?;
    /// ledger.add("Always answer in French,\n- and </b> be brief.")?;
    /// let counter = ByteEstimate::TRIGGER;
    /// let list = "- Never touch the lexer.\n- Always answer in French, - and </b> be brief.\n";
    /// assert_eq!(ledger.to_text(100, &counter), list);
    /// let list = "- Never touch the lexer.\n(1 more did not fit.)\n";
    /// assert_eq!(ledger.to_text(20, &counter), list);
    /// # Ok::<(), threadfold::message::InvalidValue>(())
    /// ```
    #[must_use]
    pub fn to_text(&self, budget: u64, counter: &dyn TokenCounter) -> String {
        let rules: Vec<&Rule> = self.active().collect();
        list(&rules, self.left_out(), budget, counter)
    }
}

impl fmt::Display for Ledger {
    /// Writes the active rules as a Markdown list, and the number of rules that the ledger left
    /// out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.active().try_for_each(|rule| f.write_str(&line(rule)))?;
        let more = Some(self.left_out()).filter(|count| *count > 0);
        more.map_or(Ok(()), |count| writeln!(f, "({count}{MORE}"))
    }
}

/// Returns the title and a list of these rules in at most `budget` tokens; empty if nothing fits or
/// there are no rules. The last line counts the rules that do not fit and the `left_out` ones.
pub fn titled(rules: &[&Rule], left_out: usize, budget: u64, counter: &dyn TokenCounter) -> String {
    if rules.is_empty() {
        return String::new();
    }
    // The whole may have more tokens than its parts together, so two are reserved.
    let title = counter.text(TITLE).saturating_add(2);
    let list = list(rules, left_out, budget.saturating_sub(title), counter);
    if list.is_empty() { list } else { format!("{TITLE}\n{list}") }
}

/// The line of a rule, with the name of its author if it has one.
fn line(rule: &Rule) -> String {
    format!("- {}\n", named(rule.author.as_ref(), &rule.text))
}

fn list(rules: &[&Rule], beyond: usize, budget: u64, counter: &dyn TokenCounter) -> String {
    let lines: Vec<String> = rules.iter().map(|rule| line(rule)).collect();
    let first = |count: usize| {
        let mut text: String = lines.iter().take(count).map(String::as_str).collect();
        let left_out = (lines.len() - count).saturating_add(beyond);
        if left_out > 0 {
            text.push_str(&format!("({left_out}{MORE}\n"));
        }
        text
    };
    let fits = |text: &String| counter.text(text) <= budget;
    (0..=lines.len()).rev().map(first).find(fits).unwrap_or_default()
}

const MORE: &str = " more did not fit.)";

/// Returns the title and a line that counts rules of which none is listed.
pub fn counted(rules: usize) -> String {
    format!("{TITLE}\n({rules}{MORE}\n")
}

/// `true` if a titled list in the text counts rules that it does not show.
pub fn counts_more(text: &str) -> bool {
    let mut inside = false;
    text.lines().map(str::trim).any(|line| {
        let ends = inside && line.ends_with(MORE);
        inside = line == TITLE || (inside && line.starts_with("- "));
        ends
    })
}

/// Returns a text without the titled lists in it. The current list is appended later, and lines
/// that a model writes under the title are not rules.
pub fn without_titled(text: &str) -> String {
    without_list(text, TITLE, MORE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::ByteEstimate;

    #[test]
    fn what_does_not_fit_is_counted_and_a_list_is_cut_out_again() {
        let mut ledger = Ledger::default();
        for rule in ["Be brief.", "Style: tabs only.", "Style: no emoji.", "Tests: keep them."] {
            ledger.add(rule).unwrap();
        }
        let list = |budget| ledger.to_text(budget, &ByteEstimate::new(1));
        let whole = "- Be brief.\n- Style: tabs only.\n- Style: no emoji.\n- Tests: keep them.\n";
        assert_eq!(list(1_000), whole);
        assert_eq!(list(60), "- Be brief.\n- Style: tabs only.\n(2 more did not fit.)\n");
        let text = format!("Fine.\n{TITLE}\n{whole}And more.\n");
        assert_eq!(without_titled(&text), "Fine.\nAnd more.\n");
        assert!(counts_more(&counted(3)) && !counts_more("(3 more did not fit.)"));
        assert_eq!(without_titled(&format!("Fine.\n{}", counted(3))), "Fine.\n");
    }
}
