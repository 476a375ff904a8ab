//! Finds the words of a summary that are facts by their form alone: names, codes, long numbers.

use std::collections::{BTreeMap, HashSet};

use super::positions::Positions;
use crate::message::slice;
use crate::prose::{
    FactClass, Speaker, heading, is_act, is_calendar, is_common, is_unspaced, sentences,
};
use threadfold_core::retention::Fact;

/// When a text has this many names, no more names before titles are read.
const MOST_BEFORE_TITLES: usize = 200;

/// Returns the names, long numbers inside words, codes, and words between backticks in a text, by
/// their form in lower case.
pub(super) fn named(text: &str) -> BTreeMap<String, Fact> {
    const MIN_BYTES: usize = 20;
    let mut names = Names::default();
    text.lines().filter(|line| !is_heading(line)).flat_map(sentences).for_each(|it| names.read(it));
    let Names { mut found, inner, capitals, sure } = names;
    if inner >= MIN_BYTES && capitals * 5 > inner {
        found.retain(|name, fact| !is_name(&fact.text) || sure.contains(name));
    }
    found
}

/// The names in the sentences so far.
#[derive(Default)]
struct Names {
    found: BTreeMap<String, Fact>,
    /// Words that are names even in a language that capitalises every noun.
    sure: HashSet<String>,
    /// The number of words that do not begin a sentence, and how many of them have a capital.
    inner: usize,
    capitals: usize,
}

impl Names {
    fn read(&mut self, sentence: &str) {
        /// At most this many words after a label can be a name.
        const VALUE: usize = 3;
        const ENDS: [char; 7] = ['.', ':', ';', '!', '?', '-', '|'];
        let sentence = sentence.replace("**", "");
        // A label may have a capital in every word: `Open Points: none`.
        let label = heading(sentence.trim_start_matches(['*', '-', '#', '>', ' ']));
        let body = label.map_or(sentence.as_str(), |(_, body)| body);
        let is_value = label.is_some() && body.split_whitespace().count() <= VALUE;
        let (mut starts, mut is_code, mut follows, mut program) = (true, false, false, false);
        let mut tokens = body.split_whitespace().peekable();
        while let Some(token) = tokens.next() {
            let ends = token.ends_with(ENDS) && !is_title(token);
            let begins = std::mem::replace(&mut starts, ends);
            is_code |= token.starts_with('`');
            for word in words(token) {
                let is_typed = is_code || program || token.starts_with('-');
                if is_number(word) || is_coded(word) || (is_typed && word.len() > 3) {
                    self.note(word);
                }
            }
            // Each of these names is searched for in every text, so their number is limited.
            let room = MOST_BEFORE_TITLES.saturating_sub(self.found.len());
            named_before_title(token).take(room).for_each(|name| self.note(name));
            program = is_program(token);
            is_code &=
                !token.trim_end_matches(|c: char| c != '`' && !c.is_alphanumeric()).ends_with('`');
            let first = words(token).next().filter(|word| token.starts_with(word));
            let Some(word) = first else { continue };
            // Every first word of a sentence has a capital. It counts as the name of a person if a
            // verb or a genitive shows one: `Ada approved it`, `Ada's plan`.
            let is_name = is_name(word) && (!begins || is_value || is_person(token, tokens.peek()));
            self.inner += usize::from(!begins);
            self.capitals += usize::from(!begins && is_name);
            if is_name {
                self.note(word);
                // A noun directly after another noun is a name: `Frau Krause`.
                self.sure.extend((follows || begins).then(|| word.to_lowercase()));
            }
            follows = self::is_name(word) && !ends && !is_calendar(word);
        }
    }

    fn note(&mut self, word: &str) {
        let class = if is_number(word) { FactClass::Number } else { FactClass::Identifier };
        self.found.entry(word.to_lowercase()).or_insert_with(|| of_word(class, word));
    }
}

/// Returns a fact of a summary with this text.
pub(super) fn of_word(class: FactClass, word: &str) -> Fact {
    let (speaker, positions) = (Speaker::Assistant, Positions::of(0).into_kept());
    Fact::new(class, word.into(), 1, speaker, positions)
}

/// Whether a line is a heading or a label, in which every word may have a capital.
fn is_heading(line: &str) -> bool {
    let line = line.trim().trim_end_matches('*');
    line.starts_with('#') || line.ends_with(':')
}

/// Whether a word is a number of three digits or more.
fn is_number(word: &str) -> bool {
    word.len() > 2 && word.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a word is a code of capitals and digits: `E0425`.
fn is_coded(word: &str) -> bool {
    word.len() > 3
        && word.starts_with(|c: char| c.is_ascii_uppercase())
        && word.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
        && word.contains(|c: char| c.is_ascii_digit())
}

/// Returns the names before a title in scripts without spaces: in Japanese the two characters
/// before it (`\u{9ad8}\u{6a4b}`), in Chinese one of the common surnames.
fn named_before_title(token: &str) -> impl Iterator<Item = &str> {
    const TITLES: [(&str, usize); 2] = [("さん 氏 くん", 2), ("律师 医生 老师 先生 女士 经理", 1)];
    const SURNAMES: &str = "王李张刘陈杨赵黄周吴徐孙胡朱高林何郭马罗梁宋郑谢韩唐冯董萧程曹袁邓许傅沈曾彭吕苏卢蒋蔡贾丁魏薛叶阎余潘杜戴夏钟汪田任姜范石姚谭廖邹熊陆孔白崔康毛邱秦江史顾侯邵孟龙段雷钱汤尹黎武乔贺赖龚";
    let titles = TITLES.iter().filter(|_| !token.is_ascii());
    let titles = titles.flat_map(|(titles, length)| titles.split(' ').map(move |it| (it, *length)));
    let found = titles.flat_map(move |(title, length)| {
        token.match_indices(title).map(move |(at, _)| (slice(token, ..at), length))
    });
    found.filter_map(|(before, length)| {
        let (from, first) = before.char_indices().rev().nth(length - 1)?;
        let name = slice(before, from..);
        let is_name = name.chars().all(|c| matches!(c, '\u{4e00}'..='\u{9fff}'));
        (is_name && (length > 1 || SURNAMES.contains(first))).then_some(name)
    })
}

/// Whether a token is the name of a program, after which its command is written: `git rebase`.
fn is_program(token: &str) -> bool {
    const PROGRAMS: [&str; 12] = [
        "apt", "brew", "bundle", "cargo", "docker", "git", "kubectl", "npm", "npx", "pip", "pnpm",
        "yarn",
    ];
    PROGRAMS.contains(&token)
}

/// Whether a token is a title before a name. Its full stop does not end a sentence.
fn is_title(token: &str) -> bool {
    matches!(token, "Dr." | "Mr." | "Mrs." | "Ms." | "Prof." | "Sr." | "Sra.")
}

/// Whether a word has a capital and then only small letters.
fn is_name(word: &str) -> bool {
    let mut letters = word.chars();
    letters.next().is_some_and(char::is_uppercase)
        && word.chars().count() > 2
        && letters.all(char::is_lowercase)
}

/// Whether a word lacks the endings of common nouns and participles, which `Deployment`, `Tests`
/// and `Fixed` have.
fn is_rare(word: &str) -> bool {
    const ENDS: [&str; 11] =
        ["s", "ed", "ing", "ion", "ment", "ness", "ity", "ism", "ship", "ance", "ence"];
    !ENDS.iter().any(|end| word.ends_with(end))
}

/// Whether the first word of a sentence is the name of a person: `Ada's plan`, `Ada approved it`.
fn is_person(token: &str, next: Option<&&str>) -> bool {
    let (word, end) = token.split_once(['\'', '\u{2019}']).unwrap_or((token, ""));
    let acts = next.is_some_and(|next| is_act(next) || (next.ends_with("ed") && is_rare(word)));
    (end == "s" || acts) && !is_common(&word.to_lowercase())
}

/// Returns the words of a text: runs of letters and digits.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    // Splitting at ASCII first is faster: most text is ASCII, and few other characters are
    // punctuation.
    let words = text.split(|c: char| c.is_ascii() && !c.is_ascii_alphanumeric());
    words
        .flat_map(|word| word.split(|c: char| !c.is_alphanumeric() || is_unspaced(c)))
        .filter(|word| !word.is_empty())
}
