//! Sentences of the user that demand, forbid or prefer.

use super::class::FactClass;

/// Words that demand, wherever they stand.
const WORDS: &str = " must mustn't never always don't dont shouldn't should shall avoid prefer preferably ensure only keep \
    required forbidden stick instead without ";

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
const TELLERS: &str = " i we they it he she that which who ";

/// What makes a telling a demand all the same.
const WISHES: &str = " want need like allow accept use ";

/// Signs of code and markup, in which words demand nothing.
const CODE: [&str; 9] = ["};", ");", "</", "==", "=>", "&&", "();", "::<", "/>"];

/// Tells of the sentences of a text that demand something, each on one line.
pub(super) fn demands(text: &str, note: &mut dyn FnMut(FactClass, &str)) {
    for paragraph in paragraphs(text) {
        for sentence in sentences(&paragraph).filter(|sentence| is_demand(sentence)) {
            note(FactClass::Constraint, sentence);
        }
    }
}

/// The paragraphs outside of fences, each on one line. An item of a list is one.
pub(crate) fn paragraphs(text: &str) -> Vec<String> {
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

/// The sentences of a paragraph.
pub(crate) fn sentences(paragraph: &str) -> impl Iterator<Item = &str> {
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
    [" e.g ", " i.e ", " vs ", " cf ", " approx ", " no "]
        .iter()
        .any(|list| list.trim() == last.to_ascii_lowercase())
}

fn is_demand(sentence: &str) -> bool {
    let opens = sentence
        .starts_with(|c: char| c.is_alphanumeric() || c == '@' || c == '`' || c == '"' || c == '*');
    let code = CODE.iter().any(|sign| sentence.contains(sign)) || sentence.ends_with(['{', ';']);
    let words: Vec<String> = words(sentence).take(200).collect();
    opens
        && !code
        && words.len() > 2
        && !sentence.ends_with(['?', ':'])
        && (says(&words) || phrased(&words))
}

fn says(words: &[String]) -> bool {
    let listed = |list: &str, word: Option<&String>| {
        word.is_some_and(|word| list.contains(&format!(" {word} ")))
    };
    words.iter().enumerate().any(|(at, word)| {
        let before = at.checked_sub(1).and_then(|at| words.get(at));
        let told = listed(" don't dont never ", Some(word)) && listed(TELLERS, before);
        let only = word == "only" && listed(" is was are were it's the an ", before);
        let opens = listed(" keep without instead leave stick ", Some(word))
            && at > 0
            && !listed(" please and then but ", before);
        listed(WORDS, Some(word))
            && (!told || listed(WISHES, words.get(at + 1)))
            && !only
            && (!opens || word == "instead")
    })
}

fn phrased(words: &[String]) -> bool {
    let line = format!(" {} ", words.join(" "));
    PHRASES.iter().any(|phrase| {
        let at = line.find(&format!(" {phrase} "));
        at.is_some_and(|at| match *phrase {
            "please" | "leave" => {
                at == 0 || line.get(..at).is_some_and(|before| before.ends_with(" and"))
            }
            "do not" => {
                let who = line.get(..at).unwrap_or_default().rsplit(' ').next().unwrap_or_default();
                let next =
                    line.get(at + 8..).unwrap_or_default().split(' ').next().unwrap_or_default();
                !TELLERS.contains(&format!(" {who} "))
                    || who.is_empty()
                    || WISHES.contains(&format!(" {next} "))
            }
            // Who needs to do something tells what comes next.
            "i need" | "we need" => {
                !line.get(at..).unwrap_or_default().starts_with(&format!(" {phrase} to "))
            }
            _ => true,
        })
    })
}

/// The words of a sentence, in lower case.
pub(crate) fn words(sentence: &str) -> impl Iterator<Item = String> {
    let words = sentence.split(|c: char| !c.is_alphanumeric() && c != '\'' && c != '\u{2019}');
    words.filter(|word| !word.is_empty()).map(|word| word.to_lowercase().replace('\u{2019}', "'"))
}
