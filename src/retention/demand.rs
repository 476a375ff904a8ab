//! Sentences of the user that demand, forbid or prefer.

use super::{class::FactClass, scan::is_listed};

/// Words that demand, wherever they stand.
const WORDS: [&str; 20] = [
    "always",
    "avoid",
    "don't",
    "dont",
    "ensure",
    "forbidden",
    "instead",
    "keep",
    "must",
    "mustn't",
    "never",
    "only",
    "prefer",
    "preferably",
    "required",
    "shall",
    "should",
    "shouldn't",
    "stick",
    "without",
];

/// Words that demand together.
const PHRASES: [&str; 27] = [
    "do not",
    "make sure",
    "rather than",
    "no need to",
    "be sure to",
    "remember to",
    "has to",
    "have to",
    "needs to",
    "we want",
    "i want",
    "we need",
    "i need",
    "i'd like",
    "i would like",
    "at most",
    "at least",
    "not allowed",
    "you may not",
    "you can not",
    "you cannot",
    "you can't",
    "from now on",
    "no longer",
    "as long as",
    "please",
    "leave",
];

/// Who stands before `don't`, `never` and the like that tell of something and forbid nothing.
const TELLERS: [&str; 9] = ["he", "i", "it", "she", "that", "they", "we", "which", "who"];

/// What makes a telling a demand all the same.
const WISHES: [&str; 6] = ["accept", "allow", "like", "need", "use", "want"];

/// Signs of code and markup, in which words demand nothing.
const CODE: [&str; 9] = ["};", ");", "</", "==", "=>", "&&", "();", "::<", "/>"];

/// Tells of the sentences of a text that demand something, each on one line.
pub(super) fn demands(text: &str, note: &mut dyn FnMut(FactClass, &str)) {
    let mut words = Words::default();
    for paragraph in paragraphs(text) {
        for sentence in sentences(&paragraph) {
            if is_demand(sentence, &mut words) {
                note(FactClass::Constraint, sentence);
            }
        }
    }
}

/// The paragraphs outside of fences, each on one line. An item of a list is one.
fn paragraphs(text: &str) -> Vec<String> {
    let (mut done, mut open, mut fenced, mut length) = (Vec::new(), String::new(), false, 0);
    for line in text.lines() {
        let line = line.trim();
        let fence = line.starts_with("```");
        let item = item(line);
        // A short line was not wrapped: the next one begins anew.
        if fence
            || fenced
            || line.is_empty()
            || item.is_some()
            || line.starts_with(['#', '<'])
            || length < 30
        {
            done.push(std::mem::take(&mut open));
        }
        fenced ^= fence;
        length = line.len();
        if fenced || fence || line.starts_with(['#', '<']) {
            length = 0;
            continue;
        }
        for word in item.unwrap_or(line).split_whitespace() {
            if !open.is_empty() {
                open.push(' ');
            }
            open.push_str(word);
        }
    }
    done.push(open);
    done.retain(|paragraph| !paragraph.is_empty());
    done
}

/// What an item of a list says.
pub(super) fn item(line: &str) -> Option<&str> {
    let numbered = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let numbered = (numbered.len() < line.len()).then_some(numbered);
    let numbered = numbered.and_then(|rest| rest.strip_prefix(". ").or(rest.strip_prefix(") ")));
    ["- ", "* ", "> ", "\u{2022} "].iter().find_map(|mark| line.strip_prefix(mark)).or(numbered)
}

fn sentences(paragraph: &str) -> impl Iterator<Item = &str> {
    let mut start = 0;
    let mut chars = paragraph.char_indices().peekable();
    std::iter::from_fn(move || {
        while let Some((at, next)) = chars.next() {
            let follows = chars.peek().map(|(_, c)| *c);
            let wide = matches!(next, '\u{3002}' | '\u{ff01}' | '\u{ff1f}');
            let ends = matches!(next, '.' | '!' | '?') && follows.is_none_or(char::is_whitespace);
            let border = at + next.len_utf8();
            if wide || (ends && !abbreviates(paragraph.get(start..at).unwrap_or_default())) {
                let sentence = paragraph.get(start..border);
                start = border;
                return sentence.map(str::trim);
            }
        }
        let rest = paragraph.get(start..).map(str::trim).filter(|rest| !rest.is_empty());
        start = paragraph.len();
        rest
    })
}

/// Whether the point behind a text belongs to its last word.
fn abbreviates(text: &str) -> bool {
    let last = text.rsplit([' ', '(']).next().unwrap_or_default();
    ["e.g", "i.e", "vs", "cf", "approx", "no"].iter().any(|word| word.eq_ignore_ascii_case(last))
}

fn is_demand(sentence: &str, words: &mut Words) -> bool {
    let opens =
        sentence.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '@' | '`' | '"' | '*'));
    if !opens || sentence.ends_with(['?', ':', '{', ';']) {
        return false;
    }
    words.read(sentence);
    words.ends.len() > 2
        && (says(words) || phrased(words))
        && !CODE.iter().any(|sign| sentence.contains(sign))
}

/// The first words of a sentence in lower case, with a space before each and behind the last.
///
/// They lie in one text that is used again for the next sentence: with a text for each word and
/// nine searches for code before, this took three times as long.
#[derive(Debug, Default)]
struct Words {
    line: String,
    /// Where each ends.
    ends: Vec<usize>,
}

impl Words {
    fn read(&mut self, sentence: &str) {
        self.line.clear();
        self.ends.clear();
        self.line.push(' ');
        let apart = |c: char| !c.is_alphanumeric() && c != '\'' && c != '\u{2019}';
        for word in sentence.split(apart).filter(|word| !word.is_empty()).take(200) {
            if word.is_ascii() {
                let start = self.line.len();
                self.line.push_str(word);
                self.line.get_mut(start..).unwrap_or_default().make_ascii_lowercase();
            } else {
                self.line.push_str(&word.to_lowercase().replace('\u{2019}', "'"));
            }
            self.ends.push(self.line.len());
            self.line.push(' ');
        }
    }

    /// Where each word begins, and the word.
    fn each(&self) -> impl Iterator<Item = (usize, &str)> {
        let starts = std::iter::once(1).chain(self.ends.iter().map(|end| end + 1));
        let both = starts.zip(&self.ends);
        both.map(|(start, end)| (start, self.line.get(start..*end).unwrap_or_default()))
    }
}

fn says(words: &Words) -> bool {
    let mut before = "";
    words.each().any(|(start, word)| {
        let before = std::mem::replace(&mut before, word);
        if !is_listed(&WORDS, word) {
            return false;
        }
        let next =
            || words.line.get(start + word.len() + 1..).and_then(|rest| rest.split(' ').next());
        let told = matches!(word, "don't" | "dont" | "never") && is_listed(&TELLERS, before);
        let only = word == "only"
            && matches!(before, "is" | "was" | "are" | "were" | "it's" | "the" | "an");
        let opens = matches!(word, "keep" | "without" | "instead" | "leave" | "stick")
            && !matches!(before, "" | "please" | "and" | "then" | "but");
        (!told || next().is_some_and(|next| is_listed(&WISHES, next)))
            && !only
            && (!opens || word == "instead")
    })
}

fn phrased(words: &Words) -> bool {
    // Some phrases count only where they stand first.
    let mut seen: Vec<&str> = Vec::new();
    words.each().any(|(start, word)| {
        let rest = words.line.get(start..).unwrap_or_default();
        let begins = |phrase: &&&str| {
            let behind = rest.strip_prefix(**phrase);
            behind.is_some_and(|behind| behind.starts_with(' '))
        };
        let near =
            PHRASES.iter().filter(|phrase| phrase.as_bytes().first() == word.as_bytes().first());
        near.filter(begins).any(|phrase| {
            let again = seen.contains(phrase);
            seen.push(phrase);
            let before = words.line.get(..start.saturating_sub(1)).unwrap_or_default();
            !again && demands_behind(phrase, before, rest)
        })
    })
}

/// Whether a phrase demands something between these words.
fn demands_behind(phrase: &str, before: &str, rest: &str) -> bool {
    let next =
        || rest.get(phrase.len() + 1..).and_then(|rest| rest.split(' ').next()).unwrap_or_default();
    match phrase {
        "please" | "leave" => before.is_empty() || before.ends_with(" and"),
        "do not" => {
            let who = before.rsplit(' ').next().unwrap_or_default();
            !is_listed(&TELLERS, who) || is_listed(&WISHES, next())
        }
        // Who needs to do something tells what comes next.
        "i need" | "we need" => next() != "to",
        _ => true,
    }
}
