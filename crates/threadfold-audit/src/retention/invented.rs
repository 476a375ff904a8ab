//! Facts of a summary that the thread does not state.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::{
    facts::Facts,
    gather::Gathered,
    names::{named, of_word, words},
    options::AuditOptions,
    quantities::{Quantities, is_worth},
    search::Search,
    sieve::{Parts, Sieve},
    small_set::SmallSet,
};
use crate::{
    ledger,
    message::{Message, slice, steps},
    prose::{
        FactClass, Kind, Property, Span, Speaker, is_calendar, is_unspaced, key, one_line,
        orders_in_any_language, rough_passages, sentences, without_emphasis, without_typed,
    },
};
use threadfold_core::retention::Fact;

/// The maximum number of instructions of a summary that are compared with all statements of the
/// user.
const MOST_INSTRUCTIONS: usize = 200;

/// Returns the invented facts of a summary: paths, URLs, commands, names, versions, hashes,
/// numbers, dates, times and instructions that neither the facts of the conversation nor a message
/// of the thread state.
///
/// Words are compared as in an [audit](super::audit()); numbers, dates and times by value, however
/// they are spelled: `3,000` is `3000`, `5 pm` is `17:00`, `twelve` is `12`, and `15 ms` is not `15
/// s`. Numbers below ten are ignored. An instruction is known if most of its words are in one
/// statement of the user. A sentence that the thread contains is never invented, and a false
/// sentence without such facts is not found. A name is a word with a capital inside a sentence, or
/// at its start if an act of a person follows (`Ada approved it`). If one word in five has a
/// capital, as in German, it must follow another noun (`Frau Krause`); in Chinese and Japanese it
/// must precede a title. The lists of rules and of the user's words that this crate adds to
/// summaries are not checked.
///
/// ```
/// use threadfold::{Message, retention::{RetentionPolicy, Facts, invented}};
///
/// let thread = [Message::user("Fix src/parse.rs."), Message::assistant("It took 12 ms.")];
/// let facts = Facts::of(&thread, &RetentionPolicy::default());
/// assert_eq!(invented("src/parse.rs took 12 ms.", &facts, &thread), []);
/// let found = invented("src/lex.rs took 15 ms.", &facts, &thread);
/// let texts: Vec<&str> = found.iter().map(|fact| fact.text.as_str()).collect();
/// assert_eq!(texts, ["src/lex.rs", "15 ms"]);
/// ```
#[must_use]
pub fn invented<'m>(
    summary: &str,
    facts: &Facts,
    thread: impl IntoIterator<Item = &'m Message>,
) -> Vec<Fact> {
    let own = without_typed(&ledger::without_titled(summary));
    let own: String = own.split_inclusive('\n').filter(|line| !is_note(line.trim_end())).collect();
    let options = AuditOptions { tool_mentions: 1, ..AuditOptions::default() };
    let stated = stated(&own, &options);
    let mut unconfirmed = Unconfirmed::new(&own, &stated, facts, &options);
    for message in thread {
        if unconfirmed.is_empty() {
            break;
        }
        rough_passages(message, &mut |speaker, kind, text| unconfirmed.read(speaker, kind, text));
        for call in message.tool_uses() {
            unconfirmed.read(Speaker::Assistant, Kind::Value, &call.name);
        }
    }
    unconfirmed.into_facts(facts)
}

/// Returns the facts of a summary. Its instructions are read as if the user gave them.
fn stated(summary: &str, options: &AuditOptions) -> Gathered {
    let mut stated = Gathered::default();
    stated.read(0, &Message::user(summary), options);
    for text in summary.lines().flat_map(sentences).filter(|it| orders(it)) {
        let (class, speaker) = (FactClass::Constraint, Speaker::Assistant);
        stated.note(0, &Span { class, text, speaker, is_done: false }, options);
    }
    stated
}

/// Whether a sentence of a summary gives a permanent instruction in a form that the search for
/// demands does not recognise.
fn orders(sentence: &str) -> bool {
    const ADDRESSED: [&str; 6] = [
        "the agent to ",
        "the assistant to ",
        "the agent is to ",
        "the assistant is to ",
        "wants you to ",
        "you are to ",
    ];
    let lower = sentence.to_lowercase();
    orders_in_any_language(sentence) || ADDRESSED.iter().any(|phrase| lower.contains(phrase))
}

/// Whether a line is a note of this crate about omitted text: `[... 763 bytes omitted ...]`, `(763
/// bytes left out)`.
fn is_note(line: &str) -> bool {
    let line = line.trim_start_matches("> ");
    [("[... ", " omitted ...]"), ("(", " left out)")]
        .iter()
        .any(|(start, end)| line.starts_with(start) && line.ends_with(end))
}

/// The facts, names and quantities of a summary that no text has stated so far.
struct Unconfirmed<'s> {
    /// The common parts of the facts that are not facts of the conversation.
    unknown: Vec<&'s str>,
    /// Notes which facts were read. Names and quantities are removed when they are read.
    search: Search<'s>,
    /// The names by their form in lower case.
    names: BTreeMap<String, Fact>,
    quantities: Quantities,
    filter: Filter,
}

impl<'s> Unconfirmed<'s> {
    /// Returns what a summary with these stated facts contains and the facts of the conversation do
    /// not confirm.
    fn new(summary: &str, stated: &'s Gathered, facts: &Facts, options: &'s AuditOptions) -> Self {
        let unknown =
            stated.relevant(options).filter(|(class, key, _)| facts.is_unknown(*class, key));
        let unknown: Vec<&str> =
            unknown.map(|(class, key, mention)| common_part(class, key, &mention.text)).collect();
        let mut names = named(summary);
        let mut quantities = Quantities::of(summary, stated.texts(FactClass::Number));
        let groups = quantities.groups();
        names.retain(|word, _| !groups.contains(word.as_str()) && !is_calendar(word));
        let known = facts.gathered.texts(FactClass::Number);
        known.for_each(|text| quantities.remove_read(Speaker::Tool, text));
        let filter = Filter::new(&unknown, &names);
        Self { unknown, search: Search::new(stated, 1, options, None), names, quantities, filter }
    }

    fn is_empty(&self) -> bool {
        self.unknown.is_empty() && self.names.is_empty() && self.quantities.is_empty()
    }

    /// Reads a text of the thread.
    fn read(&mut self, speaker: Speaker, kind: Kind, text: &str) {
        self.quantities.remove_read(speaker, text);
        // Most texts state none of these facts, and reading a text takes long.
        let parts = self.filter.sieve.parts(text);
        if self.filter.facts.iter().any(|fact| parts.contains(*fact)) {
            self.search.read_text(kind, text);
        }
        if self.filter.names.iter().any(|name| parts.contains(*name)) {
            self.filter.remove_read(&mut self.names, text);
            if is_worth(self.names.len(), self.filter.made_for) {
                self.filter = Filter::new(&self.unknown, &self.names);
            }
        }
    }

    /// Returns what no text stated.
    fn into_facts(self, facts: &Facts) -> Vec<Fact> {
        let Self { unknown, search, names, quantities, .. } = self;
        let missing = if unknown.is_empty() { Vec::new() } else { search.retention().missing };
        let mut missing = without_known(missing, facts, &quantities);
        let listed: HashSet<String> =
            missing.iter().flat_map(|fact| words(&fact.text)).map(str::to_lowercase).collect();
        let of_quantities = quantities.into_texts().map(|(class, text)| of_word(class, &text));
        missing.extend(names.into_values().chain(of_quantities).filter(|fact| {
            let is_new = |word: &str| !listed.contains(&word.to_lowercase());
            fact.text.contains(is_unspaced) || words(&fact.text).any(is_new)
        }));
        missing
    }
}

/// Returns the missing facts except those that the thread states in another form: numbers in
/// another spelling, instructions in other words.
fn without_known(mut missing: Vec<Fact>, facts: &Facts, quantities: &Quantities) -> Vec<Fact> {
    let mut compared = 0..MOST_INSTRUCTIONS;
    missing.retain(|fact| {
        let is_instruction = fact.class == FactClass::Constraint;
        let is_known = (fact.class == FactClass::Number && quantities.were_read(&fact.text))
            || (is_instruction && compared.next().is_some() && facts.statements().say(&fact.text));
        facts.is_unknown(fact.class, &key(fact.class, &fact.text)) && !is_known
    });
    missing
}

/// Rules out the texts, and the words of a text, that state no unknown fact and no name.
struct Filter {
    sieve: Sieve,
    /// The parts of each fact in the sieve, as a set, because many facts have the same parts.
    facts: BTreeSet<Parts>,
    names: BTreeSet<Parts>,
    /// The lengths of the names in bytes.
    lengths: SmallSet,
    /// The names in scripts without spaces.
    unspaced: Vec<String>,
    /// The number of names when the filter was made.
    made_for: usize,
}

impl Filter {
    fn new(facts: &[&str], names: &BTreeMap<String, Fact>) -> Self {
        let mut sieve = Sieve::default();
        let facts = facts.iter().map(|words| sieve.add(words)).collect();
        // The names as spelled, because lower case can change their length: `\u{130}` becomes two
        // characters.
        let spelled = names.values().map(|fact| fact.text.as_str());
        let of_names = spelled.map(|name| sieve.add(steps::through(name))).collect();
        let lengths = names.keys().map(String::len).collect();
        let unspaced = names.keys().filter(|name| name.contains(is_unspaced)).cloned().collect();
        Self { sieve, facts, names: of_names, lengths, unspaced, made_for: names.len() }
    }

    /// Removes the names that a text contains.
    fn remove_read(&self, names: &mut BTreeMap<String, Fact>, text: &str) {
        for name in self.unspaced.iter().filter(|name| steps::through(text).contains(*name)) {
            names.remove(name);
        }
        // Few words of a thread have the length of a name.
        let words = words(steps::through(text));
        for word in words.filter(|word| self.lengths.contains(word.len()) || !word.is_ascii()) {
            if word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit()) {
                names.remove(word)
            } else {
                names.remove(&word.to_lowercase())
            };
        }
    }
}

impl Facts {
    /// Whether a summary that states this fact has invented it.
    fn is_unknown(&self, class: FactClass, key: &str) -> bool {
        class.is(Property::Checked) && !self.knows(class, key)
    }
}

/// The part that all spellings of a fact share. For a path it is the name of the file.
fn common_part<'a>(class: FactClass, key: &'a str, text: &'a str) -> &'a str {
    if class == FactClass::Path {
        key.rsplit('/').next().unwrap_or(key)
    } else if class == FactClass::Constraint {
        without_emphasis(text)
    } else {
        key
    }
}

/// Returns a summary without the sentences that state one of these facts. Lines that lose all of
/// their sentences are removed too.
///
/// ```
/// use threadfold::{Message, retention::{RetentionPolicy, Facts, invented, without_invented}};
///
/// let thread = [Message::user("Fix src/parse.rs.")];
/// let facts = Facts::of(&thread, &RetentionPolicy::default());
/// let summary = "They fixed src/parse.rs. The tests took 15 ms.\n- Ask Ada Byron.\n";
/// let found = invented(summary, &facts, &thread);
/// assert_eq!(without_invented(summary, &found), "They fixed src/parse.rs.\n");
/// ```
#[must_use]
pub fn without_invented(summary: &str, invented: &[Fact]) -> String {
    let texts: Vec<String> = invented.iter().map(|fact| fact.text.to_lowercase()).collect();
    let by_word = by_rarest_word(&texts);
    let mut kept = String::new();
    for line in summary.split_inclusive('\n') {
        let sentences = sentences(line.trim_end());
        let (gone, stay): (Vec<&str>, Vec<&str>) = sentences.partition(|sentence| {
            let sentence = one_line(sentence).to_lowercase();
            keys(&sentence).any(|word| {
                let mut texts = by_word.get(word).into_iter().flatten();
                texts.any(|text| states(&sentence, text))
            })
        });
        if gone.is_empty() {
            kept.push_str(line);
        } else if !stay.is_empty() {
            let end = if line.ends_with('\n') { "\n" } else { "" };
            kept.push_str(&format!("{}{end}", stay.join(" ")));
        }
    }
    kept
}

/// Groups the texts by their rarest word, so that a sentence is compared with few of them.
fn by_rarest_word(texts: &[String]) -> HashMap<&str, Vec<&str>> {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    texts.iter().flat_map(|text| keys(text)).for_each(|word| *counts.entry(word).or_default() += 1);
    let mut by_word: HashMap<&str, Vec<&str>> = HashMap::new();
    for text in texts {
        let rarest = keys(text).min_by_key(|word| counts.get(word));
        rarest.into_iter().for_each(|rarest| by_word.entry(rarest).or_default().push(text));
    }
    by_word
}

/// The words of a text, and its characters in scripts without spaces.
fn keys(text: &str) -> impl Iterator<Item = &str> {
    let characters = text.split_inclusive(is_unspaced).filter_map(|part| {
        let (at, last) = part.char_indices().next_back()?;
        is_unspaced(last).then(|| slice(part, at..))
    });
    words(text).chain(characters)
}

/// Whether a text contains a shorter one as whole words, both in lower case.
fn states(text: &str, wanted: &str) -> bool {
    steps::through(text).match_indices(wanted).any(|(start, found)| {
        let before = slice(text, ..start);
        let after = slice(text, start + found.len()..);
        !before.ends_with(char::is_alphanumeric) && !after.starts_with(char::is_alphanumeric)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        message::{Json, Role, ToolUse},
        retention::RetentionPolicy,
    };

    #[test]
    fn a_name_within_another_word_is_not_removed() {
        let facts = Facts::of(&[], &RetentionPolicy::default());
        let summary = "They wrote to Ada. It went from Canada to Peru.";
        let thread = [Message::user("They wrote. It went from Canada to Peru.")];
        let found = invented(summary, &facts, &thread);
        assert_eq!(found.iter().map(|fact| fact.text.as_str()).collect::<Vec<_>>(), ["Ada"]);
        assert_eq!(without_invented(summary, &found), "It went from Canada to Peru.");
    }

    #[test]
    fn facts_in_the_input_of_a_call_are_not_invented() {
        let facts = Facts::of(&[], &RetentionPolicy::default());
        let found = |input: serde_json::Value, summary: &str| {
            let call = ToolUse::new("t1", "write", Json::from(input));
            let thread = [Message::new(Role::Assistant, vec![call.into()])];
            invented(summary, &facts, &thread).len()
        };
        let note = json!({"note": "Asked:\nZora Quent,\t\"417 ms\"\\\nsrc/new.rs", "line": 58});
        let summary = "They asked Zora and Quent about src/new.rs, line 58, which took 417 ms.";
        assert_eq!(found(note, summary), 0);
        assert_eq!(found(json!({}), summary), 5);
        let accents = json!({"note": "Asked Zo\u{eb} on the 14th.\u{1}Wrote C:\\users\\zoe.rs"});
        assert_eq!(found(accents, "They asked Zo\u{eb} on the 14th about zoe.rs."), 0);
    }

    #[test]
    fn the_work_is_linear_in_the_number_of_names() {
        let name = |number: usize| {
            let letter =
                |at: u32| char::from(b'a' + u8::try_from(number / 26_usize.pow(at) % 26).unwrap());
            format!("Q{}{}{}", letter(0), letter(1), letter(2))
        };
        let line = |number: usize| {
            format!("then it was approved by {} in src/p{number}.rs.\n", name(number))
        };
        let facts = Facts::of(&[], &RetentionPolicy::default());
        let of = |names: usize, is_true: bool| {
            let summary: String = (0..names).map(line).collect();
            let thread: Vec<Message> =
                (0..names).filter(|_| is_true).map(|number| Message::user(line(number))).collect();
            steps::steps(u64::MAX, || {
                let found = invented(&summary, &facts, &thread);
                assert_eq!(found.len(), if is_true { 0 } else { names * 2 });
                let kept = without_invented(&summary, &found);
                assert_eq!(kept.is_empty(), !is_true);
            })
        };
        for is_true in [false, true] {
            let (some, more) = (of(500, is_true), of(1_000, is_true));
            assert!(more * 10 <= some * 22, "{is_true}: {some} {more}");
        }
    }

    #[test]
    fn other_spellings_of_a_value_are_not_invented_and_other_values_are() {
        let said = "It starts at 16:45 on March 3 with 3,000 guests, twelve cooks and a 90 s speech. \
                    Write to ada@example.org.";
        let thread = [Message::user(said)];
        let facts = Facts::of(&thread, &RetentionPolicy::default());
        let texts = |summary: &str| -> Vec<String> {
            let found = invented(summary, &facts, &thread);
            found.into_iter().map(|fact| fact.text.as_str().to_owned()).collect()
        };
        let same =
            "At 4:45 pm on 2026-03-03, 3000 guests hear 90 seconds of speech, with 12 cooks.";
        assert!(texts(same).is_empty(), "{:?}", texts(same));
        let rows = [
            ("It starts at 17:45.", "17:45"),
            ("It is on March 4.", "4"),
            ("It is on the 14th.", "14th"),
            ("It has 3,100 guests.", "3,100"),
            ("It has thirteen cooks.", "thirteen"),
            ("The speech takes 90 min.", "90 min"),
            ("The speech takes ninety weeks.", "ninety"),
            ("Write to bob@example.org.", "bob@example.org"),
        ];
        for (summary, text) in rows {
            assert_eq!(texts(summary), [text], "{summary}");
            assert_eq!(without_invented(summary, &invented(summary, &facts, &thread)), "");
        }
        let said = "She takes 20 mg and 300 g a day, from a quarter past eleven for two hours. Set LIMIT=40. Call \
                    030 555 0178. 会议在星期一，预算35万元。高橋さんと王律师。";
        let thread = [Message::user(said)];
        let facts = Facts::of(&thread, &RetentionPolicy::default());
        let texts = |summary: &str| -> Vec<String> {
            let found = invented(summary, &facts, &thread);
            found.into_iter().map(|fact| fact.text.as_str().to_owned()).collect()
        };
        let same = "She takes 20mg and 300 grams at 11:15 for 2 h. LIMIT=40. 0305550178. Monday. 周一 350,000元 \
                    高橋さん 王律师. A 20-mg dose, 每周一次, a quarter past eleven.";
        assert!(texts(same).is_empty(), "{:?}", texts(same));
        let rows = [
            ("She takes 20 mg and 300 g. She takes 20 g.", "20"),
            ("It takes 300 days, and she takes 20 mg.", "300"),
            ("LIMIT=41.", "41"),
            ("Call 030 555 0187.", "030 555 0187"),
            ("会议在星期五。", "星期五"),
            ("会議は木曜日です。", "木曜"),
            ("预算35万美元。", "35万美元"),
            ("松本さん。", "松本"),
            ("赵律师。", "赵"),
        ];
        for (summary, text) in rows {
            let found = texts(summary);
            assert!(found.len() == 1 && found[0].starts_with(text), "{summary} {found:?}");
        }
    }

    #[test]
    fn names_are_found_at_the_start_of_a_sentence_and_among_german_nouns() {
        let said = "The budget was approved. Die Sitzung im großen Raum am Montag hat der Vorstand \
                    mit dem Budget und der Miete für das Lager in der Stadt geplant.";
        let thread = [Message::user(said)];
        let facts = Facts::of(&thread, &RetentionPolicy::default());
        let german = "Die Sitzung im großen Raum am Montag hat der Vorstand mit dem Budget und der Miete für \
                      das Lager in der Stadt geplant.";
        let rows = [
            ("Marta approved the budget.", "Marta"),
            ("Kenji\u{2019}s budget was approved.", "Kenji"),
            (&format!("{german} Sie hat Frau Krause in der Stadt gesehen."), "Krause"),
        ];
        for (summary, name) in rows {
            let found = invented(summary, &facts, &thread);
            assert!(found.iter().any(|fact| fact.text == name), "{summary} {found:?}");
        }
        for summary in ["Everyone approved the budget.", "Today\u{2019}s budget was approved."] {
            assert_eq!(invented(summary, &facts, &thread), [], "{summary}");
        }
    }

    #[test]
    fn inventions_are_found_in_codes_commands_long_numbers_and_other_languages() {
        let said = "The vet is Dr. Sommer, phone 555-0199. Run `make check`. \u{79df}\u{91d1}\u{662f}3480\u{5143}\u{3002} It was E0425.";
        let thread = [Message::user(said)];
        let facts = Facts::of(&thread, &RetentionPolicy::default());
        assert_eq!(invented(said, &facts, &thread), []);
        let rows = [
            ("The vet is Dr. Winter.", "Winter"),
            ("Call 555-0300 for details.", "0300"),
            ("Then `make deploy` it.", "deploy"),
            ("\u{79df}\u{91d1}\u{662f}4200\u{5143}\u{3002}", "4200"),
            ("Die Miete ist 1.150 Euro.", "150"),
            ("The error was E0599.", "E0599"),
        ];
        for (summary, expected) in rows {
            let found = invented(summary, &facts, &thread);
            let has = |fact: &Fact| fact.text.as_str().contains(expected);
            assert!(found.iter().any(has), "{summary} {found:?}");
        }
    }
}
