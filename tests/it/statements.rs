//! Typed text stays word for word, in any language, and the newest value of a subject wins.

use std::{fs, sync::Arc};

use threadfold::{
    CompactionStrategy, Message, StrategyRegistry,
    ledger::Ledger,
    retention::{Facts, RetentionPolicy, Statements},
    strategy::{Brief, Snapshot, Step},
    tokens::{ByteEstimate, TokenCounter},
};

/// A conversation with all of its messages so far.
#[derive(Default)]
struct Talk {
    all: Vec<Message>,
    thread: Vec<Message>,
}

impl Talk {
    fn say(&mut self, message: Message) {
        self.all.push(message.clone());
        self.thread.push(message);
    }

    /// Adds some messages of no importance.
    fn chat(&mut self, round: usize) {
        for line in 0..12 {
            self.say(Message::user(format!("And what about part {round}.{line} of the story?")));
            let long = format!("Part {line} goes on like this for a while. ").repeat(8);
            self.say(Message::assistant(long));
        }
    }

    /// Compacts with a strategy that asks no model, and returns all remaining text.
    fn compact(&mut self, target: u64) -> String {
        let mut rules = Ledger::default();
        self.all.iter().enumerate().for_each(|(at, message)| rules.read(at, message));
        let facts = Facts::of(&self.all, &RetentionPolicy::default());
        let snapshot = Snapshot::new(self.thread.clone())
            .with_rules(Arc::new(rules))
            .with_facts(Arc::new(facts));
        let retention = Some(RetentionPolicy::default());
        let brief = Brief { target: Some(target), retention, ..Brief::default() };
        let registry = StrategyRegistry::default();
        let digest: &Arc<dyn CompactionStrategy> = registry.get("digest").unwrap();
        let attempt = digest.begin(&snapshot, &brief);
        let Step::Proposed(proposal) = attempt.step() else { panic!("{attempt:?}") };
        let settled = snapshot.settle(proposal.clone(), &brief).unwrap();
        self.thread = settled.plan.after(&self.thread).unwrap();
        assert!(ByteEstimate::TRIGGER.messages(&self.thread) <= target);
        format!("{:?}", self.thread)
    }
}

#[test]
fn rules_in_other_languages_stay_word_for_word_through_five_compactions() {
    let typed = [
        "Frag mich vor jedem Push auf den Server um Erlaubnis.",
        "Benutze in allen Antworten nur metrische Einheiten.",
        "\u{6bcf}\u{6b21}\u{63d0}\u{4ea4}\u{4e4b}\u{524d}\u{5148}\u{8fd0}\u{884c}\u{6d4b}\u{8bd5}\u{3002}",
        "\u{4e0d}\u{8981}\u{5728}\u{65e5}\u{5fd7}\u{91cc}\u{5199}\u{5bc6}\u{7801}\u{3002}",
        "No cambies nunca la carpeta de recetas.",
        "Responde siempre en tres frases como m\u{e1}ximo.",
    ];
    let mut talk = Talk::default();
    talk.say(Message::user("Hallo, let us begin."));
    talk.say(Message::assistant("Yes."));
    for text in typed {
        talk.say(Message::user(text));
        talk.say(Message::assistant("Noted."));
    }
    for round in 0..5 {
        talk.chat(round);
        let left = talk.compact(700);
        for text in typed {
            assert!(left.contains(text), "{text} is missing after round {round}: {left}");
        }
    }
}

#[test]
fn only_the_newest_value_of_a_subject_stays() {
    let mut talk = Talk::default();
    // The first text is the task, which stays as it was typed.
    talk.say(Message::user("Hallo, let us begin."));
    talk.say(Message::user("The port of the proxy is 8080, and tea is at noon."));
    talk.say(Message::user("The port of the mailer is 2525."));
    talk.say(Message::assistant("Good."));
    talk.chat(0);
    talk.say(Message::user("The port of the proxy is now 8443."));
    talk.chat(1);
    let left = talk.compact(700);
    assert!(left.contains("The port of the proxy is now 8443. (changed)"), "{left}");
    assert!(left.contains("The port of the mailer is 2525."), "{left}");
    assert!(!left.contains("8080"), "{left}");
}

#[test]
fn an_audit_counts_a_replaced_value_that_is_still_there_as_stale() {
    let typed = ["The fee is $30.", "The fee is $40."].map(Message::user);
    let facts = Facts::of(&typed, &RetentionPolicy::default());
    let stale = |summary: &str| facts.audit(&[Message::assistant(summary)]).stale;
    assert_eq!(stale("The fee is $40."), 0);
    assert_eq!(stale("The fee is $30, later $40."), 1);
}

#[test]
fn a_preface_applies_to_the_sentence_after_it() {
    let mut rules = Ledger::default();
    rules.read(0, &Message::user("For the rest of this week. Sign your letters with a star."));
    let texts: Vec<&str> = rules.active().map(|rule| rule.text.as_str()).collect();
    assert_eq!(texts, ["For the rest of this week. Sign your letters with a star."]);
}

#[test]
fn a_demand_without_an_object_includes_the_sentence_that_names_it() {
    let mut rules = Ledger::default();
    rules.read(0, &Message::user("The limit for tea is $40. Never raise without asking."));
    rules.read(1, &Message::user("The limit for tea is $60. Never raise without asking."));
    let texts: Vec<&str> = rules.active().map(|rule| rule.text.as_str()).collect();
    assert_eq!(texts, ["The limit for tea is $60. Never raise without asking."]);
}

#[test]
fn a_recurring_condition_makes_a_rule_and_a_single_occasion_does_not() {
    let rows = [
        ("When you name a branch, begin with the ticket.", true),
        ("Before you touch a table, draw the old one.", true),
        ("Sign every reply with a star.", true),
        ("Answer in single lines only.", true),
        ("When you are done, run the tests.", false),
        ("Before you go, fix it.", false),
        ("If you can, fix the build.", false),
        ("Check each file for the bug.", false),
        ("When the test fails, look at the log.", false),
        ("Write a reply to each message in the list.", false),
    ];
    for (text, expected) in rows {
        let mut rules = Ledger::default();
        rules.read(0, &Message::user(text));
        assert_eq!(rules.active().next().is_some(), expected, "{text}");
    }
}

/// The pairs of statements in a file of `testdata/restated` whose result is not `both_hold`.
fn wrong_pairs(file: &str, both_hold: bool) -> Vec<String> {
    let rows = fs::read_to_string(format!("testdata/restated/{file}.txt")).unwrap();
    let rows = rows.lines().filter(|row| !row.is_empty() && !row.starts_with('#'));
    let is_wrong = |row: &&str| {
        let (old, new) = row.split_once(" | ").unwrap();
        let all = Statements::of(&[Message::user(old), Message::user(new)]);
        let holding: Vec<&str> = all.holding().map(|one| one.text.as_str()).collect();
        let expected = if both_hold { vec![old, new] } else { vec![new] };
        holding != expected
    };
    rows.filter(is_wrong).map(str::to_owned).collect()
}

#[test]
fn a_later_value_in_other_words_replaces_the_earlier_one() {
    assert_eq!(wrong_pairs("replaced", false), [""; 0]);
}

#[test]
fn statements_about_different_things_are_both_valid() {
    assert_eq!(wrong_pairs("both_hold", true), [""; 0]);
}
