//! The words and clauses of a sentence, and lists of words.

use super::phrases::{FILLERS, JOINED_DEMANDS, NO_ORDERS, OBJECTS};
use crate::{message::steps, prose::spoken_words};

/// Returns the words of a sentence in lower case, with straight apostrophes.
pub(super) fn words(sentence: &str) -> impl Iterator<Item = String> {
    spoken_words(sentence).map(|word| {
        let word = word.to_lowercase();
        if word.contains('\u{2019}') { word.replace('\u{2019}', "'") } else { word }
    })
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
    // `And so please also never`.
    const FILLERS_BETWEEN: usize = 4;
    let joints = words.iter().enumerate().skip(1).filter_map(|(at, word)| {
        let tail =
            words.get(at..).filter(|_| matches!(word.as_str(), "and" | "but" | "so" | "then"))?;
        let demand =
            tail.iter().take(FILLERS_BETWEEN).position(|word| listed(JOINED_DEMANDS, word))?;
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

/// Returns each two neighbouring words of a clause.
pub(super) fn pairs(clause: &[String]) -> impl Iterator<Item = (&str, &str)> {
    clause.iter().zip(clause.iter().skip(1)).map(|(one, two)| (one.as_str(), two.as_str()))
}

/// Whether the subject of the verb at `at` is `I`.
pub(super) fn is_of_speaker(words: &[String], at: usize) -> bool {
    at.checked_sub(1).and_then(|before| words.get(before)).is_some_and(|subject| subject == "i")
}

/// Whether a word may precede the number of a limit.
pub(super) fn is_limit(word: &str) -> bool {
    matches!(
        word,
        "under" | "below" | "above" | "within" | "over" | "most" | "least" | "than" | "to"
    )
}

/// Returns a word without the ending of its plural or verb form: `lines`, `booking`, `planned`.
pub(super) fn base(word: &str) -> String {
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

/// Returns a word without the ending of its plural or genitive.
pub(super) fn singular(word: &str) -> &str {
    let word = word.trim_end_matches('\'');
    let word = word.strip_suffix("'s").unwrap_or(word);
    let is_plural = word.len() > 3 && !word.ends_with("ss");
    word.strip_suffix('s').filter(|_| is_plural).unwrap_or(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_contains_its_words_and_no_empty_word() {
        for (word, expected) in [("for", true), ("after", true), ("", false), ("fo", false)] {
            assert_eq!(listed(" for in after everywhere ", word), expected, "{word:?}");
        }
    }
}
