//! The forms of a clause that demands something for the rest of the thread. `standing.rs` lists them.

use super::{
    consent::is_habitual,
    phrases::{
        ARTICLES, CONDITIONS, DONE, EXPRESSES, NO_IMPERATIVES, NO_REMARKS, NO_VERBS, OCCASIONS,
        ONCE_FORBIDDEN, OURS, PRONOUNS, REMARKS, SET, STATES,
    },
    words::{has_any, is_limit, listed, pairs, word_at},
};
use crate::prose::{is_narrator, is_number};

/// Whether the first word of a clause may be an imperative.
pub(super) fn may_be_imperative(clause: &[String]) -> bool {
    let first = word_at(clause, 0);
    !clause.is_empty() && !listed(NO_IMPERATIVES, first) && !first.ends_with("ing")
}

/// Whether a clause is an order that lasts.
pub(super) fn is_order(clause: &[String]) -> bool {
    let (first, next, third) = (word_at(clause, 0), word_at(clause, 1), word_at(clause, 2));
    match first {
        // `Could you please always answer in French`.
        "could" | "can" | "would" | "will" if next == "you" => {
            let mut rest = clause.iter().skip(2).skip_while(|word| *word == "please");
            rest.next().is_some_and(|word| word == "always" || word == "never")
        }
        // `Never touch the lexer`.
        "never" | "always" => clause.len() > 1 && !is_article(next) && begins_order(clause),
        // `Only use tabs`, but not `only joking`, `only Ada came`.
        "only" => {
            clause.len() > 1
                && !is_article(next)
                && !listed(" yesterday now then time joking kidding ", next)
                && !listed(REMARKS, third)
        }
        // `Don't touch the lexer`.
        "don't" | "dont" => forbids(clause.get(1..).unwrap_or_default()),
        "do" if next == "not" => forbids(clause.get(2..).unwrap_or_default()),
        // `No longer use tabs`, `no semicolons`.
        "no" => (next == "longer" && clause.len() > 2) || is_banned(clause),
        "avoid" => clause.len() > 1 && !listed(PRONOUNS, next),
        "prefer" | "preferably" => clause.len() > 1,
        _ => is_order_of_verb(clause),
    }
}

/// Whether a clause begins with a verb that orders something lasting together with the words after
/// it.
fn is_order_of_verb(clause: &[String]) -> bool {
    const LATER: &str = " back later when at on in if once again after before soon ";
    let (first, next, third) = (word_at(clause, 0), word_at(clause, 1), word_at(clause, 2));
    let each = || listed(" each every ", next) && clause.len() > 3;
    let names_me = next == "me" && clause.len() > 2 && !listed(LATER, third);
    match first {
        "refrain" => next == "from",
        "hands" => next == "off",
        "stick" => next == "to" && !listed(PRONOUNS, third) && clause.len() > 3,
        // `Stop using tabs`.
        "stop" => next.ends_with("ing") && clause.len() > 2,
        // `Call me Ada`, but not `call me back`.
        "call" => names_me,
        "address" => names_me || each() || (next == "all" && clause.len() > 3),
        // `Stay out of the cellar`, `keep away from it`.
        "stay" => {
            listed(" out away off clear ", next)
                && clause.len() > 3
                && !clause.last().is_some_and(|last| listed(PRONOUNS, last))
        }
        "answer" | "reply" | "respond" => {
            listed(" in with as using only without ", next) && !listed(PRONOUNS, third)
        }
        "finish" | "end" | "close" | "conclude" => next == "with" && clause.len() > 3,
        // `Refer to the callers as guests`.
        "refer" => next == "to" && has_any(" as ", clause),
        "give" | "mark" | "label" | "tag" | "prefix" => each(),
        "keep" | "leave" => is_kept(clause) || is_bounded(clause),
        "limit" | "cap" | "hold" => is_bounded(clause),
        // `Make sure that you never ...`
        "make" | "ensure" | "be" | "remember" | "try" => {
            has_any(" never always every each ", clause)
        }
        _ => false,
    }
}

/// Whether a word may begin the name of a thing or a statement about it.
fn is_article(word: &str) -> bool {
    listed(ARTICLES, word) || is_number(word)
}

/// Whether `never` or `always` begins an order, not a remark: `never heard of it`, `never again`.
fn begins_order(clause: &[String]) -> bool {
    let [adverb, verb, rest @ ..] = clause else { return false };
    let is_participle = verb.ends_with("ed") && !verb.ends_with("eed") && verb != "embed";
    let again = verb == "again" && !rest.is_empty();
    // `Siempre confundo las llaves` is about the speaker.
    let is_first_person = verb.len() > 5 && verb.ends_with('o');
    (again || !listed(DONE, verb))
        && !is_participle
        && !is_first_person
        && rest.last() != Some(adverb)
}

/// Whether the words after `don't` make a lasting prohibition.
fn forbids(rest: &[String]) -> bool {
    let rest = match rest {
        [first, rest @ ..] if first == "ever" => rest,
        rest => rest,
    };
    let Some((verb, object)) = rest.split_first() else { return false };
    // `Don't tell me it's broken`, `don't ask me why` and `don't we all` are no orders.
    let next = match object {
        [me, next, ..] if me == "me" => next.as_str(),
        _ => "",
    };
    let is_idiom = match verb.as_str() {
        "tell" => listed(" it it's that that's this they you he she we ", next),
        "ask" => listed(" why how what when who where ", next),
        "let" => !next.is_empty(),
        _ => listed(" we you they i it ", verb),
    };
    let names = object.iter().any(|word| !listed(PRONOUNS, word));
    !is_idiom && !listed(ONCE_FORBIDDEN, verb) && names
}

/// Whether a clause only names what is unwanted: `no semicolons`, `no nuts in any dish`. A noun in
/// the singular may be a remark (`no internet`), and so may a clause with a verb.
pub(super) fn is_banned(clause: &[String]) -> bool {
    let Some((_, thing)) = clause.split_first().filter(|(first, _)| *first == "no") else {
        return false;
    };
    // In Spanish, `no comas` and `no llores` are negated verbs.
    let is_spanish =
        matches!(thing, [one] if ["as", "es", "os"].iter().any(|end| one.ends_with(end)));
    let is_plural = thing.last().is_some_and(|word| word.ends_with('s')) && !is_spanish;
    let is_short = thing.len() <= 3 && is_plural;
    // `No emojis in the newsletter`.
    let is_placed = |three: &[String]| {
        matches!(three, [noun, mark, article] if noun.ends_with('s')
            && listed(" in on for during ", mark)
            && listed(" the our my your a any ", article))
    };
    let is_wide = thing.len() <= 7
        && (has_any(" any after before without unless ", thing) || thing.windows(3).any(is_placed));
    (is_short || is_wide) && !has_any(NO_REMARKS, thing) && !has_any(NO_VERBS, thing)
}

/// Whether a clause asks to keep or leave something: `leave the lexer alone`, `keep the names as
/// they are`, `leave out all adverbs`. A thing that is only called `it` belongs to the current
/// task.
fn is_kept(clause: &[String]) -> bool {
    const WAYS: [&str; 6] =
        [" as is ", " as it is ", " as they are ", " unchanged ", " intact ", " untouched "];
    let object = word_at(clause, 1);
    if listed(" it this that these those them ", object) {
        return false;
    }
    if object == "out" {
        return has_any(" all every any ", clause);
    }
    let noun = if object == "the" { word_at(clause, 2) } else { object };
    let is_ours = object == "your" || listed(OURS, noun) || noun == "tone";
    let line = format!(" {} ", clause.join(" "));
    (clause.len() > 3 && is_ours)
        || (word_at(clause, 0) == "leave" && line.contains(" alone "))
        || WAYS.iter().any(|way| line.contains(way))
}

/// Whether a clause keeps something within a limit: `Keep the frame budget under 14 ms`.
fn is_bounded(clause: &[String]) -> bool {
    let is_count = |word: &str| is_number(word) || word.starts_with(|c: char| c.is_ascii_digit());
    let is_bound = |(mark, count)| is_limit(mark) && is_count(count);
    pairs(clause).skip(1).any(is_bound) && !listed(PRONOUNS, word_at(clause, 1))
}

/// Whether a clause states how something must always be done: `sign every reply with your name`,
/// `answer in one line only`, `write dates as year-month-day`.
pub(super) fn is_manner(clause: &[String]) -> bool {
    if clause.len() < 4 || !may_be_imperative(clause) {
        return false;
    }
    let (verb, object, next) = (word_at(clause, 0), word_at(clause, 1), word_at(clause, 2));
    let expresses = listed(EXPRESSES, verb);
    let is_yours = |(your, ours)| your == "your" && listed(OURS, ours);
    let each_of_yours = pairs(clause).any(is_yours) && has_any(" every each ", clause);
    let only = clause.last().is_some_and(|word| word == "only");
    let form =
        expresses && listed(OURS, object) && object.ends_with('s') && listed(" in as with ", next);
    // `Read all names` is a task. Only verbs of writing and keeping make `all` a lasting rule.
    let all = clause.iter().any(|word| word == "all");
    let lasts = expresses || !all || listed(" keep begin start end ", verb);
    (recurs(clause) && lasts) || each_of_yours || only || form
}

/// Whether a clause is about everything of a kind that an agent writes: `every reply`, `all dates`,
/// `every time`.
fn recurs(clause: &[String]) -> bool {
    pairs(clause).any(|(every, thing)| {
        (listed(" every each all ", every) && listed(OURS, thing))
            || (every, thing) == ("every", "time")
    })
}

/// Whether a clause states what the user always or never wants: `I want all answers in French`.
pub(super) fn is_wish(clause: &[String]) -> bool {
    let [subject, verb, rest @ ..] = clause else { return false };
    let wants = match verb.as_str() {
        "never" => word_at(rest, 0) == "want",
        "don't" => word_at(rest, 0) == "want" && has_any(" any ever ", rest),
        "want" | "expect" | "need" | "like" | "would" => {
            has_any(" always never ", rest) || recurs(rest)
        }
        _ => false,
    };
    wants && listed(" i we i'd we'd ", subject)
}

/// Whether a clause prescribes a property of all things of a kind: `prices always include tax`,
/// `prices are always quoted net`, `commit messages always start with the ticket`. `The files
/// always start with zeros` is about certain files, and `pages always show errors` may describe a
/// defect.
pub(super) fn is_property(clause: &[String]) -> bool {
    const CERTAIN: &str = " the these those some many most few ";
    let is_plural = |word: &String| word.len() > 3 && word.ends_with('s') && !word.ends_with("ss");
    let Some(named) = clause.iter().take(2).position(is_plural) else { return false };
    let prescribes = match clause.get(named + 1..).unwrap_or_default() {
        [always, verb, next, ..] if always == "always" => {
            listed(" include carry state list name ", verb)
                || (listed(" start begin end ", verb) && next == "with")
        }
        [are, always, set, how, ..] if are == "are" && always == "always" => {
            listed(SET, set) && how != "late"
        }
        _ => false,
    };
    prescribes && may_be_imperative(clause) && !listed(CERTAIN, word_at(clause, 0))
}

/// Whether a clause orders something at a recurring time: `shut the shop at night`.
pub(super) fn is_habit(clause: &[String]) -> bool {
    is_habitual(clause)
        && may_be_imperative(clause)
        && listed(" the a my our your all every any no ", word_at(clause, 1))
}

/// Whether a subject must or may not do something: `you must`, `the parser must never`, `tests
/// should always`, `you may not`.
pub(super) fn is_demanded(clause: &[String]) -> bool {
    if matches!(clause, [you, not, allowed, ..] if you == "you're" && not == "not" && allowed == "allowed")
    {
        return true;
    }
    // A modal needs a subject before it, so the first word cannot be one.
    clause.iter().enumerate().skip(1).any(|(at, modal)| {
        let (subject, next) = (word_at(clause, at - 1), word_at(clause, at + 1));
        let (third, fourth) = (word_at(clause, at + 2), word_at(clause, at + 3));
        let demands = match modal.as_str() {
            // `The lift must be broken` is a guess.
            "must" => !(next == "be" && (subject == "you" || listed(STATES, third))),
            "mustn't" => true,
            "should" | "shall" => {
                listed(" never always only ", next) || (next == "not" && third == "ever")
            }
            "may" => next == "not" || next == "never",
            // `Tabs are not allowed`, `the door is not to be opened`.
            "are" | "is" => {
                let is_forbidden = third == "allowed" || (third == "to" && fourth == "be");
                next == "forbidden" || (next == "not" && is_forbidden)
            }
            _ => false,
        };
        let is_guess = [next, third, fourth].contains(&"have");
        demands && !is_guess && !is_narrator(subject) && subject != "one" && next != "know"
    })
}

/// Whether a clause states how everything of a kind must be: `every answer should end with a
/// question`.
pub(super) fn is_general(clause: &[String]) -> bool {
    let is_every = listed(" every each all no any ", word_at(clause, 0));
    if !is_every && !listed(" anything anyone anybody ", word_at(clause, 0)) {
        return false;
    }
    clause.windows(3).enumerate().any(|(at, three)| {
        let [subject, modal, verb] = three else { return false };
        let demands = match modal.as_str() {
            // `All tests must be fast`. `Every train must have left` is a guess.
            "should" | "must" | "shall" => {
                let object = word_at(clause, at + 3);
                let guesses = verb == "have" && !listed(" a an the no its at ", object);
                is_every && !guesses && !listed(" pass work ", verb)
            }
            "has" | "have" | "need" => verb == "to",
            "needs" | "gets" | "requires" => true,
            // `All tests are slow` only states something.
            _ => false,
        };
        // `Every time I see it I have to laugh` is about the speaker.
        demands && !is_narrator(subject)
    })
}

/// Whether a clause excludes something: `no nuts in anything`, `the folder is off limits`. `ever`
/// says whether the sentence has this word beside the clause.
pub(super) fn is_excluded(clause: &[String], ever: bool) -> bool {
    let line = format!(" {} ", clause.join(" "));
    let none = word_at(clause, 0) == "no" && clause.len() > 1;
    let nowhere =
        ever || [" ever ", " in anything ", " anywhere "].iter().any(|end| line.contains(end));
    (none && nowhere) || line.contains(" off limits ")
}

/// Whether two clauses are a recurring condition and its action: `When you name a branch, prefix
/// it`. A single occasion (`when you are done`) makes no rule.
pub(super) fn is_condition(condition: &[String], consequence: &[String]) -> bool {
    let [opening, subject, rest @ ..] = condition else { return false };
    // `Each time you open a ticket`.
    let each = listed(" each every ", opening) && subject == "time";
    // `When I ask for a name`.
    let asked = subject == "i" && word_at(rest, 0) == "ask";
    (each || asked || listed(" you a an any ", subject))
        && (each || listed(CONDITIONS, opening))
        && !rest.is_empty()
        && !has_any(OCCASIONS, rest)
        && rest.len() + consequence.len() > 3
        && may_be_imperative(consequence)
}
