//! The lists of `phrases.txt`. They are found when the crate is built, so a title that the file does
//! not have stops the build.

use std::sync::LazyLock;

/// The phrases of a list. The space before or after a phrase is part of it.
type Phrases = LazyLock<Vec<&'static str>>;

const TEXT: &str = include_str!("phrases.txt");

// Words, with a space or a line break around each.
pub(super) const ARTICLES: &str = list("[articles]");
pub(super) const ASIDES: &str = list("[asides]");
pub(super) const ASKING: &str = list("[asking]");
pub(super) const AT_HAND: &str = list("[at hand]");
pub(super) const BESIDE_VALUES: &str = list("[beside values]");
pub(super) const CHOICES: &str = list("[choices]");
pub(super) const CONDITIONS: &str = list("[conditions]");
pub(super) const CONTRASTS: &str = list("[contrasts]");
pub(super) const DOES: &str = list("[does]");
pub(super) const DONE: &str = list("[done]");
pub(super) const EMPTY: &str = list("[empty]");
pub(super) const EXPRESSES: &str = list("[expresses]");
pub(super) const FILLERS: &str = list("[fillers]");
pub(super) const FOLLOWS: &str = list("[follows]");
pub(super) const FORMS: &str = list("[forms]");
pub(super) const HOURS: &str = list("[hours]");
pub(super) const IN: &str = list("[in]");
pub(super) const JOINED_DEMANDS: &str = list("[joined demands]");
pub(super) const JOINING: &str = list("[joining]");
pub(super) const MARKS: &str = list("[marks]");
pub(super) const NEGATIONS: &str = list("[negations]");
pub(super) const NO_IMPERATIVES: &str = list("[no imperatives]");
pub(super) const NO_ORDERS: &str = list("[no orders]");
pub(super) const NO_REMARKS: &str = list("[no remarks]");
pub(super) const NO_VERBS: &str = list("[no verbs]");
pub(super) const OBJECTS: &str = list("[objects]");
pub(super) const OCCASIONS: &str = list("[occasions]");
pub(super) const ONCE_FORBIDDEN: &str = list("[once forbidden]");
pub(super) const ORDERING: &str = list("[ordering]");
pub(super) const OURS: &str = list("[ours]");
pub(super) const POLITE: &str = list("[polite]");
pub(super) const POLITE_LAST: &str = list("[polite last]");
pub(super) const PRONOUNS: &str = list("[pronouns]");
pub(super) const REFUSALS: &str = list("[refusals]");
pub(super) const REMARKS: &str = list("[remarks]");
pub(super) const REPORTS: &str = list("[reports]");
pub(super) const RULES: &str = list("[rules]");
pub(super) const RULE_NOUNS: &str = list("[rule nouns]");
pub(super) const SET: &str = list("[set]");
pub(super) const STATES: &str = list("[states]");
pub(super) const THIS: &str = list("[this]");

// Phrases, a line each.
pub(super) static ABOUT: Phrases = LazyLock::new(|| phrases(const { list("[about]") }));
pub(super) static ALLOWED: Phrases = LazyLock::new(|| phrases(const { list("[allowed]") }));
pub(super) static ALLOWS: Phrases = LazyLock::new(|| phrases(const { list("[allows]") }));
pub(super) static CHANGES: Phrases = LazyLock::new(|| phrases(const { list("[changes]") }));
pub(super) static ENDED: Phrases = LazyLock::new(|| phrases(const { list("[ended]") }));
pub(super) static EVERY_RULE: Phrases = LazyLock::new(|| phrases(const { list("[every rule]") }));
pub(super) static FOR_GOOD: Phrases = LazyLock::new(|| phrases(const { list("[for good]") }));
pub(super) static FOR_ONCE: Phrases = LazyLock::new(|| phrases(const { list("[for once]") }));
pub(super) static FORGETS: Phrases = LazyLock::new(|| phrases(const { list("[forgets]") }));
pub(super) static GUESSES: Phrases = LazyLock::new(|| phrases(const { list("[guesses]") }));
pub(super) static LASTING: Phrases = LazyLock::new(|| phrases(const { list("[lasting]") }));
pub(super) static NEEDLESS: Phrases = LazyLock::new(|| phrases(const { list("[needless]") }));
pub(super) static OPENINGS: Phrases = LazyLock::new(|| phrases(const { list("[openings]") }));
pub(super) static RELEASES: Phrases = LazyLock::new(|| phrases(const { list("[releases]") }));
pub(super) static RULE_PARTS: Phrases = LazyLock::new(|| phrases(const { list("[rule parts]") }));
pub(super) static TALK_PARTS: Phrases = LazyLock::new(|| phrases(const { list("[talk parts]") }));

/// Returns the lines of the list with this title, with a line break before and after each.
/// It is called in constants only, so a missing list is an error of the build and no panic.
const fn list(title: &str) -> &'static str {
    let Some(at) = find(TEXT, title) else { panic!("`phrases.txt` has no list with this title") };
    let (_, list) = TEXT.split_at(at + title.len());
    let (list, _) = match find(list, "\n[") {
        Some(end) => list.split_at(end),
        None => (list, ""),
    };
    // A comment is the first line of its list.
    let [b'\n', b'#', ..] = list.as_bytes() else { return list };
    let (_, comment) = list.split_at(1);
    match find(comment, "\n") {
        Some(end) => comment.split_at(end).1,
        None => "",
    }
}

/// Returns the offset of a part of a text. The standard library has no such search for constants.
const fn find(text: &str, part: &str) -> Option<usize> {
    let mut at = 0;
    while let Some((_, rest)) = text.as_bytes().split_at_checked(at) {
        if starts_with(rest, part.as_bytes()) {
            return Some(at);
        }
        at += 1;
    }
    None
}

const fn starts_with(mut text: &[u8], mut part: &[u8]) -> bool {
    while let ([one, rest @ ..], [other, others @ ..]) = (text, part) {
        if *one != *other {
            return false;
        }
        (text, part) = (rest, others);
    }
    part.is_empty()
}

fn phrases(list: &'static str) -> Vec<&'static str> {
    list.trim().lines().map(|line| line.trim_matches('"')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_list_of_the_file_has_a_name() {
        for list in TEXT.split("\n[").skip(1) {
            let title = list.split(']').next().unwrap();
            let named = format!("list(\"[{title}]\")");
            assert_eq!(include_str!("phrases.rs").matches(&named).count(), 1, "{title}");
        }
    }

    #[test]
    fn a_list_has_a_gap_around_each_word_and_no_comment() {
        assert!(RULE_NOUNS.starts_with("\nrule rules ") && RULE_NOUNS.ends_with(" thing\n"));
        assert!(OURS.starts_with("\nreply ") && OURS.ends_with(" comments\n"));
        assert!(ORDERING.ends_with(" until\n"));
        assert!(LASTING.contains(&" any more ") && ABOUT.contains(&"what i said about"));
    }
}
