//! The texts that the user typed, statement by statement, so that a compaction keeps them word for
//! word.
//!
//! A statement is a sentence, together with the following sentences that make no sense without it.
//! Its importance only decides the order in which statements are given room. A later statement with
//! another value for the same subject replaces the earlier one.

use std::collections::{BTreeSet, HashSet};

use super::{
    cut, pasted,
    statement_store::{MOST, Statement, Store, StoredStatement, key_of},
    statement_units::units,
};
use crate::{
    ledger,
    message::{ContentBlock, Message},
    prose::{Subject, TypedItem, one_line, sentences, typed_items},
};

/// The maximum bytes of a statement.
const LONGEST: usize = 600;

/// The maximum number of replaced texts.
const MOST_REPLACED: usize = 4 * MOST;

/// The statements of the user, in order.
#[doc(hidden)]
#[derive(Clone, Debug, Default)]
pub struct Statements {
    store: Store,
    /// The keys of replaced statements, and the replaced values.
    replaced: HashSet<String>,
}

impl Statements {
    /// Returns the statements of these messages.
    pub fn of(messages: &[Message]) -> Self {
        let mut statements = Self::default();
        messages.iter().for_each(|message| statements.read(message));
        statements
    }

    /// Reads the next message: the text that the user typed in it, or the list in its summary.
    pub fn read(&mut self, message: &Message) {
        for block in &message.content {
            if let ContentBlock::Summary(summary) = block {
                typed_items(&summary.text).iter().for_each(|item| self.add(item));
            }
        }
        for text in ledger::typed(message) {
            for text in units(&pasted::without(&text)) {
                self.add(&TypedItem { text, is_change: false, lost_label: false });
            }
        }
    }

    /// The valid statements, in order: those that no later statement replaced or repeated.
    pub fn holding(&self) -> impl Iterator<Item = &Statement> {
        self.store.valid()
    }

    /// Whether a valid statement says the same as this sentence in other words.
    pub fn say(&self, sentence: &str) -> bool {
        let subject = Subject::of(sentence);
        self.holding().any(|statement| subject.restates(&statement.subject))
    }

    /// Whether the user's later text replaced a line or a value.
    pub fn is_replaced(&self, text: &str) -> bool {
        !self.replaced.is_empty() && self.replaced.contains(&key_of(text))
    }

    /// Returns a text without the lines and list items that are replaced statements, word for word.
    pub fn without_replaced(&self, text: &str) -> String {
        let lines = text
            .split_inclusive('\n')
            .filter(|line| !self.is_replaced(line.trim().trim_start_matches(['-', '*', '>', ' '])));
        lines.collect()
    }

    /// The keys by which the valid statements and their sentences are compared.
    pub fn keys(&self) -> HashSet<String> {
        let texts = self.holding().flat_map(|statement| {
            sentences(&statement.text).chain(std::iter::once(statement.text.as_str()))
        });
        texts.map(key_of).collect()
    }

    fn add(&mut self, item: &TypedItem) {
        let text = one_line(&item.text);
        let key = key_of(&text);
        if key.is_empty() || text.len() > LONGEST {
            return;
        }
        let mut statement = self.store.statement(&key, text.into_owned(), item);
        // Only statements that share a word can have the same subject, and of these only the latest
        // are compared: users correct what they said last, and the time stays linear.
        for at in self.store.alike(&statement.subject) {
            statement.is_change |= self.replace(at, &statement.subject);
        }
        // A replaced statement becomes valid again when it is repeated.
        self.replaced.remove(&key);
        for value in statement.subject.values() {
            self.replaced.remove(value);
        }
        self.store.push(statement);
        if self.store.is_full() {
            self.store.prune();
            if self.replaced.len() > MOST_REPLACED {
                self.replaced.clear();
            }
        }
    }

    /// Removes the part of a statement that a later statement on this subject replaces, and returns
    /// whether there was such a part. Its other sentences stay if they make sense alone.
    fn replace(&mut self, at: usize, by: &Subject) -> bool {
        let old = self.store.get(at).filter(|old| by.replaces(&old.subject));
        let Some(old) = old else { return false };
        let values = by.replaced_values(&old.subject);
        let stay = cut::rest(&old.text, &values, by);
        let is_cut = !values.is_empty()
            && !stay.is_empty()
            && stay != old.text
            && !self.store.contains(&key_of(&stay));
        let kept: HashSet<String> = sentences(&stay).filter(|_| is_cut).map(key_of).collect();
        let gone = sentences(&old.text).chain([old.text.as_str()]).map(key_of);
        let gone = gone.filter(|key| !kept.contains(key));
        self.replaced.extend(gone.chain(values.iter().map(|value| (*value).to_owned())));
        self.store.shorten(at, is_cut.then_some(stay));
        true
    }

    /// Returns the valid statements and the replaced texts, to be stored.
    pub(super) fn to_stored(&self) -> (Vec<StoredStatement>, BTreeSet<String>) {
        let holding = self.holding().map(StoredStatement::from).collect();
        (holding, self.replaced.iter().cloned().collect())
    }

    /// Returns stored statements. They may come from elsewhere, so their number is limited.
    pub(super) fn of_stored(stored: Vec<StoredStatement>, replaced: BTreeSet<String>) -> Self {
        let replaced = replaced.into_iter().take(MOST_REPLACED).collect();
        let mut statements = Self { replaced, ..Self::default() };
        for stored in stored.into_iter().take(2 * MOST) {
            statements.store.push(stored.into());
        }
        statements
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::retention::statement_rank::EMPHASISED;

    fn of(texts: &[&str]) -> Vec<String> {
        let messages: Vec<Message> = texts.iter().map(|text| Message::user(*text)).collect();
        Statements::of(&messages).holding().map(|statement| statement.text.clone()).collect()
    }

    #[test]
    fn a_statement_includes_the_sentences_that_depend_on_it() {
        let found = of(&[
            "The limit is 40. Do not pass it. Tabs matter.\n\n\u{4e0d}\u{8981}\u{63d0}\u{4ea4}\u{3002}",
            "The form is special. It goes out in Welsh. Is that a problem?",
            "For the rest of this week. Answer in Welsh.",
            "NOTE: The fee is $30. Ask before you change the fee.",
            "Mr. Kent pays on 3. Mai in Ulm.",
        ]);
        let expected = [
            "The limit is 40. Do not pass it.",
            "Tabs matter.",
            "\u{4e0d}\u{8981}\u{63d0}\u{4ea4}\u{3002}",
            "The form is special. It goes out in Welsh.",
            "Is that a problem?",
            "For the rest of this week. Answer in Welsh.",
            "NOTE: The fee is $30. Ask before you change the fee.",
            "Mr. Kent pays on 3. Mai in Ulm.",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn facts_and_demands_rank_above_remarks_and_questions() {
        let typed = [
            "Is it worth the trouble?",
            "I went for a walk and thought about the plan.",
            "Cite the cases by their numbers.",
            "The ward has 26 beds.",
            "Never touch the lexer.",
        ];
        let messages: Vec<Message> = typed.iter().map(|text| Message::user(*text)).collect();
        let ranks: Vec<u64> = Statements::of(&messages).holding().map(|one| one.rank).collect();
        assert!(ranks.is_sorted_by(|one, two| one < two), "{ranks:?}");
        let goal = Message::user("Wir wollen bis Freitag fertig sein.");
        assert!(Statements::of(&[goal]).holding().all(Statement::is_emphasised));
    }

    #[test]
    fn statements_that_share_only_a_place_or_a_person_both_hold() {
        let pairs = [
            ["In the cellar the code is 2093.", "In the cellar we now have a lamp."],
            ["My cousin Lea is allergic to figs.", "My cousin Lea moved to Graz."],
            [
                "For the picnic the tent costs 120.",
                "For the picnic the bread was moved to the car.",
            ],
            ["By the way, the fee is 45 a day.", "By the way, the bin was moved to the yard."],
        ];
        for pair in pairs {
            assert_eq!(of(&pair), pair);
        }
        assert_eq!(of(&["The cellar code is 2093.", "The cellar code is now 4410."]).len(), 1);
        assert_eq!(of(&["The band is Moss.", "The band is now Fern."]), ["The band is now Fern."]);
    }

    #[test]
    fn a_fact_with_a_value_ranks_above_a_step_with_a_value() {
        let rank = |text: &str| {
            let all = Statements::of(&[Message::user(text)]);
            all.holding().map(|one| one.rank).sum::<u64>()
        };
        assert!(rank("Mend the lamp in row 12.") < rank("Row 12 has a broken lamp."));
        assert!(rank("Mend the lamp in row 12.") < rank("The lamp is in row 12."));
        // A permission ranks above a remark, so that a list does not keep the opposite of the
        // user's last word.
        assert!(rank("You may mention the lamp again.") > rank("You may have seen the lamp."));
    }

    #[test]
    fn a_line_that_is_certainly_from_a_log_is_no_statement() {
        let pasted = "It stopped.\n2031-04-18 05:07:46 warn retrying (59)\nWhat now?";
        assert_eq!(of(&[pasted]), ["It stopped.", "What now?"]);
        let typed = "2031-04-18 we move.\nWarning signs must be red.";
        assert_eq!(of(&[typed]), ["2031-04-18 we move.", "Warning signs must be red."]);
    }

    #[test]
    fn traces_and_rows_that_were_pasted_are_no_statements() {
        let pasted = "It fails.\nTraceback (most recent call last):\n  File \"a.py\", line 3, in main\n    run()\n\
                      ValueError: bad cell 7\nrow 89;32;19\nrow 70;16;35\nWhat now?";
        assert_eq!(of(&[pasted]), ["It fails.", "What now?"]);
    }

    #[test]
    fn a_later_value_replaces_an_earlier_one_and_is_replaced_by_it_again() {
        let (old, new) = ("The fee is $30.", "The fee is $40.");
        assert_eq!(of(&[old, new]), [new]);
        assert_eq!(of(&[old, new, old]), [old]);
    }

    #[test]
    fn requests_that_differ_only_in_a_number_rank_low_from_the_fourth_on() {
        let typed: Vec<String> = (0..5).map(|at| format!("Lies Teil {at} davon vor.")).collect();
        let rules = ["Never move box 1.", "Never move box 2.", "Never move box 3."];
        let texts = typed.iter().map(String::as_str).chain(rules).chain(["Never move box 4."]);
        let messages: Vec<Message> = texts.map(Message::user).collect();
        let ranks: Vec<u64> = Statements::of(&messages).holding().map(|one| one.rank).collect();
        assert_eq!(ranks[..5], [6, 6, 6, 1, 1]);
        assert!(ranks[5..].iter().all(|rank| *rank >= EMPHASISED), "{ranks:?}");
    }

    #[test]
    fn sentences_next_to_a_replaced_value_stay() {
        let old = "Tea is at noon. The fee is $30. Never raise without asking.";
        assert_eq!(of(&[old, "The fee is $40."]), ["Tea is at noon.", "The fee is $40."]);
    }

    #[test]
    fn an_item_of_a_list_carries_its_heading() {
        let found = of(&["Ports:\n- proxy 8080\n- server 9090"]);
        assert_eq!(found, ["Ports: proxy 8080", "Ports: server 9090"]);
    }

    #[test]
    fn pasted_text_is_no_statement() {
        let log = "It fails so:\n2026-01-02 10:00:01 ERROR pool: gone\n2026-01-02 10:00:02 ERROR pool: gone\nWhy?";
        assert_eq!(of(&[log]), ["It fails so:", "Why?"]);
    }

    #[test]
    fn the_number_of_statements_is_bounded() {
        let text: String =
            (0..5_000).map(|n| format!("Look at thing number {n} there.\n\n")).collect();
        let statements = Statements::of(&[Message::user(text)]);
        assert!(statements.holding().count() <= 2 * MOST, "{}", statements.holding().count());
    }
}
