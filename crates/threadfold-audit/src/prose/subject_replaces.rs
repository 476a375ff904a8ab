//! Decides whether a later statement replaces an earlier one, because it gives another value for the
//! same subject.
//!
//! A later statement that announces a change (`now`, `moved`, `instead`) replaces an earlier one if
//! most of their words agree. A later statement without such a word replaces it only if one set of
//! words contains the other and the two differ in values of one form. In both cases no shared word
//! may have different qualifiers: `left lamp` and `right lamp` are two subjects, as are `room 12`
//! and `room 14`. A later statement about a part of the subject does not replace one about the
//! whole: `the late fee for films`, `the fee in Lisbon`.

use super::{
    stem::stem,
    subject::{Polarity, Stance, Subject},
    subject_words::{Grammar, PLACED, is_kind, means_another},
    value::Form,
};

/// How much of their subjects two statements share.
struct Overlap {
    /// The number of shared words, names included.
    words: usize,
    /// The number of shared words and kinds of value.
    all: usize,
    new_size: usize,
    old_size: usize,
    least_size: usize,
}

impl Overlap {
    fn of(new: &Subject, old: &Subject) -> Self {
        let (words, new_size, old_size) = (new.shared_topic(old), new.size(old), old.size(new));
        let all = words + new.shared_kinds(old);
        Self { words, all, new_size, old_size, least_size: new_size.min(old_size) }
    }
}

impl Subject {
    /// Whether this later statement gives another value for the same subject.
    pub fn replaces(&self, old: &Self) -> bool {
        if self.is_tentative() {
            return false;
        }
        if self.defines_anew(old) {
            return true;
        }
        let (changes, corrects) = (self.mood.changes, self.corrects(old));
        if !(changes || corrects || (self.mood.asserts && old.mood.asserts)) {
            return false;
        }
        // Values of different forms answer different questions, so `on Monday` does not replace `in
        // room 4`.
        match *self.differing_forms(old).as_slice() {
            // Only words differ, as in `The band is Moss` and `The band is now Fern`.
            [] if changes && self.differs_in_one_run(old) => self.has_values_alike(old),
            // No value differs, but the old statement may be denied as a whole.
            [] => corrects && !self.contrasts(old),
            // A statement about one place or person does not replace a general one.
            [form, ..] if self.contrasts(old) || self.is_narrower(old, form) => false,
            _ if corrects => true,
            [form, ..] if self.names_what_is_forbidden(old, form) => self.forbids_telling(old),
            // An announced change may omit words.
            [form, ..] if changes => self.agrees(old, form),
            // Without an announcement, the subjects must be the same.
            [form] => {
                self.has_one_value(form)
                    && !old.is_narrower(self, form)
                    && self.is_about_the_same(old, form)
            }
            [_, _, ..] => false,
        }
    }

    /// Whether it is a question, a supposition, a memory or a report of another person's words.
    /// These replace no statement.
    fn is_tentative(&self) -> bool {
        match self.mood.stance {
            Stance::Direct => false,
            Stance::Reported => !self.mood.changes,
            Stance::Musing => true,
        }
    }

    /// Whether both define the same thing under the same label, without values.
    fn defines_anew(&self, old: &Self) -> bool {
        let both = self.label.definition.as_ref().zip(old.label.definition.as_ref());
        let has_no_value = self.values.is_empty() && old.values.is_empty();
        both.is_some_and(|(new, old_definition)| {
            has_no_value && self.label.text == old.label.text && new.replaces(old_definition)
        })
    }

    /// Whether this statement calls a word or value of the old one no longer true.
    fn corrects(&self, old: &Self) -> bool {
        let names_one = self.denied.iter().any(|denied| {
            old.values.values().any(|values| values.contains(denied)) || old.frame.contains(denied)
        });
        // They must share another word in addition to the denied one.
        let stems: Vec<String> = self.denied.iter().map(|denied| stem(denied)).collect();
        let mut topic = self.topic_words().filter(|word| !stems.iter().any(|stem| stem == word));
        !old.denies() && names_one && topic.any(|word| old.topic.words.contains_key(word))
    }

    /// Whether both have the same words and values, except for one run of a few words.
    fn differs_in_one_run(&self, old: &Self) -> bool {
        const LONGEST: usize = 4;
        let (new, old_content) = (&self.content, &old.content);
        let before = new.iter().zip(old_content).take_while(|(one, two)| one == two).count();
        let rest = new.len().min(old_content.len()) - before;
        let after = new.iter().rev().zip(old_content.iter().rev()).take(rest);
        let common = before + after.take_while(|(one, two)| one == two).count();
        !self.denies()
            && !old.denies()
            && before > 0
            && (common >= 2 || self.opens_like(old))
            && !self.is_other(old)
            && (1..=LONGEST).contains(&(new.len() - common))
            && (1..=LONGEST).contains(&(old_content.len() - common))
    }

    /// Whether it has a value in place of each value of the old statement, and the same predicate.
    fn has_values_alike(&self, old: &Self) -> bool {
        let has_alike = |form: &Form| {
            let is_alike = |own: &Form| own == form || (own.identifies() && form.identifies());
            *form == Form::Number || self.values.keys().any(is_alike)
        };
        (self.has_value() || !old.has_value())
            && old.values.keys().all(has_alike)
            && self.shares_predicate(old)
    }

    /// Whether the words with which both begin include the verb. `At the Oslo office the code is
    /// 4471` and `At the Oslo office we now have a cat` share only a place, so both are valid.
    fn shares_predicate(&self, old: &Self) -> bool {
        let is_copula = |word: &String| word == PLACED || Grammar::of(word).is(Grammar::COPULA);
        let common: Vec<&String> = self
            .unchanged()
            .zip(old.unchanged())
            .take_while(|(one, two)| one == two)
            .map(|(word, _)| word)
            .collect();
        let speaker = common.iter().position(|word| Grammar::of(word).is(Grammar::TALK));
        if common.iter().any(|word| is_copula(word))
            || speaker.is_some_and(|at| at + 1 < common.len())
        {
            return true;
        }
        let states_other = [self, old]
            .into_iter()
            .any(|one| one.unchanged().skip(common.len()).take(5).any(is_copula));
        // `My sister moved to Leeds` replaces no other statement about her.
        let is_verb = |word: &String| {
            let does = Grammar::of(word);
            does.is(Grammar::CHANGE) && !does.is(Grammar::ADVERB)
        };
        speaker.is_none() && !states_other && !self.frame.get(common.len()).is_some_and(is_verb)
    }

    /// Whether both begin with the same words, grammar included.
    fn opens_like(&self, old: &Self) -> bool {
        const LEAST: usize = 4;
        let both = self.unchanged().zip(old.unchanged()).take_while(|(one, two)| one == two);
        // A copula counts twice, because `The plan is` shows more agreement than `The plan for`.
        let weights = both.map(|(word, _)| match word.as_str() {
            PLACED => 3,
            word => 1 + usize::from(Grammar::of(word).is(Grammar::COPULA)),
        });
        weights.sum::<usize>() >= LEAST
    }

    /// Whether this statement is about a part of the other's subject, or limited to a place, person
    /// or day that the other does not name: `the fee for films`, `the Berlin office`.
    fn is_narrower(&self, other: &Self, form: Form) -> bool {
        // A name that is the value itself is no limitation.
        let values = self.values.get(&form);
        let is_value = |name: &String| {
            !self.topic.identifiers.contains(name)
                && values.is_some_and(|values| values.contains(name))
        };
        let limits = |word: &String| self.mood.changes && !other.has(word);
        let is_other = |words: &[String]| {
            matches!(words, [the, word] if Grammar::of(the).is(Grammar::DETERMINER)
                && means_another(word)
                && !other.frame.contains(word))
        };
        self.topic.scopes.iter().any(|scope| !other.has(scope) && !is_value(scope))
            || self.frame.windows(2).any(is_other)
            || self.topic.core.as_ref().is_some_and(|core| limits(core) && !is_kind(core))
            || self.topic.words.iter().any(|(word, qualifiers)| {
                other.topic.words.contains_key(word) && qualifiers.iter().any(limits)
            })
    }

    /// Whether a value of this form is the object of a prohibition.
    fn names_what_is_forbidden(&self, old: &Self, form: Form) -> bool {
        form.identifies() && [self, old].iter().any(|one| one.mood.polarity == Polarity::Forbids)
    }

    /// Whether both forbid to disclose something about a shared topic. Then they give two values
    /// for it, so the later one replaces the earlier. Other prohibitions of different things are
    /// both valid.
    fn forbids_telling(&self, old: &Self) -> bool {
        self.mood.tells && old.mood.tells && self.shared_topic(old) > 0
    }

    /// Whether its subject has only one value of this form. `The tests need Redis` and `the tests
    /// need Docker` are both valid.
    fn has_one_value(&self, form: Form) -> bool {
        let may_be_many = |word: &String| Grammar::of(word).is(Grammar::MANY);
        !(form.identifies() && self.frame.iter().any(may_be_many))
    }

    /// Whether enough words agree for an announced change to refer to the old statement.
    fn agrees(&self, old: &Self, form: Form) -> bool {
        let shared = Overlap::of(self, old);
        // One shared word is enough if the form of the value is rare.
        let is_rare = !matches!(form, Form::Name | Form::Number | Form::Quoted);
        (shared.words > 0 || shared.new_size == 0)
            && shared.all > 0
            && shared.all * 3 >= shared.least_size
            && (is_rare || self.is_known_by(&shared, old, form))
    }

    /// Whether the words of one statement are a subset of those of the other.
    fn is_about_the_same(&self, old: &Self, form: Form) -> bool {
        let shared = Overlap::of(self, old);
        // An additional word usually means another thing: `the pool next door`. A shared label
        // shows that both are about the same thing.
        let is_labelled_alike = (!self.label.text.is_empty() && self.label.text == old.label.text)
            || self.label.is_entry
            || old.label.is_entry;
        let has_kind = self.kinds().chain(old.kinds()).next().is_some();
        shared.words == shared.least_size
            && (shared.new_size == shared.old_size
                || (is_labelled_alike && (shared.words > 1 || (shared.words > 0 && has_kind))))
            && self.is_known_by(&shared, old, form)
    }

    /// Whether the shared words show which value is meant. A single one does if a statement has no
    /// other word, or if a word before such a value is one of the other statement's words.
    fn is_known_by(&self, shared: &Overlap, old: &Self, form: Form) -> bool {
        match shared.all {
            0 => false,
            1 => shared.least_size <= 1 || self.names(form, old) || old.names(form, self),
            _ => true,
        }
    }

    /// Whether a word directly before a value of this form is one of the other's words.
    fn names(&self, form: Form, other: &Self) -> bool {
        let mut slots = self.slots.get(&form).into_iter().flatten();
        slots.any(|slot| other.topic.words.contains_key(slot))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replaces(new: &str, old: &str) -> bool {
        Subject::of(new).replaces(&Subject::of(old))
    }

    #[test]
    fn another_value_for_the_same_subject_replaces_the_old_one() {
        let rows = [
            ("The port of the proxy is 8443.", "The port of the proxy is 8080."),
            ("Seats are now limited to 40 for the pilot.", "The pilot is limited to 25 seats."),
            ("The owner of the pilot is Ada Byron.", "Pilot owner: Grace Hopper"),
            ("TODO: the fee is $40 a seat", "NOTE: the fee is $30 a seat"),
            ("We have 50 goats now.", "We have 34 goats."),
            ("There are 28 children in class 3a now.", "There are 26 children in class 3a."),
            ("The class has 28 children now.", "The class has 26 children."),
            ("Starting in May the rent is 1,350 a month.", "The rent is 1,200 a month."),
            ("Der Port des Servers ist jetzt 8443.", "Der Port des Servers ist 8080."),
            ("\u{7aef}\u{53e3}\u{662f} 8443", "\u{7aef}\u{53e3}\u{662f} 8080"),
        ];
        for (new, old) in rows {
            assert!(replaces(new, old), "{new} {:?} {:?}", Subject::of(new), Subject::of(old));
        }
    }

    #[test]
    fn statements_about_two_subjects_are_both_valid() {
        let rows = [
            ("The left lamp is Model 7 in row-3.", "The right lamp is Model 6 in row-1."),
            ("The port of the proxy is 8443.", "The port of the server is 8080."),
            ("Fix ticket 12.", "Fix ticket 11."),
            ("Never delete backup-02.", "Never delete backup-01."),
            ("Never touch the file src/b.rs.", "Never touch the file src/a.rs."),
            ("Keep the names of part 2 as they are.", "Keep the names of part 1 as they are."),
            ("The owner is Ada.", "The owner is Ada."),
            ("The neighbours have 50 goats now.", "We have 34 goats."),
            ("Their budget is 6,000.", "Our budget is 5,000."),
            ("Her flight now leaves at 10:15.", "His flight leaves at 9:40."),
            ("The other deadline is on Monday.", "The deadline is on Friday."),
            ("The live site now has 9 pages.", "The test site has 7 pages."),
            ("Send letters to b@example.org from now on.", "Send bills to a@example.org."),
            ("Use port 9090 for the metrics now.", "Use port 8080 for the proxy."),
            ("Sara now sleeps six hours a day.", "Sara drinks two coffees a day."),
            ("My aunt now gets up at 9.", "I get up at 8."),
            ("Unser Saal hat jetzt 40 Plätze.", "Ihr Saal hat 30 Plätze."),
            ("Die Nachbarn haben jetzt 24 Kühe.", "Wir haben 20 Kühe."),
            ("10 of the chairs need new legs.", "We need 40 chairs."),
            ("There are 28 children in class 3b now.", "There are 26 children in class 3a."),
            (
                "NOTE: the tea API base page is https://a.b/v2.",
                "NOTE: fix-1 is based on commit 5c0ffee.",
            ),
        ];
        for (new, old) in rows {
            assert!(!replaces(new, old), "{new} {:?} {:?}", Subject::of(new), Subject::of(old));
        }
    }
}
