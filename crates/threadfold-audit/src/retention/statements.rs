//! The texts that the user typed, statement by statement, so that a compaction keeps them word for
//! word.
//!
//! A statement is a sentence, together with the following sentences that make no sense without it.
//! Its importance only decides the order in which statements are given room. A later statement with
//! another value for the same subject replaces the earlier one.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde::{Deserialize, Serialize};

use super::{cut, pasted};
use crate::{
    ledger,
    message::{ContentBlock, Message},
    prose::{
        Subject, TypedItem, asks_in_any_language, has_demand, has_wish, is_question, is_unspaced,
        label, one_line, paragraphs, refers_back, sentences, typed_items, without_emphasis,
    },
};

/// The maximum bytes of a statement of several sentences.
const SHORT: usize = 300;

/// The maximum bytes of a statement.
const LONGEST: usize = 600;

/// The maximum number of statements that are valid at one time.
const MOST: usize = 1_000;

/// The minimum rank of an emphasised statement.
const EMPHASISED: u64 = 5;

/// After this many requests that differ only in their values, further ones get a low rank.
const ROUTINE: usize = 3;

/// The maximum number of earlier statements with a shared word that a new one is compared with.
const COMPARED: usize = 24;

/// The statements of the user, in order.
#[doc(hidden)]
#[derive(Clone, Debug, Default)]
pub struct Statements {
    entries: Vec<Statement>,
    by_key: HashMap<String, usize>,
    by_word: HashMap<String, Vec<usize>>,
    /// The number of requests that differ only in their values, by their common words.
    requests: HashMap<Vec<String>, usize>,
    /// The keys of replaced statements, and the replaced values.
    replaced: HashSet<String>,
}

/// A statement.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct Statement {
    /// The words as typed, on one line.
    pub text: String,
    /// How important it is.
    pub(super) rank: u64,
    /// Whether the statement changed a value of an earlier one.
    pub(super) is_change: bool,
    /// Whether an earlier list left out the label that the user put before it.
    pub(super) lost_label: bool,
    subject: Subject,
    /// Whether a later statement replaced or repeated it.
    is_gone: bool,
}

/// The stored form of a statement that holds.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredStatement {
    pub(super) text: String,
    pub(super) rank: u64,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_change: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) lost_label: bool,
}

impl Statement {
    /// The value of keeping the statement: zero for a question or a routine request.
    pub fn worth(&self) -> u64 {
        self.rank.saturating_sub(2)
    }

    /// Whether the statement has a mark of importance: it demands something, has a label or gives a
    /// value.
    pub fn is_emphasised(&self) -> bool {
        self.rank >= EMPHASISED
    }
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
                typed_items(&summary.text).iter().for_each(|item| self.add_item(item));
            }
        }
        for text in ledger::typed(message) {
            let own = pasted::without(&text);
            for paragraph in headed(&own) {
                units(&paragraph).iter().for_each(|unit| self.add(unit));
            }
        }
    }

    /// The valid statements, in order: those that no later statement replaced or repeated.
    pub fn holding(&self) -> impl Iterator<Item = &Statement> {
        self.entries.iter().filter(|statement| !statement.is_gone)
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

    fn add(&mut self, text: &str) {
        let (is_change, lost_label) = (false, false);
        self.add_item(&TypedItem { text: text.to_owned(), is_change, lost_label });
    }

    fn add_item(&mut self, item: &TypedItem) {
        let text = one_line(&item.text);
        let key = key_of(&text);
        if key.is_empty() || text.len() > LONGEST {
            return;
        }
        let again = self.by_key.get(&key).copied();
        let old = again.and_then(|at| self.entries.get(at));
        // A text that is repeated without a mark of importance gets the lowest rank.
        let repeated = old.map(|old| if old.is_emphasised() { old.rank } else { 1 });
        let subject = old.map_or_else(|| Subject::of(&text), |old| old.subject.clone());
        // If the user repeats a statement with its label, a label that an earlier list omitted is
        // known again.
        let labelled = old.filter(|old| item.lost_label && !old.lost_label);
        let lost_label = item.lost_label && labelled.is_none();
        let text = labelled.map_or_else(|| text.into_owned(), |old| old.text.clone());
        let mut is_change = item.is_change;
        if let Some(old) = again.and_then(|at| self.entries.get_mut(at)) {
            is_change |= old.is_change;
            old.is_gone = true;
        }
        // Only statements that share a word can have the same subject, and of these only the latest
        // are compared: users correct what they said last, and the time stays linear.
        for at in self.alike(&subject) {
            is_change |= self.replace(at, &subject);
        }
        // A replaced statement becomes valid again when it is repeated.
        self.replaced.remove(&key);
        for value in subject.values() {
            self.replaced.remove(value);
        }
        let rank = repeated
            .unwrap_or_else(|| rank(&text, &subject, item.lost_label, self.is_routine(&subject)));
        self.push(Statement { text, rank, is_change, lost_label, subject, is_gone: false });
        if self.entries.len() > 2 * MOST {
            self.prune();
        }
    }

    /// Removes the part of a statement that a later statement on this subject replaces, and returns
    /// whether there was such a part. Its other sentences stay if they make sense alone.
    fn replace(&mut self, at: usize, by: &Subject) -> bool {
        let Some(old) = self.entries.get_mut(at) else { return false };
        if old.is_gone || !by.replaces(&old.subject) {
            return false;
        }
        let values = by.replaced_values(&old.subject);
        let stay = cut::rest(&old.text, &values, by);
        let is_cut = !values.is_empty()
            && !stay.is_empty()
            && stay != old.text
            && !self.by_key.contains_key(&key_of(&stay));
        let kept: HashSet<String> = sentences(&stay).filter(|_| is_cut).map(key_of).collect();
        let gone = sentences(&old.text).chain([old.text.as_str()]).map(key_of);
        let gone = gone.filter(|key| !kept.contains(key));
        self.replaced.extend(gone.chain(values.iter().map(|value| (*value).to_owned())));
        if is_cut {
            self.by_key.insert(key_of(&stay), at);
            old.subject = Subject::of(&stay);
            old.text = stay;
        } else {
            old.is_gone = true;
        }
        true
    }

    /// Whether many requests differ from this one only in their values.
    fn is_routine(&self, subject: &Subject) -> bool {
        let alike = subject.request().and_then(|request| self.requests.get(request));
        alike.is_some_and(|count| *count >= ROUTINE)
    }

    /// The latest statements that share a word with a subject.
    fn alike(&self, subject: &Subject) -> HashSet<usize> {
        let found = subject.terms().filter_map(|word| self.by_word.get(word));
        found.flat_map(|found| found.iter().rev().take(COMPARED).copied()).collect()
    }

    /// Drops statements that are no longer valid, and then the least important ones, the oldest
    /// first.
    fn prune(&mut self) {
        let mut entries = std::mem::take(&mut self.entries);
        entries.retain(|entry| !entry.is_gone);
        // Rank decides before age, because the user's first demands are still valid.
        let excess = entries.len().saturating_sub(MOST);
        let mut order: Vec<usize> = (0..entries.len()).collect();
        order.sort_by_key(|at| entries.get(*at).map(|entry| entry.rank));
        let dropped: HashSet<usize> = order.into_iter().take(excess).collect();
        let mut replaced = std::mem::take(&mut self.replaced);
        if replaced.len() > 4 * MOST {
            replaced.clear();
        }
        *self = Self { replaced, ..Self::default() };
        for (_, entry) in entries.into_iter().enumerate().filter(|(at, _)| !dropped.contains(at)) {
            self.push(entry);
        }
    }

    fn push(&mut self, entry: Statement) {
        let at = self.entries.len();
        for word in entry.subject.terms() {
            self.by_word.entry(word.to_owned()).or_default().push(at);
        }
        if let Some(request) = entry.subject.request() {
            *self.requests.entry(request.to_vec()).or_default() += 1;
        }
        self.by_key.insert(key_of(&entry.text), at);
        self.entries.push(entry);
    }

    /// Returns the statements that hold and the replaced texts, to be stored.
    pub(super) fn to_stored(&self) -> (Vec<StoredStatement>, BTreeSet<String>) {
        let holding = self.holding().map(|statement| {
            let Statement { text, rank, is_change, lost_label, .. } = statement.clone();
            StoredStatement { text, rank, is_change, lost_label }
        });
        (holding.collect(), self.replaced.iter().cloned().collect())
    }

    /// Returns stored statements. They may come from elsewhere, so their number is limited.
    pub(super) fn of_stored(stored: Vec<StoredStatement>, replaced: BTreeSet<String>) -> Self {
        let replaced = replaced.into_iter().take(4 * MOST).collect();
        let mut statements = Self { replaced, ..Self::default() };
        for stored in stored.into_iter().take(2 * MOST) {
            let StoredStatement { text, rank, is_change, lost_label } = stored;
            let subject = Subject::of(&text);
            let is_gone = false;
            statements.push(Statement { text, rank, is_change, lost_label, subject, is_gone });
        }
        statements
    }
}

/// Returns the key by which statements are compared: the text without a label that only stresses
/// it.
pub fn key_of(text: &str) -> String {
    let text = one_line(text);
    let text = without_emphasis(&text).to_lowercase().replace('\u{2019}', "'");
    text.trim_end_matches(['.', '!', '\u{3002}', '\u{ff01}']).trim_end().to_owned()
}

/// Returns the paragraphs of a text. Each item of a list is prefixed with the short heading above
/// the list, so that it can be understood alone.
fn headed(text: &str) -> Vec<String> {
    const HEADING: usize = 40;
    let mut lists: HashMap<String, String> = HashMap::new();
    let mut heading: Option<&str> = None;
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        if line.trim_start().starts_with(['-', '*', '\u{2022}']) {
            let item = line.trim().trim_start_matches(['-', '*', '\u{2022}']).trim();
            if let Some(heading) = heading {
                lists.insert(one_line(item).into_owned(), heading.trim().to_owned());
            }
        } else {
            let fits = line.len() <= HEADING && line.trim_end().ends_with([':', '\u{ff1a}']);
            heading = fits.then_some(line);
        }
    }
    let paragraphs = paragraphs(text).into_iter();
    let headings: HashSet<&String> = lists.values().collect();
    let whole = paragraphs.filter(|text| !headings.contains(text));
    whole
        .map(|text| match lists.get(&text) {
            Some(heading) => format!("{}: {text}", heading.trim_end_matches([':', '\u{ff1a}'])),
            None => text,
        })
        .collect()
}

/// Returns the statements of a paragraph. A short paragraph with a label is one statement up to its
/// first question or aside, because the label applies to all of it.
fn units(paragraph: &str) -> Vec<String> {
    let mut is_labelled = paragraph.len() <= SHORT && label(paragraph).is_some();
    let mut units: Vec<String> = Vec::new();
    let mut binds_next = false;
    for sentence in sentences(paragraph) {
        is_labelled = is_labelled && (units.is_empty() || !is_aside(sentence));
        let joined = units.last_mut().filter(|unit| {
            let binds = is_labelled || binds_next || needs_sentence_before(sentence);
            binds && unit.len() + sentence.len() < SHORT
        });
        match joined {
            Some(unit) => {
                unit.push(' ');
                unit.push_str(sentence);
            }
            None => units.push(sentence.to_owned()),
        }
        // A preface, or a sentence that ends with a colon, makes no sense without the text after
        // it.
        binds_next = ledger::is_preface(sentence) || sentence.ends_with([':', '\u{ff1a}']);
    }
    units
}

/// Whether a sentence is a question or a remark of the speaker, so that a label before it does not
/// apply to it.
fn is_aside(sentence: &str) -> bool {
    is_question(sentence) || (!has_demand(sentence) && Subject::of(sentence).is_talk())
}

/// Whether a sentence refers to something that the previous sentence names: `It closes at ten.`
fn needs_sentence_before(sentence: &str) -> bool {
    !is_question(sentence)
        && (ledger::lacks_subject(sentence) || (refers_back(sentence) && says_something(sentence)))
}

/// Whether a sentence demands or wants something or gives a value. Other sentences are remarks.
fn says_something(sentence: &str) -> bool {
    has_demand(sentence)
        || asks_in_any_language(sentence)
        || has_wish(sentence)
        || Subject::of(sentence).has_value()
}

/// Returns the importance of a statement.
fn rank(text: &str, subject: &Subject, lost_label: bool, is_routine: bool) -> u64 {
    let is_rule = sentences(text).any(ledger::is_rule);
    let is_labelled = lost_label || label(text).is_some();
    let words = text.split_whitespace().count();
    let asks = sentences(text).all(is_question);
    let demands =
        has_demand(text) || asks_in_any_language(text) || sentences(text).any(ledger::takes_back);
    let wishes = !asks && has_wish(text);
    let forbids = subject.denies() && !asks && !subject.is_talk();
    let gives_value = subject.has_value() && !asks && !is_routine && !subject.is_order();
    // The points only decide which statements are listed if there is not room for all.
    let points = [
        (is_rule, 6),
        (!is_rule && !asks && !is_routine && demands, 3),
        (is_labelled, 4),
        (gives_value, 3),
        (!gives_value && (wishes || forbids) && !is_rule && !demands, 2),
        (subject.is_change() && (gives_value || demands || wishes), 1),
    ];
    let points: u64 = points.iter().filter(|(holds, _)| *holds).map(|(_, points)| points).sum();
    // A text of few words is often `yes` or `go on`. In scripts without spaces, words cannot be
    // counted.
    let says_little = asks || is_routine || (words < 4 && !text.contains(is_unspaced));
    let is_talk = points == 0 && subject.is_talk();
    let base = if says_little { 1 } else { 3 - u64::from(is_talk) };
    base + points
}

#[cfg(test)]
mod tests {
    use super::*;

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
