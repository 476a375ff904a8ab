//! The meaning of a rule, as far as its words show it: its topic, its choice and its limit.

pub(super) use super::phrases::{list, phrases};
use crate::{
    message::steps,
    prose::{is_calendar, spoken_words},
};

/// Words that turn a demand into a prohibition.
const NEGATIONS: &str = " never not don't dont mustn't shouldn't cannot can't no ";

/// Words that show that a sentence has more than one message.
const CONTRASTS: &str = " except unless instead rather than but if ";

/// Verbs that choose one of several things.
const CHOICES: &str = " use prefer write answer reply respond format indent name call ";

/// Words that may precede the demand in a clause.
pub(super) const FILLERS: &str = " please pls so also just and but then actually ok okay well now oh yes sure thanks important note again rather ";

/// Words that introduce the circumstances of a choice.
const MARKS: &str = " for in with when while inside on as by at before after everywhere ";

/// Words before the things that are not chosen.
const REFUSALS: &str = " not instead rather over ";

/// Returns the words of a sentence in lower case, with straight apostrophes.
pub(super) fn words(sentence: &str) -> impl Iterator<Item = String> {
    spoken_words(sentence).map(|word| {
        let word = word.to_lowercase();
        if word.contains('\u{2019}') { word.replace('\u{2019}', "'") } else { word }
    })
}

/// The meaning of a sentence that asks for something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Meaning {
    /// The words of its topic, in their base form.
    pub(super) topic: Vec<String>,
    /// How many of these words name the only people to whom the action is permitted: `only Ada may
    /// sign`.
    pub(super) reserved: usize,
    /// Whether it names several things: `the lexer or the parser`.
    pub(super) lists: bool,
    /// Whether the sentence forbids something; `None` if it has more than one message.
    pub(super) forbids: Option<bool>,
    /// The choice that the sentence makes, if any.
    pub(super) choice: Option<Choice>,
    /// The words of its topic, and which of them give the only value of their kind.
    slots: Vec<Slot>,
}

/// A choice of one thing instead of another: `use spaces in this file, not tabs`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    verb: String,
    pub(super) object: Vec<String>,
    circumstances: Vec<String>,
    /// The things that are not chosen.
    pub(super) refused: Vec<String>,
    /// Whether it announces a change of an earlier choice.
    pub(super) is_change: bool,
}

/// The part of a choice that a word belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Object,
    Circumstances,
    Refused,
}

impl Meaning {
    pub(super) fn of(sentence: &str) -> Self {
        let words: Vec<String> = words(sentence).take(200).collect();
        // Two negations may cancel each other, and a contrast may reverse one.
        let negations = words.iter().filter(|word| listed(NEGATIONS, word)).count();
        let is_clear = negations < 2 && !has_any(CONTRASTS, &words);
        let reserved = reserved(sentence, &words);
        let forbids = if reserved > 0 { Some(true) } else { is_clear.then_some(negations == 1) };
        Self {
            topic: topic(&words),
            reserved,
            lists: has_any(" and or nor ", &words),
            forbids,
            choice: choice(&words),
            slots: slots(sentence),
        }
    }
}

impl Meaning {
    /// Whether this demand is the old one with another value, and only one of them can be valid:
    /// `answer in French`, `keep it under 20 pages`. Two prohibitions of different things are both
    /// valid.
    pub(super) fn revalues(&self, old: &Self) -> bool {
        let pairs = self.slots.iter().zip(&old.slots);
        let mut differing = pairs.filter(|(one, other)| one.word != other.word);
        let (Some((new, was)), None) = (differing.next(), differing.next()) else {
            return false;
        };
        let both_demand = [self, old].iter().all(|meaning| meaning.forbids == Some(false));
        let is_one = new.is_bound || (both_demand && new.is_one);
        is_one && self.slots.len() == old.slots.len() && new.kind == was.kind
    }
}

/// Returns how many words of the topic precede the verb in a sentence that permits something only
/// to some people.
fn reserved(sentence: &str, words: &[String]) -> usize {
    let only = words.iter().position(|word| !listed(FILLERS, word));
    let Some(only) = only.filter(|at| listed(" only nobody no ", word_at(words, *at))) else {
        return 0;
    };
    let modal = words.iter().position(|word| listed(" may can must should ", word));
    // `Only Ada signs`, but not `only use tabs`.
    let named = spoken_words(sentence).nth(only + 1).unwrap_or_default();
    let is_named = named == "the" || named.starts_with(char::is_uppercase);
    let acts = |(_, word): &(usize, &String)| word.ends_with('s');
    let verb = words.iter().enumerate().skip(only + 2).find(acts).map(|(at, _)| at);
    let verb = modal.or(verb.filter(|_| is_named));
    verb.and_then(|at| words.get(..at)).map_or(0, |head| topic(head).len())
}

/// Whether a word may precede the number of a limit.
pub(super) fn is_limit(word: &str) -> bool {
    matches!(
        word,
        "under" | "below" | "above" | "within" | "over" | "most" | "least" | "than" | "to"
    )
}

/// A word of a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Slot {
    word: String,
    kind: Kind,
    /// Whether a demand can have only one value at this word.
    is_one: bool,
    /// Whether the word is the number of a bound. Even a prohibition has only one: `more than 6`.
    is_bound: bool,
}

/// The kind of value that a word names, by its form. A value replaces only a value of the same
/// kind: `in French` does not replace `in bullets`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Number,
    Form,
    Name,
    Other,
}

impl Kind {
    fn of(word: &str, may_be_form: bool) -> Self {
        let first = word.chars().next().unwrap_or_default();
        match first {
            _ if first.is_ascii_digit() => Self::Number,
            _ if may_be_form && listed(list("forms"), &word.to_lowercase()) => Self::Form,
            _ if first.is_uppercase() => Self::Name,
            _ => Self::Other,
        }
    }
}

fn slots(sentence: &str) -> Vec<Slot> {
    // A shorter list than that of the topic, because each search takes time.
    const BESIDE: &str = " a an the my your our please just now always ok so also actually instead must then and but ";
    const FROM_NOW_ON: [[&str; 3]; 2] = [["from", "now", "on"], ["from", "here", "on"]];
    let mut written: Vec<&str> = spoken_words(sentence).take(200).collect();
    let mut lower: Vec<String> = written.iter().map(|word| word.to_lowercase()).collect();
    if let Some(at) = lower.windows(3).position(|three| FROM_NOW_ON.iter().any(|on| on == three)) {
        lower.drain(at..at + 3);
        written.drain(at..at + 3);
    }
    let any = |is: fn(&str) -> bool| lower.iter().any(|word| is(word));
    // A demand with one of these verbs can have only one language, form or place. `Write in Ada's
    // book` does not exclude another book.
    let answers = any(|word| matches!(word, "answer" | "reply" | "respond" | "label"));
    let writes = any(|word| matches!(word, "write" | "format"));
    let deploys = any(|word| word == "deploy");
    let others = any(|word| matches!(word, "use" | "name" | "call"));
    if !(answers || writes || deploys || others || lower.iter().any(|word| is_limit(word))) {
        return Vec::new();
    }
    let pairs = written.into_iter().zip(lower).filter(|(_, word)| !listed(BESIDE, word));
    let (written, lower): (Vec<&str>, Vec<String>) = pairs.unzip();
    let last_use = lower.iter().rposition(|word| word == "for" || word == "as").unwrap_or_default();
    let is_named = matches!(lower.as_slice(), [verb, object, ..] if verb == "name" || (verb == "call" && object == "me"));
    let (mut mark, mut last, mut uses, mut slots) = ("", "", false, Vec::new());
    for (at, (written, word)) in written.iter().zip(&lower).enumerate() {
        let is_in = matches!(mark, "in" | "as");
        let kind = Kind::of(written, is_in);
        let is_one = (is_in && (answers || (writes && kind == Kind::Name)))
            || (mark == "to" && deploys)
            || (uses && at < last_use)
            || (is_named && at > 1);
        let is_number = kind == Kind::Number;
        let is_one = (is_one && !is_calendar(written)) || (is_number && is_limit(last));
        let is_bound = is_number && matches!(last, "most" | "least" | "than");
        slots.push(Slot { word: word.clone(), kind, is_one, is_bound });
        uses |= word == "use";
        if matches!(word.as_str(), "to" | "in" | "as" | "on" | "with" | "for" | "at") {
            mark = word;
        }
        last = word;
    }
    slots
}

impl Choice {
    /// Whether this choice refuses the object of the other.
    pub(super) fn refuses(&self, other: &Self) -> bool {
        let same = self.verb == other.verb && self.circumstances == other.circumstances;
        same && !self.refused.is_empty() && self.refused == other.object
    }

    /// Whether this choice may replace the other: they differ only in the object or only in the
    /// circumstances.
    pub(super) fn differs_in_one(&self, other: &Self) -> bool {
        let (object, circumstances) = (&self.object, &self.circumstances);
        let same_object = *object == other.object;
        let same_circumstances = *circumstances == other.circumstances;
        let of_one_kind = circumstances.first() == other.circumstances.first();
        self.verb == other.verb
            && match (same_object, same_circumstances) {
                (false, true) => are_short(object, &other.object),
                (true, false) => of_one_kind && are_short(circumstances, &other.circumstances),
                (true, true) | (false, false) => false,
            }
    }
}

/// Whether both name a thing in at most three words. Longer phrases may differ in other details.
fn are_short(one: &[String], other: &[String]) -> bool {
    [one, other].iter().all(|words| (1..=3).contains(&words.len()))
}

/// Returns the clauses of a sentence, without the fillers before their demand.
pub(super) fn clauses(sentence: &str) -> impl Iterator<Item = Vec<String>> {
    let parts = steps::through(sentence).split([',', ';', ':', '(', ')', '\u{2014}', '\u{2013}']);
    parts.flat_map(|part| part.split(" - ")).flat_map(|part| {
        let mut words: Vec<String> = words(part).take(200).collect();
        let joined = joined_demand(&words).map(|at| words.split_off(at));
        [Some(words), joined]
            .into_iter()
            .flatten()
            .map(|words| words.into_iter().skip_while(|word| listed(FILLERS, word)).collect())
    })
}

/// Returns where a demand begins that `and` joins to the words before it: `move the files and never
/// touch the archive`, `i moved them and please don't touch the archive`.
fn joined_demand(words: &[String]) -> Option<usize> {
    const OBJECTS: &str = " the my it this that a an me your all our you ";
    const NO_ORDERS: &str = " i we he she they it is was are were has had did do if when took ";
    const DEMANDS: &str = " never always don't dont do only ";
    // `And so please also never`.
    const FILLERS_BETWEEN: usize = 4;
    let joints = words.iter().enumerate().skip(1).filter_map(|(at, word)| {
        let tail =
            words.get(at..).filter(|_| matches!(word.as_str(), "and" | "but" | "so" | "then"))?;
        let demand = tail.iter().take(FILLERS_BETWEEN).position(|word| listed(DEMANDS, word))?;
        let between = tail.get(..demand)?;
        let is_polite = has_any(" please pls ", between);
        between.iter().all(|word| listed(FILLERS, word)).then_some((at, is_polite))
    });
    let mut joints = joints.peekable();
    joints.peek()?;
    let mut head = words.iter().skip_while(|word| listed(FILLERS, word));
    let verb = head.next().filter(|verb| !listed(NO_ORDERS, verb) && !verb.ends_with("ed"));
    let has_object = head.next().is_some_and(|object| listed(OBJECTS, object));
    let is_order = verb.is_some() && has_object;
    joints.find(|(_, is_polite)| *is_polite || is_order).map(|(at, _)| at)
}

/// Whether a list of words between spaces contains a word.
pub(super) fn listed(list: &str, word: &str) -> bool {
    const GAPS: [char; 2] = [' ', '\n'];
    let mut matches = list.match_indices(word).map(|(at, _)| at);
    let found = matches.find(|at| {
        let after = list.get(at + word.len()..).is_some_and(|after| after.starts_with(GAPS));
        after && !word.is_empty() && list.get(..*at).is_some_and(|before| before.ends_with(GAPS))
    });
    steps::up_to(list, found).is_some()
}

/// Whether one of these words is in a list.
pub(super) fn has_any(list: &str, words: &[String]) -> bool {
    words.iter().any(|word| listed(list, word))
}

/// Returns a word of a clause, or an empty text after its end.
pub(super) fn word_at(clause: &[String], at: usize) -> &str {
    clause.get(at).map_or("", String::as_str)
}

/// Whether the subject of the verb at `at` is `I`.
pub(super) fn is_of_speaker(words: &[String], at: usize) -> bool {
    at.checked_sub(1).and_then(|before| words.get(before)).is_some_and(|subject| subject == "i")
}

/// Returns the words of a sentence's topic, in their base form.
pub(super) fn topic(words: &[String]) -> Vec<String> {
    let line = format!(" {} ", words.join(" ")).replace(" from now on ", " ");
    line.split_whitespace().filter(|word| !listed(list("empty"), word)).map(base).collect()
}

/// Returns a word without the ending of its plural or verb form: `lines`, `booking`, `planned`.
fn base(word: &str) -> String {
    const SHORTEST: usize = 3;
    if let Some(stem) = word.strip_suffix("ies").filter(|stem| stem.len() >= SHORTEST) {
        return format!("{stem}y");
    }
    let word = singular(word);
    let verb = word.strip_suffix("ing").or(word.strip_suffix("ed"));
    let Some(stem) = verb.filter(|stem| stem.len() >= SHORTEST) else {
        let stem = word.strip_suffix('e').filter(|stem| stem.len() >= SHORTEST);
        return stem.unwrap_or(word).to_owned();
    };
    // `planned` and `plan`, but `fill`, `miss` and `buzz` keep both letters.
    let last = stem.chars().next_back();
    let single = last.and_then(|last| stem.strip_suffix(last));
    match single.filter(|single| single.chars().next_back() == last) {
        Some(single) if !matches!(last, Some('l' | 's' | 'z')) => single.to_owned(),
        Some(_) | None => stem.to_owned(),
    }
}

fn singular(word: &str) -> &str {
    let word = word.trim_end_matches('\'');
    let word = word.strip_suffix("'s").unwrap_or(word);
    let is_plural = word.len() > 3 && !word.ends_with("ss");
    word.strip_suffix('s').filter(|_| is_plural).unwrap_or(word)
}

fn choice(words: &[String]) -> Option<Choice> {
    let line = format!(" {} ", words.join(" "));
    let bare =
        phrases("openings").iter().fold(line.clone(), |line, opening| line.replace(opening, " "));
    // A sentence that forbids one thing does not choose another.
    let mut before_verb = bare.split_whitespace().take_while(|word| !listed(CHOICES, word));
    if before_verb.any(|word| listed(NEGATIONS, word)) {
        return None;
    }
    let words = bare.split_whitespace();
    let mut words = words.filter(|word| !listed(list("empty"), word) || listed(REFUSALS, word));
    let verb = words.by_ref().take(3).find(|word| listed(CHOICES, word))?;
    let verb = if verb == "prefer" { "use" } else { verb };
    // Grammar is not parsed: words such as `in` and `not` decide to which part the words after them
    // belong.
    let (mut object, mut circumstances, mut refused) = (Vec::new(), Vec::new(), Vec::new());
    let mut part = Part::Object;
    for word in words {
        if listed(REFUSALS, word) {
            part = Part::Refused;
        } else if listed(MARKS, word) {
            part = Part::Circumstances;
            circumstances.push(word.to_owned());
        } else if part != Part::Refused || !refused.is_empty() || !matches!(word, "of" | "than") {
            let words = match part {
                Part::Object => &mut object,
                Part::Circumstances => &mut circumstances,
                Part::Refused => &mut refused,
            };
            words.push(singular(word).to_owned());
        }
    }
    let is_change = phrases("changes").iter().any(|change| line.contains(change));
    Some(Choice { verb: verb.to_owned(), object, circumstances, refused, is_change })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_contains_its_words_and_no_empty_word() {
        for (word, expected) in [("for", true), ("after", true), ("", false), ("fo", false)] {
            assert_eq!(listed(MARKS, word), expected, "{word:?}");
        }
    }
}
