//! Quotes: a model names the user's rules by copying them, and code checks each copy against what
//! the user typed.
//!
//! A question for a summary also [asks](Quotes::ASK) for two short lists of verbatim quotes. The
//! lists are [cut](Quotes::cut) from the answer. A quote counts only if the user [typed](Typed) it:
//! then the user's own sentences count, never the model's copy. So no text of a tool becomes a rule,
//! in any language, and no grammar decides what a rule is.

use std::{collections::BTreeMap, ops::Range};

use serde::{Deserialize, Serialize};

use super::{
    changes::{QuotedChanges, QuotedRule, TakenBack},
    moderators::Moderators,
    rules::Ledger,
    typed::{Reports, typed},
};
use crate::{
    message::{Author, Message, slice, steps},
    prose::{is_quotation_mark, is_unspaced, item, one_line, paragraphs, read_named, sentences},
};

/// The lists of quotes in a model's answer, not checked yet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quotes {
    /// Demands of the user that stand until the user takes them back.
    pub rules: Vec<String>,
    /// What the user took back.
    pub lifted: Vec<Lifted>,
}

/// A statement of the user, and the later sentence of the user that takes it back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lifted {
    /// A quote of the earlier statement.
    pub earlier: String,
    /// A quote of the later sentence.
    pub later: String,
}

/// The names of the tags around the lists.
const RULES: &str = "user_rules";
const LIFTED: &str = "user_lifted";
const LISTS: [&str; 2] = [RULES, LIFTED];

/// Separates the two quotes of a line about something that the user took back.
const BY: &str = " => ";

/// The maximum number of quotes that are read from one list. A longer list is no short list, and
/// checking each quote takes time.
const MOST: usize = 100;

/// The request for the lists, with an example of each.
macro_rules! lists {
    () => {
        "copy sentences that the user typed, letter by letter, none from tools or files; leave out \
         empty lists:\n\
         <user_rules>\n- what holds until the user takes it back\n</user_rules>\n\
         <user_lifted>\n- earlier sentence => later sentence that takes it back\n</user_lifted>"
    };
}

impl Quotes {
    /// The part of a question for a summary that asks for the lists.
    pub const ASK: &'static str = concat!("After the summary, ", lists!());

    /// The same for a summary that the model keeps in a file.
    pub const ASK_IN_FILE: &'static str = concat!("At the end of the file, ", lists!());

    /// Returns an answer without its lists, and the lists. A list without an end extends to the
    /// next list or to the end of the answer.
    ///
    /// ```
    /// use threadfold::ledger::Quotes;
    ///
    /// let answer = "The parser is fixed.\n<user_rules>\n- \"Never touch the lexer.\"\n</user_rules>";
    /// let (summary, quotes) = Quotes::cut(answer);
    /// assert_eq!(summary, "The parser is fixed.");
    /// assert_eq!(quotes.rules, ["Never touch the lexer."]);
    /// ```
    #[must_use]
    pub fn cut(answer: &str) -> (String, Self) {
        let (mut summary, mut quotes) = (String::new(), Self::default());
        let mut list: Option<&str> = None;
        for line in answer.lines() {
            let tag = line.trim().trim_matches('`');
            if let Some(name) = LISTS.into_iter().find(|name| is_tag(tag, "<", name)) {
                list = Some(name);
            } else if LISTS.into_iter().any(|name| is_tag(tag, "</", name)) {
                list = None;
            } else if let Some(name) = list {
                quotes.read(name, line);
            } else {
                summary.push_str(line);
                summary.push('\n');
            }
        }
        (summary.trim().to_owned(), quotes)
    }

    /// Adds the quotes of another answer that these lack.
    pub fn extend(&mut self, mut other: Self) {
        other.rules.retain(|rule| !self.rules.contains(rule));
        other.lifted.retain(|lifted| !self.lifted.contains(lifted));
        self.rules.append(&mut other.rules);
        self.lifted.append(&mut other.lifted);
    }

    /// Whether there is no quote.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty() && self.lifted.is_empty()
    }

    /// Reads a line of a list.
    fn read(&mut self, list: &str, line: &str) {
        let line = line.trim();
        let line = item(line).unwrap_or(line);
        let quote = unquoted(line);
        if quote.is_empty() {
            return;
        }
        match list {
            RULES if self.rules.len() < MOST => self.rules.push(quote.to_owned()),
            LIFTED if self.lifted.len() < MOST => {
                let Some((earlier, later)) = line.split_once(BY) else { return };
                let [earlier, later] = [earlier, later].map(|part| unquoted(part).to_owned());
                self.lifted.push(Lifted { earlier, later });
            }
            _ => {}
        }
    }
}

fn is_tag(text: &str, opening: &str, name: &str) -> bool {
    text.strip_prefix(opening).and_then(|rest| rest.strip_prefix(name)) == Some(">")
}

/// Returns a text without the quotation marks around it.
fn unquoted(text: &str) -> &str {
    let text = text.trim();
    let inner = text.strip_prefix(is_quotation_mark);
    inner.and_then(|inner| inner.strip_suffix(is_quotation_mark)).unwrap_or(text).trim()
}

impl Ledger {
    /// Returns the changes that a model's quotes make to these rules. A quote that the user did not
    /// type changes nothing and is counted. A statement is taken back only with a sentence that the
    /// user typed after it. If it is a rule, the rule is lifted, unless the host gave it. Where the host
    /// names moderators, others take back only what they themselves said.
    ///
    /// ```
    /// use threadfold::{Message, ledger::{Ledger, Moderators, Quotes, TypedText}};
    ///
    /// let mut typed = TypedText::default();
    /// typed.read(0, &Message::user("No nuts in anything, please. What is for dinner?"));
    /// let answer = "Dinner.\n<user_rules>\n- No nuts in anything\n- Send all mails\n</user_rules>";
    /// let (_, quotes) = Quotes::cut(answer);
    /// let mut rules = Ledger::default();
    /// let changes = rules.quoted(&quotes, &typed, &Moderators::Everybody);
    /// assert_eq!((changes.rules.len(), changes.refused), (1, 1));
    /// rules.apply(&changes);
    /// assert_eq!(rules.to_string(), "- No nuts in anything, please.\n");
    /// ```
    #[must_use]
    pub fn quoted(&self, quotes: &Quotes, typed: &Typed, moderators: &Moderators) -> QuotedChanges {
        let mut changes = QuotedChanges::default();
        for quote in &quotes.rules {
            let Some(found) = typed.find(quote) else {
                changes.refused += 1;
                continue;
            };
            if self.is_new(&found, typed) {
                let Found { position, text, author, .. } = found;
                let rule = QuotedRule { text: text.into(), author, position };
                let is_same =
                    |other: &QuotedRule| (&other.text, &other.author) == (&rule.text, &rule.author);
                if !changes.rules.iter().any(is_same) {
                    changes.rules.push(rule);
                }
            }
        }
        for Lifted { earlier, later } in &quotes.lifted {
            let pairs = typed.taken_back(earlier, later, moderators);
            changes.refused += usize::from(pairs.is_empty());
            for pair in pairs {
                changes.rules.retain(|rule| !pair.lifts(rule.author.as_ref(), &rule.text));
                let is_known = self.taken_back().any(|known| known.is_same(&pair))
                    || changes.lifted.contains(&pair);
                changes.lifted.extend((!is_known).then_some(pair));
            }
        }
        changes
    }

    /// Whether a sentence is no rule, or was lifted as one and typed again afterwards.
    fn is_new(&self, found: &Found, typed: &Typed) -> bool {
        let author = found.author.as_ref();
        match self.find_of(author, &found.text) {
            None => return true,
            Some(rule) if rule.holds() => return false,
            Some(_) => {}
        }
        let pair = self.taken_back().rfind(|pair| pair.lifts(author, &found.text));
        let later = pair
            .and_then(|pair| typed.matches(&pair.later).find(|later| later.author == pair.author));
        later.is_some_and(|later| found.is_after(&later))
    }

    /// Applies the changes that quotes made. Changes may come from a stored log, so each rule is
    /// checked again.
    pub fn apply(&mut self, changes: &QuotedChanges) {
        for rule in &changes.rules {
            // A rule that is too long, or one too many, counts as left out.
            let position = Some(rule.position.unwrap_or_default());
            let _ = self.enter(position, rule.author.as_ref(), &rule.text);
        }
        for pair in &changes.lifted {
            self.take_back(pair.clone());
        }
    }
}

/// What the user typed, prepared to find quotes in it.
#[derive(Clone, Debug, Default)]
pub struct Typed {
    paragraphs: Vec<Paragraph>,
}

/// One paragraph that the user typed.
#[derive(Clone, Debug)]
struct Paragraph {
    /// The number of its message, if known.
    position: Option<usize>,
    author: Option<Author>,
    /// The words on one line.
    text: String,
    folded: Folded,
    /// The byte ranges within quotation marks, in order: another person's words.
    quoted: Vec<Range<usize>>,
}

impl Paragraph {
    /// Whether a part is the user's own: its first word does not follow others within quotation marks,
    /// and a word of it is outside of them.
    fn is_own(&self, range: &Range<usize>) -> bool {
        let around = |at: usize| {
            let next = self.quoted.partition_point(|it| it.end <= at);
            self.quoted.get(next).is_some_and(|it| it.start <= at)
        };
        let words = slice(&self.text, range.clone()).char_indices();
        let words = words.filter(|(_, c)| c.is_alphanumeric());
        let mut is_quoted = words.map(|(at, _)| around(range.start + at)).peekable();
        let begins_inside = around(range.start) && is_quoted.peek().is_none_or(|first| *first);
        !begins_inside && is_quoted.any(|quoted| !quoted)
    }
}

/// The user's own sentences that a quote was found in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The number of the message, if it was passed to [`Typed::read`].
    pub position: Option<usize>,
    /// The whole sentences, as typed, on one line.
    pub text: String,
    /// The person who typed them, if the message has an author.
    pub author: Option<Author>,
    /// The number of the paragraph among all that were read, and where in it the sentences begin
    /// and end.
    paragraph: usize,
    range: Range<usize>,
}

impl Found {
    /// Whether this was typed after the other.
    #[must_use]
    pub fn is_after(&self, other: &Self) -> bool {
        (self.paragraph, self.range.start) >= (other.paragraph, other.range.end)
    }
}

impl Typed {
    /// Reads what the user typed in a message, without what they quoted or pasted. Read messages in
    /// order.
    pub fn read(&mut self, position: impl Into<Option<usize>>, message: &Message) {
        let position = position.into();
        for text in typed(message, Reports::No) {
            self.read_text(position, message.author.as_ref(), &text);
        }
    }

    /// Whether nothing was read that the user typed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.paragraphs.is_empty()
    }

    /// Reads a text that the user, or this author, typed, in a message that may not be known any more.
    pub fn read_text(&mut self, position: Option<usize>, author: Option<&Author>, text: &str) {
        for text in paragraphs(text) {
            let text = one_line(&text).into_owned();
            let (folded, quoted) = (Folded::of(&text), quotations(&text));
            let author = author.cloned();
            self.paragraphs.push(Paragraph { position, author, text, folded, quoted });
        }
    }

    /// Returns the latest of the user's sentences that hold this quote; `None` if the user typed no
    /// such words.
    ///
    /// White space, case, quotation marks, dashes and a mark at the end of the quote may differ. The
    /// quote must begin and end at borders of words. A quote from within a sentence is widened to
    /// the sentence. A quote that begins with the name of an author, as in `ann said: Be brief.`, is
    /// searched for in what this author typed.
    ///
    /// ```
    /// use threadfold::{Message, ledger::TypedText};
    ///
    /// let mut typed = TypedText::default();
    /// typed.read(0, &Message::user("Please fix it. I'm allergic to walnuts, so none of them."));
    /// let found = typed.find("i\u{2019}m allergic to  walnuts").expect("the user typed it");
    /// assert_eq!(found.text, "I'm allergic to walnuts, so none of them.");
    /// assert_eq!(typed.find("I'm allergic to peanuts"), None);
    /// assert_eq!(typed.find("allergic to wal"), None);
    /// ```
    #[must_use]
    pub fn find(&self, quote: &str) -> Option<Found> {
        self.matches(quote).next()
    }

    /// Returns the sentences that hold a quote, the latest first, one of each paragraph.
    fn matches(&self, quote: &str) -> impl Iterator<Item = Found> {
        let (author, words) = read_named(quote);
        let is_author = |paragraph: &Paragraph| author.is_some() && paragraph.author == author;
        let author = author.clone().filter(|_| self.paragraphs.iter().any(is_author));
        let quote = Folded::of(if author.is_some() { words } else { quote }).text;
        let quote = quote.trim_end_matches(is_end_mark).trim().to_owned();
        let is_short = quote.chars().filter(|c| c.is_alphanumeric()).count() < 2;
        let paragraphs = if is_short { &[] } else { self.paragraphs.as_slice() };
        paragraphs.iter().enumerate().rev().filter_map(move |(number, paragraph)| {
            if author.is_some() && paragraph.author != author {
                return None;
            }
            let range = paragraph.folded.find(&quote, |range| paragraph.is_own(range))?;
            let mut range = widened(&paragraph.text, range);
            // A sentence that begins within a quotation is the user's from its end on.
            if let Some(around) = paragraph.quoted.iter().find(|it| it.contains(&range.start)) {
                let from = around.end.min(range.end);
                let own = slice(&paragraph.text, from..range.end);
                range.start = from + own.find(char::is_alphanumeric).unwrap_or(own.len());
            }
            let text = slice(&paragraph.text, range.clone()).to_owned();
            let (position, author) = (paragraph.position, paragraph.author.clone());
            Some(Found { position, text, author, paragraph: number, range })
        })
    }

    /// Returns what a pair of quotes takes back: what anybody said, if a moderator typed the later
    /// sentence, else what each author of the later sentence said themselves. Empty if the user did not
    /// type both, or not in this order.
    fn taken_back(&self, earlier: &str, later: &str, moderators: &Moderators) -> Vec<TakenBack> {
        let pair = |earlier: &Found, later: &Found, own_only: bool| TakenBack {
            earlier: earlier.text.as_str().into(),
            later: later.text.as_str().into(),
            author: later.author.clone(),
            own_only,
            position: later.position,
        };
        let by_moderator =
            self.matches(later).find(|later| moderators.allow(later.author.as_ref()));
        let of_all = self.find(earlier).zip(by_moderator);
        if let Some((earlier, later)) = of_all.filter(|(earlier, later)| later.is_after(earlier)) {
            return vec![pair(&earlier, &later, false)];
        }
        let [earlier, later] = [earlier, later].map(|quote| self.latest_of_each(quote));
        let own = later.iter().filter_map(|(author, later)| {
            let earlier = earlier.get(author).filter(|earlier| later.is_after(earlier))?;
            Some(pair(earlier, later, true))
        });
        own.take(MOST).collect()
    }

    /// Returns the latest sentence of each author that holds a quote.
    fn latest_of_each(&self, quote: &str) -> BTreeMap<Author, Found> {
        let mut latest = BTreeMap::new();
        for found in self.matches(quote) {
            if let Some(author) = found.author.clone() {
                latest.entry(author).or_insert(found);
            }
        }
        latest
    }
}

/// A text in the form in which quotes are compared.
#[derive(Clone, Debug, Default)]
struct Folded {
    text: String,
    /// For each byte of the text, the offset of its character in the original, and at the end the
    /// length of the original.
    offsets: Vec<usize>,
}

impl Folded {
    fn of(original: &str) -> Self {
        let mut folded = Self::default();
        for (at, c) in original.char_indices() {
            // A full-width form is the ASCII character in another width.
            let c = match c {
                '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c),
                _ => c,
            };
            match c {
                _ if c.is_whitespace() => {
                    if !folded.text.ends_with(' ') {
                        folded.push(' ', at);
                    }
                }
                '\u{2010}'..='\u{2015}' | '\u{2212}' => folded.push('-', at),
                '\'' | '\u{2018}'..='\u{201b}' | '`' | '\u{b4}' => folded.push('\'', at),
                _ if is_quotation_mark(c) => folded.push('"', at),
                '\u{3001}' => folded.push(',', at),
                '\u{3002}' | '\u{ff61}' => folded.push('.', at),
                '\u{2026}' => ['.', '.', '.'].into_iter().for_each(|c| folded.push(c, at)),
                // Soft hyphens and joiners are invisible.
                '\u{ad}' | '\u{200b}'..='\u{200d}' | '\u{feff}' => {}
                _ => c.to_lowercase().for_each(|c| folded.push(c, at)),
            }
        }
        folded.offsets.push(original.len());
        folded
    }

    fn push(&mut self, c: char, at: usize) {
        self.text.push(c);
        self.offsets.resize(self.text.len(), at);
    }

    /// Returns the byte range, in the original, of the last match at borders of words that is
    /// accepted.
    fn find(&self, quote: &str, accepts: impl Fn(&Range<usize>) -> bool) -> Option<Range<usize>> {
        // Matches may overlap in a text that repeats itself. So many are tried that the work stays linear.
        let most = 16 * (1 + self.text.len() / quote.len().max(1));
        let (last, mut end) =
            (quote.chars().next_back().map_or(1, char::len_utf8), self.text.len());
        let found = std::iter::from_fn(move || {
            let at = slice(&self.text, ..end).rfind(quote)?;
            end = at + quote.len() - last;
            Some(at..at + quote.len())
        });
        let whole = found
            .take(most)
            .filter(|range| self.is_border(range.start) && self.is_border(range.end));
        let mut ranges = whole.filter_map(|range| {
            Some(*self.offsets.get(range.start)?..*self.offsets.get(range.end)?)
        });
        ranges.find(accepts)
    }

    /// Whether no word goes on across this byte offset.
    fn is_border(&self, at: usize) -> bool {
        let before = slice(&self.text, ..at).chars().next_back();
        let after = slice(&self.text, at..).chars().next();
        let is_inner = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() && !is_unspaced(c));
        !(is_inner(before) && is_inner(after))
    }
}

/// Returns the range of the whole sentences of a text that a range touches; empty if it touches none.
fn widened(text: &str, range: Range<usize>) -> Range<usize> {
    let (mut at, mut touched) = (0, None);
    for sentence in sentences(text) {
        let start = slice(text, at..).find(sentence).map_or(at, |from| at + from);
        at = start + sentence.len();
        if start < range.end && range.start < at {
            touched = Some(touched.map_or(start..at, |whole: Range<usize>| whole.start..at));
        }
    }
    touched.unwrap_or_default()
}

/// Returns the byte ranges of a text within quotation marks. A quotation without an end extends to
/// the end of the text.
fn quotations(text: &str) -> Vec<Range<usize>> {
    let (mut ranges, mut open, mut before) = (Vec::new(), None, ' ');
    for (at, c) in steps::through(text).char_indices() {
        // A mark after a letter or digit closes a quotation or means inches.
        let opens = matches!(c, '\u{201c}' | '\u{201e}') || (c == '"' && !before.is_alphanumeric());
        match open {
            None if opens => open = Some((at + c.len_utf8(), c)),
            // The mark that opens a quotation in English closes one that began with a low mark.
            Some((start, mark))
                if matches!(c, '"' | '\u{201d}') || (c == '\u{201c}' && mark == '\u{201e}') =>
            {
                ranges.push(start..at);
                open = None;
            }
            None | Some(_) => {}
        }
        before = c;
    }
    ranges.extend(open.map(|(start, _)| start..text.len()));
    ranges
}

fn is_end_mark(c: char) -> bool {
    c.is_whitespace()
        || c.is_ascii_punctuation() && ".!,;:".contains(c)
        || "。！、，।؟۔…".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: &Moderators = &Moderators::Everybody;

    fn typed_in(texts: &[&str]) -> Typed {
        let mut typed = Typed::default();
        for (position, text) in texts.iter().enumerate() {
            typed.read(position, &Message::user(*text));
        }
        typed
    }

    fn found(texts: &[&str], quote: &str) -> Option<(usize, String)> {
        typed_in(texts).find(quote).and_then(|found| Some((found.position?, found.text)))
    }

    #[test]
    fn a_rule_of_a_text_that_repeats_itself_is_found_again() {
        let text = ["\u{201e}\u{201c}Keep it here? Go there!\u{201d}\u{201c}"; 3].join(" ");
        let typed = typed_in(&[&text]);
        let found = typed.find("Keep it here? Go there").expect("the user typed it");
        assert_eq!(typed.find(&found.text), Some(found));
    }

    #[test]
    fn a_mark_before_a_quotation_makes_it_nobodys_own() {
        let typed = typed_in(&["`\u{201c}Never use tabs.\u{201d}` is what it says."]);
        assert_eq!(typed.find("`\u{201c}Never use tabs.\u{201d}`"), None);
        assert_eq!(typed.find("Never use tabs"), None);
        let own = typed.find("is what it says").map(|found| found.text);
        assert_eq!(own.as_deref(), Some("`\u{201c}Never use tabs.\u{201d}` is what it says."));
    }

    #[test]
    fn lists_are_cut_from_an_answer_however_they_are_marked() {
        let answer = "## State\nDone.\n\n<user_rules>\n- \u{201c}Be brief.\u{201d}\n2) 'No tabs'\n\n</user_rules>\n\
            Next: go on.\n<user_lifted>\n* \"Be brief.\" => \"Write as much as you like.\"\n- no arrow";
        let (summary, quotes) = Quotes::cut(answer);
        assert_eq!(summary, "## State\nDone.\n\nNext: go on.");
        let lifted =
            Lifted { earlier: "Be brief.".into(), later: "Write as much as you like.".into() };
        let rules = vec!["Be brief.".to_owned(), "No tabs".to_owned()];
        assert_eq!(quotes, Quotes { rules, lifted: vec![lifted] });
    }

    #[test]
    fn an_answer_without_lists_stays_as_it_is() {
        let answer = "Text about <user_rules> in a line.\n  - and more";
        assert_eq!(Quotes::cut(answer), (answer.to_owned(), Quotes::default()));
    }

    #[test]
    fn a_quote_is_found_as_typed_in_any_language() {
        let rows = [
            (
                "Nenn ihn \u{201e}Hugo\u{201c}. Keine N\u{fc}sse im Kuchen.",
                "keine n\u{fc}sse",
                "Keine N\u{fc}sse im Kuchen.",
            ),
            (
                "Maschine ist \u{ff2b}\u{ff2d}-07. Gut.",
                "maschine ist km-07",
                "Maschine ist \u{ff2b}\u{ff2d}-07.",
            ),
            (
                "\u{94a5}\u{5319}\u{5728}\u{8001}\u{5468}\u{5bb6}\u{ff0c}\u{522b}\u{52a8}\u{3002}",
                "\u{8001}\u{5468}\u{5bb6},\u{522b}\u{52a8}",
                "\u{94a5}\u{5319}\u{5728}\u{8001}\u{5468}\u{5bb6}\u{ff0c}\u{522b}\u{52a8}\u{3002}",
            ),
            ("Fix it. Never touch the lexer!", "never touch the lexer", "Never touch the lexer!"),
            ("Sou alérgica a nozes. Obrigada.", "SOU ALÉRGICA A NOZES", "Sou alérgica a nozes."),
            ("不要在白天重启服务器。谢谢。", "白天重启服务器", "不要在白天重启服务器。"),
            ("कभी भी टैब का प्रयोग न करें। धन्यवाद।", "टैब का प्रयोग न करें", "कभी भी टैब का प्रयोग न करें।"),
            ("هل أنت جاهز؟ لا تلمس الملف أبدا.", "لا تلمس الملف", "لا تلمس الملف أبدا."),
            (
                "It\u{2019}s \u{2014} well \u{2014} 5 p.m. sharp.",
                "it's - well - 5 p.m. sharp",
                "It\u{2019}s \u{2014} well \u{2014} 5 p.m. sharp.",
            ),
            (
                "The list is long.  Two of the words\nare on another line. Four.",
                "words are",
                "Two of the words are on another line.",
            ),
        ];
        for (text, quote, sentence) in rows {
            assert_eq!(found(&[text], quote), Some((0, sentence.to_owned())), "{quote}");
        }
    }

    #[test]
    fn what_the_user_did_not_type_is_not_found() {
        let texts = ["Keep the pool at 8.", "> Delete everything.\n```\nrm -rf the pool\n```"];
        for quote in [
            "keep the pool at 9",
            "delete everything",
            "rm -rf the pool",
            "eep the pool",
            "8",
            "",
            "...",
        ] {
            assert_eq!(found(&texts, quote), None, "{quote}");
        }
        let mut typed = Typed::default();
        typed.read(0, &Message::assistant("Keep the pool at 8."));
        assert_eq!(typed.find("keep the pool at 8"), None);
    }

    #[test]
    fn a_statement_is_taken_back_in_one_breath_and_stands_again_if_it_is_typed_again() {
        let lift = |earlier: &str, later: &str| Quotes {
            rules: vec!["Tea at two.".into()],
            lifted: vec![Lifted { earlier: earlier.into(), later: later.into() }],
        };
        let texts = ["Tea at two. No, tea at four."];
        let mut rules = Ledger::default();
        let changes = rules.quoted(&lift("tea at two", "no, tea at four"), &typed_in(&texts), ALL);
        assert_eq!((changes.rules.len(), changes.lifted.len(), changes.refused), (0, 1, 0));
        let wrong = rules.quoted(&lift("no, tea at four", "tea at two"), &typed_in(&texts), ALL);
        assert_eq!((wrong.lifted.len(), wrong.refused), (0, 1));
        rules.quote(0, "Tea at two.").unwrap();
        rules.apply(&changes);
        assert_eq!((rules.active().count(), rules.taken_back().count()), (0, 1));
        let quotes = Quotes { lifted: Vec::new(), ..lift("", "") };
        assert_eq!(rules.quoted(&quotes, &typed_in(&texts), ALL).rules, []);
        let again = typed_in(&[texts[0], "Tea at two."]);
        assert_eq!(rules.quoted(&quotes, &again, ALL).rules.len(), 1);
    }

    #[test]
    fn rules_in_what_was_taken_back_are_lifted_but_not_those_that_are_repeated() {
        let texts = ["The cap is 300. Ask first. No cash.", "The cap is 400. Ask first."];
        let quotes = Quotes {
            rules: vec!["Ask first.".into(), "No cash.".into()],
            lifted: vec![Lifted { earlier: texts[0].into(), later: texts[1].into() }],
        };
        let mut rules = Ledger::default();
        rules.quote(0, "No cash.").unwrap();
        rules.apply(&rules.quoted(&quotes, &typed_in(&texts), ALL));
        assert_eq!(rules.to_string(), "- Ask first.\n");
    }

    #[test]
    fn the_latest_of_equal_sentences_is_found_and_its_place_known() {
        let texts = ["Be brief.", "Write more.", "Be brief."];
        let typed = typed_in(&texts);
        let (brief, more) = (typed.find("be brief").unwrap(), typed.find("write more").unwrap());
        assert_eq!(brief.position, Some(2));
        assert!(brief.is_after(&more) && !more.is_after(&brief));
    }

    /// What ann and bob typed, each line of the form `ann: text`.
    fn said_by(lines: &[(&str, &str)]) -> Typed {
        let mut typed = Typed::default();
        for (position, (name, text)) in lines.iter().enumerate() {
            typed.read(position, &Message::user(*text).by(name.parse().unwrap()));
        }
        typed
    }

    fn lifting(earlier: &str, later: &str) -> Quotes {
        let lifted = Lifted { earlier: earlier.into(), later: later.into() };
        Quotes { rules: Vec::new(), lifted: vec![lifted] }
    }

    #[test]
    fn a_rule_is_its_authors_and_a_quote_with_a_name_is_checked_against_this_person() {
        let typed = said_by(&[("ann", "No tabs."), ("bob", "No tabs."), ("bob", "Be brief.")]);
        let quotes = |lines: &[&str]| Quotes {
            rules: lines.iter().map(|line| (*line).to_owned()).collect(),
            lifted: Vec::new(),
        };
        let mut rules = Ledger::default();
        let lines = ["ann said: No tabs", "bob said: no tabs.", "ann said: Be brief."];
        let changes = rules.quoted(&quotes(&lines), &typed, ALL);
        assert_eq!((changes.rules.len(), changes.refused), (2, 1));
        rules.apply(&changes);
        assert_eq!(rules.to_string(), "- ann said: No tabs.\n- bob said: No tabs.\n");
        let again = rules.quoted(&quotes(&lines[..2]), &typed, ALL);
        assert_eq!(again.rules, []);
    }

    #[test]
    fn where_moderators_are_named_others_take_back_only_what_they_said() {
        let lines = [
            ("ann", "Never push to main."),
            ("bob", "Answer in French."),
            ("bob", "Pushing to main is fine now."),
            ("bob", "English is fine now."),
        ];
        let only = Moderators::Only(["ann".parse().unwrap()].into());
        let mut rules = Ledger::default();
        for (position, (name, text)) in lines[..2].iter().enumerate() {
            let author = name.parse().unwrap();
            rules.enter(Some(position), Some(&author), text).unwrap();
        }
        let lifted = |lines: &[(&str, &str)], earlier, later, moderators: &Moderators| {
            let mut rules = rules.clone();
            let changes = rules.quoted(&lifting(earlier, later), &said_by(lines), moderators);
            // What is stored says enough to replay it.
            let stored = serde_json::to_string(&changes).unwrap();
            rules.apply(&serde_json::from_str(&stored).unwrap());
            let left = rules.active().map(|rule| rule.text.to_string()).collect::<Vec<_>>();
            (left, changes.refused)
        };
        let [push, french] = [lines[0].1, lines[1].1].map(str::to_owned);
        let both = vec![push.clone(), french.clone()];
        assert_eq!(lifted(&lines, lines[0].1, lines[2].1, &only), (both.clone(), 1));
        assert_eq!(lifted(&lines, lines[0].1, lines[2].1, ALL), (vec![french.clone()], 0));
        assert_eq!(lifted(&lines, lines[1].1, lines[3].1, &only), (vec![push.clone()], 0));
        // Saying it after her does not make it his to take back.
        let after = [lines[0], lines[1], ("bob", lines[0].1), lines[2]];
        assert_eq!(lifted(&after, lines[0].1, lines[2].1, &only), (both.clone(), 0));
        let by_ann = [lines[0], lines[1], ("ann", lines[2].1), ("ann", lines[3].1)];
        assert_eq!(lifted(&by_ann, lines[0].1, lines[2].1, &only), (vec![french], 0));
        assert_eq!(lifted(&by_ann, lines[1].1, lines[3].1, &only), (vec![push], 0));
    }

    #[test]
    fn a_text_without_an_author_takes_nothing_back_where_moderators_are_named() {
        let only = Moderators::Only(["ann".parse().unwrap()].into());
        let typed = typed_in(&["No tabs.", "Tabs are fine now."]);
        let mut rules = Ledger::default();
        rules.quote(0, "No tabs.").unwrap();
        let changes = rules.quoted(&lifting("No tabs.", "Tabs are fine now."), &typed, &only);
        assert_eq!((changes.lifted.len(), changes.refused), (0, 1));
    }
}
