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
const FOR_ONCE: [&str; 12] = [
    " today ",
    " tonight ",
    " tomorrow ",
    " as the song ",
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
const REPORTS: &str = " says said say goes wrote writes reads told claims claimed quote quotes ";

/// Subjects of a report in a clause of its own: `never touch it, she said`.
const REPORTERS: &str = " he she they someone somebody ";

/// Openings of a clause that make a sentence a guess: `trains must be cheaper, I suppose`.
const GUESSES: [&str; 12] = [
    "according to",
    "apparently",
    "supposedly",
    "allegedly",
    "i suppose",
    "i guess",
    "i assume",
    "i hear",
    "i heard",
    "they say",
    "one would think",
    "you would think",
];

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
    !level && !is_reported(&head) && !clauses(sentence).any(|clause| is_report(&clause))
}

/// Whether a clause only says whose words the others are: `she said`, `as the song goes`.
fn is_report(clause: &[String]) -> bool {
    let is_report = |word: Option<&String>| word.is_some_and(|word| listed(REPORTS, word));
    match clause {
        [first, ..] if listed(REPORTERS, first) => is_report(clause.get(1)),
        [first, rest @ ..] if first == "as" => {
            is_report(rest.last()) && !rest.contains(&"i".into())
        }
        [first, _, ..] => first == "said" || first == "says",
        [_] | [] => false,
    }
}

/// Whether a sentence reports another person's words before its demand: `he said we must hurry`.
fn is_reported(words: &[String]) -> bool {
    let mut numbered = words.iter().enumerate();
    // As the first word it is the user's own demand: `quote prices in francs only`.
    let reports =
        |(at, word): (usize, &String)| at > 0 && listed(REPORTS, word) && !is_of_speaker(words, at);
    let report = numbered.position(reports);
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
    let clauses: Vec<Vec<String>> = clauses(sentence).collect();
    let guessed = clauses.iter().any(|clause| is_guess(clause));
    let for_good = is_for_good(&line) && !announces && !guessed;
    let is_demand = |clause: &Vec<String>| {
        is_lasting_demand(clause) || is_manner(clause) || (!guessed && is_demanded(clause))
    };
    for_good
        || is_announced(sentence)
        || is_choice(&all)
        || clauses.iter().any(is_demand)
        || clauses.windows(2).any(|pair| matches!(pair, [one, two] if is_condition(one, two)))
}

fn is_guess(clause: &[String]) -> bool {
    let line = format!("{} ", clause.join(" "));
    GUESSES.iter().any(|guess| line.strip_prefix(guess).is_some_and(|rest| rest.starts_with(' ')))
}

/// Whether a sentence says that it holds for good and demands something: `from now on it's
/// downhill` demands nothing.
fn is_for_good(line: &str) -> bool {
    let good = FOR_GOOD.iter().find_map(|phrase| Some((phrase, line.split_once(phrase)?)));
    let by_phrase = good.is_some_and(|(phrase, (before, after))| {
        phrase.contains("prefer") || !(before.is_empty() && states(after))
    });
    by_phrase || for_this_talk(line).is_some_and(|after| !states(after))
}

/// Whether a text begins as a statement: `it's downhill`.
fn states(text: &str) -> bool {
    const SUBJECTS: &str = " it's it is there there's he she they i i'm that's he's she's ";
    text.split_whitespace().next().is_some_and(|first| listed(SUBJECTS, first))
}

/// Returns what follows a phrase that binds a sentence to the whole conversation: `for this
/// conversation`, `en esta sesi\u{f3}n`.
fn for_this_talk(line: &str) -> Option<&str> {
    const IN: &str = " for in during throughout within f\u{fc}r in w\u{e4}hrend para en durante pour dans pendant ";
    const THIS: &str =
        " this our the diese dieses diesem dieser esta nuestra toda cette toute notre ";
    const TALKS: &str = " conversation session chat thread gespr\u{e4}ch unterhaltung sitzung conversaci\u{f3}n sesi\u{f3}n charla discussion ";
    const SPACELESS: [&str; 8] = [
        "\u{4ece}\u{73b0}\u{5728}",
        "\u{4eca}\u{540e}",
        "\u{5bf9}\u{8bdd}\u{4e2d}",
        "\u{4f1a}\u{8bdd}\u{4e2d}",
        "\u{4f1a}\u{8a71}\u{3067}\u{306f}",
        "\u{4eca}\u{5f8c}\u{306f}",
        "\u{3053}\u{308c}\u{304b}\u{3089}\u{306f}",
        "\u{30bb}\u{30c3}\u{30b7}\u{30e7}\u{30f3}\u{3067}\u{306f}",
    ];
    if let Some((_, after)) = SPACELESS.iter().find_map(|phrase| line.split_once(phrase)) {
        return Some(after.trim());
    }
    let words: Vec<&str> = line.split_whitespace().collect();
    let at = words.windows(3).position(|three| {
        matches!(three, [one, two, three] if listed(IN, one) && listed(THIS, two) && listed(TALKS, three))
    })?;
    let talk = words.get(at + 2)?;
    line.split_once(talk).map(|(_, after)| after.trim())
}

/// Whether a sentence calls what follows its colon a rule: `please follow this rule: ...`.
fn is_announced(sentence: &str) -> bool {
    let colon = sentence.split_once([':', '\u{ff1a}']);
    colon.is_some_and(|(head, rest)| !rest.trim().is_empty() && names_rules(head))
}

/// Whether a short text names the rule or rules that come next: `House rules`, `Bitte halte dich an
/// diese Regel`.
pub(super) fn names_rules(head: &str) -> bool {
    const MOST: usize = 12;
    const RULES: &str = " rule rules constraint constraints guideline guidelines convention conventions \
        regel regeln vorgabe vorgaben regla reglas norma normas r\u{e8}gle r\u{e8}gles consigne consignes ";
    const SPACELESS: [&str; 5] = [
        "\u{89c4}\u{5219}",
        "\u{89c4}\u{5b9a}",
        "\u{898f}\u{5247}",
        "\u{30eb}\u{30fc}\u{30eb}",
        "\u{8981}\u{6c42}",
    ];
    let words: Vec<String> = words(head).take(MOST + 1).collect();
    let names = |(at, word): (usize, &String)| {
        listed(RULES, word) && words.get(at + 1).is_none_or(|next| next != "of")
    };
    let named = words.iter().enumerate().any(names);
    let unspaced = || SPACELESS.iter().any(|part| head.contains(part));
    // Another person's rules are only talked about: `his rule was: ...`.
    let told = words.iter().any(|word| listed(" was were his her their your ", word));
    words.len() <= MOST && !told && (named || unspaced())
}

/// Whether a sentence only says for how long the next one applies: `For the rest of this week.`
pub(super) fn is_preface(sentence: &str) -> bool {
    const MOST: usize = 3;
    const LONGEST: usize = 120;
    if sentence.len() > LONGEST {
        return false;
    }
    clauses(sentence).last().is_some_and(|clause| {
        let line = format!(" {} ", clause.join(" "));
        let rest = FOR_GOOD.iter().find_map(|phrase| line.strip_prefix(phrase));
        let is_short = rest
            .is_some_and(|rest| rest.split_whitespace().count() <= MOST && !states(rest))
            || (clause.len() == 3 && for_this_talk(&line).is_some());
        let is_announcement = asks_to_follow(&clause);
        (is_short || is_announcement) && !clause.iter().any(|word| word == "i" || word == "we")
    })
}

/// Whether a clause asks to follow the rule that the next sentence states: `follow this rule`.
fn asks_to_follow(clause: &[String]) -> bool {
    const FOLLOWS: &str =
        " follow obey respect observe befolge beachte sigue respeta suis respecte ";
    const NEXT: &str = " this these following diese dieser folgende folgenden esta estas siguiente cette ces suivante ";
    let verb = clause.iter().any(|word| listed(FOLLOWS, word));
    let next = clause.iter().any(|word| listed(NEXT, word));
    verb && next && clause.len() <= 7 && names_rules(&clause.join(" "))
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
/// `answer in one line only`, `write dates as year-month-day`.
fn is_manner(clause: &[String]) -> bool {
    // What an agent writes again and again, so that `every` means from now on.
    const OURS: &str = " reply replies response responses answer answers commit commits turn message messages \
        paragraph paragraphs sentence sentences summary summaries heading headings figure figures date dates time times \
        price prices number numbers amount amounts distance distances name names unit units comment comments ";
    const EXPRESSES: &str =
        " give write quote state spell express report show print format name sort list ";
    if clause.len() < 4 || !begins_with_verb(clause) {
        return false;
    }
    let word = |at: usize| clause.get(at).map(String::as_str).unwrap_or_default();
    let recurs = clause.windows(2).any(|pair| {
        matches!(pair, [one, two] if matches!(one.as_str(), "every" | "each" | "all") && listed(OURS, two))
    });
    let yours = clause
        .windows(2)
        .any(|pair| matches!(pair, [one, two] if one == "your" && listed(OURS, two)));
    let each = clause.iter().any(|word| matches!(word.as_str(), "every" | "each"));
    let only = clause.last().is_some_and(|word| word == "only");
    let form = listed(EXPRESSES, word(0))
        && listed(OURS, word(1))
        && word(1).ends_with('s')
        && matches!(word(2), "in" | "as" | "with");
    recurs || (yours && each) || only || form
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
        "never" | "always" => clause.len() > 1 && !article(word(1)) && begins_order(clause),
        "only" => clause.len() > 1 && !article(word(1)),
        "avoid" => clause.get(1).is_some_and(|object| !listed(PRONOUNS, object)),
        "call" | "address" => {
            word(1) == "me"
                && clause.len() > 2
                && !listed(" back later when at on in if once again after before soon ", word(2))
        }
        "no" => word(1) == "longer" && clause.len() > 2,
        "prefer" | "preferably" => clause.len() > 1,
        "keep" | "leave" => is_kept(clause),
        "don't" | "dont" => forbids(clause.get(1..).unwrap_or_default()),
        "do" if word(1) == "not" => forbids(clause.get(2..).unwrap_or_default()),
        "make" | "ensure" | "be" | "remember" | "try" => {
            let lasting = |word: &String| listed(" never always every each ", word);
            clause.iter().any(lasting)
        }
        _ => false,
    }
}

/// Whether `never` or `always` begins an order, not a remark: `never heard of it`, `never again`.
fn begins_order(clause: &[String]) -> bool {
    const DONE: &str =
        " heard seen been had known done gone got met thought felt said again ever once ";
    let [adverb, verb, rest @ ..] = clause else { return false };
    let is_participle = verb.ends_with("ed") && !verb.ends_with("eed") && verb != "embed";
    let again = verb == "again" && !rest.is_empty();
    (again || !listed(DONE, verb)) && !is_participle && rest.last() != Some(adverb)
}

/// Whether the words after `don't` make a lasting prohibition.
fn forbids(rest: &[String]) -> bool {
    let rest = match rest {
        [first, rest @ ..] if first == "ever" => rest,
        rest => rest,
    };
    let Some((verb, object)) = rest.split_first() else { return false };
    // `Don't tell me it's broken` orders nothing.
    if verb == "tell" && object.first().is_some_and(|word| word == "me") {
        return false;
    }
    let names = object.iter().any(|word| !listed(PRONOUNS, word));
    !listed(ONCE_FORBIDDEN, verb) && names
}

/// `you must`, `the parser must never`, `tests should always`, `you may not`.
fn is_demanded(clause: &[String]) -> bool {
    let word = |at: usize| clause.get(at).map(String::as_str).unwrap_or_default();
    clause.iter().enumerate().skip(1).any(|(at, modal)| {
        let subject = word(at - 1);
        let next = word(at + 1);
        let is_guess = [next, word(at + 2), word(at + 3)].contains(&"have");
        let is_statement = is_narrator(subject) || subject == "one" || is_guess;
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

/// `leave the lexer alone`, `keep the names as they are`, `leave out all adverbs`. What only `it`
/// names is at hand.
fn is_kept(clause: &[String]) -> bool {
    let object = clause.get(1).map(String::as_str).unwrap_or_default();
    if listed(" it this that these those them ", object) {
        return false;
    }
    if object == "out" {
        return clause.iter().any(|word| matches!(word.as_str(), "all" | "every" | "any"));
    }
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
