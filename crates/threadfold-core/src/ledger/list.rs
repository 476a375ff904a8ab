//! The rules as a Markdown list. No text of a rule can end the list. Tags in it are escaped where a
//! summary with the list is written.

use std::fmt;

use super::rules::Ledger;
use crate::tokens::TokenCounter;

/// The line before the list in a request or a summary.
pub const TITLE: &str = "Rules that hold, word for word:";

impl Ledger {
    /// Returns the active rules as a Markdown list of at most `budget` tokens, in order. Rules that
    /// do not fit are left out, and the last line says how many; the text is empty if not even that
    /// line fits.
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
        let texts: Vec<&str> = self.active().map(|rule| &*rule.text).collect();
        list(&texts, self.left_out(), budget, counter)
    }
}

impl fmt::Display for Ledger {
    /// Writes the active rules as a Markdown list, and how many rules the ledger left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rules: Vec<&str> = self.active().map(|rule| &*rule.text).collect();
        lines(&rules).iter().try_for_each(|line| f.write_str(line))?;
        match self.left_out() {
            0 => Ok(()),
            count => writeln!(f, "({count}{MORE}"),
        }
    }
}

/// Returns the title and a list of these rules in at most `budget` tokens; empty if nothing fits or
/// there are no rules. The last line counts the rules that do not fit and the `left_out` ones.
pub fn titled(rules: &[&str], left_out: usize, budget: u64, counter: &dyn TokenCounter) -> String {
    if rules.is_empty() {
        return String::new();
    }
    // The parts may have fewer tokens than the whole, so reserve two.
    let title = counter.text(TITLE).saturating_add(2);
    let list = list(rules, left_out, budget.saturating_sub(title), counter);
    if list.is_empty() { list } else { format!("{TITLE}\n{list}") }
}

fn list(rules: &[&str], beyond: usize, budget: u64, counter: &dyn TokenCounter) -> String {
    let lines = lines(rules);
    let mut room = budget;
    let fits = lines.iter().take_while(|line| {
        let cost = counter.text(line);
        let fits = cost <= room;
        room = room.saturating_sub(cost);
        fits
    });
    let mut count = fits.count();
    loop {
        let mut text: String = lines.iter().take(count).map(String::as_str).collect();
        let left_out = lines.len().saturating_sub(count).saturating_add(beyond);
        if left_out > 0 {
            text.push_str(&format!("({left_out}{MORE}\n"));
        }
        match counter.text(&text) <= budget {
            true => return text,
            false if count == 0 => return String::new(),
            false => count -= 1,
        }
    }
}

/// Returns the lines of each rule. Successive rules under one heading are listed below it.
fn lines(rules: &[&str]) -> Vec<String> {
    let heading = |rule: &&str| rule.split_once(": ").map(|(heading, _)| heading.to_owned());
    let groups =
        rules.chunk_by(|one, other| heading(one).is_some() && heading(one) == heading(other));
    let lines = groups.flat_map(|group| {
        let heading = group.first().and_then(heading).filter(|_| group.len() > 1);
        group.iter().enumerate().map(move |(at, rule)| match &heading {
            None => format!("- {rule}\n"),
            Some(heading) => {
                let open = if at == 0 { format!("- {heading}:\n") } else { String::new() };
                format!("{open}  - {}\n", rule.get(heading.len() + 2..).unwrap_or_default())
            }
        })
    });
    lines.collect()
}

const MORE: &str = " more did not fit.)";

/// Returns a text without the titled lists in it. The current list is appended later, and lines
/// that a model writes under the title are not rules.
pub fn without_titled(text: &str) -> String {
    let mut inside = false;
    let lines = text.split_inclusive('\n').filter(|line| {
        let line = line.trim();
        inside = line == TITLE || (inside && (line.starts_with("- ") || line.ends_with(MORE)));
        !inside
    });
    lines.collect()
}
