//! Whether a sentence is a rule for the rest of the thread. The specification is four lists of forms:
//! [`SENTENCES`], [`CLAUSES`], [`UNLESS_GUESSED`] and [`PAIRS`]. One form is enough.

use super::{
    announce::{is_announced, is_for_good},
    asking::asking,
    consent::{is_consent, is_reserved},
    english::in_english,
    forms::{
        is_condition, is_demanded, is_excluded, is_general, is_habit, is_manner, is_order,
        is_property, is_wish, may_be_imperative,
    },
    phrases::{ASIDES, AT_HAND, FILLERS, FOR_ONCE, GUESSES, HOURS, PRONOUNS},
    words::{listed, word_at, words},
};
use crate::prose::{is_calendar, is_narrator};

type ClauseForm = fn(&[String]) -> bool;
type PairForm = fn(&[String], &[String]) -> bool;

/// Forms of a whole sentence.
const SENTENCES: [fn(&Demand<'_>) -> bool; 5] = [
    // `Please follow this rule: ...`
    |demand| is_announced(demand.sentence),
    // `Use tabs.`
    |demand| chooses(&demand.words),
    // `Sign it with your name, always.`
    |demand| demand.has("always") && demand.clauses.first().is_some_and(|it| may_be_imperative(it)),
    // `No nuts in anything.` `No nuts, ever.`
    |demand| demand.clauses.iter().any(|clause| is_excluded(clause, demand.has("ever"))),
    // `From now on the oven stays off.` `From now on I'll cook` is not a demand.
    |demand| is_for_good(&demand.line) && !demand.announces() && !demand.is_guess(),
];

/// Forms of a clause.
const CLAUSES: [ClauseForm; 7] = [
    // `Never touch the lexer`, `avoid adverbs`, `call me Ada`.
    is_order,
    // `Sign every reply with your name`.
    is_manner,
    // `I want all answers in French`.
    is_wish,
    // `Ask me before you delete anything`.
    is_consent,
    // `Only Ada may sign`.
    is_reserved,
    // `Prices always include tax`.
    is_property,
    // `Shut the shop at night`.
    is_habit,
];

/// Forms of a clause in a sentence that is not a guess: `trains must be cheaper, I suppose`.
const UNLESS_GUESSED: [ClauseForm; 2] = [
    // `You must`, `the parser must never`.
    is_demanded,
    // `Every answer should end with a question`.
    is_general,
];

/// Forms of two clauses, one after the other.
const PAIRS: [PairForm; 3] = [
    // `When you name a branch, prefix it`.
    is_condition,
    // `Ask me, before you delete anything`.
    |first, second| asks_before(first, second),
    // `Before you delete anything, ask me`.
    |first, second| asks_before(second, first),
];

/// Whether a sentence is a rule by itself, without the sentence before it.
pub(crate) fn is_rule(sentence: &str) -> bool {
    let sentence = without_aside(sentence);
    asking(sentence).is_some_and(|clauses| is_standing(sentence, &in_english(sentence), &clauses))
}

/// Whether a sentence with these [`asking`] clauses is a rule for the rest of the thread, as typed
/// or in its English form.
pub(super) fn is_standing(sentence: &str, english: &str, clauses: &[Vec<String>]) -> bool {
    let lasts_in_english =
        || asking(english).is_some_and(|clauses| Demand::new(english, &clauses).lasts());
    Demand::new(sentence, clauses).lasts() || (english != sentence && lasts_in_english())
}

/// A sentence that may demand something.
struct Demand<'a> {
    sentence: &'a str,
    words: Vec<String>,
    /// The words between spaces.
    line: String,
    /// The clauses without their fillers.
    clauses: &'a [Vec<String>],
}

impl<'a> Demand<'a> {
    fn new(sentence: &'a str, clauses: &'a [Vec<String>]) -> Self {
        let words: Vec<String> = words(sentence).take(200).collect();
        Self { sentence, line: format!(" {} ", words.join(" ")), words, clauses }
    }

    fn lasts(&self) -> bool {
        !self.is_momentary()
            && (SENTENCES.iter().any(|has_form| has_form(self))
                || self.any_clause(&CLAUSES)
                || (self.any_clause(&UNLESS_GUESSED) && !self.is_guess())
                || self.any_pair())
    }

    fn any_clause(&self, forms: &[ClauseForm]) -> bool {
        self.clauses.iter().any(|clause| forms.iter().any(|has_form| has_form(clause)))
    }

    fn any_pair(&self) -> bool {
        let mut pairs = self.clauses.iter().zip(self.clauses.iter().skip(1));
        pairs.any(|(first, second)| PAIRS.iter().any(|have_form| have_form(first, second)))
    }

    /// Whether this word is a clause of its own.
    fn has(&self, word: &str) -> bool {
        self.clauses.iter().any(|clause| matches!(clause.as_slice(), [only] if only == word))
    }

    /// Whether the sentence applies only to this moment.
    fn is_momentary(&self) -> bool {
        is_for_once(&self.line)
            && !self.is_tied_beside()
            && !self.clauses.iter().any(|clause| waits(clause))
    }

    /// Whether only clauses without the demand are tied to this moment: `never restart it, and we
    /// can talk tomorrow`.
    fn is_tied_beside(&self) -> bool {
        let is_tied = |clause: &&Vec<String>| is_for_once(&format!(" {} ", clause.join(" ")));
        let mut tied = self.clauses.iter().filter(is_tied).peekable();
        tied.peek().is_some() && tied.all(|clause| is_narrator(word_at(clause, 0)))
    }

    /// Whether the user announces an action instead of demanding one.
    fn announces(&self) -> bool {
        [" i will ", " i'll ", " i am ", " i'm "].iter().any(|phrase| self.line.contains(phrase))
    }

    fn is_guess(&self) -> bool {
        self.clauses.iter().any(|clause| guesses(clause) || asks_to_explain(clause))
    }
}

/// Returns a sentence without the aside that opens it: `Oh, and before I forget: use tabs`.
pub(super) fn without_aside(sentence: &str) -> &str {
    let parts = sentence.split_once(": ").or_else(|| sentence.split_once(['\u{ff1a}', ',']));
    let Some((head, body)) = parts.filter(|(_, body)| !body.trim().is_empty()) else {
        return sentence;
    };
    let mut last = head.rsplit([' ', '\u{a0}']).filter(|word| !word.is_empty()).take(2);
    let is_aside = last.any(|word| listed(ASIDES, &word.to_lowercase())) || head.contains('忘');
    if is_aside { body.trim_start() } else { sentence }
}

/// Whether a phrase ties a line to this moment.
pub(super) fn is_for_once(line: &str) -> bool {
    FOR_ONCE.iter().any(|phrase| line.contains(phrase))
}

/// Whether a clause forbids something until something happens, not until an hour or a day: `don't
/// ship it until customs clears it`.
fn waits(clause: &[String]) -> bool {
    let Some(until) = clause.iter().position(|word| word == "until") else { return false };
    // `Don't merge it until I have looked` is about the current task.
    let is_at_hand = until.checked_sub(1).is_some_and(|at| listed(PRONOUNS, word_at(clause, at)));
    let event = clause.get(until + 1..).unwrap_or_default();
    let is_hour = event.first().is_none_or(|word| {
        listed(HOURS, word) || is_calendar(word) || word.starts_with(|c: char| c.is_ascii_digit())
    });
    !is_at_hand && event.len() > 1 && !is_hour && is_order(clause)
}

/// Whether a clause opens like a guess: `I suppose trains must be cheaper`.
fn guesses(clause: &[String]) -> bool {
    let line = format!("{} ", clause.join(" "));
    let mut rests = GUESSES.iter().filter_map(|guess| line.strip_prefix(guess));
    rests.any(|rest| rest.starts_with(' '))
}

/// Whether a clause asks only for an explanation: `explain when a caller must not be recorded`.
fn asks_to_explain(clause: &[String]) -> bool {
    listed(" why when whether how what who where ", word_at(clause, 1)) && may_be_imperative(clause)
}

/// Whether somebody must be asked before an action.
fn asks_before(asked: &[String], action: &[String]) -> bool {
    word_at(action, 0) == "before" && is_consent(&[asked, action].concat())
}

/// Whether a sentence chooses something: `use tabs`, `use spaces instead of tabs`.
pub(super) fn is_choice(sentence: &str) -> bool {
    chooses(&words(sentence).take(20).collect::<Vec<_>>())
}

fn chooses(words: &[String]) -> bool {
    let mut words = words.iter().skip_while(|word| listed(FILLERS, word));
    let begins = words.next().is_some_and(|word| word == "use");
    let rest: Vec<&String> = words.collect();
    begins && (1..=8).contains(&rest.len()) && !rest.iter().any(|word| listed(AT_HAND, word))
}

/// Whether a demand names no object of its own, so that it needs the sentence before it: `Never
/// raise without asking.`
pub(crate) fn lacks_subject(sentence: &str) -> bool {
    if is_about_last(sentence) {
        return true;
    }
    let words: Vec<String> = words(sentence).take(6).collect();
    let mut first = words.iter().take(3);
    let Some(at) = first.position(|word| listed(" never always don't do ", word)) else {
        return false;
    };
    let mut after = words.iter().skip(at + 1).peekable();
    after.next_if(|word| listed(" not ever ", word));
    let object = after.nth(1);
    object.is_none_or(|word| listed(" without unless before after until it them this that ", word))
}

/// Whether a demand continues the previous sentence, and states how its subject must always be: `It
/// must never leave the house.`
pub(super) fn is_about_last(sentence: &str) -> bool {
    let words: Vec<String> =
        words(sentence).take(9).skip_while(|word| listed(FILLERS, word)).collect();
    let [subject, modal, adverb, verb, ..] = words.as_slice() else { return false };
    let demands = listed(" it they this that these those he she ", subject)
        && listed(" must may should shall can ", modal)
        && listed(" never always only not ", adverb);
    let guesses = adverb == "not" && listed(" be have ", verb);
    // `Keep that in mind.`
    let reminds = listed(" keep bear have ", subject)
        && listed(PRONOUNS, modal)
        && adverb == "in"
        && verb == "mind";
    (demands && !guesses) || reminds
}
