//! Whether a sentence is a rule for the rest of the thread.

use super::{
    announce::{is_announced, is_for_good},
    asking::asking,
    consent::{is_consent, is_habitual, is_reserved},
    english::in_english,
    meaning::{FILLERS, has_any, is_limit, list, listed, phrases, word_at, words},
};
use crate::prose::{is_calendar, is_narrator, is_number};

/// Verbs after `don't` that do not make a lasting rule.
const ONCE_FORBIDDEN: &str = " worry bother forget mind hesitate know think get see understand have need be want like care wait ";

/// Objects too general to name a thing.
const PRONOUNS: &str = " it this that them so these those again anything please ";

/// Words that tie a choice to the current task.
const AT_HAND: &str = " to it this that these those here first next then now again them one ";

/// Whether a sentence is a rule by itself, without the sentence before it.
pub(crate) fn is_rule(sentence: &str) -> bool {
    let sentence = without_aside(sentence);
    asking(sentence).is_some_and(|clauses| is_standing(sentence, &in_english(sentence), &clauses))
}

/// Whether a sentence with these [`asking`] clauses is a rule for the rest of the thread, as typed
/// or in its English form.
pub(super) fn is_standing(sentence: &str, english: &str, clauses: &[Vec<String>]) -> bool {
    let lasts_in_english = || asking(english).is_some_and(|clauses| lasts(english, &clauses));
    lasts(sentence, clauses) || (english != sentence && lasts_in_english())
}

/// Returns a sentence without the aside that opens it: `Oh, and before I forget: use tabs`.
pub(super) fn without_aside(sentence: &str) -> &str {
    const ASIDES: &str = " forget thing way important vergesse vergess olvide j'oublie ";
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
    phrases("for once").iter().any(|phrase| line.contains(phrase))
}

fn lasts(sentence: &str, clauses: &[Vec<String>]) -> bool {
    let all: Vec<String> = words(sentence).take(200).collect();
    let line = format!(" {} ", all.join(" "));
    if is_for_once(&line) && !is_tied_beside(clauses) && !clauses.iter().any(|it| waits(it)) {
        return false;
    }
    let announces =
        [" i will ", " i'll ", " i am ", " i'm "].iter().any(|phrase| line.contains(phrase));
    let guessed = clauses.iter().any(|clause| is_guess(clause));
    let last = |adverb: &str| {
        clauses.iter().any(|clause| matches!(clause.as_slice(), [word] if word == adverb))
    };
    let (ever, always) = (last("ever"), last("always"));
    is_announced(sentence)
        || chooses(&all)
        || (always && clauses.first().is_some_and(|clause| begins_with_verb(clause)))
        || clauses.iter().any(|clause| {
            is_lasting_demand(clause)
                || is_manner(clause)
                || is_wanted(clause)
                || is_consent(clause)
                || is_reserved(clause)
                || is_property(clause)
                || (is_habitual(clause)
                    && begins_with_verb(clause)
                    && listed(" the a my our your all every any no ", word_at(clause, 1)))
                || (!guessed && (is_demanded(clause) || is_general(clause)))
                || is_excluded(clause, ever)
        })
        || clauses.windows(2).any(|pair| {
            let [one, two] = pair else { return false };
            let asks = |first: &[String], last: &[String]| {
                word_at(last, 0) == "before" && is_consent(&[first, last].concat())
            };
            is_condition(one, two) || asks(one, two) || asks(two, one)
        })
        || (!announces && !guessed && is_for_good(&line))
}

/// Whether only clauses without the demand are tied to the present moment: `never restart it, and
/// we can talk tomorrow`. A phrase for the moment in the demand itself ties the whole sentence.
fn is_tied_beside(clauses: &[Vec<String>]) -> bool {
    let is_tied = |clause: &&Vec<String>| is_for_once(&format!(" {} ", clause.join(" ")));
    let mut tied = clauses.iter().filter(is_tied).peekable();
    tied.peek().is_some()
        && tied.all(|clause| clause.first().is_some_and(|first| is_narrator(first)))
}

/// Whether a clause forbids something until something happens, not until an hour or a day: `don't
/// ship it until customs clears it`.
fn waits(clause: &[String]) -> bool {
    const HOURS: &str = " noon midnight then now later tonight tomorrow next morning evening ";
    let until = clause.iter().position(|word| word == "until");
    // `Don't merge it until I have looked` is about the current task.
    let until = until
        .filter(|at| !at.checked_sub(1).is_some_and(|at| listed(PRONOUNS, word_at(clause, at))));
    let event = until.and_then(|at| clause.get(at + 1..)).unwrap_or_default();
    let is_hour = event.first().is_none_or(|word| {
        listed(HOURS, word) || is_calendar(word) || word.starts_with(|c: char| c.is_ascii_digit())
    });
    event.len() > 1 && !is_hour && is_lasting_demand(clause)
}

/// Whether a clause prescribes a property of all things of a kind: `prices always include tax`,
/// `prices are always quoted net`, `commit messages always start with the ticket`. `The files
/// always start with zeros` is about certain files, and `pages always show errors` may describe a
/// defect.
fn is_property(clause: &[String]) -> bool {
    const VERBS: &str = " include carry state list name ";
    const CERTAIN: &str = " the these those some many most few ";
    let is_plural = |word: &String| word.len() > 3 && word.ends_with('s') && !word.ends_with("ss");
    let named = clause.iter().take(2).position(is_plural);
    let named = named.filter(|_| !listed(CERTAIN, word_at(clause, 0)));
    let Some(rest) = named.and_then(|at| clause.get(at + 1..)).filter(|_| begins_with_verb(clause))
    else {
        return false;
    };
    match rest {
        [always, verb, next, ..] if always == "always" => {
            listed(VERBS, verb) || (listed(" start begin end ", verb) && next == "with")
        }
        [are, always, set, how, ..] if are == "are" && always == "always" => {
            listed(list("set"), set) && how != "late"
        }
        _ => false,
    }
}

fn is_guess(clause: &[String]) -> bool {
    // `Explain when a caller must not be recorded` asks only for an explanation.
    let asks =
        clause.get(1).is_some_and(|word| listed(" why when whether how what who where ", word))
            && begins_with_verb(clause);
    let line = format!("{} ", clause.join(" "));
    asks || phrases("guesses")
        .iter()
        .any(|guess| line.strip_prefix(guess).is_some_and(|rest| rest.starts_with(' ')))
}

/// Whether a demand names no object of its own, so that it needs the sentence before it: `Never
/// raise without asking.`
pub(crate) fn lacks_subject(sentence: &str) -> bool {
    if is_about_last(sentence) {
        return true;
    }
    let words: Vec<String> = words(sentence).take(6).collect();
    let mut first = words.iter().take(3);
    let at = first.position(|word| matches!(word.as_str(), "never" | "always" | "don't" | "do"));
    let Some(at) = at else { return false };
    let mut after = words.iter().skip(at + 1).map(String::as_str).peekable();
    after.next_if(|word| matches!(*word, "not" | "ever"));
    let object = after.nth(1);
    object.is_none_or(|word| matches!(word, "without" | "unless" | "before" | "after" | "until"))
        || object.is_some_and(|word| matches!(word, "it" | "them" | "this" | "that"))
}

/// Whether a demand continues the previous sentence, and states how its subject must always be: `It
/// must never leave the house.`
pub(super) fn is_about_last(sentence: &str) -> bool {
    let words: Vec<String> =
        words(sentence).take(9).skip_while(|word| listed(FILLERS, word)).collect();
    match words.as_slice() {
        [subject, modal, adverb, verb, ..] => {
            let demands = listed(" it they this that these those he she ", subject)
                && listed(" must may should shall can ", modal)
                && listed(" never always only not ", adverb);
            let guesses = adverb == "not" && listed(" be have ", verb);
            (demands && !guesses) || is_kept_in_mind(&words)
        }
        [] | [_] | [_, _] | [_, _, _] => false,
    }
}

/// Whether the words are like `keep that in mind`.
fn is_kept_in_mind(words: &[String]) -> bool {
    matches!(words, [verb, object, of, mind, ..]
        if listed(" keep bear have ", verb) && listed(PRONOUNS, object) && of == "in" && mind == "mind")
}

/// Words that begin a condition.
const CONDITIONS: &str = " when whenever before after if once while ";

/// Words that tie a condition to one occasion.
const OCCASIONS: &str = " the this that these those it can could want wants like have had are are you're get need     done ready finished think were was agree ";

/// Words that do not begin an imperative.
const NO_VERBS: &str = " a an the this that these those there it its i i'm i'll i've we we'll he she they you you're your     my our what which who how why where is are was were yes no thanks all some most each every any     then so and or but because since as to of in on at for from with by not just maybe perhaps ";

/// Whether two clauses are a recurring condition and its action: `When you name a branch, prefix
/// it`. A single occasion (`when you are done`) makes no rule.
fn is_condition(condition: &[String], consequence: &[String]) -> bool {
    let [opening, subject, rest @ ..] = condition else { return false };
    // `Each time you open a ticket`.
    let each = listed(" each every ", opening) && subject == "time";
    let asked = subject == "i" && rest.first().is_some_and(|verb| verb == "ask");
    let lasts = (each || asked || listed(" you a an any ", subject))
        && !rest.is_empty()
        && (each || listed(CONDITIONS, opening))
        && !rest.iter().any(|word| listed(OCCASIONS, word));
    lasts && rest.len() + consequence.len() > 3 && begins_with_verb(consequence)
}

fn begins_with_verb(clause: &[String]) -> bool {
    clause.first().is_some_and(|first| !listed(NO_VERBS, first) && !first.ends_with("ing"))
}

/// Whether a clause states how something must always be done: `sign every reply with your name`,
/// `answer in one line only`, `write dates as year-month-day`.
fn is_manner(clause: &[String]) -> bool {
    if clause.len() < 4 || !begins_with_verb(clause) {
        return false;
    }
    let (verb, object, next) = (word_at(clause, 0), word_at(clause, 1), word_at(clause, 2));
    let yours = clause
        .windows(2)
        .any(|pair| matches!(pair, [one, two] if one == "your" && listed(list("ours"), two)));
    let each = clause.iter().any(|word| matches!(word.as_str(), "every" | "each"));
    let only = clause.last().is_some_and(|word| word == "only");
    let form = listed(list("expresses"), verb)
        && listed(list("ours"), object)
        && object.ends_with('s')
        && matches!(next, "in" | "as" | "with");
    // `Read all names` is a task. Only verbs of writing and keeping make `all` a lasting rule.
    let lasts = listed(list("expresses"), verb) || listed(" keep begin start end ", verb);
    let all = clause.iter().any(|word| word == "all");
    (recurs(clause) && (lasts || !all)) || (yours && each) || only || form
}

/// Whether a clause is about everything of a kind that an agent writes: `every reply`, `all dates`,
/// `every time`.
fn recurs(clause: &[String]) -> bool {
    clause.windows(2).any(|pair| {
        matches!(pair, [one, two] if (listed(" every each all ", one) && listed(list("ours"), two))
            || (one == "every" && two == "time"))
    })
}

fn is_lasting_demand(clause: &[String]) -> bool {
    let (first, next, third) = (word_at(clause, 0), word_at(clause, 1), word_at(clause, 2));
    match first {
        "could" | "can" | "would" | "will" if next == "you" => {
            let mut rest = clause.iter().skip(2).skip_while(|word| *word == "please");
            rest.next().is_some_and(|word| matches!(word.as_str(), "always" | "never"))
        }
        "refrain" => next == "from",
        "hands" => next == "off",
        "stick" => next == "to" && !listed(PRONOUNS, third) && clause.len() > 3,
        "stop" => next.ends_with("ing") && clause.len() > 2,
        "never" | "always" => clause.len() > 1 && !is_article(next) && begins_order(clause),
        "only" => {
            clause.len() > 1
                && !is_article(next)
                && !listed(" yesterday now then time joking kidding ", next)
                && !listed(list("remarks"), third)
        }
        "avoid" => clause.len() > 1 && !listed(PRONOUNS, next),
        "call" | "address" => {
            next == "me"
                && clause.len() > 2
                && !listed(" back later when at on in if once again after before soon ", third)
                || (first == "address" && listed(" every each all ", next) && clause.len() > 3)
        }
        // `Stay out of the cellar`, `keep away from it`.
        "stay" if listed(" out away off clear ", next) => {
            clause.len() > 3 && !listed(PRONOUNS, word_at(clause, clause.len() - 1))
        }
        "answer" | "reply" | "respond" => {
            listed(" in with as using only without ", next) && !listed(PRONOUNS, third)
        }
        "finish" | "end" | "close" | "conclude" => next == "with" && clause.len() > 3,
        "refer" => next == "to" && has_any(" as ", clause),
        "give" | "mark" | "label" | "tag" | "prefix" => {
            listed(" each every ", next) && clause.len() > 3
        }
        "no" => (next == "longer" && clause.len() > 2) || is_banned(clause),
        "prefer" | "preferably" => clause.len() > 1,
        "keep" | "leave" => is_kept(clause) || is_bounded(clause),
        "limit" | "cap" | "hold" => is_bounded(clause),
        "don't" | "dont" => forbids(clause.get(1..).unwrap_or_default()),
        "do" if next == "not" => forbids(clause.get(2..).unwrap_or_default()),
        "make" | "ensure" | "be" | "remember" | "try" => {
            has_any(" never always every each ", clause)
        }
        _ => false,
    }
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
    (is_short || is_wide)
        && !has_any(list("no remarks"), thing)
        && !has_any(list("no verbs"), thing)
}

/// Whether a word may begin the name of a thing or a statement about it.
fn is_article(word: &str) -> bool {
    listed(" the a an same is was mind one some few both se te me le lo ", word) || is_number(word)
}

/// Whether `never` or `always` begins an order, not a remark: `never heard of it`, `never again`.
fn begins_order(clause: &[String]) -> bool {
    const DONE: &str = " heard seen been had known done gone got met thought felt said again ever once have did before would ";
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
    let idiom = match verb.as_str() {
        "tell" => listed(" it it's that that's this they you he she we ", next),
        "ask" => listed(" why how what when who where ", next),
        "let" => !next.is_empty(),
        _ => listed(" we you they i it ", verb),
    };
    if idiom {
        return false;
    }
    let names = object.iter().any(|word| !listed(PRONOUNS, word));
    !listed(ONCE_FORBIDDEN, verb) && names
}

/// Whether a clause states what the user always or never wants: `I want all answers in French`.
fn is_wanted(clause: &[String]) -> bool {
    let [subject, verb, rest @ ..] = clause else { return false };
    if !listed(" i we i'd we'd ", subject) {
        return false;
    }
    match verb.as_str() {
        "never" => word_at(rest, 0) == "want",
        "don't" => word_at(rest, 0) == "want" && has_any(" any ever ", rest),
        "want" | "expect" | "need" | "like" | "would" => {
            has_any(" always never ", rest) || recurs(rest)
        }
        _ => false,
    }
}

/// Whether a clause states how everything of a kind must be: `every answer should end with a
/// question`.
fn is_general(clause: &[String]) -> bool {
    // `All tests are slow` only states something, `all tests must be fast` demands it.
    let general = clause.first().is_some_and(|first| listed(" every each all no any ", first));
    (general || listed(" anything anyone anybody ", word_at(clause, 0)))
        && clause.windows(2).skip(1).enumerate().any(|(at, pair)| {
            let [modal, verb] = pair else { return false };
            let guesses =
                verb == "have" && !listed(" a an the no its at ", word_at(clause, at + 3));
            // `Every time I see it I have to laugh` is about the speaker.
            !is_narrator(word_at(clause, at))
                && ((listed(" should must shall ", modal)
                    && general
                    && !listed(" pass work ", verb)
                    && !guesses)
                    || (listed(" has have needs need ", modal) && verb == "to")
                    || listed(" needs gets requires ", modal))
        })
}

/// Whether a clause excludes something: `no nuts in anything`, `the folder is off limits`.
fn is_excluded(clause: &[String], ever: bool) -> bool {
    let line = format!(" {} ", clause.join(" "));
    let none = clause.first().is_some_and(|first| first == "no") && clause.len() > 1;
    let nowhere =
        ever || [" ever ", " in anything ", " anywhere "].iter().any(|end| line.contains(end));
    (none && nowhere) || line.contains(" off limits ")
}

/// Whether a subject must or may not do something: `you must`, `the parser must never`, `tests
/// should always`, `you may not`.
fn is_demanded(clause: &[String]) -> bool {
    if matches!(clause, [you, not, allowed, ..] if you == "you're" && not == "not" && allowed == "allowed")
    {
        return true;
    }
    // A modal needs a subject before it, so the first word cannot be one.
    clause.iter().enumerate().skip(1).any(|(at, modal)| {
        let (subject, next) = (word_at(clause, at - 1), word_at(clause, at + 1));
        let (third, fourth) = (word_at(clause, at + 2), word_at(clause, at + 3));
        let is_guess = [next, third, fourth].contains(&"have");
        let is_statement = is_narrator(subject) || subject == "one" || is_guess || next == "know";
        let lasts = match modal.as_str() {
            // `The lift must be broken` is a guess.
            "must" => !(next == "be" && (subject == "you" || listed(list("states"), third))),
            "mustn't" => true,
            "should" | "shall" => {
                listed(" never always only ", next) || (next == "not" && third == "ever")
            }
            "may" => next == "not" || next == "never",
            "are" | "is" => {
                let is_forbidden = third == "allowed" || (third == "to" && fourth == "be");
                next == "forbidden" || (next == "not" && is_forbidden)
            }
            _ => false,
        };
        lasts && !is_statement
    })
}

/// Whether a clause asks to keep or leave something: `leave the lexer alone`, `keep the names as
/// they are`, `leave out all adverbs`. A thing that is only called `it` belongs to the current
/// task.
fn is_kept(clause: &[String]) -> bool {
    let object = word_at(clause, 1);
    if listed(" it this that these those them ", object) {
        return false;
    }
    if object == "out" {
        return clause.iter().any(|word| matches!(word.as_str(), "all" | "every" | "any"));
    }
    let noun = if object == "the" { word_at(clause, 2) } else { object };
    if clause.len() > 3 && (object == "your" || listed(list("ours"), noun) || noun == "tone") {
        return true;
    }
    let line = format!(" {} ", clause.join(" "));
    let ways = [" as is ", " as it is ", " as they are ", " unchanged ", " intact ", " untouched "];
    let alone = clause.first().is_some_and(|word| word == "leave") && line.contains(" alone ");
    alone || ways.iter().any(|way| line.contains(way))
}

/// Whether a clause keeps something within a limit: `Keep the frame budget under 14 ms`.
fn is_bounded(clause: &[String]) -> bool {
    let is_count = |word: &str| is_number(word) || word.starts_with(|c: char| c.is_ascii_digit());
    let mut pairs = clause.windows(2).skip(1);
    let bounded =
        pairs.any(|pair| matches!(pair, [mark, count] if is_limit(mark) && is_count(count)));
    bounded && !listed(PRONOUNS, word_at(clause, 1))
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
