//! Whether a sentence is a rule for the rest of the thread.

use super::meaning::{is_of_speaker, listed, words};
use crate::{
    message::steps,
    prose::{is_narrator, may_demand},
};

/// Words that may precede the demand in a clause.
const FILLERS: &str = " please so also just and but then actually ok okay well now oh yes sure thanks important note again rather ";

/// Verbs after `don't` that make no lasting rule.
const ONCE_FORBIDDEN: &str =
    " worry bother forget mind hesitate know think get see understand have need be want like care ";

/// Objects that name nothing.
const PRONOUNS: &str = " it this that them so these those again anything please ";

/// Words that tie a choice to the current task.
const AT_HAND: &str = " to it this that these those here first next then now again them one ";

/// Phrases that tie a sentence to this moment.
const FOR_ONCE: [&str; 8] = [
    " yet ",
    " for now ",
    " right now ",
    " this time ",
    " until ",
    " just once ",
    " in this turn ",
    " for the moment ",
];

/// Phrases that turn a demand into a rule.
const FOR_GOOD: [&str; 9] = [
    " from now on ",
    " going forward ",
    " for the rest of ",
    " at all times ",
    " under no circumstances ",
    " i prefer ",
    " we prefer ",
    " i'd prefer ",
    " i would prefer ",
];

/// Verbs that report another person's words.
const REPORTS: &str = " says said say wrote writes reads told claims claimed quote quotes ";

/// Words that begin a demand.
const ASKING: &str =
    " never always only don't dont do must mustn't should shall may prefer keep leave use from no ";

/// Whether a sentence is in the user's own words and may demand something.
pub(super) fn may_ask(sentence: &str) -> bool {
    // A sentence in quotation marks is another person's.
    if sentence.starts_with('"') || !may_demand(sentence) {
        return false;
    }
    let head: Vec<String> = words(sentence).take(40).collect();
    let level =
        head.first().is_some_and(|word| listed(" error warn warning info debug trace ", word));
    !level && !is_reported(&head)
}

/// Whether a sentence reports another person's words before its demand: `he said we must hurry`.
fn is_reported(words: &[String]) -> bool {
    let mut numbered = words.iter().enumerate();
    let report = numbered.position(|(at, word)| listed(REPORTS, word) && !is_of_speaker(words, at));
    let demand = words.iter().position(|word| listed(ASKING, word));
    report.is_some_and(|report| demand.is_none_or(|demand| report < demand))
}

/// Whether a sentence is a rule by itself.
pub(crate) fn is_rule(sentence: &str) -> bool {
    may_ask(sentence) && is_standing(sentence)
}

/// Whether a sentence for which [`may_ask`] holds is a rule for the rest of the thread.
pub(super) fn is_standing(sentence: &str) -> bool {
    let all: Vec<String> = words(sentence).take(200).collect();
    let line = format!(" {} ", all.join(" "));
    if FOR_ONCE.iter().any(|phrase| line.contains(phrase)) {
        return false;
    }
    let announces =
        [" i will ", " i'll ", " i am ", " i'm "].iter().any(|phrase| line.contains(phrase));
    let for_good = FOR_GOOD.iter().any(|phrase| line.contains(phrase)) && !announces;
    let clauses: Vec<Vec<String>> = clauses(sentence).collect();
    for_good
        || is_choice(&all)
        || clauses.iter().any(|clause| is_lasting_demand(clause) || is_manner(clause))
        || clauses.windows(2).any(|pair| matches!(pair, [one, two] if is_condition(one, two)))
}

/// Whether a sentence only says for how long the next one applies: `For the rest of this week.`
pub(crate) fn is_preface(sentence: &str) -> bool {
    const MOST: usize = 3;
    const LONGEST: usize = 200;
    // Few sentences are so short and have such a phrase, and reading clauses takes long.
    let lower = sentence.get(..sentence.len().min(LONGEST)).map(str::to_ascii_lowercase);
    let has_phrase = |text: &str| FOR_GOOD.iter().any(|phrase| text.contains(phrase.trim()));
    if sentence.len() > LONGEST || !lower.is_some_and(|text| has_phrase(&text)) {
        return false;
    }
    clauses(sentence).last().is_some_and(|clause| {
        let line = format!(" {} ", clause.join(" "));
        let rest = FOR_GOOD.iter().find_map(|phrase| line.strip_prefix(phrase));
        rest.is_some_and(|rest| rest.split_whitespace().count() <= MOST)
            && !clause.iter().any(|word| word == "i" || word == "we")
    })
}

/// Whether a demand names no object of its own, so that it needs the sentence before it: `Never
/// raise without asking.`
pub(crate) fn lacks_subject(sentence: &str) -> bool {
    let words: Vec<String> = words(sentence).take(6).collect();
    let is_demand = |word: &String| matches!(word.as_str(), "never" | "always" | "don't" | "do");
    let Some(at) = words.iter().take(3).position(is_demand) else { return false };
    let mut after = words.iter().skip(at + 1).map(String::as_str).peekable();
    after.next_if(|word| matches!(*word, "not" | "ever"));
    let object = after.nth(1);
    object.is_none_or(|word| matches!(word, "without" | "unless" | "before" | "after" | "until"))
        || object.is_some_and(|word| matches!(word, "it" | "them" | "this" | "that"))
}

/// Words that begin a condition.
const CONDITIONS: &str = " when whenever before after if once while ";

/// Words that tie a condition to one occasion.
const OCCASIONS: &str = " the this that these those it can could want wants like have had are are you're get need     done ready finished think were was agree ";

/// Words that an imperative does not begin with.
const NO_VERBS: &str = " a an the this that these those there it its i i'm i'll i've we we'll he she they you you're your     my our what which who how why where is are was were yes no thanks all some most each every any     then so and or but because since as to of in on at for from with by not just maybe perhaps ";

/// Whether two clauses are a condition and what is to be done whenever it holds: `When you name a
/// branch, prefix it`. An occasion (`when you are done`) makes no rule.
fn is_condition(condition: &[String], consequence: &[String]) -> bool {
    let [opening, subject, rest @ ..] = condition else { return false };
    let lasts = subject == "you"
        && !rest.is_empty()
        && listed(CONDITIONS, opening)
        && !rest.iter().any(|word| listed(OCCASIONS, word));
    lasts && rest.len() + consequence.len() > 3 && begins_with_verb(consequence)
}

fn begins_with_verb(clause: &[String]) -> bool {
    clause.first().is_some_and(|first| !listed(NO_VERBS, first) && !first.ends_with("ing"))
}

/// Whether a clause says how something is always to be done: `sign every reply with your name`,
/// `answer in one line only`.
fn is_manner(clause: &[String]) -> bool {
    const OURS: &str = " reply replies response responses answer answers commit commits turn ";
    if clause.len() < 4 {
        return false;
    }
    let recurs = clause.windows(2).any(|pair| {
        let [one, two] = pair else { return false };
        matches!(one.as_str(), "every" | "each" | "your") && listed(OURS, two)
    });
    let recurs = recurs && clause.iter().any(|word| matches!(word.as_str(), "every" | "each"));
    let only = clause.last().is_some_and(|word| word == "only");
    (recurs || only) && begins_with_verb(clause)
}

/// Returns the clauses of a sentence, without the fillers before their demand.
fn clauses(sentence: &str) -> impl Iterator<Item = Vec<String>> {
    let parts = steps::through(sentence).split([',', ';', ':', '(', ')', '\u{2014}', '\u{2013}']);
    parts.flat_map(|part| part.split(" - ")).map(|part| {
        let words = words(part).take(200);
        words.skip_while(|word| listed(FILLERS, word)).collect()
    })
}

fn is_lasting_demand(clause: &[String]) -> bool {
    let word = |at: usize| clause.get(at).map(String::as_str).unwrap_or_default();
    let article = |word| listed(" the a an same is was mind one two some ", word);
    match word(0) {
        "never" | "always" | "only" => clause.len() > 1 && !article(word(1)),
        "no" => word(1) == "longer" && clause.len() > 2,
        "prefer" | "preferably" => clause.len() > 1,
        "keep" | "leave" => is_kept(clause),
        "don't" | "dont" => forbids(clause.get(1..).unwrap_or_default()),
        "do" if word(1) == "not" => forbids(clause.get(2..).unwrap_or_default()),
        "make" | "ensure" | "be" | "remember" | "try" => {
            let lasting = |word: &String| listed(" never always every each ", word);
            clause.iter().any(lasting)
        }
        _ => is_demanded(clause),
    }
}

/// Whether the words after `don't` make a lasting prohibition.
fn forbids(rest: &[String]) -> bool {
    let rest = match rest {
        [first, rest @ ..] if first == "ever" => rest,
        rest => rest,
    };
    let Some((verb, object)) = rest.split_first() else { return false };
    let names = object.iter().any(|word| !listed(PRONOUNS, word));
    !listed(ONCE_FORBIDDEN, verb) && names
}

/// `you must`, `the parser must never`, `tests should always`, `you may not`.
fn is_demanded(clause: &[String]) -> bool {
    let word = |at: usize| clause.get(at).map(String::as_str).unwrap_or_default();
    clause.iter().enumerate().skip(1).any(|(at, modal)| {
        let subject = word(at - 1);
        let next = word(at + 1);
        let is_statement = is_narrator(subject) || next == "have";
        let lasts = match modal.as_str() {
            "must" => !(subject == "you" && next == "be"),
            "mustn't" => true,
            "should" | "shall" => {
                listed(" never always only ", next) || (next == "not" && word(at + 2) == "ever")
            }
            "may" => next == "not",
            "are" | "is" => next == "forbidden" || (next == "not" && word(at + 2) == "allowed"),
            _ => false,
        };
        lasts && !is_statement
    })
}

/// `leave the lexer alone`, `keep the names as they are`.
fn is_kept(clause: &[String]) -> bool {
    let line = format!(" {} ", clause.join(" "));
    let ways = [" as is ", " as it is ", " as they are ", " unchanged ", " intact ", " untouched "];
    let alone = clause.first().is_some_and(|word| word == "leave") && line.contains(" alone ");
    alone || ways.iter().any(|way| line.contains(way))
}

/// `use tabs`, `use spaces instead of tabs`.
fn is_choice(words: &[String]) -> bool {
    let mut words = words.iter().skip_while(|word| listed(FILLERS, word));
    let begins = words.next().is_some_and(|word| word == "use");
    let rest: Vec<&String> = words.collect();
    begins && (1..=8).contains(&rest.len()) && !rest.iter().any(|word| listed(AT_HAND, word))
}
