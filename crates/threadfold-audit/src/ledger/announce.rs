//! Words that announce rules: they state how long a sentence applies, or that a rule follows.

use super::{
    phrases::{FOLLOWS, FOR_GOOD, IN, RULE_PARTS, RULES, TALK_PARTS, THIS},
    words::{clauses, has_any, listed, word_at, words},
};

/// Whether a sentence demands something and says that the demand is permanent. `From now on it's
/// downhill` demands nothing.
pub(super) fn is_for_good(line: &str) -> bool {
    let good = FOR_GOOD.iter().find_map(|phrase| Some((phrase, line.split_once(phrase)?)));
    // `I prefer this one` is a single choice, not a rule for later ones.
    const AT_HAND: &str = " this that these those it them ";
    let by_phrase = good.is_some_and(|(phrase, (before, after))| match phrase.contains("prefer") {
        true => !after.split_whitespace().next().is_some_and(|object| listed(AT_HAND, object)),
        false => !(before.is_empty() && states(after)),
    });
    // `From here on it is easy` only states something. In other languages its words may have any
    // order.
    let after = line.split_once(" from here on ").and_then(|(_, after)| after.split(' ').next());
    let all = after.is_some_and(|first| listed(" the all every each no ", first));
    by_phrase || all || for_this_talk(line).is_some_and(|after| !states(after))
}

/// Whether a text begins like a statement: `it's downhill`.
fn states(text: &str) -> bool {
    const SUBJECTS: &str = " it's it is there there's he she they i i'm that's he's she's ";
    let mut words = text.split_whitespace();
    let is_subject = words.next().is_some_and(|first| listed(SUBJECTS, first));
    is_subject && !words.next().is_some_and(|verb| listed(" want expect need prefer ", verb))
}

/// Returns the text after a phrase that applies a sentence to the whole conversation: `for this
/// conversation`, `en esta sesión`.
fn for_this_talk(line: &str) -> Option<&str> {
    const TALKS: &str = " conversation session chat thread gespräch unterhaltung sitzung conversación sesión charla discussion ";
    if let Some((_, after)) = TALK_PARTS.iter().find_map(|phrase| line.split_once(phrase)) {
        return Some(after.trim());
    }
    let words: Vec<&str> = line.split_whitespace().collect();
    let at = words.windows(3).position(|three| {
        matches!(three, [one, two, three] if listed(IN, one) && listed(THIS, two) && listed(TALKS, three))
    })?;
    let talk = words.get(at + 2)?;
    line.split_once(talk).map(|(_, after)| after.trim())
}

/// Whether a sentence announces a rule after its colon: `please follow this rule: ...`.
pub(super) fn is_announced(sentence: &str) -> bool {
    let colon = sentence.split_once([':', '\u{ff1a}']);
    colon.is_some_and(|(head, rest)| !rest.trim().is_empty() && names_rules(head))
}

/// Whether a short text announces the rules that follow it: `House rules`, `Bitte halte dich an
/// diese Regel`.
pub(super) fn names_rules(head: &str) -> bool {
    const MOST: usize = 12;
    let words: Vec<String> = words(head).take(MOST + 1).collect();
    let mut named = words.iter().enumerate().filter(|(_, word)| listed(RULES, word));
    let is_named = named.any(|(at, _)| word_at(&words, at + 1) != "of");
    // The rules of other people are only reported: `his rule was: ...`.
    let is_report = has_any(" was were his her their your ", &words);
    words.len() <= MOST
        && !is_report
        && (is_named || RULE_PARTS.iter().any(|part| head.contains(part)))
}

/// Whether a sentence only states how long the next one applies: `For the rest of this week.`
pub(crate) fn is_preface(sentence: &str) -> bool {
    ends_as_preface(sentence, clauses(sentence).last().as_deref())
}

/// Whether a sentence with this last clause is a [preface](is_preface).
pub(super) fn ends_as_preface(sentence: &str, last: Option<&[String]>) -> bool {
    const MOST: usize = 3;
    const LONGEST: usize = 120;
    last.filter(|_| sentence.len() <= LONGEST).is_some_and(|clause| {
        let line = format!(" {} ", clause.join(" "));
        // Only `for the rest of` may have an object. Three words after `from now on` are already a
        // demand.
        let is_short = FOR_GOOD.iter().any(|phrase| {
            let most = if phrase.ends_with(" of ") { MOST } else { 0 };
            let rest = line.strip_prefix(phrase);
            rest.is_some_and(|rest| rest.split_whitespace().count() <= most)
        }) || (clause.len() == 3 && for_this_talk(&line).is_some());
        let is_announcement = asks_to_follow(clause);
        (is_short || is_announcement) && !clause.iter().any(|word| word == "i" || word == "we")
    })
}

/// Whether a clause asks to follow the rule that the next sentence states: `follow this rule`.
fn asks_to_follow(clause: &[String]) -> bool {
    const NEXT: &str = " this these following diese dieser folgende folgenden esta estas siguiente cette ces suivante ";
    clause.len() <= 7
        && has_any(FOLLOWS, clause)
        && has_any(NEXT, clause)
        && names_rules(&clause.join(" "))
}

/// Whether the heading of a list turns its items into demands: `things that you must never do`.
pub(super) fn heads_rules(heading: &str) -> bool {
    names_rules(heading) || is_preface(heading) || demands(heading)
}

fn demands(heading: &str) -> bool {
    const MOST: usize = 10;
    const DEMANDS: &str = " never always must don't avoid only prefer ";
    let words: Vec<String> = words(heading).take(MOST + 1).collect();
    words.len() <= MOST
        && has_any(DEMANDS, &words)
        && !has_any(" i it he she we they was were ", &words)
}
