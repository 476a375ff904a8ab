//! Clauses that permit something only to some people, or only after somebody's consent.

use super::{
    phrases::{DOES, REMARKS},
    words::{has_any, listed, pairs, word_at},
};

/// Whether a clause permits something only to some people: `only Ada may sign`, `nobody but Ada
/// signs`.
pub(super) fn is_reserved(clause: &[String]) -> bool {
    const EXCEPTIONS: &str = " but except besides other without unless ";
    let Some((first, rest)) = clause.split_first() else { return false };
    let one = word_at(rest, 0);
    let nobody = matches!(first.as_str(), "nobody" | "nothing") || (first == "no" && one == "one");
    if !nobody && first != "only" {
        return false;
    }
    let named = rest.iter().skip(1).position(|word| listed(" may must should shall ", word));
    match named {
        Some(at) => !listed(" have be ", word_at(rest, at + 2)),
        None if first == "only" => {
            // `Only the last row changes` names no person who acts.
            let mut acts = rest.windows(2).skip(2).take(3);
            one == "the" && acts.any(|two| listed(DOES, word_at(two, 0)))
        }
        None => {
            let recurs = has_any(" while until before ", rest) || is_habitual(rest);
            let excepts = has_any(EXCEPTIONS, rest) && !(first == "nothing" && one == "but");
            let mut said =
                rest.iter().take_while(|word| !listed(" without unless while until before ", word));
            (excepts || recurs) && !said.any(|word| listed(REMARKS, word) || word.ends_with("ed"))
        }
    }
}

/// Whether a clause requires that a person is asked first: `ask me before you delete anything`,
/// `check with Ada before any purchase`, `get my approval before ordering`.
pub(super) fn is_consent(clause: &[String]) -> bool {
    const TALKS: &str = " ask tell consult notify inform warn ";
    const TALKS_TO: &str = " check talk speak confirm clear run verify ";
    const CONSENTS: &str = " approval permission consent ok okay go signature ";
    const AT_HAND: &str = " it this that these those them leave leaving go going start starting ";
    let Some(at) = clause.iter().position(|word| word == "before") else { return false };
    let (asked, what) = clause.split_at(at);
    let (verb, object) = (word_at(asked, 0), word_at(asked, 1));
    let asks = (listed(TALKS, verb) && (asked.len() > 1 || verb == "ask"))
        || (listed(TALKS_TO, verb) && has_any(" with to past by ", asked))
        || (listed(" get wait obtain seek ", verb) && has_any(CONSENTS, asked))
        // Other languages have another word order: `any file before ask me`.
        || (what.len() == 3 && has_any(TALKS, what));
    let next = word_at(what, 1);
    let recurs = listed(" you any every each anything anyone a an ask ", next)
        || next.ends_with("ing")
        || object == "me";
    // `Run every quote past Ada before it goes out`.
    let is_each = has_any(" any every each ", asked) && listed(" it they you ", next);
    asks && (is_each || (recurs && !has_any(AT_HAND, what)))
}

/// Whether a clause is about a recurring time: `nobody merges on Fridays`, `shut it at night`.
pub(super) fn is_habitual(clause: &[String]) -> bool {
    pairs(clause).any(|(on, time)| {
        (on == "on" && time.ends_with("days"))
            || (listed(" on at ", on) && listed(" night weekends ", time))
    })
}
