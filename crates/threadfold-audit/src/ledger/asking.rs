//! Finds the demands of a sentence that are in the user's own words.

use super::{
    phrases::{ASKING, FILLERS, REPORTS},
    words::{clauses, has_any, is_of_speaker, listed, word_at, words},
};
use crate::prose::{is_unspaced, may_demand};

/// Subjects of a clause that reports another person's words: `never touch it, she said`.
const REPORTERS: &str = " he she they someone somebody ";

/// Returns the clauses of a sentence in the user's own words that may demand something.
pub(super) fn asking(sentence: &str) -> Option<Vec<Vec<String>>> {
    let sentence = without_request(sentence);
    // A sentence in quotation marks is another person's.
    if sentence.starts_with('"') || !(may_demand(sentence) || is_polite(sentence)) {
        return None;
    }
    let clauses: Vec<Vec<String>> = clauses(sentence).collect();
    let mut words = clauses.iter().flatten();
    // A single word demands nothing, unless its script has no spaces.
    let first = words.next()?;
    words.next().map(|_| ()).or_else(|| sentence.contains(is_unspaced).then_some(()))?;
    let level = listed(" error warn warning info debug trace ", first);
    let is_own = !level
        && !gives_text(sentence)
        && !is_reported(&clauses)
        && !clauses.iter().any(|clause| is_report(clause));
    is_own.then_some(clauses)
}

/// Returns a sentence without the request that ends it as a question: `never restart it, can you
/// look at the log?`
fn without_request(sentence: &str) -> &str {
    let parts = sentence.strip_suffix('?').and_then(|asked| asked.rsplit_once([',', ';']));
    let head = parts.filter(|(_, tail)| requests(tail)).map(|(head, _)| head);
    head.unwrap_or(sentence)
}

/// Whether a text begins as a polite request.
fn requests(text: &str) -> bool {
    let mut words = words(text).skip_while(|word| listed(FILLERS, word));
    words.next().is_some_and(|first| listed(" could can would will ", &first))
        && words.next().is_some_and(|second| second == "you")
}

/// Whether a question is a demand: `could you always answer in French?`
fn is_polite(sentence: &str) -> bool {
    let words: Vec<String> = words(sentence).take(200).collect();
    let demands = |word: &String| matches!(word.as_str(), "always" | "never");
    let joined =
        words.windows(2).any(|pair| matches!(pair, [and, word] if and == "and" && demands(word)));
    requests(sentence) && (joined || words.iter().take(6).any(demands))
}

/// Whether a clause only names the author of the other clauses: `she said`, `as the song goes`.
fn is_report(clause: &[String]) -> bool {
    match clause {
        [.., used, to, say] if used == "used" && to == "to" && say == "say" => true,
        [first, ..] if listed(REPORTERS, first) => listed(REPORTS, word_at(clause, 1)),
        [first, .., last] if first == "as" => {
            (last == "goes" || listed(REPORTS, last)) && !clause.contains(&"i".to_owned())
        }
        [first, ..] if first == "said" || first == "says" => clause.len() > 1,
        _ => false,
    }
}

/// Whether a sentence gives a text to work on, or quotes a saying: `translate this: ...`, `her
/// motto was: ...`.
fn gives_text(sentence: &str) -> bool {
    const TASKS: &str = " translate summarize summarise rephrase rewrite paraphrase proofread correct transcribe explain ";
    const SAYINGS: &str = " motto slogan proverb saying title headline lyrics quote ";
    sentence.split_once(':').is_some_and(|(head, _)| {
        let words: Vec<String> = words(head).take(20).collect();
        words.iter().find(|word| !listed(FILLERS, word)).is_some_and(|first| listed(TASKS, first))
            || has_any(SAYINGS, &words)
    })
}

/// Whether the demand of a sentence is only a report of another person's words: `he said we must
/// hurry`.
fn is_reported(clauses: &[Vec<String>]) -> bool {
    for clause in clauses {
        for (at, word) in clause.iter().enumerate() {
            // The first word of a clause is an order of the user instead: `quote prices in francs
            // only`.
            if at > 0 && listed(REPORTS, word) && !is_own_verb(clause, at) && !is_noun(clause, at) {
                return true;
            }
            if listed(ASKING, word) {
                return false;
            }
        }
    }
    false
}

/// Whether the word at `at` is a noun, because a quantifier precedes it: `all quotes must include
/// tax`.
fn is_noun(words: &[String], at: usize) -> bool {
    const QUANTIFIERS: &str = " all any both each every no our these those ";
    let before = at.checked_sub(1).and_then(|before| words.get(before));
    before.is_some_and(|word| listed(QUANTIFIERS, word))
}

/// Whether the verb at `at` has the user as its subject or is part of a demand: `I said`, `remember
/// to quote`.
fn is_own_verb(words: &[String], at: usize) -> bool {
    let to =
        at.checked_sub(1).and_then(|before| words.get(before)).is_some_and(|word| word == "to");
    to || is_of_speaker(words, at)
}
